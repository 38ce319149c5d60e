/* SPDX-License-Identifier: MIT */
/* Positions as a bias of scores: T5's buckets and ALiBi against PyTorch (tests/golden/make_attention.py), caches, refusals. */
#include <weft/relative.h>

#include "../golden/golden.h"
#include "nn_test.h"

enum { FAR = 400 };

static void buckets_are(const char *name, int buckets, int64_t max_distance, bool bidirectional)
{
    struct rig r = rig_open("attention", name);
    wf_real got[2 * FAR + 1];
    for (int i = 0; i <= 2 * FAR; i++)
        got[i] = wf_relative_bucket(i - FAR, buckets, max_distance, bidirectional);
    wf_array view = wf_array_contiguous(got, WF_REAL, WF_SHAPE(2 * FAR + 1));
    golden_near(r.file, name, &view, 0);
    rig_close(&r);
}

START_TEST(buckets)
{
    buckets_are("buckets", 32, 128, false);
    buckets_are("buckets_both", 32, 128, true);
    buckets_are("buckets_few", 7, 20, false);
    buckets_are("buckets_few_both", 10, 64, true);
    ck_assert_int_eq(wf_relative_bucket(INT64_MIN / 2, 32, 128, true), 15);
    ck_assert_int_eq(wf_relative_bucket(INT64_MAX / 2, 32, 128, true), 31);
}
END_TEST

START_TEST(as_pytorch)
{
    for (int both = 0; both < 2; both++) {
        struct rig r = rig_open("attention", both ? "relative_both" : "relative");
        struct wf_relative_bias m;
        wf_relative_bias_init(wf_root(r.registry), &m, 3, .buckets = 8, .max_distance = 20, .bidirectional = both);
        rig_start(&r, WF_GRADIENTS, 0.5);
        rig_check(&r, wf_relative_bias_forward(&m, r.tape, 9, 30));
    }
}
END_TEST

START_TEST(slopes)
{
    struct rig r = rig_open("attention", "slopes");
    wf_real got[17 * 18 / 2], *to = got;
    for (int heads = 1; heads <= 17; heads++) {
        double slope[17];
        wf_alibi_slopes(heads, slope);
        for (int i = 0; i < heads; i++)
            *to++ = (wf_real)slope[i];
    }
    wf_array view = wf_array_contiguous(got, WF_REAL, WF_SHAPE(17 * 18 / 2));
    golden_near(r.file, "slopes", &view, sizeof(wf_real) == 8 ? 1e-15 : 1e-7);
    rig_close(&r);
}
END_TEST

/* In a model: the layers share one bias, gradients reach the buckets, and a cached step has the bits of the whole. */
START_TEST(in_attention)
{
    enum { T = 40, D = 16, H = 4, N = T * D };
    wf_registry *registry = new_registry();
    struct wf_mha layer[2];
    struct wf_relative_bias m;
    for (int i = 0; i < 2; i++)
        wf_mha_init(wf_sub_at(wf_root(registry), "layers", i), &layer[i], D, H);
    wf_relative_bias_init(wf_sub(wf_root(registry), "bias"), &m, H, .buckets = 8, .max_distance = 30);
    ck_ok(wf_registry_build(registry, 1, error));
    wf_tape *tape = new_tape();
    static wf_real x[N], whole[2][N], step[D];
    wf_fill_normal(x, N, 0, 1, 5, 6);
    wf_tape_reset(tape, WF_TRAIN);
    wf_tensor *y = wf_input(tape, x, WF_SHAPE(1, T, D), false), *bias = wf_relative_bias_forward(&m, tape, T, T);
    for (int i = 0; i < 2; i++)
        y = wf_mha_forward(&layer[i], y, .causal = true, .bias = bias, .residual = y);
    ck_backward(wf_sum(wf_mul(y, y)));
    const wf_real *gradient = gradient_of(m.weight);
    bool some = false;
    for (int i = 0; i < 8 * H; i++)
        some = some || gradient[i] != 0;
    ck_assert(some);
    for (int alibi = 0; alibi < 2; alibi++) {
        wf_tape_reset(tape, WF_INFER);
        bias = alibi ? wf_alibi(tape, H, T, T) : wf_relative_bias_forward(&m, tape, T, T);
        y = wf_mha_forward(&layer[0], wf_input(tape, x, WF_SHAPE(1, T, D), false), .causal = true, .bias = bias);
        ck_read(y, whole[alibi], N);
        struct wf_cache cache = {0};
        ck_ok(wf_cache_init(&cache, 1, 1, T, D, D, error));
        for (int t = 0; t < T; t++) {
            wf_tape_reset(tape, WF_INFER);
            bias = alibi ? wf_alibi(tape, H, 1, t + 1) : wf_relative_bias_forward(&m, tape, 1, t + 1);
            y = wf_mha_forward(&layer[0], wf_input(tape, x + t * D, WF_SHAPE(1, 1, D), false), .causal = true, .bias = bias,
                               .cache = cache.layer);
            ck_read(y, step, D);
            ck_assert_mem_eq(step, whole[alibi] + t * D, sizeof step);
            wf_cache_advance(&cache, 1);
        }
        wf_cache_free(&cache);
    }
    ck_assert_mem_ne(whole[0], whole[1], sizeof whole[0]);
    wf_tape_free(tape);
    wf_registry_free(registry);
}
END_TEST

