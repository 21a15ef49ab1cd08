# SPDX-License-Identifier: Apache-2.0
"""What is offered and what is refused: types against the profile, impossible requests, resources given back."""

from __future__ import annotations

import gc
from pathlib import Path

from c_probes.librknnrt import MatmulType, RknnError
from conformance.bench import Bench, Wrong, right
from conformance.oracles import exact_product, random_int8
from conformance.oracles_compare import difference
from conformance.runtime.products import multiply

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


def descriptors(bench: Bench) -> str:
    """Contexts and memory give their file descriptors back.

    rknn_destroy_mem left one open for each block (rknn-toolkit2 issue 532); the process stops at about 1020.
    """
    bench.needs(INT8)
    turns = bench.pick(8, 50, 400)

    def once() -> None:
        with bench.matmul(2, 64, 64, INT8) as matmul:
            matmul.run()

    once()
    before = _open_files()
    for _ in range(turns):
        once()
    left = _open_files() - before
    if left >= turns:
        raise Wrong(f"{left} file descriptors stay open after {turns} contexts were destroyed: a leak of descriptors")
    return f"{turns} contexts made and destroyed, {left} more descriptors open"


def memory_growth(bench: Bench) -> str:
    """Memory does not grow with the number of runs.

    About 42 kB per inference were lost (rknn-toolkit2 issue 42). Growth counts over a second half, after a warm-up.
    """
    bench.needs(INT8)
    runs = bench.pick(200, 1000, 20000)
    with bench.matmul(2, 64, 64, INT8) as matmul:
        a, b = random_int8(bench.random, (2, 64), 0), random_int8(bench.random, (64, 64), 1)
        right(difference(exact_product(a, b), multiply(matmul, a, b)), "before the runs")
        for _ in range(runs):
            matmul.run()
        gc.collect()
        before = _resident_bytes()
        for _ in range(runs):
            matmul.run()
        gc.collect()
        grown = _resident_bytes() - before
    per_run = grown / runs
    if per_run > 4096:
        raise Wrong(f"memory grows by {per_run / 1024:.1f} KiB per run over {runs} runs: a leak of memory")
    return f"{runs} runs after as many of warm-up, {per_run:.0f} bytes more per run"


def _open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def _resident_bytes() -> int:
    fields = Path("/proc/self/statm").read_text("ascii").split()
    return int(fields[1]) * 4096
