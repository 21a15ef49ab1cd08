# SPDX-License-Identifier: Apache-2.0
"""A whole forward pass has the same bits on x86-64, aarch64 and 32-bit Arm, by C and by NumPy."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine_arm.arm_system import Machine, python
from tests.engine_arm.conftest import hashes, hashes_here
from tests.gguf.random_models import ARCHITECTURES

pytestmark = pytest.mark.arm

EVERY_ARCHITECTURE = [
    f"{name}{kind}|{backend}|f16|full"
    for name in ARCHITECTURES
    for kind in ("", "-f32")
    for backend in ("float", "npu:w8a8-per-channel")
]
EVERY_PIPELINE = [
    f"llama|npu:{preset}|f16|full"
    for preset in (
        "w8a8-segment",
        "w8a8-rank-one",
        "w8a8-hadamard",
        "w8a8-hadamard-padded",
        "w4a4",
        "w4a4-hadamard",
        "w16a16",
        "w16a16-hadamard",
        "w8a8-per-tensor-both",
        "w8a8-per-channel,k_limit=64,fma=off",
        "w8a8-per-channel,k_limit=64,fma=on",
    )
]
EVERY_CACHE = [f"gemma3|float|{kv}|full" for kv in ("f32", "q8_0", "q4_0")]
FLASH = ["llama|float|f16|flash", "llama|float|q4_0|flash", "gemma2-f32|npu:w8a8-per-channel|q8_0|flash"]
HYBRIDS = [
    f"{name}|{backend}|f16|full" for name in ("gemma4", "qwen35") for backend in ("float", "npu:w8a8-per-channel")
]
CASES = [*EVERY_ARCHITECTURE, *HYBRIDS, *EVERY_PIPELINE, *EVERY_CACHE, *FLASH]
BY_NUMPY = [
    "llama-f32|float|f16|full",
    "qwen35|float|f16|full",
    "gemma2-f32|npu:w8a8-per-channel|f16|full",
    "gemma3-f32|float|q8_0|full",
    "qwen2-f32|npu:w16a16|f32|full",
    "qwen3-f32|npu:w8a8-hadamard|q4_0|flash",
]


@pytest.fixture(scope="module")
def right(models: Path) -> dict[str, str]:
    """What the best path of this machine makes of every case."""
    return hashes_here(models, "", *dict.fromkeys([*CASES, *BY_NUMPY]))


def test_cases_differ_from_each_other_here(right: dict[str, str]) -> None:
    by_hash: dict[str, list[str]] = {}
    for case, found in right.items():
        by_hash.setdefault(found, []).append(case)
    assert len(right) > 35
    # Twins would be hashes that hold nothing apart.
    assert [twins for twins in by_hash.values() if len(twins) > 1] == []


def test_plain_c_and_numpy_give_these_bits_here(right: dict[str, str], models: Path) -> None:
    assert hashes_here(models, "c", *CASES) == {case: right[case] for case in CASES}
    assert hashes_here(models, "numpy", *BY_NUMPY) == {case: right[case] for case in BY_NUMPY}


@pytest.mark.parametrize(("cpu", "path"), [("cortex-a76", "neon-dot"), ("cortex-a72", "neon")])
def test_every_case_has_the_same_bits_on_aarch64(
    aarch64: tuple[Machine, Path], right: dict[str, str], models: Path, cpu: str, path: str
) -> None:
    machine, build = aarch64
    text = python(machine, cpu, "-m", "tests.engine_arm.forward_hashes", str(models), str(build), "", "2", *CASES)
    ran, found = hashes(text)
    assert ran.split()[:2] == ["aarch64", path]
    assert found == {case: right[case] for case in CASES}


def test_numpy_on_aarch64_gives_the_same_bits(
    aarch64: tuple[Machine, Path], right: dict[str, str], models: Path
) -> None:
    machine, build = aarch64
    text = python(
        machine, "cortex-a76", "-m", "tests.engine_arm.forward_hashes", str(models), str(build), "numpy", "1", *BY_NUMPY
    )
    ran, found = hashes(text)
    assert ran.split()[:2] == ["aarch64", "numpy"]
    assert found == {case: right[case] for case in BY_NUMPY}


def test_every_case_has_the_same_bits_on_32_bit_arm(
    armhf: tuple[Machine, Path], right: dict[str, str], models: Path
) -> None:
    machine, build = armhf
    text = python(
        machine, "cortex-a7", "-m", "tests.engine_arm.forward_hashes", str(models), str(build), "", "2", *CASES
    )
    ran, found = hashes(text)
    assert ran.split()[:2] == ["armv7l", "c"]
    assert found == {case: right[case] for case in CASES}


def test_numpy_of_the_distribution_gives_the_same_bits_on_32_bit_arm(
    armhf: tuple[Machine, Path], right: dict[str, str], models: Path
) -> None:
    # NumPy 1.24 there rounds its f32 square root otherwise; the engine takes none of it.
    machine, build = armhf
    some = BY_NUMPY[:2]
    text = python(
        machine, "cortex-a7", "-m", "tests.engine_arm.forward_hashes", str(models), str(build), "numpy", "1", *some
    )
    ran, found = hashes(text)
    assert ran.split()[:2] == ["armv7l", "numpy"]
    assert found == {case: right[case] for case in some}
