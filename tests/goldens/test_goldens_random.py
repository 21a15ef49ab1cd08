# SPDX-License-Identifier: Apache-2.0
"""Small random models of every architecture, with each option of real files, against llama.cpp with F32 weights."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reference_engine.backends import make_backend
from reference_engine.model import KvOptions, Model
from tests.gguf.random_models import ARCHITECTURES, OPTIONS, Recipe
from tests.goldens.golden_file import F32, nmse, nmse_by_row, read_golden, sample

GOLDEN = read_golden("random_models.json")
TOKENS: list[int] = GOLDEN["tokens"]
BAR = 1e-9
ONE_STEP_OF_THE_TABLE = 1e-7
"""Where an input of GELU lies next to the middle between two 16-bit floats, its last bit decides which entry of ggml's
table it gets; llama.cpp differs from itself in such rows, one batch against token by token (``peer_noise`` is over all
rows). In a small model most rows have none."""


def name_of(golden: dict[str, Any]) -> str:
    sizes = f"{golden['layers']}x{golden['embd']}"
    return "-".join([golden["architecture"], sizes, *golden["options"]]).replace(" ", "-")


def recipe_of(golden: dict[str, Any]) -> Recipe:
    sizes = {name: golden[name] for name in ("layers", "embd", "heads", "kv_heads")}
    return Recipe(golden["architecture"], frozenset(golden["options"]), **sizes)


def logits_of(path: Path, *, gelu_half_table: bool) -> F32:
    backend = make_backend("float", threads=1)
    kv = KvOptions("f32", "f32")
    with Model.load(path, backend, kv=kv, gelu_half_table=gelu_half_table) as model:
        return model.forward(TOKENS, model.new_cache(), rows="all").logits


def test_every_architecture_and_option_has_a_golden() -> None:
    seen = {(golden["architecture"], option) for golden in GOLDEN["models"] for option in golden["options"] or [""]}
    assert seen >= {(name, option) for name in ARCHITECTURES for option in ("", *OPTIONS[name])}


@pytest.mark.parametrize("golden", GOLDEN["models"], ids=name_of)
def test_logits_are_those_of_llama_cpp(golden: dict[str, Any], tmp_path: Path) -> None:
    raw = recipe_of(golden).file()
    assert hashlib.sha256(raw).hexdigest() == golden["sha256"], "the recipe writes another file than the peer was given"
    path = tmp_path / "model.gguf"
    path.write_bytes(raw)
    is_gemma = golden["architecture"].startswith("gemma")
    logits = logits_of(path, gelu_half_table=is_gemma)
    by_row = nmse_by_row(sample(logits, golden), golden)
    if is_gemma:
        assert np.median(by_row) <= BAR
        assert by_row.max() <= ONE_STEP_OF_THE_TABLE
    else:
        assert by_row.max() <= BAR
    assert logits.argmax(axis=1).tolist() == golden["top"]


@pytest.mark.parametrize("architecture", ["gemma2", "gemma3"])
def test_the_16_bit_table_of_gelu_is_what_divides_gemma_from_llama_cpp(architecture: str, tmp_path: Path) -> None:
    golden = next(g for g in GOLDEN["models"] if g["architecture"] == architecture and not g["options"])
    path = tmp_path / "model.gguf"
    path.write_bytes(recipe_of(golden).file())
    with_table, without = (
        nmse(sample(logits_of(path, gelu_half_table=half), golden), golden) for half in (True, False)
    )
    assert without > 10 * with_table


def test_one_weight_that_is_one_step_off_is_seen(tmp_path: Path) -> None:
    golden = next(g for g in GOLDEN["models"] if g["architecture"] == "llama" and not g["options"])
    recipe = recipe_of(golden)
    raw = bytearray(recipe.file())
    values = np.frombuffer(raw, dtype="<f4", offset=len(raw) - 4 * recipe.embd * recipe.ff)
    raw[-4:] = np.float32(values[-1] + recipe.weights()["blk.2.ffn_down.weight"].std() / 4).tobytes()
    path = tmp_path / "model.gguf"
    path.write_bytes(bytes(raw))
    assert nmse(sample(logits_of(path, gelu_half_table=False), golden), golden) > BAR
