/* SPDX-License-Identifier: MIT */
/* The gradient check of an op: every case of its descriptor in every situation that the engine can put it in. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/ops_all.h>
#include <weft/memory.h>
#include <weft/ops.h>
#include <weft/random.h>

#include "gradcheck.h"

struct applied {
    const wf_op *op;
    const void *attr;
    int inputs;
};

static wf_tensor *apply_op(void *ctx, wf_tape *tape, wf_tensor *const in[])
{
    (void)tape;
    const struct applied *a = ctx;
    return wf_apply(a->op, a->attr, a->inputs, in);
}

/* Dims of a case's input: up to the first 0; -1 is a size of 0; -2 first is a scalar. False when there are none. */
static bool case_shape(const int64_t *dims, wf_shape *shape)
{
    *shape = (wf_shape){0};
    if (dims[0] == -2)
        return true;
    while (shape->ndim < WF_MAX_DIMS && dims[shape->ndim] != 0) {
        shape->dim[shape->ndim] = dims[shape->ndim] == -1 ? 0 : dims[shape->ndim];
        shape->ndim++;
    }
    return shape->ndim > 0;
}

static void set_up(struct check *k, const struct wf_case *c, const struct wf_gradcheck_options *options)
{
    k->inputs = c->inputs;
    for (int i = 0; i < WF_MAX_INPUTS; i++) {
        k->in[i] = (struct check_input){.fill = c->fill[i], .limit = c->limit[i]};
        if (!case_shape(c->in[i], &k->in[i].shape))
            k->in[i].fill = WF_FILL_ABSENT;
        if (c->inputs == 0 && k->in[i].fill == WF_FILL_ABSENT) {
            k->inputs = i;
            break;
        }
        if (c->inputs > 0 && i + 1 == c->inputs)
            break;
    }
    k->mode = c->train ? WF_TRAIN : WF_GRADIENTS;
    k->tolerance = options && options->tolerance > 0 ? options->tolerance : sizeof(wf_real) == 8 ? 1e-6 : 3e-2;
    k->step = options && options->step > 0 ? options->step : sizeof(wf_real) == 8 ? 1e-5 : 1e-2;
    k->seed = options ? options->seed : 0;
}

/* --- comparing runs ------------------------------------------------------------------------------------------------ */

static double at(const wf_array *a, int64_t index)
{
    int64_t offset = 0;
    for (int d = a->ndim - 1; d >= 0; d--) {
        offset += index % a->dim[d] * a->stride[d];
        index /= a->dim[d];
    }
    return ((const wf_real *)a->data)[offset];
}

/* Largest difference relative to the norm of what is expected. */
static wf_status same(struct check *k, const char *situation, const char *what, int input, const wf_array *got, const wf_real *expected)
{
    int64_t count = wf_array_count(got);
    double norm = 0, worst = 0;
    for (int64_t i = 0; i < count; i++)
        norm += (double)expected[i] * expected[i];
    double scale = sqrt(norm / (count > 0 ? (double)count : 1)) + 1e-3;
    for (int64_t i = 0; i < count; i++) {
        double difference = fabs(at(got, i) - expected[i]);
        if (!(difference <= worst))
            worst = difference;
    }
    double bound = sizeof(wf_real) == 8 ? 1e-11 : 1e-4;
    if (!(worst <= bound * scale))
        return wf_error_set(k->error, WF_ERR_NUMERIC, "%s: %s: %s %d differs from the plain run by %.3g (scale %.3g)", k->what, situation,
                            what, input, worst, scale);
    return WF_OK;
}

static wf_status tape_status(struct check *k, const char *situation)
{
    const wf_error *e = wf_tape_error(k->tape);
    return wf_error_set(k->error, e->code != WF_OK ? e->code : WF_ERR_STATE, "%s: %s: %s", k->what, situation, e->message);
}

/* Runs with some operands in a layout and a choice of inputs that need gradients; compares with the plain run. */
static wf_status compare_run(struct check *k, const char *situation, unsigned need, enum layout layout, const wf_real *result)
{
    wf_tensor *leaf[WF_MAX_INPUTS], *operand[WF_MAX_INPUTS];
    wf_status status = check_operands(k, k->mode, need, layout, leaf, operand);
    if (status != WF_OK)
        return status;
    wf_tensor *y = k->fn(k->ctx, k->tape, operand);
    wf_array view;
    if (wf_view(y, &view) != WF_OK)
        return tape_status(k, situation);
    status = same(k, situation, "result", 0, &view, result);
    bool any = false;
    for (int i = 0; i < k->inputs; i++)
        any |= (need >> i & 1) && check_is_real(&k->in[i]);
    if (status != WF_OK || !any)
        return status;
    if (wf_backward(check_weighted_sum(k, y)) != WF_OK)
        return tape_status(k, situation);
    for (int i = 0; i < k->inputs && status == WF_OK; i++) {
        wf_array grad;
        if (!(need >> i & 1) || !check_is_real(&k->in[i]))
            continue;
        status = check_leaf_grad(k, i, layout, leaf[i], &grad);
        if (status == WF_OK)
            status = same(k, situation, "gradient of input", i, &grad, k->in[i].grad);
    }
    return status;
}

