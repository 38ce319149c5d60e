/* SPDX-License-Identifier: MIT */
/* Tools of the gradient check: they make operands in several layouts and compare gradients with central differences. */
#include "gradcheck.h"
#include "engine.h"

#include <math.h>
#include <string.h>

#include <weft/internal/arena.h>
#include <weft/internal/needs.h>
#include <weft/internal/ops_all.h>
#include <weft/ops.h>
#include <weft/random.h>

void wf_tape_erase(wf_tape *tape)
{
    tape->erase = true;
}

bool check_is_real(const struct check_input *in)
{
    return wf_fill_is_real(in->fill);
}

bool check_has_gradient(const struct check_input *in)
{
    return check_is_real(in) && !in->constant;
}

void wf_case_fill(enum wf_fill fill, int32_t limit, int64_t count, wf_rng *rng, void *values)
{
    wf_real *x = values;
    for (int64_t i = 0; i < count; i++) {
        switch (fill) {
        case WF_FILL_NORMAL:
            x[i] = (float)wf_rng_normal(rng);
            break;
        case WF_FILL_POSITIVE:
            x[i] = (float)(0.5 + 1.5 * wf_rng_uniform(rng));
            break;
        case WF_FILL_UNIT:
            x[i] = (float)(0.1 + 0.8 * wf_rng_uniform(rng));
            break;
        case WF_FILL_APART: /* multiples of 0.1 without 0, shuffled below: values are at least 0.1 apart */
            x[i] = (float)((i % 2 ? -0.1 : 0.1) * (1 + i / 2));
            break;
        case WF_FILL_IDS:
            ((int32_t *)values)[i] = (int32_t)wf_rng_below(rng, (uint64_t)(limit > 0 ? limit : 1));
            break;
        case WF_FILL_BOOLS:
            ((bool *)values)[i] = wf_rng_uniform(rng) < 0.7;
            break;
        case WF_FILL_ABSENT:
            break;
        }
    }
    if (fill == WF_FILL_APART)
        for (int64_t i = count - 1; i > 0; i--) {
            int64_t j = (int64_t)wf_rng_below(rng, (uint64_t)i + 1);
            wf_real t = x[i];
            x[i] = x[j];
            x[j] = t;
        }
}

wf_real *check_memory(struct check *k, int64_t count)
{
    wf_real *p = wf_arena_get(k->arena, (size_t)count * sizeof *p);
    if (!p)
        wf_error_set(k->error, WF_ERR_MEMORY, "no memory for the gradient check");
    return p;
}

wf_status check_status(struct check *k, const char *situation)
{
    const wf_error *e = wf_tape_error(k->tape);
    return wf_error_set(k->error, e->code != WF_OK ? e->code : WF_ERR_STATE, "%s: %s: %s", k->what, situation, e->message);
}

wf_status check_begin(struct check *k, const struct wf_gradcheck_options *options)
{
    struct wf_gradcheck_options o = options ? *options : (struct wf_gradcheck_options){0};
    k->tolerance = o.tolerance > 0 ? o.tolerance : sizeof(wf_real) == 8 ? 1e-6 : 3e-2;
    k->step = o.step > 0 ? o.step : sizeof(wf_real) == 8 ? 1e-5 : 1e-2;
    k->seed = o.seed;
    k->tape = wf_tape_new(k->error);
    k->arena = k->tape ? wf_arena_new() : NULL;
    if (!k->arena)
        return wf_error_set(k->error, WF_ERR_MEMORY, "no memory for the gradient check");
    wf_tape_erase(k->tape);
    char text[96];
    for (int i = 0; i < k->inputs; i++) {
        struct check_input *in = &k->in[i];
        in->count = in->fill == WF_FILL_ABSENT ? 0 : wf_shape_count(&in->shape);
        if (in->count < 0 || in->count > INT64_MAX / 16)
            return wf_error_set(k->error, WF_ERR_SHAPE, "%s: the shape %s of input %d is invalid: a size is negative, or too many elements",
                                k->what, wf_shape_text(&in->shape, text, sizeof text), i);
        in->value = check_memory(k, in->count);
        in->grad = check_memory(k, in->count);
        if (!in->value || !in->grad)
            return WF_ERR_MEMORY;
        wf_rng rng = wf_rng_new(k->seed, 1000 + (uint64_t)i);
        wf_case_fill(in->fill, in->limit, in->count, &rng, in->value);
    }
    return WF_OK;
}

