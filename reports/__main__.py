# SPDX-License-Identifier: Apache-2.0
"""``python -m reports COMMAND``: reads saved reports.

Each command is a module of ``reports/commands`` (see :mod:`reports.command_line`).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from reports.command_line import CommandLine
from reports.contract import EXIT_USAGE
from reports.files import OutputError
from reports.load import NotAReport, load_report
from reports.text import inert

__all__ = ["COMMANDS", "load_report", "main"]

COMMANDS = ("show", "diff", "forecast", "levers", "claims", "validate", "redact", "merge", "fleet", "export")
_COMMAND_LINE = CommandLine(
    "rknpu-report", "Shows, compares and checks capability reports.", "reports.commands", COMMANDS
)


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0 nothing wrong, 1 something a command looks for was found, 2 a request or file that cannot be used."""
    try:
        return _COMMAND_LINE.run(argv)
    except (NotAReport, OutputError) as error:
        print(f"rknpu-report: {inert(error)}", file=sys.stderr)
        return EXIT_USAGE


if __name__ == "__main__":
    sys.exit(main())
