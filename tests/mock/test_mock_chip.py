# SPDX-License-Identifier: Apache-2.0
"""The modelled chip on a clock of the test's own: cost of a run, contention, queues. No time passes here."""

from __future__ import annotations

import ctypes as c
import math
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c_probes import mock
from tests.mock.mock_client import BUILD, ROOT

SOURCES = ("chip.c", "timing_cost.c", "timing_params.c", "timing_sets.c", "persona.c")


class Cost(c.Structure):
    _fields_ = [("fixed", c.c_double), ("compute", c.c_double), ("memory", c.c_double)]


class Job(c.Structure):
    pass


Job._fields_ = [
    ("cost", Cost),
    ("stretch", c.c_double),
    ("left", c.c_double),
    ("done_at", c.c_double),
    ("done", c.c_bool),
    ("core", c.c_int),
    ("next", c.POINTER(Job)),
]


class Chip(c.Structure):
    _fields_ = [("head", c.POINTER(Job) * 3), ("tail", c.POINTER(Job) * 3), ("at", c.c_double)]


class Work(c.Structure):
    _fields_ = [
        ("type", c.c_void_p),
        ("M", c.c_int),
        ("K", c.c_int),
        ("N", c.c_int),
        ("native", c.c_bool),
        ("bytes", c.c_double),
        ("mask", c.c_uint),
    ]


class Point(c.Structure):
    _fields_ = [*((name, c.c_int) for name in ("type", "M", "K", "N", "native")), ("tops", c.c_double)]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[c.CDLL]:
    """The model's own files as a library of their own."""
    out = tmp_path_factory.mktemp("chip") / "chip.so"
    folder = ROOT / "c_probes" / "mock"
    includes = [f"-I{folder / 'src'}", f"-I{ROOT / 'c_probes' / 'include'}"]
    command = ["cc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-fPIC", "-shared", *includes]
    subprocess.run([*command, *(str(folder / "src" / name) for name in SOURCES), "-lm", "-o", str(out)], check=True)
    library = c.CDLL(str(out))
    library.mock_timing_cost.restype = Cost
    library.mock_type_find.restype = c.c_void_p
    library.mock_chip_next.restype = c.c_double
    library.mock_chip_next.argtypes = [c.POINTER(Chip), c.c_void_p]
    library.mock_chip_advance.argtypes = [c.POINTER(Chip), c.c_void_p, c.c_double]
    library.mock_chip_submit.argtypes = [c.POINTER(Chip), c.POINTER(Job), c.c_int]
    library.mock_chip_pick_core.argtypes = [c.POINTER(Chip), c.c_int, c.c_uint]
    yield library


def timing(model: c.CDLL, name: str, **overrides: float | str) -> c.Array[c.c_char]:
    """A shipped set with some parameters changed."""
    sets = {entry.name: entry.parameters for entry in mock.timing_sets(BUILD / "mock" / "librknnrt.so")}
    block, error = c.create_string_buffer(8192), c.create_string_buffer(512)
    for key, value in {**sets[name], **overrides}.items():
        code = model.mock_timing_set_value(block, key.encode(), str(value).encode(), error, 512)
        assert code == 0, error.value
    return block


def cost(model: c.CDLL, block: c.Array[c.c_char], code: int, shape: tuple[int, int, int], **more: float) -> Cost:
    M, K, N = shape
    size = more.get("size", M * K + K * N + 4 * M * N)
    work = Work(model.mock_type_find(code), M, K, N, bool(more.get("native", 0)), size, 0)
    result = model.mock_timing_cost(block, None, c.c_size_t(0), c.byref(work))
    assert isinstance(result, Cost)
    return result


@dataclass
class Planned:
    """One run: when it is submitted, on which core, and its parts in seconds."""

    at: float
    core: int
    fixed: float
    compute: float
    memory: float


def by_model(model: c.CDLL, block: c.Array[c.c_char], plan: list[Planned], look: float | None = None) -> list[float]:
    """Completion times of the plan on the mock's chip. ``look``: also advance at every multiple of this time."""
    chip, jobs = Chip(), []
    events = sorted(range(len(plan)), key=lambda i: plan[i].at)
    for i in events:
        entry = plan[i]
        step = chip.at
        while look and step + look < entry.at:
            step += look
            model.mock_chip_advance(c.byref(chip), block, step)
        model.mock_chip_advance(c.byref(chip), block, entry.at)
        job = Job(Cost(entry.fixed, entry.compute, entry.memory), 1.0)
        model.mock_chip_submit(c.byref(chip), c.byref(job), entry.core)
        jobs.append((i, job))
    model.mock_chip_advance(c.byref(chip), block, 1e9)
    assert all(job.done for _, job in jobs)
    return [job.done_at for _, job in sorted(jobs, key=lambda pair: pair[0])]


def by_small_steps(plan: list[Planned], share: dict[int, float], crowd: float, step: float) -> list[float]:
    """The same by brute force: in every step each core's first job does its part at the speed of that moment.

    ``crowd``: how many cores the shared bandwidth feeds at full speed.
    """
    done, left, now = [math.inf] * len(plan), [1.0] * len(plan), 0.0
    order = sorted(range(len(plan)), key=lambda i: plan[i].at)
    while any(value == math.inf for value in done):
        heads: dict[int, int] = {}
        for i in order:
            if plan[i].at <= now + step / 2 and done[i] == math.inf:
                heads.setdefault(plan[i].core, i)
        running = len(heads)
        for i in heads.values():
            memory = plan[i].memory * max(1.0, running / crowd)
            whole = plan[i].fixed + max(plan[i].compute / share.get(running, 1.0), memory)
            left[i] -= step / whole
            if left[i] <= 1e-9:
                done[i] = now + step
        now += step
    return done


