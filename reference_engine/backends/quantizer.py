# SPDX-License-Identifier: Apache-2.0
"""From float32 to the integers of a pipeline, element by element as the forks' quantisers do it (numpy twin of the C).

Scales, reciprocals and products are float32; rounding is half away from zero (roundf; vcvta on aarch64). Beyond int8 a
narrowing store wraps (invisiofficial, unimatrix099) or a clamp holds the value (marfrit 447672d6); int4 always clamps
to +-7, without ``clamp`` after the cast to int8, which flips the sign of what exceeds 127 (invisiofficial).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reference_engine.backends.pipeline import Pipeline
from reference_engine.backends.rounding import round_half_away, to_int32_saturating

F32 = NDArray[np.float32]
ONE = np.float32(1.0)
LEAST_SCALE = np.float32(1e-7)  # of the rank-one scales (invisiofficial e8604563)


class Quantized(NamedTuple):
    """``q`` int8 of the shape that came in; ``rim`` elements at +-qmax, ``clipped`` ones that rounded beyond it."""

    q: NDArray[np.int8]
    rim: int
    clipped: int


def to_integers(scaled: F32, pipeline: Pipeline) -> Quantized:
    """Values already multiplied by the reciprocal scale, as the pipeline's integers."""
    most = pipeline.qmax
    whole = to_int32_saturating(round_half_away(scaled))
    clipped = int(np.count_nonzero((whole > most) | (whole < -most)))
    if not pipeline.clamp:
        whole = whole.astype(np.int8).astype(np.int32)
    if pipeline.clamp or pipeline.bits == 4:
        whole = np.clip(whole, -most, most)
    q = whole.astype(np.int8)
    return Quantized(q, int(np.count_nonzero((q == most) | (q == -most))), clipped)


def reciprocal(scale: F32) -> F32:
    """1 / scale, and 0 for a scale of 0. A scale below 2^-128 gives infinity, as in the forks."""
    with np.errstate(divide="ignore", over="ignore"):
        inverse: F32 = np.where(scale == 0, np.float32(0), ONE / scale)
    return inverse


def activation_scale(amax: F32, pipeline: Pipeline) -> F32:
    """Largest magnitudes to scales; 0 stays 0."""
    scale: F32 = (np.float32(pipeline.a_clip) * amax) / np.float32(pipeline.qmax)
    return scale


def weight_scale(amax: F32, pipeline: Pipeline) -> F32:
    """Largest (clipped) magnitudes to scales; 0 becomes 1."""
    scale: F32 = np.where(amax == 0, ONE, amax / np.float32(pipeline.qmax))
    return scale


def quantize_activations(x: F32, pipeline: Pipeline) -> tuple[Quantized, F32]:
    """One K segment of finite activations [M, k] (transformed and folded before) -> integers and scale [M]."""
    amax = np.abs(x).max(axis=1, initial=0.0)
    if pipeline.activation_scale == "tensor":
        amax = np.full_like(amax, amax.max(initial=0.0))
    scale = activation_scale(amax, pipeline)
    with np.errstate(over="ignore", invalid="ignore"):
        return to_integers(x * reciprocal(scale)[:, None], pipeline), scale


def magnitudes(w: F32, pipeline: Pipeline) -> F32:
    """|w| times ``b_clip``: what weight scales are made of."""
    magnitude: F32 = np.abs(w) * np.float32(pipeline.b_clip)
    return magnitude


def row_factor(amax: F32, pipeline: Pipeline) -> F32:
    """Rank one: u of each output channel, from its largest magnitude in the segment."""
    u: F32 = np.maximum(amax / np.float32(pipeline.qmax), LEAST_SCALE)
    return u


def column_factor(magnitude: F32, u: F32, pipeline: Pipeline) -> F32:
    """Rank one: v of each k over these rows, the largest of max(|w| / qmax, 1e-7) * (1 / u)."""
    share = np.maximum(magnitude / np.float32(pipeline.qmax), LEAST_SCALE) * (ONE / u)[:, None]
    v: F32 = share.max(axis=0)
    return v


def rank_one_integers(w: F32, u: F32, v: F32, pipeline: Pipeline) -> NDArray[np.int8]:
    """Element scale max(v * u, 1e-7), then as everywhere."""
    scale = np.maximum(v[None, :] * u[:, None], LEAST_SCALE)
    return to_integers(w * (ONE / scale), pipeline).q
