/* SPDX-License-Identifier: MIT */
/* wf_backward with a given gradient, several times in a pass, and with ops in between. */
#include <weft/optim.h>

#include "one_registry.h"

enum { ROWS = 48, D = 64, V = 96 }; /* large enough for their memory to be used again */

static wf_tensor *w, *gain, *head, *unused;
static wf_real values[ROWS * D];
static int32_t targets[ROWS];

static void declare(wf_scope root)
{
    w = wf_parameter(root, "w", WF_SHAPE(D, D), .init = {WF_INIT_NORMAL, 0.2});
    gain = wf_parameter(root, "gain", WF_SHAPE(D), .init = {WF_INIT_CONSTANT, 1});
    head = wf_parameter(root, "head", WF_SHAPE(V, D), .init = {WF_INIT_NORMAL, 0.2});
    unused = wf_parameter(root, "unused", WF_SHAPE(3));
    normal_numbers(values, ROWS * D);
    for (int i = 0; i < ROWS; i++)
        targets[i] = i * 7 % V;
}

/* --- several losses over one trunk ----------------------------------------------------------------------------------- */

enum { LOSSES = 4, LOOKED_AT = 6 };
struct net {
    wf_tensor *loss[LOSSES], *of[LOOKED_AT]; /* whose gradients are compared */
    wf_tensor *trunk;
};

/* Ops that read operands, results and what they saved; gradients that are shared, views, dropout, a tensor used by all the losses. */
static struct net net(void)
{
    struct net n;
    wf_tensor *x = wf_input(tape, values, WF_SHAPE(ROWS, D), true);
    wf_tensor *h = wf_retain_grad(wf_matmul(wf_layer_norm(x, gain, NULL, 1e-5), w));
    wf_tensor *row = wf_retain_grad(wf_slice(h, 0, 4, 16));
    wf_tensor *a = wf_add(wf_dropout(wf_gelu(h), 0.25), x);
    wf_tensor *p = wf_softmax(a);
    n.loss[0] = wf_linear_cross_entropy(a, head, NULL, wf_ids_of(tape, targets, WF_SHAPE(ROWS)));
    n.loss[1] = wf_sum(wf_mul(row, row));
    n.loss[2] = wf_mean(wf_mul(p, a));
    n.loss[3] = wf_scale(n.loss[0], 3);
    n.trunk = a;
    memcpy(n.of, (wf_tensor *[LOOKED_AT]){x, h, row, w, gain, head}, sizeof n.of);
    return n;
}

static void same_gradients(const struct net *n, wf_real *const want[], const char *when)
{
    for (int i = 0; i < LOOKED_AT; i++) {
        wf_real *have = gradient_of(n->of[i]);
        near(n->of[i], have, want[i], when);
        free(have);
    }
}

START_TEST(losses_one_after_the_other)
{
    wf_real *want[LOOKED_AT];
    begin(WF_TRAIN);
    struct net n = net();
    wf_tensor *sum = wf_add(wf_add(n.loss[0], n.loss[1]), wf_add(n.loss[2], n.loss[3]));
    ran(wf_backward(sum));
    for (int i = 0; i < LOOKED_AT; i++)
        want[i] = gradient_of(n.of[i]);
    static const int order[][LOSSES] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}};
    size_t used = 0;
    for (int pass = 0; pass < 6; pass++) {
        begin(WF_TRAIN);
        n = net();
        for (int i = 0; i < LOSSES; i++)
            ran(wf_backward(n.loss[order[pass % 3][i]], .retain = i < LOSSES - 1));
        same_gradients(&n, want, "one after the other");
        if (pass >= 3) /* orders repeat, and so does the memory */
            ck_assert_uint_le(wf_tape_stats(tape).peak, used);
        else
            used = wf_tape_stats(tape).peak;
    }
    for (int i = 0; i < LOOKED_AT; i++)
        free(want[i]);
}
END_TEST

/* The last backward frees values, as a single one does. */
START_TEST(the_last_one_frees)
{
    wf_real out[ROWS * D];
    begin(WF_TRAIN);
    struct net n = net();
    ran(wf_backward(n.loss[0], .retain = true));
    ran(wf_read(n.trunk, out, ROWS * D));
    ran(wf_backward(n.loss[2]));
    refused(wf_read(n.trunk, out, ROWS * D), WF_ERR_STATE, "was released in wf_backward");
}
END_TEST

