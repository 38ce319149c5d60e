/* SPDX-License-Identifier: MIT */
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <strings.h>

#include <weft/internal/runtime.h>
#include <weft/internal/wait.h>
#include <weft/runtime.h>

#include "hold.h"
#include "races.h"

/* About half a millisecond. A thread that waits longer, while its holder reads a file, say, sleeps, and has to be woken. */
enum { SPINS = 20000 };

/* Who set OMP_WAIT_POLICY=passive wants no thread to spin. */
static int spins_wanted(void)
{
    const char *policy = getenv("OMP_WAIT_POLICY");
    return policy && strcasecmp(policy, "passive") == 0 ? 0 : SPINS;
}

struct hold {
    void (*body)(void *ctx); /* of the holder */
    void *body_ctx;
    void (*job)(void *ctx, int thread);
    void *ctx;
    int threads, spins;
    pthread_mutex_t mutex;
    pthread_cond_t called;
    _Alignas(64) _Atomic unsigned number; /* of the job; raised when `job` and `ctx` are there. Without a job the hold is over. */
    _Atomic int asleep;
    _Alignas(64) _Atomic int left; /* threads that have not ended the job */
};

static _Thread_local struct hold *mine;

struct hold *hold_mine(void)
{
    return mine;
}

bool hold_spins(const struct hold *h)
{
    return h->spins > 0;
}

static void call(struct hold *h)
{
    atomic_fetch_add(&h->number, 1);
    if (atomic_load(&h->asleep) == 0)
        return;
    pthread_mutex_lock(&h->mutex);
    pthread_cond_broadcast(&h->called);
    pthread_mutex_unlock(&h->mutex);
}

/* A thread counts itself as asleep before it looks at the number for the last time, and the holder raises the number before it looks who
 * sleeps: one of them sees the other. */
static void sleep_until_called(struct hold *h, unsigned seen)
{
    pthread_mutex_lock(&h->mutex);
    atomic_fetch_add(&h->asleep, 1);
    while (atomic_load(&h->number) == seen)
        pthread_cond_wait(&h->called, &h->mutex);
    atomic_fetch_sub(&h->asleep, 1);
    pthread_mutex_unlock(&h->mutex);
}

static void serve(struct hold *h, int thread)
{
    for (unsigned seen = 0;; seen++) {
        for (int spins = 0; atomic_load_explicit(&h->number, memory_order_acquire) == seen; spins++)
            if (spins < h->spins)
                wf_wait_a_moment();
            else
                sleep_until_called(h, seen);
        if (!h->job)
            return;
        h->job(h->ctx, thread);
        atomic_fetch_sub_explicit(&h->left, 1, memory_order_release);
    }
}

void hold_run(struct hold *h, void (*job)(void *ctx, int thread), void *ctx)
{
    h->job = job;
    h->ctx = ctx;
    atomic_store_explicit(&h->left, h->threads - 1, memory_order_relaxed);
    call(h);
    mine = NULL;
    job(ctx, 0);
    mine = h;
    for (int spins = 0; atomic_load_explicit(&h->left, memory_order_acquire) > 0; spins++)
        wf_wait(spins);
}

static void member(struct hold *h, int thread, int threads)
{
    comes_after(h);
    if (thread > 0) {
        serve(h, thread);
    } else {
        h->threads = threads;
        mine = h;
        h->body(h->body_ctx);
        mine = NULL;
        h->job = NULL;
        call(h);
    }
    comes_before(h);
}

HANDED_OVER static void run(struct hold *h, int threads)
{
#pragma omp parallel num_threads(threads)
    member(h, omp_get_thread_num(), omp_get_num_threads());
}

void wf_hold_threads(void (*body)(void *ctx), void *ctx)
{
    const int threads = wf_parallel_threads();
    if (threads < 2 || threads > wf_processors() || wf_parallel_inside() || mine) {
        body(ctx);
        return;
    }
    struct hold h = {
        .body = body, .body_ctx = ctx, .spins = spins_wanted(), .mutex = PTHREAD_MUTEX_INITIALIZER, .called = PTHREAD_COND_INITIALIZER};
    comes_before(&h);
    run(&h, threads);
    comes_after(&h);
}
