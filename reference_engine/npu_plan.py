# SPDX-License-Identifier: Apache-2.0
"""What of a model goes to the NPU, in which pieces, and what that takes: from the header alone, without numpy.

Buffers, segments and caches are those of rk-llama.cpp: one device buffer for each weight, cut along K at the SoC's
limit and along N over the cores; A and C buffers shared by all matmuls of one size; IOMMU domains filled first fit.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Union

from reference_engine.gguf_file import GgufFile
from reference_engine.gguf_hparams import Hparams
from reference_engine.gguf_tensor import GgufTensor
from reference_engine.npu_route import HEAD, INPUTS, RUNS, Role, count_runs, count_splits, role_of, why_not
from reference_engine.npu_segments import bucket_rows, k_segments, n_segments, next_pow2
from reference_engine.npu_soc import NpuSoc, OperandRule, npu_soc

DOMAIN_BYTES = (1 << 31) - 1 - 65536
"""What rk-llama.cpp puts into one IOMMU domain. The window itself is 4 GiB by the user guide; no source measured it."""

DOMAINS = 16

Buffer = tuple[int, int, int, Union[int, None]]
"""What makes buffers the same one: elements of a row, which of those, bits of an element, IOMMU domain."""


class PlanPipeline(Protocol):
    """The fields of a pipeline that decide sizes; :class:`reference_engine.backends.pipeline.Pipeline` has them."""

    @property
    def name(self) -> str: ...
    @property
    def activation(self) -> str:
        """``int8``, ``int4`` or ``fp16``."""

    @property
    def weight_scale(self) -> str: ...
    @property
    def hadamard(self) -> str: ...
    @property
    def k_limit(self) -> int: ...
    @property
    def cores(self) -> int: ...
    @property
    def m_bucket(self) -> str: ...
    @property
    def route(self) -> str:
        """``all``, or ``by-type``: each tensor type has pipelines of its own, or none."""


@dataclass(frozen=True)
class PlannedTensor:
    """One matmul weight. ``reason`` says why it stays on the CPU; None where it is routed.

    ``pipeline`` is the weight's own one; with a route by type it differs between weights. ``k_segments`` are
    (first, size) along K_op, ``n_segments`` (core, first, size) along N; together they tile the weight, K outer.
    ``weight_bytes`` is its device buffer, ``domain`` the IOMMU domain that holds it.
    """

    name: str
    role: Role
    type: str
    K: int
    N: int
    reason: str | None
    pipeline: PlanPipeline
    rule: OperandRule
    K_op: int = 0
    k_segments: tuple[tuple[int, int], ...] = ()
    n_segments: tuple[tuple[int, int, int], ...] = ()
    weight_bytes: int = 0
    domain: int | None = None

    @property
    def routed(self) -> bool:
        return self.reason is None

    @property
    def pieces(self) -> int:
        """Matmul contexts for one size of M."""
        return len(self.k_segments) * len(self.n_segments)

    def a_buffers(self) -> set[Buffer]:
        """Keys of its A buffers: (K segment size, first column, bits, domain).

        Rank-one scales multiply the activation for each N segment anew, so there each of those has an A of its own.
        """
        own = [at for _, at, _ in self.n_segments] if self.pipeline.weight_scale == "rank-one" else [0]
        return {(size, at, self.rule.a_bits, self.domain) for _, size in self.k_segments for at in own}

    def c_buffers(self) -> set[Buffer]:
        """Keys of its C buffers: (N segment size, core, bits, domain)."""
        return {(size, core, 8 * self.rule.c_bytes, self.domain) for core, _, size in self.n_segments}


@dataclass(frozen=True)
class ActivationGroup:
    """Routed matmuls that multiply one activation of K elements a row."""

    layer: int | None
    members: tuple[str, ...]
    K: int


@dataclass(frozen=True)
class Reuse:
    """Ceilings of quantising an activation once for several matmuls, as shares of all quantisations (0 to 1).

    A quantisation is counted for each K segment. ``within_call``: only matmuls in one call of the back end can share,
    because between calls the CPU may have written the activation anew. ``by_input``: all with the same input.
    ``reason`` is why the pipeline cannot share at all, else None.
    """

    quantisations: int
    within_call: float
    by_input: float
    reason: str | None


@dataclass(frozen=True)
class NpuPlan:
    """The plan of one model, pipeline and SoC. ``tensors`` are all matmul weights in load order.

    ``domains`` are the bytes of weights in each IOMMU domain that is used, ``runs`` the calls of a matmul-only back end
    for one forward pass.
    """

    pipeline: PlanPipeline
    soc: NpuSoc
    cores: int
    k_limit: int
    tensors: tuple[PlannedTensor, ...]
    groups: tuple[ActivationGroup, ...]
    domains: tuple[int, ...]
    runs: int
    graph_splits: int
    reuse: Reuse

    @property
    def routed(self) -> tuple[PlannedTensor, ...]:
        return tuple(tensor for tensor in self.tensors if tensor.routed)

    @property
    def weight_bytes(self) -> int:
        """Bytes of weights in device buffers, over all domains."""
        return sum(self.domains)

    def a_bytes(self, M: int, head_rows: int = 1) -> int:
        """Bytes of all A buffers for ``M`` rows; matmuls of the same sizes share them. The head has ``head_rows``."""
        return self._bytes(PlannedTensor.a_buffers, M, head_rows)

    def c_bytes(self, M: int, head_rows: int = 1) -> int:
        """Bytes of all C buffers for ``M`` rows; matmuls of the same sizes share them. The head has ``head_rows``."""
        return self._bytes(PlannedTensor.c_buffers, M, head_rows)

    def contexts(self, Ms: Iterable[int], head_rows: int = 1) -> int:
        """Matmul contexts alive after runs with each of ``Ms`` rows; contexts are cached and never freed there."""
        sizes = {(tensor.name, rows) for tensor, rows in self._runs(Ms, head_rows)}
        pieces = {tensor.name: tensor.pieces for tensor in self.routed}
        return sum(pieces[name] for name, _ in sizes)

    def descriptors(self, Ms: Iterable[int], head_rows: int = 1) -> int:
        """File descriptors of device memory after runs with each of ``Ms`` rows.

        One for each weight and each view of it that a context binds, one for each A and C buffer (rk-llama.cpp; the
        usual limit of 1024 is passed at ``failed to convert handle(1020) to fd``).
        """
        wanted = tuple(Ms)
        runs = self._runs(wanted, head_rows)
        a = {(key, rows) for tensor, rows in runs for key in tensor.a_buffers()}
        c = {(key, rows) for tensor, rows in runs for key in tensor.c_buffers()}
        return len(self.routed) + self.contexts(wanted, head_rows) + len(a) + len(c)

    def _bytes(self, buffers: Callable[[PlannedTensor], set[Buffer]], M: int, head_rows: int) -> int:
        keys = {(key, rows) for tensor, rows in self._runs((M,), head_rows) for key in buffers(tensor)}
        return sum(rows * key[0] * key[2] // 8 for key, rows in keys)

    def _runs(self, Ms: Iterable[int], head_rows: int) -> list[tuple[PlannedTensor, int]]:
        """Each routed weight with each size of run that it sees: of the head only some rows are computed."""
        found = []
        for M in Ms:
            for tensor in self.routed:
                own = min(M, head_rows) if tensor.role.name == HEAD else M
                found.append((tensor, bucket_rows(own, tensor.pipeline.m_bucket)[0]))
        return found


def plan(
    model: GgufFile,
    hparams: Hparams | None,
    pipeline: PlanPipeline | str,
    soc: str = "rk3588",
    *,
    domain_bytes: int = DOMAIN_BYTES,
    domains: int = DOMAINS,
) -> NpuPlan:
    """Route every matmul weight of ``model`` and lay the routed ones out in device memory.

    ``pipeline``: a preset's name or text such as ``w8a8-segment,cores=1``. ``hparams`` None, for an architecture that
    the engine does not compute, takes the weights by their names alone. The SoC's own core count and K limit hold where
    they are smaller than the pipeline's. ValueError for an unknown SoC or pipeline.
    """
    chosen = _pipeline(pipeline)
    chip = npu_soc(soc)
    place = _Placer(chosen, chip)
    tied = "output.weight" not in model.tensors
    tensors: list[PlannedTensor] = []
    filled = [0] * domains
    found = [(role, tensor) for tensor in model.tensors.values() if (role := role_of(tensor.name, tied_head=tied))]
    for role, tensor in sorted(found, key=lambda pair: pair[0].load_order):
        if hparams is not None and role.layer is not None and role.layer >= hparams.n_layer:
            continue
        planned = place(tensor, role)
        if planned.routed:
            planned = _into_domain(planned, filled, domain_bytes)
        tensors.append(planned)
    used = max((i + 1 for i, size in enumerate(filled) if size), default=0)
    routed = [tensor for tensor in tensors if tensor.routed]
    runs = _runs(model, routed)
    groups = _groups(routed)
    return NpuPlan(
        pipeline=chosen,
        soc=chip,
        cores=min(chosen.cores, chip.cores),
        k_limit=_k_limit(chosen, chip),
        tensors=tuple(tensors),
        groups=groups,
        domains=tuple(filled[:used]),
        runs=runs,
        graph_splits=count_splits(runs, head_is_last=_head_is_last(model, routed)),
        reuse=_reuse(routed, groups),
    )


def _pipeline(pipeline: PlanPipeline | str) -> PlanPipeline:
    """Presets are looked up only where a name is given: their table needs numpy."""
    if not isinstance(pipeline, str):
        return pipeline
    found: PlanPipeline = importlib.import_module("reference_engine.backends.presets").parse_pipeline(pipeline)
    return found


def _k_limit(pipeline: PlanPipeline, chip: NpuSoc) -> int:
    return min(pipeline.k_limit, chip.k_limit) if pipeline.k_limit > 0 else chip.k_limit


class _Placer:
    """Places one weight after the other; with a route by type the order of first sight decides between pipelines."""

    def __init__(self, pipeline: PlanPipeline, chip: NpuSoc) -> None:
        self._pipeline, self._chip = pipeline, chip
        self._seen = 0

    def __call__(self, tensor: GgufTensor, role: Role) -> PlannedTensor:
        K, N = (*tensor.dims, 1)[:2]
        own = self._own(tensor.type.name)
        rule = self._chip.rules.get((own or self._pipeline).activation)
        reason: str | None
        if own is None:
            reason = f"type {tensor.type.name} has no pipeline in {self._pipeline.name}"
        elif rule is None:
            reason = f"{self._chip.name} has no {own.activation} matmul"
        else:
            reason = why_not(tensor.dims, rule.k_align, rule.n_align)
        planned = PlannedTensor(
            tensor.name, role, tensor.type.name, K, N, reason, own or self._pipeline, rule or _NOTHING
        )
        if own is None or rule is None or reason is not None:
            return planned
        K_op = next_pow2(K) if own.hadamard == "padded" else K
        cut_k = k_segments(K_op, _k_limit(own, self._chip), rule.k_align)
        cut_n = n_segments(N, min(own.cores, self._chip.cores), rule.n_align)
        return replace(
            planned,
            K_op=K_op,
            k_segments=tuple((start, end - start) for start, end in cut_k),
            n_segments=tuple((core, start, end - start) for core, (start, end) in enumerate(cut_n)),
            weight_bytes=K_op * N * rule.a_bits // 8,
        )

    def _own(self, type_name: str) -> PlanPipeline | None:
        if self._pipeline.route == "all":
            return self._pipeline
        # Alignment is judged here, with a reason; dims that are aligned to everything leave the choice alone.
        presets = importlib.import_module("reference_engine.backends.presets")
        found: PlanPipeline | None = presets.route_tensor(self._pipeline, type_name, (4096, 4096), self._seen)
        self._seen += presets.has_route(self._pipeline, type_name)
        return found


_NOTHING = OperandRule(1, 1, 8, 4)


def _into_domain(planned: PlannedTensor, filled: list[int], domain_bytes: int) -> PlannedTensor:
    """First fit, in load order; where no domain has room the back end gives up, and so does the plan for it."""
    for domain, size in enumerate(filled):
        if size + planned.weight_bytes <= domain_bytes:
            filled[domain] += planned.weight_bytes
            return replace(planned, domain=domain)
    sentence = f"none of {len(filled)} IOMMU domains has {planned.weight_bytes:,} bytes left"
    return replace(planned, reason=sentence, K_op=0, k_segments=(), n_segments=(), weight_bytes=0)


def _runs(model: GgufFile, routed: Sequence[PlannedTensor]) -> int:
    names: dict[int | None, set[str]] = {}
    biased = set()
    for tensor in routed:
        names.setdefault(tensor.role.layer, set()).add(tensor.role.name)
        if tensor.name.removesuffix("weight") + "bias" in model.tensors:
            biased.add((tensor.role.layer, tensor.role.name))
    return count_runs(names, frozenset(biased))


def _head_is_last(model: GgufFile, routed: Sequence[PlannedTensor]) -> bool:
    """Whether the head's matmul ends the graph: it is routed, and neither a soft cap nor a bias comes after it."""
    capped = any(key.endswith(".final_logit_softcapping") for key in model.metadata)
    heads = any(tensor.role.name == HEAD for tensor in routed)
    return heads and not capped and "output.bias" not in model.tensors


