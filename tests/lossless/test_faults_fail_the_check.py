# SPDX-License-Identifier: Apache-2.0
"""A fault in each part of speculation fails the check of losslessness, and the message names its class.

The faults are put into the engine that runs, not into a model of it: the check is the one that the matrix is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from reference_engine.backends import make_backend
from reference_engine.graphs.common import Graph, RopeTable, Run
from reference_engine.graphs.gemma4_assistant import Gemma4Assistant, Layer
from reference_engine.kv_cache import I32, KvCache
from reference_engine.kv_cache_native import NativeKvLayer
from reference_engine.model import Model
from reference_engine.recurrent_state import RecurrentState
from reference_engine.speculation import verify
from reference_engine.speculation.drafter import Round, SpeculationError
from reference_engine.speculation.engine_sequence import EngineSequence
from reference_engine.speculation.explain import BUG, CACHE_FAULT, DRAFTER_LEAK, NEAR_TIE
from reference_engine.speculation.mtp import Mtp
from reference_engine.speculation.mtp_head import head_of
from reference_engine.speculation.perturbed import AnotherOrder
from tests.hybrids.random_files import qwen35
from tests.lossless.matrix import Loaded, NotLossless, check_lossless, loaded, speculate

F32 = NDArray[np.float32]
N_PREDICT = 64
LARGEST_DRAFT = 16
"""Passes of more rows are those of the prompt; faults leave them alone, so that greedy decoding stays as it is."""

Patch = pytest.MonkeyPatch


def of_a_draft(rows: int) -> bool:
    return 1 < rows <= LARGEST_DRAFT + 1


def snapshot_is_lost(patch: Patch) -> None:
    """The matrix keeps what rejected tokens mixed into it."""
    right = RecurrentState.truncate

    def wrong(self: RecurrentState, n_past: int) -> None:
        matrix = self.matrix.copy()
        right(self, n_past)
        if n_past:
            self.matrix = matrix

    patch.setattr(RecurrentState, "truncate", wrong)


def convolution_keeps_rejected_rows(patch: Patch) -> None:
    right = RecurrentState.truncate

    def wrong(self: RecurrentState, n_past: int) -> None:
        rows = self.rows.copy()
        right(self, n_past)
        if n_past:
            self.rows = rows

    patch.setattr(RecurrentState, "truncate", wrong)


def rejected_rows_stay_in_their_cells(patch: Patch) -> None:
    """What comes to a cell that was written before is dropped: no rollback."""
    right = NativeKvLayer.append

    def wrong(self: NativeKvLayer, k: F32, v: F32, positions: I32) -> None:
        held, stale = self.v_codes.copy(), positions[(positions < self.written) & (positions >= self.oldest)]
        right(self, k, v, positions)
        cells = stale % self.capacity
        self.v_codes[:, cells] = held[:, cells]

    patch.setattr(NativeKvLayer, "append", wrong)


def two_positions_share_a_cell(patch: Patch) -> None:
    """The last row of a draft lands where the text still has one."""
    right = NativeKvLayer.append

    def wrong(self: NativeKvLayer, k: F32, v: F32, positions: I32) -> None:
        right(self, k, v, positions)
        if of_a_draft(len(positions)):
            taken, last = ((int(at) % self.capacity) for at in (positions[0] - 2, positions[-1]))
            self.v_codes[:, taken] = self.v_codes[:, last]

    patch.setattr(NativeKvLayer, "append", wrong)


def drafter_empties_the_cells_it_shares(patch: Patch) -> None:
    """As a draft context of llama.cpp that is made after the target has decoded."""
    right = Mtp.draft

    def wrong(self: Mtp, now: Round) -> list[int]:
        assert isinstance(self.head, Gemma4Assistant)
        for index in set(self.head.kv_indices):
            self.head.cache.layer(index).v_codes[...] = 0
        return right(self, now)

    patch.setattr(Mtp, "draft", wrong)


def drafter_writes_the_targets_cache(patch: Patch) -> None:
    """Keys and values for the token it drafts for, where a drafter with queries alone has none."""
    right = Gemma4Assistant.run_layer

    def wrong(self: Gemma4Assistant, w: Layer, x: F32, run: Run) -> None:
        right(self, w, x, run)
        layer = self.cache.layer(self.kv_indices[self.layers.index(w)])
        k = np.resize(x, (1, layer.n_kv_heads, layer.k_dim)).astype(np.float32)
        v = np.resize(x, (1, layer.n_kv_heads, layer.v_dim)).astype(np.float32)
        layer.append(k, v, run.positions[:1])

    patch.setattr(Gemma4Assistant, "run_layer", wrong)


Accepted = Callable[["F32", Sequence[int], Collection[int]], list[int]]


def acceptance(patch: Patch, fault: Callable[[Accepted, F32, Sequence[int], Collection[int]], list[int]]) -> None:
    right = verify.accepted
    patch.setattr(verify, "accepted", lambda logits, draft, eog: fault(right, logits, draft, eog))


def rows_are_verified_in_reverse(patch: Patch) -> None:
    acceptance(patch, lambda right, logits, draft, eog: right(logits[::-1], draft, eog))


def one_too_many_is_accepted(patch: Patch) -> None:
    def fault(right: Accepted, logits: F32, draft: Sequence[int], eog: Collection[int]) -> list[int]:
        tokens = right(logits, draft, eog)
        n = len(tokens)
        return tokens if n > len(draft) else [*tokens[:-1], draft[n - 1], verify.chosen(logits[n])]

    acceptance(patch, fault)


def one_too_few_is_accepted(patch: Patch) -> None:
    """The last accepted token goes, the one that was chosen behind it stays."""

    def fault(right: Accepted, logits: F32, draft: Sequence[int], eog: Collection[int]) -> list[int]:
        tokens = right(logits, draft, eog)
        return [*tokens[:-2], tokens[-1]] if len(tokens) > 1 else tokens

    acceptance(patch, fault)


def end_of_generation_is_run_over(patch: Patch) -> None:
    acceptance(patch, lambda right, logits, draft, eog: right(logits, draft, ()))


def position_is_one_too_high(patch: Patch) -> None:
    right = RopeTable.at

    def wrong(self: RopeTable, first: int, m: int) -> tuple[F32, F32]:
        return right(self, first + of_a_draft(m), m)

    patch.setattr(RopeTable, "at", wrong)


def hidden_row_is_a_stale_one(patch: Patch) -> None:
    """The head reads, for each row of a draft but the first, the row above it: logits of an older token."""
    right = Graph.hidden

    def wrong(self: Graph, x: F32, run: Run, out: F32) -> F32:
        return right(self, np.concatenate((x[:1], x[:-1])) if of_a_draft(len(x)) else x, run, out)

    patch.setattr(Graph, "hidden", wrong)


def sums_are_in_another_order(patch: Patch) -> None:
    """Nothing is patched: the sequence is one whose rows depend on the width of a pass."""
    del patch


@dataclass(frozen=True)
class Fault:
    """``inject`` into the engine; ``cause`` and ``words`` are in the message of the check that fails."""

    inject: Callable[[Patch], None]
    target: str
    strategy: str
    cause: str
    words: str

    @property
    def name(self) -> str:
        return self.inject.__name__.replace("_", "-")


FAULTS = (
    Fault(snapshot_is_lost, "hybrid", "draft-mtp", CACHE_FAULT, "linear_attn_state_out of layer 0"),
    Fault(convolution_keeps_rejected_rows, "hybrid", "draft-mtp", CACHE_FAULT, "conv_output_silu of layer 0"),
    Fault(rejected_rows_stay_in_their_cells, "tiny-llama", "draft-simple", CACHE_FAULT, "kqv_out of layer 0"),
    Fault(two_positions_share_a_cell, "tiny-llama", "ngram-mod", CACHE_FAULT, "kqv_out of layer 0"),
    Fault(two_positions_share_a_cell, "tiny-gemma4", "draft-mtp", CACHE_FAULT, "kqv_out of layer 0"),
    Fault(drafter_empties_the_cells_it_shares, "tiny-gemma4", "draft-mtp", DRAFTER_LEAK, "changed the target's cache"),
    Fault(drafter_writes_the_targets_cache, "tiny-gemma4", "draft-mtp", DRAFTER_LEAK, "changed the target's cache"),
    Fault(rows_are_verified_in_reverse, "tiny-llama", "ngram-simple", BUG, "same bits"),
    Fault(one_too_many_is_accepted, "tiny-gemma4", "draft-mtp", BUG, "same bits"),
    Fault(one_too_few_is_accepted, "tiny-llama", "draft-simple", BUG, ""),
    Fault(end_of_generation_is_run_over, "tiny-llama", "draft-simple", BUG, ""),
    Fault(position_is_one_too_high, "tiny-llama", "ngram-mod,draft-simple", BUG, "Qcur_rope of layer 0"),
    Fault(hidden_row_is_a_stale_one, "tiny-gemma4", "draft-mtp", BUG, "result_norm"),
    Fault(sums_are_in_another_order, "tiny-llama", "draft-simple", NEAR_TIE, "width 1 and"),
)


@pytest.fixture(scope="module")
def hybrid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loaded]:
    """A random qwen35 with its nextn block."""
    path: Path = tmp_path_factory.mktemp("hybrid") / "m.gguf"
    path.write_bytes(qwen35("nextn").file())
    with Model.load(path, make_backend("float", threads=1)) as model:
        yield Loaded(model, None, head_of(model, None, None), {"copy": [5, 9, 20, 7, 3, 11, 2, 30, 14, 8] * 2})


def target_of(fault: Fault, hybrid: Loaded) -> Loaded:
    it = hybrid if fault.target == "hybrid" else loaded(fault.target, "float")
    return replace(it, sequence=AnotherOrder) if fault.inject is sums_are_in_another_order else it


def ends(fault: Fault, it: Loaded) -> set[int]:
    """For the one fault that needs it: a token that was drafted, was right, and was not the last one of its draft."""
    if fault.inject is not end_of_generation_is_run_over:
        return set()
    seen: set[int] = set()
    for step in speculate(it, "copy", fault.strategy, N_PREDICT)[0].steps:
        if len(step.tokens) > 1 and step.tokens[0] not in seen:
            return {step.tokens[0]}
        seen.update(step.tokens)
    raise AssertionError("no draft was right")


@pytest.mark.parametrize("fault", FAULTS, ids=[f"{fault.name}-{fault.target}" for fault in FAULTS])
def test_a_fault_fails_the_check_and_its_class_is_named(fault: Fault, hybrid: Loaded, monkeypatch: Patch) -> None:
    it = target_of(fault, hybrid)
    eog = ends(fault, it)
    greedy = it.greedy("copy", N_PREDICT, eog)
    if fault.inject is not sums_are_in_another_order:
        _, stack = check_lossless(it, "copy", fault.strategy, N_PREDICT, wanted=greedy.sha256, eog=eog)
        assert sum(s.n_gen_tokens for s in stack.statistics) > 0
    fault.inject(monkeypatch)
    with pytest.raises(NotLossless) as error:
        check_lossless(it, "copy", fault.strategy, N_PREDICT, wanted=greedy.sha256, eog=eog)
    found = error.value.divergence
    assert found is not None, "greedy decoding has the fault too"
    assert found.cause == fault.cause, found.sentence()
    assert fault.words in str(error.value)
    assert found.greedy_token == (greedy.tokens[found.index] if found.index < len(greedy.tokens) else None)


def test_every_class_of_a_divergence_and_eight_kinds_of_faults_are_among_them() -> None:
    assert {fault.cause for fault in FAULTS} == {NEAR_TIE, CACHE_FAULT, DRAFTER_LEAK, BUG}
    assert len({fault.inject for fault in FAULTS}) >= 8


def test_a_stale_hidden_row_in_the_drafter_costs_acceptance_and_no_token(monkeypatch: Patch) -> None:
    """What a drafter is given wrongly cannot change the text, only how much of it was guessed."""
    it = loaded("tiny-qwen35", "float")
    greedy = it.greedy("copy", N_PREDICT)
    _, stack = speculate(it, "copy", "draft-mtp", N_PREDICT)
    right = Mtp.accept

    def stale(self: Mtp, n_accepted: int, n_past: int, *, own: bool) -> None:
        right(self, n_accepted, n_past, own=own)
        self._pending = self._rows[:1]

    monkeypatch.setattr(Mtp, "accept", stale)
    _, worse = check_lossless(it, "copy", "draft-mtp", N_PREDICT, wanted=greedy.sha256)
    right_share, stale_share = (s.statistics[0].acceptance for s in (stack, worse))
    assert right_share is not None
    assert stale_share is not None
    assert stale_share < 0.7 * right_share


def test_a_rollback_to_another_place_is_refused_by_the_sequence(monkeypatch: Patch) -> None:
    it = loaded("tiny-llama", "float")
    right = KvCache.truncate
    monkeypatch.setattr(KvCache, "truncate", lambda self, n_past: right(self, n_past) if n_past == 0 else None)
    with pytest.raises(SpeculationError, match=r"a pass begins at position \d+, the cache ends before \d+"):
        speculate(it, "copy", "ngram-mod", N_PREDICT)


def test_the_sequence_of_the_matrix_is_that_of_the_engine() -> None:
    assert loaded("tiny-llama", "float").sequence is EngineSequence
