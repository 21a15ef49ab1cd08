# SPDX-License-Identifier: Apache-2.0
"""``python -m conformance.traps``: writes the trap models, judges the answer of any engine, renews the manifest."""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from conformance.traps import Trap, TrapError, diagnose, expected, first_difference, records, trap_names, write_trap
from conformance.traps.catalogue import DESIGNS

WRONG, USAGE, COULD_NOT_RUN = 1, 2, 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0: done, or the answer is right; 1: it is wrong; 2: no such thing to do; 3: nobody reads the output."""
    parser = argparse.ArgumentParser(prog="python -m conformance.traps", description="Trap models.")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--write", metavar="FOLDER", help="write the files there and say how to run them")
    which.add_argument("--check", nargs=2, metavar=("NAME", "IDS"), help="judge the token ids that an engine gave")
    which.add_argument("--manifest", action="store_true", help="run every trap and write manifest.json anew")
    options = parser.parse_args(arguments)
    try:
        if options.write:
            return _write(Path(options.write))
        if options.check:
            return _check(*options.check)
        return _renew()
    except BrokenPipeError:
        # The reader of the output went away (a pager was left); the files are written.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return COULD_NOT_RUN
    except TrapError as error:
        print(error, file=sys.stderr)
        return USAGE


def _write(folder: Path) -> int:
    try:
        traps = [write_trap(name, folder) for name in trap_names()]
    except OSError as error:
        raise TrapError(f"{error.filename} cannot be written: {error.strerror}") from error
    for trap in traps:
        print(_how_to_run(trap))
    print(
        "Run each greedily (temperature 0) and without BOS, for as many tokens as the answer has. With llama-server:\n"
        "  curl -s localhost:8080/completion -d "
        """'{"prompt": [IDS], "temperature": 0, "n_predict": N, "return_tokens": true}'\n"""
        'Another answer? python -m conformance.traps --check NAME "IDS" says what it proves.'
    )
    return 0


def _how_to_run(trap: Trap) -> str:
    prompt = " ".join(map(str, trap.prompt))
    tokens = " ".join(map(str, trap.tokens))
    return (
        f"{trap.path}\n  trap for: {trap.fault}\n  prompt: {trap.prompt_text}\n  prompt ids: {prompt}\n"
        f"  right answer: {trap.text}\n  right ids ({len(trap.tokens)}): {tokens}\n"
    )


def _check(name: str, text: str) -> int:
    try:
        ids = [int(word) for word in text.replace(",", " ").split()]
    except ValueError:
        raise TrapError(f"{text!r} is no list of token ids; write them as numbers, for example '6 7 8'") from None
    trap = expected(name)
    print(diagnose(trap, ids))
    return 0 if first_difference(trap, ids) is None else WRONG


def _renew() -> int:
    from conformance.traps.measure import margins_of  # noqa: PLC0415 (the engine is needed for this alone)

    rows = []
    with TemporaryDirectory() as folder:
        for name, make in DESIGNS.items():
            design = make()
            raw = design.blueprint.encode()
            path = Path(folder) / f"{name}.gguf"
            path.write_bytes(raw)
            margins = margins_of(design, path)
            if "float" not in margins:
                raise TrapError(f"trap {name}: the float engine does not give the right answer; the design is wrong")
            rows.append(records.entry(design, hashlib.sha256(raw).hexdigest(), len(raw), margins))
            path.unlink()
            print(f"{name}: {len(margins)} pipelines, least margin {min(map(min, margins.values())):.1f} nats")
    records.write(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
