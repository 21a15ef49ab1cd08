# SPDX-License-Identifier: Apache-2.0
"""gemma4, its MTP drafter, qwen35 and its nextn block with random weights against llama.cpp with the same F32 weights.

``llama_cpp_hybrids.json`` is a golden as tests/goldens has them; ``made`` in it says how llama.cpp was called. Next to
logits it holds samples of the hidden state that a drafter takes or gives. llama-quantize to F32 leaves
per_layer_model_proj of gemma4 in half floats, and llama.cpp then rounds what it is multiplied with: an NMSE of 4e-8 in
the input of every layer. Files for a comparison need every tensor in F32, as these have.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from reference_engine.backends import make_backend
from reference_engine.gguf_file import open_gguf
from reference_engine.model import KvOptions, Model
from reference_engine.speculation.engine_sequence import EngineSequence
from reference_engine.speculation.mtp import MtpHead
from reference_engine.speculation.mtp_head import head_of
from tests.goldens.golden_file import F32, MAGIC, VERSION, nmse, nmse_by_row, sample
from tests.hybrids.random_files import GEMMA4_OPTIONS, QWEN35_OPTIONS, Written, gemma4, gemma4_assistant, qwen35

Golden = dict[str, Any]
Rows = tuple[F32, F32]
"""Logits [rows, n_vocab] and hidden states [rows, n_embd]."""

GOLDEN: Golden = json.loads(Path(__file__).with_name("llama_cpp_hybrids.json").read_text(encoding="utf-8"))
TOKENS: list[int] = GOLDEN["tokens"]

QWEN35_BAR, QWEN35_ROW_BAR = 1e-11, 1e-9
GEMMA4_BAR, GEMMA4_ROW_BAR = 1e-8, 1e-6
"""With ggml's table of GELU in half floats. Where an input lies next to the middle between two of them, its last bit
decides which entry it gets: llama.cpp is as far from itself, one batch against token by token (``peer_noise``)."""


def of_kind(kind: str) -> list[Golden]:
    return [golden for golden in GOLDEN["models"] if golden["kind"] == kind]


def name_of(golden: Golden) -> str:
    return "-".join([golden["architecture"], *golden["options"]]).replace(" ", "-")


def one(kind: str, *options: str, architecture: str = "") -> Golden:
    found = [g for g in of_kind(kind) if g["options"] == list(options) and architecture in g["architecture"]]
    assert len(found) == 1
    return found[0]


class Bench:
    """Loads what a golden was made from, in this engine, and closes it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.opened: list[Model] = []

    def write(self, written: Written, sha256: str) -> Path:
        raw = written.file()
        assert hashlib.sha256(raw).hexdigest() == sha256, "the recipe writes another file than the peer was given"
        path = self.folder / f"{sha256}.gguf"
        path.write_bytes(raw)
        return path

    def load(self, written: Written, sha256: str, *, gelu_half_table: bool = True) -> Model:
        kv = KvOptions("f32", "f32")
        backend = make_backend("float", threads=1)
        path = self.write(written, sha256)
        self.opened.append(Model.load(path, backend, n_ctx=256, kv=kv, threads=1, gelu_half_table=gelu_half_table))
        return self.opened[-1]

    def trunk(self, golden: Golden, *, gelu_half_table: bool = True) -> Rows:
        recipe: Callable[..., Written] = {"gemma4": gemma4, "qwen35": qwen35}[golden["architecture"]]
        model = self.load(recipe(*golden["options"]), golden["sha256"], gelu_half_table=gelu_half_table)
        found = model.forward(TOKENS, model.new_cache(), rows="all")
        return found.logits, found.hidden

    def assistant(self, golden: Golden, *, gelu_half_table: bool = True, off: int = 0) -> Rows:
        """Two steps at each position of the golden; ``off``: a fault, the drafter stands that far before its place."""
        target = self.load(gemma4(*golden["options"]), golden["target_sha256"], gelu_half_table=gelu_half_table)
        sequence = EngineSequence(target)
        drafter = open_gguf(self.write(gemma4_assistant(), golden["sha256"]))
        head = head_of(target, drafter, make_backend("float", threads=1))(sequence)
        rows, at = [], 0
        for position in golden["positions"]:
            hidden = sequence.forward(TOKENS[at:position], at).hidden
            assert hidden is not None
            at, state = position, hidden[-1:]
            for token in TOKENS[position : position + 2]:
                logits, state = head.decode([token], state, position - off)
                rows.append((logits, state[0]))
        return stacked(rows)

    def nextn(self, golden: Golden, *, late: int = 1) -> Rows:
        """Each token with the trunk's hidden state of the one before it, or, a fault, of ``late`` before it."""
        model = self.load(qwen35(*golden["options"]), golden["sha256"])
        head: MtpHead = head_of(model, None, None)(EngineSequence(model))
        hidden = model.forward(TOKENS, model.new_cache(), rows="all").hidden
        before = np.concatenate((np.zeros_like(hidden[:late]), hidden[: len(TOKENS) - late]))
        steps = [head.decode([token], before[at : at + 1], at) for at, token in enumerate(TOKENS)]
        return stacked([(logits, states[0]) for logits, states in steps])


