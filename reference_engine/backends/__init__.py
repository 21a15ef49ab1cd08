# SPDX-License-Identifier: Apache-2.0
"""Where a matmul is made: in float, in a bit-exact emulation of the NPU pipelines, or by librknnrt itself."""

from __future__ import annotations

from reference_engine.backends.choose import BackendError, make_backend
from reference_engine.backends.dequant import dequantize_rows
from reference_engine.backends.interface import (
    F32,
    Backend,
    Counter,
    Linear,
    LinearGroup,
    MatmulRecord,
    NonFinite,
    Observer,
    SegmentRecord,
)

__all__ = [
    "F32",
    "Backend",
    "BackendError",
    "Counter",
    "Linear",
    "LinearGroup",
    "MatmulRecord",
    "NonFinite",
    "Observer",
    "SegmentRecord",
    "dequantize_rows",
    "make_backend",
]
