/* SPDX-License-Identifier: MIT */
/* The gradient check's tools: operands in any layout, and the comparison with central differences. */
#include "gradcheck.h"

#include <math.h>
#include <string.h>

#include <weft/memory.h>
#include <weft/ops.h>
#include <weft/random.h>

bool check_is_real(const struct check_input *in)
{
    return in->fill == WF_FILL_NORMAL || in->fill == WF_FILL_POSITIVE || in->fill == WF_FILL_APART;
}

static void fill_input(struct check_input *in, uint64_t seed, int index)
{
    wf_rng rng = wf_rng_new(seed, 1000 + (uint64_t)index);
    for (int64_t i = 0; i < in->count; i++) {
        switch (in->fill) {
        case WF_FILL_NORMAL:
            in->value[i] = (float)wf_rng_normal(&rng);
            break;
        case WF_FILL_POSITIVE:
            in->value[i] = (float)(0.5 + 1.5 * wf_rng_uniform(&rng));
            break;
        case WF_FILL_APART: /* a shuffled grid without 0: neighbours are 0.1 apart */
            in->value[i] = (float)((i % 2 ? -0.1 : 0.1) * (1 + i / 2));
            break;
        case WF_FILL_IDS:
            ((int32_t *)in->other)[i] = (int32_t)wf_rng_below(&rng, (uint64_t)(in->limit > 0 ? in->limit : 1));
            break;
        case WF_FILL_BOOLS:
            ((bool *)in->other)[i] = wf_rng_uniform(&rng) < 0.7;
            break;
        case WF_FILL_ABSENT:
            break;
        }
    }
    if (in->fill == WF_FILL_APART)
        for (int64_t i = in->count - 1; i > 0; i--) {
            int64_t j = (int64_t)wf_rng_below(&rng, (uint64_t)i + 1);
            wf_real t = in->value[i];
            in->value[i] = in->value[j];
            in->value[j] = t;
        }
}

wf_status check_begin(struct check *k)
{
    k->tape = wf_tape_new(k->error);
    if (!k->tape)
        return k->error ? k->error->code : WF_ERR_MEMORY;
    for (int i = 0; i < k->inputs; i++) {
        struct check_input *in = &k->in[i];
        in->count = in->fill == WF_FILL_ABSENT ? 0 : wf_shape_count(&in->shape);
        if (check_is_real(in)) {
            in->value = wf_alloc_zero((size_t)in->count + 1, sizeof *in->value);
            in->grad = wf_alloc_zero((size_t)in->count + 1, sizeof *in->grad);
        } else {
            in->other = wf_alloc_zero((size_t)in->count + 1, sizeof(int32_t));
        }
        if (check_is_real(in) ? !in->value || !in->grad : !in->other)
            return wf_error_set(k->error, WF_ERR_MEMORY, "no memory for the gradient check");
        fill_input(in, k->seed, i);
    }
    return WF_OK;
}

void check_end(struct check *k)
{
    for (int i = 0; i < k->inputs; i++) {
        wf_free(k->in[i].value);
        wf_free(k->in[i].grad);
        wf_free(k->in[i].other);
    }
    wf_free(k->weight);
    wf_tape_free(k->tape);
}

