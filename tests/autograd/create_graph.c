/* SPDX-License-Identifier: MIT */
/* Gradients of gradients through the public API: wf_gradients with .create_graph, wf_hvp and wf_jvp. tests/autograd/gradients.c checks the
 * `gradient` of each op. */
#include <weft/gradcheck.h>

#include "copy_op.h"
#include "one_registry.h"

enum { ROWS = 6, D = 8 };

static wf_tensor *w, *v, *unused;
static wf_real values[ROWS * D];

static void declare(wf_scope root)
{
    w = wf_parameter(root, "w", WF_SHAPE(D, D), .init = {WF_INIT_NORMAL, 0.4});
    v = wf_parameter(root, "v", WF_SHAPE(D), .init = {WF_INIT_NORMAL, 0.4});
    unused = wf_parameter(root, "unused", WF_SHAPE(3));
    normal_numbers(values, ROWS * D);
}

static wf_tensor *data(bool needs_grad)
{
    return wf_input(tape, values, WF_SHAPE(ROWS, D), needs_grad);
}

static double item(wf_tensor *x)
{
    double value;
    ran(wf_item(x, &value));
    return value;
}

/* A net with a tensor of each kind. */
enum { INPUT, INNER, VIEW, VIEW_OF_VIEW, EXPANDED, WEIGHT, VECTOR, RESULT, KINDS };
struct net {
    wf_tensor *x[KINDS], *loss;
};
static struct net net(void)
{
    struct net n;
    wf_tensor *x = data(true), *h = wf_gelu(wf_matmul(x, w)), *part = wf_slice(h, 0, 1, 4);
    wf_tensor *turned = wf_transpose(wf_slice(part, 1, 2, 5), 0, 1), *wide = wf_expand(wf_slice(h, 0, 0, 1), 5, D);
    wf_tensor *y = wf_tanh(wf_mul(h, v));
    n.loss = wf_add(wf_add(wf_sum(wf_mul(y, x)), wf_mean(wf_mul(part, part))), wf_add(wf_sum(wf_gelu(turned)), wf_sum(wf_mul(wide, v))));
    memcpy(n.x, (wf_tensor *[KINDS]){x, h, part, turned, wide, w, v, y}, sizeof n.x);
    return n;
}

/* The gradients of each set of tensors are those without .create_graph; and so are those of a loss that is made of them, whose graph has
 * both, when a view is among them. */
START_TEST(as_without)
{
    for (int which = 1; which < 1 << KINDS; which = which < 16 ? which + 1 : which * 2 + 1) {
        wf_real *want[KINDS];
        for (int create = 0; create < 2; create++) {
            begin(WF_TRAIN);
            struct net n = net();
            wf_tensor *of[KINDS], *g[KINDS];
            int count = 0;
            for (int i = 0; i < KINDS; i++)
                if (which >> i & 1)
                    of[count++] = n.x[i];
            ran(wf_gradients(n.loss, count, of, g, .create_graph = create));
            for (int i = 0; i < count; i++) {
                wf_real *have = value_of(g[i]);
                if (create)
                    near(g[i], have, want[i], wf_name_of(of[i]));
                if (create)
                    free(want[i]);
                if (!create)
                    want[i] = have;
                else
                    free(have);
            }
        }
    }
}
END_TEST

/* x^3: 3 x^2, 6 x and 6; the records of all remain for a wf_backward. */
START_TEST(three_times)
{
    begin(WF_TRAIN);
    wf_tensor *x = wf_input(tape, (const wf_real[]){2, -1}, WF_SHAPE(2), true), *g[3], *y = wf_sum(wf_mul(wf_mul(x, x), x));
    const double want[3][2] = {{12, 3}, {12, -6}, {6, 6}};
    for (int k = 0; k < 3; k++) {
        ran(wf_gradients(k ? wf_sum(g[k - 1]) : y, 1, &x, &g[k], .create_graph = true));
        wf_real *have = value_of(g[k]);
        ck_assert_double_eq_tol(have[0], want[k][0], 1e-5);
        ck_assert_double_eq_tol(have[1], want[k][1], 1e-5);
        free(have);
    }
    ran(wf_backward(wf_add(y, wf_sum(wf_mul(g[0], g[1])))));
    wf_real *have = gradient_of(x); /* 3 x^2 + d/dx (3 x^2)(6 x) = 3 x^2 + 54 x^2 */
    ck_assert_double_eq_tol(have[0], 57 * 4, 1e-3);
    ck_assert_double_eq_tol(have[1], 57, 1e-3);
    free(have);
    ck_assert_double_eq_tol(item(wf_sum(g[2])), 12, 1e-5); /* gradients stay readable after the backward */
}
END_TEST

