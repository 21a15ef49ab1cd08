# SPDX-License-Identifier: Apache-2.0
"""Claims about integers and rounding: decided by going through all cases, or by exact sums."""

from __future__ import annotations

import numpy as np

from reference_engine.backends.integer_product import int8_product
from reference_engine.claims.claim import Verdict, decided
from reference_engine.npu_segments import k_segments

_MANTISSAS = 1 << 23
_BLOCK = 1 << 20


def largest_quotient() -> float:
    """The largest amax * (1 / (amax / 127)) in f32, over every amax from 1 up to 2.

    All binades of normal numbers are this one scaled by a power of two, which changes no rounding.
    """
    largest = np.float32(0)
    one = np.float32(1).view(np.int32)
    for start in range(0, _MANTISSAS, _BLOCK):
        amax = (np.arange(start, start + _BLOCK, dtype=np.int32) + one).view(np.float32)
        scale = amax / np.float32(127)
        largest = max(largest, np.max(amax * (np.float32(1) / scale)))
    return float(largest)


def one_ulp_rounds_127_to_128() -> Verdict:
    largest = largest_quotient()
    return decided(
        largest >= 127.5,
        f"over all {_MANTISSAS} mantissas amax times the reciprocal of its scale is at most {largest:.6f}, which "
        f"rounds to {round(largest)}; 128 needs a clip factor below 1, a stale scale, NaN or Inf",
    )


def k_split_is_an_identity_of_integers() -> Verdict:
    random = np.random.Generator(np.random.PCG64(1))
    wrong = 0
    checked = 0
    for k in (8192 + 32, 10240, 15360):
        a = random.integers(-127, 128, (3, k), dtype=np.int8)
        b = random.integers(-127, 128, (40, k), dtype=np.int8)
        whole = int8_product(a, b)
        parts = sum(int8_product(a[:, at:end], b[:, at:end]) for at, end in k_segments(k, 8192, 32))
        wrong += int(np.count_nonzero(whole != parts))
        checked += whole.size
    return decided(
        wrong == 0,
        f"{checked - wrong} of {checked} sums over K up to 15360 are the sums of their segments; it is so for shared "
        "scales only, because the back ends quantise the activation anew in each segment",
    )
