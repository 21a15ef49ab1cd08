# SPDX-License-Identifier: Apache-2.0
"""The conditions a measurement was taken under, and the verdict whether they allow it to be used.

    with Sampler(Path("/")) as sampler:
        with sampler.row() as row:
            ...  # run the row, its warm-up outside of this block
        validity = judge(row.samples, per_run_rates, Rules(higher_is_better=True))
        evidence = summarise(row.samples)

A child that measures several rows prepares each of them, with the NPU idle and its clock low. Where a row
reports the start and end of its timed part (``timed_window_s`` in its evidence, CLOCK_MONOTONIC seconds),
``between`` cuts that part out of the samples before they are judged.

Only files that are safe to read are read: never debugfs, whose ``freq`` node wakes the NPU, and nothing is
written.
"""

from __future__ import annotations

from probes.conditions.judge import foreign_cpus, judge
from probes.conditions.rules import Rules, rules_for
from probes.conditions.sample import Load, Phase, Policy, Ranges, Sample
from probes.conditions.sampler import Row, Sampler
from probes.conditions.stop import should_stop
from probes.conditions.summary import summarise
from probes.conditions.window import between

__all__ = [
    "Load",
    "Phase",
    "Policy",
    "Ranges",
    "Row",
    "Rules",
    "Sample",
    "Sampler",
    "between",
    "foreign_cpus",
    "judge",
    "rules_for",
    "should_stop",
    "summarise",
]
