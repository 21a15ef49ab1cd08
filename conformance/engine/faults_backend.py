# SPDX-License-Identifier: Apache-2.0
"""Faults of a back end: of its quantiser, of its products, of its scaled sums. Each takes a back end and spoils it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reference_engine.backends.hadamard import transform_rows
from reference_engine.backends.interface import Counter
from reference_engine.backends.npu_backend import NpuBackend
from reference_engine.backends.npu_steps import PreparedA
from reference_engine.backends.npu_weight import NpuWeight, WeightSegment, build_weight
from reference_engine.backends.pipeline import Pipeline
from reference_engine.backends.presets import PRESETS

F32 = NDArray[np.float32]
Install = Callable[[NpuBackend], None]
Requantise = Callable[[F32, PreparedA, Pipeline], PreparedA]


def _inputs(weight: NpuWeight, x: F32, segment: WeightSegment) -> F32:
    """What of x [M, K] the segment's quantiser sees."""
    if weight.signs is not None:
        x = transform_rows(x, weight.signs, weight.k_op, weight.divisor)
    part = x[:, segment.k0 : segment.k1]
    return part if segment.fold is None else part * segment.fold


def _fuse_nothing(backend: NpuBackend) -> None:
    """Every product goes through the phases one by one."""
    vars(backend)["fuses"] = lambda weight: False


def _spoils_activations(change: Requantise) -> Install:
    def install(backend: NpuBackend) -> None:
        _fuse_nothing(backend)
        prepare = backend.prepare

        def spoiled(weight: NpuWeight, x: F32, counter: Counter) -> list[PreparedA]:
            right = prepare(weight, x, counter)
            if weight.pipeline.bits == 16:
                return right
            with np.errstate(all="ignore"):
                return [
                    change(_inputs(weight, x, segment), prepared, weight.pipeline)
                    for segment, prepared in zip(weight.activations, right, strict=True)
                ]

        vars(backend)["prepare"] = spoiled

    return install


def _scaled(x: F32, scale: F32) -> F32:
    inverse = np.where(scale == 0, np.float32(0), np.float32(1) / scale)
    product: F32 = (x * inverse[:, None]).astype(np.float32)
    return product


def _stored(whole: NDArray[Any], pipeline: Pipeline, clamp: bool | None = None) -> NDArray[np.int8]:
    held = np.nan_to_num(whole, nan=0.0, posinf=2.0**31 - 1, neginf=-(2.0**31)).astype(np.int64)
    held = np.clip(held, -(2**31), 2**31 - 1)
    most, clamp = pipeline.qmax, pipeline.clamp if clamp is None else clamp
    if not clamp:
        held = held.astype(np.int8).astype(np.int64)
    q: NDArray[np.int8] = (np.clip(held, -most, most) if clamp or pipeline.bits == 4 else held).astype(np.int8)
    return q


def _away(v: F32) -> NDArray[np.float64]:
    wide = v.astype(np.float64)
    return np.copysign(np.floor(np.abs(wide) + 0.5), wide)