@given(
    plan=st.lists(
        st.builds(
            Planned,
            at=st.integers(0, 40).map(lambda n: n / 4),
            core=st.integers(0, 2),
            fixed=st.sampled_from([0.1, 0.5]),
            compute=st.sampled_from([0.5, 1.0, 4.0]),
            memory=st.sampled_from([0.0, 0.5, 3.0]),
        ),
        min_size=1,
        max_size=6,
    ),
    look=st.sampled_from([None, 0.3]),
)
@settings(max_examples=60, deadline=None)
def test_completions_agree_with_a_simulation_in_small_steps(
    model: c.CDLL, plan: list[Planned], look: float | None
) -> None:
    block = timing(model, "campaign", share2=0.5, share3=0.25, bw_core_gbps=10, bw_shared_gbps=15)
    step = 0.004
    slow = by_small_steps(plan, {2: 0.5, 3: 0.25}, 1.5, step)
    fast = by_model(model, block, plan, look)
    # Each start and end of a neighbour may be seen up to one step late, at most at four times the speed.
    assert fast == pytest.approx(slow, abs=step * 8 * len(plan))


def test_the_campaign_set_gives_the_published_figures(model: c.CDLL) -> None:
    block = timing(model, "campaign")
    macs = 4096**3
    one = cost(model, block, 2, (4096, 4096, 4096))
    run = Planned(0, 0, one.fixed, one.compute, one.memory)
    tops = {}
    for contexts in (1, 2, 3):
        plan = [Planned(0, core, run.fixed, run.compute, run.memory) for core in range(contexts)]
        tops[contexts] = contexts * 2 * macs / max(by_model(model, block, plan)) / 1e12
    assert tops == pytest.approx({1: 0.69, 2: 1.29, 3: 1.83}, rel=1e-3)
    for native in (0, 1):
        other = cost(model, block, 2, (4096, 4096, 4096), native=native)
        assert (other.fixed, other.compute) == (one.fixed, one.compute)
    long = cost(model, block, 2, (512, 15360, 4096))
    assert long.compute / (512 * 15360 * 4096) == pytest.approx(14 * one.compute / macs)
    edge = cost(model, block, 2, (512, 8192, 4096))
    assert edge.compute / (512 * 8192 * 4096) == pytest.approx(one.compute / macs)


def test_one_row_costs_the_fixed_time_and_its_bytes(model: c.CDLL) -> None:
    block = timing(model, "campaign")
    one = cost(model, block, 2, (1, 4096, 4096), size=4096 * 4096)
    assert one.fixed == pytest.approx(32.9e-6)
    assert one.memory == pytest.approx(4096 * 4096 / 11.1e9)
    assert one.memory > one.compute
    plan = [Planned(0, core, 0, 0, one.memory) for core in range(3)]
    assert 3 * 4096 * 4096 / max(by_model(model, block, plan)) == pytest.approx(26.6e9)


def test_rates_follow_m_and_layout_between_the_points(model: c.CDLL) -> None:
    block = timing(model, "rk3588", rate_i8_native="100:2/400:1", rate_i8_norm="0.5")

    def tops(M: int, native: int) -> float:
        found = cost(model, block, 2, (M, 512, 512), native=native)
        return float(2 * M * 512 * 512 / found.compute / 1e12)

    assert [tops(M, 1) for M in (1, 100, 200, 400, 4000)] == pytest.approx([2, 2, 1.5, 1, 1])
    assert tops(1, 0) == pytest.approx(0.5)


def test_measured_shapes_take_the_place_of_the_rates(model: c.CDLL) -> None:
    block = timing(model, "campaign")
    points = (Point * 2)(Point(2, 512, 4096, 4096, 0, 0.4), Point(2, 1, 4096, 4096, 0, 0.02))

    def seconds(code: int, M: int, K: int) -> float:
        work = Work(model.mock_type_find(code), M, K, 4096, False, 1, 0)
        found = model.mock_timing_cost(block, points, c.c_size_t(2), c.byref(work))
        return float(found.fixed + max(found.compute, found.memory))

    assert seconds(2, 512, 4096) == pytest.approx(2 * 512 * 4096**2 / 0.4e12)
    assert seconds(2, 1, 4096) == pytest.approx(2 * 4096**2 / 0.02e12)
    assert seconds(2, 512, 2048) == pytest.approx(32.9e-6 + (2 * 512 * 4096**2 / 0.4e12 - 32.9e-6) / 2)
    work = Work(model.mock_type_find(2), 1, 4096, 4096, False, 1e9, 0)
    streamed = model.mock_timing_cost(block, points, c.c_size_t(2), c.byref(work))
    assert streamed.memory == streamed.compute > 0
    assert seconds(1, 512, 2048) == pytest.approx(32.9e-6 + 2 * 512 * 2048 * 4096 / 0.388e12)


def test_auto_takes_an_idle_core_and_else_the_shortest_queue(model: c.CDLL) -> None:
    chip, jobs = Chip(), [Job(Cost(1, 0, 0), 1.0) for _ in range(5)]

    def pick(mask: int = 0) -> int:
        return int(model.mock_chip_pick_core(c.byref(chip), 3, mask))

    assert pick() == 0
    for job, core in zip(jobs, (0, 1, 1, 0, 2), strict=True):
        model.mock_chip_submit(c.byref(chip), c.byref(job), core)
    assert pick() == 2
    assert [pick(mask) for mask in (1, 2, 4)] == [0, 1, 2]


def test_source_files_of_the_model_wait_for_nothing() -> None:
    for name in ("chip.c", "timing_cost.c"):
        text = (Path(ROOT) / "c_probes" / "mock" / "src" / name).read_text()
        assert not any(word in text for word in ("nanosleep", "pthread", "clock_gettime")), name
