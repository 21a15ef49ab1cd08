# SPDX-License-Identifier: Apache-2.0
"""Says in words how integers and scales differ from the oracle's, and which known fault gives just these. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from conformance.quantiser import oracle
from conformance.quantiser.oracle import F32, F64, Answer, Rules

_ROWS = 2048
"""Wrong rows that a fault has to explain."""

Suspect = Callable[[F32, Rules], "tuple[NDArray[np.int8], F32]"]


def difference(x: F32, q: NDArray[np.int8], scale: F32, want: Answer, rules: Rules) -> str | None:
    """None where integers and scales of x [M, k] are the oracle's, bit for bit; else one sentence."""
    if q.shape != want.q.shape or scale.shape != want.scale.shape:
        return f"the quantiser gave shapes {q.shape} and {scale.shape}, expected {want.q.shape} and {want.scale.shape}"
    wrong = (q != want.q).any(axis=1) | (scale.view(np.uint32) != want.scale.view(np.uint32))
    if not wrong.any():
        return None
    rows = np.flatnonzero(wrong)
    row = int(rows[0])
    if scale[row].view(np.uint32) != want.scale[row].view(np.uint32):
        first = f"scale {scale[row]!s} instead of {want.scale[row]!s}"
    else:
        column = int(np.argmax(q[row] != want.q[row]))
        first = f"{float(x[row, column]).hex()} became {q[row, column]} instead of {want.q[row, column]}"
    kept = rows[:_ROWS]
    cause = explained(x[kept], q[kept], scale[kept], rules)
    if cause is None and len(x) > 1 and np.all(scale == want.scale.max()):
        cause = "one scale for the whole batch instead of one for each row"  # its largest row need not be wrong
    sentence = f"{len(rows)} of {len(x)} rows ({rules.words}) are wrong, first row {row} with amax "
    return f"{sentence}{float(np.abs(x[row]).max()).hex()}: {first}" + (f"; {cause}" if cause else "")


def explained(x: F32, q: NDArray[np.int8], scale: F32, rules: Rules) -> str | None:
    """The words for each known fault that gives exactly these integers and scales, or None."""
    found = []
    for words, suspect in SUSPECTS.items():
        with np.errstate(all="ignore"):
            other_q, other_scale = suspect(x, rules)
        if np.array_equal(q, other_q) and np.array_equal(scale.view(np.uint32), other_scale.view(np.uint32)):
            found.append(words)
    return ", or ".join(found) or None


def _rounded(how: Callable[[F64], F64]) -> Suspect:
    def suspect(x: F32, rules: Rules) -> tuple[NDArray[np.int8], F32]:
        scale = oracle.scales(x, rules)
        return oracle.narrowed(oracle.nearest(how(oracle.scaled(x, scale))), rules), scale

    return suspect


def _with_rules(**changes: object) -> Suspect:
    def suspect(x: F32, rules: Rules) -> tuple[NDArray[np.int8], F32]:
        found = oracle.quantised(x, replace(rules, **changes))  # type: ignore[arg-type]
        return found.q, found.scale

    return suspect


def _divided(x: F32, rules: Rules) -> tuple[NDArray[np.int8], F32]:
    scale = oracle.scales(x, rules)
    wide = np.where(scale == 0, np.inf, scale).astype(np.float64)[:, None]
    return oracle.narrowed(oracle.nearest(oracle.single(x.astype(np.float64) / wide)), rules), scale


def _sign_lost(x: F32, rules: Rules) -> tuple[NDArray[np.int8], F32]:
    found = oracle.quantised(x, rules)
    return np.abs(found.q), found.scale


def _sign_turned(x: F32, rules: Rules) -> tuple[NDArray[np.int8], F32]:
    found = oracle.quantised(x, rules)
    return (-found.q.astype(np.int16)).astype(np.int8), found.scale


def _rim_wraps(x: F32, rules: Rules) -> tuple[NDArray[np.int8], F32]:
    """The largest element rounds to most + 1, as with a scale that is a little too small, and is stored modulo."""
    scale = oracle.scales(x, rules)
    whole = oracle.nearest(oracle.scaled(x, scale))
    lifted = np.where(np.abs(whole) == rules.most, whole + np.sign(whole), whole)
    return ((lifted + 128) % 256 - 128).astype(np.int8), scale


def _nan_for_nothing(x: F32, rules: Rules) -> tuple[NDArray[np.int8], F32]:
    found = oracle.quantised(x, rules)
    return found.q, np.where(np.abs(x).max(axis=1) == 0, np.float32(np.nan), found.scale)


def _flushed(x: F32, rules: Rules) -> tuple[NDArray[np.int8], F32]:
    least = np.float32(2.0**-126)
    flat = np.where(np.abs(x) < least, np.float32(0), x)
    scale = oracle.scales(flat, rules)
    scale = np.where(scale < least, np.float32(0), scale)
    return oracle.narrowed(oracle.nearest(oracle.scaled(flat, scale)), rules), scale


def _one_more(x: F32, rules: Rules) -> tuple[NDArray[np.int8], F32]:
    scale = oracle.scales(x, replace(rules, most=rules.most + 1))
    return oracle.narrowed(oracle.nearest(oracle.scaled(x, scale)), rules), scale


SUSPECTS: Mapping[str, Suspect] = {
    "halves are rounded up instead of away from zero": _rounded(lambda v: np.floor(v + 0.5)),
    "halves are rounded to even instead of away from zero": _rounded(np.rint),
    "numbers are truncated instead of rounded": _rounded(np.trunc),
    "the clip factor is ignored": _with_rules(clip=1.0),
    "what exceeds the rim wraps where it should be held": _with_rules(clamp=False),
    "what exceeds the rim is held where this pipeline wraps": _with_rules(clamp=True),
    "the rim is rounded beyond and wraps: 127 became -128": _rim_wraps,
    "the sign is lost": _sign_lost,
    "the sign is turned": _sign_turned,
    "a row of zeros has the scale NaN": _nan_for_nothing,
    "subnormal numbers are flushed to zero": _flushed,
    "the scale is amax over 128 (8 for int4) instead of 127 (7)": _one_more,
    "x is divided by the scale instead of multiplied by its reciprocal": _divided,
}
