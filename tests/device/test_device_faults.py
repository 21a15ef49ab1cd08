# SPDX-License-Identifier: Apache-2.0
"""What goes wrong on a device becomes one sentence that names the matmul; wrong products are seen, and by name."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from c_probes.lock import NpuLock
from reference_engine.backends.device import DeviceError
from tests.device.conftest import MakeDevice
from tests.device.rows import activations, bits, npu, records_of, tensor

NAME = "blk.7.ffn_down.weight"
WRONG_PRODUCTS = ("c-untouched", "c-zero", "off-by-one", "k-tail-dropped:block=16", "stale-b", "rows-swapped")


@pytest.mark.parametrize("fault", WRONG_PRODUCTS)
def test_a_wrong_product_differs_from_the_emulation_in_the_named_matmul(device: MakeDevice, fault: str) -> None:
    """The first matmul of three is right, because the fault waits for each context's second run."""
    on_device, emulated = device("w8a8-per-channel", RKNN_MOCK_FAULTS=f"{fault}:after=1"), npu("w8a8-per-channel")
    seen, expected = records_of(on_device), records_of(emulated)
    for backend in (on_device, emulated):
        for name in ("blk.0.attn_q.weight", "blk.0.attn_k.weight"):
            backend.linear(tensor(name, 96, 64, seed=len(name) + ord(name[-8])))(activations(4, 64))
    wrong = [
        a.name
        for a, b in zip(seen, expected, strict=True)
        if any(not np.array_equal(s.sums, t.sums) for s, t in zip(a.segments, b.segments, strict=True))
    ]
    assert wrong == ["blk.0.attn_k.weight"]


@pytest.mark.parametrize("fault", WRONG_PRODUCTS)
def test_verification_stops_at_the_first_wrong_product(device: MakeDevice, fault: str) -> None:
    on_device = device("w8a8-per-channel,k_limit=64,verify=on", RKNN_MOCK_FAULTS=f"{fault}:after=1")
    linear = on_device.linear(tensor(NAME, 96, 128))
    with pytest.raises(DeviceError, match=r"blk\.7\.ffn_down\.weight, K segment 1, columns 0 to 32.*wrong in \d+ of"):
        linear(activations(4, 128))


def test_nan_out_of_the_device_is_laid_to_the_device(device: MakeDevice) -> None:
    on_device = device("w16a16,k_limit=64", RKNN_MOCK_FAULTS="nan:row=2:col=5")
    with pytest.raises(DeviceError, match=r"blk\.7\.ffn_down\.weight, K segment 0, M=4: .* NaN .* row 2, column 5"):
        on_device.linear(tensor(NAME, 32, 128))(activations(4, 128))


def test_verification_is_silent_where_nothing_is_wrong(device: MakeDevice) -> None:
    for preset in ("w8a8-rank-one", "w4a4", "w16a16"):
        on_device = device(f"{preset},verify=on,k_limit=64")
        weight, x = tensor("w", 100, 128), activations(3, 128)
        expected = npu(f"{preset},k_limit=64").linear(weight)(x)
        assert np.array_equal(bits(on_device.linear(weight)(x)), bits(expected))
        on_device.close()


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("crash:call=rknn_matmul_run:n=1", "SIGSEGV"),
        ("abort:call=rknn_matmul_run:n=1", "SIGABRT"),
        ("fail:call=rknn_matmul_run:n=1:code=-1", "rknn_matmul_run returned -1 (RKNN_ERR_FAIL)"),
        ("submit-failed", "failed to submit"),
    ],
)
def test_a_run_that_ends_badly_names_the_matmul(device: MakeDevice, fault: str, said: str) -> None:
    on_device = device("w8a8-per-channel", RKNN_MOCK_FAULTS=fault)
    linear = on_device.linear(tensor(NAME, 96, 64))
    with pytest.raises(DeviceError) as caught:
        linear(activations(5, 64))
    text = str(caught.value)
    assert text.startswith(f"{NAME}, K segment 0, M=5: ")
    assert said in text
    assert "\n" not in text
    with pytest.raises(DeviceError, match="not run, because"):
        linear(activations(5, 64))


def test_a_crash_tells_the_last_step(device: MakeDevice) -> None:
    on_device = device("w8a8-per-channel", RKNN_MOCK_FAULTS="crash:call=rknn_matmul_run:n=1")
    linear = on_device.linear(tensor(NAME, 96, 64))
    with pytest.raises(DeviceError, match=r"last step was: rknn_matmul_run, M=8 K=64 N=32,32,32, cores 0,1,2"):
        linear(activations(5, 64))


