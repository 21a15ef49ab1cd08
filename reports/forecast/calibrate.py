# SPDX-License-Identifier: Apache-2.0
"""What llama-bench rows of the same board tell that the probes cannot: attention, the host, and matmuls of the CPU.

Only rows of the same model are used where the model matters: attention and the host's cost for each call are solved
for with that model's heads and calls. What was solved for from a row is no forecast of that row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reports.forecast.npu_rate import Rates
from reports.forecast.passes import Host, Model, attention_products
from reports.forecast.quantity import ONE, ZERO, Quantity, exact, sampled, span
from reports.forecast.work import AttentionLayer
from reports.llama_bench import BenchRow, pick


def seconds(row: BenchRow) -> Quantity:
    """Seconds of the whole test of ``row``."""
    tokens = float(row.n_prompt + row.n_gen)
    rate = sampled(row.avg_ts, [value for value in row.samples_ts if value > 0], row.label)
    return exact(tokens) / rate


def same_model(rows: Sequence[BenchRow], elements: int) -> list[BenchRow]:
    """Rows of a model with exactly ``elements`` parameters."""
    return [row for row in rows if row.n_params == elements]


def calibrated(rows: Sequence[BenchRow], elements: int, kv: str, model: Model) -> Host:
    """The CPU side of ``model`` with what ``rows`` tell about it; ``elements``: its parameters, ``kv``: its cache."""
    own = [row for row in same_model(rows, elements) if row.type_k == kv and row.flash_attn is not True]
    host = replace(model.host, cpu_ops=cpu_ops(rows))
    layers = model.work.attention
    if layers is not None:
        host = replace(
            host,
            attention_decode=_slope([row for row in own if row.is_decode], layers),
            attention_prefill=_slope([row for row in own if row.is_prefill], layers),
        )
    host = replace(host, batch_factor=_batch_factor(own, replace(model, host=host)))
    return replace(host, per_call=_per_call(own, replace(model, host=host)))


def cpu_ops(rows: Sequence[BenchRow]) -> Quantity | None:
    """Operations per second of matmuls on the CPU alone, from its prompts: two for each parameter and token."""
    found = pick(rows, lambda row: row.is_prefill and row.cpu_only and row.n_depth == 0 and row.n_params > 0)
    if not found:
        return None
    row = found[0]
    return exact(2.0 * row.n_params * row.n_prompt) / seconds(row)


def products(layers: Sequence[AttentionLayer], row: BenchRow) -> float:
    """Multiply-adds of attention in the whole test: query rows x head dimensions x cells they are multiplied with."""
    if row.is_decode:
        # The token in the middle stands for all of them.
        return row.n_gen * attention_products(layers, 1, row.n_depth + row.n_gen // 2)
    done, counted = 0, 0.0
    while done < row.n_prompt:
        batch = min(row.n_ubatch or row.n_prompt, row.n_prompt - done)
        counted += attention_products(layers, batch, row.n_depth + done)
        done += batch
    return counted


def _slope(rows: Sequence[BenchRow], layers: Sequence[AttentionLayer]) -> Quantity | None:
    """Seconds for each multiply-add, between the rows with the fewest and the most of them for a token.

    The rest of a test grows with its tokens alone, so it cancels: seconds a token at one depth less those at another.
    """
    groups: dict[tuple[object, ...], list[BenchRow]] = {}
    for row in rows:
        key = (row.backends, row.n_threads, row.cpu_mask, row.type_k, row.type_v, row.flash_attn)
        groups.setdefault(key, []).append(row)
    readings = []
    for group in groups.values():
        tokens = {row: row.n_prompt + row.n_gen for row in group}
        ordered = sorted(group, key=lambda row: products(layers, row) / tokens[row])
        few, many = ordered[0], ordered[-1]
        apart = products(layers, many) / tokens[many] - products(layers, few) / tokens[few]
        if apart <= 0:
            continue
        slow, fast = seconds(many) / float(tokens[many]), seconds(few) / float(tokens[few])
        if slow.value is None or fast.value is None or (slow.low or 0.0) <= (fast.high or 0.0):
            # Samples that overlap do not tell the two apart.
            continue
        low = (slow.low or 0.0) - (fast.high or 0.0)
        high = (slow.high or 0.0) - (fast.low or 0.0)
        sources = (*slow.sources, *fast.sources)
        readings.append(Quantity((slow.value - fast.value) / apart, low / apart, high / apart, sources))
    plain = span(readings)
    return plain if plain.known else None


def _batch_factor(rows: Sequence[BenchRow], model: Model) -> Quantity:
    """How many times longer a measured prompt keeps the NPU with its batches than the report's rows say; 1 untold.

    Needs the cost of attention: without it that would count as time of the NPU.
    """
    found = pick(rows, lambda row: row.is_prefill and row.on_npu and row.n_depth == 0 and row.n_prompt <= row.n_ubatch)
    if not found or model.host.attention_prefill is None:
        return ONE
    row = found[0]
    parts = model.run_pass(row.n_prompt, head_rows=1).parts
    bare = replace(model, rates=Rates(model.board, model.rates.main, batch_factor=ZERO))
    streamed = bare.run_pass(row.n_prompt, head_rows=1).parts["NPU"]
    measured, npu = seconds(row), parts["NPU"]
    if measured.value is None or npu.value is None or streamed.value is None or npu.value <= streamed.value:
        return ONE
    beside = sum(part.value or 0.0 for name, part in parts.items() if name != "NPU")
    ends = [
        max(0.0, ((end or 0.0) - beside - streamed.value) / (npu.value - streamed.value))
        for end in (measured.value, measured.low, measured.high)
    ]
    return Quantity(ends[0], min(ends), max(ends), measured.sources)


def _per_call(rows: Sequence[BenchRow], model: Model) -> Quantity | None:
    """Seconds of the host around each call: what a measured decode step takes beyond all that is known."""
    found = pick(rows, lambda row: row.is_decode and row.on_npu and row.n_depth == 0)
    if not found or not model.work.calls:
        return None
    step = seconds(found[0]) / float(found[0].n_gen)
    known = model.run_pass(1, depth=found[0].n_gen // 2).seconds
    if step.value is None or known.value is None or step.value <= known.value:
        return None
    left = [
        (step.value - known.value),
        (step.low or 0.0) - (known.high or 0.0),
        (step.high or 0.0) - (known.low or 0.0),
    ]
    value, low, high = (max(0.0, end) / model.work.calls for end in left)
    return Quantity(value, min(low, value), max(high, value), step.sources)
