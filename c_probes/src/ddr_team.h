/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads pinned to one CPU each that start a piece of work together and are timed from the first start to the last
 * end, as STREAM times its parallel loops: the slowest thread decides. */
#ifndef RKNPU_KIT_DDR_TEAM_H
#define RKNPU_KIT_DDR_TEAM_H

#include <pthread.h>
#include <stdbool.h>

#include "ddr_cpus.h"

typedef void team_work(void *context, int thread);

struct team;

struct team_member {
  struct team *team;
  pthread_t handle;
  int number, cpu;
  bool pinned;
  double start_us, end_us; /* of the last run; monotonic */
};

struct team {
  int threads;
  struct team_member member[MAX_CPUS_IN_SET];
  pthread_mutex_t gate; /* threads wait behind it until it is known that all of them exist */
  pthread_cond_t formed;
  enum team_state { TEAM_FORMING, TEAM_FORMED, TEAM_GIVEN_UP } state;
  pthread_barrier_t start, done;
  team_work *work; /* NULL: end */
  void *context;
};

/* Starts `threads` threads on the first CPUs of group. False with a clause in why when one could not be started or
 * pinned; nothing is left running then. */
bool team_start(struct team *team, const struct cpu_group *group, int threads, char *why, size_t why_size);

/* Every thread calls work(context, its number) once. Returns microseconds from the first start to the last end. */
double team_run(struct team *team, team_work *work, void *context);

void team_stop(struct team *team);

#endif
