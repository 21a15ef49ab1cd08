/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory bandwidth of the CPUs: read, write, copy and triad on pinned threads, every element checked. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ddr_options.h"
#include "ddr_team.h"
#include "output.h"

static const char METHOD[] =
    "Bandwidth between CPU and memory. Each thread is pinned to one CPU and has arrays of its own, each four times the "
    "last-level cache and at least 32 MiB. All threads start behind a barrier; a sample is the bytes of all of them over "
    "the time from the first start to the last end, so the slowest CPU of a mixed set decides. Bytes are counted as "
    "STREAM counts them: 8 per element that the pass reads or writes; lines that a store fetches first are not counted. "
    "Stores are plain, as in programs and in STREAM as compilers build it. A first pass is dropped, passes per sample are "
    "calibrated, outputs are overwritten before the last sample and every element is compared afterwards. Other programs, "
    "a low clock of memory or CPU and heat spoil it.";

enum { FEWEST_SAMPLES = 7, SMALLEST_ARRAY = 32 << 20, CACHES = 4 };

struct job {
  enum memory_op op;
  int passes;
  struct arrays arrays[MAX_CPUS_IN_SET];
  uint64_t expected_sum;
  size_t wrong_sums[MAX_CPUS_IN_SET], wrong[MAX_CPUS_IN_SET];
  struct wrong_element first[MAX_CPUS_IN_SET];
  bool no_memory[MAX_CPUS_IN_SET];
};

static uint64_t *new_array(size_t bytes) {
  void *memory = NULL;
  return posix_memalign(&memory, 4096, bytes) == 0 ? memory : NULL;
}

/* Memory is allocated and first touched by the thread that uses it. */
static void allocate(void *context, int thread) {
  struct job *job = context;
  struct arrays *arrays = &job->arrays[thread];
  const size_t bytes = arrays->count * sizeof(uint64_t);
  arrays->a = new_array(bytes);
  if (job->op == OP_TRIAD) arrays->b = new_array(bytes);
  if (job->op >= OP_COPY) arrays->c = new_array(bytes);
  job->no_memory[thread] = !arrays->a || (job->op == OP_TRIAD && !arrays->b) || (job->op >= OP_COPY && !arrays->c);
  if (!job->no_memory[thread]) memory_prepare(job->op, arrays);
}

static void release(void *context, int thread) {
  struct arrays *arrays = &((struct job *)context)->arrays[thread];
  free(arrays->a);
  free(arrays->b);
  free(arrays->c);
}

static void pass(void *context, int thread) {
  struct job *job = context;
  for (int i = 0; i < job->passes; i++) {
    const uint64_t sum = memory_pass(job->op, &job->arrays[thread]);
    if (job->op == OP_READ && sum != job->expected_sum) job->wrong_sums[thread]++;
  }
}

static void spoil(void *context, int thread) {
  struct job *job = context;
  memory_spoil_output(job->op, &job->arrays[thread]);
}

static void check(void *context, int thread) {
  struct job *job = context;
  job->wrong[thread] = memory_check(job->op, &job->arrays[thread], &job->first[thread]);
}

static void say_wrong(struct row *row, const struct job *job, int threads) {
  size_t wrong = 0, sums = 0;
  for (int t = threads - 1; t >= 0; t--) {
    wrong += job->wrong[t];
    sums += job->wrong_sums[t];
    const struct wrong_element *first = &job->first[t];
    if (job->wrong[t])
      snprintf(row->reason, sizeof row->reason, "element %zu of array %c of thread %d is %.17g and must be %.17g",
               first->index, first->array, t, first->got, first->expected);
  }
  if (wrong == 0 && sums)
    snprintf(row->reason, sizeof row->reason, "%zu passes of reading gave a wrong sum over right elements", sums);
  row->verdict = wrong || sums ? "failed" : "passed";
  json_put_integer(&row->evidence, "wrong_elements", (int64_t)wrong);
}

