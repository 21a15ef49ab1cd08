/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer target: bytes become a sequence of calls with good, odd and hostile arguments. Found is what the
 * sanitizers report, a hang, or a broken promise: a create that succeeds with ctx 0, one that fails and leaves ctx
 * set, a handle that works after it was destroyed, a run that writes outside C.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rknn_matmul_api.h"

enum { CONTEXTS = 4, MEMORIES = 8, SHAPES = 3, GUARD = 64, LARGEST = 1 << 18 };

typedef struct {
  const uint8_t *at, *end;
} input;

static uint32_t take(input *in, int bytes) {
  uint32_t value = 0;
  while (bytes-- > 0) value = value << 8 | (in->at < in->end ? *in->at++ : 0);
  return value;
}

/* Mostly a value from the list, sometimes anything. */
static int32_t pick(input *in, const int32_t *list, uint32_t count) {
  uint32_t choice = take(in, 1);
  return choice >= 240 ? (int32_t)take(in, 4) : list[choice % count];
}

static void must(int holds) {
  if (!holds) abort();
}

typedef struct {
  rknn_matmul_ctx ctx;
  rknn_matmul_io_attr io[SHAPES];
  rknn_matmul_shape shape[SHAPES];
  int shapes;
} context;

typedef struct {
  rknn_tensor_mem *mem;
  uint8_t *own; /* heap behind a from_fd memory, with a guard after it */
  uint32_t size;
} memory;

static context contexts[CONTEXTS];
static memory memories[MEMORIES];
static int file; /* long enough for every from_fd memory */
static unsigned long
    runs; /* that came to an end; printed at exit, because a fuzzer that never gets there finds nothing */

static void make_context(input *in, context *c) {
  static const int32_t types[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 15, 0, 13, 14, 16, 31, 32, -1};
  static const int32_t ms[] = {1, 2, 3, 7, 16, 33, 0, -1, INT32_MAX};
  static const int32_t ks[] = {32, 64, 96, 128, 512, 8224, 16, 48, 0, -32, 33, INT32_MAX - 31};
  static const int32_t ns[] = {64, 128, 32, 16, 192, 0, -64, 65, INT32_MAX - 63};
  static const int32_t layouts[] = {0, 1, 2, 0, 1, 3, -1};
  static const int32_t quants[] = {0, 0, 2, 4, 1, 3, 5, 6, -1};
  static const int32_t groups[] = {32, 64, 0, -32, 1, 48, 32767};
  static const int32_t domains[] = {0, 0, 1, 15, 16, -1};
  rknn_matmul_info info;
  memset(&info, 0, sizeof info);
  info.type = (rknn_matmul_type)pick(in, types, 20);
  info.M = pick(in, ms, 9);
  info.K = pick(in, ks, 12);
  info.N = pick(in, ns, 9);
  info.B_layout = (int16_t)pick(in, layouts, 7);
  info.AC_layout = (int16_t)pick(in, layouts, 7);
  info.B_quant_type = (int16_t)pick(in, quants, 9);
  info.AC_quant_type = (int16_t)(take(in, 1) == 7);
  info.group_size = (int16_t)pick(in, groups, 7);
  info.iommu_domain_id = pick(in, domains, 6);
  info.reserved[take(in, 1) % 34] = (int8_t)(take(in, 1) == 7);
  rknn_matmul_ctx ctx = 99;
  c->shapes = (int)(take(in, 1) % (SHAPES + 1));
  for (int i = 0; i < SHAPES; i++) c->shape[i] = (rknn_matmul_shape){pick(in, ms, 9), info.K, info.N};
  if (take(in, 1) == 9) c->shape[SHAPES - 1].K = 64;
  int code = c->shapes ? rknn_matmul_create_dynamic_shape(&ctx, &info, c->shapes, c->shape, c->io)
                       : rknn_matmul_create(&ctx, &info, c->io);
  must((code == 0) == (ctx != 0));
  if (!c->shapes) {
    c->shapes = 1;
    c->shape[0] = (rknn_matmul_shape){info.M, info.K, info.N};
  }
  c->ctx = ctx;
}