def test_a_hang_ends_at_its_deadline(device: MakeDevice) -> None:
    on_device = device("w8a8-per-channel,deadline=1.5", RKNN_MOCK_FAULTS="hang:call=rknn_matmul_run:n=1")
    linear = on_device.linear(tensor(NAME, 96, 64))
    start = time.monotonic()
    with pytest.raises(DeviceError, match=r"blk\.7.*no answer within 1\.5 s; the child was killed.*rknn_matmul_run"):
        linear(activations(1, 64))
    assert time.monotonic() - start < 30


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("no-device", "failed to open"),
        ("type-refused:type=2:code=-5", "rknn_matmul_create"),
        ("create-null-context", "gave no context"),
        ("bind-no-memory", "errno: 12"),
    ],
)
def test_a_refusal_names_the_matmul_and_quotes_the_library(device: MakeDevice, fault: str, said: str) -> None:
    on_device = device("w8a8-per-channel", RKNN_MOCK_FAULTS=fault)
    with pytest.raises(DeviceError) as caught:
        on_device.linear(tensor(NAME, 96, 64))(activations(1, 64))
    assert str(caught.value).startswith(NAME)
    assert said in str(caught.value)


def test_a_child_that_was_killed_is_noticed(device: MakeDevice) -> None:
    on_device = device("w8a8-per-channel")
    linear = on_device.linear(tensor(NAME, 96, 64))
    linear(activations(1, 64))
    process = on_device._session._process
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(DeviceError, match=r"blk\.7.*SIGKILL"):
        linear(activations(1, 64))


def test_an_interrupted_run_leaves_no_answer_for_the_next(device: MakeDevice) -> None:
    """Ctrl-C while the child works: the session is over, and the child ends by itself instead of being killed."""
    on_device = device("w8a8-per-channel", RKNN_MOCK_TIMING="fixed_us=300000")
    linear = on_device.linear(tensor(NAME, 96, 64))
    process = on_device._session._process
    assert process is not None

    def interrupt(signum: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            linear(activations(1, 64))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    with pytest.raises(DeviceError, match="not run, because an earlier matmul was interrupted"):
        linear(activations(1, 64))
    on_device.close()
    assert process.returncode == 0


def test_a_library_that_is_none_is_refused_in_one_sentence(device: MakeDevice, tmp_path: Path) -> None:
    fake = tmp_path / "librknnrt.so"
    fake.write_bytes(b"\x7fELF no library")
    with pytest.raises(DeviceError, match=r"opening the library: .*librknnrt\.so cannot be"):
        device(f"w8a8-per-channel,library={fake}")


def test_one_user_at_a_time(device: MakeDevice, tmp_path: Path) -> None:
    with NpuLock(tmp_path / "lock"), pytest.raises(DeviceError, match=r"NPU lock .* is held by"):
        device("w8a8-per-channel")
    device("w8a8-per-channel").close()
    with NpuLock(tmp_path / "lock"):
        pass  # given back


def test_closing_leaves_no_child_no_file_and_no_lock(device: MakeDevice, tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    on_device = device("w8a8-per-channel")
    on_device.linear(tensor(NAME, 96, 64))(activations(1, 64))
    process, folder = on_device._session._process, Path(on_device._session._folder.name)
    assert process is not None
    on_device.close()
    on_device.close()
    assert process.poll() == 0
    assert not folder.exists()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_weights_beyond_the_allowed_domains_are_refused(device: MakeDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reference_engine.backends.device.DOMAIN_BYTES", 10000)
    on_device = device("w8a8-per-channel")
    on_device.linear(tensor("first", 96, 64))
    with pytest.raises(DeviceError, match=r"second: its 6,144 bytes no longer fit into 1 IOMMU domain"):
        on_device.linear(tensor("second", 96, 64))
    on_device.close()
    wider = device("w8a8-per-channel,domains=2")
    weights = [tensor(name, 96, 64, seed=len(name)) for name in ("first", "second")]
    linears = [wider.linear(weight) for weight in weights]
    x = activations(2, 64)
    for weight, linear in zip(weights, linears, strict=True):
        assert np.array_equal(bits(linear(x)), bits(npu("w8a8-per-channel").linear(weight)(x)))
