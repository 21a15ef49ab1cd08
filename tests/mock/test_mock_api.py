# SPDX-License-Identifier: Apache-2.0
"""Arguments, refusals, memory and the meaning of each call."""

from __future__ import annotations

import ctypes as c
import mmap
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.mock import mock_reference as ref
from tests.mock.mock_client import (
    NATIVE,
    NORM,
    PER_CHANNEL,
    PER_GROUP,
    TP_NORM,
    Info,
    IoAttr,
    Matmul,
    Shape,
    counter,
    load,
)


@pytest.fixture(scope="module")
def library() -> Iterator[c.CDLL]:
    yield load()


@pytest.fixture
def small(library: c.CDLL) -> Iterator[Matmul]:
    """int8 2 x 32 x 32 with A = 1 and B = 2 everywhere, so that C is 64 everywhere."""
    with Matmul(library, 2, 2, 32, 32) as matmul:
        matmul.bytes("A")[:], matmul.bytes("B")[:] = 1, 2
        yield matmul


def result(matmul: Matmul) -> Any:
    return matmul.bytes("C").view(np.int32)


def create(library: c.CDLL, info: Info | None = None, *, ctx: bool = True, io: bool = True) -> int:
    handle, attrs = c.c_uint64(7), IoAttr()
    return int(
        library.rknn_matmul_create(
            c.byref(handle) if ctx else None, c.byref(info) if info else None, c.byref(attrs) if io else None
        )
    )


def test_create_without_ctx_is_an_invalid_context_and_without_info_an_invalid_parameter(library: c.CDLL) -> None:
    info = Info(1, 32, 32, 2)
    assert create(library, info, ctx=False) == -7
    assert create(library, None) == -5
    assert create(library, info, io=False) == -5


def test_a_refused_create_leaves_ctx_zero_and_io_attr_untouched(library: c.CDLL) -> None:
    handle, attrs = c.c_uint64(7), IoAttr()
    assert library.rknn_matmul_create(c.byref(handle), c.byref(Info(1, 33, 32, 2)), c.byref(attrs)) == -5
    assert handle.value == 0
    assert bytes(attrs) == bytes(c.sizeof(IoAttr))


@pytest.mark.parametrize("bad", [0, 1, 2**63, 0x5A0000001FFF])
def test_calls_with_a_handle_that_is_none_return_invalid_context(library: c.CDLL, bad: int) -> None:
    scale = c.c_float()
    assert library.rknn_matmul_run(bad) == -7
    assert library.rknn_matmul_destroy(bad) == -7
    assert library.rknn_matmul_set_core_mask(bad, 1) == -7
    assert library.rknn_matmul_set_io_mem(bad, None, None) == -7
    assert library.rknn_matmul_set_quant_params(bad, None) == -7
    assert library.rknn_matmul_get_quant_params(bad, None, c.byref(scale)) == -7
    assert library.rknn_matmul_set_dynamic_shape(bad, None) == -7
    assert library.rknn_query(bad, 5, None, 0) == -7
    assert not library.rknn_create_mem(bad, 64)


def test_a_handle_cut_to_32_bits_is_an_invalid_context(library: c.CDLL, small: Matmul) -> None:
    assert small.ctx.value > 0xFFFFFFFF
    assert library.rknn_matmul_run(small.ctx.value & 0xFFFFFFFF) == -7


def test_a_destroyed_handle_is_never_valid_again(library: c.CDLL) -> None:
    matmul = Matmul(library, 2, 1, 32, 32)
    old = matmul.ctx.value
    matmul.close()
    assert library.rknn_matmul_destroy(old) == -7
    with Matmul(library, 2, 1, 32, 32) as other:
        assert other.ctx.value != old
        assert library.rknn_matmul_run(old) == -7


