# SPDX-License-Identifier: Apache-2.0
"""The shape of time: faults that leave every number right and make an NPU not worth having.

Every verdict but the last compares times of one run with each other, by their minima: noise of the host makes a run
longer, never shorter, so a minimum over enough runs is the device's own. A ratio that looks wrong is measured again
before it counts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack

import numpy as np

from c_probes.librknnrt import Layout, Matmul, MatmulType
from conformance.bench import Bench, NotServed, Wrong
from conformance.oracles import random_int8
from conformance.runtime.parallel import cores_of, runs, together

INT8 = MatmulType.INT8_MM_INT8_TO_INT32
FAULTS_OF_SPEED = ("contexts-serialised", "slow-k", "slow-norm", "thermal", "jitter", "clock-low")
ATTEMPTS = 4

SPEED_UP = 1.25
"""Less than this from contexts on all cores is no speed-up (three cores hardly faster than one: rknn-toolkit2 129)."""

CLIFF = 3.0
"""Times the time per product of a small K."""

LAYOUTS = 10.0
"""Normal against native A and C: 3.4 was measured for int8 on RK3588, 81 for int4 (unimatrix099, 2.3.2)."""

DRIFT = 1.3
"""The shortest run of the last second over the shortest of the first."""

SPREAD = 1.04
"""The first quartile over the minimum. A busy host lengthens most runs but hardly all: with six processes for each
processor the quartile of right runs stayed below 1.02; a chance of up to 30 % in each run makes 1.075."""


def contexts_speed_up(bench: Bench) -> str:
    """Contexts on all cores together are faster than one after the other.

    Three cores were hardly faster than one (rknn-toolkit2 issue 129); 2.77 times was measured with a context and a
    thread for each core of RK3588 (marfrit bench, 2.3.2).
    """
    _judged(bench)
    cores = cores_of(bench)
    if cores < 2:
        raise NotServed(f"{bench.where} has one core")
    M, K, N = 256, 4096, 2048
    with ExitStack() as stack:
        matmuls = [stack.enter_context(_loaded(bench, M, K, N, core_mask=1 << core)) for core in range(cores)]
        calls = [runs(matmul) for matmul in matmuls]

        def speed_up() -> float:
            # In turns, so that a chip that slows down meanwhile does so for both.
            pairs = [(_seconds(calls[0]), _seconds(lambda: together(calls))) for _ in range(10)]
            return cores * min(one for one, _ in pairs) / min(everyone for _, everyone in pairs)

        found = _again(speed_up, lambda ratio: ratio > SPEED_UP)
    if found <= SPEED_UP:
        raise Wrong(
            f"{cores} contexts on {cores} cores are {found:.2f} times as fast as one: the contexts are serialised, "
            "one core works"
        )
    return f"{cores} contexts on {cores} cores are {found:.2f} times as fast as one"


def k_cliff_time(bench: Bench) -> str:
    """A product costs the same above K = 8192 as at 4096.

    14 times as much was measured on RK3588 above 8192 (marfrit bench, 2.3.2), and fp16 falls above 4096
    (unimatrix099). Where a profile knows that, it is told and no failure: cut K yourself.
    """
    _judged(bench)
    M, N = 64, 512
    low, high = 4096, 8192 + 32
    if not bench.takes_k(high):
        raise NotServed(f"{bench.where} refuses K={high}, as known")
    with _loaded(bench, M, low, N) as short, _loaded(bench, M, high, N) as long:
        ratio = _again(lambda: _shortest(long, 10) / _shortest(short, 10) * low / high, lambda value: value <= CLIFF)
    if ratio <= CLIFF:
        return f"a product at K={high} costs {ratio:.2f} times what it does at K={low}"
    told = f"slow above K = {low}: a product at K={high} costs {ratio:.1f} times what it does at K={low}"
    known = bench.expected("int8_slow_k_above", 8192)
    if known is None:
        raise Wrong(told)
    bench.known.append(f"{told} ({known.source})")
    return f"{told}, as known"


def layout_time(bench: Bench) -> str:
    """int8 with A and C in normal layout takes no more than a few times what it takes in native layout.

    For int4 81 times was measured on RK3588 (unimatrix099, 2.3.2), for int8 at most 3.4.
    """
    _judged(bench)
    M, K, N = 128, 1024, 1024
    with (
        _loaded(bench, M, K, N) as normal,
        _loaded(bench, M, K, N, AC_layout=Layout.NATIVE) as native,
    ):

        def ratio() -> float:
            return _shortest(normal, 10) / _shortest(native, 10)

        found = _again(ratio, lambda value: value <= LAYOUTS)
    if found > LAYOUTS:
        raise Wrong(f"normal layout of A and C is slow: {found:.0f} times the time of native layout, M={M} K={K} N={N}")
    return f"normal layout of A and C takes {found:.2f} times the time of native, M={M} K={K} N={N}"


def steadiness(bench: Bench) -> str:
    """The same run takes as long after seconds of load as at the start.

    Boards throttled from 346 to 278 tokens/s at 75 to 80 degrees (pty819), and worse without a heat sink.
    """
    _judged(bench)
    seconds = bench.pick(4.5, 6.0, 60.0)
    with _loaded(bench, 128, 2048, 1024) as matmul:
        times = []
        start = time.monotonic()
        while time.monotonic() - start < seconds:
            times.append((time.monotonic() - start, _run_seconds(matmul)))
    first = min(took for at, took in times if at < min(1.0, seconds / 4))
    last = min(took for at, took in times if at > seconds - 1.0)
    ratio = last / first
    if ratio > DRIFT:
        raise Wrong(
            f"speed falls under load: a run takes {ratio:.2f} times as long after {seconds:g} s of load as at the "
            "start, as a chip does that throttles"
        )
    return f"{len(times)} runs in {seconds:g} s, the last as fast as the first within {abs(ratio - 1):.1%}"


def spread(bench: Bench) -> str:
    """Equal runs take equal times: a quarter of them lie close to the shortest.

    A device that is shared, or a program that is not pinned, adds chance to every run: 18.9 % of prefill came from
    pinning alone (marfrit campaign results, RK3588).
    """
    _judged(bench)
    runs = 240
    with _loaded(bench, 128, 2048, 1024) as matmul:

        def ratio() -> float:
            times = sorted(_run_seconds(matmul) for _ in range(runs))
            return times[runs // 4] / times[0]

        found = _again(ratio, lambda value: value <= SPREAD)
    if found > SPREAD:
        raise Wrong(
            f"equal runs spread: three of four take over {found - 1:.0%} longer than the shortest, in each of "
            f"{ATTEMPTS} times {runs} runs"
        )
    return f"a quarter of {runs} equal runs lies within {found - 1:.1%} of the shortest"


def published_speed(bench: Bench) -> str:
    """int8 at 128 x 1024 x 8192 in normal layout reaches half of what was published for this chip.

    An NPU left at its boot clock of 200 MHz was 7.6 times slower with every number right (tgoskits pull 1908; notes
    on open drivers), and a memory governor took a factor of 4 (oRKLLM feasibility log).
    """
    _judged(bench)
    entries = () if bench.profile is None else bench.profile.expectations
    known = next((entry for entry in entries if entry.what == "int8_gops"), None)
    if known is None:
        raise NotServed(f"no speed was published for {bench.where}")
    M, K, N = 128, 1024, 8192
    with _loaded(bench, M, K, N) as matmul:

        def gops() -> float:
            return 2e-9 * M * K * N / _shortest(matmul, 20)

        found = _again(gops, lambda value: value >= known.value / 2)
    if found < known.value / 2:
        raise Wrong(
            f"{found:.0f} GOPS at M={M} K={K} N={N}, {known.value} were published ({known.source}): the clock of the "
            "NPU or of the memory is low, or something else uses the NPU"
        )
    return f"{found:.0f} GOPS at M={M} K={K} N={N}, published {known.value} ({known.source})"


def _judged(bench: Bench) -> None:
    """Raises :class:`NotServed` where time means nothing: a mock that does not model it, silicon in a quick run."""
    bench.needs(INT8)
    if not bench.library.is_mock:
        if bench.level == "quick":
            raise NotServed("time is judged on silicon at levels medium and long: it takes seconds of load")
        return
    faults = {word.partition(":")[0].strip() for word in os.environ.get("RKNN_MOCK_FAULTS", "").split(",")}
    if os.environ.get("RKNN_MOCK_TIMING", "off") in ("", "off") and not faults & set(FAULTS_OF_SPEED):
        raise NotServed("this mock does not model time (RKNN_MOCK_TIMING=on does)")


def _loaded(bench: Bench, M: int, K: int, N: int, **options: int) -> Matmul:
    """A context with operands bound that has run once, so that the mock need not compute again."""
    matmul = bench.matmul(M, K, N, INT8, **options)
    a, b = random_int8(bench.random, (M, K), 0), random_int8(bench.random, (K, N), 1)
    matmul.load(A=a.reshape(-1).view(np.int8), B=b)
    matmul.bind("C")
    matmul.run()
    return matmul


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _run_seconds(matmul: Matmul) -> float:
    return _seconds(runs(matmul))


def _shortest(matmul: Matmul, runs: int) -> float:
    return min(_run_seconds(matmul) for _ in range(runs))


def _again(measure: Callable[[], float], fine: Callable[[float], bool]) -> float:
    """Measures until it is fine, at most :data:`ATTEMPTS` times; the last value."""
    for _ in range(ATTEMPTS - 1):
        found = measure()
        if fine(found):
            return found
    return measure()
