# SPDX-License-Identifier: Apache-2.0
"""Reports made by hand, with every kind of row a run can have: of a board, of the mock, and of a board that told
nothing."""

from __future__ import annotations

import copy
import json
from typing import Any

Report = dict[str, Any]
Row = dict[str, Any]

INT8, FP16, INT4 = (2, "int8_int8_int32"), (1, "float16_float16_float32"), (10, "int4_int4_int16")
SMALL = {"type": 2, "type_name": "int8_int8_int32", "B_layout": "native", "AC_layout": "norm", "B_quant": "per_layer"}


def conditions(seconds: float, npu_mhz: float | None, heat: float | None) -> dict[str, Any]:
    """What stood beside a row: clocks of NPU and two CPUs, one zone."""

    def spread(value: float | None) -> dict[str, float] | None:
        return None if value is None else {"min": value * 0.99, "median": value, "max": value * 1.01}

    clock = spread(None if npu_mhz is None else npu_mhz * 1e6)
    return {
        "duration_s": seconds,
        "npu_clock_hz": clock,
        "ddr_clock_hz": None,
        "cpu_clock_hz": {"policy0": spread(1.8e9), "policy4": spread(2.3e9)} if npu_mhz else {},
        "temperature_c": {"soc-thermal": spread(heat)} if heat is not None else {},
        "unknown": {} if npu_mhz else {"npu_clock_hz": "no readable cur_freq of a devfreq entry named *.npu"},
    }


def row(name: str, median: float | None, unit: str, parameters: dict[str, Any], **changes: Any) -> Row:
    """One measured row: right, valid, three samples about its median."""
    samples = [] if median is None else [median * 0.99, median, median * 1.01]
    made: Row = {
        "name": name,
        "parameters": parameters,
        "unit": unit,
        "median": median,
        "mad": None if median is None else median * 0.01,
        "samples": samples,
        "checked": "exact",
        "verdict": "passed",
        "validity": {"valid": True, "reasons": []},
        "method": f"How {name} is measured, and what can spoil it.",
        "reason": None if median is not None else "a yes or no, not a number",
        "evidence": {"conditions": conditions(2.0, 1000.0, 50.0)},
    }
    evidence = changes.pop("evidence", {})
    made.update(changes)
    made["evidence"] = {**made["evidence"], **evidence}
    return made


def _gemm(kind: tuple[int, str], m: int, k: int, n: int, tops: float, **changes: Any) -> Row:
    given = {"type": kind[0], "type_name": kind[1], "M": m, "K": k, "N": n, "B_layout": "native", "AC_layout": "norm"}
    given |= {"B_quant": "per_layer", "core_mask": 1}
    given |= changes.pop("parameters", {})
    run_us = 2 * m * k * n / tops / 1e6
    return row("gemm_rate", tops, "tops", given, evidence={"run_us": {"median": run_us}}, **changes)


def _trail(cliff: int) -> list[dict[str, Any]]:
    sides = (512, 1024, 2048, 4096, 8192, cliff + 32, 16384)
    return [{"value": k, "accepted": True, "right": True, "ns_per_mac": 0.003 if k <= cliff else 0.04} for k in sides]


def _trial(m: int, k: int, layout: str, verdict: str) -> dict[str, Any]:
    return {"M": m, "K": k, "N": 64, "layout": layout, "verdict": verdict, "reason": None}


def _type_row(code: int, name: str, verdict: str) -> Row:
    trials = [_trial(m, k, layout, verdict) for m, k in ((1, 32), (65, 512)) for layout in ("native", "norm")]
    return row(
        "dtype_support",
        None,
        "verdict",
        {"type": code, "type_name": name},
        verdict=verdict,
        evidence={"trials": trials},
    )


def _limit(kind: tuple[int, str], cliff: int) -> Row:
    given = {"type": kind[0], "type_name": kind[1], "dimension": "K", "M": 64, "N": 256, "limit": "fast"}
    told = {"at_least": False, "ends_at": cliff + 32, "ends_by": "slow", "slower_times": 13.0, "trail": _trail(cliff)}
    return row("shape_limit", float(cliff), "elements", given, evidence=told)


