/* SPDX-License-Identifier: Apache-2.0
 *
 * One shape tried: is it accepted, is it right, how fast is it per multiply-accumulate? */
#ifndef RKNPU_KIT_LIMIT_TRIAL_H
#define RKNPU_KIT_LIMIT_TRIAL_H

#include "parts.h"

struct trial {
  int value; /* of the dimension that is searched */
  bool accepted, right;
  bool known_right;  /* it was run; else only creation was tried */
  double ns_per_mac; /* the fastest of a few runs; NaN: not run, or wrong */
  char why[300];     /* why not accepted or not right */
  const char *verdict;
};

/* Creates the context; with `run` also binds, runs and compares it. */
void limit_try(struct session *session, const struct problem *problem, bool run, struct trial *trial);

#endif
