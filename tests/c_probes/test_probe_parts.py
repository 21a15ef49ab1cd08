# SPDX-License-Identifier: Apache-2.0
"""The parts of the probes against numpy, Python's integers and the statistics module."""

from __future__ import annotations

import ctypes
import json
import math
import os
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.c_probes.probe_parts import (
    BFLOAT16,
    FLOAT16,
    FLOAT32,
    INT4,
    INT8,
    INT16,
    INT32,
    NATIVE,
    NORM,
    Burst,
    FieldVector,
    FillPlan,
    Json,
    Oracle,
    Report,
    attr_of_C,
    load,
    make_attr,
    store_C,
)

P = 2**61 - 1
# Sanitized parts run the same tests on fewer examples: there each takes several times as long.
EXAMPLES = settings(max_examples=15 if "RKNPU_TEST_PARTS" in os.environ else 60, deadline=None)
TYPES = {  # matmul type: A, B, C, and the bound on sum |a| |b| that keeps C exact
    1: (FLOAT16, FLOAT16, FLOAT32, 2**24 - 1),
    2: (INT8, INT8, INT32, 2**31 - 1),
    3: (INT8, INT8, INT8, 127),
    4: (FLOAT16, FLOAT16, FLOAT16, 2048),
    5: (FLOAT16, INT8, FLOAT32, 2**24 - 1),
    8: (FLOAT16, INT4, FLOAT16, 2048),
    9: (INT8, INT8, FLOAT32, 2**24 - 1),
    10: (INT4, INT4, INT16, 2**15 - 1),
    12: (FLOAT16, INT4, BFLOAT16, 256),
}


@pytest.fixture(scope="module")
def parts(parts_library: Path) -> ctypes.CDLL:
    return load(str(parts_library))


class Checker:
    """An oracle over one random product, and what it says of a given C."""

    def __init__(self, parts: ctypes.CDLL, shape: tuple[int, int, int], seed: int, low: int = -128, high: int = 127):
        m, k, n = shape
        random = np.random.default_rng(seed)
        self.parts, self.shape = parts, shape
        self.a = random.integers(low, high, (m, k), dtype=np.int8, endpoint=True)
        self.b = random.integers(low, high, (k, n), dtype=np.int8, endpoint=True)
        self.c = self.a.astype(np.int64) @ self.b.astype(np.int64)
        self.oracle = Oracle()
        assert parts.oracle_init(self.oracle, self.a.ctypes.data, self.b.ctypes.data, m, k, n, 5)

    def close(self) -> None:
        self.parts.oracle_free(self.oracle)

    def check(
        self, stored: Any, layout: int = NORM, tensor_type: int = INT32, others: tuple[Checker, ...] = ()
    ) -> tuple[bool, Report]:
        report = Report()
        attr = attr_of_C(self.shape[0], self.shape[2], layout, tensor_type)
        pointers = (ctypes.POINTER(Oracle) * max(len(others), 1))(*(ctypes.pointer(o.oracle) for o in others))
        right = self.parts.oracle_check(self.oracle, attr, stored.ctypes.data, pointers, len(others), report)
        return right, report

    def kind(self, report: Report) -> str:
        word: bytes = self.parts.oracle_kind_word(report.kind)
        return word.decode()


shapes = st.tuples(st.integers(1, 9), st.integers(1, 40), st.integers(1, 70))


@EXAMPLES
@given(shape=shapes, seed=st.integers(0, 2**32), layout=st.sampled_from([NORM, NATIVE]))
def test_the_oracle_accepts_a_right_product(
    parts: ctypes.CDLL, shape: tuple[int, int, int], seed: int, layout: int
) -> None:
    for tensor_type, most in ((INT32, 127), (FLOAT32, 127), (INT16, 8), (FLOAT16, 7), (BFLOAT16, 2), (INT8, 1)):
        checker = Checker(parts, shape, seed, -most, most)
        right, report = checker.check(store_C(checker.c, layout, tensor_type), layout, tensor_type)
        assert right and report.rows_wrong == 0, tensor_type
        checker.close()


