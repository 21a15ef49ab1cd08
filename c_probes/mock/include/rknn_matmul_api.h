/* SPDX-License-Identifier: Apache-2.0
 *
 * Stands where programs look for the matmul API. Own words; the declarations are in rknn_abi.h.
 */
#ifndef RKNPU_KIT_RKNN_MATMUL_API_H
#define RKNPU_KIT_RKNN_MATMUL_API_H

#include "rknn_api.h"

/* Name of a matmul type, as logs write it; types that have none are UNKNOW. */
static inline const char *get_matmul_type_string(rknn_matmul_type type) {
  static const char *const names[] = {
      "UNKNOW",
      "RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32",
      "RKNN_INT8_MM_INT8_TO_INT32",
      "RKNN_INT8_MM_INT8_TO_INT8",
      "RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT16",
      "RKNN_FLOAT16_MM_INT8_TO_FLOAT32",
      "RKNN_FLOAT16_MM_INT8_TO_FLOAT16",
      "RKNN_FLOAT16_MM_INT4_TO_FLOAT32",
      "RKNN_FLOAT16_MM_INT4_TO_FLOAT16",
      "RKNN_INT8_MM_INT8_TO_FLOAT32",
      "RKNN_INT4_MM_INT4_TO_INT16",
      "RKNN_INT8_MM_INT4_TO_INT32",
      "RKNN_FLOAT16_MM_INT4_TO_BFLOAT16",
  };
  return (unsigned)type < sizeof names / sizeof *names ? names[type] : "UNKNOW";
}

#endif