START_TEST(the_same_loss_twice)
{
    begin(WF_TRAIN);
    struct net n = net();
    wf_real *want[LOOKED_AT];
    ran(wf_backward(n.loss[0], .retain = true));
    ran(wf_backward(n.loss[1], .retain = true));
    for (int i = 0; i < LOOKED_AT; i++) {
        want[i] = gradient_of(n.of[i]);
        for (int64_t j = 0; j < count_of(n.of[i]); j++)
            want[i][j] *= 2;
    }
    ran(wf_backward(n.loss[1], .retain = true));
    ran(wf_backward(n.loss[0]));
    same_gradients(&n, want, "twice");
    for (int i = 0; i < LOOKED_AT; i++)
        free(want[i]);
}
END_TEST

static int ready_count[4];
static void ready(void *ctx, int parameter)
{
    (void)ctx;
    ready_count[parameter]++;
}

/* A gradient is complete in the last backward, even if that adds nothing to it. */
START_TEST(complete_in_the_last)
{
    begin(WF_TRAIN);
    memset(ready_count, 0, sizeof ready_count);
    wf_registry_grads(registry)->ready = ready;
    struct net n = net();
    ran(wf_backward(n.loss[0], .retain = true));
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(ready_count[i], 0);
    ran(wf_backward(n.loss[1])); /* without the head */
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(ready_count[i], i < 3);
    ran(wf_backward(wf_sum(wf_mul(unused, unused))));
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(ready_count[i], 1);
}
END_TEST

static wf_status of_reset, of_backward;
static wf_tensor *inner;
static void resets(void *ctx, int parameter)
{
    (void)ctx, (void)parameter;
    wf_tape_reset(tape, WF_TRAIN);
    of_reset = wf_tape_error(tape)->code;
}

static void calls_backward(void *ctx, int parameter)
{
    (void)ctx, (void)parameter;
    of_backward = wf_backward(inner);
}

START_TEST(calls_inside_backward)
{
    begin(WF_TRAIN);
    wf_registry_grads(registry)->ready = resets;
    refused(wf_backward(net().loss[0]), WF_ERR_STATE, "wf_tape_reset: called inside wf_backward");
    ck_assert_int_eq(of_reset, WF_ERR_STATE);
    ck_assert(wf_registry_grads(registry)->broken);
    begin(WF_TRAIN);
    wf_registry_grads(registry)->ready = calls_backward;
    inner = net().loss[1];
    refused(wf_backward(net().loss[0]), WF_ERR_STATE, "wf_backward: called inside wf_backward");
    ck_assert_int_eq(of_backward, WF_ERR_STATE);
    wf_registry_grads(registry)->ready = NULL;
    begin(WF_TRAIN);
    ran(wf_backward(net().loss[0]));
}
END_TEST

/* --- refusals ---------------------------------------------------------------------------------------------------------- */

START_TEST(records_that_are_used_up)
{
    begin(WF_TRAIN);
    struct net n = net();
    ran(wf_backward(n.loss[0]));
    refused(wf_backward(n.loss[0]), WF_ERR_STATE, "an earlier wf_backward used up the record of 'linear_cross_entropy'");
    ck_assert(wf_registry_grads(registry)->broken);
    begin(WF_TRAIN);
    n = net();
    ran(wf_backward(n.loss[0]));
    refused(wf_backward(n.loss[1]), WF_ERR_STATE, "give that call .retain = true");
    /* Half of the sum has its records; its gradient alone would be wrong, silently. */
    begin(WF_TRAIN);
    n = net();
    wf_keep(wf_name(n.loss[1], "distance"));
    ran(wf_backward(n.loss[0]));
    wf_tensor *sum = wf_add(wf_sum(wf_mul(w, w)), wf_reshape(wf_scale(n.loss[1], 2), 1));
    refused(wf_backward(wf_scale(sum, 2)), WF_ERR_STATE, "'scale' depends on 'distance', whose record an earlier wf_backward used up");
    begin(WF_TRAIN);
    n = net();
    wf_keep(n.trunk);
    ran(wf_backward(n.loss[0]));
    expect_error(wf_retain_grad(wf_slice(n.trunk, 0, 0, 1)), WF_ERR_STATE, "wf_retain_grad: no gradient will reach 'slice'");
}
END_TEST

START_TEST(values_that_were_given_up)
{
    begin(WF_TRAIN);
    struct net n = net();
    wf_name(n.trunk, "trunk");
    ran(wf_backward(n.loss[0]));
    expect_error(wf_add(n.trunk, n.trunk), WF_ERR_STATE, "add: the value of 'trunk' was released in wf_backward");
    begin(WF_TRAIN); /* refused for a value of any size */
    n = net();
    double value;
    ran(wf_backward(n.loss[0]));
    ran(wf_item(n.loss[0], &value));
    refused(wf_item(n.loss[1], &value), WF_ERR_STATE, "was released in wf_backward: call wf_keep on it before");
    begin(WF_TRAIN); /* a backward after wf_gradients, over the same records: the first message has the advice */
    n = net();
    wf_tensor *g;
    wf_name(n.loss[1], "mean");
    ran(wf_gradients(n.loss[0], 1, &w, &g));
    refused(wf_backward(wf_add(n.loss[1], wf_sum(w))), WF_ERR_STATE,
            "add: the value of 'mean' was released in wf_gradients: call wf_keep on it before, or give that call .retain = true");
    begin(WF_TRAIN);
    n = net();
    wf_keep(wf_name(n.loss[1], "mean"));
    ran(wf_gradients(n.loss[0], 1, &w, &g));
    refused(wf_backward(wf_add(n.loss[1], wf_sum(w))), WF_ERR_STATE, "'mean', whose record an earlier wf_gradients used up: give that");
}
END_TEST

