/* SPDX-License-Identifier: Apache-2.0
 *
 * The modelled chip: cores with a first-in first-out queue each, and runs that slow each other down while they overlap.
 *
 * Progress is integrated over events (submission, completion), so that a run which has neighbours for half of its time
 * pays for that half. The chip's time is the monotonic clock; a host thread that computes or wakes late does not
 * lengthen anyone's run, because completions are worked out for the moment at which they happen.
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "settings.h"
#include "timing.h"

/* The last stretch before a deadline is spun: timers on a stock kernel are up to 50 us late. */
#define SPIN_SECONDS 80e-6

struct mock_job {
  mock_cost cost;
  double stretch; /* fault factor on the whole duration */
  double left;    /* fraction not done yet */
  double done_at;
  bool done;
  int core;
  mock_job *next; /* queue of the core */
};

static struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  pthread_once_t once;
  mock_job *head[MOCK_MAX_CORES], *tail[MOCK_MAX_CORES];
  double at;        /* the moment up to which progress is worked out */
  double first_run; /* 0 = none yet */
  uint64_t random;
} chip = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT, .random = 0x9e3779b97f4a7c15u};

static void chip_start(void) {
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&chip.changed, &monotonic);
  pthread_condattr_destroy(&monotonic);
}

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
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &early, NULL) == EINTR) {
    }
  }
  while (mock_now() < until) {
  }
}

/* Seconds that the whole job takes while `running` contexts run. */
static double duration(const mock_job *job, int running) {
  const mock_timing *timing = &mock_settings_get()->timing;
  double share = running <= 1 ? 1 : running == 2 ? timing->share2 : timing->share3;
  double crowd = running * timing->bw_core_gbps / timing->bw_shared_gbps;
  double compute = job->cost.compute / share, memory = job->cost.memory * (crowd > 1 ? crowd : 1);
  double total = job->cost.fixed + (compute > memory ? compute : memory);
  return (total > 1e-9 ? total : 1e-9) * job->stretch * timing->scale;
}

/* The earliest completion among running jobs, and how many run. INFINITY when none does. */
static double next_completion(int *running, int *core) {
  double best = INFINITY;
  *running = 0;
  for (int i = 0; i < MOCK_MAX_CORES; i++) *running += chip.head[i] != NULL;
  for (int i = 0; i < MOCK_MAX_CORES; i++) {
    if (!chip.head[i]) continue;
    double end = chip.at + chip.head[i]->left * duration(chip.head[i], *running);
    if (end < best) {
      best = end;
      *core = i;
    }
  }
  return best;
}

static void progress(double until, int running) {
  for (int i = 0; i < MOCK_MAX_CORES; i++) {
    mock_job *job = chip.head[i];
    if (!job) continue;
    double whole = duration(job, running);
    job->left = whole > 0 ? job->left - (until - chip.at) / whole : 0;
    if (job->left < 0) job->left = 0;
  }
  chip.at = until;
}

/* Brings the chip up to `now`. Returns whether a job ended. Lock held. */
static bool advance(double now) {
  bool ended = false;
  int running, core = 0;
  for (;;) {
    double end = next_completion(&running, &core);
    if (running == 0 || end > now) break;
    progress(end > chip.at ? end : chip.at, running);
    mock_job *job = chip.head[core];
    chip.head[core] = job->next;
    if (!job->next) chip.tail[core] = NULL;
    job->done = ended = true;
    job->done_at = end;
  }
  if (now > chip.at) progress(now, running);
  return ended;
}

/* The core of a mask, or for AUTO an idle one, else the one with the shortest queue. Lock held. */
static int pick_core(unsigned mask) {
  if (mock_fault(FAULT_CONTEXTS_SERIALISED)) return 0;
  int best = 0, best_length = 1 << 30;
  for (int i = 0; i < mock_settings_get()->soc->cores; i++) {
    int length = 0;
    for (mock_job *job = chip.head[i]; job; job = job->next) length++;
    if (mask & (1u << i)) return i;
    if (length < best_length) {
      best = i;
      best_length = length;
    }
  }
  return best;
}

/* Factor that the speed faults put on a run which starts now. Lock held. */
static double stretch_of(const mock_work *work, double now) {
  const mock_fault_state *fault;
  double factor = 1;
  if ((fault = mock_fault(FAULT_SLOW_K)) && work->K > fault->value[0]) factor *= fault->value[1];
  if ((fault = mock_fault(FAULT_SLOW_NORM)) && !work->native) factor *= fault->value[0];
  if ((fault = mock_fault(FAULT_CLOCK_LOW)) && fault->value[0] > 0) factor /= fault->value[0];
  if ((fault = mock_fault(FAULT_JITTER))) {
    chip.random = chip.random * 6364136223846793005u + 1442695040888963407u;
    factor *= 1 + fault->value[0] / 100 * (double)(chip.random >> 40) / (double)(1u << 24);
  }
  if ((fault = mock_fault(FAULT_THERMAL))) {
    double warm = now - chip.first_run - fault->value[0];
    double part = warm <= 0 ? 0 : fault->value[1] > 0 && warm < fault->value[1] ? warm / fault->value[1] : 1;
    factor /= 1 - part * (1 - (fault->value[2] > 0 ? fault->value[2] : 1e-6));
  }
  return factor;
}

mock_job *mock_job_begin(const mock_work *work) {
  const mock_settings *settings = mock_settings_get();
  mock_job *job = settings->timing_on ? calloc(1, sizeof *job) : NULL;
  if (!job) return NULL;
  pthread_once(&chip.once, chip_start);
  job->cost = mock_timing_cost(&settings->timing, work);
  job->left = 1;
  pthread_mutex_lock(&chip.lock);
  double now = mock_now();
  if (chip.first_run == 0) chip.first_run = now;
  if (chip.at == 0) chip.at = now;
  advance(now);
  job->stretch = stretch_of(work, now);
  job->core = pick_core(work->mask);
  if (chip.tail[job->core])
    chip.tail[job->core]->next = job;
  else
    chip.head[job->core] = job;
  chip.tail[job->core] = job;
  pthread_cond_broadcast(&chip.changed);
  pthread_mutex_unlock(&chip.lock);
  return job;
}

void mock_job_end(mock_job *job) {
  if (!job) return;
  int running, core;
  pthread_mutex_lock(&chip.lock);
  for (;;) {
    double now = mock_now();
    if (advance(now)) pthread_cond_broadcast(&chip.changed);
    if (job->done) break;
    double next = next_completion(&running, &core);
    if (next - now > SPIN_SECONDS) {
      struct timespec early = as_timespec(next - SPIN_SECONDS);
      pthread_cond_timedwait(&chip.changed, &chip.lock, &early);
    } else {
      pthread_mutex_unlock(&chip.lock);
      sched_yield();
      pthread_mutex_lock(&chip.lock);
    }
  }
  pthread_mutex_unlock(&chip.lock);
  free(job);
}
