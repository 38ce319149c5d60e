/* SPDX-License-Identifier: MIT */
/* Regions of a pass that record nothing, and rewinds inside them. */
#include <weft/internal/parameter.h>
#include <weft/op.h>
#include <weft/ops.h>

#include "one_tape.h"

enum { N = 1024, LINKS = 40 };
static wf_real numbers[N], weights[N], slab[N];
static bool valid[1];
static struct wf_grads_place place = {0, N};
static wf_grads grads = {.slab = slab, .count = N, .place = &place, .valid = valid, .parameters = 1, .registry = 1};
static wf_tensor *weight;

static wf_tensor *numbers_in(wf_mode mode)
{
    if (!weight) {
        weight = wf_alloc_zero(1, wf_parameter_size());
        wf_parameter_init(weight, &(struct wf_parameter_info){.name = "weight",
                                                              .value = wf_array_contiguous(weights, WF_REAL, WF_SHAPE(N / 8, 8)),
                                                              .grads = &grads,
                                                              .registry = 1});
    }
    for (int i = 0; i < N; i++) {
        numbers[i] = (wf_real)(i % 37 - 18) / 8;
        weights[i] = (wf_real)(i % 23 - 11) / 4;
    }
    wf_grads_zero(&grads);
    return wf_input(begin(mode), numbers, WF_SHAPE(N / 8, 8), true);
}

static wf_tensor *some_ops(wf_tensor *x)
{
    wf_tensor *h = wf_dropout(wf_gelu(wf_mul(x, weight)), 0.3);
    h = wf_attention(wf_reshape(h, 2, N / 16, 8), wf_reshape(x, 2, N / 16, 8), wf_reshape(h, 2, N / 16, 8), .heads = 2, .dropout = 0.2);
    return wf_add(wf_layer_norm(h, NULL, NULL, 1e-5), wf_slice(weight, 0, 3, 1));
}

START_TEST(values_are_those_of_the_mode)
{
    static wf_real want[2][N], have[2][N];
    for (int mode = WF_INFER; mode <= WF_GRADIENTS; mode++)
        for (int on = 0; on < 2; on++) {
            wf_tensor *x = numbers_in((wf_mode)mode);
            int64_t nodes = wf_tape_stats(tape).nodes;
            ck_assert(!wf_tape_no_grad(tape, on));
            wf_tensor *y = some_ops(x);
            ck_assert_int_eq(wf_tape_no_grad(tape, false), on);
            ck_assert(on || mode == WF_INFER ? wf_tape_stats(tape).nodes == nodes : wf_tape_stats(tape).nodes > nodes);
            ran(wf_read(y, on ? have[0] : want[0], N));
            ran(wf_read(some_ops(x), on ? have[1] : want[1], N)); /* its masks are the next ones */
            ck_assert_mem_eq(have, want, on ? sizeof have : 0);
        }
}
END_TEST

START_TEST(no_gradient_flows)
{
    wf_tensor *x = numbers_in(WF_GRADIENTS);
    wf_array g;
    ck_assert(!wf_tape_no_grad(tape, true));
    ck_assert(wf_tape_no_grad(tape, true));
    wf_tensor *part = wf_slice(x, 1, 0, 4), *y = wf_add(wf_exp(x), weight), *rows = wf_slice(weight, 0, 0, 2);
    wf_tape_no_grad(tape, false);
    /* 2 x y + sum of constants; the weight inside gets none, the one outside does */
    wf_tensor *loss = wf_add(wf_add(wf_sum(wf_scale(wf_mul(x, y), 2)), wf_sum(wf_mul(part, part))), wf_sum(wf_mul(rows, rows)));
    loss = wf_add(loss, wf_sum(wf_scale(wf_slice(weight, 0, 1, 1), 3)));
    static wf_real value[N];
    ran(wf_read(y, value, N));
    ran(wf_backward(loss));
    ran(wf_grad(x, &g));
    for (int i = 0; i < N; i++)
        ck_assert(((wf_real *)g.data)[i] == 2 * value[i]);
    for (int i = 0; i < N; i++)
        ck_assert(slab[i] == (i / 8 == 1 ? 3 : 0));
}
END_TEST

START_TEST(results_are_constants)
{
    for (int use = 0; use < 3; use++) {
        wf_tensor *x = numbers_in(WF_TRAIN);
        wf_tape_no_grad(tape, true);
        wf_tensor *y = wf_exp(x), *slice = wf_slice(x, 0, 0, 1);
        wf_tape_no_grad(tape, false);
        switch (use) {
        case 0:
            ck_wrong_state(wf_backward(wf_sum(y)), "does not depend on a tensor that needs a gradient");
            break;
        case 1:
            ck_wrong_state(wf_retain_grad(y), "needs no gradient");
            break;
        case 2:
            ck_wrong_state(wf_retain_grad(slice), "needs no gradient");
            break;
        }
    }
    /* a reset ends the region */
    numbers_in(WF_TRAIN);
    wf_tape_no_grad(tape, true);
    ran(wf_backward(wf_sum(wf_exp(numbers_in(WF_TRAIN)))));
}
END_TEST

