/* SPDX-License-Identifier: MIT */
/* Times ops on views, joins of many tensors, and the sorting of whole rows: milliseconds, the median of 11 passes. bench/torch_views.py
 * times the same in PyTorch.
 *
 *   views [-t threads] [-j]        prints a table, or with -j one JSON object with the same names */
#include <weft/ops.h>
#include <weft/random.h>
#include <weft/runtime.h>
#include <weft/tape.h>

#include "measure.h"

enum { N = 4096, PASSES = 11, STATES = 1024 };

static wf_real *numbers;

static wf_tensor *square(wf_tape *tape, bool needs_grad)
{
    const wf_array a = wf_array_contiguous(numbers, WF_REAL, WF_SHAPE(N, N));
    return needs_grad ? wf_input(tape, numbers, WF_SHAPE(N, N), true) : wf_borrow(tape, &a);
}

/* The functions `prepare` and `run` of the cases below. `prepare` makes the operands. `run` computes the result and is timed; with
 * `gradient`, the backward pass is timed too. */
static wf_tensor *one(wf_tape *tape)
{
    return wf_input(tape, numbers, &(wf_shape){0}, false);
}

static wf_tensor *operand(wf_tape *tape)
{
    return square(tape, false);
}

static wf_tensor *leaf(wf_tape *tape)
{
    return square(tape, true);
}

static wf_tensor *heads(wf_tape *tape)
{
    return wf_input(tape, numbers, WF_SHAPE(32, 256, 8, 64), true);
}

static wf_tensor *sum_transposed(wf_tensor *x)
{
    return wf_sum(wf_transpose(x, 0, 1));
}

static wf_tensor *sum_slice(wf_tensor *x)
{
    return wf_sum(wf_slice(x, 1, 7, N - 16));
}

static wf_tensor *sum_expanded(wf_tensor *x)
{
    return wf_sum(wf_expand(x, 8192, 8192));
}

static wf_tensor *sum_columns(wf_tensor *x)
{
    return wf_sum_dim(wf_transpose(x, 0, 1), 1, false);
}

static wf_tensor *sum_rows(wf_tensor *x)
{
    return wf_sum_dim(wf_transpose(x, 0, 1), 0, false);
}

static wf_tensor *grad_transposed(wf_tensor *x)
{
    return wf_exp(wf_transpose(x, 0, 1));
}

static wf_tensor *grad_twice(wf_tensor *x)
{
    return wf_add(wf_exp(wf_transpose(x, 0, 1)), wf_tanh(x));
}

static wf_tensor *grad_permuted(wf_tensor *x)
{
    return wf_contiguous(wf_permute(x, 0, 2, 1, 3));
}

static wf_tensor *part[STATES];

static wf_tensor *states(wf_tape *tape)
{
    for (int i = 0; i < STATES; i++)
        part[i] = wf_input(tape, numbers + i * 32 * 128, WF_SHAPE(32, 128), true);
    return part[0];
}

static wf_tensor *stack(wf_tensor *x)
{
    (void)x;
    return wf_stack(part, STATES, 1);
}

static wf_tensor *top(wf_tensor *x)
{
    wf_tensor *ids;
    return wf_top_k(wf_slice(x, 0, 0, 1024), N, 1, &ids);
}

static wf_tensor *top_half(wf_tensor *x)
{
    wf_tensor *ids;
    return wf_top_k(wf_slice(x, 0, 0, 1024), 256, 1, &ids);
}

static const struct {
    const char *name;
    wf_tensor *(*prepare)(wf_tape *tape), *(*run)(wf_tensor *x);
    bool gradient;
} cases[] = {
    {"sum of a transpose", operand, sum_transposed, false},
    {"sum of a slice", operand, sum_slice, false},
    {"sum of an expanded scalar", one, sum_expanded, false},
    {"sums along rows of a transpose", operand, sum_columns, false},
    {"sums along columns of a transpose", operand, sum_rows, false},
    {"exp of a transpose, with gradient", leaf, grad_transposed, true},
    {"two users, one of a transpose, with gradient", leaf, grad_twice, true},
    {"heads to the front, with gradient", heads, grad_permuted, true},
    {"stack of 1,024 states, with gradient", states, stack, true},
    {"rows of 4,096 sorted", operand, top, false},
    {"the 256 greatest of rows of 4,096", operand, top_half, false},
};

static double time_case(int k, wf_tape *tape)
{
    double ms[PASSES];
    for (int pass = -2; pass < PASSES; pass++) {
        wf_tape_reset(tape, cases[k].gradient ? WF_GRADIENTS : WF_INFER);
        wf_tensor *x = cases[k].prepare(tape);
        const double begin = seconds();
        wf_tensor *y = cases[k].run(x);
        const wf_array ones = wf_array_contiguous(numbers, WF_REAL, &(wf_shape){0});
        if (cases[k].gradient) {
            wf_shape shape = wf_shape_of(y);
            wf_array g = wf_array_expand(&ones, &shape);
            if (wf_backward(y, .gradient = wf_borrow(tape, &g)) != WF_OK)
                return -1;
        }
        if (wf_is_poison(y))
            return -1;
        if (pass >= 0)
            ms[pass] = (seconds() - begin) * 1e3;
    }
    return median(ms, PASSES);
}

int main(int argc, char **argv)
{
    const char *given[128] = {NULL};
    wf_error error = {0};
    if (!read_options(argc, argv, "t:j", given))
        return 2;
    const bool json = given['j'];
    wf_tape *tape = wf_init(&error, .threads = (int)number_or(given['t'], 0)) == WF_OK ? wf_tape_new(&error) : NULL;
    if (!tape)
        return fail(error.message);
    numbers = room(N * N, sizeof *numbers);
    wf_fill_normal(numbers, N * N, 0, 1, 1, 1);
    for (int k = 0; k < (int)(sizeof cases / sizeof *cases); k++) {
        const double ms = time_case(k, tape);
        if (ms < 0) {
            fprintf(stderr, "views: %s: %s\n", cases[k].name, wf_tape_error(tape)->message);
            return 1;
        }
        printf(json ? "%s\"%s\": %.3f" : "%s%-48s %8.2f ms, tape %6.1f MiB\n", json ? k ? ", " : "{" : "", cases[k].name, ms,
               (double)wf_tape_stats(tape).used / 1048576);
    }
    printf(json ? "}\n" : "");
    wf_tape_free(tape);
    free(numbers);
    return 0;
}
