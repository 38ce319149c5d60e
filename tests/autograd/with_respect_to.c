/* SPDX-License-Identifier: MIT */
/* wf_gradients: gradients with respect to some tensors, which change nothing else. */
#include "copy_op.h"
#include "one_registry.h"

enum { ROWS = 24, D = 64 };

static wf_tensor *w, *v, *frozen, *unused;
static wf_real values[ROWS * D];

static void declare(wf_scope root)
{
    w = wf_parameter(root, "w", WF_SHAPE(D, D), .init = {WF_INIT_NORMAL, 0.2});
    v = wf_parameter(root, "v", WF_SHAPE(D), .init = {WF_INIT_NORMAL, 0.2});
    frozen = wf_parameter(root, "frozen", WF_SHAPE(D), .init = {WF_INIT_NORMAL, 1}, .frozen = true);
    unused = wf_parameter(root, "unused", WF_SHAPE(3));
    normal_numbers(values, ROWS * D);
}

/* A net with a tensor of each kind. */
enum { INPUT, INNER, VIEW, VIEW_OF_VIEW, EXPANDED, WEIGHT, VECTOR, RESULT, KINDS };
struct net {
    wf_tensor *x[KINDS], *loss;
};
static struct net net(bool retain)
{
    struct net n;
    wf_tensor *x = wf_input(tape, values, WF_SHAPE(ROWS, D), true);
    wf_tensor *h = wf_gelu(wf_matmul(x, w));
    if (retain)
        h = wf_retain_grad(h);
    wf_tensor *part = wf_slice(h, 0, 2, 16);
    if (retain)
        part = wf_retain_grad(part);
    wf_tensor *turned = wf_transpose(wf_slice(part, 1, 8, 32), 0, 1);
    if (retain)
        turned = wf_retain_grad(turned);
    wf_tensor *wide = wf_expand(wf_slice(h, 0, 0, 1), 5, D);
    if (retain)
        wide = wf_retain_grad(wide);
    wf_tensor *y = wf_dropout(wf_mul(wf_mul(h, v), frozen), 0.3);
    if (retain)
        y = wf_retain_grad(y);
    n.loss = wf_add(wf_add(wf_sum(wf_mul(y, x)), wf_mean(wf_mul(part, part))), wf_add(wf_sum(wf_gelu(turned)), wf_sum(wf_mul(wide, v))));
    memcpy(n.x, (wf_tensor *[KINDS]){x, h, part, turned, wide, w, v, y}, sizeof n.x);
    return n;
}

/* The gradients of all tensors together, of each alone and of pairs are those of wf_backward, and nothing else changes. */
START_TEST(as_wf_backward)
{
    wf_real *want[KINDS];
    begin(WF_TRAIN);
    struct net n = net(true);
    ran(wf_backward(n.loss));
    for (int i = 0; i < KINDS; i++)
        want[i] = gradient_of(n.x[i]);
    wf_grads *grads = wf_registry_grads(registry);
    for (int which = 1; which < 1 << KINDS; which = which < 8 ? which + 1 : which * 2 + 1) {
        begin(WF_TRAIN);
        for (int64_t i = 0; i < grads->count; i++)
            grads->slab[i] = 7;
        n = net(false);
        wf_tensor *x[KINDS], *g[KINDS];
        int count = 0;
        for (int i = 0; i < KINDS; i++)
            if (which >> i & 1)
                x[count++] = n.x[i] == w ? w : n.x[i];
        ran(wf_gradients(n.loss, count, x, g, .retain = which % 2 == 0));
        for (int i = 0, at = 0; i < KINDS; i++) {
            wf_array none;
            ck_assert_int_eq(wf_grad(n.x[i], &none), WF_ERR_STATE);
            if (!(which >> i & 1))
                continue;
            wf_real *have = value_of(g[at]);
            char what[64];
            snprintf(what, sizeof what, "tensor %d of %x", i, (unsigned)which);
            ck_assert_int_eq(wf_ndim(g[at]), wf_ndim(n.x[i]));
            near(n.x[i], have, want[i], what);
            free(have);
            at++;
        }
        for (int64_t i = 0; i < grads->count; i++)
            ck_assert(grads->slab[i] == 7);
        for (int i = 0; i < grads->parameters; i++)
            ck_assert(!grads->valid[i]);
    }
    for (int i = 0; i < KINDS; i++)
        free(want[i]);
}
END_TEST

