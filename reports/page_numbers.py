# SPDX-License-Identifier: Apache-2.0
"""The terminal page's tables of what was measured beside the plain GEMM rate and the scaling over cores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from reports.text import inert, table, wrapped

Row = dict[str, Any]
SHORT = {"native": "nat", "norm": "norm", "tp_norm": "tp"}
_SHOWN_M = (1, 512)
_REASON_WORDS = {
    "background load": "load",
    "cold first run": "cold",
    "clock unknown": "clock?",
    "swap activity": "swap",
    "conditions unknown": "conditions?",
}
_TYPE_WORDS = (("bfloat16", "bf16"), ("float16", "f16"), ("float32", "f32"), ("int", "i"))


def number_tables(rows: Sequence[Row], mark: str, width: int) -> list[str]:
    """All tables for which there are rows; then one line for each row that no table knows."""
    lines: list[str] = []
    for title, maker in _TABLES:
        made = maker(rows)
        if made:
            lines += ["", title + ("" if title.startswith("CPU") else mark), *made]
    for row in rows:
        if row.get("name") not in KNOWN:
            text = f"{inert(row.get('name'))}: {number(row.get('median'))} {inert(row.get('unit'))}"
            lines += wrapped(text, "  ", width)
    return lines


def number(value: Any) -> str:
    """Four significant digits, no exponent where it can be helped; ``-`` for what is no number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return "-"
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"


def type_words(row: Row) -> str:
    """The matmul type in short: ``i8*i8>i32`` for int8_int8_int32."""
    name = inert(parameter(row, "type_name"))
    for long_word, short in _TYPE_WORDS:
        name = name.replace(long_word, short)
    parts = name.split("_")
    return f"{parts[0]}*{parts[1]}>{parts[2]}" if len(parts) == 3 else name


def proof(row: Row) -> str:
    """How the result behind a number was judged, or how the row ended."""
    verdict = row.get("verdict")
    if verdict == "passed":
        return inert(row.get("checked"))
    return {"failed": "WRONG"}.get(str(verdict), inert(verdict))


def valid(row: Row) -> str:
    """``yes``, or ``no`` with a word for each reason; the figures behind them are in the report."""
    validity = row.get("validity") or {}
    firsts = [str(reason).partition(":")[0] for reason in validity.get("reasons") or []]
    reasons = [_REASON_WORDS.get(first, first) for first in firsts]
    return "yes" if validity.get("valid") else "no: " + inert(", ".join(reasons), 40)


def spread(row: Row) -> str:
    """MAD in percent of the median."""
    median, mad = row.get("median"), row.get("mad")
    if not isinstance(median, (int, float)) or not isinstance(mad, (int, float)) or not median:
        return "-"
    return f"{100 * mad / abs(median):.1f}"


def parameter(row: Row, key: str) -> Any:
    """A parameter of a row; empty text where it has none."""
    value = (row.get("parameters") or {}).get(key)
    return "" if value is None else value


def _evidence(row: Row, key: str) -> Any:
    return (row.get("evidence") or {}).get(key)


def _of(rows: Sequence[Row], *names: str) -> list[Row]:
    return [row for row in rows if row.get("name") in names]


def _percent(value: Any) -> str:
    return f"{100 * value:.0f} %" if isinstance(value, (int, float)) and not isinstance(value, bool) else "-"


def _sides(left: int, right: int, end: int) -> tuple[str, ...]:
    return (*("left",) * left, *("right",) * right, *("left",) * end)


def _family(row: Row) -> tuple[str, ...]:
    layouts = (SHORT.get(str(parameter(row, key)), inert(parameter(row, key))) for key in ("B_layout", "AC_layout"))
    return (type_words(row), *layouts, inert(parameter(row, "B_quant")).removeprefix("per_"))


def _ceilings(rows: Sequence[Row]) -> list[str]:
    grid = _of(rows, "gemm_rate")
    made = []
    for row in _of(rows, "gemm_ceiling"):
        shape = _evidence(row, "at")
        at = "x".join(inert(side) for side in shape) if isinstance(shape, list) else "-"
        by_m = [
            number(next((g["median"] for g in grid if _same_family(g, row) and parameter(g, "M") == m), None))
            for m in _SHOWN_M
        ]
        made.append(
            [
                *_family(row),
                number(row.get("median")),
                at,
                _percent(_evidence(row, "share_of_rated")),
                number(_evidence(row, "ridge_ops_per_byte")),
                *by_m,
            ]
        )
    headers = ("type", "B", "A,C", "quant", "TOPS", "at MxKxN", "rated", "ridge", *(f"M={m}" for m in _SHOWN_M))
    align = ("left", "left", "left", "left", "right", "left", *("right",) * 4)
    return table(made, headers, align) if made else []


