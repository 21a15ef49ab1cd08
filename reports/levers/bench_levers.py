# SPDX-License-Identifier: Apache-2.0
"""Levers that whole-program benchmarks decide: type of the cache and flash attention by depth, threads, CPU or NPU."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from reports.forecast.calibrate import seconds
from reports.forecast.quantity import Quantity
from reports.levers.verdict import Verdict, judged, unmeasured
from reports.llama_bench import BenchRow

_KV_CAMPAIGN = "campaign: flash attention -21 % at 8k and -25 % at 16k; q8_0 never pays; q4_0 +8 % at 16k only"
_THREADS_CAMPAIGN = "campaign: 8 threads on all CPUs -23 % decode against 4 on the A76"
_BUILD_CAMPAIGN = "campaign: prompt 3.08x, decode 1.07x of the CPU build"


def kv_and_flash(rows: Sequence[BenchRow]) -> list[Verdict]:
    """Each cache type with and without flash attention, against f16 without it, by depth."""
    found = []
    groups = _grouped(
        [row for row in rows if row.is_decode],
        lambda row: (row.model, row.n_params, row.backends, row.n_threads, row.cpu_mask, row.n_gen, row.n_depth),
    )
    for group in sorted(groups, key=lambda group: group[0].n_depth):
        base = next((row for row in group if _kv(row) == ("f16", "f16", False)), None)
        if base is None:
            continue
        for row in group:
            if _kv(row) != _kv(base):
                flash = {True: "flash attention", False: "no flash attention", None: "flash attention auto"}
                lever = f"cache {row.type_k}/{row.type_v}, {flash[row.flash_attn]}, depth {row.n_depth}"
                found.append(judged(lever, _ratio(row, base), _words(row), _KV_CAMPAIGN, scope=_test(row)))
    needed = "llama-bench -o json -d 0,8192,16384 -fa 0,1 with -ctk and -ctv f16, q8_0, q4_0"
    return found or [unmeasured("cache type and flash attention by depth", needed, campaign=_KV_CAMPAIGN)]


def threads(rows: Sequence[BenchRow]) -> list[Verdict]:
    """Thread counts and CPU masks against the slowest of them, for prompt and decode."""
    found = []
    groups = _grouped(
        [row for row in rows if row.n_depth == 0],
        lambda row: (row.model, row.n_params, row.backends, row.n_prompt, row.n_gen, _kv(row)),
    )
    for group in groups:
        settings = {(row.n_threads, row.cpu_mask): row for row in group}
        if len(settings) < 2:
            continue
        ordered = sorted(settings.values(), key=lambda row: row.avg_ts)
        best, worst = ordered[-1], ordered[0]
        lever = f"{_setting(best)} for {_test(best)}"
        found.append(
            judged(lever, _ratio(best, worst), f"against {_setting(worst)}", _THREADS_CAMPAIGN, scope=_test(best))
        )
    needed = "llama-bench -o json with several -t, or -C masks"
    return found or [unmeasured("threads and core sets", needed, campaign=_THREADS_CAMPAIGN)]


def cpu_or_npu(rows: Sequence[BenchRow]) -> list[Verdict]:
    """The NPU build against the CPU build, test by test, each at its fastest setting."""
    found = []
    groups = _grouped(rows, lambda row: (row.model, row.n_params, row.n_prompt, row.n_gen, row.n_depth))
    for group in groups:
        npu = max((row for row in group if row.on_npu), key=lambda row: row.avg_ts, default=None)
        cpu = max((row for row in group if row.cpu_only), key=lambda row: row.avg_ts, default=None)
        if npu is not None and cpu is not None:
            found.append(
                judged(f"NPU build for {_test(npu)}", _ratio(npu, cpu), _words(npu), _BUILD_CAMPAIGN, scope=_test(npu))
            )
    needed = "llama-bench -o json of the NPU build and of a CPU build with the same model and tests"
    return found or [unmeasured("NPU build against CPU build", needed, campaign=_BUILD_CAMPAIGN)]


def _grouped(rows: Sequence[BenchRow], key: Callable[[BenchRow], Hashable]) -> list[list[BenchRow]]:
    groups: dict[Hashable, list[BenchRow]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return list(groups.values())


def _kv(row: BenchRow) -> tuple[str, str, bool | None]:
    return row.type_k, row.type_v, row.flash_attn


def _ratio(row: BenchRow, base: BenchRow) -> Quantity:
    """Speed of ``row`` over that of ``base``; both do the same number of tokens."""
    return seconds(base) / seconds(row)


def _test(row: BenchRow) -> str:
    name = f"pp{row.n_prompt}" if row.is_prefill else f"tg{row.n_gen}"
    return f"{name} @ d{row.n_depth}" if row.n_depth else name


def _setting(row: BenchRow) -> str:
    mask = f" on mask {row.cpu_mask}" if row.cpu_mask not in ("", "0x0") else ""
    return f"{row.n_threads} threads{mask}"


def _words(row: BenchRow) -> str:
    return f"{_test(row)}, {row.n_threads} threads, {row.model or 'model not named'}"
