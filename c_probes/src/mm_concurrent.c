/* SPDX-License-Identifier: Apache-2.0
 *
 * mm_concurrent: what one context per core reach together. */
#include <math.h>
#include <string.h>

#include "guard.h"
#include "scaling_row.h"

static const char method[] =
    "For n = 1 to the number of cores: n contexts, each with a core mask of one bit and its own data, created, "
    "bound, warmed and checked beforehand; n threads start together behind a barrier and each makes the same "
    "number of runs. Aggregate rate = work done while all n contexts were running / length of that common window "
    "(latest end of a first run to earliest end; a run across its edge counts by the share of its time inside). "
    "After the "
    "last burst every element of every C is compared with an exact oracle. One failed worker voids the row. "
    "Scaling is against n = 1 of the same run. Spoiled by low clocks, heat, fewer free CPU cores than contexts, "
    "and any other user of the NPU or the memory.";

static const struct program program = {
    .name = "mm_concurrent",
    .bit = FOR_CONCURRENT,
    .purpose =
        "Measures what one single-core rknn_matmul context per NPU core reach together, and checks every element\n"
        "of what each returns. Default: int8, 4096x4096x4096, B native, A and C norm.",
    .deadline = 900,
};

static const struct column columns[] = {{"contexts", 8},      {"core masks", -10}, {"ms/run", 9},
                                        {"TOPS", 7},          {"MAD", 5},          {"of n=1", 6},
                                        {"per context", -23}, {"verdict", -13}};

/* Masks to use: those asked for; else one bit each, as many as --cores says; else those of 1, 2, 4 that a small
 * context accepts. A runtime without masks, or that takes none, has one context without a mask. */
static int find_masks(struct session *session, const struct problem *problem, int *masks) {
  const struct options *o = session->options;
  static struct matmul m;
  int count = 0;
  if (o->mask_count) {
    memcpy(masks, o->masks, sizeof o->masks);
    return o->cores && o->cores < o->mask_count ? o->cores : o->mask_count;
  }
  for (int i = 0; i < (o->cores ? o->cores : 3); i++) masks[i] = 1 << i;
  if (o->cores > 1) return o->cores;
  struct problem small = *problem;
  small.shape = (struct shape){4, 64, 64};
  if (matmul_create(&m, session, &small) && session->runtime.matmul_set_core_mask) {
    session_step(session, "try core masks 1, 2 and 4");
    while (count < 3 && session->runtime.matmul_set_core_mask(m.ctx, (rknn_core_mask)(1 << count)) == 0) count++;
  } else if (m.verdict) {
    count = 1; /* the first row will say what is wrong */
  }
  matmul_close(&m);
  if (count == 0) masks[0] = 0;
  return count == 0 || o->cores == 1 ? 1 : count;
}

/* A worker that gave wrong numbers makes the row wrong. Any other failure beside workers that are well makes it
 * void: what was accepted for them is no missing capability of the library. */
static void void_row(struct row *row, int worker, const struct matmul *m, int count) {
  const bool refused_mask = m->problem.core_mask && m->mask_in_force != m->problem.core_mask;
  row->verdict = count > 1 && !m->wrong.rows_wrong && !refused_mask ? "could-not-run" : m->verdict;
  row->exact = m->wrong.rows_wrong > 0;
  snprintf(row->reason, sizeof row->reason, "worker %d (core mask %d): %s", worker, m->problem.core_mask,
           m->reason);
}

/* All of every C; a context that was wrong before is not judged again. */
static void check_all(struct session *session, struct crew *crew, const char *when) {
  const struct oracle *oracles[MAX_MASKS];
  for (int i = 0; i < crew->count; i++) oracles[i] = &crew->workers[i].m.oracle;
  session_step(session, "check C of %d contexts", crew->count);
  for (int i = 0; i < crew->count; i++)
    if (!crew->workers[i].m.verdict) matmul_check(&crew->workers[i].m, when, oracles, crew->count);
}

/* How many bursts of how many runs: one burst of one run each tells. At least two runs, so that the window is more
 * than one run's overlap, and at least 10 ms, beside which the time that the threads need to wake up is small. */
static bool calibrate(struct session *session, struct crew *crew, struct sample_plan *plan) {
  double slowest = 0;
  session_step(session, "calibrate %d contexts", crew->count);
  for (int i = 0; i < crew->count; i++)
    if (!matmul_reset_C(&crew->workers[i].m)) return false;
  if (!crew_burst(crew, 1)) return false;
  check_all(session, crew, "first run together");
  for (int i = 0; i < crew->count; i++) {
    const double us = crew->workers[i].ends_us[0] - crew->workers[i].start_us;
    slowest = us > slowest ? us : slowest;
  }
  *plan = plan_samples(2 * slowest, session->options->seconds);
  plan->runs_per_sample *= 2;
  const double least = slowest > 0 ? 1e4 / slowest : MAX_BURST_RUNS;
  if (plan->runs_per_sample < least) plan->runs_per_sample = (int)ceil(least);
  if (plan->runs_per_sample > MAX_BURST_RUNS) plan->runs_per_sample = MAX_BURST_RUNS;
  return true;
}

