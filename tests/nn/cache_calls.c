/* SPDX-License-Identifier: MIT */
/* Caches: refused calls, allocations that fail, and wf_kv_append for another attention. */
#include "cache_test.h"

static void refused(struct rig *r, wf_mode mode, int64_t rows, int64_t T, struct wf_cache *cache, const char *message)
{
    wf_real x[MOST * D] = {0};
    wf_tape_reset(r->tape, mode);
    wf_tensor *y =
        wf_mha_forward(&r->attn[0], wf_input(r->tape, x, WF_SHAPE(rows, T, D), false), .causal = true, .cache = &cache->layer[0]);
    ck_poison(y, message);
    for (int64_t b = 0; b < cache->rows; b++)
        ck_assert_int_eq(cache->length[b], 3);
}

START_TEST(errors)
{
    struct rig r = start(&kinds[0]);
    struct wf_cache cache, wrong;
    make(&cache, &r, 2, 8);
    wf_real part[MOST * D];
    run(&r, (const int[]){0, 1}, (int64_t[]){0, 0}, 2, 3, &cache, part);
    refused(&r, WF_TRAIN, 2, 1, &cache, "attention: a cache works in WF_INFER only");
    refused(&r, WF_GRADIENTS, 2, 1, &cache, "attention: a cache works in WF_INFER only");
    refused(&r, WF_INFER, 2, 6, &cache, "attention: the cache is full: it holds 3 of at most 8 tokens, and 6 more were given");
    refused(&r, WF_INFER, 1, 1, &cache,
            "attention: the cache has 2 rows of key width 24 and value width 24, but the call has 1 rows of 24 and 24");
    ck_ok(wf_cache_init(&wrong, LAYERS, 2, 8, 12, 24, error));
    wrong.length[0] = wrong.length[1] = 3;
    refused(&r, WF_INFER, 2, 1, &wrong,
            "attention: the cache has 2 rows of key width 12 and value width 24, but the call has 2 rows of 24 and 24");
    wf_cache_free(&wrong);

    /* The cache is as it was, and goes on. */
    wf_real whole[MOST * D];
    run(&r, (const int[]){0, 1}, (int64_t[]){3, 3}, 2, 5, &cache, part);
    at_once(&r, 1, 8, whole);
    same(part + 5 * D, whole + 3 * D, 5 * D, "after the errors");

    /* Positions know the cache too. */
    wf_tape_reset(r.tape, WF_INFER);
    wf_real x[3 * D] = {0};
    ck_poison(wf_positions_forward(&r.positions, wf_input(r.tape, x, WF_SHAPE(3, 1, D), false), &cache),
              "positions: 3 rows, but the cache has 2");

    ck_assert_int_eq(wf_cache_init(&wrong, 0, 1, 1, 1, 1, NULL), WF_ERR_ARGUMENT);
    ck_assert_int_eq(wf_cache_init(&wrong, 1, 0, 1, 1, 1, NULL), WF_ERR_ARGUMENT);
    ck_assert_int_eq(wf_cache_init(&wrong, 1, 1, 1, 0, 1, NULL), WF_ERR_ARGUMENT);
    ck_assert_int_eq(wf_cache_init(&wrong, 1, INT64_MAX / 2, 3, 1, 1, NULL), WF_ERR_ARGUMENT);
    wf_cache_free(&(struct wf_cache){0});
    wf_cache_free(&cache);
    stop(&r);
}
END_TEST

START_TEST(without_memory)
{
    struct rig r = start(&kinds[0]);
    int64_t live = wf_alloc_live();
    int n = 0;
    for (;; n++) {
        struct wf_cache cache;
        wf_error e = {0};
        wf_alloc_fail_after(n);
        wf_status status = wf_cache_init(&cache, LAYERS, 2, 8, r.key_width, r.value_width, &e);
        if (status == WF_OK) {
            wf_real part[2 * D];
            wf_alloc_fail_after(-1);
            run(&r, (const int[]){0, 1}, (int64_t[]){0, 0}, 2, 1, &cache, part);
            wf_alloc_fail_after(0); /* reordering needs no memory */
            ck_assert_int_eq(wf_cache_select(&cache, (int32_t[]){1, 0}, 2, &e), WF_OK);
        }
        wf_alloc_fail_after(-1);
        wf_cache_free(&cache);
        if (status == WF_OK)
            break;
        ck_assert_int_eq(status, WF_ERR_MEMORY);
        ck_assert_int_eq(wf_alloc_live(), live);
    }
    ck_assert_int_eq(n, 4);
    ck_assert_int_eq(wf_alloc_live() >= live, 1);
    stop(&r);
}
END_TEST

/* An attention made by hand of wf_kv_append and wf_attention is that of wf_mha, also with rows of different lengths. */
START_TEST(another_attention)
{
    enum { HEADS = 4, ROWS = 3, NEW = 2 };
    struct rig r = start(&(struct wf_mha_options){.no_output = true});
    struct wf_cache theirs, ours;
    make(&theirs, &r, ROWS, MOST);
    make(&ours, &r, ROWS, MOST);
    wf_real x[ROWS * 5 * D], a[ROWS * 5 * D], b[ROWS * 5 * D];
    for (int step = 0; step < 3; step++) {
        const int64_t T = step == 0 ? 5 : NEW;
        for (int64_t i = 0; i < ROWS * T; i++)
            token(x + i * D, step, i);
        for (int side = 0; side < 2; side++) {
            wf_tape_reset(r.tape, WF_INFER);
            struct wf_cache *cache = side == 0 ? &theirs : &ours;
            wf_tensor *in = wf_input(r.tape, x, WF_SHAPE(ROWS, T, D), false), *y;
            if (side == 0) {
                y = wf_mha_forward(&r.attn[0], in, .causal = true, .cache = &cache->layer[0]);
            } else {
                wf_tensor *qkv = wf_linear_forward(&r.attn[0].qkv, in); /* [R,T,3 D] */
                struct wf_kv_held held = wf_kv_append(&cache->layer[0], wf_slice(qkv, -1, D, D), wf_slice(qkv, -1, 2 * D, D));
                ck_assert((held.lengths != NULL) == (step > 0) && (held.starts != NULL) == (step > 0));
                y = wf_attention(wf_slice(qkv, -1, 0, D), held.keys, held.values, .heads = HEADS, .causal = true,
                                 .key_lengths = held.lengths, .starts = held.starts);
            }
            ck_read(y, side == 0 ? a : b, ROWS * T * D);
            wf_cache_advance(cache, T);
            if (step == 0)
                for (int64_t row = 0; row < ROWS; row++)
                    wf_cache_rewind(cache, row, (int32_t)(5 - row));
        }
        ck_assert_mem_eq(a, b, (size_t)(ROWS * T * D) * sizeof *a);
    }
    wf_tensor *k = wf_input(r.tape, x, WF_SHAPE(ROWS, 1, D - 1), false);
    ck_poison(wf_kv_append(&ours.layer[0], k, k).keys, "the cache has 3 rows of key width 24");
    k = wf_input(r.tape, x, WF_SHAPE(ROWS, 1, D), false);
    ck_poison(wf_kv_append(NULL, k, k).values, "not made with wf_cache_init");
    wf_cache_free(&theirs);
    wf_cache_free(&ours);
    stop(&r);
}
END_TEST

WF_TEST_MAIN("cache_calls", errors, without_memory, another_attention)
