# SPDX-License-Identifier: Apache-2.0
"""Sampling of fake roots and of the machine the tests run on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probes.conditions import (
    Phase,
    Row,
    Rules,
    Sample,
    Sampler,
    between,
    foreign_cpus,
    judge,
    rules_for,
    summarise,
)
from probes.conditions.sources import Sources, own_ticks
from tests.conditions.condition_roots import BOARD, SELF, FakeRoot

STEADY = (1.0, 1.0, 1.0, 1.0)


def sampler(board: FakeRoot, **options: object) -> Sampler:
    return Sampler(sources=Sources.find(board.path, ticks_per_s=100), pid=SELF, **options)  # type: ignore[arg-type]


def wait_for(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_sample_holds_what_the_files_say(board: FakeRoot) -> None:
    with sampler(board) as running:
        found = running.take(Phase.BEFORE)
    assert found is not None
    assert (found.npu_hz, found.ddr_hz) == (1_000_000_000, 2_400_000_000)
    assert found.cpu_hz == {"policy0": 1_800_000_000, "policy4": 2_304_000_000}
    assert found.temperature_c == {"soc-thermal": 40.692, "npu-thermal": 39.8}
    assert found.cooling == {"thermal-cpufreq-0": 0, "thermal-devfreq-0": 0, "pwm-fan": 3}
    assert found.governors == {
        "npu": "rknpu_ondemand",
        "ddr": "dmc_ondemand",
        "policy0": "ondemand",
        "policy4": "ondemand",
    }
    assert found.load is not None and (found.load.all_s, found.load.own_s) == (10.0, 1.2)
    assert (found.swap_in_pages, found.swap_out_pages) == (10, 20)
    assert found.ranges.trips_c == {"soc-thermal": 75.0, "npu-thermal": 115.0}
    assert (found.ranges.npu_max_hz, found.ranges.ddr_max_hz, found.ranges.cpus) == (10**9, 2_400_000_000, 8)


def test_a_quiet_board_is_valid_from_files_to_verdict(board: FakeRoot) -> None:
    with sampler(board) as running, running.row() as row:
        wait_for(lambda: len(row.samples) >= 4)
    assert judge(row.samples, STEADY).valid
    assert [each.phase for each in row.samples][:: len(row.samples) - 1] == [Phase.BEFORE, Phase.AFTER]


@pytest.mark.parametrize(
    ("name", "text", "word"),
    [
        ("sys/class/devfreq/fdab0000.npu/cur_freq", "200000000\n", "clock low"),
        ("sys/class/devfreq/fdab0000.npu/cur_freq", "garbage\n", "clock unknown"),
        ("sys/class/devfreq/dmc/cur_freq", "534000000\n", "clock low"),
        ("sys/class/devfreq/fdab0000.npu/max_freq", "800000000\n", "throttled"),
        ("sys/class/thermal/cooling_device1/cur_state", "2\n", "throttled"),
        ("proc/vmstat", "pswpin 11\npswpout 20\n", "swap activity"),
        ("proc/stat", "cpu  9000 0 0 0 0 0 0 0 0 0\ncpu0 1 0 0 0\n", "background load"),
    ],
)
def test_what_changes_in_the_files_while_a_row_runs_is_the_reason(
    board: FakeRoot, name: str, text: str, word: str
) -> None:
    with sampler(board) as running, running.row() as row:
        board.set(name, text)
        before = len(row.samples)
        wait_for(lambda: len(row.samples) >= before + 3)
    rules = rules_for("weight_stream", "gbps", {}, simulated=False)
    reasons = judge(row.samples, STEADY, rules).reasons
    assert [reason.split(":")[0] for reason in reasons] == [word]


def test_an_empty_root_gives_unknowns_and_no_numbers(tmp_path: Path) -> None:
    with Sampler(tmp_path) as running, running.row() as row:
        wait_for(lambda: len(row.samples) >= 2)
    found = row.samples[0]
    assert (found.npu_hz, found.ddr_hz, found.cpu_hz, found.temperature_c, found.load) == (None, None, {}, {}, None)
    summary = summarise(row.samples)
    assert summary["npu_clock_hz"] is None and summary["foreign_cpus"] is None
    unknown = summary["unknown"]
    assert isinstance(unknown, dict) and set(unknown) >= {"npu_clock_hz", "ddr_clock_hz", "foreign_cpus", "governing"}
    words = [reason.split(":")[0] for reason in judge(row.samples, STEADY).reasons]
    assert words == ["clock unknown", "background load"]


def test_the_summary_is_json_with_the_spread_of_each_quantity(board: FakeRoot) -> None:
    with sampler(board) as running, running.row() as row:
        board.npu("cur_freq", "600000000\n")
        before = len(row.samples)
        wait_for(lambda: len(row.samples) >= before + 3)
    summary = json.loads(json.dumps(summarise(row.samples), allow_nan=False))
    assert summary["npu_clock_hz"]["min"] == 600_000_000
    assert summary["npu_clock_max_hz"] == 1_000_000_000
    assert summary["temperature_c"]["npu-thermal"] == {"min": 39.8, "median": 39.8, "max": 39.8}
    assert summary["governing"] == "default"
    assert summary["samples_during"] == len(row.samples) - 2


def test_governors_that_hold_their_clock_are_pinned(board: FakeRoot) -> None:
    for name in ("class/devfreq/fdab0000.npu/governor", "class/devfreq/dmc/governor"):
        board.set(f"sys/{name}", "performance\n")
    for policy in ("policy0", "policy4"):
        board.set(f"sys/devices/system/cpu/cpufreq/{policy}/scaling_governor", "userspace\n")
    with sampler(board) as running, running.row() as row:
        pass
    assert summarise(row.samples)["governing"] == "pinned"


def test_own_load_holds_live_and_reaped_descendants_and_no_one_else(board: FakeRoot) -> None:
    board.process(SELF, 1, (100, 20, 7, 3))
    board.process(5000, SELF, (40, 2, 0, 0), name="mm_peak")
    board.process(5001, 5000, (1, 1, 1, 1), name="deep (child) 1")
    board.process(6000, 1, (9999, 9999, 0, 0), name="stranger")
    board.set("proc/self-made/stat", "nonsense")
    assert own_ticks(board.path / "proc", SELF) == 130 + 42 + 4
    assert own_ticks(board.path / "proc", 31337) is None


def test_parents_that_form_a_ring_do_not_hang_the_sum(board: FakeRoot) -> None:
    board.process(7000, 7001, (1, 0, 0, 0))
    board.process(7001, 7000, (2, 0, 0, 0))
    assert own_ticks(board.path / "proc", 7000) == 3


def test_zones_of_one_type_are_told_apart(board: FakeRoot) -> None:
    board.set("sys/class/thermal/thermal_zone7/type", "npu-thermal\n")
    board.set("sys/class/thermal/thermal_zone7/temp", "41000\n")
    with sampler(board) as running:
        found = running.take()
    assert found is not None
    assert found.temperature_c["npu-thermal"] == 39.8
    assert found.temperature_c["npu-thermal@thermal_zone7"] == 41.0


def test_links_that_lead_out_of_the_root_are_not_followed(board: FakeRoot, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "cur_freq").write_text("123000000\n")
    (outside / "available_frequencies").write_text("123000000\n")
    link = board.path / "sys/class/devfreq/dmc"
    for entry in link.iterdir():
        entry.unlink()
    link.rmdir()
    link.symlink_to(outside)
    assert Sources.find(board.path).ddr is None


def test_a_fifo_among_the_files_does_not_block(board: FakeRoot) -> None:
    place = board.path / "sys/class/devfreq/fdab0000.npu/cur_freq"
    place.unlink()
    os.mkfifo(place)
    with sampler(board) as running:
        found = running.take()
    assert found is not None and found.npu_hz is None


class Stuck(Sources):
    """A board with a sensor that never answers."""

    def sample(self, phase: Phase, at_s: float, *, pid: int, with_load: bool) -> Sample:
        released.wait(120)
        return super().sample(phase, at_s, pid=pid, with_load=with_load)


released = threading.Event()


def test_a_sensor_that_hangs_costs_samples_and_not_the_run(board: FakeRoot) -> None:
    good = Sources.find(board.path, ticks_per_s=100)
    stuck = Stuck(**{name: getattr(good, name) for name in good.__dataclass_fields__})
    started = time.monotonic()
    with Sampler(sources=stuck, pid=SELF, patience_s=0.2) as running, running.row() as row:
        pass
    assert time.monotonic() - started < 60
    assert row.samples == ()
    assert not judge(row.samples, STEADY).valid
    released.set()


def test_a_sampler_refuses_more_than_ten_samples_a_second(board: FakeRoot) -> None:
    with pytest.raises(ValueError, match=r"0\.1 s is the shortest"):
        sampler(board, period_s=0.09)


def test_rows_are_measured_one_at_a_time(board: FakeRoot) -> None:
    with sampler(board) as running, running.row(), pytest.raises(RuntimeError, match="open already"):
        running.open_row()
    with pytest.raises(RuntimeError, match="not running"):
        running.take()


def test_the_timed_part_of_a_row_is_judged_without_its_preparation(board: FakeRoot) -> None:
    with sampler(board) as running, running.row() as row:
        board.npu("cur_freq", "300000000\n")
        seen = len(row.samples)
        wait_for(lambda: len(row.samples) >= seen + 3)
        board.npu("cur_freq", "1000000000\n")
        turned = running.now_s()
        wait_for(lambda: running.now_s() > turned + 0.5)
        ended = running.now_s()
    assert [reason.split(":")[0] for reason in judge(row.samples, STEADY).reasons] == ["clock low"]
    timed = between(row.samples, turned + 0.05, ended)
    assert judge(timed, STEADY).valid
    assert [timed[0].phase, timed[-1].phase] == [Phase.BEFORE, Phase.AFTER]
    speed = summarise(timed)["npu_clock_hz"]
    assert speed == {"min": 1_000_000_000, "median": 1_000_000_000, "max": 1_000_000_000}


def test_a_window_keeps_the_nearest_load_on_each_side(board: FakeRoot) -> None:
    with sampler(board) as running:
        one = running.take()
    assert one is not None
    line = [replace(one, at_s=float(n), load=one.load if n % 4 == 0 else None) for n in range(13)]
    kept = between(line, 5.5, 6.5)
    assert [(each.at_s, each.phase) for each in kept] == [
        (4.0, Phase.BEFORE),
        (6.0, Phase.DURING),
        (8.0, Phase.AFTER),
    ]
    with pytest.raises(ValueError, match="cannot end"):
        between(line, 2, 1)


SPIN = "import time\nwhile time.process_time() < 0.6: pass"
"""Uses 0.6 seconds of a CPU, however long that takes on a busy machine."""


def test_load_of_a_child_is_own_and_load_of_a_stranger_is_foreign() -> None:
    def spin() -> float:
        with Sampler(pid=watched) as running, running.row() as row:
            subprocess.run([sys.executable, "-c", SPIN], check=True)
        first, last = row.samples[0], row.samples[-1]
        found = foreign_cpus(row.samples)
        assert found is not None and first.load and last.load
        own.append(last.load.own_s - first.load.own_s)
        return found * (last.at_s - first.at_s)

    own: list[float] = []
    watched = os.getpid()
    spin()
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        watched = stranger.pid
        foreign = spin()
    finally:
        stranger.kill()
        stranger.wait()
    assert own[0] > 0.5
    assert own[1] < 0.1
    assert foreign > 0.3


def test_sampling_takes_little_of_a_cpu() -> None:
    used = time.process_time()
    with Sampler() as running, running.row() as row:
        started = time.monotonic()
        time.sleep(1.5)
        slept = time.monotonic() - started
    assert len(row.samples) <= slept / 0.1 + 3
    assert time.process_time() - used < 0.33 * slept


def test_the_rules_of_a_simulated_run_need_no_clock(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/stat").write_text("cpu  10 0 0 0 0 0 0 0 0 0\ncpu0 10 0 0 0\n")
    (tmp_path / f"proc/{SELF}").mkdir()
    (tmp_path / f"proc/{SELF}/stat").write_text(f"{SELF} (x) S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 9\n")
    with Sampler(tmp_path, pid=SELF) as running, running.row() as row:
        wait_for(lambda: len(row.samples) >= 3)
    assert judge(row.samples, STEADY, Rules(simulated=True)).valid


@given(
    contents=st.lists(st.one_of(st.binary(max_size=60), st.just(b""), st.just(b"9" * 5000)), min_size=4, max_size=8),
    start=st.integers(0, 7),
)
@settings(max_examples=60, deadline=None)
def test_garbage_in_any_file_makes_unknowns_and_never_an_error(contents: list[bytes], start: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = FakeRoot(Path(folder))
        for number, name in enumerate([*BOARD, "proc/stat", f"proc/{SELF}/stat"]):
            root.set(name, "")
            (root.path / name).write_bytes(contents[(start + number * 7) % len(contents)])
        sources = Sources.find(root.path, ticks_per_s=100)
        looks = [
            sources.sample(phase, float(at), pid=SELF, with_load=True)
            for at, phase in enumerate((Phase.BEFORE, Phase.DURING, Phase.AFTER))
        ]
    json.dumps(summarise(looks), allow_nan=False)
    assert not judge(looks, STEADY).valid, "nothing that is unknown passes"
    assert foreign_cpus(looks) is None or foreign_cpus(looks) == 0


def test_a_look_that_ends_after_the_row_does_not_belong_to_it(board: FakeRoot) -> None:
    with sampler(board) as running:
        look = running.take()
    assert look is not None
    row = Row()
    row.begin(look)
    row.during(replace(look, at_s=look.at_s + 1))
    row.stop()
    row.during(replace(look, at_s=look.at_s + 2))
    assert len(row.samples) == 2
