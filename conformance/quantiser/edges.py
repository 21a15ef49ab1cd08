# SPDX-License-Identifier: Apache-2.0
"""The quantiser where it is easily wrong: clip factors, signs, empty rows, what is not finite, fp16."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from conformance.bench import Wrong, right
from conformance.engine.bench import EngineBench
from conformance.quantiser import oracle
from conformance.quantiser.diagnosis import difference
from conformance.quantiser.oracle import F32, Rules
from conformance.quantiser.subject import Subject, pipeline_for
from reference_engine.backends.interface import NonFinite
from reference_engine.backends.pipeline import Pipeline
from reference_engine.backends.presets import PRESETS

_CLIPS = (0.5, 0.9, 0.93, 0.95, 1.0, 1.25)
"""0.9 and 0.93 are unimatrix099's for int4, 0.95 what broke int8 without a clamp."""


def every_rules() -> Iterator[Rules]:
    """int8 and int4, clamped and wrapping, with every clip factor."""
    for most, clamp, clip in itertools.product((127, 7), (True, False), _CLIPS):
        yield Rules(most, clip, clamp)


def random_rows(random: np.random.Generator, rows: int, k: int) -> F32:
    """Rows [rows, k] over many magnitudes, with a few large elements as real activations have them."""
    x = random.standard_normal((rows, k)) * np.exp(2 * random.standard_normal((rows, 1)))
    x[random.random((rows, k)) < 0.01] *= 20
    return x.astype(np.float32)


def _judge(subject: Subject, x: F32, rules: Rules) -> None:
    pipeline = pipeline_for(rules)
    want, found = oracle.quantised(x, rules), subject.activations(x, pipeline)
    right(difference(x, found.q, found.scale, want, rules), f"activations, {subject.label}")
    if found.beyond != want.beyond:
        raise Wrong(
            f"activations ({rules.words}), {subject.label}: {found.beyond} elements are counted beyond the rim, not "
            f"{want.beyond}"
        )
    rules = replace(rules, empty_scale=1.0)
    other, wanted = subject.weights(x, pipeline), oracle.quantised(x, rules)
    right(difference(x, other.q, other.scale, wanted, rules), f"weights per channel, {subject.label}")


def quantiser_clip(bench: EngineBench) -> str:
    """A clip factor makes the scale smaller than amax needs: what is beyond the rim is held, or wraps where told so.

    Source: unimatrix099's record on RK3588, where an int8 clip of 0.95 without a clamp made 134 of 127 and wrapped it
    to -122: perplexity 12.2 became 10106.
    """
    count = bench.pick(96, 1024)
    for subject in bench.subjects():
        for rules in every_rules():
            _judge(subject, random_rows(bench.random, count, 96), rules)
    return (
        f"clip factors {', '.join(f'{clip:g}' for clip in _CLIPS)} as int8 and int4, clamped and wrapping, {count} "
        f"rows of activations and of weights each, by {bench.named(bench.subjects())}: integers, scales and the count "
        "of what was beyond the rim are exact"
    )


def quantiser_signs(bench: EngineBench) -> str:
    """Turning the sign of a row turns the sign of its integers and leaves its scale; -0 is 0.

    Source: int4 in invisiofficial's fork is cast to int8 before it is held at +-7, which turns signs beyond 127. Here
    that takes a clip factor that no pipeline has, so every preset's quantiser is odd.
    """
    rows = bench.pick(256, 4096)
    for subject in bench.subjects():
        for rules in (Rules(), Rules(clamp=False), Rules(most=7), Rules(most=7, clip=0.9)):
            pipeline = pipeline_for(rules)
            x = random_rows(bench.random, rows, 64)
            x[:, 5] = -0.0
            plus, minus = subject.activations(x, pipeline), subject.activations(-x, pipeline)
            same = np.array_equal(plus.scale, minus.scale)
            if not same or not np.array_equal(plus.q, -minus.q):
                raise Wrong(f"{subject.label} ({rules.words}): the integers of -x are not those of x with turned signs")
            wrong = (plus.q != 0) & (np.signbit(x) != (plus.q < 0))
            if wrong.any():
                row, column = (int(at) for at in np.argwhere(wrong)[0])
                raise Wrong(
                    f"{subject.label} ({rules.words}): the sign is lost or turned: {x[row, column]} became "
                    f"{plus.q[row, column]} in row {row}, column {column}"
                )
            if plus.q[:, 5].any():
                raise Wrong(f"{subject.label} ({rules.words}): -0 became {plus.q[:, 5].max()}")
    return (
        f"{rows} rows of int8 (clamped, wrapping) and int4 (clip 1 and 0.9) and their negatives, by "
        f"{bench.named(bench.subjects())}"
    )


