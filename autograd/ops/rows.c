/* SPDX-License-Identifier: MIT */
/* Functions of common.h: checks and shape rules, operands as rows, contiguous gradients, sums. */
#include <stdio.h>
#include <string.h>

#include <weft/internal/bf16.h>
#include <weft/internal/shape.h>

#include "common.h"

wf_status wf_want_there(wf_call *c, int i)
{
    if (wf_has(c, i))
        return WF_OK;
    const char *name = c->op->operands ? c->op->operands : "";
    for (int k = 0; k < i && *name; k++) {
        name += strcspn(name, " ");
        name += *name == ' ';
    }
    return wf_call_fail(c, WF_ERR_ARGUMENT, "operand %d is NULL: %s%.*s is required", i + 1, *name ? "" : "it", (int)strcspn(name, " "),
                        name);
}

wf_status wf_want(wf_call *c, int i, wf_dtype dtype)
{
    if (wf_want_there(c, i) != WF_OK)
        return WF_ERR_ARGUMENT;
    if (c->in[i].dtype != dtype)
        return wf_call_fail(
            c, WF_ERR_ARGUMENT, "operand %d has dtype %s, but %s is required%s", i + 1, wf_dtype_name(c->in[i].dtype), wf_dtype_name(dtype),
            c->in[i].dtype == WF_BF16 && dtype == WF_REAL ? ": declare or load this weight as floats (WF_STORED_REAL)" : "");
    return WF_OK;
}

wf_status wf_want_stored(wf_call *c, int i)
{
    return c->in[i].dtype == WF_BF16 && WF_REAL == WF_F32 ? wf_want_there(c, i) : wf_want(c, i, WF_REAL);
}

wf_status wf_want_reals(wf_call *c, int n)
{
    wf_status status = WF_OK;
    for (int i = 0; i < n && status == WF_OK; i++)
        status = wf_want(c, i, WF_REAL);
    return status;
}

wf_status wf_want_vector(wf_call *c, int i, const char *what, int64_t d)
{
    wf_status status = wf_has(c, i) ? wf_want(c, i, WF_REAL) : WF_OK;
    if (status == WF_OK && wf_has(c, i) && (c->in[i].ndim != 1 || c->in[i].dim[0] != d))
        return wf_call_fail(c, WF_ERR_SHAPE, "the %s must be [%lld]", what, (long long)d);
    return status;
}

wf_status wf_same_shape(wf_call *c)
{
    wf_status status = wf_want(c, 0, WF_REAL);
    if (status == WF_OK)
        c->out[0] = wf_call_like(c, &c->in[0]);
    return status;
}

const char *wf_dims_text(int ndim, char *text, size_t size)
{
    if (ndim == 0)
        return "the operand is a scalar";
    snprintf(text, size, "the operand has %d, which count from 0 or from -%d", ndim, ndim);
    return text;
}

int wf_want_dim(wf_call *c, int i, int dim)
{
    int n = c->in[i].ndim, d = dim < 0 ? dim + n : dim;
    if (d >= 0 && d < n)
        return d;
    char have[64];
    wf_call_fail(c, WF_ERR_SHAPE, "dimension %d does not exist: %s", dim, wf_dims_text(n, have, sizeof have));
    return -1;
}

wf_status wf_broadcast_shape(wf_call *c)
{
    if (wf_want_reals(c, 2) != WF_OK)
        return WF_ERR_ARGUMENT;
    wf_shape a = wf_array_shape(&c->in[0]), b = wf_array_shape(&c->in[1]), out;
    if (!wf_shape_broadcast(&a, &b, &out))
        return wf_call_fail(c, WF_ERR_SHAPE, "the shapes do not broadcast: aligned at the last dimension, sizes must be equal or 1");
    c->out[0] = wf_call_shape(WF_REAL, &out);
    return WF_OK;
}

wf_shape wf_shape_without(const wf_array *a, int dim, bool keep)
{
    wf_shape shape = {.ndim = a->ndim - !keep};
    for (int d = 0, to = 0; d < a->ndim; d++)
        if (d != dim || keep)
            shape.dim[to++] = d == dim ? 1 : a->dim[d];
    return shape;
}

