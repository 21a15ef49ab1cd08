/* SPDX-License-Identifier: Apache-2.0
 *
 * How much work several contexts did while all of them were working. */
#ifndef RKNPU_KIT_WINDOW_H
#define RKNPU_KIT_WINDOW_H

#include <stdbool.h>

/* The runs of one context in one burst: the first began at start_us, run i ended, and run i + 1 began, at
 * ends_us[i]. */
struct burst {
  double start_us;
  const double *ends_us;
  int runs;
};

/* The common window lasts from the latest start to the earliest last end. Counts the runs done in it over all
 * bursts; a run that stands across its edge counts by the share of its time inside. False when the bursts do not
 * overlap. */
bool common_window(const struct burst *bursts, int count, double *window_us, double *runs_inside);

/* The same burst from the end of its first run on, where it has more than one. A run that waited in a queue for others
 * counts by its time, the waiting included; at the beginning of a burst, when a queue fills, that would make contexts
 * that work one after the other look faster than one alone. */
struct burst burst_settled(const struct burst *burst);

#endif
