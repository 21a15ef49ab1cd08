# SPDX-License-Identifier: Apache-2.0
"""The published campaign's tables as rows of llama-bench (marfrit/rk-llama.cpp, docs/rknpu2-campaign-results.md)."""

from __future__ import annotations

from typing import Any

from reports.llama_bench import BenchRow


def row(rate: float, spread: float = 0.01, **fields: Any) -> BenchRow:
    base: dict[str, Any] = {
        "model": "ornith-1.0-9b-Q8_0.gguf", "model_size": 9_500_000_000, "n_params": 8_950_000_000,
        "backends": "RKNPU", "n_threads": 4, "cpu_mask": "0xf0", "n_ubatch": 512, "type_k": "f16", "type_v": "f16",
        "flash_attn": False, "n_prompt": 0, "n_gen": 0, "n_depth": 0, "avg_ts": rate,
        "samples_ts": (rate - spread, rate, rate + spread),
    }  # fmt: skip
    return BenchRow(**{**base, **fields})


KV = [
    row(rate, n_gen=128, n_depth=depth, type_k=kind, type_v=kind, flash_attn=flash)
    for kind, flash, rates in (
        ("f16", False, (3.34, 2.75, 2.20)),
        ("f16", True, (3.35, 2.18, 1.64)),
        ("q8_0", True, (3.38, 2.55, 2.09)),
        ("q4_0", True, (3.37, 2.79, 2.38)),
    )
    for depth, rate in zip((0, 8192, 16384), rates, strict=True)
]
PINNING = [
    row(51.37, 0.07, n_prompt=512), row(43.22, 0.43, n_prompt=512, cpu_mask="0x0"),
    row(46.92, 0.04, n_prompt=512, cpu_mask="0xff", n_threads=8), row(16.02, 0.01, n_prompt=512, cpu_mask="0xf"),
    row(2.97, 0.03, n_gen=128, cpu_mask="0x0"), row(2.58, 0.01, n_gen=128, cpu_mask="0xf"),
    row(2.58, 0.05, n_gen=128, cpu_mask="0xff", n_threads=8), row(3.35, 0.005, n_gen=128),
]  # fmt: skip
BUILDS = [
    row(42.10, 0.1, n_prompt=512, cpu_mask="0x0"), row(13.65, 0.1, n_prompt=512, cpu_mask="0x0", backends="CPU"),
    row(2.98, 0.02, n_gen=128, cpu_mask="0x0"), row(2.78, 0.02, n_gen=128, cpu_mask="0x0", backends="CPU"),
]  # fmt: skip
