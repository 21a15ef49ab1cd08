/* SPDX-License-Identifier: Apache-2.0 */
#include "limit_trial.h"

#include <math.h>
#include <string.h>

/* The fastest of so many runs, or of two where they are long: others on the CPU only ever add time. */
enum { MOST_RUNS = 25, ENOUGH_US = 15000 };

void limit_try(struct session *session, const struct problem *problem, bool run, struct trial *trial) {
  static struct matmul m;
  const struct shape s = problem->shape;
  const double macs = (double)s.M * s.K * s.N;
  const int value = trial->value;
  *trial = (struct trial){.value = value, .ns_per_mac = NAN, .known_right = run};
  trial->accepted = matmul_create(&m, session, problem);
  if (trial->accepted && run && matmul_prepare(&m) && matmul_prove(&m, "first run")) {
    double fastest = INFINITY, spent = 0;
    session_step(session, "timed runs type=%d M=%d K=%d N=%d", problem->type, s.M, s.K, s.N);
    for (int i = 0; i < MOST_RUNS && (i < 2 || spent < ENOUGH_US) && !m.verdict; i++) {
      const double start = now_us();
      const int code = matmul_run(&m);
      const double us = now_us() - start;
      if (code != 0) matmul_run_failed(&m, code, "timed run");
      spent += us;
      fastest = us < fastest ? us : fastest;
    }
    trial->right = !m.verdict && matmul_prove(&m, "last run");
    if (trial->right) trial->ns_per_mac = fastest * 1e3 / macs;
  }
  matmul_close(&m);
  trial->verdict = m.verdict ? m.verdict : "passed";
  snprintf(trial->why, sizeof trial->why, "%.299s", m.reason);
}
