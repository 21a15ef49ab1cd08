# SPDX-License-Identifier: Apache-2.0
"""Scales per layer, channel and group. Powers of two, so that a right runtime has nothing to round before the end."""

from __future__ import annotations

import numpy as np

from c_probes.librknnrt import Layout, MatmulType, QuantType, RknnError
from conformance.bench import Bench, NotServed, Wrong, right
from conformance.oracles import exact_product, from_native_c, grouped_product, native_a, native_b, requantised
from conformance.oracles_compare import difference, difference_between, difference_within
from conformance.runtime.products import multiply


def scales_per_layer(bench: Bench) -> str:
    """int8 to float32 multiplies by the scales of A and B, the default is 1; segments of K have scales of their own.

    The quantised paths are the least trustworthy part of the API: compare numbers, not return codes (rknn-toolkit2
    issue 550). Back ends that cut K at 8192 add up segments that a context each has scaled.
    """
    bench.needs(MatmulType.INT8_MM_INT8_TO_FLOAT32)
    M, K, N = 5, 128, 64
    a, b = (bench.random.integers(-128, 128, shape).astype(np.int8) for shape in ((M, K), (K, N)))
    for scale_a, scale_b in ((1.0, 1.0), (0.5, 1.0), (1.0, 0.125), (2.0**-7, 2.0**-6)):
        with bench.matmul(M, K, N, MatmulType.INT8_MM_INT8_TO_FLOAT32) as matmul:
            if scale_a != 1.0:
                matmul.set_quant_params("A", [scale_a])
            if scale_b != 1.0:
                matmul.set_quant_params("B", [scale_b])
            got = multiply(matmul, a, b)
        want = (exact_product(a, b) * (scale_a * scale_b)).astype(np.float32)
        right(difference(want, got), f"int8 to float32, scale of A {scale_a:g}, of B {scale_b:g}")
    parts = 4
    size, scale = K // parts, 2.0 ** -(1 + np.arange(parts))
    total = np.zeros((M, N))
    for piece, own in enumerate(scale):
        rows = slice(piece * size, (piece + 1) * size)
        with bench.matmul(M, size, N, MatmulType.INT8_MM_INT8_TO_FLOAT32) as matmul:
            matmul.set_quant_params("B", [float(own)])
            total += multiply(matmul, np.ascontiguousarray(a[:, rows]), np.ascontiguousarray(b[rows]))
    want = grouped_product(a, b, np.repeat(scale[:, None], N, axis=1))
    turned = grouped_product(a, b, np.repeat(np.roll(scale, 1)[:, None], N, axis=1))
    wrong_scale = {"a segment has the scale of another": turned}
    right(difference(want, total, wrong_scale), f"{parts} segments of K={size}, each by its own scale")
    return f"scales of A and B per layer right to the last bit in four combinations, and of {parts} segments of K"


def scales_per_channel(bench: Bench) -> str:
    """int8 to int8 with a scale for each column of B gives each column its own scale.

    Zeros were reported for per-channel B (rknn-toolkit2 issue 550).
    """
    bench.needs(MatmulType.INT8_MM_INT8_TO_INT8)
    M, K, N = 5, 128, 64
    a, b = (bench.random.integers(-128, 128, shape).astype(np.int8) for shape in ((M, K), (K, N)))
    scale = 2.0 ** -(11 + np.arange(N) % 3)
    try:
        made = bench.matmul(M, K, N, MatmulType.INT8_MM_INT8_TO_INT8, B_quant=QuantType.PER_CHANNEL_SYM)
    except RknnError as error:
        raise NotServed(f"per-channel scales are refused: {error}") from error
    with made as matmul:
        matmul.set_quant_params("B", scale.astype(np.float32))
        got = multiply(matmul, a, b)
    low, high = requantised(exact_product(a, b), scale[None, :])
    right(difference_between(low, high, got), f"per-channel scales of B, int8 to int8, M={M} K={K} N={N}")
    return f"{N} columns, each by its own scale"


def scales_per_channel_int32(bench: Bench) -> str:
    """int8 to int32 with a scale for each column of B: C times the common scale that the runtime names is right.

    rknn_matmul_get_quant_params gives that scale, for this type alone (API reference 2.3.2). All zero was reported
    (rknn-toolkit2 issue 550). Columns are such multiples that a scale brought into B loses nothing.
    """
    type = MatmulType.INT8_MM_INT8_TO_INT32
    bench.needs(type)
    M, K, N = 5, 128, 64
    shift = np.arange(N) % 3
    a = bench.random.integers(-128, 128, (M, K)).astype(np.int8)
    b = (bench.random.integers(-31, 32, (K, N)) * 4).astype(np.int8)
    scale = 2.0 ** -(4 + shift)
    try:
        made = bench.matmul(M, K, N, type, B_quant=QuantType.PER_CHANNEL_SYM)
    except RknnError as error:
        raise NotServed(f"per-channel scales are refused: {error}") from error
    with made as matmul:
        matmul.set_quant_params("B", scale.astype(np.float32))
        got = multiply(matmul, a, b)
        common = matmul.get_quant_params("B")
    if not np.isfinite(common) or common <= 0:
        raise Wrong(f"the common scale of per-channel scales of B is {common:g}")
    want = exact_product(a, b) * (scale / common)[None, :]
    # A common scale that divides none of ours rounds every weight, by half a unit at most, or the sum.
    exact = np.array_equal(np.rint(np.log2(common)), np.log2(common)) and common <= scale.max()
    slack = np.zeros(want.shape) if exact else np.abs(a.astype(np.int64)).sum(axis=1, keepdims=True) / 2 + 1
    lost = {"the scales of the columns are lost": exact_product(a, b)}
    found = difference_within(want, got, np.broadcast_to(slack, want.shape), lost)
    right(found, f"per-channel scales of B, int8 to int32, M={M} K={K} N={N}, common scale {common:g}")
    return f"{N} columns, each by its own scale over the common {common:g}"


def scales_per_group(bench: Bench) -> str:
    """int8 to float32 with a scale for each group of 32 along K and each column.

    Zeros were reported (rknn-toolkit2 issue 550); scales lie as [K/32, N] by what users report.
    """
    bench.needs(MatmulType.INT8_MM_INT8_TO_FLOAT32)
    M, K, N, group = 4, 128, 64, 32
    a, b = (bench.random.integers(-128, 128, shape).astype(np.int8) for shape in ((M, K), (K, N)))
    scale = 2.0 ** -(bench.random.integers(0, 6, (K // group, N)))
    native = {"B_layout": Layout.NATIVE, "AC_layout": Layout.NATIVE}
    type = MatmulType.INT8_MM_INT8_TO_FLOAT32
    try:
        made = bench.matmul(M, K, N, type, B_quant=QuantType.PER_GROUP_SYM, group_size=group, **native)
    except RknnError as error:
        raise NotServed(f"per-group scales are refused: {error}") from error
    with made as matmul:
        matmul.set_quant_params("B", scale.astype(np.float32))
        tile = matmul.attr("B").dims
        got = from_native_c(multiply(matmul, native_a(a, matmul.attr("A").dims[-1]), native_b(b, tile[2], tile[3])))
    want = grouped_product(a, b, scale).astype(np.float32)
    right(difference(want, got), f"per-group scales of B, group {group}, M={M} K={K} N={N}")
    return f"{K // group} groups by {N} columns, each by its own scale, exact"
