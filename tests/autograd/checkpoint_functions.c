/* SPDX-License-Identifier: MIT */
/* The function of wf_checkpoint: what it may read, return, keep and switch off, and what is refused. */
#include "checkpoint_test.h"

/* --- tensors from outside ----------------------------------------------------------------------------------------------- */

struct captured {
    wf_tensor *h, *view, *mask, *ids, *inside;
    int calls;
};

static wf_tensor *with_captured(void *ctx, wf_tensor *x)
{
    struct captured *c = ctx;
    c->calls++;
    wf_tensor *mask = wf_scale(c->mask, 2);                   /* needs no gradient, and has no record */
    wf_tensor *y = wf_gelu(wf_mul(wf_add(x, c->h), mask));    /* add reads no values in backward */
    y = wf_add(y, wf_mul(wf_transpose(c->view, 1, 2), gain)); /* a view of a view */
    wf_tensor *zeros = wf_zeros(tape, WF_SHAPE(BATCH, T, D)), *still = wf_detach(y);
    y = wf_mul(wf_add(y, zeros), wf_add(still, c->h));
    c->inside = y;
    return wf_transpose(wf_reshape(wf_dropout(y, 0.3), T, BATCH, D), 0, 1);
}

/* Captured tensors are read again although the caller released them, and get their gradients. */
START_TEST(captured_tensors)
{
    struct numbers want = {0};
    wf_real *of_h[2];
    for (int how = 0; how < 2; how++) {
        begin(WF_TRAIN);
        wf_tensor *x = input(true), *h = wf_retain_grad(wf_scale(x, 3));
        struct captured c = {.h = h, .view = wf_transpose(h, 1, 2), .mask = wf_affine(input(false), 0.5, 1)};
        wf_tensor *z = wf_matmul(x, wf_transpose(h, 1, 2)), *operand = wf_matmul(z, h);
        wf_tensor *y = how ? wf_checkpoint(with_captured, &c, operand) : with_captured(&c, operand);
        wf_release(z);
        wf_release(operand);
        wf_release(c.view);
        wf_release(c.mask);
        wf_release(h);
        wf_tensor *loss = wf_mean(wf_mul(y, y));
        ran(wf_backward(loss));
        ck_assert_int_eq(c.calls, how + 1);
        struct numbers have = numbers(x, loss);
        of_h[how] = gradient_of(h);
        if (how == 1)
            same_bits(&have, &want, "captured tensors");
        else
            want = have;
    }
    ck_assert_mem_eq(of_h[0], of_h[1], BATCH * T * D * sizeof(wf_real));
    free(of_h[0]);
    free(of_h[1]);
    free(want.g);
}
END_TEST

static wf_tensor *keeps(void *ctx, wf_tensor *x)
{
    wf_tensor **kept = ctx;
    *kept = wf_name(wf_keep(wf_gelu(x)), "kept");
    return wf_scale(wf_mul(*kept, x), 2);
}

static wf_tensor *leaks(void *ctx, wf_tensor *x)
{
    wf_tensor **inside = ctx;
    *inside = wf_name(wf_gelu(x), "inside");
    return wf_scale(wf_mul(*inside, x), 2);
}

/* A tensor made inside is refused outside. After wf_keep its value can be read, and no gradient flows through it. */
START_TEST(inside_and_outside)
{
    wf_real out[BATCH * T * D];
    wf_tensor *inside;
    begin(WF_TRAIN);
    wf_tensor *x = input(true), *y = wf_checkpoint(leaks, &inside, x);
    ck_assert(wf_is_poison(wf_add(y, inside)));
    refused(wf_backward(y), WF_ERR_STATE, "add: the value of 'inside' was released at the end of wf_checkpoint: return it");
    begin(WF_TRAIN);
    x = input(true);
    y = wf_checkpoint(leaks, &inside, x);
    ran(wf_backward(y));
    refused(wf_read(inside, out, BATCH * T * D), WF_ERR_STATE, "was released at the end of wf_checkpoint");
    for (int how = 0; how < 3; how++) {
        begin(WF_TRAIN);
        x = input(true);
        y = wf_checkpoint(keeps, &inside, x);
        ran(wf_read(inside, out, BATCH * T * D));
        if (how == 0) {
            refused(wf_backward(wf_sum(wf_add(y, inside))), WF_ERR_STATE, "depends on 'kept', which was made inside wf_checkpoint");
        } else if (how == 1) {
            ran(wf_backward(wf_sum(wf_add(y, wf_detach(inside)))));
            ran(wf_read(inside, out, BATCH * T * D));
        } else {
            wf_tensor *g;
            refused(wf_gradients(wf_sum(y), 1, &inside, &g), WF_ERR_STATE, "does not depend on 'kept'");
        }
    }
}
END_TEST

