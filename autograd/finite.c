/* SPDX-License-Identifier: MIT */
/* wf_tape_check_finite: finds results and gradients that are not finite, and names the input or parameter that caused them. */
#include <math.h>
#include <stdio.h>

#include <weft/internal/finite.h>
#include <weft/internal/kernels.h>
#include <weft/internal/shape.h>

#include "engine.h"

static const char *text_of(double value)
{
    return isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
}

/* The address of element number i of the array in row-major order. Sets *index to its index in each dimension. */
static const void *element(const wf_array *a, int64_t i, wf_shape *index)
{
    int64_t at = 0;
    index->ndim = a->ndim;
    for (int d = a->ndim - 1; d >= 0; i /= a->dim[d--]) {
        index->dim[d] = i % a->dim[d];
        at += index->dim[d] * a->stride[d];
    }
    return (const char *)a->data + at * (int64_t)wf_dtype_size(a->dtype);
}

/* The address of the first NaN or +inf in the array, or with `minus` of the first -inf; *value is set to it. NULL if there is none. */
static const void *find(const wf_array *a, bool minus, double *value)
{
    const int64_t count = (a->dtype == WF_REAL || a->dtype == WF_BF16) && a->data ? wf_array_count(a) : 0;
    wf_shape index;
    for (int64_t i = 0; i < count; i++) {
        const void *x = element(a, i, &index);
        wf_real number = 0;
        (void)wf_convert(WF_REAL, &number, a->dtype, x, 1);
        *value = (double)number;
        if (minus ? *value == -INFINITY : isnan(*value) || *value == INFINITY)
            return x;
    }
    return NULL;
}

/* Whether a -inf in a result may come from a mask: an operand holds -inf, as a mask that is added to scores does, or bools
 * (wf_masked_fill). */
static bool is_masked(const wf_call *c)
{
    double value;
    for (int i = 0; i < c->inputs; i++) {
        const wf_array *x = wf_call_in(c, i);
        if (x && (x->dtype == WF_BOOL || find(x, true, &value)))
            return true;
    }
    return false;
}

/* The number of the first NaN or infinity in a result, or -1 if there is none. A -inf that may come from a mask is skipped. */
static int64_t first_bad(const wf_call *c, const wf_array *out)
{
    const wf_real *y = out->data;
    const int64_t count = wf_array_count(out);
    int64_t at = wf_kernel->find_nonfinite(count, y);
    if (at < 0 || y[at] != -INFINITY || !is_masked(c))
        return at;
    while (at < count && (isfinite(y[at]) || y[at] == -INFINITY))
        at++;
    return at < count ? at : -1;
}

/* Writes for example "the input x [2,3]" to `text`, and the index of the element `bad` to *index. If x is a view, the name and the index
 * are those of its root. */
static void name_input(const wf_tensor *x, const void *bad, wf_shape *index, char *text, size_t size)
{
    const wf_tensor *root = value_root((wf_tensor *)x);
    const int64_t count = wf_array_count(&root->a);
    char shape_text[96];
    wf_shape shape = array_shape(&root->a);
    for (int64_t i = 0; i < count && element(&root->a, i, index) != bad; i++)
        ;
    wf_shape_text(&shape, shape_text, sizeof shape_text);
    if (root->kind == TENSOR_INPUT)
        snprintf(text, size, "%s input %s%s%s", root->name ? "the" : "an", root->name ? root->name : "", root->name ? " " : "", shape_text);
    else
        snprintf(text, size, "the parameter %s %s", wf_name_of(root), shape_text);
}

static bool is_leaf(const wf_tensor *x)
{
    const wf_tensor *root = x ? value_root((wf_tensor *)x) : NULL;
    return root && (root->kind == TENSOR_INPUT || root->kind == TENSOR_LEAF || root->kind == TENSOR_PARAMETER);
}

/* Sets the error for element number `at` of the result `out`. If an operand that no op made holds NaN or +inf, the error names this operand
 * as the cause. If such an operand holds -inf, the error only mentions it, because a mask may need it. */
