# SPDX-License-Identifier: Apache-2.0
"""Which library is judged, what the header says of it, and that silicon is used by one process at a time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from c_probes.lock import Busy, NpuLock
from conformance import conftest as plugin
from conformance.target import NoTarget, choose_target


def board(root: Path) -> Path:
    (root / "dev").mkdir()
    (root / "dev/rknpu").touch()
    (root / "proc/device-tree").mkdir(parents=True)
    (root / "proc/device-tree/compatible").write_bytes(b"xunlong,orangepi-5\0rockchip,rk3588s\0rockchip,rk3588\0")
    return root


def test_without_an_npu_the_mock_is_judged_and_the_header_says_so(mock_library: Path, tmp_path: Path) -> None:
    target = choose_target(None, root=tmp_path, env={})
    assert (target.path, target.mock, target.simulated, target.soc) == (mock_library, True, True, "rk3588")
    assert "SIMULATED, no NPU here, so the mock is judged" in target.header


def test_a_fault_and_the_persona_stand_in_the_header(mock_library: Path, tmp_path: Path) -> None:
    env = {"RKNN_MOCK_PERSONA": "rk3576", "RKNN_MOCK_FAULTS": "wrap"}
    target = choose_target(mock_library, root=tmp_path, env=env)
    assert target.soc == "rk3576"
    assert "RKNN_MOCK_PERSONA=rk3576 RKNN_MOCK_FAULTS=wrap" in target.header


def test_a_mock_is_simulated_on_a_board_too(mock_library: Path, tmp_path: Path) -> None:
    assert choose_target(mock_library, root=board(tmp_path), env={}).simulated


def test_a_library_that_is_no_mock_is_silicon_on_a_board_and_nowhere_else(tmp_path: Path) -> None:
    library = tmp_path / "librknnrt.so"
    library.write_bytes(b"librknnrt version: 2.3.2 (429f97ae6b@2025-04-09T09:09:27)\0")
    elsewhere = choose_target(library, root=tmp_path, env={})
    assert elsewhere.simulated
    assert "no NPU node on this machine" in elsewhere.header
    target = choose_target(library, root=board(tmp_path), env={})
    assert (target.simulated, target.mock, target.soc) == (False, False, "rk3588")
    assert "SIMULATED" not in target.header


def test_a_missing_library_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(NoTarget, match=r"no\.so cannot be used"):
        choose_target(tmp_path / "no.so", root=tmp_path, env={})


def test_silicon_waits_for_the_lock_and_the_mock_does_not(
    mock_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RKNPU_KIT_LOCK", str(tmp_path / "lock"))
    monkeypatch.setattr(plugin, "LOCK_WAIT_S", 0.05)
    mocked = choose_target(mock_library, root=tmp_path, env={})
    silicon = replace(mocked, mock=False, simulated=False)
    with NpuLock(tmp_path / "lock"):
        with plugin._turn(mocked):
            pass
        with pytest.raises(pytest.fail.Exception, match="is held by process"), plugin._turn(silicon):
            pytest.fail("the lock was not heeded")
    with plugin._turn(silicon), pytest.raises(Busy):
        NpuLock(tmp_path / "lock").acquire()
    with NpuLock(tmp_path / "lock") as lock:
        assert lock.held
