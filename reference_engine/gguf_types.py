# SPDX-License-Identifier: Apache-2.0
"""The value types and tensor types of GGUF, as tables."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum


class ValueType(IntEnum):
    """Type numbers of metadata values (ggml docs, gguf.md)."""

    U8 = 0
    I8 = 1
    U16 = 2
    I16 = 3
    U32 = 4
    I32 = 5
    F32 = 6
    BOOL = 7
    STRING = 8
    ARRAY = 9
    U64 = 10
    I64 = 11
    F64 = 12


SCALARS: dict[ValueType, struct.Struct] = {
    ValueType.U8: struct.Struct("<B"),
    ValueType.I8: struct.Struct("<b"),
    ValueType.U16: struct.Struct("<H"),
    ValueType.I16: struct.Struct("<h"),
    ValueType.U32: struct.Struct("<I"),
    ValueType.I32: struct.Struct("<i"),
    ValueType.F32: struct.Struct("<f"),
    ValueType.BOOL: struct.Struct("<?"),
    ValueType.U64: struct.Struct("<Q"),
    ValueType.I64: struct.Struct("<q"),
    ValueType.F64: struct.Struct("<d"),
}

INTEGERS = frozenset(
    {
        ValueType.U8,
        ValueType.I8,
        ValueType.U16,
        ValueType.I16,
        ValueType.U32,
        ValueType.I32,
        ValueType.U64,
        ValueType.I64,
    }
)
FLOATS = frozenset({ValueType.F32, ValueType.F64})


@dataclass(frozen=True)
class TensorType:
    """One ggml tensor type. ``block_bytes`` bytes hold ``block_elements`` elements of one row."""

    number: int
    name: str
    block_elements: int
    block_bytes: int


# Number, name, elements and bytes of a block: gguf 0.19.0 (GGML_QUANT_SIZES). Q2_0 is ggml b11192 (ggml-common.h);
# forks that use number 42 for blocks of 128 elements in 34 bytes exist, and such a file will not add up here.
_ROWS = (
    (0, "F32", 1, 4),
    (1, "F16", 1, 2),
    (2, "Q4_0", 32, 18),
    (3, "Q4_1", 32, 20),
    (6, "Q5_0", 32, 22),
    (7, "Q5_1", 32, 24),
    (8, "Q8_0", 32, 34),
    (9, "Q8_1", 32, 40),
    (10, "Q2_K", 256, 84),
    (11, "Q3_K", 256, 110),
    (12, "Q4_K", 256, 144),
    (13, "Q5_K", 256, 176),
    (14, "Q6_K", 256, 210),
    (15, "Q8_K", 256, 292),
    (16, "IQ2_XXS", 256, 66),
    (17, "IQ2_XS", 256, 74),
    (18, "IQ3_XXS", 256, 98),
    (19, "IQ1_S", 256, 50),
    (20, "IQ4_NL", 32, 18),
    (21, "IQ3_S", 256, 110),
    (22, "IQ2_S", 256, 82),
    (23, "IQ4_XS", 256, 136),
    (24, "I8", 1, 1),
    (25, "I16", 1, 2),
    (26, "I32", 1, 4),
    (27, "I64", 1, 8),
    (28, "F64", 1, 8),
    (29, "IQ1_M", 256, 56),
    (30, "BF16", 1, 2),
    (34, "TQ1_0", 256, 54),
    (35, "TQ2_0", 256, 66),
    (39, "MXFP4", 32, 17),
    (40, "NVFP4", 64, 36),
    (41, "Q1_0", 128, 18),
    (42, "Q2_0", 64, 18),
)
TENSOR_TYPES: dict[int, TensorType] = {row[0]: TensorType(*row) for row in _ROWS}

# Numbers that once had a meaning (ggml.h keeps them reserved): a file with one is old, not damaged.
REMOVED_TENSOR_TYPES: dict[int, str] = {
    4: "Q4_2",
    5: "Q4_3",
    31: "Q4_0_4_4",
    32: "Q4_0_4_8",
    33: "Q4_0_8_8",
    36: "IQ4_NL_4_4",
    37: "IQ4_NL_4_8",
    38: "IQ4_NL_8_8",
}
