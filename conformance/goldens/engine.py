# SPDX-License-Identifier: Apache-2.0
"""Goldens of this engine on the kit's own models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from conformance.goldens.manifest import Entry, file_sha256, ids_sha256

GOLDENS = Path(__file__).with_name("engine.json")
PIPELINES = ("float", "npu:w8a8-per-channel", "npu:w8a8-segment", "npu:w8a8-hadamard", "npu:w4a4-hadamard")
N_TOKENS = 128
REGENERATE = "python -m conformance.goldens --write"


def made() -> Iterator[Entry]:
    """Every model of the kit in every pipeline on every prompt, computed now."""
    # The checks import this module for the path alone.
    from conformance.engine.bench import EngineBench  # noqa: PLC0415
    from conformance.engine.runs import greedy  # noqa: PLC0415

    bench = EngineBench(level="quick", seed=0, check="goldens", engine="npu")
    try:
        for target in bench.targets:
            for pipeline in PIPELINES:
                kind, _, preset = pipeline.partition(":")
                model = bench.model(target, bench.float_backend() if kind == "float" else bench.backend(preset))
                for name in target.prompts:
                    prompt = bench.prompt(target, name)
                    run = greedy(model, prompt, N_TOKENS)
                    yield Entry(
                        target.name,
                        file_sha256(target.path),
                        pipeline,
                        name,
                        ids_sha256(prompt),
                        len(run.ids),
                        ids_sha256(run.ids),
                        run.margins,
                        REGENERATE,
                    )
    finally:
        bench.close()
