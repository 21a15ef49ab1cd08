# SPDX-License-Identifier: Apache-2.0
"""Parts of the CPU probes, called one by one: CPU lists, default sets, arithmetic of the passes and of the
work."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conditions.condition_roots import FakeRoot

MAX_CPUS_IN_SET, MAX_CPU_SETS, CPU_TEXT = 64, 16, 160
GOLDEN = 0x9E3779B97F4A7C15


class Group(ctypes.Structure):
    _fields_ = (("cpu", ctypes.c_int * MAX_CPUS_IN_SET), ("count", ctypes.c_int))

    def cpus(self) -> list[int]:
        return list(self.cpu[: self.count])


class Groups(ctypes.Structure):
    _fields_ = (("group", Group * MAX_CPU_SETS), ("count", ctypes.c_int))


class Arrays(ctypes.Structure):
    _fields_ = (("a", ctypes.c_void_p), ("b", ctypes.c_void_p), ("c", ctypes.c_void_p), ("count", ctypes.c_size_t))


class Wrong(ctypes.Structure):
    _fields_ = (
        ("array", ctypes.c_char),
        ("index", ctypes.c_size_t),
        ("got", ctypes.c_double),
        ("expected", ctypes.c_double),
    )


@pytest.fixture(scope="session")
def parts(build: Callable[..., Path]) -> ctypes.CDLL:
    library = ctypes.CDLL(str(build() / "lib/libcpuparts.so"))
    library.cpus_parse.restype = library.cpus_parse_groups.restype = ctypes.c_bool
    library.cpus_allowed.restype = Group
    for name in ("cpus_last_level_cache", "memory_available", "memory_check"):
        getattr(library, name).restype = ctypes.c_size_t
    for name in ("memory_pass", "memory_expected_sum", "add_chain"):
        getattr(library, name).restype = ctypes.c_uint64
    library.dot_unit.restype = library.dot_expected.restype = ctypes.c_int64
    library.dot_macs.restype = ctypes.c_double
    return library


def parse(parts: ctypes.CDLL, text: str) -> list[int] | None:
    group = Group()
    good = parts.cpus_parse(text.encode(), ctypes.byref(group))
    return group.cpus() if good else None


def text_of(parts: ctypes.CDLL, cpus: list[int]) -> str:
    group, text = Group(), ctypes.create_string_buffer(CPU_TEXT)
    group.count = len(cpus)
    group.cpu[: len(cpus)] = cpus
    parts.cpus_text(ctypes.byref(group), text)
    return text.value.decode()


@given(cpus=st.lists(st.integers(0, 1023), min_size=1, max_size=25, unique=True))
@settings(max_examples=200, deadline=None)
def test_a_set_of_cpus_survives_its_text(parts: ctypes.CDLL, cpus: list[int]) -> None:
    assert parse(parts, text_of(parts, cpus)) == sorted(cpus)
    assert parse(parts, ",".join(map(str, cpus))) == cpus


@given(text=st.text(alphabet="0123456789-,; \n", max_size=30))
@settings(max_examples=500, deadline=None)
def test_a_list_is_read_right_or_refused(parts: ctypes.CDLL, text: str) -> None:
    found = parse(parts, text)
    if found is not None:
        wanted: list[int] = []
        for part in text.replace(" ", ",").strip("\n,").split(","):
            first, _, last = part.partition("-")
            wanted += [cpu for cpu in range(int(first), int(last or first) + 1) if cpu not in wanted]
        assert found == wanted and max(found) < 1024


@pytest.mark.parametrize(
    "text", ["", ",", "a", "1,", ",1", "1-", "-1", "3-1", "1;", "0x1", "1024", "1,,2", "0-64", "+1", "99999999999"]
)
def test_what_is_no_list_is_refused(parts: ctypes.CDLL, text: str) -> None:
    assert parse(parts, text) is None


def test_the_kernels_own_lists_are_read(parts: ctypes.CDLL) -> None:
    assert parse(parts, "0 1 2 3 \n") == [0, 1, 2, 3]
    assert parse(parts, "4-7\n") == [4, 5, 6, 7]


def test_sets_are_separated_by_semicolons(parts: ctypes.CDLL) -> None:
    groups = Groups()
    assert parts.cpus_parse_groups(b"0,1;4-7", ctypes.byref(groups))
    assert [groups.group[i].cpus() for i in range(groups.count)] == [[0, 1], [4, 5, 6, 7]]
    for wrong in (b"", b";", b"0;", b";0", b"0;;1", b"0;a", b";".join([b"1"] * 17)):
        assert not parts.cpus_parse_groups(wrong, ctypes.byref(groups))


def default_sets(parts: ctypes.CDLL, root: Path, allowed: list[int], each_policy: bool) -> list[str]:
    groups, group = Groups(), Group()
    group.count = len(allowed)
    group.cpu[: len(allowed)] = allowed
    parts.cpus_default_groups(str(root).encode(), ctypes.byref(group), each_policy, ctypes.byref(groups))
    return [text_of(parts, groups.group[i].cpus()) for i in range(groups.count)]


def rk3588(root: Path) -> FakeRoot:
    fake = FakeRoot(root)
    for policy, cpus, khz in ((0, "0 1 2 3 \n", 1800000), (4, "4 5 \n", 2304000), (6, "6 7 \n", 2352000)):
        fake.set(f"sys/devices/system/cpu/cpufreq/policy{policy}/related_cpus", cpus)
        fake.set(f"sys/devices/system/cpu/cpufreq/policy{policy}/cpuinfo_max_freq", f"{khz}\n")
    return fake


def test_the_sets_of_rk3588_are_little_each_big_pair_all_big_and_all(parts: ctypes.CDLL, tmp_path: Path) -> None:
    rk3588(tmp_path)
    assert default_sets(parts, tmp_path, list(range(8)), True) == ["0-3", "4-5", "6-7", "4-7", "0-7"]
    assert default_sets(parts, tmp_path, list(range(8)), False) == ["0-3", "4-7", "0-7"]


def test_cpus_that_may_not_be_used_are_left_out(parts: ctypes.CDLL, tmp_path: Path) -> None:
    rk3588(tmp_path)
    assert default_sets(parts, tmp_path, [4, 5], True) == ["4-5"]
    assert default_sets(parts, tmp_path, [0, 4, 6], False) == ["0", "4,6", "0,4,6"]


def test_a_machine_without_cpufreq_has_one_set(parts: ctypes.CDLL, tmp_path: Path) -> None:
    assert default_sets(parts, tmp_path, [0, 1], True) == ["0-1"]


def test_caches_and_memory_are_read_from_the_root(parts: ctypes.CDLL, tmp_path: Path) -> None:
    fake, group = FakeRoot(tmp_path), Group()
    for level, size in enumerate(("64K", "64K", "512K", "3072K")):
        fake.set(f"sys/devices/system/cpu/cpu4/cache/index{level}/size", size + "\n")
    fake.set("proc/meminfo", "MemTotal:        2000 kB\nMemFree:  1 kB\nMemAvailable:    1500 kB\n")
    group.count, group.cpu[0] = 1, 4
    root = str(tmp_path).encode()
    assert parts.cpus_last_level_cache(root, ctypes.byref(group)) == 3 * 1024 * 1024
    assert parts.memory_available(root) == 1500 * 1024
    group.cpu[0] = 5
    assert parts.cpus_last_level_cache(root, ctypes.byref(group)) == 0
    assert parts.memory_available(b"/nowhere") == 0


def aligned(count: int) -> np.ndarray:
    raw = np.zeros(count + 8, dtype=np.uint64)
    start = (-raw.ctypes.data // 8) % 8
    return raw[start : start + count]


def prepared(parts: ctypes.CDLL, op: int, count: int) -> tuple[Arrays, dict[str, np.ndarray]]:
    memory = {"a": aligned(count), "b": aligned(count), "c": aligned(count)}
    used = {0: "a", 1: "a", 2: "ac", 3: "abc"}[op]
    arrays = Arrays(count=count)
    for name in used:
        setattr(arrays, name, memory[name].ctypes.data)
    parts.memory_prepare(op, ctypes.byref(arrays))
    return arrays, memory


@pytest.mark.parametrize("count", [16, 32, 1024, 16 * 1021])
def test_the_passes_do_what_numpy_does(parts: ctypes.CDLL, count: int) -> None:
    index = np.arange(count, dtype=np.uint64)
    pattern = index * np.uint64(GOLDEN) + np.uint64(1)
    arrays, memory = prepared(parts, 0, count)
    assert (memory["a"] == pattern).all()
    total = int(pattern.astype(object).sum()) % 2**64
    assert parts.memory_pass(0, ctypes.byref(arrays)) == total
    assert parts.memory_expected_sum(ctypes.c_size_t(count)) == total

    arrays, memory = prepared(parts, 1, count)
    assert len(set(memory["a"].tolist())) == count
    parts.memory_pass(1, ctypes.byref(arrays))
    assert set(memory["a"].tolist()) == {0x0123456789ABCDEF}

    arrays, memory = prepared(parts, 2, count)
    assert not (memory["c"] == memory["a"]).any()
    parts.memory_pass(2, ctypes.byref(arrays))
    assert (memory["c"] == pattern).all()

    arrays, memory = prepared(parts, 3, count)
    parts.memory_pass(3, ctypes.byref(arrays))
    real = {name: values.view(np.float64) for name, values in memory.items()}
    assert (real["b"] == index % 1021).all() and (real["c"] == index % 4093).all()
    assert (real["a"] == real["b"] + 3 * real["c"]).all()


@given(op=st.integers(0, 3), where=st.integers(0, 1023), bit=st.integers(0, 63), which=st.sampled_from("abc"))
@settings(max_examples=150, deadline=None)
def test_one_flipped_bit_anywhere_is_found(parts: ctypes.CDLL, op: int, where: int, bit: int, which: str) -> None:
    arrays, memory = prepared(parts, op, 1024)
    wrong = Wrong()
    parts.memory_pass(op, ctypes.byref(arrays))
    assert parts.memory_check(op, ctypes.byref(arrays), ctypes.byref(wrong)) == 0
    if not getattr(arrays, which):
        return
    memory[which][where] ^= np.uint64(1) << np.uint64(bit)
    assert parts.memory_check(op, ctypes.byref(arrays), ctypes.byref(wrong)) == 1
    assert (wrong.array.decode(), wrong.index) == (which, where)


@pytest.mark.parametrize("op", [1, 2, 3])
def test_an_output_that_was_not_written_is_wrong_in_every_element(parts: ctypes.CDLL, op: int) -> None:
    arrays, _ = prepared(parts, op, 256)
    assert parts.memory_check(op, ctypes.byref(arrays), ctypes.byref(Wrong())) == 256
    parts.memory_pass(op, ctypes.byref(arrays))
    parts.memory_spoil_output(op, ctypes.byref(arrays))
    assert parts.memory_check(op, ctypes.byref(arrays), ctypes.byref(Wrong())) == 256


def test_the_work_gives_the_sum_that_numpy_gives(parts: ctypes.CDLL) -> None:
    data = np.zeros((2, 4, 2048), dtype=np.int8)
    parts.dot_fill(data.ctypes.data_as(ctypes.c_void_p))
    a, b = data.astype(np.int64)
    assert len(np.unique(data)) > 200
    expected = 8 * int((a @ b.T).sum())
    pointer = data.ctypes.data_as(ctypes.c_void_p)
    assert parts.dot_unit(pointer) == expected
    assert parts.dot_expected(pointer) == expected
    assert parts.dot_macs() == 8 * 4 * 4 * 2048


@given(value=st.integers(-128, 127), other=st.integers(-128, 127))
@settings(max_examples=60, deadline=None)
def test_the_work_is_exact_at_the_ends_of_int8(parts: ctypes.CDLL, value: int, other: int) -> None:
    data = np.zeros((2, 4, 2048), dtype=np.int8)
    data[0], data[1] = value, other
    assert parts.dot_unit(data.ctypes.data_as(ctypes.c_void_p)) == value * other * 2048 * 16 * 8


@given(value=st.integers(0, 2**64 - 1), step=st.integers(0, 2**64 - 1), rounds=st.integers(0, 50))
@settings(max_examples=60, deadline=None)
def test_the_chain_adds_a_thousand_times_a_round(parts: ctypes.CDLL, value: int, step: int, rounds: int) -> None:
    found = parts.add_chain(ctypes.c_uint64(value), ctypes.c_uint64(step), ctypes.c_uint64(rounds))
    assert found == (value + step * 1000 * rounds) % 2**64


class Team(ctypes.Structure):
    _fields_ = (("bytes", ctypes.c_char * 65536),)


def test_a_thread_that_cannot_be_pinned_is_told_and_nothing_is_left_running(parts: ctypes.CDLL) -> None:
    group, why = Group(), ctypes.create_string_buffer(200)
    group.count, group.cpu[0] = 1, 1023
    parts.team_start.restype = ctypes.c_bool
    assert not parts.team_start(ctypes.byref(Team()), ctypes.byref(group), 1, why, ctypes.c_size_t(200))
    assert why.value == b"thread 1 could not be pinned to CPU 1023"
