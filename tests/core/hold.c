/* SPDX-License-Identifier: MIT */
/* wf_hold_threads: the same blocks as without, by threads that wait for them. */
#include "blocks.h"

#include <omp.h>
#include <time.h>

#include <weft/internal/runtime.h>
#include <weft/internal/scratch.h>

/* The tests run with OMP_WAIT_POLICY=passive. */
static void active(void)
{
    unsetenv("OMP_WAIT_POLICY");
}

static void passive(void)
{
    setenv("OMP_WAIT_POLICY", "PASSIVE", 1);
}

struct worker {
    _Atomic int at_work[4], twice, outside;
};

static void count_workers(void *ctx, int64_t block)
{
    struct worker *w = ctx;
    const int me = wf_worker();
    (void)block;
    if (me < 0 || me >= wf_threads()) {
        w->outside++;
        return;
    }
    w->twice += w->at_work[me]++ > 0;
    usleep(20);
    w->at_work[me]--;
}

static void blocks_of_all_sizes(void *ctx)
{
    static const int64_t sizes[] = {0, 1, 2, 3, 7, 999, 1000};
    struct worker workers = {0};
    (void)ctx;
    for (int threads = 1; threads <= 4; threads++) { /* also more than the team has */
        ck_ok(wf_set_threads(threads, error));
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            struct tally t = {.owner = pthread_self()};
            wf_parallel(sizes[s], 1e9, note, &t);
            ck_once(&t, sizes[s]);
            ck_assert_int_eq(wf_worker(), 0);
        }
        wf_parallel(50, 1e9, count_workers, &workers);
    }
    ck_assert_int_eq(workers.twice + workers.outside, 0);
}

START_TEST(each_block_once)
{
    for (int i = 0; i < 8; i++) {
        ck_ok(wf_set_threads(1 + i / 2, error));
        (i % 2 ? active : passive)();
        for (int round = 0; round < 10; round++)
            wf_hold_threads(blocks_of_all_sizes, NULL);
    }
}
END_TEST

/* --- when a team is held --------------------------------------------------------------------------------------------- */

struct found {
    int calls;
    double price;
    struct tally t;
};

static void look(void *ctx)
{
    struct found *f = ctx;
    f->calls++;
    f->price = wf_region_price();
    f->t.sleepy = true;
    wf_parallel(40, 1e9, note, &f->t);
    ck_once(&f->t, 40);
}

static struct found held(void)
{
    struct found f = {.t.owner = pthread_self()};
    wf_hold_threads(look, &f);
    ck_assert_int_eq(f.calls, 1);
    ck_assert_double_eq(wf_region_price(), 1);
    return f;
}

START_TEST(others_take_part)
{
    ck_ok(wf_set_threads(2, error));
    active();
    struct found f = held();
    ck_assert_int_gt(f.t.foreign, 0);
    if (wf_processors() >= 2)
        ck_assert_double_eq(f.price, 0.5);
    passive();
    f = held();
    ck_assert(f.price == 1 && f.t.foreign > 0);
}
END_TEST

START_TEST(only_a_call)
{
    ck_ok(wf_set_threads(1, error));
    struct found f = held();
    ck_assert(f.price == 1 && f.t.foreign == 0);

    ck_ok(wf_set_threads(wf_processors() + 1, error)); /* would wait for each other's processor */
    f = held();
    ck_assert(f.price == 1 && f.t.foreign > 0);
}
END_TEST

static void hold_again(void *ctx)
{
    *(struct found *)ctx = held();
}

static void again_and_more(void *ctx)
{
    struct found f = {.t.owner = pthread_self()}, within = {0};
    wf_hold_threads(look, &f);
    ck_assert_int_eq(f.calls, 1);
    ck_assert_int_gt(f.t.foreign, 0);
    wf_hold_threads(look, &within); /* the first is still there */
    ck_assert_double_eq(within.price, *(double *)ctx);
}

START_TEST(within_a_hold)
{
    ck_ok(wf_set_threads(2, error));
    active();
    double price = wf_processors() >= 2 ? 0.5 : 1;
    wf_hold_threads(again_and_more, &price);
    ck_assert_double_eq(wf_region_price(), 1);
}
END_TEST

static void hold_in_block(void *ctx, int64_t block)
{
    hold_again((struct found *)ctx + block);
}

