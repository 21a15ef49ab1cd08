# SPDX-License-Identifier: Apache-2.0
"""Every matmul of a model, on its own recorded inputs: against an oracle, against float, emulation against device."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from conformance.bench import NotServed, Wrong
from conformance.engine.bench import EngineBench
from conformance.engine.matmul_judge import Before, wrong_matmul
from conformance.engine.matmul_oracle import WeightOracle, float_bound
from conformance.engine.recorded import Seen, record_matmuls
from conformance.engine.targets import Target
from conformance.quantiser.oracle import F32
from conformance.quantiser.subject import crafted_tensor
from reference_engine.backends.interface import Counter, MatmulRecord
from reference_engine.backends.npu_backend import NpuBackend, NpuLinear
from reference_engine.backends.presets import PRESETS, parse_pipeline

PIPELINES = ("w8a8-per-channel", "w8a8-segment", "w8a8-hadamard", "w4a4-hadamard")
MORE_PIPELINES = ("w8a8-rank-one", "w8a8-hadamard-padded", "w4a4", "w8a8-hadamard-rank-one")
SHORT_K = "k_limit=64"
"""So that matrices of a small model have several K segments."""

LARGEST = 1 << 26
"""Elements of a weight that the oracle takes: 512 MiB in float64."""


def plans(bench: EngineBench) -> Iterator[tuple[Target, str]]:
    """Model and pipeline."""
    for number, target in enumerate(bench.targets[: 2 if bench.brief else None]):
        few = number or bench.brief or not target.embedded
        for preset in (*PIPELINES, *bench.pick((), MORE_PIPELINES)):
            if few and preset not in bench.pick(PIPELINES[:1], PIPELINES):
                continue
            yield target, f"{preset},{SHORT_K}" if target.embedded else preset


def seen_of(bench: EngineBench, target: Target, pipeline: str) -> tuple[NpuBackend, list[Seen]]:
    """Matmuls of a prompt, of four tokens and of two single ones."""
    backend = bench.backend(pipeline)
    model = bench.model(target, backend, most_layers=bench.pick(4, 12))
    prompt = bench.prompt(target, "prose")
    rows = bench.pick(9, 33)
    passes = [prompt[:rows], prompt[rows : rows + 4], prompt[-2:-1], prompt[-1:]]
    return backend, record_matmuls(model, passes)


def matmul_oracle(bench: EngineBench) -> str:
    """Integers, scales and results of every matmul are those of an oracle in int64 and exact fractions.

    Source: the forks' own kernel tests hold native layouts and quantisers against an int32 reference on the CPU
    (unimatrix099, 269 and 341 checks); whole models cannot be compared so, because noise of 1e-7 moves their logits as
    much as the quantisation does.
    """
    judged = elements = 0
    weights, names = 0, []
    for target, pipeline in plans(bench):
        _, seen = seen_of(bench, target, pipeline)
        names.append(f"{target.name} {bench.engine}:{pipeline}")
        before, oracles = Before(), {}  # type: tuple[Before, dict[str, WeightOracle]]
        for call in seen:
            if call.tensor.n_elements > LARGEST:
                continue
            name = call.record.name
            if name not in oracles:
                oracles[name] = WeightOracle(name, _rows(call), parse_pipeline(pipeline))
            sentence = wrong_matmul(call, oracles[name], before.of(call), bench.random)
            if sentence is not None:
                raise Wrong(f"{target.name}, {bench.engine}:{pipeline}: {sentence}")
            judged, elements = judged + 1, elements + call.record.y.size
        weights += len(oracles)
    if not judged:
        raise NotServed("no matmul of this model has integers in these pipelines")
    return (
        f"{judged} matmuls of {weights} weights, {elements:,} results, in {'; '.join(names)}: scales, activations and "
        "integer sums bit for bit, results bit for bit (over several K segments: a sample in exact fractions, all "
        "within one last place)"
    )


def matmul_segments(bench: EngineBench) -> str:
    """K beyond the limit, ragged N over the cores and every batch size up to 300: crafted weights against the oracle.

    Source: K above 8192 is cut in two (rk-llama.cpp compute_k_segments), cores take N in whole units of alignment, and
    invisiofficial's fork computed the first slice of a batch alone (its pull request 12).
    """
    judged = 0
    shapes = [(64, 8224, (1, 5)), (100, 200, (1, 2, 3, 4, 5, 8, 17)), (192, 96, (64, 128, 300))]
    shapes += bench.pick([], [(96, 16448, (1, 9)), (33, 40, tuple(range(1, 20))), (544, 320, (65, 257))])
    presets = [*PIPELINES, "w16a16", *bench.pick([], [*MORE_PIPELINES, "w16a16-hadamard"])]
    for preset in presets:
        pipeline = PRESETS[preset]
        backend = bench.backend(preset)
        for N, K, batches in shapes:
            if pipeline.bits == 16 and K > 1000 and bench.level == "quick":
                continue
            w = _normal(bench, N, K)
            oracle, tensor = WeightOracle(f"crafted.{N}", w, pipeline), crafted_tensor(w, f"crafted.{N}")
            linear, before, seen = backend.linear(tensor), Before(), []  # type: ignore[var-annotated]
            backend.observer = seen.append
            for M in batches:
                linear(_normal(bench, M, K))
                call = Seen(seen.pop(), tensor)
                sentence = wrong_matmul(call, oracle, before.of(call), bench.random)
                if sentence is not None:
                    raise Wrong(f"{bench.engine}:{preset}: {sentence}")
                judged += 1
            backend.observer = None
    return (
        f"{judged} products in {len(presets)} pipelines; [N, K] of {', '.join(f'{n} x {k}' for n, k, _ in shapes)}; M "
        "from 1 to 300: integers and results as the oracle has them"
    )


def matmul_float(bench: EngineBench) -> str:
    """No result is further from the product in float64 than its own rounding to integers allows.

    Source: a pipeline may be self-consistent and still be none of this weight; this bound has no pipeline in it but the
    step of its scales, element by element.
    """
    judged, worst = 0, 0.0
    for target, pipeline in list(plans(bench))[: 1 if bench.brief else None]:
        _, seen = seen_of(bench, target, pipeline)
        for name in dict.fromkeys(call.record.name for call in seen):
            call = next(c for c in seen if c.record.name == name)
            if call.tensor.n_elements > LARGEST:
                continue
            w = _rows(call)
            exact, bound = float_bound(WeightOracle(name, w, parse_pipeline(pipeline)), w, call.record.x)
            if parse_pipeline(pipeline).bits == 4:
                bound = bound + _overflow(call, exact)
            part = np.abs(call.record.y - exact) / np.maximum(bound, 1e-300)
            worst = max(worst, float(part.max(initial=0.0)))
            if not (part <= 1).all():
                row, column = (int(at) for at in np.argwhere(~(part <= 1))[0])
                raise Wrong(
                    f"{target.name}, {bench.engine}:{pipeline}, {call.where}: row {row}, column {column} is "
                    f"{call.record.y[row, column]}, the product in float64 {exact[row, column]:.7g}, and quantising "
                    f"explains no more than {bound[row, column]:.3g}: a scale, a segment or a sign is wrong"
                )
            judged += 1
    if not judged:
        raise NotServed("no matmul of this model has integers in these pipelines")
    return f"{judged} matmuls on recorded inputs; the largest error is {worst:.2f} of what its quantisation allows"


def matmul_device(bench: EngineBench) -> str:
    """On recorded inputs the device gives the emulation's integers and results, bit for bit, matmul by matmul.

    Source: integers in C are exact on this hardware, so nothing else is right (unimatrix099: native and norm layouts
    equal an int32 reference to 100 %); runtime errors that the forks ignore show up here as wrong sums.
    """
    if bench.engine != "device":
        raise NotServed("the emulation is what is judged here; --engine device holds the device against it")
    judged = 0
    for target, pipeline in plans(bench):
        _, seen = seen_of(bench, target, pipeline)
        emulation = bench.backend(pipeline, judged=False)
        linears: dict[str, NpuLinear] = {}
        for call in seen:
            linear = linears.get(call.record.name)
            if linear is None:
                made = emulation.linear(call.tensor)
                assert isinstance(made, NpuLinear)
                linear = linears[call.record.name] = made
            _same(
                f"{target.name}, device:{pipeline}, {call.where}", call.record, _again(emulation, linear, call.record.x)
            )
            judged += 1
    names = ", ".join(dict.fromkeys(target.name for target, _ in plans(bench)))
    return f"{judged} matmuls of {names} on their recorded inputs, bit for bit"


def _again(emulation: NpuBackend, linear: NpuLinear, x: F32) -> MatmulRecord:
    kept: list[MatmulRecord] = []
    emulation.observer = kept.append
    try:
        emulation.multiply(linear.weight, x, np.empty((x.shape[0], linear.n_out), np.float32), Counter())
    finally:
        emulation.observer = None
    return kept[0]


def _same(where: str, found: MatmulRecord, want: MatmulRecord) -> None:
    for theirs, ours in zip(found.segments, want.segments, strict=True):
        wrong = np.asarray(theirs.sums) != np.asarray(ours.sums)
        if wrong.any():
            row, column = (int(at) for at in np.argwhere(wrong)[0])
            raise Wrong(
                f"{where}, K from {ours.k0}, columns {ours.n0} to {ours.n1}: the device's product differs from the "
                f"emulation's in {int(wrong.sum())} of {wrong.size} sums, first row {row}, column {ours.n0 + column}: "
                f"{theirs.sums[row, column]} instead of {ours.sums[row, column]}"
            )
    if found.y.tobytes() != want.y.tobytes():
        raise Wrong(f"{where}: the sums are the same and the results are not the same bits")


def _rows(call: Seen) -> F32:
    return np.concatenate([rows for _, rows in call.tensor.row_blocks()])


def _normal(bench: EngineBench, rows: int, k: int) -> F32:
    values = bench.random.standard_normal((rows, k)) * np.exp(bench.random.standard_normal((rows, 1)))
    return values.astype(np.float32)


def _overflow(call: Seen, exact: object) -> float:
    """An int16 accumulator that saturated explains any error."""
    full = any((np.abs(np.asarray(s.sums).astype(np.int32)) >= 32767).any() for s in call.record.segments)
    return float(np.abs(np.asarray(exact)).max(initial=0.0)) * 4 if full else 0.0
