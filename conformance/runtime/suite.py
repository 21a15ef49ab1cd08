# SPDX-License-Identifier: Apache-2.0
"""The suite ``runtime``: a librknnrt, real or mock."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from c_probes.librknnrt import LibraryUnavailable, open_library
from conformance.bench import Bench, CannotOpen
from conformance.profile import profile_for
from conformance.runtime.catalogue import CHECKS

__all__ = ["CHECKS", "open_bench"]


def open_bench(request: dict[str, Any]) -> Bench:
    """``request``: library, force, soc, level, seed, check. Raises :class:`CannotOpen`."""
    force = bool(request["force"])
    try:
        library = open_library(Path(request["library"]), force=force, device_present=force)
    except LibraryUnavailable as error:
        raise CannotOpen(str(error)) from error
    return Bench(
        library=library,
        profile=profile_for(request["soc"], library.version),
        level=request["level"],
        seed=int(request["seed"]),
        check=request["check"],
    )
