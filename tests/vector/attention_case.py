# SPDX-License-Identifier: Apache-2.0
"""A made-up attention problem, how the engine solves it, and what float64 makes of it by the textbook formula."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from reference_engine.kernels.library import KernelLibrary
from reference_engine.kv_cache import KvCache
from reference_engine.vector_ops import make_ops
from reference_engine.vector_ops_math import F32


def same_bits(a: F32, b: F32) -> bool:
    """Equal in shape and in every bit, except that one NaN is as good as another."""
    if a.shape != b.shape:
        return False
    equal = a.view(np.uint32) == b.view(np.uint32)
    return bool((equal | (np.isnan(a) & np.isnan(b))).all())


@dataclass(frozen=True)
class Case:
    """Sizes and options; ``tokens`` rows of queries, keys and values come from ``seed``."""

    heads: int = 6
    kv_heads: int = 2
    k_dim: int = 64
    v_dim: int = 64
    tokens: int = 90
    window: int = 0
    softcap: float = 0.0
    flash: bool = False
    type_k: str = "f32"
    type_v: str = "f32"
    rotate: bool = False
    seed: int = 0
    scale: float = 0.125

    def rows(self) -> tuple[F32, F32, F32]:
        """Queries [M, H, Dk], keys [M, Hkv, Dk], values [M, Hkv, Dv]."""
        rng = np.random.default_rng(self.seed)
        shapes = ((self.heads, self.k_dim), (self.kv_heads, self.k_dim), (self.kv_heads, self.v_dim))
        q, k, v = (rng.normal(size=(self.tokens, *shape)).astype(np.float32) for shape in shapes)
        return q, k, v

    def cache(self, kernels: KernelLibrary | None = None, threads: int = 1, **more: Any) -> KvCache:
        options = {"n_batch": 16, "type_k": self.type_k, "type_v": self.type_v, "rotate": self.rotate, **more}
        return KvCache(
            1,
            self.kv_heads,
            self.k_dim,
            self.tokens + 40,
            windows=self.window,
            head_dim_v=self.v_dim,
            kernels=kernels,
            threads=threads,
            **options,
        )

    def run(
        self,
        kernels: KernelLibrary | None = None,
        threads: int = 1,
        chunks: Sequence[int] = (),
        cache: KvCache | None = None,
    ) -> F32:
        """The engine's answer [M, H * Dv], the tokens given in chunks (default: all at once)."""
        q, k, v = self.rows()
        cache = cache or self.cache(kernels, threads)
        done = cache.n_past
        ops, layer, answers = make_ops(kernels, threads), cache.layer(0), []
        for n in chunks or (self.tokens - done,):
            part, at = slice(done, done + n), np.arange(done, done + n, dtype=np.int32)
            layer.append(k[part], v[part], at)
            answers.append(
                ops.attention(
                    q[part],
                    layer,
                    at,
                    scale=self.scale,
                    window=self.window,
                    softcap=self.softcap,
                    flash=self.flash,
                )
            )
            done += n
            cache.n_past = done
        return np.concatenate(answers)

    def oracle(self) -> npt.NDArray[np.float64]:
        """softmax(cap(q k scale)) v in float64, one row and one head at a time."""
        q, k, v = (rows.astype(np.float64) for rows in self.rows())
        answer = np.empty((self.tokens, self.heads, self.v_dim))
        for row in range(self.tokens):
            for head in range(self.heads):
                kv = head * self.kv_heads // self.heads
                seen = [j for j in range(row + 1) if not self.window or row - j < self.window]
                s = np.array([self.scale * float(np.sum(q[row, head] * k[j, kv])) for j in seen])
                if self.softcap:
                    s = self.softcap * np.tanh(s / self.softcap)
                weights = np.exp(s - s.max())
                weights /= weights.sum()
                answer[row, head] = sum(w * v[j, kv] for w, j in zip(weights, seen, strict=True))
        return answer.reshape(self.tokens, -1)

    def error(self, answer: F32) -> float:
        """Normalised mean square error against the oracle."""
        right = self.oracle()
        return float(np.sum((answer - right) ** 2) / np.sum(right**2))
