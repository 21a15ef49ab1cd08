# SPDX-License-Identifier: Apache-2.0
"""When a pipeline's figures lie outside the range of the prototype."""

from __future__ import annotations

from typing import Any

import pytest

from bench.engine_quality import EXPECTED, LENGTH, TEXTS, Expected
from reference_engine.backends.choose import make_backend

PIPELINE = Expected("w8a8-per-channel", (0.04, 0.06), (0.88, 0.89))


def entry(kl: float, top: float, width: float = 0.1) -> dict[str, Any]:
    def figure(value: float) -> dict[str, float]:
        return {"value": value, "low": value * (1 - width), "high": value * (1 + width)}

    return {"kl_mean": figure(kl), "same_top": figure(top)}


def test_a_figure_in_the_range_is_not_spoken_of() -> None:
    assert PIPELINE.places(entry(0.05, 0.885)) == []
    assert PIPELINE.places(entry(0.095, 0.885)) == [], "the interval touches the widened range"


@pytest.mark.parametrize(("kl", "top"), [(0.2, 0.885), (0.005, 0.885)])
def test_a_divergence_far_from_the_range_is_named(kl: float, top: float) -> None:
    assert [text.split()[0] for text in PIPELINE.places(entry(kl, top))] == ["KL"]


def test_rows_that_depend_on_their_batch_have_more_room() -> None:
    apart = entry(0.035, 0.885, width=0.01)
    assert Expected("w8a8-per-tensor-both", (0.068, 0.14), (0.88, 0.89)).places(apart) == []
    assert Expected("w8a8-per-tensor", (0.068, 0.14), (0.88, 0.89)).places(apart) != []


def test_a_share_far_from_the_range_is_named() -> None:
    assert PIPELINE.places(entry(0.05, 0.5)) == ["same top 0.5 not in 0.84 to 0.93"]


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda expected: expected.preset)
def test_every_pipeline_of_the_table_is_a_back_end(expected: Expected) -> None:
    backend = make_backend(f"npu:{expected.preset}", threads=1)
    assert backend.name.startswith("npu:")
    backend.close()


def test_there_are_four_texts_long_enough_for_any_vocabulary() -> None:
    texts = [path.read_text(encoding="utf-8") for path in TEXTS.glob("*.txt")]
    assert len(texts) == 4
    assert all(len(text) > 5 * LENGTH for text in texts)
