# SPDX-License-Identifier: Apache-2.0
"""``python -m reference_engine COMMAND``: runs, measures and looks into GGUF models.

A command module of ``reference_engine/commands`` has ``HELP`` (one line), ``add_arguments(parser)`` and
``run(values) -> int`` (the exit code). Only the module that was asked for is imported, and what it needs beyond the
standard library it imports inside ``run``, so that a usage error costs no second.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from types import ModuleType

from reference_engine.errors import EXIT_INTERRUPTED, EngineError, UsageError
from reference_engine.gguf_errors import GgufError
from reference_engine.gguf_tensor import MissingPackage, NoDequantizer
from reports.contract import EXIT_COULD_NOT_RUN, EXIT_USAGE
from reports.text import inert

__all__ = ["COMMANDS", "main"]

COMMANDS = ("run", "speculate", "bench", "compare", "inspect", "architectures")
"""Names of the commands, in the order of the help text."""


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0 nothing wrong, 1 a command found what it looks for, 2 usage, 3 could not run, 130 interrupted."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    values = _parser(arguments).parse_args(arguments)
    try:
        code: int = _module(values.command).run(values)
        sys.stdout.flush()
    except UsageError as error:
        return _refused(error, EXIT_USAGE)
    except (EngineError, GgufError, MissingPackage, NoDequantizer) as error:
        return _refused(error, EXIT_COULD_NOT_RUN)
    except KeyboardInterrupt:
        print("rknpu-engine: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except MemoryError as error:
        said = f" ({error})" if str(error) else ""
        return _refused(
            EngineError(f"there is not enough memory{said}: take fewer --layers or a smaller --ctx"), EXIT_COULD_NOT_RUN
        )
    except BrokenPipeError:
        # The reader of our output went away (a pager was left).
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_COULD_NOT_RUN
    return code


def _refused(error: Exception, code: int) -> int:
    print(f"rknpu-engine: {inert(error)}", file=sys.stderr)
    return code


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """The parser with the command that ``arguments`` names, or with all of them where they name none."""
    parser = argparse.ArgumentParser(prog="rknpu-engine", description="Reference engine for GGUF models.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in (arguments[0],) if arguments and arguments[0] in COMMANDS else COMMANDS:
        module = _module(name)
        module.add_arguments(commands.add_parser(name, help=module.HELP, description=module.HELP))
    return parser


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"reference_engine.commands.{name}")


if __name__ == "__main__":
    sys.exit(main())
