/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts that run together, one thread each. They are created, bound and warmed by the main thread; the threads only
 * wait for a burst to begin, run, and note when each run ended. */
#ifndef RKNPU_KIT_CREW_H
#define RKNPU_KIT_CREW_H

#include <pthread.h>

#include "matmul.h"
#include "window.h"

enum { MAX_BURST_RUNS = 1 << 16 };

struct crew;

struct worker {
  struct crew *crew;
  struct matmul m;
  double cold_us;
  double start_us, *ends_us;
  int runs_done, code; /* of the last burst; code of the run that failed, else 0 */
  pthread_t thread;
  bool thread_lives;
};

struct crew {
  pthread_barrier_t gate; /* all workers and the main thread, at the start and at the end of a burst */
  int count, runs;
  bool leave;
  struct worker *workers;
};

/* One context, ready and warmed: its first run is done and its C checked. False: worker->m has verdict and reason. */
bool worker_make(struct worker *worker, struct session *session, const struct problem *problem);
void worker_free(struct worker *worker);

/* Starts a thread per worker, waits for none. False when the machine gives no threads (nothing is left running). */
bool crew_start(struct crew *crew, struct worker *workers, int count);
/* Every worker makes that many runs, beginning together; returns when all are done. False: a worker's m has the
 * verdict. At most MAX_BURST_RUNS. */
bool crew_burst(struct crew *crew, int runs);
void crew_stop(struct crew *crew);

#endif
