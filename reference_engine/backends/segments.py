# SPDX-License-Identifier: Apache-2.0
"""How a matmul is cut for the NPU: the plan of a model needs it too, without numpy, so it lies outside this package."""

from reference_engine.npu_segments import k_segments, largest_pow2_divisor, m_bucket, n_segments, next_pow2, round_up

__all__ = ["k_segments", "largest_pow2_divisor", "m_bucket", "n_segments", "next_pow2", "round_up"]
