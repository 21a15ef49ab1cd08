# SPDX-License-Identifier: Apache-2.0
"""``python -m tests.lossless.manifest``: write the manifest anew, after a model was trained anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reference_engine.tiny import PROMPTS
from tests.lossless.matrix import BACKENDS, N_PREDICT, TARGETS, loaded, model_sha256, plain

PATH = Path(__file__).with_name("manifest.json")
MAGIC, VERSION = "rknpu-kit-token-hashes", 1


def made() -> dict[str, Any]:
    """Token hashes of greedy decoding by model, back end and prompt."""
    entries = []
    for target in TARGETS:
        for backend in BACKENDS:
            for prompt in PROMPTS:
                run = plain(target, backend, prompt)
                ids = loaded(target, backend).prompts[prompt]
                entries.append(
                    {
                        "model": target,
                        "model_sha256": model_sha256(target),
                        "pipeline": backend,
                        "kv": "f16",
                        "prompt": prompt,
                        "prompt_tokens": len(ids),
                        "tokens": len(run.tokens),
                        "sha256": run.sha256,
                        "first": run.tokens[:8],
                    }
                )
    return {
        "magic": MAGIC,
        "version": VERSION,
        "how": "greedy decoding by this engine, one token at a time; sha256 over the ids as little-endian int32; the "
        "same on every machine, thread count and CPU path. To make it anew: python -m tests.lossless.manifest",
        "n_predict": N_PREDICT,
        "entries": entries,
    }


if __name__ == "__main__":
    PATH.write_text(json.dumps(made(), indent=1) + "\n")