wf_status wf_reduced_shape(wf_call *c, int dim, bool keep)
{
    if (wf_want(c, 0, WF_REAL) != WF_OK)
        return WF_ERR_ARGUMENT;
    int d = wf_want_dim(c, 0, dim);
    if (d < 0)
        return WF_ERR_SHAPE;
    wf_shape shape = wf_shape_without(&c->in[0], d, keep);
    c->out[0] = wf_call_shape(WF_REAL, &shape);
    return WF_OK;
}

wf_status wf_reduction_shape(wf_call *c, bool all, int dim, bool keep)
{
    if (!all)
        return wf_reduced_shape(c, dim, keep);
    if (wf_want(c, 0, WF_REAL) != WF_OK)
        return WF_ERR_ARGUMENT;
    c->out[0] = wf_call_shape(WF_REAL, &(wf_shape){0});
    return WF_OK;
}

int64_t wf_reduction_terms(wf_call *c, bool all, int dim)
{
    return all ? wf_array_count(&c->in[0]) : c->in[0].dim[wf_want_dim(c, 0, dim)];
}

wf_array wf_matrix_of(wf_call *c, const wf_array *a)
{
    int64_t rows = 1;
    for (int d = 0; d < a->ndim - 1; d++)
        rows *= a->dim[d];
    wf_shape shape = {2, {rows, a->ndim ? a->dim[a->ndim - 1] : 1}};
    wf_array out;
    if (rows * shape.dim[1] == 0)
        return wf_array_contiguous(a->data, a->dtype, &shape);
    if (wf_array_reshape(a, &shape, &out))
        return out;
    wf_array copy = wf_call_contiguous(c, a);
    return wf_array_contiguous(copy.data, copy.dtype, &shape);
}

wf_array wf_rows_of(wf_call *c, const wf_array *a)
{
    wf_array x = wf_matrix_of(c, a);
    if (x.dim[1] <= 1)
        x.stride[1] = 1;
    return x.data == NULL || x.stride[1] == 1 ? x : wf_call_contiguous(c, &x);
}

wf_array wf_contiguous_rows_of(wf_call *c, const wf_array *a)
{
    wf_array x = wf_matrix_of(c, a);
    if (x.data == NULL || wf_array_is_contiguous(&x))
        return x;
    return wf_call_contiguous(c, &x);
}

wf_array wf_reals_of(wf_call *c, const wf_array *a)
{
    if (a->dtype != WF_BF16)
        return *a;
    const wf_array rows = wf_rows_of(c, a);
    const wf_shape shape = wf_array_shape(a);
    wf_array x = wf_call_temp(c, WF_REAL, &shape);
    if (!rows.data)
        x.data = NULL;
    if (x.data)
        wf_bf16_widen(rows.dim[0], rows.dim[1], rows.data, rows.stride[0], x.data);
    return x;
}

bool wf_vector_of(wf_call *c, int i, const wf_real **v)
{
    *v = wf_has(c, i) ? wf_call_contiguous(c, &c->in[i]).data : NULL;
    return *v || !wf_has(c, i);
}

bool wf_apart(const wf_array *a, const wf_array *b)
{
    if (wf_array_count(a) == 0 || wf_array_count(b) == 0)
        return true;
    uintptr_t a_first, a_end, b_first, b_end;
    if (!wf_array_span(a, &a_first, &a_end) || !wf_array_span(b, &b_first, &b_end))
        return false;
    if (a_end <= b_first || b_end <= a_first)
        return true;
    const int last = a->ndim - 1;
    const int64_t step = a->stride[last - 1];
    if (step <= 0 || b->stride[last - 1] != step || (last == 2 && (a->stride[0] % step != 0 || b->stride[0] % step != 0)))
        return false;
    int64_t column = ((const char *)b->data - (const char *)a->data) / (int64_t)wf_dtype_size(a->dtype) % step;
    column += column < 0 ? step : 0;
    return column >= a->dim[last] && column + b->dim[last] <= step;
}

bool wf_contiguous_grad(wf_call *c, int i, struct contiguous_grad *g)
{
    g->place = g->contiguous = wf_grad_into(c, i, &g->add);
    if (!g->place.data || wf_array_is_contiguous(&g->place))
        return g->place.data != NULL;
    g->contiguous = wf_grad_new(c, i);
    if (g->contiguous.data && g->add)
        wf_array_copy(&g->contiguous, &g->place);
    return g->contiguous.data != NULL;
}

