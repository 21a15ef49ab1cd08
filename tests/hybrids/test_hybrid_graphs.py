# SPDX-License-Identifier: Apache-2.0
"""Graphs of gemma4, its drafter and qwen35 against float64, and the same bits in any batch, by any thread and path."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from reference_engine.backends import make_backend
from reference_engine.errors import EngineError, UsageError
from reference_engine.gguf_file import open_gguf
from reference_engine.model import KvOptions, Model
from reference_engine.speculation.drafter import SpeculationError
from reference_engine.speculation.engine_sequence import EngineSequence
from reference_engine.speculation.mtp import MtpHead
from reference_engine.speculation.mtp_head import head_of
from tests.hybrids import float64_hybrids as oracle
from tests.hybrids.random_files import GEMMA4_OPTIONS, Written, gemma4, gemma4_assistant, qwen35

TOKENS = [int(n) for n in np.random.Generator(np.random.PCG64(7)).integers(0, 256, 40)]
MODELS = [
    gemma4(),
    *(gemma4(option) for option in GEMMA4_OPTIONS if option != "wide"),
    gemma4("shared", "wide", "k is v"),
    qwen35(),
    qwen35("nextn", "untied"),
]
IDS = [
    "gemma4",
    *(f"gemma4 {o}" for o in GEMMA4_OPTIONS if o != "wide"),
    "gemma4 shared wide k is v",
    "qwen35",
    "nextn",
]
Load = Callable[..., Model]


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Load]:
    opened: list[Model] = []

    def load_it(written: Written, backend: str = "float", threads: int = 1, kernels: str = "auto") -> Model:
        path = tmp_path / f"{len(opened)}.gguf"
        path.write_bytes(written.file())
        made = make_backend(backend, threads=threads, kernels=kernels)
        opened.append(Model.load(path, made, threads=threads, kv=KvOptions("f32", "f32")))
        return opened[-1]

    yield load_it
    for model in opened:
        model.close()


def nmse(reference: NDArray[np.float64], found: NDArray[np.float32]) -> float:
    return float(((reference - found) ** 2).sum() / (reference**2).sum())


def passed(written: Written) -> oracle.Passed:
    forward = oracle.gemma4_forward if written.architecture == "gemma4" else oracle.qwen35_forward
    return forward(written, TOKENS)


@pytest.mark.parametrize("written", MODELS, ids=IDS)
def test_logits_and_hidden_state_are_those_of_float64(written: Written, load: Load) -> None:
    model = load(written)
    found = model.forward(TOKENS, model.new_cache(), rows="all")
    wanted = passed(written)
    assert nmse(wanted.logits, found.logits) < 1e-9
    assert nmse(wanted.hidden, found.hidden) < 1e-9
    assert (wanted.logits.argmax(1) == found.logits.argmax(1)).all()


def test_every_option_changes_the_logits() -> None:
    """An option that changed nothing would be tested by nothing."""
    plain = passed(gemma4()).logits
    for option in ("no per layer", "shared", "k is v", "no cap", "no scales", "fused", "untied"):
        assert not np.allclose(passed(gemma4(option)).logits, plain), option


@pytest.mark.parametrize("written", [gemma4("shared"), qwen35()], ids=["gemma4", "qwen35"])
@pytest.mark.parametrize("backend", ["float", "npu:w8a8-per-channel"])
def test_a_token_alone_and_in_any_batch_has_the_same_bits(written: Written, backend: str, load: Load) -> None:
    model = load(written, backend, 2)
    whole = model.forward(TOKENS, model.new_cache(), rows="all").logits
    for size in (1, 3, 7):
        cache = model.new_cache()
        rows = [model.forward(TOKENS[at : at + size], cache, rows="all").logits for at in range(0, len(TOKENS), size)]
        assert np.concatenate(rows).tobytes() == whole.tobytes(), size


@pytest.mark.parametrize("written", [gemma4("shared"), qwen35("nextn")], ids=["gemma4", "qwen35"])
def test_numpy_alone_gives_the_bits_of_the_kernels(written: Written, load: Load) -> None:
    rows = [
        model.forward(TOKENS, model.new_cache(), rows="all").logits.tobytes()
        for model in (load(written), load(written, kernels="numpy"))
    ]
    assert rows[0] == rows[1]


def drafter(model: Model, tmp_path: Path, written: Written) -> Callable[[EngineSequence], MtpHead]:
    path = tmp_path / "drafter.gguf"
    path.write_bytes(written.file())
    return head_of(model, open_gguf(path), make_backend("float", threads=1))


@pytest.mark.parametrize("options", [(), ("shared",)])
def test_the_drafter_is_float64s_and_leaves_the_targets_cache_alone(
    options: tuple[str, ...], load: Load, tmp_path: Path
) -> None:
    target, written = gemma4(*options), gemma4_assistant()
    model = load(target)
    sequence = EngineSequence(model)
    head = drafter(model, tmp_path, written)(sequence)
    wanted = passed(target)
    for position in (1, 5, 30):
        sequence.truncate(0)
        hidden = sequence.forward(TOKENS[:position], 0).hidden
        assert hidden is not None
        before = sequence.cache_sha256()
        logits, states = head.decode([TOKENS[position]], hidden[-1:], position)
        at: Any = {"position": position, "held": wanted.held}
        first = oracle.assistant_step(written, target, token=TOKENS[position], hidden=wanted.hidden[position - 1], **at)
        assert nmse(first[0], logits) < 1e-9
        assert nmse(first[1], states[0]) < 1e-9
        logits, _ = head.decode([TOKENS[position + 1]], states, position)
        second = oracle.assistant_step(written, target, token=TOKENS[position + 1], hidden=first[1], **at)
        assert nmse(second[0], logits) < 1e-8
        assert sequence.cache_sha256() == before


@pytest.mark.parametrize("options", [("nextn",), ("nextn", "untied"), ("own head",)])
def test_the_nextn_block_is_float64s(options: tuple[str, ...], load: Load) -> None:
    written = qwen35(*options)
    model = load(written)
    head = head_of(model, None, None)(EngineSequence(model))
    wanted = oracle.qwen35_forward(written, TOKENS)
    before = np.concatenate((np.zeros_like(wanted.hidden[:1]), wanted.hidden[:-1]))
    ahead = oracle.nextn_forward(written, TOKENS, before)
    states = before.astype(np.float32)
    found = np.concatenate([head.decode(TOKENS[at : at + 9], states[at : at + 9], at)[1] for at in range(0, 40, 9)])
    assert nmse(ahead.hidden, found) < 1e-9
    logits, _ = head.decode(TOKENS[30:35], states[30:35], 30)
    assert nmse(ahead.logits[34], logits) < 1e-9


def test_a_state_that_was_cut_back_has_the_bits_of_one_that_never_went_on(load: Load) -> None:
    model = load(qwen35())
    whole = model.forward(TOKENS, model.new_cache(), rows="all").logits
    random = np.random.Generator(np.random.PCG64(11))
    for _ in range(10):
        cache, at = model.new_cache(), 0
        while at < len(TOKENS) - 8:
            size = int(random.integers(1, 8))
            rows = model.forward(TOKENS[at : at + size], cache, rows="all").logits
            keep = int(random.integers(0 if at else 1, size + 1))
            assert rows.tobytes() == whole[at : at + size].tobytes()
            cache.truncate(at + keep)
            at += keep


def test_a_state_is_cut_back_within_the_last_batch_or_to_nothing(load: Load) -> None:
    model = load(qwen35())
    cache = model.new_cache()
    model.forward(TOKENS[:10], cache)
    model.forward(TOKENS[10:14], cache)
    with pytest.raises(UsageError, match="recurrent layers remember the last batch only, from 10 on"):
        cache.truncate(9)
    assert cache.n_past == 14
    cache.truncate(0)
    assert (
        model.forward(TOKENS[:5], cache).logits.tobytes()
        == model.forward(TOKENS[:5], model.new_cache()).logits.tobytes()
    )


def test_drafters_of_other_targets_are_refused(load: Load, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="drafts for gemma4; the target is qwen35"):
        drafter(load(qwen35()), tmp_path, gemma4_assistant())
    with pytest.raises(SpeculationError, match="needs a drafter of the architecture gemma4-assistant, not gemma4"):
        drafter(load(gemma4()), tmp_path, gemma4())
    with pytest.raises(SpeculationError, match="or a nextn block in the target"):
        head_of(load(qwen35()), None, None)


def test_layers_that_read_others_need_them(load: Load, tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(gemma4("shared").file())
    with pytest.raises(UsageError, match="Layer 2 reads the keys and values of layer 0, which is not among"):
        Model.load(path, make_backend("float", threads=1), layers=range(1, 3))
