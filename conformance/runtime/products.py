# SPDX-License-Identifier: Apache-2.0
"""Products: is C what A and B say, for each type of operands, over shapes and distributions?"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from c_probes.librknnrt import Layout, Matmul, MatmulType, RknnError
from conformance.bench import Bench, NotServed, right
from conformance.oracles import (
    DISTRIBUTIONS,
    exact_product,
    native_b,
    nibbles,
    reduction_bound,
    requantised,
    saturated,
    wrapped,
)
from conformance.oracles_compare import CANARY, difference, difference_between, difference_within

Array = NDArray[Any]

MS = (1, 2, 3, 4, 5, 8, 17, 64, 65, 128, 300)
"""Small M is where an open driver was wrong for every type (rockchip-npu-notes), large M where batches are split."""


def multiply(matmul: Matmul, a: Array, b: Array) -> Array:
    """Loads, runs and reads back. C is filled with the canary before."""
    matmul.C.view(np.uint8)[...] = CANARY
    matmul.load(A=a, B=b)
    matmul.bind("C")
    matmul.run()
    return matmul.result()


def lost_tail(a: Array, b: Array) -> dict[str, Array]:
    """What comes out when the end of K is left out: by the words for it."""
    return {
        f"the last {tail} products of each sum are missing (K tail dropped)": exact_product(a[:, :-tail], b[:-tail])
        for tail in (16, 32, 64)
        if a.shape[1] > tail
    }


def int8_products(bench: Bench) -> str:
    """int8 x int8 is exact in int32, for M of 1 to 300 and operands that are random, extreme, single, alternating.

    A run that returns 0 and leaves C untouched or zero was reported (rknn-toolkit2 issues 154, 550), and small M was
    wrong for all types on an open driver (rockchip-npu-notes).
    """
    bench.needs(MatmulType.INT8_MM_INT8_TO_INT32)
    K_and_N = bench.pick([(96, 32), (512, 160)], [(96, 32), (512, 160), (1024, 96), (4096, 512)])
    cases = 0
    for K, N in K_and_N:
        for M in MS:
            with bench.matmul(M, K, N, MatmulType.INT8_MM_INT8_TO_INT32) as matmul:
                for name, draw in DISTRIBUTIONS.items():
                    a, b = draw(bench.random, (M, K), 0), draw(bench.random, (K, N), 1)
                    found = difference(exact_product(a, b), multiply(matmul, a, b), lost_tail(a, b))
                    right(found, f"int8 to int32, M={M} K={K} N={N}, {name}")
                    cases += 1
    return f"{cases} int8 products exact to the last bit, M of {MS[0]} to {MS[-1]}, K and N of {K_and_N}"


def large_and_odd(random: np.random.Generator, M: int, K: int, N: int) -> tuple[Array, Array]:
    """Operands whose sums are near the largest and no multiple of anything: an accumulator of 24 bits rounds them."""
    a, b = (DISTRIBUTIONS["extremes"](random, shape, side) for side, shape in enumerate(((M, K), (K, N))))
    a[:, 0], b[0] = DISTRIBUTIONS["random"](random, (M, 1), 0)[:, 0], 2 * random.integers(-64, 64, N) + 1
    return a, b


def int8_k_cliff(bench: Bench) -> str:
    """int8 sums stay exact at K of 8192 and over it, where the runtime splits K into segments.

    A refusal above K = 8191 (rknn-toolkit2 issue 347) and a cliff of speed above 8192 were reported.
    """
    bench.needs(MatmulType.INT8_MM_INT8_TO_INT32)
    Ks, Ms = bench.pick(((8160, 8192, 8224), (3,)), ((8160, 8192, 8224, 9728, 10240), (1, 3, 17, 64)))
    taken = [K for K in Ks if bench.takes_k(K)]
    if not taken:
        raise NotServed(f"{bench.where} refuses every K of {Ks}, as known")
    for K in taken:
        for M, name in itertools.product(Ms, ("random", "extremes")):
            a, b = (DISTRIBUTIONS[name](bench.random, shape, side) for side, shape in enumerate(((M, K), (K, 32))))
            with bench.matmul(M, K, 32, MatmulType.INT8_MM_INT8_TO_INT32) as matmul:
                found = difference(exact_product(a, b), multiply(matmul, a, b), lost_tail(a, b))
                right(found, f"int8 to int32, M={M} K={K} N=32, {name}")
        a, b = large_and_odd(bench.random, Ms[0], K, 32)
        with bench.matmul(Ms[0], K, 32, MatmulType.INT8_MM_INT8_TO_INT32) as matmul:
            found = difference(exact_product(a, b), multiply(matmul, a, b), lost_tail(a, b))
            right(found, f"int8 to int32, M={Ms[0]} K={K} N=32, sums beyond 24 bits")
    return f"int8 products exact at K of {', '.join(map(str, taken))}, M of {', '.join(map(str, Ms))}"


def int8_wide_n(bench: Bench) -> str:
    """N above 4096 works although a table says that it does not, and gives right numbers.

    The user guide (table 3-7) has a limit of 4096; N of 8192 and 32000 ran on boards. N = 25600 was wrong for int8
    output (rknn-toolkit2 issue 246).
    """
    bench.needs(MatmulType.INT8_MM_INT8_TO_INT32)
    Ns = bench.pick((4128, 8192), (4128, 8192, 25600))
    for N in Ns:
        a, b = (DISTRIBUTIONS["random"](bench.random, shape, side) for side, shape in enumerate(((2, 64), (64, N))))
        with bench.matmul(2, 64, N, MatmulType.INT8_MM_INT8_TO_INT32) as matmul:
            right(difference(exact_product(a, b), multiply(matmul, a, b)), f"int8 to int32, M=2 K=64 N={N}")
    return f"int8 products exact at N of {', '.join(map(str, Ns))}"


def int8_to_int8(bench: Bench) -> str:
    """int8 output saturates at the rim, and is rounded to a neighbour, ties either way.

    Wrong int8 output was reported for N = 25600 (rknn-toolkit2 issue 246); conversions without a clamp wrap.
    """
    bench.needs(MatmulType.INT8_MM_INT8_TO_INT8)
    Ns = bench.pick((64,), (64, 25600))
    for N in Ns:
        for name, draw in DISTRIBUTIONS.items():
            for scale in (1.0, 2.0**-9, 2.0**-14):
                M, K = 5, 128
                a, b = draw(bench.random, (M, K), 0), draw(bench.random, (K, N), 1)
                with bench.matmul(M, K, N, MatmulType.INT8_MM_INT8_TO_INT8) as matmul:
                    matmul.set_quant_params("C", [1 / scale])
                    low, high = requantised(exact_product(a, b), scale)
                    sums = np.rint(exact_product(a, b) * scale).astype(np.int64)
                    wraps = {"int8 output wraps where it should saturate": wrapped(sums, 8)}
                    found = difference_between(low, high, multiply(matmul, a, b), wraps)
                    right(found, f"int8 to int8, M={M} K={K} N={N}, C scale {1 / scale:g}, {name}")
    return f"int8 output right and saturated at N of {', '.join(map(str, Ns))}, three scales of C, four distributions"


def int8_to_float(bench: Bench) -> str:
    """int8 products as float32 are the exact sums: below 2^24 each integer is a float.

    Type 9 was reported to give zeros or to be refused with some quantisation (rknn-toolkit2 issue 550).
    """
    bench.needs(MatmulType.INT8_MM_INT8_TO_FLOAT32)
    for M in MS[:7]:
        for name, draw in DISTRIBUTIONS.items():
            a, b = draw(bench.random, (M, 256), 0), draw(bench.random, (256, 96), 1)
            with bench.matmul(M, 256, 96, MatmulType.INT8_MM_INT8_TO_FLOAT32) as matmul:
                found = difference(exact_product(a, b).astype(np.float32), multiply(matmul, a, b), lost_tail(a, b))
                right(found, f"int8 to float32, M={M} K=256 N=96, {name}")
    return "int8 products as float32 exact for M of 1 to 17, four distributions"


def int4_products(bench: Bench) -> str:
    """int4 x int4 is right for all 256 pairs of values, with the even element in the low half of each byte.

    Order of the halves: high first in the demo of runtime 1.6, low first from 2.0.0-beta0 on. Where int4 B cannot be
    bound in normal layout (RK3588 with 2.3.2) it is bound in native layout, and the sentence says so: there the halves
    of A and B are neighbours in K alike, so an order that is wrong for both leaves every product right.
    """
    type = MatmulType.INT4_MM_INT4_TO_INT16
    bench.needs(type)
    M, K, N = 16, 64, 64
    a, b = np.zeros((M, K), np.int8), np.zeros((K, N), np.int8)
    a[:, ::3] = np.arange(-8, 8, dtype=np.int8)[:, None]
    b[:] = (np.arange(N, dtype=np.int8) % 16 - 8)[None, :]
    random = [bench.random.integers(-8, 8, shape).astype(np.int8) for shape in ((M, K), (K, N))]
    sparse = np.where(bench.random.random((M, K)) < 0.2, random[0], 0).astype(np.int8)
    for left, right_side, name in ((a, b, "every pair"), (sparse, random[1], "sparse")):
        got, how = multiply_int4(bench, type, nibbles(left), right_side)
        exact = exact_product(left, right_side)
        swapped = exact_product(swap(left), swap(right_side))
        found = difference(exact, got, {"the halves of each byte are read in the other order (nibble order)": swapped})
        right(found, f"int4 to int16, M={M} K={K} N={N}, {name}")
    return f"int4 products exact for every pair of values and at random, M={M} K={K} N={N}{how}"


def int16_overflow(bench: Bench) -> str:
    """Sums beyond int16 either saturate or wrap, all of them alike; which one is told.

    Programs cap K at 2048 because of this overflow (documents of the rknpu2_matmul_open project).
    """
    type = MatmulType.INT4_MM_INT4_TO_INT16
    bench.needs(type)
    M, K, N = 2, 1024, 64
    a = np.full((M, K), -8, np.int8)
    a[1] = 7
    b = np.full((K, N), -8, np.int8)
    got, how = multiply_int4(bench, type, nibbles(a), b)
    exact = exact_product(a, b)
    if np.array_equal(got, wrapped(exact, 16)):
        return f"int16 output WRAPS at K={K}: keep K x 64 below 32768{how}"
    right(difference(saturated(exact, 16), got), f"int4 to int16 beyond the range, M={M} K={K} N={N}")
    return f"int16 output saturates at K={K}{how}"


def mixed_products(bench: Bench) -> str:
    """fp16 or int8 A with int8 or int4 B is right for each of the 16 weight values and both signs of A.

    Positive int4 weights lost half of their size on RK3576 with runtime 2.3.x (types 7 and 8).
    """
    types = bench.needs(5, 6, 7, 8, 11, 12, 15)
    hows = set()
    for type in types:
        M, K, N, how = 4, 64, 64, ""
        int4 = type not in (5, 6)
        low, high = (-8, 8) if int4 else (-128, 128)
        b = bench.random.integers(low, high, (K, N)).astype(np.int8)
        b[0] = np.arange(N) % 16 - 8
        a = bench.random.integers(-2, 3, (M, K)).astype(np.int8)
        a[0], a[1] = 0, 0
        a[0, 0], a[1, 0] = 1, -1
        exact = exact_product(a, b)
        half = exact_product(2 * a.astype(np.int64), b) - exact_product(a, np.where(b > 0, b, 0))
        left = a if type in (11, 15) else a.astype(np.float16)
        if int4:
            got, how = multiply_int4(bench, type, left, b)
            hows.add(how)
        else:
            with bench.matmul(M, K, N, type) as matmul:
                got = multiply(matmul, left, b)
        if type == 12:
            got = (got.astype(np.uint32) << 16).view(np.float32)
        alternatives = {"positive int4 weights count half": (half / 2).astype(got.dtype)}
        swapped = exact_product(a, swap(b.T).T if how else swap(b))
        alternatives["the halves of each byte are read in the other order (nibble order)"] = swapped.astype(got.dtype)
        # Sums are integers below 2^11 for int8 weights at most by fp16's last place; bf16 keeps 8 bits.
        slack = {6: 2.0**-11, 12: 2.0**-8}.get(type, 0.0) * np.abs(exact)
        right(difference_within(exact, got, slack, alternatives), f"mixed type {type}, M={M} K={K} N={N}")
    return f"mixed types {types} right for each weight value by each sign of A{''.join(sorted(hows))}"


def fp16_products(bench: Bench) -> str:
    """fp16 products lie within the bound that fp32 sums allow, down to the smallest shape.

    1 x 32 x 16 gave all zero (rknn-toolkit2 issue 154). The bound follows from K, not from a guess (issue 471 there was
    plain fp16 rounding).
    """
    types = bench.needs(1, 4)
    shapes = [(1, 32, 16), (2, 32, 16), (3, 96, 48), (17, 512, 64), (64, 256, 96)]
    for type in types:
        for M, K, N in shapes + bench.pick([], [(8, 4096, 512), (128, 2048, 256)]):
            a = bench.random.standard_normal((M, K)).astype(np.float16)
            b = bench.random.standard_normal((K, N)).astype(np.float16)
            with bench.matmul(M, K, N, type) as matmul:
                got = multiply(matmul, a, b)
            exact = a.astype(np.float64) @ b.astype(np.float64)
            found = difference_within(exact, got, reduction_bound(a, b, half_output=type == 4))
            right(found, f"fp16 type {type}, M={M} K={K} N={N}")
    return f"fp16 types {types} within the bound of fp32 sums, smallest shape 1x32x16"


def fp16_accumulator(bench: Bench) -> str:
    """fp16 products are summed in fp32: a sum of 2048 small integers is exact.

    An fp16 accumulator stands still at 2048, where 1 is half of its last place.
    """
    bench.needs(MatmulType.FLOAT16_MM_FLOAT16_TO_FLOAT32)
    M, K, N = 3, 2048, 32
    a = np.ones((M, K), np.float16)
    a[1] = bench.random.integers(0, 4, K)
    b = np.ones((K, N), np.float16)
    with bench.matmul(M, K, N, MatmulType.FLOAT16_MM_FLOAT16_TO_FLOAT32) as matmul:
        got = multiply(matmul, a, b)
    exact = exact_product(a, b).astype(np.float32)
    found = difference(exact, got, lost_tail(a, b))
    if found is not None and got.any() and np.array_equal(got, got.astype(np.float16)):
        found += "; all sums are fp16 numbers: the accumulator is fp16"
    right(found, f"sums of small integers in fp16, M={M} K={K} N={N}")
    return f"fp16 sums of {K} small integers exact: the accumulator is fp32"


def swap(values: Array) -> Array:
    """The two values of each byte in the other order."""
    return np.ascontiguousarray(values.reshape(-1, 2)[:, ::-1].reshape(values.shape))


def multiply_int4(bench: Bench, type: int, a: Array, b: Array) -> tuple[Array, str]:
    """The product of A, packed as the type has it, with int4 B [K, N], and words for how B was bound.

    In normal layout, else in native layout packed here by the runtime's own dimensions: RK3588 with 2.3.2 refuses int4
    B in normal layout ("Unsupport type bits 0"). Whether that refusal is known is the check int4_normal_b's to judge.
    """
    K, N = b.shape
    M = a.size * (2 if type == MatmulType.INT4_MM_INT4_TO_INT16 else 1) // K
    with bench.matmul(M, K, N, type) as matmul:
        try:
            matmul.load(B=nibbles(b))
        except RknnError as error:
            refusal = error
        else:
            return multiply(matmul, a, nibbles(b)), ""
    with bench.matmul(M, K, N, type, B_layout=Layout.NATIVE) as matmul:
        dims = matmul.attr("B").dims
        if len(dims) != 4:
            raise refusal
        try:
            got = multiply(matmul, a, nibbles(native_b(b, dims[2], dims[3])))
        except RknnError as error:
            raise error from refusal
    return got, "; B in native layout, because normal int4 B is refused"