/* Takes the burst that just ended as sample number `sample`. False: its contexts never ran at the same time. */
static bool take_burst(const struct crew *crew, int sample, struct scaling_row *result) {
  const struct shape s = crew->workers[0].m.problem.shape;
  struct burst bursts[MAX_MASKS];
  double runs, first = INFINITY, last = 0, sum = 0;
  for (int i = 0; i < crew->count; i++) {
    const struct worker *w = &crew->workers[i];
    const double end = w->ends_us[w->runs_done - 1];
    const struct burst whole = {w->start_us, w->ends_us, w->runs_done};
    bursts[i] = burst_settled(&whole);
    first = bursts[i].start_us < first ? bursts[i].start_us : first;
    last = end > last ? end : last;
    result->context_us[i][sample] = (end - w->start_us) / w->runs_done;
    sum += result->context_us[i][sample];
  }
  if (!common_window(bursts, crew->count, &result->window_us[sample], &runs)) return false;
  result->overlap[sample] = result->window_us[sample] / (last - first);
  result->row.rate[sample] = tops_of(s.M, s.K, s.N, result->window_us[sample]) * runs;
  result->row.timing.run_us[sample] = sum / crew->count;
  result->row.rate_count = result->row.timing.count = sample + 1;
  return true;
}

static bool measure(struct session *session, struct crew *crew, struct scaling_row *result) {
  struct sample_plan plan;
  if (!calibrate(session, crew, &plan)) return false;
  session_step(session, "run %d contexts together, %d runs each", crew->count, plan.runs_per_sample);
  for (int sample = 0; sample < plan.samples;) {
    for (int i = 0; i < crew->count && sample + 1 == plan.samples; i++)
      if (!matmul_reset_C(&crew->workers[i].m)) return false;
    if (!crew_burst(crew, plan.runs_per_sample)) return false;
    result->row.timing.runs_per_sample = plan.runs_per_sample;
    if (take_burst(crew, sample, result)) {
      sample++;
    } else if (++result->lone_bursts <= 8 && plan.runs_per_sample <= MAX_BURST_RUNS / 2) {
      /* On a busy machine a short burst fits into one turn on the CPU. All samples anew, each twice as long. */
      plan.runs_per_sample *= 2;
      sample = 0;
    } else {
      result->row.verdict = "could-not-run";
      snprintf(
          result->row.reason, sizeof result->row.reason,
          "in %d bursts the %d contexts did not run at the same time: their threads do not get to the CPU together",
          result->lone_bursts, crew->count);
      return false;
    }
  }
  return true;
}

/* Row n: the contexts 0..n-1, of which the last one was made for it. */
static void make_row(struct session *session, struct worker *workers, int count, struct scaling_row *result) {
  struct crew crew;
  struct row *row = &result->row;
  row_init(row, "core_scaling", "tops");
  row->timing.create_us = workers[count - 1].m.create_us;
  row->timing.bind_b_us = workers[count - 1].m.bind_b_us;
  row->timing.cold_us = workers[count - 1].cold_us;
  for (int i = 0; i < count; i++)
    if (workers[i].m.verdict) {
      void_row(row, i, &workers[i].m, count);
      return;
    }
  if (!crew_start(&crew, workers, count)) {
    snprintf(row->reason, sizeof row->reason, "pthread_create gives no %d threads; raise the limit on processes",
             count);
    return;
  }
  row->verdict = "passed";
  if (measure(session, &crew, result)) {
    check_all(session, &crew, "last burst");
    row->exact = true;
  }
  crew_stop(&crew);
  for (int i = 0; i < count; i++) matmul_take_log(&workers[i].m); /* the first one gets it: threads share the log */
  for (int i = 0; i < count && row_passed(row); i++)
    if (workers[i].m.verdict) void_row(row, i, &workers[i].m, count);
}

int main(int argc, char **argv) {
  static struct session session;
  static struct options options;
  static struct worker workers[MAX_MASKS];
  static struct scaling_row result;
  int masks[MAX_MASKS];
  struct tally tally = {0};
  double one_tops = NAN;
  int code = 0;
  if (!session_begin(&session, &options, &program, columns, sizeof columns / sizeof columns[0], argc, argv, &code))
    return code;

  struct problem problem = {.type = options.type_count ? options.types[0] : 2, .oracle_seed = options.seed};
  const struct matmul_type_info *type = matmul_type_find(problem.type);
  const bool int4 = type && type->a == RKNN_TENSOR_INT4;
  problem.shape = options.shape_count ? options.shapes[0]
                  : options.quick     ? (struct shape){256, 1024, 1024}
                                      : (struct shape){4096, 4096, 4096};
  problem.B_layout = options.layout == CHOICE_FIRST ? RKNN_MM_LAYOUT_NORM : RKNN_MM_LAYOUT_NATIVE;
  problem.AC_layout = options.ac_layout == CHOICE_SECOND || (int4 && !options.ac_layout) ? RKNN_MM_LAYOUT_NATIVE
                                                                                         : RKNN_MM_LAYOUT_NORM;
  const int rows = find_masks(&session, &problem, masks);
  output_header(&session.output, session.runtime.path, session.runtime.version, options.seed, rows, method);
  for (int i = 0; i < rows; i++) {
    problem.core_mask = masks[i];
    problem.seed = options.seed + (uint64_t)(i + 1) * 0x51ed2701u;
    memset(&result, 0, sizeof result);
    worker_make(&workers[i], &session, &problem);
    make_row(&session, workers, i + 1, &result);
    if (i == 0 && row_passed(&result.row)) one_tops = median_of(result.row.rate, (size_t)result.row.rate_count);
    scaling_row_fill(&result, workers, i + 1, one_tops, options.rated_tops);
    output_row(&session.output, &result.row);
    tally_row(&tally, &result.row);
    row_free(&result.row);
  }
  for (int i = 0; i < rows; i++) worker_free(&workers[i]);
  return session_end(&session, tally_exit(&tally));
}