@pytest.mark.parametrize(
    ("code", "b_layout", "ac_layout", "a", "b", "result"),
    [
        (2, NORM, NORM, (3, 64), (64, 96), (3, 96)),
        (2, NATIVE, NATIVE, (4, 3, 16), (3, 2, 32, 32), (24, 3, 4)),
        (2, TP_NORM, NORM, (3, 64), (96, 64), (3, 96)),
        (1, NATIVE, NATIVE, (8, 3, 8), (6, 2, 16, 32), (24, 3, 4)),
        (3, NATIVE, NATIVE, (4, 3, 16), (3, 2, 32, 32), (6, 3, 16)),
    ],
)
def test_io_attr_describes_dims_and_sizes(
    library: c.CDLL, *, code: int, b_layout: int, ac_layout: int, a: Any, b: Any, result: Any
) -> None:
    width = {"i8": 1, "f16": 2, "i32": 4, "f32": 4}
    with Matmul(library, code, 3, 64, 96, b_layout=b_layout, ac_layout=ac_layout) as matmul:
        kind = ref.KINDS[code]
        for name, dims, element in (("A", a, kind.a), ("B", b, kind.b), ("C", result, kind.c)):
            attr = getattr(matmul.io, name)
            assert attr.name == name.encode()
            assert attr.shape() == dims
            assert attr.size == np.prod(dims) * width[element]


def test_int4_sizes_are_half_their_elements(library: c.CDLL) -> None:
    with Matmul(library, 10, 5, 64, 128, b_layout=NATIVE, ac_layout=NATIVE) as matmul:
        assert matmul.io.A.shape() == (2, 5, 32)
        assert matmul.io.A.size == 5 * 64 // 2
        assert matmul.io.B.shape() == (2, 2, 64, 32)
        assert matmul.io.B.size == 64 * 128 // 2
        assert matmul.io.C.shape() == (16, 5, 8)


@pytest.mark.parametrize(
    ("code", "K", "N", "text"),
    [
        (2, 48, 32, "matmul K:48 must be align with 32!"),
        (2, 32, 48, "matmul N:48 must be align with 32!"),
        (1, 32, 24, "matmul N:24 must be align with 16!"),
        (10, 32, 96, "matmul N:96 must be align with 64!"),
    ],
)
def test_misaligned_shapes_are_refused_with_the_line_that_parsers_know(
    library: c.CDLL, capfd: Any, *, code: int, K: int, N: int, text: str
) -> None:
    assert Matmul(library, code, 1, K, N).code == -5
    assert text in capfd.readouterr().err


@pytest.mark.parametrize("code", [-1, 0, 5, 6, 7, 8, 11, 12, 13, 14, 15, 16, 31, 32, 1000])
def test_types_that_rk3588_lacks_are_refused_with_minus_five(library: c.CDLL, capfd: Any, code: int) -> None:
    assert Matmul(library, code, 1, 64, 64).code == -5
    line = capfd.readouterr().err
    assert line.startswith("E RKNN: [")
    assert "unsupported matmul dtype" in line


def test_shapes_without_elements_and_beyond_4_gib_are_refused(library: c.CDLL) -> None:
    for M, K, N in ((0, 32, 32), (1, 0, 32), (1, 32, 0), (-1, 32, 32), (2**31 - 1, 2**31 - 32, 32), (65536, 32, 32768)):
        assert Matmul(library, 2, M, K, N).code == -5, (M, K, N)


def test_layout_quantisation_and_domain_values_outside_their_range_are_refused(library: c.CDLL) -> None:
    assert Matmul(library, 2, 1, 32, 32, b_layout=3).code == -5
    assert Matmul(library, 2, 1, 32, 32, b_layout=-1).code == -5
    assert Matmul(library, 2, 1, 32, 32, ac_layout=2).code == -5
    assert Matmul(library, 2, 1, 32, 32, b_quant=1).code == -5
    assert Matmul(library, 2, 1, 32, 32, b_quant=6).code == -5
    assert Matmul(library, 2, 1, 32, 32, domain=16).code == -5
    assert Matmul(library, 2, 1, 32, 32, domain=-1).code == -5
    with Matmul(library, 2, 1, 32, 32, domain=15):
        pass


def test_poisoned_reserved_bytes_are_refused_unless_told_otherwise(tmp_path: Any) -> None:
    info = Info(1, 32, 32, 2)
    info.reserved[33] = 1
    assert create(load(), info) == -5
    config = tmp_path / "loose"
    config.write_text("limits.strict_reserved = 0\n")
    assert create(load(config=str(config)), info) == 0


