# SPDX-License-Identifier: Apache-2.0
"""The verdict on a row, reason by reason: each appears for its cause, and for nothing else."""

from __future__ import annotations

import random
from dataclasses import replace
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probes.conditions import Load, Phase, Policy, Ranges, Rules, Sample, foreign_cpus, judge, rules_for, should_stop

GHZ = 1_000_000_000
RANGES = Ranges(
    npu_name="fdab0000.npu",
    npu_max_hz=GHZ,
    ddr_max_hz=2_400_000_000,
    policies={
        "policy0": Policy(frozenset({0, 1, 2, 3}), 1_800_000_000),
        "policy4": Policy(frozenset({4, 5}), 2_304_000_000),
    },
    trips_c={"soc-thermal": 75.0},
    cpus=8,
)
STEADY = (10.0, 10.1, 9.9, 10.0, 10.05, 9.95, 10.0)


def sample(at_s: float, phase: Phase, **changes: object) -> Sample:
    """A sample of a board at its full clocks on which nothing else runs. This process uses two of its
    CPUs."""
    good = Sample(
        at_s=at_s,
        phase=phase,
        ranges=RANGES,
        npu_hz=GHZ,
        npu_limit_hz=GHZ,
        ddr_hz=2_400_000_000,
        ddr_limit_hz=2_400_000_000,
        cpu_hz={"policy0": 1_800_000_000, "policy4": 2_304_000_000},
        cpu_limit_hz={"policy0": 1_800_000_000, "policy4": 2_304_000_000},
        temperature_c={"soc-thermal": 45.0, "npu-thermal": 44.0},
        cooling={"thermal-cpufreq-0": 0, "thermal-devfreq-0": 0, "pwm-fan": 2},
        load=Load(all_s=100 + 2.05 * at_s, own_s=10 + 2 * at_s) if phase is not Phase.DURING else None,
        swap_in_pages=5 if phase is not Phase.DURING else None,
        swap_out_pages=6 if phase is not Phase.DURING else None,
    )
    return replace(good, **changes)  # type: ignore[arg-type]


def row(**during: object) -> list[Sample]:
    """Samples of a row of one second; ``during`` changes those taken while it ran."""
    middle = [sample(0.1 * number, Phase.DURING, **during) for number in range(1, 10)]
    return [sample(0.0, Phase.BEFORE), *middle, sample(1.0, Phase.AFTER)]


def words(samples: list[Sample], results: tuple[float, ...] = STEADY, rules: Rules | None = None) -> list[str]:
    verdict = judge(samples, results, rules)
    assert verdict.valid == (not verdict.reasons)
    known = (
        "throttled", "clock low", "clock unknown", "background load", "swap activity", "cold first run", "noisy",
    )  # fmt: skip
    return [next(word for word in known if reason.startswith(word + ":")) for reason in verdict.reasons]


def test_a_quiet_row_at_full_clocks_is_valid() -> None:
    assert words(row()) == []


TRUTH = [
    ("a cooling device that slows", {"cooling": {"thermal-devfreq-0": 2}}, ["throttled"]),
    ("a cpufreq cooling device", {"cooling": {"cpufreq-cpu4": 1}}, ["throttled"]),
    ("a fan", {"cooling": {"pwm-fan": 4}}, []),
    ("the cooling device of the GPU", {"cooling": {"devfreq-fb000000.gpu": 3}}, []),
    ("a lowered limit of the NPU", {"npu_limit_hz": 800_000_000}, ["throttled"]),
    ("a lowered limit of a CPU", {"cpu_limit_hz": {"policy4": 1_200_000_000}}, ["throttled"]),
    ("the NPU at its lowest clock", {"npu_hz": 300_000_000}, ["clock low"]),
    ("the NPU just above 90 %", {"npu_hz": 901_000_000}, []),
    ("the NPU just below 90 %", {"npu_hz": 899_000_000}, ["clock low"]),
    ("memory at its lowest clock", {"ddr_hz": 534_000_000}, []),
    ("idle CPUs", {"cpu_hz": {"policy0": 408_000_000, "policy4": 408_000_000}}, []),
    ("an unreadable NPU clock", {"npu_hz": None}, ["clock unknown"]),
    ("an unreadable DDR clock", {"ddr_hz": None}, []),
    ("heat without a lower clock", {"temperature_c": {"npu-thermal": 90.0}}, []),
]


@pytest.mark.parametrize(("what", "during", "expected"), TRUTH, ids=[what for what, _, _ in TRUTH])
def test_the_reason_follows_from(what: str, during: dict[str, object], expected: list[str]) -> None:
    assert words(row(**during)) == expected


@pytest.mark.parametrize(("what", "during", "_"), TRUTH, ids=[what for what, _, _ in TRUTH])
def test_a_simulated_row_is_not_judged_by_clocks_or_heat(what: str, during: dict[str, object], _: object) -> None:
    assert words(row(**during), rules=Rules(simulated=True)) == []


