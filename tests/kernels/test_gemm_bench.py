# SPDX-License-Identifier: Apache-2.0
"""The bench of the int8 kernels judges what it measured, and says what it did not measure."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import gemm_s8
from bench.gemm_s8 import Contender, judge, start, table

ISA = "AVX2"


def contender(name: str, us: dict[int, float], *, held: bool = False, turns: int = 3) -> Contender:
    """A contender of which `turns` turns were measured, each run of a turn taking `us` microseconds."""
    process = subprocess.Popen(["true"], text=True)
    process.wait()
    made = Contender(name, held, process, tuple(us))
    made.about = {"note": "", "prepare_s": 0.0, **{f"verdict_M{M}": "exact" for M in us}}
    made.turns = {M: [{"samples_us": [t, t, t * 9]}] * turns for M, t in us.items()}
    return made


def field(own: dict[int, float], held_us: float = 20.0, ort_us: float = 3.0, turns: int = 3) -> list[Contender]:
    """The kernels and all their peers."""
    unheld = [contender(name, {1: 9.0, 512: 15.0}) for name in ("torch", "torch-t", "numpy-f32", "numpy-f32-t")]
    held = [contender(name, {512: held_us}, held=True) for name in ("torch", "torch-t")]
    ort = [contender("ort-u8s8", {1: ort_us}, turns=turns), contender("ort-s8s8", {1: 90.0})]
    return [contender("kernels", own), *unheld, *held, *ort]


def test_bars_are_met_when_the_kernels_are_at_least_as_fast_as_the_fastest_peer() -> None:
    lines, status = judge(field({1: 3.0, 512: 20.0}), ISA, 3, [])
    assert status == 0
    assert "M=1: against the fastest peer (ort-u8s8): 1.00 times" in lines[0]
    assert lines[0].endswith("bar 1.00: met")
    assert lines[1].startswith(f"M=512: against torch._int_mm held to {ISA}")
    assert "0.75 times" in lines[2]
    assert lines[2].endswith("for information")


@pytest.mark.parametrize("own", [{1: 3.1, 512: 20.0}, {1: 3.0, 512: 20.5}])
def test_a_slower_kernel_misses_its_bar(own: dict[int, float]) -> None:
    lines, status = judge(field(own), ISA, 3, [])
    assert status == 1
    assert sum(line.endswith("MISSED") for line in lines) == 1


def test_too_few_quiet_turns_are_not_a_pass() -> None:
    lines, status = judge(field({1: 1.0, 512: 1.0}, turns=2), ISA, 3, [])
    assert status == 3
    assert lines[0] == "M=1: against the fastest peer: not measured, too few quiet turns"


def test_a_missing_peer_is_named_beside_the_bar() -> None:
    without_ort = [c for c in field({1: 1.0, 512: 1.0}) if not c.name.startswith("ort")]
    lines, status = judge(without_ort, ISA, 3, ["peer missing: ort-u8s8: no module"])
    assert lines[0] == "peer missing: ort-u8s8: no module"
    assert "without ort-u8s8, ort-s8s8" in lines[1]
    assert status == 0
    nobody = [contender("kernels", {1: 1.0, 512: 1.0})]
    assert all("not measured, missing: torch" in line for line in judge(nobody, ISA, 3, [])[0])


def test_a_wrong_result_fails_however_fast() -> None:
    contenders = field({1: 1.0, 512: 1.0})
    contenders[0].about["verdict_M512"] = "inexact"
    assert judge(contenders, ISA, 3, [])[1] == 1


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[Contender]]:
    """Real children: the kernels, and a peer that this interpreter may lack."""
    monkeypatch.setattr(gemm_s8, "OUT", tmp_path)
    monkeypatch.setattr(gemm_s8, "TURN_S", 0.02)
    args = argparse.Namespace(threads=2, path="c", python=sys.executable)
    started = [start(name, None, (1,), args) for name in ("kernels", "torch")]
    yield started
    for child in started:
        child.process.kill()
        child.process.communicate()


def test_a_contender_measures_checks_and_answers(live: list[Contender], monkeypatch: pytest.MonkeyPatch) -> None:
    kernels, torch = live
    assert kernels.about["note"] == "path c"
    assert "error" in torch.about or torch.about["note"].startswith("torch")
    monkeypatch.setattr(gemm_s8, "FOREIGN_SHARE", 1e9)
    assert kernels.turn(1)
    assert kernels.about["verdict_M1"] == "exact"
    assert kernels.gops(1) > 0
    assert any("M=1" in line and "exact, path c" in line for line in table([kernels], None))
    monkeypatch.setattr(gemm_s8, "FOREIGN_SHARE", -1e9)
    assert not kernels.turn(1)
    assert (kernels.discarded, len(kernels.turns[1])) == (1, 1)
    kernels.process.kill()
    assert kernels.turn(1)
    assert "ended with status" in kernels.about["error_M1"]
    assert kernels.shapes == ()
