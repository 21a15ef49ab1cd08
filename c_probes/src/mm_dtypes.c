/* SPDX-License-Identifier: Apache-2.0
 *
 * mm_dtypes: which matmul type codes the runtime accepts, and whether their results are right. */
#include <string.h>

#include "dtype_trial.h"

static const char method[] =
    "Each type code from 0 to 20 in a child process of its own with a deadline. The child creates the smallest "
    "legal product and one of 65x512x256, native and norm, and where that is accepted binds, runs twice and "
    "compares every element of C with an exact oracle; inputs are small integers, so that the right result is "
    "exactly representable in every type. unsupported: refused with a code. crashed: the child was ended by the "
    "signal named, or ended itself by the exit() named.";

static const struct program program = {
    .name = "mm_dtypes",
    .bit = FOR_DTYPES,
    .purpose =
        "Tries which matmul type codes (0 to 20) the library accepts, each in a child process, and checks every\n"
        "element of what accepted ones return.",
    .deadline = 10,
};

static const struct column columns[] = {
    {"code", 4}, {"type", -23}, {"create", 6}, {"A B C", -25}, {"verdict", -13}};

struct job {
  struct session *session;
  struct dtype_shared *shared;
};

static int try_type(void *argument) {
  struct job *job = argument;
  return dtype_trials_run(job->session, job->shared);
}

/* What the parent must know of the library, which it never loads itself. */
struct first_look {
  bool returned; /* from loading; a library may also end the process there, with any code */
  char path[4096], version[256], kind[32], why[4600];
};

struct look_job {
  struct session *session;
  struct first_look *found;
};

static int look(void *argument) {
  struct look_job *job = argument;
  struct session *session = job->session;
  const char *kind = "";
  guard_no_signals();
  const bool opened =
      runtime_open(&session->runtime, session->options->library, &kind, job->found->why, sizeof job->found->why);
  capture_flush(&session->capture);
  snprintf(job->found->kind, sizeof job->found->kind, "%s", kind);
  snprintf(job->found->path, sizeof job->found->path, "%s", session->runtime.path);
  snprintf(job->found->version, sizeof job->found->version, "%s", session->runtime.version);
  job->found->returned = true;
  return opened ? 0 : EXIT_NOT_RUN;
}

/* False: reported. */
static bool look_at_library(struct session *session, struct first_look *found) {
  const char *kind = "";
  if (!runtime_may_open(session->options->library_named, &kind, found->why, sizeof found->why)) {
    output_error(&session->output, kind, found->why);
    return false;
  }
  struct look_job job = {session, found};
  char text[STEP_SIZE + 200], room[32];
  session_step(session, "load %s", session->options->library);
  const struct child_end end = isolate_run(look, &job, session->options->deadline);
  capture_flush(&session->capture);
  if (end.how == ENDED && end.exit_code == 0 && found->returned) return true;
  if (end.how == ENDED && found->kind[0]) {
    output_error(&session->output, found->kind, found->why);
    return false;
  }
  if (end.how == CRASHED)
    snprintf(text, sizeof text, "%.200s crashes while it is loaded (%s)", session->options->library,
             guard_signal_name(end.signal, room, sizeof room));
  else if (end.how == TIMED_OUT)
    snprintf(text, sizeof text, "%.200s was not loaded after %.0f s", session->options->library,
             session->options->deadline);
  else if (end.how == NO_CHILD)
    snprintf(text, sizeof text, "no child process can be started: %s", strerror(end.error));
  else
    snprintf(text, sizeof text, "%.200s ended the program while it was loaded (exit code %d)",
             session->options->library, end.exit_code);
  output_error(&session->output,
               end.how == CRASHED     ? "crashed"
               : end.how == TIMED_OUT ? "timed-out"
                                      : "not-loadable",
               text);
  return false;
}

static void report_type(struct session *session, struct dtype_shared *shared, int type, struct tally *tally) {
  struct job job = {session, shared};
  struct row row;
  char log[4000];
  row_init(&row, "dtype_support", "verdict");
  dtype_trials_plan(shared, type, session->options->seed);
  session_step(session, "type=%d in a child process", type);
  const struct child_end end = isolate_run(try_type, &job, session->options->deadline);
  capture_take(&session->capture, log, sizeof log); /* what the child could not put into a trial any more */
  dtype_row_fill(&row, shared, type, &end, log);
  output_row(&session->output, &row);
  tally_row(tally, &row);
  row_free(&row);
}

int main(int argc, char **argv) {
  static struct session session;
  static struct options options;
  struct tally tally = {0};
  switch (options_parse(&options, &program, argc, argv)) {
    case OPTIONS_HELP: return EXIT_FINE;
    case OPTIONS_WRONG: return EXIT_USAGE;
    case OPTIONS_RUN: break;
  }
  if (options.deadline <= 0) options.deadline = 86400;
  session_start(&session, &options, &program, columns, sizeof columns / sizeof columns[0]);
  struct first_look *found = isolate_shared(sizeof *found);
  struct dtype_shared *shared = isolate_shared(sizeof *shared);
  if (!found || !shared) {
    output_error(&session.output, "out-of-memory",
                 "no memory to share with child processes; free some and try again");
    return session_end(&session, EXIT_NOT_RUN);
  }
  if (!look_at_library(&session, found)) return session_end(&session, EXIT_NOT_RUN);
  const int rows = options.type_count ? options.type_count : 21;
  output_header(&session.output, found->path, found->version, options.seed, rows, method);
  for (int i = 0; i < rows; i++) report_type(&session, shared, options.type_count ? options.types[i] : i, &tally);
  return session_end(&session, tally_exit(&tally));
}
