/* SPDX-License-Identifier: Apache-2.0
 *
 * What one type code does: a child tries a few small products and leaves what it saw in shared memory. */
#ifndef RKNPU_KIT_DTYPE_TRIAL_H
#define RKNPU_KIT_DTYPE_TRIAL_H

#include "guard.h"
#include "isolate.h"
#include "matmul.h"

enum { MAX_TRIALS = 6 };

struct trial {
  struct problem problem;
  bool begun, done;
  double run_us;   /* of the second run; 0: none */
  struct matmul m; /* its pointers belong to the child; verdict points to text both processes have */
};

struct dtype_shared {
  char step[STEP_SIZE];
  bool returned; /* the child came back from the library; else the library ended the process itself */
  int count;
  struct trial trials[MAX_TRIALS];
};

/* The products to try for a code: the smallest legal one and a medium one with odd M, each native and norm. */
void dtype_trials_plan(struct dtype_shared *shared, int type, uint64_t seed);

/* In the child: library, then each trial. Its exit code is 0 when it got through, 3 when the library did not open. */
int dtype_trials_run(struct session *session, struct dtype_shared *shared);

/* In the parent: verdict, reason, evidence and cells from what is there. log: captured text not yet in a trial. */
void dtype_row_fill(struct row *row, const struct dtype_shared *shared, int type, const struct child_end *end,
                    const char *log);

#endif
