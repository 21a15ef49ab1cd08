# SPDX-License-Identifier: Apache-2.0
"""From the JSON lines of a C probe to measurements and findings. Pure: text in, records out."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from probes.watch import Window
from reports.catalogue import make_finding
from reports.contract import Checked, Finding, Measurement, Validity, Verdict


@dataclass
class ProbeOutput:
    """What one C probe said so far. ``last_step`` is where it is, or was when it died."""

    header: dict[str, Any] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    error: dict[str, Any] | None = None
    last_step: str = "before its first step"
    ended: bool = False
    garbled_lines: int = 0

    def feed(self, line: str) -> dict[str, Any] | None:
        """Take one line of standard output; the record in it, or None for a line that is none."""
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            self.garbled_lines += 1
            return None
        if not isinstance(record, dict):
            self.garbled_lines += 1
            return None
        kind = record.get("record")
        if kind == "header":
            self.header = record
        elif kind == "step":
            self.last_step = str(record.get("step"))
        elif kind == "row":
            self.rows.append(record)
        elif kind == "error":
            self.error = record
        elif kind == "end":
            self.ended = True
        return record


def measurement(row: dict[str, Any], method: str, window: Window | None) -> Measurement:
    """The measurement of one row record, with the conditions it was taken under.

    A row whose output was not proven right never carries a number.
    """
    verdict = _word(Verdict, row.get("verdict"), Verdict.COULD_NOT_RUN)
    checked = _word(Checked, row.get("checked"), Checked.NOT)
    samples = row_samples(row)
    median = number(row.get("median")) if verdict is Verdict.PASSED else None
    mad = number(row.get("mad")) if median is not None else None
    reason = row.get("reason") or (None if median is not None else _why_no_number(row, verdict))
    evidence = _dict(row.get("evidence"))
    for key in (
        "run_us",
        "cold_run_us",
        "runs_per_sample",
        "create_us",
        "bind_a_us",
        "bind_b_us",
        "bind_c_us",
    ):
        if row.get(key) is not None:
            evidence[key] = row[key]
    if window is not None:
        evidence["conditions"] = window.conditions
    validity = window.validity if window is not None else Validity(False, ("conditions unknown",))
    return Measurement(
        name=str(row.get("name")),
        parameters=_dict(row.get("parameters")),
        unit=str(row.get("unit") or ""),
        median=median,
        mad=mad if mad is not None and mad >= 0 else None,
        samples=samples if median is not None else (),
        checked=checked,
        verdict=verdict,
        validity=validity if median is not None else Validity(False, ("no number",)),
        method=method or "no description came with this row",
        reason=str(reason) if reason is not None else None,
        evidence=evidence,
    )


def row_samples(row: dict[str, Any]) -> tuple[float, ...]:
    """The raw samples of a row record, those that are numbers."""
    raw = row.get("samples")
    return tuple(value for value in map(number, raw) if value is not None) if isinstance(raw, list) else ()


LOWER_IS_BETTER = frozenset({"us"})
NO_SPEED = frozenset({"shape_limit", "shape_alignment", "npu_memory"})
"""Rows whose number does not come from a clock: their spread says nothing about the conditions."""


def higher_is_better(row: dict[str, Any]) -> bool:
    """False for times."""
    return row.get("unit") not in LOWER_IS_BETTER


def judged_samples(row: dict[str, Any]) -> tuple[float, ...]:
    """The samples that the conditions are judged by: none for a row that is not a speed."""
    return () if row.get("name") in NO_SPEED else row_samples(row)


def row_findings(rows: Iterable[Measurement]) -> list[Finding]:
    """What the rows say about the library: wrong results, crashes by type, scaling and the cliff in K."""
    rows = list(rows)
    found = [finding for row in rows for finding in _row_finding(row)]
    return [*found, *_scaling_findings(rows), *_cliff_findings(rows)]


def describe(row: Measurement) -> str:
    """A row's parameters in the field's words: ``int8_int8_int32 M=512 K=4096 N=4096, B native, A,C norm``."""
    values = row.parameters
    words = [str(values.get("type_name") or f"type {values.get('type')}")]
    words += [f"{key}={values[key]}" for key in ("M", "K", "N", "contexts", "core_mask") if values.get(key) is not None]
    layouts = [f"{name} {values[key]}" for key, name in (("B_layout", "B"), ("AC_layout", "A,C")) if values.get(key)]
    if values.get("B_quant"):
        layouts.append(str(values["B_quant"]))
    return ", ".join([" ".join(words), *layouts])


def number(value: Any) -> float | None:
    """A finite float, or None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if math.isfinite(value) else None