/* T5's attention, as PyTorch computes it on padded rows: packed ones need no padding here. */
START_TEST(t5)
{
    static const int32_t offsets[] = {0, 4, 5, 35, 47};
    static const struct {
        const char *name;
        bool both;
        struct wf_packed packed;
    } cases[] = {{"t5", false, {0}}, {"t5_packed", true, {offsets, 4}}, {"t5_packed_causal", false, {offsets, 4}}};
    for (int i = 0; i < 3; i++) {
        const struct wf_packed packed = cases[i].packed;
        struct rig r = rig_open("attention", cases[i].name);
        struct wf_mha m;
        struct wf_relative_bias bias;
        wf_mha_init(wf_root(r.registry), &m, 16, 4, .no_bias = true, .scale = 1);
        wf_relative_bias_init(wf_sub(wf_root(r.registry), "bias"), &bias, 4, .buckets = 8, .max_distance = 20,
                              .bidirectional = cases[i].both);
        rig_start(&r, WF_GRADIENTS, 0.5);
        wf_tensor *x = rig_input(&r, "x", wf_is_packed(packed) ? WF_SHAPE(47, 16) : WF_SHAPE(2, 12, 16), 1);
        rig_check(&r, wf_mha_forward(&m, x, .causal = !cases[i].both, .packed = packed,
                                     .bias = wf_relative_bias_self(&bias, x, .packed = packed)));
    }
}
END_TEST

