/* SPDX-License-Identifier: Apache-2.0 */
#include "stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static int by_value(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

static double median_in_place(double *values, size_t count) {
  qsort(values, count, sizeof *values, by_value);
  return count % 2 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}

double median_of(const double *values, size_t count) {
  double copy[MAX_SAMPLES];
  if (count == 0 || count > MAX_SAMPLES) return NAN;
  memcpy(copy, values, count * sizeof *copy);
  return median_in_place(copy, count);
}

double mad_of(const double *values, size_t count) {
  double copy[MAX_SAMPLES];
  if (count == 0 || count > MAX_SAMPLES) return NAN;
  double middle = median_of(values, count);
  for (size_t i = 0; i < count; i++) copy[i] = fabs(values[i] - middle);
  return median_in_place(copy, count);
}

struct sample_plan plan_samples(double run_us, double seconds) {
  const int wanted = 10;
  struct sample_plan plan = {wanted, 1};
  if (!(run_us > 0)) run_us = 1e-3; /* a clock too coarse to see the run */
  double runs = seconds * 1e6 / run_us;
  if (runs >= wanted) {
    double each = floor(runs / wanted);
    plan.runs_per_sample = each > 1e6 ? 1000000 : (int)each;
    return plan;
  }
  int least = runs < 5 ? 3 : 5;
  plan.samples = runs > least ? (int)runs : least;
  return plan;
}

double tops_of(double M, double K, double N, double us) { return us > 0 ? 2.0 * M * K * N / us * 1e-6 : NAN; }
