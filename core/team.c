/* SPDX-License-Identifier: MIT */
/* A job is posted in one word, the ticket: the job's number and the number of workers it still admits. A worker that sees a new number
 * takes an admission by a compare-and-swap, works, and is counted out. The caller works too, then sets the admissions to 0 and waits for
 * the admitted workers. A worker that wakes up late, because another program has its processor, delays nobody and reads nothing of a job
 * that is over.
 *
 * The workers are POSIX threads. OpenMP's would not do: libgomp's threads can't be joined before dlclose, a child of fork() hangs at their
 * barrier, and libgomp ends the process if the system refuses a thread. OMP_PROC_BIND and OMP_PLACES place the workers too. */
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <weft/internal/minmax.h>
#include <weft/internal/runtime.h>
#include <weft/internal/scratch.h>
#include <weft/internal/shares.h>
#include <weft/internal/wait.h>
#include <weft/runtime.h>

#include "team.h"

enum { ADMITTED = 0x3ff, NUMBER = ADMITTED + 1 }; /* parts of the ticket: admissions, enough for all workers; the job's number */

static struct {
    /* what a worker reads of a job, in one cache line */
    _Alignas(64) _Atomic uint32_t ticket;
    _Atomic uint32_t asleep;
    team_job *job; /* NULL ends the workers */
    void *ctx;
    int workers, wanted;                  /* that run; that wf_set_threads asked for. Written by the caller that has the team */
    bool tried, crowded;                  /* a start was tried; there are more threads than processors */
    _Alignas(64) struct wf_countdown out; /* admitted workers that have not ended their job */
    pthread_t thread[WF_MAX_THREADS];
} team;

/* Held by the caller whose job runs. */
static pthread_mutex_t taken = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool inside;

bool team_inside(void)
{
    return inside;
}

/* ---- workers -------------------------------------------------------------------------------------------------------- */

static uint32_t number_of(uint32_t ticket)
{
    return ticket & ~(uint32_t)ADMITTED;
}

/* Waits for a job with another number than `seen`, the last one. The worker increments `asleep`, then reads the ticket; the caller writes
 * the ticket, then reads `asleep`. Both are seq_cst, so at least one sees the other's write and no wake-up is lost. */
static uint32_t next_ticket(uint32_t seen)
{
    if (team.crowded || !wf_spin_until(&team.ticket, ~(uint32_t)ADMITTED, false, seen)) {
        atomic_fetch_add(&team.asleep, 1);
        for (uint32_t t; number_of(t = atomic_load(&team.ticket)) == seen;)
            wf_futex_wait(&team.ticket, t);
        atomic_fetch_sub(&team.asleep, 1);
    }
    return atomic_load_explicit(&team.ticket, memory_order_acquire);
}

/* Takes an admission to the job of *ticket; false: none is left. *ticket becomes the newest value read. */
static bool admitted(uint32_t *ticket)
{
    while (*ticket & ADMITTED)
        if (atomic_compare_exchange_weak_explicit(&team.ticket, ticket, *ticket - 1, memory_order_acq_rel, memory_order_acquire))
            return true;
    return false;
}

/* A worker that has run for a while offers its processor to other programs between two jobs, when nobody waits for it. Otherwise the system
 * takes the processor away later, often in the middle of a block, and the caller waits for milliseconds: beside two busy programs a step of
 * encoder-attention and generation took 1.5 times as long. The call costs 0.3 microseconds if no program waits. */
static void offer_processor(int64_t *since)
{
    enum { OFFER_NS = 200000 };
    if (wf_nanoseconds() - *since < OFFER_NS)
        return;
    sched_yield();
    *since = wf_nanoseconds();
}

static void *worker(void *index)
{
    int64_t since = 0;
    inside = true;
    wf_scratch_get_ready(); /* the blocks that earlier teams used */
    for (uint32_t ticket = 0;;) {
        if (number_of(atomic_load_explicit(&team.ticket, memory_order_relaxed)) == number_of(ticket))
            offer_processor(&since);
        ticket = next_ticket(number_of(ticket));
        if (!admitted(&ticket))
            continue;
        team_job *job = team.job;
        if (job)
            job(team.ctx, (int)(intptr_t)index);
        wf_countdown_add(&team.out, -1);
        if (!job)
            return NULL;
    }
}

/* ---- jobs ----------------------------------------------------------------------------------------------------------- */

static void post(int admissions, team_job *job, void *ctx)
{
    team.job = job;
    team.ctx = ctx;
    const uint32_t number = number_of(atomic_load_explicit(&team.ticket, memory_order_relaxed)) + NUMBER;
    atomic_store(&team.ticket, number | (uint32_t)admissions);
    const int asleep = (int)atomic_load(&team.asleep), spinning = team.workers - asleep;
    if (asleep > 0 && admissions > spinning)
        wf_futex_wake(&team.ticket, admissions - spinning);
}

