/* SPDX-License-Identifier: Apache-2.0 */
#include "guard.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Global because a signal handler gets no argument; set once before the first signal can come. */
static struct {
  char step[STEP_SIZE];
  const struct capture *capture;
  const char *program;
} guard;

struct deadline {
  struct output *output;
  struct capture *capture;
  struct timespec length;
};

char *guard_step_text(void) { return guard.step; }

static void say(const char *text) {
  const ssize_t done = write(guard.capture->err_fd, text, strlen(text));
  (void)done; /* nothing can be done about a stderr that is gone */
}

static const struct {
  int number;
  bool watched;
  const char *name;
} signals[] = {{SIGSEGV, true, "SIGSEGV"}, {SIGBUS, true, "SIGBUS"},    {SIGILL, true, "SIGILL"},
               {SIGFPE, true, "SIGFPE"},   {SIGABRT, true, "SIGABRT"},  {SIGTERM, true, "SIGTERM"},
               {SIGKILL, false, "SIGKILL"}, {SIGTRAP, false, "SIGTRAP"}, {SIGSYS, false, "SIGSYS"},
               {SIGPIPE, false, "SIGPIPE"}, {SIGINT, false, "SIGINT"},   {SIGALRM, false, "SIGALRM"}};

const char *guard_signal_name(int number, char *room, size_t size) {
  for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
    if (signals[i].number == number) return signals[i].name;
  snprintf(room, size, "signal %d", number);
  return room;
}

static void last_words(int number) {
  capture_dump(guard.capture);
  say(guard.program);
  say(": ended by ");
  for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
    if (signals[i].number == number) say(signals[i].name);
  say(" during step: ");
  say(guard.step[0] ? guard.step : "start");
  say("\n");
  raise(number); /* SA_RESETHAND has put the default action back */
}

static void act(void (*handler)(int)) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  action.sa_flags = (int)(SA_RESETHAND | SA_NODEFER);
  for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
    if (signals[i].watched) sigaction(signals[i].number, &action, NULL);
}

void guard_signals(const struct capture *capture, const char *program) {
  guard.capture = capture;
  guard.program = program;
  act(last_words);
}

void guard_no_signals(void) { act(SIG_DFL); }

static void *wait_for_deadline(void *argument) {
  const struct deadline *deadline = argument;
  char text[STEP_SIZE + 160];
  nanosleep(&deadline->length, NULL);
  capture_dump(deadline->capture);
  snprintf(text, sizeof text, "not done after %ld s (--deadline); the step under way is: %s",
           (long)deadline->length.tv_sec, guard.step[0] ? guard.step : "start");
  output_error(deadline->output, "timed-out", text);
  output_end(deadline->output, EXIT_NOT_RUN);
  _exit(EXIT_NOT_RUN);
}

void guard_deadline(struct output *output, struct capture *capture, double seconds) {
  static struct deadline deadline; /* read by the thread for as long as the program lives */
  pthread_t thread;
  if (!(seconds > 0)) return;
  deadline = (struct deadline){.output = output, .capture = capture};
  deadline.length.tv_sec = (time_t)seconds;
  deadline.length.tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9);
  if (pthread_create(&thread, NULL, wait_for_deadline, &deadline) == 0) pthread_detach(thread);
}