void check_end(struct check *k)
{
    wf_arena_free(k->arena);
    wf_tape_free(k->tape);
}

/* The view of `leaf` that is the operand. `leaf` is an array of the shape leaf_shape; its data may be NULL. */
static wf_array operand_view(const struct check_input *in, enum layout layout, wf_array leaf)
{
    int n = in->shape.ndim;
    if (layout == LAYOUT_TRANSPOSED && n >= 2)
        return wf_array_transpose(leaf, n - 2, n - 1);
    if (layout == LAYOUT_SLICED && n >= 1)
        return wf_array_slice(leaf, n - 1, 2, in->shape.dim[n - 1]);
    return leaf;
}

static wf_shape leaf_shape(const struct check_input *in, enum layout layout)
{
    wf_shape s = in->shape;
    int n = s.ndim;
    if (layout == LAYOUT_TRANSPOSED && n >= 2) {
        int64_t t = s.dim[n - 1];
        s.dim[n - 1] = s.dim[n - 2];
        s.dim[n - 2] = t;
    } else if (layout == LAYOUT_SLICED && n >= 1) {
        s.dim[n - 1] += 5;
    }
    return s;
}

wf_status check_operands(struct check *k, wf_mode mode, unsigned need, enum layout layout, wf_tensor *leaf[], wf_tensor *operand[])
{
    wf_tape_reset(k->tape, mode, .seed = k->seed + 7, .step = 3, .first_row = 2, .exact = true, .precision = k->precision);
    for (int i = 0; i < k->inputs; i++) {
        const struct check_input *in = &k->in[i];
        leaf[i] = NULL;
        if (in->fill == WF_FILL_IDS)
            leaf[i] = wf_ids_of(k->tape, in->ids, &in->shape);
        if (in->fill == WF_FILL_BOOLS)
            leaf[i] = wf_bools(k->tape, in->bools, &in->shape);
        operand[i] = leaf[i];
        if (!check_is_real(in))
            continue;
        wf_shape shape = leaf_shape(in, layout);
        int64_t count = wf_shape_count(&shape);
        wf_real *data = wf_tape_memory(k->tape, (size_t)count * sizeof *data);
        if (!data)
            return wf_tape_status(k->tape, k->error);
        for (int64_t j = 0; j < count; j++)
            data[j] = NAN; /* an op that reads elements outside the slice gets NaN */
        wf_array view = operand_view(in, layout, wf_array_contiguous(data, WF_REAL, &shape)),
                 value = wf_array_contiguous(in->value, WF_REAL, &in->shape);
        wf_array_copy(&view, &value);
        leaf[i] = wf_input(k->tape, data, &shape, (need >> i & 1) && !in->constant);
        operand[i] = k->routed ? wf_scale(leaf[i], 1) : leaf[i];
        if (wf_view(operand[i], &view) != WF_OK)
            return wf_tape_status(k->tape, k->error);
        view = operand_view(in, layout, view);
        if (layout != LAYOUT_CONTIGUOUS)
            operand[i] = wf_apply_view("view", operand[i], &view);
    }
    return WF_OK;
}

wf_status check_leaf_grad(struct check *k, int input, enum layout layout, wf_tensor *leaf, wf_array *out)
{
    wf_array grad;
    if (wf_grad(leaf, &grad) != WF_OK)
        return wf_error_set(k->error, WF_ERR_NUMERIC, "%s: no gradient reached input %d", k->what, input);
    *out = operand_view(&k->in[input], layout, grad);
    return WF_OK;
}

