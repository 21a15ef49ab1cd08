/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "isolate.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "stats.h"

void *isolate_shared(size_t bytes) {
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? NULL : memory;
}

static void become_child(pid_t parent) {
  const struct rlimit none = {0, 0};
  setpgid(0, 0);
  setrlimit(RLIMIT_CORE, &none);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127); /* it died before the line above */
}

struct child_end isolate_run(int (*function)(void *), void *argument, double deadline_s) {
  const struct timespec pause = {0, 1000000};
  const double start = now_us();
  const pid_t parent = getpid(), child = fork();
  struct child_end end = {.how = ENDED};
  int status = 0;
  if (child < 0) return (struct child_end){.how = NO_CHILD, .error = errno};
  if (child == 0) {
    become_child(parent);
    _exit(function(argument));
  }
  setpgid(child, child); /* both sides do it: whichever comes first */
  for (;;) {
    siginfo_t news = {0};
    const int got = waitid(P_PID, (id_t)child, &news, WEXITED | WNOHANG | WNOWAIT);
    if ((got == 0 && news.si_pid == child) || (got < 0 && errno != EINTR)) break;
    const double passed = now_us() - start - deadline_s * 1e6;
    if (end.how == ENDED && passed > 0) {
      end.how = TIMED_OUT;
      kill(-child, SIGKILL);
      kill(child, SIGKILL);
    }
    if (passed > 5e6) { /* not even SIGKILL ends a process that waits inside the driver */
      end.duration_us = now_us() - start;
      return end;
    }
    nanosleep(&pause, NULL);
  }
  kill(-child, SIGKILL); /* whatever it left behind; before it is reaped, while its group is surely its own */
  waitpid(child, &status, 0);
  end.duration_us = now_us() - start;
  if (end.how == ENDED && WIFSIGNALED(status)) {
    end.how = CRASHED;
    end.signal = WTERMSIG(status);
  } else if (end.how == ENDED) {
    end.exit_code = WEXITSTATUS(status);
  }
  return end;
}
