# SPDX-License-Identifier: Apache-2.0
"""``python -m probes capture [FILE]``: save what the probe reads of this board, for somebody else to look at."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from probes.capture import CaptureError, capture, unpack
from probes.options import UsageError
from probes.system import System
from reports.contract import EXIT_OK


def capture_command(argv: Sequence[str]) -> int:
    """Write the capture and say what is in it. UsageError for a file that exists or cannot be written."""
    values = _parser().parse_args(argv)
    out: Path = values.file
    try:
        if values.unpack is not None:
            values.unpack.mkdir(parents=True, exist_ok=True)
            root = unpack(out, values.unpack)
            print(f"Unpacked. Look at it with: python -m probes --level quick --root {root}")
            return EXIT_OK
        if not values.root.is_dir():
            raise UsageError(f"--root {values.root} is no folder. Name the folder that stands for / .")
        done = capture(System(values.root), out, full=values.full)
    except CaptureError as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        raise UsageError(f"{values.unpack} cannot be made: {error.strerror or error}.") from None
    kept = "with" if values.full else "without"
    print(f"{done.path}: {done.files} files, {done.size_bytes} bytes, {kept} personal data.")
    print(f"Look at what is in it before you send it: tar tf {done.path}")
    if done.refused:
        print(f"Closed to this user, so not in it: {', '.join(done.refused)}")
    return EXIT_OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rknpu-probe capture",
        description="Saves the files that the probe reads as one tar, which replays as a root: the same report comes "
        "of it on any machine. Personal data is taken out; no library and no device content goes in.",
        epilog="Exit codes: 0 written, 2 usage.",
    )
    parser.add_argument(
        "file",
        metavar="FILE",
        type=Path,
        nargs="?",
        default=Path("board.tar"),
        help="the tar file to write (default: board.tar here); it must not exist",
    )
    parser.add_argument("--root", metavar="DIR", type=Path, default=Path("/"), help="capture this folder in place of /")
    parser.add_argument("--full", action="store_true", help="keep host name, serial numbers and user names in it")
    parser.add_argument(
        "--unpack", metavar="DIR", type=Path, help="unpack FILE into this folder in place of writing it"
    )
    return parser
