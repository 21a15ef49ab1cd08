/* SPDX-License-Identifier: Apache-2.0
 *
 * How long one run takes on a core that has the chip to itself. Pure arithmetic.
 */
#include <math.h>

#include "timing.h"

static double curve_at(const mock_curve *curve, double m) {
  if (curve->count == 0) return 1;
  if (m <= curve->point[0].m) return curve->point[0].tops;
  for (int i = 1; i < curve->count; i++) {
    double left = curve->point[i - 1].m, right = curve->point[i].m;
    if (m > right) continue;
    double t = log(m / left) / log(right / left);
    return curve->point[i - 1].tops + t * (curve->point[i].tops - curve->point[i - 1].tops);
  }
  return curve->point[curve->count - 1].tops;
}

/* The measured shape nearest in log(M), log(K), log(N) of the same type; another layout counts as one factor e away.
 */
static const mock_gemm_point *nearest(const mock_gemm_point *points, size_t count, const mock_work *work) {
  const mock_gemm_point *best = NULL;
  double best_distance = INFINITY;
  for (size_t i = 0; i < count; i++) {
    const mock_gemm_point *point = &points[i];
    if (point->type != work->type->code) continue;
    double distance = fabs(log((double)point->M / work->M)) + fabs(log((double)point->K / work->K)) +
                      fabs(log((double)point->N / work->N)) + (point->native != (int)work->native);
    if (distance < best_distance) {
      best = point;
      best_distance = distance;
    }
  }
  return best;
}

/* Seconds of arithmetic by the curves of the set. */
static double compute_seconds(const mock_timing *timing, const mock_work *work) {
  mock_class class = mock_class_of(work->type->a);
  double seconds = 2.0 * work->M * work->K * work->N / (curve_at(&timing->rate[class][work->native], work->M) * 1e12);
  bool beyond = timing->k_cliff[class] > 0 && work->K > timing->k_cliff[class];
  return beyond ? seconds * timing->k_cliff_factor : seconds;
}

/* Seconds above the fixed cost, by the set alone. */
static double modelled_seconds(const mock_timing *timing, const mock_work *work) {
  return fmax(compute_seconds(timing, work), work->bytes / (timing->bw_core_gbps * 1e9));
}

/* Seconds above the fixed cost, from a measured shape: its own where it is that shape, else in the proportion that the
 * set gives the two. Proportion to the work alone would take M = 1, all streaming, for the speed of every M. */
static double scaled_seconds(const mock_timing *timing, const mock_gemm_point *point, const mock_work *work) {
  double macs = (double)point->M * point->K * point->N;
  double above = 2 * macs / (point->tops * 1e12) - timing->fixed_us * 1e-6;
  if (point->M == work->M && point->K == work->K && point->N == work->N && point->native == (int)work->native)
    return above;
  double bits = (double)point->M * point->K * mock_bits_of(work->type->a) +
                (double)point->K * point->N * mock_bits_of(work->type->b) +
                (double)point->M * point->N * mock_bits_of(work->type->c);
  mock_work measured = {work->type, point->M, point->K, point->N, point->native != 0, bits / 8, work->mask};
  return fmax(above, 0) * modelled_seconds(timing, work) / modelled_seconds(timing, &measured);
}

mock_cost mock_timing_cost(const mock_timing *timing, const mock_gemm_point *points, size_t count,
                           const mock_work *work) {
  double fixed = timing->fixed_us * 1e-6, streaming = work->bytes / (timing->bw_core_gbps * 1e9);
  const mock_gemm_point *point = nearest(points, count, work);
  if (!point) return (mock_cost){fixed, compute_seconds(timing, work), streaming};
  double rest = scaled_seconds(timing, point, work);
  if (rest < 0) return (mock_cost){fixed + rest, 0, 0};
  /* What of it was streaming is not known: as much as the bandwidth asks for, so that neighbours share that. */
  return (mock_cost){fixed, rest, streaming < rest ? streaming : rest};
}

double mock_bind_seconds(const mock_timing *timing, bool native, double bytes) {
  double us = native ? timing->bind_native_us : timing->bind_norm_us * bytes / timing->bind_norm_bytes;
  return (native || us > timing->bind_native_us ? us : timing->bind_native_us) * 1e-6 * timing->scale;
}

double mock_sync_seconds(const mock_timing *timing, double bytes) {
  return (timing->sync_us * 1e-6 + bytes / (timing->sync_gbps * 1e9)) * timing->scale;
}
