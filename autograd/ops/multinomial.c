/* SPDX-License-Identifier: MIT */
/* multinomial: ids drawn with probabilities in proportion to weights. The random numbers are those of noise.c. Each draw takes two, because
 * one has only 2^24 values, too few for large vocabularies. */
#include <float.h>
#include <math.h>

#include "common.h"

struct draws {
    int64_t count;
    bool replacement;
};

static wf_status multinomial_shape(wf_call *c)
{
    const struct draws *a = c->attr;
    if (wf_want(c, 0, WF_REAL) != WF_OK)
        return WF_ERR_ARGUMENT;
    wf_shape shape = wf_array_shape(&c->in[0]);
    if (shape.ndim < 1)
        return wf_call_fail(c, WF_ERR_SHAPE, "the weights must be [..., n]");
    const int64_t n = shape.dim[shape.ndim - 1];
    if (n < 1 || n > INT32_MAX)
        return wf_call_fail(c, WF_ERR_SHAPE, "a row has %lld weights, but must have at least 1, and at most %d", (long long)n, INT32_MAX);
    if (a->count < 0 || a->count > INT32_MAX)
        return wf_call_fail(c, WF_ERR_ARGUMENT, "the number of draws is %lld, but must be 0 .. %d", (long long)a->count, INT32_MAX);
    if (!a->replacement && a->count > n)
        return wf_call_fail(c, WF_ERR_ARGUMENT, "%lld draws without replacement need as many weights, but there are %lld",
                            (long long)a->count, (long long)n);
    shape.dim[shape.ndim - 1] = a->count;
    c->out[0] = wf_call_shape(WF_I32, &shape);
    return WF_OK;
}

/* Fails unless the weights of each row are finite and not negative, and enough of them are positive. */
static wf_status check_rows(wf_call *c, const wf_array *w)
{
    const struct draws *a = c->attr;
    const int64_t n = w->dim[1], want = a->replacement ? WF_MIN(a->count, 1) : a->count;
    const wf_real *x = w->data;
    for (int64_t row = 0; row < w->dim[0]; row++) {
        int64_t positive = 0;
        for (int64_t i = 0; i < n; i++) {
            const double weight = (double)x[row * n + i];
            if (!(weight >= 0) || isinf(weight))
                return wf_call_fail(c, WF_ERR_ARGUMENT, "weight %lld of row %lld is %g, but must be finite and at least 0", (long long)i,
                                    (long long)row, weight);
            positive += weight > 0;
        }
        if (positive < want)
            return wf_call_fail(c, WF_ERR_ARGUMENT, "row %lld has %lld weights above 0, fewer than the %lld that are needed",
                                (long long)row, (long long)positive, (long long)want);
    }
    return WF_OK;
}

struct work {
    const wf_call *c;
    int64_t n, count;
    uint64_t first;   /* the index of row 0 in the global batch */
    const wf_real *w; /* [rows, n] */
    int32_t *id;      /* [rows, count] */
    bool *no_memory;
};

/* The number i of `u` in [0, 1), a multiple of 2^-48. */
static double fraction(const wf_real *u, int64_t i)
{
    return (double)u[2 * i] + (double)u[2 * i + 1] * 0x1p-24;
}

/* Draw i is the first element at which the sum of the weights exceeds u_i times their total. */
static void draw_again(const struct work *k, const wf_real *w, const wf_real *u, double *sum, int32_t *id)
{
    double total = 0;
    int64_t last = 0;
    for (int64_t j = 0; j < k->n; j++) {
        sum[j] = total += (double)w[j];
        last = w[j] > 0 ? j : last;
    }
    for (int64_t i = 0; i < k->count; i++) {
        const double at = fraction(u, i) * total;
        int64_t low = 0, high = last; /* rounding can make `at` the total */
        while (low < high) {
            const int64_t middle = (low + high) / 2;
            if (sum[middle] > at)
                high = middle;
            else
                low = middle + 1;
        }
        id[i] = (int32_t)low;
    }
}

/* Exponential races (Efraimidis and Spirakis 2006): element j arrives at the time -ln(1 - u_j) / w_j. The first `count` arrivals are the
 * draws, in this order. */
