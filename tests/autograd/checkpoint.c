/* SPDX-License-Identifier: MIT */
/* wf_checkpoint: the same bits as without it, in less memory. */
#include "checkpoint_test.h"

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
}
END_TEST

/* Several losses, and gradients with respect to some tensors: the function is called once more for each. */
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
                ck_assert_mem_eq(chosen[0][i], chosen[1][i], (size_t)count * sizeof(wf_real));
        }
        if (how == 1)
            same_bits(&have, &want, "two losses");
        else
            want = have;
    }
    for (int i = 0; i < 4; i++)
        free(chosen[i / 2][i % 2]);
    free(want.g);
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
}
END_TEST

START_TEST(steady_state_allocates_nothing)
{
    for (int pass = 0; pass < 3; pass++)
        used_by(EACH, LAYERS);
    int64_t before = wf_alloc_count();
    used_by(EACH, LAYERS);
    ck_assert_int_eq(wf_alloc_count(), before);
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
}
END_TEST

/* --- passes that end early --------------------------------------------------------------------------------------------------------------
 */

static int questions;
static bool after_some(void *ctx)
{
    return --*(int *)ctx < 0;
}

/* After a pass that was cancelled at any point the next one is whole. */
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
}
END_TEST

WF_TEST_MAIN("checkpoint", same_bits_as_without, other_backwards, memory, steady_state_allocates_nothing, complete_gradients, cancelled,
             every_allocation_may_fail)
