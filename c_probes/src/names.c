/* SPDX-License-Identifier: Apache-2.0 */
#include "names.h"

#include <stdlib.h>
#include <string.h>

#define F32 RKNN_TENSOR_FLOAT32
#define F16 RKNN_TENSOR_FLOAT16
#define I8 RKNN_TENSOR_INT8
#define I4 RKNN_TENSOR_INT4
#define I16 RKNN_TENSOR_INT16
#define I32 RKNN_TENSOR_INT32
#define BF16 RKNN_TENSOR_BFLOAT16

static const struct matmul_type_info types[] = {
    {1, "float16_float16_float32", "f16*f16>f32", F16, F16, F32, true},
    {2, "int8_int8_int32", "i8*i8>i32", I8, I8, I32, true},
    {3, "int8_int8_int8", "i8*i8>i8", I8, I8, I8, true},
    {4, "float16_float16_float16", "f16*f16>f16", F16, F16, F16, true},
    {5, "float16_int8_float32", "f16*i8>f32", F16, I8, F32, true},
    {6, "float16_int8_float16", "f16*i8>f16", F16, I8, F16, true},
    {7, "float16_int4_float32", "f16*i4>f32", F16, I4, F32, true},
    {8, "float16_int4_float16", "f16*i4>f16", F16, I4, F16, true},
    {9, "int8_int8_float32", "i8*i8>f32", I8, I8, F32, true},
    {10, "int4_int4_int16", "i4*i4>i16", I4, I4, I16, true},
    {11, "int8_int4_int32", "i8*i4>i32", I8, I4, I32, true},
    {12, "float16_int4_bfloat16", "f16*i4>bf16", F16, I4, BF16, false},
    {15, "int8_int4_float16", "i8*i4>f16", I8, I4, F16, false},
};

const struct matmul_type_info *matmul_type_find(int code) {
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
    if (types[i].code == code) return &types[i];
  return NULL;
}

int matmul_type_parse(const char *word) {
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
    if (strcmp(types[i].name, word) == 0) return types[i].code;
  char *end = NULL;
  if (word[0] < '0' || word[0] > '9') return -1;
  long code = strtol(word, &end, 10);
  return *end == '\0' && code <= 20 ? (int)code : -1;
}

const char *matmul_type_name(int code) {
  const struct matmul_type_info *type = matmul_type_find(code);
  return type ? type->name : "unassigned";
}

static const struct {
  int code;
  const char *name;
} codes[] = {
    {RKNN_SUCC, "RKNN_SUCC"},
    {RKNN_ERR_FAIL, "RKNN_ERR_FAIL"},
    {RKNN_ERR_TIMEOUT, "RKNN_ERR_TIMEOUT"},
    {RKNN_ERR_DEVICE_UNAVAILABLE, "RKNN_ERR_DEVICE_UNAVAILABLE"},
    {RKNN_ERR_MALLOC_FAIL, "RKNN_ERR_MALLOC_FAIL"},
    {RKNN_ERR_PARAM_INVALID, "RKNN_ERR_PARAM_INVALID"},
    {RKNN_ERR_MODEL_INVALID, "RKNN_ERR_MODEL_INVALID"},
    {RKNN_ERR_CTX_INVALID, "RKNN_ERR_CTX_INVALID"},
    {RKNN_ERR_INPUT_INVALID, "RKNN_ERR_INPUT_INVALID"},
    {RKNN_ERR_OUTPUT_INVALID, "RKNN_ERR_OUTPUT_INVALID"},
    {RKNN_ERR_DEVICE_UNMATCH, "RKNN_ERR_DEVICE_UNMATCH"},
    {RKNN_ERR_INCOMPATILE_PRE_COMPILE_MODEL, "RKNN_ERR_INCOMPATILE_PRE_COMPILE_MODEL"},
    {RKNN_ERR_INCOMPATILE_OPTIMIZATION_LEVEL_VERSION, "RKNN_ERR_INCOMPATILE_OPTIMIZATION_LEVEL_VERSION"},
    {RKNN_ERR_TARGET_PLATFORM_UNMATCH, "RKNN_ERR_TARGET_PLATFORM_UNMATCH"},
};

const char *rknn_code_name(int code) {
  for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
    if (codes[i].code == code) return codes[i].name;
  return "unknown code";
}

static const struct {
  const char *name;
  unsigned bits; /* 0: the probes neither pack nor read it */
} tensors[] = {
    [RKNN_TENSOR_FLOAT32] = {"float32", 32}, [RKNN_TENSOR_FLOAT16] = {"float16", 16},
    [RKNN_TENSOR_INT8] = {"int8", 8},        [RKNN_TENSOR_UINT8] = {"uint8", 0},
    [RKNN_TENSOR_INT16] = {"int16", 16},     [RKNN_TENSOR_UINT16] = {"uint16", 0},
    [RKNN_TENSOR_INT32] = {"int32", 32},     [RKNN_TENSOR_UINT32] = {"uint32", 0},
    [RKNN_TENSOR_INT64] = {"int64", 0},      [RKNN_TENSOR_BOOL] = {"bool", 0},
    [RKNN_TENSOR_INT4] = {"int4", 4},        [RKNN_TENSOR_BFLOAT16] = {"bfloat16", 16},
};

const char *tensor_type_name(int type) {
  return type >= 0 && (size_t)type < sizeof tensors / sizeof tensors[0] ? tensors[type].name : "unknown type";
}

unsigned tensor_type_bits(int type) {
  return type >= 0 && (size_t)type < sizeof tensors / sizeof tensors[0] ? tensors[type].bits : 0;
}

const char *layout_name(int layout) {
  switch (layout) {
    case RKNN_MM_LAYOUT_NORM: return "norm";
    case RKNN_MM_LAYOUT_NATIVE: return "native";
    case RKNN_MM_LAYOUT_TP_NORM: return "tp_norm";
    default: return "unknown";
  }
}

const char *quant_name(enum quant quant) { return quant == QUANT_PER_CHANNEL ? "per_channel" : "per_layer"; }
