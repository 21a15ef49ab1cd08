# SPDX-License-Identifier: Apache-2.0
"""What is written comes back: field by field, and through the gguf package's own writer and reader."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_engine.gguf_file import GgufError, GgufFile, open_gguf
from reference_engine.gguf_types import INTEGERS, TENSOR_TYPES, ValueType
from reference_engine.gguf_values import GgufArray
from tests.gguf import crafted_gguf as craft

Write = Callable[..., Path]
QUICK = settings(max_examples=60, deadline=None)

RANGES: dict[int, st.SearchStrategy[Any]] = {
    craft.U8: st.integers(0, 2**8 - 1),
    craft.I8: st.integers(-(2**7), 2**7 - 1),
    craft.U16: st.integers(0, 2**16 - 1),
    craft.I16: st.integers(-(2**15), 2**15 - 1),
    craft.U32: st.integers(0, 2**32 - 1),
    craft.I32: st.integers(-(2**31), 2**31 - 1),
    craft.U64: st.integers(0, 2**64 - 1),
    craft.I64: st.integers(-(2**63), 2**63 - 1),
    craft.F32: st.floats(width=32, allow_nan=False),
    craft.F64: st.floats(allow_nan=False),
    craft.BOOL: st.integers(0, 1),
    craft.STRING: st.text(max_size=12),
}
NAMES = st.text(st.characters(min_codepoint=0x61, max_codepoint=0x7A), min_size=1, max_size=12)
ARRAYS = st.one_of(*(st.tuples(st.just(kind), st.lists(values, max_size=200)) for kind, values in RANGES.items()))


def plain(value: Any) -> Any:
    return [plain(item) for item in value] if isinstance(value, GgufArray) else value


@QUICK
@given(entries=st.dictionaries(NAMES, ARRAYS, max_size=8))
def test_arrays_of_every_type_come_back(entries: dict[str, tuple[int, list[Any]]], written: Write) -> None:
    raw = craft.gguf([craft.key_array(name, kind, values) for name, (kind, values) in entries.items()])
    with open_gguf(written(raw)) as model:
        assert list(model.metadata) == list(entries)
        for name, (kind, values) in entries.items():
            found = model.metadata[name]
            assert isinstance(found, GgufArray)
            assert found.item_type == kind
            assert found.tolist() == values
            assert list(found) == values
            assert [found[i] for i in range(len(found))] == values
            assert found[1:-1] == values[1:-1]
            assert found[::-2] == values[::-2]
            assert not values or found[-1] == values[-1]
            with pytest.raises(IndexError):
                found[len(values)]


@QUICK
@given(data=st.data(), kind=st.sampled_from(sorted(craft.FORMATS)))
def test_scalars_of_every_type_come_back(data: st.DataObject, kind: int, written: Write) -> None:
    value = data.draw(RANGES[kind])
    with open_gguf(written(craft.gguf([craft.key("k", kind, craft.scalar(kind, value))]))) as model:
        assert model.metadata["k"] == value
        assert model.metadata.value_type("k") == kind
        assert isinstance(model.metadata["k"], bool) == (kind == craft.BOOL)


def test_nested_arrays_come_back(written: Write) -> None:
    inner = craft.array(craft.STRING, craft.items(craft.STRING, ["a", "bc"]), 2)
    deep = craft.array(craft.ARRAY, craft.array(craft.U8, b"\1\2", 2), 1)
    raw = craft.gguf([craft.key("n", craft.ARRAY, craft.array(craft.ARRAY, inner + deep, 2)), craft.key_u32("z", 5)])
    with open_gguf(written(raw)) as model:
        assert plain(model.metadata["n"]) == [["a", "bc"], [[1, 2]]]
        assert model.metadata["z"] == 5


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 127, 128, 129, 1000])
def test_strings_are_found_on_both_sides_of_a_mark(count: int, written: Write) -> None:
    values = [f"{i}" * (i % 7) for i in range(count)]
    with open_gguf(written(craft.gguf([craft.key_array("a", craft.STRING, values)]))) as model:
        found = model.metadata.strings("a")
        assert [found[i] for i in range(count)] == values
        assert [found.bytes_at(i).decode() for i in range(count)] == values
        assert found[count // 3 : count // 2] == values[count // 3 : count // 2]


def test_bytes_that_are_no_text_are_not_lost(written: Write) -> None:
    raw = craft.gguf([craft.key("a", craft.ARRAY, craft.array(craft.STRING, craft.string(b"\xff\xe4x"), 1))])
    with open_gguf(written(raw)) as model:
        found = model.metadata.strings("a")
        assert found.bytes_at(0) == b"\xff\xe4x"
        assert found[0].encode("utf-8", "surrogateescape") == b"\xff\xe4x"


def test_number_arrays_come_as_numpy_of_their_own_type(written: Write) -> None:
    keys = [craft.key_array(f"k{kind}", kind, [1, 0, 1]) for kind in craft.FORMATS]
    with open_gguf(written(craft.gguf([*keys, craft.key_array("s", craft.STRING, ["x"])]))) as model:
        for kind, code in craft.FORMATS.items():
            values = model.metadata.array(f"k{kind}", frozenset(ValueType), "anything").numpy()
            assert values.dtype == np.dtype("?" if kind == craft.BOOL else code)
            assert values.tolist() == [1, 0, 1]
        with pytest.raises(TypeError):
            model.metadata.strings("s").numpy()


@pytest.mark.parametrize("version", [2, 3])
def test_versions_2_and_3_are_read_alike(version: int, written: Write) -> None:
    raw = craft.header(0, 1, version=version) + craft.key_u32("a", 7)
    with open_gguf(written(raw)) as model:
        assert (model.version, model.metadata["a"]) == (version, 7)


def test_getters_name_the_key_and_its_byte(written: Write) -> None:
    raw = craft.gguf([craft.key_u32("number", 1), craft.key_text("text", "x"), craft.key_array("list", craft.U8, [1])])
    with open_gguf(written(raw)) as model:
        m = model.metadata
        assert (m.integer("number"), m.number("number"), m.text("text")) == (1, 1.0, "x")
        assert (m.integer("gone", 3), m.text("gone", "y"), m.boolean("gone", True), m.number("gone", 0.5)) == (
            3,
            "y",
            True,
            0.5,
        )
        wrong: list[tuple[Callable[[], object], str, str, int | None]] = [
            (lambda: m.integer("gone"), "NPU-F028", "'gone'", None),
            (lambda: m.text("number"), "NPU-F027", "'number'", 24),
            (lambda: m.integer("text"), "NPU-F027", "'text'", 24 + 8 + 6 + 4 + 4),
            (lambda: m.boolean("number"), "NPU-F027", "'number'", 24),
            (lambda: m.strings("list"), "NPU-F027", "'list'", 24 + 22 + 25),
            (lambda: m.array("number", INTEGERS, "integers"), "NPU-F027", "'number'", 24),
        ]
        for getter, code, name, offset in wrong:
            with pytest.raises(GgufError) as caught:
                getter()
            assert (caught.value.code, caught.value.offset) == (code, offset)
            assert name in caught.value.message


def test_views_outlive_close_and_reads_after_close_fail(written: Write) -> None:
    raw = craft.gguf([craft.key_u32("a", 1)], [craft.tensor("t", [8])], struct.pack("<8f", *range(8)))
    model = open_gguf(written(raw))
    view = model.tensors["t"].raw().view("<f4")
    model.close()
    assert view.tolist() == [[0, 1, 2, 3, 4, 5, 6, 7]]
    closed = open_gguf(written(raw))
    closed.close()
    with pytest.raises(ValueError, match="closed"):
        closed.metadata["a"]


# The gguf package as peer: optional, as the engine's extra is.


@pytest.fixture(scope="module")
def gguf() -> Any:
    return pytest.importorskip("gguf", reason="the gguf package (extra: engine) is not installed")


@QUICK
@given(
    numbers=st.dictionaries(NAMES, st.integers(0, 2**32 - 1), max_size=4),
    texts=st.dictionaries(NAMES, st.text(min_size=1, max_size=20), max_size=4),
    lists=st.dictionaries(NAMES, st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=80), max_size=3),
    shapes=st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=3), max_size=4),
    alignment=st.sampled_from([8, 32, 64, 256]),
)
def test_files_of_the_package_writer_are_read_alike(
    *,
    gguf: Any,
    numbers: dict[str, int],
    texts: dict[str, str],
    lists: dict[str, list[str]],
    shapes: list[list[int]],
    alignment: int,
    tmp_path: Path,
) -> None:
    path = tmp_path / "peer.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_custom_alignment(alignment)
    for name, number in numbers.items():
        writer.add_uint32(f"n.{name}", number)
    for name, text in texts.items():
        writer.add_string(f"t.{name}", text)
    for name, items in lists.items():
        writer.add_array(f"l.{name}", items)
    arrays = {
        f"tensor.{i}": (np.arange(math.prod(shape), dtype=np.float32) + i).reshape(shape)
        for i, shape in enumerate(shapes)
    }
    for name, values in arrays.items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with open_gguf(path) as model:
        expected = {
            "general.architecture": "llama",
            "general.alignment": alignment,
            **{f"n.{k}": v for k, v in numbers.items()},
            **{f"t.{k}": v for k, v in texts.items()},
            **{f"l.{k}": v for k, v in lists.items()},
        }
        assert {key: plain(value) for key, value in model.metadata.items()} == expected
        assert model.warnings == ()
        assert_same_tensors(model, arrays)
        assert_same_as_package_reader(gguf, path, model)


def assert_same_tensors(model: GgufFile, arrays: dict[str, Any]) -> None:
    assert set(model.tensors) == set(arrays)
    for name, values in arrays.items():
        tensor = model.tensors[name]
        assert tensor.shape == values.shape
        assert np.array_equal(tensor.dequantize(), values)
        assert bytes(tensor.data()) == values.tobytes()


def assert_same_as_package_reader(gguf: Any, path: Path, model: GgufFile) -> None:
    reader = gguf.GGUFReader(path)
    assert reader.data_offset % model.alignment == 0
    for peer in reader.tensors:
        own = model.tensors[peer.name]
        assert (own.data_at, own.n_bytes, own.n_elements) == (peer.data_offset, peer.n_bytes, peer.n_elements)
        assert list(own.dims) == peer.shape.tolist()
        assert own.type.number == int(peer.tensor_type)


def test_block_sizes_are_those_of_the_package(gguf: Any) -> None:
    peer = {int(kind): sizes for kind, sizes in gguf.GGML_QUANT_SIZES.items()}
    own = {number: (kind.block_elements, kind.block_bytes) for number, kind in TENSOR_TYPES.items()}
    assert len(peer) > 30
    assert {number: own.get(number) for number in peer} == peer
    assert {kind.name: int(kind) for kind in gguf.GGMLQuantizationType} == {
        kind.name: number for number, kind in TENSOR_TYPES.items() if number in peer
    }


def test_value_types_are_those_of_the_package(gguf: Any) -> None:
    assert sorted(int(kind) for kind in gguf.GGUFValueType) == sorted(ValueType)
