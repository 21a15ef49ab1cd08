# SPDX-License-Identifier: Apache-2.0
"""Right engines give the right tokens, by at least 3 nats, in every correct pipeline, batch shape and KV type."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import conformance.traps
from conformance.traps import Trap, manifest, trap_names
from conformance.traps.measure import answer
from conformance.traps.records import LEAST_NATS
from reference_engine.backends import make_backend
from reference_engine.backends.presets import PRESETS
from reference_engine.model import KvOptions, Model

ROWS = {row["name"]: row for row in manifest()["traps"]}
EIGHT_BITS_OR_MORE = {f"npu:{name}" for name, pipeline in PRESETS.items() if pipeline.bits != 4} | {"float"}
BY_TYPE = {f"npu:{name}" for name, pipeline in PRESETS.items() if pipeline.route == "by-type"}


@pytest.mark.parametrize("name", trap_names())
def test_the_manifest_names_every_pipeline_that_is_right_by_its_nature(name: str) -> None:
    """All but those of 4 bits; those that choose by tensor type take W4A4 for the Q4_0 of the trap of that name."""
    expected = EIGHT_BITS_OR_MORE - BY_TYPE if name == "w4a4" else EIGHT_BITS_OR_MORE
    assert expected <= set(ROWS[name]["pipelines"])
    assert min(ROWS[name]["margins_nats"]) >= LEAST_NATS
    assert min(ROWS[name]["pipelines"].values()) >= LEAST_NATS


@pytest.mark.parametrize("name", trap_names())
def test_every_pipeline_of_the_manifest_gives_the_answer_with_its_margin(traps: Mapping[str, Trap], name: str) -> None:
    trap = traps[name]
    for pipeline, least in ROWS[name]["pipelines"].items():
        tokens, margins = answer(trap.path, trap.prompt, len(trap.tokens), pipeline)
        assert tuple(tokens) == trap.tokens, pipeline
        assert min(margins) >= max(LEAST_NATS, least - 0.01), pipeline


@pytest.mark.parametrize("name", trap_names())
@pytest.mark.parametrize("kind", ["f32", "f16", "q8_0"])
def test_the_type_of_the_kv_cache_changes_no_token(traps: Mapping[str, Trap], name: str, kind: str) -> None:
    trap = traps[name]
    for flash in (False, True):
        tokens, margins = answer(trap.path, trap.prompt, len(trap.tokens), kv=KvOptions(kind, kind), flash=flash)
        assert tuple(tokens) == trap.tokens
        assert min(margins) >= LEAST_NATS


@pytest.mark.parametrize("name", trap_names())
@pytest.mark.parametrize("pipeline", ["npu:w8a8-per-channel", "npu:w8a8-per-tensor-both"])
def test_however_the_text_is_cut_into_batches_every_row_says_the_same(
    traps: Mapping[str, Trap], name: str, pipeline: str
) -> None:
    """The second pipeline has one activation scale for a whole batch, so that its numbers do depend on the cut."""
    trap = traps[name]
    text = (*trap.prompt, *trap.tokens[:-1])
    with Model.load(trap.path, make_backend(pipeline)) as model:
        for size in (1, 2, 3, 5, len(text)):
            cache = model.new_cache()
            rows = [model.forward(text[at : at + size], cache, rows="all").logits for at in range(0, len(text), size)]
            logits = np.concatenate(rows)[len(trap.prompt) - 1 :]
            assert tuple(logits.argmax(axis=1)) == trap.tokens
            second, first = np.partition(logits, -2, axis=1)[:, -2:].T
            assert (first - second).min() >= LEAST_NATS


@pytest.mark.parametrize("name", trap_names())
@pytest.mark.parametrize("settings", ["k_limit=4096,cores=2", "k_limit=0,cores=1", "fma=off,m_bucket=tile-256"])
def test_other_chips_and_compilers_change_no_token(traps: Mapping[str, Trap], name: str, settings: str) -> None:
    trap = traps[name]
    for preset in ("w8a8-per-channel", "w8a8-segment"):
        tokens, margins = answer(trap.path, trap.prompt, len(trap.tokens), f"npu:{preset},{settings}")
        assert tuple(tokens) == trap.tokens
        assert min(margins) >= LEAST_NATS


def test_the_runs_of_llama_cpp_were_of_these_files() -> None:
    record = json.loads(Path(conformance.traps.__file__).with_name("llama_cpp.json").read_text("utf-8"))
    assert set(record["traps"]) == set(trap_names())
    for name, run in record["traps"].items():
        assert run["sha256"] == ROWS[name]["sha256"]
        assert min(run["least_nats"].values()) >= LEAST_NATS
    assert all(rejected > 0 for _, rejected in record["traps"]["kv-rollback"]["drafted_and_rejected"].values())
    for run in record["wrong_on_purpose"]:
        assert run["proves"] in ROWS[run["trap"]]["wrong"].values()
