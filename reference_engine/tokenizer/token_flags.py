# SPDX-License-Identifier: Apache-2.0
"""What kind of token one is: the file's ``token_type`` as flags, since a token may be two things at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

UNKNOWN, UNUSED, NORMAL, CONTROL, USER_DEFINED, BYTE = 1, 2, 4, 8, 16, 32

SPECIAL = CONTROL | USER_DEFINED | UNKNOWN
"""Split out of a text before anything else."""

HIDDEN = CONTROL | UNKNOWN
"""Recognised in a text only with ``parse_special``, shown in one only with ``special``."""

# tokenizer.ggml.token_type counts 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte (gguf.md); other
# numbers mean nothing
_BY_TYPE = np.array([0, NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE], dtype=np.uint8)


def flags_of(types: NDArray[np.float64]) -> bytearray:
    """One byte of flags for each entry of ``token_type``, whole numbers in float64."""
    known = (types > 0) & (types < len(_BY_TYPE))
    return bytearray(_BY_TYPE[np.where(known, types, 0).astype(np.int64)].tobytes())
