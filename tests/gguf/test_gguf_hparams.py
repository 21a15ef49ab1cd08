# SPDX-License-Identifier: Apache-2.0
"""Hyper-parameters and shapes: sound models pass with the right defaults, each fault is refused by the key's name."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_engine.gguf_file import GgufError, open_gguf
from reference_engine.gguf_hparam_table import ARCHITECTURES
from reference_engine.gguf_hparams import HparamCheck, Hparams, check_hparams, load_hparams
from reference_engine.gguf_shapes import check_shapes, unknown_tensors
from tests.gguf import crafted_gguf as craft
from tests.gguf import tiny_models

Write = Callable[..., Path]
NAMES = sorted(tiny_models.HEAD)


def check(write: Write, raw: bytes) -> HparamCheck:
    with open_gguf(write(raw)) as model:
        return check_hparams(model)


def with_keys(architecture: str, *entries: tuple[str, bytes | None]) -> bytes:
    """The tiny model with keys replaced, added, or (None) left out; ``@`` stands for the architecture."""
    keys = tiny_models.keys_of(architecture)
    for name, entry in entries:
        full = name.replace("@", architecture)
        if entry is None:
            del keys[full]
        else:
            keys[full] = entry
    return tiny_models.assemble(keys, tiny_models.tensors_of(architecture))


def integer(name: str, value: int) -> tuple[str, bytes]:
    return name, craft.key_u32(name.replace("@", "llama"), value)


def number(name: str, value: float) -> tuple[str, bytes]:
    return name, craft.key_f32(name.replace("@", "llama"), value)


def integers(name: str, values: list[int]) -> tuple[str, bytes]:
    return name, craft.key_array(name.replace("@", "llama"), craft.U32, values)


def test_the_tiny_models_cover_every_architecture_of_the_table() -> None:
    assert set(ARCHITECTURES) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", [craft.GGML_F32, craft.GGML_Q8_0])
def test_a_sound_model_passes(name: str, kind: int, written: Write) -> None:
    with open_gguf(written(tiny_models.model(name, kind))) as model:
        hparams = load_hparams(model)
        assert check_hparams(model).warnings == ()
        assert check_shapes(model, hparams) == ()
        assert unknown_tensors(model, hparams) == ()
        assert (hparams.architecture, hparams.n_layer, hparams.n_embd, hparams.n_vocab) == (name, 2, 64, 8)
        assert hparams.layers("attention.head_count") == (4, 4)
        assert hparams.layers("attention.head_count_kv") == (2, 2)
        assert hparams.layers("feed_forward_length") == (96, 96)
        assert hparams.integer("attention.key_length") == tiny_models.HEAD[name]
        assert hparams.number("attention.layer_norm_rms_epsilon") == pytest.approx(1e-6)


def loaded(write: Write, raw: bytes) -> Hparams:
    with open_gguf(write(raw)) as model:
        return load_hparams(model)


def test_absent_keys_take_llama_cpp_defaults(written: Write) -> None:
    raw = with_keys("llama", ("@.attention.head_count_kv", None), ("@.rope.freq_base", None))
    hparams = loaded(written, raw)
    assert hparams.layers("attention.head_count_kv") == (4, 4)
    assert hparams.number("rope.freq_base") == 10000.0
    assert hparams.integer("attention.value_length") == 16
    assert hparams.integer("rope.dimension_count") == 16
    assert hparams.number("rope.scaling.factor") == 1.0
    assert hparams.integer("rope.scaling.original_context_length") == 128
    assert hparams.values["attention.scale"] is None


def test_the_old_linear_scale_stands_in_for_the_factor(written: Write) -> None:
    hparams = loaded(written, with_keys("llama", number("@.rope.scale_linear", 4.0)))
    assert hparams.number("rope.scaling.factor") == 4.0


def test_gemma_windows_default_as_in_llama_cpp(written: Write) -> None:
    gemma3 = loaded(written, tiny_models.model("gemma3"))
    assert gemma3.values["attention.sliding_window_pattern"] == (True, True)
    assert gemma3.number("rope.freq_base_swa") == 10000.0
    keys = tiny_models.keys_of("gemma2")
    del keys["gemma2.attention.sliding_window"]
    gemma2 = loaded(written, tiny_models.assemble(keys, tiny_models.tensors_of("gemma2")))
    assert gemma2.integer("attention.sliding_window") == 4096


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (craft.key_u32("gemma3.attention.sliding_window_pattern", 2), (True, False)),
        (craft.key_array("gemma3.attention.sliding_window_pattern", craft.BOOL, [0, 1]), (False, True)),
    ],
    ids=["period", "one for each layer"],
)
def test_window_pattern_is_a_period_or_an_array(entry: bytes, expected: tuple[bool, ...], written: Write) -> None:
    keys = tiny_models.keys_of("gemma3") | {"gemma3.attention.sliding_window_pattern": entry}
    hparams = loaded(written, tiny_models.assemble(keys, tiny_models.tensors_of("gemma3")))
    assert hparams.values["attention.sliding_window_pattern"] == expected


def test_values_may_differ_between_layers(written: Write) -> None:
    keys = dict([integers("@.attention.head_count_kv", [2, 4]), integers("@.feed_forward_length", [96, 32])])
    keys = tiny_models.keys_of("llama") | {name.replace("@", "llama"): entry for name, entry in keys.items()}
    tensors = tiny_models.tensors_of("llama")
    tensors["blk.1.attn_k.weight"] = tensors["blk.1.attn_v.weight"] = (64, 64)
    tensors["blk.1.ffn_gate.weight"] = tensors["blk.1.ffn_up.weight"] = (64, 32)
    tensors["blk.1.ffn_down.weight"] = (32, 64)
    with open_gguf(written(tiny_models.assemble(keys, tensors))) as model:
        hparams = load_hparams(model)
        assert hparams.layers("attention.head_count_kv") == (2, 4)
        assert check_shapes(model, hparams) == ()


FAULTS: list[tuple[str, tuple[str, bytes | None], str, str]] = [
    ("no layer", integer("@.block_count", 0), "NPU-F029", "llama.block_count"),
    ("too many layers", integer("@.block_count", 2**31), "NPU-F029", "llama.block_count"),
    ("no width", integer("@.embedding_length", 0), "NPU-F029", "llama.embedding_length"),
    ("no context", integer("@.context_length", 0), "NPU-F029", "llama.context_length"),
    ("no ffn", integer("@.feed_forward_length", 0), "NPU-F029", "llama.feed_forward_length"),
    ("zero heads", integer("@.attention.head_count", 0), "NPU-F029", "llama.attention.head_count"),
    ("zero KV heads", integer("@.attention.head_count_kv", 0), "NPU-F029", "llama.attention.head_count_kv"),
    ("zero heads in one layer", integers("@.attention.head_count", [4, 0]), "NPU-F029", "head_count'[1]"),
    ("ragged heads", integer("@.attention.head_count", 6), "NPU-F029", "llama.attention.head_count"),
    ("ragged KV heads", integer("@.attention.head_count_kv", 3), "NPU-F029", "llama.attention.head_count_kv"),
    ("more KV heads than heads", integer("@.attention.head_count_kv", 8), "NPU-F029", "head_count_kv"),
    ("ragged KV heads in one layer", integers("@.attention.head_count_kv", [2, 3]), "NPU-F029", "(layer 1)"),
    ("array too short", integers("@.attention.head_count_kv", [2]), "NPU-F029", "head_count_kv"),
    ("array too long", integers("@.feed_forward_length", [96] * 3), "NPU-F029", "feed_forward_length"),
    ("heads differ, no key length", integers("@.attention.head_count", [4, 8]), "NPU-F029", "attention.key_length"),
    ("odd rope", integer("@.rope.dimension_count", 15), "NPU-F029", "llama.rope.dimension_count"),
    ("rope wider than the head", integer("@.rope.dimension_count", 18), "NPU-F029", "llama.rope.dimension_count"),
    ("rope over part of the head", integer("@.rope.dimension_count", 8), "NPU-F029", "llama.rope.dimension_count"),
    ("value length differs", integer("@.attention.value_length", 8), "NPU-F029", "llama.attention.value_length"),
    ("epsilon 0", number("@.attention.layer_norm_rms_epsilon", 0.0), "NPU-F029", "layer_norm_rms_epsilon"),
    ("epsilon NaN", number("@.attention.layer_norm_rms_epsilon", math.nan), "NPU-F029", "layer_norm_rms_epsilon"),
    ("rope base infinite", number("@.rope.freq_base", math.inf), "NPU-F029", "llama.rope.freq_base"),
    ("rope base negative", number("@.rope.freq_base", -1.0), "NPU-F029", "llama.rope.freq_base"),
    ("rope factor 0", number("@.rope.scaling.factor", 0.0), "NPU-F029", "llama.rope.scaling.factor"),
    ("experts", integer("@.expert_count", 8), "NPU-F030", "mixtures of experts"),
    ("next-token layers", integer("@.nextn_predict_layers", 1), "NPU-F030", "nextn_predict_layers"),
    (
        "unknown scaling",
        ("@.rope.scaling.type", craft.key_text("llama.rope.scaling.type", "su")),
        "NPU-F029",
        "linear, yarn",
    ),
    (
        "text for a number",
        ("@.block_count", craft.key_text("llama.block_count", "2")),
        "NPU-F027",
        "llama.block_count",
    ),
    ("float for an integer", number("@.block_count", 2.0), "NPU-F027", "llama.block_count"),
    (
        "boolean for an integer",
        ("@.block_count", craft.key("llama.block_count", craft.BOOL, b"\1")),
        "NPU-F027",
        "block_count",
    ),
    (
        "strings for integers",
        (
            "@.attention.head_count",
            craft.key_array("llama.attention.head_count", craft.STRING, ["4", "4"]),
        ),
        "NPU-F027",
        "llama.attention.head_count",
    ),
    (
        "scores for other tokens",
        ("tokenizer.ggml.scores", craft.key_array("tokenizer.ggml.scores", craft.F32, [0.0] * 7)),
        "NPU-F029",
        "tokenizer.ggml.scores",
    ),
    (
        "tokens that are no array",
        ("tokenizer.ggml.tokens", craft.key_text("tokenizer.ggml.tokens", "abc")),
        "NPU-F027",
        "tokenizer.ggml.tokens",
    ),
    *(
        (f"no {key}", (f"@.{key}", None), "NPU-F028", f"llama.{key}")
        for key in (
            "block_count",
            "context_length",
            "embedding_length",
            "feed_forward_length",
            "attention.head_count",
            "attention.layer_norm_rms_epsilon",
        )
    ),
    ("no architecture", ("general.architecture", None), "NPU-F028", "general.architecture"),
]


@pytest.mark.parametrize(("entry", "code", "word"), [fault[1:] for fault in FAULTS], ids=[fault[0] for fault in FAULTS])
def test_a_faulty_key_is_refused_by_name(entry: tuple[str, bytes | None], code: str, word: str, written: Write) -> None:
    found = check(written, with_keys("llama", entry))
    assert found.hparams is None
    assert [(problem.code, word in problem.message) for problem in found.problems] == [(code, True)], found.problems
    assert (found.problems[0].offset is None) == (code == "NPU-F028")
    assert found.problems[0].path is not None
    with open_gguf(written(with_keys("llama", entry))) as model, pytest.raises(GgufError) as caught:
        load_hparams(model)
    assert caught.value.code == code


def test_all_faulty_keys_are_found_at_once(written: Write) -> None:
    raw = with_keys(
        "llama", integer("@.context_length", 0), ("@.embedding_length", None), number("@.rope.freq_base", 0)
    )
    assert sorted(problem.code for problem in check(written, raw).problems) == ["NPU-F028", "NPU-F029", "NPU-F029"]


def test_the_offset_is_that_of_the_key(written: Write) -> None:
    raw = with_keys("llama", integer("@.attention.head_count", 0))
    (problem,) = check(written, raw).problems
    assert problem.offset == raw.index(craft.key_u32("llama.attention.head_count", 0))


@pytest.mark.parametrize(("n_rot", "sound"), [(8, True), (16, True), (18, False)])
def test_qwen_may_turn_part_of_the_head_but_no_more_than_it(n_rot: int, sound: bool, written: Write) -> None:
    name = "qwen2.rope.dimension_count"
    keys = tiny_models.keys_of("qwen2") | {name: craft.key_u32(name, n_rot)}
    found = check(written, tiny_models.assemble(keys, tiny_models.tensors_of("qwen2")))
    assert (found.hparams is not None) == sound
    assert [problem.code for problem in found.problems] == ([] if sound else ["NPU-F029"])


def test_an_unknown_architecture_is_named_and_no_error_of_the_file(written: Write) -> None:
    raw = with_keys("llama", ("general.architecture", craft.key_text("general.architecture", "mam\x1b[31mba")))
    (problem,) = check(written, raw).problems
    assert problem.code == "NPU-F030"
    assert problem.is_warning
    assert "'mam?[31mba'" in problem.message


def test_a_special_token_beyond_the_vocabulary_is_a_warning(written: Write) -> None:
    found = check(written, with_keys("llama", integer("tokenizer.ggml.bos_token_id", 8)))
    assert found.hparams is not None
    assert [warning.code for warning in found.warnings] == ["NPU-F035"]
    assert "bos_token_id" in found.warnings[0].message


def test_a_model_without_tokens_takes_the_size_from_key_or_embedding(written: Write) -> None:
    bare = ("tokenizer.ggml.tokens", None)
    assert loaded(written, with_keys("llama", bare)).n_vocab == 8
    assert loaded(written, with_keys("llama", bare, integer("@.vocab_size", 5))).n_vocab == 5


@pytest.mark.parametrize("name", NAMES)
def test_each_missing_tensor_is_named(name: str, written: Write) -> None:
    # Biases; gemma4 without attn_v takes V from K, and without a scale it scales by 1.
    optional = {"attn_q.bias", "attn_k.bias", "attn_v.bias"}
    if name == "gemma4":
        optional |= {"layer_output_scale.weight", "attn_v.weight"}
    for missing in tiny_models.tensors_of(name):
        tensors = {k: dims for k, dims in tiny_models.tensors_of(name).items() if k != missing}
        with open_gguf(written(tiny_models.assemble(tiny_models.keys_of(name), tensors))) as model:
            problems = check_shapes(model, load_hparams(model))
            if missing.split(".", 2)[-1] in optional:
                assert problems == ()
                continue
            assert [(p.code, f"'{missing}'" in p.message) for p in problems] == [("NPU-F031", True)]


@pytest.mark.parametrize("name", NAMES)
def test_each_wrong_shape_is_named(name: str, written: Write) -> None:
    for wrong, dims in tiny_models.tensors_of(name).items():
        tensors = tiny_models.tensors_of(name) | {wrong: (dims[0], *(dim + 1 for dim in dims[1:]), 2)[: len(dims) + 1]}
        with open_gguf(written(tiny_models.assemble(tiny_models.keys_of(name), tensors))) as model:
            problems = check_shapes(model, load_hparams(model))
            assert [(p.code, f"'{wrong}'" in p.message) for p in problems] == [("NPU-F032", True)]
            assert problems[0].offset == model.tensors[wrong].header_at


def test_trailing_dimensions_of_one_are_the_same_shape(written: Write) -> None:
    tensors = tiny_models.tensors_of("llama") | {"output_norm.weight": (64, 1, 1)}
    with open_gguf(written(tiny_models.assemble(tiny_models.keys_of("llama"), tensors))) as model:
        assert check_shapes(model, load_hparams(model)) == ()


def test_only_the_layers_asked_for_are_checked(written: Write) -> None:
    tensors = tiny_models.tensors_of("llama")
    del tensors["blk.1.attn_q.weight"]
    with open_gguf(written(tiny_models.assemble(tiny_models.keys_of("llama"), tensors))) as model:
        hparams = load_hparams(model)
        assert check_shapes(model, hparams, range(1)) == ()
        assert len(check_shapes(model, hparams, range(1, 2))) == 1


def test_tensors_of_no_table_are_listed(written: Write) -> None:
    tensors = tiny_models.tensors_of("qwen3") | {"blk.0.attn_q.bias": (128,), "blk.2.attn_norm.weight": (64,)}
    with open_gguf(written(tiny_models.assemble(tiny_models.keys_of("qwen3"), tensors))) as model:
        hparams = load_hparams(model)
        assert check_shapes(model, hparams) == ()
        assert unknown_tensors(model, hparams) == ("blk.0.attn_q.bias", "blk.2.attn_norm.weight")


@settings(max_examples=150, deadline=None)
@given(
    heads=st.integers(0, 12),
    kv_heads=st.integers(0, 12),
    embd=st.integers(0, 96),
    n_rot=st.none() | st.integers(0, 40),
    key_length=st.none() | st.integers(0, 40),
)
def test_what_is_accepted_can_be_computed_and_what_is_refused_cannot(
    *, heads: int, kv_heads: int, embd: int, n_rot: int | None, key_length: int | None, written: Write
) -> None:
    entries = [
        integer("@.attention.head_count", heads),
        integer("@.attention.head_count_kv", kv_heads),
        integer("@.embedding_length", embd),
    ]
    if n_rot is not None:
        entries.append(integer("@.rope.dimension_count", n_rot))
    if key_length is not None:
        entries += [integer("@.attention.key_length", key_length), integer("@.attention.value_length", key_length)]
    hparams = check(written, with_keys("llama", *entries)).hparams
    possible = heads > 0 and kv_heads > 0 and embd > 0 and heads % kv_heads == 0
    if possible:
        head = key_length if key_length is not None else embd // heads if embd % heads == 0 else 0
        turned = n_rot if n_rot is not None else head
        possible = head > 0 and turned == head and turned % 2 == 0
    assert (hparams is not None) == possible
