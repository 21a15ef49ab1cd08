/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "cost.h"
#include "layout.h"

enum { CALL_SAMPLES = 15 };

void cost_cells(struct row *row, const char *what, const char *of) {
  const double median = median_of(row->rate, (size_t)row->rate_count);
  snprintf(row->cells[0], CELL_WIDTH, "%s", what);
  snprintf(row->cells[1], CELL_WIDTH, "%s", of);
  snprintf(row->cells[2], CELL_WIDTH, row_passed(row) && isfinite(median) ? "%.4g" : "-", median);
  snprintf(row->cells[3], CELL_WIDTH, "%s", row->unit);
  snprintf(row->cells[4], CELL_WIDTH, row_passed(row) && median > 0 ? "%.1f%%" : "-",
           100 * mad_of(row->rate, (size_t)row->rate_count) / median);
  snprintf(row->cells[5], CELL_WIDTH, "%s", row->verdict);
}

static bool rebind(struct matmul *m) {
  const int code = m->session->runtime.matmul_set_io_mem(m->ctx, m->mem[OPERAND_B], &m->io.attr.B);
  return code == 0 || matmul_refused(m, "rknn_matmul_set_io_mem of B", code);
}

void cost_bind(struct session *session, struct tally *tally) {
  static struct matmul m;
  for (int layout = RKNN_MM_LAYOUT_NORM; layout <= RKNN_MM_LAYOUT_NATIVE; layout++) {
    struct row row;
    char of[CELL_WIDTH];
    struct problem problem = plain_problem(session, 1, 2048, 2048);
    problem.B_layout = layout;
    part_row_begin(&row, "run_cost", "us");
    json_put_string(&row.parameters, "part", "bind");
    if (matmul_ready(&m, session, &problem)) {
      session_step(session, "bind B again and again, %s", layout_name(layout));
      for (int i = 0; i < CALL_SAMPLES; i++) {
        const double start = now_us();
        if (!rebind(&m)) break;
        row.rate[row.rate_count++] = now_us() - start;
      }
      json_put_number(&row.evidence, "first_bind_us", m.bind_b_us);
      matmul_prove(&m, "run after binding");
    }
    matmul_put_parameters(&m, &row.parameters);
    json_put_integer(&row.parameters, "bytes", m.io.attr.B.size);
    matmul_close(&m);
    part_row_judge(&row, &m);
    snprintf(of, sizeof of, "B %s, %u KiB", layout_name(layout), m.io.attr.B.size / 1024);
    cost_cells(&row, "bind", of);
    part_row_end(session, &row, tally);
  }
}

static void sync_row(struct session *session, struct matmul *m, enum operand operand, rknn_mem_sync_mode mode,
                     struct tally *tally) {
  struct row row;
  char of[CELL_WIDTH];
  const char *direction = mode == RKNN_MEMORY_SYNC_TO_DEVICE ? "to_device" : "from_device";
  const uint32_t bytes = m->mem[operand] ? m->mem[operand]->size : 0;
  part_row_begin(&row, "run_cost", "us");
  json_put_string(&row.parameters, "part", "sync");
  json_put_string(&row.parameters, "direction", direction);
  json_put_integer(&row.parameters, "bytes", bytes);
  if (!m->verdict) {
    session_step(session, "sync %s of %u bytes", direction, bytes);
    for (int i = 0; i < CALL_SAMPLES && !m->verdict; i++) {
      const double start = now_us();
      const int code = session->runtime.mem_sync(m->ctx, m->mem[operand], mode);
      if (code != 0) matmul_refused(m, "rknn_mem_sync", code);
      row.rate[row.rate_count++] = now_us() - start;
    }
    if (!m->verdict) matmul_prove(m, "run after syncing");
  }
  part_row_judge(&row, m);
  snprintf(of, sizeof of, "%s, %u KiB", direction, bytes / 1024);
  cost_cells(&row, "sync", of);
  part_row_end(session, &row, tally);
}

void cost_sync(struct session *session, struct tally *tally) {
  static struct matmul m;
  const struct problem problem = plain_problem(session, 1, 2048, 2048);
  matmul_ready(&m, session, &problem);
  if (!m.verdict && !session->runtime.mem_sync)
    matmul_fail(&m, "unsupported", "this runtime does not export rknn_mem_sync (it came with 1.6.0)");
  for (int mode = RKNN_MEMORY_SYNC_TO_DEVICE; mode <= RKNN_MEMORY_SYNC_FROM_DEVICE; mode++) {
    sync_row(session, &m, OPERAND_A, (rknn_mem_sync_mode)mode, tally);
    sync_row(session, &m, OPERAND_B, (rknn_mem_sync_mode)mode, tally);
  }
  matmul_close(&m);
}

/* Contexts made and destroyed one after the other; the last one is also run and compared. */
void cost_life(struct session *session, struct tally *tally) {
  static struct matmul m;
  static const char *const names[] = {"create", "destroy"};
  const struct problem problem = plain_problem(session, 1, 1024, 1024);
  double create_us[CALL_SAMPLES], destroy_us[CALL_SAMPLES];
  int count = 0;
  memset(&m, 0, sizeof m);
  for (; count < CALL_SAMPLES; count++) {
    if (!matmul_create(&m, session, &problem)) break;
    create_us[count] = m.create_us;
    if (count + 1 == CALL_SAMPLES && !(matmul_prepare(&m) && matmul_prove(&m, "run of the last context"))) break;
    const rknn_matmul_ctx ctx = m.ctx;
    for (int i = 0; i < 3; i++)
      if (m.mem[i]) session->runtime.destroy_mem(ctx, m.mem[i]);
    memset(m.mem, 0, sizeof m.mem);
    m.ctx = 0;
    session_step(session, "destroy context %d", count + 1);
    const double start = now_us();
    const int code = session->runtime.matmul_destroy(ctx);
    destroy_us[count] = now_us() - start;
    if (code != 0 && matmul_fail(&m, "failed", "rknn_matmul_destroy returned %d (%s)", code, rknn_code_name(code)))
      break;
    if (count + 1 < CALL_SAMPLES) matmul_close(&m);
  }
  for (int which = 0; which < 2; which++) {
    struct row row;
    part_row_begin(&row, "run_cost", "us");
    json_put_string(&row.parameters, "part", names[which]);
    matmul_put_parameters(&m, &row.parameters);
    for (int i = 0; i < count; i++) row.rate[row.rate_count++] = which ? destroy_us[i] : create_us[i];
    part_row_judge(&row, &m);
    cost_cells(&row, names[which], "context of 1x1024x1024");
    part_row_end(session, &row, tally);
  }
  matmul_close(&m);
}