_BUSY = re.compile(r"background load: other processes kept ([0-9.]+) of ([0-9]+) CPUs busy")
BUSY_SHARE = 0.15


def undisturbed(row: Measurement) -> bool:
    """Whether a speed may be blamed on the NPU: other processes took less than 15 % of the CPUs.

    A little load marks a row as invalid; only with this much of it could the load itself look like a fault.
    """
    busy = [match for reason in row.validity.reasons if (match := _BUSY.match(reason))]
    return all(float(match[1]) <= BUSY_SHARE * int(match[2]) for match in busy)


def _row_finding(row: Measurement) -> list[Finding]:
    evidence = row.reason or ""
    if row.verdict is Verdict.FAILED:
        code = {"not-written": "NPU-C030", "all-zero": "NPU-C031"}.get(str(row.evidence.get("kind")), "NPU-C034")
        if row.evidence.get("semantics") == "undocumented":
            return []  # an undocumented type has no right answer to miss; the row says what came back
        return [make_finding(code, evidence, row=describe(row))]
    if row.verdict is Verdict.CRASHED and row.name == "dtype_support":
        signal = row.evidence.get("signal") or "a signal"
        return [make_finding("NPU-C033", evidence, type=row.parameters.get("type"), signal=signal)]
    if row.verdict is Verdict.COULD_NOT_RUN and row.name == "core_scaling":
        return [make_finding("NPU-D010", evidence, contexts=row.parameters.get("contexts"), detail=evidence)]
    disagreement = row.evidence.get("disagreement")
    if disagreement:
        return [make_finding("NPU-D009", str(disagreement), function="rknn_matmul_create", detail=str(disagreement))]
    return []


def _scaling_findings(rows: list[Measurement]) -> list[Finding]:
    by_contexts = {
        _int(row, "contexts"): row.median
        for row in rows
        if row.name == "core_scaling" and row.median is not None and undisturbed(row)
    }
    one, most = by_contexts.get(1), max(by_contexts, default=1)
    if not one or most < 2:
        return []
    ratio = by_contexts[most] / one
    if ratio > 1.2:  # below this the gain is what overlapping call overhead alone can give
        return []
    return [make_finding("NPU-P021", f"{by_contexts[most]:.3g} against {one:.3g} TOPS", contexts=most, ratio=ratio)]


def _cliff_findings(rows: list[Measurement]) -> list[Finding]:
    """Rows at least twice slower per MAC than a row of the same type and layouts with a smaller K and a like M."""
    groups: dict[tuple[str, ...], list[Measurement]] = {}
    for row in rows:
        # The points of the grid are many and short; mm_limits looks for their cliffs, and looks twice.
        if row.name == "gemm_rate" and row.median and row.parameters.get("series") != "grid" and undisturbed(row):
            key = tuple(str(row.parameters.get(name)) for name in ("type", "B_layout", "AC_layout", "core_mask"))
            groups.setdefault(key, []).append(row)
    return [finding for group in groups.values() for row in group for finding in _cliff_at(row, group)]


def _cliff_at(row: Measurement, group: list[Measurement]) -> list[Finding]:
    k, m = _int(row, "K"), max(_int(row, "M"), 1)
    # Rows of few tokens are slow for another reason, so only a like M (within two times) is a fair comparison.
    shorter = [other for other in group if _int(other, "K") < k and 0.5 <= _int(other, "M") / m <= 2]
    if not shorter or not row.median:
        return []
    best = max(shorter, key=lambda other: other.median or 0.0)
    ratio = (best.median or 0.0) / row.median
    if ratio < 2:
        return []
    fast = max(_int(other, "K") for other in shorter if (other.median or 0.0) * 2 > (best.median or 0.0))
    evidence = f"{row.median:.3g} TOPS at K={k} against {best.median:.3g} at K={_int(best, 'K')}"
    type_name = row.parameters.get("type_name")
    return [
        make_finding("NPU-P022", evidence, k=k, k_ref=_int(best, "K"), ratio=ratio, type_name=type_name, k_limit=fast)
    ]


def _int(row: Measurement, key: str) -> int:
    value = row.parameters.get(key)
    return value if isinstance(value, int) else 0


def _dict(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {}


def _word(enum: Any, value: Any, default: Any) -> Any:
    try:
        return enum(value)
    except ValueError:
        return default


def _why_no_number(row: dict[str, Any], verdict: Verdict) -> str:
    if row.get("name") == "dtype_support":
        return "support is a yes or no, not a number"
    return f"no number: the row ended as {verdict.value}"
