# SPDX-License-Identifier: Apache-2.0
"""512 tokens by every strategy are those of greedy, and greedy's are those of the manifest.

The float and the per-channel back ends take every strategy here; the others take the stacks, which have all parts in
them. ``bench/speculation.py`` goes through the whole matrix.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reference_engine.tiny import PROMPTS
from tests.lossless.manifest import MAGIC, PATH
from tests.lossless.matrix import (
    BACKENDS,
    N_PREDICT,
    REAL,
    TARGETS,
    load,
    model_sha256,
    plain,
    speculate,
    speculative,
    strategies_of,
)
from tests.real_model import need_model

MANIFEST: dict[str, Any] = json.loads(PATH.read_bytes())
ENTRIES = {(e["model"], e["pipeline"], e["prompt"]): e for e in MANIFEST["entries"]}
ALL_STRATEGIES = BACKENDS[:2]


def cases() -> list[tuple[str, str, str]]:
    return [
        (target, backend, strategy)
        for target in TARGETS
        for backend in BACKENDS
        for strategy in strategies_of(target)
        if backend in ALL_STRATEGIES or "," in strategy
    ]


def test_the_manifest_is_of_these_models_and_this_matrix() -> None:
    assert MANIFEST["magic"] == MAGIC
    assert set(ENTRIES) == {(t, b, p) for t in TARGETS for b in BACKENDS for p in PROMPTS}
    for target in TARGETS:
        assert {e["model_sha256"] for key, e in ENTRIES.items() if key[0] == target} == {model_sha256(target)}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_greedy_gives_the_tokens_of_the_manifest(target: str, backend: str) -> None:
    for prompt in PROMPTS:
        run = plain(target, backend, prompt)
        assert run.tokens[:8] == ENTRIES[target, backend, prompt]["first"]
        assert (len(run.tokens), run.sha256) == (N_PREDICT, ENTRIES[target, backend, prompt]["sha256"])


@pytest.mark.model
@pytest.mark.parametrize("strategy", ["ngram-simple", "ngram-mod,ngram-cache"])
def test_speculation_on_a_real_model_gives_the_tokens_of_greedy(strategy: str) -> None:
    need_model(REAL)
    greedy = plain(REAL, ALL_STRATEGIES[1], "copy", 96)
    run, stack = speculative(REAL, ALL_STRATEGIES[1], "copy", strategy, 96)
    assert run.tokens == greedy.tokens
    assert sum(s.n_acc_tokens for s in stack.statistics) > 0


@pytest.mark.parametrize(("target", "backend", "strategy"), cases())
def test_speculation_gives_the_tokens_of_greedy(target: str, backend: str, strategy: str) -> None:
    for prompt in PROMPTS:
        run, stack = speculative(target, backend, prompt, strategy)
        assert run.sha256 == ENTRIES[target, backend, prompt]["sha256"]
        assert sum(s.n_gen_tokens for s in stack.statistics) > 0, "nothing was drafted, so nothing was tested"


@pytest.mark.parametrize(("target", "strategy"), [("tiny-llama", "ngram-mod"), ("tiny-gemma4", "draft-mtp")])
def test_speculation_on_the_mock_gives_the_tokens_of_the_emulation(
    target: str, strategy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RKNPU_KIT_LOCK", str(tmp_path / "lock"))
    wanted = plain(target, "npu:w8a8-per-channel", "copy", 64).tokens
    it = load(target, "device:w8a8-per-channel")
    try:
        run, stack = speculate(it, "copy", strategy, 64)
    finally:
        it.model.close()
    assert run.tokens == wanted
    assert sum(s.n_gen_tokens for s in stack.statistics) > 0
