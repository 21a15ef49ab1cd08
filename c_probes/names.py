# SPDX-License-Identifier: Apache-2.0
"""The numbers of the matmul API under their usual names, for programs that have no C compiler at hand.

The header ``include/rknn_abi.h`` is the source; a test compares every value here with it.
"""

from __future__ import annotations

from enum import IntEnum

ERROR_NAMES = {
    0: "RKNN_SUCC",
    -1: "RKNN_ERR_FAIL",
    -2: "RKNN_ERR_TIMEOUT",
    -3: "RKNN_ERR_DEVICE_UNAVAILABLE",
    -4: "RKNN_ERR_MALLOC_FAIL",
    -5: "RKNN_ERR_PARAM_INVALID",
    -6: "RKNN_ERR_MODEL_INVALID",
    -7: "RKNN_ERR_CTX_INVALID",
    -8: "RKNN_ERR_INPUT_INVALID",
    -9: "RKNN_ERR_OUTPUT_INVALID",
    -10: "RKNN_ERR_DEVICE_UNMATCH",
    -11: "RKNN_ERR_INCOMPATILE_PRE_COMPILE_MODEL",
    -12: "RKNN_ERR_INCOMPATILE_OPTIMIZATION_LEVEL_VERSION",
    -13: "RKNN_ERR_TARGET_PLATFORM_UNMATCH",
}


class MatmulType(IntEnum):
    """``rknn_matmul_type``: operand types A, B and C. 12 and 15 exist without a documented meaning."""

    FLOAT16_MM_FLOAT16_TO_FLOAT32 = 1
    INT8_MM_INT8_TO_INT32 = 2
    INT8_MM_INT8_TO_INT8 = 3
    FLOAT16_MM_FLOAT16_TO_FLOAT16 = 4
    FLOAT16_MM_INT8_TO_FLOAT32 = 5
    FLOAT16_MM_INT8_TO_FLOAT16 = 6
    FLOAT16_MM_INT4_TO_FLOAT32 = 7
    FLOAT16_MM_INT4_TO_FLOAT16 = 8
    INT8_MM_INT8_TO_FLOAT32 = 9
    INT4_MM_INT4_TO_INT16 = 10
    INT8_MM_INT4_TO_INT32 = 11
    FLOAT16_MM_INT4_TO_BFLOAT16 = 12
    INT8_MM_INT4_TO_FLOAT16 = 15


class TensorType(IntEnum):
    """``rknn_tensor_type``."""

    FLOAT32 = 0
    FLOAT16 = 1
    INT8 = 2
    UINT8 = 3
    INT16 = 4
    UINT16 = 5
    INT32 = 6
    UINT32 = 7
    INT64 = 8
    BOOL = 9
    INT4 = 10
    BFLOAT16 = 11


class Layout(IntEnum):
    """``rknn_matmul_layout``: row-major, tiled, or (B only) row-major of the transpose."""

    NORM = 0
    NATIVE = 1
    TP_NORM = 2


class QuantType(IntEnum):
    """``rknn_matmul_quant_type`` of runtime 2.1.0 and later."""

    PER_LAYER_SYM = 0
    PER_LAYER_ASYM = 1
    PER_CHANNEL_SYM = 2
    PER_CHANNEL_ASYM = 3
    PER_GROUP_SYM = 4
    PER_GROUP_ASYM = 5


class CoreMask(IntEnum):
    """``rknn_core_mask``. A matmul context runs on one core; masks of several cores are refused or
    ignored.
    """

    AUTO = 0
    CORE_0 = 1
    CORE_1 = 2
    CORE_2 = 4
    CORE_0_1 = 3
    CORE_0_1_2 = 7
    CORE_ALL = 0xFFFF


class SyncMode(IntEnum):
    """``rknn_mem_sync_mode``."""

    TO_DEVICE = 1
    FROM_DEVICE = 2
    BIDIRECTIONAL = 3


MEMORY_DEFAULT = 0
MEMORY_CACHEABLE = 1
MEMORY_NON_CACHEABLE = 2
MEMORY_TRY_ALLOC_SRAM = 4
QUERY_SDK_VERSION = 5


def error_name(code: int) -> str:
    """``RKNN_ERR_PARAM_INVALID`` for -5; a code that no release names is called unknown."""
    return ERROR_NAMES.get(code, "a code of no known name")
