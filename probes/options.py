# SPDX-License-Identifier: Apache-2.0
"""The command line of ``python -m probes``, checked before anything runs."""

from __future__ import annotations

import argparse
import os
import random
import stat
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from probes.measurements import SelectionError, select

LEVELS = ("quick", "medium", "long")
CHECKOUT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Options:
    """``output`` is None for a run that writes no file. ``seed`` goes to every C probe and into the report."""

    level: str
    root: Path
    library: Path | None
    mock: bool
    output: Path | None
    force: bool
    full: bool
    as_json: bool
    paste: bool
    seed: int
    only: tuple[str, ...] = ()
    allow_risky: bool = False
    list_only: bool = False


class UsageError(Exception):
    """A request that cannot be met as it was put. The text is fit for the user."""


def parse(argv: Sequence[str]) -> Options:
    """Options from the command line. argparse ends the process with 2 on an unknown option; so does UsageError."""
    values = _parser().parse_args(argv)
    root = Path(values.root)
    _check_root(root)
    only = tuple(values.only or ())
    if values.level == "quick" and (only or values.allow_risky):
        raise UsageError("level quick reads facts and measures nothing: --only and --allow-risky need another --level.")
    if values.allow_risky and values.level != "long":
        raise UsageError("--allow-risky belongs to level long. Add --level long.")
    if values.level != "quick":
        try:
            select(values.level, only, allow_risky=values.allow_risky)
        except SelectionError as error:
            raise UsageError(str(error)) from error
    library = None
    if values.library is not None:
        if values.mock:
            raise UsageError("--library and --mock name two libraries. Use one of them.")
        library = _checked_library(Path(values.library))
    seed = values.seed if values.seed is not None else random.SystemRandom().randrange(1, 2**31)
    output = None if values.output == "-" else Path(values.output)
    return Options(
        level=values.level,
        root=root,
        library=library,
        mock=values.mock,
        output=output,
        force=values.force,
        full=values.full,
        as_json=values.json,
        paste=values.paste,
        seed=seed,
        only=only,
        allow_risky=values.allow_risky,
        list_only=values.list,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rknpu-probe",
        description="Finds out what this board is, what its NPU can do, what is wrong and what to do next. Reads only; "
        "changes no setting. On a machine that is no Rockchip board it runs on a mock librknnrt and says SIMULATED.",
        epilog="Exit codes: 0 nothing wrong, 1 findings of severity error, 2 usage, 3 could not run.",
    )
    parser.add_argument(
        "--level",
        choices=LEVELS,
        default="medium",
        help="quick: facts and findings, calls no library; medium (default): measures too, up to three minutes; "
        "long: finer, more types and minutes of full load, about fifteen minutes",
    )
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="only this measurement (may be given again); see --list"
    )
    parser.add_argument("--list", action="store_true", help="list the measurements and what each does, and end")
    parser.add_argument(
        "--allow-risky",
        action="store_true",
        help="with --level long: also go to limits of memory, contexts and IOMMU domains, where old drivers hang",
    )
    parser.add_argument(
        "--library", metavar="PATH", help="call this librknnrt in place of the one the loader would take"
    )
    parser.add_argument("--mock", action="store_true", help="call the kit's mock librknnrt, whatever machine this is")
    parser.add_argument(
        "--output",
        metavar="PATH",
        default=str(CHECKOUT / "reports" / "out"),
        help="folder for the report and the event log, or a file name ending in .json, or - for none "
        "(default: reports/out in the checkout)",
    )
    parser.add_argument("--force", action="store_true", help="write over a report that exists")
    parser.add_argument(
        "--full", action="store_true", help="keep host name, serial numbers and user names in the report"
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON in place of the page")
    parser.add_argument(
        "--paste", action="store_true", help="print a short block for an issue report in place of the page"
    )
    parser.add_argument(
        "--root", metavar="DIR", default="/", help="read facts under this folder in place of / (level quick)"
    )
    parser.add_argument("--seed", type=_seed, metavar="N", help="seed of all test data (default: random, and printed)")
    return parser


def _seed(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number") from None
    if not 0 < value < 2**31:
        raise argparse.ArgumentTypeError("a seed lies between 1 and 2147483647")
    return value


def _check_root(root: Path) -> None:
    if not _is(stat.S_ISDIR, root, f"--root {root}"):
        raise UsageError(
            f"--root {root} is no folder. Name the top of a file tree; a capture is unpacked first, with "
            "python -m probes capture --unpack FOLDER FILE."
        )
    if not os.access(root, os.R_OK | os.X_OK):
        raise UsageError(f"--root {root} cannot be read: permission denied.")


def _is(kind: Callable[[int], bool], path: Path, what: str) -> bool:
    """Whether ``path`` is of that kind. UsageError where it does not exist or a folder on the way is closed."""
    try:
        return kind(path.stat().st_mode)
    except FileNotFoundError:
        raise UsageError(f"{what} does not exist. Name one that does.") from None
    except OSError as error:
        raise UsageError(f"{what} cannot be read: {(error.strerror or str(error)).lower()}.") from error


def _checked_library(path: Path) -> Path:
    if not _is(stat.S_ISREG, path, f"--library {path}"):
        raise UsageError(f"--library {path} is no file. Name a librknnrt.so.")
    if not os.access(path, os.R_OK):
        raise UsageError(f"--library {path} cannot be read: permission denied.")
    return path.resolve()


def usage_failure(error: Exception) -> int:
    """Say what is wrong with the request, in one line, and give the exit code for it."""
    print(f"rknpu-probe: {error}", file=sys.stderr)
    return 2