def quantiser_zero_rows(bench: EngineBench) -> str:
    """A row of zeros has integers, scale and product 0, and its neighbours are as if it were not there.

    Source: 1 / 0 is infinity and 0 * infinity is NaN; the forks set the reciprocal to 0 for a scale of 0. Padding rows
    of a batch and dead channels of a weight are such rows.
    """
    for subject in bench.subjects():
        for preset in ("w8a8-per-channel", "w8a8-segment", "w4a4", "w8a8-hadamard", "w16a16"):
            pipeline = PRESETS[preset]
            x, w = random_rows(bench.random, 8, 64), random_rows(bench.random, 96, 64)
            x[2], x[5], w[7], w[64:] = 0.0, -0.0, 0.0, 0.0
            y = subject.product(x, w, pipeline)
            where = f"{subject.label}, {preset}"
            if np.isnan(y).any():
                raise Wrong(f"{where}: a row or a channel of zeros gives NaN")
            if y[[2, 5]].any() or y[:, 7].any() or y[:, 64:].any():
                raise Wrong(f"{where}: the product of a row or a channel of zeros is not 0")
            kept = [0, 1, 3, 4, 6, 7]
            alone = subject.product(x[kept], w, pipeline)
            if not np.array_equal(alone.view(np.uint32), y[kept].view(np.uint32)):
                raise Wrong(f"{where}: rows beside a row of zeros are not what they are without it")
        for rules in (Rules(), Rules(clamp=False), Rules(most=7)):
            empty = np.zeros((3, 64), np.float32)
            empty[1] = -0.0
            _judge(subject, empty, rules)
    return (
        "rows of 0 and of -0, dead channels and a whole core slice of zeros in five pipelines (int8 per channel, per "
        f"segment and with Hadamard, int4, fp16), by {bench.named(bench.subjects())}: 0, no NaN, neighbours unchanged"
    )


def quantiser_not_finite(bench: EngineBench) -> str:
    """NaN and infinity in an activation or a weight are refused with the row that holds them, never quantised.

    Source: a maximum that skips NaN gives a harmless scale, the cast of NaN to int8 is undefined (0 on
    Arm, -128 on x86), and the fault shows up as bad text much later.
    """
    bad = (np.nan, -np.nan, np.inf, -np.inf)
    tried = 0
    for subject in bench.subjects():
        for preset, value, column in itertools.product(("w8a8-per-channel", "w4a4", "w8a8-hadamard"), bad, (0, 63)):
            x, w = random_rows(bench.random, 6, 64), random_rows(bench.random, 32, 64)
            x[4, column] = value
            where = f"{subject.label}, {preset}: {value} in column {column}"
            _refused(f"{where} of row 4 of the activation", subject, x, w, pipeline=PRESETS[preset], row=4)
            x[4, column], w[9, column] = 0.0, value
            _refused(f"{where} of row 9 of the weight", subject, x, w, pipeline=PRESETS[preset], row=9)
            tried += 2
        largest = np.full((1, 64), np.finfo(np.float32).max, np.float32)
        _judge(subject, largest, Rules())
    by = bench.named(bench.subjects())
    return f"{tried} places of NaN and infinity, by {by}: each is refused by its row; the largest finite number is not"


def _refused(where: str, subject: Subject, x: F32, w: F32, *, pipeline: Pipeline, row: int) -> None:
    try:
        subject.product(x, w, pipeline)
    except NonFinite as error:
        if error.row != row:
            raise Wrong(f"{where}: refused, but for row {error.row}") from error
        return
    raise Wrong(f"{where}: NaN or infinity is not refused but quantised")


def quantiser_fp16(bench: EngineBench) -> str:
    """fp16 pipelines round activations and weights to the nearest half, ties to even, subnormal numbers included.

    Source: NEON vcvt_f16_f32 and ggml's own conversion; 65520 and beyond is infinity (rk-llama.cpp W16A16).
    """
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    above = np.append(halves[1:], np.float32(65536))
    middle = ((halves.astype(np.float64) + above) / 2).astype(np.float32)
    points = np.concatenate([halves, middle, np.nextafter(middle, np.float32(0)), np.nextafter(middle, above)])
    points = points[: len(points) // 64 * 64]
    signs = np.where(np.arange(points.size) % 3 == 0, -1, 1).astype(np.float32)
    x = (points * signs).reshape(-1, 64)
    want = oracle.halves(x)
    pipeline = PRESETS["w16a16"]
    for subject in bench.subjects():
        for what, found in (
            ("activations", subject.activations(x, pipeline).q),
            ("weights", subject.weights(x, pipeline).q),
        ):
            wrong = np.asarray(found).view(np.uint16) != want.view(np.uint16)
            if wrong.any():
                row, column = (int(at) for at in np.argwhere(wrong)[0])
                raise Wrong(
                    f"{what} as fp16, {subject.label}: {int(wrong.sum())} of {wrong.size} are wrong, first "
                    f"{float(x[row, column]).hex()}: {found[row, column]!s} instead of {want[row, column]!s}"
                )
    by = bench.named(bench.subjects())
    return f"every fp16 number, every middle between two and its neighbours ({x.size:,} values), by {by}"
