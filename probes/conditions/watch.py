# SPDX-License-Identifier: Apache-2.0
"""Conditions of a step of several rows: watched while it runs, judged row by row, during it or afterwards."""

from __future__ import annotations

from collections.abc import Sequence

from probes.conditions.judge import Rules, judge
from probes.conditions.sample import Phase, Sample
from probes.conditions.sampler import Row, Sampler
from probes.conditions.summary import summarise
from probes.conditions.window import between
from reports.contract import JsonValue, Validity

Window = tuple[float, float]
"""Start and end of the timed part of a row in monotonic seconds, the clock of ``time.monotonic`` and
CLOCK_MONOTONIC."""


class StepWatch:
    """Watches one step from its making on. Call it with a row's samples, and with its window where that is
    known.

    Without a window a row is judged by the conditions of the whole step up to now, preparation included. A
    new watch on the same sampler ends the one before it.
    """

    def __init__(self, sampler: Sampler, rules: Rules | None = None) -> None:
        self._sampler = sampler
        self._rules = rules or Rules()
        sampler.close_row()
        self._row: Row = sampler.open_row()

    def __call__(self, row_samples: Sequence[float], window: Window | None = None) -> Validity:
        """Whether the row may be used."""
        return judge(self.samples(window), row_samples, self._rules)

    def evidence(self, window: Window | None = None) -> dict[str, JsonValue]:
        """The conditions of the row, for its evidence."""
        return summarise(self.samples(window))

    def samples(self, window: Window | None = None) -> tuple[Sample, ...]:
        """What was sampled, with a look after the row, which is taken now unless there is one."""
        known = self._row.samples
        wanted_s = window[1] if window else self._sampler.now_s() - self._sampler.period_s
        if not any(sample.load is not None and sample.at_s > wanted_s for sample in known):
            self._row.look(self._sampler.take(Phase.AFTER))
            known = self._row.samples
        return between(known, *window) if window else known

    def stop(self) -> None:
        """Ends the watch; rows can still be judged."""
        self._sampler.close_row()
