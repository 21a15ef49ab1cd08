/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "cost.h"
#include "measure_each.h"

static double clock_us(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

double thread_cpu_us(void) { return clock_us(CLOCK_THREAD_CPUTIME_ID); }

double process_cpu_us(void) { return clock_us(CLOCK_PROCESS_CPUTIME_ID); }

static void put_shape(struct row *row, const struct matmul *m) {
  matmul_put_parameters(m, &row->parameters);
  json_put_integer(&row->parameters, "core_mask", m->mask_in_force);
}

static void take_times(struct row *row, const struct matmul *m) {
  row->rate_count = row->timing.count;
  for (int i = 0; i < row->rate_count; i++) row->rate[i] = row->timing.run_us[i];
  row->timing.create_us = m->create_us;
  row->timing.bind_b_us = m->bind_b_us;
}

/* Time in which this thread wanted a CPU and others had it (second field of schedstat, in ns); 0 where the kernel was
 * built without it. */
static double thread_wait_us(void) {
  unsigned long long on_cpu = 0, waited = 0;
  FILE *file = fopen("/proc/thread-self/schedstat", "re");
  if (!file) return 0;
  const int found = fscanf(file, "%llu %llu", &on_cpu, &waited);
  fclose(file);
  return found == 2 ? (double)waited * 1e-3 : 0;
}

struct cpu_clocks {
  double wall, process, thread, waited; /* us */
};

/* All four at one moment: read again where the scheduler came in between, which would count a wait to the wrong side. */
static struct cpu_clocks cpu_clocks_now(void) {
  struct cpu_clocks now;
  double begin;
  int tries = 0;
  do {
    begin = now_us();
    now.waited = thread_wait_us();
    now.process = process_cpu_us();
    now.thread = thread_cpu_us();
    now.wall = now_us();
  } while (now.wall - begin > 300 && ++tries < 50);
  return now;
}

/* Share of a loop's wall time that is spent inside rknn_matmul_run, for the longest of several loops that nobody
 * else interrupted: the same loop as the timed one, with the clock read around each call. */
static double library_share(struct matmul *m, double run_us) {
  const int runs = run_us > 0 && run_us < 1e4 ? (int)(2e4 / run_us) + 1 : 3;
  double best = 0;
  for (int loop = 0; loop < 5; loop++) {
    double inside = 0;
    const double start = now_us();
    double before = start;
    for (int i = 0; i < runs; i++) {
      before = now_us();
      if (matmul_run(m) != 0) return NAN;
      inside += now_us() - before;
    }
    const double share = inside / (now_us() - start);
    best = share > best ? share : best;
  }
  return best;
}

void cost_fixed(struct session *session, struct tally *tally) {
  static struct matmul m;
  struct row row;
  const struct problem problem = plain_problem(session, 1, 32, 32);
  part_row_begin(&row, "run_cost", "us");
  json_put_string(&row.parameters, "part", "fixed");
  if (matmul_create(&m, session, &problem) && matmul_prepare(&m) &&
      measure_each(&m, session->options->seconds, &row.timing))
    json_put_number(&row.evidence, "library_share",
                    library_share(&m, median_of(row.timing.run_us, (size_t)row.timing.count)));
  put_shape(&row, &m);
  take_times(&row, &m);
  matmul_close(&m);
  part_row_judge(&row, &m);
  cost_cells(&row, "fixed", "run of 1x32x32");
  part_row_end(session, &row, tally);
}

void cost_cpu_use(struct session *session, struct tally *tally) {
  static struct matmul m;
  struct row row;
  double thread_share[MAX_SAMPLES], wait_share[MAX_SAMPLES];
  const struct problem problem = plain_problem(session, 256, 2048, 2048);
  part_row_begin(&row, "run_cost", "share");
  json_put_string(&row.parameters, "part", "cpu_use");
  if (matmul_ready(&m, session, &problem)) {
    session_step(session, "CPU time of runs");
    int code = 0;
    double busy = 0, idle_or_busy = 0;
    for (int i = 0; i < 8 && code == 0; i++) {
      const struct cpu_clocks start = cpu_clocks_now();
      while (code == 0 && now_us() - start.wall < session->options->seconds * 1e6 / 8) code = matmul_run(&m);
      const struct cpu_clocks end = cpu_clocks_now();
      const double took = end.wall - start.wall, waited = end.waited - start.waited;
      row.rate[row.rate_count] = (end.process - start.process) / took;
      thread_share[row.rate_count] = (end.thread - start.thread) / took;
      wait_share[row.rate_count++] = waited / took;
      busy += end.process - start.process;
      idle_or_busy += took - waited;
    }
    if (code != 0)
      matmul_run_failed(&m, code, "timed runs");
    else
      matmul_prove(&m, "last run");
    json_put_numbers(&row.evidence, "calling_thread", thread_share, (size_t)row.rate_count);
    json_put_numbers(&row.evidence, "waited_for_cpu", wait_share, (size_t)row.rate_count);
    /* Out of the time in which the thread had a CPU or slept: who polls runs all of it, however little of the wall time
     * others leave. */
    json_put_string(&row.evidence, "waits_by", busy > 0.5 * fmax(idle_or_busy, 1) ? "polling" : "sleeping");
  }
  put_shape(&row, &m);
  matmul_close(&m);
  part_row_judge(&row, &m);
  cost_cells(&row, "cpu_use", "runs of 256x2048x2048");
  part_row_end(session, &row, tally);
}

void cost_by_M(struct session *session, struct tally *tally) {
  static struct matmul m;
  static const int all[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  12, 15,  16,  17,  20,  24,  31,
                            32, 33, 40, 48, 49, 63, 64, 65, 96, 97, 127, 128, 129, 192, 255, 256};
  static const int few[] = {1, 2, 4, 5, 8, 9, 16, 17, 32, 33, 64, 65, 128};
  const bool quick = session->options->quick;
  const size_t count = quick ? sizeof few / sizeof few[0] : sizeof all / sizeof all[0];
  for (size_t i = 0; i < count; i++) {
    struct row row;
    char of[CELL_WIDTH];
    const int M = quick ? few[i] : all[i];
    const struct problem problem = plain_problem(session, M, 1024, 1024);
    part_row_begin(&row, "run_time", "us");
    if (matmul_create(&m, session, &problem) && matmul_prepare(&m))
      measure_each(&m, session->options->seconds / 4, &row.timing);
    put_shape(&row, &m);
    take_times(&row, &m);
    matmul_close(&m);
    part_row_judge(&row, &m);
    snprintf(of, sizeof of, "M=%d, K=N=1024", M);
    cost_cells(&row, "by_M", of);
    part_row_end(session, &row, tally);
  }
}

void cost_wake(struct session *session, struct tally *tally) {
  static const int pauses_ms[] = {1, 10, 100};
  static struct matmul m;
  const struct problem problem = plain_problem(session, 1, 32, 32);
  for (size_t p = 0; p < sizeof pauses_ms / sizeof pauses_ms[0]; p++) {
    struct row row;
    char of[CELL_WIDTH];
    const struct timespec pause = {0, pauses_ms[p] * 1000000L};
    double at_once[MAX_SAMPLES];
    part_row_begin(&row, "run_cost", "us");
    json_put_string(&row.parameters, "part", "wake");
    json_put_integer(&row.parameters, "idle_ms", pauses_ms[p]);
    if (matmul_ready(&m, session, &problem)) {
      session_step(session, "runs after %d ms of pause", pauses_ms[p]);
      int code = 0;
      for (int i = 0; i < 7 && code == 0; i++) {
        nanosleep(&pause, NULL);
        const double start = now_us();
        code = matmul_run(&m);
        const double first = now_us() - start;
        for (int again = 0; again < 3 && code == 0; again++) code = matmul_run(&m);
        const double next = now_us();
        if (code == 0) code = matmul_run(&m);
        at_once[i] = now_us() - next;
        row.rate[row.rate_count++] = first;
      }
      const double usual = median_of(at_once, (size_t)row.rate_count);
      json_put_numbers(&row.evidence, "first_run_us", row.rate, (size_t)row.rate_count);
      json_put_number(&row.evidence, "run_without_pause_us", usual);
      for (int i = 0; i < row.rate_count; i++) row.rate[i] -= usual;
      if (code != 0)
        matmul_run_failed(&m, code, "run after a pause");
      else
        matmul_prove(&m, "last run");
    }
    matmul_close(&m);
    part_row_judge(&row, &m);
    snprintf(of, sizeof of, "first run after %d ms", pauses_ms[p]);
    cost_cells(&row, "wake", of);
    part_row_end(session, &row, tally);
  }
}
