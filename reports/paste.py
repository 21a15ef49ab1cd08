# SPDX-License-Identifier: Apache-2.0
"""The short block for an issue report: at most 60 lines of ASCII, most important first, without personal data."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Callable
from typing import Any

from reports.redact import Names, redact

MAX_LINES = 60
WIDTH = 100
MAX_FINDINGS = 8
MAX_MEASUREMENTS = 12
Report = dict[str, Any]


def paste(report: Report, names: Names | None = None) -> str:
    """The block, ending with a newline. Made from the report alone; redacted whatever the report was."""
    clean = redact(report, names)
    lines = [
        _ascii(line)[:WIDTH].rstrip() for line in (*_head(clean), *_facts(clean), *_findings(clean), *_measured(clean))
    ]
    if len(lines) > MAX_LINES:
        lines = [*lines[: MAX_LINES - 1], f"... {len(lines) - MAX_LINES + 1} more lines: see the JSON report"]
    return "\n".join(lines) + "\n"


def _ascii(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "replace").decode("ascii")
    return "".join(char if " " <= char <= "~" else " " for char in plain)


def _head(report: Report) -> list[str]:
    tool, run = _dict(report.get("tool")), _dict(report.get("run"))
    mark = "  ** SIMULATED: no NPU was measured **" if report.get("simulated") else ""
    commit = tool.get("git_commit")
    version = f"{tool.get('name', 'rknpu-kit')} {tool.get('version', '?')}" + (f" ({commit})" if commit else "")
    return [f"{version}, level {run.get('level', '?')}, {run.get('started_at', 'time unknown')}{mark}"]


class _Facts:
    """Reads fact values of a report; ``?`` for what is unknown."""

    def __init__(self, report: Report) -> None:
        self._facts = _dict(report.get("facts"))

    def value(self, key: str) -> Any:
        return _dict(self._facts.get(key)).get("value")

    def text(self, key: str) -> str:
        value = self.value(key)
        if value is None:
            return "?"
        if isinstance(value, bool):
            return "yes" if value else "no"
        return ", ".join(str(item) for item in value) if isinstance(value, list) else str(value)

    def scaled(self, key: str, divisor: float, unit: str, digits: int = 0) -> str:
        value = self.value(key)
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return f"{value / divisor:.{digits}f} {unit}" if number else f"? {unit}"

    def rows(self, key: str) -> list[dict[str, Any]]:
        value = self.value(key)
        return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def _facts(report: Report) -> list[str]:
    facts = _Facts(report)
    lines = []
    for label, write in _LINES:
        try:
            lines.append(f"{label:9}{write(facts)}")
        except (TypeError, ValueError, KeyError, AttributeError):
            lines.append(f"{label:9}(not readable in this report)")
    lines += [f"{'cpu':9}{_cluster(row)}" for row in facts.rows("cpu.clusters")[:4]]
    unknown = sum(1 for fact in _dict(report.get("facts")).values() if _dict(fact).get("value") is None)
    root = sum(1 for fact in _dict(report.get("facts")).values() if _dict(fact).get("needs_root"))
    lines.append(f"{'unknown':9}{unknown} facts, {root} of them readable by root")
    return lines


def _node(facts: _Facts) -> str:
    path = facts.text("npu.device_node")
    row = next((row for row in facts.rows("npu.device_nodes") if row.get("path") == path), {})
    owner = f" {row.get('mode')} {row.get('owner')}:{row.get('group')}" if row.get("present") else ""
    return f"{path}{owner}, accessible: {facts.text('npu.device_accessible')}"


def _libraries(facts: _Facts) -> str:
    parts = []
    for key, name in (("runtime", "librknnrt"), ("rkllm", "librkllmrt")):
        shadowed = [f"{row.get('version')} {row.get('path')}" for row in facts.rows(f"{key}.shadowed")]
        extra = f" (also {'; '.join(shadowed)})" if shadowed else ""
        if facts.value(f"{key}.path") is not None or shadowed:
            parts.append(f"{name} {facts.text(f'{key}.version')} {facts.text(f'{key}.path')}{extra}")
    return "; ".join(parts) or "no librknnrt, no librkllmrt"


def _cluster(row: dict[str, Any]) -> str:
    cpus = row.get("cpus") or []
    top = row.get("clock_max_hz")
    clock = f"{top / 1e6:.0f} MHz" if isinstance(top, (int, float)) else "? MHz"
    return f"{len(cpus)} x {row.get('core') or 'unknown core'}, max {clock}, {row.get('governor') or 'no governor'}"


_LINES: tuple[tuple[str, Callable[[_Facts], str]], ...] = (
    ("board", lambda f: f.text("board.model")),
    ("soc", lambda f: f"{f.text('soc.name')}; device tree: {f.text('board.compatible')}"),
    ("kernel", lambda f: f"{f.text('kernel.release')} ({f.text('kernel.flavour')}); {f.text('os.name')}"),
    ("loader", lambda f: f"{f.text('boot.loader')}; container: {f.text('container.kind')}"),
    (
        "stack",
        lambda f: f"{f.text('npu.stack')}; driver {f.text('npu.driver_version')} ({f.text('npu.driver_linkage')})",
    ),
    ("node", _node),
    ("library", _libraries),
    (
        "npu",
        lambda f: (
            f"{f.text('npu.cores')} cores, {f.scaled('npu.clock_now_hz', 1e6, 'MHz')} now, "
            f"{f.scaled('npu.clock_max_hz', 1e6, 'MHz')} max, {f.text('npu.governor')}, "
            f"load {f.text('npu.load_percent')} %"
        ),
    ),
    (
        "iommu",
        lambda f: f"{f.text('iommu.mode')}; windows: {f.text('iommu.windows')} ({f.text('iommu.windows_sure')})",
    ),
    (
        "ddr",
        lambda f: (
            f"{f.text('ddr.type')} {f.text('ddr.rate_mtps')} MT/s x {f.text('ddr.width_bits')} bit = "
            f"{f.text('ddr.theoretical_gbps')} GB/s; "
            f"{f.scaled('ddr.clock_now_hz', 1e6, 'MHz')} now, {f.text('ddr.governor')}"
        ),
    ),
    (
        "memory",
        lambda f: (
            f"{f.scaled('memory.total_bytes', 2**30, 'GiB', 1)}, "
            f"CMA {f.scaled('memory.cma_total_bytes', 2**20, 'MiB')} "
            f"(free {f.scaled('memory.cma_free_bytes', 2**20, 'MiB')}); open files {f.text('limits.nofile_soft')}"
        ),
    ),
    ("heat", lambda f: f"NPU {f.text('thermal.npu_c')} C, hottest {f.text('thermal.max_c')} C"),
    (
        "users",
        lambda f: ", ".join(f"{row.get('name')} (pid {row.get('pid')})" for row in f.rows("tenants")) or "none seen",
    ),
)


def _findings(report: Report) -> list[str]:
    found = [row for row in _list(report.get("findings")) if isinstance(row, dict)]
    counts = {word: sum(1 for row in found if row.get("severity") == word) for word in ("error", "warning", "info")}
    lines = [f"findings: {counts['error']} errors, {counts['warning']} warnings, {counts['info']} notes"]
    for row in found[:MAX_FINDINGS]:
        serious = row.get("severity") in ("error", "warning")
        head = f"{str(row.get('severity', '?')).upper():8}{row.get('code', '?')} {row.get('what', '')}"
        lines += _wrapped(head, 2)
        if serious:
            lines += _wrapped(f"        {row.get('evidence', '')}", 2)
    if len(found) > MAX_FINDINGS:
        lines.append(f"        and {len(found) - MAX_FINDINGS} more")
    return lines


def _wrapped(text: str, most: int) -> list[str]:
    """At most ``most`` lines of one text, continued under column 8."""
    lines = textwrap.wrap(_ascii(text), WIDTH, subsequent_indent=" " * 8, drop_whitespace=True, initial_indent="")
    indent = " " * (len(text) - len(text.lstrip()))
    lines = [line if not indent or line.startswith(indent) else indent + line for line in lines] or [""]
    return lines if len(lines) <= most else [*lines[: most - 1], f"{lines[most - 1][: WIDTH - 4]} ..."]


def _measured(report: Report) -> list[str]:
    rows = [row for row in _list(report.get("measurements")) if isinstance(row, dict)]
    lines = [f"measurements: {len(rows)}"] if rows else []
    for row in rows[:MAX_MEASUREMENTS]:
        median = row.get("median")
        shown = f"{median:.4g}" if isinstance(median, (int, float)) and not isinstance(median, bool) else "-"
        parameters = " ".join(f"{key}={value}" for key, value in _dict(row.get("parameters")).items())
        invalid = "" if _dict(row.get("validity")).get("valid", True) else " INVALID"
        lines.append(
            f"{row.get('name', '?')} {shown} {row.get('unit', '')} {row.get('verdict', '?')}/{row.get('checked', '?')}"
            f"{invalid} {parameters}"
        )
    return lines


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
