# SPDX-License-Identifier: Apache-2.0
"""Each parameter of a pipeline changes what it is known to change, on the device as in the emulation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_engine.backends import BackendError, make_backend
from reference_engine.backends.device_layout import int4_pairs, native_tiles
from reference_engine.backends.device_library import NoLibrary, device_environment, find_device_library
from reference_engine.backends.device_phases import PhaseLog, Spent, phase_lines
from reference_engine.backends.device_settings import parse_device
from reference_engine.backends.pipeline import PipelineError
from tests.device.conftest import MakeDevice
from tests.device.rows import F32, activations, bits, npu, tensor


def results(device: MakeDevice, texts: list[str], M: int = 8, N: int = 192, K: int = 512) -> list[F32]:
    """The same matmul on the device by each text; each equal to the emulation's."""
    found = []
    for text in texts:
        on_device = device(text)
        found.append(on_device.linear(tensor("w", N, K))(activations(M, K)))
        on_device.close()
        assert np.array_equal(bits(found[-1]), bits(npu(text).linear(tensor("w", N, K))(activations(M, K))))
    return found


def test_fusing_changes_about_a_third_of_two_segment_sums_by_one_unit(device: MakeDevice) -> None:
    """31 % of outputs with two K segments differ between FMA and multiply-add; with one segment none."""
    on, off = results(device, [f"w8a8-per-channel,k_limit=256,fma={fma}" for fma in ("on", "off")], M=32)
    differing = bits(on) != bits(off)
    assert 0.2 < differing.mean() < 0.45
    assert np.median(np.abs(bits(on).astype(np.int64) - bits(off).astype(np.int64))[differing]) == 1
    on, off = results(device, [f"w8a8-per-channel,fma={fma}" for fma in ("on", "off")])
    assert np.array_equal(on, off)


def test_cores_change_segment_scales_and_channel_scales_not(device: MakeDevice) -> None:
    """A scale for each core slice makes the active cores part of the numbers (rk-llama.cpp with RKNPU_CORES)."""
    one, three = results(device, [f"w8a8-segment,cores={cores}" for cores in (1, 3)])
    assert (bits(one) != bits(three)).mean() > 0.5
    one, three = results(device, [f"w8a8-per-channel,cores={cores}" for cores in (1, 3)])
    assert np.array_equal(bits(one), bits(three))


def test_without_a_clamp_a_clipped_scale_wraps(device: MakeDevice) -> None:
    """A clip of 0.95 sends the largest value to 134, which wraps to -122; the clamp holds it at 127."""
    held, wrapped, plain = results(
        device,
        ["w8a8-per-channel,a_clip=0.95,clamp=on", "w8a8-per-channel,a_clip=0.95,clamp=off", "w8a8-per-channel"],
    )
    error = np.abs(held - plain).mean(), np.abs(wrapped - plain).mean()
    assert error[1] > 4 * error[0]
    on, off = results(device, ["w8a8-per-channel,clamp=on", "w8a8-per-channel,clamp=off"])
    assert np.array_equal(bits(on), bits(off))  # without a clip nothing reaches 127.5


def test_segments_of_k_quantise_the_activation_anew(device: MakeDevice) -> None:
    whole, cut = results(device, ["w8a8-per-channel", "w8a8-per-channel,k_limit=256"])
    assert (bits(whole) != bits(cut)).mean() > 0.9


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("w8a8-per-channel,verify=maybe", "verify is 'maybe'; it has to be on or off"),
        ("w8a8-per-channel,deadline=0", "deadline is '0'"),
        ("w8a8-per-channel,domains=17", "domains is '17'; it has to be 1 to 16"),
        ("w8a8-per-channel,contexts=many", "shared or per-weight"),
        ("w9a9", "no preset 'w9a9'"),
        ("w8a8-per-channel,library=/nowhere/librknnrt.so", "there is no library /nowhere/librknnrt.so"),
    ],
)
def test_wrong_texts_are_refused_in_one_sentence(text: str, said: str) -> None:
    with pytest.raises(BackendError, match="back end 'device:") as caught:
        make_backend(f"device:{text}", kernels=None)
    assert said in str(caught.value)


def test_own_parameters_and_the_pipelines_stand_together() -> None:
    pipeline, own = parse_device("w8a8-segment,verify=on,fma=off,deadline=3,cores=2")
    assert (pipeline.fma, pipeline.cores, own.verify, own.deadline_s) == (False, 2, True, 3.0)
    with pytest.raises(PipelineError, match="no parameter 'verfy'"):
        parse_device("w8a8-segment,verfy=on")


def board(root: Path, driver: str = "RKNPU") -> Path:
    """A machine with one DRM node."""
    (root / "sys/class/drm/renderD129/device").mkdir(parents=True)
    (root / "sys/class/drm/renderD129/device/uevent").write_text(f"DRIVER={driver}\n")
    (root / "dev/dri").mkdir(parents=True)
    (root / "dev/dri/renderD129").touch()
    return root


