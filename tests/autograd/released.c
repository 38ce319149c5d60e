/* SPDX-License-Identifier: MIT */
/* Values that no backward reads are released early. An op from outside whose backward reads one although its descriptor denies it must
 * fail the gradient check with a message that names the op and the value. The same ops declared right must pass. */
#include <math.h>

#include <weft/internal/asan.h>
#include <weft/weft.h>

#include "check_weft.h"

/* weigh: y = exp(a) b where keep, else 0. da = y dy, db = exp(a) dy where keep: reads a, keep and the result. */
enum { A, B, KEEP };

/* The value from which the backward makes da */
static enum { RESULT, B_IN_VIEWS, B_WHEN_ALONE } da_from;

static wf_status weigh_shape(wf_call *c)
{
    c->out[0] = wf_call_like(c, &c->in[A]);
    return WF_OK;
}

static wf_status weigh_forward(wf_call *c)
{
    wf_array a = wf_call_contiguous(c, &c->in[A]), b = wf_call_contiguous(c, &c->in[B]), keep = wf_call_contiguous(c, &c->in[KEEP]);
    if (!a.data || !b.data || !keep.data)
        return WF_ERR_MEMORY;
    for (int64_t i = 0; i < wf_array_count(&a); i++)
        ((wf_real *)c->out[0].data)[i] = ((bool *)keep.data)[i] ? (wf_real)exp((double)((wf_real *)a.data)[i]) * ((wf_real *)b.data)[i] : 0;
    return WF_OK;
}

static wf_status weigh_backward(wf_call *c)
{
    wf_array dy = wf_call_contiguous(c, &c->dout[0]);
    const bool from_b = (da_from == B_IN_VIEWS && !wf_array_is_contiguous(&c->in[B])) || (da_from == B_WHEN_ALONE && !c->need[B]);
    wf_array a = from_b || c->need[B] ? wf_call_contiguous(c, &c->in[A]) : c->in[A];
    wf_array keep = from_b || c->need[B] ? wf_call_contiguous(c, &c->in[KEEP]) : c->in[KEEP];
    wf_array b = from_b ? wf_call_contiguous(c, &c->in[B]) : c->in[B];
    if (!dy.data || !a.data || !keep.data || !b.data)
        return WF_ERR_MEMORY;
    for (int i = A; i <= B; i++) {
        if (!c->need[i])
            continue;
        wf_array d = wf_grad_new(c, i);
        if (!d.data)
            return WF_ERR_MEMORY;
        for (int64_t n = 0; n < wf_array_count(&d); n++) {
            wf_real factor = 0;
            if (i == A && !from_b)
                factor = ((const wf_real *)c->out[0].data)[n];
            else if (((const bool *)keep.data)[n])
                factor = (wf_real)exp((double)((const wf_real *)a.data)[n]) * (i == A ? ((const wf_real *)b.data)[n] : 1);
            ((wf_real *)d.data)[n] = factor * ((const wf_real *)dy.data)[n];
        }
        wf_grad_give(c, i, &d);
    }
    return WF_OK;
}

static const wf_op weigh = {
    .name = "weigh",
    .shape = weigh_shape,
    .forward = weigh_forward,
    .backward = weigh_backward,
    .cases = WF_CASES({"matrices", {{3, 5}, {3, 5}, {3, 5}}, {WF_FILL_NORMAL, WF_FILL_NORMAL, WF_FILL_BOOLS}}),
};

/* A is input 0 and so on; Y is the output. */
enum { Y = WF_MAX_INPUTS };

static wf_status check_as(unsigned reads, wf_error *error)
{
    wf_op op = weigh;
    op.reads = reads;
    return wf_check_op(&op, NULL, error);
}

#define must_name(value, reads)                                                                                                            \
    ck_fails(check_as(reads, error), WF_ERR_NUMERIC, "weigh, case 0 matrices: backward reads the value of " value ",")

START_TEST(declared_right)
{
    ck_ok(check_as(1u << A | 1u << KEEP | 1u << Y, error));
    ck_ok(check_as(1u << A | 1u << B | 1u << KEEP | 1u << Y, error));
    ck_ok(check_as(0, error)); /* everything */
}
END_TEST

START_TEST(denied_input)
{
    must_name("input 0", 1u << B | 1u << KEEP | 1u << Y);
    must_name("input 0", 1u << KEEP | 1u << Y);
    must_name("input 0", 1u << Y);
    must_name("input 0", WF_READS_NOTHING | 1u << Y);
}
END_TEST

START_TEST(denied_bools)
{
    must_name("input 2", 1u << A | 1u << Y);
    must_name("input 2", 1u << A | 1u << B | 1u << Y);
}
END_TEST

START_TEST(denied_output)
{
    must_name("output 0", 1u << A | 1u << KEEP);
    must_name("output 0", 1u << A | 1u << B | 1u << KEEP);
}
END_TEST

START_TEST(denied_input_read_in_some_cases)
{
    da_from = B_IN_VIEWS;
    ck_ok(check_as(1u << A | 1u << B | 1u << KEEP | 1u << Y, error));
    must_name("input 1", 1u << A | 1u << KEEP | 1u << Y);
    da_from = B_WHEN_ALONE;
    ck_ok(check_as(1u << A | 1u << B | 1u << KEEP | 1u << Y, error));
    must_name("input 1", 1u << A | 1u << KEEP | 1u << Y);
}
END_TEST