/* Rows of a cache that hold 5, 0 and 12 tokens go on by 3: each has the bits that it has alone, with either bias. */
START_TEST(rows_of_different_lengths)
{
    enum { ROWS = 3, NEW = 3, D = 16, H = 4, MOST = 12 };
    static const int32_t held[ROWS] = {5, 0, MOST};
    static wf_real x[ROWS][MOST + NEW][D], alone[ROWS][NEW * D], together[ROWS * NEW * D];
    wf_registry *registry = new_registry();
    struct wf_mha m;
    struct wf_relative_bias relative;
    wf_mha_init(wf_sub(wf_root(registry), "attn"), &m, D, H);
    wf_relative_bias_init(wf_sub(wf_root(registry), "bias"), &relative, H, .buckets = 8, .max_distance = 10);
    ck_ok(wf_registry_build(registry, 1, error));
    wf_tape *tape = new_tape();
    wf_fill_normal(&x[0][0][0], ROWS * (MOST + NEW) * D, 0, 1, 5, 6);
    for (int alibi = 0; alibi < 2; alibi++) {
        struct wf_cache all = {0}, one = {0};
#define STEP(in, shape, held_by)                                                                                                           \
    (wf_tape_reset(tape, WF_INFER), y = wf_input(tape, in, shape, false),                                                                  \
     y = wf_mha_forward(&m, y, .causal = true, .cache = (held_by)->layer,                                                                  \
                        .bias = alibi ? wf_alibi_self(H, y, .cache = held_by) : wf_relative_bias_self(&relative, y, .cache = held_by)))
        wf_tensor *y;
        ck_ok(wf_cache_init(&all, 1, ROWS, MOST + NEW, D, D, error));
        static wf_real first[ROWS][MOST][D], next[ROWS][NEW][D];
        for (int b = 0; b < ROWS; b++) {
            memcpy(first[b], x[b], sizeof first[b]);
            memcpy(next[b], x[b][held[b]], sizeof next[b]);
            ck_ok(wf_cache_init(&one, 1, 1, MOST + NEW, D, D, error));
            for (int t = 0; t < held[b]; t += held[b]) {
                STEP(&x[b][0][0], WF_SHAPE(1, held[b], D), &one);
                ck_assert_msg(!wf_is_poison(y), "%s", wf_tape_error(tape)->message);
                wf_cache_advance(&one, held[b]);
            }
            STEP(&x[b][held[b]][0], WF_SHAPE(1, NEW, D), &one);
            ck_read(y, alone[b], NEW * D);
            wf_cache_free(&one);
        }
        STEP(&first[0][0][0], WF_SHAPE(ROWS, MOST, D), &all);
        wf_cache_advance(&all, MOST);
        for (int b = 0; b < ROWS; b++)
            wf_cache_rewind(&all, b, held[b]);
        STEP(&next[0][0][0], WF_SHAPE(ROWS, NEW, D), &all);
        ck_read(y, together, ROWS * NEW * D);
        ck_assert_mem_eq(together, alone, sizeof together);
        STEP(&next[0][0][0], WF_SHAPE(ROWS - 1, NEW, D), &all);
        ck_poison(y, "has 2 rows, but the cache has 3");
        wf_cache_free(&all);
    }
    wf_tape_free(tape);
    wf_registry_free(registry);
}
END_TEST

START_TEST(sizes)
{
    wf_tape *tape = new_tape();
    wf_tape_reset(tape, WF_INFER);
    wf_real got[24];
    ck_read(wf_alibi(tape, 3, 2, 4), got, 24);
    ck_assert(got[2] == 0 && got[3] == (wf_real)-0.0625 && got[0] == (wf_real)-0.125 && got[7] == 0); /* slope 2^-4 of head 0 */
    ck_assert_int_eq(wf_dim(wf_alibi(tape, 2, 0, 5), 1), 0);
    ck_poison(wf_alibi(tape, 0, 1, 1), "wf_alibi: heads = 0 must be at least 1");
    ck_poison(wf_alibi(tape, 1, -1, 1), "wf_alibi: -1 queries and 1 keys");
    ck_poison(wf_alibi_self(2, wf_zeros(tape, WF_SHAPE(5, 3)), .packed = {(const int32_t[]){0, 4}, 1}),
              "wf_alibi_self: packed: offsets[1] = 4 after 0, but");
    ck_poison(wf_alibi_self(2, NULL), "wf_alibi_self: x is NULL");
    ck_poison(wf_alibi_self(2, wf_zeros(tape, WF_SHAPE(5))), "wf_alibi_self: 'zeros' is not [B,T,...]");
    wf_tape_free(tape);
}
END_TEST

START_TEST(refused)
{
    static const struct {
        int heads;
        struct wf_relative_bias_options options;
        const char *says;
    } bad[] = {{0, {0}, "heads = 0 must be at least 1"},
               {2, {.buckets = 1}, "buckets = 1 must be at least 2"},
               {2, {.buckets = -8}, "buckets = -8 must be at least 2"},
               {2, {.buckets = 9, .bidirectional = true}, "buckets = 9 must be a multiple of 2 and at least 4"},
               {2, {.buckets = 2, .bidirectional = true}, "buckets = 2 must be a multiple of 2 and at least 4"},
               {2, {.max_distance = 16}, "max_distance = 16 must be above 16"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct wf_relative_bias m;
        wf_registry *registry = new_registry();
        wf_relative_bias_init_with(wf_sub(wf_root(registry), "bias"), &m, bad[i].heads, &bad[i].options);
        declared_wrong(registry, bad[i].says);
    }
}
END_TEST

WF_TEST_MAIN("relative", buckets, as_pytorch, slopes, in_attention, t5, rows_of_different_lengths, sizes, refused)
