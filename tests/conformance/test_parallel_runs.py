# SPDX-License-Identifier: Apache-2.0
"""Silicon is used by one process at a time, whatever pytest-xdist starts; and gets no check that may take it down.

Silicon is a copy of the mock that does not say that it is one.
"""

from __future__ import annotations

import importlib.util
import threading
import time
from pathlib import Path

import pytest

from c_probes.lock import NpuLock
from tests.conformance.conftest import Suite

CHOSEN = "rebinding or padding or red_zones or iommu_domains or contexts_to_refusal or steadiness"
WORKERS = ["-n", "2"] if importlib.util.find_spec("xdist") else []
"""Without pytest-xdist the run is still one that has to wait for the lock."""


@pytest.fixture(scope="module")
def silicon(mock_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    says, hides = b"(mock of rknpu-kit)", b"(0123456@2026-01-1)"
    raw = mock_library.read_bytes()
    assert says in raw
    path = tmp_path_factory.mktemp("silicon") / "librknnrt.so"
    path.write_bytes(raw.replace(says, hides))
    return path


def test_a_run_on_silicon_waits_for_the_lock_and_its_workers_hand_it_on(
    suite: Suite, silicon: Path, tmp_path: Path
) -> None:
    lock = NpuLock(tmp_path / "lock")
    lock.acquire(wait_s=0.0)
    released = []

    def release() -> None:
        time.sleep(6.0)
        released.append(time.monotonic())
        lock.release()

    holder = threading.Thread(target=release)
    holder.start()
    ended = suite("--library", str(silicon), "-k", CHOSEN, *WORKERS)
    end = time.monotonic()
    holder.join()
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert end > released[0]
    assert "3 passed, 3 unsupported" in ended.stdout
    assert "IOMMU domains are tried on silicon at levels medium and long" in ended.stdout
    assert "contexts to refusal are tried on silicon at levels medium and long" in ended.stdout
    assert "time is judged on silicon at levels medium and long" in ended.stdout