/* The gradient of a penalty reaches the parameters: against differences of the penalty, in double. */
static double penalty(wf_tensor **loss)
{
    wf_tensor *x = data(true), *g;
    begin(WF_TRAIN);
    x = data(true);
    ran(wf_gradients(wf_sum(wf_mul(wf_tanh(wf_linear(x, w, v)), x)), 1, &x, &g, .create_graph = true));
    *loss = wf_keep(wf_mean(wf_square(wf_add_constant(wf_norm_dim(g, 2, 1, false), -1))));
    return item(*loss);
}

START_TEST(a_penalty_trains)
{
    wf_tensor *loss;
    begin(WF_TRAIN);
    penalty(&loss);
    ran(wf_backward(loss));
    wf_real *dw = gradient_of(w), *at = wf_parameter_info(w)->value.data;
    const double h = sizeof(wf_real) == 8 ? 1e-5 : 1e-2;
    for (int i = 0; i < D * D; i += 7) {
        const wf_real before = at[i];
        at[i] = (wf_real)((double)before + h);
        double difference = penalty(&loss);
        at[i] = (wf_real)((double)before - h);
        difference = (difference - penalty(&loss)) / (2 * h);
        at[i] = before;
        ck_assert_double_eq_tol(dw[i], difference, sizeof(wf_real) == 8 ? 1e-8 : 2e-3);
    }
    free(dw);
}
END_TEST

/* wf_hvp against the difference of two gradients, and wf_jvp against that of two values. */
static void derivative_along(wf_tensor *(*f)(wf_tensor *x), double step, const wf_real *along, wf_real *result, bool gradient)
{
    wf_real moved[ROWS * D];
    for (int sign = -1; sign <= 1; sign += 2) {
        begin(WF_TRAIN);
        for (int i = 0; i < ROWS * D; i++)
            moved[i] = (wf_real)((double)values[i] + sign * step * (double)along[i]);
        wf_tensor *x = wf_input(tape, moved, WF_SHAPE(ROWS, D), true), *y = f(x), *g = y;
        if (gradient)
            ran(wf_gradients(y, 1, &x, &g));
        wf_real *have = value_of(g);
        for (int64_t i = 0; i < count_of(g); i++)
            result[i] = (wf_real)((sign > 0 ? (double)result[i] : 0) + sign * (double)have[i] / (2 * step));
        free(have);
    }
}

static wf_tensor *scalar(wf_tensor *x)
{
    return wf_sum(wf_mul(wf_softmax(wf_linear(x, w, v)), wf_tanh(x)));
}

static wf_tensor *matrix(wf_tensor *x)
{
    return wf_tanh(wf_matmul(wf_transpose(x, 0, 1), wf_sin(x))); /* [D, D] */
}

