/* SPDX-License-Identifier: MIT */
/* Epochs: each item once, another order each time, the same order for good, on any machine and any number of threads. */
#include <inttypes.h>
#include <math.h>

#include "data_test.h"
#include <weft/runtime.h>

static struct wf_epochs epochs_of(int64_t items, int64_t batch, uint64_t seed, bool drop_last)
{
    struct wf_epochs e;
    ck_ok(wf_epochs_init(&e, items, batch, seed, error, .drop_last = drop_last));
    return e;
}

START_TEST(every_item_once_an_epoch)
{
    static const int64_t sizes[] = {1, 2, 3, 7, 64, 100, 255, 256, 257, 1000, 4097}, batches[] = {1, 3, 16, 100, 5000};
    for (int s = 0; s < 11; s++)
        for (int b = 0; b < 5; b++) {
            const int64_t n = sizes[s], batch = batches[b];
            struct wf_epochs e = epochs_of(n, batch, 5, false);
            ck_assert_int_eq(wf_epochs_steps(&e), (n + batch - 1) / batch);
            int64_t rows[5000 + 1], step = 0;
            for (int64_t epoch = 0; epoch < 3; epoch++) {
                bool seen[4097] = {false};
                int64_t total = 0;
                for (int64_t i = 0; i < wf_epochs_steps(&e); i++, step++) {
                    rows[batch] = -7;
                    const int64_t count = wf_epochs_batch(&e, step, rows);
                    ck_assert_int_eq(wf_epochs_epoch(&e, step), epoch);
                    ck_assert_int_eq(count, i + 1 < wf_epochs_steps(&e) ? batch : n - i * batch);
                    ck_assert_int_eq(rows[batch], -7);
                    for (int64_t r = 0; r < count; r++) {
                        ck_assert(rows[r] >= 0 && rows[r] < n && !seen[rows[r]]);
                        ck_assert_int_eq(rows[r], wf_epochs_item(&e, epoch, i * batch + r));
                        seen[rows[r]] = true;
                    }
                    total += count;
                }
                ck_assert_int_eq(total, n);
            }
        }
}
END_TEST

START_TEST(the_last_batch_may_be_dropped)
{
    struct wf_epochs e = epochs_of(100, 16, 1, true);
    int64_t rows[16];
    bool left_out[100] = {false};
    ck_assert_int_eq(wf_epochs_steps(&e), 6);
    for (int64_t epoch = 0; epoch < 40; epoch++) {
        bool seen[100] = {false};
        for (int64_t i = 0; i < 6; i++) {
            ck_assert_int_eq(wf_epochs_batch(&e, 6 * epoch + i, rows), 16);
            for (int r = 0; r < 16; r++) {
                ck_assert(!seen[rows[r]]);
                seen[rows[r]] = true;
            }
        }
        for (int i = 0; i < 100; i++)
            left_out[i] |= !seen[i];
    }
    int ever = 0;
    for (int i = 0; i < 100; i++)
        ever += left_out[i];
    ck_assert_int_gt(ever, 60); /* not always the same four */
}
END_TEST

START_TEST(in_order)
{
    struct wf_epochs e;
    int64_t rows[4];
    ck_ok(wf_epochs_init(&e, 10, 4, 1, error, .in_order = true));
    for (int64_t step = 0; step < 6; step++) {
        const int64_t count = wf_epochs_batch(&e, step, rows);
        ck_assert_int_eq(count, step % 3 == 2 ? 2 : 4);
        for (int64_t r = 0; r < count; r++)
            ck_assert_int_eq(rows[r], step % 3 * 4 + r);
    }
}
END_TEST

/* Places at which two orders agree: about one of any number of items. */
static int64_t agree(const struct wf_epochs *a, int64_t epoch_a, const struct wf_epochs *b, int64_t epoch_b)
{
    int64_t same = 0;
    for (int64_t i = 0; i < a->items; i++)
        same += wf_epochs_item(a, epoch_a, i) == wf_epochs_item(b, epoch_b, i);
    return same;
}

