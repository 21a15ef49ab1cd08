# SPDX-License-Identifier: Apache-2.0
"""``python -m reference_engine COMMAND``: runs, measures and looks into GGUF models.

Each command is a module of ``reference_engine/commands`` (see :mod:`reports.command_line`).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from reference_engine.errors import EXIT_INTERRUPTED, EngineError, UsageError
from reference_engine.gguf_errors import GgufError
from reference_engine.gguf_tensor import MissingPackage, NoDequantizer
from reports.command_line import CommandLine
from reports.contract import EXIT_COULD_NOT_RUN, EXIT_USAGE
from reports.text import inert

__all__ = ["COMMANDS", "COMMAND_LINE", "main"]

COMMANDS = ("run", "speculate", "bench", "compare", "inspect", "architectures")
COMMAND_LINE = CommandLine("rknpu-engine", "Reference engine for GGUF models.", "reference_engine.commands", COMMANDS)


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0 nothing wrong, 1 a command found what it looks for, 2 usage, 3 could not run, 130 interrupted."""
    try:
        return COMMAND_LINE.run(argv)
    except UsageError as error:
        return _refused(error, EXIT_USAGE)
    except (EngineError, GgufError, MissingPackage, NoDequantizer) as error:
        return _refused(error, EXIT_COULD_NOT_RUN)
    except KeyboardInterrupt:
        return _refused("interrupted", EXIT_INTERRUPTED)
    except MemoryError as error:
        said = f" ({error})" if str(error) else ""
        sentence = f"there is not enough memory{said}: take fewer --layers or a smaller --ctx"
        return _refused(sentence, EXIT_COULD_NOT_RUN)


def _refused(why: Exception | str, code: int) -> int:
    print(f"rknpu-engine: {inert(why)}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
