/* SPDX-License-Identifier: Apache-2.0
 *
 * Binds C to heap memory of exactly its size, through an fd of the client's own, so that a write past its end is one
 * that a sanitizer sees.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rknn_matmul_api.h"

int main(void) {
  rknn_matmul_info info;
  rknn_matmul_io_attr io;
  rknn_matmul_ctx ctx = 0;
  memset(&info, 0, sizeof info);
  info.M = 1;
  info.K = 32;
  info.N = 32;
  info.type = RKNN_INT8_MM_INT8_TO_INT32;
  int code = rknn_matmul_create(&ctx, &info, &io), fd = memfd_create("c", 0);
  void *c = malloc(io.C.size);
  code |= ftruncate(fd, io.C.size);
  rknn_tensor_mem *mem[3] = {rknn_create_mem(ctx, io.A.size), rknn_create_mem(ctx, io.B.size),
                             rknn_create_mem_from_fd(ctx, fd, c, io.C.size, 0)};
  code |= rknn_matmul_set_io_mem(ctx, mem[0], &io.A) | rknn_matmul_set_io_mem(ctx, mem[1], &io.B) |
          rknn_matmul_set_io_mem(ctx, mem[2], &io.C) | rknn_matmul_run(ctx);
  for (int i = 0; i < 3; i++) code |= rknn_destroy_mem(ctx, mem[i]);
  code |= rknn_matmul_destroy(ctx);
  free(c);
  if (!code) puts("done");
  return code ? 2 : 0;
}
