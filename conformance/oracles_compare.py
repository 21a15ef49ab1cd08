# SPDX-License-Identifier: Apache-2.0
"""Says in words how a result differs from the right one, and which known fault gives just that result. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

CANARY = 0x5C
"""Byte that fills C before a run: a result that still holds it was never written (rknn-toolkit2 issue 550)."""


def difference(want: Array, got: Array, alternatives: Mapping[str, Array] | None = None) -> str | None:
    """None where every element is equal, else one sentence: how many, the first one, what it looks like.

    ``want`` and ``got`` are [M, N]. ``alternatives`` are wrong results by the words for the fault that gives them.
    """
    if want.shape != got.shape:
        return f"C has shape {got.shape}, expected {want.shape}"
    return _sentence(want, got, got != want, alternatives or {})


def difference_within(
    want: Array, got: Array, bound: Array, alternatives: Mapping[str, Array] | None = None
) -> str | None:
    """As :func:`difference`, for floats: wrong is an element that is NaN or further from ``want`` than ``bound``."""
    if want.shape != got.shape:
        return f"C has shape {got.shape}, expected {want.shape}"
    with np.errstate(invalid="ignore", over="ignore"):
        wrong = ~(np.abs(got.astype(np.float64) - want) <= bound)
    return _sentence(want, got, wrong, alternatives or {})


def difference_between(
    low: Array, high: Array, got: Array, alternatives: Mapping[str, Array] | None = None
) -> str | None:
    """As :func:`difference`, where any value from ``low`` to ``high`` is right."""
    return _sentence(low, got, (got < low) | (got > high), alternatives or {})


def _sentence(want: Array, got: Array, wrong: Array, alternatives: Mapping[str, Array]) -> str | None:
    count = int(np.count_nonzero(wrong))
    if count == 0:
        return None
    row, column = (int(place) for place in np.argwhere(wrong)[0])
    looks = symptom(want, got, wrong, alternatives)
    return (
        f"{count} of {want.size} elements are wrong, first at row {row}, column {column}: got {got[row, column]}, "
        f"expected {want[row, column]}" + (f"; {looks}" if looks else "")
    )


def symptom(want: Array, got: Array, wrong: Array, alternatives: Mapping[str, Array]) -> str | None:
    """The words for the known fault that explains ``got``, or None."""
    canary = np.full(1, CANARY, np.uint8).repeat(got.dtype.itemsize).view(got.dtype)[0]
    if np.all(got == canary):
        return "C was not written: it still holds what stood in it"
    if not got.any():
        return "C is all zero"
    for words, other in alternatives.items():
        if other.shape == got.shape and np.array_equal(got, other):
            return words
    rows = np.flatnonzero(wrong.any(axis=1))
    if np.issubdtype(got.dtype, np.floating) and np.isnan(got[wrong]).any():
        return "there are NaN"
    if len(rows) == 2 and np.array_equal(got[rows], want[rows[::-1]]):
        return f"rows {rows[0]} and {rows[1]} have changed places"
    if np.all(got[wrong] == canary) and rows.size == got.shape[0] - rows[0]:
        return f"rows from {rows[0]} on were not computed: a slice of the batch is missing"
    if np.count_nonzero(wrong) == 1 and abs(float(got[wrong][0]) - float(want[wrong][0])) == 1:
        return "one element is off by one"
    if (
        np.count_nonzero(wrong) == 1
        and np.issubdtype(got.dtype, np.integer)
        and got[wrong][0] == np.iinfo(got.dtype).min
    ):
        return "one element is the most negative value"
    return None
