/* SPDX-License-Identifier: MIT */
/* wf_checkpoint: the same bits as without it, in less memory. */
#include <math.h>

#include <weft/op.h>

#include "one_registry.h"

enum { BATCH = 2, T = 24, D = 48, LAYERS = 12, GROUP = 4 };

struct block {
    struct wf_rms_norm norm1, norm2;
    struct wf_mha attn;
    struct wf_ffn ffn;
};

static struct block block[LAYERS];
static wf_tensor *gain, *unused;
static wf_real values[BATCH * T * D];

static void declare(wf_scope root)
{
    for (int i = 0; i < LAYERS; i++) {
        wf_scope s = wf_sub_at(root, "block", i);
        wf_rms_norm_init(wf_sub(s, "norm1"), &block[i].norm1, D);
        wf_mha_init(wf_sub(s, "attn"), &block[i].attn, D, 4, .kv_heads = 2, .dropout = 0.1, .residual_dropout = 0.1);
        wf_rms_norm_init(wf_sub(s, "norm2"), &block[i].norm2, D);
        wf_ffn_init(wf_sub(s, "ffn"), &block[i].ffn, D, 4 * D, .activation = i % 2 ? WF_SWIGLU : WF_GELU, .dropout = 0.2);
    }
    gain = wf_parameter(root, "gain", WF_SHAPE(D), .init = {WF_INIT_NORMAL, 1});
    unused = wf_parameter(root, "unused", WF_SHAPE(2));
    normal_numbers(values, BATCH * T * D);
}

static wf_tensor *input(bool needs_grad)
{
    return wf_input(tape, values, WF_SHAPE(BATCH, T, D), needs_grad);
}

/* --- the same bits -------------------------------------------------------------------------------------------------------- */

static wf_tensor *block_forward(void *ctx, wf_tensor *x)
{
    const struct block *b = ctx;
    x = wf_mha_forward(&b->attn, wf_rms_norm_forward(&b->norm1, x), .causal = true, .residual = x);
    return wf_ffn_forward(&b->ffn, wf_rms_norm_forward(&b->norm2, x), .residual = x);
}

/* GROUP blocks, each of them again in a checkpoint. */
static wf_tensor *nested(void *ctx, wf_tensor *x)
{
    struct block *b = ctx;
    for (int i = 0; i < GROUP; i++)
        x = wf_checkpoint(block_forward, b + i, x);
    return x;
}

static wf_tensor *grouped(void *ctx, wf_tensor *x)
{
    struct block *b = ctx;
    for (int i = 0; i < GROUP; i++)
        x = block_forward(b + i, x);
    return wf_dropout(x, 0.1);
}

enum how { PLAIN, EACH, GROUPS, NESTED, HOWS };
static wf_tensor *forward(enum how how, wf_tensor *x)
{
    for (int i = 0; i < LAYERS; i += how == EACH ? 1 : GROUP) {
        if (how == EACH)
            x = wf_checkpoint(block_forward, &block[i], x);
        else if (how == GROUPS)
            x = wf_checkpoint(grouped, &block[i], x);
        else if (how == NESTED)
            x = wf_checkpoint(nested, &block[i], x);
        else
            x = grouped(&block[i], x);
        if (i % GROUP == GROUP - 1 || how > EACH || how == PLAIN) {
            if (how == EACH || how == NESTED)
                x = wf_dropout(x, 0.1);
            wf_tape_first_row(tape, (uint64_t)(i / GROUP + 7)); /* the masks after it differ from those that are drawn again */
        }
    }
    return x;
}

static wf_tensor *loss_of(wf_tensor *x)
{
    return wf_mean(wf_mul(wf_mul(x, gain), x));
}

/* All gradients of parameters, that of the input, and the loss. */
struct numbers {
    wf_real *g;
    int64_t count;
};
static struct numbers numbers(wf_tensor *x, wf_tensor *loss)
{
    const wf_grads *grads = wf_registry_grads(registry);
    struct numbers n = {.count = grads->count + BATCH * T * D + 1};
    n.g = calloc((size_t)n.count, sizeof *n.g);
    for (int i = 0; i < grads->parameters; i++)
        if (grads->valid[i])
            memcpy(n.g + grads->place[i].offset, grads->slab + grads->place[i].offset, (size_t)grads->place[i].count * sizeof *n.g);
    wf_array g;
    double value;
    ran(wf_grad(x, &g));
    ck_assert(wf_array_is_contiguous(&g));
    memcpy(n.g + grads->count, g.data, BATCH * T * D * sizeof *n.g);
    ran(wf_item(loss, &value));
    n.g[n.count - 1] = (wf_real)value;
    return n;
}

