# SPDX-License-Identifier: Apache-2.0
"""The faults that the traps are for, put into this kit's engine: the proof that each trap springs, and only then.

Nothing but :mod:`conformance.traps.matrix` and the tests uses this module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reference_engine.backends.npu_backend import NpuBackend
from reference_engine.backends.npu_steps import PreparedA
from reference_engine.graphs.common import RopeTable
from reference_engine.speculation.engine_sequence import EngineSequence

if TYPE_CHECKING:
    from reference_engine.backends.interface import F32, Counter
    from reference_engine.backends.npu_weight import NpuWeight
    from reference_engine.model import Model

Sums = list[NDArray[Any]]
PRESET = "w8a8-per-channel"


@dataclass(frozen=True)
class Injected:
    """``traps``: those that have to name it; ``others``: those that may be misled by it, and say so.

    ``pipeline`` makes the fault, or ``backend`` or ``model`` does. ``sequence``: in its place for a speculative run,
    where the fault is one of speculation.
    """

    imitates: str
    traps: tuple[str, ...]
    others: tuple[str, ...] = ()
    pipeline: str = PRESET
    backend: Callable[[NpuBackend], None] | None = None
    model: Callable[[Model], None] | None = None
    sequence: type[EngineSequence] | None = None


def _on_sums(change: Callable[[NpuWeight, Sums], None]) -> Callable[[NpuBackend], None]:
    """Spoils what the hardware's C holds, product by product."""

    def install(backend: NpuBackend) -> None:
        products = backend.products

        def spoiled(weight: NpuWeight, prepared: Sequence[PreparedA]) -> Sums:
            sums = [np.array(total) for total in products(weight, prepared)]
            change(weight, sums)
            return sums

        vars(backend).update(products=spoiled, fuses=lambda weight: False)

    return install


def _lose_segments(lost: Callable[[int, int], bool]) -> Callable[[NpuBackend], None]:
    """``lost(number, count)``: whether K segment ``number`` of ``count`` is; weights of one segment stay whole."""

    def change(weight: NpuWeight, sums: Sums) -> None:
        count = weight.segments[-1].k_index + 1
        for segment, total in zip(weight.segments, sums, strict=True):
            if count > 1 and lost(segment.k_index, count):
                total[...] = 0

    return _on_sums(change)


def _swap_slices(first: int, second: int) -> Callable[[NpuBackend], None]:
    def change(weight: NpuWeight, sums: Sums) -> None:
        count = len(weight.segments) // (weight.segments[-1].k_index + 1)
        for start in range(0, len(sums), count):
            a, b = start + first, start + second
            if second < count and sums[a].shape == sums[b].shape:
                sums[a], sums[b] = sums[b], sums[a]

    return _on_sums(change)


def _lose_slice(number: int) -> Callable[[NpuBackend], None]:
    def change(weight: NpuWeight, sums: Sums) -> None:
        count = len(weight.segments) // (weight.segments[-1].k_index + 1)
        for total in sums[number::count] if number < count else ():
            total[...] = 0

    return _on_sums(change)


def _on_rows(change: Callable[[NDArray[Any]], None]) -> Callable[[NpuBackend], None]:
    """Spoils the rows of a batch; a single row stays."""

    def each(weight: NpuWeight, sums: Sums) -> None:
        for total in sums:
            if len(total) > 1:
                change(total)

    return _on_sums(each)


