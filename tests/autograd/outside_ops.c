/* SPDX-License-Identifier: MIT */
/* Ops as programs outside the tree write them, from public headers alone. They pass the checks of gradients, and have the bits of built-in
 * ops that compute the same. The first stands in docs/ops.md too. */
#include <weft/compute.h>
#include <weft/gradcheck.h>

#include "ops_tools.h"

/* --- y = gelu(x + b): a map, and a sum over broadcast dimensions ----------------------------------------------------- */

static wf_status bias_gelu_shape(wf_call *c)
{
    int last = c->in[0].ndim - 1;
    if (last < 0 || c->in[1].ndim != 1 || c->in[1].dim[0] != c->in[0].dim[last])
        return wf_call_fail(c, WF_ERR_SHAPE, "x must be [..., d], and b [d]");
    c->out[0] = wf_call_like(c, &c->in[0]);
    return WF_OK;
}

static void bias_gelu(const void *ctx, int64_t n, const wf_real *const in[], wf_real *y)
{
    (void)ctx;
    wf_kernel->add(n, in[0], 1, in[1], 1, y);
    wf_kernel->gelu(n, y, y);
}

static void bias_gelu_grad(const void *ctx, int64_t n, const wf_real *const in[], wf_real *dx)
{
    (void)ctx;
    wf_kernel->add(n, in[0], 1, in[1], 1, dx);
    wf_kernel->gelu_grad(n, dx, in[2], dx);
}

static wf_status bias_gelu_forward(wf_call *c)
{
    return wf_map(bias_gelu, NULL, 2, (const wf_array *const[]){&c->in[0], &c->in[1]}, &c->out[0], 0.4);
}

static wf_status bias_gelu_backward(wf_call *c)
{
    wf_array dx = wf_grad_new(c, 0);
    wf_status status = wf_map(bias_gelu_grad, NULL, 3, (const wf_array *const[]){&c->in[0], &c->in[1], &c->dout[0]}, &dx, 0.6);
    for (int i = 1; i >= 0 && status == WF_OK; i--)
        if (c->need[i])
            wf_grad_give(c, i, &dx); /* b's shape broadcasts to that of dx: the engine sums over the rows */
    return status;
}

static const wf_op op_bias_gelu = {
    .name = "bias_gelu",
    .reads = WF_READS_INPUT(0) | WF_READS_INPUT(1),
    .shape = bias_gelu_shape,
    .forward = bias_gelu_forward,
    .backward = bias_gelu_backward,
    .cases = WF_CASES({.in = {{2, 3}, {3}}}, {.in = {{2, 5, 7}, {7}}}, {.in = {{70, 3}, {3}}}, {.in = {{4}, {4}}}, {.in = {{-1, 3}, {3}}}),
};

static wf_tensor *wf_bias_gelu(wf_tensor *x, wf_tensor *b)
{
    return wf_apply(&op_bias_gelu, NULL, 2, (wf_tensor *[]){x, b});
}

/* --- y = s a b^T for batches of matrices: products, attributes ------------------------------------------------------- */

struct scores {
    double scale;
};

static wf_array flip(const wf_array *a)
{
    return wf_array_transpose(*a, a->ndim - 2, a->ndim - 1);
}

static wf_status scores_shape(wf_call *c)
{
    const wf_array *q = &c->in[0], *k = &c->in[1];
    if (q->ndim != 3 || k->ndim != 3 || q->dim[0] != k->dim[0] || q->dim[2] != k->dim[2])
        return wf_call_fail(c, WF_ERR_SHAPE, "a must be [batch, m, d], and b [batch, n, d]");
    c->out[0] = wf_call_shape(WF_REAL, &(wf_shape){3, {q->dim[0], q->dim[1], k->dim[1]}});
    return WF_OK;
}

static wf_status scores_forward(wf_call *c)
{
    const struct scores *s = c->attr;
    wf_array kt = flip(&c->in[1]);
    wf_error error = {0};
    wf_status status = wf_array_matmul(&c->in[0], &kt, &c->out[0], &error, .scale = s->scale, .rows_alone = c->rows_alone);
    return status == WF_OK ? status : wf_call_fail(c, status, "%s", error.message);
}

/* Y = s A B^T: dA = s dY B, dB = s dY^T A, added where the gradients lie. */
static wf_status scores_backward(wf_call *c)
{
    const struct scores *s = c->attr;
    wf_array turned = flip(&c->dout[0]);
    for (int i = 0; i < 2; i++) {
        bool add;
        if (!c->need[i])
            continue;
        wf_array g = wf_grad_into(c, i, &add);
        wf_error error = {0};
        if (!g.data)
            return WF_ERR_MEMORY;
        wf_status status = wf_array_matmul(i == 0 ? &c->dout[0] : &turned, &c->in[1 - i], &g, &error, .scale = s->scale, .add = add);
        if (status != WF_OK)
            return wf_call_fail(c, status, "%s", error.message);
    }
    return WF_OK;
}

