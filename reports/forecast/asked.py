# SPDX-License-Identifier: Apache-2.0
"""From the words of the command to a forecast: files opened, names looked up."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from reference_engine.gguf_file import open_gguf
from reports.contract import JsonValue
from reports.forecast.document import Asked, CannotForecast, case_of, document_of
from reports.forecast.pipelines import forecast_pipelines
from reports.levers.model_levers import ranked
from reports.llama_bench import read_llama_bench

__all__ = ["CannotForecast", "forecast_of"]


def forecast_of(report: Mapping[str, Any], values: argparse.Namespace) -> dict[str, JsonValue]:
    """The document for the arguments of ``forecast``. CannotForecast, GgufError and NotAReport are fit for users."""
    try:
        pipelines = forecast_pipelines(values.pipeline)
    except ValueError as error:
        raise CannotForecast(str(error)) from error
    bench = tuple(row for path in values.llama_bench for row in read_llama_bench(path))
    draft_bytes = None
    if values.draft is not None:
        with open_gguf(values.draft, header_only=True) as draft:
            draft_bytes = draft.tensor_bytes
    with open_gguf(values.model, header_only=True) as model:
        asked = Asked(pipelines, values.soc, values.context, values.kv, draft_bytes, bench)
        case = case_of(report, model, asked)
        document = document_of(case)
        document["levers"] = [verdict.as_json() for verdict in ranked(case)]
        return document
