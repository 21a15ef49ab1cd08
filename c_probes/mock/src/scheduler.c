/* SPDX-License-Identifier: Apache-2.0
 *
 * The modelled chip in real time: one chip per process, driven by the monotonic clock, and the waiting of the threads
 * that submitted runs to it. A host thread that computes or wakes late does not lengthen anyone else's run.
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "chip.h"
#include "fork_safe.h"
#include "settings.h"
#include "timing.h"

/* The last stretch before a deadline is spun: with the least slack, timers of a virtual machine are still up to 55 us
 * late (1 in 100). */
#define SPIN_SECONDS 80e-6

/* A thread's timers may be late by its slack, 50 us by default; with that, half the sleeps of a virtual machine end
 * more than 80 us late. While a modelled time is waited for the slack is the least there is; then the caller has its
 * own back. */
static unsigned long slack_take(void) {
  const int own = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
  prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);
  return own > 0 ? (unsigned long)own : 0; /* 0 sets the default of the process */
}

static void slack_give_back(unsigned long own) { prctl(PR_SET_TIMERSLACK, own, 0, 0, 0); }

static struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  pthread_once_t once;
  mock_chip chip;
  double first_run; /* 0 = none yet */
  uint64_t random;
} device = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT, .random = 0x9e3779b97f4a7c15u};

static void device_start(void) {
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&device.changed, &monotonic);
  pthread_condattr_destroy(&monotonic);
}

/* The parent's waiters are not in the child: a new condition, where there was one. */
MOCK_FORK_SAFE(device.lock, if (device.first_run != 0) device_start())

double mock_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static struct timespec as_timespec(double seconds) {
  struct timespec value;
  value.tv_sec = (time_t)floor(seconds);
  value.tv_nsec = (long)((seconds - floor(seconds)) * 1e9);
  if (value.tv_nsec > 999999999) value.tv_nsec = 999999999;
  return value;
}

void mock_wait_until(double until) {
  if (until - mock_now() > SPIN_SECONDS) {
    struct timespec early = as_timespec(until - SPIN_SECONDS);
    const unsigned long slack = slack_take();
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &early, NULL) == EINTR) {
    }
    slack_give_back(slack);
  }
  while (mock_now() < until) {
  }
}

/* Factor that the speed faults put on a run which starts now. Lock held. */
static double stretch_of(const mock_work *work, double now) {
  const mock_fault_state *fault;
  double factor = 1;
  if ((fault = mock_fault(FAULT_SLOW_K)) && work->K > fault->value[0]) factor *= fault->value[1];
  if ((fault = mock_fault(FAULT_SLOW_NORM)) && !work->native) factor *= fault->value[0];
  if ((fault = mock_fault(FAULT_CLOCK_LOW)) && fault->value[0] > 0) factor /= fault->value[0];
  if ((fault = mock_fault(FAULT_JITTER))) {
    device.random = device.random * 6364136223846793005u + 1442695040888963407u;
    factor *= 1 + fault->value[0] / 100 * (double)(device.random >> 40) / (double)(1u << 24);
  }
  if ((fault = mock_fault(FAULT_THERMAL))) {
    double warm = now - device.first_run - fault->value[0];
    double part = warm <= 0 ? 0 : fault->value[1] > 0 && warm < fault->value[1] ? warm / fault->value[1] : 1;
    factor /= 1 - part * (1 - (fault->value[2] > 0 ? fault->value[2] : 1e-6));
  }
  return factor > 0 ? factor : 0;
}

mock_job *mock_job_begin(const mock_work *work) {
  const mock_settings *settings = mock_settings_get();
  mock_job *job = settings->timing_on ? calloc(1, sizeof *job) : NULL;
  if (!job) return NULL;
  pthread_once(&device.once, device_start);
  job->cost = mock_timing_cost(&settings->timing, settings->points, settings->point_count, work);
  pthread_mutex_lock(&device.lock);
  double now = mock_now();
  if (device.first_run == 0) device.first_run = device.chip.at = now;
  mock_chip_advance(&device.chip, &settings->timing, now);
  job->stretch = stretch_of(work, now);
  bool serialised = mock_fault(FAULT_CONTEXTS_SERIALISED) != NULL;
  int core = serialised ? 0 : mock_chip_pick_core(&device.chip, settings->soc->cores, work->mask);
  mock_chip_submit(&device.chip, job, core);
  pthread_cond_broadcast(&device.changed);
  pthread_mutex_unlock(&device.lock);
  return job;
}

void mock_job_end(mock_job *job) {
  if (!job) return;
  const mock_timing *timing = &mock_settings_get()->timing;
  unsigned long slack = 0;
  bool slept = false; /* a run too short to sleep does not pay for the calls that set the slack */
  pthread_mutex_lock(&device.lock);
  for (;;) {
    double now = mock_now();
    if (mock_chip_advance(&device.chip, timing, now)) pthread_cond_broadcast(&device.changed);
    if (job->done) break;
    /* At someone else's end this job's own prospects change, so that is a moment to wake too, but not one to spin for. */
    double next = mock_chip_next(&device.chip, timing);
    double margin = mock_chip_end(&device.chip, timing, job) <= next ? SPIN_SECONDS : 0;
    if (next - now > margin) {
      struct timespec early = as_timespec(next - margin);
      if (!slept) slack = slack_take();
      slept = true;
      pthread_cond_timedwait(&device.changed, &device.lock, &early);
    } else {
      pthread_mutex_unlock(&device.lock);
      sched_yield();
      pthread_mutex_lock(&device.lock);
    }
  }
  pthread_mutex_unlock(&device.lock);
  if (slept) slack_give_back(slack);
  free(job);
}
