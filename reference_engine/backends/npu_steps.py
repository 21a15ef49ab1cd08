# SPDX-License-Identifier: Apache-2.0
"""The three phases of a matmul in numpy: prepare A, run, collect C."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reference_engine.backends.hadamard import transform_rows
from reference_engine.backends.half_product import half_product
from reference_engine.backends.integer_product import int8_product, to_int16
from reference_engine.backends.interface import F32, Counter, NonFinite
from reference_engine.backends.npu_weight import NpuWeight
from reference_engine.backends.pipeline import Pipeline
from reference_engine.backends.quantizer import quantize_activations
from reference_engine.backends.rounding import fused_multiply_add


class PreparedA(NamedTuple):
    """The activation of one product: ``q`` int8 (fp16: float16) [M, k], ``scale`` float32 [M]."""

    q: NDArray[Any]
    scale: F32


def prepare_a(weight: NpuWeight, x: F32, counter: Counter) -> list[PreparedA]:
    """x [M, K] -> one prepared activation for each of ``weight.activations``. NonFinite."""
    finite = np.isfinite(x).all(axis=1)
    if not finite.all():
        raise NonFinite(weight.name, "activation", int(np.argmin(finite)))
    if weight.signs is not None:
        x = transform_rows(x, weight.signs, weight.k_op, weight.divisor)
    prepared = []
    for segment in weight.activations:
        part = x[:, segment.k0 : segment.k1]
        if weight.pipeline.bits == 16:
            with np.errstate(over="ignore"):
                prepared.append(PreparedA(part.astype(np.float16), np.ones(x.shape[0], np.float32)))
            continue
        with np.errstate(over="ignore"):
            folded = part if segment.fold is None else part * segment.fold
        quantized, scale = quantize_activations(folded, weight.pipeline)
        prepared.append(PreparedA(quantized.q, scale))
        counter.values += (0, 0, quantized.q.size, quantized.rim, quantized.clipped)
    counter.values += (1, x.shape[0], 0, 0, 0)
    return prepared


def run(weight: NpuWeight, index: int, q: NDArray[Any]) -> NDArray[Any]:
    """The sums that the hardware's C holds for one segment: int32, int16 (int4) or float32 (fp16), [M, n1 - n0]."""
    if weight.pipeline.bits == 16:
        return half_product(q, weight.quantized(index))
    sums = int8_product(q, weight.quantized(index))
    return to_int16(sums, weight.pipeline.int16_overflow) if weight.pipeline.bits == 4 else sums


def collect(weight: NpuWeight, prepared: Sequence[PreparedA], sums: Sequence[NDArray[Any]], out: F32) -> None:
    """out [M, N] = over the K segments in order, (float)sum * ((scale A * scale B) / divisor), added in float32."""
    for segment, total in zip(weight.segments, sums, strict=True):
        columns = out[:, segment.n0 : segment.n1]
        if segment.k_index == 0:
            columns[:] = 0.0
        factor = dequantize_scale(prepared[segment.activation].scale, segment.scale, weight.divisor)
        columns[:] = add_scaled(total.astype(np.float32), factor, columns, weight.pipeline)


def dequantize_scale(scale_a: F32, scale_b: F32, divisor: int) -> F32:
    """(sA * sB) / divisor, float32 [M, N]."""
    factor: F32 = (scale_a[:, None] * scale_b[None, :]) / np.float32(divisor)
    return factor


def add_scaled(total: F32, factor: F32, before: F32, pipeline: Pipeline) -> F32:
    """before + total * factor, fused or rounded twice."""
    with np.errstate(over="ignore", invalid="ignore"):
        return fused_multiply_add(total, factor, before) if pipeline.fma else before + total * factor
