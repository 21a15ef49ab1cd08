/* SPDX-License-Identifier: Apache-2.0 */
#include "operands.h"

#include <stdlib.h>
#include <string.h>

#include "layout.h"

static bool sync_operand(struct matmul *m, enum operand operand, rknn_mem_sync_mode mode) {
  const struct runtime *rt = &m->session->runtime;
  if (!rt->mem_sync) return true; /* before 1.6.0 */
  const int code = rt->mem_sync(m->ctx, m->mem[operand], mode);
  return code == 0 || matmul_fail(m, "failed", "rknn_mem_sync of %c returned %d (%s)", "ABC"[operand], code,
                                  rknn_code_name(code));
}

static bool allocate(struct matmul *m) {
  rknn_matmul_tensor_attr *const attrs[3] = {&m->io.attr.A, &m->io.attr.B, &m->io.attr.C};
  session_step(m->session, "allocate type=%d bytes A=%u B=%u C=%u", m->problem.type, attrs[0]->size, attrs[1]->size,
               attrs[2]->size);
  for (int i = 0; i < 3; i++) {
    m->mem[i] = m->session->runtime.create_mem(m->ctx, attrs[i]->size);
    if (!m->mem[i])
      return matmul_fail(m, "could-not-run", "rknn_create_mem of %c (%u bytes) returned NULL", "ABC"[i],
                         attrs[i]->size);
    if (!m->mem[i]->virt_addr || m->mem[i]->size < attrs[i]->size)
      return matmul_fail(m, "failed", "rknn_create_mem of %c gave %u bytes at %p where %u were asked for", "ABC"[i],
                         m->mem[i]->size, m->mem[i]->virt_addr, attrs[i]->size);
  }
  return true;
}

/* The converter wants B as the norm layout has it, but int4 one value per byte (given packed int4 it reads past the
 * end: rknn-toolkit2 pull request 412). */
static bool convert(struct matmul *m, uint8_t *out, int8_t *scratch) {
  const int K = m->problem.shape.K, N = m->problem.shape.N, type = (int)m->io.attr.B.type;
  const size_t count = (size_t)K * (size_t)N;
  void *in = m->B;
  if (type != RKNN_TENSOR_INT8 && type != RKNN_TENSOR_INT4) {
    in = scratch;
    if (!layout_encode(in, type, m->B, count)) return false;
  }
  session_step(m->session, "rknn_B_normal_layout_to_native_layout type=%d K=%d N=%d", m->problem.type, K, N);
  const int code = m->session->runtime.convert_B(in, out, K, N, &m->about.info);
  if (code == 0) return true;
  snprintf(m->b_packing, sizeof m->b_packing, "own packing; rknn_B_normal_layout_to_native_layout returned %d (%s)",
           code, rknn_code_name(code));
  return false;
}

static size_t first_difference(const uint8_t *left, const uint8_t *right, size_t bytes) {
  size_t at = 0;
  while (at < bytes && left[at] == right[at]) at++;
  return at;
}

/* Native B: our own packing, compared with the library's converter where there is one. Above K = 4096 some runtimes
 * cut K into segments (RK3576 at 4096, RK3588 at 8192, header notes of 2.3.2), so there the converter has the last
 * word. */
static bool pack_native_B(struct matmul *m, int8_t *scratch) {
  static const int segments[] = {0, 8192, 4096};
  const rknn_matmul_tensor_attr *attr = &m->io.attr.B;
  const int K = m->problem.shape.K, N = m->problem.shape.N;
  const size_t elements = layout_elements(attr), bytes = attr->size, slack = 65536;
  uint8_t *buffer = m->mem[OPERAND_B]->virt_addr;
  layout_order_B(scratch, attr, m->B, K, N, 0);
  if (!layout_encode(buffer, (int)attr->type, scratch, elements)) return false;
  snprintf(m->b_packing, sizeof m->b_packing, "own packing; no converter of known argument list");
  if (!m->session->runtime.convert_B) return true;

  uint8_t *theirs = calloc(1, bytes + slack), *ours = calloc(1, bytes);
  bool memory = theirs && ours;
  if (memory && convert(m, theirs, scratch)) {
    size_t difference = 0;
    bool equal = false;
    for (size_t i = 0; i < sizeof segments / sizeof segments[0] && !equal; i++) {
      if (segments[i] && segments[i] >= K) continue;
      layout_order_B(scratch, attr, m->B, K, N, segments[i]);
      layout_encode(ours, (int)attr->type, scratch, elements);
      const size_t at = first_difference(ours, theirs, (elements * tensor_type_bits((int)attr->type) + 7) / 8);
      equal = at == (elements * tensor_type_bits((int)attr->type) + 7) / 8;
      if (i == 0) difference = at;
      if (equal && segments[i] == 0)
        snprintf(m->b_packing, sizeof m->b_packing, "own packing, equal to the converter's");
      if (equal && segments[i])
        snprintf(m->b_packing, sizeof m->b_packing, "converter's, equal to own packing in K segments of %d",
                 segments[i]);
    }
    if (!equal) {
      snprintf(m->b_packing, sizeof m->b_packing, "%s; converter and own packing differ from byte %zu on",
               K > 4096 ? "converter's" : "own packing", difference);
      snprintf(
          m->disagreement, sizeof m->disagreement,
          "rknn_B_normal_layout_to_native_layout and the documented native layout of B differ from byte %zu on",
          difference);
    }
    if (K > 4096) memcpy(buffer, theirs, bytes);
  }
  free(theirs);
  free(ours);
  return memory || matmul_fail(m, "could-not-run", "out of memory for packing B");
}