def test_the_clock_figures_follow_the_word() -> None:
    (reason,) = judge(row(npu_hz=300_000_000), STEADY).reasons
    assert reason == "clock low: npu 300 MHz (lowest 300, maximum 1000), below 90% in 9 of 9 samples"


def test_one_low_sample_of_twenty_is_let_through_and_three_are_not() -> None:
    def ramp(low: int) -> list[Sample]:
        clocks = [300_000_000] * low + [GHZ] * (20 - low)
        middle = [sample(0.1 * (n + 1), Phase.DURING, npu_hz=hz) for n, hz in enumerate(clocks)]
        return [sample(0.0, Phase.BEFORE), *middle, sample(2.1, Phase.AFTER)]

    assert words(ramp(1)) == []
    assert words(ramp(3)) == ["clock low"]


def test_an_idle_clock_before_and_after_the_row_does_not_count() -> None:
    samples = row()
    samples[0] = replace(samples[0], npu_hz=300_000_000)
    samples[-1] = replace(samples[-1], npu_hz=300_000_000)
    assert words(samples) == []


def test_a_clock_that_falls_in_heat_is_throttling_and_one_that_rises_in_heat_is_not() -> None:
    hot = {"temperature_c": {"npu-thermal": 86.5}}
    clocks = [GHZ] * 4 + [800_000_000] * 5
    falling = [sample(0.1 * n, Phase.DURING, npu_hz=hz, **hot) for n, hz in enumerate(clocks, 1)]
    rising = [sample(0.1 * n, Phase.DURING, npu_hz=hz, **hot) for n, hz in enumerate(reversed(clocks), 1)]
    edges = sample(0.0, Phase.BEFORE), sample(1.0, Phase.AFTER)
    assert words([edges[0], *falling, edges[1]]) == ["throttled", "clock low"]
    assert words([edges[0], *rising, edges[1]]) == ["clock low"]


def test_a_row_too_short_for_a_sample_has_an_unknown_clock() -> None:
    verdict = judge([sample(0.0, Phase.BEFORE), sample(0.06, Phase.AFTER)], STEADY)
    assert verdict.reasons == ("clock unknown: npu, no sample fell into the row, it was too short",)


def test_without_devfreq_the_clock_of_the_npu_is_unknown() -> None:
    samples = [replace(each, npu_hz=None, ranges=replace(RANGES, npu_max_hz=None)) for each in row()]
    assert judge(samples, STEADY).reasons == ("clock unknown: npu, no devfreq or cpufreq entry shows it",)


def test_only_the_cpus_a_row_ran_on_are_judged() -> None:
    slow_little = row(cpu_hz={"policy0": 408_000_000, "policy4": 2_304_000_000})
    on_cpu = frozenset({"cpu"})
    big = Rules(clocks=on_cpu, needed=on_cpu, cpus=frozenset({4, 5}))
    every = Rules(clocks=on_cpu, needed=on_cpu)
    assert words(slow_little, rules=big) == []
    assert words(slow_little, rules=every) == ["clock low"]
    assert words(row(cpu_hz={}), rules=big) == ["clock unknown"]


@pytest.mark.parametrize(
    ("foreign_cpus", "expected"), [(0.05, []), (0.39, []), (0.41, ["background load"]), (3.0, ["background load"])]
)
def test_foreign_load_counts_from_a_twentieth_of_the_cpus_on(foreign_cpus: float, expected: list[str]) -> None:
    samples = row()
    last = samples[-1]
    assert samples[0].load and last.load
    own_s = last.load.own_s - samples[0].load.own_s
    samples[-1] = replace(last, load=Load(samples[0].load.all_s + own_s + foreign_cpus, last.load.own_s))
    assert words(samples) == expected


def test_unread_load_is_a_reason_and_not_a_pass() -> None:
    assert words([replace(each, load=None) for each in row()]) == ["background load"]
    assert words([]) == ["clock unknown", "background load"]


def test_any_swapping_is_a_reason() -> None:
    samples = row()
    samples[-1] = replace(samples[-1], swap_in_pages=6)
    assert judge(samples, STEADY).reasons == ("swap activity: 1 pages in, 0 pages out",)


@pytest.mark.parametrize(
    ("results", "rates", "expected"),
    [
        ((8.5, 10.0, 10.0, 10.1, 9.9, 10.0), True, ["cold first run"]),
        ((11.5, 10.0, 10.0, 10.1, 9.9, 10.0), True, []),
        ((11.5, 10.0, 10.0, 10.1, 9.9, 10.0), False, ["cold first run"]),
        ((9.5, 10.0, 10.0, 10.1, 9.9, 10.0), True, []),
        ((10.0, 10.0), True, ["noisy"]),
        ((), True, []),
        ((10.0, 11.0, 9.0, 10.8, 9.2, 10.0, 10.6), True, ["noisy"]),
        ((10.0, 9.9, 9.8, 9.7, 9.6, 9.5, 9.4), True, ["noisy"]),
        ((9.4, 9.5, 9.6, 9.7, 9.8, 9.9, 10.0), True, []),
        ((9.4, 9.5, 9.6, 9.7, 9.8, 9.9, 10.0), False, ["noisy"]),
        ((0.0, 0.0, 0.0), True, ["noisy"]),
    ],
)
def test_the_samples_of_the_row_are_judged(results: tuple[float, ...], rates: bool, expected: list[str]) -> None:
    assert words(row(), results, Rules(higher_is_better=rates)) == expected


