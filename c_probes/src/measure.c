/* SPDX-License-Identifier: Apache-2.0 */
#include "measure.h"

/* Runs in a row; the time of one on average in *us. */
static bool timed_runs(struct matmul *m, int runs, const char *when, double *us) {
  int code = 0;
  const double start = now_us();
  for (int i = 0; i < runs && code == 0; i++) code = matmul_run(m);
  *us = (now_us() - start) / runs;
  if (code != 0) matmul_run_failed(m, code, when);
  return code == 0;
}

bool measure_runs(struct matmul *m, double seconds, struct timing *timing) {
  const struct shape s = m->problem.shape;
  double us;
  timing->count = 0;
  session_step(m->session, "cold run type=%d M=%d K=%d N=%d", m->problem.type, s.M, s.K, s.N);
  if (!matmul_reset_C(m) || !timed_runs(m, 1, "cold run", &us)) return false;
  timing->cold_us = us;
  /* A wrong result is timed all the same: its speed is evidence, if no result. */
  bool right = matmul_check(m, "cold run", NULL, 0);

  session_step(m->session, "timed runs type=%d M=%d K=%d N=%d", m->problem.type, s.M, s.K, s.N);
  if (!matmul_reset_C(m) || !timed_runs(m, 1, "second run", &us)) return false;
  right = right && matmul_check(m, "second run", NULL, 0);
  const struct sample_plan plan = plan_samples(us, seconds);
  timing->runs_per_sample = plan.runs_per_sample;
  if (plan.runs_per_sample == 1) timing->run_us[timing->count++] = us;
  while (timing->count < plan.samples) {
    if (timing->count + 1 == plan.samples && !matmul_reset_C(m)) return false;
    if (!timed_runs(m, plan.runs_per_sample, "timed runs", &us)) return false;
    timing->run_us[timing->count++] = us;
  }
  session_step(m->session, "check C of type=%d M=%d K=%d N=%d", m->problem.type, s.M, s.K, s.N);
  right = right && matmul_check(m, "last timed run", NULL, 0);
  matmul_take_log(m);
  return right;
}
