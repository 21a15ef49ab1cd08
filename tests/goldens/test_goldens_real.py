# SPDX-License-Identifier: Apache-2.0
"""Real models against llama.cpp with F32 weights and against transformers: logits, and greedy texts of 256 tokens."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from reference_engine.model import Model
from tests.goldens.golden_file import NOISE_FACTOR, nmse, read_golden
from tests.goldens.real_models import NEAR_TIE, Difference, differences, first_difference, real_model, sampled

pytestmark = pytest.mark.model

BAR = 1e-9
SMOLLM2 = read_golden("smollm2.json")
GEMMA3 = read_golden("gemma3.json")


@pytest.fixture(scope="module")
def smollm2() -> Iterator[Model]:
    with real_model("smollm2", SMOLLM2) as model:
        yield model


@pytest.fixture(scope="module")
def gemma3() -> Iterator[Model]:
    with real_model("gemma3", GEMMA3) as model:
        yield model


@pytest.fixture(scope="module")
def gemma3_half_table() -> Iterator[Model]:
    with real_model("gemma3", GEMMA3, gelu_half_table=True) as model:
        yield model


@pytest.mark.parametrize("peer", ["llama.cpp", "transformers"])
@pytest.mark.parametrize("text", range(len(SMOLLM2["logits"])))
def test_logits_of_smollm2_are_those_of_the_peer(smollm2: Model, text: int, peer: str) -> None:
    golden = SMOLLM2["logits"][text]
    assert nmse(sampled(smollm2, golden), golden | {"logits": golden[peer]}) <= BAR


@pytest.mark.parametrize("text", range(len(SMOLLM2["greedy"])))
def test_greedy_texts_of_smollm2_are_those_of_llama_cpp(smollm2: Model, text: int) -> None:
    golden = SMOLLM2["greedy"][text]
    assert len(golden["ids"]) == 256
    assert [str(difference) for difference in differences(smollm2, [golden]) if not difference.is_near_tie] == []


def test_another_token_in_a_greedy_text_is_seen(smollm2: Model) -> None:
    golden = SMOLLM2["greedy"][0]
    ids = [*golden["ids"][:40], golden["ids"][40] + 1, *golden["ids"][41:48]]
    difference = first_difference(smollm2, golden | {"ids": ids})
    assert difference is not None
    assert difference.at == 40
    assert not difference.is_near_tie


def test_a_near_tie_is_one_in_both_engines() -> None:
    small, large = NEAR_TIE / 2, NEAR_TIE * 2
    assert Difference(3, small, small).is_near_tie
    assert not Difference(3, small, large).is_near_tie
    assert not Difference(3, large, small).is_near_tie


@pytest.mark.parametrize("text", range(len(GEMMA3["logits"])))
def test_logits_of_gemma3_are_those_of_transformers(gemma3: Model, text: int) -> None:
    golden = GEMMA3["logits"][text]
    assert nmse(sampled(gemma3, golden), golden | {"logits": golden["transformers"]}) <= BAR


@pytest.mark.parametrize("text", range(len(GEMMA3["logits"])))
def test_logits_of_gemma3_are_those_of_llama_cpp_within_its_own_noise(gemma3_half_table: Model, text: int) -> None:
    golden = GEMMA3["logits"][text]
    bar = max(BAR, NOISE_FACTOR * golden["peer_noise"])
    assert bar < 2e-7
    assert nmse(sampled(gemma3_half_table, golden), golden | {"logits": golden["llama.cpp"]}) <= bar


def test_greedy_texts_of_gemma3_are_those_of_llama_cpp(gemma3_half_table: Model) -> None:
    assert all(len(golden["ids"]) == 256 for golden in GEMMA3["greedy"])
    assert [str(d) for d in differences(gemma3_half_table, GEMMA3["greedy"]) if not d.is_near_tie] == []


def test_the_goldens_sample_each_text_from_its_first_to_its_last_position() -> None:
    for golden in (*SMOLLM2["logits"], *GEMMA3["logits"]):
        assert golden["rows"][0] == 0
        assert golden["rows"][-1] == len(golden["tokens"]) - 1
        assert np.unique(golden["columns"]).size == len(golden["columns"]) >= 32
