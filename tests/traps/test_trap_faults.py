# SPDX-License-Identifier: Apache-2.0
"""Each fault, in the emulation or in a (mock) device, springs its own trap and is named by it, and by no other."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.engine.faults import FAULTS
from conformance.traps import Trap, diagnose, first_difference, proven_fault, trap_names
from conformance.traps.injected import INJECTED
from conformance.traps.matrix import BEGIN, END, MISNAMED, NAMED, README, as_table, cells, run, verdict
from conformance.traps.measure import answer, continued
from reference_engine.backends import make_backend
from reference_engine.model import Model
from reference_engine.speculation import verify
from reference_engine.speculation.engine_sequence import EngineSequence
from reference_engine.speculation.strategies import StrategyOptions, make_stack
from tests.device.conftest import MakeDevice


@pytest.fixture(scope="module")
def matrix(traps: Mapping[str, Trap]) -> Mapping[tuple[str, str], str]:
    return cells(traps.values())


@pytest.mark.parametrize("fault", INJECTED)
def test_a_fault_is_named_by_the_trap_that_is_built_for_it(matrix: Mapping[tuple[str, str], str], fault: str) -> None:
    assert INJECTED[fault].traps
    for trap in INJECTED[fault].traps:
        assert matrix[fault, trap] == NAMED


@pytest.mark.parametrize("fault", INJECTED)
def test_no_trap_names_another_fault(matrix: Mapping[tuple[str, str], str], fault: str) -> None:
    assert MISNAMED not in [matrix[fault, trap] for trap in trap_names()]


def test_every_trap_has_a_fault_that_springs_it_alone() -> None:
    assert {trap for fault in INJECTED.values() for trap in fault.traps} == set(trap_names())


def test_the_table_in_the_readme_is_what_the_engine_shows(matrix: Mapping[tuple[str, str], str]) -> None:
    text = README.read_text("utf-8")
    shown = text.partition(BEGIN)[2].partition(END)[0].strip()
    assert shown == as_table(matrix, trap_names()), "run python -m conformance.traps.matrix --write"


PHRASES = {
    "weight-wrap": "int8 weights beyond 127 wrapped",
    "cut-off": "cut off instead of rounded",
    "sign-lost": "lost their sign",
    "first-segment-lost": r"only the products of K 8192 to 8320 .* left",
    "last-segment-lost": r"the products of K 8192 to 8320 .* lost",
    "middle-segment-lost": r"the products of K 4096 to 8192 .* lost",
    "segment-scale-a": "another segment's activation scale",
    "segment-scale-b": "another segment's weight scale",
    "segment-scales": "both scales of another segment",
    "slices-0-1": "cores 0 and 1 of 3 changed places",
    "slices-0-2": "cores 0 and 2 of 3 changed places",
    "slices-1-2": "cores 1 and 2 of 3 changed places",
    "slice-lost": "the slice of N with columns 64 to 128 was lost",
    "row-lost": "keys and values of a row of the batch were lost",
    "half-batch-lost": "the last rows of a batch were lost",
    "rows-swapped": "rows of a batch changed places",
    "window-short": "one position too short",
    "window-long": "one position too long",
    "no-window": "not there",
    "rope-global": "the global layer",
    "rope-local": "the layer in a window",
    "head-missed": "was missed",
    "head-transposed": "transposed",
    "head-skipped": "read as it is",
}


@pytest.mark.parametrize("fault", PHRASES)
def test_the_sentence_tells_which_of_several_faults_it_was(traps: Mapping[str, Trap], fault: str) -> None:
    trap = traps[INJECTED[fault].traps[0]]
    said = diagnose(trap, run(trap, INJECTED[fault]).ids)
    assert re.search(PHRASES[fault], said), said


SCALES_OF_SEGMENTS = {"segment-scale-a", "segment-scale-b", "segment-scales", "segment-scale-last"}
NAMELESS = {
    "w8a8-segment": {"weight-wrap"},
    "w8a8-rank-one": SCALES_OF_SEGMENTS,
    "w8a8-hadamard": {"weight-wrap", *SCALES_OF_SEGMENTS},
    "w16a16": set(),
}
"""Pipelines, and the faults that a trap need not name there."""
OF_INTEGERS = {"clip-wrap", "amax-128-wrap", "weight-wrap", "cut-off", "sign-lost", *SCALES_OF_SEGMENTS}
WITHOUT_TRANSFORM = {"cut-off", "sign-lost"}


@pytest.mark.parametrize("preset", NAMELESS)
def test_in_other_pipelines_the_same_traps_name_the_same_faults(traps: Mapping[str, Trap], preset: str) -> None:
    left_out = NAMELESS[preset] | (OF_INTEGERS if preset == "w16a16" else set())
    if preset in ("w8a8-rank-one", "w8a8-hadamard"):
        left_out |= WITHOUT_TRANSFORM
    tried = 0
    for name, fault in INJECTED.items():
        if name in left_out or fault.traps == ("w4a4",):
            continue
        there = replace(fault, pipeline=fault.pipeline.replace("w8a8-per-channel", preset))
        for trap in fault.traps:
            assert verdict(traps[trap], there, run(traps[trap], there)) == NAMED, name
            tried += 1
    assert tried >= 20


ON_THE_DEVICE = {
    "stale-a": ("stale-activation", "an activation was stale"),
    "slice0-only": ("batch-row", "rows of (a|the) batch|a row of the batch"),
    "rows-swapped": ("batch-row", "changed places|another row's place"),
    "k-tail-dropped": ("k-segment", "the products of K"),
}


@pytest.mark.parametrize("fault", ON_THE_DEVICE)
def test_a_fault_of_the_device_is_named_by_its_trap(traps: Mapping[str, Trap], device: MakeDevice, fault: str) -> None:
    name, said = ON_THE_DEVICE[fault]
    trap = traps[name]
    # Contexts that matmuls share would give each the stale activation of another, which has no name here.
    backend = device("w8a8-per-channel,contexts=per-weight", RKNN_MOCK_FAULTS=fault)
    tokens, _ = answer(trap.path, trap.prompt, len(trap.tokens), backend)
    assert re.search(said, diagnose(trap, tokens)), diagnose(trap, tokens)


@pytest.mark.parametrize("name", ["k-segment", "batch-row", "core-slices"])
def test_a_right_device_springs_no_trap(traps: Mapping[str, Trap], device: MakeDevice, name: str) -> None:
    trap = traps[name]
    tokens, _ = answer(trap.path, trap.prompt, len(trap.tokens), device("w8a8-per-channel"))
    assert diagnose(trap, tokens) == f"trap {name}: right, all {len(trap.tokens)} tokens."


@pytest.mark.parametrize("strategy", ["ngram-simple", "ngram-cache", "ngram-mod"])
def test_cells_that_keep_a_rejected_draft_spring_the_rollback_trap(traps: Mapping[str, Trap], strategy: str) -> None:
    """Another way to lose a rollback than the one of the matrix: the next token does not overwrite the draft's cell."""
    trap = traps["kv-rollback"]
    spoil = FAULTS["kv-rollback"].model
    assert spoil is not None
    options = StrategyOptions(size_n=3, size_m=8, n_match=4, n_min=1, n_max=8)
    said = []
    for broken in (False, True):
        with Model.load(trap.path, make_backend("float")) as model:
            if broken:
                spoil(model)
            stack = make_stack([strategy], options, draft=None, mtp=None)
            done = verify.generate(EngineSequence(model), stack, list(trap.prompt), n_predict=len(trap.tokens))
            assert any(len(step.draft) > step.n_accepted for step in done.steps), "nothing was rejected"
            said.append(proven_fault(trap, done.tokens))
            right = first_difference(trap, done.tokens) is None
        assert right is not broken
    assert said == [None, "the rows of rejected draft tokens were left in the KV cache"]


