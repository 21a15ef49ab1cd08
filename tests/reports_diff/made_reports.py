# SPDX-License-Identifier: Apache-2.0
"""Reports whose noise is known: the rows of a stored run with new samples drawn around their medians."""

from __future__ import annotations

import copy
import json
import math
import random
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Any

Report = dict[str, Any]
SAMPLE = Path(__file__).parent.parent / "reports_versions" / "format_1.json"


@lru_cache(maxsize=1)
def _stored() -> str:
    return SAMPLE.read_text(encoding="utf-8")


def stored() -> Report:
    report: Report = json.loads(_stored())
    return report


def set_samples(row: dict[str, Any], samples: list[float]) -> None:
    center = median(samples)
    row["samples"], row["median"] = samples, center
    row["mad"] = median(abs(value - center) for value in samples)


def noisy(
    seed: int, *, noise: float = 0.01, outliers: float = 0.0, lower: int | None = None, by: float = 0.9
) -> Report:
    """A run with every timed row valid and its samples new. ``noise``: relative, of one sample; each row also moves by
    0.3 % from run to run. ``outliers``: share of samples up to twice as slow. Row ``lower`` is ``by`` times itself."""
    choose = random.Random(seed)
    report = stored()
    for index, row in enumerate(report["measurements"]):
        if not is_timed(row):
            continue
        row["validity"] = {"valid": True, "reasons": []}
        center = row["median"] * math.exp(choose.gauss(0, 0.003)) * (by if index == lower else 1)
        samples = []
        for _ in range(max(7, len(row["samples"]))):
            slow = choose.uniform(0.5, 1) if choose.random() < outliers else 1.0
            samples.append(center * math.exp(choose.gauss(0, noise)) * slow)
        set_samples(row, samples)
    return report


def is_timed(row: dict[str, Any]) -> bool:
    return len(row["samples"]) >= 3


def timed_rows() -> list[int]:
    return [index for index, row in enumerate(stored()["measurements"]) if is_timed(row)]


def copied(report: Report) -> Report:
    return copy.deepcopy(report)