START_TEST(products)
{
    wf_real along[ROWS * D], hv[ROWS * D], jv[D * D];
    const double step = sizeof(wf_real) == 8 ? 1e-5 : 1e-2, allowed = sizeof(wf_real) == 8 ? 1e-8 : 5e-3;
    begin(WF_TRAIN);
    for (int i = 0; i < ROWS * D; i++)
        along[i] = (wf_real)cos(i);
    derivative_along(scalar, step, along, hv, true);
    derivative_along(matrix, step, along, jv, false);
    begin(WF_TRAIN);
    wf_tensor *x = data(true), *a = wf_input(tape, along, WF_SHAPE(ROWS, D), false), *h, *j;
    ran(wf_hvp(scalar(x), 1, &x, &a, &h));
    ran(wf_jvp(matrix(x), 1, &x, &a, &j));
    wf_real *have = value_of(h), *slope = value_of(j);
    ck_assert_int_eq(wf_dim(j, 1), D);
    for (int i = 0; i < ROWS * D; i++)
        ck_assert_double_eq_tol(have[i], hv[i], allowed);
    for (int i = 0; i < D * D; i++)
        ck_assert_double_eq_tol(slope[i], jv[i], allowed);
    free(have);
    free(slope);
    /* Parameters, several x, a Hessian that is 0, and products that are differentiated again. */
    begin(WF_TRAIN);
    x = data(true);
    wf_tensor *both[2] = {w, v}, *ones[2] = {wf_full(tape, WF_SHAPE(D, D), 1), wf_full(tape, WF_SHAPE(D), 1)}, *out[2];
    ran(wf_hvp(wf_sum(wf_linear(x, w, v)), 2, both, ones, out));
    ck_assert_double_eq(item(wf_sum(wf_abs(out[0]))) + item(wf_sum(wf_abs(out[1]))), 0);
    both[0] = unused;
    ones[0] = wf_full(tape, WF_SHAPE(3), 1);
    ran(wf_hvp(wf_sum(wf_mul(wf_mul(v, v), v)), 2, both, ones, out, .create_graph = true));
    ck_assert_double_eq(item(wf_sum(wf_abs(out[0]))), 0);
    ran(wf_backward(wf_sum(out[1]))); /* of 6 v */
    wf_real *six = gradient_of(v);
    for (int i = 0; i < D; i++)
        ck_assert_double_eq_tol(six[i], 6, 1e-5);
    free(six);
}
END_TEST

/* Values that the caller released may be read as long as a backward will read them. */
START_TEST(released_values)
{
    double penalty_of[2];
    for (int release = 0; release < 2; release++) {
        begin(WF_TRAIN);
        wf_tensor *x = data(true), *h = wf_matmul(x, w), *y = wf_tanh(h), *z = wf_mul(y, y), *g;
        wf_tensor *loss = wf_sum(z);
        if (release) {
            wf_release(h);
            wf_release(y);
            wf_release(z);
        }
        ran(wf_gradients(loss, 1, &x, &g, .create_graph = true));
        penalty_of[release] = item(wf_sum(wf_mul(g, g)));
        if (release)
            ck_wrong_state(wf_add(y, y), "'tanh' was released with wf_release");
    }
    ck_assert_double_eq(penalty_of[0], penalty_of[1]);
}
END_TEST

/* --- refusals --------------------------------------------------------------------------------------------------------- */

static wf_tensor *twice(void *ctx, wf_tensor *x)
{
    (void)ctx;
    return wf_mul(x, x);
}

static void wrong_shape(const wf_gradient_call *c)
{
    c->dx[0] = wf_slice(c->dy[0], 0, 0, 2);
}

static wf_status give_dy(wf_call *c)
{
    wf_grad_give(c, 0, &c->dout[0]);
    return WF_OK;
}

