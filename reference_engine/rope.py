# SPDX-License-Identifier: Apache-2.0
"""Tables of the rotary position embedding, by ggml's formula (ggml-cpu/ops.cpp, rope_yarn and ggml_rope_cache_init).

The angle of pair i at position p is p * base^(-2 i / n_rot), by i multiplications in f32 (not by a power each),
divided by the pair's factor where the model has factors, times ``freq_scale``. YaRN mixes the scaled and the
unscaled angle between two dimensions and scales the amplitude.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from reference_engine import vector_ops_math as vm
from reference_engine.kernels.library import KernelLibrary
from reference_engine.vector_ops_math import F32, f32


@dataclass(frozen=True)
class Yarn:
    """Parameters of YaRN; ``ext_factor`` 0 leaves plain (linear) scaling with the amplitude ``attn_factor``."""

    n_ctx_orig: int
    ext_factor: float = 1.0
    attn_factor: float = 1.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0


def rope_tables(
    positions: Sequence[int] | npt.NDArray[np.integer[Any]],
    n_rot: int,
    base: float,
    freq_scale: float = 1.0,
    factors: F32 | None = None,
    *,
    yarn: Yarn | None = None,
    kernels: KernelLibrary | None = None,
) -> tuple[F32, F32]:
    """Cosines and sines, each f32 [M, n_rot / 2], of every pair at each of M positions.

    ``factors``: f32 [n_rot / 2] dividing the angles (``rope_freqs.weight``), or None. With ``kernels`` C
    makes them, with the same bits. ValueError for an odd ``n_rot``, a base of 0 or less or factors of another length.
    """
    if n_rot <= 0 or n_rot % 2:
        raise ValueError(f"rope rotates pairs: n_rot is {n_rot}, which is not a positive even number")
    if not base > 0:
        raise ValueError(f"rope needs a positive frequency base, not {base}")
    half = n_rot // 2
    if factors is not None and factors.shape != (half,):
        raise ValueError(f"rope has {half} pairs but factors of shape {factors.shape}")
    step = vm.pow32(base, float(f32(-2.0) / f32(n_rot)))
    amplitude, mix = f32(1.0 if yarn is None else yarn.attn_factor), None
    if yarn is not None and yarn.ext_factor != 0:
        mix = _ramp(yarn, n_rot, base) * f32(yarn.ext_factor)
        logarithm = vm.log(np.array([f32(1) / f32(freq_scale)]))[0]
        amplitude = amplitude * (f32(1) + f32(0.1) * logarithm)
    at = np.ascontiguousarray(positions, np.int64)
    if kernels is None:
        angles = np.empty((len(at), half), np.float32)
        angles[:, 1:] = step
        angles[:, 0] = at
        return _tables(angles, f32(freq_scale), amplitude, factors, mix)
    cos, sin = np.empty((2, len(at), half), np.float32)
    null, floats = kernels.ffi.NULL, kernels.floats
    kernels.lib.ek_rope_tables(
        kernels.pointer(at),
        len(at),
        half,
        step,
        freq_scale,
        null if factors is None else floats(factors),
        null if mix is None else floats(mix),
        amplitude,
        floats(cos),
        floats(sin),
    )
    return cos, sin


def _tables(
    angles: F32, freq_scale: np.float32, amplitude: np.float32, factors: F32 | None, mix: F32 | None
) -> tuple[F32, F32]:
    """Tables of the angles that the products along each row give."""
    with np.errstate(all="ignore"):
        angles = np.multiply.accumulate(angles, axis=1)
        if factors is not None:
            angles = angles / factors
        scaled = freq_scale * angles
        if mix is not None:
            scaled = scaled * (f32(1) - mix) + angles * mix
        sine, cosine = vm.sin_cos(scaled)
        return cosine * amplitude, sine * amplitude


def _ramp(yarn: Yarn, n_rot: int, base: float) -> F32:
    """1 below the first corrected pair, 0 beyond the last one, linear between; f32 [n_rot / 2]."""
    turns = np.array([yarn.beta_fast, yarn.beta_slow], np.float32)
    ratio = f32(yarn.n_ctx_orig) / ((turns * f32(2)) * f32(np.pi))
    dimension = (f32(n_rot) * vm.log(ratio)) / (f32(2) * vm.log(np.array([base], np.float32)))
    low = max(f32(0), np.floor(dimension[0]))
    high = min(f32(n_rot - 1), np.ceil(dimension[1]))
    pairs = np.arange(n_rot // 2, dtype=np.float32)
    y = (pairs - low) / max(f32(0.001), high - low)
    result: F32 = f32(1) - np.minimum(f32(1), np.maximum(f32(0), y))
    return result