/* A wf_gradients between two wf_backward leaves no trace: the same bits, of inputs, retained tensors and parameters. */
START_TEST(between_others)
{
    wf_real *want[KINDS];
    for (int how = 0; how < 2; how++) {
        begin(WF_TRAIN);
        struct net n = net(true), other = net(false);
        wf_tensor *second = wf_sum(wf_mul(n.x[RESULT], n.x[RESULT])), *g[KINDS];
        if (how == 1)
            ran(wf_gradients(second, 1, n.x, g, .retain = true));
        ran(wf_backward(n.loss, .retain = true));
        if (how == 1) {
            ran(wf_gradients(n.loss, KINDS, n.x, g, .retain = true));
            ran(wf_gradients(other.loss, KINDS, other.x, g, .retain = true));
        }
        ran(wf_backward(second, .retain = how == 1));
        if (how == 1)
            ran(wf_gradients(second, 1, n.x + INNER, g));
        for (int i = 0; i < KINDS; i++) {
            wf_real *have = gradient_of(n.x[i]);
            if (how == 1)
                ck_assert_mem_eq(have, want[i], (size_t)count_of(n.x[i]) * sizeof *have);
            if (how == 1)
                free(want[i]);
            want[i] = have;
        }
    }
    for (int i = 0; i < KINDS; i++)
        free(want[i]);
}
END_TEST

/* The gradient of a view comes from its own uses, not from other uses of its root; that of the root comes from all. */
START_TEST(views_apart)
{
    begin(WF_GRADIENTS);
    wf_tensor *x = wf_input(tape, values, WF_SHAPE(4, 4), true), *h = wf_scale(x, 1);
    wf_tensor *top = wf_slice(h, 0, 0, 2), *left = wf_slice(h, 1, 0, 2), *corner = wf_slice(top, 1, 0, 2), *in_vain = wf_slice(h, 0, 1, 1);
    wf_tensor *loss = wf_add(wf_add(wf_scale(wf_sum(h), 1000), wf_scale(wf_sum(top), 100)),
                             wf_add(wf_scale(wf_sum(left), 10), wf_scale(wf_sum(corner), 1)));
    wf_tensor *g[5];
    ran(wf_gradients(loss, 5, ((wf_tensor *[]){corner, h, top, left, x}), g, .retain = true));
    wf_real *have[5];
    for (int i = 0; i < 5; i++)
        have[i] = value_of(g[i]);
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < 4; c++) {
            wf_real all = 1000 + (r < 2 ? 100 : 0) + (c < 2 ? 10 : 0) + (r < 2 && c < 2 ? 1 : 0);
            ck_assert(have[1][r * 4 + c] == all && have[4][r * 4 + c] == all);
            if (r < 2)
                ck_assert(have[2][r * 4 + c] == 100 + (c < 2 ? 1 : 0));
            if (c < 2)
                ck_assert(have[3][r * 2 + c] == 10);
            if (r < 2 && c < 2)
                ck_assert(have[0][r * 2 + c] == 1);
        }
    for (int i = 0; i < 5; i++)
        free(have[i]);
    refused(wf_gradients(loss, 1, &in_vain, g), WF_ERR_STATE, "wf_gradients: 'add' does not depend on 'slice'");
}
END_TEST

/* Rows of a Jacobian, by given gradients. */
static void numbers_of(const wf_real *x, int n, wf_real *y)
{
    begin(WF_GRADIENTS);
    wf_tensor *in = wf_input(tape, x, WF_SHAPE(1, n), true);
    ran(wf_read(wf_softmax(wf_mul(in, wf_gelu(in))), y, n));
}

