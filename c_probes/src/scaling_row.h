/* SPDX-License-Identifier: Apache-2.0
 *
 * The row that mm_concurrent reports for n contexts. */
#ifndef RKNPU_KIT_SCALING_ROW_H
#define RKNPU_KIT_SCALING_ROW_H

#include "crew.h"

struct scaling_row {
  struct row row;
  double window_us[MAX_SAMPLES], overlap[MAX_SAMPLES]; /* overlap: common window / first start to last end */
  double context_us[MAX_MASKS][MAX_SAMPLES];           /* per run */
  int lone_bursts; /* bursts in which the contexts did not overlap; sampling began anew after each */
  double scaling;                                      /* against one context */
};

/* Parameters, evidence and cells, once verdict, rates and times are in. one_tops: NaN when n = 1 brought no rate;
 * rated_tops: 0 when not known. */
void scaling_row_fill(struct scaling_row *result, const struct worker *workers, int count, double one_tops,
                      double rated_tops);

#endif