/* The sum of the elements of y * R. The first call draws the random factors R (k->weight). */
wf_tensor *check_weighted_sum(struct check *k, wf_tensor *y)
{
    if (wf_is_poison(y))
        return y;
    wf_shape shape = wf_shape_of(y);
    if (!k->weight) {
        k->result_shape = shape;
        k->results = wf_shape_count(&shape);
        k->weight = check_memory(k, k->results);
        k->result = check_memory(k, k->results);
        k->moved = check_memory(k, k->results);
        if (!k->weight || !k->result || !k->moved)
            return wf_tape_fail(k->tape, WF_ERR_MEMORY, "no memory for the gradient check");
        wf_rng rng = wf_rng_new(k->seed, 99);
        for (int64_t i = 0; i < k->results; i++)
            k->weight[i] = (float)wf_rng_normal(&rng);
    }
    return wf_sum(wf_mul(y, wf_input(k->tape, k->weight, &shape, false)));
}

wf_status check_backward(struct check *k, const char *situation, wf_tensor *const operand[])
{
    return wf_backward(check_weighted_sum(k, k->fn(k->ctx, k->tape, operand))) == WF_OK ? WF_OK : check_status(k, situation);
}

wf_status check_plain_run(struct check *k)
{
    wf_tensor *leaf[WF_MAX_INPUTS], *operand[WF_MAX_INPUTS];
    wf_status status = check_operands(k, k->mode, ~0u, LAYOUT_CONTIGUOUS, leaf, operand);
    if (status != WF_OK)
        return status;
    /* The other runs are compared with this one, so it must be right even if .reads wrongly leaves y out: wf_keep holds the value of y for
     * the backward. without_value in gradcheck_situations.c finds the mistake. */
    wf_tensor *y = wf_keep(k->fn(k->ctx, k->tape, operand)), *loss = check_weighted_sum(k, y);
    if (wf_read(y, k->result, k->results) != WF_OK || (!k->constant && wf_backward(loss) != WF_OK))
        return check_status(k, "plain run");
    if (k->constant)
        return WF_OK;
    for (int i = 0; i < k->inputs && status == WF_OK; i++) {
        wf_array grad, to = wf_array_contiguous(k->in[i].grad, WF_REAL, &k->in[i].shape);
        if (!check_has_gradient(&k->in[i]))
            continue;
        status = check_leaf_grad(k, i, LAYOUT_CONTIGUOUS, leaf[i], &grad);
        if (status == WF_OK)
            wf_array_copy(&to, &grad);
    }
    return status;
}

/* Computes f, the sum of result * R (k->weight) for the present values of the inputs, in double. */
static wf_status evaluate(struct check *k, double *f)
{
    wf_tensor *leaf[WF_MAX_INPUTS], *operand[WF_MAX_INPUTS];
    wf_status status = check_operands(k, k->mode, k->differentiates ? ~0u : 0, LAYOUT_CONTIGUOUS, leaf, operand);
    if (status == WF_OK && wf_read(k->fn(k->ctx, k->tape, operand), k->moved, k->results) != WF_OK)
        status = wf_tape_status(k->tape, k->error);
    *f = 0;
    for (int64_t i = 0; i < k->results && status == WF_OK; i++)
        *f += (double)k->moved[i] * k->weight[i];
    return status;
}

/* Compares derivatives along the direction u of one input: <grad, u> with (f(x + h u) - f(x - h u)) / 2h, where h is k->step. The
 * error is relative to the larger of the two derivatives, or to `scale` if that is larger still. `kind` and `at` are for the message. */
