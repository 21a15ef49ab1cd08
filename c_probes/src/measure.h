/* SPDX-License-Identifier: Apache-2.0
 *
 * The rate of one context. */
#ifndef RKNPU_KIT_MEASURE_H
#define RKNPU_KIT_MEASURE_H

#include "matmul.h"

/* One cold run (kept apart, its C checked), one warm run to calibrate, then samples of equal numbers of runs to fill
 * `seconds`; C is made the sentinel again before the last sample and checked after it. Where a sample is one run, the
 * calibration is the first sample. False: verdict and reason of m are set; what was timed is in timing all the same. */
bool measure_runs(struct matmul *m, double seconds, struct timing *timing);

#endif
