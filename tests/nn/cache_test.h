/* SPDX-License-Identifier: MIT */
/* Shared by the tests of caches: attention with positions, in pieces and at once. */
#ifndef TESTS_CACHE_TEST_H
#define TESTS_CACHE_TEST_H

#include <math.h>

#include "nn_test.h"

enum { D = 24, MOST = 40, LAYERS = 2 };

/* Two layers of attention with positions before them: enough that a wrong row or place shows. */
struct rig {
    wf_registry *registry;
    wf_tape *tape;
    enum wf_precision precision; /* of the passes that `run` makes */
    struct wf_positions positions;
    struct wf_mha attn[LAYERS];
    struct wf_rms_norm norm;
    int64_t key_width, value_width;
};

static inline struct rig start(const struct wf_mha_options *o)
{
    struct rig r = {.registry = new_registry(), .tape = new_tape()};
    wf_scope s = wf_root(r.registry);
    wf_positions_init(wf_sub(s, "positions"), &r.positions, MOST, D);
    for (int i = 0; i < LAYERS; i++)
        wf_mha_init_with(wf_sub_at(s, "attn", i), &r.attn[i], D, 4, o);
    wf_rms_norm_init(wf_sub(s, "norm"), &r.norm, D);
    ck_ok(wf_registry_build(r.registry, 4, error));
    r.key_width = r.attn[0].kv_heads * r.attn[0].d_key;
    r.value_width = r.attn[0].kv_heads * r.attn[0].d_value;
    return r;
}

static inline void stop(struct rig *r)
{
    wf_tape_free(r->tape);
    wf_registry_free(r->registry);
}

static inline void make(struct wf_cache *cache, const struct rig *r, int64_t rows, int64_t capacity)
{
    ck_ok(wf_cache_init(cache, LAYERS, rows, capacity, r->key_width, r->value_width, error));
}

/* The value in row `row` of the test's data at place t. */
static inline void token(wf_real out[D], int row, int64_t t)
{
    wf_fill_normal(out, D, 0, 1, 1000 + (uint64_t)row, (uint64_t)t);
}

static inline wf_tensor *forward(struct rig *r, wf_tensor *x, struct wf_cache *cache)
{
    x = wf_positions_forward(&r->positions, x, cache);
    for (int i = 0; i < LAYERS; i++)
        x = wf_add(x,
                   wf_mha_forward(&r->attn[i], wf_rms_norm_forward(&r->norm, x), .causal = true, .cache = cache ? &cache->layer[i] : NULL));
    return x;
}

/* Tokens begin[i] .. begin[i]+T-1 of sequence row[i], for each i -> out [rows,T,D]. */
static inline void run(struct rig *r, const int *row, const int64_t *begin, int64_t rows, int64_t T, struct wf_cache *cache, wf_real *out)
{
    wf_real *x = malloc((size_t)(rows * T * D) * sizeof *x);
    for (int64_t b = 0; b < rows; b++)
        for (int64_t t = 0; t < T; t++)
            token(x + (b * T + t) * D, row[b], begin[b] + t);
    wf_tape_reset(r->tape, WF_INFER, .precision = r->precision);
    wf_tensor *y = forward(r, wf_input(r->tape, x, WF_SHAPE(rows, T, D), false), cache);
    ck_read(y, out, rows * T * D);
    if (cache)
        wf_cache_advance(cache, T);
    free(x);
}

/* Sequence `row` alone and at once, tokens 0 .. T-1. */
static inline void at_once(struct rig *r, int row, int64_t T, wf_real *out)
{
    run(r, &row, (int64_t[]){0}, 1, T, NULL, out);
}

static inline void same(const wf_real *have, const wf_real *want, int64_t n, const char *what)
{
    for (int64_t i = 0; i < n; i++)
        ck_assert_msg(have[i] == want[i], "%s: number %d is %.17g, not %.17g", what, (int)i, (double)have[i], (double)want[i]);
}

__attribute__((unused)) static const struct wf_mha_options kinds[] = {
    {0},
    {.kv_heads = 2, .no_bias = true},
    {.kv_heads = 1, .d_key = 10, .d_value = 7},
    {.rope = true},
    {.kv_heads = 2, .d_key = 10, .rope = true, .rotary = {.width = 6, .interleaved = true}},
    {.kv_heads = 2, .rope = true, .window = 7},
    {.window = 1},
    {.kv_heads = 2, .rope = true, .qk_norm = true}};
enum { KINDS = sizeof kinds / sizeof *kinds };

#endif
