# SPDX-License-Identifier: Apache-2.0
"""What the int8 kernels must give, by numpy int64; shares no code with them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

PAD, SENTINEL = 3, 0x5A5A5A5A
SHAPES = (
    (1, 1, 1), (1, 4, 16), (1, 67, 50), (2, 3, 5), (3, 64, 31), (5, 129, 33), (6, 32, 64), (7, 1, 17),
    (11, 255, 48), (12, 64, 32), (13, 66, 65), (25, 130, 16), (3, 9000, 20), (40, 5, 100), (2, 300001, 3),
    (800, 20, 37), (4, 0, 9),
)  # fmt: skip


def product(a: NDArray[np.int8], b: NDArray[np.int8]) -> NDArray[np.int32]:
    """a x b with sums modulo 2^32, as int32."""
    wide: NDArray[np.int64] = a.astype(np.int64) @ b.astype(np.int64)
    return (wide & 0xFFFFFFFF).astype(np.uint32).view(np.int32)


def _generator_bytes(count: int, seed: int) -> NDArray[np.int8]:
    """The test driver's linear congruential bytes; by doubling, x[i + n] = a^n x[i] + c_n."""
    states = np.array([(seed * 1664525 + 1013904223) % 2**32], np.uint64)
    step_a, step_c = 1664525, 1013904223
    while len(states) < count:
        states = np.concatenate([states, (states * step_a + step_c) % 2**32])
        step_a, step_c = step_a * step_a % 2**32, (step_a * step_c + step_c) % 2**32
    return (((states[:count] >> 24) ^ 0x80).astype(np.uint8)).view(np.int8)


def _checksum(words: NDArray[np.uint32]) -> int:
    h = 2166136261
    for word in words.ravel().tolist():
        h = (h ^ word) * 16777619 & 0xFFFFFFFF
    return h


def _driver_lines() -> Iterator[str]:
    for M, K, N in SHAPES:
        for how in "r8":
            if how == "r":
                a = _generator_bytes(M * K, M * 7919 + K).reshape(M, K)
                b = _generator_bytes(K * N, N * 104729 + K).reshape(K, N)
            else:
                a, b = np.full((M, K), -128, np.int8), np.full((K, N), -128, np.int8)
            c = np.full((M, N + PAD), SENTINEL, np.uint32)
            c[:, :N] = product(a, b).view(np.uint32)
            for threads in (1, 3):
                yield f"{M} {K} {N} {how} {threads} {_checksum(c):08x}\n"


def driver_vectors() -> str:
    """What `driver vectors` must print."""
    return "".join(_driver_lines())
