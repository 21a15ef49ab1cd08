# SPDX-License-Identifier: Apache-2.0
"""What a measurement is to the run: its texts, the C programs it starts at each level, and what it concludes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from probes.native import NativeProbe
from reports.contract import Checked, Finding, JsonValue, Measurement, Validity, Verdict

MEDIUM = "medium"
LONG = "long"
Rows = Sequence[Measurement]


@dataclass(frozen=True)
class Setting:
    """What is known when the measurements are planned. Rates are of the whole chip; None: not known.

    ``rated_tops``: int8 TOPS by data sheet. ``ddr_gbps``: bandwidth of the memory by theory (bus width times rate).
    """

    level: str = MEDIUM
    simulated: bool = False
    cores: int | None = None
    rated_tops: float | None = None
    ddr_gbps: float | None = None

    @property
    def rated_core_tops(self) -> float | None:
        return self.rated_tops / self.cores if self.rated_tops and self.cores else None


@dataclass(frozen=True)
class Conclusion:
    """What follows from the rows of one measurement: rows worked out from them, and findings."""

    rows: tuple[Measurement, ...] = ()
    findings: tuple[Finding, ...] = ()


def nothing(_rows: Rows, _setting: Setting) -> Conclusion:
    """For a measurement whose rows say it all."""
    return Conclusion()


@dataclass(frozen=True)
class Spec:
    """One measurement. ``what``, ``how`` and ``spoiled_by`` are for people (``--list``).

    ``plan`` gives the C programs for a setting, each a step of the run in a child of its own. ``risky`` ones go to
    limits that have hung boards; they run only when asked for.
    """

    name: str
    what: str
    how: str
    spoiled_by: str
    levels: frozenset[str]
    plan: Callable[[Setting], tuple[NativeProbe, ...]]
    conclude: Callable[[Rows, Setting], Conclusion] = nothing
    risky: bool = False
    calls_library: bool = True


BOTH = frozenset({MEDIUM, LONG})
ONLY_LONG = frozenset({LONG})


def derived(
    name: str,
    sources: Rows,
    *,
    parameters: dict[str, JsonValue],
    unit: str,
    value: float | None,
    method: str,
    reason: str | None = None,
    evidence: dict[str, JsonValue] | None = None,
) -> Measurement:
    """A row worked out from others: as exact, and as valid, as all of them together."""
    exact = bool(sources) and all(row.checked is Checked.EXACT for row in sources)
    reasons = sorted({reason for row in sources for reason in row.validity.reasons})
    known = value is not None
    return Measurement(
        name=name,
        parameters=parameters,
        unit=unit,
        median=value,
        mad=None,
        samples=(value,) if value is not None else (),
        checked=Checked.EXACT if exact else Checked.NOT,
        verdict=Verdict.PASSED if known else Verdict.COULD_NOT_RUN,
        validity=Validity(not reasons, tuple(reasons)) if known else Validity(False, ("no number",)),
        method=method,
        reason=reason if known or reason else "the rows it is worked out from have no numbers",
        evidence={"derived_from": len(sources), **(evidence or {})},
    )


@dataclass
class Collected:
    """Conclusions gathered piece by piece."""

    rows: list[Measurement] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def done(self) -> Conclusion:
        return Conclusion(tuple(self.rows), tuple(self.findings))


def named(rows: Rows, name: str, **parameters: JsonValue) -> list[Measurement]:
    """The rows of that name that have a number and these parameters."""
    return [
        row
        for row in rows
        if row.name == name
        and row.median is not None
        and all(row.parameters.get(key) == value for key, value in parameters.items())
    ]


def evidence_number(row: Measurement, key: str) -> float | None:
    """A number of a row's evidence."""
    value = row.evidence.get(key)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
