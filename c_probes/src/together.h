/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts that run together, measured: how many runs per second they make in all while every one of them is
 * running. */
#ifndef RKNPU_KIT_TOGETHER_H
#define RKNPU_KIT_TOGETHER_H

#include "crew.h"

/* Core masks of one bit that a small context accepts, up to three; --masks and --cores have the last word. One mask
 * of 0 where the runtime has no masks. Returns how many. */
int cores_find(struct session *session, int masks[MAX_MASKS]);

struct together {
  double runs_per_us[MAX_SAMPLES]; /* of all contexts, in the window in which all of them run */
  double run_us[MAX_SAMPLES];      /* mean over the contexts of the time per run */
  int samples, runs;               /* bursts kept; runs of each context in a burst */
  int alone;                       /* bursts dropped because the contexts never ran at the same time */
};

/* Contexts on these masks, each with data of its own, created, run once and compared. False: one of the workers has
 * a verdict, or `why` says what failed. */
bool together_make(struct worker *workers, int count, struct session *session, const struct problem *problem,
                   const int *masks);
/* At least seven bursts that fill `seconds`; all of every C is compared after the first and after the last. */
bool together_measure(struct session *session, struct crew *crew, double seconds, struct together *found);
/* The verdict of the first worker that has one: judges the row. */
void together_judge(struct row *row, const struct worker *workers, int count);
void together_free(struct worker *workers, int count);

#endif
