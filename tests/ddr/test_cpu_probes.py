# SPDX-License-Identifier: Apache-2.0
"""ddr_stream and cpu_rate as programs: what they say, what they refuse, and that a wrong element voids a
row."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Build = Callable[..., Path]
SANITIZE = "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all"
CPUS = sorted(os.sched_getaffinity(0))
FIRST = str(CPUS[0])
TINY = ("--seconds", "0.01", "--array-kib", "64")


def run(program: Path, *arguments: str, prefix: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*prefix, str(program), *arguments], capture_output=True, text=True, timeout=120, check=False)


def records(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


def rows(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    return [record for record in records(done) if record["record"] == "row"]


def test_every_op_is_measured_exact_and_in_the_words_of_the_contract(build: Build) -> None:
    done = run(build() / "bin/ddr_stream", "--json", "--cpus", FIRST, *TINY)
    assert done.returncode == 0, done.stderr
    found = records(done)
    assert [record["record"] for record in found] == ["header", *["step", "row"] * 4, "end"]
    assert found[0]["rows"] == 4 and found[0]["library"] is None and "STREAM" in found[0]["method"]
    for row, op, arrays in zip(rows(done), ("read", "write", "copy", "triad"), (1, 1, 2, 3), strict=True):
        assert (row["name"], row["unit"], row["verdict"], row["checked"]) == (
            "cpu_bandwidth",
            "gbps",
            "passed",
            "exact",
        )
        assert row["parameters"] == {"op": op, "threads": 1, "cpus": FIRST}
        assert len(row["samples"]) >= 7 and min(row["samples"]) > 0
        assert row["evidence"]["bytes_per_pass"] == 64 * 1024 * arrays
        start, end = row["evidence"]["timed_window_s"]
        assert start < end


def test_the_rate_is_the_bytes_over_the_time(build: Build) -> None:
    done = run(build() / "bin/ddr_stream", "--json", "--cpus", FIRST, *TINY)
    for row in rows(done):
        for rate, us in zip(row["samples"], row["run_us"]["samples"], strict=True):
            assert rate == pytest.approx(row["evidence"]["bytes_per_pass"] / us / 1000, rel=1e-6)


@pytest.mark.skipif(len(CPUS) < 2, reason="this machine lets us use one CPU only")
def test_bytes_of_all_threads_count(build: Build) -> None:
    two = f"{CPUS[0]},{CPUS[1]}"
    done = run(build() / "bin/ddr_stream", "--json", "--cpus", two, "--op", "triad", "--threads", "1,2", *TINY)
    one, both = rows(done)
    assert both["evidence"]["bytes_per_pass"] == 2 * one["evidence"]["bytes_per_pass"]
    assert len(both["evidence"]["thread_gbps"]) == 2
    assert (one["parameters"]["cpus"], both["parameters"]["threads"]) == (str(CPUS[0]), 2)


FAULTS = [
    ("last", "(arrays)->a[(arrays)->count - 1] ^= 1", "write", "element 8191 of array a of thread 0"),
    ("first", "(arrays)->c[0] ^= 1", "copy", "element 0 of array c of thread 0"),
    ("input", "(arrays)->b[4096] |= 1", "triad", "element 4096 of array b of thread 0"),
    ("untouched", "memory_spoil_output(op, arrays)", "triad", "element 0 of array a of thread 0"),
    ("sum", "sum++", "read", "passes of reading gave a wrong sum"),
]


@pytest.mark.parametrize(("name", "fault", "op", "reason"), FAULTS, ids=[name for name, *_ in FAULTS])
def test_one_wrong_element_voids_the_row(build: Build, name: str, fault: str, op: str, reason: str) -> None:
    broken = build(f"fault-{name}", CFLAGS_EXTRA=f"'-DDDR_FAULT(arrays)={fault}'")
    done = run(broken / "bin/ddr_stream", "--json", "--cpus", FIRST, "--op", op, *TINY)
    (row,) = rows(done)
    assert done.returncode == 1
    assert (row["verdict"], row["median"], row["samples"]) == ("failed", None, [])
    assert reason in row["reason"]


def test_a_wrong_sum_of_work_voids_the_rate(build: Build) -> None:
    broken = build("fault-dot", CFLAGS_EXTRA="-DDOT_FAULT=1")
    done = run(broken / "bin/cpu_rate", "--json", "--cpus", FIRST, "--no-clock", "--split", "even", "--seconds", "0.02")
    (row,) = rows(done)
    assert (done.returncode, row["verdict"], row["median"]) == (1, "failed", None)
    assert "gave another sum" in row["reason"]


def test_each_set_of_cpus_is_rated_both_ways_and_each_cpu_has_a_clock(build: Build) -> None:
    done = run(build() / "bin/cpu_rate", "--json", "--cpus", f"{FIRST};{FIRST}", "--seconds", "0.02")
    assert done.returncode == 0, done.stderr
    clock, *rates = rows(done)
    assert (clock["name"], clock["unit"], clock["parameters"]) == ("cpu_clock", "mhz", {"cpu": CPUS[0]})
    assert 50 < clock["median"] < 10000
    assert [rate["parameters"]["split"] for rate in rates] == ["even", "shared"] * 2
    for rate in rates:
        assert (rate["name"], rate["unit"], rate["checked"], rate["verdict"]) == ("cpu_rate", "gops", "exact", "passed")
        assert sum(rate["evidence"]["thread_shares"]) == pytest.approx(1)


@pytest.mark.parametrize(
    ("program", "arguments", "words"),
    [
        ("ddr_stream", ("--cpus", "5000"), "--cpus must be sets of CPUs"),
        ("ddr_stream", ("--cpus", "1-"), "--cpus must be sets of CPUs"),
        ("ddr_stream", ("--cpus", "1000"), "CPU 1000 of --cpus is not one that this process may use"),
        ("ddr_stream", ("--threads", "0"), "--threads must be up to 16 numbers"),
        ("ddr_stream", ("--threads", "2", "--cpus", FIRST), "more threads than any set"),
        ("ddr_stream", ("--op", "read,read"), "each once"),
        ("ddr_stream", ("--op", "scale"), "read, write, copy and triad"),
        ("ddr_stream", ("--array-kib", "-1"), "--array-kib must be"),
        ("ddr_stream", ("--seconds", "nan"), "--seconds must be a number"),
        ("ddr_stream", ("--split", "even"), "--split is no option"),
        ("ddr_stream", ("--json=1",), "--json takes no value"),
        ("cpu_rate", ("--cpus",), "--cpus needs a value"),
        ("cpu_rate", ("--split", "odd"), "--split must be even, shared or both"),
        ("cpu_rate", ("4-7",), "4-7 is not expected"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_sentence(
    build: Build, program: str, arguments: tuple[str, ...], words: str
) -> None:
    done = run(build() / "bin" / program, *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert words in done.stderr and done.stderr.count("\n") == 1


def test_help_names_every_option_and_ends_well(build: Build) -> None:
    for program in ("ddr_stream", "cpu_rate"):
        done = run(build() / "bin" / program, "--help")
        assert done.returncode == 0 and "--cpus SETS" in done.stdout and "exit codes" in done.stdout


def test_arrays_larger_than_half_of_the_free_memory_are_not_allocated(build: Build) -> None:
    done = run(build() / "bin/ddr_stream", "--json", "--cpus", FIRST, "--op", "triad", "--array-kib", "4194303")
    (row,) = rows(done)
    if row["verdict"] == "passed":
        pytest.skip("this machine has room for 12 GiB")
    assert (done.returncode, row["verdict"], row["median"]) == (3, "could-not-run", None)
    assert "--array-kib" in row["reason"]


def test_the_table_fits_a_terminal(build: Build) -> None:
    done = run(build() / "bin/ddr_stream", "--cpus", FIRST, *TINY)
    assert done.returncode == 0
    assert done.stdout.isascii() and max(map(len, done.stdout.splitlines())) <= 100
    assert sum(line.endswith("passed") for line in done.stdout.splitlines()) == 4


def test_threads_run_on_the_cpus_they_are_pinned_to(build: Build) -> None:
    if len(CPUS) < 2:
        pytest.skip("this machine lets us use one CPU only")
    last = str(CPUS[-1])
    program = build() / "bin/ddr_stream"
    confined = run(program, "--json", "--cpus", last, *TINY, prefix=("taskset", "-c", FIRST))
    assert confined.returncode == 2, "a CPU outside the mask of the process is refused"
    assert run(program, "--json", "--cpus", last, *TINY, prefix=("taskset", "-c", last)).returncode == 0


def test_sanitizers_find_nothing_in_a_whole_run(build: Build) -> None:
    checked = build("sanitized", CFLAGS_EXTRA=SANITIZE)
    stream = run(checked / "bin/ddr_stream", "--json", *TINY)
    rate = run(checked / "bin/cpu_rate", "--json", "--seconds", "0.02")
    assert (stream.returncode, stream.stderr) == (0, "")
    assert (rate.returncode, rate.stderr) == (0, "")


def test_the_thread_sanitizer_finds_no_race(build: Build) -> None:
    checked = build("tsan", CFLAGS_EXTRA="-O1 -g -fsanitize=thread")
    no_layout_tricks = ("setarch", "-R")
    stream = run(checked / "bin/ddr_stream", "--json", *TINY, prefix=no_layout_tricks)
    rate = run(checked / "bin/cpu_rate", "--json", "--seconds", "0.02", prefix=no_layout_tricks)
    if "unexpected memory mapping" in stream.stderr or "setarch" in stream.stderr:
        pytest.skip("the thread sanitizer does not run on this kernel")
    assert (stream.returncode, stream.stderr) == (0, "")
    assert (rate.returncode, rate.stderr) == (0, "")


@pytest.mark.parametrize(
    ("name", "compiler", "emulator"),
    [
        ("clang", "clang", ()),
        ("aarch64", "aarch64-linux-gnu-gcc", ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu")),
        ("armhf", "arm-linux-gnueabihf-gcc", ("qemu-arm", "-L", "/usr/arm-linux-gnueabihf")),
    ],
)
def test_other_compilers_and_machines_build_and_run_it(
    build: Build, name: str, compiler: str, emulator: tuple[str, ...]
) -> None:
    folder = build(name, CC=compiler)
    if emulator and subprocess.run(["which", emulator[0]], capture_output=True, check=False).returncode:
        pytest.skip(f"{emulator[0]} is not installed")
    stream = run(folder / "bin/ddr_stream", "--json", "--cpus", FIRST, *TINY, prefix=emulator)
    rate = run(folder / "bin/cpu_rate", "--json", "--cpus", FIRST, "--seconds", "0.02", prefix=emulator)
    assert {row["verdict"] for row in rows(stream) + rows(rate)} == {"passed"}
    assert (stream.returncode, rate.returncode) == (0, 0)


def test_no_pass_calls_a_library_copy(build: Build) -> None:
    """memcpy and memset store in another way for large blocks: the passes must not become calls of them."""
    for name, variables in (("plain", {}), ("clang", {"CC": "clang"})):
        folder = build(name, **variables)
        listing = subprocess.run(
            ["objdump", "-dr", str(folder / "obj/probes/ddr_kernels.o")], capture_output=True, text=True, check=True
        ).stdout
        body = listing.split("<memory_pass>:")[1].split(">:\n")[0]
        assert "memcpy" not in body and "memset" not in body
