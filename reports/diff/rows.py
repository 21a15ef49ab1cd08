# SPDX-License-Identifier: Apache-2.0
"""Measurements of two reports beside each other, each pair with one word on what happened to it.

A speed is called changed when the whole simultaneous interval of its ratio lies beyond ``FLOOR``; a row measured under
bad conditions, or derived from others, is never judged. Counts (limits of shapes, descriptors) have no noise and are
compared as they are.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from reports.diff.statistics import FEWEST, Ratio, ratio_of_medians

Row = dict[str, Any]

FLOOR = 0.03
"""Relative change below which no difference between two runs is claimed: what a probe of this kit repeats within on an
idle machine. Samples of one run cannot show what changes from run to run."""
CONFIDENCE = 0.95
"""For all rows of one comparison together."""
HIGHER_IS_BETTER = frozenset({"tops", "gbps", "gops", "mhz", "tok/s"})
LOWER_IS_BETTER = frozenset({"us", "ms", "s"})
COUNTS = frozenset({"elements", "fds"})
"""Units of what is counted and not timed."""
MEMORY_STEP = 0.10
"""Relative change of a number of bytes below which it counts as the same: allocators and other processes move it."""
FROM_OTHERS = "derived from other rows"


@dataclass(frozen=True)
class RowChange:
    """One measurement in both reports, or in one of them.

    ``word``: same, faster, slower, higher, lower, unclear (the interval reaches into both), changed (a count),
    broke (right before, not now), mended, other (the way it ended changed), came, went, or not judged with ``why``.
    """

    name: str
    parameters: dict[str, Any]
    unit: str
    before: float | None
    after: float | None
    word: str
    ratio: Ratio | None = None
    why: str | None = None

    @property
    def changed(self) -> bool:
        return self.word not in ("same", "unclear", "not judged")


def row_key(row: Row) -> str:
    """What makes two rows of two reports the same measurement: name and parameters, in any order of keys."""
    return json.dumps([row.get("name"), row.get("parameters")], sort_keys=True, ensure_ascii=True)


def compare_rows(before: Sequence[Row], after: Sequence[Row], *, confidence: float = CONFIDENCE) -> list[RowChange]:
    """Every measurement of either report, in the order of ``after``, those gone at the end."""
    old, new = _by_key(before), _by_key(after)
    judged = sum(1 for key in new if key in old and _unfit(old[key], new[key]) is None)
    level = 1 - (1 - confidence) / max(judged, 1)
    changes = [_compare(key, old[key], row, level) if key in old else _lone(row, "came") for key, row in new.items()]
    return changes + [_lone(row, "went") for key, row in old.items() if key not in new]


def _by_key(rows: Iterable[Row]) -> dict[str, Row]:
    found: dict[str, Row] = {}
    for row in rows:
        found.setdefault(row_key(row), row)
    return found


def _lone(row: Row, word: str) -> RowChange:
    value = row.get("median")
    before, after = (None, value) if word == "came" else (value, None)
    return RowChange(str(row.get("name")), row.get("parameters") or {}, str(row.get("unit")), before, after, word)


def _compare(key: str, old: Row, new: Row, level: float) -> RowChange:
    def change(word: str, ratio: Ratio | None = None, why: str | None = None) -> RowChange:
        values = (old.get("median"), new.get("median"))
        return RowChange(
            str(new.get("name")), new.get("parameters") or {}, str(new.get("unit")), *values, word, ratio, why
        )

    ended = old.get("verdict"), new.get("verdict")
    if ended[0] != ended[1]:
        word = {(True, False): "broke", (False, True): "mended"}.get(
            (ended[0] == "passed", ended[1] == "passed"), "other"
        )
        if "skipped" in ended:
            word = "other"  # nobody looked, so nothing broke
        return change(word, why=f"{ended[0]} -> {ended[1]}" + (f": {new['reason']}" if new.get("reason") else ""))
    if old.get("median") is None and new.get("median") is None:
        return change("same")
    if old.get("unit") != new.get("unit"):
        return change("not judged", why=f"unit {old.get('unit')} -> {new.get('unit')}")
    if _is_count(new):
        return _compare_counts(old, new, change)
    why = _unfit(old, new)
    if why is not None:
        return change("not judged", why=why)
    ratio = ratio_of_medians(run_samples(old), run_samples(new), level, zlib.crc32(key.encode()))
    if ratio is None:
        return change("not judged", why="a sample is not positive")
    return change(_word(ratio, str(new.get("unit"))), ratio)


def _word(ratio: Ratio, unit: str) -> str:
    rose, fell = ratio.low > 1 + FLOOR, ratio.high < 1 / (1 + FLOOR)
    if not rose and not fell:
        within = ratio.low >= 1 / (1 + 2 * FLOOR) and ratio.high <= 1 + 2 * FLOOR
        return "same" if within else "unclear"
    if unit in HIGHER_IS_BETTER:
        return "faster" if rose else "slower"
    if unit in LOWER_IS_BETTER:
        return "slower" if rose else "faster"
    return "higher" if rose else "lower"


def _is_count(row: Row) -> bool:
    return row.get("unit") in COUNTS or (row.get("name") == "npu_memory" and row.get("unit") == "bytes")


def _compare_counts(old: Row, new: Row, change: Callable[[str], RowChange]) -> RowChange:
    before, after = old.get("median"), new.get("median")
    if before is None or after is None:
        return change("same" if before == after else "other")
    if new.get("unit") == "bytes":
        least = max(MEMORY_STEP * max(abs(before), abs(after)), 65536.0)
        return change("same" if abs(after - before) <= least else "changed")
    return change("same" if before == after else "changed")


def _unfit(old: Row, new: Row) -> str | None:
    """Why this pair cannot be judged by its samples, or None."""
    for side, row in (("before", old), ("after", new)):
        validity = row.get("validity") or {}
        if not row.get("samples") or row.get("median") is None:
            return f"no samples {side}"
        if isinstance((row.get("evidence") or {}).get("derived_from"), (str, list, dict)):
            return FROM_OTHERS
        if row.get("checked") == "not":
            return f"nobody compared the output {side}"
        if not validity.get("valid"):
            reasons = "; ".join(str(reason) for reason in validity.get("reasons") or ["no reason was given"])
            return f"measured under bad conditions {side}: {reasons}"
        if len(run_samples(row)) < FEWEST:
            return f"{len(run_samples(row))} samples {side}, {FEWEST} are needed"
    return None


def run_samples(row: Row) -> list[float]:
    """The independent samples of a row: of a merged row with enough runs one median per run, else all samples.

    Runs differ by more than the samples within a run; where several runs are there they show by how much.
    """
    samples = [float(value) for value in row.get("samples") or () if value is not None]
    sizes = (row.get("evidence") or {}).get("samples_of_runs")
    if not isinstance(sizes, list) or len(sizes) < FEWEST or not all(_is_size(size) for size in sizes):
        return samples
    if sum(sizes) != len(samples):
        return samples
    ends = [sum(sizes[: index + 1]) for index in range(len(sizes))]
    return [median(samples[end - size : end]) for end, size in zip(ends, sizes, strict=True)]


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
