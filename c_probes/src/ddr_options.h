/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of the two CPU probes, ddr_stream and cpu_rate, from one table. */
#ifndef RKNPU_KIT_DDR_OPTIONS_H
#define RKNPU_KIT_DDR_OPTIONS_H

#include <stdbool.h>

#include "ddr_cpus.h"
#include "ddr_kernels.h"

enum { FOR_BANDWIDTH = 1, FOR_RATE = 2 };

enum { MAX_THREAD_COUNTS = 16 };

struct cpu_options {
  bool json, even, shared, clock; /* even, shared: ways to split work over CPUs; clock: measure each CPU's clock */
  double seconds;                 /* per row */
  struct cpu_groups groups;       /* count 0: find out */
  int threads[MAX_THREAD_COUNTS];
  int thread_count; /* 0: one, and one per CPU of the set */
  enum memory_op ops[OP_COUNT];
  int op_count;
  size_t array_bytes; /* 0: from the size of the caches */
};

enum cpu_options_result { CPU_OPTIONS_RUN, CPU_OPTIONS_HELP, CPU_OPTIONS_WRONG };

struct cpu_program {
  const char *name;
  int bit; /* FOR_... */
  const char *purpose;
};

/* HELP: it was written to stdout. WRONG: one sentence was written to stderr; exit with code 2. */
enum cpu_options_result cpu_options_parse(struct cpu_options *options, const struct cpu_program *program, int argc,
                                          char **argv);

/* Fills in the sets of CPUs that were not given and refuses those that this process may not use: false with one
 * sentence on stderr. */
bool cpu_options_settle(struct cpu_options *options, const struct cpu_program *program,
                        const struct cpu_group *allowed, bool each_policy);

#endif
