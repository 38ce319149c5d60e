/* SPDX-License-Identifier: MIT */
#include "blocks.h"

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

/* Other threads run some of the blocks; a worker may come late on a busy machine, so that it is tried again. */
static void ck_divided(struct tally *t, double cost)
{
    for (int tries = 0; tries < 50 && t->foreign == 0; tries++) {
        if (tries > 0)
            usleep(20000);
        wf_parallel(40, cost, note, t);
    }
    ck_assert_int_gt(t->foreign, 0);
}

/* Threads are really used above the cutoff, and not below it. */
START_TEST(cutoff)
{
    ck_ok(wf_set_threads(2, error));
    struct tally t = {.owner = pthread_self(), .sleepy = true};
    ck_divided(&t, 1e9);
    t.foreign = 0;
    wf_parallel(40, 100, note, &t);
    ck_assert_int_eq(t.foreign, 0);
    ck_ok(wf_set_threads(1, error));
    wf_parallel(40, 1e9, note, &t);
    ck_assert_int_eq(t.foreign, 0);
}
END_TEST

/* On cores with multiply-adds of half the width, blocks of half the cost go to other threads. */
START_TEST(cutoff_of_slow_cores)
{
    ck_ok(wf_set_threads(2, error));
    if (wf_processors() < 2)
        return; /* crowded: another cutoff */
    struct tally t = {.owner = pthread_self(), .sleepy = true};
    wf_core_speed_set(1);
    wf_parallel(40, 1500, note, &t);
    ck_assert_int_eq(t.foreign, 0);
    wf_core_speed_set(0.5);
    ck_divided(&t, 1500);
    wf_core_speed_set(1);
    ck_ok(wf_isa_use("base", error));
    ck_assert_double_eq(wf_core_speed(), 0.5);
}
END_TEST

static void ask(void *ctx, int64_t block)
{
    char *room = wf_scratch(WF_SCRATCH_TEST, *(size_t *)ctx);
    (void)block;
    ck_assert_ptr_nonnull(room);
    room[*(size_t *)ctx - 1] = 1;
    usleep(100);
}

/* Scratch that one thread has asked for is there for all threads from the next job on, late workers included; after wf_scratch_drop it is
 * there again in the next job. */
START_TEST(scratch)
{
    ck_ok(wf_set_threads(4, error));
    for (size_t size = 10000; size < 1000000; size *= 2) {
        int64_t count = 0;
        for (int i = 0; i < 20; i++) {
            wf_parallel(i == 0 ? 2 : 4, 1e9, ask, &size);
            count = i == 1 ? wf_alloc_count() : count;
        }
        ck_assert_int_eq(wf_alloc_count(), count);
        wf_scratch_drop();
    }
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

WF_TEST_MAIN("parallel", each_block_once, cutoff, cutoff_of_slow_cores, scratch, nested, user_threads)
