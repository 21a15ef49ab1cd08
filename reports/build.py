# SPDX-License-Identifier: Apache-2.0
"""Builds the capability report from the events of a run."""

from __future__ import annotations

import json
import time
from datetime import datetime, timezone
from typing import Any

from reports.contract import (
    FORMAT,
    FORMAT_VERSION,
    Fact,
    Finding,
    JsonValue,
    Measurement,
    Step,
    Verdict,
    by_cause,
    finite,
)
from reports.events import Event, RunEnded, RunStarted

SCHEMA_ID = "https://rknpu-kit.invalid/schema/capability_report.schema.json"


class ReportSink:
    """Collects the events of one run; :meth:`report` gives the report as a JSON-ready dict at any moment."""

    def __init__(self, *, full: bool = False) -> None:
        self._full = full
        self._header: dict[str, JsonValue] = {}
        self._started_at = time.time()  # the run's facts are collected before its first event is sent
        self._ended_at: float | None = None
        self._exit_code: int | None = None
        self._last_at = self._started_at
        self.facts: dict[str, Fact] = {}
        self.measurements: list[Measurement] = []
        self.findings: list[Finding] = []
        self.steps: list[Step] = []

    def handle(self, event: Event, at: float) -> None:
        self._last_at = at
        if isinstance(event, RunStarted):
            self._header = dict(event.header)
        elif isinstance(event, RunEnded):
            self._ended_at = at
            self._exit_code = event.exit_code
        elif isinstance(event, Fact):
            self.facts[event.key] = event
        elif isinstance(event, Measurement):
            self.measurements.append(event)
        elif isinstance(event, Finding):
            self.findings.append(event)
        elif isinstance(event, Step):
            self.steps.append(event)

    def close(self) -> None:
        """Nothing is held open."""

    def report(self) -> dict[str, Any]:
        end = self._ended_at if self._ended_at is not None else self._last_at
        header = finite(self._header)
        run = dict(header.get("run") or {})
        run.update(
            started_at=_utc(self._started_at),
            ended_at=_utc(end),
            duration_s=round(end - self._started_at, 3),
            complete=self._ended_at is not None,
            exit_code=self._exit_code,
        )
        return {
            "$schema": SCHEMA_ID,
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "simulated": bool(header.get("simulated", False)),
            "simulation": header.get("simulation"),
            "redacted": not self._full,
            "tool": header.get("tool") or {},
            "run": run,
            "facts": {key: fact.as_json(full=self._full) for key, fact in sorted(self.facts.items())},
            "measurements": [measurement.as_json() for measurement in self.measurements],
            "findings": [finding.as_json() for finding in sorted(self.findings, key=by_cause)],
            "steps": [step.as_json() for step in self.steps],
        }


def could_not_run(steps: list[Step]) -> bool:
    """True when steps were tried and none of them ended in a judgement of the device."""
    judged = {Verdict.PASSED, Verdict.FAILED, Verdict.CRASHED, Verdict.TIMED_OUT, Verdict.UNSUPPORTED}
    tried = [step for step in steps if step.verdict is not Verdict.SKIPPED]
    return bool(tried) and not any(step.verdict in judged for step in tried)


def dumps(report: dict[str, Any]) -> str:
    """The report as JSON text: indented, ASCII (a serial console can show it), no NaN, one newline at the end."""
    return json.dumps(report, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def _utc(at: float) -> str:
    return datetime.fromtimestamp(at, tz=timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
