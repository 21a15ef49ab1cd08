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
  for (int seen = 0;;) {
    pthread_mutex_lock(&crew->lock);
    while (crew->burst == seen && !crew->leave) pthread_cond_wait(&crew->begin, &crew->lock);
    seen = crew->burst;
    const bool leave = crew->leave;
    pthread_mutex_unlock(&crew->lock);
    if (leave) return NULL;

    worker->runs_done = 0;
    worker->code = 0;
    worker->start_us = now_us();
    while (worker->runs_done < crew->runs) {
      worker->code = matmul_run(&worker->m);
      worker->ends_us[worker->runs_done] = now_us();
      if (worker->code != 0) break;
      worker->runs_done++;
    }
    pthread_mutex_lock(&crew->lock);
    if (++crew->finished == crew->count) pthread_cond_signal(&crew->end);
    pthread_mutex_unlock(&crew->lock);
  }
}

static void dismiss(struct crew *crew, int started) {
  pthread_mutex_lock(&crew->lock);
  crew->leave = true;
  pthread_cond_broadcast(&crew->begin);
  pthread_mutex_unlock(&crew->lock);
  for (int i = 0; i < started; i++) pthread_join(crew->workers[i].thread, NULL);
  pthread_cond_destroy(&crew->begin);
  pthread_cond_destroy(&crew->end);
  pthread_mutex_destroy(&crew->lock);
}

bool crew_start(struct crew *crew, struct worker *workers, int count) {
  *crew = (struct crew){.count = count,
                        .workers = workers,
                        .lock = PTHREAD_MUTEX_INITIALIZER,
                        .begin = PTHREAD_COND_INITIALIZER,
                        .end = PTHREAD_COND_INITIALIZER};
  for (int i = 0; i < count; i++) {
    workers[i].crew = crew;
    if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0) continue;
    dismiss(crew, i);
    return false;
  }
  return true;
}

bool crew_burst(struct crew *crew, int runs) {
  bool good = true;
  pthread_mutex_lock(&crew->lock);
  crew->runs = runs < MAX_BURST_RUNS ? runs : MAX_BURST_RUNS;
  crew->finished = 0;
  crew->burst++;
  pthread_cond_broadcast(&crew->begin);
  while (crew->finished < crew->count) pthread_cond_wait(&crew->end, &crew->lock);
  pthread_mutex_unlock(&crew->lock);
  for (int i = 0; i < crew->count; i++) {
    struct worker *worker = &crew->workers[i];
    if (worker->code == 0) continue;
    matmul_run_failed(&worker->m, worker->code, "runs together");
    good = false;
  }
  return good;
}

void crew_stop(struct crew *crew) { dismiss(crew, crew->count); }