def _rounding(how: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> Install:
    return _spoils_activations(
        lambda x, a, p: PreparedA(_stored(how(_scaled(x, a.scale).astype(np.float64)), p), a.scale)
    )


half_up = _rounding(lambda v: np.floor(v + 0.5))
half_even = _rounding(np.rint)
truncate = _rounding(np.trunc)
sign_lost = _spoils_activations(lambda x, a, p: PreparedA(np.abs(a.q), a.scale))
no_clamp = _spoils_activations(lambda x, a, p: PreparedA(_stored(_away(_scaled(x, a.scale)), p, clamp=False), a.scale))
zero_row_nan = _spoils_activations(
    lambda x, a, p: PreparedA(a.q, np.where(a.scale == 0, np.float32(np.nan), a.scale).astype(np.float32))
)
divide = _spoils_activations(
    lambda x, a, p: PreparedA(
        _stored(_away((x / np.where(a.scale == 0, np.float32(np.inf), a.scale)[:, None]).astype(np.float32)), p),
        a.scale,
    )
)


@_spoils_activations
def rim_wraps(x: F32, a: PreparedA, pipeline: Pipeline) -> PreparedA:
    q = a.q.astype(np.int16)
    return PreparedA(np.where(np.abs(q) == pipeline.qmax, q + np.sign(q), q).astype(np.int8), a.scale)


def _requantised(x: F32, scale: F32, pipeline: Pipeline) -> PreparedA:
    return PreparedA(_stored(_away(_scaled(x, scale)), pipeline), scale)


@_spoils_activations
def clip_ignored(x: F32, a: PreparedA, pipeline: Pipeline) -> PreparedA:
    return _requantised(x, (np.abs(x).max(axis=1) / np.float32(pipeline.qmax)).astype(np.float32), pipeline)


@_spoils_activations
def batch_scale(x: F32, a: PreparedA, pipeline: Pipeline) -> PreparedA:
    return _requantised(x, np.full_like(a.scale, a.scale.max(initial=0.0)), pipeline)


@_spoils_activations
def flush(x: F32, a: PreparedA, pipeline: Pipeline) -> PreparedA:
    least = np.float32(2.0**-126)
    scale = np.where(a.scale < least, np.float32(0), a.scale)
    return _requantised(np.where(np.abs(x) < least, np.float32(0), x), scale, pipeline)


def nan_taken(backend: NpuBackend) -> None:
    _fuse_nothing(backend)
    prepare, build = backend.prepare, backend.build

    def taken(weight: NpuWeight, x: F32, counter: Counter) -> list[PreparedA]:
        return prepare(weight, np.nan_to_num(x, nan=0.0, posinf=0.0, neginf=0.0), counter)

    vars(backend).update(prepare=taken, build=build)


def weight_scale(backend: NpuBackend) -> None:
    """In numpy and on the CPU: a device would be given other integers."""
    _fuse_nothing(backend)

    def build(tensor: Any, pipeline: Pipeline) -> NpuWeight:
        weight = build_weight(tensor, pipeline)
        if pipeline.bits == 16 or pipeline.hadamard != "none" or pipeline.weight_scale != "channel":
            return weight
        rows = np.concatenate([part for _, part in tensor.row_blocks()])
        integers, segments = [], []
        for s in weight.segments:
            part = rows[s.n0 : s.n1, s.k0 : s.k1]
            amax = np.abs(part).max(axis=1)
            clipped = np.float32(pipeline.b_clip) * amax
            scale = np.where(amax == 0, np.float32(1), clipped / np.float32(pipeline.qmax + 1)).astype(np.float32)
            integers.append(_stored(_away(_scaled(part, scale)), pipeline))
            segments.append(replace(s, scale=scale))
        return replace(weight, segments=tuple(segments), quantized=integers.__getitem__)

    vars(backend)["build"] = build


def fp16_truncate(backend: NpuBackend) -> None:
    _fuse_nothing(backend)
    prepare = backend.prepare

    def cut(weight: NpuWeight, x: F32, counter: Counter) -> list[PreparedA]:
        if weight.pipeline.bits == 16:
            x = (x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
        return prepare(weight, x, counter)

    vars(backend)["prepare"] = cut


def stale_a(backend: NpuBackend) -> None:
    _fuse_nothing(backend)
    prepare = backend.prepare
    last: dict[tuple[Any, ...], list[PreparedA]] = {}

    def stale(weight: NpuWeight, x: F32, counter: Counter) -> list[PreparedA]:
        fresh = prepare(weight, x, counter)
        key = (weight.name, x.shape, weight.pipeline.name)
        before, last[key] = last.get(key, fresh), fresh
        return before

    vars(backend)["prepare"] = stale


def _spoils_sums(change: Callable[[NpuWeight, list[NDArray[Any]]], list[NDArray[Any]]]) -> Install:
    def install(backend: NpuBackend) -> None:
        _fuse_nothing(backend)
        products, on_device = backend.products, getattr(backend, "_on_device", None)

        def spoiled(weight: NpuWeight, prepared: Any) -> list[NDArray[Any]]:
            return change(weight, [np.array(total) for total in products(weight, prepared)])

        def spoiled_there(weight: NpuWeight, prepared: Any) -> Any:
            sums, inside = on_device(weight, prepared)  # type: ignore[misc]
            return change(weight, [np.array(total) for total in sums]), inside

        if on_device is None:
            vars(backend)["products"] = spoiled
        else:
            vars(backend)["_on_device"] = spoiled_there

    return install


@_spoils_sums
def segment_lost(weight: NpuWeight, sums: list[NDArray[Any]]) -> list[NDArray[Any]]:
    last = weight.segments[-1].k_index
    for segment, total in zip(weight.segments, sums, strict=True):
        if last and segment.k_index == last:
            total[...] = 0
    return sums


@_spoils_sums
def n_slice_swapped(weight: NpuWeight, sums: list[NDArray[Any]]) -> list[NDArray[Any]]:
    first = [i for i, segment in enumerate(weight.segments) if segment.k_index == 0]
    if len(first) > 1 and sums[first[0]].shape == sums[first[1]].shape:
        sums[first[0]], sums[first[1]] = sums[first[1]], sums[first[0]]
    return sums


@_spoils_sums
def batch_slice(weight: NpuWeight, sums: list[NDArray[Any]]) -> list[NDArray[Any]]:
    for total in sums:
        total[4:] = 0
    return sums


def _collects(change: Callable[[NpuBackend, Callable[..., None]], Callable[..., None]]) -> Install:
    def install(backend: NpuBackend) -> None:
        _fuse_nothing(backend)
        vars(backend)["collect"] = change(backend, backend.collect)

    return install


@_collects
def segment_scale(backend: NpuBackend, collect: Callable[..., None]) -> Callable[..., None]:
    def spoiled(weight: NpuWeight, prepared: Any, sums: Any, out: F32) -> None:
        collect(weight, [PreparedA(a.q, prepared[0].scale) for a in prepared], sums, out)

    return spoiled


@_collects
def neighbour_scale(backend: NpuBackend, collect: Callable[..., None]) -> Callable[..., None]:
    def spoiled(weight: NpuWeight, prepared: Any, sums: Any, out: F32) -> None:
        segments = tuple(replace(s, scale=np.roll(s.scale, 1)) for s in weight.segments)
        NpuBackend.collect(backend, replace(weight, segments=segments, native=None), prepared, sums, out)

    return spoiled


@_collects
def fma_off(backend: NpuBackend, collect: Callable[..., None]) -> Callable[..., None]:
    def spoiled(weight: NpuWeight, prepared: Any, sums: Any, out: F32) -> None:
        other = replace(weight.pipeline, fma=not weight.pipeline.fma)
        NpuBackend.collect(backend, replace(weight, pipeline=other, native=None), prepared, sums, out)

    return spoiled


@_collects
def noise(backend: NpuBackend, collect: Callable[..., None]) -> Callable[..., None]:
    random = np.random.default_rng(7)

    def spoiled(weight: NpuWeight, prepared: Any, sums: Any, out: F32) -> None:
        collect(weight, prepared, sums, out)
        out.flat[int(random.integers(out.size))] *= np.float32(1 + 2.0**-20)

    return spoiled


def int4_selected(backend: NpuBackend) -> None:
    build = backend.build

    def small(tensor: Any, pipeline: Pipeline) -> NpuWeight:
        return build(tensor, PRESETS["w4a4"] if pipeline.bits == 8 else pipeline)

    vars(backend)["build"] = small


OF_THE_QUANTISER: tuple[Install, ...] = (
    half_up, half_even, truncate, rim_wraps, no_clamp, clip_ignored, sign_lost, zero_row_nan, nan_taken, flush, divide,
    batch_scale, weight_scale, fp16_truncate,
)  # fmt: skip