/* --- situations ---------------------------------------------------------------------------------------------------- */

/* Each input also feeds another consumer, before or after the op, and a neighbour shares the gradient of the result. */
static wf_status with_neighbours(struct check *k, bool before)
{
    const char *situation = before ? "inputs used before as well, gradient of the result shared" : "inputs used after as well";
    wf_tensor *leaf[WF_MAX_INPUTS], *operand[WF_MAX_INPUTS];
    wf_status status = check_operands(k, k->mode, ~0u, LAYOUT_DENSE, leaf, operand);
    if (status != WF_OK)
        return status;
    wf_tensor *other = NULL, *neighbour = NULL;
    for (int pass = 0; pass < 2; pass++) {
        if ((pass == 0) == before) {
            for (int i = 0; i < k->inputs; i++)
                if (check_is_real(&k->in[i])) {
                    wf_tensor *part = wf_sum(wf_scale(leaf[i], 3));
                    other = other ? wf_add(other, part) : part;
                }
            continue;
        }
        wf_tensor *y = k->fn(k->ctx, k->tape, operand);
        wf_shape shape = wf_shape_of(y);
        if (wf_is_poison(y))
            return tape_status(k, situation);
        neighbour = wf_input(k->tape, k->weight, &shape, true);
        /* add hands its gradient to both; scale keeps the sharing away from the leaf, whose gradient is looked at */
        wf_tensor *twin = wf_scale(neighbour, 1);
        wf_tensor *sum = before ? wf_add(twin, y) : wf_add(y, twin);
        wf_tensor *part = check_weighted_sum(k, sum);
        other = other ? wf_add(other, part) : part;
    }
    if (!other || wf_backward(other) != WF_OK)
        return tape_status(k, situation);
    wf_array grad;
    if (wf_grad(neighbour, &grad) != WF_OK)
        return tape_status(k, situation);
    status = same(k, situation, "gradient of the neighbour of result", 0, &grad, k->weight);
    for (int i = 0; i < k->inputs && status == WF_OK; i++) {
        if (!check_is_real(&k->in[i]))
            continue;
        wf_real *expected = wf_alloc_zero((size_t)k->in[i].count + 1, sizeof *expected);
        if (!expected)
            return wf_error_set(k->error, WF_ERR_MEMORY, "no memory for the gradient check");
        for (int64_t j = 0; j < k->in[i].count; j++)
            expected[j] = k->in[i].grad[j] + 3;
        status = check_leaf_grad(k, i, LAYOUT_DENSE, leaf[i], &grad);
        if (status == WF_OK)
            status = same(k, situation, "gradient of input", i, &grad, expected);
        wf_free(expected);
    }
    return status;
}

/* op(x, x) must have the sum of the gradients of op(a, b) at a = b = x. */
static wf_status same_operand_twice(struct check *k, int i, int j)
{
    wf_tensor *leaf[WF_MAX_INPUTS], *operand[WF_MAX_INPUTS];
    int64_t count = k->in[i].count;
    wf_real *old = wf_alloc_zero((size_t)count + 1, sizeof *old), *sum = wf_alloc_zero((size_t)count + 1, sizeof *sum);
    wf_status status = old && sum ? WF_OK : wf_error_set(k->error, WF_ERR_MEMORY, "no memory for the gradient check");
    if (status == WF_OK) {
        memcpy(old, k->in[j].value, (size_t)count * sizeof *old);
        memcpy(k->in[j].value, k->in[i].value, (size_t)count * sizeof *old);
        status = check_operands(k, k->mode, ~0u, LAYOUT_DENSE, leaf, operand);
    }
    const char *situation = "one tensor as two operands";
    if (status == WF_OK && wf_backward(check_weighted_sum(k, k->fn(k->ctx, k->tape, operand))) != WF_OK)
        status = tape_status(k, situation);
    wf_array a, b;
    if (status == WF_OK)
        status = check_leaf_grad(k, i, LAYOUT_DENSE, leaf[i], &a);
    if (status == WF_OK)
        status = check_leaf_grad(k, j, LAYOUT_DENSE, leaf[j], &b);
    for (int64_t n = 0; status == WF_OK && n < count; n++)
        sum[n] = (wf_real)(at(&a, n) + at(&b, n));
    if (status == WF_OK)
        status = check_operands(k, k->mode, ~0u, LAYOUT_DENSE, leaf, operand);
    if (status == WF_OK) {
        operand[j] = operand[i];
        if (wf_backward(check_weighted_sum(k, k->fn(k->ctx, k->tape, operand))) != WF_OK)
            status = tape_status(k, situation);
    }
    if (status == WF_OK)
        status = check_leaf_grad(k, i, LAYOUT_DENSE, leaf[i], &a);
    if (status == WF_OK)
        status = same(k, situation, "gradient of input", i, &a, sum);
    if (old)
        memcpy(k->in[j].value, old, (size_t)count * sizeof *old);
    wf_free(old);
    wf_free(sum);
    return status;
}