/* --- results ------------------------------------------------------------------------------------------------------------- */

static wf_tensor *returns(void *ctx, wf_tensor *x)
{
    switch (*(int *)ctx) {
    case 0:
        return x;
    case 1:
        return wf_transpose(x, 1, 2);
    case 2:
        return gain;
    case 3:
        return wf_gelu(wf_detach(x));
    case 4:
        return wf_scale(wf_zeros(tape, WF_SHAPE(3)), 2);
    case 5: /* windows and repeated elements hold their gradient apart */
        return wf_expand(wf_slice(wf_gelu(x), 1, 0, 1), BATCH, T, D);
    case 6:
        return wf_expand(wf_slice(x, 1, 0, 1), BATCH, T, D);
    case 7:
        return wf_retain_grad(wf_slice(wf_gelu(x), 2, 4, 7));
    case 8:
        return wf_slice(wf_mul(x, gain), 2, 4, 7);
    default:
        return NULL;
    }
}

START_TEST(any_result)
{
    enum { RESULTS = 9 };
    for (int i = 0; i < RESULTS; i++) {
        struct numbers want = {0};
        for (int how = 0; how < 2; how++) {
            begin(WF_TRAIN);
            wf_tensor *x = input(true), *h = wf_scale(x, 2), *y = how ? wf_checkpoint(returns, &i, h) : returns(&i, h);
            ck_assert_msg(!wf_is_poison(y), "%d: %s", i, wf_tape_error(tape)->message);
            wf_tensor *loss = wf_add(wf_sum(wf_mul(y, y)), wf_sum(h));
            ran(wf_backward(loss));
            struct numbers have = numbers(x, loss);
            char what[32];
            snprintf(what, sizeof what, "result %d", i);
            if (how == 1)
                same_bits(&have, &want, what);
            else
                want = have;
        }
        free(want.g);
    }
    int none = RESULTS;
    begin(WF_TRAIN);
    expect_error(wf_checkpoint(returns, &none, input(true)), WF_ERR_ARGUMENT, "wf_checkpoint: the function's result: the tensor is NULL");
}
END_TEST

START_TEST(without_gradients)
{
    wf_tensor *inside;
    wf_real out[BATCH * T * D];
    for (int how = 0; how < 2; how++) {
        begin(how ? WF_TRAIN : WF_INFER);
        if (how == 1)
            wf_tape_no_grad(tape, true);
        wf_tensor *y = wf_checkpoint(leaks, &inside, input(true));
        ran(wf_read(y, out, BATCH * T * D));
        ran(wf_read(inside, out, BATCH * T * D));
    }
}
END_TEST

/* Regions without gradients, inside and around the backward; their operands too are computed a second time. */
static wf_tensor *with_region(void *ctx, wf_tensor *x)
{
    wf_tape_mark *mark = ctx;
    const bool before = wf_tape_no_grad(tape, true);
    wf_tensor *constant = wf_gelu(wf_add(x, gain));
    if (mark)
        constant = wf_tape_rewind(tape, *mark, constant);
    wf_tape_no_grad(tape, before);
    return wf_mul(wf_tape_compact(wf_tape_here(tape), wf_add(x, gain)), constant);
}

START_TEST(regions_without_gradients)
{
    struct numbers want = {0};
    for (int how = 0; how < 2; how++) {
        begin(WF_TRAIN);
        wf_tensor *x = input(true), *h = wf_add(x, x), *y = how ? wf_checkpoint(with_region, NULL, h) : with_region(NULL, h);
        wf_release(h);
        wf_tensor *loss = loss_of(y);
        wf_tape_no_grad(tape, how == 1);
        ran(wf_backward(loss));
        struct numbers have = numbers(x, loss);
        if (how == 1)
            same_bits(&have, &want, "regions");
        else
            want = have;
    }
    free(want.g);
    begin(WF_TRAIN);
    wf_tensor *x = input(true);
    wf_tape_mark mark = wf_tape_here(tape);
    refused(wf_backward(wf_checkpoint(with_region, &mark, x)), WF_ERR_STATE, "wf_tape_rewind: called inside wf_checkpoint");
}
END_TEST

