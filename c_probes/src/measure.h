/* SPDX-License-Identifier: Apache-2.0
 *
 * The rate of one context. */
#ifndef RKNPU_KIT_MEASURE_H
#define RKNPU_KIT_MEASURE_H

#include "matmul.h"

/* One cold run (kept apart), one warm run to calibrate, then samples of equal numbers of runs to fill `seconds`. C
 * is made the sentinel before the first run, before the second and before the last sample, and checked after each:
 * two runs in a row, so that a library that writes C every other time is caught. Where a sample is one run, the
 * calibration is the first sample. False: verdict and reason of m are set; what was timed is in timing all the
 * same. */
bool measure_runs(struct matmul *m, double seconds, struct timing *timing);

#endif
