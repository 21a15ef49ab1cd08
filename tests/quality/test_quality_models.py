# SPDX-License-Identifier: Apache-2.0
"""Whole comparisons on small models: against plain arithmetic on their logits, and as a user starts them."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from reference_engine.__main__ import main
from reference_engine.backends import make_backend
from reference_engine.commands.compare import backend_list, kv_list
from reference_engine.gguf_file import open_gguf
from reference_engine.model import KvOptions, Model
from reference_engine.quality import evaluate as evaluating
from reference_engine.quality.evaluate import Text, cut, evaluate, noise_floor
from reference_engine.quality.kv import KvTask, compare_kv
from reference_engine.tokenizer import load_tokenizer
from tests.gguf import crafted_gguf as craft
from tests.gguf.random_models import Recipe
from tests.quality.conftest import Load
from tests.real_model import need_model

TOKENS = [int(value) for value in np.random.default_rng(3).integers(0, 200, 90)]
PROSE = Path(__file__).with_name("prose.txt")
IDS = ",".join(map(str, TOKENS))
F64 = NDArray[np.float64]


def softmax(logits: NDArray[np.float32]) -> F64:
    weights = np.exp(logits.astype(np.float64) - logits.max())
    return np.asarray(weights / weights.sum())


def test_distances_are_those_of_the_logits(load: Load) -> None:
    models = [load("float"), load("npu:w8a8-segment")]
    text = cut(TOKENS, 40, None, skip=3)
    (_, found) = evaluate([("a", models[0]), ("b", models[1])], text)
    expected = []
    for chunk in text.chunks:
        whole = [model.forward(chunk, model.new_cache(), rows="all").logits for model in models]
        for row in range(3, len(chunk)):
            p, q = softmax(whole[0][row]), softmax(whole[1][row])
            following = chunk[row + 1] if row + 1 < len(chunk) else None
            expected.append(
                (
                    float((p * np.log(p / q)).sum()),
                    p.argmax() == q.argmax(),
                    math.nan if following is None else -math.log(q[following]),
                )
            )
    rows = found.rows
    assert rows.kl == pytest.approx([kl for kl, _, _ in expected], abs=1e-12)
    assert rows.same_top.tolist() == [top for _, top, _ in expected]
    assert rows.surprise == pytest.approx([surprise for _, _, surprise in expected], nan_ok=True)


def test_slices_change_nothing(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are computed in pieces to bound memory; a piece of 7 gives what one of all gives."""
    models = [("a", load("float")), ("b", load("npu:w8a8-per-channel"))]
    text = cut(TOKENS, 50, None, skip=9)
    results = []
    for most in (256, 7):
        monkeypatch.setattr(evaluating, "MAX_SLICE", most)
        results.append(evaluate(models, text)[1])
    assert np.array_equal(results[0].rows.kl, results[1].rows.kl)
    assert np.array_equal(results[0].rows.surprise, results[1].rows.surprise, equal_nan=True)
    for one, other in zip(results[0].layers.as_json(), results[1].layers.as_json(), strict=True):
        assert one["nmse"] == pytest.approx(other["nmse"])


def test_errors_by_layer_are_those_of_the_traces(load: Load) -> None:
    models = [load("float"), load("npu:w4a4-hadamard")]
    kept: list[dict[int, NDArray[np.float32]]] = []
    for model in models:
        seen: dict[int, NDArray[np.float32]] = {}

        def trace(name: str, layer: int, array: NDArray[np.float32], into: Any = seen) -> None:
            if name == "l_out":
                into[layer] = array.copy()

        model.forward(TOKENS[:20], model.new_cache(), rows="all", trace=trace)
        kept.append(seen)
    (_, found) = evaluate([("a", models[0]), ("b", models[1])], Text((tuple(TOKENS[:20]),)))
    assert [row["layer"] for row in found.layers.as_json()] == [0, 1]
    for row in found.layers.as_json():
        a, b = (side[int(row["layer"] or 0)].astype(np.float64) for side in kept)
        assert row["nmse"] == pytest.approx(((a - b) ** 2).sum() / (a**2).sum())