def _same_family(one: Row, other: Row) -> bool:
    keys = ("type", "B_layout", "AC_layout", "B_quant")
    return parameter(one, "series") == "grid" and all(parameter(one, key) == parameter(other, key) for key in keys)


def _masks(rows: Sequence[Row]) -> list[str]:
    made = [
        [
            inert(parameter(row, "core_mask")),
            inert(parameter(row, "contexts")),
            inert(_evidence(row, "core_mask_code")),
            number(row.get("median")),
            number(_evidence(row, "against_mask_1")),
            inert(_load(row)),
            proof(row),
            valid(row),
        ]
        for row in _of(rows, "core_mask")
    ]
    headers = ("mask", "contexts", "code", "TOPS", "x mask 1", "load by driver", "proof", "valid")
    return table(made, headers, _sides(0, 5, 3)) if made else []


def _load(row: Row) -> str:
    load = _evidence(row, "load")
    percents = load.get("core_percent") if isinstance(load, dict) else None
    return " ".join(f"{value:.0f}%" for value in percents) if isinstance(percents, list) else "not readable"


def _fit(rows: Sequence[Row]) -> list[str]:
    return [
        f"  Amdahl: serial share {number(row.get('median'))}, the cores work {inert(_evidence(row, 'verdict'))}"
        for row in _of(rows, "core_scaling_fit")
    ]


def _cost_name(row: Row) -> str:
    part = str(parameter(row, "part"))
    size = parameter(row, "bytes")
    kib = f"{size // 1024} KiB" if isinstance(size, int) else ""
    words = {
        "fixed": "fixed cost of a run",
        "cpu_use": f"CPU use while waiting ({inert(_evidence(row, 'waits_by') or '?')})",
        "bind": f"bind B {inert(parameter(row, 'B_layout'))}, {kib}",
        "sync": f"sync {inert(parameter(row, 'direction'))}, {kib}",
        "create": "create a context",
        "destroy": "destroy a context",
        "wake": f"wake-up after {inert(parameter(row, 'idle_ms'))} ms idle",
    }
    return words.get(part, inert(part))


def _costs(rows: Sequence[Row]) -> list[str]:
    made = [
        [_cost_name(row), number(row.get("median")), inert(row.get("unit")), spread(row), proof(row), valid(row)]
        for row in _of(rows, "run_cost")
    ]
    lines = (
        table(
            made, ("what", "value", "unit", "+-%", "proof", "valid"), ("left", "right", "left", "right", "left", "left")
        )
        if made
        else []
    )
    for row in _of(rows, "run_buckets"):
        times = _evidence(row, "run_us")
        if isinstance(times, dict):
            series = ", ".join(f"{inert(m)}: {number(us)}" for m, us in times.items())
            lines += wrapped(f"us per run over M: {series}", "  ", 98)
    return lines


_LIMITS = ("accepted", "right", "fast")


def _limits(rows: Sequence[Row]) -> list[str]:
    found: dict[tuple[str, str], dict[str, str]] = {}
    for row in _of(rows, "shape_limit", "shape_alignment"):
        cells = found.setdefault((type_words(row), inert(parameter(row, "dimension"))), {})
        if row.get("name") == "shape_alignment":
            cells["align"] = number(row.get("median"))
        elif row.get("median") is None:
            cells["note"] = proof(row)
        else:
            more = ">=" if _evidence(row, "at_least") else ""
            cells[str(parameter(row, "limit"))] = more + number(row["median"])
    made = [
        [*key, *(cells.get(limit, "-") for limit in _LIMITS), cells.get("align", "-"), cells.get("note", "")]
        for key, cells in found.items()
    ]
    return table(made, ("type", "dim", *_LIMITS, "align", ""), _sides(2, 4, 1)) if made else []


def _streams(rows: Sequence[Row]) -> list[str]:
    made = [
        [
            inert(parameter(row, "contexts")),
            number(row.get("median")),
            spread(row),
            number(_evidence(row, "net_gbps")),
            proof(row),
            valid(row),
        ]
        for row in _of(rows, "npu_stream")
    ]
    lines = table(made, ("cores", "GB/s", "+-%", "net GB/s", "proof", "valid"), _sides(0, 4, 2)) if made else []
    for row in _of(rows, "npu_stream_share"):
        lines.append(f"  {_percent(row.get('median'))} of the memory's bandwidth by theory")
    return lines


_WORK = {"cpu_read": "CPU reads memory", "cpu_dot": "CPU computes in cache", "npu_stream": "NPU streams weights"}


def _contention(rows: Sequence[Row]) -> list[str]:
    made = []
    for row in _of(rows, "contention"):
        pair = [_WORK.get(str(parameter(row, key)), inert(parameter(row, key))) for key in ("of", "beside")]
        made.append([*pair, number(row.get("median")), spread(row), proof(row), valid(row)])
    headers = ("work", "beside", "share of alone", "+-%", "proof", "valid")
    return table(made, headers, _sides(2, 2, 2)) if made else []


