/* SPDX-License-Identifier: Apache-2.0
 *
 * What sets of CPUs do with the same work, and the clock each CPU really runs at. */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "ddr_options.h"
#include "ddr_team.h"
#include "ddr_work.h"
#include "output.h"

static const char METHOD[] =
    "Rate: int8 dot products out of the first-level cache, two operations per multiply-accumulate, code for the base "
    "instruction set; compare rows with each other, not with a rated figure. All threads start behind a barrier and the "
    "row ends with the slowest. Split even gives each CPU the same share, as a program does that divides its rows evenly; "
    "split shared lets a CPU that is free take the next unit. The sum of every unit is compared with the exact one. "
    "Clock: a chain of additions that wait for each other, one per cycle, timed on each CPU alone, result compared. "
    "Warm-up is dropped, so governors have ramped up. Other programs, idle governors and heat spoil it.";

enum { SAMPLES = 10, FEWEST_SAMPLES = 7, LARGEST_SHARE = 1 << 20 };

struct work {
  struct dot_data data;
  int64_t expected;
  bool shared;
  int threads;
  long units; /* in all */
  atomic_long taken;
  long done[MAX_CPUS_IN_SET], wrong[MAX_CPUS_IN_SET];
  uint64_t rounds, wrong_chains;
};

static void do_unit(struct work *work, int thread) {
  if (dot_unit(&work->data) != work->expected) work->wrong[thread]++;
  work->done[thread]++;
}

static void do_units(void *context, int thread) {
  struct work *work = context;
  const long share = work->units / work->threads + (thread < work->units % work->threads);
  work->done[thread] = 0;
  if (work->shared)
    while (atomic_fetch_add(&work->taken, 1) < work->units) do_unit(work, thread);
  else
    for (long i = 0; i < share; i++) do_unit(work, thread);
}

static void do_chain(void *context, int thread) {
  struct work *work = context;
  (void)thread;
  const uint64_t start = 7, step = 13, expected = start + step * ADDS_PER_ROUND * work->rounds;
  /* 32-bit Arm adds words */
  if ((uint32_t)add_chain(start, step, work->rounds) != (uint32_t)expected) work->wrong_chains++;
}

static double run_units(struct team *team, struct work *work) {
  atomic_store(&work->taken, 0);
  return team_run(team, do_units, work);
}

/* Grows the work until a run takes a tenth of the row's time; the runs before are the warm-up. */
static void calibrate(struct team *team, struct work *work, double seconds) {
  const double wanted_us = seconds * 1e6 / SAMPLES, warm_until_us = now_us() + seconds * 0.5e6;
  work->units = work->threads;
  for (;;) {
    const double us = run_units(team, work);
    const double factor = us > 0 ? wanted_us / us : 8;
    if (now_us() >= warm_until_us && factor < 2) return;
    if (factor >= 1.5 && work->units < LARGEST_SHARE)
      work->units = (long)((double)work->units * (factor < 8 ? factor : 8));
  }
}

static void measure_rate(struct team *team, struct work *work, double seconds, struct row *row) {
  double window_s[2], each[MAX_CPUS_IN_SET];
  long wrong = 0;
  calibrate(team, work, seconds);
  window_s[0] = now_us() * 1e-6;
  for (int i = 0; i < SAMPLES; i++) {
    row->timing.run_us[i] = run_units(team, work);
    row->rate[i] = 2 * dot_macs() * (double)work->units / row->timing.run_us[i] * 1e-3;
  }
  window_s[1] = now_us() * 1e-6;
  row->timing.count = row->rate_count = SAMPLES;
  row->timing.runs_per_sample = 1;
  for (int t = 0; t < team->threads; t++) {
    each[t] = (double)work->done[t] / (double)work->units;
    wrong += work->wrong[t];
  }
  json_put_numbers(&row->evidence, "timed_window_s", window_s, 2);
  json_put_numbers(&row->evidence, "thread_shares", each, (size_t)team->threads);
  json_put_integer(&row->evidence, "units", work->units);
  json_put_integer(&row->evidence, "wrong_units", wrong);
  row->exact = true;
  row->verdict = wrong ? "failed" : "passed";
  if (wrong)
    snprintf(row->reason, sizeof row->reason, "%ld units of work gave another sum than %lld", wrong,
             (long long)work->expected);
}

static void measure_clock(struct team *team, struct work *work, double seconds, struct row *row) {
  double window_s[2];
  work->rounds = 1;
  const double warm_until_us = now_us() + seconds * 0.5e6;
  for (double us = 0; us < seconds * 1e6 / SAMPLES || now_us() < warm_until_us;) {
    us = team_run(team, do_chain, work);
    if (us < seconds * 1e6 / SAMPLES) work->rounds *= 2;
  }
  window_s[0] = now_us() * 1e-6;
  for (int i = 0; i < SAMPLES; i++) {
    row->timing.run_us[i] = team_run(team, do_chain, work);
    row->rate[i] = (double)work->rounds * ADDS_PER_ROUND / row->timing.run_us[i];
  }
  window_s[1] = now_us() * 1e-6;
  row->timing.count = row->rate_count = SAMPLES;
  row->timing.runs_per_sample = 1;
  json_put_numbers(&row->evidence, "timed_window_s", window_s, 2);
  json_put_integer(&row->evidence, "additions", (int64_t)work->rounds * ADDS_PER_ROUND);
  row->exact = true;
  row->verdict = work->wrong_chains ? "failed" : "passed";
  if (work->wrong_chains) snprintf(row->reason, sizeof row->reason, "a chain of additions gave a wrong sum");
}

