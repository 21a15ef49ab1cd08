# SPDX-License-Identifier: Apache-2.0
"""The suite opens what it is told, says why it cannot, and its goldens are of the models that are there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conformance.bench import CannotOpen
from conformance.engine.faults import VARIABLE
from conformance.engine.suite import CHECKS, open_bench
from conformance.engine.targets import EMBEDDED, distinct_prompts, embedded_target
from conformance.goldens.engine import GOLDENS, N_TOKENS, PIPELINES
from conformance.goldens.manifest import file_sha256, read
from conformance.runner import Runner
from conformance.subjects import EngineSubject
from conformance.traps import trap_names
from reference_engine.tiny import PROMPTS
from reports.contract import Verdict
from tests.gguf import crafted_gguf as craft
from tests.gguf.random_models import Recipe


def request(**changes: Any) -> dict[str, Any]:
    return {"engine": "npu", "model": None, "library": None, "level": "quick", "seed": 1, "check": "x", **changes}


def test_every_check_says_what_it_holds_and_where_it_comes_from() -> None:
    for check in CHECKS.values():
        assert check.purpose.endswith("."), check.name
        assert "Source: " in (check.function.__doc__ or ""), check.name


def test_every_trap_is_a_check() -> None:
    assert {name for name in CHECKS if name.startswith("trap_")} == {
        f"trap_{name.replace('-', '_')}" for name in trap_names()
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"engine": "gpu"}, "there is no engine 'gpu'; there are npu and device"),
        ({"model": "/nowhere/model.gguf"}, "/nowhere/model.gguf"),
        ({"model": __file__}, "GGUF"),
        ({"env": {VARIABLE: "nothing"}}, "there are half-up"),
        ({"engine": "device", "library": "/nowhere/librknnrt.so"}, "there is no library /nowhere/librknnrt.so"),
    ],
)
def test_what_cannot_be_opened_is_one_sentence(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(CannotOpen, match=message):
        open_bench(request(**changes))


def test_the_goldens_are_of_the_models_that_are_there() -> None:
    entries = read(GOLDENS)
    assert {entry.key for entry in entries} == {(m, p, t) for m in EMBEDDED for p in PIPELINES for t in PROMPTS}
    for entry in entries:
        assert entry.model_sha256 == file_sha256(embedded_target(entry.model).path), entry.regenerate
        assert entry.n_tokens == N_TOKENS
        assert min(entry.margins_nats) >= 0


def test_prompts_for_the_clock_part_at_their_first_token() -> None:
    prompts = distinct_prompts(20, 5, 64, [1, 2])
    assert len({prompt[0] for prompt in prompts}) == 20
    assert {len(prompt) for prompt in prompts} == {5}
    assert prompts == distinct_prompts(20, 5, 64, [1, 2])


@pytest.mark.parametrize("check", ["matmul_oracle", "graph_rope", "graph_head", "batch_invariance", "goldens"])
def test_a_model_of_the_users_own_is_judged(tmp_path: Path, check: str) -> None:
    model = tmp_path / "own.gguf"
    model.write_bytes(Recipe("llama", kind=craft.GGML_Q8_0, layers=2).file())
    with Runner(EngineSubject("npu", model, None), level="quick", seed=1) as runner:
        outcome = runner.run(check, deadline_s=120)
    assert outcome.verdict is (Verdict.UNSUPPORTED if check == "goldens" else Verdict.PASSED), outcome.reason
