# SPDX-License-Identifier: Apache-2.0
"""Each claim is decided by an experiment, and another outcome of the experiment gives the other verdict."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from reference_engine.backends.integer_product import int8_product
from reference_engine.claims import arithmetic, drafting
from reference_engine.claims.claim import HOLDS, REFUTED, UNDECIDED, Claim
from reference_engine.claims.table import CLAIMS
from reference_engine.speculation.ngram_mod import NgramMod
from reports.__main__ import main

WANTED = {
    "acceptance": HOLDS,
    "mtp-cap": REFUTED,
    "ngram-cache": REFUTED,
    "ngram-mod": REFUTED,
    "warm-table": HOLDS,
    "rim": REFUTED,
    "int4": UNDECIDED,
    "k-split": HOLDS,
}
"""What the arithmetic and the code of llama.cpp decide; the others depend on how well a tiny model was trained."""


@pytest.mark.parametrize("claim", CLAIMS, ids=[claim.name for claim in CLAIMS])
def test_every_claim_has_a_verdict_and_a_reason_with_a_figure(claim: Claim) -> None:
    found, name = claim.test(), claim.name
    assert found.word in (HOLDS, REFUTED, UNDECIDED)
    assert any(char.isdigit() for char in found.reason)
    if name in WANTED:
        assert found.word == WANTED[name], found.reason


def test_the_rim_is_what_exact_arithmetic_with_two_roundings_gives() -> None:
    """A few mantissas in exact fractions: amax times the rounded reciprocal of the rounded scale, rounded once more."""
    random = np.random.Generator(np.random.PCG64(3))
    largest = arithmetic.largest_quotient()
    for mantissa in random.integers(0, 1 << 23, 200):
        amax = (np.int32(mantissa) + np.float32(1).view(np.int32)).astype(np.int32).view(np.float32)
        scale = np.float32(float(Fraction(float(amax)) / 127))
        reciprocal = np.float32(float(1 / Fraction(float(scale))))
        assert float(Fraction(float(amax)) * Fraction(float(reciprocal))) <= largest * (1 + 2**-24)
    assert 127.0 < largest < 127.5


def test_a_product_that_loses_a_segment_refutes_the_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    right = int8_product

    def lossy(a: NDArray[np.int8], b: NDArray[np.int8]) -> NDArray[np.int32]:
        return right(a, b) if a.shape[1] != 2048 else np.zeros((len(a), len(b)), np.int32)

    monkeypatch.setattr(arithmetic, "int8_product", lossy)
    assert arithmetic.k_split_is_an_identity_of_integers().word == REFUTED


def test_a_wider_quotient_would_hold_the_claim_of_the_rim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arithmetic, "largest_quotient", lambda: 127.6)
    assert arithmetic.one_ulp_rounds_127_to_128().word == HOLDS


def test_a_table_that_is_emptied_for_each_request_refutes_the_warm_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafting, "NgramMod", lambda *, compat: NgramMod(compat=False))
    assert drafting.identical_prompts_fake_acceptance().word == REFUTED


def test_the_table_is_printed_and_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["claims", "--only", "rim,int4"]) == 0
    out = capsys.readouterr().out
    assert "refuted             one ulp of the scale rounds 127 to 128" in out
    assert "not decidable here  int4 collapses at prefill" in out
    assert main(["claims", "--only", "rim", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["claims"]
    assert row["verdict"] == "refuted"
    assert "127.000008" in row["reason"]


def test_an_unknown_claim_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["claims", "--only", "rum"]) == 2
    assert "there is no claim rum; known are acceptance, " in capsys.readouterr().err
