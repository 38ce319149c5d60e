/* SPDX-License-Identifier: MIT */
/* Where values are extreme, targets 0 or rows ignored, a gradient that is recorded (.create_graph) has the values that backward has. */
#include "copy_op.h"
#include "one_registry.h"

static void declare(wf_scope root)
{
    wf_parameter(root, "unused", WF_SHAPE(1));
}

/* NaN and infinities give in the first gradient what backward gives. */
static wf_tensor *largest(wf_tensor *x)
{
    return wf_maximum(x, wf_full(tape, &(wf_shape){0}, 0.5));
}
static wf_tensor *smallest(wf_tensor *x)
{
    return wf_minimum(x, wf_full(tape, &(wf_shape){0}, 0.5));
}

START_TEST(extreme_values)
{
    wf_tensor *(*const of[])(wf_tensor *) = {wf_relu, wf_gelu, wf_gelu_tanh, wf_silu, wf_mish, largest, smallest};
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        wf_real *want = NULL;
        for (int create = 0; create < 2; create++) {
            begin(WF_TRAIN);
            const wf_real edges[] = {INFINITY, -INFINITY, (wf_real)1e18, (wf_real)-1e18, NAN, 30, -30};
            const int64_t n = k < 1 || k > 4 ? 5 : 4, from = k < 1 || k > 4 ? 0 : 2; /* at infinity some slopes of backward are NaN */
            wf_tensor *x = wf_input(tape, edges + from, WF_SHAPE(n - from + (from > 0)), true), *g;
            ran(wf_gradients(wf_sum(of[k](x)), 1, &x, &g, .create_graph = create));
            wf_real *have = value_of(g);
            for (int64_t i = 0; create && i < count_of(g); i++)
                ck_assert_msg((isnan(have[i]) && isnan(want[i])) || fabs((double)have[i] - (double)want[i]) < 1e-6,
                              "function %zu at %g: %g, not %g", k, (double)edges[from + i], (double)have[i], (double)want[i]);
            free(want);
            want = have;
        }
        free(want);
    }
}
END_TEST

/* The gradients of `loss` for x, once by backward and once as a graph. */
static void both_gradients(wf_tensor *(*loss)(wf_tensor *x), const wf_real *from, const wf_shape *shape)
{
    const int64_t n = wf_shape_count(shape);
    wf_real *got[2];
    for (int create = 0; create < 2; create++) {
        begin(WF_TRAIN);
        wf_tensor *x = wf_input(tape, from, shape, true), *g;
        ran(wf_gradients(loss(x), 1, &x, &g, .create_graph = create));
        got[create] = value_of(g);
    }
    for (int64_t i = 0; i < n; i++)
        ck_assert_msg(isfinite(got[0][i]) && fabs((double)(got[0][i] - got[1][i])) <= 1e-5 * fabs((double)got[0][i]),
                      "%lld: %g, as a graph %g", (long long)i, (double)got[0][i], (double)got[1][i]);
    free(got[0]);
    free(got[1]);
}

static wf_tensor *divergence(wf_tensor *p)
{
    static const wf_real q[] = {-1, -2, -3};
    return wf_kl_div(wf_input(tape, q, WF_SHAPE(3), false), p, .reduction = WF_REDUCE_SUM);
}

static wf_tensor *divergence_of_logs(wf_tensor *p)
{
    static const wf_real q[] = {-1, -2, -3};
    return wf_kl_div(wf_input(tape, q, WF_SHAPE(3), false), p, .reduction = WF_REDUCE_SUM, .log_target = true);
}

static wf_tensor *ignoring(wf_tensor *z)
{
    static const int32_t target[] = {-100, 1};
    return wf_cross_entropy(z, wf_ids_of(tape, target, WF_SHAPE(2)), .has_ignore = true, .ignore = -100);
}

static wf_tensor *ignoring_fused(wf_tensor *x)
{
    static const wf_real weight[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    static const int32_t target[] = {-100, 1};
    return wf_linear_cross_entropy(x, wf_input(tape, weight, WF_SHAPE(3, 3), false), NULL, wf_ids_of(tape, target, WF_SHAPE(2)),
                                   .has_ignore = true, .ignore = -100);
}

static wf_tensor *direction(wf_tensor *x)
{
    return wf_select(wf_l2_normalize(x, 1e-30), 0, 0);
}

/* The graph has the limits that backward has, and leaves out the rows that backward leaves out. */
START_TEST(as_backward_at_the_edges)
{
    const wf_shape three = {1, {3}}, rows = {2, {2, 3}};
    both_gradients(divergence, (wf_real[]){0, 0.4, 0.6}, &three);
    both_gradients(divergence_of_logs, (wf_real[]){-INFINITY, -0.5, -1}, &three);
    both_gradients(ignoring, (wf_real[]){INFINITY, 0, 1, 0.1, 0.3, 2}, &rows);
    both_gradients(ignoring, (wf_real[]){NAN, 0, 1, 0.1, 0.3, 2}, &rows);
    both_gradients(ignoring_fused, (wf_real[]){INFINITY, 0, 1, 0.1, 0.3, 2}, &rows);
    const wf_real far = (wf_real)1e20; /* whose squares overflow in float */
    both_gradients(direction, (wf_real[]){3 * far, 4 * far, 0}, &three);
    both_gradients(direction, (wf_real[]){3 / far, 4 / far, 0}, &three);
}
END_TEST

WF_TEST_MAIN("create_graph_edges", extreme_values, as_backward_at_the_edges)
