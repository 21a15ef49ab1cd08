# SPDX-License-Identifier: Apache-2.0
"""``python -m reference_engine inspect MODEL.gguf``: what is in a model file, and what is wrong with it."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from reference_engine.gguf_errors import LARGE, UNREADABLE, Limits
from reference_engine.gguf_hparam_table import ARCHITECTURES
from reference_engine.gguf_inspect import Inspection, inspect
from reference_engine.gguf_page import render
from reports.contract import EXIT_COULD_NOT_RUN, EXIT_FINDINGS, EXIT_OK


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0 nothing wrong (warnings allowed), 1 errors found, 2 usage, 3 the file cannot be opened."""
    values = _parser().parse_args(argv)
    try:
        if values.command == "architectures":
            _print_architectures()
            return EXIT_OK
        return _inspect(values)
    except BrokenPipeError:
        # The reader of our output went away (a pager was left).
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_COULD_NOT_RUN


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="rknpu-engine", description="Reference engine for GGUF models.")
    commands = parser.add_subparsers(dest="command", required=True)
    look = commands.add_parser("inspect", help="what is in a model file, and what is wrong with it")
    look.add_argument("model", type=Path, metavar="MODEL", help="a GGUF file; of a split model, any part")
    look.add_argument("--json", action="store_true", help="the same as one JSON document")
    look.add_argument(
        "--header-only", action="store_true", help="do not ask for the tensor data: the start of the file is enough"
    )
    look.add_argument(
        "--large", action="store_true", help="take headers larger than any published today (see NPU-F013)"
    )
    look.add_argument("--sha256", metavar="HEX", type=_sha256, help="compare with the publisher's hash too")
    commands.add_parser("architectures", help="the architectures and hyper-parameters that are known")
    return parser


def _sha256(text: str) -> str:
    if len(text) != 64 or set(text.lower()) - set("0123456789abcdef"):
        raise argparse.ArgumentTypeError("a sha256 is 64 hexadecimal digits")
    return text.lower()


def _inspect(values: argparse.Namespace) -> int:
    limits = LARGE if values.large else Limits()
    result = inspect(values.model, header_only=values.header_only, sha256=values.sha256, limits=limits)
    if values.json:
        print(json.dumps(result.document, indent=2, ensure_ascii=True, allow_nan=False))
    else:
        print(render(result.document), end="")
    return _exit_code(result)


def _exit_code(result: Inspection) -> int:
    if any(problem.code == UNREADABLE for problem in result.problems):
        return EXIT_COULD_NOT_RUN
    return EXIT_FINDINGS if any(not problem.is_warning for problem in result.problems) else EXIT_OK


def _print_architectures() -> None:
    for architecture in ARCHITECTURES.values():
        print(architecture.name)
        for key in architecture.keys:
            print(f"  {architecture.name}.{key.suffix}: {key.kind}{', required' if key.required else ''}")


if __name__ == "__main__":
    sys.exit(main())
