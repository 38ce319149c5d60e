/* SPDX-License-Identifier: MIT */
#include "common.h"

struct dropout_attr {
    double p;
};

static wf_status dropout_shape(wf_call *c)
{
    const struct dropout_attr *a = c->attr;
    if (!(a->p >= 0 && a->p < 1))
        return wf_call_fail(c, WF_ERR_ARGUMENT, "p = %g is not in 0 <= p < 1", a->p);
    return wf_same_shape(c);
}

struct dropout {
    const wf_call *c;
    const wf_array *x; /* [rows, d] */
    wf_real *y;
    uint64_t first; /* row of the global batch that row 0 is */
    uint32_t threshold;
    wf_real scale;
};

static void dropout_body(void *ctx, int64_t begin, int64_t end)
{
    const struct dropout *s = ctx;
    int64_t d = s->x->dim[1];
    for (int64_t row = begin; row < end; row++)
        wf_kernel->dropout(d, s->c->seed, s->c->step, s->c->dropout_call, s->first + (uint64_t)row, s->threshold, s->scale,
                           (const wf_real *)s->x->data + row * s->x->stride[0], s->y + row * d);
}

/* first_row counts items of dimension 0; a row here is what the last dimension holds. */
static wf_status drop(wf_call *c, const wf_array *from, const wf_array *to)
{
    wf_array x = wf_rows_of(c, from);
    if (!x.data)
        return WF_ERR_MEMORY;
    int64_t rows = x.dim[0], d = x.dim[1];
    if (rows * d == 0)
        return WF_OK;
    uint32_t threshold = wf_dropout_threshold(((const struct dropout_attr *)c->attr)->p);
    uint64_t per_item = from->ndim > 1 ? (uint64_t)(rows / from->dim[0]) : 1;
    /* Divided by the probability that the threshold stands for, so that the mean is kept exactly. */
    struct dropout s = {c, &x, to->data, c->first_row * per_item, threshold, (wf_real)(65536.0 / (65536.0 - threshold))};
    wf_parallel_ranges(rows, wf_block_rows(d), (double)rows * (10 + 0.2 * (double)d), dropout_body, &s);
    return WF_OK;
}

static wf_status dropout_forward(wf_call *c)
{
    return drop(c, &c->in[0], &c->out[0]);
}

/* y = x mask / (1 - p), so dx = dy mask / (1 - p): the same numbers are drawn again. */
static wf_status dropout_backward(wf_call *c)
{
    wf_array dx = wf_grad_new(c, 0);
    if (!dx.data)
        return WF_ERR_MEMORY;
    wf_status status = drop(c, &c->dout[0], &dx);
    if (status == WF_OK)
        wf_grad_give(c, 0, &dx);
    return status;
}

#define P(x) .attr = &(const struct dropout_attr){x}, .train = true
const wf_op wf_op_dropout = {.name = "dropout",
                             .attr_size = sizeof(struct dropout_attr),
                             .random = true,
                             .reads = WF_READS_NOTHING,
                             .shape = dropout_shape,
                             .forward = dropout_forward,
                             .backward = dropout_backward,
                             .cases = WF_CASES({"half", {{3, 5}}, P(0.5)}, {"tenth", {{2, 3, 17}}, P(0.1)}, {"zero", {{3, 5}}, P(0)},
                                               {"vector", {{33}}, P(0.3)}, {"scalar", {{-2}}, P(0.2)}, {"one column", {{9, 1}}, P(0.5)},
                                               {"empty", {{-1, 4}}, P(0.5)}, {"odd", {{7, 131}}, P(0.9)})};

wf_tensor *wf_dropout(wf_tensor *x, double p)
{
    wf_tape *tape = wf_tape_of(x);
    bool valid = p >= 0 && p < 1;
    if (x && valid && tape && (p == 0 || wf_tape_mode(tape) != WF_TRAIN))
        return x;
    return wf_apply(&wf_op_dropout, &(struct dropout_attr){p}, 1, &x);
}
