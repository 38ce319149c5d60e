/* SPDX-License-Identifier: MIT */
#include "data_test.h"

/* ids[i] = i, so that a batch shows where it comes from. */
static int32_t *counting(int64_t n)
{
    int32_t *ids = wf_alloc((size_t)n * sizeof *ids);
    for (int64_t i = 0; i < n; i++)
        ids[i] = (int32_t)i;
    return ids;
}

enum { T = 8, ROWS = 12 };

START_TEST(crops_are_stretches_of_the_text)
{
    int32_t *ids = counting(100), x[ROWS * T], y[ROWS * T];
    struct wf_crops crops;
    ck_ok(wf_crops_init(&crops, wf_id_view_of(ids, 100), T, 1, error));
    for (int64_t step = 0; step < 200; step++) {
        wf_crops_fill(&crops, step, 0, ROWS, x, y);
        for (int r = 0; r < ROWS; r++) {
            ck_assert(x[r * T] >= 0 && x[r * T] <= 100 - T - 1);
            ck_assert_int_eq(x[r * T], wf_crops_start(&crops, step, r));
            for (int t = 0; t < T; t++) {
                ck_assert_int_eq(x[r * T + t], x[r * T] + t);
                ck_assert_int_eq(y[r * T + t], x[r * T + t] + 1);
            }
        }
    }
    wf_free(ids);
}
END_TEST

/* The batch of a step is a function of (seed, step): whole, in micro-batches, row by row, and after a resume. */
START_TEST(crops_do_not_depend_on_how_they_are_taken)
{
    int32_t *ids = counting(5000), x[ROWS * T], y[ROWS * T], x2[ROWS * T], y2[ROWS * T];
    struct wf_crops crops, resumed;
    ck_ok(wf_crops_init(&crops, wf_id_view_of(ids, 5000), T, 42, error));
    for (int64_t step = 0; step < 50; step++)
        wf_crops_fill(&crops, step, 0, ROWS, x, y);
    ck_ok(wf_crops_init(&resumed, wf_id_view_of(ids, 5000), T, 42, error));
    static const int64_t parts[] = {1, 2, 3, 4, 6, 12};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        memset(x2, 0, sizeof x2);
        memset(y2, 0, sizeof y2);
        for (int64_t r = ROWS - parts[i]; r >= 0; r -= parts[i])
            wf_crops_fill(&resumed, 49, r, parts[i], x2 + r * T, y2 + r * T);
        ck_assert_mem_eq(x, x2, sizeof x);
        ck_assert_mem_eq(y, y2, sizeof y);
    }
    wf_free(ids);
}
END_TEST

/* Other seeds, steps (beyond 32 bits too) and rows give other starts; these values are fixed for good: a change breaks resuming. */
START_TEST(crops_differ)
{
    static const uint64_t seeds[] = {0, 1, 42, 1ull << 32, UINT64_MAX};
    static const int64_t steps[] = {0, 1, 2, 1ll << 32, (1ll << 32) + 1}, rows[] = {0, 1, 2, 64, 1ll << 32};
    int64_t starts[125];
    int n = 0;
    for (int a = 0; a < 5; a++)
        for (int b = 0; b < 5; b++)
            for (int c = 0; c < 5; c++) {
                struct wf_crops crops = {.ids.count = 1ll << 40, .context = 64, .seed = seeds[a]};
                starts[n++] = wf_crops_start(&crops, steps[b], rows[c]);
            }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            ck_assert_int_ne(starts[i], starts[j]);
    static const uint32_t key[2] = {42, 0}, counter[4] = {7, 0, 3, 0x706F7263};
    uint32_t word[4];
    wf_philox(counter, key, word);
    struct wf_crops crops = {.ids.count = 1003854, .context = 64, .seed = 42};
    double u = (word[1] + word[0] / 4294967296.0) / 4294967296.0;
    ck_assert_int_eq(wf_crops_start(&crops, 7, 3), (int64_t)(u * (1003854 - 64)));
}
END_TEST

