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

mock_cost mock_timing_cost(const mock_timing *timing, const mock_gemm_point *points, size_t count,
                           const mock_work *work) {
  mock_class class = mock_class_of(work->type->a);
  double macs = (double)work->M * work->K * work->N;
  double fixed = timing->fixed_us * 1e-6;
  const mock_gemm_point *point = nearest(points, count, work);
  if (point) {
    /* The measured time of that shape holds everything; scale the part above the fixed cost by the work. */
    double point_macs = (double)point->M * point->K * point->N;
    double measured = 2 * point_macs / (point->tops * 1e12);
    double moving = measured > fixed ? measured - fixed : 0;
    double rest = macs == point_macs ? measured - fixed : moving * macs / point_macs;
    /* What of it was streaming is not known: as much as the bandwidth asks for, so that neighbours share that. */
    double streaming = work->bytes / (timing->bw_core_gbps * 1e9);
    if (rest < 0) return (mock_cost){fixed + rest, 0, 0};
    return (mock_cost){fixed, rest, streaming < rest ? streaming : rest};
  }
  double compute = 2 * macs / (curve_at(&timing->rate[class][work->native], work->M) * 1e12);
  if (timing->k_cliff[class] > 0 && work->K > timing->k_cliff[class]) compute *= timing->k_cliff_factor;
  return (mock_cost){fixed, compute, work->bytes / (timing->bw_core_gbps * 1e9)};
}

double mock_bind_seconds(const mock_timing *timing, bool native, double bytes) {
  double us = native ? timing->bind_native_us : timing->bind_norm_us * bytes / timing->bind_norm_bytes;
  return (native || us > timing->bind_native_us ? us : timing->bind_native_us) * 1e-6 * timing->scale;
}

double mock_sync_seconds(const mock_timing *timing, double bytes) {
  return (timing->sync_us * 1e-6 + bytes / (timing->sync_gbps * 1e9)) * timing->scale;
}
