# SPDX-License-Identifier: Apache-2.0
"""One contender of bench/gemm_s8.py in a process of its own: the kernels, torch, onnxruntime or numpy.

A process each, because thread pools that spin beside one another slow everyone, and because the instruction set
and the BLAS of a library are chosen by environment variables when it is loaded.

    python -m bench.gemm.contenders CONTENDER LIBRARY THREADS

reads requests from stdin, one JSON object a line, {"M": 1, "seconds": 0.4}, and answers each with one line.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.gemm.kernels import Kernels, build_library
from reference_engine.foreign_cpu import CpuWatch

K = N = 4096
WARM_UP_RUNS = 3
Run = Callable[[], Any]
Ready = tuple[Callable[[NDArray[np.int8]], Run], str, float]  # from A to a run; a note; preparing B in seconds


def inputs(M: int) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """The same A [M, K] and B [K, N] for every contender: all of int8's range."""
    rng = np.random.default_rng(20261130)
    b = rng.integers(-128, 128, (K, N), dtype=np.int8)
    return rng.integers(-128, 128, (M, K), dtype=np.int8), b


def own(b: NDArray[np.int8], threads: int, library: str) -> Ready:
    """The kernels of the mock, built into `library`; B packed once."""
    kernels = Kernels(build_library(Path(library)))
    if kernels.error():
        raise RuntimeError(kernels.error())
    start = time.perf_counter()
    packed = kernels.pack(b)
    seconds = time.perf_counter() - start

    def bind(a: NDArray[np.int8]) -> Run:
        c = np.zeros((a.shape[0], N), np.int32)

        def run() -> NDArray[np.int32]:
            if kernels.multiply(a, packed, c, threads):
                raise MemoryError("mock_gemm_s8 returned -1")
            return c

        return run

    return bind, f"path {kernels.path()}", seconds


def torch_int_mm(b: NDArray[np.int8], threads: int, transposed: bool) -> Ready:
    """torch._int_mm with B stored [K, N] or, transposed, as the view of a [N, K] tensor."""
    torch: Any = import_module("torch")

    torch.set_num_threads(threads)
    weight = torch.from_numpy(b.T.copy()).t() if transposed else torch.from_numpy(b)

    def bind(a: NDArray[np.int8]) -> Run:
        left = torch.from_numpy(a)
        return lambda: torch._int_mm(left, weight)

    return bind, f"torch {torch.__version__}", 0.0


def onnx_matmul_integer(b: NDArray[np.int8], threads: int, unsigned_a: bool) -> Ready:
    """onnxruntime MatMulInteger with B an initializer; A is s8, or u8 with zero point 128."""
    onnx: Any = import_module("onnx")
    onnxruntime: Any = import_module("onnxruntime")
    helper, numpy_helper, types = onnx.helper, onnx.numpy_helper, onnx.TensorProto

    a_type, zero = (types.UINT8, np.uint8(128)) if unsigned_a else (types.INT8, np.int8(0))
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["A", "B", "zero"], ["C"])],
        "product",
        [helper.make_tensor_value_info("A", a_type, ["M", K])],
        [helper.make_tensor_value_info("C", types.INT32, ["M", N])],
        [numpy_helper.from_array(b, "B"), numpy_helper.from_array(np.array(zero), "zero")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    start = time.perf_counter()
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    seconds = time.perf_counter() - start

    def bind(a: NDArray[np.int8]) -> Run:
        feed = {"A": (a.astype(np.int16) + 128).astype(np.uint8) if unsigned_a else a}
        return lambda: session.run(None, feed)[0]

    return bind, f"onnxruntime {onnxruntime.__version__}, onnx {onnx.__version__}", seconds


def numpy_float32(b: NDArray[np.int8], transposed: bool) -> Ready:
    """numpy float32 BLAS: exact only where sums stay within 2^24, so with random inputs and not in general."""
    weight = b.T.astype(np.float32).T if transposed else b.astype(np.float32)

    def bind(a: NDArray[np.int8]) -> Run:
        left, c = a.astype(np.float32), np.zeros((a.shape[0], N), np.float32)
        return lambda: np.matmul(left, weight, out=c)

    return bind, f"numpy {np.__version__}", 0.0


CONTENDERS: dict[str, Callable[[NDArray[np.int8], int, str], Ready]] = {
    "kernels": own,
    "torch": lambda b, threads, _: torch_int_mm(b, threads, False),
    "torch-t": lambda b, threads, _: torch_int_mm(b, threads, True),
    "ort-u8s8": lambda b, threads, _: onnx_matmul_integer(b, threads, True),
    "ort-s8s8": lambda b, threads, _: onnx_matmul_integer(b, threads, False),
    "numpy-f32": lambda b, _threads, _: numpy_float32(b, False),
    "numpy-f32-t": lambda b, _threads, _: numpy_float32(b, True),
}


def timed(run: Run, seconds: float) -> dict[str, Any]:
    """Run for about `seconds`: samples in microseconds, and the CPU time that others took meanwhile."""
    for _ in range(WARM_UP_RUNS):
        run()
    samples = []
    watch, end = CpuWatch(), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter_ns()
        run()
        samples.append((time.perf_counter_ns() - start) / 1000)
    use = watch.stop()
    return {"samples_us": samples, "own_s": use.own_s, "window_s": use.window_s, "foreign_s": use.foreign_s or 0.0}


def verdict(c: NDArray[Any], a: NDArray[np.int8], b: NDArray[np.int8]) -> str:
    """Compare with float64 BLAS, which is exact here (sums stay below 2^53)."""
    expected = a.astype(np.float64) @ b.astype(np.float64)
    return "exact" if np.array_equal(c.astype(np.float64), expected) else "inexact"


def main() -> None:
    """Serve requests until stdin ends."""
    name, library, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    runs: dict[int, Run] = {}
    reply: dict[str, Any]
    try:
        _, b = inputs(1)
        bind, note, prepare_s = CONTENDERS[name](b, threads, library)
        reply = {"note": note, "prepare_s": prepare_s}
    except Exception as error:  # a missing or broken peer is an answer, not a crash
        reply = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(reply), flush=True)
    gc.disable()
    for line in sys.stdin:
        request = json.loads(line)
        M = request["M"]
        try:
            reply = {}
            if M not in runs:
                a, b = inputs(M)
                runs[M] = bind(a)
                reply["verdict"] = verdict(np.asarray(runs[M]()), a, b)
            reply |= timed(runs[M], request["seconds"])
        except Exception as error:  # a shape a library refuses is an answer too
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
