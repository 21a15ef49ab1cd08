# SPDX-License-Identifier: Apache-2.0
"""Checks that every linear layer makes on what it is given."""

from __future__ import annotations

import numpy as np

from reference_engine.backends.interface import F32


def check_input(name: str, x: F32, k: int) -> None:
    """ValueError unless x is C-contiguous float32 [M, k]."""
    if x.ndim != 2 or x.shape[1] != k or x.dtype != np.float32 or not x.flags.c_contiguous:
        raise ValueError(f"{name} takes C-contiguous float32 [M, {k}], not {x.dtype} {list(x.shape)}")


def result_array(name: str, out: F32 | None, m: int, n: int) -> F32:
    """``out`` after a check of its shape, or a new array [m, n]."""
    if out is None:
        return np.empty((m, n), np.float32)
    if out.shape != (m, n) or out.dtype != np.float32 or not out.flags.c_contiguous:
        raise ValueError(f"{name} gives C-contiguous float32 [{m}, {n}]; out is {out.dtype} {list(out.shape)}")
    return out
