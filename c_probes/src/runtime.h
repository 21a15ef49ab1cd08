/* SPDX-License-Identifier: Apache-2.0
 *
 * librknnrt, opened at run time. A function that this version does not export is a NULL pointer and a fact about it,
 * not a failure; only what no matmul program can do without is required. */
#ifndef RKNPU_KIT_RUNTIME_H
#define RKNPU_KIT_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>

#include "names.h"
#include "rknn_abi.h"

struct runtime {
  void *handle;
  char path[4096];   /* the file that was loaded, as the loader names it */
  char version[256]; /* its version text; empty when it has none */
  int version_number; /* 20302 for 2.3.2; 0 unknown */

  /* required */
  __typeof__(rknn_matmul_create) *matmul_create;
  __typeof__(rknn_matmul_set_io_mem) *matmul_set_io_mem;
  __typeof__(rknn_matmul_run) *matmul_run;
  __typeof__(rknn_matmul_destroy) *matmul_destroy;
  __typeof__(rknn_create_mem) *create_mem;
  __typeof__(rknn_destroy_mem) *destroy_mem;
  /* may be NULL */
  __typeof__(rknn_matmul_set_core_mask) *matmul_set_core_mask;
  __typeof__(rknn_matmul_set_quant_params) *matmul_set_quant_params;
  __typeof__(rknn_matmul_get_quant_params) *matmul_get_quant_params;
  __typeof__(rknn_matmul_create_dynamic_shape) *matmul_create_dynamic_shape;
  __typeof__(rknn_B_normal_layout_to_native_layout) *convert_B; /* NULL unless it is the 5-argument one */
  __typeof__(rknn_mem_sync) *mem_sync;
};

/* On failure false, with *kind one of "no-library", "not-a-library", "wrong-architecture", "not-loadable",
 * "missing-symbols", and one sentence in why. */
bool runtime_open(struct runtime *runtime, const char *library, const char **kind, char *why, size_t why_size);

/* False, with kind and why as above: nobody named a library and there is no NPU, so none is to be loaded. */
bool runtime_may_open(bool named, const char **kind, char *why, size_t why_size);

/* The B_quant_type for this runtime: the meaning of the number changed between 2.0.0-beta0 and 2.1.0. False when the
 * runtime has no such field (before 2.0). */
bool runtime_quant_value(const struct runtime *runtime, enum quant quant, int16_t *value);

#endif