/* The leaf's shape and the view of it that is the operand. `leaf` is an array with the leaf's shape; NULL data is fine. */
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
    wf_tape_reset(k->tape, mode, .seed = k->seed + 7, .step = 3, .first_row = 2);
    for (int i = 0; i < k->inputs; i++) {
        const struct check_input *in = &k->in[i];
        leaf[i] = operand[i] = NULL;
        if (in->fill == WF_FILL_ABSENT)
            continue;
        if (in->fill == WF_FILL_IDS) {
            leaf[i] = operand[i] = wf_ids_of(k->tape, in->other, &in->shape);
            continue;
        }
        if (in->fill == WF_FILL_BOOLS) {
            leaf[i] = operand[i] = wf_bools(k->tape, in->other, &in->shape);
            continue;
        }
        wf_shape shape = leaf_shape(in, layout);
        int64_t count = wf_shape_count(&shape);
        wf_real *data = wf_alloc_zero((size_t)count + 1, sizeof *data);
        if (!data)
            return wf_error_set(k->error, WF_ERR_MEMORY, "no memory for the gradient check");
        for (int64_t j = 0; j < count; j++)
            data[j] = NAN; /* what lies around a slice must never be read */
        wf_array whole = wf_array_dense(data, WF_REAL, &shape);
        wf_array view = operand_view(in, layout, whole), value = wf_array_dense(in->value, WF_REAL, &in->shape);
        wf_array_copy(&view, &value);
        leaf[i] = wf_input(k->tape, data, &shape, need >> i & 1);
        wf_free(data);
        wf_array leaf_array;
        if (wf_view(leaf[i], &leaf_array) != WF_OK)
            return wf_tape_status(k->tape, k->error);
        wf_array seen = operand_view(in, layout, leaf_array);
        operand[i] = layout == LAYOUT_DENSE ? leaf[i] : wf_apply_view("view", leaf[i], &seen);
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

/* sum(y * R); R is made at the first call. */
wf_tensor *check_weighted_sum(struct check *k, wf_tensor *y)
{
    wf_shape shape = wf_shape_of(y);
    int64_t count = wf_shape_count(&shape);
    if (!k->weight && !wf_is_poison(y)) {
        k->weight = wf_alloc_zero((size_t)count + 1, sizeof *k->weight);
        if (!k->weight)
            return wf_tape_fail(k->tape, WF_ERR_MEMORY, "no memory for the gradient check");
        wf_rng rng = wf_rng_new(k->seed, 99);
        for (int64_t i = 0; i < count; i++)
            k->weight[i] = (float)wf_rng_normal(&rng);
        k->results = count;
    }
    return wf_is_poison(y) ? y : wf_sum(wf_mul(y, wf_input(k->tape, k->weight, &shape, false)));
}

/* f of the inputs as they are now, added up in double from the values themselves. */
static wf_status evaluate(struct check *k, double *f)
{
    wf_tensor *leaf[WF_MAX_INPUTS], *operand[WF_MAX_INPUTS];
    wf_status status = check_operands(k, k->mode, 0, LAYOUT_DENSE, leaf, operand);
    if (status != WF_OK)
        return status;
    wf_tensor *y = k->fn(k->ctx, k->tape, operand);
    wf_array view;
    *f = 0;
    if (wf_view(y, &view) != WF_OK)
        return wf_tape_status(k->tape, k->error);
    wf_shape shape = wf_array_shape(&view);
    wf_real *dense = wf_alloc_zero((size_t)k->results + 1, sizeof *dense);
    if (!dense)
        return wf_error_set(k->error, WF_ERR_MEMORY, "no memory for the gradient check");
    wf_array to = wf_array_dense(dense, WF_REAL, &shape);
    wf_array_copy(&to, &view);
    for (int64_t i = 0; i < k->results; i++)
        *f += (double)dense[i] * k->weight[i];
    wf_free(dense);
    return WF_OK;
}

/* Compares along one direction u of one input: <grad, u> against (f(x + hu) - f(x - hu)) / 2h. */
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
    memcpy(in->value, origin, (size_t)in->count * sizeof *origin);
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

wf_status check_numeric(struct check *k)
{
    wf_status status = WF_OK;
    for (int i = 0; i < k->inputs && status == WF_OK; i++) {
        struct check_input *in = &k->in[i];
        if (!check_is_real(in) || in->count == 0)
            continue;
        double *u = wf_alloc_zero((size_t)in->count, sizeof *u), norm = 0;
        wf_real *origin = wf_alloc_zero((size_t)in->count, sizeof *origin);
        if (!u || !origin) {
            wf_free(u);
            wf_free(origin);
            return wf_error_set(k->error, WF_ERR_MEMORY, "no memory for the gradient check");
        }
        memcpy(origin, in->value, (size_t)in->count * sizeof *origin);
        for (int64_t j = 0; j < in->count; j++)
            norm += (double)in->grad[j] * in->grad[j];
        norm = sqrt(norm);
        wf_rng rng = wf_rng_new(k->seed, 500 + (uint64_t)i);
        for (int d = 0; d < DIRECTIONS && status == WF_OK; d++) {
            double length = 0;
            for (int64_t j = 0; j < in->count; j++)
                u[j] = wf_rng_normal(&rng), length += u[j] * u[j];
            for (int64_t j = 0; j < in->count; j++)
                u[j] /= sqrt(length); /* a unit vector: steps stay away from kinks */
            status = compare(k, i, u, origin, 0.05 * norm / sqrt((double)in->count) + 1e-4, "direction", d);
        }
        int64_t stride = in->count <= COORDINATES ? 1 : in->count / COORDINATES;
        for (int64_t j = 0; j < in->count && status == WF_OK; j += stride) {
            memset(u, 0, (size_t)in->count * sizeof *u);
            u[j] = 1;
            status = compare(k, i, u, origin, 0.05 * norm / sqrt((double)in->count) + 1e-4, "coordinate", j);
        }
        wf_free(u);
        wf_free(origin);
    }
    return status;
}

wf_status wf_check_function(wf_function fn, void *ctx, int inputs, const wf_shape *shapes, const enum wf_fill *fill,
                            const struct wf_gradcheck_options *options, wf_error *error)
{
    struct wf_gradcheck_options o = options ? *options : (struct wf_gradcheck_options){0};
    struct check k = {.fn = fn, .ctx = ctx, .what = "function", .inputs = inputs, .mode = WF_GRADIENTS, .seed = o.seed, .error = error};
    if (inputs < 1 || inputs > WF_MAX_INPUTS)
        return wf_error_set(error, WF_ERR_ARGUMENT, "wf_check_function: %d inputs, 1 to %d are possible", inputs, WF_MAX_INPUTS);
    k.tolerance = o.tolerance > 0 ? o.tolerance : sizeof(wf_real) == 8 ? 1e-6 : 3e-2;
    k.step = o.step > 0 ? o.step : sizeof(wf_real) == 8 ? 1e-5 : 1e-2;
    for (int i = 0; i < inputs; i++)
        k.in[i] = (struct check_input){.shape = shapes[i], .fill = fill ? fill[i] : WF_FILL_NORMAL, .limit = 1};
    wf_status status = check_begin(&k);
    wf_tensor *leaf[WF_MAX_INPUTS], *operand[WF_MAX_INPUTS];
    if (status == WF_OK)
        status = check_operands(&k, WF_GRADIENTS, ~0u, LAYOUT_DENSE, leaf, operand);
    if (status == WF_OK && wf_backward(check_weighted_sum(&k, fn(ctx, k.tape, operand))) != WF_OK)
        status = wf_tape_status(k.tape, error);
    for (int i = 0; i < inputs && status == WF_OK; i++) {
        wf_array grad, to = wf_array_dense(k.in[i].grad, WF_REAL, &shapes[i]);
        status = check_leaf_grad(&k, i, LAYOUT_DENSE, leaf[i], &grad);
        if (status == WF_OK)
            wf_array_copy(&to, &grad);
    }
    if (status == WF_OK)
        status = check_numeric(&k);
    check_end(&k);
    return status;
}
