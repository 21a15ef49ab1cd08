# SPDX-License-Identifier: Apache-2.0
"""How rk-llama.cpp cuts a matmul: K at a limit, N over the cores, M into run sizes. Integers in, integers out."""

from __future__ import annotations


def bucket_rows(M: int, mode: str) -> tuple[int, ...]:
    """Rows of each run that computes ``M`` rows: one padded run, or several tiles.

    ``none``: M. ``pow2``: the next power of two (rk-llama.cpp). ``pow2-128``: that up to 128, then multiples of 128
    (marfrit's fork). ``tile-256``: tiles of at most 256 rows (pty819's fork). ValueError for M < 1 or another mode.
    """
    if M < 1:
        raise ValueError(f"a matmul needs at least one row, not {M}")
    if mode == "none":
        return (M,)
    if mode == "pow2":
        return (next_pow2(M),)
    if mode == "pow2-128":
        return (next_pow2(M) if M <= 128 else -(-M // 128) * 128,)
    if mode == "tile-256":
        return (256,) * (M // 256) + ((M % 256,) if M % 256 else ())
    raise ValueError(f"m_bucket {mode!r} is none of none, pow2, pow2-128, tile-256")


def next_pow2(value: int) -> int:
    """The smallest power of two that is at least ``value``, 1 or more."""
    return 1 << (value - 1).bit_length()


def k_segments(K: int, limit: int, align: int) -> tuple[tuple[int, int], ...]:
    """(first, size) of each piece of K: as long as the limit allows, the rest last (``compute_k_segments``)."""
    step = limit // align * align
    if limit <= 0 or limit >= K or step == 0:
        return ((0, K),)
    return tuple((at, min(step, K - at)) for at in range(0, K, step))


def n_segments(N: int, cores: int, align: int) -> tuple[tuple[int, int, int], ...]:
    """(core, first, size) of each core's share of N in units of ``align`` (``compute_n_segments``), none empty."""
    base = N // cores // align * align
    extra = (N - base * cores) // align
    found, at = [], 0
    for core in range(cores):
        size = base + (align if core < extra else 0)
        if size:
            found.append((core, at, size))
        at += size
    return tuple(found)
