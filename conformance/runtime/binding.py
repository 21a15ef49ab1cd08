# SPDX-License-Identifier: Apache-2.0
"""Binding and memory: what a run reads, what it may write, and when the CPU sees it."""

from __future__ import annotations

import numpy as np

from c_probes.librknnrt import Layout, MatmulType, RknnError, SyncMode
from c_probes.names import MEMORY_NON_CACHEABLE
from conformance.bench import Bench, Wrong, right
from conformance.oracles import exact_product, from_native_c, native_a, native_b, random_int8
from conformance.oracles_compare import CANARY, difference
from conformance.runtime.products import Array, multiply

INT8 = MatmulType.INT8_MM_INT8_TO_INT32
M, K, N = 6, 128, 64


def _draw(bench: Bench) -> tuple[Array, Array]:
    return random_int8(bench.random, (M, K), 0), random_int8(bench.random, (K, N), 1)


Pair = tuple[Array, Array]


def _stale(first: Pair, before: Pair, now: Pair) -> dict[str, Array]:
    """What a run gives that used operands of another run, by the words for it."""
    return {
        "C is the result of the run before (stale C)": exact_product(*before),
        "the A of the first run was used (stale A)": exact_product(first[0], now[1]),
        "the B of the first run was used (stale B)": exact_product(now[0], first[1]),
    }


def rebinding(bench: Bench) -> str:
    """A and B that were written and bound again count at the next run, in normal layout.

    Forgetting the new bind of A gives stale results (ggml-rknpu2.c of marty1885/llama.cpp); here it is not forgotten.
    """
    bench.needs(INT8)
    with bench.matmul(M, K, N, INT8) as matmul:
        a, b = _draw(bench)
        right(difference(exact_product(a, b), multiply(matmul, a, b)), "first run")
        first = a, b
        for turn in range(4):
            before = a, b
            a, b = _draw(bench)
            matmul.load(A=a, B=b)
            matmul.run()
            found = difference(exact_product(a, b), matmul.result(), _stale(first, before, (a, b)))
            right(found, f"run {turn + 2}, A and B written and bound again")
    return f"five runs with A and B written and bound anew, M={M} K={K} N={N}"


def native_rewrite(bench: Bench) -> str:
    """In native layout a buffer that is rewritten and synced counts at the next run without a new bind.

    Back ends rely on it: the loop of one skips the bind and is bit-identical on RK3588 (decode notes, 2.3.2).
    """
    bench.needs(INT8)
    with bench.matmul(M, K, N, INT8, B_layout=Layout.NATIVE, AC_layout=Layout.NATIVE) as matmul:
        cell, tile = matmul.attr("A").dims[-1], matmul.attr("B").dims
        a, b = _draw(bench)
        got = from_native_c(multiply(matmul, native_a(a, cell), native_b(b, tile[2], tile[3])))
        right(difference(exact_product(a, b), got), "first run, native layouts")
        first = a, b
        for turn in range(4):
            before = a, b
            a, b = _draw(bench)
            matmul.A[...] = native_a(a, cell).reshape(matmul.A.shape)
            matmul.B[...] = native_b(b, tile[2], tile[3]).reshape(matmul.B.shape)
            if bench.library.has("rknn_mem_sync"):
                matmul.sync("A", SyncMode.TO_DEVICE)
                matmul.sync("B", SyncMode.TO_DEVICE)
            matmul.run()
            got = from_native_c(matmul.result())
            found = difference(exact_product(a, b), got, _stale(first, before, (a, b)))
            right(found, f"run {turn + 2}, A and B rewritten in native layout, not bound again")
    return f"five runs, native A and B rewritten without a bind, M={M} K={K} N={N}"


