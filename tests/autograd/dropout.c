/* SPDX-License-Identifier: MIT */
/* Dropout over the passes of a loop: new masks in each pass, with or without .step, the same from one run of the loop to the next; and
 * exact passes, whose masks depend on nothing before them. */
#include <math.h>

#include <weft/weft.h>

#include "one_tape.h"

enum { ROWS = 32, D = 64, COUNT = ROWS * D };
struct mask {
    wf_real of[COUNT];
};

/* The mask of rows first .. first+rows-1 of a pass that the caller began, taken from the values; the gradient must have the same. */
static void take(int first, int rows, bool attention, struct mask *mask)
{
    static wf_real ones[COUNT];
    wf_array view;
    for (int i = 0; i < COUNT; i++)
        ones[i] = 1;
    wf_tensor *x = wf_input(tape, ones, WF_SHAPE(rows, D), true), *y;
    wf_real *to = mask->of + first * D;
    if (attention) { /* the sums of the weights that are kept */
        wf_tensor *z = wf_reshape(x, rows, D / 4, 4);
        y = wf_attention(z, z, z, .dropout = 0.5);
    } else {
        y = wf_dropout(x, 0.5);
    }
    ran(wf_read(y, to, rows * D));
    ran(wf_backward(wf_sum(y)));
    ran(wf_grad(x, &view));
    for (int i = 0; !attention && i < rows * D; i++)
        ck_assert(((const wf_real *)view.data)[i / D * view.stride[0] + i % D * view.stride[1]] == to[i]);
}