START_TEST(jacobian)
{
    enum { N = 6 };
    wf_real x[N] = {(wf_real)0.3, -1, 2, (wf_real)0.7, (wf_real)-0.2, 1}, y[2][N], *have[N];
    begin(WF_GRADIENTS);
    wf_tensor *in = wf_input(tape, x, WF_SHAPE(1, N), true), *out = wf_softmax(wf_mul(in, wf_gelu(in))), *g[N];
    for (int i = 0; i < N; i++) {
        wf_real one[N] = {0};
        one[i] = 1;
        ran(wf_gradients(out, 1, &in, &g[i], .gradient = wf_input(tape, one, WF_SHAPE(1, N), false), .retain = i < N - 1));
    }
    for (int i = 0; i < N; i++)
        have[i] = value_of(g[i]);
    const double h = sizeof(wf_real) == 8 ? 1e-6 : 1e-2;
    for (int j = 0; j < N; j++) {
        for (int sign = 0; sign < 2; sign++) {
            wf_real moved[N];
            memcpy(moved, x, sizeof x);
            moved[j] += (wf_real)(sign ? h : -h);
            numbers_of(moved, N, y[sign]);
        }
        for (int i = 0; i < N; i++)
            ck_assert_double_eq_tol(have[i][j], ((double)y[1][i] - (double)y[0][i]) / (2 * h), sizeof(wf_real) == 8 ? 1e-9 : 1e-3);
    }
    for (int i = 0; i < N; i++)
        free(have[i]);
}
END_TEST

/* --- what is computed -------------------------------------------------------------------------------------------------- */

static int calls, needs;
static wf_status count(wf_call *c)
{
    calls++;
    for (int i = 0; i < 2; i++) {
        needs += c->need[i];
        if (c->need[i])
            wf_grad_give(c, i, &c->dout[0]);
    }
    return WF_OK;
}

START_TEST(only_what_is_on_a_path)
{
    static const wf_op op = {.name = "counted", .shape = like_first, .forward = copy_first, .backward = count};
    begin(WF_GRADIENTS);
    calls = needs = 0;
    wf_tensor *a = wf_input(tape, values, WF_SHAPE(8), true), *b = wf_input(tape, values, WF_SHAPE(8), true), *g[2];
    wf_tensor *left = wf_apply(&op, NULL, 2, (wf_tensor *[]){a, a}), *right = wf_apply(&op, NULL, 2, (wf_tensor *[]){b, b});
    wf_tensor *top = wf_apply(&op, NULL, 2, (wf_tensor *[]){left, right}), *aside = wf_apply(&op, NULL, 2, (wf_tensor *[]){a, left});
    ran(wf_gradients(top, 1, &a, g, .retain = true));
    ck_assert_int_eq(calls, 2); /* top and left */
    ck_assert_int_eq(needs, 3);
    ran(wf_gradients(top, 1, &left, g, .retain = true));
    ck_assert_int_eq(calls, 3);
    ran(wf_gradients(aside, 2, ((wf_tensor *[]){left, a}), g, .retain = true));
    ck_assert_int_eq(calls, 5);
    ran(wf_gradients(top, 2, ((wf_tensor *[]){top, top}), g));
    ck_assert_int_eq(calls, 5);
    ck_assert_ptr_eq(g[0], g[1]);
    wf_real *ones = value_of(g[1]);
    ck_assert(ones[0] == 1 && ones[7] == 1);
    free(ones);
}
END_TEST

static int completed;
static void ready(void *ctx, int parameter)
{
    (void)ctx, (void)parameter;
    completed++;
}

