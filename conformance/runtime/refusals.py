# SPDX-License-Identifier: Apache-2.0
"""What is offered and what is refused: types against the profile, impossible requests, calls without a context."""

from __future__ import annotations

from typing import Any

from c_probes.librknnrt import MatmulType, RknnError
from c_probes.names import error_name
from conformance.bench import Bench, Wrong

INT8 = MatmulType.INT8_MM_INT8_TO_INT32


def type_table(bench: Bench) -> str:
    """The matmul types that are taken and refused are those known of this chip and runtime.

    Tables and chips disagree (rknn-toolkit2 issue 567: RV1126B refuses int8 to int32 against the API table); a mixed
    type on RK3588 is refused, which is no failure.
    """
    taken, refused = [], []
    for type in MatmulType:
        expected = bench.expected("type", type)
        try:
            bench.library.matmul(2, 64, 64, type).close()
        except RknnError as error:
            refused.append(int(type))
            if expected is None:
                continue
            if expected.expect == "accepted":
                raise Wrong(
                    f"matmul type {int(type)} is refused, but known as taken ({expected.source}): {error}"
                ) from error
            if expected.code not in (None, error.code):
                raise Wrong(
                    f"matmul type {int(type)} is refused with {error.code}, known is {expected.code}"
                ) from error
            bench.known.append(f"matmul type {int(type)} is refused ({expected.source})")
        else:
            taken.append(int(type))
            if expected is not None and expected.expect == "refused":
                bench.note_unexpected(f"matmul type {int(type)} is accepted", expected)
    if not taken:
        raise Wrong("no matmul type is taken at all")
    return f"types {taken} taken, {refused} refused" + ("" if bench.profile else "; no profile to compare with")


def impossible_requests(bench: Bench) -> str:
    """A shape that cannot be served is refused with a code, never taken in silence.

    K and N have to be aligned (header of 2.3.2): K to 32 and N to 16 at least for int8, on every chip.
    """
    bench.needs(INT8)
    for M, K, N in ((2, 33, 64), (2, 64, 17), (0, 64, 64), (2, 0, 64), (2, 64, 0)):
        try:
            bench.library.matmul(M, K, N, INT8).close()
        except RknnError as error:
            if error.code is None or error.code >= 0:
                raise Wrong(f"M={M} K={K} N={N} is refused with code {error.code}, a negative one is due") from error
        else:
            raise Wrong(f"M={M} K={K} N={N} is accepted; its alignment or size cannot be served")
    return "five impossible shapes refused with a negative code"


def error_codes(bench: Bench) -> str:
    """Calls without a context or without a request are refused with a code, and the next right call works.

    -7 for context 0 and -5 for no request were seen on runtimes 1.4.0 to 1.6.0; programs that went on with context 0
    crashed in the runtime (rknpu2 issue 88). rknn_create_mem with context 0 is left out: 1.6.0 ends in SIGSEGV.
    """
    library, ffi = bench.library, bench.library.ffi
    io = ffi.new("rknn_matmul_io_attr *")
    info = ffi.new("char[256]")
    handle = ffi.new("rknn_matmul_ctx *")
    calls: dict[str, tuple[str, tuple[Any, ...]]] = {
        "run of context 0": ("rknn_matmul_run", (0,)),
        "destroy of context 0": ("rknn_matmul_destroy", (0,)),
        "core mask for context 0": ("rknn_matmul_set_core_mask", (0, 1)),
        "create without a context": ("rknn_matmul_create", (ffi.NULL, ffi.cast("rknn_matmul_info *", info), io)),
        "create without a request": ("rknn_matmul_create", (handle, ffi.NULL, io)),
        "bind without memory": ("rknn_matmul_set_io_mem", (0, ffi.NULL, ffi.addressof(io, "A"))),
    }
    seen = []
    for what, (function, arguments) in calls.items():
        if not library.has(function):
            continue
        try:
            library.call(function, *arguments, detail=what)
        except RknnError as error:
            if error.code is None or error.code >= 0:
                raise Wrong(f"{what}: {function} returned {error.code}, a negative code is due") from error
            seen.append(f"{what} {error.code}")
            if error_name(error.code).startswith("a code"):
                raise Wrong(f"{what}: {function} returned {error.code}, which no header names") from error
        else:
            raise Wrong(f"{what}: {function} returned 0")
    bench.needs(*MatmulType)
    return "; ".join(seen)
