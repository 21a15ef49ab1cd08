/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of the three probes, from one table. */
#ifndef RKNPU_KIT_OPTIONS_H
#define RKNPU_KIT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "names.h"

enum { MAX_SHAPES = 32, MAX_TYPES = 21, MAX_MASKS = 8 };

enum {
  FOR_PEAK = 1,
  FOR_CONCURRENT = 2,
  FOR_DTYPES = 4,
  FOR_COST = 8,
  FOR_LIMITS = 16,
  FOR_MASKS = 32,
  FOR_STREAM = 64,
  FOR_MEMORY = 128,
  FOR_GRID = 256,
  FOR_SOAK = 512,
  FOR_ALL = 1023
};

enum { MAX_PARTS = 8 };

enum choice {
  CHOICE_DEFAULT = 0,
  CHOICE_FIRST = 1,
  CHOICE_SECOND = 2,
  CHOICE_BOTH = 3
}; /* norm/native, layer/channel */

struct shape {
  int M, K, N;
};

struct options {
  const char *library;
  bool library_named; /* by --library; else the loader chooses */
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
  const struct program *program;
  const char *parts[MAX_PARTS]; /* names out of program->parts */
  int part_count;               /* 0: all */
  const char *load_file;        /* NULL: where the driver shows the load of its cores */
  int cpu_threads;              /* 0: one less than there are CPUs, at least one */
  int most;                     /* 0: the program's own bound on what it tries */
};

enum options_result { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_WRONG };

struct program {
  const char *name;
  int bit;                  /* FOR_... */
  const char *purpose;      /* first paragraph of --help */
  double deadline;          /* default of --deadline, in seconds */
  double seconds;           /* default of --seconds; 0: 1.0 */
  const char *const *parts; /* what --part may name, ended by NULL; NULL: it has no parts */
  const char *most;         /* what --most bounds, for --help */
};

/* HELP: --help or --version was answered on stdout. WRONG: one sentence was written to stderr; exit with code 2. */
enum options_result options_parse(struct options *options, const struct program *program, int argc, char **argv);

#endif
