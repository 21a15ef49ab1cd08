/* SPDX-License-Identifier: Apache-2.0
 *
 * What every part of a running probe needs: options, library, output, captured log, and the step under way. */
#ifndef RKNPU_KIT_SESSION_H
#define RKNPU_KIT_SESSION_H

#include "capture.h"
#include "options.h"
#include "output.h"
#include "runtime.h"

struct session {
  const struct options *options;
  struct output output;
  struct capture capture;
  struct runtime runtime;
  char *step; /* STEP_SIZE bytes: the breadcrumb that a signal handler, a watchdog or a parent process reads */
};

/* Output, capture, signals and deadline; nothing of the library yet. */
void session_start(struct session *session, const struct options *options, const struct program *program,
                   const struct column *columns, int column_count);
/* Opens the library. False: the reason has been reported; end with EXIT_NOT_RUN. */
bool session_open_library(struct session *session);
/* Both after the command line was read, with the deadline set: how a program of one session opens. False: `exit_code`
 * is what main returns (help was asked for, the command line is wrong, or there is no library to work with). */
bool session_begin(struct session *session, struct options *options, const struct program *program,
                   const struct column *columns, int column_count, int argc, char **argv, int *exit_code);
/* Says what comes next, before a call that could crash or hang. */
__attribute__((format(printf, 2, 3))) void session_step(struct session *session, const char *format, ...);
/* Hands on what the library logged last, writes the end record and returns exit_code. */
int session_end(struct session *session, int exit_code);

#endif
