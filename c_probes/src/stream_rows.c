/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "stream.h"

struct problem stream_problem(const struct session *session) {
  const struct options *o = session->options;
  const struct shape s = o->shape_count ? o->shapes[0] : (struct shape){1, 4096, 4096};
  struct problem problem = plain_problem(session, s.M, s.K, s.N);
  if (o->type_count) problem.type = o->types[0];
  return problem;
}

double matmul_bytes(const struct matmul *m) {
  return (double)m->io.attr.A.size + m->io.attr.B.size + m->io.attr.C.size;
}

/* Microseconds per run of `count` contexts together, by burst; 0 samples on failure, whose reason is in a worker.
 */
static void time_together(struct session *session, struct worker *workers, int count, double seconds,
                          struct together *found) {
  struct crew crew;
  found->samples = 0;
  if (!crew_start(&crew, workers, count)) {
    matmul_fail(&workers[0].m, "could-not-run", "pthread_create gives no %d threads; raise the limit on processes",
                count);
    return;
  }
  if (!together_measure(session, &crew, seconds, found)) found->samples = 0;
  crew_stop(&crew);
}

static double highest(const struct together *found) {
  double most = 0;
  for (int i = 0; i < found->samples; i++) most = fmax(most, found->runs_per_us[i]);
  return most;
}

/* Two sizes of B tell the bytes from the fixed cost of a run: the slope is the bandwidth, what is left at no bytes
 * the cost. */
static void put_slope(struct row *row, const struct together *large, const struct together *small,
                      double large_bytes, double small_bytes, int count) {
  const double t_large = count / median_of(large->runs_per_us, (size_t)large->samples);
  const double t_small = count / median_of(small->runs_per_us, (size_t)small->samples);
  const double slope = (large_bytes - small_bytes) / (t_large - t_small); /* bytes per us */
  json_put_number(&row->evidence, "net_gbps", slope > 0 ? count * slope * 1e-3 : NAN);
  json_put_number(&row->evidence, "fixed_us", slope > 0 ? t_large - large_bytes / slope : NAN);
  json_put_number(&row->evidence, "small_run_us", t_small);
  /* The same from the fastest burst of each: what other load takes only ever lowers a rate. */
  const double best_slope = (large_bytes - small_bytes) / (count / highest(large) - count / highest(small));
  json_put_number(&row->evidence, "net_best_gbps", best_slope > 0 ? count * best_slope * 1e-3 : NAN);
  json_put_number(&row->evidence, "small_bytes", small_bytes);
}

static void stream_row(struct session *session, struct worker *large, struct worker *small, const int *masks,
                       int count, struct tally *tally) {
  static struct together found, found_small;
  struct row row;
  char cores[CELL_WIDTH] = "";
  part_row_begin(&row, "npu_stream", "gbps");
  bool good = true;
  for (int i = 0; i < count; i++) good = good && !large[i].m.verdict && !small[i].m.verdict;
  if (good) {
    time_together(session, large, count, session->options->seconds, &found);
    time_together(session, small, count, session->options->seconds / 2, &found_small);
    const double bytes = matmul_bytes(&large[0].m);
    for (int i = 0; i < found.samples; i++) {
      row.rate[i] = found.runs_per_us[i] * bytes * 1e-3;
      row.timing.run_us[i] = found.run_us[i];
    }
    row.rate_count = row.timing.count = found.samples;
    row.timing.runs_per_sample = found.runs;
    json_put_number(&row.evidence, "bytes_per_run", bytes);
    if (found.samples && found_small.samples)
      put_slope(&row, &found, &found_small, bytes, matmul_bytes(&small[0].m), count);
  }
  matmul_put_parameters(&large[0].m, &row.parameters);
  json_put_integer(&row.parameters, "contexts", count);
  json_key(&row.parameters, "masks");
  json_open(&row.parameters, '[');
  for (int i = 0; i < count; i++) {
    const size_t at = strlen(cores);
    json_integer(&row.parameters, masks[i]);
    snprintf(cores + at, sizeof cores - at, "%s%d", i ? "," : "", masks[i]);
  }
  json_close(&row.parameters, ']');
  together_judge(&row, large, count);
  if (row_passed(&row)) together_judge(&row, small, count);
  snprintf(row.cells[0], CELL_WIDTH, "stream");
  snprintf(row.cells[1], CELL_WIDTH, "NPU cores %.20s", cores);
  snprintf(row.cells[2], CELL_WIDTH, row_passed(&row) ? "%.4g" : "-", median_of(row.rate, (size_t)row.rate_count));
  snprintf(row.cells[3], CELL_WIDTH, "GB/s");
  snprintf(row.cells[4], CELL_WIDTH, row_passed(&row) ? "%.1f%%" : "-",
           100 * mad_of(row.rate, (size_t)row.rate_count) / median_of(row.rate, (size_t)row.rate_count));
  snprintf(row.cells[5], CELL_WIDTH, "%s", row.verdict);
  part_row_end(session, &row, tally);
}

void stream_rows(struct session *session, const int *masks, int count, struct tally *tally) {
  static struct worker large[MAX_MASKS], small[MAX_MASKS];
  const struct problem problem = stream_problem(session);
  struct problem quarter = problem;
  quarter.shape.N = problem.shape.N >= 256 ? problem.shape.N / 4 : problem.shape.N;
  together_make(large, count, session, &problem, masks);
  together_make(small, count, session, &quarter, masks);
  for (int n = 1; n <= count; n++) stream_row(session, large, small, masks, n, tally);
  together_free(large, count);
  together_free(small, count);
}
