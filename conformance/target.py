# SPDX-License-Identifier: Apache-2.0
"""Which librknnrt the suite judges, and whether that is silicon."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from c_probes import mock
from c_probes.library_file import describe_library
from c_probes.library_search import find_libraries
from c_probes.npu_node import npu_node_present
from probes.facts.soc_table import soc_of_compatible
from probes.library_choice import DEFAULT_PERSONA

MOCK_VARIABLES = ("RKNN_MOCK_PERSONA", "RKNN_MOCK_CONFIG", "RKNN_MOCK_TIMING", "RKNN_MOCK_FAULTS")


class NoTarget(Exception):
    """There is nothing to judge; the message says what to do."""


@dataclass(frozen=True)
class Target:
    """One library. ``soc`` in lower case, None where unknown. ``simulated``: no silicon is behind it."""

    path: Path
    version: str | None
    sha256: str | None
    mock: bool
    simulated: bool
    soc: str | None
    why: str
    suite: str = "runtime"

    @property
    def silicon(self) -> bool:
        """Whether one process at a time may use it: the mock is no shared device."""
        return not self.mock

    @property
    def request(self) -> Mapping[str, Any]:
        """What the worker needs to open it."""
        return {"library": str(self.path), "force": not self.mock, "soc": self.soc}

    @property
    def header(self) -> str:
        """The line over the run."""
        kind = f"SIMULATED, {self.why}" if self.simulated else self.why
        return f"target: {self.path} ({self.version or 'unknown version'}; SoC {self.soc or 'unknown'}); {kind}"


def choose_target(named: Path | None, *, root: Path = Path("/"), env: Mapping[str, str] | None = None) -> Target:
    """The library named by hand, else the loader's own where this machine has an NPU node, else the mock.

    Raises :class:`NoTarget` when the file does not exist or the mock is not built.
    """
    environment = os.environ if env is None else env
    node = npu_node_present(root)
    if named is not None:
        return _target(named, "named by --library", node, root, environment)
    if node:
        taken = next((lib for lib in find_libraries() if lib.kind == "librknnrt" and lib.taken), None)
        if taken is None:
            raise NoTarget(
                "This machine has an NPU, but no librknnrt on the loader path: install it, or --library PATH."
            )
        return _target(Path(taken.path), "the library that the loader takes", node, root, environment)
    try:
        return _target(mock.library_path(), "no NPU here, so the mock is judged", node, root, environment)
    except mock.MockNotBuilt as error:
        raise NoTarget(str(error)) from error


def _target(path: Path, why: str, node: bool, root: Path, env: Mapping[str, str]) -> Target:
    found = describe_library(path.absolute(), kind="librknnrt")
    if found.size is None:
        raise NoTarget(f"{path} cannot be used: {found.problem}.")
    if found.is_mock:
        persona = env.get("RKNN_MOCK_PERSONA", DEFAULT_PERSONA)
        given = [f"{name}={env[name]}" for name in MOCK_VARIABLES if env.get(name)]
        why = f"{why}: the mock librknnrt" + (f" with {' '.join(given)}" if given else "")
        return Target(path.absolute(), found.version_text, found.sha256, True, True, persona, why)
    if not node:
        why += "; no NPU node on this machine, so no verdict here is about silicon"
    return Target(path.absolute(), found.version_text, found.sha256, False, not node, _soc(root), why)


def _soc(root: Path) -> str | None:
    try:
        text = (root / "proc/device-tree/compatible").read_text("utf-8", "replace")
    except OSError:
        return None
    found = soc_of_compatible(text.rstrip("\0").split("\0"))
    # RK3588S has the NPU of RK3588.
    return None if found is None else found.lower().removesuffix("s")