@EXAMPLES
@given(
    shape=shapes,
    seed=st.integers(0, 2**32),
    layout=st.sampled_from([NORM, NATIVE]),
    wrong=st.integers(-(2**31), 2**31 - 1),
    place=st.tuples(st.integers(0, 8), st.integers(0, 69)),
)
def test_the_oracle_finds_any_single_wrong_int32(  # noqa: PLR0917 - hypothesis passes by name
    parts: ctypes.CDLL, shape: tuple[int, int, int], seed: int, layout: int, wrong: int, place: tuple[int, int]
) -> None:
    checker = Checker(parts, shape, seed)
    row, col = place[0] % shape[0], place[1] % shape[2]
    expected = int(checker.c[row, col])
    spoiled = checker.c.copy()
    spoiled[row, col] = wrong
    right, report = checker.check(store_C(spoiled, layout, INT32), layout)
    assert right == (wrong == expected)
    if not right:
        assert (report.rows_wrong, report.wrong_elements) == (1, 1)
        assert (report.first_row, report.first_col) == (row, col)
        assert (report.got, report.expected) == (wrong, expected)
    checker.close()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 0.5, 1e30])
def test_the_oracle_counts_a_float_that_is_no_integer_as_wrong(parts: ctypes.CDLL, bad: float) -> None:
    checker = Checker(parts, (3, 8, 5), 1)
    stored = store_C(checker.c, NORM, FLOAT32)
    stored[2, 4] = bad
    right, report = checker.check(stored, NORM, FLOAT32)
    assert not right
    assert (report.wrong_elements, report.first_row, report.first_col) == (1, 2, 4)
    checker.close()


def test_the_oracle_tells_the_kinds_of_wrong_apart(parts: ctypes.CDLL) -> None:
    checker, other = Checker(parts, (40, 32, 48), 1), Checker(parts, (40, 32, 48), 2)
    zero = np.zeros((40, 48), np.int32)
    sentinel = zero.copy()
    parts.sentinel_fill(sentinel.ctypes.data, sentinel.nbytes)
    half = store_C(checker.c, NORM, INT32)
    half[20:] = sentinel[20:]
    swapped = checker.c.copy()
    swapped[[3, 9]] = swapped[[9, 3]]
    noise = checker.c + 1
    cases = {
        "all-zero": zero,
        "not-written": sentinel,
        "part-written": half,
        "rows-swapped": store_C(swapped, NORM, INT32),
        "other-context": store_C(other.c, NORM, INT32),
        "wrong-values": store_C(noise, NORM, INT32),
    }
    for kind, stored in cases.items():
        right, report = checker.check(stored, others=(checker, other))
        assert not right
        assert checker.kind(report) == kind
    _, report = checker.check(sentinel)
    assert (report.not_written, report.rows_wrong, report.rows_computed) == (40 * 48, 40, 32)
    _, report = checker.check(store_C(noise, NORM, INT32))
    assert (report.rows_wrong, report.wrong_elements) == (40, 32 * 48)  # 32 rows are computed directly
    checker.close()
    other.close()


def test_two_errors_that_cancel_in_the_sum_of_a_row_are_found(parts: ctypes.CDLL) -> None:
    checker = Checker(parts, (2, 16, 16), 3)
    spoiled = checker.c.copy()
    spoiled[1, 2] += 7
    spoiled[1, 11] -= 7
    right, report = checker.check(store_C(spoiled, NORM, INT32))
    assert not right and report.wrong_elements == 2
    checker.close()


field_values = st.integers(0, P - 1) | st.sampled_from([0, 1, P - 1, 2**31 - 1, 2**31, 2**21, 2**41])


@EXAMPLES
@given(
    values=st.lists(st.tuples(st.integers(-(2**31), 2**31 - 1), field_values), min_size=1, max_size=50),
    repeat=st.sampled_from([1, 60]),
)
def test_dot_products_are_exact_modulo_the_prime(
    parts: ctypes.CDLL, values: list[tuple[int, int]], repeat: int
) -> None:
    values = values * repeat  # past the 1024 products after which a sum is folded
    vector = FieldVector()
    assert parts.field_vector_init(vector, len(values))
    for i, (_, x) in enumerate(values):
        parts.field_vector_set(vector, i, x)
    wide = np.array([v for v, _ in values], np.int32)
    narrow = wide.astype(np.int8)
    assert parts.dot_int32(wide.ctypes.data, vector) == sum(v * x for v, x in values) % P
    assert (
        parts.dot_int8(narrow.ctypes.data, vector)
        == sum(int(v) * x for v, (_, x) in zip(narrow, values, strict=True)) % P
    )
    parts.field_vector_free(vector)


def test_the_largest_int32_dot_product_does_not_overflow(parts: ctypes.CDLL) -> None:
    count = 5000
    vector = FieldVector()
    assert parts.field_vector_init(vector, count)
    for i in range(count):
        parts.field_vector_set(vector, i, P - 1)
    for value in (-(2**31), 2**31 - 1):
        values = np.full(count, value, np.int32)
        assert parts.dot_int32(values.ctypes.data, vector) == value * (P - 1) * count % P
    parts.field_vector_free(vector)


