/* SPDX-License-Identifier: Apache-2.0
 *
 * rknn_B_normal_layout_to_native_layout, in both of its forms. int4 comes in unpacked, one value per byte, and leaves
 * packed (rknn-toolkit2 pull request 412). Converting a buffer onto itself corrupts it on the board; here it is
 * refused.
 */
#include <stdint.h>

#include "api.h"
#include "compute.h"
#include "layout.h"
#include "settings.h"

static int convert(const void *in, void *out, int K, int N, int n, int k, int segment, const mock_type *type) {
  /* int4 comes in with one value per byte; every layout pads K and N to whole tiles, which they already fill. */
  size_t read = (size_t)K * (size_t)N * (type->b == RKNN_TENSOR_FLOAT16 ? 2 : 1);
  size_t written = type->b == RKNN_TENSOR_INT4 ? read / 2 : read;
  uintptr_t from = (uintptr_t)in, to = (uintptr_t)out;
  if (from < to + written && to < from + read) {
    mock_log('E', "rknn_B_normal_layout_to_native_layout, input and output overlap: conversion in place corrupts B");
    return RKNN_ERR_PARAM_INVALID;
  }
  unsigned element = type->b == RKNN_TENSOR_INT4 ? 0 : type->b == RKNN_TENSOR_FLOAT16 ? 2 : 1;
  return mock_tile_b(K, N, n, k, segment, element, in, out) == 0 ? RKNN_SUCC : RKNN_ERR_MALLOC_FAIL;
}

static int refuse(const char *why) {
  mock_log('E', "rknn_B_normal_layout_to_native_layout, %s", why);
  return RKNN_ERR_PARAM_INVALID;
}

int mock_convert_b(void *in, void *out, int K, int N, rknn_matmul_info *info) {
  int code = mock_enter(MOCK_CALL_convert_b);
  if (code) return code;
  const mock_settings *settings = mock_settings_get();
  if (!in || !out || !info) return refuse("input, output or info is null");
  int number = (int)info->type;
  const mock_type *type =
      number >= 0 && number < 32 && (settings->types & MOCK_TYPE(number)) ? mock_type_find(number) : NULL;
  if (!type) return refuse("unsupported matmul dtype in this platform");
  mock_tile tile = mock_tile_for(settings->soc, type);
  if (K <= 0 || N <= 0 || K % tile.k_align || N % tile.n_align) return refuse("K or N is not aligned");
  return convert(in, out, K, N, tile.b_n, tile.b_k, mock_this_runtime.segments ? settings->soc->k_segment : 0, type);
}

int mock_convert_b_v200(void *in, void *out, int K, int N, int subN, int subK, int number) {
  int code = mock_enter(MOCK_CALL_convert_b);
  if (code) return code;
  const mock_type *type = number >= 0 && number < 32 ? mock_type_find(number) : NULL;
  if (!in || !out) return refuse("input or output is null");
  if (!type) return refuse("unsupported matmul dtype");
  if (K <= 0 || N <= 0 || subN <= 0 || subK <= 0 || K % subK || N % subN || (type->b == RKNN_TENSOR_INT4 && subK % 2))
    return refuse("K or N is not a multiple of subK or subN");
  return convert(in, out, K, N, subN, subK, 0, type);
}
