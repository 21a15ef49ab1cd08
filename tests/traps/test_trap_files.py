# SPDX-License-Identifier: Apache-2.0
"""The files: the same bytes each time, readable by others, with text and token ids that belong together."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import gguf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.goldens.manifest import ids_sha256
from conformance.traps import Trap, TrapError, manifest, trap_names, write_trap
from conformance.traps.catalogue import DESIGNS
from conformance.traps.gguf_writer import encode_gguf
from reference_engine.gguf_file import open_gguf
from reference_engine.tokenizer import load_tokenizer

BIG = {"k-segment", "segment-scale"}


@pytest.mark.parametrize("name", trap_names())
def test_the_file_is_the_one_of_the_manifest(traps: Mapping[str, Trap], name: str) -> None:
    row = next(row for row in manifest()["traps"] if row["name"] == name)
    raw = traps[name].path.read_bytes()
    assert hashlib.sha256(raw).hexdigest() == row["sha256"]
    assert len(raw) == row["bytes"] < (6_000_000 if name in BIG else 700_000)
    assert row["token_ids_sha256"] == ids_sha256(traps[name].tokens)
    assert row["prompt_ids_sha256"] == ids_sha256(traps[name].prompt)
    assert row["n_tokens"] == len(traps[name].tokens) == len(row["margins_nats"])


@pytest.mark.parametrize("name", trap_names())
def test_the_manifest_says_what_the_design_says(name: str) -> None:
    """A design that was changed without a new manifest is seen here."""
    design, row = DESIGNS[name](), next(row for row in manifest()["traps"] if row["name"] == name)
    assert tuple(row["prompt_ids"]) == design.prompt
    assert tuple(row["token_ids"]) == design.tokens
    assert row["wrong"] == dict(design.wrong)
    assert row["fault"] == design.fault


@pytest.mark.parametrize("name", trap_names())
def test_prompt_and_answer_are_the_same_as_text_and_as_ids(traps: Mapping[str, Trap], name: str) -> None:
    trap = traps[name]
    with open_gguf(trap.path) as file:
        tokenizer = load_tokenizer(file)
    assert tuple(tokenizer.encode(trap.prompt_text, add_special=True, parse_special=True)) == trap.prompt
    assert tokenizer.decode(list(trap.tokens)) == trap.text


@pytest.mark.parametrize("name", trap_names())
def test_no_right_answer_is_named_as_a_fault(traps: Mapping[str, Trap], name: str) -> None:
    trap = traps[name]
    for key in trap.wrong:
        step, _, token = key.rpartition(":")
        if step:
            assert int(token.split("+")[0]) != trap.tokens[int(step)]
        else:
            assert int(token) not in trap.tokens


@pytest.mark.parametrize("name", ["tied-head", "w4a4", "swa-window"])
def test_the_gguf_package_reads_the_same_values(traps: Mapping[str, Trap], name: str) -> None:
    """The package shares no code with this kit's writer."""
    plan = DESIGNS[name]().blueprint
    written = {"token_embd.weight": plan.embedding}
    for number, layer in enumerate(plan.layers):
        written |= {f"blk.{number}.{part}.weight": values for part, values in layer.tensors().items()}
    reader = gguf.GGUFReader(traps[name].path)
    found = {tensor.name: tensor for tensor in reader.tensors}
    assert set(written) <= set(found)
    for tensor_name, values in written.items():
        tensor = found[tensor_name]
        read = gguf.quants.dequantize(tensor.data, tensor.tensor_type).reshape(values.shape)
        assert np.abs(read - values).max() <= np.abs(values).max() / 200


@settings(max_examples=40, deadline=None)
@given(st.data(), st.sampled_from(["F32", "F16", "Q8_0", "Q4_0"]))
def test_any_values_come_back_as_near_as_their_type_allows(data: st.DataObject, kind: str) -> None:
    rows, blocks = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 3))
    values = np.array(
        data.draw(st.lists(st.floats(-100, 100, width=32), min_size=rows * blocks * 32, max_size=rows * blocks * 32)),
        np.float32,
    ).reshape(rows, blocks * 32)
    raw = encode_gguf({"general.architecture": "llama"}, {"a": (kind, values), "b": ("F32", values[0])})
    with TemporaryDirectory() as folder:
        path = Path(folder) / "values.gguf"
        path.write_bytes(raw)
        with open_gguf(path) as file:
            back, beside = (np.array(file.tensors[name].dequantize()) for name in "ab")
    steps = {"F32": 0.0, "F16": 2.0**-11, "Q8_0": 1 / 254 + 2.0**-11, "Q4_0": 1 / 7.9}[kind]
    largest = np.abs(values.reshape(rows, blocks, 32)).max(axis=2, keepdims=True)
    error = np.abs(back.reshape(rows, blocks, 32) - values.reshape(rows, blocks, 32))
    assert (error <= largest * steps + 1e-4 * (kind != "F32")).all()
    assert np.array_equal(beside.reshape(-1), values[0])


def test_a_damaged_file_is_written_anew(tmp_path: Path) -> None:
    path = write_trap("tied-head", tmp_path).path
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert write_trap("tied-head", tmp_path).path.read_bytes() == whole


def test_a_trap_that_there_is_not_is_refused_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(TrapError, match="no trap 'k'; there are w4a4, int8-wrap"):
        write_trap("k", tmp_path)
