# SPDX-License-Identifier: Apache-2.0
"""The pipelines that users run, by name, each with where it is found.

INV is github invisiofficial/rk-llama.cpp (the upstream of the forks; commit e8604563 unless said), MF marfrit's fork
(quantiser at 447672d6, with the clamp), UM unimatrix099's (docs/backend), PT pty819's. All of them round half away from
zero and multiply by the reciprocal scale.

Not reproduced: the entropy search for the int4 weight scale of older INV and MF ("calculate_entropy_amax") is not
documented well enough; the largest magnitude times ``b_clip`` stands in its place. A board's own FMA setting depends on
its compiler: GCC on aarch64 contracts by default, hence ``fma`` on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from reference_engine.backends.pipeline import Pipeline, PipelineError, with_settings


def _inv(name: str, **settings: Any) -> Pipeline:
    return Pipeline(name, **{"clamp": False, "m_bucket": "pow2", **settings})


def _mf(name: str, **settings: Any) -> Pipeline:
    return Pipeline(name, **{"weight_scale": "segment", "m_bucket": "pow2-128", **settings})


_ROWS: tuple[Pipeline, ...] = (
    # INV W8A8_STANDARD: one scale per output channel and K segment; also UM RKNPU_PER_CHANNEL, Mojo24x7 RKNPU_PERCHAN
    _inv("w8a8-per-channel"),
    # MF, and INV until mid-2026: one scale per K segment and core slice, so the active cores change the numbers
    _mf("w8a8-segment"),
    # INV W8A8_LOWRANK, its default for Q8_0: element scale u_i * v_j, v folded into the activations
    _inv("w8a8-rank-one", weight_scale="rank-one"),
    # UM: block-diagonal transform of the largest power of two that divides K
    Pipeline("w8a8-hadamard", hadamard="block", clamp=False),
    # INV W8A8_HADAMARD: padded to the next power of two
    _inv("w8a8-hadamard-padded", hadamard="padded"),
    # INV W8A8_HADAMARD_LOWRANK
    _inv("w8a8-hadamard-rank-one", hadamard="padded", weight_scale="rank-one"),
    # MF W8A8_HADAMARD
    _mf("w8a8-hadamard-segment", hadamard="padded"),
    # INV W4A4_STANDARD
    _inv("w4a4", activation="int4"),
    # UM: block transform, per channel, clips 0.9 (activations) and 0.93 (weights)
    Pipeline("w4a4-hadamard", activation="int4", hadamard="block", a_clip=0.9, b_clip=0.93),
    # INV W4A4_HADAMARD
    _inv("w4a4-hadamard-padded", activation="int4", hadamard="padded"),
    # MF W4A4_HADAMARD, its default for Q4_0 and Q4_K (without the entropy search)
    _mf("w4a4-hadamard-segment", activation="int4", hadamard="padded"),
    # INV W4A4_HADAMARD_LOWRANK, its default for Q4_0
    _inv("w4a4-hadamard-rank-one", activation="int4", hadamard="padded", weight_scale="rank-one"),
    # INV W16A16_STANDARD and W16A16_HADAMARD
    _inv("w16a16", activation="fp16"),
    _inv("w16a16-hadamard", activation="fp16", hadamard="padded"),
    # For quality figures only; the second one's rows depend on their batch
    Pipeline("w8a8-per-tensor", weight_scale="tensor"),
    Pipeline("w8a8-per-tensor-both", weight_scale="tensor", activation_scale="tensor"),
    # The forks' own choice by tensor type, aligned weights only; the rest stays in float
    _mf(
        "rk-llama-marfrit",
        route="by-type",
        routes=(
            ("F16", ("w16a16",)),
            ("Q8_0", ("w8a8-segment",)),
            ("Q6_K", ("w8a8-segment", "w4a4-hadamard-segment")),
            ("Q4_0", ("w4a4-hadamard-segment",)),
            ("Q4_K", ("w4a4-hadamard-segment",)),
        ),
    ),
    _inv(
        "rk-llama-invisiofficial",
        weight_scale="rank-one",
        route="by-type",
        routes=(
            ("F16", ("w16a16",)),
            ("Q8_0", ("w8a8-rank-one",)),
            ("Q6_K", ("w8a8-rank-one", "w4a4-hadamard-rank-one")),
            ("Q4_0", ("w4a4-hadamard-rank-one",)),
        ),
    ),
)
PRESETS: Mapping[str, Pipeline] = {pipeline.name: pipeline for pipeline in _ROWS}

_CARRIED = ("k_limit", "cores", "fma", "m_bucket", "int16_overflow", "signs", "clamp")
"""What a by-type pipeline hands down to the presets it chooses."""


def parse_pipeline(text: str) -> Pipeline:
    """``PRESET[,key=value...]``, for example ``w8a8-segment,cores=1,fma=off``. PipelineError with what there is."""
    name, *rest = (part.strip() for part in text.split(","))
    if name not in PRESETS:
        raise PipelineError(f"no preset {name!r}; there are {', '.join(PRESETS)}")
    settings: dict[str, str] = {}
    for part in rest:
        key, equals, value = part.partition("=")
        if not equals or not value:
            raise PipelineError(f"{part!r} is not key=value")
        settings[key.strip()] = value.strip()
    return with_settings(PRESETS[name], settings)


def has_route(pipeline: Pipeline, type_name: str) -> bool:
    """Whether weights of that type are counted at all: in the forks only those with a pipeline of their type are."""
    return pipeline.route == "all" or type_name in dict(pipeline.routes)


def route_tensor(pipeline: Pipeline, type_name: str, dims: tuple[int, ...], sequence: int) -> Pipeline | None:
    """The pipeline of one weight of dims (K, N), or None: it stays in float.

    ``sequence`` counts the weights that were asked about before it: in the forks a type with several pipelines hands
    them out in the order in which tensors are first seen.
    """
    if pipeline.route == "all":
        return pipeline
    found = dict(pipeline.routes).get(type_name)
    if not found:
        return None
    chosen = PRESETS[found[sequence % len(found)]]
    if len(dims) != 2 or dims[0] % chosen.k_align or dims[1] % chosen.n_align:
        return None
    return replace(chosen, **{name: getattr(pipeline, name) for name in _CARRIED})
