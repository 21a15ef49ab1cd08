# SPDX-License-Identifier: Apache-2.0
"""Levers that need a model: reuse of quantised activations, the share of the CPU, pipelines side by side."""

from __future__ import annotations

from dataclasses import replace

from reference_engine.npu_plan import NpuPlan
from reports.forecast.document import Case, refusal
from reports.forecast.passes import Model
from reports.forecast.pipelines import STANDARD, ForecastPipeline
from reports.forecast.quantity import Quantity, exact
from reports.levers.cpu_levers import pipelining
from reports.levers.verdict import ORDER, UNMEASURED, Verdict, judged, speed_only, unmeasured

PROMPT = 512
_DRAFT, _ACCEPTANCE = 4, 0.3
_NGRAM = "campaign: ngram-simple +48 % on copying prompts; ngram-cache with 2 of 120 tokens right -19 %"
_ODD = 300
_REUSE = "campaign: +5 % expected, flat when measured: 12 % of matmuls share a call, for the graph splits between them"


def cpu_share(model: Model) -> Quantity | None:
    """The share of a prompt of 512 that quantising, syncing and collecting take; None where a part is unknown."""
    parts = model.run_pass(PROMPT, head_rows=1).parts
    cpu = [parts[name] for name in ("quantise", "collect", "sync") if name in parts]
    npu = parts["NPU"]
    if len(cpu) < 3 or not npu.known:
        return None
    around = cpu[0] + cpu[1] + cpu[2]
    if around.value is None or npu.value is None:
        return None
    share = around.value / (around.value + npu.value)
    return Quantity(share, share, share, around.sources)


def reuse(plan: NpuPlan, model: Model) -> list[Verdict]:
    """What quantising an activation once would save of a prompt, within a call and in a graph without splits."""
    lever = "activation reuse within a call"
    if plan.reuse.reason is not None:
        return [unmeasured(f"{lever} ({plan.reuse.reason})", "a pipeline whose weights share activations")]
    parts = model.run_pass(PROMPT, head_rows=1).parts
    quantise, whole = parts.get("quantise"), model.run_pass(PROMPT, head_rows=1).seconds
    if quantise is None or quantise.value is None or whole.value is None or whole.value <= 0:
        return [unmeasured(lever, "cpu_bandwidth copy", "gemm_rate at M > 1", campaign=_REUSE)]
    share = quantise.value / whole.value
    found = []
    for name, part in ((lever, plan.reuse.within_call), ("activation reuse without graph splits", plan.reuse.by_input)):
        gain = (exact(1.0) + exact(-share * part)).inverse()
        told = Quantity(gain.value, gain.low, gain.high, (f"{plan.graph_splits} graph splits", *quantise.sources))
        words = f"{part:.0%} of quantisations could be shared, {share:.1%} of a prompt goes into them"
        found.append(judged(name, told, words, _REUSE, scope="a prompt"))
    return found


def drafting(model: Model) -> list[Verdict]:
    """Drafts that cost no pass (n-gram), of a length and an acceptance that the campaign saw on copying prompts."""
    single, batch = model.run_pass(1).seconds, model.run_pass(_DRAFT + 1).seconds
    lever = f"n-gram drafts of {_DRAFT} tokens in every round, acceptance {_ACCEPTANCE}"
    gain = single * (1 + _ACCEPTANCE * _DRAFT) / batch
    if single.value is None or batch.value is None:
        return [unmeasured(lever, *gain.missing, campaign=_NGRAM)]
    least = max(0.0, (batch.value / single.value - 1) / _DRAFT)
    words = f"it pays from an acceptance of {least:.2f}; rounds without a draft gain nothing"
    return [judged(lever, gain, words, _NGRAM, scope="decode")]


def levers_of_model(case: Case) -> tuple[Quantity | None, list[Verdict]]:
    """The CPU's share of a prompt, and what needs the model, under its first pipeline with all cores."""
    first = _first(case)
    planned, work = case.planned(first, case.most(first))
    if refusal(work) is not None:
        return None, [unmeasured("activation reuse", "a dense model")]
    timed = case.timed(first, case.most(first), case.sets[0])
    return cpu_share(timed), [*reuse(planned, timed), *drafting(timed)]


def _first(case: Case) -> ForecastPipeline:
    """The first pipeline asked for that has a CPU side."""
    return next((pipeline for pipeline in case.asked.pipelines if not pipeline.fused), STANDARD[0])


def ranked(case: Case) -> list[Verdict]:
    """The levers of one model on one board by what they bring in tokens per second, largest first.

    Undecided ones are left to ``levers``.
    """
    share, found = levers_of_model(case)
    first = _first(case)
    most = case.most(first)
    best = case.timed(first, most, case.sets[0])
    if refusal(best.work) is not None:
        return []
    if most > 1:
        found += _compared(f"{most} NPU cores for one", best, case.timed(first, 1, case.sets[0]))
    if len(case.sets) > 1:
        slow = case.timed(first, most, case.sets[-1])
        found += _compared(f"pinning to CPUs {case.sets[0]} for {case.sets[-1]}", best, slow)
    if first.route == "all" and first.activation == "int8":
        narrow = STANDARD[1]
        four = case.timed(narrow, case.most(narrow), case.sets[0])
        found += [speed_only(verdict) for verdict in _compared("int4 (W4A4) for int8", four, best)]
    for lever, bucket in (("M in steps of 128", "pow2-128"), ("M not padded", "none")):
        if best.m_bucket not in (bucket, "none"):
            tried = replace(best, m_bucket=bucket)
            gain = best.run_pass(_ODD, head_rows=1).seconds / tried.run_pass(_ODD, head_rows=1).seconds
            found.append(judged(lever, gain, f"a prompt of {_ODD} tokens, for {best.m_bucket}", scope=f"pp{_ODD}"))
    found += pipelining(case.board, share)
    decided = [verdict for verdict in found if verdict.verdict != UNMEASURED]
    return sorted(decided, key=lambda each: (ORDER.index(each.verdict), -((each.gain and each.gain.value) or 0.0)))


def _compared(lever: str, tried: Model, base: Model) -> list[Verdict]:
    """Decode and prompt of ``tried`` over those of ``base``."""
    decode = base.run_pass(1).seconds / tried.run_pass(1).seconds
    prompt = base.run_pass(PROMPT, head_rows=1).seconds / tried.run_pass(PROMPT, head_rows=1).seconds
    return [
        judged(lever, decode, "by the forecast's own times", scope="decode"),
        judged(lever, prompt, "by the forecast's own times", scope=f"pp{PROMPT}"),
    ]