static void region(void *ctx)
{
    wf_parallel(6, 1e9, hold_in_block, ctx);
}

START_TEST(within_a_block)
{
    struct found f[6];
    ck_ok(wf_set_threads(2, error));
    for (int i = 0; i < 2; i++) {
        memset(f, 0, sizeof f);
        if (i == 0)
            region(f);
        else
            wf_hold_threads(region, f);
        for (int k = 0; k < 6; k++)
            ck_assert(f[k].price == 1 && f[k].t.foreign == 0);
    }
}
END_TEST

START_TEST(within_a_region_of_the_user)
{
    struct found f[2] = {0};
    ck_ok(wf_set_threads(2, error));
#if defined __SANITIZE_THREAD__ /* does not see libgomp's barriers */
    return;
#endif
#pragma omp parallel num_threads(2)
    if (omp_get_num_threads() == 2)
        hold_again(&f[omp_get_thread_num()]);
    for (int k = 0; k < 2; k++)
        ck_assert(f[k].price == 1 && f[k].t.foreign == 0);
}
END_TEST

static void *user(void *ctx)
{
    (void)ctx;
    for (int round = 0; round < 10; round++) {
        struct found f = held();
        ck_once(&f.t, 40);
    }
    return NULL;
}

/* Each holds a team of its own. */
START_TEST(threads_of_the_user)
{
    pthread_t thread[3];
    ck_ok(wf_set_threads(2, error));
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, user, NULL), 0);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
}
END_TEST

/* --- waiting --------------------------------------------------------------------------------------------------------- */

static double processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void wait_and_work(void *ctx)
{
    struct tally *t = ctx;
    const double before = processor_seconds();
    usleep(300000);
    ck_assert_double_lt(processor_seconds() - before, 0.1);
    wf_parallel(400, 1e9, note, t);
}

/* While the holder reads a file, say, the others sleep, and they wake when there is work. */
START_TEST(sleep_and_wake)
{
    ck_ok(wf_set_threads(2, error));
    for (int i = 0; i < 2; i++) {
        struct tally t = {.owner = pthread_self(), .sleepy = true};
        (i == 0 ? active : passive)();
        wf_hold_threads(wait_and_work, &t);
        ck_once(&t, 400);
        ck_assert_int_gt(t.foreign, 0);
    }
}
END_TEST

static void late(void *ctx, int64_t block)
{
    (void)ctx, (void)block;
    usleep(20000);
}

static void stall(void *ctx)
{
    struct tally *t = ctx;
    wf_parallel(2, 100000, late, NULL);
    wf_parallel(40, 100000, note, t);
}

/* A job that lasts far longer than its cost makes the next ones stay with the holder, for some milliseconds. */
START_TEST(after_a_stall)
{
    ck_ok(wf_set_threads(2, error));
    struct tally t = {.foreign = 1};
    for (int tries = 0; tries < 50 && t.foreign > 0; tries++) { /* the machine may take these milliseconds away */
        t = (struct tally){.owner = pthread_self(), .sleepy = true};
        wf_hold_threads(stall, &t);
        ck_once(&t, 40);
    }
    ck_assert_int_eq(t.foreign, 0);
}
END_TEST

static void ask(void *ctx, int64_t block)
{
    char *room = wf_scratch(WF_SCRATCH_TEST, 100000);
    (void)ctx, (void)block;
    ck_assert_ptr_nonnull(room);
    room[99999] = 1;
    usleep(100);
}

static void ask_often(void *ctx)
{
    int64_t *count = ctx;
    for (int i = 0; i < 20; i++) {
        wf_parallel(4, 1e9, ask, NULL);
        *count = i == 1 ? wf_alloc_count() : *count;
    }
}

/* Nothing is allocated from the second job on; what wf_scratch_drop frees is there again in the next. */
START_TEST(scratch)
{
    int64_t count = 0;
    active();
    ck_ok(wf_set_threads(2, error));
    for (int i = 0; i < 5; i++) {
        wf_hold_threads(ask_often, &count);
        ck_assert_int_eq(wf_alloc_count(), count);
        wf_scratch_drop();
    }
}
END_TEST

WF_TEST_MAIN("hold", each_block_once, others_take_part, only_a_call, within_a_hold, within_a_block, within_a_region_of_the_user,
             threads_of_the_user, sleep_and_wake, after_a_stall, scratch)