def test_per_channel_is_for_types_2_and_3_and_per_group_for_native_type_9(library: c.CDLL, capfd: Any) -> None:
    for code in (2, 3):
        with Matmul(library, code, 1, 32, 32, b_quant=PER_CHANNEL):
            pass
    assert Matmul(library, 9, 1, 32, 32, b_quant=PER_CHANNEL).code == -5
    assert "PER_CHANNEL_SYM, only supported matmul dtype" in capfd.readouterr().err
    native = {"b_layout": NATIVE, "ac_layout": NATIVE}
    with Matmul(library, 9, 1, 64, 32, b_quant=PER_GROUP, group_size=32, **native):
        pass
    assert Matmul(library, 9, 1, 64, 32, b_quant=PER_GROUP, group_size=32).code == -5
    assert "only supported AC_layout: Native, B_layout: Native" in capfd.readouterr().err
    assert Matmul(library, 3, 1, 64, 32, b_quant=PER_GROUP, group_size=32, **native).code == -5
    for group in (0, -32, 48):
        assert Matmul(library, 9, 1, 64, 32, b_quant=PER_GROUP, group_size=group, **native).code == -5
    assert "K: 64 must align group size: 48" in capfd.readouterr().err


def test_normal_operands_are_taken_at_the_bind(small: Matmul) -> None:
    assert small.bind() == [0, 0, 0]
    small.bytes("A")[:] = 3
    small.bytes("B")[:] = 5
    assert small.run() == 0
    assert np.all(result(small) == 32 * 1 * 2)
    assert small.bind("A") == [0]
    assert small.run() == 0
    assert np.all(result(small) == 32 * 3 * 2)


def test_native_operands_are_read_at_the_run(library: c.CDLL) -> None:
    with Matmul(library, 2, 4, 32, 32, b_layout=NATIVE, ac_layout=NATIVE) as matmul:
        matmul.bytes("A")[:], matmul.bytes("B")[:] = 1, 2
        assert matmul.bind() == [0, 0, 0]
        assert matmul.run() == 0
        matmul.bytes("A")[:], matmul.bytes("B")[:] = 3, 5
        assert matmul.run() == 0
        assert np.all(result(matmul) == 32 * 3 * 5)


def test_a_run_needs_all_three_operands_bound_and_their_memory_alive(library: c.CDLL, capfd: Any) -> None:
    with Matmul(library, 2, 1, 32, 32) as matmul:
        for done, missing in (("", "A"), ("A", "B"), ("B", "C")):
            assert matmul.bind(done) == [0] * len(done)
            assert matmul.run() == -5
            assert f"{missing} is not bound" in capfd.readouterr().err
        matmul.bind("C")
        assert matmul.run() == 0
        gone = matmul.memory.pop("B")
        assert library.rknn_destroy_mem(matmul.ctx, gone) == 0
        assert matmul.run() == -5
        assert "the memory of B is destroyed" in capfd.readouterr().err
        assert library.rknn_matmul_set_io_mem(matmul.ctx, gone, c.byref(matmul.io.B)) == -5
        assert library.rknn_mem_sync(matmul.ctx, gone, 1) == -5
        assert library.rknn_destroy_mem(matmul.ctx, gone) == -5


def test_binding_judges_memory_and_attr(library: c.CDLL, small: Matmul) -> None:
    short = library.rknn_create_mem(small.ctx, small.io.B.size - 1)
    bind = library.rknn_matmul_set_io_mem
    assert bind(small.ctx, short, c.byref(small.io.B)) == -5
    assert bind(small.ctx, None, c.byref(small.io.B)) == -5
    assert bind(small.ctx, small.memory["B"], None) == -5
    stranger = type(short.contents)()
    assert bind(small.ctx, c.pointer(stranger), c.byref(small.io.B)) == -5
    renamed = type(small.io.B).from_buffer_copy(small.io.B)
    renamed.name = b"D"
    assert bind(small.ctx, small.memory["B"], c.byref(renamed)) == -5
    renamed.name, renamed.dims[0] = b"B", 64
    assert bind(small.ctx, small.memory["B"], c.byref(renamed)) == -5
    assert library.rknn_destroy_mem(small.ctx, short) == 0