/* Chi-square over all starts; over pairs of neighbouring rows; over pairs of neighbouring steps. */
START_TEST(crops_are_uniform)
{
    enum { STARTS = 50, DRAWS = 200000 };
    static int64_t single[STARTS], rows[STARTS * STARTS], steps[STARTS * STARTS];
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct wf_crops crops = {.ids.count = STARTS + T, .context = T, .seed = seed};
        memset(single, 0, sizeof single);
        memset(rows, 0, sizeof rows);
        memset(steps, 0, sizeof steps);
        for (int i = 0; i < DRAWS; i++) {
            int64_t step = i / 8, row = i % 8, a = wf_crops_start(&crops, step, row);
            if (a < 0 || a >= STARTS)
                ck_abort_msg("start %d", (int)a);
            single[a]++;
            rows[a * STARTS + wf_crops_start(&crops, step, row + 1)]++;
            steps[a * STARTS + wf_crops_start(&crops, step + 1, row)]++;
        }
        double chi = 0, chi_rows = 0, chi_steps = 0, e1 = (double)DRAWS / STARTS, e2 = e1 / STARTS;
        for (int i = 0; i < STARTS; i++)
            chi += (single[i] - e1) * (single[i] - e1) / e1;
        for (int i = 0; i < STARTS * STARTS; i++) {
            chi_rows += (rows[i] - e2) * (rows[i] - e2) / e2;
            chi_steps += (steps[i] - e2) * (steps[i] - e2) / e2;
        }
        /* 49 and 2499 degrees of freedom: mean + 4 deviations of sqrt(2 k); the lower bound catches numbers too even to be random. */
        ck_assert_msg(chi > 49 - 4 * 9.9 && chi < 49 + 4 * 9.9, "seed %d: %g", (int)seed, chi);
        ck_assert_msg(chi_rows > 2499 - 4 * 70.7 && chi_rows < 2499 + 4 * 70.7, "seed %d: rows %g", (int)seed, chi_rows);
        ck_assert_msg(chi_steps > 2499 - 4 * 70.7 && chi_steps < 2499 + 4 * 70.7, "seed %d: steps %g", (int)seed, chi_steps);
    }
}
END_TEST

/* Every start from 0 to length - T - 1 comes, the last one with the last id as its last target. */
START_TEST(crops_reach_both_ends)
{
    for (int64_t length = T + 1; length < T + 30; length++) {
        int32_t *ids = counting(length), x[T], y[T];
        bool seen[30] = {false};
        struct wf_crops crops;
        ck_ok(wf_crops_init(&crops, wf_id_view_of(ids, length), T, 5, error));
        for (int64_t step = 0; step < 1000; step++) {
            wf_crops_fill(&crops, step, 0, 1, x, y);
            seen[x[0]] = true;
            ck_assert_int_lt(y[T - 1], length);
            if (x[0] == length - T - 1)
                ck_assert_int_eq(y[T - 1], length - 1);
        }
        for (int64_t i = 0; i < length - T; i++)
            ck_assert_msg(seen[i], "start %d of %d", (int)i, (int)(length - T));
        wf_free(ids);
    }
}
END_TEST

START_TEST(crops_of_too_short_texts)
{
    struct wf_crops crops;
    int32_t ids[10] = {0};
    ck_fails(wf_crops_init(&crops, wf_id_view_of(ids, 8), 8, 1, error), WF_ERR_ARGUMENT,
             "a text of 8 tokens is too short for a context of 8");
    ck_fails(wf_crops_init(&crops, wf_id_view_of(ids, 0), 8, 1, error), WF_ERR_ARGUMENT, "a text of 0 tokens");
    ck_fails(wf_crops_init(&crops, wf_id_view_of(ids, 10), 0, 1, error), WF_ERR_ARGUMENT, "at least 1");
    ck_ok(wf_crops_init(&crops, wf_id_view_of(ids, 9), 8, 1, error));
}
END_TEST

/* For many lengths, contexts and batch sizes: each target exactly once, its input before it, in order; whole windows in batches
 * of at most `rows`, then one shorter window. */
START_TEST(windows_cover_every_target_once)
{
    int32_t *ids = counting(600);
    uint16_t short_ids[600];
    for (int i = 0; i < 600; i++)
        short_ids[i] = (uint16_t)ids[i];
    for (int64_t length = 2; length < 600; length += length < 80 ? 1 : 37)
        for (int64_t context = 1; context < 70; context += context < 10 ? 1 : 9)
            for (int64_t rows = 1; rows < 9; rows++) {
                struct wf_windows windows;
                bool narrow = (length + context + rows) % 2;
                struct wf_id_view view = {narrow ? (const void *)short_ids : ids, length, narrow};
                ck_ok(wf_windows_init(&windows, view, context, rows, error));
                for (int pass = 0; pass < 2; pass++) {
                    int64_t target = 1, batches = 0, cut = (length - 1) / context, rest = (length - 1) % context;
                    struct wf_window_batch b;
                    while (wf_windows_next(&windows, &b)) {
                        bool short_one = target - 1 == cut * context;
                        ck_assert(b.rows >= 1 && b.rows <= rows && b.cols == (short_one ? rest : context));
                        ck_assert(!short_one || b.rows == 1);
                        for (int64_t i = 0; i < b.rows * b.cols; i++, target++)
                            if (b.y[i] != target || b.x[i] != target - 1)
                                ck_abort_msg("length %d, context %d, rows %d: target %d", (int)length, (int)context, (int)rows,
                                             (int)target);
                        batches++;
                    }
                    ck_assert_int_eq(target, length);
                    ck_assert_int_eq(batches, (cut + rows - 1) / rows + (rest > 0));
                    ck_assert(!wf_windows_next(&windows, &b));
                    windows.position = 0;
                }
                wf_windows_free(&windows);
            }
    struct wf_windows windows;
    ck_fails(wf_windows_init(&windows, wf_id_view_of(ids, 1), 8, 4, error), WF_ERR_ARGUMENT, "a text of 1 tokens has nothing to predict");
    ck_fails(wf_windows_init(&windows, wf_id_view_of(ids, 9), 0, 4, error), WF_ERR_ARGUMENT, "at least 1");
    ck_fails(wf_windows_init(&windows, wf_id_view_of(ids, 9), 8, 0, error), WF_ERR_ARGUMENT, "at least 1");
    wf_free(ids);
}
END_TEST

