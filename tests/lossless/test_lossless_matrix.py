# SPDX-License-Identifier: Apache-2.0
"""512 tokens by every strategy are those of greedy, and greedy's are those of the manifest.

The float back end takes every strategy here, the others take those with a draft in them; the device and the real model
take a few over fewer tokens. ``python -m tests.lossless.manifest`` goes through the whole matrix, and what it found is
in the manifest, which is looked through here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from conformance.engine.runs import NGRAMS
from reference_engine.model import Model
from reference_engine.speculation.engine_sequence import EngineSequence
from reference_engine.speculation.verify import Rows
from reference_engine.tiny import PROMPTS
from tests.lossless.manifest import counts, read
from tests.lossless.matrix import (
    BACKENDS,
    DEVICE,
    N_PREDICT,
    REAL,
    TARGETS,
    check_lossless,
    load,
    loaded,
    model_sha256,
    plain,
    strategies_of,
)
from tests.real_model import need_model

ENTRIES = read()


def cases() -> list[tuple[str, str, str]]:
    return [
        (target, backend, strategy)
        for target in TARGETS
        for backend in BACKENDS
        for strategy in strategies_of(target)
        if backend == BACKENDS[0] or strategy not in NGRAMS
    ]


def test_the_manifest_is_of_these_models_and_this_matrix() -> None:
    assert set(ENTRIES) == {(t, b, p) for t in (*TARGETS, REAL) for b in (*BACKENDS, DEVICE) for p in PROMPTS}
    for (target, _, _), entry in ENTRIES.items():
        assert set(entry["strategies"]) == set(strategies_of(target))
        assert entry["tokens"] == N_PREDICT
    for target in TARGETS:
        assert {e["model_sha256"] for key, e in ENTRIES.items() if key[0] == target} == {model_sha256(target)}


def test_the_device_has_given_the_tokens_and_the_drafts_of_the_emulation() -> None:
    emulation = DEVICE.replace("device:", "npu:")
    for target in (*TARGETS, REAL):
        for prompt in PROMPTS:
            device, emulated = ENTRIES[target, DEVICE, prompt], ENTRIES[target, emulation, prompt]
            assert {**device, "pipeline": emulation} == emulated


def test_drafts_of_every_strategy_were_right_somewhere() -> None:
    """A strategy whose drafts are never right has tested no rollback to a place within a draft."""
    for target in (*TARGETS, REAL):
        for strategy in strategies_of(target):
            found = [e["strategies"][strategy] for key, e in ENTRIES.items() if key[0] == target]
            assert sum(cell["accepted"] for cell in found) > 0, (target, strategy)
            assert any(cell["accepted"] < cell["drafted"] for cell in found), (target, strategy)


@pytest.mark.parametrize("target", [target for target in TARGETS if "draft-mtp" in strategies_of(target)])
@pytest.mark.parametrize(("prompt", "bar"), [("prose", 0.5), ("copy", 0.8)])
def test_mtp_is_right_often_enough_to_save_more_than_half_of_the_passes(target: str, prompt: str, bar: float) -> None:
    for backend in BACKENDS:
        entry = ENTRIES[target, backend, prompt]
        mtp = entry["strategies"]["draft-mtp"]
        assert mtp["accepted"] >= bar * mtp["drafted"]
        assert mtp["passes"] <= 0.45 * entry["tokens"]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_greedy_gives_the_tokens_of_the_manifest(target: str, backend: str) -> None:
    for prompt in PROMPTS:
        run = plain(target, backend, prompt)
        assert run.tokens[:8] == ENTRIES[target, backend, prompt]["first"]
        assert (len(run.tokens), run.sha256) == (N_PREDICT, ENTRIES[target, backend, prompt]["sha256"])


@pytest.mark.parametrize(("target", "backend", "strategy"), cases())
def test_speculation_gives_the_tokens_of_greedy(target: str, backend: str, strategy: str) -> None:
    it = loaded(target, backend)
    for prompt in PROMPTS:
        entry = ENTRIES[target, backend, prompt]
        found = counts(*check_lossless(it, prompt, strategy, N_PREDICT, wanted=entry["sha256"]))
        assert found == entry["strategies"][strategy]


class Recording(EngineSequence):
    """Keeps the bits of the logits of each position, of the last pass over it, and lets ``of`` have the last one."""

    of: ClassVar[list[Recording]] = []

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.bits: dict[int, bytes] = {}
        self.of.append(self)

    def forward(self, tokens: Sequence[int], first: int) -> Rows:
        rows = super().forward(tokens, first)
        self.bits |= {first + i: hashlib.sha256(row).digest() for i, row in enumerate(rows.logits)}
        return rows


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("backend", BACKENDS[:2])
def test_every_row_that_decided_a_token_has_the_bits_of_greedys(target: str, backend: str) -> None:
    """A rollback leaves what never having drafted would have left, in the ring of a window too."""
    it, n_predict = replace(loaded(target, backend), sequence=Recording), 160
    for prompt in PROMPTS:
        wanted = it.greedy(prompt, n_predict).sha256
        greedy = Recording.of.pop().bits
        for strategy in strategies_of(target):
            check_lossless(it, prompt, strategy, n_predict, wanted=wanted)
            found = Recording.of.pop().bits
            assert set(found) >= set(greedy)
            assert all(found[position] == bits for position, bits in greedy.items()), strategy


@pytest.mark.model
@pytest.mark.parametrize("strategy", ["ngram-simple", "ngram-mod,ngram-cache"])
def test_speculation_on_a_real_model_gives_the_tokens_of_greedy(strategy: str) -> None:
    need_model(REAL)
    backend = BACKENDS[1]
    greedy = plain(REAL, backend, "copy", 96)
    assert greedy.tokens[:8] == ENTRIES[REAL, backend, "copy"]["first"]
    _, stack = check_lossless(loaded(REAL, backend), "copy", strategy, 96, wanted=greedy.sha256)
    assert sum(s.n_acc_tokens for s in stack.statistics) > 0


@pytest.mark.parametrize(
    ("target", "strategy"), [("tiny-llama", "ngram-mod"), *((t, "draft-mtp") for t in TARGETS if t != "tiny-llama")]
)
def test_speculation_on_the_mock_gives_the_tokens_of_the_emulation(
    target: str, strategy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RKNPU_KIT_LOCK", str(tmp_path / "lock"))
    wanted = plain(target, DEVICE.replace("device:", "npu:"), "copy", 64).sha256
    it = load(target, DEVICE)
    try:
        _, stack = check_lossless(it, "copy", strategy, 64, wanted=wanted)
    finally:
        it.model.close()
    assert sum(s.n_gen_tokens for s in stack.statistics) > 0
