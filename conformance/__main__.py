# SPDX-License-Identifier: Apache-2.0
"""``python -m conformance COMMAND``: what judges files; the suite itself is ``pytest conformance``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from reports.command_line import CommandLine
from reports.contract import EXIT_USAGE
from reports.load import NotAReport
from reports.text import inert

_COMMAND_LINE = CommandLine(
    "python -m conformance", "Judges files of benchmarks. The suite: pytest conformance.", "conformance", ("offload",)
)


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0 nothing wrong, 1 a finding, 2 a request or file that cannot be used, 3 no verdict."""
    try:
        return _COMMAND_LINE.run(argv)
    except NotAReport as error:
        sys.stderr.write(f"python -m conformance: {inert(error)}\n")
        return EXIT_USAGE


if __name__ == "__main__":
    sys.exit(main())
