/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "host_team.h"
#include "stream.h"

enum { ROUNDS = 7, MOST_ROUNDS = 28, SHORTEST_PHASE_US = 60000 };

/* Pieces of CPU work per us in a window, over all threads. */
static double host_rate(const struct host_team *team, double from, double to) {
  double pieces = 0;
  for (int i = 0; i < team->count; i++) {
    const struct host_worker *w = &team->worker[i];
    const struct burst burst = {w->start_us, w->ends_us, w->pieces};
    pieces += runs_between(&burst, from, to);
  }
  return pieces / (to - from);
}

static double npu_rate(const struct crew *crew, double from, double to) {
  double runs = 0;
  for (int i = 0; i < crew->count; i++) {
    const struct worker *w = &crew->workers[i];
    const struct burst burst = {w->start_us, w->ends_us, w->runs_done};
    runs += runs_between(&burst, from, to);
  }
  return runs / (to - from);
}

/* From the latest start to the earliest end of everything that worked. */
static void common(const struct crew *crew, const struct host_team *team, double *from, double *to) {
  *from = 0;
  *to = INFINITY;
  for (int i = 0; crew && i < crew->count; i++) {
    *from = fmax(*from, crew->workers[i].start_us);
    *to = fmin(*to, crew->workers[i].ends_us[crew->workers[i].runs_done - 1]);
  }
  for (int i = 0; team && i < team->count; i++) {
    *from = fmax(*from, team->worker[i].start_us);
    if (team->worker[i].pieces) *to = fmin(*to, team->worker[i].ends_us[team->worker[i].pieces - 1]);
  }
}

struct round {
  double host_alone, host_beside, npu_alone, npu_beside;
};

/* Each alone, then both: close in time, so that a clock that drifts meets all of them. */
static bool one_round(struct crew *crew, struct host_team *team, int runs, double phase_us, struct round *round) {
  const struct timespec phase = {(time_t)(phase_us * 1e-6), (long)(fmod(phase_us, 1e6) * 1e3)};
  double from, to;
  if (!host_team_start(team)) return false;
  nanosleep(&phase, NULL);
  host_team_stop(team);
  common(NULL, team, &from, &to);
  round->host_alone = host_rate(team, from, to);
  if (!crew_burst(crew, runs)) return false;
  common(crew, NULL, &from, &to);
  round->npu_alone = npu_rate(crew, from, to);
  if (!host_team_start(team)) return false;
  const bool good = crew_burst(crew, runs);
  host_team_stop(team);
  common(crew, team, &from, &to);
  if (!good || !(to > from)) return false; /* on a busy machine the two may miss each other: made again */
  round->host_beside = host_rate(team, from, to);
  round->npu_beside = npu_rate(crew, from, to);
  return true;
}

