# SPDX-License-Identifier: Apache-2.0
"""The device back end on the mock gives the emulation's bits, for every pipeline, shape, batch, chip and runtime."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from reference_engine.backends.presets import PRESETS
from reference_engine.gguf_tensor import GgufTensor
from tests.device.conftest import MakeDevice
from tests.device.rows import ArrayTensor, activations, bits, npu, records_of, tensor

PLAIN = sorted(name for name, pipeline in PRESETS.items() if pipeline.route == "all")
INVARIANT = [name for name in PLAIN if PRESETS[name].batch_invariant]


@pytest.mark.parametrize("preset", PLAIN)
def test_bits_are_those_of_the_emulation(device: MakeDevice, preset: str) -> None:
    """Aligned and ragged N and K; K over the limit in two and three segments; one to nine rows and 300."""
    text = f"{preset},k_limit=256"
    emulated, on_device = npu(text), device(text)
    for N, K, batches in ((192, 256, (1, 300)), (100, 200, range(1, 10)), (70, 600, (1, 4))):
        weight = tensor(f"blk.0.w{N}", N, K)
        first, second = emulated.linear(weight), on_device.linear(weight)
        for M in batches:
            x = activations(M, K)
            expected, found = first(x), second(x)
            assert np.count_nonzero(bits(found) != bits(expected)) == 0, (N, K, M)


@pytest.mark.parametrize("preset", ["w8a8-per-channel", "w4a4-hadamard", "w8a8-hadamard-rank-one", "w16a16"])
def test_k_beyond_the_chips_own_limit(device: MakeDevice, preset: str) -> None:
    """K 8224 is two segments at the usual limit, and one native B in two pieces of the chip's where there is none."""
    weight, x = tensor("blk.0.ffn_down", 64, 8224), activations(2, 8224)
    for text in (preset, f"{preset},k_limit=0"):
        on_device = device(text)
        assert np.array_equal(bits(on_device.linear(weight)(x)), bits(npu(text).linear(weight)(x)))
        on_device.close()


@pytest.mark.parametrize("preset", INVARIANT)
def test_a_row_alone_has_the_bits_it_has_in_a_batch(device: MakeDevice, preset: str) -> None:
    linear = device(preset).linear(tensor("w", 64, 96))
    x = activations(7, 96)
    together = linear(x)
    for row in range(7):
        assert np.array_equal(bits(linear(x[row : row + 1])), bits(together[row : row + 1]))


@pytest.mark.parametrize("mode", ["none", "pow2", "pow2-128", "tile-256"])
def test_padding_m_changes_no_bit(device: MakeDevice, mode: str) -> None:
    text = f"w8a8-per-channel,m_bucket={mode}"
    weight = tensor("w", 64, 64)
    linear, reference = device(text).linear(weight), npu("w8a8-per-channel").linear(weight)
    # Descending: the larger batch leaves its rows in A behind the smaller one's.
    for M in (300, 256, 130, 5, 1):
        x = activations(M, 64)
        assert np.array_equal(bits(linear(x)), bits(reference(x)))


@pytest.mark.parametrize("version", ["1.5.2", "1.6.0", "2.0.0-beta0", "2.1.0", "2.3.2"])
def test_every_runtime_version_serves(device: MakeDevice, version: str) -> None:
    weight, x = tensor("w", 96, 128), activations(3, 128)
    found = device("w8a8-per-channel", version).linear(weight)(x)
    assert np.array_equal(bits(found), bits(npu("w8a8-per-channel").linear(weight)(x)))


@pytest.mark.parametrize(
    ("persona", "text"),
    [
        ("rk3576", "w8a8-segment,cores=2,k_limit=0"),
        ("rk3562", "w8a8-per-channel,cores=1"),
        ("rk3568", "w16a16,cores=1"),
    ],
)
def test_every_chip_serves(device: MakeDevice, persona: str, text: str) -> None:
    """RK3576 cuts a native B at K 4096; chips with one core refuse every core mask."""
    weight, x = tensor("w", 96, 4160), activations(2, 4160)
    found = device(text, RKNN_MOCK_PERSONA=persona).linear(weight)(x)
    assert np.array_equal(bits(found), bits(npu(text).linear(weight)(x)))


@pytest.mark.parametrize(("overflow", "held"), [("wrap", 49 * 2048 - (2 << 16)), ("saturate", 32767)])
def test_int16_accumulators_overflow_as_told(device: MakeDevice, overflow: str, held: int) -> None:
    """Sevens by sevens over K 2048 are 100352."""
    text = f"w4a4,int16_overflow={overflow}"
    weight = cast(GgufTensor, ArrayTensor("w", np.full((64, 2048), 3.5, np.float32)))
    x = np.full((2, 2048), 0.25, np.float32)
    on_device = device(text)
    seen = records_of(on_device)
    found = on_device.linear(weight)(x)
    assert {int(value) for segment in seen[0].segments for value in segment.sums.flat} == {held}
    assert np.array_equal(bits(found), bits(npu(text).linear(weight)(x)))


def test_contexts_of_one_size_are_shared(device: MakeDevice) -> None:
    """Twelve weights of one size: as many contexts as cores, or twelve times that; 40 are allowed."""
    texts = ("w8a8-per-channel", "w8a8-per-channel,contexts=per-weight")
    x = activations(1, 96)
    results = []
    for text in texts:
        on_device = device(text, RKNN_MOCK_FAULTS="handles-exhausted:contexts=40")
        linears = [on_device.linear(tensor(f"w{i}", 96, 96, seed=i)) for i in range(12)]
        results.append([linear(x) for linear in linears])
        on_device.close()
    for shared, own in zip(*results, strict=True):
        assert np.array_equal(bits(shared), bits(own))


def test_sixty_weights_stay_below_the_contexts_a_runtime_holds(device: MakeDevice) -> None:
    """150 live contexts is where creation fails; 60 weights on three cores would need 180."""
    on_device = device("w8a8-per-channel")
    linears = [on_device.linear(tensor(f"w{i}", 96, 96, seed=i)) for i in range(60)]
    reference = npu("w8a8-per-channel")
    for M in (1, 2):
        x = activations(M, 96)
        assert np.array_equal(bits(linears[59](x)), bits(reference.linear(tensor("w59", 96, 96, seed=59))(x)))


def test_a_fork_by_type_keeps_the_other_weights_in_float(device: MakeDevice) -> None:
    on_device = device("rk-llama-marfrit")
    linear = on_device.linear(tensor("w", 64, 64))  # F32 has no pipeline there
    assert linear.where == "float"


def test_observers_see_the_devices_own_sums(device: MakeDevice) -> None:
    emulated, on_device = npu("w8a8-segment,k_limit=64"), device("w8a8-segment,k_limit=64")
    expected, seen = records_of(emulated), records_of(on_device)
    for backend in (emulated, on_device):
        backend.linear(tensor("blk.3.attn_q.weight", 96, 160))(activations(3, 160))
    (one,), (other,) = expected, seen
    assert (one.name, len(one.segments)) == (other.name, len(other.segments)) == ("blk.3.attn_q.weight", 9)
    for a, b in zip(one.segments, other.segments, strict=True):
        assert np.array_equal(a.sums, b.sums)
        assert np.array_equal(a.q, b.q)
