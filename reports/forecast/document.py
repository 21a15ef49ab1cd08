# SPDX-License-Identifier: Apache-2.0
"""The forecast of one model on one board, as one JSON document; ``page`` writes it for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from reference_engine.gguf_file import GgufFile
from reference_engine.gguf_hparams import HparamCheck, check_hparams
from reference_engine.npu_plan import NpuPlan, plan
from reports.contract import JsonValue
from reports.forecast.board import Board
from reports.forecast.calibrate import calibrated, same_model
from reports.forecast.crossover import crossover
from reports.forecast.memory import BATCH_ROWS, kv_table, needs
from reports.forecast.npu_rate import Rates
from reports.forecast.passes import ATTENTION, Host, Model
from reports.forecast.pipelines import KINDS, NOTES, STANDARD, ForecastPipeline, plan_key, to_plan
from reports.forecast.quantity import exact
from reports.forecast.speculate import speculation
from reports.forecast.work import Work, work_of
from reports.llama_bench import BenchRow
from reports.text import inert

FORMAT = "rknpu-kit forecast"
FORMAT_VERSION = 1
PREFILL_TOKENS = 512
DEPTHS = (0, 4096, 16384)
CONTEXTS = (2048, 8192, 32768)


@dataclass(frozen=True)
class Asked:
    """What the user chose. ``soc`` None: the one of the report. ``draft_bytes``: size of a draft model's weights.

    ``bench``: llama-bench rows of the same board. ``host``: a CPU side that is known already, in place of them.
    """

    pipelines: tuple[ForecastPipeline, ...] = STANDARD
    soc: str | None = None
    context: int = 8192
    kv: str = "f16"
    draft_bytes: int | None = None
    bench: tuple[BenchRow, ...] = ()
    host: Host | None = None


class CannotForecast(ValueError):
    """The request cannot be answered; the sentence says why and what to do."""


def soc_of(board: Board, asked: str | None) -> str:
    """The SoC whose alignment and limits hold. CannotForecast where neither the report nor the user names one."""
    if asked:
        return asked
    name = board.fact("soc.name")
    if isinstance(name, str) and name:
        return name.split(" or ")[0]
    simulation = board.report.get("simulation")
    persona = simulation.get("persona") if isinstance(simulation, Mapping) else None
    if isinstance(persona, str) and persona:
        return persona
    raise CannotForecast("the report does not know its SoC: name it with --soc (for example --soc rk3588)")


@dataclass
class Case:
    """One model on one board, as asked. ``plans``, ``works`` and ``host`` are worked out once."""

    board: Board
    model: GgufFile
    check: HparamCheck
    asked: Asked
    soc: str
    plans: dict[ForecastPipeline, NpuPlan] = field(default_factory=dict)
    works: dict[tuple[ForecastPipeline, bool], Work] = field(default_factory=dict)
    host: Host | None = None

    @property
    def sets(self) -> list[str | None]:
        """Sets of CPUs, fastest reader first; None alone where no set was measured."""
        return [*self.board.cpu_sets()] or [None]

    def planned(self, pipeline: ForecastPipeline, cores: int) -> tuple[NpuPlan, Work]:
        wanted = plan_key(pipeline, cores)
        if wanted not in self.plans:
            try:
                self.plans[wanted] = plan(self.model, self.check.hparams, to_plan(wanted), self.soc)
            except ValueError as error:
                raise CannotForecast(f"{inert(error, 200)}; name the SoC with --soc") from error
        planned = self.plans[wanted]
        key = (wanted, pipeline.fused)
        if key not in self.works:
            self.works[key] = work_of(self.model, self.check.hparams, planned, fused=pipeline.fused)
        return planned, self.works[key]

    def most(self, pipeline: ForecastPipeline) -> int:
        """The most cores that the report and the pipeline have."""
        return min(self.board.cores, pipeline.cores)

    def timed(self, pipeline: ForecastPipeline, cores: int, cpus: str | None) -> Model:
        """The model under a pipeline on so many cores, its CPU side on ``cpus``."""
        planned, work = self.planned(pipeline, cores)
        rates = Rates(self.board, KINDS[pipeline.activation])
        model = Model(self.board, rates, work, Host(cpus), pipeline.m_bucket, planned.cores)
        if pipeline.fused:
            return replace(model, host=Host(None, fused=True))
        if self.asked.host is not None:
            self.host = self.asked.host
        elif not self.asked.bench:
            return model
        if self.host is None:
            # Solved for once, on the first pipeline with all cores and the best CPUs: such rows were published so.
            self.host = calibrated(self.asked.bench, self.elements, self.asked.kv, model)
        rates = Rates(self.board, rates.main, self.host.batch_factor)
        return replace(model, rates=rates, host=replace(self.host, cpus=cpus))

    @property
    def elements(self) -> int:
        return sum(tensor.n_elements for tensor in self.model.tensors.values())


def forecast(report: Mapping[str, Any], model: GgufFile, asked: Asked) -> dict[str, JsonValue]:
    """The document. CannotForecast for a SoC that has no matmul table; GgufError for a file that cannot be read."""
    return document_of(case_of(report, model, asked))


def case_of(report: Mapping[str, Any], model: GgufFile, asked: Asked) -> Case:
    """The model on the board, ready to be asked. CannotForecast where the SoC is not known."""
    board = Board(report)
    return Case(board, model, check_hparams(model), asked, soc_of(board, asked.soc))


def document_of(case: Case) -> dict[str, JsonValue]:
    """The document of one case."""
    board, model, asked = case.board, case.model, case.asked
    rows = [row for pipeline in asked.pipelines for row in _pipeline_rows(case, pipeline)]
    first = asked.pipelines[0]
    base = case.timed(first, case.most(first), case.sets[0])
    per_weight = _bytes_per_weight(model, case.planned(first, case.most(first))[0])
    crossed = crossover(base, per_weight, check_side(base.work))
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "simulated": board.simulated,
        "simulation": board.report.get("simulation") if board.simulated else None,
        "model": _about(model, case.check, base.work),
        "soc": inert(case.soc, 40),
        "refused": refusal(base.work),
        "fits": _fits(case),
        "kv_bytes": kv_table(base.work, CONTEXTS),
        "rates": rows,
        "depths": _depths(base, asked.kv),
        "crossover": crossed.as_json(),
        "speculation": speculation(base, asked.draft_bytes),
        "calibrated_on": [row.label for row in same_model(asked.bench, case.elements)],
        "notes": _notes(case, base.work),
        "doubts": list(board.conditions()),
    }


def refusal(work: Work) -> str | None:
    """Why there are no rates; None where there are."""
    if work.experts:
        return (
            "a mixture of experts: which share of the weights a token reads is not in the header, and expert matmuls "
            "are not offloaded by the back ends this forecast knows"
        )
    if not work.weights:
        return "no matmul weight was recognised in the file"
    return None


def check_side(work: Work) -> int:
    """K of the largest number of weights: the square that crossovers are told for."""
    sizes: dict[int, int] = {}
    for matmul, count in work.npu:
        sizes[matmul.K] = sizes.get(matmul.K, 0) + matmul.N * count
    return max(sizes, key=lambda k: sizes[k] * k, default=4096)


def _pipeline_rows(case: Case, pipeline: ForecastPipeline) -> list[JsonValue]:
    """Rates with each number of cores, and with each set of CPUs at the most cores."""
    found: list[JsonValue] = []
    most = case.most(pipeline)
    for cores in range(most, 0, -1):
        planned, work = case.planned(pipeline, cores)
        if planned.cores < cores or refusal(work) is not None:
            continue
        sets = case.sets if cores == most and not pipeline.fused else case.sets[:1]
        found += [_rate_row(case.timed(pipeline, cores, cpus), pipeline, case.asked.kv) for cpus in sets]
    return found


def _rate_row(model: Model, pipeline: ForecastPipeline, kv: str) -> JsonValue:
    decode = model.run_pass(1, kv=kv)
    prefill = model.run_pass(PREFILL_TOKENS, head_rows=1, kv=kv)
    return {
        "pipeline": pipeline.name,
        "note": NOTES.get(pipeline.name, ""),
        "cores": model.cores,
        "cpus": model.host.cpus,
        "decode_tps": decode.seconds.inverse().as_json(),
        "prefill_tps": (exact(float(PREFILL_TOKENS)) / prefill.seconds).as_json(),
        "decode_parts_s": {name: part.value for name, part in decode.parts.items()},
        "prefill_parts_s": {name: part.value for name, part in prefill.parts.items()},
    }


def _depths(model: Model, kv: str) -> list[JsonValue]:
    """Decode behind a context. Without a measured attention rate only the bound of reading the cache can be told."""
    found: list[JsonValue] = []
    if refusal(model.work) is not None:
        return found
    for depth in DEPTHS:
        seconds = model.run_pass(1, depth=depth, kv=kv).seconds
        if depth and ATTENTION in seconds.omitted:
            seconds = seconds + model.cache_read(depth, kv)
        found.append({"depth": depth, "kv": kv, "decode_tps": seconds.inverse().as_json()})
    return found


def _bytes_per_weight(model: GgufFile, planned: NpuPlan) -> float:
    """Of the weights that the plan routes, in the file's types: what a CPU build reads."""
    weights = sum(tensor.K * tensor.N for tensor in planned.tensors)
    size = sum(model.tensors[tensor.name].n_bytes for tensor in planned.tensors)
    return size / weights if weights else 1.0


