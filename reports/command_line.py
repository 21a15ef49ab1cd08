# SPDX-License-Identifier: Apache-2.0
"""A program of several commands, each a module of one package.

A command module has ``HELP`` (one line), ``add_arguments(parser)`` and ``run(values) -> int`` (the exit code). Only the
module that was asked for is imported, and what it needs beyond the standard library it imports inside ``run``.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

from reports.contract import EXIT_COULD_NOT_RUN

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


@dataclass(frozen=True)
class CommandLine:
    """``names`` in the order of the help text; ``package`` holds a module for each."""

    prog: str
    description: str
    package: str
    names: tuple[str, ...]

    def run(self, argv: Sequence[str] | None = None) -> int:
        """Parse, run the command and return its exit code. What the command raises is the caller's."""
        arguments = list(sys.argv[1:] if argv is None else argv)
        values = self.parser(arguments).parse_args(arguments)
        try:
            code: int = self._module(values.command).run(values)
            sys.stdout.flush()
        except BrokenPipeError:
            # The reader of our output went away (a pager was left).
            _drop_output()
            return EXIT_COULD_NOT_RUN
        except OSError as error:
            if error.errno not in _NO_ROOM or error.filename is not None:
                raise
            _drop_output()
            print(f"{self.prog}: the output cannot be written: {error.strerror}", file=sys.stderr)
            return EXIT_COULD_NOT_RUN
        return code

    def parser(self, arguments: Sequence[str]) -> argparse.ArgumentParser:
        """The parser with the command that ``arguments`` names, or with all of them where they name none."""
        parser = argparse.ArgumentParser(prog=self.prog, description=self.description)
        commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
        for name in (arguments[0],) if arguments and arguments[0] in self.names else self.names:
            module = self._module(name)
            module.add_arguments(commands.add_parser(name, help=module.HELP, description=module.HELP))
        return parser

    def _module(self, name: str) -> ModuleType:
        return importlib.import_module(f"{self.package}.{name}")


def _drop_output() -> None:
    """What is still to be written goes nowhere, so that the interpreter's end has nothing to complain about."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
