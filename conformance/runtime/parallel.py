# SPDX-License-Identifier: Apache-2.0
"""Several contexts at once: cores, threads, and how many a process can hold."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack

import numpy as np

from c_probes.librknnrt import Matmul, MatmulType, RknnError
from conformance.bench import Bench, NotServed, Wrong, right
from conformance.oracles import exact_product, random_int8
from conformance.oracles_compare import difference
from conformance.runtime.products import Array, multiply

INT8 = MatmulType.INT8_MM_INT8_TO_INT32


def cores_of(bench: Bench) -> int:
    """Cores of the chip by its profile, else as many as single-core masks are accepted."""
    if bench.profile is not None:
        return bench.profile.cores
    accepted = 0
    for core in range(3):
        try:
            bench.library.matmul(2, 64, 64, INT8, core_mask=1 << core).close()
        except RknnError:
            break
        accepted += 1
    return accepted


def core_masks(bench: Bench) -> str:
    """Each core can be asked for; a mask of several cores is refused, or else really is served by several.

    Masks 3 and 7 return -1 and log a fall-back to one core (rknn-toolkit2 issues 7 and 253, rknpu2 issue 105): a
    return of 0 with that log line is a lie.
    """
    bench.needs(INT8)
    cores = cores_of(bench)
    if cores < 2:
        raise NotServed(f"{bench.where} has one core")
    a, b = random_int8(bench.random, (4, 64), 0), random_int8(bench.random, (64, 64), 1)
    for mask in [1 << core for core in range(cores)]:
        with bench.matmul(4, 64, 64, INT8, core_mask=mask) as matmul:
            right(difference(exact_product(a, b), multiply(matmul, a, b)), f"core mask {mask}")
    for mask in (3, 7)[: cores - 1]:
        expected = bench.expected("core_mask", mask)
        with bench.matmul(4, 64, 64, INT8) as matmul:
            try:
                log = matmul.set_core_mask(mask)
            except RknnError as error:
                if expected is None or expected.code in (None, error.code):
                    continue
                raise Wrong(f"core mask {mask} is refused with {error.code}, known is {expected.code}") from error
            told = next((line for line in log.lines if "fall" in line.lower() and "auto" in line.lower()), None)
            if told is not None:
                raise Wrong(f"core mask {mask} returned 0, but the mask is ignored: the library said {told!r}")
            if expected is not None:
                bench.note_unexpected(f"core mask {mask} is accepted", expected)
            right(difference(exact_product(a, b), multiply(matmul, a, b)), f"core mask {mask}")
    return f"{cores} cores right one by one, masks of several cores refused or served"


def n_split(bench: Bench) -> str:
    """N cut over the cores, one context and one thread each, gives the columns of the whole, in their places.

    The way to use several cores (user guide); slices that change places are a fault of engines.
    """
    bench.needs(INT8)
    cores = cores_of(bench)
    if cores < 2:
        raise NotServed(f"{bench.where} has one core")
    M, K, tile = 5, 128, 32
    cases = []
    for tiles in bench.pick((3 * cores, 3 * cores + 1, cores + cores - 1), range(cores, 8 * cores + 1)):
        # Ragged: the first slices get a tile more than the last.
        widths = [tile * (tiles // cores + (i < tiles % cores)) for i in range(cores)]
        N, starts = sum(widths), np.cumsum([0, *widths])
        a, b = random_int8(bench.random, (M, K), 0), random_int8(bench.random, (K, N), 1)
        with ExitStack() as stack:
            matmuls = [stack.enter_context(bench.matmul(M, K, n, INT8, core_mask=1 << i)) for i, n in enumerate(widths)]
            for matmul, start, width in zip(matmuls, starts[:-1], widths, strict=True):
                matmul.load(A=a, B=np.ascontiguousarray(b[:, start : start + width]))
                matmul.bind("C")
            together([runs(matmul) for matmul in matmuls])
            parts = [matmul.result() for matmul in matmuls]
        want = exact_product(a, b)
        pieces = np.split(want, starts[1:-1], axis=1)
        turned = {"the slices have changed places": np.concatenate(pieces[1:] + pieces[:1], axis=1)}
        found = difference(want, np.concatenate(parts, axis=1), turned)
        right(found, f"N={N} over {cores} cores in slices of {widths}, M={M} K={K}")
        cases.append(N)
    return f"N of {', '.join(map(str, cases))} cut over {cores} cores, even and ragged, equals the whole"


def concurrency(bench: Bench) -> str:
    """Contexts in threads of their own, each with its own data, all give their own product in every round.

    Views of memory were wrong when two threads used them (pty819/rk-llama.cpp, docs/opi5, RK3588 with 2.3.2); drivers
    before 0.9.8 were wrong between processes (armbian linux-rockchip pull 290).
    """
    bench.needs(INT8)
    count, rounds = 4, bench.pick(3, 20, 200)
    M, K, N = 8, 256, 64
    wrong: list[str] = []
    with ExitStack() as stack:
        matmuls = [stack.enter_context(bench.matmul(M, K, N, INT8)) for _ in range(count)]
        data: list[tuple[Array, Array]] = []
        for turn in range(rounds):
            data = [(random_int8(bench.random, (M, K), 0), random_int8(bench.random, (K, N), 1)) for _ in range(count)]
            for matmul, (a, b) in zip(matmuls, data, strict=True):
                matmul.load(A=a, B=b)
                matmul.bind("C")
            together([runs(matmul) for matmul in matmuls])
            for index, (matmul, (a, b)) in enumerate(zip(matmuls, data, strict=True)):
                others = {
                    f"it is the product of context {other}": exact_product(*pair)
                    for other, pair in enumerate(data)
                    if other != index
                }
                found = difference(exact_product(a, b), matmul.result(), others)
                if found:
                    wrong.append(f"context {index} of {count}, round {turn + 1}: {found}")
    if wrong:
        raise Wrong(f"{len(wrong)} of {count * rounds} concurrent products are wrong; {wrong[0]}")
    return f"{count} contexts in threads, distinct data, {rounds} rounds"


def many_contexts(bench: Bench) -> str:
    """A process can hold a dozen contexts at once, and as many again after destroying them.

    About 150 is where boards stop (community report, 2.3.2); a leak of handles stops far earlier.
    """
    bench.needs(INT8)
    count = bench.pick(12, 48, 100)
    a, b = random_int8(bench.random, (1, 64), 0), random_int8(bench.random, (64, 64), 1)
    for turn in range(2):
        with ExitStack() as stack:
            for index in range(count):
                try:
                    matmul = stack.enter_context(bench.matmul(1, 64, 64, INT8))
                except RknnError as error:
                    held = "held at once" if turn == 0 else "made after as many had been destroyed"
                    raise Wrong(f"only {index} of {count} contexts could be {held}: {error}") from error
            right(difference(exact_product(a, b), multiply(matmul, a, b)), f"the last of {count} contexts")
    return f"{count} contexts held at once, twice"


def runs(matmul: Matmul) -> Callable[[], object]:
    """A run of this context as a call without arguments; the library's log is left alone."""
    return lambda: matmul.run(capture=False)


def together(calls: Sequence[Callable[[], object]]) -> None:
    """Calls all in threads of their own, starting at once; raises the first error."""
    barrier = threading.Barrier(len(calls))
    errors: list[BaseException] = []

    def body(call: Callable[[], object]) -> None:
        barrier.wait(30)
        try:
            call()
        except RknnError as error:
            errors.append(error)

    threads = [threading.Thread(target=body, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