static void measure(struct team *team, struct job *job, double seconds, struct row *row) {
  const double bytes = (double)team->threads * memory_op_arrays(job->op) * (double)job->arrays[0].count * 8;
  struct timing *timing = &row->timing;
  double window_s[2], each[MAX_CPUS_IN_SET];
  job->passes = 1;
  timing->cold_us = team_run(team, pass, job);
  double run_us = team_run(team, pass, job);
  const struct sample_plan plan = plan_samples(run_us, seconds);
  timing->count = plan.samples < FEWEST_SAMPLES ? FEWEST_SAMPLES : plan.samples;
  job->passes = timing->runs_per_sample = plan.runs_per_sample;
  window_s[0] = now_us() * 1e-6;
  for (int i = 0; i < timing->count; i++) {
    if (i + 1 == timing->count) team_run(team, spoil, job);
    timing->run_us[i] = team_run(team, pass, job) / job->passes;
    row->rate[i] = bytes / timing->run_us[i] * 1e-3;
  }
  window_s[1] = now_us() * 1e-6;
  row->rate_count = timing->count;
  for (int t = 0; t < team->threads; t++)
    each[t] = bytes / team->threads * job->passes / (team->member[t].end_us - team->member[t].start_us) * 1e-3;
  team_run(team, check, job);
  row->exact = true;
  json_put_integer(&row->evidence, "bytes_per_pass", (int64_t)bytes);
  json_put_numbers(&row->evidence, "timed_window_s", window_s, 2);
  json_put_numbers(&row->evidence, "thread_gbps", each, (size_t)team->threads);
  say_wrong(row, job, team->threads);
}

static void run_on(const struct cpu_group *group, int threads, struct job *job, double seconds, struct row *row) {
  struct team team;
  const size_t wanted = (size_t)memory_op_arrays(job->op) * (size_t)threads * (job->arrays[0].count * 8 / 1024);
  const size_t available = memory_available("") / 1024;
  if (available && wanted > available / 2) {
    snprintf(row->reason, sizeof row->reason,
             "the arrays need %zu MiB and half of the available memory is %zu MiB; choose fewer threads or --array-kib",
             wanted / 1024, available / 2048);
    return;
  }
  if (!team_start(&team, group, threads, row->reason, sizeof row->reason)) return;
  team_run(&team, allocate, job);
  bool allocated = true;
  for (int t = 0; t < threads; t++) allocated = allocated && !job->no_memory[t];
  if (allocated)
    measure(&team, job, seconds, row);
  else
    snprintf(row->reason, sizeof row->reason, "no memory for arrays of %zu MiB in all", wanted / 1024);
  team_run(&team, release, job);
  team_stop(&team);
}

