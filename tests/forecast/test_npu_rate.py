# SPDX-License-Identifier: Apache-2.0
"""Times of matmuls between the measured shapes, against the formula that made the board."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reports.forecast.board import Board
from reports.forecast.npu_rate import NpuRate
from tests.forecast import made_reports as made


def by_formula(rows: int, k: int, n_each: int, cores: int) -> float:
    """The made-up board's time of one run, not read from any row."""
    stream = made.STREAM * cores / made.STREAMS[cores]
    # At one row the stream alone counts: that is what npu_stream measures.
    macs = rows * made.MAC if rows > 1 else 0.0
    return made.FIXED + k * n_each * (stream + macs * cores / made.SCALING[cores])


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([1, 5, 16, 100, 128, 300, 512]),
    st.integers(1, 64),
    st.integers(1, 64),
    st.sampled_from([1, 2, 3]),
)
def test_a_run_takes_what_the_formula_says_at_any_shape_and_number_of_cores(
    rows: int, k32: int, n32: int, cores: int
) -> None:
    told = NpuRate(Board(made.report())).run(rows, 32 * k32, 32 * n32, cores)
    assert told.value == pytest.approx(by_formula(rows, 32 * k32, 32 * n32, cores), rel=0.02)


def test_more_rows_never_take_less_and_more_cores_never_more() -> None:
    rate = NpuRate(Board(made.report()))
    times = [rate.run(m, 4096, 4096, 1).value or 0.0 for m in range(1, 700)]
    assert times == sorted(times)
    for m in (1, 8, 512):
        three, one = rate.run(m, 4096, 4096 // 3, 3).value, rate.run(m, 4096, 4096, 1).value
        assert three is not None and one is not None and three < one


def test_beyond_the_largest_measured_m_the_rate_stays() -> None:
    rate = NpuRate(Board(made.report()))
    at, twice = rate.per_weight(512, 1).value, rate.per_weight(1024, 1).value
    assert at is not None and twice == pytest.approx(2 * at)


def test_rows_beyond_the_fast_k_do_not_count() -> None:
    slow = made.gemm(512, 15360, 4096, scale=14.0)
    with_slow = NpuRate(Board(made.report([*made.rows(), slow]))).per_weight(512, 1)
    assert with_slow == NpuRate(Board(made.report())).per_weight(512, 1)


def test_other_shapes_of_one_m_widen_the_interval() -> None:
    other = made.gemm(512, 2048, 2048, scale=1.3)
    told = NpuRate(Board(made.report([*made.rows(), other]))).per_weight(512, 1)
    alone = NpuRate(Board(made.report())).per_weight(512, 1)
    assert told.high is not None and alone.high is not None and told.value is not None
    assert told.high == pytest.approx(1.3 * (alone.high or 0), rel=1e-6)
    assert told.low == pytest.approx(alone.low, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "parameters", "rows", "cores", "missing"),
    [
        ("npu_stream", {"contexts": 3}, 1, 3, "npu_stream, contexts 3"),
        ("run_cost", {"part": "fixed"}, 1, 1, "run_cost fixed"),
        ("core_scaling", {"contexts": 3}, 512, 3, "core_scaling, contexts 3"),
        ("gemm_rate", {"type": 2}, 512, 1, "gemm_rate of int8 at M > 1"),
    ],
)
def test_a_missing_row_makes_the_time_unknown_by_its_name(
    name: str, parameters: dict[str, int], rows: int, cores: int, missing: str
) -> None:
    board = Board(made.report(made.without(name, **parameters)))
    told = NpuRate(board).run(rows, 1024, 1024, cores)
    assert not told.known
    assert missing in told.missing


def test_two_cores_between_measured_one_and_three_are_an_interval_between_them() -> None:
    told = Board(made.report(made.without("npu_stream", contexts=2))).stream(2)
    assert told.low == pytest.approx(10e9)
    assert told.high == pytest.approx(24e9)


def test_a_row_under_bad_conditions_is_used_and_named() -> None:
    rows = made.rows()
    for each in rows:
        if each["name"] == "npu_stream":
            each["validity"] = {"valid": False, "reasons": ["background load: 1.0 of 2 CPUs"]}
    board = Board(made.report(rows))
    assert board.stream(3).known
    assert list(board.conditions()) == ["npu_stream, contexts 3: background load: 1.0 of 2 CPUs"]


def test_the_fixed_cost_is_taken_out_of_a_stream_that_tells_its_bytes() -> None:
    rows = made.without("npu_stream", contexts=1)
    size = 16 << 20
    gross = size / (made.FIXED + size * made.STREAM) / 1e9
    streamed = made.row("npu_stream", "gbps", gross, contexts=1, type=2, M=1)
    streamed["evidence"] = {"bytes_per_run": size}
    assert Board(made.report([*rows, streamed])).stream(1).value == pytest.approx(1 / made.STREAM)


def roofline(m: int, k: int, n: int) -> float:
    """Another kind of board, the rule of the mock's README: fixed + max(compute, memory), campaign's figures."""
    return 33e-6 + max(2 * m * k * n / 0.69e12, (m * k + k * n + 4 * m * n) / 11.1e9)


@pytest.mark.parametrize(
    "shape",
    [(300, 1024, 4096), (512, 3840, 1280), (100, 4096, 1376), (64, 5120, 640), (5, 4096, 4096), (1, 3840, 15360),
     (48, 3840, 5120), (256, 576, 512), (32, 896, 4864)],
)  # fmt: skip
def test_shapes_that_a_medium_run_does_not_measure_are_told_within_5_percent(shape: tuple[int, int, int]) -> None:
    rows = [
        made.row("run_cost", "us", 33.0, part="fixed", type=2),
        made.row("npu_stream", "gbps", 11.1, contexts=1, type=2),
    ]
    words = {"B_layout": "native", "AC_layout": "norm", "core_mask": 1}
    for m in (1, 2, 4, 5, 8, 9, 16, 17, 32, 33, 64, 65, 128):
        us = roofline(m, 1024, 1024) * 1e6
        rows.append({**made.row("run_time", "us", us, type=2, M=m, K=1024, N=1024), "samples": [us]})
        rows[-1]["parameters"].update(words)
    for m, k, n in ((512, 1024, 1024), (512, 2048, 1024), (512, 512, 1024), (512, 1024, 512), (4096, 4096, 4096)):
        rows.append(made.row("gemm_rate", "tops", 2 * m * k * n / roofline(m, k, n) / 1e12, type=2, M=m, K=k, N=n))
        rows[-1]["parameters"].update(words)
    m, k, n = shape
    assert NpuRate(Board(made.report(rows))).run(m, k, n, 1).value == pytest.approx(roofline(m, k, n), rel=0.05)
