# SPDX-License-Identifier: Apache-2.0
"""Where CPU and NPU cross on the measured board: the size of a matmul at M = 1, and the M from which the NPU wins.

The CPU is taken at its best: weights read at its measured bandwidth, products at its measured rate out of the first
cache. A real kernel is slower, so the NPU wins no later than told here.
"""

from __future__ import annotations

from dataclasses import dataclass

from reports.contract import JsonValue
from reports.forecast.npu_rate import NpuRate
from reports.forecast.quantity import Quantity, exact, larger

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


def crossover(rate: NpuRate, cpus: str | None, cores: int, bytes_per_weight: float, side: int) -> Crossover:
    """``bytes_per_weight`` is what the CPU reads for a weight in the file's type; ``side`` the K and N of the model."""
    board = rate.board
    read, products = board.cpu_bandwidth("read", cpus), board.cpu_rate(cpus)
    npu = rate.per_weight(1, cores) / cores
    cpu = exact(bytes_per_weight) / read
    missing = tuple(dict.fromkeys((*npu.missing, *cpu.missing, *products.missing, *board.fixed().missing)))
    if npu.value is None or cpu.value is None:
        return Crossover(None, None, side, "unknown", missing)
    weights: float | None = None
    if cpu.value > npu.value and (fixed := board.fixed().value) is not None:
        weights = fixed / (cpu.value - npu.value)
        why = f"decode: the NPU is faster for matmuls of more than {weights / 1e6:.2f} million weights"
    else:
        why = (
            f"decode: reading {bytes_per_weight:.2f} bytes a weight at {1 / cpu.value * bytes_per_weight / 1e9:.1f} "
            f"GB/s the CPU is never slower than the NPU"
        )
    rows = next((m for m in _ROWS if _faster(rate, cpu, products, cores=cores, rows=m, side=side)), None)
    return Crossover(weights, rows, side, why, missing)


def _faster(rate: NpuRate, cpu: Quantity, products: Quantity, *, cores: int, rows: int, side: int) -> bool:
    npu = rate.run(rows, side, -(-side // cores), cores)
    best = larger(cpu * float(side * side), exact(2.0 * rows * side * side) / products)
    return npu.value is not None and best.value is not None and npu.value < best.value