START_TEST(refusals)
{
    static const wf_op wrong = {.name = "wrong", .shape = like_first, .forward = copy_first, .backward = give_dy, .gradient = wrong_shape};
    static const wf_op without = {.name = "my_copy", .shape = like_first, .forward = copy_first, .backward = give_dy};
    wf_tensor *x, *g;
    begin(WF_TRAIN);
    x = wf_name(data(true), "x");
    refused(wf_gradients(wf_sum(wf_apply(&without, NULL, 1, &x)), 1, &x, &g, .create_graph = true), WF_ERR_STATE,
            "wf_gradients: my_copy(x [6,8]): this op has no `gradient`, so that .create_graph cannot go through it");
    ck_assert(wf_is_poison(g));
    begin(WF_TRAIN);
    x = data(true);
    refused(wf_gradients(wf_sum(wf_checkpoint(twice, NULL, x)), 1, &x, &g, .create_graph = true), WF_ERR_STATE, "checkpoint(");
    begin(WF_TRAIN);
    x = wf_name(data(true), "x");
    refused(wf_gradients(wf_sum(wf_apply(&wrong, NULL, 1, &x)), 1, &x, &g, .create_graph = true), WF_ERR_SHAPE,
            "the op's `gradient` gives 'x', of shape [6,8], a gradient of shape [2,8]");
    begin(WF_TRAIN);
    refused(wf_backward(wf_sum(w), .create_graph = true), WF_ERR_ARGUMENT, "wf_backward: .create_graph is an option of wf_gradients");
    begin(WF_TRAIN);
    refused(wf_backward(wf_sum(w), .allow_unused = true), WF_ERR_ARGUMENT, "wf_backward: .allow_unused is an option of wf_gradients");
    begin(WF_INFER);
    refused(wf_gradients(wf_sum(w), 1, &w, &g, .create_graph = true), WF_ERR_STATE, "the tape is in WF_INFER");
    begin(WF_TRAIN);
    wf_tensor *y = wf_sum(wf_mul(w, w));
    wf_registry_grads(registry)->updates++; /* as an optimiser does */
    refused(wf_gradients(y, 1, &w, &g, .create_graph = true), WF_ERR_STATE, "'w' was changed after this op read it");
    begin(WF_TRAIN);
    x = data(true);
    refused(wf_hvp(wf_sum(wf_tanh(x)), 1, &x, &w, &g), WF_ERR_SHAPE, "wf_hvp: v[0] has shape [8,8], but 'input' has shape [6,8]");
    begin(WF_TRAIN);
    x = data(true);
    refused(wf_jvp(wf_tanh(x), 1, &x, ((wf_tensor *[]){NULL}), &g), WF_ERR_ARGUMENT, "wf_jvp: v[0] is NULL");
    ck_assert(wf_is_poison(g));
    begin(WF_TRAIN);
    x = data(true);
    refused(wf_jvp(wf_tanh(x), 0, &x, &x, &g), WF_ERR_ARGUMENT, "wf_jvp: no tensors are given");
}
END_TEST

START_TEST(tensors_without_use)
{
    wf_tensor *of[3], *g[3];
    for (int create = 0; create < 2; create++) {
        begin(WF_TRAIN);
        of[0] = v, of[1] = unused, of[2] = data(true);
        ran(wf_gradients(wf_sum(wf_mul(v, v)), 3, of, g, .create_graph = create, .allow_unused = true));
        ck_assert_int_eq(wf_dim(g[1], 0), 3);
        ck_assert_int_eq(wf_dim(g[2], 1), D);
        ck_assert_double_eq(item(wf_sum(wf_abs(g[1]))) + item(wf_sum(wf_abs(g[2]))), 0);
        ck_assert(item(wf_sum(wf_abs(g[0]))) > 0);
        begin(WF_TRAIN);
        refused(wf_gradients(wf_sum(wf_mul(v, v)), 2, of, g, .create_graph = create), WF_ERR_STATE, "does not depend on 'unused'");
    }
}
END_TEST

static void gives(wf_tensor *g, double a, double b, double c)
{
    const double want[] = {a, b, c};
    wf_real *have = value_of(g);
    for (int i = 0; i < 3; i++)
        ck_assert_double_eq_tol(have[i], want[i], 1e-5);
    free(have);
}

static wf_tensor *three(wf_real a, wf_real b, wf_real c)
{
    return wf_input(tape, (const wf_real[]){a, b, c}, WF_SHAPE(3), true);
}

