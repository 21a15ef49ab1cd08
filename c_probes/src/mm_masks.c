/* SPDX-License-Identifier: Apache-2.0
 *
 * mm_masks: what each core mask really does. */
#include <math.h>
#include <string.h>

#include "guard.h"
#include "load_file.h"
#include "together.h"
#include "parts.h"

static const char method[] =
    "One context per row on core mask 1, 2, 4, 3, 7 and 0, then two contexts on the same mask. The return code of "
    "rknn_matmul_set_core_mask is noted and the context is run all the same: what a mask does shows in the rate "
    "beside that of "
    "mask 1, and in the driver's load file where it can be read (root). Two contexts on one core share it, so they "
    "should reach "
    "the rate of one; two contexts on mask 0 should reach more. A matmul context is known to run on one core "
    "whatever the mask "
    "says, so a mask of several cores that is accepted is honest only if the rate shows it. Every C is compared in "
    "every element. "
    "Spoiled by other users of the NPU and by low clocks.";

static const struct program program = {
    .name = "mm_masks",
    .bit = FOR_MASKS,
    .purpose = "Compares what core masks promise with what a matmul context does on them.",
    .deadline = 120,
    .seconds = 0.2,
};

static const struct column columns[] = {{"mask", 5}, {"contexts", 8},  {"code", 5},
                                        {"TOPS", 7}, {"of mask 1", 9}, {"verdict", -13}};

static const struct {
  int mask, contexts;
} plans[] = {{1, 1}, {2, 1}, {4, 1}, {3, 1}, {7, 1}, {0, 1}, {1, 2}, {0, 2}};

/* The mask is set by hand: the rate of a context is wanted whether the mask is refused or not. */
static int set_mask(struct worker *worker, int mask) {
  struct session *session = worker->m.session;
  if (!session->runtime.matmul_set_core_mask) return 0;
  session_step(session, "rknn_matmul_set_core_mask(%d)", mask);
  const int code = session->runtime.matmul_set_core_mask(worker->m.ctx, (rknn_core_mask)mask);
  matmul_take_log(&worker->m);
  worker->m.disagreement[0] = '\0'; /* an error line beside a refusal is no disagreement; the code is in the row */
  return code;
}

static void measure(struct session *session, struct row *row, struct worker *workers, int contexts) {
  static struct together found;
  struct crew crew;
  const struct shape s = workers[0].m.problem.shape;
  if (!crew_start(&crew, workers, contexts)) {
    matmul_fail(&workers[0].m, "could-not-run", "pthread_create gives no %d threads; raise the limit on processes",
                contexts);
    return;
  }
  if (together_measure(session, &crew, session->options->seconds, &found)) {
    for (int i = 0; i < found.samples; i++) {
      row->rate[i] = found.runs_per_us[i] * 2e-6 * s.M * s.K * s.N;
      row->timing.run_us[i] = found.run_us[i];
    }
    row->rate_count = row->timing.count = found.samples;
    row->timing.runs_per_sample = found.runs;
  }
  crew_stop(&crew);
}

static void one_row(struct session *session, size_t number, double *one_tops, struct tally *tally) {
  static struct worker workers[MAX_MASKS];
  static struct load_watch watch;
  struct row row;
  const int mask = plans[number].mask, contexts = plans[number].contexts, none[2] = {0, 0};
  struct problem problem = plain_problem(session, 256, 2048, 1024);
  int code = 0;
  if (session->options->type_count) problem.type = session->options->types[0];
  part_row_begin(&row, "core_mask", "tops");
  if (together_make(workers, contexts, session, &problem, none)) {
    for (int i = 0; i < contexts; i++) code = set_mask(&workers[i], mask);
    load_watch_start(&watch, session->options->load_file);
    measure(session, &row, workers, contexts);
    load_watch_stop(&watch);
    load_put(&watch, &row.evidence);
  }
  json_put_integer(&row.parameters, "core_mask", mask);
  json_put_integer(&row.parameters, "contexts", contexts);
  matmul_put_parameters(&workers[0].m, &row.parameters);
  json_put_integer(&row.evidence, "core_mask_code", code);
  together_judge(&row, workers, contexts);
  const double tops = median_of(row.rate, (size_t)row.rate_count);
  if (number == 0 && row_passed(&row)) *one_tops = tops;
  json_put_number(&row.evidence, "against_mask_1", tops / *one_tops);
  snprintf(row.cells[0], CELL_WIDTH, "%d", mask);
  snprintf(row.cells[1], CELL_WIDTH, "%d", contexts);
  snprintf(row.cells[2], CELL_WIDTH, "%d", code);
  snprintf(row.cells[3], CELL_WIDTH, row_passed(&row) ? "%.4g" : "-", tops);
  snprintf(row.cells[4], CELL_WIDTH, row_passed(&row) && isfinite(tops / *one_tops) ? "%.2fx" : "-",
           tops / *one_tops);
  snprintf(row.cells[5], CELL_WIDTH, "%s", row.verdict);
  part_row_end(session, &row, tally);
  together_free(workers, contexts);
}

int main(int argc, char **argv) {
  static struct session session;
  static struct options options;
  struct tally tally = {0};
  double one_tops = NAN;
  int code = 0;
  if (!session_begin(&session, &options, &program, columns, sizeof columns / sizeof columns[0], argc, argv, &code))
    return code;
  output_header(&session.output, session.runtime.path, session.runtime.version, options.seed,
                sizeof plans / sizeof plans[0], method);
  for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) one_row(&session, i, &one_tops, &tally);
  return session_end(&session, tally_exit(&tally));
}
