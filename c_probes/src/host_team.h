/* SPDX-License-Identifier: Apache-2.0
 *
 * CPU threads that work beside the NPU until told to stop, and note when each piece of work ended. */
#ifndef RKNPU_KIT_HOST_TEAM_H
#define RKNPU_KIT_HOST_TEAM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "ddr_kernels.h"
#include "ddr_work.h"
#include "window.h"

enum host_kind { HOST_READ, HOST_DOT, HOST_KINDS };
const char *host_kind_name(enum host_kind kind);

enum { MAX_HOST_THREADS = 64, MAX_PIECES = 1 << 16 };

struct host_worker {
  struct host_team *team;
  pthread_t thread;
  struct arrays arrays; /* HOST_READ: an own array, larger than caches */
  double start_us, *ends_us;
  int pieces, wrong;
};

struct host_team {
  enum host_kind kind;
  int count;
  atomic_int leave;
  uint64_t expected_sum;
  int64_t expected_dot;
  struct dot_data dot;
  struct host_worker worker[MAX_HOST_THREADS];
};

/* Memory and data for so many threads. False when there is no memory. */
bool host_team_make(struct host_team *team, enum host_kind kind, int threads);
/* Starts them; false when the machine gives too few threads (none is left running). */
bool host_team_start(struct host_team *team);
/* Lets each finish its piece. */
void host_team_stop(struct host_team *team);
void host_team_free(struct host_team *team);
/* Pieces whose result was wrong, over all threads since the start. */
int host_team_wrong(const struct host_team *team);

/* Runs of a burst between two moments; a run across an edge counts by the share of its time inside. */
double runs_between(const struct burst *burst, double from_us, double to_us);

#endif