def rows() -> list[Row]:
    """Every kind of row once or more, of a board on which all claims but the one about polling hold."""
    large = {"M": 4096, "K": 4096, "N": 4096}
    made = [
        _type_row(1, FP16[1], "passed"),
        _type_row(2, INT8[1], "passed"),
        _type_row(5, "float16_int8_float32", "unsupported"),
    ]
    made += [_type_row(13, "unassigned", "unsupported"), _type_row(7, "float16_int4_float32", "crashed")]
    made += [_gemm(INT8, 4096, 4096, 4096, 0.69), _gemm(INT8, 4096, 4096, 4096, 0.68, parameters={"B_layout": "norm"})]
    made += [_gemm(FP16, 4096, 4096, 4096, 0.39), _gemm(INT4, 4096, 4096, 4096, 0.69)]
    made += [_gemm(INT8, m, 1024, 1024, 0.6 * m / 512, parameters={"series": "grid"}) for m in (1, 16, 128, 512)]
    hurried = {"valid": False, "reasons": ["background load: other processes kept 1.03 of 2 CPUs busy over 0.1 s"]}
    made += [
        _gemm(FP16, m, 1024, 1024, 0.3 * m / 512, parameters={"series": "grid"}, validity=hurried) for m in (1, 512)
    ]
    wrong = _gemm(INT8, 8, 64, 32, 0.1, verdict="failed", reason="1 of 256 elements is wrong")
    made.append({**wrong, "median": None, "mad": None, "samples": []})
    for code, name in (INT8, INT4):
        given = {**SMALL, "type": code, "type_name": name}
        made.append(
            row("gemm_ceiling", 0.69, "tops", given, mad=None, evidence={"derived_from": 5, "at": [512, 1024, 1024]})
        )
    for contexts, tops in ((1, 0.66), (2, 1.26), (3, 1.83)):
        told = {"share_of_rated": tops / 6}
        made.append(row("core_scaling", tops, "tops", {**SMALL, **large, "contexts": contexts}, evidence=told))
    made.append(
        row("core_scaling_fit", 0.04, "share", {"contexts": 3}, evidence={"derived_from": 3, "verdict": "side by side"})
    )
    for mask, times in ((1, 1.0), (3, 1.01), (7, 0.99)):
        given = {**SMALL, "core_mask": mask, "contexts": 1}
        made.append(row("core_mask", 0.66 * times, "tops", given, evidence={"against_mask_1": times}))
    made.append(row("run_cost", 0.9, "share", {**SMALL, "part": "cpu_use"}, evidence={"waits_by": "polling"}))
    for layout, cost in (("native", 5.0), ("norm", 186.0)):
        made.append(row("run_cost", cost, "us", {**SMALL, "part": "bind", "B_layout": layout, "bytes": 4194304}))
    made += [row("run_time", 129.0 + m, "us", {**SMALL, "M": m, "K": 1024, "N": 1024}) for m in (1, 2, 4, 8, 16)]
    made += [_limit(INT8, 8192), _limit(FP16, 4096)]
    for contexts, gbps in ((1, 11.1), (2, 21.0), (3, 26.6)):
        made.append(row("npu_stream", gbps, "gbps", {**SMALL, "M": 1, "K": 4096, "N": 4096, "contexts": contexts}))
    made.append(row("npu_stream_share", 0.52, "share", {"contexts": 3}, evidence={"derived_from": 1}))
    made.append(row("contention", 0.7, "share", {**SMALL, "of": "cpu_read", "beside": "npu_stream", "contexts": 3}))
    for cpus, threads, scale in (("4-7", 1, 10.0), ("4-7", 4, 20.0)):
        for op, gbps in (("read", 1.0), ("write", 0.9), ("copy", 1.1), ("triad", 1.2)):
            made.append(row("cpu_bandwidth", gbps * scale, "gbps", {"op": op, "threads": threads, "cpus": cpus}))
    made.append(row("npu_memory", 0.0, "fds", {"part": "descriptors", "over": "context"}))
    for second, measured in enumerate(made):
        measured["evidence"]["conditions"] = conditions(2.0, 1000.0 - 5 * second, 40.0 + second)
    return made


