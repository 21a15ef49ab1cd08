# SPDX-License-Identifier: Apache-2.0
"""What the tests do with a mock library, each inside a child of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from c_probes.librknnrt import (
    BindingError,
    Layout,
    Librknnrt,
    MatmulType,
    MissingSymbol,
    QuantType,
    UnsupportedByRuntime,
    open_library,
)
from probes.child_steps import step

M, K, N = 5, 128, 64


def integers(rows: int, columns: int, low: int = -128, high: int = 128) -> NDArray[np.int8]:
    return np.random.default_rng(rows * 1000 + columns).integers(low, high, (rows, columns), dtype=np.int8)


def native_a(a: NDArray[Any], cell: int) -> NDArray[Any]:
    """[K/c, M, c], as the user guide of runtime 2.3.0 has it."""
    return np.ascontiguousarray(a.reshape(a.shape[0], -1, cell).transpose(1, 0, 2))


def native_b(b: NDArray[Any], sub_n: int, sub_k: int) -> NDArray[Any]:
    """[N/n, K/k, n, k]."""
    rows, columns = b.shape
    blocks = b.reshape(rows // sub_k, sub_k, columns // sub_n, sub_n)
    return np.ascontiguousarray(blocks.transpose(2, 0, 3, 1))


def int8_in_every_layout(path: str) -> dict[str, Any]:
    """Type 2 through the binding in all layouts that the runtime knows; what the conversions say."""
    library = open_library(path)
    a, b = integers(M, K), integers(K, N)
    expected = a.astype(np.int64) @ b.astype(np.int64)
    answer: dict[str, Any] = {"version": library.version, "era": library.rules.era, "right": {}}
    for b_layout in sorted(library.rules.b_layouts):
        for ac_layout in (Layout.NORM, Layout.NATIVE):
            step(f"B_layout {b_layout}, AC_layout {int(ac_layout)}")
            with library.matmul(
                *(M, K, N, MatmulType.INT8_MM_INT8_TO_INT32), B_layout=b_layout, AC_layout=ac_layout
            ) as matmul:
                b_in, a_in = b, a
                if b_layout == Layout.NATIVE:
                    b_in = native_b(b, *matmul.attr("B").dims[2:])
                    answer["converted"] = _conversion(matmul, b, b_in)
                elif b_layout == Layout.TP_NORM:
                    b_in = np.ascontiguousarray(b.T)
                if ac_layout == Layout.NATIVE:
                    a_in = native_a(a, matmul.attr("A").dims[2])
                matmul.C[...] = 0x55555555
                matmul.load(A=a_in, B=b_in)
                matmul.run()
                c = matmul.result()
                if ac_layout == Layout.NATIVE:
                    c = c.transpose(1, 0, 2).reshape(M, N)
                answer["right"][f"{b_layout}/{int(ac_layout)}"] = bool(np.array_equal(c, expected))
    answer["remarks"] = library.remarks
    return answer


def _conversion(matmul: Any, b: NDArray[Any], expected: NDArray[Any]) -> str:
    try:
        made = matmul.convert_B(b)
    except (MissingSymbol, UnsupportedByRuntime) as error:
        return type(error).__name__
    return "same" if made.tobytes() == expected.tobytes() else "different"


def int4_product(path: str) -> dict[str, Any]:
    """Type 10 with native B from unpacked values: dtype of the views and whether C is right."""
    library = open_library(path)
    a, b = integers(M, K, -8, 8), integers(K, N, -8, 8)
    a[:, 40:] = 0  # so that no sum leaves int16
    with library.matmul(
        *(M, K, N, MatmulType.INT4_MM_INT4_TO_INT16), B_layout=Layout.NATIVE, AC_layout=Layout.NATIVE
    ) as matmul:
        tiled = native_a(a, 32).reshape(-1)
        packed = (tiled[0::2] & 15) | (tiled[1::2] & 15) << 4
        matmul.load(A=packed.astype(np.uint8), B=matmul.convert_B(b).reshape(matmul.B.shape))
        matmul.run()
        c = matmul.result()
        return {
            "dtypes": [str(matmul.A.dtype), str(matmul.B.dtype), str(c.dtype)],
            "bytes": [matmul.A.size, matmul.B.size],
            "right": bool(np.array_equal(c.transpose(1, 0, 2).reshape(M, N), a.astype(int) @ b.astype(int))),
        }


def dynamic_shapes(path: str) -> list[bool]:
    """The product at each of three shapes of one context."""
    library = open_library(path)
    a, b = integers(M, K), integers(K, N)
    right = []
    with library.matmul_dynamic([(rows, K, N) for rows in (1, 3, M)], MatmulType.INT8_MM_INT8_TO_INT32) as matmul:
        for rows in (M, 1, 3):
            matmul.set_shape(rows, K, N)
            matmul.load(A=a[:rows], B=b)
            matmul.run()
            right.append(bool(np.array_equal(matmul.result(), a[:rows].astype(int) @ b.astype(int))))
    return right


def one_run(path: str, quant: int = QuantType.PER_LAYER_SYM) -> dict[str, Any]:
    """One run of type 2; the remarks, and the binding's error in words."""
    library = open_library(path)
    try:
        _run(library, quant)
    except BindingError as error:
        return {"error": type(error).__name__, "text": str(error), "remarks": library.remarks}
    return {"error": None, "text": "", "remarks": library.remarks}


def _run(library: Librknnrt, quant: int) -> None:
    step("rknn_matmul_create")
    with library.matmul(*(M, K, N, MatmulType.INT8_MM_INT8_TO_INT32), B_quant=quant, B_layout=Layout.NORM) as matmul:
        step("rknn_matmul_set_io_mem")
        matmul.load(A=integers(M, K), B=integers(K, N))
        step("rknn_matmul_run")
        matmul.run()
        step("after the run")


def parallel_contexts(path: str) -> bool:
    """Three contexts on three cores, each run by its own thread without captures."""
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - only this target needs it

    library = open_library(path)

    def work(core: int) -> bool:
        a, b = integers(M + core, K), integers(K, N)
        with library.matmul(M + core, K, N, MatmulType.INT8_MM_INT8_TO_INT32, core_mask=1 << core) as matmul:
            matmul.load(A=a, B=b)
            for _ in range(50):
                matmul.run(capture=False)
            return bool(np.array_equal(matmul.result(), a.astype(int) @ b.astype(int)))

    with ThreadPoolExecutor(3) as pool:
        return all(pool.map(work, range(3)))


def create_only(path: str) -> None:
    """One context, made and destroyed."""
    step("rknn_matmul_create")
    with open_library(path).matmul(M, K, N, MatmulType.INT8_MM_INT8_TO_INT32):
        pass
