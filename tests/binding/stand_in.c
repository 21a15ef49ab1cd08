/* SPDX-License-Identifier: Apache-2.0
 *
 * A small librknnrt for the tests of the binding: type 2 (int8 x int8 -> int32), row-major, and one fault chosen with
 * -D. It records the order of calls, so that a test can see what was released and when.
 */
#define _GNU_SOURCE
#ifdef CONVERTER_7
/* The header declares the form of 2.1.0 and later; this stand-in exports the older one under the same name. */
#define rknn_B_normal_layout_to_native_layout declared_in_the_header
#endif
#include "rknn_abi.h"
#undef rknn_B_normal_layout_to_native_layout

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef VERSION
#define VERSION "2.3.2 (mock stand-in)"
#endif

__attribute__((used)) static const char version_text[] = "librknnrt version: " VERSION;

static char calls[65536];
static rknn_matmul_info last_info;
static unsigned char last_tail[40];
static int32_t *bound[3];
static float last_scale;

static void note(const char *what) {
  strncat(calls, what, sizeof calls - strlen(calls) - 1);
  strncat(calls, " ", sizeof calls - strlen(calls) - 1);
}

const char *stand_in_calls(void) { return calls; }
const void *stand_in_info(void) { return &last_info; }
const void *stand_in_tail(void) { return last_tail; }
float stand_in_scale(void) { return last_scale; }

static void describe(rknn_matmul_tensor_attr *attr, const char *name, uint32_t rows, uint32_t columns, uint32_t width,
                     rknn_tensor_type type) {
  strcpy(attr->name, name);
  attr->n_dims = 2;
  attr->dims[0] = rows;
  attr->dims[1] = columns;
  attr->size = rows * columns * width;
  attr->type = type;
}

static void describe_all(rknn_matmul_io_attr *io, uint32_t M, uint32_t K, uint32_t N) {
  describe(&io->A, "A", M, K, 1, RKNN_TENSOR_INT8);
  describe(&io->B, "B", K, N, 1, RKNN_TENSOR_INT8);
  describe(&io->C, "C", M, N, 4, RKNN_TENSOR_INT32);
}

int rknn_matmul_create(rknn_matmul_ctx *ctx, rknn_matmul_info *info, rknn_matmul_io_attr *io) {
  note("create");
#ifdef CRASH_IN_CREATE
  fprintf(stderr, "E RKNN: [00:00:00.000] about to crash\n");
  fflush(stderr);
  raise(11);
  *(volatile int *)0 = 1;
#endif
#ifdef HANG_IN_CREATE
  for (;;) pause();
#endif
#ifdef REFUSE_CREATE
  fprintf(stderr, "E RKNN: [00:00:00.000] unsupported matmul dtype : %d in this platform\n", info->type);
  printf("W RKNN: [00:00:00.000] said on stdout\n");
  return RKNN_ERR_PARAM_INVALID;
#endif
  memcpy(&last_info, info, sizeof last_info);
  memcpy(last_tail, (const char *)info + sizeof *info, sizeof last_tail);
  describe_all(io, (uint32_t)info->M, (uint32_t)info->K, (uint32_t)info->N);
#ifndef FLAT_NATIVE_B
  if (info->B_layout == RKNN_MM_LAYOUT_NATIVE) {
    io->B.n_dims = 4;
    io->B.dims[0] = (uint32_t)info->N / 32;
    io->B.dims[1] = (uint32_t)info->K / 32;
    io->B.dims[2] = io->B.dims[3] = 32;
  }
#endif
#ifdef LOG_BUT_SUCCEED
  fprintf(stderr, "E RKNN: [00:00:00.000] failed to submit!\n");
#endif
#ifdef NULL_CONTEXT
  *ctx = 0;
  return 0;
#endif
#ifdef WRITE_PAST_INFO
  ((char *)info)[70] = 1;
#endif
  *ctx = 0x1234;
  return 0;
}

#ifndef OLD_RUNTIME
int rknn_matmul_create_dynamic_shape(rknn_matmul_ctx *ctx, rknn_matmul_info *info, int shape_num,
                                     rknn_matmul_shape shapes[], rknn_matmul_io_attr io[]) {
  note("create_dynamic");
  memcpy(&last_info, info, sizeof last_info);
  for (int i = 0; i < shape_num; ++i)
    describe_all(&io[i], (uint32_t)shapes[i].M, (uint32_t)shapes[i].K, (uint32_t)shapes[i].N);
  *ctx = 0x1234;
  return 0;
}

