# SPDX-License-Identifier: Apache-2.0
"""Known refusals and offers of one SoC with one runtime: facts with a source, read from JSON in ``profiles/``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).with_name("profiles")
EXPECTS: Mapping[str, tuple[str, ...]] = {
    "type": ("accepted", "refused"),
    "core_mask": ("accepted", "refused"),
    "norm_b_of_type": ("accepted", "refused"),
    "int8_k_above": ("refused",),
    "int8_slow_k_above": ("slow",),
    "int8_gops": ("reached",),
}
"""What a profile can speak of, and what it can expect of it. int8_gops: at M=128 K=1024 N=8192, normal layouts, one
core."""


class BadProfile(ValueError):
    """A profile file that cannot be used; the message says why."""


@dataclass(frozen=True)
class Expectation:
    """``what`` of ``value`` is as ``expect`` says (:data:`EXPECTS`), with ``code`` where known; ``source`` says who saw
    it."""

    what: str
    value: int
    expect: str
    source: str
    code: int | None = None


@dataclass(frozen=True)
class Profile:
    """What is known of ``soc`` (lower case) with the runtimes whose version starts with ``runtime``."""

    soc: str
    runtime: str
    cores: int
    expectations: tuple[Expectation, ...]

    def find(self, what: str, value: int) -> Expectation | None:
        """The entry for one thing."""
        return next((entry for entry in self.expectations if (entry.what, entry.value) == (what, value)), None)

    def k_refusal(self, K: int) -> Expectation | None:
        """The entry that says that int8 products of this K are refused."""
        limits = (entry for entry in self.expectations if entry.what == "int8_k_above")
        return next((entry for entry in limits if entry.value < K), None)


def read_profile(path: Path) -> Profile:
    """Reads one file. Raises :class:`BadProfile`."""
    try:
        raw = json.loads(path.read_text("utf-8"))
        entries = tuple(
            Expectation(str(e["what"]), int(e["value"]), str(e["expect"]), str(e["source"]), e.get("code"))
            for e in raw["expectations"]
        )
        profile = Profile(str(raw["soc"]), str(raw["runtime"]), int(raw["cores"]), entries)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadProfile(f"{path} is no profile: {error!r}") from error
    seen = set()
    for entry in entries:
        key = (entry.what, entry.value)
        if entry.expect not in EXPECTS.get(entry.what, ()) or not entry.source.strip() or key in seen:
            raise BadProfile(f"{path}: {entry} is unknown, twice there, or has no source")
        seen.add(key)
    return profile


def profile_for(soc: str | None, version: tuple[int, ...] | None, folder: Path = FOLDER) -> Profile | None:
    """The profile of this SoC and runtime version, None where there is none: then refusals are only recorded."""
    if soc is None or version is None:
        return None
    text = ".".join(map(str, version)) + "."
    for path in sorted(folder.glob("*.json")):
        profile = read_profile(path)
        if soc.lower() == profile.soc and text.startswith(profile.runtime + "."):
            return profile
    return None
