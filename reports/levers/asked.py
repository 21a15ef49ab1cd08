# SPDX-License-Identifier: Apache-2.0
"""From the words of the command to the list of levers: files opened, the model's own levers worked out."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from reference_engine.gguf_file import open_gguf
from reference_engine.gguf_hparams import check_hparams
from reports.contract import JsonValue
from reports.forecast.board import Board
from reports.forecast.document import Asked, Case, soc_of
from reports.levers.document import levers
from reports.levers.model_levers import levers_of_model
from reports.levers.verdict import unmeasured
from reports.llama_bench import read_llama_bench


def levers_of(report: Mapping[str, Any], values: argparse.Namespace) -> dict[str, JsonValue]:
    """The document for the arguments of ``levers``. CannotForecast, GgufError and NotAReport are fit for users."""
    rows = tuple(row for path in values.llama_bench for row in read_llama_bench(path))
    if values.model is None:
        return levers(report, rows, of_model=(unmeasured("activation reuse", "a model's header: --model GGUF"),))
    with open_gguf(values.model, header_only=True) as model:
        board = Board(report)
        case = Case(board, model, check_hparams(model), Asked(bench=rows), soc_of(board, values.soc))
        share, of_model = levers_of_model(case)
    return levers(report, rows, cpu_share=share, of_model=of_model)
