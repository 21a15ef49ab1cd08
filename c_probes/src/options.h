/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of the three probes, from one table. */
#ifndef RKNPU_KIT_OPTIONS_H
#define RKNPU_KIT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "names.h"

enum { MAX_SHAPES = 32, MAX_TYPES = 21, MAX_MASKS = 8 };

enum { FOR_PEAK = 1, FOR_CONCURRENT = 2, FOR_DTYPES = 4, FOR_ALL = 7 };

enum choice { CHOICE_DEFAULT = 0, CHOICE_FIRST = 1, CHOICE_SECOND = 2, CHOICE_BOTH = 3 }; /* norm/native, layer/channel */

struct shape {
  int M, K, N;
};

struct options {
  const char *library;
  bool json, quick;
  double seconds, deadline, rated_tops; /* rated_tops 0: not given */
  uint64_t seed;
  struct shape shapes[MAX_SHAPES];
  int shape_count;
  int types[MAX_TYPES];
  int type_count;
  enum choice layout, ac_layout, quant;
  int core_mask;
  int masks[MAX_MASKS];
  int mask_count; /* 0: find out */
  int cores;      /* 0: all that are found */
};

enum options_result { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_WRONG };

struct program {
  const char *name;
  int bit;             /* FOR_... */
  const char *purpose; /* first paragraph of --help */
  double deadline;     /* default of --deadline, in seconds */
};

/* HELP: --help or --version was answered on stdout. WRONG: one sentence was written to stderr; exit with code 2. */
enum options_result options_parse(struct options *options, const struct program *program, int argc, char **argv);

#endif
