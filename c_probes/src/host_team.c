/* SPDX-License-Identifier: Apache-2.0 */
#include "host_team.h"

#include <stdlib.h>
#include <string.h>

#include "stats.h"

enum { ARRAY_BYTES = 32 << 20 }; /* above any last-level cache of these boards (3 MiB on RK3588) */

const char *host_kind_name(enum host_kind kind) { return kind == HOST_READ ? "read" : "dot"; }

static bool make_array(struct arrays *arrays) {
  void *memory = NULL;
  if (posix_memalign(&memory, 4096, ARRAY_BYTES) != 0) return false;
  arrays->a = memory;
  arrays->count = ARRAY_BYTES / sizeof(uint64_t);
  memory_prepare(OP_READ, arrays);
  return true;
}

bool host_team_make(struct host_team *team, enum host_kind kind, int threads) {
  bool good = true;
  memset(team, 0, sizeof *team);
  team->kind = kind;
  team->count = threads < MAX_HOST_THREADS ? threads : MAX_HOST_THREADS;
  team->expected_sum = memory_expected_sum(ARRAY_BYTES / sizeof(uint64_t));
  dot_fill(&team->dot);
  team->expected_dot = dot_expected(&team->dot);
  for (int i = 0; i < team->count; i++) {
    team->worker[i].team = team;
    team->worker[i].ends_us = malloc(MAX_PIECES * sizeof(double));
    good = team->worker[i].ends_us && (kind != HOST_READ || make_array(&team->worker[i].arrays)) && good;
  }
  return good;
}

static void *work(void *argument) {
  struct host_worker *worker = argument;
  struct host_team *team = worker->team;
  worker->pieces = 0;
  worker->start_us = now_us();
  while (!atomic_load(&team->leave) && worker->pieces < MAX_PIECES) {
    const bool right = team->kind == HOST_READ ? memory_pass(OP_READ, &worker->arrays) == team->expected_sum
                                               : dot_unit(&team->dot) == team->expected_dot;
    worker->wrong += !right;
    worker->ends_us[worker->pieces++] = now_us();
  }
  return NULL;
}

bool host_team_start(struct host_team *team) {
  atomic_store(&team->leave, 0);
  for (int i = 0; i < team->count; i++) {
    if (pthread_create(&team->worker[i].thread, NULL, work, &team->worker[i]) == 0) continue;
    atomic_store(&team->leave, 1);
    for (int j = 0; j < i; j++) pthread_join(team->worker[j].thread, NULL);
    return false;
  }
  return true;
}

void host_team_stop(struct host_team *team) {
  atomic_store(&team->leave, 1);
  for (int i = 0; i < team->count; i++) pthread_join(team->worker[i].thread, NULL);
}

void host_team_free(struct host_team *team) {
  for (int i = 0; i < team->count; i++) {
    free(team->worker[i].ends_us);
    free(team->worker[i].arrays.a);
  }
}

int host_team_wrong(const struct host_team *team) {
  int wrong = 0;
  for (int i = 0; i < team->count; i++) wrong += team->worker[i].wrong;
  return wrong;
}

double runs_between(const struct burst *burst, double from_us, double to_us) {
  double inside = 0, begin = burst->start_us;
  for (int i = 0; i < burst->runs; i++) {
    const double end = burst->ends_us[i];
    const double low = begin > from_us ? begin : from_us, high = end < to_us ? end : to_us;
    if (high > low && end > begin) inside += (high - low) / (end - begin);
    begin = end;
  }
  return inside;
}
