# SPDX-License-Identifier: Apache-2.0
"""The memo of the last result saves time and changes nothing; many threads may use the library at once."""

from __future__ import annotations

import ctypes as c
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mock import mock_reference as ref
from tests.mock.mock_client import NATIVE, NORM, PER_CHANNEL, Matmul, counter, load

KIND = ref.KINDS[2]
M, K, N = 5, 64, 64


def test_the_same_bytes_again_come_from_the_memo() -> None:
    library = load()
    with Matmul(library, 2, M, K, N, b_layout=NATIVE, ac_layout=NATIVE) as matmul:
        matmul.bind()
        for hits in (0, 1, 2):
            matmul.bytes("C")[:] = 0x5C
            matmul.run()
            assert not matmul.bytes("C").any()
            assert counter(library, "memo_hits") == hits


def test_the_memo_can_be_switched_off() -> None:
    library = load(memo="0")
    with Matmul(library, 2, M, K, N) as matmul:
        matmul.bind()
        matmul.run()
        matmul.run()
    assert counter(library, "memo_hits") == 0


@pytest.fixture(scope="module")
def libraries() -> dict[str, c.CDLL]:
    return {memo: load(memo=memo) for memo in ("0", "1")}


@given(data=st.data(), native=st.booleans())
@settings(max_examples=40, deadline=None)
def test_with_and_without_memo_any_sequence_of_calls_gives_the_same_c(
    libraries: dict[str, c.CDLL], data: Any, native: bool
) -> None:
    layout = {"b_layout": NATIVE if native else NORM, "ac_layout": NATIVE if native else NORM}
    both = [Matmul(library, 2, M, K, N, b_quant=PER_CHANNEL, **layout) for library in libraries.values()]
    steps = data.draw(
        st.lists(
            st.tuples(st.sampled_from(["write-a", "write-b", "bind", "run", "scale", "poke"]), st.integers(0, 3)),
            min_size=1,
            max_size=12,
        )
    )
    for matmul in both:
        matmul.bind()
    for step, seed in [*steps, ("run", 0)]:
        a, b = ref.data(KIND, M, K, N, seed)
        for matmul in both:
            if step == "write-a":
                matmul.bytes("A")[:] = a.view(np.uint8).reshape(-1)
            elif step == "write-b":
                matmul.bytes("B")[:] = b.view(np.uint8).reshape(-1)
            elif step == "poke":
                matmul.bytes("B")[-1] = seed
            elif step == "bind":
                assert matmul.bind() == [0, 0, 0]
            elif step == "scale":
                assert matmul.scales("B", np.linspace(1 / (seed + 1), 1, N).astype(np.float32)) == 0
            else:
                matmul.bytes("C")[:] = 0x5C
                assert matmul.run() == 0
        assert np.array_equal(both[0].bytes("C"), both[1].bytes("C"))
    for matmul in both:
        matmul.close()


def test_memo_sync_looks_again_only_after_a_sync() -> None:
    library = load(memo="sync")
    with Matmul(library, 2, M, K, N, b_layout=NATIVE, ac_layout=NATIVE) as matmul:
        matmul.bytes("A")[:], matmul.bytes("B")[:] = 1, 1
        matmul.bind()
        matmul.run()
        matmul.bytes("B")[:] = 2
        matmul.run()
        assert np.all(matmul.bytes("C").view(np.int32) == K)
        assert library.rknn_mem_sync(matmul.ctx, matmul.memory["B"], 1) == 0
        matmul.run()
        assert np.all(matmul.bytes("C").view(np.int32) == 2 * K)
        other = library.rknn_create_mem(matmul.ctx, matmul.io.B.size)
        assert library.rknn_mem_sync(matmul.ctx, other, 1) == 0  # as many syncs as the first memory has
        assert library.rknn_matmul_set_io_mem(matmul.ctx, other, c.byref(matmul.io.B)) == 0
        matmul.run()
        assert not matmul.bytes("C").any()
        assert library.rknn_destroy_mem(matmul.ctx, other) == 0


def test_one_changed_byte_of_a_large_native_b_is_seen() -> None:
    library = load(threads="2")
    with Matmul(library, 2, 1, 4096, 4096, b_layout=NATIVE) as matmul:
        matmul.bytes("A")[:] = 1
        matmul.bind()
        matmul.run()
        for place in (0, 4096 * 2048, 4096 * 4096 - 1):
            matmul.bytes("B")[place] = 7
            assert matmul.run() == 0
            assert matmul.bytes("C").view(np.int32).sum() == 7
            matmul.bytes("B")[place] = 0


@pytest.mark.parametrize("code", [1, 2])
def test_threads_create_run_and_destroy_at_the_same_time(code: int) -> None:
    library, kind, wrong = load(persona="any"), ref.KINDS[code], []

    def work(seed: int) -> None:
        for round_ in range(6):
            shape = (1 + (seed + round_) % 7, 64, 64)
            a, b = ref.data(kind, *shape, 100 * seed + round_, small=True)
            with Matmul(library, code, *shape, b_layout=NATIVE, ac_layout=round_ % 2) as matmul:
                matmul.write("A", ref.pack_a(a, kind.a, round_ % 2 == NATIVE))
                matmul.write("B", ref.pack_b(b, kind.b, NATIVE))
                if matmul.bind() != [0, 0, 0] or matmul.run() != 0:
                    wrong.append((seed, round_))
                got = ref.unpack_c(matmul.bytes("C").copy(), kind.c, shape[0], 64, round_ % 2 == NATIVE)
                if not np.array_equal(got, ref.expected(kind, ref.product(a, b))):
                    wrong.append((seed, round_))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert (counter(library, "contexts"), counter(library, "memories")) == (0, 0)
