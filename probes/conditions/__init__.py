# SPDX-License-Identifier: Apache-2.0
"""The conditions a measurement was taken under, and the verdict whether they allow it to be used.

    with Sampler(Path("/")) as sampler:
        with sampler.row() as row:
            ...  # run the row, its warm-up outside of this block
        validity = judge(row.samples, per_run_rates, Rules(higher_is_better=True))
        evidence = summarise(row.samples)

A child that measures several rows is watched as a whole and judged row by row, by the time window each row
reports::

    watch = StepWatch(sampler, Rules())
    ...  # the child runs; its rows carry the start and end of their timed part in monotonic seconds
    validity, evidence = watch(row_samples, window), watch.evidence(window)

Only files that are safe to read are read: never debugfs, whose ``freq`` node wakes the NPU, and nothing is
written.
"""

from __future__ import annotations

from probes.conditions.judge import Rules, foreign_cpus, judge
from probes.conditions.sample import Load, Phase, Policy, Ranges, Sample
from probes.conditions.sampler import Row, Sampler
from probes.conditions.stop import should_stop
from probes.conditions.summary import summarise
from probes.conditions.watch import StepWatch
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
    "StepWatch",
    "between",
    "foreign_cpus",
    "judge",
    "should_stop",
    "summarise",
]
