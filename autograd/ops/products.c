/* SPDX-License-Identifier: MIT */
/* The matrix products matmul and linear, and their gradients. Products take any strides, so that views are not copied. */
#include <weft/compute.h>
#include <weft/internal/gemm.h>
#include <weft/internal/shape.h>

#include "common.h"

wf_array wf_swap_last(const wf_array *a)
{
    return wf_array_transpose(*a, a->ndim - 2, a->ndim - 1);
}

static wf_status product_with(wf_call *c, const wf_array *a, const wf_array *b, const wf_array *out,
                              const struct wf_matmul_options *options)
{
    struct wf_matmul_options with = *options;
    with.precision = c->precision;
    wf_error error;
    error.code = WF_OK;
    wf_status status = wf_array_matmul_with(a, b, out, &with, &error);
    return status == WF_OK ? status : wf_call_fail(c, status, "%s", error.message);
}

wf_status wf_product(wf_call *c, const wf_array *a, const wf_array *b, const wf_array *out, bool add, const wf_real *bias, bool rows_alone)
{
    return product_with(c, a, b, out, &(struct wf_matmul_options){.add = add, .bias = bias, .rows_alone = rows_alone});
}

wf_status wf_product_of_columns(wf_call *c, const wf_array *a, const wf_array *b, const wf_array *out, bool add)
{
    wf_array at = wf_swap_last(a);
    return wf_product(c, &at, b, out, add, NULL, false);
}

/* --- matmul -------------------------------------------------------------------------------------------------------- */

static wf_shape batch_of(const wf_array *a)
{
    wf_shape shape = wf_array_shape(a);
    shape.ndim -= 2;
    return shape;
}

static wf_status matmul_shape(wf_call *c)
{
    if (wf_want(c, 0, WF_REAL) != WF_OK || wf_want_stored(c, 1) != WF_OK)
        return WF_ERR_ARGUMENT;
    const wf_array *a = &c->in[0], *b = &c->in[1];
    if (a->ndim < 2 || b->ndim < 2)
        return wf_call_fail(c, WF_ERR_SHAPE, "both operands need at least two dimensions");
    if (a->dim[a->ndim - 1] != b->dim[b->ndim - 2])
        return wf_call_fail(c, WF_ERR_SHAPE, "the first operand has %lld columns, but the second has %lld rows",
                            (long long)a->dim[a->ndim - 1], (long long)b->dim[b->ndim - 2]);
    wf_shape batch_a = batch_of(a), batch_b = batch_of(b), out;
    if (!wf_shape_broadcast(&batch_a, &batch_b, &out))
        return wf_call_fail(c, WF_ERR_SHAPE, "the leading dimensions do not broadcast");
    out.dim[out.ndim++] = a->dim[a->ndim - 2];
    out.dim[out.ndim++] = b->dim[b->ndim - 1];
    c->out[0] = wf_call_shape(WF_REAL, &out);
    return WF_OK;
}

static wf_status matmul_forward(wf_call *c)
{
    return wf_product(c, &c->in[0], &c->in[1], &c->out[0], false, NULL, c->rows_alone);
}

/* Gives operand i the gradient a b, a product for each matrix of the result's batch. If the operand has the same batch dimensions, the
 * product is computed straight in its gradient; otherwise wf_grad_give sums the product over the batch dimensions along which the operand
 * was repeated. */
static wf_status matmul_into(wf_call *c, int i, const wf_array *a, const wf_array *b)
{
    wf_shape own = batch_of(&c->in[i]), full = batch_of(&c->out[0]);
    bool repeated = !wf_shape_equal(&own, &full), add = false;
    full.dim[full.ndim++] = c->in[i].dim[c->in[i].ndim - 2];
    full.dim[full.ndim++] = c->in[i].dim[c->in[i].ndim - 1];
    wf_array g = repeated ? wf_call_temp(c, WF_REAL, &full) : wf_grad_into(c, i, &add);
    if (!g.data)
        return WF_ERR_MEMORY;
    wf_status status = wf_product(c, a, b, &g, add, NULL, false);
    if (repeated && status == WF_OK)
        wf_grad_give(c, i, &g);
    return status;
}