static const wf_op op_scores = {
    .name = "scores",
    .attr_size = sizeof(struct scores),
    .reads = WF_READS_INPUT(0) | WF_READS_INPUT(1),
    .shape = scores_shape,
    .forward = scores_forward,
    .backward = scores_backward,
    .cases = WF_CASES({.in = {{2, 3, 4}, {2, 5, 4}}, .attr = &(const struct scores){0.5}},
                      {.in = {{1, 17, 9}, {1, 2, 9}}, .attr = &(const struct scores){-1}}),
};

static wf_tensor *wf_scores(wf_tensor *a, wf_tensor *b, double scale)
{
    return wf_apply(&op_scores, &(struct scores){scale}, 2, (wf_tensor *[]){a, b});
}

/* --- y = the sum of squares of each row: ranges, scratch, workers ---------------------------------------------------- */

struct energy {
    const wf_real *x;
    wf_real *y;
    int64_t d;
};

static void energy_rows(void *ctx, int64_t begin, int64_t end)
{
    const struct energy *e = ctx;
    wf_real *squares = wf_scratch(WF_SCRATCH_OP, (size_t)e->d * sizeof *squares);
    for (int64_t row = begin; row < end; row++) {
        if (!squares) {
            e->y[row] = NAN;
            continue;
        }
        wf_kernel->mul(e->d, e->x + row * e->d, 1, e->x + row * e->d, 1, squares);
        e->y[row] = (wf_real)wf_kernel->sum(e->d, squares);
    }
}

static wf_status energy_shape(wf_call *c)
{
    if (c->in[0].ndim != 2)
        return wf_call_fail(c, WF_ERR_SHAPE, "x must be [rows, d]");
    c->out[0] = wf_call_shape(WF_REAL, &(wf_shape){1, {c->in[0].dim[0]}});
    return WF_OK;
}

static wf_status energy_forward(wf_call *c)
{
    wf_array x = wf_call_contiguous(c, &c->in[0]);
    if (!x.data)
        return WF_ERR_MEMORY;
    struct energy e = {x.data, c->out[0].data, x.dim[1]};
    wf_parallel_ranges(x.dim[0], 16, 0.2 * (double)wf_array_count(&x), energy_rows, &e);
    return WF_OK;
}

/* dx = 2 x dy */
static wf_status energy_backward(wf_call *c)
{
    wf_array dx = wf_grad_new(c, 0), dy = c->dout[0], column = dy;
    column.ndim = 2;
    column.dim[1] = 1;
    column.stride[1] = 1;
    wf_map_binary(wf_kernel->mul, &c->in[0], &column, &dx, 0.1);
    wf_map_affine(2, 0, &dx, &dx);
    wf_grad_give(c, 0, &dx);
    return WF_OK;
}

static const wf_op op_energy = {
    .name = "energy",
    .reads = WF_READS_INPUT(0),
    .shape = energy_shape,
    .forward = energy_forward,
    .backward = energy_backward,
    .cases = WF_CASES({.in = {{3, 5}}}, {.in = {{40, 33}}}, {.in = {{-1, 3}}}),
};

/* --- the tests ------------------------------------------------------------------------------------------------------- */

START_TEST(gradients)
{
    static const wf_op *const ops[] = {&op_bias_gelu, &op_scores, &op_energy};
    for (int i = 0; i < 3; i++)
        ck_ok(wf_check_op(ops[i], NULL, error));
}
END_TEST

/* Values and gradients of an op from outside have the bits of the built-in ones that compute the same, with any number of threads. */
START_TEST(bits_of_ours)
{
    enum { ROWS = 150, D = 70 };
    static const int team[] = {1, 2, 5};
    for (int t = 0; t < 3; t++)
        for (int which = 0; which < 2; which++) {
            ck_ok(wf_init(error, .threads = team[t]));
            wf_real *got[2][3];
            int64_t size[3] = {0};
            for (int ours = 0; ours < 2; ours++) {
                begin(WF_TRAIN);
                wf_tensor *x = normal(1, WF_SHAPE(2, ROWS, D)), *b = which ? normal(2, WF_SHAPE(2, 33, D)) : normal(2, WF_SHAPE(D)), *y;
                if (which)
                    y = ours ? wf_scale(wf_matmul(x, wf_transpose(b, 1, 2)), 0.5) : wf_scores(x, b, 0.5);
                else
                    y = ours ? wf_gelu(wf_add(x, b)) : wf_bias_gelu(x, b);
                size[0] = count_of(y), size[1] = count_of(x), size[2] = count_of(b);
                got[ours][0] = value_of(y);
                ran(wf_backward(wf_sum(wf_mul(y, y))));
                got[ours][1] = gradient_of(x), got[ours][2] = gradient_of(b);
            }
            for (int i = 0; i < 3; i++) {
                ck_assert_msg(memcmp(got[0][i], got[1][i], (size_t)size[i] * sizeof(wf_real)) == 0, "op %d, %d threads, array %d", which,
                              team[t], i);
                free(got[0][i]), free(got[1][i]);
            }
        }
}
END_TEST

WF_TEST_MAIN("outside ops", gradients, bits_of_ours)
