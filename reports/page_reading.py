# SPDX-License-Identifier: Apache-2.0
"""Reads a report that may hold anything anywhere: an accessor gives a value of the type it names, whatever it finds."""

from __future__ import annotations

import math
from typing import Any

from reports.text import inert

Record = dict[str, Any]
MAX_RECORDS = 2000
"""Records of one kind that a page shows. A run has about 250 rows; the JSON report holds the rest."""
_DEEPEST = 3
_MOST_ITEMS = 12
_SMALLEST, _LARGEST = 1e-15, 1e15


def record(value: Any) -> Record:
    """``value`` where it is an object; an empty one otherwise."""
    return value if isinstance(value, dict) else {}


def records(value: Any) -> list[Record]:
    """The objects in a list, at most MAX_RECORDS of them; none where ``value`` is no list."""
    if not isinstance(value, list):
        return []
    return [item for item in value[:MAX_RECORDS] if isinstance(item, dict)]


def items(value: Any) -> list[Any]:
    """A list, cut at MAX_RECORDS; empty where ``value`` is none."""
    return value[:MAX_RECORDS] if isinstance(value, list) else []


def number_of(value: Any) -> float | None:
    """A finite number of a magnitude that a measurement can have; None for all else, truth values among it."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if value == 0:
        return 0.0
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and _SMALLEST <= abs(number) <= _LARGEST else None


def positive(value: Any) -> float | None:
    """As ``number_of``, above zero."""
    number = number_of(value)
    return number if number is not None and number > 0 else None


def count_of(value: Any) -> int | None:
    """A whole number above zero."""
    number = positive(value)
    return int(number) if number is not None and number == int(number) else None


def words(value: Any, limit: int = 600) -> str:
    """``value`` as one line of printable ASCII, at most ``limit`` characters and a mark of what was cut.

    Empty for None. Lists and objects are shown to a small depth, so that no nesting can exhaust the stack.
    """
    if value is None:
        return ""
    return inert(value if isinstance(value, str) else _shown(value, 0), limit)


def _shown(value: Any, depth: int) -> str:
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, str):
        return value[:200]
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, int):
        return str(value) if abs(value) < 10**18 else f"{'-' if value < 0 else ''}over 10^18"
    if depth >= _DEEPEST:
        return "..."
    more = ", ..." if len(value) > _MOST_ITEMS else ""
    if isinstance(value, dict):
        pairs = (f"{str(key)[:80]}: {_shown(item, depth + 1)}" for key, item in list(value.items())[:_MOST_ITEMS])
        return ", ".join(pairs) + more
    return ", ".join(_shown(item, depth + 1) for item in value[:_MOST_ITEMS]) + more


def fact(report: Record, key: str) -> Record:
    """The fact ``key``; empty where the report has none."""
    return record(record(report.get("facts")).get(key))


def fact_number(report: Record, key: str) -> float | None:
    """The value of fact ``key`` as a number."""
    return number_of(fact(report, key).get("value"))


def measured(report: Record, *names: str) -> list[Record]:
    """The measurement rows called one of ``names``, in the order of the report."""
    return [row for row in records(report.get("measurements")) if row.get("name") in names]


def parameters(row: Record) -> Record:
    return record(row.get("parameters"))


def evidence(row: Record) -> Record:
    return record(row.get("evidence"))


def is_valid(row: Record) -> bool:
    """Whether the conditions of the row allowed its number to be used."""
    return record(row.get("validity")).get("valid") is True


def is_right(row: Record) -> bool:
    """Whether the results behind the row were judged right. A number of a wrong result is never drawn."""
    return row.get("verdict") == "passed"


def simulated(report: Record) -> bool:
    """Whether the report says so, or does not say clearly that it is not: then it counts as simulated."""
    return report.get("simulated") is not False


def failed_checks(report: Record) -> int:
    """How many checks of the conformance suite, where a report holds them, ended as a fault of what was judged."""
    checks = records(record(report.get("conformance")).get("checks"))
    return sum(1 for check in checks if check.get("verdict") in ("failed", "crashed", "timed-out"))