/* C = A B, so dA = dC B^T and dB = A^T dC for each matrix of the batch. If an operand was repeated along the batch, its gradient is the sum
 * over the batch. If B is a single matrix, one product A^T dC over all rows is this sum, without a temporary. */
static wf_status matmul_backward(wf_call *c)
{
    const wf_array *a = &c->in[0], *b = &c->in[1], *dc = &c->dout[0];
    wf_status status = WF_OK;
    if (c->need[0]) {
        wf_array bt = wf_swap_last(b);
        status = matmul_into(c, 0, dc, &bt);
    }
    if (c->need[1] && status == WF_OK) {
        if (b->ndim == 2 && a->ndim > 2) {
            wf_array rows = wf_matrix_of(c, a), dy = wf_matrix_of(c, dc);
            bool add;
            wf_array db = wf_grad_into(c, 1, &add);
            if (!rows.data || !dy.data || !db.data)
                return WF_ERR_MEMORY;
            status = wf_product_of_columns(c, &rows, &dy, &db, add);
        } else {
            wf_array at = wf_swap_last(a);
            status = matmul_into(c, 1, &at, dc);
        }
    }
    return status;
}

static wf_shape rows_shape(const wf_tensor *x)
{
    const int last = wf_ndim(x) - 1;
    wf_shape shape = wf_shape_of(x), rows = {.ndim = 2, .dim = {1, shape.dim[last]}};
    for (int d = 0; d < last; d++)
        rows.dim[0] *= shape.dim[d];
    return rows;
}

/* x [..., d] as [rows, d]. */
static wf_tensor *flat(wf_tensor *x)
{
    const wf_shape rows = rows_shape(x);
    return wf_reshape_to(x, &rows);
}

static void matmul_gradient(const wf_gradient_call *c)
{
    wf_tensor *a = c->x[0], *b = c->x[1], *dy = c->dy[0];
    if (c->need[0])
        c->dx[0] = wf_matmul(dy, wf_transpose(b, -2, -1));
    if (c->need[1] && wf_ndim(b) == 2)
        c->dx[1] = wf_matmul(wf_transpose(flat(a), 0, 1), flat(dy));
    else if (c->need[1])
        c->dx[1] = wf_matmul(wf_transpose(a, -2, -1), dy);
}

const wf_op wf_op_matmul = {
    .name = "matmul",
    .operands = "a b",
    .reads = WF_READS_INPUT(0) | WF_READS_INPUT(1),
    .shape = matmul_shape,
    .forward = matmul_forward,
    .backward = matmul_backward,
    .gradient = matmul_gradient,
    .cases = WF_CASES({"matrices", {{3, 4}, {4, 5}}}, {"ones", {{1, 1}, {1, 1}}}, {"a row, a column", {{1, 7}, {7, 1}}},
                      {"one matrix for a batch", {{2, 3, 4}, {4, 5}}}, {"batch", {{2, 3, 4}, {2, 4, 5}}},
                      {"batch on the right", {{3, 4}, {2, 4, 5}}}, {"both repeat", {{2, 1, 3, 4}, {3, 4, 2}}},
                      {"batch of one", {{1, 3, 4}, {2, 4, 5}}}, {"batch of one on the right", {{2, 3, 4}, {1, 4, 5}}},
                      {"six dims", {{2, 1, 2, 2, 3, 2}, {2, 2, 1, 2, 2, 3}}}, {"empty rows", {{-1, 4}, {4, 5}}},
                      {"nothing between", {{3, -1}, {-1, 5}}}, {"empty batch", {{-1, 3, 4}, {4, 5}}}, {"odd", {{17, 33}, {33, 9}}})};

wf_tensor *wf_matmul(wf_tensor *a, wf_tensor *b)
{
    return wf_apply(&wf_op_matmul, NULL, 2, (wf_tensor *[]){a, b});
}

/* --- linear -------------------------------------------------------------------------------------------------------- */