static wf_status compare(struct check *k, int input, const double *u, const wf_real *origin, double scale, const char *kind, int64_t at)
{
    struct check_input *in = &k->in[input];
    double analytic = 0, plus, minus;
    for (int64_t i = 0; i < in->count; i++) {
        analytic += u[i] * in->grad[i];
        in->value[i] = (wf_real)(origin[i] + k->step * u[i]);
    }
    wf_status status = evaluate(k, &plus);
    for (int64_t i = 0; i < in->count; i++)
        in->value[i] = (wf_real)(origin[i] - k->step * u[i]);
    if (status == WF_OK)
        status = evaluate(k, &minus);
    if (status != WF_OK)
        return status;
    double numeric = (plus - minus) / (2 * k->step);
    double size = fmax(fmax(fabs(numeric), fabs(analytic)), scale);
    if (!(fabs(numeric - analytic) <= k->tolerance * size + 1e-300))
        return wf_error_set(k->error, WF_ERR_NUMERIC,
                            "%s: gradient of input %d along %s %lld: backward says %.12g, central differences %.12g (relative error %.2g)",
                            k->what, input, kind, (long long)at, analytic, numeric, fabs(numeric - analytic) / size);
    return WF_OK;
}

enum { DIRECTIONS = 5, COORDINATES = 48 };

/* Compares derivatives along several random directions and along coordinates of input i. `origin` has the input's values. */
static wf_status compare_input(struct check *k, int i, const wf_real *origin)
{
    struct check_input *in = &k->in[i];
    double *u = wf_arena_get(k->arena, (size_t)in->count * sizeof *u), norm = 0;
    wf_status status = u ? WF_OK : wf_error_set(k->error, WF_ERR_MEMORY, "no memory for the gradient check");
    for (int64_t j = 0; j < in->count; j++)
        norm += (double)in->grad[j] * in->grad[j];
    const double scale = 0.05 * sqrt(norm) / sqrt((double)in->count) + 1e-4;
    wf_rng rng = wf_rng_new(k->seed, 500 + (uint64_t)i);
    for (int d = 0; d < DIRECTIONS && status == WF_OK; d++) {
        double length = 0;
        for (int64_t j = 0; j < in->count; j++)
            u[j] = wf_rng_normal(&rng), length += u[j] * u[j];
        for (int64_t j = 0; j < in->count; j++)
            u[j] /= sqrt(length); /* a unit vector makes small steps, which rarely cross a kink */
        status = compare(k, i, u, origin, scale, "direction", d);
    }
    int64_t stride = in->count <= COORDINATES ? 1 : in->count / COORDINATES;
    for (int64_t j = 0; j < in->count && status == WF_OK; j += stride) {
        memset(u, 0, (size_t)in->count * sizeof *u);
        u[j] = 1;
        status = compare(k, i, u, origin, scale, "coordinate", j);
    }
    return status;
}

wf_status check_numeric(struct check *k)
{
    wf_status status = WF_OK;
    for (int i = 0; i < k->inputs && status == WF_OK; i++) {
        struct check_input *in = &k->in[i];
        if (!check_has_gradient(in) || in->count == 0)
            continue;
        wf_real *origin = in->value;
        in->value = check_memory(k, in->count);
        status = in->value ? compare_input(k, i, origin) : WF_ERR_MEMORY;
        in->value = origin;
    }
    return status;
}

wf_status wf_check_function(wf_function fn, void *ctx, int inputs, const wf_shape *shapes, const enum wf_fill *fill,
                            const struct wf_gradcheck_options *options, wf_error *error)
{
    if (wf_needs(error, "fn", fn) || (inputs > 0 && wf_needs(error, "shapes", shapes)))
        return WF_ERR_ARGUMENT;
    struct check k = {
        .fn = fn, .ctx = ctx, .what = "function", .inputs = inputs, .mode = WF_GRADIENTS, .differentiates = true, .error = error};
    if (inputs < 1 || inputs > WF_MAX_INPUTS)
        return wf_error_set(error, WF_ERR_ARGUMENT, "wf_check_function: %d inputs is out of range, 1 to %d", inputs, WF_MAX_INPUTS);
    for (int i = 0; i < inputs; i++)
        k.in[i] = (struct check_input){.shape = shapes[i], .fill = fill ? fill[i] : WF_FILL_NORMAL, .limit = 1};
    wf_status status = check_begin(&k, options);
    if (status == WF_OK)
        status = check_plain_run(&k);
    if (status == WF_OK)
        status = check_numeric(&k);
    check_end(&k);
    return status;
}
