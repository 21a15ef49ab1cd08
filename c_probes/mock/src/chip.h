/* SPDX-License-Identifier: Apache-2.0
 *
 * The modelled chip: cores with a first-in first-out queue each, and runs that slow each other down while they
 * overlap. Pure: time comes in as an argument, nothing waits, nothing is locked.
 */
#ifndef MOCK_CHIP_H
#define MOCK_CHIP_H

#include <stdbool.h>

#include "persona.h"
#include "timing.h"

struct mock_job {
  mock_cost cost;
  double stretch; /* fault factor on the whole duration */
  double left;    /* fraction not done yet */
  double done_at;
  bool done;
  int core;
  mock_job *next; /* queue of the core */
};

typedef struct {
  mock_job *head[MOCK_MAX_CORES], *tail[MOCK_MAX_CORES];
  double at; /* the moment up to which progress is worked out */
} mock_chip;

/* Seconds that the whole job takes while `running` contexts run. */
double mock_chip_duration(const mock_timing *timing, const mock_job *job, int running);

/* The core of a mask, or for mask 0 (AUTO) an idle one, else the one with the shortest queue. */
int mock_chip_pick_core(const mock_chip *chip, int cores, unsigned mask);

/* Appends a job (cost and stretch filled in) to a core's queue at time `now`, to which the chip was advanced. */
void mock_chip_submit(mock_chip *chip, mock_job *job, int core);

/* Brings the chip up to `now`; jobs that ended meanwhile are marked done with the time at which they did. Returns
 * whether any ended. */
bool mock_chip_advance(mock_chip *chip, const mock_timing *timing, double now);

/* When the next running job will end if nothing else is submitted; infinity when none runs. */
double mock_chip_next(const mock_chip *chip, const mock_timing *timing);

/* When this job will end if nothing else is submitted or ends before; infinity while it still waits in a queue. */
double mock_chip_end(const mock_chip *chip, const mock_timing *timing, const mock_job *job);

#endif
