# SPDX-License-Identifier: Apache-2.0
"""Layouts: native tiles, the converter of B, transposed B, segments of K."""

from __future__ import annotations

import numpy as np

from c_probes.librknnrt import Layout, Matmul, MatmulType, RknnError
from conformance.bench import Bench, NotServed, Wrong, right
from conformance.oracles import exact_product, from_native_c, native_a, native_b, nibbles, random_int8
from conformance.oracles_compare import difference
from conformance.runtime.products import Array, multiply

INT8 = MatmulType.INT8_MM_INT8_TO_INT32


def _operands(bench: Bench, M: int, K: int, N: int) -> tuple[Array, Array]:
    return random_int8(bench.random, (M, K), 0), random_int8(bench.random, (K, N), 1)


def _native_b_of(matmul: Matmul, b: Array) -> Array:
    dims = matmul.attr("B").dims
    if len(dims) != 4:
        raise Wrong(f"native B is described by the dimensions {dims}, four are documented")
    return native_b(b, dims[2], dims[3])


def native_layouts(bench: Bench) -> str:
    """Native A, B and C hold the tiles that the runtime's own dimensions name, and give the same product.

    Tile sizes differ by chip and type (user guide 2.3.0, table 3-5), so they are read, never assumed.
    """
    bench.needs(INT8)
    for M, K, N in ((1, 64, 32), (5, 256, 96), (17, 96, 64)):
        a, b = _operands(bench, M, K, N)
        exact = exact_product(a, b)
        for b_layout, ac_layout in (
            (Layout.NATIVE, Layout.NORM),
            (Layout.NORM, Layout.NATIVE),
            (Layout.NATIVE, Layout.NATIVE),
        ):
            with bench.matmul(M, K, N, INT8, B_layout=b_layout, AC_layout=ac_layout) as matmul:
                left = native_a(a, matmul.attr("A").dims[-1]) if ac_layout else a
                got = multiply(matmul, left, _native_b_of(matmul, b) if b_layout else b)
            found = difference(exact, from_native_c(got) if ac_layout else got)
            right(found, f"int8, M={M} K={K} N={N}, B_layout {int(b_layout)}, AC_layout {int(ac_layout)}")
    return "native A, B and C packed by the runtime's dimensions give exact products in three shapes"


def transposed_b(bench: Bench) -> str:
    """B given as its transpose [N, K] (TP_NORM) gives the same product.

    A field of runtime 2.1.0 and later; which types take it has no source, so a refusal is no failure.
    """
    bench.needs(INT8)
    M, K, N = 3, 96, 64
    a, b = _operands(bench, M, K, N)
    try:
        matmul = bench.matmul(M, K, N, INT8, B_layout=Layout.TP_NORM)
    except RknnError as error:
        raise NotServed(f"B_layout TP_NORM is refused: {error}") from error
    with matmul:
        got = multiply(matmul, a, np.ascontiguousarray(b.T))
    right(difference(exact_product(a, b), got), f"int8 with transposed B, M={M} K={K} N={N}")
    return f"transposed B right, M={M} K={K} N={N}"


def converter(bench: Bench) -> str:
    """rknn_B_normal_layout_to_native_layout gives the documented tiles, ten times the same, for int8 and for int4.

    int4 goes in unpacked: packed input made it read past its end (rknn-toolkit2 pull 412).
    """
    types = bench.needs(INT8, MatmulType.INT4_MM_INT4_TO_INT16)
    for type in types:
        int4 = type == MatmulType.INT4_MM_INT4_TO_INT16
        M, K, N = 2, 96, 128
        low, high = (-8, 8) if int4 else (-128, 128)
        b = bench.random.integers(low, high, (K, N)).astype(np.int8)
        with bench.matmul(M, K, N, type, B_layout=Layout.NATIVE) as matmul:
            made = [np.asarray(matmul.convert_B(b)).reshape(-1).view(np.uint8) for _ in range(10)]
            tiles = _native_b_of(matmul, b).reshape(-1)
        want = nibbles(tiles) if int4 else tiles.view(np.uint8)
        for turn, got in enumerate(made):
            found = difference(want.reshape(1, -1), got[: want.size].reshape(1, -1))
            right(found, f"converted B of type {type}, K={K} N={N}, time {turn + 1}")
    return f"the converter gives the documented tiles for types {types}, ten times the same"


