# SPDX-License-Identifier: Apache-2.0
"""ngram-cache with ``compat`` drafts what llama.cpp drafted, over three requests in a row, and reads what it saved."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from reference_engine.speculation.drafter import Round
from reference_engine.speculation.ngram_cache import Counts, NgramCache, merge
from reference_engine.speculation.ngram_cache_file import read_counts

GOLDEN = json.loads(Path(__file__).with_name("llama_cpp_ngram_cache.json").read_bytes())
CASES = GOLDEN["cases"]


def counts_of(packed: str | None, folder: Path) -> Counts:
    path = folder / "cache.bin"
    path.write_bytes(b"" if packed is None else zlib.decompress(base64.b64decode(packed)))
    return read_counts(path)


def test_the_golden_has_drafts_with_and_without_files_and_a_shorter_request() -> None:
    assert GOLDEN["magic"] == "rknpu-kit-ngram-cache-drafts"
    assert "b11434" in GOLDEN["how"]
    assert {case["static"] is None for case in CASES} == {True, False}
    for case in CASES:
        assert len(case["requests"][1]["text"]) < len(case["requests"][0]["text"])
        assert sum(len(draft) for request in case["requests"] for _, draft, _ in request["rounds"]) > 100


@pytest.mark.parametrize("case", CASES)
def test_drafts_and_the_file_saved_at_the_end_are_llama_cpps(case: dict[str, Any], tmp_path: Path) -> None:
    dynamic = counts_of(case["dynamic"], tmp_path)
    cache = NgramCache(counts_of(case["static"], tmp_path), dynamic, compat=True)
    for request in case["requests"]:
        text = request["text"]
        cache.begin(text[: request["prompt_tokens"]])
        for position, draft, whole in request["rounds"]:
            found = cache.draft(Round(text[:position], text[position], 10**9))
            assert found[: len(draft)] == draft
            assert len(found) == len(draft) or not whole
    saved: Counts = {}
    merge(saved, dynamic)
    merge(saved, cache.context)
    assert counts_of(case["saved"], tmp_path) == saved


def test_without_its_defects_the_cache_drafts_otherwise() -> None:
    requests = CASES[0]["requests"]
    right = NgramCache()
    differ = 0
    for request in requests:
        text = request["text"]
        right.begin(text[: request["prompt_tokens"]])
        for position, draft, whole in request["rounds"]:
            differ += whole and right.draft(Round(text[:position], text[position], 10**9)) != draft
    assert differ > 10