static void same_bits(struct numbers *have, const struct numbers *want, const char *what)
{
    ck_assert_int_eq(have->count, want->count);
    ck_assert_msg(memcmp(have->g, want->g, (size_t)want->count * sizeof *want->g) == 0, "%s", what);
    free(have->g);
    have->g = NULL;
}

START_TEST(same_bits_as_without)
{
    struct numbers want = {0};
    for (int threads = 1; threads <= 2; threads++)
        for (int how = 0; how < HOWS; how++) {
            begin(WF_TRAIN);
            ck_ok(wf_set_threads(threads, error));
            wf_tensor *x = input(true), *loss = loss_of(forward(how, x));
            ran(wf_backward(loss));
            struct numbers have = numbers(x, loss);
            if (want.g)
                same_bits(&have, &want, how == EACH ? "each block" : how == GROUPS ? "groups" : how == NESTED ? "nested" : "threads");
            else
                want = have;
        }
    double most = 0;
    for (int64_t i = 0; i < want.count; i++)
        most = fmax(most, fabs((double)want.g[i]));
    ck_assert(most > 1e-3 && isfinite(most));
    free(want.g);
    finish();
}
END_TEST

/* Several losses, and gradients of chosen tensors: the function is called once more for each. */
START_TEST(other_backwards)
{
    struct numbers want = {0};
    wf_real *chosen[2][2];
    for (int how = 0; how < 2; how++) {
        begin(WF_TRAIN);
        wf_tensor *x = input(true), *h = forward(how ? EACH : PLAIN, x), *loss = loss_of(h), *second = wf_sum(h);
        wf_tensor *of[] = {block[5].ffn.up.weight, x}, *g[2];
        ran(wf_gradients(second, 2, of, g, .retain = true));
        for (int i = 0; i < wf_registry_grads(registry)->parameters; i++)
            ck_assert(!wf_registry_grads(registry)->valid[i]);
        ran(wf_backward(second, .retain = true));
        ran(wf_backward(loss));
        struct numbers have = numbers(x, loss);
        for (int i = 0; i < 2; i++) {
            int64_t count = i ? BATCH * T * D : 4 * D * D;
            chosen[how][i] = malloc((size_t)count * sizeof(wf_real));
            ran(wf_read(g[i], chosen[how][i], count));
            if (how == 1)
                ck_assert_int_eq(memcmp(chosen[0][i], chosen[1][i], (size_t)count * sizeof(wf_real)), 0);
        }
        if (how == 1)
            same_bits(&have, &want, "two losses");
        else
            want = have;
    }
    for (int i = 0; i < 4; i++)
        free(chosen[i / 2][i % 2]);
    free(want.g);
    finish();
}
END_TEST

/* --- memory ------------------------------------------------------------------------------------------------------------- */

static size_t used_by(enum how how, int layers)
{
    begin(WF_TRAIN);
    wf_tensor *x = input(true), *h = x;
    for (int i = 0; i < layers; i++)
        h = how == EACH ? wf_checkpoint(block_forward, &block[i], h) : block_forward(&block[i], h);
    ran(wf_backward(loss_of(h)));
    return wf_tape_stats(tape).used;
}

/* Memory of a tape is what a pass used at most: 12 blocks hold their operands and the inside of one. Another pass needs no more. */
START_TEST(memory)
{
    const size_t activation = BATCH * T * D * sizeof(wf_real);
    size_t plain = used_by(PLAIN, LAYERS), each = used_by(EACH, LAYERS), half = used_by(EACH, LAYERS / 2), one = used_by(PLAIN, 1);
    double per_block = (double)(each - half) / (LAYERS - LAYERS / 2), records = 40.0 * 1024; /* of two forwards */
    ck_assert_msg(per_block < 1.2 * (double)activation + records, "%.2f activations a block, and %.2f without",
                  per_block / (double)activation, (double)(plain - one) / (LAYERS - 1) / (double)activation);
    ck_assert_msg(each < plain / 3, "%zu bytes, and %zu without", each, plain);
    for (int pass = 0; pass < 3; pass++)
        ck_assert_uint_eq(used_by(EACH, LAYERS), each);
    finish();
}
END_TEST

START_TEST(steady_state_allocates_nothing)
{
    for (int pass = 0; pass < 3; pass++)
        used_by(EACH, LAYERS);
    int64_t before = wf_alloc_count();
    used_by(EACH, LAYERS);
    ck_assert_int_eq(wf_alloc_count(), before);
    finish();
}
END_TEST

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