def k_segments(bench: Bench) -> str:
    """One product with K over the cliff and native B is the sum of the products of its parts of K.

    Above K = 8192 (RK3588) or 4096 (RK3576) native B lies segment by segment; only the converter knows how.
    """
    bench.needs(INT8)
    M, K, N, part = 3, 8192 + 256, 32, 2112
    if not bench.takes_k(K):
        raise NotServed(f"{bench.where} refuses K={K}, as known")
    a, b = _operands(bench, M, K, N)
    total = np.zeros((M, N), np.int64)
    for start in range(0, K, part):
        with bench.matmul(M, part, N, INT8) as matmul:
            piece = slice(start, start + part)
            total += multiply(matmul, np.ascontiguousarray(a[:, piece]), np.ascontiguousarray(b[piece]))
    right(difference(exact_product(a, b), total), f"sum of {K // part} parts of K={part}")
    with bench.matmul(M, K, N, INT8, B_layout=Layout.NATIVE) as matmul:
        got = multiply(matmul, a, np.asarray(matmul.convert_B(b)))
    right(difference(total, got), f"native B in segments, M={M} K={K} N={N}, against the sum of its parts")
    return f"K={K} with native B equals the sum of {K // part} parts"


def dynamic_shapes(bench: Bench) -> str:
    """A context for several M gives the product of each, in any order of choosing.

    K and N have to be the same in all shapes (message of runtime 2.3.2).
    """
    bench.needs(INT8)
    K, N, Ms = 96, 64, (1, 4, 17, 32)
    try:
        made = bench.library.matmul_dynamic([(M, K, N) for M in Ms], INT8)
    except RknnError as error:
        raise Wrong(f"a context for M of {Ms}, K={K} N={N} is refused: {error}") from error
    with made as matmul:
        for M in (17, 1, 32, 4, 1):
            matmul.set_shape(M, K, N)
            a, b = _operands(bench, M, K, N)
            right(difference(exact_product(a, b), multiply(matmul, a, b)), f"dynamic shape M={M} K={K} N={N}")
    return f"one context right for M of {Ms} in turn"


def padding(bench: Bench) -> str:
    """K and N that no tile divides, padded with zeros, give the unpadded product and zeros beside it.

    K has to be aligned to 32 and N to 32 (header of 2.3.2), so every program pads. What stands in the padding of A
    does not count where B has zeros.
    """
    bench.needs(INT8)
    for M, K, N in bench.pick([(1, 33, 31), (3, 70, 100)], [(1, 1, 1), (1, 33, 31), (3, 70, 100), (17, 999, 333)]):
        a, b = _operands(bench, M, K, N)
        wide_k, wide_n = -(-K // 32) * 32, -(-N // 32) * 32
        left, right_side = random_int8(bench.random, (M, wide_k), 0), np.zeros((wide_k, wide_n), np.int8)
        left[:, :K], right_side[:K, :N] = a, b
        with bench.matmul(M, wide_k, wide_n, INT8) as matmul:
            got = multiply(matmul, left, right_side)
        want = np.zeros((M, wide_n), np.int64)
        want[:, :N] = exact_product(a, b)
        right(difference(want, got), f"M={M} K={K} N={N} padded to K={wide_k} N={wide_n}")
    return "K and N that no tile divides, padded: the product, and zeros beside it"


def batch_invariance(bench: Bench) -> str:
    """Row i of a batch is, bit for bit, what row i gives alone; for fp16 too.

    Engines give other tokens at other batch sizes where this does not hold (vllm issues 7627, 9567).
    """
    types = bench.needs(INT8, MatmulType.FLOAT16_MM_FLOAT16_TO_FLOAT32)
    for type in types:
        M, K, N = 9, 288, 64
        draw = [bench.random.integers(-128, 128, shape) for shape in ((M, K), (K, N))]
        a, b = (x.astype(np.int8) if type == INT8 else (x / 64).astype(np.float16) for x in draw)
        with bench.matmul(M, K, N, type) as matmul:
            batch = multiply(matmul, a, b)
        with bench.matmul(1, K, N, type) as matmul:
            alone = np.concatenate([multiply(matmul, np.ascontiguousarray(a[i : i + 1]), b) for i in range(M)])
        right(difference(alone, batch), f"type {type}: rows of a batch of {M} against rows alone, K={K} N={N}")
    return f"rows of a batch equal rows alone, bit for bit, types {types}"
