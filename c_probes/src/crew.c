/* SPDX-License-Identifier: Apache-2.0 */
#include "crew.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool worker_make(struct worker *worker, struct session *session, const struct problem *problem) {
  memset(worker, 0, sizeof *worker);
  worker->cold_us = NAN;
  struct matmul *m = &worker->m;
  if (!matmul_create(m, session, problem) || !matmul_prepare(m)) return false;
  if (problem->core_mask && m->mask_in_force != problem->core_mask) {
    if (!m->mask_tried)
      return matmul_fail(m, "unsupported", "this runtime does not export rknn_matmul_set_core_mask");
    return matmul_fail(m, "unsupported", "rknn_matmul_set_core_mask(%d) returned %d (%s)", problem->core_mask,
                       m->mask_code, rknn_code_name(m->mask_code));
  }
  worker->ends_us = malloc(MAX_BURST_RUNS * sizeof *worker->ends_us);
  if (!worker->ends_us) return matmul_fail(m, "could-not-run", "out of memory for the times of the runs");
  session_step(session, "cold run core_mask=%d", problem->core_mask);
  if (!matmul_reset_C(m)) return false;
  const double start = now_us();
  const int code = matmul_run(m);
  worker->cold_us = now_us() - start;
  if (code != 0) {
    matmul_run_failed(m, code, "cold run");
    return false;
  }
  return matmul_check(m, "cold run", NULL, 0);
}

void worker_free(struct worker *worker) {
  matmul_close(&worker->m);
  free(worker->ends_us);
  worker->ends_us = NULL;
}

static void *work(void *argument) {
  struct worker *worker = argument;
  struct crew *crew = worker->crew;
  for (;;) {
    pthread_barrier_wait(&crew->gate);
    if (crew->leave) return NULL;
    worker->runs_done = 0;
    worker->code = 0;
    worker->start_us = now_us();
    while (worker->runs_done < crew->runs) {
      worker->code = matmul_run(&worker->m);
      worker->ends_us[worker->runs_done] = now_us();
      if (worker->code != 0) break;
      worker->runs_done++;
    }
    pthread_barrier_wait(&crew->gate);
  }
}

bool crew_start(struct crew *crew, struct worker *workers, int count) {
  *crew = (struct crew){.count = count, .workers = workers};
  int started = 0;
  if (pthread_barrier_init(&crew->gate, NULL, (unsigned)count + 1) != 0) return false;
  for (; started < count; started++) {
    workers[started].crew = crew;
    if (pthread_create(&workers[started].thread, NULL, work, &workers[started]) != 0) break;
    workers[started].thread_lives = true;
  }
  if (started == count) return true;
  /* Those that wait at the gate cannot be let through it, for it waits for all. */
  for (int i = 0; i < started; i++) {
    pthread_cancel(workers[i].thread);
    pthread_detach(workers[i].thread);
    workers[i].thread_lives = false;
  }
  return false;
}

bool crew_burst(struct crew *crew, int runs) {
  bool good = true;
  crew->runs = runs < MAX_BURST_RUNS ? runs : MAX_BURST_RUNS;
  pthread_barrier_wait(&crew->gate);
  pthread_barrier_wait(&crew->gate);
  for (int i = 0; i < crew->count; i++) {
    struct worker *worker = &crew->workers[i];
    if (worker->code == 0) continue;
    matmul_run_failed(&worker->m, worker->code, "runs together");
    good = false;
  }
  return good;
}

void crew_stop(struct crew *crew) {
  crew->leave = true;
  pthread_barrier_wait(&crew->gate);
  for (int i = 0; i < crew->count; i++) {
    pthread_join(crew->workers[i].thread, NULL);
    crew->workers[i].thread_lives = false;
  }
  pthread_barrier_destroy(&crew->gate);
}