def test_a_model_has_no_distance_from_itself(load: Load) -> None:
    model = load("npu:w8a8-rank-one")
    (_, found) = evaluate([("a", model), ("b", model)], Text((tuple(TOKENS[:60]),)))
    assert not found.rows.kl.any()
    assert {row["nmse"] for row in found.layers.as_json()} == {0.0}


@pytest.mark.parametrize("backend", ["float", "npu:w8a8-per-channel", "npu:w8a8-hadamard-rank-one"])
def test_noise_moves_the_model_and_batches_do_not(load: Load, backend: str) -> None:
    model = load(backend)
    ops = model.ops
    found = noise_floor(model, TOKENS[:40])
    assert model.ops is ops
    assert (found.alone, found.asked) == (8, 8)
    assert found.rows.kl.max() > 0
    # The same stream of noise again: the same floor.
    assert np.array_equal(noise_floor(model, TOKENS[:40]).rows.kl, found.rows.kl)
    assert not np.array_equal(noise_floor(model, TOKENS[:40], seed=2).rows.kl, found.rows.kl)


def test_a_pipeline_whose_rows_hang_together_is_found_out(load: Load) -> None:
    """One activation scale for a whole batch: rows alone have other bits."""
    assert noise_floor(load("npu:w8a8-per-tensor-both"), TOKENS[:40]).alone < 8


def test_worse_pipelines_are_further_away(load: Load) -> None:
    names = ["float", "npu:w16a16", "npu:w8a8-per-channel", "npu:w4a4"]
    outcomes = evaluate([(name, load(name)) for name in names], Text((tuple(TOKENS[:60]),)))
    half, eight, four = (outcome.rows.kl.mean() for outcome in outcomes[1:])
    assert 10 * half < eight < four / 10


