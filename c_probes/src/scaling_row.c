/* SPDX-License-Identifier: Apache-2.0 */
#include "scaling_row.h"

#include <math.h>
#include <string.h>

static void fill_evidence(struct scaling_row *result, const struct worker *workers, int count, double rated) {
  struct json *json = &result->row.evidence;
  const struct row *row = &result->row;
  const size_t samples = (size_t)row->rate_count;
  const struct shape s = workers[0].m.problem.shape;
  json_open(json, '{');
  json_key(json, "per_context_tops");
  json_open(json, '[');
  for (int i = 0; i < count; i++)
    json_number(json, row_passed(row) ? tops_of(s.M, s.K, s.N, median_of(result->context_us[i], samples)) : NAN);
  json_close(json, ']');
  if (row_passed(row)) {
    json_put_number(json, "scaling_against_one", result->scaling);
    if (rated > 0) json_put_number(json, "share_of_rated", median_of(row->rate, samples) / rated);
  }
  json_put_numbers(json, "window_us", result->window_us, samples);
  json_put_numbers(json, "overlap_share", result->overlap, samples);
  json_put_integer(json, "bursts_without_overlap", result->lone_bursts);
  if (!row_passed(row) && samples) {
    json_key(json, "void_run_us");
    row_put_run_us(json, &row->timing);
  }
  json_key(json, "contexts");
  json_open(json, '[');
  for (int i = 0; i < count; i++) {
    const struct matmul *m = &workers[i].m;
    json_open(json, '{');
    json_put_integer(json, "core_mask", m->problem.core_mask);
    json_put_string(json, "verdict", m->verdict ? m->verdict : "passed");
    json_put_string(json, "reason", m->verdict ? m->reason : NULL);
    json_put_number(json, "create_us", m->create_us);
    json_put_number(json, "bind_b_us", m->bind_b_us);
    json_put_number(json, "cold_run_us", workers[i].cold_us);
    json_put_number(json, "run_us", median_of(result->context_us[i], samples));
    matmul_put_evidence(m, json);
    json_close(json, '}');
  }
  json_close(json, ']');
  json_close(json, '}');
}

void scaling_row_fill(struct scaling_row *result, const struct worker *workers, int count, double one_tops,
                      double rated_tops) {
  struct row *row = &result->row;
  struct json *json = &row->parameters;
  const size_t samples = (size_t)row->rate_count;
  const double tops = median_of(row->rate, samples);
  char (*cell)[CELL_WIDTH] = row->cells;
  result->scaling = tops / one_tops;
  json_open(json, '{');
  json_put_integer(json, "contexts", count);
  json_key(json, "masks");
  json_open(json, '[');
  for (int i = 0; i < count; i++) json_integer(json, workers[i].m.problem.core_mask);
  json_close(json, ']');
  matmul_put_parameters(&workers[0].m, json);
  json_close(json, '}');
  fill_evidence(result, workers, count, rated_tops);

  const bool good = row_passed(row);
  snprintf(cell[0], CELL_WIDTH, "%d", count);
  snprintf(cell[3], CELL_WIDTH, good ? "%.4g" : "-", tops);
  snprintf(cell[2], CELL_WIDTH, good ? "%.3f" : "-", median_of(row->timing.run_us, samples) / 1e3);
  snprintf(cell[4], CELL_WIDTH, good ? "%.1f%%" : "-", 100 * mad_of(row->rate, samples) / tops);
  snprintf(cell[5], CELL_WIDTH, good && isfinite(result->scaling) ? "%.2fx" : "-", result->scaling);
  for (int i = 0; i < count; i++) {
    const struct shape s = workers[i].m.problem.shape;
    const size_t at1 = strlen(cell[1]), at6 = strlen(cell[6]);
    snprintf(cell[1] + at1, CELL_WIDTH - at1, "%s%d", i ? "," : "", workers[i].m.problem.core_mask);
    if (good)
      snprintf(cell[6] + at6, CELL_WIDTH - at6, "%s%.3g", i ? " " : "",
               tops_of(s.M, s.K, s.N, median_of(result->context_us[i], samples)));
  }
  snprintf(cell[7], CELL_WIDTH, "%s", row->verdict);
  for (int i = 0; i < count && !row->note[0]; i++)
    if (workers[i].m.disagreement[0])
      snprintf(row->note, sizeof row->note, "worker %d: %s", i, workers[i].m.disagreement);
  if (good && !row->note[0] && median_of(result->overlap, samples) < 0.5)
    snprintf(row->note, sizeof row->note,
             "the contexts overlapped for %.0f %% of the time only; the rate is of that part",
             100 * median_of(result->overlap, samples));
  if (good && rated_tops > 0 && !row->note[0])
    snprintf(row->note, sizeof row->note, "%.1f %% of the rated %.4g TOPS", 100 * tops / rated_tops, rated_tops);
}
