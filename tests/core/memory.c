/* SPDX-License-Identifier: MIT */
#include "check_weft.h"

#include <pthread.h>

#include <weft/internal/arena.h>
#include <weft/internal/scratch.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

START_TEST(allocator)
{
    int64_t live = wf_alloc_live(), count = wf_alloc_count();
    for (size_t bytes = 0; bytes < 5000; bytes += 61) {
        void *p = wf_alloc(bytes);
        ck_assert_ptr_nonnull(p);
        ck_assert_uint_eq((uintptr_t)p % 64, 0);
        memset(p, 1, bytes);
        ck_assert_int_eq(wf_alloc_live(), live + 1);
        wf_free(p);
    }
    ck_assert_int_eq(wf_alloc_live(), live);
    ck_assert_int_eq(wf_alloc_count(), count + 82);
    void *large = wf_alloc((size_t)5 << 20);
    ck_assert_uint_eq((uintptr_t)large % (2 << 20), 0);
    wf_free(large);
    wf_free(NULL);
    ck_assert_int_eq(wf_alloc_live(), live);
    ck_assert_ptr_null(wf_alloc(SIZE_MAX));
    ck_assert_ptr_null(wf_alloc(SIZE_MAX / 2));
    ck_assert_ptr_null(wf_alloc_zero(SIZE_MAX / 4, 8));
    ck_assert_int_eq(wf_alloc_live(), live);
    char *zero = wf_alloc_zero(100, 10);
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(zero[i], 0);
    wf_free(zero);
}
END_TEST

START_TEST(reallocation)
{
    unsigned char *p = NULL;
    size_t had = 0;
    for (size_t bytes = 1; bytes < 100000; bytes = bytes * 3 + 1) {
        p = wf_realloc(p, bytes);
        ck_assert_ptr_nonnull(p);
        ck_assert_uint_eq((uintptr_t)p % 64, 0);
        for (size_t i = 0; i < had; i++)
            ck_assert_uint_eq(p[i], (unsigned char)(i * 7));
        for (had = 0; had < bytes; had++)
            p[had] = (unsigned char)(had * 7);
    }
    wf_alloc_fail_after(0);
    ck_assert_ptr_null(wf_realloc(p, 2 * had));
    for (size_t i = 0; i < had; i++)
        ck_assert_uint_eq(p[i], (unsigned char)(i * 7));
    p = wf_realloc(p, 5);
    ck_assert_uint_eq(p[4], 28);
    wf_free(p);
}
END_TEST

START_TEST(failures)
{
    for (int64_t n = 0; n < 5; n++) {
        wf_alloc_fail_after(n);
        for (int64_t i = 0; i < 10; i++) {
            void *p = wf_alloc(8);
            ck_assert_int_eq(p == NULL, i == n);
            wf_free(p);
        }
    }
    wf_alloc_fail_after(0);
    wf_alloc_fail_after(-1);
    char *text = wf_format("%d and %s", 7, "eight");
    ck_assert_str_eq(text, "7 and eight");
    char *copy = wf_strdup(text);
    ck_assert_str_eq(copy, text);
    wf_free(copy);
    wf_free(text);
    wf_alloc_fail_after(0);
    ck_assert_ptr_null(wf_strdup("x"));
    wf_alloc_fail_after(0);
    ck_assert_ptr_null(wf_format("x"));
    wf_alloc_fail_after(0);
    ck_assert_ptr_null(wf_arena_new());
}
END_TEST

static void *churn(void *unused)
{
    for (int i = 0; i < 20000; i++)
        wf_free(wf_alloc(64 + (size_t)(i % 1000)));
    return unused;
}

START_TEST(counts_in_threads)
{
    int64_t live = wf_alloc_live(), count = wf_alloc_count();
    pthread_t thread[4];
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, churn, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    ck_assert_int_eq(wf_alloc_live(), live);
    ck_assert_int_eq(wf_alloc_count(), count + 80000);
}
END_TEST

