/* SPDX-License-Identifier: Apache-2.0
 *
 * A tiny librknnrt for tests of the probes alone: types 2 (int8), 1 (float16 to float32), 4, 9, 10 and 3, both layouts,
 * naive products. Built once per fault, with -DFAULT=FAULT_... . Shares no code with the probes. */
#define _GNU_SOURCE
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rknn_abi.h"

enum {
  FAULT_NONE,
  FAULT_CRASH_IN_CREATE,
  FAULT_EXIT_IN_CREATE,
  FAULT_EXIT_IN_LOAD,
  FAULT_HANG_IN_CREATE,
  FAULT_HANG_IN_RUN,
  FAULT_WRONG_ELEMENT,
  FAULT_C_UNTOUCHED,
  FAULT_C_ZERO,
  FAULT_SWAPPED_ROWS,
  FAULT_CREATE_LEAVES_ZERO,
  FAULT_WORKER_CREATE,  /* the create after the third live context fails */
  FAULT_WORKER_RUN,     /* runs of core mask 4 fail */
  FAULT_WRONG_CONTEXT,  /* contexts hand out the C of the one created before them */
  FAULT_CREATE_REFUSED, /* everything */
  FAULT_NO_DEVICE,
  FAULT_LOGS_AND_SUCCEEDS,
  FAULT_ABORT_IN_RUN, /* type 9 only */
  FAULT_BIND_REFUSED,
  FAULT_MASK_REFUSED,
  FAULT_BAD_DIMS,
  FAULT_FIRST_RUN_WRONG,
  FAULT_LATE_WRONG, /* right in the first three runs of a context, one element wrong from then on */
  FAULT_STDOUT_NOISE
};
#ifndef FAULT
#define FAULT FAULT_NONE
#endif

#define EXPORT __attribute__((visibility("default")))

EXPORT const char stand_in_version[] = "librknnrt version: 2.3.2 (stand-in for tests)";

struct context {
  rknn_matmul_info info;
  rknn_tensor_mem *mem[3];
  int8_t *A, *B; /* logical */
  int mask, runs;
  struct context *before;
};

static struct context *last_created;
static int live;

static const int8_t types[][4] = {
    /* type, A, B, C */
    {1, RKNN_TENSOR_FLOAT16, RKNN_TENSOR_FLOAT16, RKNN_TENSOR_FLOAT32},
    {2, RKNN_TENSOR_INT8, RKNN_TENSOR_INT8, RKNN_TENSOR_INT32},
    {3, RKNN_TENSOR_INT8, RKNN_TENSOR_INT8, RKNN_TENSOR_INT8},
    {4, RKNN_TENSOR_FLOAT16, RKNN_TENSOR_FLOAT16, RKNN_TENSOR_FLOAT16},
    {9, RKNN_TENSOR_INT8, RKNN_TENSOR_INT8, RKNN_TENSOR_FLOAT32},
    {10, RKNN_TENSOR_INT4, RKNN_TENSOR_INT4, RKNN_TENSOR_INT16},
};

static int bits_of(int type) {
  static const int bits[] = {32, 16, 8, 8, 16, 16, 32, 32, 64, 8, 4, 16};
  return bits[type];
}

static void describe(rknn_matmul_tensor_attr *attr, const char *name, int type, int n, const uint32_t *dims) {
  uint64_t count = 1;
  strcpy(attr->name, name);
  attr->n_dims = (uint32_t)n;
  for (int i = 0; i < n; i++) count *= attr->dims[i] = dims[i];
  attr->size = (uint32_t)(count * (uint64_t)bits_of(type) / 8);
  attr->type = (rknn_tensor_type)type;
}

static uint32_t up(uint32_t value, uint32_t unit) { return (value + unit - 1) / unit; }

__attribute__((constructor)) static void load(void) {
  if (FAULT == FAULT_EXIT_IN_LOAD) _exit(0);
}

