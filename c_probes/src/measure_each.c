/* SPDX-License-Identifier: Apache-2.0 */
#include "measure_each.h"

enum { MOST_SAMPLES = 40, FEWEST_SAMPLES = 7, LARGEST_BATCH = 63, CALIBRATION_RUNS = 5 };

static bool one_run(struct matmul *m, const char *when, double *us) {
  const double start = now_us();
  const int code = matmul_run(m);
  *us = now_us() - start;
  if (code != 0) matmul_run_failed(m, code, when);
  return code == 0;
}

static int between(double value, int least, int most) {
  return value < least ? least : value > most ? most : (int)value;
}

/* The shortest of some runs, in us: one that the scheduler interrupts would make batches of one run. */
static bool calibrate(struct matmul *m, double *us) {
  double next;
  for (int i = 1; i < CALIBRATION_RUNS; i++) {
    if (!one_run(m, "calibration", &next)) return false;
    *us = next < *us ? next : *us;
  }
  return true;
}

bool measure_each(struct matmul *m, double seconds, struct timing *timing) {
  const struct shape s = m->problem.shape;
  double us[LARGEST_BATCH];
  timing->count = 0;
  session_step(m->session, "first runs type=%d M=%d K=%d N=%d", m->problem.type, s.M, s.K, s.N);
  if (!matmul_reset_C(m) || !one_run(m, "cold run", &timing->cold_us)) return false;
  bool right = matmul_check(m, "cold run", NULL, 0);
  if (!matmul_reset_C(m) || !one_run(m, "second run", &us[0])) return false;
  right = right && matmul_check(m, "second run", NULL, 0);
  if (!calibrate(m, &us[0])) return false;

  session_step(m->session, "timed runs type=%d M=%d K=%d N=%d", m->problem.type, s.M, s.K, s.N);
  const double runs = seconds * 1e6 / (us[0] > 0.1 ? us[0] : 0.1);
  const int batch = between(runs / 10, 1, LARGEST_BATCH) | 1; /* odd: the median is one of them */
  const int samples = between(runs / batch, FEWEST_SAMPLES, MOST_SAMPLES);
  timing->runs_per_sample = batch;
  while (timing->count < samples) {
    if (timing->count + 1 == samples && !matmul_reset_C(m)) return false;
    for (int i = 0; i < batch; i++)
      if (!one_run(m, "timed runs", &us[i])) return false;
    timing->run_us[timing->count++] = median_of(us, (size_t)batch);
  }
  session_step(m->session, "check C of type=%d M=%d K=%d N=%d", m->problem.type, s.M, s.K, s.N);
  right = right && matmul_check(m, "last timed run", NULL, 0);
  matmul_take_log(m);
  return right;
}