def _groups(routed: Sequence[PlannedTensor]) -> tuple[ActivationGroup, ...]:
    by_key: dict[tuple[int | None, str], list[PlannedTensor]] = {}
    for tensor in routed:
        shared = next((group[0] for group in INPUTS if tensor.role.name in group), tensor.role.name)
        by_key.setdefault((tensor.role.layer, shared), []).append(tensor)
    return tuple(
        ActivationGroup(layer, tuple(tensor.name for tensor in members), members[0].K)
        for (layer, _), members in by_key.items()
    )


def _reuse(routed: Sequence[PlannedTensor], groups: Sequence[ActivationGroup]) -> Reuse:
    pieces = {tensor.name: len(tensor.k_segments) for tensor in routed}
    total = sum(pieces.values())
    reasons = [reason for tensor in routed if (reason := _cannot_share(tensor.pipeline))]
    if reasons or not total:
        return Reuse(total, 0.0, 0.0, reasons[0] if reasons else None)
    by_input = sum(sum(pieces[name] for name in group.members[1:]) for group in groups)
    calls: dict[tuple[int | None, int], list[str]] = {}
    for tensor in routed:
        run = next((i for i, names in enumerate(RUNS) if tensor.role.name in names), -1)
        calls.setdefault((tensor.role.layer, run), []).append(tensor.name)
    within = sum(sum(pieces[name] for name in names[1:]) for names in calls.values())
    return Reuse(total, within / total, by_input / total, None)


def _cannot_share(pipeline: PlanPipeline) -> str | None:
    if pipeline.weight_scale == "rank-one":
        return "rank-one scales multiply the activation differently for each weight"
    if pipeline.hadamard != "none":
        return "each weight has signs of its own before its Hadamard transform"
    return None