_OPS = ("read", "write", "copy", "triad")


def _bandwidth(rows: Sequence[Row]) -> list[str]:
    found: dict[tuple[str, str], dict[str, Row]] = {}
    for row in _of(rows, "cpu_bandwidth"):
        key = (inert(parameter(row, "cpus")), inert(parameter(row, "threads")))
        found.setdefault(key, {})[str(parameter(row, "op"))] = row
    made = [
        [
            *key,
            *(number(ops[op].get("median")) if op in ops else "-" for op in _OPS),
            "exact" if all(row.get("verdict") == "passed" for row in ops.values()) else "WRONG",
            next((valid(row) for row in ops.values() if valid(row) != "yes"), "yes"),
        ]
        for key, ops in found.items()
    ]
    lines = table(made, ("CPUs", "threads", *_OPS, "proof", "valid"), _sides(1, 5, 2)) if made else []
    for row in _of(rows, "cpu_bandwidth_share"):
        lines.append(f"  {_percent(row.get('median'))} of the memory's bandwidth by theory")
    return lines


def _cpu(rows: Sequence[Row]) -> list[str]:
    rates = [
        [
            inert(parameter(row, "cpus")),
            inert(parameter(row, "split")),
            number(row.get("median")),
            spread(row),
            proof(row),
            valid(row),
        ]
        for row in _of(rows, "cpu_rate")
    ]
    lines = table(rates, ("CPUs", "split", "GOPS", "+-%", "proof", "valid"), _sides(2, 2, 2)) if rates else []
    clocks = [f"cpu {inert(parameter(row, 'cpu'))}: {number(row.get('median'))}" for row in _of(rows, "cpu_clock")]
    for row in _of(rows, "cpu_pinning"):
        best, whole = inert(parameter(row, "cpus")), inert(parameter(row, "against"))
        lines.append(f"  CPUs {best} alone give {number(row.get('median'))} times what {whole} give with even shares")
    if clocks:
        lines += wrapped("MHz " + ", ".join(clocks), "      ", 98, "  ")
    return lines


def _memory_name(row: Row) -> str:
    part, over = str(parameter(row, "part")), inert(parameter(row, "over"))
    words = {
        "descriptors": f"descriptors left per {over}",
        "resident": f"memory kept per {over}",
        "contexts": "contexts alive at once",
        "ceiling": f"allocated in IOMMU domain {inert(parameter(row, 'iommu_domain'))}",
        "domain_switch": "switch between IOMMU domains 0 and 1",
    }
    return words.get(part, inert(part))


def _memory(rows: Sequence[Row]) -> list[str]:
    made = [
        [
            _memory_name(row),
            (">=" if _evidence(row, "at_least") else "") + number(row.get("median")),
            inert(row.get("unit")),
            proof(row),
        ]
        for row in _of(rows, "npu_memory")
    ]
    return table(made, ("what", "value", "unit", "proof"), ("left", "right", "left", "left")) if made else []


def _soak(rows: Sequence[Row]) -> list[str]:
    return [
        f"  {inert(parameter(row, 'contexts'))} contexts for {number(parameter(row, 'seconds'))} s: "
        f"{number(row.get('median'))} TOPS, last quarter {_percent(_evidence(row, 'drift'))} of the first, "
        f"{inert(_evidence(row, 'results_compared'))} results compared, {proof(row)}, valid {valid(row)}"
        for row in _of(rows, "soak")
    ]


_TABLES: tuple[tuple[str, Callable[[Sequence[Row]], list[str]]], ...] = (
    ("Scaling law", _fit),
    ("GEMM ceiling of one core; share of rated, ridge in operations per byte, TOPS by M", _ceilings),
    ("Core masks", _masks),
    ("Cost of calls", _costs),
    ("Shape limits, found by trying", _limits),
    ("NPU weight streaming, M = 1", _streams),
    ("Contention between CPU and NPU", _contention),
    ("Memory and limits of the library", _memory),
    ("CPU bandwidth of this machine, GB/s", _bandwidth),
    ("CPU sets of this machine at the same work", _cpu),
    ("Full load over minutes", _soak),
)
_OWN_LINES = ("gemm_rate", "core_scaling", "dtype_support", "run_time")
"""Shown elsewhere on the page, or as part of another row."""

KNOWN = frozenset(
    (
        *_OWN_LINES,
        *("gemm_ceiling", "core_scaling_fit", "core_mask", "run_cost", "run_buckets", "shape_limit", "shape_alignment"),
        *("npu_stream", "npu_stream_share", "contention", "npu_memory", "soak"),
        *("cpu_bandwidth", "cpu_bandwidth_share", "cpu_rate", "cpu_clock", "cpu_pinning"),
    )
)