static wf_status linear_shape(wf_call *c)
{
    if (wf_want(c, 0, WF_REAL) != WF_OK || wf_want_stored(c, 1) != WF_OK)
        return WF_ERR_ARGUMENT;
    const wf_array *x = &c->in[0], *w = &c->in[1];
    if (x->ndim < 1 || w->ndim != 2)
        return wf_call_fail(c, WF_ERR_SHAPE, "x must be [...,in], and weight [out,in]");
    if (x->dim[x->ndim - 1] != w->dim[1])
        return wf_call_fail(c, WF_ERR_SHAPE, "the weight [out,in] expects rows of %lld, and x [...,in] has rows of %lld",
                            (long long)w->dim[1], (long long)x->dim[x->ndim - 1]);
    wf_shape shape = wf_array_shape(x);
    shape.dim[shape.ndim - 1] = w->dim[0];
    c->out[0] = wf_call_shape(WF_REAL, &shape);
    return wf_want_vector(c, 2, "bias", w->dim[0]);
}

/* A vector becomes one row; other arrays stay as they are. */
static wf_array as_rows(const wf_array *a)
{
    if (a->ndim != 1)
        return *a;
    wf_array row = *a;
    row.ndim = 2;
    row.dim[0] = 1;
    row.dim[1] = a->dim[0];
    row.stride[0] = a->dim[0];
    row.stride[1] = a->stride[0];
    return row;
}

static wf_status linear_forward(wf_call *c)
{
    const wf_real *bias;
    if (!wf_vector_of(c, 2, &bias))
        return WF_ERR_MEMORY;
    wf_array x = as_rows(&c->in[0]), y = as_rows(&c->out[0]), wt = wf_swap_last(&c->in[1]);
    return wf_product(c, &x, &wt, &y, false, bias, c->rows_alone);
}

/* The arguments of the product out = scale a b of matrices, plus the old `out` if `add`. */
static struct wf_gemm gemm_of(const wf_call *c, const wf_array *a, const wf_array *b, const wf_array *out, double scale, bool add)
{
    return (struct wf_gemm){.m = out->dim[0],
                            .n = out->dim[1],
                            .k = a->dim[1],
                            .alpha = (wf_real)scale,
                            .beta = add,
                            .a = a->data,
                            .a_rs = a->stride[0],
                            .a_cs = a->stride[1],
                            .b = b->data,
                            .b_rs = b->stride[0],
                            .b_cs = b->stride[1],
                            .b_stored = b->dtype,
                            .c = out->data,
                            .c_rs = out->stride[0],
                            .c_cs = out->stride[1],
                            .precision = c->precision};
}

/* Whether the address ranges of a and b do not overlap. Different columns of one matrix do overlap in this sense. */
static bool far_apart(const wf_array *a, const wf_array *b)
{
    uintptr_t a_first, a_end, b_first, b_end;
    return wf_array_span(a, &a_first, &a_end) && wf_array_span(b, &b_first, &b_end) && (a_end <= b_first || b_end <= a_first);
}

/* Gives operand `input` the gradient scale a b. */
static wf_status give_product(wf_call *c, int input, const wf_array *a, const wf_array *b, double scale)
{
    bool add;
    wf_array g = wf_grad_into(c, input, &add);
    if (!a->data || !b->data || !g.data)
        return WF_ERR_MEMORY;
    g = as_rows(&g);
    return product_with(c, a, b, &g, &(struct wf_matmul_options){.scale = scale, .add = add});
}

/* Computes both products, dX and dW. If the rows of dX have one common stride, both run in one parallel region. False, with nothing done,
 * if a product is not needed or is empty, or if X and W may be the same tensor: then the first product must be finished before wf_grad_into
 * is called for the second. Otherwise true, with *status set. */
static bool give_both(wf_call *c, const wf_array *given, const wf_array *dy, double scale, wf_status *status)
{
    const wf_array *w = &c->in[1];
    if (!c->need[0] || !c->need[1] || wf_array_count(&c->in[0]) == 0 || w->dim[0] == 0 || !far_apart(&c->in[0], w))
        return false;
    bool add[2];
    const wf_array x = wf_matrix_of(c, &c->in[0]), g = wf_grad_into(c, 0, &add[0]), dw = wf_grad_into(c, 1, &add[1]);
    const wf_array dx = as_rows(&g), dyt = wf_swap_last(dy);
    wf_array rows;
    *status = WF_ERR_MEMORY;
    if (!x.data || !dx.data || !dw.data)
        return true;
    if (wf_array_reshape(&dx, &(wf_shape){2, {dy->dim[0], w->dim[1]}}, &rows)) {
        *status = wf_gemm_two((const struct wf_gemm[]){gemm_of(c, dy, w, &rows, scale, add[0]), gemm_of(c, &dyt, &x, &dw, scale, add[1])});
        if (*status != WF_OK)
            *status = wf_call_fail(c, *status, "no memory for packing: use fewer threads or a smaller batch");
        return true;
    }
    *status = product_with(c, given, w, &dx, &(struct wf_matmul_options){.scale = scale, .add = add[0]});
    if (*status == WF_OK)
        *status = product_with(c, &dyt, &x, &dw, &(struct wf_matmul_options){.scale = scale, .add = add[1]});
    return true;
}