@EXAMPLES
@given(m=st.integers(1, 20), k=st.integers(1, 100), c=st.sampled_from([4, 8, 16, 32]))
def test_native_A_is_cells_of_c_values_block_by_block(parts: ctypes.CDLL, m: int, k: int, c: int) -> None:
    a = np.random.default_rng(k).integers(-128, 127, (m, k), dtype=np.int8)
    expected = np.pad(a, ((0, 0), (0, -k % c))).reshape(m, -1, c).transpose(1, 0, 2)
    attr = make_attr(expected.shape, INT8)
    out = np.full(expected.shape, 99, np.int8)
    parts.layout_order_A(out.ctypes.data, attr, a.ctypes.data, m, k)
    assert np.array_equal(out, expected)


def native_B(b: Any, n: int, k: int) -> Any:
    rows, cols = b.shape
    padded = np.pad(b, ((0, -rows % k), (0, -cols % n)))
    return padded.reshape(padded.shape[0] // k, k, padded.shape[1] // n, n).transpose(2, 0, 3, 1)


@EXAMPLES
@given(rows=st.integers(1, 150), cols=st.integers(1, 150), n=st.sampled_from([16, 32, 64]), k=st.sampled_from([16, 32]))
def test_native_B_is_tiles_of_n_by_k(parts: ctypes.CDLL, rows: int, cols: int, n: int, k: int) -> None:
    b = np.random.default_rng(rows).integers(-128, 127, (rows, cols), dtype=np.int8)
    expected = native_B(b, n, k)
    out = np.full(expected.shape, 99, np.int8)
    parts.layout_order_B(out.ctypes.data, make_attr(expected.shape, INT8), b.ctypes.data, rows, cols, 0)
    assert np.array_equal(out, expected)


@pytest.mark.parametrize("segment", [64, 96, 128])
def test_K_segments_are_tiled_one_after_the_other(parts: ctypes.CDLL, segment: int) -> None:
    b = np.random.default_rng(1).integers(-128, 127, (320, 96), dtype=np.int8)
    pieces = [native_B(b[start : start + segment], 32, 32).ravel() for start in range(0, 320, segment)]
    out = np.full(320 * 96, 99, np.int8)
    parts.layout_order_B(out.ctypes.data, make_attr((3, 10, 32, 32), INT8), b.ctypes.data, 320, 96, segment)
    assert np.array_equal(out, np.concatenate(pieces))


def test_int4_stands_two_to_a_byte_even_element_low(parts: ctypes.CDLL) -> None:
    values = np.arange(-8, 8, dtype=np.int8)
    out = np.zeros(8, np.uint8)
    assert parts.layout_encode(out.ctypes.data, INT4, values.ctypes.data, 16)
    assert np.array_equal(out & 15, values[::2] & 15)
    assert np.array_equal(out >> 4, values[1::2] & 15)


def test_floats_are_stored_by_value(parts: ctypes.CDLL) -> None:
    values = np.arange(-128, 128, dtype=np.int64).astype(np.int8)
    half = np.zeros(256, np.float16)
    assert parts.layout_encode(half.ctypes.data, FLOAT16, values.ctypes.data, 256)
    assert np.array_equal(half.astype(int), values)
    brain = np.zeros(256, np.uint16)
    assert parts.layout_encode(brain.ctypes.data, BFLOAT16, values.ctypes.data, 256)
    assert np.array_equal((brain.astype(np.uint32) << 16).view(np.float32).astype(int), values)
    assert not parts.layout_encode(half.ctypes.data, INT32, values.ctypes.data, 1)


def test_every_half_has_numpys_value(parts: ctypes.CDLL) -> None:
    bits = np.arange(65536, dtype=np.uint16)
    ours = np.array([parts.float_of_half(int(b)) for b in bits], np.float32)
    assert np.array_equal(ours, bits.view(np.float16).astype(np.float32), equal_nan=True)
    for value in (*range(-2048, 2049), 4096, -65504 // 32 * 32):
        assert parts.float_of_half(parts.half_of_integer(value)) == value
    for value in range(-256, 257):
        assert parts.float_of_bfloat16(parts.bfloat16_of_integer(value)) == value


@pytest.mark.parametrize("bits", [32, 16, 8])
def test_the_sentinel_is_recognised_element_by_element(parts: ctypes.CDLL, bits: int) -> None:
    buffer = np.zeros(101, np.uint8)
    parts.sentinel_fill(buffer.ctypes.data, 101)
    size = bits // 8
    assert all(parts.sentinel_at(buffer.ctypes.data, at, size) for at in range(0, 96, size))
    buffer[50] ^= 1
    wrong = [at for at in range(0, 96, size) if not parts.sentinel_at(buffer.ctypes.data, at, size)]
    assert wrong == [50 // size * size]


@pytest.mark.parametrize(
    ("dims", "operand", "layout", "shape", "words"),
    [
        ((4, 5), 0, NORM, (4, 6), "do not describe"),
        ((4, 6), 0, NATIVE, (4, 6), "has 2 dims where its native layout has 3"),
        ((1, 4, 0), 0, NATIVE, (4, 6), "do not describe"),
        ((2, 4, 16), 0, NATIVE, (4, 16), "do not describe"),
        ((1, 1, 32, 32), 1, NATIVE, (33, 32), "do not describe"),
        ((1, 1, 0, 0), 1, NATIVE, (32, 32), "do not describe"),
    ],
)
def test_dims_that_cannot_hold_the_operand_are_named(  # noqa: PLR0917 - pytest passes by name
    parts: ctypes.CDLL, dims: tuple[int, ...], operand: int, layout: int, shape: tuple[int, int], words: str
) -> None:
    why = ctypes.create_string_buffer(300)
    assert not parts.layout_check(make_attr(dims, INT8), operand, layout, *shape, why, 300)
    assert words in why.value.decode()


def test_a_size_too_small_for_its_dims_and_an_unknown_type_are_named(parts: ctypes.CDLL) -> None:
    why = ctypes.create_string_buffer(300)
    attr = make_attr((4, 6), INT8)
    assert parts.layout_check(attr, 0, NORM, 4, 6, why, 300)
    attr.size = 23
    assert not parts.layout_check(attr, 0, NORM, 4, 6, why, 300)
    assert b"has size 23 where its dims need 24 bytes" in why.value
    attr.type = 77
    assert not parts.layout_check(attr, 0, NORM, 4, 6, why, 300)
    assert b"tensor type 77" in why.value


@EXAMPLES
@given(
    code=st.sampled_from(sorted(TYPES)),
    m=st.sampled_from([1, 4, 65, 512]),
    k=st.sampled_from([32, 512, 2048, 4096, 15360]),
    seed=st.integers(0, 2**53),
)
def test_no_sum_of_the_data_leaves_the_range_in_which_C_is_exact(
    parts: ctypes.CDLL, code: int, m: int, k: int, seed: int
) -> None:
    a_type, b_type, c_type, limit = TYPES[code]
    plan: FillPlan = parts.fill_plan_for(m, k, a_type, b_type, c_type)
    n = 32
    a, b = np.zeros((m, k), np.int8), np.zeros((k, n), np.int8)
    parts.fill_A(a.ctypes.data, m, k, plan, seed)
    parts.fill_B(b.ctypes.data, k, n, plan, seed)
    worst = np.abs(a.astype(np.int64)).sum(axis=1).max() * max(abs(plan.b_min), plan.b_max)
    assert worst <= limit
    assert a.min() >= plan.a_min and a.max() <= plan.a_max
    assert b.min() >= plan.b_min and b.max() <= plan.b_max
    for values, kind in ((a, a_type), (b, b_type)):
        assert np.unique(values).size > 1
        if kind == INT4:
            assert values.min() >= -8 and values.max() <= 7
    if m == 512:
        # Every column of A is used in some row with the odds of a fair draw: no part of K is left out.
        chance = (1 - plan.nonzeros_per_row / k) ** m
        assert (a == 0).all(axis=0).mean() <= 0.02 + 1.5 * chance
    again = np.zeros_like(a)
    parts.fill_A(again.ctypes.data, m, k, plan, seed)
    assert np.array_equal(a, again)


def test_int8_data_uses_the_whole_range(parts: ctypes.CDLL) -> None:
    plan = parts.fill_plan_for(512, 4096, INT8, INT8, INT32)
    a = np.zeros((512, 4096), np.int8)
    parts.fill_A(a.ctypes.data, 512, 4096, plan, 1)
    assert np.unique(a).size == 256


samples = st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=64)


@EXAMPLES
@given(values=samples)
def test_median_and_mad_are_those_of_the_statistics_module(parts: ctypes.CDLL, values: list[float]) -> None:
    array = (ctypes.c_double * len(values))(*values)
    middle = statistics.median(values)
    assert parts.median_of(array, len(values)) == pytest.approx(middle)
    mad = statistics.median(abs(v - middle) for v in values)
    assert parts.mad_of(array, len(values)) == pytest.approx(mad, abs=1e-6)
    assert list(array) == values
    assert math.isnan(parts.median_of(array, 0))


@EXAMPLES
@given(run_us=st.floats(0.01, 1e8), seconds=st.floats(0.001, 100))
def test_samples_fill_the_time_and_are_never_fewer_than_three(
    parts: ctypes.CDLL, run_us: float, seconds: float
) -> None:
    plan = parts.plan_samples(run_us, seconds)
    runs = plan.samples * plan.runs_per_sample
    assert plan.runs_per_sample >= 1
    assert plan.samples >= (3 if run_us > seconds * 1e6 / 5 else 5)
    if run_us > seconds * 1e6 / 3:
        assert runs == 3
    elif plan.runs_per_sample < 10**6:
        assert 0.5 <= runs * run_us / (seconds * 1e6) <= 1.3


@EXAMPLES
@given(
    bursts=st.lists(
        st.tuples(st.integers(0, 50), st.lists(st.integers(1, 30), min_size=1, max_size=5)), min_size=1, max_size=4
    )
)
def test_the_common_window_counts_runs_by_their_share_inside(
    parts: ctypes.CDLL, bursts: list[tuple[int, list[int]]]
) -> None:
    structs, spans = (Burst * len(bursts))(), []
    for i, (start, lengths) in enumerate(bursts):
        ends = [start + sum(lengths[: j + 1]) for j in range(len(lengths))]
        structs[i] = Burst(start, (ctypes.c_double * len(ends))(*ends), len(ends))
        spans.append((start, ends))
    low, high = max(start for start, _ in spans), min(ends[-1] for _, ends in spans)
    # Unit steps of time, each worth one part of the run it falls in.
    work = sum(
        1 / (end - begin)
        for start, ends in spans
        for begin, end in zip([start, *ends], ends, strict=False)
        for moment in range(begin, end)
        if low <= moment < high
    )
    window, runs = ctypes.c_double(), ctypes.c_double()
    assert parts.common_window(structs, len(bursts), window, runs) == (high > low)
    assert window.value == max(high - low, 0)
    assert runs.value == pytest.approx(work)


def as_json(parts: ctypes.CDLL, text: bytes) -> str:
    built = Json()
    parts.json_string(built, text)
    result: str = built.text.decode("utf-8")  # strict: what is written is valid UTF-8
    parts.json_free(built)
    return result


@EXAMPLES
@given(text=st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0")))
def test_any_text_survives_json(parts: ctypes.CDLL, text: str) -> None:
    assert json.loads(as_json(parts, text.encode())) == text


@EXAMPLES
@given(raw=st.binary(max_size=60))
def test_any_bytes_become_valid_json(parts: ctypes.CDLL, raw: bytes) -> None:
    raw = raw.replace(b"\0", b"")
    value = json.loads(as_json(parts, raw))
    try:
        assert value == raw.decode()
    except UnicodeDecodeError:
        assert "\ufffd" in value


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_null(parts: ctypes.CDLL, value: float) -> None:
    built = Json()
    parts.json_number(built, value)
    assert built.text == b"null"
    parts.json_free(built)


@pytest.mark.parametrize(
    ("text", "number"),
    [(b"2.3.2 (hash@date)", 20302), (b"2.0.0b0", 20000), (b"1.5.2", 10502), (b"two", 0), (b"", 0), (b"2.3", 0)],
)
def test_version_numbers_are_read_from_the_text(parts: ctypes.CDLL, text: bytes, number: int) -> None:
    assert parts.library_version_number(text) == number


def test_the_version_text_is_found_anywhere_in_the_file(parts: ctypes.CDLL, tmp_path: Path) -> None:
    file = tmp_path / "library"
    found = ctypes.create_string_buffer(64)
    file.write_bytes(b"\x7fELF" + bytes(5000) + b"librknnrt version: %s\0librknnrt version: 2.3.2 (a@b)\nrest")
    assert parts.library_file_version(str(file).encode(), found, 64)
    assert found.value == b"2.3.2 (a@b)"
    file.write_bytes(b"librknnrt version: ")
    assert not parts.library_file_version(str(file).encode(), found, 64)
    assert not parts.library_file_version(str(tmp_path / "absent").encode(), found, 64)
