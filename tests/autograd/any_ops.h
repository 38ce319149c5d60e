/* SPDX-License-Identifier: MIT */
/* Ops whose authors made mistakes, for random calls. The attributes choose the mistakes. */
#ifndef TESTS_ANY_OPS_H
#define TESTS_ANY_OPS_H

#include "any.h"

struct mistakes {
    int shape, forward, backward, number;
};

static wf_shape odd_shape(int number)
{
    wf_shape s = {2, {4, 6}};
    switch (number & 7) {
    case 0:
        s.ndim = 7;
        break;
    case 1:
        s.ndim = -1;
        break;
    case 2:
        s.dim[0] = -3;
        break;
    case 3:
        s.dim[0] = (int64_t)1 << 40;
        break;
    case 4:
        s.dim[0] = s.dim[1] = (int64_t)1 << 32;
        break;
    case 5:
        s.dim[1] = 0;
        break;
    default:
        s.ndim = 1;
        break;
    }
    return s;
}

static wf_status mistaken_shape(wf_call *c)
{
    const struct mistakes *m = c->attr;
    wf_shape odd = odd_shape(m->number);
    for (int j = 0; j < c->outputs; j++)
        c->out[j] = c->inputs > 0 && c->in[0].data ? wf_call_like(c, &c->in[0]) : wf_call_shape(WF_REAL, &(wf_shape){2, {4, 6}});
    switch (m->shape) {
    case 1:
        return (wf_status)(1 + m->number % 10); /* without a message */
    case 2:
        return wf_call_fail(c, WF_ERR_SHAPE, "refused");
    case 3:
        c->out[0] = wf_call_shape(WF_REAL, &odd);
        break;
    case 4:
        c->out[0] = (wf_array){.ndim = odd.ndim, .dtype = WF_REAL, .dim = {odd.dim[0], odd.dim[1]}};
        break;
    case 5:
        c->out[0].dtype = (wf_dtype)(m->number % 40);
        break;
    case 6:
        c->saved[m->number % WF_MAX_SAVED] = wf_call_shape(WF_REAL, &odd);
        break;
    case 7:
        c->saved[m->number % WF_MAX_SAVED] = wf_call_shape((wf_dtype)(m->number % 20), &(wf_shape){1, {5}});
        break;
    case 8:
        c->out[0].ndim = -1;
        break;
    case 9:
        wf_call_fail(c, WF_ERR_SHAPE, "refused, but not returned");
        break;
    }
    return WF_OK;
}

static void fill_with_zeros(const wf_array *a)
{
    if (a->data)
        memset(a->data, 0, (size_t)wf_array_count(a) * wf_dtype_size(a->dtype));
}

static wf_status mistaken_forward(wf_call *c)
{
    const struct mistakes *m = c->attr;
    wf_shape odd = odd_shape(m->number);
    for (int j = 0; j < c->outputs; j++)
        fill_with_zeros(&c->out[j]);
    switch (m->forward) {
    case 1:
        return (wf_status)(1 + m->number % 10);
    case 2:
        wf_call_fail(c, WF_ERR_NUMERIC, "refused, but not returned");
        break;
    case 3:
        wf_call_temp(c, (wf_dtype)(m->number % 20), &odd);
        break;
    case 4:
        wf_tape_memory(c->tape, (size_t)1 << (m->number % 64));
        break;
    case 5:
        if (c->inputs > 0)
            wf_call_contiguous(c, &c->in[0]);
        break;
    }
    return WF_OK;
}

static wf_status mistaken_backward(wf_call *c)
{
    const struct mistakes *m = c->attr;
    wf_shape odd = odd_shape(m->number);
    bool accumulate;
    int input = m->number % 12 - 2;
    wf_array g;
    switch (m->backward) {
    case 1:
        return (wf_status)(1 + m->number % 10);
    case 2:
        return WF_OK; /* without a gradient */
    case 3:
        g = wf_grad_new(c, input);
        fill_with_zeros(&g);
        wf_grad_give(c, input, &g);
        return WF_OK;
    case 4:
        wf_grad_into(c, input, &accumulate);
        return WF_OK;
    case 5:
        g = wf_call_temp(c, WF_REAL, &odd);
        fill_with_zeros(&g);
        wf_grad_give(c, 0, &g);
        return WF_OK;
    case 6:
        g = wf_call_temp(c, (wf_dtype)(m->number % WF_DTYPE_COUNT), &(wf_shape){2, {4, 6}});
        fill_with_zeros(&g);
        wf_grad_give(c, 0, &g);
        return WF_OK;
    }
    for (int i = 0; i < c->inputs; i++) {
        if (!c->need[i])
            continue;
        g = wf_grad_new(c, i);
        if (!g.data)
            return WF_ERR_MEMORY;
        for (int64_t k = 0; k < wf_array_count(&g); k++)
            ((wf_real *)g.data)[k] = 1;
        wf_grad_give(c, i, &g);
        if (m->backward == 7)
            wf_grad_give(c, i, &g);
    }
    return WF_OK;
}

static const wf_op mistaken_ops[] = {
    {.name = "mistaken",
     .attr_size = sizeof(struct mistakes),
     .shape = mistaken_shape,
     .forward = mistaken_forward,
     .backward = mistaken_backward},
    {.name = "constant", .attr_size = sizeof(struct mistakes), .shape = mistaken_shape, .forward = mistaken_forward},
    {.name = "two",
     .attr_size = sizeof(struct mistakes),
     .outputs = 2,
     .random = true,
     .reads = WF_READS_NOTHING,
     .shape = mistaken_shape,
     .forward = mistaken_forward,
     .backward = mistaken_backward},
    {.name = "view", .attr_size = sizeof(struct mistakes), .view = true, .shape = mistaken_shape, .backward = mistaken_backward},
    {.name = "no forward", .attr_size = sizeof(struct mistakes), .shape = mistaken_shape},
    {.name = "no shape", .attr_size = sizeof(struct mistakes), .forward = mistaken_forward},
};

static wf_tensor *mistaken_call(wf_tensor *const in[WF_MAX_INPUTS])
{
    struct mistakes m = {.shape = below(6) ? 0 : (int)below(10),
                         .forward = below(6) ? 0 : (int)below(6),
                         .backward = below(2) ? 0 : (int)below(8),
                         .number = (int)below(1000)};
    const wf_op *op = &mistaken_ops[below(20) ? below(4) : below(6)];
    int inputs = below(8) ? 1 + (int)below(3) : (int)below(12) - 1;
    wf_tensor *out[8] = {NULL}, *more[12] = {NULL};
    memcpy(more, in, WF_MAX_INPUTS * sizeof *more);
    if (below(3))
        return wf_apply(op, seldom(50) ? NULL : &m, inputs, more);
    int outputs = (int)below(7);
    wf_apply_multi(op, &m, inputs, more, outputs, out);
    for (int j = 0; j < outputs; j++)
        ck_assert_ptr_nonnull(out[j]);
    return outputs > 0 ? out[0] : in[0];
}

#endif
