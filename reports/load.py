# SPDX-License-Identifier: Apache-2.0
"""Reads a saved report. A report is a stranger's file: what is too large, too deep or misshapen is one sentence.

What ``load_report`` returns has the shape every reader of this kit may rely on (``reports/shape.py``): the sections are
there, records are objects, each known field is of its type, numbers are finite, text can be encoded, nesting is
shallow. Words and values are still a stranger's.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

from reports.contract import FORMAT, FORMAT_VERSION
from reports.shape import misshapen
from reports.text import inert

MAX_REPORT_BYTES = 32 * 1024 * 1024
"""A long run makes about 2 MB. Merged ones and many samples have room."""
MAX_VALUES = 2_000_000
"""Of all values together, counted before they are made: so many cost less than 500 MB."""
MAX_DEPTH = 48
MAX_DIGITS = 40
"""Of one whole number. 64 bits have twenty."""

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_HALF = re.compile("[\ud800-\udfff]")


class NotAReport(Exception):
    """A file that holds no capability report this version can read. The text is fit for the user."""


def load_report(path: Path) -> dict[str, Any]:
    """The report in ``path``. Raises NotAReport, with the reason, for anything else."""
    report = load_json(path, "capability report")
    if not isinstance(report, dict) or report.get("format") != FORMAT:
        raise NotAReport(f"{path} is JSON, but no capability report of this kit.")
    version = report.get("format_version")
    if isinstance(version, bool) or not isinstance(version, int) or not 1 <= version <= FORMAT_VERSION:
        raise NotAReport(f"{path} has format_version {inert(version, 20)}; this kit reads 1 to {FORMAT_VERSION}.")
    problem = misshapen(report)
    if problem:
        raise NotAReport(f"{path} is no capability report this kit can read: {problem}. See rknpu-report validate.")
    return report


def load_json(path: Path, what: str) -> Any:
    """The JSON value in ``path`` within the limits above; ``what`` names the kind of file. Raises NotAReport."""
    text = _read(path, what)
    if sum(map(text.count, ",:[{")) > MAX_VALUES:
        raise NotAReport(f"{path} holds more than {MAX_VALUES} values: no {what} does.")
    try:
        value = json.loads(text, parse_constant=_no_constant, parse_float=_finite, parse_int=_short)
    except (ValueError, RecursionError) as error:
        raise NotAReport(f"{path} is not JSON: {inert(error, 200)}.") from error
    if _deeper_than(value, MAX_DEPTH):
        raise NotAReport(f"{path} is nested deeper than {MAX_DEPTH}: no {what} is.")
    # Half of a character pair can stand in JSON and nowhere else: no encoding takes it.
    return _whole(value) if _SURROGATE.search(text) else value


def _read(path: Path, what: str) -> str:
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_REPORT_BYTES + 1)
        if len(data) > MAX_REPORT_BYTES:
            raise NotAReport(f"{path} is larger than {MAX_REPORT_BYTES // 2**20} MiB: no {what} is.")
        return data.decode("utf-8-sig")
    except OSError as error:
        raise NotAReport(f"cannot read {path}: {error.strerror}.") from error
    except ValueError as error:
        raise NotAReport(f"{path} is not JSON: {inert(error, 200)}.") from error


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{inert(text, 40)} is beyond the range of a number")
    return value


def _short(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"a whole number of {len(text)} digits")
    return int(text)


def _deeper_than(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        level = [
            item
            for each in level
            if isinstance(each, (dict, list))
            for item in (each.values() if isinstance(each, dict) else each)
            if isinstance(item, (dict, list))
        ]
        if not level:
            return False
    return True


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return _HALF.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_HALF.sub("\ufffd", key): _whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return value
