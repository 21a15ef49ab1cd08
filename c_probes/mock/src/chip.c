/* SPDX-License-Identifier: Apache-2.0
 *
 * Progress is integrated over events (submission, completion), so that a run which has neighbours for half of its
 * time pays for that half, and a caller that looks late changes no one's completion.
 */
#include "chip.h"

#include <math.h>

double mock_chip_duration(const mock_timing *timing, const mock_job *job, int running) {
  double share = running <= 1 ? 1 : running == 2 ? timing->share2 : timing->share3;
  double crowd = running * timing->bw_core_gbps / timing->bw_shared_gbps;
  double compute = job->cost.compute / share, memory = job->cost.memory * (crowd > 1 ? crowd : 1);
  double total = job->cost.fixed + (compute > memory ? compute : memory);
  return (total > 1e-9 ? total : 1e-9) * job->stretch * timing->scale;
}

int mock_chip_pick_core(const mock_chip *chip, int cores, unsigned mask) {
  int best = 0, best_length = 1 << 30;
  for (int i = 0; i < cores; i++) {
    int length = 0;
    for (const mock_job *job = chip->head[i]; job; job = job->next) length++;
    if (mask & (1u << i)) return i;
    if (length < best_length) {
      best = i;
      best_length = length;
    }
  }
  return best;
}

void mock_chip_submit(mock_chip *chip, mock_job *job, int core) {
  job->core = core;
  job->left = 1;
  job->done = false;
  job->next = NULL;
  if (chip->tail[core])
    chip->tail[core]->next = job;
  else
    chip->head[core] = job;
  chip->tail[core] = job;
}

static int running_jobs(const mock_chip *chip) {
  int running = 0;
  for (int i = 0; i < MOCK_MAX_CORES; i++) running += chip->head[i] != NULL;
  return running;
}

static double next_completion(const mock_chip *chip, const mock_timing *timing, int *core) {
  double best = INFINITY;
  int running = running_jobs(chip);
  for (int i = 0; i < MOCK_MAX_CORES; i++) {
    if (!chip->head[i]) continue;
    double end = chip->at + chip->head[i]->left * mock_chip_duration(timing, chip->head[i], running);
    if (end < best) {
      best = end;
      *core = i;
    }
  }
  return best;
}

double mock_chip_next(const mock_chip *chip, const mock_timing *timing) {
  int core;
  return next_completion(chip, timing, &core);
}

double mock_chip_end(const mock_chip *chip, const mock_timing *timing, const mock_job *job) {
  if (chip->head[job->core] != job) return INFINITY;
  return chip->at + job->left * mock_chip_duration(timing, job, running_jobs(chip));
}

static void progress(mock_chip *chip, const mock_timing *timing, double until) {
  int running = running_jobs(chip);
  for (int i = 0; i < MOCK_MAX_CORES; i++) {
    mock_job *job = chip->head[i];
    if (!job) continue;
    double whole = mock_chip_duration(timing, job, running);
    job->left = whole > 0 ? job->left - (until - chip->at) / whole : 0;
    if (job->left < 0) job->left = 0;
  }
  chip->at = until;
}

bool mock_chip_advance(mock_chip *chip, const mock_timing *timing, double now) {
  bool ended = false;
  for (int core = 0;;) {
    double end = next_completion(chip, timing, &core);
    if (end == INFINITY || end > now) break;
    progress(chip, timing, end > chip->at ? end : chip->at);
    mock_job *job = chip->head[core];
    chip->head[core] = job->next;
    if (!job->next) chip->tail[core] = NULL;
    job->done = ended = true;
    job->done_at = end;
  }
  if (now > chip->at) progress(chip, timing, now);
  return ended;
}