def stacked(rows: list[tuple[F32, F32]]) -> Rows:
    logits, hidden = zip(*rows, strict=True)
    return np.stack(logits), np.stack(hidden)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    for model in made.opened:
        model.close()


def parts(golden: Golden, rows: Rows) -> dict[str, tuple[NDArray[np.float64], Golden]]:
    """The samples of logits and of the hidden state, each with the golden to hold it against."""
    states = golden | {"columns": golden["hidden_columns"], "logits": golden["hidden"]}
    return {"logits": (sample(rows[0], golden), golden), "hidden": (sample(rows[1], states), states)}


def hold(golden: Golden, rows: Rows) -> None:
    is_gemma = golden["architecture"].startswith("gemma4")
    bar, row_bar = (GEMMA4_BAR, GEMMA4_ROW_BAR) if is_gemma else (QWEN35_BAR, QWEN35_ROW_BAR)
    for name, (found, expected) in parts(golden, rows).items():
        assert nmse(found, expected) <= bar, name
        assert nmse_by_row(found, expected).max() <= row_bar, name
    assert rows[0].argmax(axis=1).tolist() == golden["top"]


def distance(golden: Golden, rows: Rows) -> float:
    return nmse(*parts(golden, rows)["logits"])


def test_the_golden_says_what_it_is_and_covers_every_option() -> None:
    assert (GOLDEN["magic"], GOLDEN["version"]) == (MAGIC, VERSION)
    assert "llama.cpp b11434" in GOLDEN["made"]
    seen = {(g["architecture"], option) for g in GOLDEN["models"] for option in g["options"] or [""]}
    assert seen >= {("gemma4", option) for option in ("", *GEMMA4_OPTIONS)}
    assert seen >= {("qwen35", option) for option in ("", *QWEN35_OPTIONS)}
    assert seen >= {("gemma4-assistant", option) for option in ("", "shared", "k is v")}
    assert all(len(golden["top"]) > max(golden["rows"]) for golden in GOLDEN["models"])


@pytest.mark.parametrize("golden", of_kind("trunk"), ids=name_of)
def test_logits_and_hidden_state_are_those_of_llama_cpp(golden: Golden, bench: Bench) -> None:
    hold(golden, bench.trunk(golden))


@pytest.mark.parametrize("golden", of_kind("assistant"), ids=name_of)
def test_first_and_second_step_of_the_drafter_are_those_of_llama_cpp(golden: Golden, bench: Bench) -> None:
    hold(golden, bench.assistant(golden))


@pytest.mark.parametrize("golden", of_kind("nextn"), ids=name_of)
def test_the_nextn_block_is_that_of_llama_cpp(golden: Golden, bench: Bench) -> None:
    hold(golden, bench.nextn(golden))


def test_the_16_bit_table_of_gelu_is_what_divides_gemma4_and_its_drafter_from_llama_cpp(bench: Bench) -> None:
    trunk, assistant = one("trunk", architecture="gemma4"), one("assistant")
    for golden, run in ((trunk, bench.trunk), (assistant, bench.assistant)):
        with_table, without = (distance(golden, run(golden, gelu_half_table=half)) for half in (True, False))
        assert without > GEMMA4_BAR
        assert without > 10 * with_table


def test_a_drafter_that_stands_one_position_off_is_seen(bench: Bench) -> None:
    golden = one("assistant")
    golden = golden | {"positions": [position for position in golden["positions"] if position > 1]}
    rows = range(2, 2 + 2 * len(golden["positions"]))  # of the golden: those of position 1 come first
    found, expected = bench.assistant(golden, off=1), golden | {"logits": [golden["logits"][row] for row in rows]}
    by_row = nmse_by_row(found[0][:, golden["columns"]].astype(np.float64), expected | {"rows": rows})
    assert by_row.min() > GEMMA4_ROW_BAR


def test_a_nextn_block_with_hidden_states_one_token_late_is_seen(bench: Bench) -> None:
    golden = one("nextn", "nextn")
    assert distance(golden, bench.nextn(golden, late=2)) > 1e6 * QWEN35_BAR


def test_a_decay_that_is_a_thousandth_off_is_seen(bench: Bench) -> None:
    golden = one("trunk", architecture="qwen35")
    written = qwen35()
    special = {name: values * 1.001 for name, values in written.special.items() if name.endswith("ssm_a")}
    assert special
    changed = Written(written.architecture, written.keys, written.shapes, written.seed, special)
    model = bench.load(changed, hashlib.sha256(changed.file()).hexdigest())
    found = model.forward(TOKENS, model.new_cache(), rows="all")
    assert distance(golden, (found.logits, found.hidden)) > QWEN35_BAR
