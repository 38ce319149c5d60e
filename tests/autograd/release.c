/* SPDX-License-Identifier: MIT */
/* wf_release: memory comes back in the forward, gradients stay as they are, and a later use is an error. */
#include <weft/internal/parameter.h>
#include <weft/op.h>
#include <weft/ops.h>

#include "one_tape.h"

enum { N = 2048, LINKS = 50 };
static wf_real numbers[N];

static wf_tensor *numbers_in(wf_mode mode)
{
    for (int i = 0; i < N; i++)
        numbers[i] = (wf_real)(i % 37 - 18) / 8;
    return wf_input(begin(mode), numbers, WF_SHAPE(N / 8, 8), true);
}

static const void *data_of(const wf_tensor *x)
{
    wf_array a;
    ran(wf_view(x, &a));
    return a.data;
}

/* A chain of ops, each of which reads only the result before it. */
static size_t peak_of_chain(wf_mode mode, bool release, wf_real *gradient)
{
    wf_tensor *x = numbers_in(mode), *y = wf_scale(x, 0.5);
    size_t before = wf_tape_stats(tape).used;
    for (int i = 0; i < LINKS; i++) {
        wf_tensor *next = wf_add(y, x); /* its backward reads no value */
        if (release)
            wf_release(y);
        y = next;
    }
    size_t used = wf_tape_stats(tape).used - before;
    wf_tensor *loss = wf_sum(wf_mul(y, y));
    if (release)
        wf_release(y); /* which the backward of the product still reads */
    double value;
    ran(wf_item(loss, &value));
    ck_assert_double_gt(value, 0);
    if (mode != WF_INFER) {
        wf_array g;
        ran(wf_backward(loss));
        ran(wf_grad(x, &g));
        memcpy(gradient, g.data, N * sizeof *gradient);
    }
    return used;
}

START_TEST(memory_comes_back_in_the_forward)
{
    const size_t one = N * sizeof(wf_real), records = LINKS * 2048;
    static wf_real held[N], given[N];
    for (int mode = WF_INFER; mode <= WF_GRADIENTS; mode++) {
        ck_assert_uint_ge(peak_of_chain((wf_mode)mode, false, held), LINKS * one);
        ck_assert_uint_lt(peak_of_chain((wf_mode)mode, true, given), 2 * one + (mode == WF_INFER ? records / 8 : records));
        if (mode != WF_INFER)
            ck_assert_mem_eq(held, given, sizeof held);
    }
}
END_TEST

START_TEST(what_a_backward_reads_stays)
{
    wf_tensor *x = numbers_in(WF_TRAIN), *a = wf_scale(x, 2), *b = wf_exp(a); /* whose backward reads b */
    const void *memory_a = data_of(a), *memory_b = data_of(b);
    wf_release(a);
    wf_release(b);
    ck_assert_ptr_eq(data_of(wf_scale(x, 3)), memory_a);
    ck_assert_ptr_ne(data_of(wf_scale(x, 3)), memory_b);
}
END_TEST

START_TEST(a_use_after_it_is_refused)
{
    static const char text[] = "was released with wf_release";
    double value;
    wf_array a;
    for (int mode = WF_INFER; mode <= WF_TRAIN; mode++)
        for (int use = 0; use < 9; use++) {
            wf_tensor *x = numbers_in((wf_mode)mode), *y = wf_name(wf_exp(x), "the exponential"), *slice = wf_slice(y, 0, 0, 1);
            wf_tensor *one = wf_slice(slice, 1, 0, 1), *sum = wf_sum(y), *read = wf_mul(sum, sum);
            ck_assert(!wf_is_poison(read));
            wf_release(use == 8 ? sum : y);
            switch (use) {
            case 0:
                ck_wrong_state(wf_add(x, y), "add: 'the exponential' was released with wf_release: release a tensor after its last use");
                break;
            case 1:
                ck_wrong_state(wf_add(x, slice), "add: 'slice' was released with wf_release, as the tensor that it is a view of:");
                break;
            case 2:
                ck_wrong_state(wf_item(one, &value), text);
                break;
            case 3:
                ck_wrong_state(wf_slice(y, 0, 1, 1), text);
                break;
            case 4:
                ck_wrong_state(wf_view(y, &a), text);
                break;
            case 5:
                ck_wrong_state(wf_keep(y), text);
                break;
            case 6:
                ck_wrong_state(wf_keep(slice), text);
                break;
            case 7:
                ck_wrong_state(wf_detach(y), text);
                break;
            case 8:
                ck_wrong_state(wf_backward(sum), mode == WF_INFER ? "WF_INFER" : text);
                break;
            }
        }
}
END_TEST

START_TEST(a_view_ends_alone)
{
    for (int mode = WF_INFER; mode <= WF_TRAIN; mode++) {
        wf_tensor *x = numbers_in((wf_mode)mode), *y = wf_exp(x);
        wf_tensor *left = wf_slice(y, 0, 0, N / 16), *right = wf_slice(y, 0, N / 16, N / 16), *row = wf_slice(left, 0, 0, 1);
        const void *memory = data_of(y);
        wf_release(left);
        ck_assert_ptr_ne(data_of(wf_exp(x)), memory);
        ck_assert(!wf_is_poison(wf_add(right, right)));
        ck_assert_ptr_eq(data_of(y), memory);
        ck_assert_int_eq(wf_tape_error(tape)->code, WF_OK);
        ck_wrong_state(wf_add(row, row), "was released with wf_release, as the tensor that it is a view of");
    }
}
END_TEST

