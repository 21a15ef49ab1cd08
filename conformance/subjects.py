# SPDX-License-Identifier: Apache-2.0
"""What a suite judges besides a librknnrt: this kit's engine, and a server that somebody else wrote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from conformance.target import Target


class Subject(Protocol):
    """``request`` holds what the worker needs to open it; ``silicon``: one process at a time, under the kit's lock."""

    @property
    def suite(self) -> str: ...
    @property
    def header(self) -> str: ...
    @property
    def simulated(self) -> bool: ...
    @property
    def silicon(self) -> bool: ...
    @property
    def request(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True)
class EngineSubject:
    """The reference engine with its NPU emulation, or on a librknnrt. ``model`` None: the models of the kit."""

    engine: str
    model: Path | None
    library: Target | None
    suite: str = "engine"

    @property
    def header(self) -> str:
        """The line over the run."""
        model = "the kit's tiny models" if self.model is None else str(self.model)
        if self.library is None:
            return f"target: reference engine, NPU emulation, {model}; SIMULATED, no NPU takes part"
        return f"target: reference engine on the device back end, {model}; {self.library.header}"

    @property
    def simulated(self) -> bool:
        """No silicon takes part in the products."""
        return self.library is None or self.library.simulated

    @property
    def silicon(self) -> bool:
        """The device back end takes the kit's lock itself."""
        return False

    @property
    def request(self) -> Mapping[str, Any]:
        """engine, model, library (None: none is used)."""
        library = None if self.library is None else str(self.library.path)
        return {"engine": self.engine, "model": None if self.model is None else str(self.model), "library": library}


@dataclass(frozen=True)
class ServerSubject:
    """A llama-server compatible service; ``off`` serves the same model without speculation or without the NPU."""

    url: str
    off: str | None
    model: Path | None
    kv: str | None = None
    suite: str = "server"
    simulated: bool = False
    silicon: bool = False

    @property
    def header(self) -> str:
        """The line over the run."""
        beside = "" if self.off is None else f", beside {self.off}"
        return f"target: {self.url}{beside}; what is behind it is its owner's word"

    @property
    def request(self) -> Mapping[str, Any]:
        """server, server_off (None: none), model and server_kv (None: unknown)."""
        model = None if self.model is None else str(self.model)
        return {"server": self.url, "server_off": self.off, "model": model, "server_kv": self.kv}
