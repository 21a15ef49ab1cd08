# SPDX-License-Identifier: Apache-2.0
"""Which facts the terminal page shows, under which words, and how each kind of value is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Row = tuple[str, str, str]
"""Label on the page, fact key, kind of value."""

PAGE_SECTIONS: tuple[tuple[str, tuple[Row, ...]], ...] = ()


def fact_text(fact: dict[str, Any], kind: str) -> list[str]:
    """The lines for one fact of a report: its value by ``kind``, or why it is unknown."""
    value = fact.get("value")
    if value is None:
        hint = " (root could read it)" if fact.get("needs_root") else ""
        return [f"unknown: {fact.get('reason')}{hint}"]
    mark = " (assumed)" if fact.get("provenance") == "assumed" else ""
    try:
        lines = _WRITERS[kind](value)
    except (TypeError, ValueError, KeyError, AttributeError):
        lines = [str(value)]  # a report from elsewhere may hold any shape; it is shown as it is
    return [f"{lines[0]}{mark}", *lines[1:]] if lines else ["none"]


def _plain(value: Any) -> list[str]:
    if isinstance(value, bool):
        return ["yes" if value else "no"]
    if isinstance(value, list):
        return [", ".join(str(item) for item in value)] if value else []
    return [str(value)]


def _hertz(value: Any) -> list[str]:
    return [f"{value / 1e6:.0f} MHz"]


def _bytes(value: Any) -> list[str]:
    return [f"{value / 2**30:.1f} GiB" if value >= 2**30 else f"{value / 2**20:.1f} MiB"]


def _gbps(value: Any) -> list[str]:
    return [f"{value:.1f} GB/s"]


_WRITERS: dict[str, Callable[[Any], list[str]]] = {
    "plain": _plain,
    "hertz": _hertz,
    "bytes": _bytes,
    "gbps": _gbps,
}
