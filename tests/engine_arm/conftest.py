# SPDX-License-Identifier: Apache-2.0
"""Model files, what this machine makes of them, and the Arm systems."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine_arm.arm_system import AARCH64, ARMHF, Machine, NoSystem, build_kernels, prepare
from tests.gguf import crafted_gguf as craft
from tests.gguf.random_models import ARCHITECTURES, Recipe
from tests.hybrids.random_files import gemma4, qwen35
from tests.mock.mock_client import BUILD, ROOT

# One of each architecture with quantised weights, and one of each with what else its files may have, in f32.
OPTIONS = {
    "llama": {"factors", "biases", "untied"},
    "qwen2": {"yarn"},
    "qwen3": {"untied"},
    "gemma2": {"soft caps"},
    "gemma3": {"linear", "logit cap", "pattern"},
}


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``<architecture>.gguf`` in Q8_0 and ``<architecture>-f32.gguf`` in F32, and two hybrids in F32."""
    folder = tmp_path_factory.mktemp("models")
    for name in ARCHITECTURES:
        (folder / f"{name}.gguf").write_bytes(Recipe(name, kind=craft.GGML_Q8_0).file())
        options = frozenset(OPTIONS[name])
        (folder / f"{name}-f32.gguf").write_bytes(Recipe(name, options, layers=2 if name != "gemma3" else 0).file())
    for name, written in (("gemma4", gemma4("shared")), ("qwen35", qwen35())):
        (folder / f"{name}.gguf").write_bytes(written.file())
    return folder


def hashes(text: str) -> tuple[str, dict[str, str]]:
    """The machine line, and the hash of each case, of what forward_hashes prints."""
    first, *lines = text.splitlines()
    return first, dict(line.rsplit(" ", 1) for line in lines)


def hashes_here(models: Path, path: str, *cases: str) -> dict[str, str]:
    """What this machine makes of the cases, on that path of its kernels."""
    subprocess.run(
        ["make", "-s", "-C", str(ROOT / "reference_engine" / "kernels"), f"BUILD={BUILD}"],
        check=True,
        capture_output=True,
    )
    clean = {key: value for key, value in os.environ.items() if key != "RKNPU_KIT_KERNELS"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.engine_arm.forward_hashes", str(models), str(BUILD), path, "2", *cases],
        cwd=ROOT, env=clean, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found = hashes(done.stdout)[1]
    assert found.keys() == set(cases)
    return found


def system(machine: Machine) -> tuple[Machine, Path]:
    """The machine's Python and kernels, made once. Without them the test skips, but not where CI is set."""
    try:
        prepare(machine)
        return machine, build_kernels(machine)
    except NoSystem as missing:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"no {machine.architecture} Python here: {missing}")


@pytest.fixture(scope="session")
def aarch64() -> tuple[Machine, Path]:
    return system(AARCH64)


@pytest.fixture(scope="session")
def armhf() -> tuple[Machine, Path]:
    return system(ARMHF)