START_TEST(what_is_left_alone)
{
    wf_real seven = 7;
    double value;
    wf_tensor *weight = wf_alloc_zero(1, wf_parameter_size());
    wf_array scalar = wf_array_contiguous(&seven, WF_REAL, WF_SHAPE(1));
    wf_parameter_init(weight, &(struct wf_parameter_info){.name = "weight", .value = scalar, .frozen = true});
    for (int mode = WF_INFER; mode <= WF_TRAIN; mode++) {
        wf_tensor *x = numbers_in((wf_mode)mode), *kept = wf_exp(x), *shown = wf_exp(x), *y = wf_add(x, weight);
        wf_keep(kept);
        wf_keep(wf_slice(shown, 0, 0, 1));
        wf_tensor *const all[] = {NULL, x, kept, shown, weight, y, y};
        for (int i = 0; i < 7; i++)
            wf_release(all[i]);
        ran(wf_item(wf_sum(wf_add(wf_add(x, kept), wf_add(shown, weight))), &value));
        wf_tensor *poison = wf_add(x, wf_zeros(tape, WF_SHAPE(3)));
        const wf_error first = *wf_tape_error(tape);
        wf_release(poison);
        wf_release(x);
        ck_assert_str_eq(wf_tape_error(tape)->message, first.message);
    }
    wf_tensor *old = wf_exp(numbers_in(WF_INFER));
    numbers_in(WF_INFER);
    wf_release(old);
    ck_assert(strstr(wf_tape_error(tape)->message, "wf_release: an operand made by 'exp' is older than the last wf_tape_reset"));
    wf_free(weight);
}
END_TEST

/* A gradient has memory of its own: it may be retained for a value that is gone. */
START_TEST(gradients_of_a_released_tensor)
{
    static wf_real want[N], got[N];
    for (int release = 0; release < 2; release++) {
        wf_array g;
        wf_tensor *x = numbers_in(WF_GRADIENTS), *y = wf_retain_grad(wf_scale(x, 3)), *z = wf_add(y, y);
        if (release)
            wf_release(y);
        wf_tensor *loss = wf_sum(wf_mul(z, z));
        if (release)
            wf_release(z);
        ran(wf_backward(loss));
        ran(wf_grad(y, &g));
        memcpy(release ? got : want, g.data, sizeof got);
        wf_release(z); /* after the backward, which gave it up, it has no effect */
        ck_assert_int_eq(wf_tape_error(tape)->code, WF_OK);
    }
    ck_assert_mem_eq(want, got, sizeof want);
}
END_TEST

/* Memory that a loop releases is used again after a rewind, even if it is older than the mark. */
START_TEST(memory_from_before_a_mark)
{
    wf_tensor *x = numbers_in(WF_INFER), *old = wf_scale(x, 2);
    const void *memory = data_of(old);
    wf_tape_mark mark = wf_tape_here(tape);
    wf_release(old);
    for (int i = 0; i < 3; i++) {
        wf_tensor *y = wf_scale(x, 3), *z = wf_scale(x, 4);
        ck_assert_ptr_eq(data_of(y), memory);
        wf_release(z); /* whose memory goes with the rewind */
        wf_release(y);
        wf_tape_rewind(tape, mark, NULL);
    }
}
END_TEST

START_TEST(compacting)
{
    static wf_real have[N], want[N];
    for (int mode = WF_INFER; mode <= WF_TRAIN; mode++) {
        wf_tensor *x = numbers_in((wf_mode)mode);
        wf_tape_mark mark = wf_tape_here(tape);
        wf_tensor *y = x;
        size_t used = 0;
        for (int i = 0; i < LINKS; i++) {
            wf_tensor *z = wf_add(wf_scale(y, 0.5), x);
            y = wf_tape_compact(mark, z);
            ck_assert(mode == WF_INFER || y == z);
            used = i == 0 ? wf_tape_stats(tape).used : used;
        }
        ck_assert(mode != WF_INFER || wf_tape_stats(tape).used == used);
        ran(wf_read(y, mode == WF_INFER ? have : want, N));
    }
    ck_assert_mem_eq(have, want, sizeof have);
    wf_tensor *all = wf_exp(numbers_in(WF_INFER));
    ck_assert_ptr_eq(wf_tape_compact((wf_tape_mark){0}, all), all); /* drops nothing */
    ck_assert(wf_is_poison(wf_tape_compact(wf_tape_here(tape), NULL)));
}
END_TEST

WF_TEST_MAIN("release", memory_comes_back_in_the_forward, what_a_backward_reads_stays, a_use_after_it_is_refused, a_view_ends_alone,
             what_is_left_alone, gradients_of_a_released_tensor, memory_from_before_a_mark, compacting)
