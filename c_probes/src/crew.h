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
};

struct crew {
  int count, runs;
  struct worker *workers;
  /* The barrier of a burst, by hand: unlike a pthread_barrier it can let go of a crew that is not complete. */
  pthread_mutex_t lock;
  pthread_cond_t begin, end;
  int burst;    /* number of the burst under way; workers wait for it to change */
  int finished; /* workers that are through with it */
  bool leave;
};

/* One context, ready and warmed: its first run is done and its C checked. False: worker->m has verdict and reason. */
bool worker_make(struct worker *worker, struct session *session, const struct problem *problem);
void worker_free(struct worker *worker);

/* Starts a thread per worker. False when the machine gives too few threads; none is left running then. */
bool crew_start(struct crew *crew, struct worker *workers, int count);
/* Every worker makes that many runs, beginning together; returns when all are done. False: a worker's m has the
 * verdict. At most MAX_BURST_RUNS. */
bool crew_burst(struct crew *crew, int runs);
void crew_stop(struct crew *crew);

#endif
