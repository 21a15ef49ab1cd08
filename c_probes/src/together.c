/* SPDX-License-Identifier: Apache-2.0 */
#include "together.h"

#include <math.h>
#include <string.h>

#include "parts.h"

enum { BURSTS = 9, SHORTEST_BURST_US = 10000 };

int cores_find(struct session *session, int masks[MAX_MASKS]) {
  const struct options *o = session->options;
  static struct matmul m;
  int count = 0;
  if (o->mask_count) {
    memcpy(masks, o->masks, sizeof o->masks);
    return o->cores && o->cores < o->mask_count ? o->cores : o->mask_count;
  }
  struct problem small = plain_problem(session, 4, 64, 64);
  small.core_mask = 0;
  if (matmul_create(&m, session, &small) && session->runtime.matmul_set_core_mask) {
    session_step(session, "try core masks 1, 2 and 4");
    while (count < 3 && session->runtime.matmul_set_core_mask(m.ctx, (rknn_core_mask)(1 << count)) == 0) {
      masks[count] = 1 << count;
      count++;
    }
  }
  matmul_close(&m);
  if (count == 0) masks[count++] = 0;
  return o->cores && o->cores < count ? o->cores : count;
}

bool together_make(struct worker *workers, int count, struct session *session, const struct problem *problem,
                   const int *masks) {
  bool good = true;
  for (int i = 0; i < count; i++) {
    struct problem mine = *problem;
    mine.core_mask = masks[i];
    mine.seed = problem->seed + (uint64_t)(i + 1) * 0x51ed2701u;
    good = worker_make(&workers[i], session, &mine) && good;
  }
  return good;
}

static bool check_all(struct crew *crew, const char *when) {
  const struct oracle *oracles[MAX_MASKS];
  bool good = true;
  for (int i = 0; i < crew->count; i++) oracles[i] = &crew->workers[i].m.oracle;
  for (int i = 0; i < crew->count; i++)
    good = !crew->workers[i].m.verdict && matmul_check(&crew->workers[i].m, when, oracles, crew->count) && good;
  return good;
}

static bool reset_all(struct crew *crew) {
  for (int i = 0; i < crew->count; i++)
    if (!matmul_reset_C(&crew->workers[i].m)) return false;
  return true;
}

static bool take(const struct crew *crew, struct together *found) {
  struct burst bursts[MAX_MASKS];
  double window_us, runs, sum = 0;
  for (int i = 0; i < crew->count; i++) {
    const struct worker *w = &crew->workers[i];
    const struct burst whole = {w->start_us, w->ends_us, w->runs_done};
    bursts[i] = burst_settled(&whole);
    sum += (w->ends_us[w->runs_done - 1] - w->start_us) / w->runs_done;
  }
  if (!common_window(bursts, crew->count, &window_us, &runs)) return false;
  found->runs_per_us[found->samples] = runs / window_us;
  found->run_us[found->samples++] = sum / crew->count;
  return true;
}

bool together_measure(struct session *session, struct crew *crew, double seconds, struct together *found) {
  double slowest = 1e-3;
  memset(found, 0, sizeof *found);
  session_step(session, "first burst of %d contexts", crew->count);
  if (!reset_all(crew) || !crew_burst(crew, 2) || !check_all(crew, "first run together")) return false;
  for (int i = 0; i < crew->count; i++) {
    const struct worker *w = &crew->workers[i];
    slowest = fmax(slowest, (w->ends_us[1] - w->start_us) / 2);
  }
  const double burst_us = fmax(SHORTEST_BURST_US, seconds * 1e6 / BURSTS);
  const double runs = fmax(3, fmin(MAX_BURST_RUNS, ceil(burst_us / slowest)));
  found->runs = (int)runs;
  session_step(session, "%d contexts together, %d runs each in a burst", crew->count, found->runs);
  while (found->samples < BURSTS) {
    if (found->samples + 1 == BURSTS && !reset_all(crew)) return false;
    if (!crew_burst(crew, found->runs)) return false;
    if (take(crew, found) || ++found->alone <= BURSTS) continue;
    return matmul_fail(
        &crew->workers[0].m, "could-not-run",
        "in %d bursts the %d contexts did not run at the same time: their threads do not get to the CPU together",
        found->alone, crew->count);
  }
  session_step(session, "check C of %d contexts", crew->count);
  return check_all(crew, "last burst");
}

void together_judge(struct row *row, const struct worker *workers, int count) {
  const struct matmul *bad = &workers[0].m;
  for (int i = count - 1; i >= 0; i--)
    if (workers[i].m.verdict) bad = &workers[i].m;
  part_row_judge(row, bad);
  if (bad->verdict && count > 1) {
    char reason[sizeof row->reason];
    snprintf(reason, sizeof reason, "%s", row->reason);
    snprintf(row->reason, sizeof row->reason, "context on core mask %d: %.1100s", bad->problem.core_mask, reason);
  }
}

void together_free(struct worker *workers, int count) {
  for (int i = 0; i < count; i++) worker_free(&workers[i]);
}
