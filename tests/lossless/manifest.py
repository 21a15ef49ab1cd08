# SPDX-License-Identifier: Apache-2.0
"""``python -m tests.lossless.manifest [--only MODEL,...]``: the whole matrix, each cell checked and written down.

For every model, back end (the device on the mock too) and prompt: greedy decoding, then each strategy, whose tokens
must be greedy's. With SmolLM2 it takes half an hour on two cores; what was written before is kept back end by back end,
and models left out by ``--only`` stay as they are. Exit code 1 where a cell is not lossless.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from reference_engine.model_cache import find_model
from reference_engine.speculation.stack import Stack
from reference_engine.speculation.verify import Run
from reference_engine.tiny import PROMPTS
from tests.lossless.matrix import (
    BACKENDS,
    DEVICE,
    N_PREDICT,
    REAL,
    TARGETS,
    Loaded,
    NotLossless,
    check_lossless,
    load,
    model_sha256,
    strategies_of,
)

PATH = Path(__file__).with_name("manifest.json")
MAGIC, VERSION = "rknpu-kit-token-hashes", 2
HOW = (
    "greedy decoding by this engine, one token at a time, then every strategy; sha256 over the ids as little-endian "
    "int32; the same on every machine, thread count and CPU path. To make it anew: python -m tests.lossless.manifest"
)
Entry = dict[str, Any]


def read() -> dict[tuple[str, str, str], Entry]:
    """Entries by model, pipeline and prompt; none where there is no manifest of this version."""
    document = json.loads(PATH.read_bytes()) if PATH.exists() else {}
    if (document.get("magic"), document.get("version"), document.get("n_predict")) != (MAGIC, VERSION, N_PREDICT):
        return {}
    return {(e["model"], e["pipeline"], e["prompt"]): e for e in document["entries"]}


def write(entries: dict[tuple[str, str, str], Entry]) -> None:
    head = {"magic": MAGIC, "version": VERSION, "how": HOW, "n_predict": N_PREDICT}
    rows = ",\n".join(json.dumps(entries[key]) for key in sorted(entries))
    text = json.dumps(head, indent=1).removesuffix("\n}")
    PATH.write_text(f'{text},\n "entries": [\n{rows}\n ]\n}}\n')


def counts(run: Run, stack: Stack) -> dict[str, int]:
    """What a strategy did, to the last draft: as exact as the tokens."""
    return {
        "passes": len(run.steps),
        "drafted": sum(s.n_gen_tokens for s in stack.statistics),
        "accepted": sum(s.n_acc_tokens for s in stack.statistics),
    }


def made(it: Loaded, target: str, backend: str, prompt: str) -> Entry:
    """One greedy generation and each strategy against it. NotLossless."""
    greedy = it.greedy(prompt, N_PREDICT)
    return {
        "model": target,
        "model_sha256": model_sha256(target),
        "pipeline": backend,
        "kv": "f16",
        "prompt": prompt,
        "prompt_tokens": len(it.prompts[prompt]),
        "tokens": len(greedy.tokens),
        "sha256": greedy.sha256,
        "first": greedy.tokens[:8],
        "strategies": {
            strategy: counts(*check_lossless(it, prompt, strategy, N_PREDICT, wanted=greedy.sha256))
            for strategy in strategies_of(target)
        },
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Losslessness of every strategy on every model and back end.")
    parser.add_argument("--only", metavar="MODELS", help="these models alone, with commas between them")
    parser.add_argument("--backends", metavar="NAMES", help="these back ends alone, with spaces between them")
    values = parser.parse_args()
    targets = [*TARGETS, REAL] if find_model(REAL) is not None else list(TARGETS)
    targets = targets if values.only is None else values.only.split(",")
    backends = [*BACKENDS, DEVICE] if values.backends is None else values.backends.split()
    os.environ.setdefault("RKNPU_KIT_LOCK", str(Path(tempfile.gettempdir()) / "rknpu-kit-lossless.lock"))
    for target in targets:
        for backend in backends:
            begun, it = time.perf_counter(), load(target, backend)
            try:
                for prompt in PROMPTS:
                    entry = made(it, target, backend, prompt)
                    write(read() | {(target, backend, prompt): entry})
            except NotLossless as error:
                print(f"{target} {backend}: {error}", file=sys.stderr)
                return 1
            finally:
                it.model.close()
            print(f"{target:12} {backend:24} lossless, {time.perf_counter() - begun:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