bool operands_make(struct matmul *m) {
  const struct shape s = m->problem.shape;
  const rknn_matmul_io_attr *io = &m->io.attr;
  if (!allocate(m)) return false;
  m->A = malloc((size_t)s.M * (size_t)s.K);
  m->B = malloc((size_t)s.K * (size_t)s.N);
  const size_t a = layout_elements(&io->A), b = layout_elements(&io->B);
  /* Twice B: the converter's float16 input may stand here too. */
  int8_t *scratch = malloc(a > 2 * b ? a : 2 * b);
  if (!m->A || !m->B || !scratch) {
    free(scratch);
    return matmul_fail(m, "could-not-run", "out of memory for the operands of a %dx%dx%d product", s.M, s.K, s.N);
  }
  m->plan = fill_plan_for(s.M, s.K, (int)io->A.type, (int)io->B.type, (int)io->C.type);
  fill_A(m->A, s.M, s.K, &m->plan, m->problem.seed);
  fill_B(m->B, s.K, s.N, &m->plan, m->problem.seed);
  memset(m->mem[OPERAND_A]->virt_addr, 0, io->A.size);
  memset(m->mem[OPERAND_B]->virt_addr, 0, io->B.size);
  layout_order_A(scratch, &io->A, m->A, s.M, s.K);
  bool good = layout_encode(m->mem[OPERAND_A]->virt_addr, (int)io->A.type, scratch, a);
  if (good && m->problem.B_layout == RKNN_MM_LAYOUT_NATIVE)
    good = pack_native_B(m, scratch);
  else if (good)
    good = layout_encode(m->mem[OPERAND_B]->virt_addr, (int)io->B.type, m->B, b);
  free(scratch);
  if (!good)
    return matmul_fail(m, "failed",
                       "rknn_matmul_create describes A as %s and B as %s, which these probes cannot fill",
                       tensor_type_name((int)io->A.type), tensor_type_name((int)io->B.type));
  return sync_operand(m, OPERAND_A, RKNN_MEMORY_SYNC_TO_DEVICE) &&
         sync_operand(m, OPERAND_B, RKNN_MEMORY_SYNC_TO_DEVICE) && matmul_reset_C(m);
}

bool operands_bind(struct matmul *m) {
  rknn_matmul_tensor_attr *const attrs[3] = {&m->io.attr.A, &m->io.attr.B, &m->io.attr.C};
  session_step(m->session, "bind type=%d", m->problem.type);
  for (int i = 0; i < 3; i++) {
    const double start = now_us();
    const int code = m->session->runtime.matmul_set_io_mem(m->ctx, m->mem[i], attrs[i]);
    const double end = now_us();
    char function[48];
    snprintf(function, sizeof function, "rknn_matmul_set_io_mem of %c", "ABC"[i]);
    if (code != 0) return matmul_refused(m, function, code);
    if (i == OPERAND_B) m->bind_b_us = end - start;
  }
  return true;
}

bool matmul_reset_C(struct matmul *m) {
  sentinel_fill(m->mem[OPERAND_C]->virt_addr, m->io.attr.C.size);
  return sync_operand(m, OPERAND_C, RKNN_MEMORY_SYNC_TO_DEVICE);
}

bool matmul_check(struct matmul *m, const char *when, const struct oracle *const *others, int other_count) {
  const rknn_matmul_tensor_attr *attr = &m->io.attr.C;
  struct oracle_report *wrong = &m->wrong;
  if (!sync_operand(m, OPERAND_C, RKNN_MEMORY_SYNC_FROM_DEVICE)) return false;
  if (oracle_check(&m->oracle, attr, m->mem[OPERAND_C]->virt_addr, others, other_count, wrong)) return true;
  if (wrong->kind == ORACLE_RIGHT) return matmul_fail(m, "could-not-run", "out of memory for the check of C");
  const struct matmul_type_info *type = matmul_type_find(m->problem.type);
  const bool all = wrong->rows_wrong == wrong->rows_computed;
  return matmul_fail(m, "failed",
                     "%s in the %s, though every code was 0: %s%lld elements wrong in %lld of %d rows; "
                     "first at row %d col %d: got %.9g, expected %lld%s",
                     oracle_kind_text(wrong->kind), when, all ? "" : "at least ", (long long)wrong->wrong_elements,
                     (long long)wrong->rows_wrong, m->problem.shape.M, wrong->first_row, wrong->first_col,
                     wrong->got, (long long)wrong->expected,
                     type && type->documented ? "" : " (no release documents what this type computes)");
}
