# SPDX-License-Identifier: Apache-2.0
"""The words and records that every part of the kit shares: facts, measurements, findings, steps, and their events.

Nothing here touches the system. A probe makes records and hands them to an :class:`~reports.events.Emitter`; sinks
listen. ``as_json`` of each record gives exactly what the JSON Schema in ``reports/schema`` describes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Union

FORMAT = "rknpu-kit capability report"
FORMAT_VERSION = 1
"""Bumped only by a change that breaks readers. Additions do not count."""

EXIT_OK = 0
EXIT_FINDINGS = 1
EXIT_USAGE = 2
EXIT_COULD_NOT_RUN = 3

JsonValue = Union[None, bool, int, float, str, list[Any], dict[str, Any]]


class Provenance(str, Enum):
    """How a fact is known. ``measured``: by this run. ``read``: from the place named. ``assumed``: from a table."""

    MEASURED = "measured"
    READ = "read"
    ASSUMED = "assumed"


class Severity(str, Enum):
    """``error`` makes the exit code 1; ``warning`` spoils a number or a feature; ``info`` is never red."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Verdict(str, Enum):
    """How one step or check ended."""

    PASSED = "passed"
    FAILED = "failed"
    UNSUPPORTED = "unsupported"
    SKIPPED = "skipped"
    COULD_NOT_RUN = "could-not-run"
    CRASHED = "crashed"
    TIMED_OUT = "timed-out"


class Checked(str, Enum):
    """How the output behind a number was judged: ``exact`` (every element), ``bounded`` (tolerance), ``not``."""

    EXACT = "exact"
    BOUNDED = "bounded"
    NOT = "not"


@dataclass(frozen=True)
class Fact:
    """One thing known, or not known, about the board.

    ``key`` is dotted (``npu.driver_version``), with the unit as suffix where it has one. ``source`` is the path or
    call it came from. A ``value`` of None needs a ``reason``; ``needs_root`` says that root would have read it.
    ``private`` marks personal data: its value leaves the process only with ``--full``.
    """

    key: str
    value: JsonValue
    source: str
    provenance: Provenance = Provenance.READ
    reason: str | None = None
    needs_root: bool = False
    private: bool = False

    def __post_init__(self) -> None:
        if self.value is None and not self.reason:
            raise ValueError(f"fact {self.key}: a null value needs a reason")

    def as_json(self, *, full: bool = False) -> dict[str, JsonValue]:
        hidden = self.private and not full and self.value is not None
        return {
            "value": None if hidden else finite(self.value),
            "source": self.source,
            "provenance": self.provenance.value,
            "reason": "redacted (personal data)" if hidden else self.reason,
            "needs_root": self.needs_root,
        }


@dataclass(frozen=True)
class Validity:
    """Whether the conditions of a measurement allow it to be used, with the reasons where they do not."""

    valid: bool
    reasons: tuple[str, ...] = ()

    def as_json(self) -> dict[str, JsonValue]:
        return {"valid": self.valid, "reasons": list(self.reasons)}


@dataclass(frozen=True)
class Measurement:
    """One measured row. ``median``, ``mad`` and ``samples`` are in ``unit``.

    ``verdict`` is ``passed`` only where the output was right; ``checked`` says how that was judged. ``method`` is the
    text that explains what was measured and what can spoil it. ``evidence`` holds what does not fit elsewhere (first
    wrong element, captured log lines). ``median`` is None where no number may be shown.
    """

    name: str
    parameters: dict[str, JsonValue]
    unit: str
    median: float | None
    mad: float | None
    samples: tuple[float, ...]
    checked: Checked
    verdict: Verdict
    validity: Validity
    method: str
    reason: str | None = None
    evidence: dict[str, JsonValue] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.median is None and not self.reason:
            raise ValueError(f"measurement {self.name}: a null median needs a reason")

    def as_json(self) -> dict[str, JsonValue]:
        return {
            "name": self.name,
            "parameters": finite(self.parameters),
            "unit": self.unit,
            "median": finite(self.median),
            "mad": finite(self.mad),
            "samples": finite(list(self.samples)),
            "checked": self.checked.value,
            "verdict": self.verdict.value,
            "validity": self.validity.as_json(),
            "method": self.method,
            "reason": self.reason,
            "evidence": finite(self.evidence),
        }


@dataclass(frozen=True)
class Finding:
    """Something a person should know, from the catalogue: stable ``code``, and what to do next.

    ``rank`` orders findings by likely cause, lowest first; ties go by severity. ``fix`` holds the commands or steps,
    in order, each complete in itself. ``evidence`` is the line or fact that shows it.
    """

    code: str
    severity: Severity
    what: str
    why: str
    fix: tuple[str, ...]
    evidence: str
    rank: int

    def as_json(self) -> dict[str, JsonValue]:
        return {
            "code": self.code,
            "severity": self.severity.value,
            "what": self.what,
            "why": self.why,
            "fix": list(self.fix),
            "evidence": self.evidence,
            "rank": self.rank,
        }


@dataclass(frozen=True)
class Step:
    """One step of a run and how it ended. ``covered`` says what a pass covers; ``reason`` why it did not pass."""

    name: str
    verdict: Verdict
    duration_s: float
    covered: str | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        if self.verdict is Verdict.PASSED and not self.covered:
            raise ValueError(f"step {self.name}: a pass needs the sentence of what it covered")
        if self.verdict is not Verdict.PASSED and not self.reason:
            raise ValueError(f"step {self.name}: {self.verdict.value} needs a reason")

    def as_json(self) -> dict[str, JsonValue]:
        return {
            "name": self.name,
            "verdict": self.verdict.value,
            "duration_s": round(self.duration_s, 6),
            "covered": self.covered,
            "reason": self.reason,
        }


def finite(value: Any) -> Any:
    """The same value with NaN and infinities made null, at any depth: JSON has no word for them."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return value


def by_cause(finding: Finding) -> tuple[int, int, str]:
    """Sort key: most likely cause first, then severity, then code. Errors stand before warnings before notes.

    An ``info`` never stands before an error: its rank counts within its severity class only when the class differs.
    """
    order = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}
    return (order[finding.severity], finding.rank, finding.code)