/* --- errors -------------------------------------------------------------------------------------------------------------- */

static int call;
static wf_tensor *misbehaves(void *ctx, wf_tensor *x)
{
    const char *how = ctx;
    const bool again = call++ > 0;
    wf_tensor *h = strcmp(how, "releases") ? wf_gelu(x) : NULL;
    if (!strcmp(how, "fails") || (again && !strcmp(how, "fails later")))
        return wf_matmul(h, wf_zeros(tape, WF_SHAPE(3, 5)));
    if (again && !strcmp(how, "does more"))
        h = wf_gelu(h);
    if (again && !strcmp(how, "does less"))
        return x;
    if (again && !strcmp(how, "is not there"))
        return NULL;
    if (again && !strcmp(how, "another operand"))
        return wf_mul(h, wf_reshape(wf_slice(gain, 0, 0, D), D));
    if (!strcmp(how, "another operand"))
        return wf_mul(h, wf_detach(gain));
    if (!strcmp(how, "resets") || (again && !strcmp(how, "resets later")))
        wf_tape_reset(tape, WF_TRAIN);
    if (!strcmp(how, "backward") || (again && !strcmp(how, "backward later"))) {
        if (wf_backward(h) == WF_OK)
            return x;
    }
    if (!strcmp(how, "releases")) {
        h = wf_add(x, gain); /* whose backward does not read x */
        wf_release(x);
        return h;
    }
    return wf_mul(h, gain);
}

START_TEST(functions_that_misbehave)
{
    static const struct {
        const char *how, *message;
        wf_status code;
    } cases[] = {
        {"fails", "matmul(gelu [2,24,48], zeros [3,5])", WF_ERR_SHAPE},
        {"fails later", "matmul(gelu [2,24,48], zeros [3,5])", WF_ERR_SHAPE},
        {"does more", "in backward the function did something else than in the forward", WF_ERR_STATE},
        {"does less", "in backward the function did something else", WF_ERR_STATE},
        {"another operand", "in backward the function did something else", WF_ERR_STATE},
        {"is not there", "the function's result: the tensor is NULL", WF_ERR_ARGUMENT},
        {"resets", "wf_tape_reset: called inside wf_checkpoint", WF_ERR_STATE},
        {"resets later", "wf_tape_reset: called inside wf_checkpoint", WF_ERR_STATE},
        {"backward", "wf_backward: called inside wf_checkpoint", WF_ERR_STATE},
        {"backward later", "wf_backward: called inside wf_checkpoint", WF_ERR_STATE},
        {"releases", "the function released 'add', which is not its own", WF_ERR_STATE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin(WF_TRAIN);
        call = 0;
        wf_tensor *x = wf_add(input(true), gain), *y = wf_checkpoint(misbehaves, (void *)cases[i].how, x);
        wf_status status = wf_backward(wf_sum(y));
        ck_assert_msg(status == cases[i].code && strstr(wf_tape_error(tape)->message, cases[i].message), "%s: %s", cases[i].how,
                      wf_tape_error(tape)->message);
        ck_assert(wf_registry_grads(registry)->broken || call == 1);
        begin(WF_TRAIN); /* and the tape is good for another pass */
        call = 0;
        ran(wf_backward(wf_checkpoint(misbehaves, "", input(true))));
    }
    begin(WF_TRAIN);
    expect_error(wf_checkpoint(NULL, NULL, input(true)), WF_ERR_ARGUMENT, "wf_checkpoint: the function is NULL");
    begin(WF_TRAIN);
    expect_error(wf_checkpoint(returns, NULL, NULL), WF_ERR_ARGUMENT, "wf_checkpoint: the tensor is NULL");
}
END_TEST

WF_TEST_MAIN("checkpoint functions", captured_tensors, inside_and_outside, any_result, without_gradients, regions_without_gradients,
             functions_that_misbehave)
