# SPDX-License-Identifier: Apache-2.0
"""Whole models: logits of the device back end on the mock are the emulation's, and a fault is found by its matmul."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from reference_engine.backends import Linear, MatmulRecord, make_backend
from reference_engine.backends.device import DeviceError
from reference_engine.backends.npu_backend import NpuBackend
from reference_engine.backends.presets import parse_pipeline
from reference_engine.gguf_tensor import GgufTensor
from reference_engine.kernels.library import KernelLibrary
from reference_engine.model import Model
from reference_engine.npu_plan import plan
from tests.device.conftest import MakeDevice
from tests.device.rows import bits
from tests.gguf import crafted_gguf as craft
from tests.gguf.random_models import ARCHITECTURES, OPTIONS, Recipe
from tests.real_model import need_model

TOKENS = [3, 1, 4, 1, 5, 9, 2, 6]
NPU_PRESETS = ["w8a8-segment", "w8a8-hadamard", "w8a8-hadamard-rank-one", "w4a4-hadamard-padded", "w16a16"]


@pytest.fixture
def model_file(tmp_path: Path) -> Path:
    path = tmp_path / "model.gguf"
    path.write_bytes(Recipe("llama", kind=craft.GGML_Q8_0, layers=2).file())
    return path


def logits(model: Model, tokens: list[int]) -> NDArray[np.float32]:
    """Of all tokens: a prefill of all but two, and two decode steps."""
    cache = model.new_cache()
    parts = [model.forward(tokens[:-2], cache, rows="all"), model.forward(tokens[-2:-1], cache)]
    parts.append(model.forward(tokens[-1:], cache))
    return np.concatenate([part.logits for part in parts])


@pytest.mark.parametrize("preset", NPU_PRESETS)
def test_logits_are_the_emulations(device: MakeDevice, kernels: KernelLibrary, model_file: Path, preset: str) -> None:
    text = f"{preset},k_limit=96"
    with Model.load(model_file, make_backend(f"npu:{text}", kernels=None), n_ctx=32) as reference:
        expected = logits(reference, TOKENS)
    with Model.load(model_file, device(text, kernels=kernels), n_ctx=32, threads=2) as model:
        assert np.array_equal(bits(logits(model, TOKENS)), bits(expected))


def test_a_fault_in_one_run_is_found_in_its_matmul(
    device: MakeDevice, kernels: KernelLibrary, model_file: Path
) -> None:
    """Every matmul of both layers is held against the emulation's on the way; the first that differs is named."""
    with Model.load(model_file, device("w8a8-per-channel", kernels=kernels), n_ctx=32) as sound:
        seen: list[MatmulRecord] = []
        sound.backend.observer = seen.append
        sound.forward(TOKENS, sound.new_cache())
    order = [record.name for record in seen]
    assert len(order) == 15
    faulty = device("w8a8-per-channel,verify=on", kernels=kernels, RKNN_MOCK_FAULTS="off-by-one:after=1")
    with Model.load(model_file, faulty, n_ctx=32) as model, pytest.raises(DeviceError) as caught:
        model.forward(TOKENS, model.new_cache())
    named = str(caught.value).split(",", maxsplit=1)[0]
    # A context's first run is sound, and there is one for each core and size: the first matmul that meets one again.
    used: set[tuple[int, int, int]] = set()
    for record in seen:
        contexts = {(core, s.sums.shape[1], s.q.shape[1]) for core, s in enumerate(record.segments)}
        if contexts & used:
            break
        used |= contexts
    assert named == record.name


@pytest.mark.parametrize("architecture", sorted(ARCHITECTURES))
def test_the_plan_has_the_weights_in_the_order_in_which_a_model_loads_them(tmp_path: Path, architecture: str) -> None:
    """Of a type with two pipelines the first-seen order decides, so both sides must see the same one."""
    path = tmp_path / "model.gguf"
    path.write_bytes(Recipe(architecture, frozenset({"untied"} & set(OPTIONS.get(architecture, ())))).file())
    asked: list[str] = []

    class Recorder(NpuBackend):
        def linear(self, tensor: GgufTensor) -> Linear:
            asked.append(tensor.name)
            return super().linear(tensor)

    with Model.load(path, Recorder(parse_pipeline("w16a16"), None, 1), n_ctx=8) as model:
        found = plan(model.file, model.hparams, "w16a16")
    assert [tensor.name for tensor in found.tensors] == asked


def test_float_and_npu_weights_are_those_of_the_plan(
    device: MakeDevice, kernels: KernelLibrary, tmp_path: Path
) -> None:
    """Aligned weights of a type that a fork routes are made on the device, the others in float."""
    path = tmp_path / "model.gguf"
    path.write_bytes(Recipe("llama", kind=craft.GGML_Q8_0, layers=1, embd=96, ff=160).file())
    text = "rk-llama-marfrit"
    with Model.load(path, device(text, kernels=kernels), n_ctx=16) as model:
        seen: list[MatmulRecord] = []
        model.backend.observer = seen.append
        model.forward(TOKENS, model.new_cache())
        planned = plan(model.file, model.hparams, text)
    assert {record.name for record in seen if record.segments} == {tensor.name for tensor in planned.routed}
    assert {record.name for record in seen} == {tensor.name for tensor in planned.tensors}


@pytest.mark.model
def test_smollm2_on_the_device_is_the_emulation_bit_for_bit(device: MakeDevice, kernels: KernelLibrary) -> None:
    path = need_model()
    tokens = [504, 3575, 282, 4649, 314, 7042]
    text = "w8a8-per-channel"
    with Model.load(path, make_backend(f"npu:{text}", threads=2, kernels=kernels), n_ctx=64, threads=2) as model:
        expected = logits(model, tokens)
    on_device = device(text, kernels=kernels)
    with Model.load(path, on_device, n_ctx=64, threads=2) as model:
        assert np.array_equal(bits(logits(model, tokens)), bits(expected))
    report = on_device.phase_report()
    assert report["decode"]["calls"] == 2 * 211  # seven in each of 30 layers, and the head
    assert report["prefill"]["calls"] == 210 + 1
