/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "ddr_team.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "stats.h"

static bool pin_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET((size_t)cpu, &set);
  return pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
}

static void *serve(void *argument) {
  struct team_member *self = argument;
  struct team *team = self->team;
  self->pinned = pin_to(self->cpu);
  pthread_mutex_lock(&team->gate);
  while (team->state == TEAM_FORMING) pthread_cond_wait(&team->formed, &team->gate);
  const bool formed = team->state == TEAM_FORMED;
  pthread_mutex_unlock(&team->gate);
  if (!formed) return NULL;
  pthread_barrier_wait(&team->done);
  for (;;) {
    pthread_barrier_wait(&team->start);
    if (!team->work) return NULL;
    self->start_us = now_us();
    team->work(team->context, self->number);
    self->end_us = now_us();
    pthread_barrier_wait(&team->done);
  }
}

static void open_gate(struct team *team, enum team_state state) {
  pthread_mutex_lock(&team->gate);
  team->state = state;
  pthread_cond_broadcast(&team->formed);
  pthread_mutex_unlock(&team->gate);
}

static void join(struct team *team, int made) {
  for (int i = 0; i < made; i++) pthread_join(team->member[i].handle, NULL);
  pthread_barrier_destroy(&team->start);
  pthread_barrier_destroy(&team->done);
  pthread_cond_destroy(&team->formed);
  pthread_mutex_destroy(&team->gate);
}

bool team_start(struct team *team, const struct cpu_group *group, int threads, char *why, size_t why_size) {
  int made = 0, error = 0;
  memset(team, 0, sizeof *team);
  pthread_mutex_init(&team->gate, NULL);
  pthread_cond_init(&team->formed, NULL);
  pthread_barrier_init(&team->start, NULL, (unsigned)threads + 1);
  pthread_barrier_init(&team->done, NULL, (unsigned)threads + 1);
  team->threads = threads;
  while (made < threads) {
    struct team_member *member = &team->member[made];
    *member = (struct team_member){.team = team, .number = made, .cpu = group->cpu[made]};
    error = pthread_create(&member->handle, NULL, serve, member);
    if (error) break;
    made++;
  }
  open_gate(team, error ? TEAM_GIVEN_UP : TEAM_FORMED);
  if (error) {
    snprintf(why, why_size, "thread %d of %d could not be started: %s", made + 1, threads, strerror(error));
    join(team, made);
    return false;
  }
  pthread_barrier_wait(&team->done);
  for (int i = 0; i < threads; i++)
    if (!team->member[i].pinned) {
      snprintf(why, why_size, "thread %d could not be pinned to CPU %d", i + 1, team->member[i].cpu);
      team_stop(team);
      return false;
    }
  return true;
}

double team_run(struct team *team, team_work *work, void *context) {
  team->work = work;
  team->context = context;
  pthread_barrier_wait(&team->start);
  pthread_barrier_wait(&team->done);
  double start_us = team->member[0].start_us, end_us = team->member[0].end_us;
  for (int i = 1; i < team->threads; i++) {
    if (team->member[i].start_us < start_us) start_us = team->member[i].start_us;
    if (team->member[i].end_us > end_us) end_us = team->member[i].end_us;
  }
  return end_us - start_us;
}

void team_stop(struct team *team) {
  team->work = NULL;
  pthread_barrier_wait(&team->start);
  join(team, team->threads);
}
