/* SPDX-License-Identifier: Apache-2.0
 *
 * How far one dimension goes: doubled until something ends, then bisected on the grid of its alignment. */
#ifndef RKNPU_KIT_LIMIT_SEARCH_H
#define RKNPU_KIT_LIMIT_SEARCH_H

#include "limit_trial.h"

enum { MAX_TRIALS = 96 };

enum limit { LIMIT_ACCEPTED, LIMIT_RIGHT, LIMIT_FAST, LIMIT_COUNT };

struct line {
  struct problem base;     /* the other two dimensions stay as they are here */
  char dimension;          /* 'M', 'K' or 'N' */
  int cap;                 /* nothing above it is tried */
  int alignment;           /* found by trying; 0: no step up to 1024 was accepted */
  bool alignment_right;    /* a shape beside the base by just the alignment was computed right */
  char alignment_why[300]; /* why not */
  bool regular;            /* three steps of that size beside the base are accepted too */
  struct trial trials[MAX_TRIALS];
  int count;
};

/* Smallest power of two that the dimension may grow by from a multiple of 1024, by creating contexts. */
void line_find_alignment(struct session *session, struct line *line);
/* Fills trials. */
void line_search(struct session *session, struct line *line);

struct limit_found {
  int value;                  /* the largest that is accepted, right or fast; 0: not even the base */
  bool at_least;              /* nothing above it was found to end it: the cap did */
  const struct trial *beyond; /* the smallest that is not, or NULL */
};
struct limit_found line_limit(const struct line *line, enum limit limit);

/* Whether a trial holds. Fast: right, and the time per multiply-accumulate is within two times that of the best
 * smaller one. */
bool trial_holds(const struct line *line, const struct trial *trial, enum limit limit);

#endif
