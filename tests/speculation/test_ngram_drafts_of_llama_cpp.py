# SPDX-License-Identifier: Apache-2.0
"""With ``compat`` the n-gram strategies draft what llama.cpp drafted, token for token, over two requests in a row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reference_engine.speculation.drafter import Drafter, Round
from reference_engine.speculation.ngram_map_compat import NgramMapCompat
from reference_engine.speculation.ngram_mod import NgramMod
from reference_engine.speculation.ngram_simple import NgramSimple

GOLDEN = json.loads(Path(__file__).with_name("llama_cpp_ngram_drafts.json").read_bytes())
CASES = GOLDEN["cases"]


def drafter_of(case: dict[str, Any]) -> Drafter:
    n, m, least = case["size_n"], case["size_m"], case["min"]
    if case["kind"] == "simple":
        return NgramSimple(n, m, compat=True)
    if case["kind"] == "mod":
        return NgramMod(n_match=n, n_min=least, n_max=m, compat=True)
    return NgramMapCompat(n, m, least, only_keys=case["kind"] == "map-k")


def test_the_golden_says_how_it_was_made_and_has_drafts_of_every_kind() -> None:
    assert GOLDEN["magic"] == "rknpu-kit-ngram-drafts"
    assert "b11434" in GOLDEN["how"]
    drafted = {case["kind"] for case in CASES for request in case["requests"] for r in request["rounds"] if r[1]}
    assert drafted == {"simple", "map-k", "map-k4v", "mod"}


@pytest.mark.parametrize("case", CASES, ids=[f"{case['kind']}-{i}" for i, case in enumerate(CASES)])
def test_drafts_are_llama_cpps(case: dict[str, Any]) -> None:
    drafter = drafter_of(case)
    for request in case["requests"]:
        text = request["text"]
        drafter.begin(text[: request["prompt_tokens"]])
        for position, draft, n_accepted in request["rounds"]:
            assert drafter.draft(Round(text[:position], text[position], 10**9)) == draft
            if draft:
                drafter.accept(n_accepted, position + n_accepted + 1, own=True)
