# SPDX-License-Identifier: Apache-2.0
"""Faults that can be put into the engine, to see the suite fail. They cost nothing where none is asked for.

``RKNPU_KIT_ENGINE_FAULT=NAME`` in the request of a check puts one into the back ends and models of that check alone;
nothing else reads it, and nothing else of the kit imports this module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from conformance.engine import faults_backend as backend
from conformance.engine import faults_model as model

VARIABLE = "RKNPU_KIT_ENGINE_FAULT"


class UnknownFault(ValueError):
    """There is no fault of that name; the message lists those there are."""


@dataclass(frozen=True)
class Fault:
    """``imitates`` says what goes wrong, ``named`` is the pattern of a message that names it.

    ``backend`` is put into every back end of the judged engine, ``model`` into every loaded model, ``process`` into the
    check's own process. ``at_rim``: the sweep over all mantissas finds it.
    """

    imitates: str
    named: str
    backend: Callable[[Any], None] | None = None
    model: Callable[[Any], None] | None = None
    process: Callable[[], None] | None = None
    at_rim: bool = False

    @property
    def part(self) -> str:
        """quantiser, product or model."""
        if self.backend is None:
            return "model"
        return "quantiser" if self.backend in backend.OF_THE_QUANTISER else "product"


FAULTS: Mapping[str, Fault] = {
    "half-up": Fault("halves are rounded up (floor of x + 0.5)", "halves are rounded up", backend.half_up, at_rim=True),
    "half-even": Fault(
        "halves are rounded to even, as numpy and most hardware do", "rounded to even", backend.half_even, at_rim=True
    ),
    "truncate": Fault("a cast without rounding", "truncated instead of rounded", backend.truncate, at_rim=True),
    "rim-wraps": Fault(
        "127 becomes 128 and wraps to -128", "127 became -128|wrapped to negative", backend.rim_wraps, at_rim=True
    ),
    "no-clamp": Fault(
        "what exceeds the rim wraps in a pipeline that clamps", "wraps where it should be held", backend.no_clamp
    ),
    "clip-ignored": Fault("the clip factor is not applied", "the clip factor is ignored", backend.clip_ignored),
    "sign-lost": Fault(
        "magnitudes are quantised without their sign", "the sign is lost", backend.sign_lost, at_rim=True
    ),
    "zero-row-nan": Fault(
        "the scale of a row of zeros is not caught", "zeros (gives|has the scale) NaN", backend.zero_row_nan
    ),
    "nan-taken": Fault("NaN is cast to an integer", "not refused but quantised", backend.nan_taken),
    "flush": Fault("subnormal numbers are flushed to zero (NEON of 32-bit Arm)", "flushed to zero", backend.flush),
    "divide": Fault("x / scale in place of x * (1 / scale)", "divided by the scale", backend.divide, at_rim=True),
    "batch-scale": Fault(
        "one activation scale for the whole batch", "one scale for the whole batch", backend.batch_scale, at_rim=True
    ),
    "weight-scale": Fault(
        "weights are scaled by amax / 128", r"weights.*amax over 128", backend.weight_scale, at_rim=True
    ),
    "fp16-truncate": Fault("fp16 by cutting off", r"as fp16.*are wrong", backend.fp16_truncate),
    "stale-a": Fault("the activation of the call before", "stale A|activation was stale", backend.stale_a),
    "segment-lost": Fault(
        "the last K segment is not added", r"K segment . is lost|products of K .* were lost", backend.segment_lost
    ),
    "segment-scale": Fault(
        "all K segments are scaled by the first one's scale",
        "scale of K segment 0|another segment's activation scale",
        backend.segment_scale,
    ),
    "n-slice-swapped": Fault(
        "two cores' slices of N change places", "slices .* changed places", backend.n_slice_swapped
    ),
    "batch-slice": Fault(
        "rows from the fifth on are not computed",
        "a slice of the batch is missing|row of the batch were lost",
        backend.batch_slice,
    ),
    "neighbour-scale": Fault("each channel gets its neighbour's scale", "neighbour's scale", backend.neighbour_scale),
    "int4-selected": Fault("W4A4 in place of W8A8", r"W4A4 was selected|4 bits \(W4A4\)", backend.int4_selected),
    "fma-off": Fault("K segments are added with two roundings in place of one", "rounded twice", backend.fma_off),
    "noise": Fault(
        "a result changes from run to run in its last digit", "the same pass again: .*not the same bits", backend.noise
    ),
    "rope-base": Fault(
        "the RoPE base of the other kind of layer, or a wrong one",
        "by the RoPE base .* instead|another RoPE base",
        model=model.rope_base,
    ),
    "rope-position": Fault("positions are counted from 1", "positions that are off by one", model=model.rope_position),
    "window": Fault(
        "the sliding window is one position too wide",
        "window is off by one|window was one position too",
        model=model.window,
    ),
    "kv-rollback": Fault(
        "cells of rejected drafts keep their keys and values",
        "rolled back: .*not the same bits|rejected draft tokens were left",
        model=model.kv_rollback,
    ),
    "head": Fault("each logit is the one of the token beside", "those of the tokens beside", model=model.head),
    "head-missed": Fault("a tied head is not found", r"\(tied\), .* all zero|tied head", model=model.head_missed),
    "batch-order": Fault(
        "rows of a batch are computed in another order of sums", "in batches of", model=model.batch_order
    ),
    "prompt-cache": Fault(
        "the logits of a prompt seen before come from a cache", "repeated prompt", model=model.prompt_cache
    ),
    "unverified": Fault("drafted tokens are accepted unseen", "NOT lossless", process=model.unverified),
}


def fault_of(env: Mapping[str, str]) -> Fault | None:
    """The fault that a request asks for. UnknownFault."""
    name = env.get(VARIABLE, "")
    if not name:
        return None
    if name not in FAULTS:
        raise UnknownFault(f"{VARIABLE} is {name!r}; there are {', '.join(FAULTS)}")
    return FAULTS[name]
