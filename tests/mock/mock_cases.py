# SPDX-License-Identifier: Apache-2.0
"""Case files for the C clients: inputs and the right C, worked out here, to be replayed where numpy is not."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from tests.mock import mock_reference as ref
from tests.mock.mock_client import NATIVE, NORM, TP_NORM

SHAPES = ((1, 32, 64), (5, 96, 128), (33, 160, 64), (2, 8224, 64))


def pack_c(values: ref.Array, name: str, native: bool) -> bytes:
    """C as a right runtime leaves it in memory."""
    stored = np.ascontiguousarray(values)
    if native:
        stored = stored.reshape(values.shape[0], -1, ref.C_CELL[name]).transpose(1, 0, 2)
    return stored.tobytes()


def write_cases(path: Path, codes: tuple[int, ...] = tuple(sorted(ref.KINDS))) -> int:
    """Writes every type code by layout by shape; returns how many cases. K above 8192 only in a few of them."""
    count = 0
    with path.open("wb") as file:
        for code in codes:
            kind = ref.KINDS[code]
            for seed, shape in enumerate(SHAPES):
                a, b = ref.data(kind, *shape, seed, small=kind.a == "f16")
                want = ref.expected(kind, ref.product(a, b))
                for b_layout, ac_layout in ((NORM, NORM), (NATIVE, NATIVE), (TP_NORM, NATIVE)):
                    parts = (
                        ref.pack_a(a, kind.a, ac_layout == NATIVE).tobytes(),
                        ref.pack_b(b, kind.b, b_layout).tobytes(),
                        pack_c(want, kind.c, ac_layout == NATIVE),
                    )
                    file.write(struct.pack("<6i3I", code, *shape, b_layout, ac_layout, *map(len, parts)))
                    file.write(b"".join(parts))
                    count += 1
    return count