static void draw_once(const struct work *k, const wf_real *w, const wf_real *u, double *time, int32_t *id)
{
    for (int64_t j = 0; j < k->n; j++)
        time[j] = w[j] > 0 ? fmin(-log1p(-fraction(u, j)) / (double)w[j], DBL_MAX) : (double)INFINITY;
    int64_t held = 0;
    for (int64_t j = 0; j < k->n && k->count > 0; j++) { /* a sorted list of the earliest so far; of equal times the lower index first */
        if (held == k->count && !(time[j] < time[id[held - 1]]))
            continue;
        int64_t at = held < k->count ? held++ : held - 1;
        for (; at > 0 && time[j] < time[id[at - 1]]; at--)
            id[at] = id[at - 1];
        id[at] = (int32_t)j;
    }
}

static void draw_body(void *ctx, int64_t begin, int64_t end)
{
    const struct work *k = ctx;
    const wf_call *c = k->c;
    const bool again = ((const struct draws *)c->attr)->replacement;
    const int64_t numbers = 2 * (again ? k->count : k->n);
    wf_real *u = wf_scratch(WF_SCRATCH_OP, (size_t)numbers * sizeof *u);
    double *x = wf_scratch(WF_SCRATCH_OP_2, (size_t)k->n * sizeof *x);
    if (!u || !x) {
        __atomic_store_n(k->no_memory, true, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t row = begin; row < end; row++) {
        wf_kernel->internal->noise(numbers, c->seed, c->step, c->dropout_call, k->first + (uint64_t)row, WF_NOISE_UNIFORM, 0, 1,
                                   1 - (wf_real)0x1p-24, u);
        (again ? draw_again : draw_once)(k, k->w + row * k->n, u, x, k->id + row * k->count);
    }
}

/* As in noise, a row holds the elements along the last dimension, while c->first_row counts items of dimension 0. */
static wf_status multinomial_forward(wf_call *c)
{
    const struct draws *a = c->attr;
    const wf_array w = wf_contiguous_rows_of(c, &c->in[0]);
    bool no_memory = false;
    if (wf_array_count(&c->out[0]) == 0)
        return WF_OK;
    if (!w.data)
        return WF_ERR_MEMORY;
    const wf_status status = check_rows(c, &w);
    if (status != WF_OK)
        return status;
    const uint64_t per_item = c->in[0].ndim > 1 ? (uint64_t)(w.dim[0] / c->in[0].dim[0]) : 1;
    struct work k = {c, w.dim[1], a->count, c->first_row * per_item, w.data, c->out[0].data, &no_memory};
    const double each =
        a->replacement ? 2.0 * (double)k.n + 60.0 * (double)k.count : 25.0 * (double)k.n + (double)k.count * (double)k.count;
    wf_parallel_ranges(w.dim[0], 1, each * (double)w.dim[0], draw_body, &k);
    return no_memory ? wf_call_fail(c, WF_ERR_MEMORY, "no memory for the random numbers of a row") : WF_OK;
}

#define DRAWS(...) {WF_FILL_POSITIVE}, ATTR(struct draws, __VA_ARGS__)
const wf_op wf_op_multinomial = {.name = "multinomial",
                                 .operands = "weights",
                                 .constant = true,
                                 .random = true,
                                 .attr_size = sizeof(struct draws),
                                 .shape = multinomial_shape,
                                 .forward = multinomial_forward,
                                 .cases = WF_CASES({"again", {{3, 5}}, DRAWS(9, true)}, {"once", {{3, 5}}, DRAWS(4, false)},
                                                   {"vector", {{7}}, DRAWS(2, true)}, {"all", {{2, 3, 4}}, DRAWS(4, false)},
                                                   {"none", {{3, 5}}, DRAWS(0, true)}, {"empty", {{-1, 5}}, DRAWS(2, true)})};

wf_tensor *wf_multinomial(wf_tensor *weights, int64_t draws, bool replacement)
{
    return wf_apply(&wf_op_multinomial, &(struct draws){draws, replacement}, 1, &weights);
}
