/* SPDX-License-Identifier: MIT */
/* The team. A caller posts a job in one word, the ticket, which contains the job's number and the number of workers that the job still
 * admits. A worker that sees a new number takes an admission by a compare-and-swap, runs the job, and then counts `out` down by 1. The
 * caller runs the job too, then sets the admissions to 0 and waits for the workers that were admitted. A worker that wakes up late,
 * because another program uses its processor, delays no other thread and reads no data of a job that has ended.
 *
 * The workers are POSIX threads and not OpenMP's, because libgomp's threads can't be joined before dlclose, a child of fork() hangs at
 * their barrier, and libgomp ends the process if the system refuses a thread. OMP_PROC_BIND and OMP_PLACES place the workers too. */
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

enum {
    ADMITTED = 0x3ff,     /* the bits of a ticket that count admissions, enough for all workers */
    NUMBER = ADMITTED + 1 /* the lowest bit of a ticket's job number */
};

static struct {
    /* One cache line contains all that a worker reads of a job. */
    _Alignas(64) _Atomic uint32_t ticket;
    _Atomic uint32_t asleep;
    team_job *job; /* NULL ends the workers */
    void *ctx;
    /* The caller that has the team writes these four members. */
    int workers;                          /* number of workers that run */
    int wanted;                           /* number of workers that wf_set_threads asked for */
    bool tried;                           /* the team was started, or the start failed */
    bool crowded;                         /* there are more threads than processors */
    _Alignas(64) struct wf_countdown out; /* number of admitted workers that have not ended their job */
    pthread_t thread[WF_MAX_THREADS];
} team;

/* The caller that has the team holds this mutex. */
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

/* Waits for a job whose number is not `seen`, the number of the last job, and returns the ticket. The worker increments `asleep`, then
 * reads the ticket; the caller writes the ticket, then reads `asleep`. All four accesses are seq_cst, so at least one of the threads
 * sees the other's write, and no wake-up is lost. */
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

/* Takes an admission to the job of *ticket. Returns false if none remains. *ticket becomes the newest value read. */
static bool admitted(uint32_t *ticket)
{
    while (*ticket & ADMITTED)
        if (atomic_compare_exchange_weak_explicit(&team.ticket, ticket, *ticket - 1, memory_order_acq_rel, memory_order_acquire))
            return true;
    return false;
}

/* A worker that has run for a while offers its processor to other programs between two jobs, when no caller waits for it. Otherwise the
 * system takes the processor away later, often in the middle of a block, and the caller waits for milliseconds. Without these offers and
 * with two other busy programs, a training step of the model encoder-attention, and the generation of text, took 1.5 times as long. If no
 * program waits for the processor, an offer costs 0.3 microseconds. */
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
    wf_scratch_get_ready(); /* allocates scratch blocks of the sizes that earlier teams used */
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
 * once in 2^20 jobs. */
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

/* Binds a worker to its place by OMP_PROC_BIND and OMP_PLACES. Without this the worker would inherit the first place, to which libgomp
 * has bound the program's first thread. */
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
    const bool started = pthread_create(&team.thread[index], &attr, worker, (void *)(intptr_t)index) == 0 ||
                         pthread_create(&team.thread[index], NULL, worker, (void *)(intptr_t)index) ==
                             0; /* again without a place, whose processor may be offline */
    pthread_attr_destroy(&attr);
    return started;
}

/* Starts the workers. They block the signals that other processes send, so that the program's own threads get these signals. Signals for
 * faults of a thread itself, and the timer of profilers, stay unblocked. */
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

/* Runs in a child of fork(), which has only the calling thread and starts a team when it needs one. */
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

/* Runs at the end of the process, or in dlclose. If a thread still computes while the process ends, the team keeps running. */
__attribute__((destructor)) static void at_unload(void)
{
    if (inside || pthread_mutex_trylock(&taken) != 0)
        return;
    end();
    team.wanted = 0;
    pthread_mutex_unlock(&taken);
}