START_TEST(another_order_each_epoch_and_seed)
{
    static const uint64_t seeds[] = {0, 1, 2, 1ull << 32, UINT64_MAX};
    static const int64_t numbers[] = {0, 1, 2, 1ll << 32, (1ll << 32) + 1};
    for (int a = 0; a < 25; a++)
        for (int b = 0; b <= a; b++) {
            struct wf_epochs x = epochs_of(1000, 10, seeds[a / 5], false), y = epochs_of(1000, 10, seeds[b / 5], false);
            const int64_t same = agree(&x, numbers[a % 5], &y, numbers[b % 5]);
            ck_assert_msg(a == b ? same == 1000 : same < 10, "%d, %d: %d places agree", a, b, (int)same);
        }
}
END_TEST

static double chi_square(const int64_t *count, int cells, double expected)
{
    double chi = 0;
    for (int i = 0; i < cells; i++)
        chi += ((double)count[i] - expected) * ((double)count[i] - expected) / expected;
    return chi;
}

/* Chi-square of k degrees of freedom: within 4 deviations of sqrt(2 k); the lower bound catches what is too even to be random. */
static void assert_random(const char *what, const int64_t *count, int cells, int freedom, double expected)
{
    const double chi = chi_square(count, cells, expected), most = 4 * sqrt(2.0 * freedom);
    ck_assert_msg(chi > freedom - most && chi < freedom + most, "%s: chi-square %g, %d degrees of freedom", what, chi, freedom);
}

/* Over many epochs each item is at each place equally often, and each item follows each other one equally often. */
START_TEST(places_are_uniform)
{
    enum { N = 30, EPOCHS = 30000 };
    static int64_t place[N * N], next[N * N];
    for (uint64_t seed = 1; seed <= 2; seed++) {
        struct wf_epochs e = epochs_of(N, N, seed, false);
        memset(place, 0, sizeof place);
        memset(next, 0, sizeof next);
        for (int64_t epoch = 0; epoch < EPOCHS; epoch++) {
            int64_t rows[N];
            ck_assert_int_eq(wf_epochs_batch(&e, epoch, rows), N);
            for (int i = 0; i < N; i++) {
                place[i * N + rows[i]]++;
                if (i > 0)
                    next[rows[i - 1] * N + rows[i]]++;
            }
        }
        assert_random("places", place, N * N, (N - 1) * (N - 1), EPOCHS / (double)N);
        int64_t pairs[N * (N - 1)], n = 0;
        for (int i = 0; i < N * N; i++)
            if (i / N != i % N)
                pairs[n++] = next[i];
        assert_random("neighbours", pairs, (int)n, (int)n - 1, EPOCHS / (double)N);
    }
}
END_TEST

/* All 24 orders of 4 items come equally often: even and odd ones. */
START_TEST(orders_of_few_items_are_uniform)
{
    enum { EPOCHS = 48000 };
    int64_t count[256] = {0}, orders[24], n = 0;
    struct wf_epochs e = epochs_of(4, 4, 9, false);
    for (int64_t epoch = 0; epoch < EPOCHS; epoch++) {
        int64_t rows[4];
        ck_assert_int_eq(wf_epochs_batch(&e, epoch, rows), 4);
        count[rows[0] * 64 + rows[1] * 16 + rows[2] * 4 + rows[3]]++;
    }
    for (int i = 0; i < 256; i++)
        if (count[i] > 0)
            orders[n++] = count[i];
    ck_assert_int_eq(n, 24);
    assert_random("orders", orders, 24, 23, EPOCHS / 24.0);
}
END_TEST

