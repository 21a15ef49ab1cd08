# SPDX-License-Identifier: Apache-2.0
"""How a matmul is cut for the NPU (rknpu2-configuration.cpp of the rk-llama.cpp forks). Integers in, integers out."""

from __future__ import annotations


def round_up(value: int, step: int) -> int:
    return -(-value // step) * step


def next_pow2(value: int) -> int:
    """The smallest power of two that is not below ``value``."""
    return 1 << max(0, value - 1).bit_length()


def largest_pow2_divisor(value: int) -> int:
    return value & -value


def k_segments(k_op: int, k_limit: int, k_align: int) -> tuple[tuple[int, int], ...]:
    """(start, end) of each K segment: steps of the limit rounded down to the alignment, the last one shorter.

    One segment where ``k_limit`` is 0 or not exceeded. 15360 at 8192 is 8192 + 7168.
    """
    step = k_limit // k_align * k_align
    if k_limit <= 0 or k_op <= k_limit or step <= 0:
        return ((0, k_op),)
    return tuple((start, min(start + step, k_op)) for start in range(0, k_op, step))


def n_segments(n: int, cores: int, n_align: int) -> tuple[tuple[int, int], ...]:
    """(start, end) of each active core's columns, in order of the cores; empty ones, always the last, are left out.

    Each core gets N / cores rounded down to the alignment; the first ones get one alignment step more until the rest is
    used up: 4096 on three cores at 32 is 1376 + 1376 + 1344. An N that is no multiple of the alignment is cut as its
    padded size would be, and the padding then taken off (the forks never offload such a weight).
    """
    padded = round_up(n, n_align)
    base = padded // cores // n_align * n_align
    extra = (padded - base * cores) // n_align
    found, start = [], 0
    for core in range(cores):
        end = start + base + (n_align if core < extra else 0)
        if min(end, n) > start:
            found.append((start, min(end, n)))
        start = end
    return tuple(found)


def m_bucket(m: int, kind: str) -> int:
    """Rows that the NPU context is made for. It has no effect on numbers: rows are independent and never read back.

    ``none`` M itself; ``pow2`` the next power of two (invisiofficial); ``pow2-128`` a power of two up to 128, then the
    next multiple of 128 (marfrit E1); ``tile-256`` tiles of 256 rows (pty819). M = 1 stays 1.
    """
    if kind == "none" or m <= 1:
        return m
    if kind == "tile-256":
        return round_up(m, 256)
    if kind == "pow2-128" and m > 128:
        return round_up(m, 128)
    return next_pow2(m)


def bucket_rows(m: int, kind: str) -> tuple[int, ...]:
    """Rows of each run that computes ``m`` rows: one padded run, or tiles."""
    rows = m_bucket(m, kind)
    return (256,) * (rows // 256) if kind == "tile-256" and rows > 1 else (rows,)
