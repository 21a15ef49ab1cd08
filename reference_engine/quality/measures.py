# SPDX-License-Identifier: Apache-2.0
"""Row by row: two rows of logits to a KL divergence, the same top or not, a token's surprise. float64, natural logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]

_BLOCK_ELEMENTS = 1 << 21
"""Logits that are widened at a time: 16 MiB."""


def log_probabilities(logits: F32) -> F64:
    """Log softmax over the last axis; logits [rows, n_vocab], finite."""
    wide = logits.astype(np.float64)
    wide -= wide.max(axis=-1, keepdims=True)
    wide -= np.log(np.exp(wide).sum(axis=-1, keepdims=True))
    return wide


def kl_divergence(reference: F64, other: F64) -> F64:
    """Sum of p (ln p - ln q) over the last axis of two arrays of log probabilities, in nats; at least 0."""
    terms = np.exp(reference) * (reference - other)
    # Exact values are not negative; the rounding of the sum may be.
    divergence: F64 = np.maximum(terms.sum(axis=-1), 0.0)
    return divergence


@dataclass(frozen=True)
class RowMeasures:
    """One value for each row. ``surprise`` is -ln of the next token's probability, NaN where there is none.

    ``gap`` is how far the reference's top logit stands above its second: a row with another top and a small gap is a
    near tie.
    """

    kl: F64
    same_top: NDArray[np.bool_]
    surprise: F64
    reference_surprise: F64
    gap: F64

    @staticmethod
    def joined(parts: Sequence[RowMeasures]) -> RowMeasures:
        return RowMeasures(*(np.concatenate([getattr(part, name) for part in parts]) for name in _FIELDS))


_FIELDS = ("kl", "same_top", "surprise", "reference_surprise", "gap")


def compare_rows(reference: F32, other: F32, targets: Sequence[int | None]) -> RowMeasures:
    """Logits [rows, n_vocab] of both; ``targets`` are the tokens that follow each row, None for the last one."""
    if reference.shape != other.shape or len(targets) != len(reference):
        raise ValueError(f"{reference.shape} and {other.shape} with {len(targets)} targets cannot be compared")
    step = max(1, _BLOCK_ELEMENTS // reference.shape[1])
    spans = [slice(start, start + step) for start in range(0, len(reference), step)]
    return RowMeasures.joined([_compare(reference[span], other[span], targets[span]) for span in spans])


def _compare(reference: F32, other: F32, targets: Sequence[int | None]) -> RowMeasures:
    p, q = log_probabilities(reference), log_probabilities(other)
    # Ties go to the first, as greedy decoding takes it.
    tops = reference.argmax(axis=1), other.argmax(axis=1)
    best = np.partition(reference, -2, axis=1)[:, -2:] if reference.shape[1] > 1 else np.repeat(reference, 2, axis=1)
    rows = np.arange(len(targets))
    wanted = np.array([0 if target is None else target for target in targets])
    missing = np.array([target is None for target in targets])
    return RowMeasures(
        kl=kl_divergence(p, q),
        same_top=tops[0] == tops[1],
        surprise=np.where(missing, np.nan, -q[rows, wanted]),
        reference_surprise=np.where(missing, np.nan, -p[rows, wanted]),
        gap=(best[:, 1].astype(np.float64) - best[:, 0]),
    )
