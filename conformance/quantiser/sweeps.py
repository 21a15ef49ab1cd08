# SPDX-License-Identifier: Apache-2.0
"""Sweeps over all 2^23 mantissas: the rim, the halves, and the narrow end of float32."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from conformance.bench import Wrong, right
from conformance.engine.bench import EngineBench
from conformance.quantiser import oracle
from conformance.quantiser.diagnosis import difference
from conformance.quantiser.oracle import F32, Rules
from conformance.quantiser.subject import Subject, pipeline_for

MANTISSAS = 1 << 23
_ROWS = 1 << 18
_ONE = 127  # biased exponent of 1.0

WRAPPING, CLAMPED, FOUR = Rules(clamp=False), Rules(), Rules(most=7)


def mantissas(exponent: int, step: int = 1) -> Iterator[F32]:
    """Every ``step``-th float32 of one binade (``exponent`` biased, 0 for subnormal numbers), in parts."""
    first = exponent << 23
    for start in range(0, MANTISSAS, _ROWS * step):
        yield np.arange(first + start, first + min(start + _ROWS * step, MANTISSAS), step, dtype=np.uint32).view(
            np.float32
        )


def rim_rows(amax: F32, most: int) -> F32:
    """Rows [M, 4]: amax, -amax, the float below it, and what lands beside the half below the rim."""
    below = np.nextafter(amax, np.float32(0))
    half = (amax.astype(np.float64) * ((most - 0.5) / most)).astype(np.float32)
    return np.stack([amax, -amax, below, -half], axis=1)


def sweep(subject: Subject, rules: Rules, exponent: int, step: int) -> int:
    """Holds every row against the oracle; how many there were. Wrong."""
    pipeline = pipeline_for(rules)
    judged = 0
    for amax in mantissas(exponent, step):
        x = rim_rows(amax, rules.most)
        found, want = subject.activations(x, pipeline), oracle.quantised(x, rules)
        right(difference(x, found.q, found.scale, want, rules), f"activations, {subject.label}")
        if found.beyond != want.beyond:
            raise Wrong(
                f"activations, {subject.label}: {found.beyond} elements are counted beyond the rim, not {want.beyond}"
            )
        judged += len(x)
    return judged


def quantiser_rim(bench: EngineBench) -> str:
    """The largest element of a row becomes 127 and never 128, whatever its mantissa.

    Source: marfrit's campaign on RK3588 put a clamp into its quantiser (447672d6) because "one ULP of the reciprocal
    rounds 127 to 128, which a narrowing store wraps to -128". The exhaustive sweep shows that it cannot: the largest
    scaled value of all mantissas is 127.00001. It does happen with a clip factor; see quantiser_clip.
    """
    # The device back end quantises by the emulation's own code, in this process.
    step = 16 if bench.brief else 1
    plans = [(WRAPPING, _ONE, step)]
    plans += [(CLAMPED, _ONE, bench.pick(16, 1)), (FOUR, _ONE, bench.pick(16, 1))]
    plans += [(rules, exponent, bench.pick(64, 4)) for rules in (WRAPPING, CLAMPED) for exponent in (8, 253)]
    first, *others = bench.subjects()
    judged = sum(sweep(first, rules, exponent, step) for rules, exponent, step in plans)
    for subject in others:
        judged += sweep(subject, WRAPPING, _ONE, bench.pick(64, 4))
    weights = sum(_weights(first, rules, bench.pick(64, 4)) for rules in (WRAPPING, CLAMPED, FOUR))
    return (
        f"{'all' if step == 1 else 'every 16th of'} {MANTISSAS:,} mantissas of amax of one binade, int8 "
        f"({first.label}), and every "
        f"{bench.pick('16th', 'one')} clamped and as int4; samples near both ends of float32; {judged:,} rows of "
        f"activations and {weights:,} of weights: scale and integers as the oracle in exact integers has them"
        + (f"; samples by {bench.named(others)}" if others else "")
    )


def _weights(subject: Subject, rules: Rules, step: int) -> int:
    judged = 0
    rules = Rules(rules.most, rules.clip, rules.clamp, empty_scale=1.0)
    pipeline = pipeline_for(rules)
    for amax in mantissas(_ONE, step):
        w = rim_rows(amax, rules.most)
        found = subject.weights(w, pipeline)
        right(
            difference(w, found.q, found.scale, oracle.quantised(w, rules), rules),
            f"weights per channel, {subject.label}",
        )
        judged += len(w)
    return judged


def quantiser_halves(bench: EngineBench) -> str:
    """Halves are rounded away from zero, and nothing else is: with a scale of 1 all mantissas of three binades.

    Source: the forks round by roundf, which NEON does as vcvta (rknpu2-quantization.cpp); numpy and most hardware round
    to even, which parts from it in 2 of a million random values. 0.49999997 + 0.5 is 1 in float32: adding a half is no
    rounding.
    """
    judged = 0
    for number, subject in enumerate(bench.subjects()):
        for exponent in (_ONE + 6, _ONE - 1, _ONE - 2):
            judged += _scale_one(subject, exponent, 1 if number == 0 and not bench.brief else bench.pick(32, 4))
    return (
        f"{judged:,} values of both signs in [64, 127], [0.5, 1) and [0.25, 0.5) at a scale of 1, by "
        f"{bench.named(bench.subjects())}: integers as bit arithmetic on the mantissas has them"
    )


def _scale_one(subject: Subject, exponent: int, step: int) -> int:
    """The rounding needs no floating point here: the mantissa's own bits say it."""
    rules, judged, width = CLAMPED, 0, 2048
    for values in mantissas(exponent, step):
        kept = values[values <= 127][: len(values) // width * width]
        kept = kept[: len(kept) // width * width]
        if not len(kept):
            continue
        x = np.concatenate([np.full((len(kept) // width, 1), 127, np.float32), kept.reshape(-1, width)], axis=1)
        x[:, 2::2] *= -1
        want = _by_bits(x)
        found = subject.activations(x, pipeline_for(rules))
        if not np.all(found.scale == 1):
            raise Wrong(f"{subject.label}: a row with amax 127 has the scale {found.scale[found.scale != 1][0]}, not 1")
        if not np.array_equal(found.q, want):
            answer = oracle.Answer(want, np.ones(len(x), np.float32), 0)
            raise Wrong(f"{subject.label}: {difference(x, found.q, found.scale, answer, rules)}")
        judged += kept.size
    return judged


def _by_bits(x: F32) -> NDArray[np.int8]:
    bits = x.view(np.uint32).astype(np.int64)
    significand = (bits & 0x7FFFFF) | 0x800000
    # The value is significand * 2^-shift; adding half of 2^shift and cutting off rounds halves away from zero.
    shift = 150 - ((bits >> 23) & 0xFF)
    whole = (significand + (np.int64(1) << (shift - 1))) >> shift
    signed: NDArray[np.int8] = np.where(bits >> 31 == 1, -whole, whole).astype(np.int8)
    return signed


def quantiser_subnormal(bench: EngineBench) -> str:
    """Rows whose amax is subnormal, or so small that 1 / scale is beyond float32, follow the float32 arithmetic.

    Source: below an amax of about 3.7e-37 the reciprocal overflows, and infinity saturates (fcvtas) or wraps; below 63
    units of the least subnormal the scale is 0 and so is every integer. NEON of 32-bit Arm flushes such numbers, which
    is why this kit's kernels do not use it there.
    """
    step, judged = bench.pick(8, 1), 0
    subjects = bench.subjects()
    for number, subject in enumerate(subjects):
        for rules in (WRAPPING, CLAMPED, FOUR):
            for exponent in (0, 1, 5, 6):
                sparse = number or rules is not CLAMPED or exponent
                judged += sweep(subject, rules, exponent, bench.pick(256, 16) if sparse else step)
    wraps = subjects[0].activations(np.array([[1e-38, -1e-38, 5e-39, 0.0]], np.float32), pipeline_for(WRAPPING)).q[0]
    return (
        f"{judged:,} rows with amax below 2^-120, every {'one' if step == 1 else f'{step}th'} subnormal one clamped: "
        "integers and scales as in exact arithmetic. Where the pipeline does not clamp, infinity wraps: (1e-38, "
        f"-1e-38, 5e-39, 0) becomes {tuple(int(q) for q in wraps)}, as on the forks without a clamp"
    )