/* Blocks are aligned, do not overlap and keep their contents; marks bring back what there was. */
START_TEST(arena_blocks)
{
    wf_arena *arena = wf_arena_new();
    enum { BLOCKS = 400 };
    unsigned char *block[BLOCKS];
    size_t size[BLOCKS];
    wf_rng rng = wf_rng_new(1, 2);
    wf_arena_mark mark = {0};
    size_t used = 0;
    for (int i = 0; i < BLOCKS; i++) {
        if (i == 200) {
            mark = wf_arena_here(arena);
            used = wf_arena_stats(arena).used;
        }
        size[i] = i % 50 == 49 ? (size_t)3 << 20 : (size_t)wf_rng_below(&rng, 40000);
        block[i] = wf_arena_get(arena, size[i]);
        ck_assert_ptr_nonnull(block[i]);
        ck_assert_uint_eq((uintptr_t)block[i] % 64, 0);
        memset(block[i], i, size[i]);
    }
    for (int i = 0; i < BLOCKS; i++)
        for (size_t j = 0; j < size[i]; j++)
            if (block[i][j] != (unsigned char)i)
                ck_abort_msg("block %d was overwritten at byte %zu", i, j);
    size_t peak = wf_arena_stats(arena).peak;
    ck_assert_uint_eq(peak, wf_arena_stats(arena).used);
    ck_assert_uint_ge(wf_arena_stats(arena).reserved, peak);
    ck_assert_uint_eq(wf_arena_stats(arena).reserved % (2 << 20), 0);
    wf_arena_rewind(arena, mark);
    ck_assert_uint_eq(wf_arena_stats(arena).used, used);
    for (int i = 200; i < BLOCKS; i++)
        ck_assert_ptr_eq(wf_arena_get(arena, size[i]), block[i]);
    for (int i = 0; i < 200; i++)
        for (size_t j = 0; j < size[i]; j++)
            if (block[i][j] != (unsigned char)i)
                ck_abort_msg("block %d was overwritten after the rewind", i);
    wf_arena_reset(arena);
    ck_assert_uint_eq(wf_arena_stats(arena).used, 0);
    ck_assert_uint_eq(wf_arena_stats(arena).peak, peak);
    ck_assert_ptr_eq(wf_arena_get(arena, size[0]), block[0]);
    wf_arena_free(arena);
    wf_arena_free(NULL);
}
END_TEST

/* From the second pass of the same requests on: the same addresses, no allocation, no page fault. */
START_TEST(arena_settles)
{
    wf_arena *arena = wf_arena_new();
    int64_t count = 0;
    size_t reserved = 0;
    long faults __attribute__((unused)) = 1;
    uintptr_t first = 0;
    for (int pass = 0; pass < 2 || (faults > 0 && pass < 2 + FAULT_WINDOWS); pass++) {
        uintptr_t hash = 0;
        wf_rng rng = wf_rng_new(3, 4);
        faults = page_faults();
        for (int i = 0; i < 300; i++) {
            size_t bytes = (size_t)wf_rng_below(&rng, i % 30 ? 50000 : 5000000);
            char *p = wf_arena_get(arena, bytes);
            memset(p, pass, bytes);
            hash = hash * 31 + (uintptr_t)p;
        }
        faults = page_faults() - faults;
        if (pass == 0) {
            count = wf_alloc_count();
            reserved = wf_arena_stats(arena).reserved;
            first = hash;
        }
        ck_assert_uint_eq(hash, first);
        wf_arena_reset(arena);
    }
    ck_assert_int_eq(wf_alloc_count(), count);
    ck_assert_uint_eq(wf_arena_stats(arena).reserved, reserved);
#ifndef __SANITIZE_ADDRESS__
    ck_assert_int_eq(faults, 0);
#endif
    wf_arena_free(arena);
}
END_TEST

