# SPDX-License-Identifier: Apache-2.0
"""Published figures of other people's boards, and how a report stands beside them.

Each ``*.json`` file here is one source, by ``reports/schema/baseline.schema.json``, with its date and its conditions.
"""

from reports.baselines.compare import BaselineRow, compare_with_baselines, why_not_compared
from reports.baselines.gap import Explanation
from reports.baselines.table import Baseline, Figure, load_baselines

__all__ = [
    "Baseline",
    "BaselineRow",
    "Explanation",
    "Figure",
    "compare_with_baselines",
    "load_baselines",
    "why_not_compared",
]