/* --- a given gradient ------------------------------------------------------------------------------------------------ */

/* A backward from y with the gradient g equals one from the sum of g y, in any layout. */
START_TEST(a_given_gradient)
{
    wf_real g[ROWS * D], *want[2];
    for (int i = 0; i < ROWS * D; i++)
        g[i] = values[i] = (wf_real)sin(i + 1.0);
    for (int how = 0; how < 4; how++) {
        begin(WF_TRAIN);
        wf_tensor *x = wf_input(tape, values, WF_SHAPE(ROWS, D), true);
        wf_tensor *y = wf_matmul(wf_gelu(x), w), *dy = wf_input(tape, g, WF_SHAPE(D, ROWS), false);
        wf_status status;
        if (how == 0)
            status = wf_backward(wf_sum(wf_mul(y, wf_transpose(dy, 0, 1))));
        else if (how == 1)
            status = wf_backward(y, .gradient = wf_transpose(dy, 0, 1));
        else if (how == 2) /* of a view; the gradient has a record, which this backward uses up */
            status = wf_backward(wf_transpose(y, 0, 1), .gradient = wf_add(dy, wf_transpose(wf_scale(x, 0), 0, 1)));
        else { /* in two parts */
            wf_array part = {0};
            ran(wf_view(dy, &part));
            part = wf_array_slice(part, 1, 0, 8);
            status = wf_backward(wf_slice(y, 0, 8, ROWS - 8), .gradient = wf_transpose(wf_slice(dy, 1, 8, ROWS - 8), 0, 1), .retain = true);
            if (status == WF_OK)
                status = wf_backward(wf_slice(y, 0, 0, 8), .gradient = wf_transpose(wf_borrow(tape, &part), 0, 1));
        }
        ck_assert_msg(status == WF_OK, "%s", wf_tape_error(tape)->message);
        wf_tensor *of[] = {x, w};
        for (int i = 0; i < 2; i++) {
            wf_real *have = gradient_of(of[i]);
            for (int64_t j = 0; how > 0 && j < count_of(of[i]); j++)
                ck_assert_double_eq_tol(have[j], want[i][j], sizeof(wf_real) == 8 ? 1e-12 : 1e-4);
            if (how > 0)
                free(have);
            else
                want[i] = have;
        }
    }
    free(want[0]);
    free(want[1]);
}
END_TEST

START_TEST(a_gradient_that_does_not_fit)
{
    wf_real g[6] = {0};
    int32_t ids[2] = {0};
    begin(WF_TRAIN);
    refused(wf_backward(wf_sum(w), .gradient = wf_input(tape, g, WF_SHAPE(6), false)), WF_ERR_SHAPE,
            " [6], but 'sum' has shape []: give one real number for each");
    begin(WF_TRAIN);
    refused(wf_backward(wf_slice(gain, 0, 0, 2), .gradient = wf_ids_of(tape, ids, WF_SHAPE(2))), WF_ERR_SHAPE, ".gradient is I32 [2]");
    wf_tape *other = wf_tape_new(NULL);
    wf_tape_reset(other, WF_TRAIN);
    wf_tensor *of_other = wf_input(other, g, WF_SHAPE(2), false);
    begin(WF_TRAIN);
    refused(wf_backward(wf_slice(gain, 0, 0, 2), .gradient = of_other), WF_ERR_STATE, "wf_backward: operand 'input' is on another");
    wf_tape_free(other);
    begin(WF_TRAIN);
    wf_tensor *old = wf_zeros(tape, WF_SHAPE(2));
    begin(WF_TRAIN);
    refused(wf_backward(wf_slice(gain, 0, 0, 2), .gradient = old), WF_ERR_STATE, "older than the last wf_tape_reset");
}
END_TEST

/* --- ops after a backward ---------------------------------------------------------------------------------------------- */