/* They are read again although the caller released them, and get their gradients. */
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
    ck_assert_int_eq(memcmp(of_h[0], of_h[1], BATCH * T * D * sizeof(wf_real)), 0);
    free(of_h[0]);
    free(of_h[1]);
    free(want.g);
    finish();
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

/* What was made inside is an error outside; with wf_keep its value can be read, and no gradient flows through it. */
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
    finish();
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
    ck_assert(wf_is_poison(wf_checkpoint(returns, &none, input(true))));
    refused(wf_tape_error(tape)->code, WF_ERR_ARGUMENT, "wf_checkpoint: the function's result: the tensor is NULL");
    finish();
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
    finish();
}
END_TEST

/* Regions without gradients, inside and around the backward; their operands too are there a second time. */
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
    finish();
}
END_TEST

/* --- ready functions ------------------------------------------------------------------------------------------------------- */

static int completed[256];
static double sum_then[256];
static double sum_of(int parameter)
{
    const wf_grads *grads = wf_registry_grads(registry);
    double sum = 0;
    for (int64_t i = 0; i < grads->place[parameter].count; i++)
        sum += fabs((double)grads->slab[grads->place[parameter].offset + i]);
    return sum;
}

static void ready(void *ctx, int parameter)
{
    (void)ctx;
    completed[parameter]++;
    sum_then[parameter] = sum_of(parameter);
}

START_TEST(complete_gradients)
{
    for (int how = EACH; how <= NESTED; how++) {
        begin(WF_TRAIN);
        wf_grads *grads = wf_registry_grads(registry);
        ck_assert_int_le(grads->parameters, 256);
        memset(completed, 0, sizeof completed);
        grads->ready = ready;
        wf_tensor *x = wf_mul(input(true), gain), *y = forward(how, forward(how, x)); /* all blocks twice */
        ran(wf_backward(wf_sum(y), .retain = true));
        for (int i = 0; i < grads->parameters; i++)
            ck_assert_int_eq(completed[i], 0);
        ran(wf_backward(loss_of(y)));
        for (int i = 0; i < grads->parameters; i++) {
            ck_assert_msg(completed[i] == grads->valid[i], "%d: %d times", i, completed[i]);
            ck_assert(!grads->valid[i] || sum_then[i] == sum_of(i));
        }
        grads->ready = NULL;
    }
    finish();
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
    ck_assert(wf_is_poison(wf_checkpoint(NULL, NULL, input(true))));
    refused(wf_tape_error(tape)->code, WF_ERR_ARGUMENT, "wf_checkpoint: the function is NULL");
    begin(WF_TRAIN);
    ck_assert(wf_is_poison(wf_checkpoint(returns, NULL, NULL)));
    refused(wf_tape_error(tape)->code, WF_ERR_ARGUMENT, "wf_checkpoint: the tensor is NULL");
    finish();
}
END_TEST

static int questions;
static bool after_some(void *ctx)
{
    return --*(int *)ctx < 0;
}

/* Wherever a pass is cancelled, the next one is whole. */
START_TEST(cancelled)
{
    bool done = false;
    for (int n = 0; !done; n += 113) {
        begin(WF_TRAIN);
        questions = n;
        wf_tape_cancel(tape, after_some, &questions);
        wf_tensor *x = input(true);
        wf_status status = wf_backward(loss_of(nested(&block[0], x)));
        ck_assert(status == WF_OK || status == WF_ERR_CANCELLED);
        done = status == WF_OK;
        wf_tape_cancel(tape, NULL, NULL);
    }
    finish();
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    struct numbers want = {0};
    bool done = false;
    begin(WF_TRAIN);
    wf_tensor *x = input(true), *loss = loss_of(nested(&block[0], x));
    ran(wf_backward(loss));
    want = numbers(x, loss);
    for (int64_t n = 0; !done; n++) {
        wf_tape_free(tape);
        tape = new_tape();
        begin(WF_TRAIN);
        wf_alloc_fail_after(n);
        x = input(true);
        loss = loss_of(nested(&block[0], x));
        wf_status status = wf_backward(loss);
        wf_alloc_fail_after(-1);
        ck_assert(status == WF_OK || status == WF_ERR_MEMORY);
        done = status == WF_OK;
        if (done) {
            struct numbers have = numbers(x, loss);
            same_bits(&have, &want, "short of memory");
        }
    }
    free(want.g);
    finish();
}
END_TEST

WF_TEST_MAIN("checkpoint", same_bits_as_without, other_backwards, memory, steady_state_allocates_nothing, captured_tensors,
             inside_and_outside, any_result, without_gradients, regions_without_gradients, complete_gradients, functions_that_misbehave,
             cancelled, every_allocation_may_fail)