/* A y that is an input, a parameter or a view of one keeps no gradient for later calls. */
START_TEST(nothing_stays)
{
    for (int first = 0; first < 2; first++)
        for (int second = 0; second < 3; second++) {
            begin(WF_TRAIN);
            wf_tensor *a = three(1, 2, 3), *b = three(1, 2, 3), *y = wf_sum(wf_mul(wf_mul(a, a), b)), *g;
            ran(wf_gradients(a, 1, &b, &g, .create_graph = first, .allow_unused = true, .retain = true));
            gives(g, 0, 0, 0);
            ran(wf_gradients(wf_slice(a, 0, 0, 2), 1, &b, &g, .create_graph = first, .allow_unused = true, .retain = true));
            if (second < 2) {
                ran(wf_gradients(y, 1, &a, &g, .create_graph = second, .retain = true));
                gives(g, 2, 8, 18);
            }
            ran(wf_backward(y));
            wf_real *grad = gradient_of(a);
            ck_assert(grad[0] == 2 && grad[1] == 8 && grad[2] == 18);
            free(grad);
        }
    begin(WF_TRAIN);
    wf_tensor *g, *of = wf_name(three(1, 1, 1), "of");
    ran(wf_gradients(wf_slice(v, 0, 0, 2), 1, &of, &g, .create_graph = true, .allow_unused = true));
    ran(wf_gradients(wf_sum(v), 1, &v, &g, .create_graph = true));
    wf_real *have = value_of(g);
    ck_assert(have[0] == 1 && have[D - 1] == 1);
    free(have);
}
END_TEST

/* Where the caller records nothing. */
START_TEST(without_recording)
{
    begin(WF_TRAIN);
    wf_tensor *a = three(1, 2, 3), *one = wf_full(tape, WF_SHAPE(3), 1), *y = wf_sum(wf_mul(wf_mul(a, a), a)), *g, *h;
    wf_tape_no_grad(tape, true);
    ran(wf_hvp(y, 1, &a, &one, &h));
    gives(h, 6, 12, 18);
    ran(wf_jvp(y, 1, &a, &one, &h));
    ck_assert_double_eq_tol(item(h), 42, 1e-4);
    ran(wf_gradients(y, 1, &a, &g, .create_graph = true));
    ck_assert(wf_tape_no_grad(tape, false)); /* as it was */
    ran(wf_backward(wf_sum(g)));
    wf_real *grad = gradient_of(a);
    ck_assert_double_eq_tol(grad[2], 18, 1e-4);
    free(grad);
}
END_TEST

/* A parameter that only `gradient` reads, as x of l2_normalize. */
START_TEST(a_changed_parameter)
{
    begin(WF_TRAIN);
    wf_tensor *y = wf_sum(wf_mul(wf_l2_normalize(v, 1e-12), wf_full(tape, WF_SHAPE(D), 2))), *g;
    wf_registry_grads(registry)->updates++;
    refused(wf_gradients(y, 1, &v, &g, .create_graph = true), WF_ERR_STATE, "'v' was changed after this op read it");
}
END_TEST

START_TEST(the_result_is_no_operand)
{
    begin(WF_TRAIN);
    wf_tensor *a = three(1, 2, 3), *of = wf_full(tape, WF_SHAPE(3), 1), *g;
    ran(wf_gradients(wf_add_constant(a, 1), 1, &a, &g, .gradient = of, .create_graph = true));
    ck_assert(g != of);
    gives(g, 1, 1, 1);
}
END_TEST

/* wf_check_function as PyTorch's gradgradcheck: the function takes gradients by its inputs. */
static wf_tensor *squared_slope(void *ctx, wf_tape *t, wf_tensor *const in[])
{
    wf_tensor *g;
    (void)ctx, (void)t;
    return wf_gradients(wf_sum(wf_tanh(wf_mul(in[0], in[1]))), 1, in, &g, .create_graph = true) == WF_OK ? wf_mul(g, g) : g;
}

START_TEST(checked_by_differences)
{
    const wf_shape shapes[] = {{2, {2, 3}}, {1, {3}}};
    begin(WF_TRAIN);
    ck_ok(wf_check_function(squared_slope, NULL, 2, shapes, NULL, NULL, error));
}
END_TEST

/* A pass takes no more memory than the one before. */
START_TEST(steady)
{
    size_t reserved = 0;
    wf_tensor *loss;
    for (int pass = 0; pass < 40; pass++) {
        penalty(&loss);
        ran(wf_backward(loss));
        const size_t now = wf_tape_stats(tape).reserved;
        ck_assert(pass < 2 || now == reserved);
        reserved = now;
    }
}
END_TEST

WF_TEST_MAIN("create_graph", as_without, three_times, a_penalty_trains, products, released_values, refusals, tensors_without_use,
             nothing_stays, without_recording, a_changed_parameter, the_result_is_no_operand, checked_by_differences, steady)