def test_memory_has_an_fd_is_zeroed_and_goes_once(library: c.CDLL, small: Matmul) -> None:
    mem = library.rknn_create_mem(small.ctx, 5000)
    shown = mem.contents
    assert (shown.size, shown.offset, shown.flags) == (5000, 0, 1)
    assert os.fstat(shown.fd).st_size == 8192
    assert not any(c.string_at(shown.virt_addr, 8192))
    address = c.cast(mem, c.c_void_p)
    assert library.rknn_destroy_mem(small.ctx, mem) == 0
    assert library.rknn_destroy_mem(small.ctx, c.cast(address, type(mem))) == -5
    assert not library.rknn_create_mem(small.ctx, 0)


def test_a_client_that_writes_over_the_fd_loses_no_file_of_its_own(library: c.CDLL, small: Matmul) -> None:
    mine = os.memfd_create("mine")
    mem = library.rknn_create_mem(small.ctx, 64)
    made = mem.contents.fd
    mem.contents.fd = mine
    assert library.rknn_destroy_mem(small.ctx, mem) == 0
    os.fstat(mine)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(made)
    os.close(mine)


def test_create_mem2_takes_known_flags_only_and_no_context_when_asked(library: c.CDLL, small: Matmul) -> None:
    for flags in (0, 1, 2, 4, 5, 6):
        assert library.rknn_destroy_mem(small.ctx, library.rknn_create_mem2(small.ctx, 64, flags)) == 0
    free = library.rknn_create_mem2(0, 64, 0x20000)
    assert library.rknn_destroy_mem(0, free) == 0
    assert not library.rknn_create_mem2(0, 64, 0)
    assert not library.rknn_create_mem2(small.ctx, 64, 8)
    assert not library.rknn_create_mem2(small.ctx, 64, 3)
    assert not library.rknn_create_mem2(small.ctx, 2**32, 0)
    assert not library.rknn_create_mem2(small.ctx, 2**63, 0)


def test_memory_from_an_fd_honours_the_offset(library: c.CDLL, small: Matmul) -> None:
    fd = os.memfd_create("test")
    os.ftruncate(fd, 65536)
    with mmap.mmap(fd, 65536) as mapping:
        view = np.frombuffer(mapping, np.uint8)
        base = view.ctypes.data
        view[: small.io.B.size] = 9
        view[4096 : 4096 + small.io.B.size] = 2
        mem = library.rknn_create_mem_from_fd(small.ctx, fd, base, small.io.B.size, 4096)
        assert (mem.contents.virt_addr, mem.contents.offset, mem.contents.flags) == (base, 4096, 2)
        assert small.bind("AC") == [0, 0]
        assert library.rknn_matmul_set_io_mem(small.ctx, mem, c.byref(small.io.B)) == 0
        assert small.run() == 0
        assert np.all(result(small) == 64)
        assert library.rknn_destroy_mem(small.ctx, mem) == 0
        assert os.fstat(fd).st_size == 65536  # the client's own fd stays open
        for bad in ((-1, base, 64, 0), (fd, None, 64, 0), (fd, base, 0, 0), (fd, base, 64, -1), (9999, base, 64, 0)):
            assert not library.rknn_create_mem_from_fd(small.ctx, *bad), bad
        for past in ((fd, base, 65537, 0), (fd, base, 1, 65536), (fd, base, 2**32 - 1, 2**31 - 1)):
            assert not library.rknn_create_mem_from_fd(small.ctx, *past), past
        whole = library.rknn_create_mem_from_fd(small.ctx, fd, base, 65536, 0)
        assert library.rknn_destroy_mem(small.ctx, whole) == 0
        del view
    os.close(fd)


def test_physical_memory_is_refused(library: c.CDLL, small: Matmul, capfd: Any) -> None:
    assert not library.rknn_create_mem_from_phys(small.ctx, 0x10000000, None, 4096)
    assert "physical" in capfd.readouterr().err


