# SPDX-License-Identifier: Apache-2.0
"""Reading of the kernel's texts about clocks, heat and load."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probes.conditions import parse
from tests.conditions.condition_roots import proc_stat, process_stat

ticks = st.integers(0, 10**12)


@given(st.text(max_size=200))
@settings(max_examples=300, deadline=None)
def test_no_text_makes_a_parser_fail(text: str) -> None:
    parse.whole(text)
    parse.hertz(text)
    parse.highest_hertz(text)
    parse.celsius(text)
    parse.word(text)
    parse.cpu_list(text)
    parse.busy_ticks(text)
    parse.cpus_online(text)
    parse.process_ticks(text)
    parse.swapped_pages(text)


@given(st.integers(-(10**18), 10**18))
@settings(max_examples=100, deadline=None)
def test_a_whole_number_is_read_as_it_stands(value: int) -> None:
    assert parse.whole(f"{value}\n") == value


@pytest.mark.parametrize(
    "text", ["", "\n", "1.5", "0x10", "1e9", "12 13", "<unsupported>", "\u0663", "1_000", "9" * 20]
)
def test_what_is_no_decimal_integer_is_unknown(text: str) -> None:
    assert parse.whole(text) is None


def test_a_clock_of_0_is_unknown_and_not_0() -> None:
    assert parse.hertz("0\n") is None
    assert parse.hertz("-1\n") is None
    assert parse.hertz("99999999999\n") is None


def test_cpufreq_counts_in_khz_and_devfreq_in_hz() -> None:
    assert parse.hertz("2304000\n", unit=1000) == 2_304_000_000
    assert parse.hertz("1000000000\n") == 1_000_000_000


def test_the_highest_frequency_does_not_depend_on_the_order() -> None:
    assert parse.highest_hertz("2400000000 534000000 1320000000 \n") == 2_400_000_000
    assert parse.highest_hertz("\n") is None


@pytest.mark.parametrize(
    ("text", "degrees"), [("40692", 40.692), ("0", 0.0), ("-5000", -5.0), ("-274000", None), ("255000", None)]
)
def test_a_temperature_no_sensor_has_is_unknown(text: str, degrees: float | None) -> None:
    assert parse.celsius(text) == degrees


@given(st.sets(st.integers(0, 200), min_size=1, max_size=20), st.sampled_from([",", " "]))
@settings(max_examples=100, deadline=None)
def test_a_cpu_list_gives_the_cpus_it_was_made_of(cpus: set[int], separator: str) -> None:
    assert parse.cpu_list(separator.join(map(str, sorted(cpus))) + "\n") == cpus


def test_a_cpu_list_knows_ranges() -> None:
    assert parse.cpu_list("0-3,6\n") == {0, 1, 2, 3, 6}
    assert parse.cpu_list("3-0") == frozenset()
    assert parse.cpu_list("0-99999") == frozenset()


@given(st.tuples(*[ticks] * 9))
@settings(max_examples=100, deadline=None)
def test_idle_iowait_and_guest_are_no_work(fields: tuple[int, ...]) -> None:
    user, nice, system, _, _, irq, softirq, steal, _ = fields
    line = f"cpu  {' '.join(map(str, fields))} 0\n"
    assert parse.busy_ticks(line) == user + nice + system + irq + softirq + steal


def test_an_old_kernel_without_steal_is_read() -> None:
    assert parse.busy_ticks("cpu  10 1 5 1000 3\n") == 16
    assert parse.busy_ticks("cpu  10 1\n") is None


def test_the_cpus_online_are_counted() -> None:
    assert parse.cpus_online(proc_stat(1000, cpus=6)) == 6
    assert parse.cpus_online("nothing") is None


@given(st.tuples(ticks, ticks, ticks, ticks), st.text(alphabet="a )(0", max_size=15))
@settings(max_examples=100, deadline=None)
def test_a_process_name_may_hold_spaces_and_parentheses(own: tuple[int, int, int, int], name: str) -> None:
    assert parse.process_ticks(process_stat(7, 3, own, name)) == (3, sum(own))


def test_swapping_needs_both_counters() -> None:
    assert parse.swapped_pages("pswpin 3\npswpout 4\n") == (3, 4)
    assert parse.swapped_pages("pswpin 3\n") is None