@given(st.lists(st.floats(0.5, 2.0), min_size=3, max_size=30))
@settings(max_examples=200, deadline=None)
def test_a_spread_above_3_percent_is_always_noisy(results: list[float]) -> None:
    middle = median(results)
    spread = median(abs(result - middle) for result in results)
    reasons = judge(row(), results).reasons
    if spread > 0.0301 * middle:
        assert any(reason.startswith("noisy: MAD") for reason in reasons)
    if spread < 0.0299 * middle:
        assert not any(reason.startswith("noisy: MAD") for reason in reasons)


def test_a_thousand_steady_rows_raise_no_false_alarm() -> None:
    dice = random.Random(5)
    for _ in range(1000):
        results = tuple(dice.gauss(10, 0.1) for _ in range(10))
        assert words(row(), results) == []


@pytest.mark.parametrize(("degrees", "stops"), [(69.9, False), (70.0, True), (90.0, True)])
def test_a_zone_stops_five_degrees_below_its_lowest_trip(degrees: float, stops: bool) -> None:
    samples = row(temperature_c={"soc-thermal": degrees})[:-1]
    assert bool(should_stop(samples)) == stops


@pytest.mark.parametrize(("degrees", "stops"), [(84.9, False), (85.0, True)])
def test_a_zone_without_trips_stops_at_85_degrees(degrees: float, stops: bool) -> None:
    samples = row(temperature_c={"npu-thermal": degrees, "soc-thermal": 50.0})[:-1]
    assert bool(should_stop(samples)) == stops


def test_the_stop_names_the_zone_that_is_furthest_over() -> None:
    samples = row(temperature_c={"npu-thermal": 86.0, "soc-thermal": 81.0})[:-1]
    assert should_stop(samples) == (
        "soc-thermal is at 81.0 C, the limit is 70.0 C: let the board cool down before going on"
    )
    assert should_stop([]) is None


def test_heat_that_is_over_does_not_stop() -> None:
    assert (
        should_stop([sample(0.0, Phase.DURING, temperature_c={"npu-thermal": 99.0}), sample(0.1, Phase.DURING)]) is None
    )


def test_rows_of_the_cpus_are_judged_by_their_own_clocks_also_in_a_simulated_run() -> None:
    slow_big = row(npu_hz=None, cpu_hz={"policy0": 1_800_000_000, "policy4": 408_000_000})
    on_big = rules_for("cpu_bandwidth", "gbps", {"op": "read", "threads": 2, "cpus": "4-5"}, simulated=True)
    on_little = rules_for("cpu_bandwidth", "gbps", {"op": "read", "threads": 2, "cpus": "0-3"}, simulated=True)
    one_big = rules_for("cpu_clock", "mhz", {"cpu": 4}, simulated=True)
    assert words(slow_big, rules=on_big) == ["clock low"]
    assert words(slow_big, rules=on_little) == []
    assert words(slow_big, rules=one_big) == ["clock low"]
    assert words(row(ddr_hz=534_000_000), rules=on_little) == ["clock low"]
    assert words(row(cpu_hz={}), rules=on_big) == [], "a machine that shows no CPU clock is not to blame"


def test_rows_of_the_npu_are_judged_by_its_clock_unless_simulated() -> None:
    slow = row(npu_hz=300_000_000)
    assert words(slow, rules=rules_for("gemm_rate", "tops", {}, simulated=False)) == ["clock low"]
    assert words(slow, rules=rules_for("gemm_rate", "tops", {}, simulated=True)) == []


def test_the_clock_of_memory_counts_for_rows_of_bandwidth() -> None:
    slow = row(ddr_hz=534_000_000)
    assert words(slow, rules=rules_for("weight_stream", "gbps", {}, simulated=False)) == ["clock low"]
    assert words(slow, rules=rules_for("gemm_rate", "tops", {}, simulated=False)) == []
    absent = row(ddr_hz=None)
    assert words(absent, rules=rules_for("weight_stream", "gbps", {}, simulated=False)) == []


@pytest.mark.parametrize(
    ("unit", "higher"), [("tops", True), ("gbps", True), ("mhz", True), ("us", False), ("s", False)]
)
def test_the_unit_says_which_direction_is_better(unit: str, higher: bool) -> None:
    assert rules_for("bind_cost", unit, {}, simulated=True).higher_is_better is higher


def test_own_time_booked_later_than_it_was_spent_is_no_foreign_load() -> None:
    """The kernel's sum over CPUs is taken at ticks, a process's is exact: the difference may be below 0."""
    samples = row()
    samples[0] = replace(samples[0], load=Load(all_s=100.0, own_s=10.0))
    samples[-1] = replace(samples[-1], load=Load(all_s=101.0, own_s=12.0))
    assert foreign_cpus(samples) == 0
    assert words(samples) == []
