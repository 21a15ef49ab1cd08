# SPDX-License-Identifier: Apache-2.0
"""The timing model. Times are judged against generous bounds: the machine that runs the tests is no clean room."""

from __future__ import annotations

import ctypes as c
import threading
import time
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


def fastest(matmul: Matmul, runs: int = 5) -> float:
    """Seconds of the fastest of some runs: noise only ever adds."""
    times = []
    for _ in range(runs):
        start = time.monotonic()
        assert matmul.run() == 0
        times.append(time.monotonic() - start)
    return min(times)


def together(
    library: c.CDLL, contexts: int, masks: tuple[int, ...] = (1, 2, 4), rounds: int = 4, **options: Any
) -> float:
    """Seconds for which one run of each context lasts when all start at once; fastest of some rounds."""
    matmuls = [bound(library, mask=mask, **options) for mask in masks[:contexts]]
    best = float("inf")
    for _ in range(rounds):
        gate = threading.Barrier(contexts + 1)
        ends: list[float] = []

        def work(matmul: Matmul, gate: threading.Barrier = gate, ends: list[float] = ends) -> None:
            gate.wait()
            matmul.run()
            ends.append(time.monotonic())

        threads = [threading.Thread(target=work, args=(matmul,)) for matmul in matmuls]
        for thread in threads:
            thread.start()
        gate.wait()
        start = time.monotonic()
        for thread in threads:
            thread.join()
        best = min(best, max(ends) - start)
    for matmul in matmuls:
        matmul.close()
    return best


def test_timing_off_waits_for_nothing() -> None:
    assert fastest(bound(load(timing="off", faults="c-zero"))) < 0.01


def test_a_run_never_ends_before_its_modelled_time() -> None:
    matmul = bound(load(timing="campaign,fixed_us=3000"))
    assert 0.003 <= fastest(matmul) < 0.03


def test_the_campaign_rate_is_0_69_tops_at_any_layout() -> None:
    library = load(timing="campaign,fixed_us=0", arithmetic="skip")
    macs = 512 * 1024 * 1024
    for layout in (NORM, NATIVE):
        matmul = bound(library, shape=(512, 1024, 1024), b_layout=layout, ac_layout=layout)
        tops = 2 * macs / fastest(matmul) / 1e12
        assert 0.69 * 0.8 < tops <= 0.6901, layout
        matmul.close()


def test_k_above_the_cliff_costs_fourteen_times_per_mac() -> None:
    library = load(timing="campaign,fixed_us=0,bw_core_gbps=1e6", arithmetic="skip")
    below = bound(library, shape=(64, 8192, 256))
    above = bound(library, shape=(64, 8224, 256))
    ratio = fastest(above) / fastest(below) / (8224 / 8192)
    assert 10 < ratio < 15


def test_few_rows_are_bound_by_bytes() -> None:
    library = load(timing="campaign,fixed_us=0,scale=4", arithmetic="skip")
    matmul = bound(library, shape=(1, 4096, 2048), b_layout=NATIVE)
    gbps = 4 * 4096 * 2048 / fastest(matmul) / 1e9
    assert 11.1 * 0.8 < gbps < 11.2


def test_contexts_on_one_core_queue_up_and_on_two_cores_do_not() -> None:
    library = load(timing="campaign,fixed_us=10000,share2=1,share3=1")
    assert together(library, 2, (1, 1)) >= 0.0195
    assert together(library, 2, (1, 2)) < 0.0195
    assert together(library, 2, (0, 0)) < 0.0195  # AUTO finds the idle core


def test_contexts_that_run_together_slow_each_other_down() -> None:
    shape = (256, 1024, 1024)
    library = load(timing="campaign,fixed_us=0,scale=10,share2=0.5,share3=0.25", arithmetic="skip")
    alone = 10 * 2 * 256 * 1024 * 1024 / 0.69e12
    assert alone * 2 * 0.97 < together(library, 2, shape=shape) < alone * 2 * 1.5
    assert alone * 4 * 0.97 < together(library, 3, shape=shape) < alone * 4 * 1.5


def test_slowing_lasts_only_as_long_as_the_overlap() -> None:
    """A long run that meets a short one pays for the short one's time alone."""
    library = load(timing="campaign,fixed_us=0,scale=10,share2=0.5", arithmetic="skip")
    long, short = bound(library, shape=(1024, 1024, 1024), mask=1), bound(library, shape=(64, 1024, 1024), mask=2)
    alone = 10 * 2 * 1024**3 / 0.69e12
    durations = []
    for _ in range(3):
        thread = threading.Thread(target=short.run)
        start = time.monotonic()
        thread.start()
        long.run()
        durations.append(time.monotonic() - start)
        thread.join()
    # The short run alone takes 1/16 of the long one, so at half speed the long run loses at most 1/16.
    assert alone <= min(durations) < alone * 1.3


def test_speed_of_three_memory_bound_contexts_is_the_shared_bandwidth() -> None:
    library = load(timing="campaign,fixed_us=0,scale=20,bw_core_gbps=10,bw_shared_gbps=15", arithmetic="skip")
    shape = (1, 2048, 1024)
    size = 2048 * 1024
    assert 20 * 3 * size / 15e9 * 0.97 < together(library, 3, shape=shape, b_layout=NATIVE) < 20 * 3 * size / 15e9 * 1.5


def test_binding_a_normal_operand_costs_by_its_bytes_and_a_native_one_does_not() -> None:
    library = load(timing="campaign,bind_norm_us=20000,bind_norm_bytes=1048576")
    norm = Matmul(library, 2, 1, 1024, 1024)
    native = Matmul(library, 2, 1, 1024, 1024, b_layout=NATIVE)

    def bind_seconds(matmul: Matmul) -> float:
        start = time.monotonic()
        assert matmul.bind("B") == [0]
        return time.monotonic() - start

    assert min(bind_seconds(norm) for _ in range(3)) >= 0.02
    assert min(bind_seconds(native) for _ in range(3)) < 0.02


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
    raw = matmul.bytes("C")
    kinds: dict[int, Any] = {1: np.float32, 2: np.int32, 3: np.int8, 4: np.float16, 9: np.float32, 10: np.int16}
    values = raw.view(kinds[code])
    if values.dtype.kind == "f":
        assert np.isnan(values).all()
    else:
        ends = np.iinfo(values.dtype)
        assert set(values.tolist()) <= {ends.min, ends.max}
        assert code == 2 or set(values.tolist()) == {ends.min, ends.max}


def test_the_shipped_sets_list_every_parameter_with_a_source() -> None:
    sets = {entry.name: entry for entry in mock.timing_sets(BUILD / "mock" / "librknnrt.so")}
    assert {"campaign", "rk3588", "rk3576", "rk3562", "rk3566", "rk3568", "rv1126b"} == set(sets)
    assert len({frozenset(entry.parameters) for entry in sets.values()}) == 1
    assert all(entry.source for entry in sets.values())
    campaign = sets["campaign"].parameters
    assert float(campaign["fixed_us"]) == 32.9
    assert float(campaign["share3"]) * 3 * 0.69 == pytest.approx(1.83)
    assert float(campaign["share2"]) * 2 * 0.69 == pytest.approx(1.29)
    assert (float(campaign["bw_core_gbps"]), float(campaign["bw_shared_gbps"])) == (11.1, 26.6)
