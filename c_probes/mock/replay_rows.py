# SPDX-License-Identifier: Apache-2.0
"""Reading the rows of a saved report, which may hold anything: each function gives a good value or None."""

from __future__ import annotations

from typing import Any


class BadReport(Exception):
    """The file is no capability report; the message says what is missing."""


def measurements(report: Any, name: str) -> list[dict[str, Any]]:
    """The rows of one name. Raises BadReport when there is no list of rows at all."""
    rows = report.get("measurements") if isinstance(report, dict) else None
    if not isinstance(rows, list):
        raise BadReport('no list "measurements" in it: not a capability report')
    return [row for row in rows if isinstance(row, dict) and row.get("name") == name]


def without_validity(report: Any) -> Any:
    """The report with its rows' validity left out, so that speeds under bad conditions count too."""
    rows = report.get("measurements") if isinstance(report, dict) else None
    if not isinstance(rows, list):
        return report
    kept = [{k: v for k, v in row.items() if k != "validity"} if isinstance(row, dict) else row for row in rows]
    return {**report, "measurements": kept}


def parameter(row: dict[str, Any], key: str) -> Any:
    """One parameter, None where it is absent."""
    parameters = row.get("parameters")
    return parameters.get(key) if isinstance(parameters, dict) else None


def positive(value: Any) -> float | None:
    """A number from 1e-6 on, below 1e18: smaller ones are no speeds, times or sizes of a board."""
    usable = isinstance(value, (int, float)) and not isinstance(value, bool) and 1e-6 <= value < 1e18
    return float(value) if usable else None


def whole(value: Any) -> int | None:
    """A positive whole number of 31 bits."""
    number = positive(value)
    return int(number) if number is not None and number == int(number) and number < 2**31 else None


def usable(row: dict[str, Any]) -> bool:
    """Right, valid, and with a number."""
    validity = row.get("validity")
    valid = not isinstance(validity, dict) or validity.get("valid") is not False
    return row.get("verdict") == "passed" and valid and positive(row.get("median")) is not None
