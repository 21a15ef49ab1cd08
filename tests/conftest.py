# SPDX-License-Identifier: Apache-2.0
"""What all tests need of the process they run in."""

from __future__ import annotations

import os
import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# The same examples in every run, and none judged by how long a busy machine takes for it. New examples come with
# --hypothesis-profile=default. Fixtures that several examples share are made for that.
settings.register_profile(
    "kit",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("kit")


HEAVY = ("measure", "probes", "vector", "mock", "kernels", "gguf", "hostile_reports", "linear", "c_probes", "device")
"""Folders that take longest, longest first: begun first, so that two processes end at about the same time."""
HERE = Path(__file__).resolve().parent


def pytest_configure(config: pytest.Config) -> None:
    """Make the process one in which any test may run.

    A shell has what it starts in the background ignore Ctrl-C, which some tests send; all children would, too. The
    lock of the NPU is this process's own, or a run of the kit beside the tests would be found by them.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    folder = tempfile.TemporaryDirectory(prefix="rknpu-kit-tests-")
    config.add_cleanup(folder.cleanup)
    os.environ["RKNPU_KIT_LOCK"] = str(Path(folder.name) / "npu.lock")


def folder_of(item: pytest.Item) -> str:
    """The folder of ``tests`` the test is in."""
    return item.path.relative_to(HERE).parts[0] if item.path.is_relative_to(HERE) else ""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where processes share the tests (pytest-xdist, ``-n 2 --dist loadfile``), what takes long begins first."""
    if hasattr(config, "workerinput"):
        order = {name: place for place, name in enumerate(HEAVY)}
        items.sort(key=lambda item: order.get(folder_of(item), len(HEAVY)))