@pytest.mark.parametrize("architecture", ["llama", "gemma3"])
def test_kv_types_lose_by_their_bits_and_take_their_bytes(load: Load, tmp_path: Path, architecture: str) -> None:
    """Gemma's windows of 12 keep a ring, which cannot always go back: it is filled anew then."""
    recipe = Recipe(architecture, kind=craft.GGML_Q8_0)
    path = tmp_path / "other.gguf"
    path.write_bytes(recipe.file())
    model = load("float", path, n_ctx=90)
    kinds = [KvOptions(kind, kind) for kind in ("f32", "f16", "q8_0", "q4_0")]
    found = compare_kv(model, KvTask(kinds, (60, 0, 20), TOKENS, 20))
    assert [(outcome.type_k, outcome.depth) for outcome in found] == [
        (kind, depth) for kind in ("f32", "f16", "q8_0", "q4_0") for depth in (0, 20, 60)
    ]
    at = {(outcome.type_k, outcome.depth): outcome for outcome in found}
    for depth in (0, 20, 60):
        assert not at["f32", depth].rows.kl.any()
        losses = [at[kind, depth].rows.kl.mean() for kind in ("f32", "f16", "q8_0", "q4_0")]
        assert losses == sorted(losses)
        row = 2 * recipe.kv_heads * recipe.head  # K and V of one token and layer
        sizes = [at[kind, depth].cache_bytes for kind in ("f32", "f16", "q8_0", "q4_0")]
        if architecture == "llama":
            tokens = (depth + 20) * recipe.n_layers
            assert sizes == [tokens * row * 4, tokens * row * 2, tokens * row * 34 // 32, tokens * row * 18 // 32]
        assert sizes[0] / sizes[1] == 2
    # The rows behind a depth are those of the whole text from its start on.
    whole = model.forward(TOKENS[:80], model.new_cache(), rows=range(60, 80)).logits
    base = softmax(whole[0])
    assert at["f16", 60].rows.surprise[0] == pytest.approx(-math.log(base[TOKENS[61]]), rel=1e-3)
    assert model.kv == KvOptions()


RANGES = {
    # KL mean and same top that were measured beforehand on SmolLM2 with other texts, with room for this one's
    "npu:w8a8-per-channel": ((0.02, 0.1), (0.8, 0.95)),
    "npu:w8a8-hadamard": ((0.002, 0.01), (0.92, 1.0)),
    "npu:w8a8-per-tensor-both": ((0.2, 1.5), (0.3, 0.75)),
    "npu:w4a4": ((4, 15), (0, 0.15)),
}


@pytest.mark.model
def test_pipelines_cost_what_was_measured_beforehand() -> None:
    path = need_model()
    tokenizer_file = open_gguf(path)
    tokens = load_tokenizer(tokenizer_file).encode(PROSE.read_text("utf-8"))[:160]
    tokenizer_file.close()
    with contextlib.ExitStack() as stack:
        models = []
        for name in ("float", *RANGES):
            backend = make_backend(name, threads=2)
            models.append((name, stack.enter_context(Model.load(path, backend, n_ctx=160, threads=2))))
        outcomes = evaluate(models, cut(tokens, 160, None))
    for outcome in outcomes[1:]:
        kl, same = outcome.rows.kl.mean(), outcome.rows.same_top.mean()
        (kl_low, kl_high), (same_low, same_high) = RANGES[outcome.name]
        assert kl_low < kl < kl_high, outcome.name
        assert same_low <= same <= same_high, outcome.name


Compare = Callable[..., tuple[int, Any]]


@pytest.fixture
def compare(model_file: Path, capsys: pytest.CaptureFixture[str]) -> Compare:
    """Runs the command; exit code and document, or exit code and page."""

    def run(*arguments: str) -> tuple[int, Any]:
        code = main(["compare", str(model_file), "--threads", "1", *arguments])
        out = capsys.readouterr().out
        return code, json.loads(out) if "--json" in arguments and out else out

    return run


def test_the_document_of_a_comparison(compare: Compare) -> None:
    code, document = compare(
        f"tokens:{IDS}", "--backends", "float,npu:w8a8-segment,cores=2,npu:w4a4", "--ctx", "45", "--json"
    )
    assert code == 0
    assert document["text"] == {"tokens": 90, "chunks": 2, "skip": 0, "rows": 90}
    reference, *others = document["backends"]
    assert reference["backend"] == "float"
    assert reference["saturation"] is None
    assert [other["backend"] for other in others] == ["npu:w8a8-segment,cores=2", "npu:w4a4"]
    for other in others:
        assert other["rows"] == 90
        assert other["kl_mean"]["value"] > 0
        assert other["kl_median"] <= other["kl_p99"] <= other["kl_max"]
        assert other["same_top"]["low"] <= other["same_top"]["value"] <= other["same_top"]["high"]
        assert [row["layer"] for row in other["layers"]] == [0, 1]
        assert other["saturation"]["elements"] > other["saturation"]["at_rim"] > 0
        assert other["floor"]["alone_rows_equal"] == 8
        ratio = other["perplexity"]["value"] / reference["perplexity"]["value"]
        assert other["perplexity_ratio"]["value"] == pytest.approx(ratio)


def test_the_page_names_what_it_compared(compare: Compare) -> None:
    code, page = compare(f"tokens:{IDS}", "--backends", "float,npu:w8a8-per-channel", "--ctx", "90")
    assert code == 0
    for words in (
        "Reference float: perplexity",
        "npu:w8a8-per-channel",
        "norms off by 1e-7",
        "8/8",
        "NMSE behind layer 0:",
    ):
        assert words in page


def test_integers_of_emulation_and_device_are_held_against_each_other(
    compare: Compare, mock_library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backends = f"npu:w8a8-per-channel,device:w8a8-per-channel,library={mock_library}"
    arguments = (f"tokens:{IDS}", "--backends", backends, "--ctx", "16", "--chunks", "2", "--matmuls", "--no-floor")
    code, document = compare(*arguments, "--json")
    other = document["backends"][1]
    assert code == 0
    assert other["matmuls"]["equal"] is True
    assert other["matmuls"]["compared"] == 2 * 15
    assert other["simulated"] is True
    monkeypatch.setenv("RKNN_MOCK_FAULTS", "off-by-one:row=2")
    code, document = compare(*arguments, "--json")
    found = document["backends"][1]["matmuls"]
    assert code == 1
    assert found["first"] == "blk.0.attn_q.weight"
    assert found["products_differ"] > 0
    code, page = compare(*arguments)
    assert code == 1
    assert "first blk.0.attn_q.weight" in page
    assert "SIMULATED" in page


@pytest.mark.parametrize("chosen", [("--backends", "float,npu:w8a8-per-channel"), ("--kv", "f32,f16")])
def test_matmuls_without_integers_are_refused(compare: Compare, chosen: tuple[str, str]) -> None:
    assert compare(f"tokens:{IDS}", *chosen, "--matmuls")[0] == 2


def test_a_limit_makes_the_exit_code(compare: Compare) -> None:
    arguments = (f"tokens:{IDS}", "--backends", "float,npu:w4a4", "--no-floor", "--max-kl")
    assert compare(*arguments, "1e-9")[0] == 1
    assert compare(*arguments, "100")[0] == 0


def test_kv_types_on_the_page(compare: Compare) -> None:
    code, page = compare(f"tokens:{IDS}", "--kv", "f32,q8_0/f16", "--depth", "0,100", "--judged", "30")
    assert code == 0
    assert "q8_0/f16" in page
    assert "begins anew 1 times" in page
    code, document = compare(f"tokens:{IDS}", "--kv", "f32,q4_0", "--depth", "8", "--judged", "8", "--json")
    assert [(row["type_k"], row["depth"], row["rows"]) for row in document["kv"]] == [("f32", 8, 8), ("q4_0", 8, 8)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("tokens:x",), "token ids are whole numbers"),
        (("tokens:1,2,3", "--backends", "float"), "one back end has nothing"),
        (("tokens:1,2,3", "--ctx", "2"), "--ctx is 2; it must be at least 3"),
        (("tokens:1,2,3", "--skip", "600"), "leave nothing to judge"),
        (("tokens:1",), "too few to judge"),
        (("tokens:1,2,3", "--backends", "float,npu:w9a9"), "no preset 'w9a9'"),
        (("tokens:1,2,3", "--ctx", "100000"), "trained for"),
        (("tokens:1,2,3", "--kv", "f16,q8_0", "--depth", "4000"), "trained for"),
    ],
)
def test_wrong_requests_are_refused_in_one_sentence(
    compare: Compare, capsys: pytest.CaptureFixture[str], model_file: Path, arguments: tuple[str, ...], said: str
) -> None:
    assert main(["compare", str(model_file), "--threads", "1", *arguments]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


def test_a_text_that_is_not_there_could_not_run(compare: Compare) -> None:
    assert compare("/nowhere.txt") == (3, "")


def test_the_text_may_stand_behind_an_option(compare: Compare) -> None:
    assert compare("--backends", "float,npu:w4a4", "--no-floor", f"tokens:{IDS}")[0] == 0


def test_lists_are_cut_where_a_new_name_begins() -> None:
    assert backend_list("float,npu:w4a4,cores=1,device:w4a4,library=/a,float") == [
        "float",
        "npu:w4a4,cores=1",
        "device:w4a4,library=/a",
        "float",
    ]
    assert kv_list("f16,q8_0/f16") == [("f16", "f16"), ("q8_0", "f16")]


@pytest.mark.parametrize(
    "text", ["--backends=float,,npu:w4a4", "--backends=device:a,device:b", "--kv=f17", "--depth=x"]
)
def test_wrong_lists_are_refused_by_the_parser(text: str, model_file: Path) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["compare", str(model_file), "tokens:1,2", text])
    assert caught.value.code == 2


def test_models_are_closed_when_a_later_one_fails(load: Load, model_file: Path, mock_library: Path) -> None:
    """The device's child and lock are given back: a second run can take them."""
    text = f"device:w8a8-per-channel,library={mock_library},npu:w9a9"
    for _ in range(2):
        assert main(["compare", str(model_file), "tokens:1,2,3", "--backends", text]) == 2
    assert isinstance(load(f"device:w8a8-per-channel,library={mock_library}"), Model)
