# SPDX-License-Identifier: Apache-2.0
"""From logits to the next token: greedy, or drawn by a seed that gives the same tokens on every machine.

Every step is defined to the bit: exp is the engine's own, sums go in order of rank, equal logits rank by token id, and
the random numbers are the raw 64-bit stream of PCG64, which numpy promises to keep.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from reference_engine.errors import UsageError
from reference_engine.vector_ops_math import exp

if TYPE_CHECKING:
    from numpy.typing import NDArray

    F32 = NDArray[np.float32]

Sampler = Callable[["F32"], int]
"""Logits float32 [n_vocab] to a token id."""


@dataclass(frozen=True)
class SamplingOptions:
    """``temperature`` 0 is greedy, whatever the rest says. ``top_k`` 0, ``top_p`` 1 and ``min_p`` 0 cut nothing.

    The cuts come in llama.cpp's order: top_k, top_p, min_p, each on probabilities at temperature 1, then temperature.
    """

    temperature: float = 0.0
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        bounds = (
            ("the temperature", self.temperature, 0.0, 100.0),
            ("top-k", self.top_k, 0, 1 << 31),
            ("top-p", self.top_p, 0.0, 1.0),
            ("min-p", self.min_p, 0.0, 1.0),
            ("the seed", self.seed, 0, (1 << 64) - 1),
        )
        for what, value, low, high in bounds:
            if not low <= value <= high:
                raise UsageError(f"{what} is {value}; it must be from {low} to {high}")


def greedy(logits: F32) -> int:
    """The largest logit; of equal ones the lowest token id."""
    return int(np.argmax(logits))


def make_sampler(options: SamplingOptions) -> Sampler:
    """A sampler with its own random stream, at its beginning."""
    if options.temperature == 0:
        return greedy
    source = np.random.PCG64(options.seed)

    def sample(logits: F32) -> int:
        ranked = candidates(logits, options)
        weights = exp_below(logits[ranked] / np.float32(options.temperature))
        return int(ranked[draw(weights, int(source.random_raw()))])

    return sample


def candidates(logits: F32, options: SamplingOptions) -> NDArray[np.intp]:
    """Token ids that are left after the cuts, the likeliest first; never none."""
    ranked = _ranked(logits, options.top_k)
    weights = exp_below(logits[ranked])
    if options.top_p < 1:
        cumulated = np.cumsum(weights, dtype=np.float64)
        # The shortest list whose probability reaches top_p.
        reach = int(np.searchsorted(cumulated, options.top_p * cumulated[-1])) + 1
        ranked, weights = ranked[:reach], weights[:reach]
    kept: NDArray[np.intp] = ranked[weights >= np.float32(options.min_p) * weights[0]]
    return kept


def draw(weights: F32, raw: int) -> int:
    """The index in ``weights`` on which a 64-bit random number falls."""
    cumulated = np.cumsum(weights, dtype=np.float64)
    point = (raw >> 11) * 2.0**-53 * float(cumulated[-1])
    return min(int(np.searchsorted(cumulated, point, side="right")), len(weights) - 1)


def exp_below(logits: F32) -> F32:
    """exp(logits - largest), so that the first of a ranked list is 1."""
    with np.errstate(all="ignore"):
        return np.asarray(exp(logits - logits.max()), dtype=np.float32)


def _ranked(logits: F32, top_k: int) -> NDArray[np.intp]:
    """Token ids by falling logit, equal ones by rising id; only the first ``top_k`` where that is not 0."""
    if not 0 < top_k < len(logits):
        return np.argsort(-logits, kind="stable")
    # The k-th largest value is the same whatever the order of a partial sort is; the ids at it are not.
    last = np.partition(logits, len(logits) - top_k)[len(logits) - top_k]
    above = np.flatnonzero(logits > last)
    chosen = np.concatenate((above, np.flatnonzero(logits == last)[: top_k - len(above)]))
    return chosen[np.argsort(-logits[chosen], kind="stable")]
