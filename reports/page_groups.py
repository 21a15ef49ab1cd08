# SPDX-License-Identifier: Apache-2.0
"""Measured rows as tables, one per kind: the parameters in which its rows differ are columns, the others stand above.

Needs no knowledge of a kind beyond its title, so that rows of a newer kit have their table too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from reports.page_numbers import SHORT, number, proof, spread, type_words, valid
from reports.page_provenance import is_simulated_row, row_anchor, row_index
from reports.page_reading import Record, evidence, items, number_of, parameters, record, words


@dataclass(frozen=True)
class Cell:
    """``anchor`` leads to how the value was obtained; ``tone`` is plain, good, warning or error."""

    text: str
    anchor: str = ""
    tone: str = "plain"


@dataclass(frozen=True)
class NumberTable:
    """``common`` holds the parameters that all rows share; ``simulated`` is False for the machine's own CPUs.

    ``name`` is that of the rows, ``anchor`` that of the table.
    """

    name: str
    anchor: str
    title: str
    common: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    simulated: bool


TITLES = {
    "gemm_rate": "GEMM rate, one core",
    "gemm_ceiling": "GEMM ceiling of one core",
    "core_scaling": "Core scaling, one context a core",
    "core_scaling_fit": "Scaling law",
    "core_mask": "Core masks",
    "run_cost": "Cost of calls",
    "run_time": "Time of a run over M",
    "run_buckets": "Rounding of M",
    "shape_limit": "Shape limits, found by trying",
    "shape_alignment": "Alignment of shapes",
    "npu_stream": "NPU weight streaming, M = 1",
    "npu_stream_share": "NPU streaming against theory",
    "contention": "Contention between CPU and NPU",
    "npu_memory": "Memory and limits of the library",
    "cpu_bandwidth": "CPU bandwidth of this machine",
    "cpu_bandwidth_share": "CPU bandwidth against theory",
    "cpu_rate": "CPU sets of this machine at the same work",
    "cpu_clock": "CPU clocks of this machine",
    "cpu_pinning": "Pinning to one cluster",
    "soak": "Full load over minutes",
}
UNITS = {"tops": "TOPS", "gops": "GOPS", "gbps": "GB/s", "mhz": "MHz"}
_ELSEWHERE = frozenset({"dtype_support"})
_MOST_COLUMNS = 12


def _shape(row: Record) -> str:
    sides = [words(parameters(row).get(side), 20) for side in ("M", "K", "N")]
    return " x ".join(side or "-" for side in sides) if any(sides) else ""


def _layouts(row: Record) -> str:
    found = [words(parameters(row).get(key), 20) for key in ("B_layout", "AC_layout")]
    return ", ".join(SHORT.get(word, word) for word in found if word)


_MERGED: tuple[tuple[str, tuple[str, ...], Callable[[Record], str]], ...] = (
    ("type", ("type", "type_name"), lambda row: words(type_words(row), 60)),
    ("M x K x N", ("M", "K", "N"), _shape),
    ("B; A,C", ("B_layout", "AC_layout"), _layouts),
)
"""Columns that join several parameters: title, the parameters, how they are written."""


def number_tables(report: Record) -> tuple[NumberTable, ...]:
    """A table for each kind of row, known kinds first, in the order of TITLES."""
    kinds: dict[str, list[tuple[int, Record]]] = {}
    for index, row in row_index(report):
        kinds.setdefault(words(row.get("name"), 60), []).append((index, row))
    order = [*(name for name in TITLES if name in kinds), *(name for name in kinds if name not in TITLES)]
    shown = [name for name in order if name not in _ELSEWHERE]
    return tuple(_table(name, f"table-{at}", kinds[name], report) for at, name in enumerate(shown))


def _table(name: str, anchor: str, rows: list[tuple[int, Record]], report: Record) -> NumberTable:
    writers = _writers([row for _, row in rows])
    texts = [[write(row) for _, write in writers] for _, row in rows]
    differ = [i for i in range(len(writers)) if len({line[i] for line in texts}) > 1][:_MOST_COLUMNS]
    common = ", ".join(
        f"{title} {texts[0][i]}" for i, (title, _) in enumerate(writers) if i not in differ and texts[0][i]
    )
    made = []
    for line, (index, row) in zip(texts, rows, strict=True):
        made.append((*(Cell(line[i]) for i in differ), *_value_cells(index, row)))
    columns = (*(writers[i][0] for i in differ), "value", "unit", "+-%", "proof", "valid")
    return NumberTable(
        name=name,
        anchor=anchor,
        title=TITLES.get(name, name or "rows without a name"),
        common=common,
        columns=columns,
        rows=tuple(made),
        simulated=is_simulated_row(rows[0][1], report),
    )


def _writers(rows: list[Record]) -> list[tuple[str, Callable[[Record], str]]]:
    seen = {str(key) for row in rows for key in list(parameters(row))[:40]}
    made: list[tuple[str, Callable[[Record], str]]] = []
    for title, keys, write in _MERGED:
        if seen & set(keys):
            made.append((title, write))
            seen -= set(keys)
    made += [(words(key, 40), _plain(key)) for row in rows[:1] for key in parameters(row) if key in seen]
    listed = {title for title, _ in made}
    made += [(words(key, 40), _plain(key)) for key in sorted(seen) if words(key, 40) not in listed]
    return made[:30]


def _plain(key: str) -> Callable[[Record], str]:
    return lambda row: words(parameters(row).get(key), 60)


def _value_cells(index: int, row: Record) -> tuple[Cell, ...]:
    anchor = row_anchor(index)
    median = number_of(row.get("median"))
    unit = words(row.get("unit"), 20)
    more = ">= " if evidence(row).get("at_least") is True else ""
    judged = words(proof(row), 40)
    verdict = row.get("verdict")
    judged_tone = "good" if verdict == "passed" else "error" if verdict == "failed" else "warning"
    fits = record(row.get("validity")).get("valid") is True
    return (
        Cell(more + number(median) if median is not None else "-", anchor),
        Cell(UNITS.get(unit, unit)),
        Cell(_spread(row)),
        Cell(judged, anchor, judged_tone),
        Cell(_valid(row), anchor, "good" if fits else "warning"),
    )


def _spread(row: Record) -> str:
    clean = {"median": number_of(row.get("median")), "mad": number_of(row.get("mad"))}
    return spread(clean)


def _valid(row: Record) -> str:
    validity = record(row.get("validity"))
    reasons = validity.get("reasons")
    # Many reasons of one kind (a row worked out from many) are one word here; the figures stand where the link leads.
    firsts = dict.fromkeys(words(reason).partition(":")[0] for reason in items(reasons))
    return words(valid({"validity": {"valid": validity.get("valid") is True, "reasons": list(firsts)}}), 80)
