# SPDX-License-Identifier: Apache-2.0
"""What loading costs: one copy of the weights and a few MiB, whatever the file's size."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from reference_engine.kernels.library import KernelLibrary
from tests.linear.crafted_tensor import random_tensor
from tests.mock.mock_client import ROOT

CHILD = """
import mmap, sys
from pathlib import Path
from reference_engine.backends import make_backend
from reference_engine.gguf_tensor import GgufTensor
from reference_engine.gguf_types import TENSOR_TYPES

def peak():  # of this program; ru_maxrss would begin with that of the process that started it
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024

path, n = Path(sys.argv[1]), int(sys.argv[2])
with path.open("rb") as file:
    mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
backend = make_backend(sys.argv[3], threads=2)
before, kept = peak(), []
for i in range(n):
    size = len(mapped) // n
    tensor = GgufTensor(f"w{i}", (2048, size // 2176), TENSOR_TYPES[8], size, i * size, 0, path, mapped)
    kept.append(backend.linear(tensor))
print(peak() - before, len(mapped))
"""


@pytest.mark.parametrize("text", ["npu:w8a8-per-channel", "npu:w8a8-hadamard", "npu:w8a8-segment"])
def test_peak_memory_stays_near_one_copy_of_the_weights(kernels: KernelLibrary, tmp_path: Path, text: str) -> None:
    """A Q8_0 file of 71 MB in four weights: 67 MB of integers may appear, and a tenth on top."""
    tensor = random_tensor(np.random.default_rng(0), "Q8_0", 2048, 256)
    path = tmp_path / "weights"
    with path.open("wb") as file:
        for _ in range(128):
            file.write(tensor.data())
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(path), "4", text], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    grown, size = map(int, done.stdout.split())
    assert size == 128 * 256 * 2176
    assert 0.6 * size < grown < 1.1 * size + (8 << 20)