START_TEST(arena_without_memory)
{
    int64_t live = wf_alloc_live();
    wf_arena *arena = wf_arena_new();
    for (int64_t n = 0; n < 2; n++) {
        wf_alloc_fail_after(n);
        ck_assert_ptr_null(wf_arena_get(arena, 10));
        wf_alloc_fail_after(-1);
        ck_assert_uint_eq(wf_arena_stats(arena).used, 0);
        ck_assert_uint_eq(wf_arena_stats(arena).reserved, 0);
    }
    ck_assert_ptr_null(wf_arena_get(arena, SIZE_MAX - 10));
    char *p = wf_arena_get(arena, 10);
    memset(p, 5, 10);
    wf_alloc_fail_after(0);
    ck_assert_ptr_null(wf_arena_get(arena, (size_t)3 << 20));
    char *q = wf_arena_get(arena, 10);
    ck_assert_ptr_nonnull(q);
    ck_assert_ptr_ne(p, q);
    ck_assert_int_eq(p[9], 5);
    wf_arena_free(arena);
    ck_assert_int_eq(wf_alloc_live(), live);
}
END_TEST

START_TEST(arena_poison)
{
#ifdef __SANITIZE_ADDRESS__
    wf_arena *arena = wf_arena_new();
    char *a = wf_arena_get(arena, 100);
    wf_arena_mark mark = wf_arena_here(arena);
    char *b = wf_arena_get(arena, 64);
    ck_assert(!__asan_address_is_poisoned(a) && !__asan_address_is_poisoned(a + 99));
    ck_assert(__asan_address_is_poisoned(a + 100));
    ck_assert(__asan_address_is_poisoned(b - 1) && __asan_address_is_poisoned(b + 64));
    ck_assert(!__asan_address_is_poisoned(b + 63));
    wf_arena_rewind(arena, mark);
    ck_assert(__asan_address_is_poisoned(b));
    ck_assert(!__asan_address_is_poisoned(a));
    wf_arena_reset(arena);
    ck_assert(__asan_address_is_poisoned(a));
    wf_arena_free(arena);
#endif
}
END_TEST

/* Data from behind a mark come to it, however they overlap; others are copied. */
START_TEST(arena_rewind_with)
{
    static unsigned char outside[70000];
    const size_t gaps[] = {0, 64, 40000, 1 << 20, (size_t)5 << 20}, sizes[] = {1, 100, 70000, (size_t)3 << 20};
    for (int g = 0; g < 5; g++)
        for (int s = 0; s < 4; s++) {
            const size_t bytes = sizes[s];
            wf_arena *arena = wf_arena_new();
            unsigned char *before = wf_arena_get(arena, 100);
            memset(before, 77, 100);
            wf_arena_mark mark = wf_arena_here(arena);
            for (size_t i = 0; i < gaps[g]; i += 1 << 20)
                ck_assert_ptr_nonnull(wf_arena_get(arena, gaps[g] < 1 << 20 ? gaps[g] : 1 << 20));
            unsigned char *data = wf_arena_get(arena, bytes + 64);
            ck_assert(wf_arena_before(arena, mark, before) && !wf_arena_before(arena, mark, data));
            for (size_t i = 0; i < bytes; i++)
                data[i] = (unsigned char)(i * 7 + i / 251);
            size_t reserved = wf_arena_stats(arena).reserved;
            wf_alloc_fail_after(0); /* none is needed */
            unsigned char *moved = wf_arena_rewind_with(arena, mark, data, bytes);
            wf_alloc_fail_after(-1);
            ck_assert_ptr_nonnull(moved);
            for (size_t i = 0; i < bytes; i++)
                ck_assert(moved[i] == (unsigned char)(i * 7 + i / 251));
            ck_assert_uint_eq(wf_arena_stats(arena).reserved, reserved);
#ifdef __SANITIZE_ADDRESS__
            ck_assert(__asan_address_is_poisoned(moved + bytes) && !__asan_address_is_poisoned(moved + bytes - 1));
            ck_assert((moved <= data && data < moved + bytes) || __asan_address_is_poisoned(data));
            ck_assert(__asan_address_is_poisoned(data + bytes - 1) || (moved <= data + bytes - 1 && data + bytes - 1 < moved + bytes));
#endif
            unsigned char *copy = wf_arena_rewind_with(arena, mark, before, 100);
            ck_assert(copy != before && copy[99] == 77 && before[99] == 77);
            copy = wf_arena_rewind_with(arena, mark, outside, sizeof outside);
            ck_assert(copy && !wf_arena_before(arena, mark, copy) && copy[sizeof outside - 1] == 0);
            ck_assert_ptr_nonnull(wf_arena_rewind_with(arena, mark, NULL, 0));
            wf_arena_free(arena);
        }
}
END_TEST

