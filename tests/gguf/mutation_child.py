# SPDX-License-Identifier: Apache-2.0
"""Child of the mutation test: reads damaged files with 64 MB of address space to spare and reports as JSON.

Anything but a GgufError ends it with a traceback and the number of the case.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from pathlib import Path

from reference_engine.gguf_file import GgufError, GgufFile, open_gguf
from reference_engine.gguf_hparams import check_hparams
from reference_engine.gguf_inspect import inspect
from reference_engine.gguf_page import render
from reference_engine.gguf_shapes import check_shapes
from reference_engine.gguf_values import GgufArray
from tests.gguf import limited_reader
from tests.gguf.mutations import mutate, seed_files


def use(model: GgufFile) -> str:
    """Touch all that a parsed file offers; returns how far its structure held."""
    for value in model.metadata.values():
        if isinstance(value, GgufArray):
            assert len(value.tolist()) == len(value)
    for tensor in model.tensors.values():
        assert len(tensor.data()) == tensor.n_bytes == tensor.n_rows * tensor.row_bytes
        bytes(tensor.data()[-1:])
    check = check_hparams(model)
    if check.hparams is None:
        return "parsed, keys refused"
    return "parsed, shapes refused" if check_shapes(model, check.hparams) else "sound"


def outcome(path: Path) -> str:
    try:
        with open_gguf(path) as model:
            return use(model)
    except GgufError as error:
        return error.code


def main(folder: str, seed: int, cases: int) -> None:
    rng, files = random.Random(seed), seed_files()
    path = Path(folder) / "mutant.gguf"
    render(inspect(Path("/nonexistent")).document)
    limited_reader.spare_only()
    outcomes: Counter[str] = Counter()
    slowest = 0.0
    for case in range(cases):
        path.write_bytes(mutate(rng, files))
        start = time.process_time()
        try:
            outcomes[outcome(path)] += 1
            if case % 10 == 0:
                page = render(inspect(path).document)
                assert page.replace("\n", "").isprintable() and page.isascii()
        except BaseException:
            print(f"case {case} of seed {seed}: {path}", file=sys.stderr)
            raise
        slowest = max(slowest, time.process_time() - start)
    print(json.dumps({"outcomes": outcomes, "slowest_s": slowest}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
