# SPDX-License-Identifier: Apache-2.0
"""Reports with absurd values in sound places: no traceback, no NaN, no figure out of nothing."""

from __future__ import annotations

import copy
import json
import math
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_engine.gguf_file import GgufFile
from reports.forecast.document import Asked, CannotForecast, case_of, document_of
from reports.forecast.page import render
from reports.forecast.pipelines import forecast_pipelines
from reports.levers.document import levers
from reports.levers.document import render as render_levers
from reports.levers.model_levers import ranked
from tests.forecast import made_reports as made

NUMBERS = (0, -1, 1, 1e308, -1e308, 5e-324, 1e-300, 1 << 62, 1e-12, 1e15, 3.5, None)
W8A8 = forecast_pipelines("w8a8")


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield value, key
        yield from places(item)


def mutated(seed: int) -> dict[str, Any]:
    rng = random.Random(seed)
    report = copy.deepcopy(made.report())
    found = [(holder, key) for holder, key in places([report["facts"], report["measurements"]])]
    for holder, key in rng.sample(found, rng.randint(1, 15)):
        try:
            old = holder[key]
        except (KeyError, IndexError):
            continue
        if isinstance(old, (int, float)):
            holder[key] = rng.choice(NUMBERS)
        elif isinstance(old, str):
            holder[key] = rng.choice(("", "x", "norm", "passed"))
        elif isinstance(old, list):
            holder[key] = rng.choice(([], [1e308], [0], [-1, 5e-324]))
        elif key in ("parameters", "evidence"):
            names = old or ("bytes_per_run", "slower_times", "steps_above_M")
            holder[key] = {name: rng.choice((None, 0, 1e308, "x", True, [], {})) for name in names}
    return report


def figures(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        for item in value.values():
            yield from figures(item)
    elif isinstance(value, list):
        for item in value:
            yield from figures(item)
    elif isinstance(value, float):
        yield value


@pytest.fixture(scope="module")
def held(small_header: Any) -> Iterator[GgufFile]:
    from reference_engine.gguf_file import open_gguf  # noqa: PLC0415

    with open_gguf(small_header, header_only=True) as model:
        yield model


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_absurd_reports_give_pages_and_documents_all_the_same(held: GgufFile, seed: int) -> None:
    report = mutated(seed)
    try:
        case = case_of(report, held, Asked(W8A8))
        document: Any = document_of(case)
    except CannotForecast:
        return
    document["levers"] = [verdict.as_json() for verdict in ranked(case)]
    assert all(map(math.isfinite, figures(document)))
    json.dumps(document, allow_nan=False)
    assert render(document).isascii()
    listed = levers(report, [])
    json.dumps(listed, allow_nan=False)
    assert render_levers(listed).isascii()
    for row in document["rates"]:
        for rate in (row["decode_tps"], row["prefill_tps"]):
            assert rate["value"] is None or rate["low"] <= rate["value"] <= rate["high"]
            assert (rate["value"] is None) == bool(rate["missing"])