static int one_row(struct output *output, const struct cpu_options *options, const struct cpu_group *set, int threads,
                   enum memory_op op) {
  static struct row row;
  static struct job job;
  struct cpu_group used = *set;
  char cpus[CPU_TEXT], step[CPU_TEXT + 64];
  const size_t cache = cpus_last_level_cache("", set);
  size_t bytes = options->array_bytes;
  used.count = threads;
  cpus_text(&used, cpus);
  if (!bytes) bytes = cache * CACHES > SMALLEST_ARRAY ? cache * CACHES : SMALLEST_ARRAY;
  memset(&job, 0, sizeof job);
  job.op = op;
  for (int t = 0; t < threads; t++) job.arrays[t].count = (bytes / sizeof(uint64_t) + BLOCK - 1) / BLOCK * BLOCK;
  job.expected_sum = memory_expected_sum(job.arrays[0].count);
  row_init(&row, "cpu_bandwidth", "gbps");
  json_open(&row.parameters, '{');
  json_put_string(&row.parameters, "op", memory_op_name(op));
  json_put_integer(&row.parameters, "threads", threads);
  json_put_string(&row.parameters, "cpus", cpus);
  json_close(&row.parameters, '}');
  json_open(&row.evidence, '{');
  json_put_string(&row.evidence, "formula", memory_op_formula(op));
  json_put_string(&row.evidence, "stores", "plain");
  json_put_integer(&row.evidence, "array_bytes", (int64_t)job.arrays[0].count * 8);
  json_put_integer(&row.evidence, "last_level_cache_bytes", (int64_t)cache);
  snprintf(step, sizeof step, "%s with %d threads on CPUs %s", memory_op_name(op), threads, cpus);
  output_step(output, step);
  run_on(&used, threads, &job, options->seconds, &row);
  json_close(&row.evidence, '}');
  const bool passed = row_passed(&row);
  snprintf(row.cells[0], CELL_WIDTH, "%s", memory_op_name(op));
  snprintf(row.cells[1], CELL_WIDTH, "%d", threads);
  snprintf(row.cells[2], CELL_WIDTH, "%.*s", CELL_WIDTH - 1, cpus);
  if (passed) {
    const double median = median_of(row.rate, (size_t)row.rate_count);
    snprintf(row.cells[3], CELL_WIDTH, "%.2f", median);
    snprintf(row.cells[4], CELL_WIDTH, "%.1f", 100 * mad_of(row.rate, (size_t)row.rate_count) / median);
  }
  snprintf(row.cells[5], CELL_WIDTH, "%s", row.verdict);
  output_row(output, &row);
  const int code = passed ? EXIT_FINE : strcmp(row.verdict, "failed") == 0 ? EXIT_WRONG : EXIT_NOT_RUN;
  row_free(&row);
  return code;
}

/* How many threads to use on a set, in *counts; without --threads one, and one per CPU. */
static int thread_counts(const struct cpu_options *options, const struct cpu_group *set,
                         int counts[MAX_THREAD_COUNTS]) {
  int count = 0;
  for (int i = 0; i < options->thread_count; i++)
    if (options->threads[i] <= set->count) counts[count++] = options->threads[i];
  if (options->thread_count) return count;
  counts[count++] = 1;
  if (set->count > 1) counts[count++] = set->count;
  return count;
}

int main(int argc, char **argv) {
  static const struct cpu_program program = {
      "ddr_stream", FOR_BANDWIDTH, "Measures the memory bandwidth of the CPUs and checks every element moved."};
  static const struct column columns[] = {{"op", -5},   {"threads", 7}, {"cpus", -16},
                                          {"GB/s", 8}, {"MAD %", 6},   {"verdict", -8}};
  static struct cpu_options options;
  struct output output = {.out = stdout, .err = stderr, .program = program.name, .columns = columns,
                          .column_count = sizeof columns / sizeof columns[0]};
  const struct cpu_group allowed = cpus_allowed();
  int counts[MAX_THREAD_COUNTS], rows = 0, worst = EXIT_FINE;
  switch (cpu_options_parse(&options, &program, argc, argv)) {
    case CPU_OPTIONS_HELP: return EXIT_FINE;
    case CPU_OPTIONS_WRONG: return EXIT_USAGE;
    default: break;
  }
  if (!cpu_options_settle(&options, &program, &allowed, false)) return EXIT_USAGE;
  output.json = options.json;
  for (int g = 0; g < options.groups.count; g++)
    rows += thread_counts(&options, &options.groups.group[g], counts) * options.op_count;
  if (rows == 0) {
    fprintf(stderr, "ddr_stream: error: --threads asks for more threads than any set of CPUs has CPUs (see --help)\n");
    return EXIT_USAGE;
  }
  output_header(&output, NULL, NULL, 0, rows, METHOD);
  for (int g = 0; g < options.groups.count; g++) {
    const int many = thread_counts(&options, &options.groups.group[g], counts);
    for (int n = 0; n < many; n++)
      for (int o = 0; o < options.op_count; o++) {
        const int code = one_row(&output, &options, &options.groups.group[g], counts[n], options.ops[o]);
        if (code == EXIT_WRONG || worst == EXIT_FINE) worst = code;
      }
  }
  output_end(&output, worst);
  return worst;
}
