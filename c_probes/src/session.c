/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#include <stdarg.h>
#include <string.h>

#include "guard.h"

void session_start(struct session *session, const struct options *options, const struct program *program,
                   const struct column *columns, int column_count) {
  memset(session, 0, sizeof *session);
  session->options = options;
  session->step = guard_step_text();
  capture_start(&session->capture);
  session->output = (struct output){.out = session->capture.out,
                                    .err = session->capture.err,
                                    .json = options->json,
                                    .program = program->name,
                                    .columns = columns,
                                    .column_count = column_count};
  guard_signals(&session->capture, program->name);
}

bool session_open_library(struct session *session) {
  const char *kind = "";
  char why[4600];
  session_step(session, "load %s", session->options->library);
  if (runtime_may_open(session->options->library_named, &kind, why, sizeof why) &&
      runtime_open(&session->runtime, session->options->library, &kind, why, sizeof why)) return true;
  capture_flush(&session->capture);
  output_error(&session->output, kind, why);
  return false;
}

bool session_begin(struct session *session, struct options *options, const struct program *program,
                   const struct column *columns, int column_count, int argc, char **argv, int *exit_code) {
  switch (options_parse(options, program, argc, argv)) {
    case OPTIONS_HELP: return *exit_code = EXIT_FINE, false;
    case OPTIONS_WRONG: return *exit_code = EXIT_USAGE, false;
    case OPTIONS_RUN: break;
  }
  session_start(session, options, program, columns, column_count);
  guard_deadline(&session->output, &session->capture, options->deadline);
  if (session_open_library(session)) return true;
  *exit_code = session_end(session, EXIT_NOT_RUN);
  return false;
}

void session_step(struct session *session, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(session->step, STEP_SIZE, format, arguments);
  va_end(arguments);
  if (session->output.out) output_step(&session->output, session->step);
}

int session_end(struct session *session, int exit_code) {
  capture_flush(&session->capture);
  output_end(&session->output, exit_code);
  return exit_code;
}