/* Records are used up as in wf_backward; the memory is used again. */
START_TEST(records_and_memory)
{
    begin(WF_TRAIN);
    completed = 0;
    wf_registry_grads(registry)->ready = ready;
    struct net n = net(false);
    wf_tensor *g[KINDS];
    ran(wf_backward(n.loss, .retain = true));
    ran(wf_gradients(n.loss, 1, &w, g, .retain = true));
    ck_assert_int_eq(completed, 0);
    ran(wf_gradients(n.loss, 1, &w, g));
    ck_assert_int_eq(completed, 2);
    refused(wf_gradients(n.loss, 1, &w, g), WF_ERR_STATE, "an earlier wf_gradients used up the record of 'add'");
    ck_assert(wf_is_poison(g[0]));
    ck_assert(!wf_registry_grads(registry)->broken); /* nothing was written there */
    size_t used = 0, peak = 0;
    for (int pass = 0; pass < 4; pass++) {
        begin(WF_TRAIN);
        n = net(false);
        ran(wf_gradients(n.loss, KINDS, n.x, g, .retain = true));
        ran(wf_backward(n.loss));
        ck_assert(pass == 0 || (wf_tape_stats(tape).used == used && wf_tape_stats(tape).peak == peak));
        used = wf_tape_stats(tape).used;
        peak = wf_tape_stats(tape).peak;
    }
}
END_TEST

/* --- gradients as operands ----------------------------------------------------------------------------------------------- */

START_TEST(gradients_of_gradients)
{
    begin(WF_TRAIN);
    wf_tensor *x = wf_name(wf_input(tape, values, WF_SHAPE(4, D), true), "x"), *loss = wf_sum(wf_gelu(wf_matmul(x, w))), *g;
    ran(wf_gradients(loss, 1, &x, &g, .retain = true));
    double norm;
    wf_tensor *penalty = wf_sum(wf_mul(g, g));
    ran(wf_item(penalty, &norm));
    ck_assert(norm > 1e-6);
    refused(wf_backward(wf_add(loss, penalty)), WF_ERR_STATE,
            "'add' depends on the gradient 'x': give its wf_gradients .create_graph = true");
    /* As a constant: a loss at a point along the gradient. */
    for (int how = 0; how < 2; how++) {
        begin(WF_TRAIN);
        x = wf_input(tape, values, WF_SHAPE(4, D), true);
        loss = wf_sum(wf_gelu(wf_matmul(x, w)));
        ran(wf_gradients(loss, 1, &x, &g));
        wf_tensor *moved = wf_add(x, wf_scale(wf_detach(g), 0.1));
        ran(wf_backward(how ? moved : wf_sum(wf_mul(wf_gelu(wf_matmul(moved, w)), wf_detach(g))), .gradient = how ? g : NULL));
        wf_real *have = gradient_of(x), *want = value_of(g);
        if (how == 1)
            ck_assert_mem_eq(have, want, 4 * D * sizeof *have);
        free(have);
        free(want);
    }
}
END_TEST

