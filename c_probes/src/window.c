/* SPDX-License-Identifier: Apache-2.0 */
#include "window.h"

bool common_window(const struct burst *bursts, int count, double *window_us, double *runs_inside) {
  double from = 0, to = 0;
  *window_us = *runs_inside = 0;
  for (int i = 0; i < count; i++) {
    if (bursts[i].runs < 1) return false;
    const double last = bursts[i].ends_us[bursts[i].runs - 1];
    if (i == 0 || bursts[i].start_us > from) from = bursts[i].start_us;
    if (i == 0 || last < to) to = last;
  }
  if (count < 1 || to <= from) return false;
  for (int i = 0; i < count; i++) {
    double begin = bursts[i].start_us;
    for (int r = 0; r < bursts[i].runs; r++) {
      const double end = bursts[i].ends_us[r];
      const double low = begin > from ? begin : from, high = end < to ? end : to;
      if (high > low) *runs_inside += (high - low) / (end - begin);
      begin = end;
    }
  }
  *window_us = to - from;
  return true;
}

struct burst burst_settled(const struct burst *burst) {
  if (burst->runs < 2) return *burst;
  return (struct burst){burst->ends_us[0], burst->ends_us + 1, burst->runs - 1};
}
