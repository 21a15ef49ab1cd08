# SPDX-License-Identifier: Apache-2.0
"""What differs between chips and runtime versions."""

from __future__ import annotations

import ctypes as c
import re
import subprocess
from typing import Any

import numpy as np
import pytest

from tests.mock import mock_reference as ref
from tests.mock.mock_client import BUILD, NATIVE, PER_CHANNEL, VERSIONS, Info, IoAttr, Matmul, Shape, load

BASE_1_4 = [
    "rknn_create_mem",
    "rknn_create_mem_from_fd",
    "rknn_create_mem_from_phys",
    "rknn_destroy",
    "rknn_destroy_mem",
    "rknn_dup_context",
    "rknn_init",
    "rknn_inputs_set",
    "rknn_matmul_create",
    "rknn_matmul_destroy",
    "rknn_matmul_run",
    "rknn_matmul_set_core_mask",
    "rknn_matmul_set_io_mem",
    "rknn_outputs_get",
    "rknn_outputs_release",
    "rknn_query",
    "rknn_run",
    "rknn_set_batch_core_num",
    "rknn_set_core_mask",
    "rknn_set_internal_mem",
    "rknn_set_io_mem",
    "rknn_set_weight_mem",
    "rknn_wait",
]
IN_1_5 = {*BASE_1_4, "rknn_set_input_shape", "rknn_set_input_shapes"}
IN_1_6 = IN_1_5 | {"rknn_mem_sync", "rknn_custom_op_get_op_attr", "rknn_register_custom_ops"}
IN_2 = IN_1_6 | {
    "rknn_create_mem2",
    "rknn_matmul_set_dynamic_shape",
    "rknn_matmul_set_quant_params",
    "rknn_matmul_get_quant_params",
    "rknn_B_normal_layout_to_native_layout",
}
IN_2_1 = IN_2 | {"rknn_matmul_create_dynamic_shape"}
EXPORTS = {
    "1.5.2": IN_1_5,
    "1.6.0": IN_1_6,
    "2.0.0-beta0": IN_2 | {"rknn_matmul_create_dyn_shape"},
    "2.1.0": IN_2_1,
    "2.3.2": IN_2_1 | {"rknn_get_device_properties", "get_total_npu_memory_of_Matmul"},
}
TYPES = {
    "rk3588": {1, 2, 3, 4, 9, 10},
    "rk3576": {1, 2, 4, 5, 7, 8, 11},
    "rk3562": {1, 2},
    "rk3566": {1, 2},
    "rk3568": {1, 2},
    "rv1126b": {1},
    "any": set(ref.KINDS),
}
RUNTIME_TYPES = {
    "1.5.2": {1, 2},
    "1.6.0": {1, 2, 10},
    "2.0.0-beta0": {1, 2, 3, 4, 5, 6, 7, 8, 10, 11},
    "2.1.0": {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
    "2.3.2": set(ref.KINDS),
}


def accepted(library: c.CDLL) -> set[int]:
    found = set()
    for code in range(21):
        matmul = Matmul(library, code, 1, 64, 64)
        if matmul.code == 0:
            found.add(code)
            matmul.close()
    return found


def test_the_versions_known_to_the_tests_are_those_of_the_package() -> None:
    from c_probes import mock  # noqa: PLC0415

    assert mock.VERSIONS == VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
def test_each_version_exports_its_own_functions_and_nothing_else(version: str) -> None:
    listing = subprocess.run(
        ["nm", "-D", "--defined-only", str(BUILD / "mock" / version / "librknnrt.so")],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    symbols = {line.split()[-1] for line in listing.splitlines()}
    own = {name for name in symbols if name.startswith("rknn_mock_")}
    assert symbols - own == EXPORTS[version]
    assert own == {"rknn_mock_version", "rknn_mock_list", "rknn_mock_counter", "rknn_mock_kernel", "rknn_mock_check"}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_file_says_its_version_and_that_it_is_a_mock_without_being_loaded(version: str) -> None:
    path = BUILD / "mock" / version / "librknnrt.so"
    found = re.findall(rb"librknnrt version: ([0-9][^ ]*) \(([^)]*)\)", path.read_bytes())
    assert found == [(version.encode(), b"mock of rknpu-kit")]
    dynamic = subprocess.run(["readelf", "-d", str(path)], capture_output=True, text=True, check=True).stdout
    assert "SONAME" in dynamic
    assert "[librknnrt.so]" in dynamic


def test_the_default_library_is_the_newest_version() -> None:
    newest = (BUILD / "mock" / VERSIONS[-1] / "librknnrt.so").read_bytes()
    assert (BUILD / "mock" / "librknnrt.so").read_bytes() == newest


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("persona", sorted(TYPES))
def test_each_chip_accepts_its_types_of_those_the_runtime_has(version: str, persona: str) -> None:
    want = TYPES[persona] & RUNTIME_TYPES[version]
    if persona in {"rk3566", "rk3568"} and version.startswith("1."):
        want = {2}  # the header of that time for these chips knows int8 only
    assert accepted(load(version, persona=persona)) == want


@pytest.mark.parametrize("persona", ["rk3562", "rk3566", "rk3568", "rv1126b"])
def test_chips_with_one_core_refuse_every_core_mask(persona: str) -> None:
    library = load(persona=persona)
    with Matmul(library, 1, 1, 32, 16) as matmul:
        assert [library.rknn_matmul_set_core_mask(matmul.ctx, mask) for mask in (0, 1, 3, 7)] == [-1] * 4


def test_rk3576_has_two_cores() -> None:
    library = load(persona="rk3576")
    with Matmul(library, 2, 1, 32, 32) as matmul:
        masks = [library.rknn_matmul_set_core_mask(matmul.ctx, mask) for mask in (0, 1, 2, 4)]
    assert masks == [0, 0, 0, -1]


# Persona, type, A cell, B tile (n, k), and for the K segment of native B.
NATIVE_RULES = [
    ("rk3562", 1, 8, (8, 32), 1 << 30),
    ("rk3562", 2, 16, (16, 32), 1 << 30),
    ("rk3566", 1, 4, (8, 16), 1 << 30),
    ("rk3568", 2, 8, (16, 32), 1 << 30),
    ("rk3576", 1, 8, (16, 32), 4096),
    ("rk3576", 2, 16, (32, 32), 4096),
    ("rk3576", 5, 8, (16, 32), 4096),
    ("rk3576", 7, 8, (16, 32), 4096),
    ("rk3576", 11, 16, (32, 32), 4096),
]


@pytest.mark.parametrize(("persona", "code", "cell", "tile", "segment"), NATIVE_RULES)
def test_each_chip_tiles_natively_in_its_own_way(
    *, persona: str, code: int, cell: int, tile: tuple[int, int], segment: int
) -> None:
    library, kind = load(persona=persona), ref.KINDS[code]
    K = 4160 if persona == "rk3576" else 96
    a, b = ref.data(kind, 6, K, 64, code, small=True)
    with Matmul(library, code, 6, K, 64, b_layout=NATIVE, ac_layout=NATIVE) as matmul:
        assert matmul.io.A.shape() == (K // cell, 6, cell)
        assert matmul.io.B.shape() == (64 // tile[0], K // tile[1], *tile)
        matmul.write("A", ref.pack_a(a, kind.a, True, cell))
        matmul.write("B", ref.pack_b(b, kind.b, NATIVE, tile, segment))
        assert matmul.bind() == [0, 0, 0]
        assert matmul.run() == 0
        got = ref.unpack_c(matmul.bytes("C").copy(), kind.c, 6, 64, True)
    assert np.array_equal(got, ref.expected(kind, ref.product(a, b)))


@pytest.mark.parametrize(
    ("version", "code", "limit", "text"),
    [
        ("1.5.2", 2, 4096, "matmul K must be less than or equal 4096!"),
        ("1.5.2", 1, 2048, "matmul K must be less than or equal 2048!"),
        ("1.6.0", 2, 10240, "rknn_matmul_create, k > limit: 10240"),
        ("2.1.0", 1, 10240, "max k > limit: 10240"),
    ],
)
def test_older_runtimes_end_at_their_largest_k(capfd: Any, *, version: str, code: int, limit: int, text: str) -> None:
    library = load(version)
    with Matmul(library, code, 1, limit, 32):
        pass
    assert Matmul(library, code, 1, limit + 32, 32).code == -5
    assert text in capfd.readouterr().err


def test_runtime_2_3_2_on_rk3588_has_no_largest_k() -> None:
    with Matmul(load(), 2, 1, 20480, 32):
        pass


def test_runtime_1_5_2_speaks_in_its_own_words(capfd: Any) -> None:
    library = load("1.5.2")
    assert Matmul(library, 3, 1, 32, 32).code == -5
    assert "rknn_matmul_create, meet unsupported matmul dtype: 3" in capfd.readouterr().err
    assert Matmul(library, 2, 1, 33, 32).code == -5
    assert "matmul K must be align with 32!" in capfd.readouterr().err
    assert Matmul(library, 1, 1, 32, 24).code == -5
    assert "matmul N must be align with 16!" in capfd.readouterr().err


@pytest.mark.parametrize("version", ["1.5.2", "1.6.0"])
def test_runtimes_1_x_read_24_bytes_of_the_info_and_not_one_more(version: str) -> None:
    library = load(version)
    page = 4096
    libc = c.CDLL(None, use_errno=True)
    libc.mmap.restype, libc.mmap.argtypes = c.c_void_p, [c.c_void_p, c.c_size_t, c.c_int, c.c_int, c.c_int, c.c_long]
    base = libc.mmap(None, 2 * page, 3, 0x22, -1, 0)
    assert libc.mprotect(c.c_void_p(base + page), page, 0) == 0
    info = np.array([2, 32, 32, 2, 1, 1], np.int32)
    c.memmove(base + page - 24, info.ctypes.data, 24)
    handle, attrs = c.c_uint64(), IoAttr()
    assert library.rknn_matmul_create(c.byref(handle), base + page - 24, c.byref(attrs)) == 0
    assert attrs.B.n_dims == 4
    assert library.rknn_matmul_destroy(handle) == 0
    libc.munmap(c.c_void_p(base), 2 * page)


def test_runtime_2_0_0_beta0_has_one_quantisation_switch_and_its_own_names() -> None:
    library = load("2.0.0-beta0")
    with Matmul(library, 2, 1, 32, 32, b_quant=1) as matmul:
        assert matmul.scales("B", np.ones(32, np.float32)) == 0
    assert Matmul(library, 2, 1, 32, 32, b_quant=PER_CHANNEL).code == -5
    assert Matmul(library, 2, 1, 32, 32, b_layout=2).code == -5
    shapes, attrs, handle = (Shape * 2)(Shape(1, 32, 32), Shape(2, 32, 32)), (IoAttr * 2)(), c.c_uint64()
    info = Info(2, 32, 32, 2)
    assert library.rknn_matmul_create_dyn_shape(c.byref(handle), c.byref(info), 2, shapes, attrs) == 0
    assert library.rknn_matmul_destroy(handle) == 0


def test_runtime_2_0_0_beta0_converts_b_with_seven_arguments() -> None:
    library = load("2.0.0-beta0")
    _, b = ref.data(ref.KINDS[2], 1, 96, 64, 5)
    out = np.zeros(b.size, np.uint8)
    call = library.rknn_B_normal_layout_to_native_layout
    call.argtypes = [c.c_void_p, c.c_void_p, c.c_int, c.c_int, c.c_int, c.c_int, c.c_int]
    assert call(b.ctypes.data, out.ctypes.data, 96, 64, 32, 32, 2) == 0
    assert np.array_equal(out, ref.pack_b(b, "i8", NATIVE).view(np.uint8).reshape(-1))
    assert call(b.ctypes.data, out.ctypes.data, 96, 64, 0, 32, 2) == -5
    assert call(b.ctypes.data, out.ctypes.data, 96, 64, 32, 32, 13) == -5


def test_every_persona_names_its_doubts() -> None:
    from c_probes import mock  # noqa: PLC0415

    personas = mock.personas(BUILD / "mock" / "librknnrt.so")
    assert {persona.name for persona in personas} == set(TYPES)
    assert all(persona.doubt for persona in personas)
    assert {persona.name: set(persona.types) for persona in personas} == TYPES
    timing = {entry.name for entry in mock.timing_sets(BUILD / "mock" / "librknnrt.so")}
    assert {persona.timing for persona in personas} <= timing


def test_memory_is_destroyed_with_ctx_0_only_where_memory_without_a_context_exists() -> None:
    for version in VERSIONS:
        library = load(version)
        with Matmul(library, 2, 1, 32, 32) as matmul:
            mem = library.rknn_create_mem(matmul.ctx, 64)
            old = version in {"1.5.2", "1.6.0"}
            assert library.rknn_destroy_mem(0, mem) == (-7 if old else 0)
            assert library.rknn_destroy_mem(matmul.ctx, mem) == (0 if old else -5)


ALIGNMENT = {
    # Smallest K and N by type: header comments of 2.3.2, user guide table 3-7; mixed types take the wider of both.
    "rk3588": {1: (32, 16), 2: (32, 32), 3: (32, 32), 4: (32, 16), 9: (32, 32), 10: (32, 64)},
    "rk3576": {1: (32, 16), 2: (32, 32), 4: (32, 16), 5: (32, 32), 7: (32, 64), 8: (32, 64), 11: (32, 64)},
    "rk3562": {1: (32, 8), 2: (32, 16)},
    "rk3566": {1: (16, 8), 2: (32, 16)},
    "rk3568": {1: (16, 8), 2: (32, 16)},
    "rv1126b": {1: (32, 8)},
}


@pytest.mark.parametrize("persona", sorted(ALIGNMENT))
def test_each_chip_takes_the_multiples_of_its_alignment_and_nothing_between(persona: str) -> None:
    library = load(persona=persona)
    for code, (k, n) in ALIGNMENT[persona].items():
        taken = [size for size in range(1, 129) if Matmul(library, code, 1, size, 640).code == 0]
        assert taken == list(range(k, 129, k)), (code, "K")
        taken = [size for size in range(1, 129) if Matmul(library, code, 1, 640, size).code == 0]
        assert taken == list(range(n, 129, n)), (code, "N")
