# SPDX-License-Identifier: Apache-2.0
"""Where CPU and NPU cross on the measured board: the size of a matmul at M = 1, and the M from which the NPU wins.

At M = 1 the CPU is taken at its best: weights read at its measured bandwidth. For a prompt it is taken as a llama-bench
file of the CPU build says; the probes measure no kernel that a CPU build would use.
"""

from __future__ import annotations

from dataclasses import dataclass

from reports.contract import JsonValue
from reports.forecast.npu_rate import NpuRate
from reports.forecast.passes import Model
from reports.forecast.quantity import Quantity, exact, larger, unknown

_NEVER = 1e15
"""Weights of no matmul."""

_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)


@dataclass(frozen=True)
class Crossover:
    """``weights``: elements of a matmul from which the NPU is faster at M = 1; None: never, or unknown (``why``).

    ``rows``: the M from which it is faster at K = N = ``side``.
    """

    weights: float | None
    rows: int | None
    side: int
    why: str
    missing: tuple[str, ...] = ()

    def as_json(self) -> dict[str, JsonValue]:
        return {
            "decode_weights": self.weights,
            "prefill_rows": self.rows,
            "side": self.side,
            "why": self.why,
            "missing": list(self.missing),
        }


CPU_BUILD = "llama-bench of the CPU build, a prompt"


def crossover(model: Model, bytes_per_weight: float, side: int) -> Crossover:
    """``bytes_per_weight`` is what the CPU reads for a weight in the file's type; ``side`` the K and N of the model."""
    board, rate, cores = model.board, model.rate, model.cores
    npu = rate.per_weight(1, cores) / cores
    cpu = exact(bytes_per_weight) / board.cpu_bandwidth("read", model.host.cpus)
    products = model.host.cpu_ops or unknown(CPU_BUILD)
    missing = tuple(dict.fromkeys((*npu.missing, *cpu.missing, *products.missing, *board.fixed().missing)))
    if npu.value is None or cpu.value is None:
        return Crossover(None, None, side, "unknown", missing)
    weights: float | None = None
    if cpu.value > npu.value and (fixed := board.fixed().value) is not None:
        weights = min(fixed / (cpu.value - npu.value), _NEVER)
        why = f"decode: the NPU is faster for matmuls of more than {weights / 1e6:.2f} million weights"
    else:
        why = (
            f"decode: reading {bytes_per_weight:.2f} bytes a weight at {1 / cpu.value * bytes_per_weight / 1e9:.1f} "
            f"GB/s the CPU may be as fast as the NPU at any size"
        )
    rows = (
        None
        if not products.known
        else next((m for m in _ROWS if _faster(rate, cpu, products, cores=cores, rows=m, side=side)), None)
    )
    return Crossover(weights, rows, side, why, missing)


def _faster(rate: NpuRate, cpu: Quantity, products: Quantity, *, cores: int, rows: int, side: int) -> bool:
    npu = rate.run(rows, side, -(-side // cores), cores)
    best = larger(cpu * float(side * side), exact(2.0 * rows * side * side) / products)
    return npu.value is not None and best.value is not None and npu.value < best.value