static wf_status blame(wf_call *c, const wf_array *out, int64_t at)
{
    const struct call_state *state = c->internal;
    const double value = (double)((const wf_real *)out->data)[at];
    char what[512], input[256], place[96], result[96], shape_text[96];
    wf_shape index, shape = array_shape(out);
    element(out, at, &index);
    wf_shape_text(&index, result, sizeof result);
    for (int minus = 0; minus < 2; minus++)
        for (int i = 0; i < c->inputs; i++) {
            const wf_tensor *x = state->node->in[i];
            double number;
            const void *bad = is_leaf(x) ? find(&x->a, minus, &number) : NULL;
            if (!bad)
                continue;
            name_input(x, bad, &index, input, sizeof input);
            wf_shape_text(&index, place, sizeof place);
            call_describe(c, what, sizeof what);
            if (!minus) {
                c->tape->bad_input = value_root((wf_tensor *)x)->kind == TENSOR_INPUT;
                wf_tape_fail(c->tape, WF_ERR_NUMERIC, "%s has %s at %s, and %s reads it", input, text_of(number), place, what);
                return WF_ERR_NUMERIC;
            }
            return wf_call_fail(c, WF_ERR_NUMERIC, "result %s has the value %s at %s; %s has -inf at %s",
                                wf_shape_text(&shape, shape_text, sizeof shape_text), text_of(value), result, input, place);
        }
    return wf_call_fail(c, WF_ERR_NUMERIC, "result %s has the value %s at %s", wf_shape_text(&shape, shape_text, sizeof shape_text),
                        text_of(value), result);
}

wf_status call_check_finite(wf_call *c)
{
    for (int j = 0; j < c->outputs; j++) {
        const int64_t at = c->out[j].dtype == WF_REAL ? first_bad(c, &c->out[j]) : -1;
        if (at >= 0)
            return blame(c, &c->out[j], at);
    }
    return WF_OK;
}

/* --- gradients ----------------------------------------------------------------------------------------------------- */

/* The first NaN or infinity in the gradient that x has so far, and its index; NULL if there is none. x must be a tensor that
 * holds its gradient itself, as gradient_root returns it. */
static const wf_real *find_bad_gradient(const wf_tape *tape, const wf_tensor *x, wf_shape *index)
{
    wf_array g = x->a;
    if (x->kind == TENSOR_LEAF && !tape->in_gradients) {
        wf_shape shape = array_shape(&x->a);
        g = array_contiguous(slab_gradient(x->info), WF_REAL, &shape);
    } else if (x->grad_buffer)
        g = gradient_of(x);
    else
        g.data = NULL;
    const int64_t count = g.data ? wf_array_count(&g) : 0;
    int64_t i = 0;
    if (wf_array_is_contiguous(&g)) {
        const int64_t at = wf_kernel->find_nonfinite(count, g.data);
        i = at < 0 ? count : at;
    }
    while (i < count && isfinite(*(const wf_real *)element(&g, i, index)))
        i++;
    return i < count ? element(&g, i, index) : NULL;
}

wf_status call_check_gradients(wf_call *c, bool before)
{
    const struct call_state *state = c->internal;
    char what[512], shape_text[96], place[96];
    wf_shape index, shape;
    for (int i = 0; i < c->inputs; i++) {
        wf_tensor *x = state->node->in[i];
        const bool needed = x && node_needs_now(c->tape, state->node, i);
        const wf_tensor *owner = needed ? gradient_root(x) : NULL;
        const wf_real *bad = owner ? find_bad_gradient(c->tape, owner, &index) : NULL;
        if (!bad)
            continue;
        call_describe(c, what, sizeof what);
        shape = array_shape(&owner->a);
        wf_shape_text(&shape, shape_text, sizeof shape_text);
        wf_shape_text(&index, place, sizeof place);
        if (before)
            wf_tape_fail(c->tape, WF_ERR_NUMERIC, "an earlier backward left %s at %s in the gradient of %s %s, to which that of %s adds",
                         text_of(*bad), place, wf_name_of(owner), shape_text, what);
        else
            wf_tape_fail(c->tape, WF_ERR_NUMERIC, "the backward of %s gave a gradient that is not finite for its operand %s %s: %s at %s",
                         what, wf_name_of(owner), shape_text, text_of(*bad), place);
        return WF_ERR_NUMERIC;
    }
    return WF_OK;
}

void gradient_check_given(wf_tape *tape, const wf_array *g)
{
    char place[96];
    wf_shape index;
    const int64_t count = wf_array_count(g);
    for (int64_t i = 0; i < count; i++) {
        const wf_real *x = element(g, i, &index);
        if (isfinite(*x))
            continue;
        wf_tape_fail(tape, WF_ERR_NUMERIC, "the .gradient that a backward was given has %s at %s", text_of(*x),
                     wf_shape_text(&index, place, sizeof place));
        return;
    }
}

bool wf_tape_bad_input(const wf_tape *tape)
{
    return tape->error.code == WF_ERR_NUMERIC && tape->bad_input;
}