/* A limit chooses batches of the whole walk, spread over all of the text; the same each time. */
START_TEST(windows_of_a_limit_are_spread)
{
    enum { N = 20011, CONTEXT = 16, LIMIT = 2000 };
    int32_t *ids = counting(N);
    int seen[N] = {0}, tenth[10] = {0};
    for (int turn = 0; turn < 2; turn++) {
        struct wf_windows w;
        int64_t targets = 0;
        ck_ok(wf_windows_init(&w, wf_id_view_of(ids, N), CONTEXT, 64, error));
        wf_windows_limit(&w, LIMIT);
        for (struct wf_window_batch b; wf_windows_next(&w, &b); targets += b.rows * b.cols)
            for (int64_t i = 0; i < b.rows * b.cols; i++) {
                ck_assert_int_eq(b.cols, CONTEXT);
                ck_assert_int_eq(b.x[0] % CONTEXT, 0); /* a window of the whole walk */
                ck_assert_int_eq(b.y[i], b.x[i] + 1);
                ck_assert_int_eq(seen[b.x[i]]++, turn);
                tenth[b.x[i] * INT64_C(10) / N]++;
            }
        wf_windows_free(&w);
        ck_assert(targets <= LIMIT && targets > LIMIT * 3 / 4);
    }
    for (int i = 0; i < 10; i++)
        ck_assert_msg(tenth[i] >= 2 * LIMIT / 20 && tenth[i] <= 2 * LIMIT / 5, "tenth %d has %d", i, tenth[i]);
    const int64_t all[] = {0, N - 1, N, INT64_MAX};
    for (int k = 0; k < 4; k++) {
        struct wf_windows w;
        int64_t targets = 0;
        ck_ok(wf_windows_init(&w, wf_id_view_of(ids, N), CONTEXT, 64, error));
        wf_windows_limit(&w, all[k]);
        for (struct wf_window_batch b; wf_windows_next(&w, &b);)
            targets += b.rows * b.cols;
        ck_assert_int_eq(targets, N - 1);
        wf_windows_free(&w);
    }
    wf_free(ids);
}
END_TEST

/* Ids of 16 bits give the batches of the same ids of 32 bits, also the largest ids. */
START_TEST(crops_of_narrow_ids)
{
    enum { N = 3000 };
    int32_t wide[N], x[2][ROWS * T], y[2][ROWS * T];
    uint16_t narrow[N];
    for (int i = 0; i < N; i++)
        wide[i] = narrow[i] = (uint16_t)(65535 - i * 21);
    struct wf_crops crops[2];
    ck_ok(wf_crops_init(&crops[0], wf_id_view_of(wide, N), T, 5, error));
    ck_ok(wf_crops_init(&crops[1], (struct wf_id_view){narrow, N, true}, T, 5, error));
    for (int64_t step = 0; step < 200; step++) {
        for (int i = 0; i < 2; i++)
            wf_crops_fill(&crops[i], step, 0, ROWS, x[i], step % 2 ? y[i] : NULL);
        ck_assert_mem_eq(x[0], x[1], sizeof x[0]);
        ck_assert(step % 2 == 0 || !memcmp(y[0], y[1], sizeof y[0]));
    }
}
END_TEST

START_TEST(batches_do_not_allocate)
{
    int32_t *ids = counting(2000), x[ROWS * T], y[ROWS * T];
    struct wf_crops crops;
    struct wf_windows windows;
    int64_t count = wf_alloc_count();
    ck_ok(wf_crops_init(&crops, wf_id_view_of(ids, 2000), T, 1, error));
    for (int64_t step = 0; step < 100; step++)
        wf_crops_fill(&crops, step, 0, ROWS, x, y);
    ck_ok(wf_windows_init(&windows, wf_id_view_of(ids, 2000), T, 4, error));
    for (struct wf_window_batch b; wf_windows_next(&windows, &b);)
        ck_assert_ptr_nonnull(b.x);
    ck_assert_int_eq(wf_alloc_count(), count);
    wf_free(ids);
}
END_TEST

WF_TEST_MAIN("batches", crops_are_stretches_of_the_text, crops_do_not_depend_on_how_they_are_taken, crops_differ, crops_are_uniform,
             crops_reach_both_ends, crops_of_too_short_texts, windows_cover_every_target_once, windows_of_a_limit_are_spread,
             crops_of_narrow_ids, batches_do_not_allocate)