static void write_row(struct session *session, const struct worker *workers, int count,
                      const struct host_team *team, const struct round *rounds, int done, bool npu,
                      struct tally *tally) {
  struct row row;
  const char *kind = host_kind_name(team->kind);
  part_row_begin(&row, "contention", "share");
  json_put_string(&row.parameters, "of", npu ? "npu_stream" : team->kind == HOST_READ ? "cpu_read" : "cpu_dot");
  json_put_string(&row.parameters, "beside", npu ? team->kind == HOST_READ ? "cpu_read" : "cpu_dot" : "npu_stream");
  json_put_integer(&row.parameters, "contexts", count);
  json_put_integer(&row.parameters, "cpu_threads", team->count);
  matmul_put_parameters(&workers[0].m, &row.parameters);
  const double unit = npu                       ? matmul_bytes(&workers[0].m)
                      : team->kind == HOST_READ ? (double)team->worker[0].arrays.count * 8
                                                : 2 * dot_macs();
  double alone[ROUNDS], beside[ROUNDS];
  for (int i = 0; i < done; i++) {
    alone[i] = (npu ? rounds[i].npu_alone : rounds[i].host_alone) * unit * 1e-3;
    beside[i] = (npu ? rounds[i].npu_beside : rounds[i].host_beside) * unit * 1e-3;
    row.rate[row.rate_count++] = beside[i] / alone[i];
  }
  json_put_string(&row.evidence, "rate_unit", npu || team->kind == HOST_READ ? "gbps" : "gops");
  json_put_numbers(&row.evidence, "alone", alone, (size_t)done);
  json_put_numbers(&row.evidence, "beside", beside, (size_t)done);
  together_judge(&row, workers, count);
  if (row_passed(&row) && host_team_wrong(team)) {
    row.verdict = "failed";
    snprintf(row.reason, sizeof row.reason, "%d pieces of CPU work gave a wrong result", host_team_wrong(team));
  } else if (row_passed(&row) && done < ROUNDS) {
    row.verdict = "could-not-run";
    snprintf(row.reason, sizeof row.reason, "CPU threads and NPU contexts did not get to work at the same time");
  }
  snprintf(row.cells[0], CELL_WIDTH, "%s", npu ? "NPU" : "CPU");
  snprintf(row.cells[1], CELL_WIDTH, npu ? "beside CPU %s x%d" : "CPU %s x%d beside the NPU", kind, team->count);
  snprintf(row.cells[2], CELL_WIDTH, row_passed(&row) ? "%.3f" : "-", median_of(row.rate, (size_t)row.rate_count));
  snprintf(row.cells[3], CELL_WIDTH, "share");
  snprintf(row.cells[4], CELL_WIDTH, row_passed(&row) ? "%.1f%%" : "-",
           100 * mad_of(row.rate, (size_t)row.rate_count) / median_of(row.rate, (size_t)row.rate_count));
  snprintf(row.cells[5], CELL_WIDTH, "%s", row.verdict);
  part_row_end(session, &row, tally);
}

static void measure_kind(struct session *session, struct worker *workers, int count, enum host_kind kind,
                         int threads, struct tally *tally) {
  static struct host_team team;
  struct round rounds[ROUNDS];
  struct crew crew;
  int done = 0;
  const double phase_us = fmax(SHORTEST_PHASE_US, session->options->seconds * 1e6 / 4);
  const bool memory = host_team_make(&team, kind, threads);
  if (!memory) matmul_fail(&workers[0].m, "could-not-run", "no memory for the arrays of %d CPU threads", threads);
  bool good = memory;
  for (int i = 0; i < count; i++) good = good && !workers[i].m.verdict;
  if (good && crew_start(&crew, workers, count)) {
    session_step(session, "CPU %s beside %d NPU contexts", host_kind_name(kind), count);
    if (crew_burst(&crew, 2)) {
      const double run_us = fmax(1, (workers[0].ends_us[1] - workers[0].start_us) / 2);
      const int runs = (int)fmax(4, fmin(MAX_BURST_RUNS, phase_us / run_us));
      for (int i = 0; i < count; i++) matmul_reset_C(&workers[i].m);
      for (int i = 0; i < MOST_ROUNDS && done < ROUNDS && !workers[0].m.verdict; i++)
        done += one_round(&crew, &team, runs, phase_us, &rounds[done]);
      for (int i = 0; i < count; i++) matmul_check(&workers[i].m, "last run beside the CPU", NULL, 0);
    }
    crew_stop(&crew);
  }
  write_row(session, workers, count, &team, rounds, done, false, tally);
  write_row(session, workers, count, &team, rounds, done, true, tally);
  host_team_free(&team);
}

void contention_rows(struct session *session, const int *masks, int count, struct tally *tally) {
  static struct worker workers[MAX_MASKS];
  const struct problem problem = stream_problem(session);
  const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  const int threads = session->options->cpu_threads ? session->options->cpu_threads : cpus > 2 ? (int)cpus - 1 : 1;
  together_make(workers, count, session, &problem, masks);
  for (int kind = 0; kind < HOST_KINDS; kind++)
    measure_kind(session, workers, count, (enum host_kind)kind, threads, tally);
  together_free(workers, count);
}
