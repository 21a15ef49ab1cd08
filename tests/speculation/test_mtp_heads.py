# SPDX-License-Identifier: Apache-2.0
"""The two heads of the tiny models: what is filled is what is decoded, and rows do not depend on those beside them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from reference_engine.backends import make_backend
from reference_engine.gguf_file import open_gguf
from reference_engine.model import Model
from reference_engine.speculation.drafter import SpeculationError
from reference_engine.speculation.engine_sequence import EngineSequence
from reference_engine.speculation.mtp import MtpHead
from reference_engine.speculation.mtp_head import head_of
from reference_engine.tiny import DRAFTERS, tiny_model
from tests.hybrids.random_files import gemma4_assistant

TOKENS = [5, 9, 20, 7, 3, 11, 2, 30, 14, 8, 6, 1]


@pytest.fixture(scope="module", params=["tiny-gemma4", "tiny-qwen35"])
def model(request: pytest.FixtureRequest) -> Iterator[Model]:
    with Model.load(tiny_model(request.param), make_backend("float", threads=1), n_ctx=64) as found:
        yield found


def head_on(model: Model) -> tuple[MtpHead, EngineSequence]:
    name = DRAFTERS.get(model.file.metadata.text("general.name", ""))
    sequence = EngineSequence(model)
    if name is None:
        return head_of(model, None, None)(sequence), sequence
    return head_of(model, open_gguf(tiny_model(name)), make_backend("float", threads=1))(sequence), sequence


def test_a_head_that_was_filled_goes_on_as_one_that_decoded(model: Model) -> None:
    rows = []
    for fills in (True, False):
        head, sequence = head_on(model)
        hidden = sequence.fill(TOKENS, 0, hidden=True)
        assert hidden is not None
        before = np.concatenate((np.zeros_like(hidden[:1]), hidden[:-1]))
        if fills:
            head.fill(TOKENS, before, 0)
        elif not head.shared_memory:
            head.decode(TOKENS, before, 0)
        logits, state = head.decode([TOKENS[3]], hidden[-1:], len(TOKENS))
        rows.append((logits.tobytes(), state.tobytes()))
    assert rows[0] == rows[1]


@pytest.mark.parametrize("model", ["tiny-gemma4"], indirect=True)
def test_rows_at_one_position_are_those_of_each_alone(model: Model) -> None:
    """Of a head without memory; one that has its own puts each row at a position of its own."""
    head, sequence = head_on(model)
    hidden = sequence.fill(TOKENS, 0, hidden=True)
    assert hidden is not None
    logits, states = head.decode(TOKENS[:3], hidden[:3], len(TOKENS))
    alone = [head.decode([token], hidden[i : i + 1], len(TOKENS)) for i, token in enumerate(TOKENS[:3])]
    assert states.tobytes() == np.concatenate([state for _, state in alone]).tobytes()
    assert logits.tobytes() == alone[-1][0].tobytes()


def test_a_drafter_of_another_vocabulary_is_refused(model: Model, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("drafter") / "d.gguf"
    path.write_bytes(gemma4_assistant().file())
    with pytest.raises(SpeculationError, match="the drafter has another vocabulary than the target: the target"):
        head_of(model, open_gguf(path), make_backend("float", threads=1))
