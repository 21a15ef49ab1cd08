# SPDX-License-Identifier: Apache-2.0
"""The floor below which two correct implementations cannot be told apart: the same model with its norms shaken by 1e-7.

Published practice measures this by comparing a batch with token by token; this engine gives the same bits there, so the
shake stands for the other order of sums that another engine would have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from reference_engine.vector_ops import VectorOps

F32 = NDArray[np.float32]

AMPLITUDE = 1e-7


class NoisyOps:
    """Vector operations whose norms are off by up to ``amplitude`` of each element, by a seeded stream."""

    def __init__(self, inner: VectorOps, seed: int = 1, amplitude: float = AMPLITUDE) -> None:
        self._inner, self._amplitude = inner, amplitude
        self._draws = np.random.Generator(np.random.PCG64(seed))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def rms_norm(self, x: F32, weight: F32 | None, eps: float, out: F32 | None = None) -> F32:
        return self._shaken(self._inner.rms_norm(x, weight, eps, out))

    def add_rms_norm(self, x: F32, y: F32, weight: F32 | None, eps: float, out: F32 | None = None) -> F32:
        return self._shaken(self._inner.add_rms_norm(x, y, weight, eps, out))

    def _shaken(self, y: F32) -> F32:
        # In float64, because 1 + 1e-7 is one step of float32 or none.
        y[...] = y * (1.0 + self._amplitude * self._draws.uniform(-1.0, 1.0, y.shape))
        return y


def with_noise(ops: VectorOps, seed: int = 1) -> VectorOps:
    """``ops`` with shaken norms."""
    return cast("VectorOps", NoisyOps(ops, seed))
