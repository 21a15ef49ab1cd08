# SPDX-License-Identifier: Apache-2.0
"""From the words of the command to a forecast: files opened, names looked up."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

from reference_engine.gguf_file import GgufError, open_gguf
from reports.contract import EXIT_COULD_NOT_RUN, EXIT_OK, EXIT_USAGE, JsonValue
from reports.forecast.document import Asked, CannotForecast, case_of, document_of
from reports.forecast.pipelines import forecast_pipelines
from reports.levers.model_levers import ranked
from reports.llama_bench import read_llama_bench
from reports.text import inert

Document = dict[str, JsonValue]


def tell(
    values: argparse.Namespace, report: Mapping[str, Any], made: Callable[..., Document], render: Callable[..., str]
) -> int:
    """Make a document and write it as page or JSON: exit code 0, 2 for what cannot be answered, 3 for a bad model."""
    try:
        document = made(report, values)
    except GgufError as error:
        print(f"rknpu-report: {inert(error, 400)}", file=sys.stderr)
        return EXIT_COULD_NOT_RUN
    except CannotForecast as error:
        print(f"rknpu-report: {inert(error, 400)}", file=sys.stderr)
        return EXIT_USAGE
    if values.json:
        print(json.dumps(document, indent=2, ensure_ascii=True, allow_nan=False))
    else:
        print(render(document), end="")
    return EXIT_OK


def forecast_of(report: Mapping[str, Any], values: argparse.Namespace) -> Document:
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
