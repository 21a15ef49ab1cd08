/* SPDX-License-Identifier: Apache-2.0 */
#include "parts.h"

#include <math.h>
#include <string.h>

bool part_wanted(const struct options *options, const char *part) {
  for (int i = 0; i < options->part_count; i++)
    if (strcmp(options->parts[i], part) == 0) return true;
  return options->part_count == 0;
}

void part_row_begin(struct row *row, const char *name, const char *unit) {
  row_init(row, name, unit);
  json_open(&row->parameters, '{');
  json_open(&row->evidence, '{');
}

void part_row_judge(struct row *row, const struct matmul *m) {
  row->exact = !m->verdict || m->wrong.rows_wrong;
  row->verdict = m->verdict ? m->verdict : "passed";
  snprintf(row->reason, sizeof row->reason, "%s", m->reason);
  if (m->wrong.rows_wrong) json_put_string(&row->evidence, "kind", oracle_kind_word(m->wrong.kind));
  if (m->disagreement[0]) json_put_string(&row->evidence, "disagreement", m->disagreement);
  if (m->verdict && m->log[0]) json_put_string(&row->evidence, "log", m->log);
}

void part_row_end(struct session *session, struct row *row, struct tally *tally) {
  json_close(&row->parameters, '}');
  json_close(&row->evidence, '}');
  output_row(&session->output, row);
  tally_row(tally, row);
  row_free(row);
}

struct problem plain_problem(const struct session *session, int M, int K, int N) {
  return (struct problem){.type = RKNN_INT8_MM_INT8_TO_INT32,
                          .shape = {M, K, N},
                          .B_layout = RKNN_MM_LAYOUT_NATIVE,
                          .AC_layout = RKNN_MM_LAYOUT_NORM,
                          .core_mask = 1,
                          .seed = session->options->seed,
                          .oracle_seed = session->options->seed};
}

bool matmul_ready(struct matmul *m, struct session *session, const struct problem *problem) {
  return matmul_create(m, session, problem) && matmul_prepare(m) && matmul_prove(m, "first run");
}

bool matmul_prove(struct matmul *m, const char *when) {
  session_step(m->session, "%s type=%d M=%d K=%d N=%d", when, m->problem.type, m->problem.shape.M,
               m->problem.shape.K, m->problem.shape.N);
  if (!matmul_reset_C(m)) return false;
  const int code = matmul_run(m);
  if (code != 0) {
    matmul_run_failed(m, code, when);
    return false;
  }
  return matmul_check(m, when, NULL, 0);
}
