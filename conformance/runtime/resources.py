# SPDX-License-Identifier: Apache-2.0
"""Resources: how many contexts there are, and whether everything that was handed out comes back."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from c_probes.librknnrt import Matmul, MatmulType, RknnError
from conformance.bench import Bench, NotServed, Wrong, right
from conformance.oracles import exact_product, random_int8
from conformance.oracles_compare import difference
from conformance.runtime.products import multiply

INT8 = MatmulType.INT8_MM_INT8_TO_INT32
NO_CONTEXT = 0x20000
"""RKNN_MEM_FLAG_ALLOC_NO_CONTEXT of the header of 2.1.0 and later."""

BOUNDED = 256
"""Contexts after which the search for the limit ends: more than the 150 or so that were reported."""


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
    before = open_files()
    for _ in range(turns):
        once()
    left = open_files() - before
    if left >= turns:
        raise Wrong(f"{left} file descriptors stay open after {turns} contexts were destroyed: a leak of descriptors")
    return f"{turns} contexts made and destroyed, {left} more descriptors open"


def address_space(bench: Bench) -> str:
    """Contexts and memory give their address space back: no mapping stays behind.

    rknn_create_mem2 without a context leaked mappings until mmap failed near 65487 of them (rknn-toolkit2 issue 532).
    """
    bench.needs(INT8)
    turns, size = bench.pick(16, 64, 400), 1 << 16
    with bench.matmul(2, 64, 64, INT8) as holder:
        handle, library = holder._handle, bench.library

        def context() -> None:
            bench.matmul(2, 64, 64, INT8).close()

        def memory() -> None:
            holder.memory(size).close()

        def with_flags(flags: int) -> Callable[[], None]:
            def once() -> None:
                detail = f"{size} bytes, flags {flags:#x}"
                made = library.call_pointer("rknn_create_mem2", handle, size, flags, detail=detail)
                library.call("rknn_destroy_mem", handle, made, detail=detail)

            return once

        ways = {"rknn_matmul_create": context, "rknn_create_mem": memory}
        if library.has("rknn_create_mem2"):
            ways["rknn_create_mem2"] = with_flags(0)
            if library.version is None or library.version >= (2, 1):
                ways["rknn_create_mem2 without a context"] = with_flags(NO_CONTEXT)
        for name, once in ways.items():
            _holds_still(name, once, turns, size)
    return f"{turns} turns each of {', '.join(ways)}: no mapping and no descriptor left behind"


def _holds_still(name: str, once: Callable[[], None], turns: int, size: int) -> None:
    """Raises :class:`Wrong` when descriptors, mappings or address space grow with the turns."""
    once()
    gc.collect()
    files, maps, space = open_files(), mappings(), virtual_bytes()
    for _ in range(turns):
        once()
    gc.collect()
    files, maps, space = open_files() - files, mappings() - maps, virtual_bytes() - space
    if files >= turns:
        raise Wrong(f"{name}: {files} descriptors stay open after {turns} turns: a leak of descriptors")
    if maps >= turns or space >= turns * size // 2:
        raise Wrong(
            f"{name}: {maps} more mappings and {space >> 10} KiB more address space after {turns} turns "
            f"of {size >> 10} KiB: a leak of mappings"
        )


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
        before = resident_bytes()
        for _ in range(runs):
            matmul.run()
        gc.collect()
        grown = resident_bytes() - before
        right(difference(exact_product(a, b), multiply(matmul, a, b)), f"after {2 * runs} runs of one context")
    per_run = grown / runs
    if per_run > 4096:
        raise Wrong(f"memory grows by {per_run / 1024:.1f} KiB per run over {runs} runs: a leak of memory")
    return f"{runs} runs after as many of warm-up, {per_run:.0f} bytes more per run"


def contexts_to_refusal(bench: Bench) -> str:
    """Contexts are made until one is refused; the refusal is an error code, the others work, and all come back.

    Boards stop at about 150 contexts (oRKLLM feasibility log, 2.3.2). On silicon at levels medium and long alone: a
    driver short of memory has taken the whole board down (README of rk-llama.cpp).
    """
    bench.needs(INT8)
    if bench.level == "quick" and not bench.library.is_mock:
        raise NotServed("contexts to refusal are tried on silicon at levels medium and long: a board may go down")
    M, K, N = 1, 64, 64
    counts = []
    for turn in range(2):
        with ExitStack() as stack:
            matmuls, refusal = _fill(bench, stack, (M, K, N))
            counts.append(len(matmuls))
            if turn and counts[1] < counts[0]:
                raise Wrong(
                    f"only {counts[1]} of {counts[0]} contexts could be made after as many had been destroyed: "
                    f"{refusal}"
                )
            for index, matmul in enumerate(matmuls):
                a, b = random_int8(bench.random, (M, K), 0), random_int8(bench.random, (K, N), 1)
                right(difference(exact_product(a, b), multiply(matmul, a, b)), f"context {index} of {len(matmuls)}")
    met = f"refused at {counts[0] + 1}" if refusal is not None else "none refused"
    return f"{counts[0]} contexts held and right, {met}, all given back, and the same again"


def _fill(bench: Bench, stack: ExitStack, shape: tuple[int, int, int]) -> tuple[list[Matmul], RknnError | None]:
    """Contexts up to the first refusal or :data:`BOUNDED`, with that refusal."""
    matmuls: list[Matmul] = []
    while len(matmuls) < BOUNDED:
        try:
            matmul = bench.library.matmul(*shape, INT8)
            stack.enter_context(matmul)
            matmul.C.view(np.uint8)[...] = 0
        except RknnError as error:
            if error.code is not None and error.code >= 0:
                raise Wrong(f"context {len(matmuls) + 1} is refused with code {error.code}, not below 0") from error
            return matmuls, error
        matmuls.append(matmul)
    return matmuls, None


def open_files() -> int:
    """Descriptors of this process."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def mappings() -> int:
    """Mappings of this process."""
    return Path("/proc/self/maps").read_bytes().count(b"\n")


def virtual_bytes() -> int:
    """Address space of this process."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[0]) * os.sysconf("SC_PAGESIZE")


def resident_bytes() -> int:
    """Memory of this process."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGESIZE")
