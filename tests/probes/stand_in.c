/* SPDX-License-Identifier: Apache-2.0
 *
 * A library that goes wrong in one way, chosen by a macro at compile time, for tests of what a run makes of it. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "rknn_abi.h"

const char version[] = "librknnrt version: 2.3.2 (stand-in for tests)";

#ifndef NO_MATMUL
int rknn_matmul_create(rknn_matmul_ctx *ctx, rknn_matmul_info *info, rknn_matmul_io_attr *io_attr) {
  (void)ctx, (void)info, (void)io_attr;
#if defined(CRASH)
  raise(SIGSEGV);
#elif defined(HANG)
  for (;;) pause();
#elif defined(NO_DEVICE)
  fprintf(stderr, "E RKNN: [08:51:31.447] failed to open rknn device!\n");
#endif
  return RKNN_ERR_FAIL;
}
int rknn_matmul_set_io_mem(rknn_matmul_ctx ctx, rknn_tensor_mem *mem, rknn_matmul_tensor_attr *attr) {
  (void)ctx, (void)mem, (void)attr;
  return RKNN_ERR_FAIL;
}
int rknn_matmul_set_core_mask(rknn_matmul_ctx ctx, rknn_core_mask core_mask) {
  (void)ctx, (void)core_mask;
  return RKNN_ERR_FAIL;
}
int rknn_matmul_run(rknn_matmul_ctx ctx) {
  (void)ctx;
  return RKNN_ERR_FAIL;
}
int rknn_matmul_destroy(rknn_matmul_ctx ctx) {
  (void)ctx;
  return RKNN_ERR_FAIL;
}
#endif

rknn_tensor_mem *rknn_create_mem(rknn_context ctx, uint32_t size) {
  (void)ctx, (void)size;
  return NULL;
}
int rknn_destroy_mem(rknn_context ctx, rknn_tensor_mem *mem) {
  (void)ctx, (void)mem;
  return 0;
}