int rknn_matmul_set_dynamic_shape(rknn_matmul_ctx ctx, rknn_matmul_shape *shape) {
  (void)ctx;
  note("set_shape");
  last_info.M = shape->M;
  return 0;
}

int rknn_matmul_set_quant_params(rknn_matmul_ctx ctx, rknn_quant_params *params) {
  (void)ctx;
  note("set_quant");
  last_scale = params->scale[params->scale_len - 1];
  return strcmp(params->name, "B") == 0 && params->zp_len == params->scale_len ? 0 : RKNN_ERR_PARAM_INVALID;
}

int rknn_matmul_get_quant_params(rknn_matmul_ctx ctx, rknn_quant_params *params, float *scale) {
  (void)ctx;
  (void)params;
  *scale = 0.5f;
  return 0;
}

int rknn_mem_sync(rknn_context ctx, rknn_tensor_mem *mem, rknn_mem_sync_mode mode) {
  (void)ctx;
  (void)mem;
  note(mode == RKNN_MEMORY_SYNC_TO_DEVICE ? "sync_to" : "sync_from");
  return 0;
}
#endif

#ifdef CONVERTER_7
int rknn_B_normal_layout_to_native_layout(void *in, void *out, int K, int N, int subN, int subK,
                                          rknn_matmul_type type) {
  (void)in;
  int32_t seen[5] = {K, N, subN, subK, (int32_t)type};
  memcpy(out, seen, sizeof seen);
  return 0;
}
#else
int rknn_B_normal_layout_to_native_layout(void *in, void *out, int K, int N, rknn_matmul_info *info) {
  (void)info;
  note("convert");
  memcpy(out, in, (size_t)K * (size_t)N);
  return 0;
}
#endif

int rknn_matmul_set_io_mem(rknn_matmul_ctx ctx, rknn_tensor_mem *mem, rknn_matmul_tensor_attr *attr) {
  (void)ctx;
  note(attr->name[0] == 'A' ? "bind_A" : attr->name[0] == 'B' ? "bind_B" : "bind_C");
  bound[attr->name[0] - 'A'] = mem->virt_addr;
  return 0;
}

int rknn_matmul_set_core_mask(rknn_matmul_ctx ctx, rknn_core_mask mask) {
  (void)ctx;
  note("mask");
  return mask == RKNN_NPU_CORE_0_1 ? RKNN_ERR_FAIL : 0;
}

int rknn_matmul_run(rknn_matmul_ctx ctx) {
  (void)ctx;
  note("run");
#ifdef FAIL_RUN
  fprintf(stderr, "E RKNN: [00:00:00.000] failed to submit!, int status: 0x200\n");
  return RKNN_ERR_TIMEOUT;
#endif
  const int8_t *A = (const int8_t *)bound[0], *B = (const int8_t *)bound[1];
  for (int m = 0; m < last_info.M; ++m)
    for (int n = 0; n < last_info.N; ++n) {
      int32_t sum = 0;
      for (int k = 0; k < last_info.K; ++k) sum += A[m * last_info.K + k] * B[k * last_info.N + n];
      bound[2][m * last_info.N + n] = sum;
    }
  return 0;
}

int rknn_matmul_destroy(rknn_matmul_ctx ctx) {
  (void)ctx;
  note("destroy");
  return 0;
}

rknn_tensor_mem *rknn_create_mem(rknn_context ctx, uint32_t size) {
  (void)ctx;
#ifdef NO_MEMORY
  if (size > 64) return NULL;
#endif
  note("create_mem");
  rknn_tensor_mem *mem = calloc(1, sizeof *mem);
  mem->virt_addr = aligned_alloc(64, (size + 63) / 64 * 64 + 64);
  mem->fd = -1;
  mem->size = size;
  return mem;
}

int rknn_destroy_mem(rknn_context ctx, rknn_tensor_mem *mem) {
  (void)ctx;
  note("destroy_mem");
  free(mem->virt_addr);
  free(mem);
#ifdef FAIL_DESTROY_MEM
  return RKNN_ERR_FAIL;
#else
  return 0;
#endif
}

int rknn_query(rknn_context ctx, rknn_query_cmd cmd, void *info, uint32_t size) {
  (void)ctx;
  if (cmd != RKNN_QUERY_SDK_VERSION || size != sizeof(rknn_sdk_version)) return RKNN_ERR_PARAM_INVALID;
  strcpy(((rknn_sdk_version *)info)->api_version, "2.3.2");
  strcpy(((rknn_sdk_version *)info)->drv_version, "0.9.8");
  return 0;
}
