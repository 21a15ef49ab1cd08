/* SPDX-License-Identifier: Apache-2.0
 *
 * A client of librknnrt that knows only the public headers: runs every matmul of a case file (written by the Python
 * tests, with the right C in it) and compares C byte for byte. Usage: replay_cases FILE. Exit 0 when all are right.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rknn_matmul_api.h"

typedef struct {
  int32_t type, M, K, N, b_layout, ac_layout;
  uint32_t size[3];
} case_head;

static int fail(const char *what, int code, const case_head *h) {
  printf("%s: %d (type %d M %d K %d N %d B_layout %d AC_layout %d)\n", what, code, h->type, h->M, h->K, h->N,
         h->b_layout, h->ac_layout);
  return 1;
}

static int check(const case_head *h, unsigned char *bytes[3]) {
  rknn_matmul_info info;
  rknn_matmul_io_attr io;
  rknn_matmul_ctx ctx = 0;
  memset(&info, 0, sizeof info);
  memset(&io, 0, sizeof io);
  info.M = h->M;
  info.K = h->K;
  info.N = h->N;
  info.type = (rknn_matmul_type)h->type;
  info.B_layout = (int16_t)h->b_layout;
  info.AC_layout = (int16_t)h->ac_layout;
  int code = rknn_matmul_create(&ctx, &info, &io);
  if (code) return fail("create", code, h);
  rknn_matmul_tensor_attr *attr[3] = {&io.A, &io.B, &io.C};
  rknn_tensor_mem *mem[3];
  for (int i = 0; i < 3; i++) {
    if (attr[i]->size != h->size[i]) return fail(attr[i]->name, (int)attr[i]->size, h);
    mem[i] = rknn_create_mem(ctx, attr[i]->size);
    if (!mem[i]) return fail("create_mem", i, h);
    if (i < 2)
      memcpy(mem[i]->virt_addr, bytes[i], h->size[i]);
    else
      memset(mem[i]->virt_addr, 0x5c, h->size[i]);
    if ((code = rknn_mem_sync(ctx, mem[i], RKNN_MEMORY_SYNC_TO_DEVICE))) return fail("sync", code, h);
    if ((code = rknn_matmul_set_io_mem(ctx, mem[i], attr[i]))) return fail("set_io_mem", code, h);
  }
  for (int run = 0; run < 2; run++) {
    if ((code = rknn_matmul_run(ctx))) return fail("run", code, h);
    if ((code = rknn_mem_sync(ctx, mem[2], RKNN_MEMORY_SYNC_FROM_DEVICE))) return fail("sync", code, h);
    if (memcmp(mem[2]->virt_addr, bytes[2], h->size[2]) != 0) return fail("C differs", run, h);
  }
  for (int i = 0; i < 3; i++)
    if ((code = rknn_destroy_mem(ctx, mem[i]))) return fail("destroy_mem", code, h);
  code = rknn_matmul_destroy(ctx);
  return code ? fail("destroy", code, h) : 0;
}

int main(int argc, char **argv) {
  FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
  case_head head;
  int wrong = 0, count = 0;
  if (!file) return 2;
  while (fread(&head, sizeof head, 1, file) == 1) {
    unsigned char *bytes[3];
    for (int i = 0; i < 3; i++) {
      bytes[i] = malloc(head.size[i]);
      if (!bytes[i] || fread(bytes[i], 1, head.size[i], file) != head.size[i]) return 2;
    }
    wrong += check(&head, bytes);
    for (int i = 0; i < 3; i++) free(bytes[i]);
    count++;
  }
  fclose(file);
  printf("%d cases, %d wrong; context %zu tensor_mem %zu info %zu io_attr %zu quant_params %zu\n", count, wrong,
         sizeof(rknn_context), sizeof(rknn_tensor_mem), sizeof(rknn_matmul_info), sizeof(rknn_matmul_io_attr),
         sizeof(rknn_quant_params));
  return wrong || !count;
}
