# SPDX-License-Identifier: Apache-2.0
"""Time of one forward pass: NPU runs, what the CPU does around them, matmuls that stay on the CPU, attention.

A matmul-only back end (rk-llama.cpp) works in turns: quantise the activation, hand it over, run, fetch the sums, turn
them into floats. Nothing overlaps, so the parts add up. Without a measured rate of the matmuls nothing
is told; any other part that the report does not measure is left out by name, which makes the rate an upper bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from reference_engine.npu_segments import bucket_rows
from reports.forecast.board import FP16, INT4, INT8, Board
from reports.forecast.npu_rate import NpuRate, Rates
from reports.forecast.quantity import ONE, ZERO, Quantity, exact, larger, total, unknown
from reports.forecast.work import AttentionLayer, NpuMatmul, Work

A_BYTES: Mapping[int, float] = {INT8: 1.0, FP16: 2.0, INT4: 0.5}
C_BYTES: Mapping[int, float] = {INT8: 4.0, FP16: 4.0, INT4: 2.0}

HOST = "what the host does around each call of the back end"
ATTENTION = "attention on this CPU (llama-bench at several depths)"
CPU_BATCH = "batched matmuls on this CPU (llama-bench of the CPU build)"

FUSED_BATCH = "what such a runtime does in a prompt beside its matmuls"

KV_BYTES: Mapping[str, float] = {"f32": 4.0, "f16": 2.0, "q8_0": 34 / 32, "q4_0": 18 / 32}
"""Bytes of one value in the cache (ggml block sizes)."""


@dataclass(frozen=True)
class Host:
    """What the CPU side is known to take; None where nothing measured it.

    ``per_call``: seconds of the host around one call of the back end. ``attention_decode`` and ``attention_prefill``:
    seconds for each multiply-add of Q K^T and P V, of one row and of a batch. ``cpu_ops``: operations per second of
    batched matmuls on the CPU. ``batch_factor``: see NpuRate. ``fused``: a runtime that has no CPU side.
    """

    cpus: str | None
    per_call: Quantity | None = None
    attention_decode: Quantity | None = None
    attention_prefill: Quantity | None = None
    cpu_ops: Quantity | None = None
    batch_factor: Quantity = ONE
    fused: bool = False


@dataclass(frozen=True)
class Pass:
    """Seconds of one pass by part. ``seconds`` is their sum."""

    parts: dict[str, Quantity] = field(default_factory=dict)
    omitted: tuple[str, ...] = ()

    @property
    def seconds(self) -> Quantity:
        result = ZERO
        for part in self.parts.values():
            result = result + part
        return result.without(*self.omitted) if self.omitted else result


@dataclass(frozen=True)
class Model:
    """What the time of a pass is worked out from: the board, the rates of the type, the work, the CPU side."""

    board: Board
    rates: Rates
    work: Work
    host: Host
    m_bucket: str = "none"
    cores: int = 1

    @property
    def rate(self) -> NpuRate:
        """The rate of the type that most of the work is of."""
        return self.rates.of(self.rates.main)

    def run_pass(self, rows: int, depth: int = 0, head_rows: int | None = None, kv: str = "f16") -> Pass:
        """One pass of ``rows`` tokens behind ``depth`` others; ``head_rows`` of them get logits (default all)."""
        head_rows = rows if head_rows is None else head_rows
        npu = total(self._npu(matmul, head_rows if matmul.head else rows) * count for matmul, count in self.work.npu)
        parts = {"NPU": npu}
        if self.work.cpu:
            parts["CPU matmuls"] = self._cpu(rows, head_rows)
        omitted: list[str] = []
        for name, part in self._beside(rows, head_rows, depth, kv).items():
            if part.known:
                parts[name] = part
            else:
                omitted += part.missing
        return Pass(parts, tuple(dict.fromkeys(omitted)))

    def _beside(self, rows: int, head_rows: int, depth: int, kv: str) -> dict[str, Quantity]:
        """What a pass takes beside the runs. Each only adds time: an unknown one leaves a bound."""
        parts: dict[str, Quantity] = {}
        if not self.host.fused:
            parts.update(self._around(rows, head_rows))
            parts["host"] = unknown(HOST) if self.host.per_call is None else self.host.per_call * self.work.calls
        if rows + depth > 1:
            parts["attention"] = self._attention(rows, depth, kv)
        return parts

    def cache_read(self, depth: int, kv: str) -> Quantity:
        """Seconds to read keys and values of ``depth`` positions once: attention of one token takes no less."""
        layers = self.work.attention
        if layers is None:
            return unknown("attention of this architecture")
        return exact(_cache_bytes(layers, depth, kv)) / self.board.cpu_bandwidth("read", self.host.cpus)

    def _npu(self, matmul: NpuMatmul, rows: int) -> Quantity:
        largest = max(matmul.n_segments)
        used = len(matmul.n_segments)
        rate = self.rates.of(matmul.kind)
        return total(
            rate.run(bucket, k, largest, used) for bucket in bucket_rows(rows, self.m_bucket) for k in matmul.k_segments
        )

    def _around(self, rows: int, head_rows: int) -> dict[str, Quantity]:
        """Quantising, syncing and collecting. Bytes as they are read and written, at the copy rate of the CPUs."""
        copy = self.board.cpu_bandwidth("copy", self.host.cpus)
        prepared = collected = 0.0
        sync = ZERO
        for matmul, count in self.work.npu:
            m = head_rows if matmul.head else rows
            a, c = A_BYTES[matmul.kind], C_BYTES[matmul.kind]
            # The activation is read twice, for its largest magnitude and to be quantised; sums are added from the
            # second K segment on.
            prepared += count * m * matmul.K * (8 + a)
            collected += count * m * matmul.N * (len(matmul.k_segments) * (c + 8) - 4)
            padded = sum(bucket_rows(m, self.m_bucket))
            to = total(self.board.sync("to_device", int(padded * k * a)) for k in matmul.k_segments)
            back = total(self.board.sync("from_device", int(padded * n * c)) for n in matmul.n_segments)
            sync = sync + (to + back * len(matmul.k_segments)) * count
        return {"quantise": exact(prepared) / copy, "collect": exact(collected) / copy, "sync": sync}

    def _cpu(self, rows: int, head_rows: int) -> Quantity:
        """At one row a CPU matmul is as fast as its weights can be read; a batch is told by llama-bench alone."""
        read = self.board.cpu_bandwidth("read", self.host.cpus)
        result = ZERO
        for matmul, count in self.work.cpu:
            m = head_rows if matmul.head else rows
            seconds = exact(float(matmul.bytes_)) / read
            if m > 1:
                computed = self.host.cpu_ops or unknown(CPU_BATCH)
                seconds = larger(seconds, exact(2.0 * m * matmul.K * matmul.N) / computed)
            result = result + seconds * count
        return result

    def _attention(self, rows: int, depth: int, kv: str) -> Quantity:
        layers = self.work.attention
        if layers is None:
            return unknown("attention of this architecture")
        if self.host.fused:
            if rows > 1:
                return unknown(FUSED_BATCH)
            return exact(_cache_bytes(layers, depth, kv)) / self.board.stream(self.cores)
        each = self.host.attention_decode if rows == 1 else self.host.attention_prefill
        return unknown(ATTENTION) if each is None else each * attention_products(layers, rows, depth)


def kv_row_bytes(layer: AttentionLayer, kv: str) -> float:
    """Bytes of one position's keys and values in one layer."""
    return layer.kv_heads * (layer.k_dim + layer.v_dim) * KV_BYTES[kv]


def _cache_bytes(layers: Sequence[AttentionLayer], depth: int, kv: str) -> float:
    return sum(kv_row_bytes(layer, kv) * layer.cells(depth) for layer in layers)


def attention_products(layers: Sequence[AttentionLayer], rows: int, depth: int) -> float:
    """Multiply-adds of Q K^T and P V of one batch of ``rows`` behind ``depth`` positions.

    A batch multiplies with all cells up to its end, masked ones too; a layer with a window holds that and the batch
    (llama.cpp without flash attention).
    """
    count = 0
    for layer in layers:
        cells = min(depth + rows, layer.window + rows) if layer.window else depth + rows
        count += rows * layer.heads * (layer.k_dim + layer.v_dim) * cells
    return float(count)