static void end_context(context *c) {
  if (c->ctx == 0) return;
  must(rknn_matmul_destroy(c->ctx) == 0);
  must(rknn_matmul_run(c->ctx) == RKNN_ERR_CTX_INVALID);
  c->ctx = 0;
}

static void end_memory(memory *m) {
  if (m->mem) must(rknn_destroy_mem(0, m->mem) == 0);
  free(m->own);
  memset(m, 0, sizeof *m);
}

static void make_memory(input *in, memory *m, context *c) {
  rknn_matmul_tensor_attr *attr = &c->io[take(in, 1) % SHAPES].A + take(in, 1) % 3;
  uint32_t size = take(in, 1) < 200 ? attr->size : take(in, 4), how = take(in, 1) % 4;
  end_memory(m);
  if (size > LARGEST) size %= LARGEST;
  m->size = size;
  if (how == 0) m->mem = rknn_create_mem(c->ctx, size);
  if (how == 1)
    m->mem = rknn_create_mem2(c->ctx, size, take(in, 1) < 128 ? 0x20000 | (take(in, 1) & 7) : take(in, 4));
  if (how >= 2) {
    int32_t offset = how == 3 ? (int32_t)(take(in, 1) % 64) * 4 : 0;
    m->own = calloc(1, (size_t)offset + size + GUARD);
    m->mem = m->own ? rknn_create_mem_from_fd(c->ctx, file, m->own, size, offset) : NULL;
    if (m->own) memset(m->own + offset + size, 0xa7, GUARD);
    m->size = (uint32_t)offset + size;
  }
  if (!m->mem) return;
  uint8_t *bytes = (uint8_t *)m->mem->virt_addr + m->mem->offset;
  uint32_t seed = take(in, 2);
  for (uint32_t i = 0; i < size; i++) bytes[i] = (uint8_t)(seed = seed * 1103515245u + 12345u);
}

static void check_guards(void) {
  for (int i = 0; i < MEMORIES; i++)
    for (int g = 0; memories[i].own && memories[i].mem && g < GUARD; g++)
      must(memories[i].own[memories[i].size + (uint32_t)g] == 0xa7);
}

static void bind(input *in, context *c, memory *m) {
  rknn_matmul_tensor_attr attr = *(&c->io[take(in, 1) % SHAPES].A + take(in, 1) % 3);
  uint32_t twist = take(in, 1);
  if (twist == 1) attr.name[0] = (char)take(in, 1);
  if (twist == 2) attr.dims[take(in, 1) % 4] = take(in, 4);
  if (twist == 3) attr.n_dims = take(in, 4);
  if (twist == 4) memset(attr.name, 'A', sizeof attr.name);
  if (twist == 5 && m->mem) m->mem->size = take(in, 4);
  if (twist == 6 && m->mem) m->mem->offset = (int32_t)take(in, 4);
  uint32_t size = m->mem ? m->mem->size : 0;
  rknn_matmul_set_io_mem(c->ctx, twist == 7 ? NULL : m->mem, twist == 8 ? NULL : &attr);
  if ((twist == 5 || twist == 6) && m->mem) {
    m->mem->size = size;
    end_memory(m);
  }
}

/* Right memory for all three operands of one shape, bound, and a run: the way to the arithmetic is long for chance.
 */
static void run_whole(input *in, context *c) {
  rknn_matmul_tensor_attr *attr = &c->io[take(in, 1) % SHAPES].A;
  for (int i = 0; i < 3; i++) {
    memory *m = &memories[i];
    end_memory(m);
    if (c->ctx == 0 || attr[i].size > LARGEST) continue;
    m->own = calloc(1, attr[i].size + GUARD);
    m->mem = m->own ? rknn_create_mem_from_fd(c->ctx, file, m->own, attr[i].size, 0) : NULL;
    m->size = attr[i].size;
    if (!m->mem) continue;
    memset(m->own, (int)take(in, 1), attr[i].size);
    memset(m->own + attr[i].size, 0xa7, GUARD);
    rknn_matmul_set_io_mem(c->ctx, m->mem, &attr[i]);
  }
  if (rknn_matmul_run(c->ctx) == 0) runs++;
}

