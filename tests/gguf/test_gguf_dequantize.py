# SPDX-License-Identifier: Apache-2.0
"""Floats out of tensors: equal to the gguf package on whole tensors, in any blocking, and to the formula by hand."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reference_engine.gguf_file import GgufTensor, open_gguf
from reference_engine.gguf_tensor import MissingPackage, NoDequantizer
from reference_engine.gguf_types import TENSOR_TYPES
from tests.gguf import crafted_gguf as craft

Write = Callable[..., Path]
ROOT = Path(__file__).parents[2]

WITHOUT_DEQUANTIZER = {"Q8_1", "Q8_K", "Q1_0", "Q2_0"}
NUMPY_ALONE = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "I8": "<i1", "I16": "<i2", "I32": "<i4", "I64": "<i8"}
BY_PACKAGE = sorted(
    kind.name for kind in TENSOR_TYPES.values() if kind.name not in WITHOUT_DEQUANTIZER and kind.name not in NUMPY_ALONE
)
NUMBER = {kind.name: number for number, kind in TENSOR_TYPES.items()}


@pytest.fixture(scope="module")
def gguf() -> Any:
    return pytest.importorskip("gguf", reason="the gguf package (extra: engine) is not installed")


def file_of(kind: str, dims: tuple[int, ...], data: bytes) -> bytes:
    return craft.gguf([], [craft.tensor("t", dims, NUMBER[kind])], data)


def some_bytes(count: int, seed: int) -> bytes:
    """Random bytes below 0x3c, so that every half-precision scale among them is finite and below 1."""
    return np.random.default_rng(seed).integers(0, 0x3C, count, dtype=np.uint8).tobytes()


def blocks(kind: str, rows: int, blocks_per_row: int) -> tuple[tuple[int, int], bytes]:
    record = TENSOR_TYPES[NUMBER[kind]]
    return (record.block_elements * blocks_per_row, rows), some_bytes(record.block_bytes * blocks_per_row * rows, rows)


@pytest.mark.parametrize("kind", BY_PACKAGE)
def test_every_type_equals_the_package_on_the_whole_tensor(kind: str, gguf: Any, written: Write) -> None:
    dims, data = blocks(kind, rows=5, blocks_per_row=3)
    raw = np.frombuffer(data, dtype=np.uint8).reshape(dims[1], -1)
    expected = gguf.quants.dequantize(raw, gguf.GGMLQuantizationType(NUMBER[kind]))
    with open_gguf(written(file_of(kind, dims, data))) as model:
        tensor = model.tensors["t"]
        assert np.array_equal(tensor.raw(), raw)
        assert tensor.dequantize().dtype == np.float32
        assert np.array_equal(tensor.dequantize(), expected)
        assert np.array_equal(tensor.rows(2, 4), expected[2:4])
        assert tensor.rows(5, 5).shape == (0, dims[0])


@pytest.mark.parametrize(("kind", "dtype"), NUMPY_ALONE.items())
def test_plain_types_need_numpy_alone(kind: str, dtype: str, written: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gguf.quants", None)
    values = np.arange(-12, 12).astype(dtype).reshape(2, 3, 4)
    with open_gguf(written(file_of(kind, (4, 3, 2), values.tobytes()))) as model:
        found = model.tensors["t"].dequantize()
        assert found.shape == (2, 3, 4)
        assert np.array_equal(found, values.astype(np.float32))


@pytest.mark.parametrize("elements", [1, 32, 96, 100, 10**6])
def test_blocks_of_rows_cover_the_tensor_once(elements: int, gguf: Any, written: Write) -> None:
    dims, data = blocks("Q8_0", rows=7, blocks_per_row=3)
    with open_gguf(written(file_of("Q8_0", dims, data))) as model:
        tensor = model.tensors["t"]
        parts = list(tensor.row_blocks(elements))
        assert [start for start, _ in parts] == list(np.cumsum([0, *(len(rows) for _, rows in parts)]))[:-1]
        assert all(len(rows) == 1 or rows.size <= elements for _, rows in parts)
        assert np.array_equal(np.concatenate([rows for _, rows in parts]), tensor.dequantize())


def test_q8_0_is_scale_times_integer(gguf: Any, written: Write) -> None:
    values = np.arange(-64, 64, dtype=np.int8).reshape(4, 32)
    scales = np.array([0.5, 2.0, -1.0, 0.0], dtype=np.float16)
    data = b"".join(scale.tobytes() + row.tobytes() for scale, row in zip(scales, values, strict=True))
    with open_gguf(written(file_of("Q8_0", (64, 2), data))) as model:
        expected = (values.astype(np.float32) * scales.astype(np.float32)[:, None]).reshape(2, 64)
        assert np.array_equal(model.tensors["t"].dequantize(), expected)


def test_q4_0_takes_low_nibbles_first_and_subtracts_8(gguf: Any, written: Write) -> None:
    nibbles = np.arange(32) % 16
    packed = (nibbles[:16] | (nibbles[16:] << 4)).astype(np.uint8)
    data = np.float16(0.25).tobytes() + packed.tobytes()
    with open_gguf(written(file_of("Q4_0", (32,), data))) as model:
        assert np.array_equal(model.tensors["t"].dequantize(), (nibbles - 8) * np.float32(0.25))


@pytest.mark.parametrize("kind", ["Q4_K", "NVFP4"])
def test_seams_between_calls_of_the_package_do_not_show(kind: str, gguf: Any, written: Write) -> None:
    record = TENSOR_TYPES[NUMBER[kind]]
    dims, data = blocks(kind, rows=3, blocks_per_row=(1 << 17) // record.block_elements + 7)
    raw = np.frombuffer(data, dtype=np.uint8).reshape(dims[1], -1)
    expected = gguf.quants.dequantize(raw, gguf.GGMLQuantizationType(NUMBER[kind]))
    with open_gguf(written(file_of(kind, dims, data))) as model:
        assert np.array_equal(model.tensors["t"].dequantize(), expected)
        assert np.array_equal(model.tensors["t"].rows(1, 3), expected[1:])


def test_outer_dimensions_count_as_rows(gguf: Any, written: Write) -> None:
    data = some_bytes(2 * 3 * 5 * 34, 1)
    with open_gguf(written(file_of("Q8_0", (32, 5, 3, 2), data))) as model:
        tensor = model.tensors["t"]
        assert (tensor.shape, tensor.n_rows, tensor.row_bytes) == ((2, 3, 5, 32), 30, 34)
        assert np.array_equal(tensor.rows(29, 30)[0], tensor.dequantize()[1, 2, 4])


def test_rows_outside_the_tensor_are_refused(written: Write) -> None:
    with open_gguf(written(file_of("F32", (2, 3), bytes(24)))) as model:
        for start, stop in ((-1, 1), (0, 4), (2, 1)):
            with pytest.raises(IndexError, match="'t', which has 3"):
                model.tensors["t"].rows(start, stop)


def test_memory_beyond_the_result_stays_bounded(gguf: Any, written: Write) -> None:
    rows = 1 << 13
    with open_gguf(written(file_of("Q8_0", (1024, rows), bytes(rows * 32 * 34)))) as model:
        tensor = model.tensors["t"]
        tensor.rows(0, 1)  # imports done
        tracemalloc.start()
        result = tensor.dequantize()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        total = sum(float(part.sum()) for _, part in tensor.row_blocks())
        kept, peak_blocks = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert total == 0
        assert result.nbytes == 32 * 2**20
        assert peak < result.nbytes + 8 * 2**20
        assert peak_blocks - kept < 16 * 2**20


@pytest.mark.parametrize("kind", sorted(WITHOUT_DEQUANTIZER))
def test_types_without_dequantizer_say_so(kind: str, gguf: Any, written: Write) -> None:
    dims, data = blocks(kind, rows=2, blocks_per_row=1)
    with (
        open_gguf(written(file_of(kind, dims, data))) as model,
        pytest.raises(NoDequantizer, match=f"'t' has type {kind}"),
    ):
        model.tensors["t"].dequantize()


def test_without_the_package_the_sentence_says_what_to_install(written: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gguf.quants", None)
    dims, data = blocks("Q8_0", rows=2, blocks_per_row=1)
    with (
        open_gguf(written(file_of("Q8_0", dims, data))) as model,
        pytest.raises(MissingPackage, match=r"pip install '\.\[engine\]'"),
    ):
        model.tensors["t"].dequantize()


def test_header_is_read_without_numpy_and_without_the_package(written: Write) -> None:
    path = written(file_of("F32", (2, 3), bytes(24)))
    code = (
        "import sys; sys.modules['numpy'] = sys.modules['gguf'] = None\n"
        "from reference_engine.gguf_inspect import inspect\n"
        f"print(inspect(__import__('pathlib').Path({str(path)!r})).document['tensors']['count'])"
    )
    child = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (child.returncode, child.stdout.strip()) == (0, "1"), child.stderr


def test_tensor_record_is_immutable(written: Write) -> None:
    with open_gguf(written(file_of("F32", (2, 3), bytes(24)))) as model:
        tensor: GgufTensor = model.tensors["t"]
        with pytest.raises(AttributeError):
            tensor.n_bytes = 1  # type: ignore[misc]
        with pytest.raises(TypeError):
            tensor.data()[0] = 1
