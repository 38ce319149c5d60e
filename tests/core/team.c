/* SPDX-License-Identifier: MIT */
/* The library's threads in a program's life: several callers, fork, signals, ends of threads and of the process, the program's own OpenMP.
 */
#include "blocks.h"

#include <errno.h>
#include <omp.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include <weft/internal/runtime.h>

/* A job in which others take part; the machine may be busy, so that a worker comes too late for one. */
static bool shared_job(void)
{
    for (int tries = 0; tries < 200; tries++) {
        struct tally t = {.owner = pthread_self(), .sleepy = true};
        wf_parallel(40, 1e9, note, &t);
        ck_once(&t, 40);
        if (t.foreign > 0)
            return true;
    }
    return false;
}

/* At the end of a process gcc's checker of leaks stops all threads, and can wait for ever for threads that compute: children are not
 * checked. */
static bool is_child;
int __lsan_is_turned_off(void);
__attribute__((visibility("default"))) int __lsan_is_turned_off(void)
{
    return is_child;
}

/* The exit status of a child of fork() that runs in_child. */
static int status_of(int (*in_child)(void *ctx), void *ctx)
{
    fflush(NULL);
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        is_child = true;
        alarm(60); /* a child that hangs */
        _exit(in_child(ctx));
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(!WIFSIGNALED(status), "the child ended by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

#if !defined __SANITIZE_THREAD__ /* it supports no threads in a child */
/* ---- fork ------------------------------------------------------------------------------------------------------------ */

static int compute(void *ctx)
{
    int *generations = ctx;
    if (!shared_job())
        return 1;
    return --*generations > 0 ? status_of(compute, generations) : 7;
}

START_TEST(child_has_a_team)
{
    int generations = 3;
    ck_ok(wf_set_threads(2, error));
    ck_assert(shared_job());
    ck_assert_int_eq(status_of(compute, &generations), 7);
    ck_assert(shared_job()); /* the parent keeps its own */
}
END_TEST

static int compute_and_exit(void *ctx)
{
    (void)ctx;
    exit(shared_job() ? 8 : 1); /* destructors run */
}

static void *keep_busy(void *ctx)
{
    _Atomic bool *over = ctx;
    while (!*over) {
        struct tally t = {.owner = pthread_self()};
        wf_parallel(40, 1e9, note, &t);
    }
    return NULL;
}

START_TEST(fork_beside_a_job)
{
    _Atomic bool over = false;
    pthread_t thread;
    ck_ok(wf_set_threads(2, error));
    ck_assert_int_eq(pthread_create(&thread, NULL, keep_busy, &over), 0);
    for (int i = 0; i < 20; i++) {
        int one = 1;
        ck_assert_int_eq(status_of(compute, &one), 7);
        ck_assert_int_eq(status_of(compute_and_exit, NULL), 8);
    }
    over = true;
    pthread_join(thread, NULL);
}
END_TEST

/* ---- ends ------------------------------------------------------------------------------------------------------------ */

/* main returns while another thread computes. */
static int end_beside_a_job(void *ctx)
{
    static _Atomic bool never;
    pthread_t thread;
    (void)ctx;
    pthread_create(&thread, NULL, keep_busy, &never);
    usleep(2000);
    exit(9);
}

static void exit_now(void *ctx, int64_t block)
{
    if (block == *(int64_t *)ctx)
        exit(10);
    usleep(100);
}

static int end_in_a_body(void *ctx)
{
    wf_parallel(20, 1e9, exit_now, ctx);
    return 1;
}

static int end_after_fork(void *ctx)
{
    (void)ctx;
    exit(11); /* without a team */
}

START_TEST(end_of_the_process)
{
    ck_ok(wf_set_threads(4, error));
    for (int64_t i = 0; i < 20; i++) {
        ck_assert_int_eq(status_of(end_beside_a_job, NULL), 9);
        ck_assert_int_eq(status_of(end_in_a_body, &i), 10);
        ck_assert_int_eq(status_of(end_after_fork, NULL), 11);
    }
}
END_TEST

#endif

/* ---- callers --------------------------------------------------------------------------------------------------------- */

static void ask(void *ctx, int64_t block)
{
    (void)block;
    if (!wf_scratch(WF_SCRATCH_OP, 10000))
        ++*(_Atomic int *)ctx;
}

static void *call_once(void *ctx)
{
    struct tally t = {.owner = pthread_self()};
    wf_parallel(100, 1e9, note, &t);
    for (int i = 0; i < BLOCKS; i++)
        if (t.seen[i] != (i < 100))
            ++*(_Atomic int *)ctx;
    wf_parallel(10, 1e9, ask, ctx);
    return NULL;
}

/* 300 threads that call and end, in turn: one team serves all, and nothing is left of them. */
START_TEST(callers_in_turn)
{
    _Atomic int failed = 0;
    int64_t live = 0;
    ck_ok(wf_set_threads(2, error));
    call_once(&failed);
    const int before = threads_of_process();
    for (int i = 0; i < 300; i++) {
        pthread_t thread;
        ck_assert_int_eq(pthread_create(&thread, NULL, call_once, &failed), 0);
        pthread_join(thread, NULL);
        live = i == 0 ? wf_alloc_live() : live;
    }
    ck_assert_int_eq(failed, 0);
    ck_assert_int_eq(wf_alloc_live(), live);
    for (int tries = 0; tries < 1000 && threads_of_process() > before; tries++)
        usleep(1000); /* the system counts a thread for a moment after it was joined */
    ck_assert_int_le(threads_of_process(), before);
}
END_TEST

static void wait_and_count(void *ctx, int64_t block)
{
    (void)block;
    usleep(20000);
    ++*(_Atomic int *)ctx;
}

static void *long_job(void *ctx)
{
    wf_parallel(4, 1e9, wait_and_count, ctx);
    return NULL;
}

/* The team is ended and started anew when no job runs. */
START_TEST(set_threads_waits)
{
    for (int i = 0; i < 5; i++) {
        _Atomic int done = 0;
        pthread_t thread;
        ck_ok(wf_set_threads(2, error));
        ck_assert_int_eq(pthread_create(&thread, NULL, long_job, &done), 0);
        usleep(10000);
        ck_ok(wf_set_threads(3, error));
        ck_assert_int_eq(done, 4);
        pthread_join(thread, NULL);
    }
}
END_TEST

static void set_inside(void *ctx, int64_t block)
{
    wf_error error = {0};
    (void)block;
    if (wf_set_threads(2, &error) != WF_ERR_STATE || !strstr(error.message, "inside a body of wf_parallel"))
        return;
    error = (wf_error){0};
    if (wf_init(&error, .threads = 2) == WF_ERR_STATE && strstr(error.message, "inside a body of wf_parallel"))
        ++*(_Atomic int *)ctx;
}

START_TEST(set_threads_inside_a_body)
{
    _Atomic int refused = 0;
    ck_ok(wf_set_threads(3, error));
    wf_parallel(10, 1e9, set_inside, &refused);
    ck_assert_int_eq(refused, 10);
    ck_assert_int_eq(wf_threads(), 3);
}
END_TEST

static void burn(void *ctx, int64_t microseconds)
{
    struct timespec t;
    (void)ctx;
    for (int64_t end = 0, now = 0; now <= end; end = end ? end : now + 1000 * microseconds) {
        clock_gettime(CLOCK_MONOTONIC, &t);
        now = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
    }
}

static void short_block(void *ctx, int64_t block)
{
    (void)block;
    burn(ctx, 20); /* the caller does not wait long enough to sleep */
}

static long sleeps(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nvcsw;
}

/* Two blocks wake one worker of three: waking all makes 1,500 sleeps. */
START_TEST(as_many_workers_as_blocks)
{
    enum { ROUNDS = 500 };
    ck_ok(wf_set_threads(4, error));
    const long before = sleeps();
    for (int round = 0; round < ROUNDS; round++) {
        wf_parallel(2, 1e9, short_block, NULL);
        burn(NULL, 100); /* they fall asleep */
    }
    ck_assert_int_lt(sleeps() - before, 2 * ROUNDS);
}
END_TEST

/* ---- waiting ---------------------------------------------------------------------------------------------------------- */

static double processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Workers sleep after some tens of microseconds, and a caller does that waits for a long block. */
START_TEST(idle_takes_no_processor_time)
{
    ck_ok(wf_set_threads(4, error));
    ck_assert(shared_job());
    usleep(sanitized() ? 50000 : 1000);
    double before = processor_seconds();
    usleep(300000);
    ck_assert_double_lt(processor_seconds() - before, 0.002 * (sanitized() ? 10 : 1));
    _Atomic int done = 0;
    before = processor_seconds();
    for (int i = 0; i < 10; i++)
        wf_parallel(2, 1e9, wait_and_count, &done); /* one of two may come late, and the caller does both */
    ck_assert_double_lt(processor_seconds() - before, 0.02 * (sanitized() ? 10 : 1));
    ck_assert_int_eq(done, 20);
}
END_TEST

/* ---- signals ---------------------------------------------------------------------------------------------------------- */

static pthread_t main_thread;
static _Atomic int signals, elsewhere;

static void on_alarm(int number)
{
    (void)number;
    signals++;
    elsewhere += !pthread_equal(pthread_self(), main_thread);
}

/* Signals come between the waits of the caller, and never to a worker. */
START_TEST(signals_in_between)
{
    const struct sigaction action = {.sa_handler = on_alarm};
    struct itimerval timer = {{0, 200}, {0, 200}};
    main_thread = pthread_self();
    ck_ok(wf_set_threads(2, error));
    ck_assert_int_eq(sigaction(SIGALRM, &action, NULL), 0);
    ck_assert_int_eq(setitimer(ITIMER_REAL, &timer, NULL), 0);
    for (int i = 0; i < 20000 && signals < 500; i++) {
        struct tally t = {.owner = pthread_self(), .sleepy = i % 2 == 0};
        wf_parallel(40, 1e9, note, &t);
        ck_once(&t, 40);
    }
    timer = (struct itimerval){{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &timer, NULL);
    ck_assert_int_ge(signals, 500);
    ck_assert_int_eq(elsewhere, 0);
}
END_TEST

/* ---- the system's and the program's ---------------------------------------------------------------------------------- */

static void *rest(void *unused)
{
    for (;;)
        pause();
    return unused;
}

static int without_threads(void *ctx)
{
    struct rlimit limit = {64 << 20, RLIM_INFINITY}; /* less than the process has already: no memory for a stack */
    struct tally t = {.owner = pthread_self()};
    pthread_t taker;
    (void)ctx;
    for (int i = 0; i < 8; i++) /* take the stacks of threads before the fork, which the C library keeps for new ones */
        (void)pthread_create(&taker, NULL, rest, NULL);
    if (setrlimit(RLIMIT_AS, &limit) != 0)
        return 1;
    wf_parallel(40, 1e9, note, &t);
    for (int64_t i = 0; i < BLOCKS; i++)
        if (t.seen[i] != (i < 40))
            return 2;
    return t.foreign == 0 ? 12 : 3;
}

/* The caller works alone. libgomp ends the process there. */
START_TEST(no_thread_can_be_made)
{
    if (sanitized()) /* they need address space */
        return;
    ck_ok(wf_set_threads(2, error));
    void *much = calloc(1, 128 << 20);
    ck_assert_ptr_nonnull(much);
    ck_assert_int_eq(status_of(without_threads, NULL), 12);
    free(much);
}
END_TEST

static void openmp_of_body(void *ctx, int64_t block)
{
    int count = 0;
    (void)block;
#pragma omp parallel num_threads(3) reduction(+ : count)
    count += omp_get_num_threads() == 3;
    *(_Atomic int *)ctx += count == 3;
}

/* OpenMP of the program has its threads beside a team and within a body. */
START_TEST(openmp_of_the_program)
{
    _Atomic int good = 0;
    ck_ok(wf_set_threads(2, error));
#if defined __SANITIZE_THREAD__ /* does not see libgomp's barriers */
    return;
#endif
    ck_assert(shared_job());
    openmp_of_body(&good, 0);
    ck_assert_int_eq(good, 1);
    wf_parallel(4, 1e9, openmp_of_body, &good);
    ck_assert_int_eq(good, 5);
    ck_assert(shared_job());
}
END_TEST

#if defined __SANITIZE_THREAD__
#define WITH_CHILDREN
#else
#define WITH_CHILDREN child_has_a_team, fork_beside_a_job, end_of_the_process,
#endif
WF_TEST_MAIN("team", WITH_CHILDREN callers_in_turn, set_threads_waits, set_threads_inside_a_body, as_many_workers_as_blocks,
             idle_takes_no_processor_time, signals_in_between, no_thread_can_be_made, openmp_of_the_program)
