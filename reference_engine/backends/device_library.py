# SPDX-License-Identifier: Apache-2.0
"""Which librknnrt the device back end calls: the rules of the probes, in the little form that an engine needs.

A library named by hand is taken. Without one, the board's own is taken where an NPU node exists; elsewhere the mock
stands in, and everything that is printed says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from c_probes.library_file import describe_library
from c_probes.library_search import find_libraries
from c_probes.mock import build_folder
from c_probes.npu_node import npu_node_present
from reference_engine.errors import EngineError


class NoLibrary(EngineError, ValueError):
    """There is none to call; the message says what to do."""


@dataclass(frozen=True)
class DeviceLibrary:
    """``path`` of the library; ``simulated`` unless it is a real one on a machine with an NPU node.

    ``note`` is the sentence for pages of a simulated run, else None.
    """

    path: Path
    is_mock: bool
    device_present: bool
    named: bool

    @property
    def simulated(self) -> bool:
        return self.is_mock or not self.device_present

    @property
    def note(self) -> str | None:
        if not self.simulated:
            return None
        what = "the mock librknnrt" if self.is_mock else f"{self.path}, on a machine without an NPU node,"
        return f"SIMULATED: {what} answered in place of an NPU. No time here is a time of silicon."


def find_device_library(named: Path | None, *, root: Path = Path("/"), mock: Path | None = None) -> DeviceLibrary:
    """The library to call. NoLibrary where none is there. ``root`` and ``mock`` are for tests."""
    present = npu_node_present(root)
    if named is not None:
        if not named.is_file():
            raise NoLibrary(f"there is no library {named}")
        return DeviceLibrary(named.absolute(), describe_library(named).is_mock, present, True)
    if present:
        taken = [found for found in find_libraries() if found.kind == "librknnrt" and found.taken]
        if not taken:
            raise NoLibrary("this machine has an NPU node but no librknnrt on the loader path; name it: library=PATH")
        return DeviceLibrary(Path(taken[0].path), taken[0].is_mock, True, False)
    stand_in = mock or build_folder() / "mock" / "librknnrt.so"
    if not stand_in.is_file():
        raise NoLibrary(f"this machine has no NPU node, and the mock {stand_in} is not built: run make mock")
    return DeviceLibrary(stand_in, True, False, False)


def device_environment(env: Mapping[str, str], library: DeviceLibrary, *, int16: str, threads: int) -> dict[str, str]:
    """``env``, for the mock with what it should imitate where the caller set nothing."""
    if not library.is_mock:
        return dict(env)
    return {
        "RKNN_MOCK_PERSONA": "rk3588",
        "RKNN_MOCK_MEMO": "sync",
        "RKNN_MOCK_INT16": int16,
        "RKNN_MOCK_THREADS": str(threads),
        **env,
    }
