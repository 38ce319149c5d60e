/* SPDX-License-Identifier: MIT */
/* The pairs of code that have to agree to the bit, because one takes the other's place by shape, strides or memory. The table below is the
 * list; whoever adds such a pair adds a row. A row has a check here, or names the test that has it. */
#include "kernels_common.h"

#include <weft/internal/attention.h>

enum { ROWS = 75, D = 70 };
static wf_real x[ROWS * D], y[ROWS * D], a[ROWS * D], b[ROWS * D];

static void sums_of_rows(const char *isa)
{
    int64_t offset[ROWS];
    for (int i = 0; i < ROWS; i++)
        offset[i] = i * D;
    for (int d = 1; d <= D; d++) {
        wf_kernel->sum_rows(ROWS, d, x, D, false, a);
        wf_kernel->internal->sum_rows_at(ROWS, d, x, offset, false, b);
        ck_assert_msg(same_bits(a, b, d), "%s: %d columns", isa, d);
    }
}

/* Few rows run in rows.c, a batch in kernel.c; B in place or packed; C = (B^T A^T)^T where C is stored by columns. */
static void products(const char *isa)
{
    ck_ok(wf_gemm_use("own", error));
    for (int transposed = 0; transposed < 2; transposed++) {
        struct wf_gemm g = {.m = ROWS,
                            .n = 33,
                            .k = D,
                            .alpha = 1,
                            .a = x,
                            .a_rs = D,
                            .a_cs = 1,
                            .b = y,
                            .b_rs = 1,
                            .b_cs = D,
                            .c = a,
                            .c_rs = transposed ? 1 : 33,
                            .c_cs = transposed ? ROWS : 1,
                            .rows_alone = true};
        ck_assert_int_eq(wf_gemm(&g), WF_OK);
        for (int i = 0; i < ROWS; i++) {
            struct wf_gemm one = g;
            one.m = 1;
            one.a = x + i * D;
            one.c = b;
            one.c_rs = 33;
            one.c_cs = 1;
            ck_assert_int_eq(wf_gemm(&one), WF_OK);
            for (int j = 0; j < 33; j++)
                ck_assert_msg(same_bits(&a[i * g.c_rs + j * g.c_cs], &b[j], 1), "%s: row %d, column %d", isa, i, j);
        }
    }
    ck_ok(wf_gemm_use("auto", error));
}

static void attention(const char *isa)
{
    for (int e = 1; e <= 33; e += 4)
        for (int t = 1; t <= ROWS; t += 37) {
            struct wf_attention p = {.queries = t,
                                     .keys = ROWS,
                                     .all_keys = ROWS,
                                     .e = e,
                                     .f = e,
                                     .heads = 1,
                                     .q = x,
                                     .k = y,
                                     .v = x,
                                     .q_step = D,
                                     .k_step = D,
                                     .v_step = D,
                                     .out = a,
                                     .out_step = e,
                                     .scale = (wf_real)0.3,
                                     .first_limit = ROWS - t + 1};
            wf_real *scratch = wf_alloc((size_t)wf_attention_forward_scratch(ROWS, e, e) * sizeof *scratch);
            ck_assert_ptr_nonnull(scratch);
            wf_kernel->internal->attention_forward(&p, 0, t, scratch);
            wf_free(scratch);
            p.out = b;
            wf_kernel->internal->attention_rows(&p, 0, t);
            ck_assert_msg(same_bits(a, b, t * e), "%s: %d queries of %d", isa, t, e);
        }
}

static const struct pair {
    const char *one, *other;
    void (*check)(const char *isa);
    const char *elsewhere;
} pairs[] = {
    {"kernels/reduce.c sum_rows", "sum_rows_at", sums_of_rows, NULL},
    {"random.c wf_philox", "philox.h philox_wide_rounds", NULL, "core/kernels_rows dropout"},
    {"kernels/dropout.c", "kernels/attention_mask.c attention_dropout", NULL, "autograd/attention_bits dropout_draws_as_the_kernel"},
    {"kernels/attention_forward.c", "kernels/attention_rows.c", attention, NULL},
    {"kernels/attention_backward.c, all pieces", "autograd/ops/attention_backward.c in_pieces", NULL, "autograd/attention_pieces"},
    {"kernels/attention_tile.h product_*_add", "masked_*_add, for tiles with NaN or infinities", NULL, "autograd/attention"},
    {"gemm/micro_kernel.c", "gemm/skinny_nt.c, and C by columns", products, NULL},
    {"gemm/micro_kernel.c", "gemm/skinny_nn.c", NULL, "core/gemm rows_alone_and_together"},
    {"gemm/pack.c, packed", "in place", NULL, "core/gemm"},
    {"every kernel, whole registers", "its tail", NULL, "core/kernels unary_bits, core/kernels_rows"},
};

START_TEST(every_pair)
{
    ck_ok(wf_init(error, .threads = 1));
    numbers(x, ROWS * D, 1, -2, 2);
    numbers(y, ROWS * D, 2, -2, 2);
    EACH_ISA
    {
        for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
            ck_assert_msg(pairs[i].check || pairs[i].elsewhere, "%s and %s have no test", pairs[i].one, pairs[i].other);
            if (pairs[i].check)
                pairs[i].check(isa);
        }
    }
}
END_TEST

WF_TEST_MAIN("pairs", every_pair)
