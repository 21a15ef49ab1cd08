# SPDX-License-Identifier: Apache-2.0
"""``python -m c_probes.mock``: list what the mock can do, say where it is, replay a report."""

from __future__ import annotations

import argparse
import json
import os
import sys
import textwrap
from pathlib import Path

from c_probes import mock
from c_probes.mock import replay
from c_probes.mock.replay_rows import without_validity

EXIT_OK, EXIT_USAGE, EXIT_COULD_NOT_RUN = 0, 2, 3
_MAX_REPORT_BYTES = 64 << 20


def _print_faults(library: Path) -> None:
    for fault in mock.faults(library):
        print(f"{fault.name}{':' + fault.parameters if fault.parameters else ''}")
        print(textwrap.indent(textwrap.fill(fault.imitates, 96), "    "))


def _print_personas(library: Path) -> None:
    for persona in mock.personas(library):
        types = ",".join(map(str, persona.types)) or "none"
        print(f"{persona.name}: {persona.title}; cores {persona.cores}; types {types}; timing {persona.timing}")
        print(textwrap.indent(textwrap.fill(f"doubt: {persona.doubt}", 96), "    "))


def _print_timing(library: Path) -> None:
    for entry in mock.timing_sets(library):
        print(f"{entry.name}: {entry.what}")
        print(textwrap.indent(textwrap.fill(f"source: {entry.source}", 96), "    "))
        text = " ".join(f"{key}={value}" for key, value in entry.parameters.items())
        print(textwrap.indent(textwrap.fill(text, 96, break_on_hyphens=False), "    "))


def _replay(arguments: argparse.Namespace, library: Path) -> int:
    source, target = Path(arguments.report), Path(arguments.output)
    try:
        with source.open("rb") as file:
            raw = file.read(_MAX_REPORT_BYTES + 1)
        if len(raw) > _MAX_REPORT_BYTES:
            print(f"{source}: larger than {_MAX_REPORT_BYTES >> 20} MiB, not read", file=sys.stderr)
            return EXIT_USAGE
        report = json.loads(raw)
        if arguments.invalid_too:
            report = without_validity(report)
        text = replay.configuration(report, mock.personas(library), arguments.persona)
        missed = replay.left_out(report)
        with target.open("w" if arguments.force else "x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        print(f"{target} exists already; give another name or --force", file=sys.stderr)
        return EXIT_USAGE
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return EXIT_USAGE
    except (ValueError, RecursionError):
        print(f"{source}: not JSON", file=sys.stderr)
        return EXIT_USAGE
    except replay.BadReport as error:
        print(f"{source}: {error}", file=sys.stderr)
        return EXIT_USAGE
    if missed:
        print(
            f"measured speeds left out: {missed}; right, but taken under bad conditions, which the report names "
            "(--invalid-too takes them)",
            file=sys.stderr,
        )
    print(f"wrote {target}; use it with RKNN_MOCK_CONFIG={target}")
    return EXIT_OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m c_probes.mock", description=__doc__)
    parser.add_argument(
        "--runtime", default=mock.DEFAULT_VERSION, choices=mock.VERSIONS, help="runtime version (default: %(default)s)"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--list-faults", action="store_true", help="every fault, its parameters and what it imitates")
    what.add_argument("--list-personas", action="store_true", help="every chip, its types and where sources conflict")
    what.add_argument("--list-timing", action="store_true", help="every set of timing parameters and its source")
    what.add_argument("--where", action="store_true", help="print the path of the built library")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    command = commands.add_parser("replay", help="make a mock configuration from a saved capability report")
    command.add_argument("report", help="capability report (JSON)")
    command.add_argument("-o", "--output", required=True, help="configuration file to write")
    command.add_argument("--persona", help="chip, where the report's facts do not name one")
    command.add_argument("--invalid-too", action="store_true", help="also take speeds measured under bad conditions")
    command.add_argument("--force", action="store_true", help="overwrite an existing file")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command: 0 done, 2 usage, 3 the library is not built."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    try:
        library = mock.library_path(arguments.runtime)
    except mock.MockNotBuilt as error:
        print(error, file=sys.stderr)
        return EXIT_COULD_NOT_RUN
    if arguments.command == "replay":
        names = [persona.name for persona in mock.personas(library)]
        if arguments.persona and arguments.persona not in names:
            print(f"unknown persona {arguments.persona!r}; valid: {', '.join(names)}", file=sys.stderr)
            return EXIT_USAGE
        return _replay(arguments, library)
    if arguments.list_faults:
        _print_faults(library)
    elif arguments.list_personas:
        _print_personas(library)
    elif arguments.list_timing:
        _print_timing(library)
    elif arguments.where:
        print(library)
    else:
        parser.print_help()
        return EXIT_USAGE
    return EXIT_OK


def _run() -> int:
    """main, with a reader that went away (``| head``) taken for a normal end."""
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
    return code


if __name__ == "__main__":
    sys.exit(_run())