def test_sync_takes_its_three_modes_and_known_memory(library: c.CDLL, small: Matmul) -> None:
    assert [library.rknn_mem_sync(small.ctx, small.memory["A"], mode) for mode in (1, 2, 3)] == [0, 0, 0]
    assert [library.rknn_mem_sync(small.ctx, small.memory["A"], mode) for mode in (0, 4, -1)] == [-5, -5, -5]
    assert library.rknn_mem_sync(small.ctx, None, 1) == -5


def test_each_iommu_domain_has_a_ceiling_of_its_own(tmp_path: Any) -> None:
    config = tmp_path / "domains"
    config.write_text("limits.domain_bytes = 1000000\n")
    library = load(config=str(config))
    one, other = Matmul(library, 2, 1, 32, 32, domain=1), Matmul(library, 2, 1, 32, 32, domain=2)
    big = library.rknn_create_mem(one.ctx, 900_000)
    assert big
    assert not library.rknn_create_mem(one.ctx, 900_000)
    second = library.rknn_create_mem(other.ctx, 900_000)
    assert second
    assert library.rknn_destroy_mem(one.ctx, big) == 0
    again = library.rknn_create_mem(one.ctx, 900_000)
    assert again
    assert Matmul(library, 2, 1000, 1024, 1024, domain=1).code == -4
    for mem in (second, again):
        library.rknn_destroy_mem(0, mem)


def test_core_masks_of_one_core_are_taken_and_others_refused(library: c.CDLL, small: Matmul, capfd: Any) -> None:
    masks = library.rknn_matmul_set_core_mask
    assert [masks(small.ctx, mask) for mask in (0, 1, 2, 4)] == [0, 0, 0, 0]
    assert [masks(small.ctx, mask) for mask in (3, 7, 0xFFFF, 8, 6, -1)] == [-1] * 6
    assert "fall back to RKNN_NPU_CORE_AUTO mode" in capfd.readouterr().err
    assert small.bind() == [0, 0, 0]
    assert small.run() == 0


def test_query_answers_versions_and_memory_and_refuses_short_buffers(
    library: c.CDLL, small: Matmul, capfd: Any
) -> None:
    text = (c.c_char * 512)()
    assert library.rknn_query(small.ctx, 5, text, 512) == 0
    assert text.raw[:256].split(b"\0")[0] == b"2.3.2 (mock of rknpu-kit)"
    assert text.raw[256:].split(b"\0")[0] == b"0.9.8"
    assert library.rknn_query(small.ctx, 5, text, 511) == -5
    assert "info_len(511) < sizeof" in capfd.readouterr().err
    assert library.rknn_query(small.ctx, 6, text, 64) == 0
    sizes = [small.io.A.size, small.io.B.size, small.io.C.size]
    assert np.frombuffer(text.raw[:16], np.uint32).tolist() == [sizes[1], sum(sizes), sum(sizes), 0]
    with Matmul(library, 2, 2, 32, 32, b_layout=NATIVE, ac_layout=NATIVE) as native:
        assert library.rknn_query(native.ctx, 6, text, 64) == 0
        assert np.frombuffer(text.raw[:16], np.uint32).tolist() == [1024, 0, 0, 0]
    assert library.rknn_query(small.ctx, 0, text, 512) == -5
    assert library.rknn_query(small.ctx, 5, None, 512) == -5


def test_the_model_functions_are_there_and_refuse(library: c.CDLL, capfd: Any) -> None:
    handle = c.c_uint64(9)
    assert library.rknn_init(c.byref(handle), None, 0, 0, None) == -6
    assert handle.value == 0
    assert library.rknn_run(c.c_uint64(1), None) == -7
    assert "runs no models" in capfd.readouterr().err


def test_about_150_contexts_live_at_once(library: c.CDLL) -> None:
    before = counter(library, "contexts")
    made = [Matmul(library, 2, 1, 32, 32) for _ in range(160)]
    alive = [matmul for matmul in made if matmul.code == 0]
    assert len(alive) == 150 - before
    assert {matmul.code for matmul in made} == {0, -1}
    for matmul in alive:
        matmul.close()
    assert counter(library, "contexts") == before


