# SPDX-License-Identifier: Apache-2.0
"""Levers of the matmul unit: cores, K split, M bucketing, layout of B, int4, and how cheap a verify pass is."""

from __future__ import annotations

from reports.forecast.board import INT4, INT8, Board, number
from reports.forecast.npu_rate import NpuRate
from reports.forecast.quantity import Quantity, exact
from reports.levers.verdict import CLOSED, LEVEL, PAYS, UNMEASURED, Verdict, judged, speed_only, unmeasured

_PADDED = 300
"""The prompt length that the campaign gained most on: padded to 512 by powers of two, to 384 in steps of 128."""

_WEIGHT_ONLY = {5: "fp16 x int8", 7: "fp16 x int4", 8: "fp16 x int4", 11: "int8 x int4", 12: "fp16 x int4"}
"""Types with weights narrower than activations (rknn_matmul_api.h 2.3.2)."""


def cores(board: Board) -> list[Verdict]:
    """All cores against one: at large M by the concurrent contexts, at M = 1 by the streams."""
    most = board.cores
    campaign = "campaign: 2.77x at 4096^3, prompt 2.09x, decode 2.64x on three cores"
    if most < 2:
        return [unmeasured("NPU cores", "core_scaling with two contexts or more", campaign=campaign)]
    found = [
        judged(
            f"{most} NPU cores, large M",
            board.scaling(most),
            "contexts on cores of their own",
            campaign,
            scope="matmuls",
        )
    ]
    streamed = board.stream(most) / board.stream(1)
    return [
        *found,
        judged(f"{most} NPU cores, M = 1", streamed, "weights streamed together", campaign, scope="streaming"),
    ]


def k_split(board: Board) -> list[Verdict]:
    """Splitting K at the largest fast one against one context beyond it."""
    campaign = "campaign: K = 15360 in one context is 14 times slower than its rate at 4096"
    rows = board.rows("shape_limit", type=INT8, dimension="K", limit="fast")
    if not rows:
        return [unmeasured("K split", "shape_limit of K, type 2", campaign=campaign)]
    limit, evidence = int(number(rows[0].get("median")) or 0), rows[0].get("evidence") or {}
    slower = number(evidence.get("slower_times"))
    if slower is None:
        words = f"no K up to {limit} is slow, so nothing is gained by splitting below it"
        return [Verdict("K split", LEVEL, words, ("shape_limit of K, type 2",), None, campaign)]
    gain = Quantity(slower, slower, slower, (f"shape_limit of K, type 2: slow from {evidence.get('ends_at')}",))
    return [
        judged(
            "K split",
            gain,
            f"keep each segment at K <= {limit}; int32 sums stay the same",
            campaign,
            scope="a longer K",
        )
    ]


def m_bucketing(board: Board) -> list[Verdict]:
    """Padding M to a power of two against steps of 128, and against no padding."""
    campaign = "campaign: prompts of 300 tokens +19 % by steps of 128 in place of powers of two"
    rate = NpuRate(board)
    powers, steps, exactly = (rate.run(m, 4096, 4096, 1) for m in (512, 384, _PADDED))
    found = [
        judged(
            "M in steps of 128 for powers of two",
            powers / steps,
            f"a prompt of {_PADDED}: 384 for 512",
            campaign,
            scope="matmuls",
        )
    ]
    bucket = board.rows("run_buckets")
    if not bucket:
        return [*found, unmeasured("M not padded at all", "run_buckets", campaign=campaign)]
    ends = (bucket[0].get("evidence") or {}).get("steps_above_M") or []
    words = f"a prompt of {_PADDED} as it is for 384; "
    words += f"the chip itself steps above M = {', '.join(map(str, ends))}" if ends else "the chip takes any M as it is"
    return [*found, judged("M not padded at all", steps / exactly, words, campaign, scope="matmuls")]


def layout(board: Board) -> list[Verdict]:
    """B in native against normal layout: the rate, and what binding takes."""
    campaign = "campaign: layouts make no difference to the rate; unimatrix099: binding 4.9 us native, 186 us not"
    found = []
    rates = {
        name: board.one(f"gemm_ceiling, B {name}", 1e12, "gemm_ceiling", type=INT8, B_layout=name, AC_layout="norm")
        for name in ("native", "norm")
    }
    found.append(
        judged("B in native layout, rate", rates["native"] / rates["norm"], "highest rates", campaign, scope="matmuls")
    )
    binds = {
        name: board.one(f"run_cost bind, B {name}", 1e-6, "run_cost", part="bind", B_layout=name)
        for name in ("native", "norm")
    }
    found.append(
        judged(
            "B in native layout, binding", binds["norm"] / binds["native"], "each bind of B", campaign, scope="binding"
        )
    )
    return found


def int4(board: Board) -> list[Verdict]:
    """Half the bytes: what W4A4 brings at M = 1 and in a prompt, and whether any weight-only type exists."""
    campaign = "campaign: decode +74 %, prompt 6.7 times slower, output unusable; weight-only types refused"
    four, eight = NpuRate(board, INT4), NpuRate(board, INT8)
    decode = eight.per_weight(1, 1) / four.per_weight(1, 1)
    prompt = eight.per_weight(512, 1) / four.per_weight(512, 1)
    words = "speed alone; published outputs with four-bit activations lose the top token 3 times in 10 (KL above 0.6)"
    found = [
        speed_only(judged(f"int4 (W4A4), {name}", gain, words, campaign, scope="matmuls"))
        for name, gain in (("decode", decode), ("prompt", prompt))
    ]
    return [*found, _weight_only(board, campaign)]


def _weight_only(board: Board, campaign: str) -> Verdict:
    lever = "int4 weights under wider activations"
    verdicts = {
        (row.get("parameters") or {}).get("type"): row.get("verdict")
        for row in board.report.get("measurements", ())
        if row.get("name") == "dtype_support"
    }
    asked = {kind: verdicts[kind] for kind in _WEIGHT_ONLY if kind in verdicts}
    by = ("dtype_support of types " + ", ".join(map(str, sorted(asked))),)
    if not asked:
        return unmeasured(lever, "dtype_support", campaign=campaign)
    narrow = {kind: verdict for kind, verdict in asked.items() if "int4" in _WEIGHT_ONLY[kind]}
    accepted = sorted({_WEIGHT_ONLY[kind] for kind, verdict in narrow.items() if verdict == "passed"})
    if accepted:
        words = f"accepted and right here: {', '.join(accepted)}; half the bytes without four-bit activations"
        return Verdict(lever, PAYS, words, by, None, campaign)
    if all(verdict == "unsupported" for verdict in narrow.values()):
        return Verdict(lever, CLOSED, "the library refuses every such type", by, None, campaign)
    return Verdict(lever, UNMEASURED, "such types neither passed nor were refused", by, None, campaign)


def verify(board: Board) -> list[Verdict]:
    """What a batch of five rows takes against five single ones: what speculation stands on."""
    campaign = "campaign: M = k verify nearly free; MTP +65 % (prose) to +153 % (copying), a draft model -5 %"
    rate = NpuRate(board)
    five, one = rate.run(5, 4096, 4096, 1), rate.run(1, 4096, 4096, 1)
    words = "five rows in one pass against five passes, on the NPU; drafting and the host are not in it"
    return [judged("verifying drafts in batches", exact(5.0) * one / five, words, campaign, scope="matmuls")]