def test_the_rollback_trap_is_silent_without_speculation(traps: Mapping[str, Trap]) -> None:
    trap = traps["kv-rollback"]
    spoil = FAULTS["kv-rollback"].model
    assert spoil is not None
    with Model.load(trap.path, make_backend("float")) as model:
        spoil(model)
        assert tuple(continued(model, trap.prompt, len(trap.tokens))[0]) == trap.tokens


@pytest.mark.parametrize("name", trap_names())
def test_what_a_short_or_long_answer_proves(traps: Mapping[str, Trap], name: str) -> None:
    trap = traps[name]
    assert "right" in diagnose(trap, trap.tokens)
    assert "right" in diagnose(trap, (*trap.tokens, 1, 2, 3))
    assert f"{len(trap.tokens) - 1} of {len(trap.tokens)} tokens, all right so far" in diagnose(trap, trap.tokens[:-1])
    assert proven_fault(trap, trap.tokens) is None
    assert proven_fault(trap, ()) is None


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_answer_is_judged_by_its_first_wrong_token(traps: Mapping[str, Trap], data: st.DataObject) -> None:
    trap = traps[data.draw(st.sampled_from(trap_names()))]
    ids = list(trap.tokens)
    step = data.draw(st.integers(0, len(ids) - 1))
    wrong = data.draw(st.integers(0, 200).filter(lambda token: token != ids[step]))
    rest = data.draw(st.lists(st.integers(0, 200), max_size=40))
    given_ids = (*ids[:step], wrong, *rest)
    assert first_difference(trap, given_ids) == step
    said = diagnose(trap, given_ids)
    assert f"token {step} of the answer is {wrong}, not {ids[step]}" in said
    fault = proven_fault(trap, given_ids)
    if fault is not None:
        assert fault in said
    elif wrong != 0:
        assert "proves none of the faults" in said
    assert proven_fault(trap, (*ids[:step], wrong)) in (None, *trap.wrong.values())
