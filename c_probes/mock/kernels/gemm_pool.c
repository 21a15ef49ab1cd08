/* SPDX-License-Identifier: Apache-2.0
 *
 * Worker threads that outlive a call. The caller works too and takes tasks from the same counter, so a worker
 * that wakes late, or never, costs nothing but its help; several callers may have jobs open at once.
 */
#include "gemm_pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

enum { MAX_WORKERS = 64, SPIN_NS = 50000 };

struct job {
    gemm_task *task;
    void *context;
    size_t tasks;
    atomic_size_t next;   /* next task to take */
    atomic_uint active;   /* workers inside; changed under pool.lock only */
    unsigned wanted;      /* workers that may still join; under pool.lock */
    struct job *link;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    struct job *jobs;      /* open jobs, newest first */
    atomic_uint posted;    /* counts jobs opened: what an idle worker watches before it sleeps */
    unsigned sleeping, workers;
    int stop;
    pthread_t thread[MAX_WORKERS];
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};

static void before_fork(void)
{
    pthread_mutex_lock(&pool.lock);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&pool.lock);
}

/* The child has none of the workers, and none of the other threads whose jobs were open. */
static void after_fork_in_child(void)
{
    pool.jobs = NULL;
    pool.workers = pool.sleeping = 0;
    pthread_cond_init(&pool.work, NULL);
    pthread_cond_init(&pool.done, NULL);
    pthread_mutex_init(&pool.lock, NULL);
}

/* At load, not at first use: a child forked during a pthread_once would wait for it in some C libraries. */
__attribute__((constructor)) static void install_fork_hooks(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

static void drain(struct job *job)
{
    for (;;) {
        size_t i = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed);
        if (i >= job->tasks)
            return;
        job->task(job->context, i);
    }
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Waits a moment for *word to differ from (or, with `until`, to equal) value: sleeping and waking costs tens of
 * microseconds, as much as a small product. The second half of the moment leaves the CPU to whoever wants it. */
static void spin(atomic_uint *word, unsigned value, int until)
{
    for (int64_t begin = now_ns(), spent = 0; spent < SPIN_NS; spent = now_ns() - begin) {
        for (int i = 0; i < 32; i++, relax())
            if ((atomic_load_explicit(word, memory_order_acquire) == value) == until)
                return;
        if (spent > SPIN_NS / 2)
            sched_yield();
    }
}

static struct job *job_to_join(void)
{
    struct job *job = pool.jobs;
    while (job && !job->wanted)
        job = job->link;
    return job;
}

static void *worker(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&pool.lock);
    for (int rested = 0;;) {
        struct job *job = job_to_join();
        if (job) {
            job->wanted--;
            atomic_fetch_add(&job->active, 1);
            pthread_mutex_unlock(&pool.lock);
            drain(job);
            pthread_mutex_lock(&pool.lock);
            if (atomic_fetch_sub(&job->active, 1) == 1)
                pthread_cond_broadcast(&pool.done);
            rested = 0;
        } else if (pool.stop) {
            break;
        } else if (!rested) {
            unsigned seen = atomic_load(&pool.posted);
            pthread_mutex_unlock(&pool.lock);
            spin(&pool.posted, seen, 0);
            pthread_mutex_lock(&pool.lock);
            rested = 1;
        } else {
            pool.sleeping++;
            pthread_cond_wait(&pool.work, &pool.lock);
            pool.sleeping--;
        }
    }
    pthread_mutex_unlock(&pool.lock);
    return NULL;
}

/* Starts workers until there is one for every open place (under pool.lock). Signals stay with the program's own
 * threads. */
static void hire(void)
{
    unsigned places = 0;
    for (struct job *job = pool.jobs; job; job = job->link)
        places += job->wanted + atomic_load(&job->active);
    if (places <= pool.workers)
        return;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    while (pool.workers < places && pool.workers < MAX_WORKERS &&
           !pthread_create(&pool.thread[pool.workers], NULL, worker, NULL))
        pool.workers++;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void close_job(struct job *job)
{
    struct job **at = &pool.jobs;
    while (*at && *at != job)
        at = &(*at)->link;
    if (*at)
        *at = job->link;
    while (atomic_load(&job->active))
        pthread_cond_wait(&pool.done, &pool.lock);
}

void gemm_pool_run(gemm_task *task, void *context, size_t tasks, int threads)
{
    struct job job = {.task = task, .context = context, .tasks = tasks};
    if (threads < 2 || tasks < 2) {
        drain(&job);
        return;
    }
    job.wanted = (size_t)threads < tasks ? (unsigned)threads - 1 : (unsigned)tasks - 1;
    if (job.wanted > MAX_WORKERS)
        job.wanted = MAX_WORKERS;
    pthread_mutex_lock(&pool.lock);
    if (!pool.stop) {
        job.link = pool.jobs;
        pool.jobs = &job;
        hire();
        atomic_fetch_add(&pool.posted, 1);
        if (pool.sleeping)
            pthread_cond_broadcast(&pool.work);
    }
    pthread_mutex_unlock(&pool.lock);
    drain(&job);
    spin(&job.active, 0, 1);
    pthread_mutex_lock(&pool.lock);
    close_job(&job);
    pthread_mutex_unlock(&pool.lock);
}

/* At exit and, more to the point, at dlclose: no worker may be left running code that is about to be unmapped. */
__attribute__((destructor)) static void dismiss_workers(void)
{
    pthread_mutex_lock(&pool.lock);
    unsigned workers = pool.workers;
    pool.stop = 1;
    pool.workers = 0;
    pthread_cond_broadcast(&pool.work);
    pthread_mutex_unlock(&pool.lock);
    for (unsigned i = 0; i < workers; i++)
        pthread_join(pool.thread[i], NULL);
}