/* Input i repeated along its first dimension by a stride of 0, against the same values in memory. It needs no gradient. */
static wf_status broadcast_operand(struct check *k, int i)
{
    struct check_input *in = &k->in[i];
    int64_t inner = in->count / in->shape.dim[0];
    wf_real *old = wf_alloc_zero((size_t)in->count, sizeof *old);
    wf_real *result = wf_alloc_zero((size_t)k->results + 1, sizeof *result);
    wf_tensor *leaf[WF_MAX_INPUTS], *operand[WF_MAX_INPUTS];
    wf_status status = old && result ? WF_OK : wf_error_set(k->error, WF_ERR_MEMORY, "no memory for the gradient check");
    if (status == WF_OK) {
        memcpy(old, in->value, (size_t)in->count * sizeof *old);
        for (int64_t r = 1; r < in->shape.dim[0]; r++)
            memcpy(in->value + r * inner, in->value, (size_t)inner * sizeof *old);
        status = check_operands(k, k->mode, 0, LAYOUT_DENSE, leaf, operand);
    }
    if (status == WF_OK && wf_read(k->fn(k->ctx, k->tape, operand), result, k->results) != WF_OK)
        status = tape_status(k, "repeated rows");
    if (status == WF_OK)
        status = check_operands(k, k->mode, 0, LAYOUT_DENSE, leaf, operand);
    wf_array view;
    if (status == WF_OK && wf_view(leaf[i], &view) == WF_OK) {
        view.stride[0] = 0;
        operand[i] = wf_apply_view("broadcast", leaf[i], &view);
        if (wf_view(k->fn(k->ctx, k->tape, operand), &view) != WF_OK)
            status = tape_status(k, "operand with a stride of 0");
        else
            status = same(k, "operand with a stride of 0", "result", 0, &view, result);
    }
    if (old)
        memcpy(in->value, old, (size_t)in->count * sizeof *old);
    wf_free(old);
    wf_free(result);
    return status;
}

/* The plain run: result and gradients of all inputs. */
static wf_status plain_run(struct check *k, wf_real **result)
{
    wf_tensor *leaf[WF_MAX_INPUTS], *operand[WF_MAX_INPUTS];
    wf_status status = check_operands(k, k->mode, ~0u, LAYOUT_DENSE, leaf, operand);
    if (status != WF_OK)
        return status;
    wf_tensor *y = k->fn(k->ctx, k->tape, operand), *loss = check_weighted_sum(k, y);
    *result = wf_alloc_zero((size_t)k->results + 1, sizeof **result);
    if (!*result)
        return wf_error_set(k->error, WF_ERR_MEMORY, "no memory for the gradient check");
    if (wf_read(y, *result, k->results) != WF_OK || wf_backward(loss) != WF_OK)
        return tape_status(k, "plain run");
    for (int i = 0; i < k->inputs && status == WF_OK; i++) {
        wf_array grad, to = wf_array_dense(k->in[i].grad, WF_REAL, &k->in[i].shape);
        if (!check_is_real(&k->in[i]))
            continue;
        status = check_leaf_grad(k, i, LAYOUT_DENSE, leaf[i], &grad);
        if (status == WF_OK)
            wf_array_copy(&to, &grad);
    }
    return status;
}

