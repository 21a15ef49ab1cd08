# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin that collects how each check ended, shows it, and writes the section of the report."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping

import pytest

from conformance.options import Options
from conformance.runner import Outcome
from conformance.section import CannotWrite, section, write_section
from conformance.subjects import Subject
from reports.contract import EXIT_COULD_NOT_RUN, Verdict

PROPERTY = "conformance"
"""Name of the JUnit property that carries an outcome as JSON, from a worker of pytest-xdist too."""


class Results:
    """What is judged, with which options, and the outcomes so far."""

    def __init__(self, options: Options, subjects: Mapping[str, Subject], *, is_worker: bool) -> None:
        self.options, self.subjects, self._is_worker = options, subjects, is_worker
        self.outcomes: list[Outcome] = []
        self.report_error: str | None = None

    @property
    def simulated(self) -> bool:
        """Whether no silicon is behind something that is judged."""
        return any(subject.simulated for subject in self.subjects.values())

    @property
    def header(self) -> str:
        """What is judged, on one line."""
        return "; ".join(subject.header for subject in self.subjects.values())

    def pytest_report_header(self) -> list[str]:
        """Target, SIMULATED or not, level and seed."""
        return [
            *(f"conformance {subject.header}" for subject in self.subjects.values()),
            f"conformance level {self.options.level}, seed {self.options.seed}",
        ]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Takes the outcome that the test left as a property."""
        if report.when == "call":
            texts = [str(value) for name, value in report.user_properties if name == PROPERTY]
            self.outcomes += [from_text(text) for text in texts]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Writes the section, in the process that has all outcomes."""
        if self._is_worker or self.options.report is None:
            return
        try:
            write_section(self.options.report, section(self.subjects, self.options, self.outcomes))
        except CannotWrite as error:
            self.report_error = str(error)
            session.exitstatus = EXIT_COULD_NOT_RUN

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """What passed and what that covers, and what the profile did not expect."""
        if not self.outcomes:
            return
        terminalreporter.section("conformance" + (" (SIMULATED)" if self.simulated else ""))
        for outcome in self.outcomes:
            sentence = outcome.covered or (outcome.reason or "").splitlines()[0]
            terminalreporter.write_line(f"{outcome.verdict.value:13} {outcome.check:21} {sentence}")
        for text in sorted({text for outcome in self.outcomes for text in outcome.unexpected}):
            terminalreporter.write_line(f"unexpected pass: {text}")
        counts = Counter(outcome.verdict for outcome in self.outcomes)
        told = ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict])
        terminalreporter.write_line(f"{len(self.outcomes)} checks: {told}. {self.header}")
        if self.options.report is not None:
            done = self.report_error or f"section 'conformance' written into {self.options.report}"
            terminalreporter.write_line(done)


def as_text(outcome: Outcome) -> str:
    """An outcome as JSON text."""
    return json.dumps({**outcome.__dict__, "verdict": outcome.verdict.value})


def from_text(text: str) -> Outcome:
    """The outcome that :func:`as_text` wrote."""
    fields = json.loads(text)
    return Outcome(
        fields["check"],
        Verdict(fields["verdict"]),
        float(fields["seconds"]),
        fields["covered"],
        fields["reason"],
        tuple(fields["unexpected"]),
        tuple(fields["known"]),
        fields["suite"],
    )
