/* SPDX-License-Identifier: MIT */
#include "blocks.h"

#include <omp.h>

#include <weft/internal/runtime.h>
#include <weft/internal/scratch.h>

static void inner(void *ctx, int64_t block)
{
    (void)block;
    ((struct tally *)ctx)->nested++;
}

static void note_range(void *ctx, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        note(ctx, i);
}

/* Every block once, on any number of threads, also when there are fewer blocks than threads. */
START_TEST(each_block_once)
{
    static const int64_t sizes[] = {0, 1, 2, 3, 7, 999, 1000};
    struct tally t = {.owner = pthread_self()};
    for (int threads = 1; threads <= 4; threads++) {
        ck_ok(wf_set_threads(threads, error));
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (int how = 0; how < 4; how++) {
                for (int i = 0; i < BLOCKS; i++)
                    t.seen[i] = 0;
                if (how == 0)
                    wf_parallel(sizes[s], 1e9, note, &t);
                else
                    wf_parallel_ranges(sizes[s], how == 1 ? 1 : how == 2 ? 64 : 5000, 1e9, note_range, &t);
                ck_once(&t, sizes[s]);
            }
    }
}
END_TEST

/* Threads are really used above the cutoff, and not below it. */
START_TEST(cutoff)
{
    ck_ok(wf_set_threads(2, error));
    struct tally t = {.owner = pthread_self(), .sleepy = true};
    wf_parallel(40, 1e9, note, &t);
    ck_assert_int_gt(t.foreign, 0);
    t.foreign = 0;
    wf_parallel(40, 100, note, &t);
    ck_assert_int_eq(t.foreign, 0);
    ck_ok(wf_set_threads(1, error));
    wf_parallel(40, 1e9, note, &t);
    ck_assert_int_eq(t.foreign, 0);
}
END_TEST

/* Where multiply-adds are half as wide, blocks of half the cost go to other threads. */
START_TEST(cutoff_of_slow_cores)
{
    ck_ok(wf_set_threads(2, error));
    if (wf_processors() < 2)
        return; /* crowded: another cutoff */
    struct tally t = {.owner = pthread_self(), .sleepy = true};
    wf_core_speed_set(1);
    wf_parallel(40, 3000, note, &t);
    ck_assert_int_eq(t.foreign, 0);
    for (int tries = 0; tries < 50 && t.foreign == 0; tries++) { /* after a stall the caller works alone */
        usleep(20000);
        wf_core_speed_set(0.5);
        wf_parallel(40, 3000, note, &t);
    }
    ck_assert_int_gt(t.foreign, 0);
    wf_core_speed_set(1);
    ck_ok(wf_isa_use("base", error));
    ck_assert_double_eq(wf_core_speed(), 0.5);
}
END_TEST

static void late(void *ctx, int64_t block)
{
    (void)ctx, (void)block;
    usleep(20000);
}

/* A region that lasts far longer than its cost makes the next ones stay with the caller, for some milliseconds. */
START_TEST(after_a_stall)
{
    ck_ok(wf_set_threads(2, error));
    struct tally t = {.owner = pthread_self(), .foreign = 1};
    for (int tries = 0; tries < 50 && t.foreign > 0; tries++) { /* the machine may take these milliseconds away */
        t = (struct tally){.owner = pthread_self(), .sleepy = true};
        wf_parallel(2, 100000, late, NULL);
        wf_parallel(40, 100000, note, &t);
        ck_once(&t, 40);
    }
    ck_assert_int_eq(t.foreign, 0);
    for (int tries = 0; tries < 50 && t.foreign == 0; tries++) {
        usleep(20000);
        wf_parallel(40, 100000, note, &t);
    }
    ck_assert_int_gt(t.foreign, 0);
}
END_TEST

static void ask(void *ctx, int64_t block)
{
    char *room = wf_scratch(WF_SCRATCH_TEST, 100000);
    (void)block;
    ck_assert_ptr_nonnull(room);
    room[99999] = 1;
    usleep(1000);
    *(_Atomic int *)ctx += !omp_get_thread_num();
}

/* What a caller asked for while it worked alone the others have too, before they take its blocks from it again. */
START_TEST(scratch_after_a_stall)
{
    _Atomic int own = 0, before = 0;
    ck_ok(wf_set_threads(2, error));
    for (int i = 0; i < 6; i++) { /* each stall makes the pause twice as long: 256 ms in the end */
        usleep(4000 << i);
        wf_parallel(2, 100000, late, NULL);
    }
    wf_parallel(2, 100000, ask, &own); /* alone */
    wf_parallel(2, 100000, ask, &own); /* the others get ready */
    int64_t count = wf_alloc_count();
    for (int tries = 0; tries < 100; tries++) {
        before = own;
        wf_parallel(2, 100000, ask, &own);
        if (own - before < 2)
            break;
        usleep(20000);
    }
    ck_assert_int_lt(own - before, 2);
    ck_assert_int_eq(wf_alloc_count(), count);
}
END_TEST

static void same_thread(void *ctx, int64_t block)
{
    (void)block;
    ck_assert(pthread_equal(pthread_self(), *(pthread_t *)ctx));
}

static void outer(void *ctx, int64_t block)
{
    pthread_t me = pthread_self();
    (void)block;
    wf_parallel(10, 1e9, inner, ctx);
    wf_parallel(10, 1e9, same_thread, &me);
}

START_TEST(nested)
{
    ck_ok(wf_set_threads(2, error));
    struct tally t = {.owner = pthread_self()};
    wf_parallel(20, 1e9, outer, &t);
    ck_assert_int_eq(t.nested, 200);
}
END_TEST

static void *user(void *failed)
{
    for (int round = 0; round < 30; round++) {
        struct tally t = {.owner = pthread_self()};
        wf_parallel(100, 1e9, note, &t);
        for (int i = 0; i < BLOCKS; i++)
            if (t.seen[i] != (i < 100))
                ++*(_Atomic int *)failed;
    }
    return NULL;
}

START_TEST(user_threads)
{
    ck_ok(wf_set_threads(2, error));
    _Atomic int failed = 0;
    pthread_t thread[4];
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, user, &failed), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    ck_assert_int_eq(failed, 0);
}
END_TEST

WF_TEST_MAIN("parallel", each_block_once, cutoff, cutoff_of_slow_cores, after_a_stall, scratch_after_a_stall, nested, user_threads)
