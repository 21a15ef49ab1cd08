# SPDX-License-Identifier: Apache-2.0
"""Loading and running: what is refused and in which words, what is left behind, and what a cut cache gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from reference_engine import model as model_module
from reference_engine.backends import make_backend
from reference_engine.errors import ContextFull, EngineError, NotFinite, UsageError
from reference_engine.gguf_errors import GgufError
from reference_engine.gguf_file import open_gguf
from reference_engine.model import KvOptions, Model
from tests.engine.conftest import Load
from tests.gguf import crafted_gguf as craft
from tests.gguf.random_models import CONTEXT, Recipe

LLAMA = Recipe("llama")
TOKENS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 35, 89, 79]
Write = Callable[..., Path]


def test_the_rows_asked_for_are_those_of_all_rows(load: Load) -> None:
    model = load(LLAMA)
    whole = model.forward(TOKENS, model.new_cache(), rows="all")
    assert whole.logits.shape == (len(TOKENS), LLAMA.vocab)
    assert whole.hidden.shape == (len(TOKENS), LLAMA.embd)
    last = model.forward(TOKENS, model.new_cache())
    assert np.array_equal(last.logits, whole.logits[-1:])
    some = model.forward(TOKENS, model.new_cache(), rows=[0, 5, 6])
    assert np.array_equal(some.logits, whole.logits[[0, 5, 6]])
    assert np.array_equal(some.hidden, whole.hidden[[0, 5, 6]])
    cache = model.new_cache()
    assert model.forward(TOKENS, cache, rows=()).logits.shape == (0, LLAMA.vocab)
    assert cache.n_past == len(TOKENS)


@pytest.mark.parametrize("rows", ["first", [1, 1], [2, 1], [-1], [len(TOKENS)]])
def test_rows_that_mean_nothing_are_refused(rows: Any, load: Load) -> None:
    model = load(LLAMA)
    with pytest.raises(UsageError, match="rows"):
        model.forward(TOKENS, model.new_cache(), rows=rows)


def test_a_batch_longer_than_a_chunk_has_the_same_bits(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load(Recipe("gemma3"))
    whole = model.forward(TOKENS * 3, model.new_cache(), rows=[0, 7, 8, 35])
    seen: list[tuple[int, int]] = []
    monkeypatch.setattr(model_module, "CHUNK", 8)
    parts = model.forward(TOKENS * 3, model.new_cache(), rows=[0, 7, 8, 35], progress=lambda *at: seen.append(at))
    assert np.array_equal(parts.logits, whole.logits)
    assert np.array_equal(parts.hidden, whole.hidden)
    assert seen == [(0, 36), (8, 36), (16, 36), (24, 36), (32, 36)]


def test_a_cache_that_was_cut_back_forgets(load: Load) -> None:
    model = load(LLAMA, kv=KvOptions("q8_0", "q8_0"))
    expected = model.forward(TOKENS, model.new_cache()).logits
    cache = model.new_cache()
    model.forward(TOKENS[:5], cache)
    model.forward([200, 201, 202], cache)
    cache.truncate(5)
    assert np.array_equal(model.forward(TOKENS[5:], cache).logits, expected)


def test_results_stay_as_they_are_when_more_is_computed(load: Load) -> None:
    model = load(LLAMA)
    cache = model.new_cache()
    first = model.forward(TOKENS, cache)
    logits, hidden = first.logits.copy(), first.hidden.copy()
    model.forward(TOKENS, cache)
    assert np.array_equal(first.logits, logits)
    assert np.array_equal(first.hidden, hidden)


def test_a_token_beyond_the_context_is_refused_and_nothing_is_lost(load: Load) -> None:
    model = load(LLAMA, n_ctx=14)
    cache = model.new_cache()
    model.forward(TOKENS, cache)
    with pytest.raises(ContextFull, match=r"12 of 14 positions are taken and 3 more are needed; nothing is shifted"):
        model.forward([1, 2, 3], cache)
    assert cache.n_past == 12
    expected = model.forward([*TOKENS, 1, 2], model.new_cache()).logits
    assert np.array_equal(model.forward([1, 2], cache).logits, expected)
    with pytest.raises(ContextFull):
        model.forward([3], cache)


@pytest.mark.parametrize("token", [-1, LLAMA.vocab])
def test_a_token_outside_the_vocabulary_is_named(token: int, load: Load) -> None:
    model = load(LLAMA)
    with pytest.raises(EngineError, match=f"Token {token} is not in the vocabulary of {LLAMA.vocab} tokens"):
        model.forward([1, token], model.new_cache())


def test_no_tokens_are_refused(load: Load) -> None:
    model = load(LLAMA)
    with pytest.raises(UsageError, match="no tokens"):
        model.forward([], model.new_cache())


@pytest.mark.parametrize("n_ctx", [-1, CONTEXT + 1])
def test_a_context_beyond_the_trained_one_is_refused(n_ctx: int, load: Load) -> None:
    with pytest.raises(UsageError, match=f"trained for {CONTEXT} positions"):
        load(LLAMA, n_ctx=n_ctx)


@pytest.mark.parametrize("layers", [range(2, 4), range(1, 1), range(-1, 2), range(0, 3, 2)])
def test_layers_that_are_not_there_are_refused(layers: range, load: Load) -> None:
    with pytest.raises(UsageError, match="the model has layers 0-2"):
        load(LLAMA, layers=layers)


def test_some_layers_are_loaded_and_run_alone(model_file: Write) -> None:
    """The first two layers of a model of three are a model of two; the last one of three needs only itself."""
    two = model_file(Recipe("llama", layers=2), "two")
    whole = model_file(LLAMA, "three")
    seen: list[str] = []
    with (
        Model.load(two, make_backend("float")) as expected,
        Model.load(whole, make_backend("float"), layers=range(2), progress=lambda *at: seen.append(at[2])) as found,
    ):
        assert found.layers == (0, 1)
        both = [model.forward(TOKENS, model.new_cache()).logits for model in (expected, found)]
    assert np.array_equal(both[0], both[1])
    assert not [name for name in seen if name.startswith("blk.2.")]
    assert "blk.1.ffn_down.weight" in seen
    numbers: list[int] = []
    with Model.load(whole, make_backend("float"), layers=range(2, 3)) as last:
        last.forward(TOKENS, last.new_cache(), trace=lambda name, layer, array: numbers.append(layer))
    assert set(numbers) == {-1, 2}


def test_a_damaged_layer_that_is_not_loaded_does_no_harm(tmp_path: Path) -> None:
    class WithoutLayer2(Recipe):
        def shapes(self) -> dict[str, tuple[int, ...]]:
            return {name: dims for name, dims in super().shapes().items() if name != "blk.2.ffn_down.weight"}

    path = tmp_path / "m.gguf"
    path.write_bytes(WithoutLayer2("llama").file())
    with pytest.raises(GgufError, match=r"'blk\.2\.ffn_down\.weight' of \[160, 96\] is missing"):
        Model.load(path, make_backend("float"))
    with Model.load(path, make_backend("float"), layers=range(2)) as model:
        model.forward(TOKENS, model.new_cache())


def test_a_shape_of_another_model_is_refused_with_both_shapes(tmp_path: Path) -> None:
    class Wider(Recipe):
        def shapes(self) -> dict[str, tuple[int, ...]]:
            return {**super().shapes(), "blk.1.ffn_up.weight": (96, 192)}

    path = tmp_path / "m.gguf"
    path.write_bytes(Wider("llama").file())
    with pytest.raises(GgufError, match=r"'blk\.1\.ffn_up\.weight' has dims \[96, 192\]; \[96, 160\]"):
        Model.load(path, make_backend("float"))


def test_a_vocabulary_of_another_size_than_the_embedding_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = craft.key_array("tokenizer.ggml.tokens", craft.STRING, [str(n) for n in range(LLAMA.vocab - 1)])
    monkeypatch.setattr("tests.gguf.random_models._vocabulary_keys", lambda: [texts])
    path = tmp_path / "m.gguf"
    path.write_bytes(LLAMA.file())
    with pytest.raises(
        GgufError, match=rf"'token_embd\.weight' has dims \[96, {LLAMA.vocab}\]; \[96, {LLAMA.vocab - 1}\]"
    ):
        Model.load(path, make_backend("float"))


def test_progress_counts_the_bytes_of_what_is_loaded(model_file: Write) -> None:
    path = model_file(Recipe("llama", kind=craft.GGML_Q8_0))
    seen: list[tuple[int, int, str]] = []
    with Model.load(path, make_backend("float"), progress=lambda *at: seen.append(at)):
        pass
    done = [at for at, _, _ in seen]
    assert done == sorted(done)
    with open_gguf(path) as file:
        assert {total for _, total, _ in seen} == {file.tensor_bytes}
        assert {name for *_, name in seen} == set(file.tensors)


def test_the_trace_shows_every_step_of_every_layer_once(load: Load) -> None:
    model = load(Recipe("gemma3", layers=2))
    seen: list[tuple[str, int]] = []
    kept: dict[tuple[str, int], NDArray[np.float32]] = {}

    def trace(name: str, layer: int, array: NDArray[np.float32]) -> None:
        seen.append((name, layer))
        kept[name, layer] = array.copy()

    out = model.forward(TOKENS, model.new_cache(), rows="all", trace=trace)
    assert len(seen) == len(set(seen))
    steps = [name for name, layer in seen if layer == 1]
    assert steps == [name for name, layer in seen if layer == 0]
    assert steps[0] == "attn_norm"
    assert steps[-1] == "l_out"
    assert kept["l_out", 1].shape == (len(TOKENS), model.n_embd)
    assert np.array_equal(kept["result_output", -1], out.logits)
    assert np.array_equal(kept["result_norm", -1], out.hidden)


def spoiled(raw: bytes, path: Path, name: str, row: int, value: float = float("nan")) -> Path:
    """The file with one element in a row of an F32 tensor overwritten."""
    path.write_bytes(raw)
    with open_gguf(path) as file:
        tensor = file.tensors[name]
        at = tensor.data_at + row * tensor.row_bytes + 20
    data = bytearray(raw)
    data[at : at + 4] = np.float32(value).tobytes()
    path.write_bytes(bytes(data))
    return path


@pytest.mark.parametrize("name", ["blk.1.attn_norm.weight", "output_norm.weight", "blk.0.attn_q.bias"])
def test_nan_in_a_vector_is_refused_on_loading(name: str, tmp_path: Path) -> None:
    path = spoiled(Recipe("llama", frozenset({"biases"})).file(), tmp_path / "m.gguf", name, 0)
    with pytest.raises(NotFinite, match=f"Tensor '{name}' holds NaN or Inf at element 5"):
        Model.load(path, make_backend("float"))


@pytest.mark.parametrize("backend", ["float", "npu:w8a8-per-channel"])
@pytest.mark.parametrize("name", ["blk.2.ffn_down.weight", "blk.0.attn_v.weight", "token_embd.weight"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_nan_or_inf_in_a_matrix_names_the_tensor_and_the_row(
    name: str, backend: str, value: float, tmp_path: Path
) -> None:
    path = spoiled(LLAMA.file(), tmp_path / "m.gguf", name, 7, value)
    with pytest.raises(NotFinite) as caught, Model.load(path, make_backend(backend)) as model:
        model.forward([1, 2, 7], model.new_cache())
    assert name in str(caught.value)
    assert "row 7" in str(caught.value)


@pytest.mark.parametrize("kernels", ["auto", None])
@pytest.mark.parametrize("backend", ["float", "npu:w8a8-per-channel"])
def test_activations_that_overflow_name_layer_and_step_and_leave_the_cache(
    backend: str, kernels: Any, tmp_path: Path
) -> None:
    """FFN weights of 1e30: their product with a token that is not 0 overflows in layer 1, and nowhere before."""

    class Huge(Recipe):
        def weights(self) -> Any:
            raise NotImplementedError

        def file(self) -> bytes:
            raw = bytearray(super().file())
            path = tmp_path / "plain.gguf"
            path.write_bytes(raw)
            with open_gguf(path) as file:
                for name in ("blk.1.ffn_up.weight", "blk.1.ffn_gate.weight"):
                    tensor = file.tensors[name]
                    huge = np.frombuffer(tensor.data(), "<f4") * np.float32(1e25)
                    raw[tensor.data_at : tensor.data_at + tensor.n_bytes] = huge.tobytes()
            return bytes(raw)

    path = tmp_path / "m.gguf"
    path.write_bytes(Huge("llama").file())
    with Model.load(path, make_backend(backend, kernels=kernels)) as model:
        cache = model.new_cache()
        with pytest.raises(NotFinite) as caught:
            model.forward(TOKENS, cache)
        assert cache.n_past == 0
    said = str(caught.value)
    assert "layer 1" in said or "blk.1.ffn_down" in said
    assert "overflow" in said


@pytest.mark.parametrize("name", ["rope_factors_long.weight", "rope_factors_short.weight"])
def test_factors_by_context_length_are_refused(name: str, tmp_path: Path) -> None:
    class LongFactors(Recipe):
        def shapes(self) -> dict[str, tuple[int, ...]]:
            return {**super().shapes(), name: (16,)}

    path = tmp_path / "m.gguf"
    path.write_bytes(LongFactors("llama").file())
    with pytest.raises(EngineError, match=f"'{name}'.*not supported"):
        Model.load(path, make_backend("float"))
