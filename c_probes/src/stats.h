/* SPDX-License-Identifier: Apache-2.0
 *
 * Time, its statistics, and how many runs make a sample. */
#ifndef RKNPU_KIT_STATS_H
#define RKNPU_KIT_STATS_H

#include <stddef.h>

enum { MAX_SAMPLES = 64 };

/* Monotonic time in microseconds. */
double now_us(void);

/* Median and median absolute deviation (not scaled); NaN when count is 0. values is left as it is. */
double median_of(const double *values, size_t count);
double mad_of(const double *values, size_t count);

struct sample_plan {
  int samples;
  int runs_per_sample;
};

/* Fills about `seconds` with runs of `run_us` each: ten samples of several runs; where that is less than one run per
 * sample, single runs, at least five of them, or at least three where one run alone takes longer than seconds / 5. */
struct sample_plan plan_samples(double run_us, double seconds);

/* 2 M K N operations in us microseconds, as TOPS. NaN when us is not above 0. */
double tops_of(double M, double K, double N, double us);

#endif