static void quantise(input *in, context *c) {
  float scale[256];
  int32_t zp[2] = {(int32_t)(take(in, 1) == 3), 0};
  rknn_quant_params params;
  memset(&params, 0, sizeof params);
  params.name[0] = (char)("ABCD"[take(in, 1) % 4]);
  for (int i = 0; i < 256; i++) scale[i] = (float)(int8_t)take(in, 1) / 16;
  params.scale = take(in, 1) == 5 ? NULL : scale;
  params.scale_len = take(in, 1) < 128 ? 1 : (int32_t)(take(in, 1) + 1 - (take(in, 1) == 9) * 300);
  params.zp = zp;
  params.zp_len = (int32_t)(take(in, 1) % 3);
  rknn_matmul_set_quant_params(c->ctx, take(in, 1) == 5 ? NULL : &params);
  float common;
  rknn_matmul_get_quant_params(c->ctx, &params, &common);
}

static void convert(input *in) {
  static const int32_t types[] = {1, 2, 7, 10, 15, 13, -1, 99};
  static const int32_t sizes[] = {32, 64, 128, 16, 0, -32, 33};
  static uint8_t from[128 * 128 * 2], to[128 * 128 * 2];
  rknn_matmul_info info;
  memset(&info, 0, sizeof info);
  info.type = (rknn_matmul_type)pick(in, types, 8);
  int32_t K = pick(in, sizes, 7), N = pick(in, sizes, 7);
  if (K > 128 || N > 128) return;
  rknn_B_normal_layout_to_native_layout(from, take(in, 1) == 1 ? from : to, K, N, &info);
}

static void say_runs(void) { printf("matmuls run to their end: %lu\n", runs); }

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc, (void)argv;
  setenv("RKNN_MOCK_PERSONA", "any", 0);
  file = memfd_create("fuzz", 0);
  must(file >= 0 && ftruncate(file, 2 * LARGEST) == 0);
  return atexit(say_runs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static uint8_t answer[1024];
  input in = {data, data + size};
  while (in.at < in.end) {
    uint32_t call = take(&in, 1) % 13;
    context *c = &contexts[take(&in, 1) % CONTEXTS];
    memory *m = &memories[take(&in, 1) % MEMORIES];
    switch (call) {
      case 0:
        end_context(c);
        make_context(&in, c);
        break;
      case 1: end_context(c); break;
      case 2: make_memory(&in, m, c); break;
      case 3: end_memory(m); break;
      case 4:
      case 5: bind(&in, c, m); break;
      case 6: runs += rknn_matmul_run(c->ctx) == 0; break;
      case 7: quantise(&in, c); break;
      case 8: rknn_matmul_set_core_mask(c->ctx, (rknn_core_mask)take(&in, take(&in, 1) & 3)); break;
      case 9:
        rknn_matmul_set_dynamic_shape(c->ctx, take(&in, 1) == 1 ? NULL : &c->shape[take(&in, 1) % SHAPES]);
        break;
      case 10:
        rknn_mem_sync(c->ctx, m->mem, (rknn_mem_sync_mode)take(&in, 1));
        rknn_query(c->ctx, (rknn_query_cmd)(take(&in, 1) % 20), answer, take(&in, 2) % sizeof answer);
        break;
      case 11: run_whole(&in, c); break;
      default: convert(&in);
    }
    check_guards();
  }
  for (int i = 0; i < CONTEXTS; i++) end_context(&contexts[i]);
  for (int i = 0; i < MEMORIES; i++) end_memory(&memories[i]);
  memset(contexts, 0, sizeof contexts);
  return 0;
}
