/* SPDX-License-Identifier: MIT */
/* Caches: a sequence in pieces gives what it gives at once, bit for bit; rows of different lengths, reordered, rewound. */
#include <malloc.h>

#include "cache_test.h"

static void check_pieces(enum wf_precision precision)
{
    static const int64_t pieces[][5] = {{1, 1, 1, 1, 1}, {7, 1, 1, 3, 1}, {20, 1, 12, 0, 0}, {33, 0, 0, 0, 0}, {1, 31, 1, 0, 0}};
    for (int k = 0; k < KINDS; k++)
        for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++) {
            struct rig r = start(&kinds[k]);
            struct wf_cache cache;
            r.precision = precision;
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

START_TEST(pieces_equal_the_whole)
{
    check_pieces(WF_PRECISION_REAL);
}
END_TEST

#ifndef WF_DOUBLE
START_TEST(pieces_equal_the_whole_in_bf16)
{
    static wf_real of_bf16[MOST * D], of_float[MOST * D];
    check_pieces(WF_PRECISION_BF16);
    struct rig r = start(&kinds[0]);
    at_once(&r, 0, MOST, of_float);
    r.precision = WF_PRECISION_BF16;
    at_once(&r, 0, MOST, of_bf16);
    ck_assert_mem_ne(of_bf16, of_float, sizeof of_float);
    stop(&r);
}
END_TEST
#define IN_BF16 pieces_equal_the_whole_in_bf16,
#else
#define IN_BF16
#endif

/* Rows that are rewound to different lengths go on as if each were alone. */
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
    /* row 3 was dropped */
    ck_fails(wf_cache_select(&cache, (int32_t[]){0, 3}, 2, error), WF_ERR_ARGUMENT, "row 3 does not exist: the cache has 3 rows");
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

/* Any map of rows to rows: stays, copies, chains, cycles, fewer rows and more. Each row then holds the contents of its source. */
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
    ck_read(y, out, T * D);
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

/* Rows that a view computes alone, and all rows in a larger copy: the values of each row at once. Views are of any rows, and reused. */
START_TEST(views_and_a_larger_copy)
{
    static wf_real whole[MOST * D], part[4 * MOST * D];
    for (int k = 0; k < KINDS; k++) {
        struct rig r = start(&kinds[k]);
        struct wf_cache cache, larger, view = {0};
        int64_t done[4] = {0};
        make(&cache, &r, 3, 12);
        static const struct {
            int first, rows, tokens;
        } steps[] = {{1, 1, 5}, {0, 2, 1}, {2, 1, 7}, {0, 3, 2}, {1, 2, 1}, {0, 1, 4}};
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
            const int first = steps[i].first, rows = steps[i].rows, T = steps[i].tokens, row[] = {first, first + 1, first + 2};
            ck_ok(wf_cache_view(&view, &cache, first, rows, error));
            ck_assert_int_eq(view.rows, rows);
            run(&r, row, done + first, rows, T, &view, part);
            for (int b = 0; b < rows; b++) {
                done[first + b] += T;
                ck_assert_int_eq(cache.length[first + b], done[first + b]);
                at_once(&r, first + b, done[first + b], whole);
                same(part + b * T * D, whole + (done[first + b] - T) * D, T * D, "a view");
            }
        }
        wf_tape_reset(r.tape, WF_INFER);
        ck_fails(wf_cache_select(&view, (const int32_t[]){0}, 1, error), WF_ERR_ARGUMENT, "this is a view");
        ck_fails(wf_cache_view(&(struct wf_cache){0}, &view, 0, 1, error), WF_ERR_ARGUMENT, "itself a view");
        ck_fails(wf_cache_view(&view, &cache, 2, 2, error), WF_ERR_ARGUMENT, "rows 2 to 3");
        ck_fails(wf_cache_view(&view, &cache, -1, 1, error), WF_ERR_ARGUMENT, "rows -1");
        make(&larger, &r, 4, 20);
        ck_ok(wf_cache_copy(&larger, &cache, error));
        ck_fails(wf_cache_copy(&cache, &larger, error), WF_ERR_ARGUMENT, "too small");
        ck_ok(wf_cache_copy_row(&larger, 3, 2, 6, error)); /* and a row goes on like another one */
        ck_assert_int_eq(larger.length[3], 6);
        ck_fails(wf_cache_copy_row(&larger, 0, 3, 7, error), WF_ERR_ARGUMENT, "7 tokens of row 3 to row 0");
        ck_fails(wf_cache_copy_row(&view, 0, 0, 1, error), WF_ERR_ARGUMENT, "out of range");
        wf_cache_free(&cache);
        wf_cache_free(&view); /* after its cache */
        done[3] = 6;
        run(&r, (const int[]){0, 1, 2, 2}, done, 4, 3, &larger, part);
        for (int b = 0; b < 4; b++) {
            at_once(&r, b < 3 ? b : 2, done[b] + 3, whole);
            same(part + b * 3 * D, whole + done[b] * D, 3 * D, "a larger cache");
        }
        wf_tape_reset(r.tape, WF_INFER);
        wf_cache_free(&larger);
        stop(&r);
    }
}
END_TEST

/* A single row takes the memory of one: the spare row is for rows that change places. */
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

WF_TEST_MAIN("cache", IN_BF16 pieces_equal_the_whole, rows_of_different_lengths, rows_selected, any_selection, views_and_a_larger_copy,
             a_row_alone, neighbours_do_not_matter, memory_of_different_lengths, masks_and_lengths_of_the_caller)
