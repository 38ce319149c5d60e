/* SPDX-License-Identifier: MIT */
/* Caches: a sequence in pieces gives what it gives at once, bit for bit; rows of different lengths, reordered, rewound. */
#include <malloc.h>
#include <math.h>

#include <weft/nn.h>

#include "check_weft.h"

enum { D = 24, MOST = 40, LAYERS = 2 };

/* Two layers of attention with positions before them: enough that a wrong row or place shows. */
struct rig {
    wf_registry *registry;
    wf_tape *tape;
    struct wf_positions positions;
    struct wf_mha attn[LAYERS];
    struct wf_rms_norm norm;
    int64_t key_width, value_width;
};

static struct rig start(const struct wf_mha_options *o)
{
    struct rig r = {0};
    wf_error e = {0};
    r.registry = wf_registry_new(&e);
    r.tape = wf_tape_new(&e);
    ck_assert_msg(r.registry && r.tape, "%s", e.message);
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

static void stop(struct rig *r)
{
    wf_tape_free(r->tape);
    wf_registry_free(r->registry);
}

static void make(struct wf_cache *cache, const struct rig *r, int64_t rows, int64_t capacity)
{
    ck_ok(wf_cache_init(cache, LAYERS, rows, capacity, r->key_width, r->value_width, error));
}

/* What row `row` of the test's data holds at place t; a row is a sequence of its own. */
static void token(wf_real out[D], int row, int64_t t)
{
    wf_fill_normal(out, D, 0, 1, 1000 + (uint64_t)row, (uint64_t)t);
}

static wf_tensor *forward(struct rig *r, wf_tensor *x, struct wf_cache *cache)
{
    x = wf_positions_forward(&r->positions, x, cache);
    for (int i = 0; i < LAYERS; i++)
        x = wf_add(x,
                   wf_mha_forward(&r->attn[i], wf_rms_norm_forward(&r->norm, x), .causal = true, .cache = cache ? &cache->layer[i] : NULL));
    return x;
}

/* Tokens begin[i] .. begin[i]+T-1 of sequence row[i], for each i -> out [rows,T,D]. */
static void run(struct rig *r, const int *row, const int64_t *begin, int64_t rows, int64_t T, struct wf_cache *cache, wf_real *out)
{
    wf_real *x = malloc((size_t)(rows * T * D) * sizeof *x);
    for (int64_t b = 0; b < rows; b++)
        for (int64_t t = 0; t < T; t++)
            token(x + (b * T + t) * D, row[b], begin[b] + t);
    wf_tape_reset(r->tape, WF_INFER);
    wf_tensor *y = forward(r, wf_input(r->tape, x, WF_SHAPE(rows, T, D), false), cache);
    ck_assert_msg(wf_read(y, out, rows * T * D) == WF_OK, "%s", wf_tape_error(r->tape)->message);
    if (cache)
        wf_cache_advance(cache, T);
    free(x);
}

/* Sequence `row` alone and at once, tokens 0 .. T-1. */
static void at_once(struct rig *r, int row, int64_t T, wf_real *out)
{
    run(r, &row, (int64_t[]){0}, 1, T, NULL, out);
}

static void same(const wf_real *have, const wf_real *want, int64_t n, const char *what)
{
    for (int64_t i = 0; i < n; i++)
        ck_assert_msg(have[i] == want[i], "%s: number %d is %.17g, not %.17g", what, (int)i, (double)have[i], (double)want[i]);
}

static const struct wf_mha_options kinds[] = {{0},
                                              {.kv_heads = 2, .no_bias = true},
                                              {.kv_heads = 1, .d_key = 10, .d_value = 7},
                                              {.rope = true},
                                              {.kv_heads = 2, .d_key = 10, .rope = true, .rotary = {.width = 6, .interleaved = true}},
                                              {.kv_heads = 2, .rope = true, .window = 7},
                                              {.window = 1},
                                              {.kv_heads = 2, .rope = true, .qk_norm = true}};
enum { KINDS = sizeof kinds / sizeof *kinds };

START_TEST(pieces_equal_the_whole)
{
    static const int64_t pieces[][5] = {{1, 1, 1, 1, 1}, {7, 1, 1, 3, 1}, {20, 1, 12, 0, 0}, {33, 0, 0, 0, 0}, {1, 31, 1, 0, 0}};
    for (int k = 0; k < KINDS; k++)
        for (int p = 0; p < (int)(sizeof pieces / sizeof *pieces); p++) {
            struct rig r = start(&kinds[k]);
            struct wf_cache cache;
            make(&cache, &r, 3, MOST);
            static wf_real whole[MOST * D], part[3 * MOST * D];
            const int row[] = {0, 1, 2};
            int64_t done = 0;
            for (int i = 0; i < 5 && pieces[p][i]; i++) {
                int64_t T = pieces[p][i];
                run(&r, row, (int64_t[]){done, done, done}, 3, T, &cache, part);
                done += T;
                for (int b = 0; b < 3; b++) {
                    ck_assert_int_eq(cache.length[b], done);
                    at_once(&r, b, done, whole);
                    same(part + b * T * D, whole + (done - T) * D, T * D, "a piece");
                }
            }
            wf_cache_free(&cache);
            stop(&r);
        }
}
END_TEST

/* Rows rewound to lengths of their own go on as if they had been alone. */
START_TEST(rows_of_different_lengths)
{
    for (int k = 0; k < KINDS; k++) {
        struct rig r = start(&kinds[k]);
        struct wf_cache cache;
        make(&cache, &r, 3, MOST);
        static wf_real whole[MOST * D], part[3 * MOST * D];
        const int row[] = {0, 1, 2};
        run(&r, row, (int64_t[]){0, 0, 0}, 3, 9, &cache, part);
        wf_cache_rewind(&cache, 0, 4);
        wf_cache_rewind(&cache, 2, 0);
        wf_cache_rewind(&cache, 1, 30); /* longer than it is: nothing */
        ck_assert(cache.length[0] == 4 && cache.length[1] == 9 && cache.length[2] == 0);
        int64_t at[] = {4, 9, 0};
        for (int step = 0; step < 4; step++) {
            int64_t T = step == 1 ? 5 : 1;
            run(&r, row, at, 3, T, &cache, part);
            for (int b = 0; b < 3; b++) {
                at[b] += T;
                at_once(&r, b, at[b], whole);
                same(part + b * T * D, whole + (at[b] - T) * D, T * D, "a row");
            }
        }
        wf_cache_free(&cache);
        stop(&r);
    }
}
END_TEST

/* As a beam search does: rows copied over each other, some dropped, lengths with them. */
START_TEST(rows_selected)
{
    struct rig r = start(&kinds[1]);
    struct wf_cache cache;
    make(&cache, &r, 4, MOST);
    static wf_real whole[MOST * D], part[4 * MOST * D];
    const int row[] = {0, 1, 2, 3}, chosen[] = {2, 2, 0};
    run(&r, row, (int64_t[]){0, 0, 0, 0}, 4, 6, &cache, part);
    wf_cache_rewind(&cache, 0, 3);
    ck_ok(wf_cache_select(&cache, (int32_t[]){2, 2, 0}, 3, error));
    ck_assert_int_eq(cache.rows, 3);
    ck_assert(cache.length[0] == 6 && cache.length[1] == 6 && cache.length[2] == 3);
    int64_t at[] = {6, 6, 3};
    for (int step = 0; step < 2; step++) {
        run(&r, chosen, at, 3, 2, &cache, part);
        for (int b = 0; b < 3; b++) {
            at[b] += 2;
            at_once(&r, chosen[b], at[b], whole);
            same(part + b * 2 * D, whole + (at[b] - 2) * D, 2 * D, "a chosen row");
        }
    }
    wf_error e = {0};
    ck_assert_int_eq(wf_cache_select(&cache, (int32_t[]){0, 3}, 2, &e), WF_ERR_ARGUMENT); /* that row was dropped */
    ck_assert_str_eq(e.message, "row 3 does not exist: the cache has 3 rows");
    ck_assert_int_eq(wf_cache_select(&cache, (int32_t[]){-1}, 1, NULL), WF_ERR_ARGUMENT);
    ck_assert_int_eq(wf_cache_select(&cache, (int32_t[]){0, 0, 0, 0, 0}, 5, NULL), WF_ERR_ARGUMENT);
    ck_assert_int_eq(cache.rows, 3);
    ck_ok(wf_cache_select(&cache, (int32_t[]){1, 2, 2, 0}, 4, error)); /* as many rows as it was made for */
    const int again[] = {2, 0, 0, 2};
    const int64_t there[] = {10, 7, 7, 10};
    run(&r, again, there, 4, 1, &cache, part);
    for (int b = 0; b < 4; b++) {
        at_once(&r, again[b], there[b] + 1, whole);
        same(part + b * D, whole + there[b] * D, D, "a row of a cache that grew back");
    }
    wf_cache_free(&cache);
    stop(&r);
}
END_TEST

/* Any map of rows to rows: stays, copies, chains, cycles, fewer rows and more; from outside, each row holds what it should. */
START_TEST(any_selection)
{
    enum { ROWS = 9, CAPACITY = 3, KEYS = 2, VALUES = 5 };
    struct wf_cache cache;
    wf_rng rng = wf_rng_new(3, 4);
    ck_ok(wf_cache_init(&cache, LAYERS, ROWS, CAPACITY, KEYS, VALUES, error));
    for (int round = 0; round < 3000; round++) {
        int32_t from[ROWS], length[ROWS];
        int64_t before = 1 + (int64_t)wf_rng_below(&rng, ROWS), rows = 1 + (int64_t)wf_rng_below(&rng, ROWS);
        cache.rows = before;
        for (int64_t b = 0; b < before; b++) {
            cache.length[b] = length[b] = (int32_t)wf_rng_below(&rng, CAPACITY + 1);
            for (int l = 0; l < LAYERS; l++) {
                for (int i = 0; i < CAPACITY * KEYS; i++)
                    cache.layer[l].keys[b * CAPACITY * KEYS + i] = (wf_real)(1000 * l + 100 * b + i);
                for (int i = 0; i < CAPACITY * VALUES; i++)
                    cache.layer[l].values[b * CAPACITY * VALUES + i] = (wf_real)(5000 + 1000 * l + 100 * b + i);
            }
        }
        for (int64_t i = 0; i < rows; i++)
            from[i] = i < before && wf_rng_below(&rng, 3) == 0 ? (int32_t)i : (int32_t)wf_rng_below(&rng, (uint64_t)before);
        if (round % 2 && rows == before) /* a permutation */
            for (int64_t i = 0; i < rows; i++)
                from[i] = (int32_t)((i * 4 + round) % rows);
        ck_ok(wf_cache_select(&cache, from, rows, error));
        ck_assert_int_eq(cache.rows, rows);
        for (int64_t b = 0; b < rows; b++) {
            ck_assert_int_eq(cache.length[b], length[from[b]]);
            for (int l = 0; l < LAYERS; l++) {
                for (int i = 0; i < length[from[b]] * KEYS; i++)
                    ck_assert(cache.layer[l].keys[b * CAPACITY * KEYS + i] == (wf_real)(1000 * l + 100 * from[b] + i));
                for (int i = 0; i < length[from[b]] * VALUES; i++)
                    ck_assert(cache.layer[l].values[b * CAPACITY * VALUES + i] == (wf_real)(5000 + 1000 * l + 100 * from[b] + i));
            }
        }
    }
    wf_cache_free(&cache);
}
END_TEST

/* A row's bits don't depend on the rows beside it, lengths or not. */
START_TEST(neighbours_do_not_matter)
{
    struct rig r = start(&kinds[0]);
    static wf_real alone[MOST * D], beside[3 * MOST * D];
    struct wf_cache one, three;
    make(&one, &r, 1, MOST);
    make(&three, &r, 3, MOST);
    const int row[] = {5, 1, 5};
    run(&r, row, (int64_t[]){0}, 1, 8, &one, alone);
    run(&r, row, (int64_t[]){0, 0, 0}, 3, 8, &three, beside);
    same(beside, alone, 8 * D, "the first row");
    wf_cache_rewind(&three, 1, 2);
    run(&r, row, (int64_t[]){8}, 1, 1, &one, alone);
    run(&r, row, (int64_t[]){8, 2, 8}, 3, 1, &three, beside);
    same(beside, alone, D, "the first row, ragged");
    same(beside + 2 * D, alone, D, "the last row, ragged");
    wf_cache_free(&one);
    wf_cache_free(&three);
    stop(&r);
}
END_TEST

/* Rows of different lengths take the memory of rows of one length: no [rows,T,S]. */
START_TEST(memory_of_different_lengths)
{
    enum { ROWS = 5, CAPACITY = 4000 };
    struct rig r = start(&kinds[0]);
    struct wf_cache cache;
    make(&cache, &r, ROWS, CAPACITY);
    static const wf_real x[ROWS * D];
    size_t used[2];
    for (int ragged = 0; ragged < 2; ragged++) {
        for (int b = 0; b < ROWS; b++)
            cache.length[b] = CAPACITY - 1 - ragged * 100 * b;
        wf_tape_reset(r.tape, WF_INFER);
        wf_tensor *y =
            wf_mha_forward(&r.attn[0], wf_input(r.tape, x, WF_SHAPE(ROWS, 1, D), false), .causal = true, .cache = &cache.layer[0]);
        ck_assert_msg(!wf_is_poison(y), "%s", wf_tape_error(r.tape)->message);
        used[ragged] = wf_tape_stats(r.tape).used;
    }
    ck_assert_uint_le(used[1], used[0] + 2048);
    wf_cache_free(&cache);
    stop(&r);
}
END_TEST

/* The attention of T new tokens of two rows, of lengths 9 and 4; of the second one alone where `alone`. */
static void masked(struct rig *r, bool alone, bool causal, const bool *mask, const int32_t *key_lengths, int64_t T, wf_real *out)
{
    static const int row[] = {0, 1};
    static wf_real ignored[2 * MOST * D];
    struct wf_cache cache;
    const int64_t rows = alone ? 1 : 2, first = alone ? 1 : 0;
    make(&cache, r, rows, MOST);
    run(r, row + first, (int64_t[]){0, 0}, rows, 9, &cache, ignored);
    wf_cache_rewind(&cache, rows - 1, 4);
    const int64_t S = (alone ? 4 : 9) + T;
    wf_real x[2 * MOST * D];
    for (int64_t b = 0; b < rows; b++)
        for (int64_t t = 0; t < T; t++)
            token(x + (b * T + t) * D, row[first + b], cache.length[b] + t);
    bool *may = malloc((size_t)(rows * T * S));
    for (int64_t i = 0; i < rows * T * S; i++) /* the mask of the second row; all for the first */
        may[i] = i / (T * S) < rows - 1 || i % S >= 4 + T || mask[i / S % T * (4 + T) + i % S];
    wf_tape_reset(r->tape, WF_INFER);
    wf_tensor *y =
        wf_mha_forward(&r->attn[0], wf_input(r->tape, x, WF_SHAPE(rows, T, D), false), .causal = causal, .cache = &cache.layer[0],
                       .mask = wf_bools(r->tape, may, WF_SHAPE(rows, 1, T, S)), .key_lengths = key_lengths + first);
    y = wf_slice(y, 0, rows - 1, 1);
    ck_assert_msg(wf_read(y, out, T * D) == WF_OK, "%s", wf_tape_error(r->tape)->message);
    free(may);
    wf_cache_free(&cache);
}

START_TEST(masks_and_lengths_of_the_caller)
{
    static wf_real alone[MOST * D], beside[MOST * D];
    bool mask[(4 + 12) * 12];
    wf_rng rng = wf_rng_new(8, 9);
    for (int i = 0; i < (int)sizeof mask; i++)
        mask[i] = wf_rng_below(&rng, 3) > 0;
    struct rig r = start(&kinds[1]);
    for (int64_t T = 1; T <= 12; T += 11)
        for (int causal = 0; causal < 2; causal++)
            for (int32_t keys = 2; keys <= 4 + T; keys++) {
                masked(&r, true, causal, mask, (const int32_t[]){9, keys}, T, alone);
                masked(&r, false, causal, mask, (const int32_t[]){9, keys}, T, beside);
                same(beside, alone, T * D, "a row beside a longer one");
            }
    stop(&r);
}
END_TEST

/* --- errors -------------------------------------------------------------------------------------------------------- */

static void refused(struct rig *r, wf_mode mode, int64_t rows, int64_t T, struct wf_cache *cache, const char *message)
{
    wf_real x[MOST * D] = {0};
    wf_tape_reset(r->tape, mode);
    wf_tensor *y =
        wf_mha_forward(&r->attn[0], wf_input(r->tape, x, WF_SHAPE(rows, T, D), false), .causal = true, .cache = &cache->layer[0]);
    ck_assert(wf_is_poison(y));
    ck_assert_str_eq(wf_tape_error(r->tape)->message, message);
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
    ck_assert(wf_is_poison(wf_positions_forward(&r.positions, wf_input(r.tape, x, WF_SHAPE(3, 1, D), false), &cache)));
    ck_assert_str_eq(wf_tape_error(r.tape)->message, "positions: 3 rows, but the cache has 2");

    wf_error e = {0};
    ck_assert_int_eq(wf_cache_init(&wrong, 0, 1, 1, 1, 1, &e), WF_ERR_ARGUMENT);
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

/* One sequence takes the memory of one: the spare row is for those that change places. */
START_TEST(a_row_alone)
{
    struct wf_cache one, two;
    enum { CAPACITY = 1000, WIDTH = 32, BYTES = 3 * CAPACITY * 2 * WIDTH * sizeof(wf_real) };
    ck_ok(wf_cache_init(&one, 3, 1, CAPACITY, WIDTH, WIDTH, error));
    ck_ok(wf_cache_init(&two, 3, 2, CAPACITY, WIDTH, WIDTH, error));
    if (!sanitized()) {
        ck_assert_uint_lt(malloc_usable_size(one.memory), BYTES + BYTES / 4);
        ck_assert_uint_ge(malloc_usable_size(two.memory), 3 * BYTES);
    }
    wf_cache_advance(&one, CAPACITY);
    memset(one.layer[2].values, 1, CAPACITY * WIDTH * sizeof(wf_real)); /* the last of it is there */
    ck_ok(wf_cache_select(&one, (const int32_t[]){0}, 1, error));
    ck_assert_int_eq(one.length[0], CAPACITY);
    ck_ok(wf_cache_select(&one, NULL, 0, error));
    wf_cache_free(&one);
    wf_cache_free(&two);
}
END_TEST

/* An attention made by hand of wf_kv_append and wf_attention is that of wf_mha, also with rows of different lengths. */
START_TEST(an_attention_of_ones_own)
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
            ck_assert_msg(wf_read(y, side == 0 ? a : b, ROWS * T * D) == WF_OK, "%s", wf_tape_error(r.tape)->message);
            wf_cache_advance(cache, T);
            if (step == 0)
                for (int64_t row = 0; row < ROWS; row++)
                    wf_cache_rewind(cache, row, (int32_t)(5 - row));
        }
        ck_assert_mem_eq(a, b, (size_t)(ROWS * T * D) * sizeof *a);
    }
    wf_tape_reset(r.tape, WF_INFER);
    wf_tensor *k = wf_input(r.tape, x, WF_SHAPE(ROWS, 1, D - 1), false);
    ck_assert(wf_is_poison(wf_kv_append(&ours.layer[0], k, k).keys));
    ck_assert_ptr_nonnull(strstr(wf_tape_error(r.tape)->message, "the cache has 3 rows of key width 24"));
    wf_tape_reset(r.tape, WF_INFER);
    k = wf_input(r.tape, x, WF_SHAPE(ROWS, 1, D), false);
    ck_assert(wf_is_poison(wf_kv_append(NULL, k, k).values));
    ck_assert_ptr_nonnull(strstr(wf_tape_error(r.tape)->message, "not made with wf_cache_init"));
    wf_cache_free(&theirs);
    wf_cache_free(&ours);
    stop(&r);
}
END_TEST

WF_TEST_MAIN("cache", an_attention_of_ones_own, pieces_equal_the_whole, rows_of_different_lengths, rows_selected, any_selection,
             a_row_alone, neighbours_do_not_matter, memory_of_different_lengths, masks_and_lengths_of_the_caller, errors, without_memory)