def red_zones(bench: Bench) -> str:
    """A run writes C and nothing else: not behind C, not into A or B.

    Over-reads and over-writes by one bank were found on an open driver (rockchip-npu-notes).
    """
    bench.needs(INT8)
    zone = 256
    with bench.matmul(M, K, N, INT8) as matmul:
        a, b = _draw(bench)
        memory = {name: matmul.memory(matmul.attr(name).size + zone) for name in "ABC"}
        for name, block in memory.items():
            block.bytes[...] = CANARY
            size = matmul.attr(name).size
            if name in "AB":
                block.bytes[:size] = (a if name == "A" else b).reshape(-1).view(np.uint8)
            block.sync(SyncMode.TO_DEVICE)
            matmul.use(name, block)
        matmul.run()
        memory["C"].sync(SyncMode.FROM_DEVICE)
        size = matmul.attr("C").size
        seen = {name: block.bytes.copy() for name, block in memory.items()}
        for block in memory.values():
            block.close()
    for name, block_bytes in seen.items():
        end = {"A": a.nbytes, "B": b.nbytes, "C": size}[name]
        touched = np.flatnonzero(block_bytes[end:] != CANARY)
        if touched.size:
            raise Wrong(
                f"the run wrote {touched.size} bytes past the end of {name}, the first {touched[0]} bytes behind it"
            )
    for name, operand in (("A", a), ("B", b)):
        same = seen[name][: operand.nbytes] == operand.reshape(-1).view(np.uint8)
        if not same.all():
            raise Wrong(f"the run changed {np.count_nonzero(~same)} bytes of {name}")
    got = seen["C"][:size].view(np.int32).reshape(M, N)
    right(difference(exact_product(a, b), got), f"C in memory with red zones, M={M} K={K} N={N}")
    return f"{zone} bytes behind A, B and C untouched, A and B unchanged"


def non_cacheable_memory(bench: Bench) -> str:
    """C in memory that was asked to be non-cacheable is there when the run returns, without rknn_mem_sync.

    Default memory is cacheable and needs the sync both ways (header of 1.6.0 and later); the other kind exists to
    do without.
    """
    bench.needs(INT8)
    a, b = _draw(bench)
    with bench.matmul(M, K, N, INT8, memory_flags=MEMORY_NON_CACHEABLE) as matmul:
        matmul.load(A=a, B=b)
        matmul.bind("C")
        matmul.run()
        got = matmul.C.copy()
    found = difference(exact_product(a, b), got)
    right(found and f"{found} (read without rknn_mem_sync: C needs a sync)", "C in non-cacheable memory")
    return f"C in non-cacheable memory right without a sync, M={M} K={K} N={N}"


def fd_offset(bench: Bench) -> str:
    """Memory made from a file descriptor with an offset begins at that offset.

    Views of one dma-buf were wrong with offsets (pty819/rk-llama.cpp, docs/opi5, RK3588 with 2.3.2).
    """
    bench.needs(INT8)
    library = bench.library
    ffi = library.ffi
    a, b = _draw(bench)
    wrong_b = _draw(bench)[1]
    with bench.matmul(M, K, N, INT8) as matmul:
        size = matmul.attr("B").size
        block = matmul.memory(2 * size)
        block.bytes[:size] = wrong_b.reshape(-1).view(np.uint8)
        block.bytes[size:] = b.reshape(-1).view(np.uint8)
        block.sync(SyncMode.TO_DEVICE)
        context = block._context
        base = ffi.cast("char *", block.raw.virt_addr)
        detail = f"fd of {2 * size} bytes, offset {size}"
        view = library.call_pointer("rknn_create_mem_from_fd", context, block.raw.fd, base, size, size, detail=detail)
        attr = ffi.addressof(matmul._attrs[0], "B")
        matmul.load(A=a)
        library.call("rknn_matmul_set_io_mem", context, view, attr, detail="B from an fd with offset")
        matmul._bound.add("B")
        matmul.bind("C")
        matmul.run()
        got = matmul.result()
        library.call("rknn_destroy_mem", context, view, detail="view of an fd")
        block.close()
    start = {"the block was read from its start: the offset of the fd is ignored": exact_product(a, wrong_b)}
    right(difference(exact_product(a, b), got, start), f"B from an fd at offset {size}")
    return f"B read from an fd at offset {size}"


def int4_normal_b(bench: Bench) -> str:
    """int4 B in normal layout can be bound.

    Refused by RK3588 with runtime 2.3.2 ("Unsupport type bits 0"): there it is a known refusal, not a failure.
    """
    type = MatmulType.INT4_MM_INT4_TO_INT16
    bench.needs(type)
    expected = bench.expected("norm_b_of_type", type)
    with bench.matmul(2, 64, 64, type) as matmul:
        try:
            matmul.bind("B")
        except RknnError as error:
            if expected is None or expected.expect != "refused":
                raise Wrong(f"int4 B in normal layout cannot be bound: {error}") from error
            bench.known.append(f"int4 B in normal layout is refused ({expected.source})")
            return "int4 B in normal layout is refused, as known"
    if expected is not None and expected.expect == "refused":
        bench.note_unexpected("int4 B in normal layout can be bound", expected)
    return "int4 B in normal layout can be bound"
