# SPDX-License-Identifier: Apache-2.0
"""The timing model on the real clock. Only lower bounds are sharp: a busy machine makes things later, never earlier.

What the model says is judged in test_mock_chip.py, where no time passes.
"""

from __future__ import annotations

import ctypes as c
import math
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from c_probes import mock
from tests.mock.mock_client import BUILD, NATIVE, NORM, Matmul, load

SHAPE = (1, 32, 32)


def bound(library: c.CDLL, code: int = 2, shape: tuple[int, int, int] = SHAPE, mask: int = 0, **layout: int) -> Matmul:
    matmul = Matmul(library, code, *shape, **layout)
    assert matmul.code == 0
    assert matmul.bind() == [0, 0, 0]
    assert library.rknn_matmul_set_core_mask(matmul.ctx, mask) == 0
    assert matmul.run() == 0
    return matmul


def duration(work: Callable[[], Any]) -> float:
    start = time.monotonic()
    work()
    return time.monotonic() - start


def fastest(matmul: Matmul, runs: int = 5) -> float:
    """Seconds of the fastest of some runs: noise only ever adds."""
    return min(duration(matmul.run) for _ in range(runs))


def together(library: c.CDLL, masks: tuple[int, ...], *, enough: float = math.inf) -> float:
    """Seconds until one run of each context is done when all are started at once: the fastest of up to 8 rounds, of
    which the first within `enough` is the last."""
    matmuls = [bound(library, mask=mask) for mask in masks]

    def round_() -> None:
        threads = [threading.Thread(target=matmul.run) for matmul in matmuls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    best = duration(round_)
    for _ in range(7):
        if best < enough:
            break
        best = min(best, duration(round_))
    for matmul in matmuls:
        matmul.close()
    return best


def test_timing_off_waits_for_nothing() -> None:
    """A hundred runs that would take two seconds each."""
    matmul = bound(load(timing="fixed_us=2e6,off"))
    assert duration(lambda: [matmul.run() for _ in range(100)]) < 20


def test_a_run_never_ends_before_its_modelled_time() -> None:
    matmul = bound(load(timing="campaign,fixed_us=3000"))
    assert fastest(matmul) >= 0.003


PR_SET_TIMERSLACK, PR_GET_TIMERSLACK = 29, 30


def test_a_modelled_wait_gives_the_caller_its_timer_slack_back() -> None:
    """The slack belongs to the calling thread; a library that left it at its least would change its host."""
    prctl = c.CDLL(None).prctl
    matmul = bound(load(timing="campaign,fixed_us=500,bind_native_us=500,bind_norm_us=500"))
    before = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0)
    assert prctl(PR_SET_TIMERSLACK, 40_000, 0, 0, 0) == 0
    try:
        assert matmul.run() == 0
        assert matmul.bind() == [0, 0, 0]
        assert prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0) == 40_000
    finally:
        prctl(PR_SET_TIMERSLACK, before, 0, 0, 0)


@pytest.mark.parametrize("layout", [NORM, NATIVE])
def test_a_run_takes_its_work_at_the_set_rate_at_least(layout: int) -> None:
    library = load(timing="campaign,fixed_us=0", arithmetic="skip")
    matmul = bound(library, shape=(512, 1024, 1024), b_layout=layout, ac_layout=layout)
    assert 2 * 512 * 1024 * 1024 / fastest(matmul) <= 0.69e12


def test_contexts_on_one_core_queue_up() -> None:
    library = load(timing="campaign,fixed_us=20000,share2=1,share3=1")
    assert together(library, (1, 1, 1)) >= 0.06


def test_contexts_on_different_cores_and_on_auto_overlap() -> None:
    """Three runs of 0.4 s each: a queue would need 1.2 s every time."""
    library = load(timing="campaign,fixed_us=400000,share2=1,share3=1")
    assert together(library, (1, 2, 4), enough=1.1) < 1.1
    assert together(library, (0, 0, 0), enough=1.1) < 1.1


def test_binding_a_normal_operand_costs_by_its_bytes_and_a_native_one_does_not() -> None:
    library = load(timing="campaign,bind_norm_us=1e6,bind_norm_bytes=1048576")
    norm = Matmul(library, 2, 1, 512, 512)
    native = Matmul(library, 2, 1, 512, 512, b_layout=NATIVE)
    assert duration(lambda: norm.bind("B")) >= 0.25
    assert min(duration(lambda: native.bind("B")) for _ in range(5)) < 0.2


def test_create_destroy_and_sync_cost_what_the_set_says() -> None:
    library = load(timing="create_us=15000,destroy_us=15000,sync_us=15000")
    start = time.monotonic()
    matmul = Matmul(library, 2, 1, 32, 32)
    created = time.monotonic()
    library.rknn_mem_sync(matmul.ctx, matmul.memory["A"], 3)
    synced = time.monotonic()
    matmul.close()
    assert created - start >= 0.015
    assert synced - created >= 0.015
    assert time.monotonic() - synced >= 0.015


def test_timing_changes_no_result() -> None:
    results = []
    for timing in ("off", "on", "campaign"):
        matmul = Matmul(load(timing=timing), 2, 16, 256, 64)
        for name in "AB":
            matmul.bytes(name)[:] = np.random.default_rng(1).integers(0, 256, matmul.bytes(name).size)
        assert matmul.bind() == [0, 0, 0]
        assert matmul.run() == 0
        results.append(matmul.bytes("C").copy())
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])


@pytest.mark.parametrize("code", [1, 2, 3, 4, 9, 10])
def test_skipped_arithmetic_leaves_a_c_that_is_never_right(code: int) -> None:
    matmul = bound(load(arithmetic="skip"), code, (4, 64, 64))
    kinds: dict[int, Any] = {1: np.float32, 2: np.int32, 3: np.int8, 4: np.float16, 9: np.float32, 10: np.int16}
    values = matmul.bytes("C").view(kinds[code])
    if values.dtype.kind == "f":
        assert np.isnan(values).all()
    else:
        ends = np.iinfo(values.dtype)
        assert set(values.tolist()) == ({ends.min} if code == 2 else {ends.min, ends.max})


def test_the_shipped_sets_list_every_parameter_with_a_source() -> None:
    sets = {entry.name: entry for entry in mock.timing_sets(BUILD / "mock" / "librknnrt.so")}
    assert {"campaign", "rk3588", "rk3576", "rk3562", "rk3566", "rk3568", "rv1126b"} == set(sets)
    assert len({frozenset(entry.parameters) for entry in sets.values()}) == 1
    assert all(entry.source for entry in sets.values())
