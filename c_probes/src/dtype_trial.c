/* SPDX-License-Identifier: Apache-2.0 */
#include "dtype_trial.h"

#include <string.h>

static void add(struct dtype_shared *shared, int type, struct shape shape, int layout, uint64_t seed) {
  struct trial *trial = &shared->trials[shared->count++];
  trial->problem = (struct problem){.type = type,
                                    .shape = shape,
                                    .B_layout = layout,
                                    .AC_layout = layout,
                                    .quant = QUANT_PER_LAYER,
                                    .seed = seed + (uint64_t)shared->count * 7919u + (uint64_t)type,
                                    .oracle_seed = seed};
}

void dtype_trials_plan(struct dtype_shared *shared, int type, uint64_t seed) {
  const struct matmul_type_info *info = matmul_type_find(type);
  /* Smallest N: 16 for float16 B by the header (32 by the user guide, so that one is tried too), 32 for int8, 64 for
   * int4 and for codes that nobody describes. */
  const bool half = info && info->b == RKNN_TENSOR_FLOAT16;
  const int N = half || (info && info->b == RKNN_TENSOR_INT8) ? 32 : 64;
  memset(shared, 0, sizeof *shared);
  if (half) add(shared, type, (struct shape){1, 32, 16}, RKNN_MM_LAYOUT_NORM, seed);
  add(shared, type, (struct shape){1, 32, N}, RKNN_MM_LAYOUT_NATIVE, seed);
  add(shared, type, (struct shape){1, 32, N}, RKNN_MM_LAYOUT_NORM, seed);
  add(shared, type, (struct shape){65, 512, 256}, RKNN_MM_LAYOUT_NATIVE, seed);
  add(shared, type, (struct shape){65, 512, 256}, RKNN_MM_LAYOUT_NORM, seed);
}

/* Two runs, each on a fresh sentinel and each checked: a first run that is right proves nothing about the next. */
static void run_twice(struct matmul *m, double *run_us) {
  static const char *const names[] = {"first run", "second run"};
  for (int i = 0; i < 2; i++) {
    session_step(m->session, "%s type=%d M=%d K=%d N=%d", names[i], m->problem.type, m->problem.shape.M,
                 m->problem.shape.K, m->problem.shape.N);
    if (!matmul_reset_C(m)) return;
    const double start = now_us();
    const int code = matmul_run(m);
    const double end = now_us();
    if (code != 0) {
      matmul_run_failed(m, code, names[i]);
      return;
    }
    if (!matmul_check(m, names[i], NULL, 0)) return;
    *run_us = end - start;
  }
}

int dtype_trials_run(struct session *session, struct dtype_shared *shared) {
  session->step = shared->step;
  session->output.out = NULL; /* the parent does the talking */
  guard_no_signals();
  const char *kind = "";
  char why[4600];
  session_step(session, "load %s", session->options->library);
  if (!runtime_open(&session->runtime, session->options->library, &kind, why, sizeof why)) {
    shared->returned = true;
    return EXIT_NOT_RUN;
  }
  for (int i = 0; i < shared->count; i++) {
    struct trial *trial = &shared->trials[i];
    trial->begun = true;
    if (matmul_create(&trial->m, session, &trial->problem) && matmul_prepare(&trial->m))
      run_twice(&trial->m, &trial->run_us);
    matmul_close(&trial->m);
    trial->done = true;
  }
  shared->returned = true;
  return 0;
}
