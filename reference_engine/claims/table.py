# SPDX-License-Identifier: Apache-2.0
"""The claims, in the order of their table."""

from __future__ import annotations

from reference_engine.claims import arithmetic, drafting
from reference_engine.claims.claim import UNDECIDED, Claim, Verdict

CAMPAIGN = "performance campaign on RK3588 with a fork of llama.cpp, 2026-07"


def _needs_silicon() -> Verdict:
    return Verdict(
        UNDECIDED,
        "it is a matter of time on silicon: measure int4 in both layouts on a board (make probe) and see the claims of "
        "its report; published runs say that only the normal layout collapses, by repacking A and C in every run",
    )


CLAIMS = (
    Claim("acceptance", "acceptance does not predict speed", CAMPAIGN, drafting.acceptance_does_not_predict_speed),
    Claim(
        "mtp-cap", "nextn_predict_layers caps the length of an MTP draft", CAMPAIGN, drafting.nextn_layers_cap_the_draft
    ),
    Claim(
        "ngram-cache",
        "ngram-cache is not prompt lookup: it reads a static file only",
        CAMPAIGN,
        drafting.ngram_cache_is_no_prompt_lookup,
    ),
    Claim("stacking", "stacking an n-gram strategy on MTP costs throughput", CAMPAIGN, drafting.stacking_costs_passes),
    Claim("ngram-mod", "ngram-mod diverges from greedy by one token", CAMPAIGN, drafting.ngram_mod_diverges),
    Claim(
        "warm-table",
        "a benchmark that repeats its prompt sees an acceptance of 1.0",
        CAMPAIGN,
        drafting.identical_prompts_fake_acceptance,
    ),
    Claim("rim", "one ulp of the scale rounds 127 to 128", CAMPAIGN, arithmetic.one_ulp_rounds_127_to_128),
    Claim("int4", "int4 collapses at prefill", CAMPAIGN, _needs_silicon),
    Claim("k-split", "splitting K is an identity of integers", CAMPAIGN, arithmetic.k_split_is_an_identity_of_integers),
)
