/* SPDX-License-Identifier: Apache-2.0
 *
 * mm_soak: all cores busy for minutes, with a heartbeat and results compared throughout. */
#include <math.h>
#include <string.h>

#include "guard.h"
#include "parts.h"
#include "together.h"

static const char method[] =
    "One context per core, all running for the whole time. A sample is the rate of a sixtieth of it. Every few "
    "seconds a "
    "heartbeat step is written, so that a board that hangs or restarts leaves behind how far it came, and all of "
    "every C is "
    "compared with the exact product. drift compares the last quarter of the samples with the first. Spoiled by "
    "other users of "
    "the NPU; heat is what it looks for.";

static const struct program program = {
    .name = "mm_soak",
    .bit = FOR_SOAK,
    .purpose =
        "Keeps one context per core running for --seconds, compares results throughout, and tells how the rate "
        "holds.",
    .deadline = 0,
    .seconds = 300,
};

static const struct column columns[] = {{"contexts", 8}, {"minutes", 7}, {"TOPS", 8},
                                        {"drift", 7},    {"checks", 7},  {"verdict", -13}};

enum { SLICES = 60, HEARTBEAT_US = 5000000 };

struct soak {
  double rate[SLICES], run_us[SLICES];
  int slices, checks;
};

static bool soak_slice(struct session *session, struct crew *crew, double begin_us, double *beat_us,
                       struct soak *soak) {
  const struct shape s = crew->workers[0].m.problem.shape;
  const double slice_us = session->options->seconds * 1e6 / SLICES, start = now_us();
  const struct oracle *oracles[MAX_MASKS];
  double runs = 0, windows = 0, each = 0;
  int bursts = 0;
  for (int i = 0; i < crew->count; i++) oracles[i] = &crew->workers[i].m.oracle;
  do {
    struct burst part[MAX_MASKS];
    double window = 0, inside = 0;
    if (now_us() - *beat_us > HEARTBEAT_US || *beat_us == begin_us) {
      *beat_us = now_us();
      session_step(session, "heartbeat: %.0f of %.0f s, %d contexts", (*beat_us - begin_us) * 1e-6,
                   session->options->seconds, crew->count);
      for (int i = 0; i < crew->count; i++)
        if (!matmul_reset_C(&crew->workers[i].m)) return false;
    }
    if (!crew_burst(crew, crew->runs)) return false;
    for (int i = 0; i < crew->count; i++) {
      const struct worker *w = &crew->workers[i];
      part[i] = (struct burst){w->start_us, w->ends_us, w->runs_done};
      each += (w->ends_us[w->runs_done - 1] - w->start_us) / w->runs_done / crew->count;
    }
    bursts++;
    if (common_window(part, crew->count, &window, &inside)) {
      runs += inside;
      windows += window;
    }
  } while (now_us() - start < slice_us);
  for (int i = 0; i < crew->count; i++)
    if (!matmul_check(&crew->workers[i].m, "soak", oracles, crew->count)) return false;
  soak->checks += crew->count;
  if (windows > 0) {
    soak->rate[soak->slices] = 2e-6 * s.M * s.K * s.N * runs / windows;
    soak->run_us[soak->slices++] = each / bursts;
  }
  return true;
}

static void measure(struct session *session, struct worker *workers, int count, struct soak *soak) {
  struct crew crew;
  if (!crew_start(&crew, workers, count)) {
    matmul_fail(&workers[0].m, "could-not-run", "pthread_create gives no %d threads; raise the limit on processes",
                count);
    return;
  }
  const double begin = now_us();
  double beat = begin;
  if (crew_burst(&crew, 2)) {
    const double run_us = fmax(1, (workers[0].ends_us[1] - workers[0].start_us) / 2);
    crew.runs = (int)fmax(2, fmin(MAX_BURST_RUNS, fmin(1e6, session->options->seconds * 1e6 / SLICES) / run_us));
    for (int i = 0; i < SLICES && soak_slice(session, &crew, begin, &beat, soak); i++) continue;
  }
  crew_stop(&crew);
}

int main(int argc, char **argv) {
  static struct session session;
  static struct options options;
  static struct worker workers[MAX_MASKS];
  static struct soak soak;
  struct tally tally = {0};
  struct row row;
  int masks[MAX_MASKS] = {0};
  int code = 0;
  if (!session_begin(&session, &options, &program, columns, sizeof columns / sizeof columns[0], argc, argv, &code))
    return code;
  const int count = cores_find(&session, masks);
  const struct shape s = options.shape_count ? options.shapes[0] : (struct shape){512, 2048, 2048};
  struct problem problem = plain_problem(&session, s.M, s.K, s.N);
  if (options.type_count) problem.type = options.types[0];
  output_header(&session.output, session.runtime.path, session.runtime.version, options.seed, 1, method);
  part_row_begin(&row, "soak", "tops");
  if (together_make(workers, count, &session, &problem, masks)) measure(&session, workers, count, &soak);
  memcpy(row.rate, soak.rate, sizeof soak.rate);
  memcpy(row.timing.run_us, soak.run_us, sizeof soak.run_us);
  row.rate_count = row.timing.count = soak.slices;
  json_put_integer(&row.parameters, "contexts", count);
  json_put_number(&row.parameters, "seconds", options.seconds);
  matmul_put_parameters(&workers[0].m, &row.parameters);
  const int quarter = soak.slices / 4;
  const double drift = quarter ? median_of(soak.rate + soak.slices - quarter, (size_t)quarter) /
                                     median_of(soak.rate, (size_t)quarter)
                               : NAN;
  json_put_number(&row.evidence, "drift", drift);
  json_put_integer(&row.evidence, "results_compared", soak.checks);
  together_judge(&row, workers, count);
  snprintf(row.cells[0], CELL_WIDTH, "%d", count);
  snprintf(row.cells[1], CELL_WIDTH, "%.1f", options.seconds / 60);
  snprintf(row.cells[2], CELL_WIDTH, row_passed(&row) ? "%.4g" : "-", median_of(row.rate, (size_t)row.rate_count));
  snprintf(row.cells[3], CELL_WIDTH, "%.3f", drift);
  snprintf(row.cells[4], CELL_WIDTH, "%d", soak.checks);
  snprintf(row.cells[5], CELL_WIDTH, "%s", row.verdict);
  part_row_end(&session, &row, &tally);
  together_free(workers, count);
  return session_end(&session, tally_exit(&tally));
}