static void zero_body(void *ctx, int64_t begin, int64_t end)
{
    memset((wf_real *)ctx + begin, 0, (size_t)(end - begin) * sizeof(wf_real));
}

bool wf_contiguous_grad_to_add(wf_call *c, int i, struct contiguous_grad *g)
{
    enum { ZERO_BLOCK = 1 << 16 };
    if (!wf_contiguous_grad(c, i, g))
        return false;
    int64_t count = wf_array_count(&g->contiguous);
    if (!g->add)
        wf_parallel_ranges(count, ZERO_BLOCK, 0.05 * (double)count, zero_body, g->contiguous.data);
    return true;
}

void wf_contiguous_grad_done(const struct contiguous_grad *g)
{
    if (g->contiguous.data != g->place.data)
        wf_array_copy(&g->place, &g->contiguous);
}

wf_status wf_sum_into(wf_call *c, const wf_array *dst, const wf_array *src, double scale, bool add)
{
    wf_status status = wf_array_sum(dst, src, scale, add);
    return status == WF_OK ? status : wf_call_fail(c, status, "no memory for partial sums");
}

wf_status wf_give_column_sums(wf_call *c, int i, const wf_array *x, double scale)
{
    bool add;
    wf_array g = wf_grad_into(c, i, &add);
    return g.data ? wf_sum_into(c, &g, x, scale, add) : WF_ERR_MEMORY;
}

wf_status wf_give_zeros(wf_call *c)
{
    for (int i = 0; i < c->inputs; i++) {
        if (!c->need[i])
            continue;
        wf_array g = wf_grad_new(c, i);
        if (!g.data)
            return WF_ERR_MEMORY;
        memset(g.data, 0, (size_t)wf_array_count(&g) * sizeof(wf_real));
        wf_grad_give(c, i, &g);
    }
    return WF_OK;
}

const char *wf_index_text(const wf_array *a, int64_t i, char *text, size_t size)
{
    wf_shape index = wf_array_shape(a);
    for (int64_t d = a->ndim - 1; d >= 0; i /= a->dim[d--])
        index.dim[d] = i % a->dim[d];
    return a->ndim ? wf_shape_text(&index, text, size) : "";
}

wf_status wf_check_ids(wf_call *c, const wf_array *ids, const char *what, int64_t limit, const int32_t *ignore, int64_t *counted)
{
    const int32_t *id = ids->data;
    int64_t n = wf_array_count(ids), good = 0, ignored = 0;
    uint32_t bound = limit > INT32_MAX ? (uint32_t)INT32_MAX + 1 : (uint32_t)limit;
    for (int64_t from = 0; from < n; from += 4096) { /* a counter as wide as the ids takes half the instructions of a 64-bit one */
        int32_t part = 0;
        for (int64_t i = from, end = WF_MIN(n, from + 4096); i < end; i++)
            part += (uint32_t)id[i] < bound;
        good += part;
    }
    if (ignore) {
        for (int64_t i = 0; i < n; i++)
            ignored += id[i] == *ignore;
        if ((uint32_t)*ignore < bound)
            good -= ignored; /* ignored ids in 0 .. limit-1 are valid, but do not count */
    }
    if (counted)
        *counted = good;
    if (good + ignored == n)
        return WF_OK;
    int64_t i = 0;
    while ((uint32_t)id[i] < bound || (ignore && id[i] == *ignore))
        i++;
    char text[160];
    if (limit <= 0)
        return wf_call_fail(c, WF_ERR_ARGUMENT, "%s%s = %d, but there is nothing to choose from: the size is 0", what,
                            wf_index_text(ids, i, text, sizeof text), id[i]);
    return wf_call_fail(c, WF_ERR_ARGUMENT, "%s%s = %d is not in 0 .. %lld", what, wf_index_text(ids, i, text, sizeof text), id[i],
                        (long long)limit - 1);
}

wf_array wf_ids_below(wf_call *c, int i, int64_t limit)
{
    wf_array ids = wf_call_contiguous(c, &c->in[i]);
    if (ids.data && wf_check_ids(c, &ids, "ids", limit, NULL, NULL) != WF_OK)
        ids.data = NULL;
    return ids;
}