static void every_worker(team_job *job, void *ctx)
{
    post(team.workers, job, ctx);
    if (wf_countdown_add(&team.out, team.workers) > 0)
        wf_countdown_wait(&team.out);
}

static void nothing(void *ctx, int worker)
{
    (void)ctx, (void)worker;
}

/* Job numbers repeat after 2^22 jobs. A worker that slept through all of them would miss the next job, so every worker gets an empty job
 * once in 2^20. */
static void renew_numbers(void)
{
    if ((atomic_load_explicit(&team.ticket, memory_order_relaxed) / NUMBER + 1) % (1 << 20) == 0)
        every_worker(nothing, NULL);
}

void team_run(int helpers, team_job *job, void *ctx)
{
    helpers = WF_MIN(helpers, team.workers);
    inside = true;
    renew_numbers();
    post(helpers, job, ctx);
    job(ctx, 0);
    const uint32_t closed = number_of(atomic_load_explicit(&team.ticket, memory_order_relaxed));
    const int came = helpers - (int)(atomic_exchange(&team.ticket, closed) & ADMITTED);
    if (came > 0 && wf_countdown_add(&team.out, came) > 0)
        wf_countdown_wait(&team.out);
    inside = false;
}

void team_run_all(team_job *job, void *ctx)
{
    inside = true;
    job(ctx, 0);
    if (team.workers > 0)
        every_worker(job, ctx);
    inside = false;
}

/* ---- the life of the team ------------------------------------------------------------------------------------------- */

/* Binds a worker to its place by OMP_PROC_BIND and OMP_PLACES. Without this it would inherit the first place, to which libgomp has bound
 * the program's first thread. */
static void place(pthread_attr_t *attr, int index)
{
    const int places = omp_get_proc_bind() != omp_proc_bind_false ? omp_get_num_places() : 0;
    if (places < 1)
        return;
    const int here = omp_get_place_num(), to = (WF_MAX(0, here) + index) % places, count = omp_get_place_num_procs(to);
    int processor[CPU_SETSIZE];
    cpu_set_t set;
    if (count < 1 || count > CPU_SETSIZE)
        return;
    omp_get_place_proc_ids(to, processor);
    CPU_ZERO(&set);
    for (int i = 0; i < count; i++)
        CPU_SET(processor[i], &set);
    pthread_attr_setaffinity_np(attr, sizeof set, &set);
}

static bool start_worker(int index)
{
    pthread_attr_t attr;
    if (pthread_attr_init(&attr) != 0)
        return false;
    place(&attr, index);
    const bool started =
        pthread_create(&team.thread[index], &attr, worker, (void *)(intptr_t)index) == 0 ||
        pthread_create(&team.thread[index], NULL, worker, (void *)(intptr_t)index) == 0; /* without a place: the processor may be gone */
    pthread_attr_destroy(&attr);
    return started;
}

/* Workers block the signals that others send: the program's threads get them. Signals of a thread's own faults stay open. */
static void start(void)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF};
    sigset_t all, before;
    team.tried = true;
    team.crowded = team.wanted >= wf_processors();
    atomic_store(&team.ticket, 0);
    sigfillset(&all);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        sigdelset(&all, own[i]);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (team.workers < team.wanted && start_worker(team.workers + 1))
        team.workers++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void end(void)
{
    if (team.workers > 0)
        every_worker(NULL, NULL);
    for (; team.workers > 0; team.workers--)
        pthread_join(team.thread[team.workers], NULL);
    team.tried = false;
}

bool team_take(void)
{
    if (pthread_mutex_trylock(&taken) != 0)
        return false;
    if (!team.tried)
        start();
    if (team.workers > 0)
        return true;
    pthread_mutex_unlock(&taken);
    return false;
}

void team_give_back(void)
{
    pthread_mutex_unlock(&taken);
}

void team_restart(int workers, void (*changed)(int workers))
{
    pthread_mutex_lock(&taken);
    if (!team.tried || workers != team.workers) {
        end();
        team.wanted = workers;
        start();
    }
    changed(workers);
    pthread_mutex_unlock(&taken);
}

/* In a child of fork(): it has the calling thread only, and starts a team when it needs one. */
static void forget(void)
{
    pthread_mutex_init(&taken, NULL);
    team.workers = 0;
    team.tried = false;
    atomic_store(&team.asleep, 0);
    atomic_store(&team.out.left, 0);
    atomic_store(&team.out.sleepers, 0);
}

__attribute__((constructor)) static void at_load(void)
{
    pthread_atfork(NULL, NULL, forget);
}

/* At the end of the process, or in dlclose. If a thread still computes while the process ends, the team stays. */
__attribute__((destructor)) static void at_unload(void)
{
    if (inside || pthread_mutex_trylock(&taken) != 0)
        return;
    end();
    team.wanted = 0;
    pthread_mutex_unlock(&taken);
}
