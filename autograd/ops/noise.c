/* SPDX-License-Identifier: MIT */
/* Random numbers on the tape. They depend on the same numbers as dropout's masks: seed, step, number of the call, and row in the global
 * batch. */
#include <math.h>

#include "common.h"

struct noise {
    wf_shape shape;
    enum wf_noise kind;
    double a; /* mean, or low */
    double b; /* standard deviation, or high */
};

static wf_status noise_shape(wf_call *c)
{
    const struct noise *a = c->attr;
    const bool normal = a->kind == WF_NOISE_NORMAL;
    if (!isfinite(a->a) || !isfinite(a->b) || !(normal ? a->b >= 0 : a->a <= a->b) || !isfinite((wf_real)(a->b - a->a)))
        return wf_call_fail(c, WF_ERR_ARGUMENT,
                            normal ? "mean = %g and deviation = %g must be finite, and the deviation not negative"
                                   : "low = %g and high = %g must be finite, and low at most high",
                            a->a, a->b);
    c->out[0] = wf_call_shape(WF_REAL, &a->shape);
    return WF_OK;
}

struct draw {
    const wf_call *c;
    int64_t d;
    uint64_t first; /* the index of row 0 in the global batch */
    wf_real a;      /* mean, or low */
    wf_real b;      /* standard deviation, or high - low */
    wf_real last;   /* uniform: the greatest number below `high`, or `low` if `low` equals `high` */
};

static void draw_body(void *ctx, int64_t begin, int64_t end)
{
    const struct draw *s = ctx;
    const struct noise *a = s->c->attr;
    for (int64_t row = begin; row < end; row++)
        wf_kernel->internal->noise(s->d, s->c->seed, s->c->step, s->c->dropout_call, s->first + (uint64_t)row, a->kind, s->a, s->b, s->last,
                                   (wf_real *)s->c->out[0].data + row * s->d);
}

/* As in dropout, a row holds the elements along the last dimension, while c->first_row counts items of dimension 0. */
static wf_status noise_forward(wf_call *c)
{
    const struct noise *a = c->attr;
    const wf_array *y = &c->out[0];
    int64_t count = wf_array_count(y), d = y->ndim ? y->dim[y->ndim - 1] : 1;
    if (count == 0)
        return WF_OK;
    int64_t rows = count / d;
    uint64_t per_item = y->ndim > 1 ? (uint64_t)(rows / y->dim[0]) : 1;
    wf_real low = (wf_real)a->a, high = (wf_real)a->b;
    struct draw s = {c, d, c->first_row * per_item, low, high, 0};
    if (a->kind == WF_NOISE_UNIFORM) {
        s.b = high - low;
        s.last = low < high ? (wf_real)(sizeof(wf_real) == 4 ? nextafterf((float)high, (float)low) : nextafter(high, low)) : low;
    }
    wf_parallel_ranges(rows, wf_block_rows(d), (double)count * (a->kind == WF_NOISE_NORMAL ? 2 : 0.6) + 10.0 * (double)rows, draw_body, &s);
    return WF_OK;
}

const wf_op wf_op_noise = {.name = "noise",
                           .constant = true,
                           .attr_size = sizeof(struct noise),
                           .random = true,
                           .shape = noise_shape,
                           .forward = noise_forward,
                           .cases = WF_CASES({"normal", ATTR(struct noise, {2, {3, 5}}, WF_NOISE_NORMAL, 0, 1)},
                                             {"uniform", ATTR(struct noise, {2, {3, 5}}, WF_NOISE_UNIFORM, -1, 2)},
                                             {"vector", ATTR(struct noise, {1, {1031}}, WF_NOISE_NORMAL, 3, 0.5)},
                                             {"scalar", ATTR(struct noise, {0}, WF_NOISE_NORMAL, 0, 1)},
                                             {"one column", ATTR(struct noise, {2, {9, 1}}, WF_NOISE_UNIFORM, 0, 1)},
                                             {"long rows", ATTR(struct noise, {3, {2, 2, 1300}}, WF_NOISE_UNIFORM, 0, 1)},
                                             {"empty", ATTR(struct noise, {2, {0, 3}}, WF_NOISE_NORMAL, 0, 1)},
                                             {"odd", ATTR(struct noise, {2, {13, 17}}, WF_NOISE_NORMAL, 0, 0)})};

static wf_tensor *noise(wf_tape *tape, const wf_shape *shape, enum wf_noise kind, double a, double b, const char *name)
{
    if (!tape || !shape)
        return wf_tape_fail(tape ? tape : wf_tape_of(NULL), WF_ERR_ARGUMENT, "%s: the %s is NULL", name, tape ? "shape" : "tape");
    wf_tape_use(tape);
    wf_tensor *y = wf_apply(&wf_op_noise, &(struct noise){*shape, kind, a, b}, 0, NULL);
    return wf_is_poison(y) ? y : wf_name(y, name);
}

wf_tensor *wf_normal(wf_tape *tape, const wf_shape *shape, double mean, double deviation)
{
    return noise(tape, shape, WF_NOISE_NORMAL, mean, deviation, "normal");
}

wf_tensor *wf_uniform(wf_tape *tape, const wf_shape *shape, double low, double high)
{
    return noise(tape, shape, WF_NOISE_UNIFORM, low, high, "uniform");
}

wf_tensor *wf_bernoulli(wf_tape *tape, const wf_shape *shape, double p)
{
    if (tape && !(p >= 0 && p <= 1))
        return wf_tape_fail(tape, WF_ERR_ARGUMENT, "wf_bernoulli: p = %g is not in 0 <= p <= 1", p);
    return wf_to_real(wf_lt_constant(noise(tape, shape, WF_NOISE_UNIFORM, 0, 1, "bernoulli"), p));
}
