# SPDX-License-Identifier: Apache-2.0
"""What of a model goes to the NPU, in which pieces, and what that takes: from the header alone, without numpy.

Buffers, segments and caches are those of rk-llama.cpp: one device buffer for each weight, cut along K at the SoC's
limit and along N over the cores; A and C buffers shared by all matmuls of one size; IOMMU domains filled first fit.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from reference_engine.gguf_file import GgufFile
from reference_engine.gguf_hparams import Hparams
from reference_engine.gguf_tensor import GgufTensor
from reference_engine.npu_route import INPUTS, RUNS, Role, count_runs, count_splits, role_of, why_not
from reference_engine.npu_segments import bucket_rows, k_segments, n_segments, next_pow2
from reference_engine.npu_soc import NpuSoc, OperandRule, npu_soc

DOMAIN_BYTES = (1 << 31) - 1 - 65536
"""What rk-llama.cpp puts into one IOMMU domain. The window itself is 4 GiB by the user guide; no source measured it."""

DOMAINS = 16
_ROW_BITS_BYTE = 8


class PlanPipeline(Protocol):
    """The fields of a pipeline that decide sizes; :class:`reference_engine.backends.pipeline.Pipeline` has them."""

    @property
    def name(self) -> str: ...
    @property
    def activation(self) -> str: ...
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
    def route(self) -> str: ...


@dataclass(frozen=True)
class PlannedTensor:
    """One matmul weight. ``reason`` says why it stays on the CPU; None where it is routed.

    ``k_segments`` are (first, size) along K_op, ``n_segments`` (core, first, size) along N; together they tile the
    weight, K outer. ``weight_bytes`` is its device buffer, ``domain`` the IOMMU domain that holds it.
    """

    name: str
    role: Role
    type: str
    K: int
    N: int
    reason: str | None
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
    """The plan of one model, pipeline and SoC. ``tensors`` are all matmul weights in file order."""

    pipeline: PlanPipeline
    soc: NpuSoc
    rule: OperandRule | None
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

    def a_bytes(self, M: int) -> int:
        """Bytes of all A buffers for ``M`` rows: one for each K segment size, and domain, that occurs.

        Rank-one scales multiply the activation for each N segment anew, so there A has one buffer for each of those.
        """
        rule = self._rule()
        keys = set()
        for tensor in self.routed:
            own = [at for _, at, _ in tensor.n_segments] if self.pipeline.weight_scale == "rank-one" else [0]
            keys |= {(size, at, tensor.domain) for _, size in tensor.k_segments for at in own}
        rows = sum(bucket_rows(M, self.pipeline.m_bucket)[:1])
        return sum(rows * K * rule.a_bits // _ROW_BITS_BYTE for K, _, _ in keys)

    def c_bytes(self, M: int) -> int:
        """Bytes of all C buffers for ``M`` rows: one for each N segment size, core and domain that occurs."""
        rule = self._rule()
        keys = {(size, core, tensor.domain) for tensor in self.routed for core, _, size in tensor.n_segments}
        rows = sum(bucket_rows(M, self.pipeline.m_bucket)[:1])
        return sum(rows * N * rule.c_bytes for N, _, _ in keys)

    def contexts(self, Ms: Iterable[int]) -> int:
        """Matmul contexts alive after runs with each of ``Ms`` rows; contexts are cached and never freed there."""
        buckets = {rows for M in Ms for rows in bucket_rows(M, self.pipeline.m_bucket)}
        return len(buckets) * sum(tensor.pieces for tensor in self.routed)

    def descriptors(self, Ms: Iterable[int]) -> int:
        """File descriptors of device memory after runs with each of ``Ms`` rows.

        One for each weight and each view of it that a context binds, one for each A and C buffer (rk-llama.cpp; the
        usual limit of 1024 is passed at ``failed to convert handle(1020) to fd``).
        """
        buckets = {rows for M in Ms for rows in bucket_rows(M, self.pipeline.m_bucket)}
        segments = {(size, tensor.domain) for tensor in self.routed for _, size in tensor.k_segments}
        outputs = {(size, core, tensor.domain) for tensor in self.routed for core, _, size in tensor.n_segments}
        shared = len(buckets) * (len(segments) + len(outputs))
        return len(self.routed) + len(buckets) * sum(tensor.pieces for tensor in self.routed) + shared

    def _rule(self) -> OperandRule:
        if self.rule is None:
            return OperandRule(1, 1, 8, 4)  # nothing is routed, so nothing is summed with it
        return self.rule


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
    tied = "output.weight" not in model.tensors
    tensors: list[PlannedTensor] = []
    filled = [0] * domains
    for tensor in model.tensors.values():
        role = role_of(tensor.name, tied_head=tied)
        if role is None or (hparams is not None and role.layer is not None and role.layer >= hparams.n_layer):
            continue
        planned = _place(tensor, role, chosen, chip)
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
        rule=chip.rules.get(chosen.activation),
        cores=min(chosen.cores, chip.cores),
        k_limit=_k_limit(chosen, chip),
        tensors=tuple(tensors),
        groups=groups,
        domains=tuple(filled[:used]),
        runs=runs,
        graph_splits=count_splits(runs, head_is_last=_head_is_last(model, routed)),
        reuse=_reuse(routed, groups, chosen),
    )


def _pipeline(pipeline: PlanPipeline | str) -> PlanPipeline:
    if not isinstance(pipeline, str):
        return pipeline
    # The table of presets is read only where a name has to be looked up.
    found: PlanPipeline = importlib.import_module("reference_engine.backends.pipeline").parse_pipeline(pipeline)
    return found


def _place(tensor: GgufTensor, role: Role, pipeline: PlanPipeline, chip: NpuSoc) -> PlannedTensor:
    K, N = (*tensor.dims, 1)[:2]
    rule = chip.rules.get(pipeline.activation)
    reason: str | None
    if rule is None:
        reason = f"{chip.name} has no {pipeline.activation} matmul"
    else:
        reason = why_not(tensor.dims, tensor.type.name, rule.k_align, rule.n_align, by_type=pipeline.route == "by-type")
    planned = PlannedTensor(tensor.name, role, tensor.type.name, K, N, reason)
    if rule is None or reason is not None:
        return planned
    K_op = next_pow2(K) if pipeline.hadamard == "padded" else K
    return replace(
        planned,
        K_op=K_op,
        k_segments=k_segments(K_op, _k_limit(pipeline, chip), rule.k_align),
        n_segments=n_segments(N, min(pipeline.cores, chip.cores), rule.n_align),
        weight_bytes=K_op * N * rule.a_bits // _ROW_BITS_BYTE,
    )


def _k_limit(pipeline: PlanPipeline, chip: NpuSoc) -> int:
    return min(pipeline.k_limit, chip.k_limit) if pipeline.k_limit > 0 else chip.k_limit


def _into_domain(planned: PlannedTensor, filled: list[int], domain_bytes: int) -> PlannedTensor:
    """First fit, in file order; where no domain has room the back end gives up, and so does the plan for it."""
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
    heads = any(tensor.role.layer is None for tensor in routed)
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


def _reuse(routed: Sequence[PlannedTensor], groups: Sequence[ActivationGroup], pipeline: PlanPipeline) -> Reuse:
    pieces = {tensor.name: len(tensor.k_segments) for tensor in routed}
    total = sum(pieces.values())
    reason = None
    if pipeline.weight_scale == "rank-one":
        reason = "rank-one scales multiply the activation differently for each weight"
    elif pipeline.hadamard != "none":
        reason = "each weight has signs of its own before its Hadamard transform"
    if reason or not total:
        return Reuse(total, 0.0, 0.0, reason)
    by_input = sum(sum(pieces[name] for name in group.members[1:]) for group in groups)
    calls: dict[tuple[int | None, int], list[str]] = {}
    for tensor in routed:
        run = next((i for i, names in enumerate(RUNS) if tensor.role.name in names), -1)
        calls.setdefault((tensor.role.layer, run), []).append(tensor.name)
    within = sum(sum(pieces[name] for name in names[1:]) for names in calls.values())
    return Reuse(total, within / total, by_input / total, None)