def _fits(case: Case) -> dict[str, JsonValue]:
    asked = case.asked
    found: dict[str, JsonValue] = {}
    for pipeline in asked.pipelines:
        planned, work = case.planned(pipeline, case.most(pipeline))
        rows = needs(case.board, case.model, planned, work, context=asked.context, kv=asked.kv)
        answers = {row.fits for row in rows}
        found[pipeline.name] = {
            "fits": False if False in answers else None if None in answers else True,
            "context": asked.context,
            "kv": asked.kv,
            "weight_bytes": planned.weight_bytes,
            "domains": list(planned.domains),
            "a_bytes": planned.a_bytes(BATCH_ROWS),
            "c_bytes": planned.c_bytes(BATCH_ROWS),
            "routed": len(planned.routed),
            "left": len(planned.tensors) - len(planned.routed),
            "graph_splits": planned.graph_splits,
            "needs": [row.as_json() for row in rows],
        }
    return found


def _about(model: GgufFile, check: HparamCheck, work: Work) -> dict[str, JsonValue]:
    name = model.metadata.get("general.name")
    return {
        "name": inert(name, 80) if isinstance(name, str) else None,
        "architecture": inert(model.metadata.get("general.architecture"), 40),
        "layers": check.hparams.n_layer if check.hparams else None,
        "weights": work.weights,
        "tensor_bytes": model.tensor_bytes,
    }


def _notes(case: Case, work: Work) -> list[JsonValue]:
    notes: list[JsonValue] = []
    check = case.check
    if check.hparams is None and check.problems:
        notes.append(f"Keys and values are not known: {inert(check.problems[0].message, 200)}.")
    if len(case.board.cpu_sets()) < 2:
        notes.append("Pinning: the report has one set of CPUs only, so nothing is told about another.")
    if work.cpu:
        notes.append("Weights that stay on the CPU are read in the file's type at the measured bandwidth.")
    return notes