def _lose_row(total: NDArray[Any]) -> None:
    total[len(total) // 2] = 0


def _lose_second_half(total: NDArray[Any]) -> None:
    total[(len(total) + 1) // 2 :] = 0


def _swap_rows(first: int, total: NDArray[Any]) -> None:
    total[[first, first + 1]] = total[[first + 1, first]]


def _segment_scales(*, activation: bool, weight: bool, of: int) -> Callable[[NpuBackend], None]:
    """Every K segment gets the scales of K segment ``of``."""

    def install(backend: NpuBackend) -> None:
        collect = backend.collect

        def spoiled(held: NpuWeight, prepared: Sequence[PreparedA], sums: Sums, out: F32) -> None:
            source = min(of, held.segments[-1].k_index)
            if activation and source == of:
                scale = next(prepared[s.activation].scale for s in held.segments if s.k_index == source)
                prepared = [PreparedA(a.q, scale) for a in prepared]
            if not weight or source != of:
                collect(held, prepared, sums, out)
                return
            scales = {s.n0: s.scale for s in held.segments if s.k_index == source}
            for segment, total in zip(held.segments, sums, strict=True):
                columns = out[:, segment.n0 : segment.n1]
                factor = prepared[segment.activation].scale[:, None] * scales[segment.n0][None, :]
                columns[:] = (0 if segment.k_index == 0 else columns) + total.astype(np.float32) * factor

        vars(backend).update(collect=spoiled, fuses=lambda held: False)

    return install


def _stale(backend: NpuBackend, *, first_forever: bool) -> None:
    """Each weight computes with the activation of its call before of that many rows, or with the first ever."""
    prepare = backend.prepare
    seen: dict[tuple[str, int], list[PreparedA]] = {}

    def stale(weight: NpuWeight, x: F32, counter: Counter) -> list[PreparedA]:
        fresh = [PreparedA(a.q.copy(), a.scale.copy()) for a in prepare(weight, x, counter)]
        key = weight.name, len(x)
        before = seen.setdefault(key, fresh)
        if not first_forever:
            seen[key] = fresh
        return before

    vars(backend).update(prepare=stale, fuses=lambda weight: False)


def _requantised(change: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> Callable[[NpuBackend], None]:
    """Activations in units of their scale -> the integers of a faulty quantiser; of pipelines without a transform."""

    def install(backend: NpuBackend) -> None:
        prepare = backend.prepare

        def spoiled(weight: NpuWeight, x: F32, counter: Counter) -> list[PreparedA]:
            found = []
            for segment, right in zip(weight.activations, prepare(weight, x, counter), strict=True):
                scale = np.where(right.scale == 0, 1, right.scale)[:, None].astype(np.float64)
                q = change(x[:, segment.k0 : segment.k1].astype(np.float64) / scale)
                found.append(PreparedA(np.clip(q, -127, 127).astype(np.int8), right.scale))
            return found

        vars(backend).update(prepare=spoiled, fuses=lambda weight: False)

    return install


def _window(change: Callable[[int], int], model: Model) -> None:
    model.graph.layer_windows = tuple(change(width) if width else 0 for width in model.graph.layer_windows)


def _rope_base(attribute: str, other: str, model: Model) -> None:
    """The table of one kind of layer is made with the base of the other."""
    tables = vars(model.graph)
    if attribute in tables and other in tables:
        made, wrong = (vars(tables[name])["_tables"].keywords for name in (attribute, other))
        tables[attribute] = RopeTable(kernels=model.backend.kernels, **{**made, "base": wrong["base"]})


def _head(change: Callable[[F32, F32], F32], model: Model) -> None:
    """``change(hidden, token_embd)`` are the logits of a head that is tied and square."""
    graph = model.graph
    if "output.weight" in model.file.tensors or model.n_vocab != model.n_embd:
        return
    rows = np.asarray(model.file.tensors["token_embd.weight"].dequantize())

    def other(hidden: F32, out: F32) -> F32:
        out[...] = change(hidden, rows)
        return out

    vars(graph)["head"] = other


class KeepingSequence(EngineSequence):
    """What was written stays in the cache, and the next token goes behind it."""

    def truncate(self, n_past: int) -> None:
        pass

    def _check(self, first: int) -> None:
        pass


_LONG = ("k-segment", "segment-scale", "quantiser")

INJECTED: Mapping[str, Injected] = {
    "w4a4": Injected("int4 in place of int8", ("w4a4",), _LONG, "w4a4"),
    "w4a4-hadamard": Injected("int4 with a Hadamard transform", ("w4a4",), _LONG, "w4a4-hadamard-padded"),
    "clip-wrap": Injected("clip factor 0.95 without a clamp", ("int8-wrap",), _LONG, f"{PRESET},clamp=off,a_clip=0.95"),
    "amax-128-wrap": Injected(
        "scale of amax / 128 without a clamp", ("int8-wrap",), _LONG, f"{PRESET},clamp=off,a_clip=0.9921875"
    ),
    "weight-wrap": Injected(
        "weights in units of amax / 128 without a clamp",
        ("int8-wrap",),
        _LONG,
        f"{PRESET},clamp=off,b_clip=0.9921875",
    ),
    "cut-off": Injected(
        "a cast in place of rounding",
        ("quantiser",),
        _LONG,
        backend=_requantised(lambda v: np.trunc(v + np.sign(v) * 1e-3)),
    ),
    "sign-lost": Injected(
        "magnitudes without their sign", ("quantiser",), _LONG, backend=_requantised(lambda v: np.rint(np.abs(v)))
    ),
    "first-segment-lost": Injected(
        "the first K segment is overwritten by the others", ("k-segment",), backend=_lose_segments(lambda i, n: i == 0)
    ),
    "last-segment-lost": Injected(
        "the last K segment is not added", ("k-segment",), backend=_lose_segments(lambda i, n: i == n - 1)
    ),
    "middle-segment-lost": Injected(
        "with a limit of 4096: the second K segment is not added",
        ("k-segment",),
        pipeline=f"{PRESET},k_limit=4096,cores=2",
        backend=_lose_segments(lambda i, n: i == 1),
    ),
    "segment-scale-a": Injected(
        "the first K segment's activation scale for all",
        ("segment-scale",),
        backend=_segment_scales(activation=True, weight=False, of=0),
    ),
    "segment-scale-b": Injected(
        "the first K segment's weight scales for all",
        ("segment-scale",),
        backend=_segment_scales(activation=False, weight=True, of=0),
    ),
    "segment-scales": Injected(
        "both scales of the first K segment for all",
        ("segment-scale",),
        backend=_segment_scales(activation=True, weight=True, of=0),
    ),
    "segment-scale-last": Injected(
        "the last K segment's activation scale for all",
        ("segment-scale",),
        backend=_segment_scales(activation=True, weight=False, of=1),
    ),
    "slices-0-1": Injected("cores 0 and 1 change places", ("core-slices",), backend=_swap_slices(0, 1)),
    "slices-0-2": Injected("cores 0 and 2 change places", ("core-slices",), backend=_swap_slices(0, 2)),
    "slices-1-2": Injected("cores 1 and 2 change places", ("core-slices",), backend=_swap_slices(1, 2)),
    "slice-lost": Injected("core 1 computes nothing", ("core-slices",), backend=_lose_slice(1)),
    "stale-a": Injected(
        "the activation of the run before", ("stale-activation",), backend=partial(_stale, first_forever=False)
    ),
    "first-a": Injected(
        "the first activation ever", ("stale-activation",), backend=partial(_stale, first_forever=True)
    ),
    "row-lost": Injected("one row of a batch is zero", ("batch-row",), backend=_on_rows(_lose_row)),
    "half-batch-lost": Injected(
        "the second half of a batch is zero", ("batch-row",), backend=_on_rows(_lose_second_half)
    ),
    "rows-swapped": Injected(
        "rows 3 and 4 of a batch change places", ("batch-row",), backend=_on_rows(partial(_swap_rows, 3))
    ),
    "rollback-lost": Injected("rejected drafts stay in the cache", ("kv-rollback",), sequence=KeepingSequence),
    "window-short": Injected("windows of one less", ("swa-window",), model=partial(_window, lambda n: n - 1)),
    "window-long": Injected("windows of one more", ("swa-window",), model=partial(_window, lambda n: n + 1)),
    "no-window": Injected("no windows", ("swa-window",), model=partial(_window, lambda n: 4096)),
    "rope-global": Injected(
        "global layers turn by the other base", ("rope-base",), model=partial(_rope_base, "rope", "rope_in_window")
    ),
    "rope-local": Injected(
        "layers in a window turn by the other base",
        ("rope-base",),
        model=partial(_rope_base, "rope_in_window", "rope"),
    ),
    "head-missed": Injected("a tied head is zero", ("tied-head",), model=partial(_head, lambda h, e: h @ e.T * 0)),
    "head-transposed": Injected(
        "a tied head is read transposed", ("tied-head",), model=partial(_head, lambda h, e: h @ e)
    ),
    "head-skipped": Injected("the hidden state is the logits", ("tied-head",), model=partial(_head, lambda h, e: h)),
}
