/* SPDX-License-Identifier: MIT */
/* Ops over a dimension against PyTorch: tests/golden/make_row_ops.py. */
#include "../golden/golden.h"
#include "new_tape.h"

static struct rig begin(const char *name)
{
    struct rig r = rig_open("row_ops", name);
    rig_start(&r, WF_GRADIENTS, 1);
    return r;
}

static wf_tensor *x_of(struct rig *r)
{
    return rig_input(r, "x", WF_SHAPE(3, 7, 5), 1);
}

START_TEST(logarithms)
{
    struct rig r = begin("logsumexp");
    rig_check(&r, wf_logsumexp(wf_scale(x_of(&r), 9), -1, false));
    r = begin("logsumexp_middle");
    rig_check(&r, wf_logsumexp(wf_scale(x_of(&r), 9), 1, true));
    r = begin("log_softmax");
    rig_check(&r, wf_log_softmax(wf_scale(x_of(&r), 9), -1));
    r = begin("log_softmax_first");
    rig_check(&r, wf_log_softmax(wf_scale(x_of(&r), 9), 0));
}
END_TEST

START_TEST(lengths)
{
    struct rig r = begin("normalize");
    rig_check(&r, wf_l2_normalize(x_of(&r), 1e-12));
    r = begin("normalize_short");
    rig_check(&r, wf_l2_normalize(x_of(&r), 1.2));
    r = begin("cosine");
    wf_tensor *a = rig_input(&r, "a", WF_SHAPE(4, 1, 6), 1), *b = rig_input(&r, "b", WF_SHAPE(5, 6), 1);
    rig_check(&r, wf_cosine_similarity(a, b, 1e-8));
}
END_TEST

START_TEST(recurrences)
{
    struct rig r = begin("cumsum");
    rig_check(&r, wf_cumsum(x_of(&r), -1));
    r = begin("cumsum_middle");
    rig_check(&r, wf_cumsum(x_of(&r), 1));
    r = begin("scan");
    wf_tensor *a = rig_input(&r, "a", WF_SHAPE(2, 9, 5), 1), *b = rig_input(&r, "b", WF_SHAPE(2, 9, 5), 1);
    rig_check(&r, wf_scan(a, b, rig_input(&r, "h", WF_SHAPE(2, 5), 1), 1));
    r = begin("scan_last");
    a = rig_input(&r, "a", WF_SHAPE(3, 11), 1), b = rig_input(&r, "b", WF_SHAPE(3, 11), 1);
    rig_check(&r, wf_scan(a, b, NULL, 1));
}
END_TEST

/* NaN and infinities have to be those of the reference; other elements are near it. */
static void same(const struct rig *r, const char *key, const wf_array *a)
{
    char name[96];
    int64_t n = wf_array_count(a);
    snprintf(name, sizeof name, "%s/%s", r->name, key);
    double *want = golden_read(r->file, name, n), *have = golden_elements(a);
    for (int64_t i = 0; i < n; i++)
        ck_assert_msg(isnan(want[i]) ? isnan(have[i])
                                     : want[i] == have[i] || fabs(have[i] - want[i]) <= 10 * golden_tolerance() * fmax(1, fabs(want[i])),
                      "%s[%lld] is %.17g, not %.17g", name, (long long)i, have[i], want[i]);
    free(want);
    free(have);
}

/* Along rows, and along the columns of their transpose. */
START_TEST(infinities)
{
    enum { ROWS = 8, D = 3 };
    for (int columns = 0; columns < 2; columns++)
        for (int sums = 0; sums < 2; sums++) {
            struct rig r = begin(sums ? "logsumexp_edges" : "log_softmax_edges");
            double *given = golden_read(r.file, sums ? "logsumexp_edges/x" : "log_softmax_edges/x", ROWS * D);
            wf_real x[ROWS * D];
            wf_array view;
            for (int i = 0; i < ROWS * D; i++)
                x[i] = (wf_real)given[i];
            wf_tensor *leaf = wf_input(r.tape, x, WF_SHAPE(ROWS, D), true), *y = columns ? wf_transpose(leaf, 0, 1) : leaf;
            y = sums ? wf_logsumexp(y, 1 - columns, false) : wf_log_softmax(y, 1 - columns);
            y = wf_keep(columns && !sums ? wf_transpose(y, 0, 1) : y);
            wf_shape shape = wf_shape_of(y);
            ck_assert_int_eq(wf_view(y, &view), WF_OK);
            same(&r, "out", &view);
            ck_assert_int_eq(wf_backward(y, .gradient = rig_tensor(&r, "r", &shape, 1, false)), WF_OK);
            ck_assert_int_eq(wf_grad(leaf, &view), WF_OK);
            same(&r, "d.x", &view);
            free(given);
            rig_close(&r);
        }
}
END_TEST

/* A row that holds only -inf: PyTorch's gradients are NaN. */
START_TEST(nothing_but_minus_infinity)
{
    const wf_real inf = (wf_real)INFINITY;
    wf_tape *tape = new_tape();
    for (int columns = 0; columns < 2; columns++)
        for (int sums = 0; sums < 2; sums++) {
            wf_real x[6] = {-inf, 1, -inf, 2, -inf, 3}, all[6];
            wf_tape_reset(tape, WF_GRADIENTS);
            wf_tensor *leaf = wf_input(tape, x, WF_SHAPE(3, 2), true), *y = columns ? leaf : wf_transpose(leaf, 0, 1);
            y = wf_keep(sums ? wf_logsumexp(y, 1 - columns, false) : wf_log_softmax(y, 1 - columns));
            ck_assert_int_eq(wf_read(y, all, sums ? 2 : 6), WF_OK);
            for (int i = 0; i < (sums ? 2 : 6); i++) {
                bool empty = sums ? i == 0 : columns ? i % 2 == 0 : i < 3;
                ck_assert_msg(empty ? all[i] == -inf : isfinite(all[i]), "result %d is %g", i, (double)all[i]);
            }
            wf_array g;
            ck_assert_int_eq(wf_backward(y), WF_OK);
            ck_assert_int_eq(wf_grad(leaf, &g), WF_OK);
            for (int i = 0; i < 3; i++) {
                const wf_real *row = (const wf_real *)g.data + i * g.stride[0];
                ck_assert_msg(row[0] == 0 && isfinite(row[g.stride[1]]), "row %d has the gradients %g and %g", i, (double)row[0],
                              (double)row[g.stride[1]]);
            }
        }
    wf_tape_free(tape);
}
END_TEST

WF_TEST_MAIN("golden_row_ops", logarithms, lengths, recurrences, infinities, nothing_but_minus_infinity)
