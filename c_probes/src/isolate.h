/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a function in a child process with a deadline. What the child wrote into shared memory stays readable whatever
 * became of it. */
#ifndef RKNPU_KIT_ISOLATE_H
#define RKNPU_KIT_ISOLATE_H

#include <stdbool.h>
#include <stddef.h>

enum ending { ENDED, CRASHED, TIMED_OUT, NO_CHILD };

struct child_end {
  enum ending how;
  int exit_code; /* ENDED */
  int signal;    /* CRASHED */
  int error;     /* NO_CHILD: errno of fork */
  double duration_us;
};

/* Zeroed memory that a child shares with its parent; NULL when there is none. */
void *isolate_shared(size_t bytes);

/* The child gets a process group of its own, no core dump, and dies with its parent. At the deadline its whole group is
 * killed. The function's return value is its exit code. */
struct child_end isolate_run(int (*function)(void *), void *argument, double deadline_s);

#endif