/* split NULL: the clock of the one CPU of the set. */
static int one_row(struct output *output, double seconds, const struct cpu_group *set, const char *split) {
  static struct row row;
  static struct work work;
  struct team team;
  char cpus[CPU_TEXT], step[CPU_TEXT + 64];
  memset(&work, 0, sizeof work);
  dot_fill(&work.data);
  work.expected = dot_expected(&work.data);
  work.threads = set->count;
  work.shared = split && strcmp(split, "shared") == 0;
  cpus_text(set, cpus);
  row_init(&row, split ? "cpu_rate" : "cpu_clock", split ? "gops" : "mhz");
  json_open(&row.parameters, '{');
  if (split) {
    json_put_string(&row.parameters, "cpus", cpus);
    json_put_integer(&row.parameters, "threads", set->count);
    json_put_string(&row.parameters, "split", split);
  } else {
    json_put_integer(&row.parameters, "cpu", set->cpu[0]);
  }
  json_close(&row.parameters, '}');
  json_open(&row.evidence, '{');
  snprintf(step, sizeof step, "%s on CPUs %s", split ? split : "clock", cpus);
  output_step(output, step);
  if (team_start(&team, set, set->count, row.reason, sizeof row.reason)) {
    split ? measure_rate(&team, &work, seconds, &row) : measure_clock(&team, &work, seconds, &row);
    team_stop(&team);
  }
  json_close(&row.evidence, '}');
  const bool passed = row_passed(&row);
  snprintf(row.cells[0], CELL_WIDTH, "%s", split ? "rate" : "clock");
  snprintf(row.cells[1], CELL_WIDTH, "%.*s", CELL_WIDTH - 1, cpus);
  snprintf(row.cells[2], CELL_WIDTH, "%s", split ? split : "");
  if (passed) {
    const double median = median_of(row.rate, (size_t)row.rate_count);
    snprintf(row.cells[3], CELL_WIDTH, split ? "%.2f" : "%.0f", median);
    snprintf(row.cells[4], CELL_WIDTH, "%s", split ? "GOPS" : "MHz");
    snprintf(row.cells[5], CELL_WIDTH, "%.1f", 100 * mad_of(row.rate, (size_t)row.rate_count) / median);
  }
  snprintf(row.cells[6], CELL_WIDTH, "%s", row.verdict);
  output_row(output, &row);
  const int code = passed ? EXIT_FINE : strcmp(row.verdict, "failed") == 0 ? EXIT_WRONG : EXIT_NOT_RUN;
  row_free(&row);
  return code;
}

/* Every CPU of any set, once. */
static int each_cpu(const struct cpu_groups *groups, int cpus[MAX_CPU]) {
  int count = 0;
  for (int cpu = 0; cpu < MAX_CPU; cpu++) {
    const struct cpu_group one = {.cpu = {cpu}, .count = 1};
    for (int g = 0; g < groups->count; g++)
      if (cpus_first_outside(&one, &groups->group[g]) < 0) {
        cpus[count++] = cpu;
        break;
      }
  }
  return count;
}

int main(int argc, char **argv) {
  static const struct cpu_program program = {
      "cpu_rate", FOR_RATE, "Measures what sets of CPUs do with the same work, and the clock of each CPU."};
  static const struct column columns[] = {{"what", -5}, {"cpus", -16}, {"split", -6},  {"value", 9},
                                          {"unit", -4}, {"MAD %", 6},  {"verdict", -8}};
  static struct cpu_options options;
  static int cpus[MAX_CPU];
  struct output output = {.out = stdout, .err = stderr, .program = program.name, .columns = columns,
                          .column_count = sizeof columns / sizeof columns[0]};
  const struct cpu_group allowed = cpus_allowed();
  int worst = EXIT_FINE;
  switch (cpu_options_parse(&options, &program, argc, argv)) {
    case CPU_OPTIONS_HELP: return EXIT_FINE;
    case CPU_OPTIONS_WRONG: return EXIT_USAGE;
    default: break;
  }
  if (!cpu_options_settle(&options, &program, &allowed, true)) return EXIT_USAGE;
  output.json = options.json;
  const int clocks = options.clock ? each_cpu(&options.groups, cpus) : 0;
  output_header(&output, NULL, NULL, 0, clocks + options.groups.count * (options.even + options.shared), METHOD);
  for (int i = 0; i < clocks; i++) {
    const struct cpu_group one = {.cpu = {cpus[i]}, .count = 1};
    const int code = one_row(&output, options.seconds, &one, NULL);
    if (code == EXIT_WRONG || worst == EXIT_FINE) worst = code;
  }
  for (int g = 0; g < options.groups.count; g++)
    for (int shared = 0; shared < 2; shared++) {
      if (!(shared ? options.shared : options.even)) continue;
      const int code = one_row(&output, options.seconds, &options.groups.group[g], shared ? "shared" : "even");
      if (code == EXIT_WRONG || worst == EXIT_FINE) worst = code;
    }
  output_end(&output, worst);
  return worst;
}