EXPORT int rknn_matmul_create(rknn_matmul_ctx *ctx, rknn_matmul_info *info, rknn_matmul_io_attr *io) {
  if (FAULT == FAULT_EXIT_IN_CREATE) exit(0);
  if (FAULT == FAULT_CRASH_IN_CREATE) raise(SIGSEGV);
  while (FAULT == FAULT_HANG_IN_CREATE) pause();
  if (FAULT == FAULT_NO_DEVICE) {
    fprintf(stderr, "E RKNN: [00:00:00.000] failed to open rknn device!\n");
    return RKNN_ERR_FAIL;
  }
  if (FAULT == FAULT_WORKER_CREATE && live == 2) return RKNN_ERR_MALLOC_FAIL;
  const int8_t *type = NULL;
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
    if (types[i][0] == (int)info->type) type = types[i];
  if (!type || FAULT == FAULT_CREATE_REFUSED) {
    fprintf(stderr, "E RKNN: [00:00:00.000] unsupported matmul dtype : \"%d\" \xff in this platform\n", info->type);
    return RKNN_ERR_PARAM_INVALID;
  }
  if (info->K % 32 || info->N % 16 || info->reserved[0]) return RKNN_ERR_PARAM_INVALID;
  if (info->B_quant_type != 0) return RKNN_ERR_PARAM_INVALID;
  const uint32_t M = (uint32_t)info->M, K = (uint32_t)info->K, N = (uint32_t)info->N;
  const uint32_t a = 128u / (uint32_t)bits_of(type[1]), n = type[2] == RKNN_TENSOR_INT4 ? 64 : type[2] == RKNN_TENSOR_INT8 ? 32 : 16;
  const uint32_t c = 128u / (uint32_t)bits_of(type[3]);
  const int native = info->AC_layout;
  describe(&io->A, "A", type[1], native ? 3 : 2, native ? (uint32_t[]){up(K, a), M, a} : (uint32_t[]){M, K});
  describe(&io->C, "C", type[3], native ? 3 : 2, native ? (uint32_t[]){up(N, c), M, c} : (uint32_t[]){M, N});
  describe(&io->B, "B", type[2], info->B_layout ? 4 : 2,
           info->B_layout ? (uint32_t[]){up(N, n), up(K, 32), n, 32} : (uint32_t[]){K, N});
  if (FAULT == FAULT_BAD_DIMS) io->B.dims[0] = 1;
  if (FAULT == FAULT_LOGS_AND_SUCCEEDS) fprintf(stderr, "E RKNN: [00:00:00.000] something is not well\n");
  if (FAULT == FAULT_STDOUT_NOISE) printf("I RKNN: printed on stdout {\n");
  if (FAULT == FAULT_CREATE_LEAVES_ZERO) return 0;
  struct context *made = calloc(1, sizeof *made);
  made->info = *info;
  made->before = last_created;
  last_created = made;
  live++;
  *ctx = (rknn_matmul_ctx)(uintptr_t)made;
  return 0;
}

static int nibble(const uint8_t *bytes, size_t at) {
  const int value = at % 2 ? bytes[at / 2] >> 4 : bytes[at / 2] & 15;
  return value > 7 ? value - 16 : value;
}

static int input(const rknn_matmul_tensor_attr *attr, const void *data, size_t at) {
  if (attr->type == RKNN_TENSOR_INT4) return nibble(data, at);
  if (attr->type == RKNN_TENSOR_INT8) return ((const int8_t *)data)[at];
  const uint16_t half = ((const uint16_t *)data)[at]; /* only whole numbers are used here */
  if ((half & 0x7fff) == 0) return 0;
  const double value = ldexp(1.0 + (half & 1023) / 1024.0, ((half >> 10) & 31) - 15);
  return (int)(half & 0x8000 ? -value : value);
}

static int8_t *take(const rknn_matmul_tensor_attr *attr, const void *data, int rows, int cols) {
  int8_t *out = malloc((size_t)rows * (size_t)cols);
  const uint32_t *d = attr->dims;
  for (uint32_t r = 0; r < (uint32_t)rows; r++)
    for (uint32_t c = 0; c < (uint32_t)cols; c++) {
      size_t at = (size_t)r * (size_t)cols + c;
      if (attr->n_dims == 3) at = ((size_t)(c / d[2]) * d[1] + r) * d[2] + c % d[2];
      if (attr->n_dims == 4) at = (((size_t)(c / d[2]) * d[1] + r / d[3]) * d[2] + c % d[2]) * d[3] + r % d[3];
      out[(size_t)r * (size_t)cols + c] = (int8_t)input(attr, data, at);
    }
  return out;
}

