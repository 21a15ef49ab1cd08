# SPDX-License-Identifier: Apache-2.0
"""One line per case: its name and the sha256 of all logits and hidden states of a short text, given in three batches.

Runs on this machine and, under qemu, in the Python of an Arm system: ``python -m tests.engine_arm.forward_hashes
MODELS BUILD PATH THREADS CASE...``. MODELS holds ``<name>.gguf`` files; PATH is a CPU path of the kernels in BUILD, ""
for the best one or "numpy". A CASE is ``model|back end|KV type|flash or full``. The first line names the path in use.
"""

from __future__ import annotations

import hashlib
import platform
import sys
from pathlib import Path

import numpy as np

from reference_engine.backends import make_backend
from reference_engine.kernels.library import KernelLibrary, library_file
from reference_engine.model import KvOptions, Model

SHORT = ((0, 11), (11, 12), (12, 14))
# Beyond 64 positions, where flash attention goes on from one block to the next.
LONG = ((0, 61), (61, 62), (62, 70))


def digest(folder: Path, case: str, kernels: KernelLibrary | None, threads: int) -> str:
    name, backend, kv, attention = case.split("|")
    made = make_backend(backend, threads=threads, kernels=kernels)
    options = KvOptions(type_k=kv, type_v=kv, rotate=True)
    model = Model.load(folder / f"{name}.gguf", made, n_ctx=80, kv=options, threads=threads, flash=attention == "flash")
    cache, found = model.new_cache(), hashlib.sha256()
    tokens = [(7 * i * i + 5) % 41 for i in range(LONG[-1][1])]
    for start, end in LONG if attention == "flash" else SHORT:
        result = model.forward(tokens[start:end], cache, rows="all")
        assert np.isfinite(result.logits).all()
        found.update(np.ascontiguousarray(result.logits).tobytes())
        found.update(np.ascontiguousarray(result.hidden).tobytes())
    model.close()
    return found.hexdigest()


def main(folder: str, build: str, path: str, threads: str, *cases: str) -> None:
    kernels = None if path == "numpy" else KernelLibrary(library_file(Path(build)), path)
    lines = [f"{platform.machine()} {kernels.path if kernels else 'numpy'} {np.__version__}"]
    lines += [f"{case} {digest(Path(folder), case, kernels, int(threads))}" for case in cases]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
