# SPDX-License-Identifier: Apache-2.0
"""What the text of a device back end may set beside the pipeline's own parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from reference_engine.backends.pipeline import Pipeline, PipelineError
from reference_engine.backends.presets import parse_pipeline


@dataclass(frozen=True)
class DeviceSettings:
    """``library`` None leaves the choice to the rules of device_library; see there and in device for the others."""

    library: Path | None = None
    verify: bool = False
    deadline_s: float = 60.0
    domains: int = 1
    per_weight: bool = False


def parse_device(text: str) -> tuple[Pipeline, DeviceSettings]:
    """The text's pipeline and the device's own settings. PipelineError names what is wrong."""
    ours: dict[str, str] = {}
    theirs = []
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if equals and key.strip() in _READERS:
            ours[key.strip()] = value.strip()
        else:
            theirs.append(part)
    settings = DeviceSettings()
    for key, value in ours.items():
        try:
            settings = replace(settings, **_READERS[key](value))
        except (KeyError, ValueError):
            raise PipelineError(f"{key} is {value!r}; it has to be {_MEANING[key]}") from None
    return parse_pipeline(",".join(theirs)), settings


def _seconds(value: str) -> dict[str, Any]:
    seconds = float(value)
    if not 0 < seconds <= 86400:
        raise ValueError(value)
    return {"deadline_s": seconds}


def _domains(value: str) -> dict[str, Any]:
    count = int(value)
    if not 1 <= count <= 16:
        raise ValueError(value)
    return {"domains": count}


_READERS: Mapping[str, Any] = {
    "library": lambda value: {"library": Path(value)},
    "verify": lambda value: {"verify": {"on": True, "off": False}[value]},
    "deadline": _seconds,
    "domains": _domains,
    "contexts": lambda value: {"per_weight": {"shared": False, "per-weight": True}[value]},
}
_MEANING = {
    "library": "a path",
    "verify": "on or off",
    "deadline": "seconds, above 0",
    "domains": "1 to 16",
    "contexts": "shared or per-weight",
}