static bool same(const struct mask *a, const struct mask *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* Masks count as new if about half of their elements differ. */
static void ck_differ(const struct mask *mask, int count, const char *what)
{
    for (int i = 0; i < count; i++)
        for (int k = 0; k < i; k++) {
            int differ = 0;
            for (int j = 0; j < COUNT; j++)
                differ += mask[i].of[j] != mask[k].of[j];
            ck_assert_msg(differ > 0.4 * COUNT, "%s: passes %d and %d differ in %d of %d elements", what, k, i, differ, COUNT);
        }
}

enum { PASSES = 6 };

START_TEST(a_loop_without_step)
{
    static struct mask mask[PASSES], again, exact;
    for (int attention = 0; attention < 2; attention++) {
        begin(WF_INFER);
        for (int i = 0; i < PASSES; i++) {
            wf_tape_reset(tape, WF_TRAIN);
            take(0, ROWS, attention, &mask[i]);
            wf_tape_reset(tape, WF_INFER); /* validation between the updates */
            wf_tape_reset(tape, WF_GRADIENTS);
        }
        ck_differ(mask, PASSES, attention ? "attention" : "dropout");
        finish();
        begin(WF_INFER); /* the program's next run, without validation */
        for (int i = 0; i < PASSES; i++) {
            wf_tape_reset(tape, WF_TRAIN);
            take(0, ROWS, attention, &again);
            ck_assert_msg(same(&again, &mask[i]), "pass %d depends on more than the passes before", i);
        }
        wf_tape_reset(tape, WF_TRAIN, .exact = true);
        take(0, ROWS, attention, &exact);
        ck_assert(same(&exact, &mask[0]));
        wf_tape_reset(tape, WF_TRAIN, .seed = 1, .exact = true);
        take(0, ROWS, attention, &exact);
        for (int i = 0; i < PASSES; i++)
            ck_assert(!same(&exact, &mask[i]));
        finish();
    }
}
END_TEST

/* Parts of a batch: each has masks of its own, and a step has the same masks whatever was trained before it. */
START_TEST(parts_of_a_step)
{
    enum { STEPS = 3, PARTS = 2 };
    static struct mask mask[STEPS * PARTS], again;
    begin(WF_INFER);
    for (int i = 0; i < STEPS * PARTS; i++) {
        wf_tape_reset(tape, WF_TRAIN, .seed = 3, .step = (uint64_t)(i / PARTS));
        take(0, ROWS, false, &mask[i]);
    }
    ck_differ(mask, STEPS * PARTS, "parts");
    finish();
    begin(WF_INFER); /* resumed at the last step */
    for (int i = (STEPS - 1) * PARTS; i < STEPS * PARTS; i++) {
        wf_tape_reset(tape, WF_TRAIN, .seed = 3, .step = (uint64_t)(i / PARTS));
        take(0, ROWS, false, &again);
        ck_assert(same(&again, &mask[i]));
    }
}
END_TEST

START_TEST(exact_passes)
{
    static struct mask whole, parts, plain;
    begin(WF_INFER);
    wf_tape_reset(tape, WF_TRAIN, .seed = 3, .step = 7);
    take(0, ROWS, false, &plain);
    for (int i = 0; i < 3; i++) {
        wf_tape_reset(tape, WF_TRAIN, .seed = 3, .step = 7, .exact = true);
        take(0, ROWS, false, &whole);
        ck_assert_msg(same(&whole, &plain), "exact pass %d has another mask", i);
        for (int first = 0, rows; first < ROWS; first += rows) {
            rows = first == 0 ? ROWS / 4 : 3 * ROWS / 4;
            wf_tape_reset(tape, WF_TRAIN, .seed = 3, .step = 7, .first_row = (uint64_t)first, .exact = true);
            take(first, rows, false, &parts);
        }
        ck_assert_msg(same(&parts, &whole), "masks of an exact pass depend on how the batch is cut");
    }
}
END_TEST

/* --- an op from outside the library with masks of its own ---------------------------------------------------------- */

static wf_status noise_shape(wf_call *c)
{
    c->out[0] = wf_call_like(c, &c->in[0]);
    return WF_OK;
}

static wf_status multiply(wf_call *c, const wf_array *from, wf_real *to)
{
    wf_array in = wf_call_contiguous(c, from);
    if (!in.data || !to)
        return WF_ERR_MEMORY;
    wf_rng rng = wf_rng_new(c->seed ^ (c->step << 32), c->dropout_call);
    for (int64_t i = 0, n = wf_array_count(&in); i < n; i++)
        to[i] = (wf_real)wf_rng_uniform(&rng) * ((const wf_real *)in.data)[i];
    return WF_OK;
}

static wf_status noise_forward(wf_call *c)
{
    return multiply(c, &c->in[0], c->out[0].data);
}

static wf_status noise_backward(wf_call *c)
{
    wf_array dx = wf_grad_new(c, 0);
    wf_status status = multiply(c, &c->dout[0], dx.data);
    if (status == WF_OK)
        wf_grad_give(c, 0, &dx);
    return status;
}

static const wf_op op_noise = {.name = "noise",
                               .random = true,
                               .reads = WF_READS_NOTHING,
                               .shape = noise_shape,
                               .forward = noise_forward,
                               .backward = noise_backward,
                               .cases = WF_CASES({"two", {{3, 5}}, .train = true}, {"one", {{7}}, .train = true})};

/* The gradient check runs a pass again and again with one mask; a loop draws anew. */
/* p = 1: zeros, whatever x holds, and gradients of 0; p = 0: x itself. As PyTorch's functional dropout does. */
START_TEST(all_and_none)
{
    begin(WF_TRAIN);
    const wf_real values[] = {1, -2, (wf_real)NAN, (wf_real)INFINITY};
    wf_tensor *x = wf_input(tape, values, WF_SHAPE(2, 2), true), *r = wf_full(tape, WF_SHAPE(2, 2), 5);
    wf_tensor *of[] = {wf_dropout(x, 1), wf_relu_dropout(x, 1), wf_subtract(wf_dropout_add(x, r, 1), r)};
    wf_real y[4];
    wf_array view;
    for (int k = 0; k < 3; k++) {
        ran(wf_read(of[k], y, 4));
        for (int i = 0; i < 4; i++)
            ck_assert(y[i] == 0);
    }
    ck_assert(wf_dropout(x, 0) == x);
    ran(wf_backward(wf_add(wf_sum(of[0]), wf_add(wf_sum(of[1]), wf_sum(of[2])))));
    ran(wf_grad(x, &view));
    for (int i = 0; i < 4; i++)
        ck_assert(((const wf_real *)view.data)[i] == 0);
    begin(WF_GRADIENTS);
    x = wf_input(tape, values, WF_SHAPE(2, 2), true);
    ck_assert(wf_dropout(x, 1) == x); /* not in training */
}
END_TEST

START_TEST(an_op_from_outside)
{
    static const wf_real ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    wf_real y[3][8];
    ck_ok(wf_check_op(&op_noise, NULL, error));
    begin(WF_INFER);
    for (int i = 0; i < 3; i++) {
        wf_tape_reset(tape, WF_TRAIN);
        wf_tensor *x = wf_input(tape, ones, WF_SHAPE(8), false);
        ran(wf_read(wf_apply(&op_noise, NULL, 1, &x), y[i], 8));
        for (int k = 0; k < i; k++)
            ck_assert(memcmp(y[i], y[k], sizeof y[0]) != 0);
    }
}
END_TEST

WF_TEST_MAIN("dropout", a_loop_without_step, parts_of_a_step, exact_passes, an_op_from_outside, all_and_none)
