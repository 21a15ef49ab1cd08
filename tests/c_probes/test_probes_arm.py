# SPDX-License-Identifier: Apache-2.0
"""The probes built for 64-bit and 32-bit Arm, run by qemu-user: other ABI, other widths, same verdicts."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.c_probes.probe_runs import BUILD, HERE, ROOT, make

pytestmark = pytest.mark.arm
TARGETS = {"aarch64": "aarch64-linux-gnu", "arm": "arm-linux-gnueabihf"}


@pytest.fixture(scope="module", params=sorted(TARGETS))
def target(request: pytest.FixtureRequest) -> tuple[str, Path, Path]:
    """qemu command, build folder and stand-in library of one architecture."""
    machine: str = request.param
    triple = TARGETS[machine]
    if not shutil.which(f"{triple}-gcc") or not shutil.which(f"qemu-{machine}"):
        pytest.skip(f"needs {triple}-gcc and qemu-{machine} (packages gcc-{triple} and qemu-user)")
    build = BUILD / machine
    make("c_probes/src", build, "all", CC=f"{triple}-gcc")
    library = build / "stand_in.so"
    flags = ["-std=gnu11", "-O2", "-shared", "-fPIC", "-fvisibility=hidden", f"-I{ROOT / 'c_probes' / 'include'}"]
    source = HERE / "stand_ins" / "stand_in.c"
    subprocess.run([f"{triple}-gcc", *flags, str(source), "-o", str(library), "-lm"], check=True)
    return machine, build, library


def rows(target: tuple[str, Path, Path], program: str, *arguments: str) -> list[dict[str, Any]]:
    machine, build, library = target
    command = [f"qemu-{machine}", "-L", f"/usr/{TARGETS[machine]}", str(build / "bin" / program)]
    command += ["--json", "--library", str(library), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return [record for record in map(json.loads, done.stdout.splitlines()) if record["record"] == "row"]


def test_every_type_is_right_on_arm(target: tuple[str, Path, Path]) -> None:
    small = ("--seconds", "0.01", "--shape", "33x96x128", "--layout", "both", "--ac-layout", "both")
    found = rows(target, "mm_peak", *small, "--type", "1,2,3,4,9,10")
    assert len(found) == 24
    assert {row["verdict"] for row in found} == {"passed"}


def test_contexts_run_together_on_arm(target: tuple[str, Path, Path]) -> None:
    found = rows(target, "mm_concurrent", "--seconds", "0.05", "--shape", "17x64x64")
    assert [row["verdict"] for row in found] == ["passed"] * 3


def test_type_codes_get_their_verdicts_on_arm(target: tuple[str, Path, Path]) -> None:
    found = rows(target, "mm_dtypes")
    assert [row["parameters"]["type"] for row in found if row["verdict"] == "passed"] == [1, 2, 3, 4, 9, 10]
    assert len(found) == 21