/* Micro-batches on one tape without a reset: memory of the first serves the second, and the gradients add up. */
START_TEST(another_loss)
{
    begin(WF_TRAIN);
    wf_tensor *x = wf_input(tape, values, WF_SHAPE(ROWS, D), true), *mask = wf_keep(wf_scale(wf_zeros(tape, WF_SHAPE(ROWS, D)), 1));
    size_t used = 0;
    for (int part = 0; part < 4; part++) {
        wf_tensor *h = wf_gelu(wf_matmul(wf_add(x, mask), w)), *loss = wf_sum(wf_mul(h, h));
        ran(wf_backward(loss));
        double value;
        ran(wf_item(wf_scale(loss, 0.5), &value)); /* ops on results that are still there */
        if (part == 1)
            used = wf_tape_stats(tape).used;
    }
    ck_assert_uint_le(wf_tape_stats(tape).used - used, 2 * 16 * 2048); /* records only */
    wf_real *have[] = {gradient_of(x), gradient_of(w)};
    begin(WF_TRAIN);
    x = wf_input(tape, values, WF_SHAPE(ROWS, D), true);
    wf_tensor *h = wf_gelu(wf_matmul(x, w));
    ran(wf_backward(wf_scale(wf_sum(wf_mul(h, h)), 4)));
    wf_real *want[] = {gradient_of(x), gradient_of(w)};
    for (int i = 0; i < 2; i++) {
        for (int64_t j = 0; j < (i ? D * D : ROWS * D); j++)
            ck_assert_double_eq_tol(have[i][j], want[i][j], (sizeof(wf_real) == 8 ? 1e-12 : 1e-4) * (1 + fabs((double)want[i][j])));
        free(have[i]);
        free(want[i]);
    }
}
END_TEST

/* A backward over ops that were recorded after another one adds to what that one retained. */
START_TEST(ops_between)
{
    wf_real *want[2];
    for (int how = 0; how < 2; how++) {
        begin(WF_TRAIN);
        wf_tensor *x = wf_input(tape, values, WF_SHAPE(ROWS, D), true), *h = wf_softmax(wf_matmul(x, w));
        wf_tensor *first = wf_sum(wf_mul(h, h)), *of[] = {x, w};
        if (how == 1)
            ran(wf_backward(first, .retain = true));
        wf_tensor *second = wf_sum(wf_gelu(wf_mul(h, wf_add(h, x))));
        ran(wf_backward(how == 1 ? second : wf_add(first, second)));
        for (int i = 0; i < 2; i++) {
            wf_real *have = gradient_of(of[i]);
            for (int64_t j = 0; how == 1 && j < count_of(of[i]); j++)
                ck_assert_double_eq_tol(have[j], want[i][j], sizeof(wf_real) == 8 ? 1e-12 : 1e-5);
            if (how == 1) {
                free(want[i]);
                free(have);
            } else {
                want[i] = have;
            }
        }
    }
}
END_TEST

/* --- updates in between -------------------------------------------------------------------------------------------------- */

static wf_tensor *times_w(void *ctx, wf_tensor *x)
{
    (void)ctx;
    return wf_matmul(x, w);
}

/* An update between two backwards over one record is refused, because the second would read the new values. Records that read no
 * parameter, or were made after the update, go on. */
START_TEST(updates_in_between)
{
    for (int how = 0; how < 6; how++) {
        begin(WF_TRAIN);
        struct wf_optimizer opt;
        ck_ok(wf_sgd_init(&opt, registry, error, .lr = 0.01));
        wf_tensor *x = wf_input(tape, values, WF_SHAPE(ROWS, D), true), *g;
        wf_tensor *h = how == 2 ? wf_checkpoint(times_w, NULL, x) : how == 3 ? wf_add(x, gain) : wf_matmul(x, w), *loss = wf_sum(h);
        ran(wf_backward(loss, .retain = true));
        ck_ok(wf_optimizer_step(&opt, error));
        if (how == 4) /* the parameter is used again; the old record stays old */
            ck_assert(!wf_is_poison(wf_matmul(x, w)));
        if (how == 5)
            loss = wf_sum(wf_matmul(x, w));
        wf_status status = how == 1 ? wf_gradients(loss, 1, &x, &g) : wf_backward(loss);
        if (how == 3 || how == 5)
            ck_assert_msg(status == WF_OK, "%d: %s", how, wf_tape_error(tape)->message);
        else
            refused(status, WF_ERR_STATE, "'w' was changed after this op read it");
        wf_optimizer_free(&opt);
    }
}
END_TEST

WF_TEST_MAIN("backward", updates_in_between, losses_one_after_the_other, the_last_one_frees, the_same_loss_twice, complete_in_the_last,
             calls_inside_backward, records_that_are_used_up, values_that_were_given_up, a_given_gradient, a_gradient_that_does_not_fit,
             another_loss, ops_between)