/* Larger sets, in which the two halves have several sizes: where the first items go, in 64 equal ranges of places. */
START_TEST(large_sets_are_shuffled)
{
    static const int64_t sizes[] = {1000, 65536, 65537, 1 << 20, (1ll << 40) + 12345};
    for (int s = 0; s < 5; s++) {
        int64_t range[64] = {0}, n = sizes[s];
        struct wf_epochs e = epochs_of(n, 1, 3, false);
        for (int64_t epoch = 0; epoch < 640; epoch++)
            for (int64_t i = 0; i < 10; i++) { /* items that lie side by side */
                const int64_t item = wf_epochs_item(&e, epoch, i);
                ck_assert(item >= 0 && item < n);
                range[(int64_t)((__int128)item * 64 / n)]++;
            }
        assert_random("ranges", range, 64, 63, 100);
    }
}
END_TEST

/* tests/golden/make_epochs.py: these values are fixed for good, since a change breaks the resume of trainings. */
START_TEST(the_order_is_fixed)
{
    int64_t bytes, checked = 0;
    char *text = golden("epochs.txt", &bytes), *at = text;
    while (*at) {
        const int64_t items = strtoll(at, &at, 10);
        const uint64_t seed = strtoull(at, &at, 10);
        const int64_t epoch = strtoll(at, &at, 10);
        struct wf_epochs e = epochs_of(items, 1, seed, false);
        while (*at == ' ') {
            const int64_t place = strtoll(at, &at, 10), item = strtoll(at + 1, &at, 10);
            ck_assert_msg(wf_epochs_item(&e, epoch, place) == item,
                          "%" PRId64 " items, seed %" PRIu64 ", epoch %" PRId64 ", place %" PRId64, items, seed, epoch, place);
            checked++;
        }
        ck_assert_int_eq(*at, '\n');
        at++;
    }
    ck_assert_int_gt(checked, 700);
    wf_free(text);
}
END_TEST

START_TEST(threads_and_calls_before_change_nothing)
{
    enum { BATCH = 300 };
    int64_t first[BATCH], second[BATCH];
    struct wf_epochs e = epochs_of(100000, BATCH, 11, false), other = epochs_of(100000, BATCH, 11, false);
    const int64_t memory = wf_alloc_count();
    for (int64_t step = 0; step < 1000; step++)
        wf_epochs_batch(&e, step, first);
    ck_assert_int_eq(wf_alloc_count(), memory);
    for (int threads = 1; threads <= 3; threads++) {
        ck_ok(wf_set_threads(threads, error));
        ck_assert_int_eq(wf_epochs_batch(&other, 999, second), BATCH);
        ck_assert_mem_eq(first, second, sizeof first);
    }
}
END_TEST

START_TEST(wrong_sizes)
{
    struct wf_epochs e;
    int64_t row;
    ck_fails(wf_epochs_init(&e, 0, 4, 1, error), WF_ERR_ARGUMENT, "0 items in batches of 4: both must be at least 1");
    ck_fails(wf_epochs_init(&e, 5, 0, 1, error), WF_ERR_ARGUMENT, "batches of 0");
    ck_fails(wf_epochs_init(&e, 5, 8, 1, error, .drop_last = true), WF_ERR_ARGUMENT, "5 items have no whole batch of 8");
    ck_assert_int_eq(wf_epochs_batch(&e, 0, &row), 0); /* left empty */
    ck_assert_int_eq(wf_epochs_epoch(&e, 3), 0);
    e = epochs_of(10, 1, 1, false);
    ck_assert_int_eq(wf_epochs_batch(&e, -1, &row), 0);
    ck_assert_int_eq(wf_epochs_item(&e, 0, 10), -1);
    ck_assert_int_eq(wf_epochs_item(&e, 0, -1), -1);
    ck_assert_int_eq(wf_epochs_item(&e, -1, 0), -1);
}
END_TEST

WF_TEST_MAIN("epochs", every_item_once_an_epoch, the_last_batch_may_be_dropped, in_order, another_order_each_epoch_and_seed,
             places_are_uniform, orders_of_few_items_are_uniform, large_sets_are_shuffled, the_order_is_fixed,
             threads_and_calls_before_change_nothing, wrong_sizes)