def test_dynamic_shapes_share_k_and_n_and_run_each_m(library: c.CDLL, capfd: Any) -> None:
    shapes = (Shape * 3)(Shape(1, 64, 32), Shape(4, 64, 32), Shape(9, 64, 32))
    ctx, attrs = c.c_uint64(), (IoAttr * 3)()
    create_dynamic = library.rknn_matmul_create_dynamic_shape
    create_dynamic.argtypes = [c.c_void_p, c.c_void_p, c.c_int, c.c_void_p, c.c_void_p]
    assert create_dynamic(c.byref(ctx), c.byref(Info(1, 64, 32, 2)), 3, shapes, attrs) == 0
    assert "set info.M to max size" in capfd.readouterr().err
    memory = {name: library.rknn_create_mem(ctx, getattr(attrs[2], name).size) for name in "ABC"}
    random = np.random.default_rng(3)
    b = random.integers(-128, 128, (64, 32)).astype(np.int8)
    c.memmove(memory["B"].contents.virt_addr, b.tobytes(), b.size)
    for i, shape in enumerate(shapes):
        a = random.integers(-128, 128, (shape.M, 64)).astype(np.int8)
        assert library.rknn_matmul_set_dynamic_shape(ctx, c.byref(shape)) == 0
        c.memmove(memory["A"].contents.virt_addr, a.tobytes(), a.size)
        for name in "ABC":
            assert library.rknn_matmul_set_io_mem(ctx, memory[name], c.byref(getattr(attrs[i], name))) == 0
        assert library.rknn_matmul_run(ctx) == 0
        got = np.frombuffer(c.string_at(memory["C"].contents.virt_addr, shape.M * 128), np.int32)
        assert np.array_equal(got.reshape(shape.M, 32), a.astype(np.int32) @ b.astype(np.int32))
    assert library.rknn_matmul_set_dynamic_shape(ctx, c.byref(Shape(2, 64, 32))) == -5
    assert library.rknn_matmul_destroy(ctx) == 0
    for mem in memory.values():
        assert library.rknn_destroy_mem(0, mem) == 0
    other = (Shape * 2)(Shape(1, 64, 32), Shape(1, 96, 32))
    assert create_dynamic(c.byref(ctx), c.byref(Info(1, 64, 32, 2)), 2, other, attrs) == -5
    assert "K and N must be same!" in capfd.readouterr().err
    assert create_dynamic(c.byref(ctx), c.byref(Info(1, 32, 32, 2)), 3, shapes, attrs) == -5
    assert create_dynamic(c.byref(ctx), c.byref(Info(1, 64, 32, 2)), 0, shapes, attrs) == -5
    assert create_dynamic(c.byref(ctx), c.byref(Info(1, 64, 32, 2)), 3, None, attrs) == -5


def test_larger_dynamic_shape_than_the_bound_memory_is_refused_at_the_run(library: c.CDLL) -> None:
    shapes = (Shape * 2)(Shape(1, 32, 32), Shape(64, 32, 32))
    ctx, attrs = c.c_uint64(), (IoAttr * 2)()
    info = Info(64, 32, 32, 2)
    assert library.rknn_matmul_create_dynamic_shape(c.byref(ctx), c.byref(info), 2, shapes, attrs) == 0
    memory = {name: library.rknn_create_mem(ctx, getattr(attrs[1], name).size) for name in "ABC"}

    def bind(a: int, result: int) -> None:
        for name, which in (("A", a), ("B", 0), ("C", result)):
            assert library.rknn_matmul_set_io_mem(ctx, memory[name], c.byref(getattr(attrs[which], name))) == 0

    bind(0, 0)
    assert library.rknn_matmul_run(ctx) == 0
    assert library.rknn_matmul_set_dynamic_shape(ctx, c.byref(shapes[1])) == 0
    bind(0, 1)
    assert library.rknn_matmul_run(ctx) == -5
    memory["A"].contents.size = 32
    bind(0, 1)
    memory["A"].contents.size = attrs[1].A.size
    bind(1, 1)
    assert library.rknn_matmul_run(ctx) == 0
    library.rknn_matmul_destroy(ctx)
    for mem in memory.values():
        library.rknn_destroy_mem(0, mem)
