# SPDX-License-Identifier: Apache-2.0
"""Reports of a made-up board whose times follow a formula written out here, so that a test can work them out by hand.

A run of M x K x N on one core takes FIXED + K N (STREAM + M MAC) seconds; with c cores together the streaming part is
stretched by c / STREAMS[c] and the rest by c / SCALING[c].
"""

from __future__ import annotations

from typing import Any

FIXED = 40e-6
STREAM = 1e-10  # 10 GB/s of int8 weights
MAC = 2e-12  # 1 TOPS
STREAMS = {1: 1.0, 2: 1.8, 3: 2.4}
SCALING = {1: 1.0, 2: 1.9, 3: 2.7}
READ, COPY = 20e9, 16e9
SYNC_START, SYNC_BYTE = 2e-6, 1e-10

Row = dict[str, Any]


def row(name: str, unit: str, value: float, samples: list[float] | None = None, **parameters: Any) -> Row:
    return {
        "name": name,
        "parameters": parameters,
        "unit": unit,
        "median": value,
        "mad": 0.0,
        "samples": [value] if samples is None else samples,
        "checked": "exact",
        "verdict": "passed",
        "validity": {"valid": True, "reasons": []},
        "method": "made for a test",
        "reason": None,
        "evidence": {},
    }


def gemm(m: int, k: int, n: int, kind: int = 2, scale: float = 1.0) -> Row:
    seconds = FIXED + k * n * (STREAM + m * MAC) * scale
    tops = 2 * m * k * n / seconds / 1e12
    return row(
        "gemm_rate", "tops", tops, M=m, K=k, N=n, type=kind, B_layout="native", AC_layout="norm", core_mask=1
    )  # fmt: skip


def rows() -> list[Row]:
    found = [row("run_cost", "us", FIXED * 1e6, part="fixed", type=2)]
    found += [gemm(m, 1024, 1024) for m in (1, 16, 128, 512)]
    found += [gemm(m, 1024, 1024, kind=10, scale=0.5) for m in (1, 512)]
    found += [gemm(m, 1024, 1024, kind=1, scale=2.0) for m in (1, 512)]
    for cores in (1, 2, 3):
        found.append(row("npu_stream", "gbps", STREAMS[cores] / STREAM / 1e9, contexts=cores, type=2, M=1))
        found.append(row("core_scaling", "tops", SCALING[cores] * 0.9, contexts=cores, type=2))
    for direction in ("to_device", "from_device"):
        for size in (2048, 4 << 20):
            value = (SYNC_START + SYNC_BYTE * size) * 1e6
            found.append(row("run_cost", "us", value, part="sync", direction=direction, bytes=size))
    for cpus, threads, share in (("4-7", 4, 1.0), ("0-3", 4, 0.4)):
        found.append(row("cpu_bandwidth", "gbps", READ * share / 1e9, op="read", threads=threads, cpus=cpus))
        found.append(row("cpu_bandwidth", "gbps", COPY * share / 1e9, op="copy", threads=threads, cpus=cpus))
    found.append(row("cpu_rate", "gops", 80.0, cpus="4-7", threads=4, split="even"))
    found.append(row("cpu_rate", "gops", 60.0, cpus="0-7", threads=8, split="even"))
    found.append(row("contention", "share", 0.7, of="cpu_read", beside="npu_stream"))
    found.append(row("contention", "share", 0.6, of="npu_stream", beside="cpu_read"))
    limit = row("shape_limit", "elements", 8192, type=2, dimension="K", limit="fast")
    limit["evidence"] = {"slower_times": 14.0, "ends_at": 8224}
    return [*found, limit]


def report(measurements: list[Row] | None = None, **facts: Any) -> dict[str, Any]:
    """A report with these rows (all of the made-up board) and facts (``soc__name`` for ``soc.name``)."""
    told = {"soc__name": "RK3588", "memory__total_bytes": 16 << 30, "iommu__windows": 16, **facts}
    return {
        "format": "rknpu-kit capability report",
        "format_version": 1,
        "simulated": False,
        "facts": {key.replace("__", "."): {"value": value, "source": "made"} for key, value in told.items()},
        "measurements": rows() if measurements is None else measurements,
        "findings": [],
        "steps": [],
    }


def without(name: str, **parameters: Any) -> list[Row]:
    """All rows but those of that name with these parameters. ValueError where there are none: nothing was removed."""
    kept = [
        each
        for each in rows()
        if each["name"] != name or any(each["parameters"].get(key) != value for key, value in parameters.items())
    ]
    if len(kept) == len(rows()):
        raise ValueError(f"no row {name} {parameters}")
    return kept
