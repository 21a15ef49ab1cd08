# SPDX-License-Identifier: Apache-2.0
"""The pipelines that a forecast sets side by side, and the matmul type that each runs on."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from reference_engine.npu_plan import PlanPipeline
from reports.forecast.board import FP16, INT4, INT8

KINDS: Mapping[str, int] = {"int8": INT8, "fp16": FP16, "int4": INT4}


@dataclass(frozen=True)
class ForecastPipeline:
    """The fields of a pipeline that decide sizes and times (see reference_engine.backends.pipeline).

    ``fused``: a runtime that keeps the whole pass on the NPU. ``preset``: the engine's own, where it was named; one
    that routes by type needs all of it.
    """

    name: str
    activation: str = "int8"
    weight_scale: str = "channel"
    hadamard: str = "none"
    k_limit: int = 0
    cores: int = 8
    m_bucket: str = "pow2"
    route: str = "all"
    fused: bool = False
    preset: Any = field(default=None, compare=False)


STANDARD = (
    ForecastPipeline("w8a8"),
    ForecastPipeline("w4a4-hadamard", activation="int4", hadamard="block"),
    ForecastPipeline("w16a16", activation="fp16"),
    ForecastPipeline("rkllm-w8a8", m_bucket="none", fused=True),
)
"""``rkllm-w8a8`` is a runtime that keeps the whole pass on the NPU: its weights are read once, one run each."""

NOTES: Mapping[str, str] = {
    "w8a8": "matmul back end, int8 by int8",
    "w4a4-hadamard": "matmul back end, int4 by int4; published outputs lose the top token 3 times in 10 (KL above 0.6)",
    "w16a16": "matmul back end, fp16 by fp16",
    "rkllm-w8a8": "a runtime that keeps the whole pass on the NPU, at the rates that matmuls reach",
}


def forecast_pipelines(names: str | None) -> tuple[ForecastPipeline, ...]:
    """The standard ones, or those named: standard names, or presets of the engine such as ``w8a8-segment``, by ``;``.

    ValueError names what there is.
    """
    if names is None:
        return STANDARD
    known = {pipeline.name: pipeline for pipeline in STANDARD}
    return tuple(known[name] if name in known else _preset(name) for name in names.split(";"))


def plan_key(pipeline: ForecastPipeline, cores: int) -> ForecastPipeline:
    """The pipeline on so many cores, as a plan sees it; equal ones have one plan.

    One that keeps the pass on the NPU places weights as others do.
    """
    plain = replace(pipeline, m_bucket="pow2", fused=False) if pipeline.fused else pipeline
    return replace(plain, name=plain.name if plain.route == "by-type" else plain.activation, cores=cores)


def to_plan(key: ForecastPipeline) -> PlanPipeline:
    """What the plan is asked for."""
    if key.route == "by-type":
        routed: PlanPipeline = replace(key.preset, cores=key.cores)
        return routed
    return key


def _preset(text: str) -> ForecastPipeline:
    # The table of presets brings numpy along, and is read only where a name has to be looked up.
    found = importlib.import_module("reference_engine.backends.presets").parse_pipeline(text)
    return ForecastPipeline(
        name=found.name,
        activation=found.activation,
        weight_scale=found.weight_scale,
        hadamard=found.hadamard,
        k_limit=found.k_limit,
        cores=found.cores,
        m_bucket=found.m_bucket,
        route=found.route,
        preset=found,
    )