def _fact(value: Any, source: str, provenance: str = "read", reason: str | None = None) -> dict[str, Any]:
    return {"value": value, "source": source, "provenance": provenance, "reason": reason, "needs_root": False}


def board_report() -> Report:
    """A board with clocks, heat and a known limit of its memory; one error, one warning, one note."""
    clusters = [{"cpus": [0, 1, 2, 3], "core": "Cortex-A55"}, {"cpus": [4, 5, 6, 7], "core": "Cortex-A76"}]
    return {
        "$schema": "https://rknpu-kit.invalid/schema/capability_report.schema.json",
        "format": "rknpu-kit capability report",
        "format_version": 1,
        "simulated": False,
        "simulation": None,
        "redacted": True,
        "tool": {"name": "rknpu-kit", "version": "0.1.0", "git_commit": "0123456789ab"},
        "run": {
            "level": "medium",
            "started_at": "2026-11-30T12:00:00.000Z",
            "ended_at": "2026-11-30T12:02:00.000Z",
            "duration_s": 120.0,
            "complete": True,
            "exit_code": 1,
            "seed": 7,
            "library": {
                "path": "/usr/lib/librknnrt.so",
                "version": "librknnrt version: 2.3.2",
                "sha256": None,
                "mock": False,
            },
        },
        "facts": {
            "soc.name": _fact("RK3588", "/proc/device-tree/compatible"),
            "npu.stack": _fact("vendor", "/sys/bus/platform/devices"),
            "cpu.clusters": _fact(clusters, "/sys/devices/system/cpu/cpufreq"),
            "ddr.theoretical_gbps": _fact(51.2, "clock and width", "assumed"),
            "npu.clock_now_hz": _fact(1000000000, "/sys/class/devfreq/fdab0000.npu/cur_freq"),
            "npu.load_percent": _fact(None, "/sys/kernel/debug/rknpu/load", reason="permission denied"),
        },
        "measurements": rows(),
        "findings": [
            _finding("NPU-C034", "error", "A result is wrong: int8 M = 8.", ("Run it again.", "Update librknnrt.")),
            _finding("NPU-P022", "warning", "K = 8224 runs 13 times slower than K = 8192.", ("Split K.",)),
            _finding("NPU-E001", "info", "A note.", ()),
        ],
        "steps": [
            {"name": "facts", "verdict": "passed", "duration_s": 0.1, "covered": "5 facts", "reason": None},
            {"name": "gemm", "verdict": "failed", "duration_s": 9.5, "covered": None, "reason": "1 wrong row"},
            {"name": "soak", "verdict": "skipped", "duration_s": 0.0, "covered": None, "reason": "level long only"},
        ],
    }


def _finding(code: str, severity: str, what: str, fix: tuple[str, ...]) -> dict[str, Any]:
    why = "Why it matters stands here."
    return {
        "code": code,
        "severity": severity,
        "what": what,
        "why": why,
        "fix": list(fix),
        "evidence": "seen",
        "rank": 1,
    }


def mock_report() -> Report:
    """The same rows from the mock, on a machine whose clocks cannot be read."""
    report = board_report()
    report["simulated"] = True
    report["simulation"] = {
        "persona": "rk3588",
        "timing": "campaign",
        "note": "The mock answered; no figure is of silicon.",
    }
    report["facts"]["ddr.theoretical_gbps"] = _fact(
        None, "clock and width", "assumed", "needs the highest memory clock"
    )
    for measured in report["measurements"]:
        measured["evidence"]["conditions"] = conditions(2.0, None, None)
    return report


def bare_report() -> Report:
    """A run that measured nothing and knows nothing."""
    report = board_report()
    report.update(facts={}, measurements=[], findings=[], steps=[])
    return report


def copied(report: Report) -> Report:
    return copy.deepcopy(report)


def as_saved(report: Report) -> Report:
    """The report as a reader of its file gets it."""
    loaded: Report = json.loads(json.dumps(report))
    return loaded