/* Y = X W^T + b. With the rows y_i and x_i of Y and X: dX = dY W, dW = sum_i dy_i x_i^T = dY^T X, db = sum_i dy_i. Products and sums are
 * added straight to the gradients. */
wf_status wf_linear_gradients(wf_call *c, const wf_array *dout, double scale)
{
    const wf_array given = as_rows(dout), dy = wf_matrix_of(c, &given);
    wf_status status = WF_OK;
    if (!dy.data)
        return WF_ERR_MEMORY;
    if (!give_both(c, &given, &dy, scale, &status)) {
        if (c->need[0])
            status = give_product(c, 0, &given, &c->in[1], scale);
        if (c->need[1] && status == WF_OK) {
            const wf_array x = wf_matrix_of(c, &c->in[0]), dyt = wf_swap_last(&dy);
            status = give_product(c, 1, &dyt, &x, scale);
        }
    }
    if (c->need[2] && status == WF_OK) {
        const wf_array rows = wf_rows_of(c, &dy);
        return rows.data ? wf_give_column_sums(c, 2, &rows, scale) : WF_ERR_MEMORY;
    }
    return status;
}

static wf_status linear_backward(wf_call *c)
{
    return wf_linear_gradients(c, &c->dout[0], 1);
}

void wf_linear_gradient(const wf_gradient_call *c, wf_tensor *dy)
{
    if (c->need[0])
        c->dx[0] = wf_linear(dy, wf_transpose(c->x[1], 0, 1), NULL);
    if (c->need[1])
        c->dx[1] = wf_matmul(wf_transpose(flat(dy), 0, 1), flat(c->x[0]));
    if (c->inputs > 2 && c->need[2])
        c->dx[2] = wf_sum_dim(flat(dy), 0, false);
}

static void linear_gradient(const wf_gradient_call *c)
{
    wf_linear_gradient(c, c->dy[0]);
}

#define NO_BIAS .inputs = 3, .fill = {WF_FILL_NORMAL, WF_FILL_NORMAL, WF_FILL_ABSENT}
const wf_op wf_op_linear = {
    .name = "linear",
    .operands = "x weight bias",
    .reads = WF_READS_INPUT(0) | WF_READS_INPUT(1),
    .rounds = WF_READS_INPUT(0), /* x is the second operand of dY^T X */
    .shape = linear_shape,
    .forward = linear_forward,
    .backward = linear_backward,
    .gradient = linear_gradient,
    .cases = WF_CASES({"bias", {{3, 4}, {5, 4}, {5}}}, {"no bias", {{3, 4}, {5, 4}}, NO_BIAS}, {"three dims", {{2, 3, 4}, {5, 4}, {5}}},
                      {"four dims", {{2, 1, 3, 4}, {2, 4}, {2}}}, {"a vector", {{4}, {5, 4}, {5}}}, {"one", {{1, 1}, {1, 1}, {1}}},
                      {"no rows", {{-1, 4}, {5, 4}, {5}}}, {"no columns", {{3, -1}, {5, -1}, {5}}}, {"no result", {{3, 4}, {-1, 4}, {-1}}},
                      {"odd", {{13, 17}, {9, 17}, {9}}}, {"many rows", {{290, 3}, {5, 3}, {5}}})};

wf_tensor *wf_linear(wf_tensor *x, wf_tensor *weight, wf_tensor *bias)
{
    return wf_apply(&wf_op_linear, NULL, bias ? 3 : 2, (wf_tensor *[]){x, weight, bias});
}