START_TEST(refusals)
{
    wf_tensor *g[2], *x, *y, *other;
    begin(WF_TRAIN);
    y = wf_sum(wf_mul(v, frozen));
    refused(wf_gradients(y, 1, &frozen, g), WF_ERR_STATE, "wf_gradients: 'frozen' needs no gradient: it is frozen");
    ck_assert(!wf_registry_grads(registry)->broken);
    begin(WF_TRAIN);
    y = wf_sum(wf_mul(v, frozen));
    refused(wf_gradients(y, 2, ((wf_tensor *[]){v, unused}), g), WF_ERR_STATE, "'sum' does not depend on 'unused'");
    ck_assert(wf_is_poison(g[0]) && wf_is_poison(g[1]));
    begin(WF_TRAIN);
    other = wf_sum(w);
    y = wf_sum(wf_mul(v, frozen));
    refused(wf_gradients(y, 2, ((wf_tensor *[]){v, w}), g), WF_ERR_STATE, "'sum' does not depend on 'w'");
    begin(WF_TRAIN);
    x = wf_input(tape, values, WF_SHAPE(D), false);
    y = wf_sum(wf_mul(v, x));
    refused(wf_gradients(y, 1, &x, g), WF_ERR_STATE, "'input' needs no gradient: it depends on no parameter that is trained");
    begin(WF_TRAIN);
    refused(wf_gradients(x, 1, &v, g), WF_ERR_STATE, "older than the last wf_tape_reset");
    begin(WF_INFER);
    refused(wf_gradients(wf_sum(v), 1, &v, g), WF_ERR_STATE, "wf_gradients: the tape is in WF_INFER");
    begin(WF_TRAIN);
    y = wf_sum(v);
    refused(wf_gradients(y, 0, &v, g), WF_ERR_ARGUMENT, "wf_gradients: no tensors are given");
    begin(WF_TRAIN);
    x = NULL;
    refused(wf_gradients(wf_sum(v), 1, &x, g), WF_ERR_ARGUMENT, "wf_gradients: the tensor is NULL");
    begin(WF_TRAIN);
    refused(wf_gradients(x, 1, &v, g), WF_ERR_ARGUMENT, "wf_gradients: the tensor is NULL");
    begin(WF_TRAIN);
    y = wf_sum(wf_mul(v, v));
    refused(wf_gradients(y, 1, &v, g, .gradient = v), WF_ERR_SHAPE, "wf_gradients: .gradient is ");
    begin(WF_TRAIN);
    other = wf_sum(v);
    y = wf_sum(wf_mul(v, v));
    ran(wf_backward(y, .gradient = other));
}
END_TEST

/* f(x) = sum of a x^3 / 3, whose gradient is a x^2: the penalty (|g| - 1)^2 as docs/pytorch.md computes it, by differences. */
static wf_tensor *cubic(wf_tensor *a, wf_tensor *x)
{
    return wf_div_constant(wf_sum_dim(wf_mul(wf_pow_constant(x, 3), a), 1, false), 3);
}

START_TEST(penalty_by_differences)
{
    enum { N = 3 };
    const wf_real at[N] = {1, 1.5, 0.5}, by[N] = {0.5, 0.75, 2};
    const double h = sizeof(wf_real) == 8 ? 1e-4 : 1e-2, allowed = sizeof(wf_real) == 8 ? 1e-6 : 1e-2;
    double norm = 0, value, earlier;
    for (int i = 0; i < N; i++)
        norm += pow((double)by[i] * at[i] * at[i], 2);
    norm = sqrt(norm);
    begin(WF_TRAIN);
    wf_tensor *x = wf_input(tape, at, WF_SHAPE(1, N), true), *a = wf_input(tape, by, WF_SHAPE(N), true), *g;
    wf_tensor *loss = wf_sum(wf_mul(wf_detach(x), a)); /* of the critic, recorded before */
    ran(wf_gradients(wf_sum(cubic(a, x)), 1, &x, &g, .retain = true));
    wf_tensor *along = wf_scale(wf_l2_normalize(wf_detach(g), 1e-12), h), *from = wf_detach(x);
    wf_tensor *slope = wf_div_constant(wf_subtract(cubic(a, wf_add(from, along)), cubic(a, wf_subtract(from, along))), 2 * h);
    wf_tensor *penalty = wf_mean(wf_square(wf_add_constant(slope, -1)));
    ran(wf_item(penalty, &value));
    ran(wf_item(loss, &earlier));
    ck_assert_double_eq_tol(value, (norm - 1) * (norm - 1), allowed);
    ran(wf_backward(wf_add(loss, penalty)));
    wf_array da;
    ran(wf_grad(a, &da));
    for (int i = 0; i < N; i++)
        ck_assert_double_eq_tol(((const wf_real *)da.data)[i], at[i] + 2 * (norm - 1) * by[i] * pow(at[i], 4) / norm, 5 * allowed);
}
END_TEST

WF_TEST_MAIN("with_respect_to", penalty_by_differences, as_wf_backward, between_others, views_apart, jacobian, only_what_is_on_a_path,
             records_and_memory, gradients_of_gradients, refusals)
