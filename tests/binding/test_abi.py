# SPDX-License-Identifier: Apache-2.0
"""The declarations that cffi sees are the header's, and their layout is held against its assertions."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c_probes import abi, names
from c_probes.errors import LibraryUnavailable, UnsupportedByRuntime
from c_probes.runtime_rules import MatmulRequest, build_info, check_request, rules_for

HEADER = abi.HEADER.read_text(encoding="utf-8")


def test_every_struct_that_is_handed_over_is_checked_against_the_header() -> None:
    ffi = abi.load_ffi()
    known = abi.declared_types(abi.declarations(HEADER))
    wanted = [a for a in abi.assertions(HEADER, abi.machine_macros()) if a.type in known]
    assert abi.check_layout(ffi, wanted) == len(wanted) >= 50


def test_one_wrong_number_in_the_header_is_found() -> None:
    ffi = abi.load_ffi()
    good = [
        abi.Assertion("rknn_matmul_info", None, 64),
        abi.Assertion("rknn_matmul_io_attr", "C", 664),
        abi.Assertion("rknn_tensor_mem", None, 40),
        abi.Assertion("rknn_quant_params", "zp_len", 280),
    ]
    assert abi.check_layout(ffi, good) == 4
    for place, wrong in enumerate(good):
        spoiled = [*good[:place], wrong._replace(number=wrong.number + 4), *good[place + 1 :]]
        with pytest.raises(LibraryUnavailable, match="but the ABI header says"):
            abi.check_layout(ffi, spoiled)


def test_a_header_that_asserts_nothing_does_not_pass() -> None:
    with pytest.raises(LibraryUnavailable, match="asserts nothing about rknn_matmul_info"):
        abi.check_layout(abi.load_ffi(), [])


def test_conditions_of_the_header_pick_the_numbers_of_the_machine() -> None:
    sizes = {
        macros: {a.number for a in abi.assertions(HEADER, macros) if a[:2] == ("rknn_quant_params", None)}
        for macros in (frozenset({"__LP64__"}), frozenset({"__arm__"}))
    }
    assert sizes == {frozenset({"__LP64__"}): {288}, frozenset({"__arm__"}): {272}}


def test_the_c_compiler_takes_the_same_header(tmp_path: Path) -> None:
    source = tmp_path / "h.c"
    source.write_text('#include "rknn_abi.h"\n')
    subprocess.run(
        ["gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", str(abi.HEADER.parent), source],
        check=True,
        timeout=60,
    )


def test_the_names_in_python_are_those_of_the_header() -> None:
    ffi = abi.load_ffi()
    for python, enum, prefix in (
        (names.MatmulType, "rknn_matmul_type", "RKNN_"),
        (names.TensorType, "rknn_tensor_type", "RKNN_TENSOR_"),
        (names.Layout, "rknn_matmul_layout", "RKNN_MM_LAYOUT_"),
        (names.QuantType, "rknn_matmul_quant_type", "RKNN_QUANT_TYPE_"),
        (names.CoreMask, "rknn_core_mask", "RKNN_NPU_CORE_"),
        (names.SyncMode, "rknn_mem_sync_mode", "RKNN_MEMORY_SYNC_"),
    ):
        header = dict(ffi.typeof(enum).relements)
        if python is names.CoreMask:
            renamed = {f"RKNN_NPU_{m.name}": m.value for m in python}
        else:
            renamed = {prefix + member.name: member.value for member in python}
        renamed = {name.replace("RKNN_NPU_AUTO", "RKNN_NPU_CORE_AUTO"): value for name, value in renamed.items()}
        assert renamed == header, enum


def test_error_names_are_those_of_the_header() -> None:
    defined = {
        int(words[2]): words[1]
        for words in (line.split() for line in HEADER.splitlines())
        if len(words) == 3 and words[0] == "#define" and words[1].startswith(("RKNN_ERR_", "RKNN_SUCC"))
    }
    assert defined == names.ERROR_NAMES
    assert names.error_name(-99) == "a code of no known name"


def test_eras_change_where_the_headers_did() -> None:
    eras = {v: rules_for(v).era for v in [(1, 5, 2), (1, 6, 0), (2, 0, 0), (2, 1, 0), (2, 3, 2), (3, 0)]}
    assert list(eras.values()) == ["1.x", "1.x", "2.0", "2.1 and later", "2.1 and later", "2.1 and later"]
    assert rules_for(None).era == "2.1 and later"
    assert rules_for((0, 9)).era == "1.x"


SIZES = st.integers(0, (1 << 31) - 1)
REQUESTS = st.builds(
    MatmulRequest,
    *(SIZES, SIZES, SIZES, st.integers(0, 20)),
    B_layout=st.integers(0, 3),
    AC_layout=st.integers(0, 2),
    B_quant=st.integers(0, 6),
    AC_quant=st.integers(0, 6),
    group_size=st.sampled_from([0, 32, 128, (1 << 15) - 1]),
    iommu_domain=st.integers(0, 15),
)
FFI = abi.load_ffi()


@settings(max_examples=300, deadline=None)
@given(request=REQUESTS)
def test_the_info_of_a_late_runtime_is_its_struct_byte_for_byte(request: MatmulRequest) -> None:
    try:
        buffer, _ = build_info(FFI, request, rules_for((2, 3, 2)))
    except UnsupportedByRuntime:
        assert request.B_quant > 5 or request.AC_quant > 5 or request.B_layout > 2 or request.AC_layout > 1
        return
    expected = struct.pack(
        "<iiiihhhhih34x",
        *(request.M, request.K, request.N, request.type, request.B_layout, request.B_quant),
        *(request.AC_layout, request.AC_quant, request.iommu_domain, request.group_size),
    )
    assert bytes(FFI.buffer(buffer)) == expected + bytes(192)


@settings(max_examples=300, deadline=None)
@given(request=REQUESTS, version=st.sampled_from([(1, 5, 0), (1, 6, 0)]))
def test_a_1_x_runtime_gets_its_own_24_bytes_or_nothing(request: MatmulRequest, version: tuple[int, ...]) -> None:
    rules = rules_for(version)
    try:
        buffer, _ = build_info(FFI, request, rules)
    except UnsupportedByRuntime:
        with pytest.raises(UnsupportedByRuntime):
            check_request(request, rules)
        return
    fields = (request.M, request.K, request.N, request.type, request.B_layout, request.AC_layout)
    assert bytes(FFI.buffer(buffer)) == struct.pack("<6i", *fields) + bytes(232)


@pytest.mark.parametrize("field", ["M", "K", "N", "group_size", "iommu_domain"])
@pytest.mark.parametrize("value", [-1, 1 << 31, 1 << 64])
def test_a_value_that_its_field_cannot_hold_is_refused(field: str, value: int) -> None:
    request = MatmulRequest(**{"M": 1, "K": 32, "N": 32, "type": 2, field: value})
    with pytest.raises(ValueError, match=f"{field} = {value} does not fit"):
        check_request(request, rules_for((2, 3, 2)))