/* Loops with requests of their own between rewinds share their chunks. */
START_TEST(arena_shares_chunks)
{
    const size_t mib = 1 << 20,
                 phase[3][4] = {{3 * mib, 3 * mib, 9 * mib, 3 * mib}, {12 * mib, 12 * mib, 3 * mib, 64}, {1 * mib, 20 * mib, 64, 5 * mib}};
    wf_arena *arena = wf_arena_new();
    memset(wf_arena_get(arena, 100), 3, 100);
    wf_arena_mark mark = wf_arena_here(arena);
    int64_t count = 0;
    for (int round = 0; round < 9; round++) {
        char *block[4];
        for (int i = 0; i < 4; i++) {
            ck_assert_ptr_nonnull(block[i] = wf_arena_get(arena, phase[round % 3][i]));
            memset(block[i], i, phase[round % 3][i]);
        }
        for (int i = 0; i < 4; i++)
            ck_assert(block[i][0] == i && block[i][phase[round % 3][i] - 1] == i);
        wf_arena_rewind(arena, mark);
        if (round == 2)
            count = wf_alloc_count();
    }
    ck_assert_int_eq(wf_alloc_count(), count);
    ck_assert_uint_le(wf_arena_stats(arena).reserved, 40 * mib); /* the largest takes 27 */
    /* Chunks that were given up for a larger one which there is no memory for. */
    size_t reserved = wf_arena_stats(arena).reserved;
    wf_alloc_fail_after(0);
    ck_assert_ptr_null(wf_arena_get(arena, reserved));
    wf_alloc_fail_after(-1);
    for (int i = 0; i < 4; i++)
        ck_assert_ptr_nonnull(wf_arena_get(arena, phase[0][i]));
    wf_arena_reset(arena);
    ck_assert_ptr_nonnull(wf_arena_get(arena, 2 * reserved));
    wf_arena_free(arena);
}
END_TEST

static void *use_scratch(void *live)
{
    char *p = wf_scratch(WF_SCRATCH_OP, 100), *q = wf_scratch(WF_SCRATCH_GEMM, 100000);
    memset(p, 1, 100);
    memset(q, 2, 100000);
    ck_assert_int_eq(p[99], 1);
    ck_assert_ptr_eq(wf_scratch(WF_SCRATCH_OP, 50), p);
    ck_assert_int_eq(wf_alloc_live(), *(int64_t *)live + 2);
    q = wf_scratch(WF_SCRATCH_GEMM, 1000000);
    ck_assert_int_eq(wf_alloc_live(), *(int64_t *)live + 2);
    ck_assert_int_eq(p[99], 1);
    wf_alloc_fail_after(0);
    ck_assert_ptr_null(wf_scratch(WF_SCRATCH_PACK_A, 10));
    wf_alloc_fail_after(0);
    ck_assert_ptr_null(wf_scratch(WF_SCRATCH_GEMM, 10000000));
    ck_assert_ptr_nonnull(wf_scratch(WF_SCRATCH_GEMM, 10000000));
    ck_assert_ptr_null(wf_scratch(WF_SCRATCH_GEMM, SIZE_MAX));
    return NULL;
}

START_TEST(scratch)
{
    int64_t live = wf_alloc_live();
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        ck_assert_int_eq(pthread_create(&thread, NULL, use_scratch, &live), 0);
        pthread_join(thread, NULL);
        ck_assert_int_eq(wf_alloc_live(), live);
    }
}
END_TEST

WF_TEST_MAIN("memory", allocator, reallocation, failures, counts_in_threads, arena_blocks, arena_settles, arena_without_memory,
             arena_poison, arena_rewind_with, arena_shares_chunks, scratch)