EXPORT int rknn_matmul_set_io_mem(rknn_matmul_ctx ctx, rknn_tensor_mem *mem, rknn_matmul_tensor_attr *attr) {
  struct context *context = (struct context *)(uintptr_t)ctx;
  const rknn_matmul_info *info = &context->info;
  if (FAULT == FAULT_BIND_REFUSED && attr->name[0] == 'B') return RKNN_ERR_FAIL;
  context->mem[attr->name[0] - 'A'] = mem;
  if (attr->name[0] == 'A') {
    free(context->A);
    context->A = take(attr, mem->virt_addr, info->M, info->K);
  }
  if (attr->name[0] == 'B') {
    free(context->B);
    context->B = take(attr, mem->virt_addr, info->K, info->N);
  }
  return 0;
}

static uint16_t half_of(int value) {
  int exponent;
  if (value == 0) return 0;
  const double fraction = frexp(abs(value), &exponent);
  return (uint16_t)((value < 0) << 15 | (exponent + 14) << 10 | (int)((2 * fraction - 1) * 1024));
}

static void put(void *C, int type, size_t at, int value) {
  if (type == 1 || type == 9) ((float *)C)[at] = (float)value;
  if (type == 2) ((int32_t *)C)[at] = value;
  if (type == 3) ((int8_t *)C)[at] = (int8_t)(value > 127 ? 127 : value < -128 ? -128 : value);
  if (type == 4) ((uint16_t *)C)[at] = half_of(value);
  if (type == 10) ((int16_t *)C)[at] = (int16_t)value;
}

EXPORT int rknn_matmul_run(rknn_matmul_ctx ctx) {
  struct context *self = (struct context *)(uintptr_t)ctx, *source = self;
  const rknn_matmul_info *info = &self->info;
  const int type = (int)info->type, M = info->M, K = info->K, N = info->N;
  const int c = type == 3 ? 16 : type == 4 || type == 10 ? 8 : 4;
  void *C = self->mem[2]->virt_addr;
  self->runs++;
  while (FAULT == FAULT_HANG_IN_RUN) pause();
  if (FAULT == FAULT_ABORT_IN_RUN && type == 9) abort();
  if (FAULT == FAULT_WORKER_RUN && self->mask == 4) return RKNN_ERR_TIMEOUT;
  if (FAULT == FAULT_C_UNTOUCHED) return 0;
  if (FAULT == FAULT_C_ZERO) {
    memset(C, 0, self->mem[2]->size);
    return 0;
  }
  if (FAULT == FAULT_WRONG_CONTEXT && self->before) source = self->before;
  for (int m = 0; m < M; m++)
    for (int n = 0; n < N; n++) {
      int sum = 0;
      int row = FAULT == FAULT_SWAPPED_ROWS && m < 2 && M > 1 ? 1 - m : m;
      for (int k = 0; k < K; k++) sum += source->A[(size_t)row * (size_t)K + (size_t)k] * source->B[(size_t)k * (size_t)N + (size_t)n];
      const int spoil = FAULT == FAULT_WRONG_ELEMENT || (FAULT == FAULT_FIRST_RUN_WRONG && self->runs == 1) ||
                        (FAULT == FAULT_LATE_WRONG && self->runs > 3);
      if (spoil && m == M - 1 && n == 3) sum++;
      put(C, type, info->AC_layout ? ((size_t)(n / c) * (size_t)M + (size_t)m) * (size_t)c + (size_t)(n % c) : (size_t)m * (size_t)N + (size_t)n, sum);
    }
  return 0;
}

EXPORT int rknn_matmul_set_core_mask(rknn_matmul_ctx ctx, rknn_core_mask mask) {
  if (FAULT == FAULT_MASK_REFUSED || (mask & (mask - 1))) return RKNN_ERR_FAIL;
  ((struct context *)(uintptr_t)ctx)->mask = (int)mask;
  return 0;
}

EXPORT int rknn_matmul_destroy(rknn_matmul_ctx ctx) {
  struct context *context = (struct context *)(uintptr_t)ctx;
  if (last_created == context) last_created = context->before;
  free(context->A);
  free(context->B);
  free(context);
  live--;
  return 0;
}

EXPORT rknn_tensor_mem *rknn_create_mem(rknn_context ctx, uint32_t size) {
  rknn_tensor_mem *mem = calloc(1, sizeof *mem);
  if (ctx == 0) return NULL;
  mem->virt_addr = calloc(1, size);
  mem->size = size;
  mem->fd = -1;
  return mem;
}

EXPORT int rknn_destroy_mem(rknn_context ctx, rknn_tensor_mem *mem) {
  if (ctx == 0) return RKNN_ERR_CTX_INVALID;
  free(mem->virt_addr);
  free(mem);
  return 0;
}