/* A parameter whose gradients belong to another registry is no error if it needs none. */
START_TEST(parameters_of_another_registry)
{
    wf_real other_slab[8];
    bool other_valid[1];
    struct wf_grads_place other_place = {0, 8};
    wf_grads other = {.slab = other_slab, .count = 8, .place = &other_place, .valid = other_valid, .parameters = 1, .registry = 2};
    wf_tensor *x = numbers_in(WF_TRAIN), *y;
    wf_tape_reset(tape, WF_TRAIN, .grads = &other);
    x = wf_input(tape, numbers, WF_SHAPE(N / 8, 8), true);
    wf_tape_no_grad(tape, true);
    y = wf_add(wf_mul(x, weight), wf_slice(weight, 0, 0, 1));
    wf_tape_no_grad(tape, false);
    ran(wf_backward(wf_sum(wf_mul(x, y))));
}
END_TEST

/* Values that only a backward would read are released. */
START_TEST(memory_is_not_held)
{
    size_t used[2];
    for (int on = 0; on < 2; on++) {
        wf_tensor *y = numbers_in(WF_TRAIN);
        wf_tape_no_grad(tape, on);
        size_t before = wf_tape_stats(tape).used;
        for (int i = 0; i < LINKS; i++) {
            wf_tensor *next = wf_gelu(y);
            wf_release(y);
            y = next;
        }
        used[on] = wf_tape_stats(tape).used - before;
    }
    ck_assert_uint_ge(used[0], LINKS * N * sizeof(wf_real));
    ck_assert_uint_le(used[1], 2 * N * sizeof(wf_real) + 1024);
}
END_TEST

START_TEST(rewinds_inside)
{
    static wf_real want[N], have[N];
    size_t used = 0;
    wf_array g;
    wf_tensor *x = numbers_in(WF_TRAIN), *outside = wf_exp(x);
    wf_tape_mark first = wf_tape_here(tape);
    wf_tape_no_grad(tape, true);
    wf_tensor *y = x;
    for (int i = 0; i < LINKS; i++) {
        y = wf_tape_compact(first, wf_dropout(wf_scale(wf_gelu(y), 2), 0.01));
        used = i == 0 ? wf_tape_stats(tape).used : used;
        ck_assert_uint_eq(wf_tape_stats(tape).used, used);
    }
    ran(wf_read(y, have, N));
    wf_tape_no_grad(tape, false);
    ran(wf_read(outside, want, N));
    ran(wf_backward(wf_sum(wf_mul(outside, y)))); /* exp(x) y */
    ran(wf_grad(x, &g));
    for (int i = 0; i < N; i++)
        ck_assert(((wf_real *)g.data)[i] == want[i] * have[i]);
    /* the same without regions: the masks, too */
    y = numbers_in(WF_TRAIN);
    for (int i = 0; i < LINKS; i++)
        y = wf_dropout(wf_scale(wf_gelu(y), 2), 0.01);
    ran(wf_read(y, want, N));
    ck_assert_mem_eq(have, want, sizeof have);
}
END_TEST

START_TEST(rewinds_that_would_drop_a_record)
{
    for (int use = 0; use < 4; use++) {
        wf_tensor *x = numbers_in(use % 2 ? WF_TRAIN : WF_GRADIENTS), *y = wf_scale(x, 2);
        wf_tape_mark mark = wf_tape_here(tape);
        wf_tensor *made = use == 0 ? wf_exp(y) : wf_input(tape, numbers, WF_SHAPE(N), true);
        if (use == 3)
            ran(wf_backward(wf_sum(y)));
        wf_tape_no_grad(tape, true);
        switch (use) {
        case 0:
            ck_assert_ptr_eq(wf_tape_compact(mark, made), made);
            ck_wrong_state(wf_tape_rewind(tape, mark, NULL), "since the mark ops were recorded, a backward ran");
            break;
        case 1:
            ck_assert_ptr_eq(wf_tape_compact(mark, made), made);
            ck_wrong_state(wf_tape_rewind(tape, mark, made), "'input' needs a gradient, and what is kept is a constant");
            break;
        case 2:
            ck_assert_ptr_null(wf_tape_rewind(tape, mark, NULL));
            ck_assert_ptr_eq(wf_tape_rewind(tape, wf_tape_here(tape), weight), weight);
            break;
        case 3:
            ck_wrong_state(wf_tape_rewind(tape, mark, NULL), "a backward ran");
            break;
        }
    }
}
END_TEST

WF_TEST_MAIN("no_grad", values_are_those_of_the_mode, no_gradient_flows, results_are_constants, parameters_of_another_registry,
             memory_is_not_held, rewinds_inside, rewinds_that_would_drop_a_record)