def test_without_a_node_the_mock_stands_in_and_says_so(tmp_path: Path, mock_folder: Path) -> None:
    mock = mock_folder / "librknnrt.so"
    for root in (tmp_path, board(tmp_path / "gpu", "panfrost")):
        found = find_device_library(None, root=root, mock=mock)
        assert (found.path, found.simulated) == (mock, True)
        assert "SIMULATED" in str(found.note)
    with pytest.raises(NoLibrary, match="make mock"):
        find_device_library(None, root=tmp_path, mock=tmp_path / "none.so")


def test_with_a_node_the_mock_never_stands_in(tmp_path: Path, mock_folder: Path) -> None:
    """This machine has no librknnrt on its loader path, so a board with a node and no runtime is told so."""
    with pytest.raises(NoLibrary, match="no librknnrt on the loader path"):
        find_device_library(None, root=board(tmp_path), mock=mock_folder / "librknnrt.so")


def test_a_real_library_on_a_machine_without_a_node_is_simulated(tmp_path: Path) -> None:
    library = tmp_path / "librknnrt.so"
    library.write_bytes(b"librknnrt version: 2.3.2 (429f97ae6b@2025-04-09T09:09:27)")
    assert find_device_library(library, root=tmp_path).simulated
    real = find_device_library(library, root=board(tmp_path))
    assert (real.simulated, real.note, real.is_mock) == (False, None, False)
    assert device_environment({"A": "1"}, real, int16="wrap", threads=2) == {"A": "1"}


def test_the_caller_s_mock_settings_win(tmp_path: Path, mock_folder: Path) -> None:
    mock = find_device_library(None, root=tmp_path, mock=mock_folder / "librknnrt.so")
    env = device_environment({"RKNN_MOCK_PERSONA": "rk3576"}, mock, int16="wrap", threads=2)
    assert (env["RKNN_MOCK_PERSONA"], env["RKNN_MOCK_INT16"], env["RKNN_MOCK_THREADS"]) == ("rk3576", "wrap", "2")


def test_phases_of_a_run_are_told_apart_by_rows(device: MakeDevice) -> None:
    on_device = device("w8a8-per-channel")
    linear = on_device.linear(tensor("w", 96, 64))
    for M in (4, 1, 1):
        linear(activations(M, 64))
    report = on_device.phase_report()
    assert report["simulated"] is True
    assert (report["prefill"]["calls"], report["prefill"]["rows"]) == (1, 4)
    assert (report["decode"]["calls"], report["decode"]["rows"]) == (2, 2)
    for kind in ("prefill", "decode"):
        shares = [report[kind][f"{name}_share"] for name in ("prepare", "run", "collect")]
        assert all(0 < share < 1 for share in shares)
        assert sum(shares) == pytest.approx(1)
        assert [row["name"] for row in report[kind]["matmuls"]] == ["w"]
    assert phase_lines(report)[-1].startswith("SIMULATED")


def test_phase_sums_by_hand() -> None:
    log = PhaseLog(simulated=False, note=None)
    log.add("a", 1, Spent(10, 100, 5, (20, 60, 10)))
    log.add("b", 1, Spent(10, 100, 5, (20, 60, 10)))
    log.add("a", 3, Spent(1, 9, 1, (1, 6, 1)))
    decode = log.report()["decode"]
    assert (decode["prepare_ns"], decode["run_ns"], decode["collect_ns"], decode["transport_ns"]) == (60, 120, 30, 20)
    assert decode["run_share"] == pytest.approx(120 / 210)
    assert len(decode["matmuls"]) == 2
    assert phase_lines(log.report())[0].startswith("prefill: 1 matmuls")
    assert phase_lines(PhaseLog(simulated=True, note="x").report()) == []


@given(st.integers(1, 4), st.integers(1, 4), st.sampled_from([(8, 16), (16, 32), (64, 32)]))
@settings(max_examples=30, deadline=None)
def test_native_tiles_put_every_element_where_the_layout_has_it(tiles: int, blocks: int, cell: tuple[int, int]) -> None:
    """[N/n, K/k, n, k]: element (row, column) by index arithmetic alone."""
    n, k = cell
    N, K = tiles * n, blocks * k
    rows = np.arange(N * K, dtype=np.int32).reshape(N, K)
    flat = native_tiles(rows, n, k)
    for row, column in ((0, 0), (N - 1, K - 1), (N // 2, K // 3), (n - 1, k - 1)):
        at = ((row // n) * (K // k) + column // k) * n * k + (row % n) * k + column % k
        assert flat[at] == rows[row, column]


@given(st.lists(st.tuples(st.integers(-8, 7), st.integers(-8, 7)), min_size=1, max_size=20))
@settings(max_examples=50, deadline=None)
def test_int4_pairs_have_the_even_element_in_the_low_half(pairs: list[tuple[int, int]]) -> None:
    packed = int4_pairs(np.array(pairs, np.int8).reshape(-1))
    assert packed.tolist() == [(even % 16) + 16 * (odd % 16) for even, odd in pairs]
