# SPDX-License-Identifier: Apache-2.0
"""``python -m conformance offload OLD.json NEW.json``: whether the NPU works, from two files of llama-bench.

llama-bench names the back ends that were compiled in, not what ran: a build with RKNPU whose device cannot be opened
names it all the same.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from conformance.offload_rule import Judgement, Ruling, Speeds, against_cpu, against_npu
from reports.contract import EXIT_COULD_NOT_RUN, EXIT_FINDINGS, EXIT_OK
from reports.llama_bench import BenchRow, NotABench, pick, read_llama_bench
from reports.text import inert

HELP = "whether the NPU works, from llama-bench -o json before and after (or without and with)"

MIN_PREFILL = 64
"""Tokens. A shorter prompt is nearer to decode: bound by memory."""

EXIT_CODES = {Ruling.USED: EXIT_OK, Ruling.NOT_USED: EXIT_FINDINGS, Ruling.CANNOT_TELL: EXIT_COULD_NOT_RUN}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("old", type=Path, metavar="OLD.json", help="the CPU alone, or the version before")
    parser.add_argument("new", type=Path, metavar="NEW.json", help="what is asked about")
    parser.add_argument("--cpu", type=Path, metavar="FILE", help="the CPU alone, where OLD is another version with NPU")
    parser.add_argument("--json", action="store_true", help="the same as one JSON document")
    parser.epilog = (
        "Measure each with: llama-bench -m MODEL -p 512 -n 64 -r 5 -o json > FILE. The CPU alone: -dev none, or "
        "a build without the NPU back end. Exit code 0: used; 1: not used; 2: a file that cannot be used; 3: cannot be "
        "told."
    )


def run(values: argparse.Namespace) -> int:
    """Reads, judges, prints. :class:`reports.llama_bench.NotABench` for a file that is none."""
    old, new = read_llama_bench(values.old), read_llama_bench(values.new)
    cpu = None if values.cpu is None else read_llama_bench(values.cpu)
    if cpu is not None and not all(row.cpu_only for row in cpu):
        names = ", ".join(sorted({row.backends for row in cpu if not row.cpu_only}))
        raise NotABench(f"--cpu {values.cpu} is not of the CPU alone: its rows name {inert(names, 80)}.")
    judgement = judge(old, new, cpu)
    if values.json:
        told = {"format": "rknpu-kit offload", "verdict": judgement.ruling.value, "reason": judgement.why}
        sys.stdout.write(json.dumps(told, indent=1) + "\n")
    else:
        sys.stdout.write(f"{judgement.ruling.value}: {judgement.why}\n")
    return EXIT_CODES[judgement.ruling]


def judge(old: Sequence[BenchRow], new: Sequence[BenchRow], cpu: Sequence[BenchRow] | None = None) -> Judgement:
    """The ruling on NEW. ``cpu``: rows known to be of the CPU alone."""
    accelerated = [row for row in new if not row.cpu_only]
    if not accelerated:
        return Judgement(
            Ruling.NOT_USED, "NEW names no back end besides the CPU: its build has none, so nothing was offloaded"
        )
    reference = cpu if cpu is not None else [row for row in old if row.cpu_only]
    if reference:
        told = against_cpu(*_both(reference, accelerated))
        return _or_mismatch(told, reference, accelerated)
    return _or_mismatch(against_npu(*_both(old, accelerated)), old, accelerated)


def _both(before: Sequence[BenchRow], after: Sequence[BenchRow]) -> tuple[list[Speeds], list[Speeds]]:
    prefill = _matched(before, after, lambda row: row.is_prefill and row.n_prompt >= MIN_PREFILL)
    return prefill, _matched(before, after, lambda row: row.is_decode)


def _matched(before: Sequence[BenchRow], after: Sequence[BenchRow], wanted: Callable[[BenchRow], bool]) -> list[Speeds]:
    """Tests that both have, the longest first; of several with the same key the last one."""
    there = {_key(row): row for row in pick(before, wanted)}
    found = []
    for row in pick(after, wanted):
        other = there.get(_key(row))
        if other is not None:
            name = f"prefill pp{row.n_prompt}" if row.is_prefill else f"decode tg{row.n_gen}"
            depth = f" @ d{row.n_depth}" if row.n_depth else ""
            found.append(Speeds(name + depth, _rates(other), _rates(row)))
    return found


def _key(row: BenchRow) -> tuple[object, ...]:
    """What has to be the same for two speeds to be of the same work. Threads and build may differ: they are tried."""
    return row.model_size, row.n_params, row.n_prompt, row.n_gen, row.n_depth, row.type_k, row.type_v


def _rates(row: BenchRow) -> tuple[float, ...]:
    rates = tuple(rate for rate in row.samples_ts if rate > 0)
    return rates or (row.avg_ts,)


def _or_mismatch(told: Judgement, before: Sequence[BenchRow], after: Sequence[BenchRow]) -> Judgement:
    """Says why nothing could be compared, and warns of a difference that is not the NPU's."""
    if not any(_key(row) in {_key(other) for other in before} for row in after):
        one, other = _tests(before), _tests(after)
        return Judgement(
            Ruling.CANNOT_TELL,
            f"no test stands in both files: OLD has {one}, NEW {other}; model, -p, -n, -d, -ctk and -ctv have to "
            "be the same",
        )
    threads = {row.n_threads for row in before}, {row.n_threads for row in after}
    if threads[0] != threads[1] and told.ruling is not Ruling.CANNOT_TELL:
        counts = ["/".join(map(str, sorted(group))) for group in threads]
        return Judgement(told.ruling, f"{told.why} (threads differ: {counts[0]} against {counts[1]})")
    return told


def _tests(rows: Sequence[BenchRow]) -> str:
    names = sorted({f"{row.label.removeprefix('llama-bench ').split(',')[0]} of {row.model}" for row in rows})
    return inert(", ".join(names[:4]) + (" and more" if len(names) > 4 else ""), 200)
