/* SPDX-License-Identifier: MIT */
/* Packed rows into padded batches and back, and means of sequences, against plain loops; what is refused. The gradients: ops.c. */
#include "ops_tools.h"

enum { N = 9, SEQUENCES = 4, D = 70, LONGEST = 4 };

static const int32_t offsets[SEQUENCES + 1] = {0, 4, 4, 5, N};
static const struct wf_packed packed = {offsets, SEQUENCES};

START_TEST(reals)
{
    begin(WF_GRADIENTS);
    wf_tensor *x = normal(1, WF_SHAPE(N, D)), *padded = wf_pad_rows(x, packed, -7), *back = wf_pack_rows(padded, packed);
    ck_assert_msg(!wf_is_poison(back), "%s", trouble(back));
    ck_assert_int_eq(wf_dim(padded, 0), SEQUENCES);
    ck_assert_int_eq(wf_dim(padded, 1), LONGEST);
    wf_real *own = value_of(x), *rows = value_of(padded), *again = value_of(back);
    for (int i = 0; i < SEQUENCES; i++)
        for (int t = 0; t < LONGEST; t++)
            for (int j = 0; j < D; j++)
                ck_assert(rows[(i * LONGEST + t) * D + j] == (offsets[i] + t < offsets[i + 1] ? own[(offsets[i] + t) * D + j] : -7));
    ck_assert_mem_eq(again, own, sizeof *own * N * D);
    free(own), free(rows), free(again);
}
END_TEST

/* Ids and masks are padded as their tokens are; they have no gradients. */
START_TEST(ids_and_bools)
{
    begin(WF_TRAIN);
    const int32_t id[N] = {5, 6, 7, 8, 1, 2, 3, 4, 9};
    const bool truth[N] = {true, false, true, true, true, false, true, true, true};
    wf_tensor *ids = wf_pad_rows(wf_ids_of(tape, id, WF_SHAPE(N)), packed, -100),
              *bools = wf_pad_rows(wf_bools(tape, truth, WF_SHAPE(N)), packed, 0);
    wf_array a, b;
    ran(wf_view(ids, &a));
    ran(wf_view(bools, &b));
    for (int i = 0; i < SEQUENCES * LONGEST; i++) {
        const int row = offsets[i / LONGEST] + i % LONGEST;
        const bool there = row < offsets[i / LONGEST + 1];
        ck_assert_int_eq(((int32_t *)a.data)[i], there ? id[row] : -100);
        ck_assert_int_eq(((bool *)b.data)[i], there && truth[row]);
    }
    wf_tensor *back = wf_pack_rows(ids, packed);
    ran(wf_view(back, &a));
    ck_assert_mem_eq(a.data, id, sizeof id);
}
END_TEST

/* Of views too, as a slice of q, k and v; a sequence has the bits that it has alone; an empty one gives 0. */
START_TEST(means)
{
    begin(WF_INFER);
    wf_tensor *wide = normal(1, WF_SHAPE(N, 3 * D)), *x = wf_slice(wide, 1, D, D), *y = wf_mean_packed(x, packed);
    ck_assert_msg(!wf_is_poison(y), "%s", trouble(y));
    wf_real *own = value_of(x), *mean = value_of(y);
    for (int i = 0; i < SEQUENCES; i++) {
        const int n = offsets[i + 1] - offsets[i];
        for (int j = 0; j < D; j++) {
            double sum = 0;
            for (int t = 0; t < n; t++)
                sum += (double)own[(offsets[i] + t) * D + j];
            ck_assert(mean[i * D + j] == (wf_real)(n ? sum / n : 0));
        }
        wf_tensor *alone = wf_mean_packed(wf_slice(x, 0, offsets[i], n), (struct wf_packed){I32(0, n), 1});
        wf_real *one = value_of(alone);
        ck_assert_mem_eq(one, mean + i * D, sizeof *one * D);
        free(one);
    }
    free(own), free(mean);
}
END_TEST

START_TEST(refusals)
{
    const struct wf_packed short_of = {I32(0, 4, 8), 2}, falling = {I32(0, 5, 4, N), 3};
    begin(WF_INFER);
#define REFUSED(call, code, says)                                                                                                          \
    do {                                                                                                                                   \
        begin(WF_INFER);                                                                                                                   \
        wf_tensor *x = normal(1, WF_SHAPE(N, 3)), *p = normal(2, WF_SHAPE(4, 3, 2));                                                       \
        (void)x, (void)p;                                                                                                                  \
        expect_error(call, code, says);                                                                                                    \
    } while (0)
    REFUSED(wf_pad_rows(x, short_of, 0), WF_ERR_ARGUMENT, "pad_rows(");
    REFUSED(wf_pad_rows(x, short_of, 0), WF_ERR_ARGUMENT, "packed: offsets[2] = 8 after 4, but offsets of 2 sequences must begin with 0");
    REFUSED(wf_mean_packed(x, falling), WF_ERR_ARGUMENT, "packed: offsets[2] = 4 after 5, but");
    REFUSED(wf_mean_packed(x, (struct wf_packed){0}), WF_ERR_ARGUMENT, "packed: the offsets of 0 sequences are NULL");
    REFUSED(wf_pack_rows(p, falling), WF_ERR_ARGUMENT, "packed: offsets[2] = 4 after 5, but");
    REFUSED(wf_pack_rows(p, packed), WF_ERR_SHAPE, "x must be [4, L, ...] with L of at least 4, the rows of the longest sequence");
    REFUSED(wf_pack_rows(p, short_of), WF_ERR_SHAPE, "x must be [2, L, ...]");
    REFUSED(wf_pad_rows(wf_ids_of(tape, offsets, WF_SHAPE(5)), (struct wf_packed){I32(0, 5), 1}, 0.5), WF_ERR_ARGUMENT,
            "fill = 0.5 is no id");
    REFUSED(wf_pad_rows(NULL, packed, 0), WF_ERR_ARGUMENT, "x is required");
}
END_TEST

WF_TEST_MAIN("packed_rows", reals, ids_and_bools, means, refusals)
