# SPDX-License-Identifier: Apache-2.0
"""``python -m reports COMMAND``: reads saved reports. Each command is one module of ``reports/commands``.

A command module has ``HELP`` (one line), ``add_arguments(parser)`` and ``run(values) -> int`` (the exit code). Only the
module that was asked for is imported, and what it needs beyond the standard library it imports inside ``run``.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from types import ModuleType

from reports.contract import EXIT_COULD_NOT_RUN, EXIT_USAGE
from reports.files import OutputError
from reports.load import NotAReport, load_report
from reports.text import inert

__all__ = ["COMMANDS", "load_report", "main"]

COMMANDS = ("show", "diff", "forecast", "levers", "claims", "validate", "redact", "merge", "fleet", "export")
"""Names of the commands, in the order of the help text."""


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0 nothing wrong, 1 something a command looks for was found, 2 a request or file that cannot be used."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    values = _parser(arguments).parse_args(arguments)
    try:
        code: int = _module(values.command).run(values)
        sys.stdout.flush()
    except (NotAReport, OutputError) as error:
        print(f"rknpu-report: {inert(error)}", file=sys.stderr)
        return EXIT_USAGE
    except BrokenPipeError:
        # The reader of our output went away (a pager was left).
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_COULD_NOT_RUN
    return code


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """The parser with the command that ``arguments`` names, or with all of them where they name none."""
    parser = argparse.ArgumentParser(prog="rknpu-report", description="Shows, compares and checks capability reports.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in (arguments[0],) if arguments and arguments[0] in COMMANDS else COMMANDS:
        module = _module(name)
        module.add_arguments(commands.add_parser(name, help=module.HELP, description=module.HELP))
    return parser


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"reports.commands.{name}")


if __name__ == "__main__":
    sys.exit(main())