/* rows: y_i = table[id_i] */
static wf_status rows_shape(wf_call *c)
{
    c->out[0] = wf_call_shape(WF_REAL, &(wf_shape){2, {c->in[1].dim[0], c->in[0].dim[1]}});
    return WF_OK;
}

static wf_status rows_forward(wf_call *c)
{
    for (int64_t i = 0; i < c->in[1].dim[0]; i++) {
        wf_array from = wf_array_slice(c->in[0], 0, ((const int32_t *)c->in[1].data)[i], 1), to = wf_array_slice(c->out[0], 0, i, 1);
        wf_array_copy(&to, &from);
    }
    return WF_OK;
}

static wf_status rows_backward(wf_call *c)
{
    wf_array dy = wf_call_contiguous(c, &c->dout[0]), d = wf_grad_new(c, 0);
    if (!dy.data || !d.data)
        return WF_ERR_MEMORY;
    int64_t columns = dy.dim[1];
    memset(d.data, 0, (size_t)wf_array_count(&d) * sizeof(wf_real));
    for (int64_t i = 0; i < dy.dim[0] * columns; i++)
        ((wf_real *)d.data)[((const int32_t *)c->in[1].data)[i / columns] * columns + i % columns] += ((const wf_real *)dy.data)[i];
    wf_grad_give(c, 0, &d);
    return WF_OK;
}

START_TEST(denied_ids)
{
    wf_op op = {
        .name = "rows",
        .shape = rows_shape,
        .forward = rows_forward,
        .backward = rows_backward,
        .reads = WF_READS_INPUT(1),
        .cases = WF_CASES({.in = {{5, 3}, {4}}, .fill = {WF_FILL_NORMAL, WF_FILL_IDS}, .limit = {0, 5}}),
    };
    ck_ok(wf_check_op(&op, NULL, error));
    op.reads = WF_READS_INPUT(0);
    ck_fails(wf_check_op(&op, NULL, error), WF_ERR_NUMERIC, "rows, case 0: backward reads the value of input 1,");
}
END_TEST

/* Inside a function the engine releases values of any size, and erases them. */
static wf_tensor *weigh_inside(void *ctx, wf_tape *tape, wf_tensor *const in[])
{
    static const bool all[6] = {true, true, true, true, true, true};
    wf_tensor *a = wf_scale(in[0], 2), *b = wf_scale(in[1], 3);
    return wf_scale(wf_apply(ctx, NULL, 3, (wf_tensor *[]){a, b, wf_bools(tape, all, WF_SHAPE(2, 3))}), 2);
}

START_TEST(in_a_function)
{
    const wf_shape shapes[] = {{2, {2, 3}}, {2, {2, 3}}};
    wf_op op = weigh;
    ck_ok(wf_check_function(weigh_inside, &op, 2, shapes, NULL, NULL, error));
#ifndef __SANITIZE_ADDRESS__ /* AddressSanitizer ends the program at the read, with the place */
    wf_error error = {0};
    op.reads = 1u << B | 1u << KEEP | 1u << Y;
    ck_assert_int_eq(wf_check_function(weigh_inside, &op, 2, shapes, NULL, NULL, &error), WF_ERR_NUMERIC);
    op = weigh;
    op.reads = 1u << A | 1u << B | 1u << KEEP;
    ck_assert_int_eq(wf_check_function(weigh_inside, &op, 2, shapes, NULL, NULL, &error), WF_ERR_NUMERIC);
#endif
}
END_TEST

START_TEST(released_values_are_poisoned)
{
#ifdef __SANITIZE_ADDRESS__
    enum { N = 2049, LINKS = 8 };
    wf_tape *tape = wf_tape_new(NULL);
    wf_real x[N];
    for (int i = 0; i < N; i++)
        x[i] = (wf_real)i;
    for (int pass = 0; pass < 2; pass++) {
        wf_array link[LINKS], last;
        wf_tape_reset(tape, WF_TRAIN);
        wf_tensor *y = wf_input(tape, x, WF_SHAPE(N), true);
        for (int i = 0; i < LINKS; i++) {
            y = wf_scale(y, 2);
            ck_assert_int_eq(wf_view(y, &link[i]), WF_OK);
            const char *end = (char *)((wf_real *)link[i].data + N);
            ck_assert(!__asan_address_is_poisoned(link[i].data) && !__asan_address_is_poisoned(end - 1));
            ck_assert(__asan_address_is_poisoned(end));
        }
        y = wf_keep(wf_scale(y, 2));
        ck_assert_int_eq(wf_view(y, &last), WF_OK);
        ck_assert_int_eq(wf_backward(wf_sum(y)), WF_OK);
        ck_assert(!__asan_address_is_poisoned(last.data));
        int gone = 0;
        for (int i = 0; i < LINKS; i++)
            gone += __asan_address_is_poisoned(link[i].data);
        ck_assert_int_ge(gone, LINKS / 2); /* a few hold gradients by now */
    }
    wf_tape_free(tape);
#endif
}
END_TEST

WF_TEST_MAIN("released", declared_right, denied_input, denied_bools, denied_output, denied_input_read_in_some_cases, denied_ids,
             in_a_function, released_values_are_poisoned)
