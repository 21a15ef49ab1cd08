/* SPDX-License-Identifier: Apache-2.0
 *
 * The time of short runs, each timed by itself. */
#ifndef RKNPU_KIT_MEASURE_EACH_H
#define RKNPU_KIT_MEASURE_EACH_H

#include "matmul.h"

/* As measure_runs, but every run is timed alone and a sample is the median of a batch of them: a run of some
 * microseconds that the scheduler interrupts would otherwise spoil the mean of its batch. Reading the clock adds
 * less than 0.1 us to each. C is checked after the first, the second and the last run. False: verdict and reason of
 * m are set. */
bool measure_each(struct matmul *m, double seconds, struct timing *timing);

#endif