static wf_status all_situations(struct check *k, const wf_real *result)
{
    wf_status status = compare_run(k, "transposed operands", ~0u, LAYOUT_TRANSPOSED, result);
    if (status == WF_OK)
        status = compare_run(k, "sliced operands", ~0u, LAYOUT_SLICED, result);
    unsigned real = 0;
    for (int i = 0; i < k->inputs; i++)
        real |= (unsigned)check_is_real(&k->in[i]) << i;
    for (unsigned need = real; need && status == WF_OK; need = (need - 1) & real)
        status = compare_run(k, "a subset of inputs with gradients", need, LAYOUT_DENSE, result);
    if (status == WF_OK && k->mode != WF_TRAIN) {
        wf_mode mode = k->mode;
        k->mode = WF_INFER;
        status = compare_run(k, "without recording", 0, LAYOUT_DENSE, result);
        if (status == WF_OK)
            status = compare_run(k, "without recording, transposed operands", 0, LAYOUT_TRANSPOSED, result);
        k->mode = mode;
    }
    /* The rest changes what an op's attributes may describe (lengths by row), so not for dropout's masks. */
    if (status == WF_OK && real)
        status = with_neighbours(k, true);
    if (status == WF_OK && real)
        status = with_neighbours(k, false);
    for (int i = 0; i < k->inputs && status == WF_OK; i++) {
        if (!check_is_real(&k->in[i]))
            continue;
        if (k->in[i].shape.ndim > 0 && k->in[i].shape.dim[0] > 1 && k->in[i].count > 0)
            status = broadcast_operand(k, i);
        for (int j = i + 1; j < k->inputs && status == WF_OK; j++)
            if (check_is_real(&k->in[j]) && wf_shape_equal(&k->in[i].shape, &k->in[j].shape))
                status = same_operand_twice(k, i, j);
    }
    return status;
}

static void name_case(const wf_op *op, const struct wf_case *c, char *text, size_t size)
{
    long index = op->cases.count > 0 && c >= op->cases.list && c < op->cases.list + op->cases.count ? (long)(c - op->cases.list) : -1;
    snprintf(text, size, "%s, case %ld%s%s", op->name, index, c->what ? " " : "", c->what ? c->what : "");
}

wf_status wf_check_case(const wf_op *op, const struct wf_case *c, const struct wf_gradcheck_options *options, wf_error *error)
{
    char what[160];
    name_case(op, c, what, sizeof what);
    struct applied applied = {op, c->attr, 0};
    struct check k = {.fn = apply_op, .ctx = &applied, .what = what, .error = error};
    set_up(&k, c, options);
    applied.inputs = k.inputs;
    wf_real *result = NULL;
    wf_status status = check_begin(&k);
    if (status == WF_OK)
        status = plain_run(&k, &result);
    if (status == WF_OK)
        status = check_numeric(&k);
    if (status == WF_OK)
        status = all_situations(&k, result);
    wf_free(result);
    check_end(&k);
    return status;
}

wf_status wf_check_op(const wf_op *op, const struct wf_gradcheck_options *options, wf_error *error)
{
    if (op->cases.count == 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s has no cases: give its descriptor some, or nothing is known of its gradient",
                            op->name);
    for (int i = 0; i < op->cases.count; i++) {
        wf_status status = wf_check_case(op, &op->cases.list[i], options, error);
        if (status != WF_OK)
            return status;
    }
    return WF_OK;
}

wf_status wf_case_numbers(const wf_op *op, const struct wf_case *c, double **out, int64_t *count, wf_error *error)
{
    char what[160];
    name_case(op, c, what, sizeof what);
    struct applied applied = {op, c->attr, 0};
    struct check k = {.fn = apply_op, .ctx = &applied, .what = what, .error = error};
    set_up(&k, c, NULL);
    applied.inputs = k.inputs;
    wf_real *result = NULL;
    *out = NULL;
    *count = 0;
    wf_status status = check_begin(&k);
    if (status == WF_OK)
        status = plain_run(&k, &result);
    int64_t n = k.results;
    for (int i = 0; i < k.inputs; i++)
        n += check_is_real(&k.in[i]) ? k.in[i].count : 0;
    if (status == WF_OK && !(*out = wf_alloc_zero((size_t)n + 1, sizeof **out)))
        status = wf_error_set(error, WF_ERR_MEMORY, "no memory for the numbers of a case");
    if (status == WF_OK) {
        *count = n;
        n = 0;
        for (int64_t j = 0; j < k.results; j++)
            (*out)[n++] = result[j];
        for (int i = 0; i < k.inputs; i++)
            for (int64_t j = 0; check_is_real(&k.in[i]) && j < k.in[i].count; j++)
                (*out)[n++] = k.in[i].grad[j];
    }
    wf_free(result);
    check_end(&k);
    return status;
}
