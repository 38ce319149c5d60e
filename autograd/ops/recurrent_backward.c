/* SPDX-License-Identifier: MIT */
/* The backward of lstm and gru. The steps run from the last to the first; each computes the gradients of its gates before their
 * activations, D_t, with the product D_(t+1) W_hh (core/kernels/recurrent.c has the derivation). Then, with all D_t in one matrix D and all
 * h_(t-1) in one matrix P, dW_hh = D^T P, and the gradients of x, W_ih and b_ih are those of a linear layer whose result has the gradient
 * D. For a GRU the gradients of n before its activation differ by r: D has both, n for x and s for h. */
#include <string.h>

#include "recurrent.h"

/* Sequences whose last step is s + 1 or later have a product; those whose last step is s come after them. Step -1 is for the initial
 * states. */
static int64_t backward_step(const struct recurrence *r, int64_t s, int64_t begin, int64_t end, struct wf_cell_row *rows, int64_t *products)
{
    const int64_t H = r->hidden;
    int64_t count = 0;
    for (int last = 0; last < 2; last++) {
        for (int64_t b = begin; b < end; b++) {
            const int64_t steps = wf_recurrence_length(r, b);
            if (last ? steps != s + 1 : steps <= s + 1)
                continue;
            struct wf_cell_row *row = &rows[count++];
            *row = (struct wf_cell_row){.from = last ? NULL : r->grads + wf_recurrence_place(r, b, s + 1) * 4 * H,
                                        .last = last && r->dh ? r->dh + b * H : NULL,
                                        .carry = r->carry + b * H};
            if (s < 0) {
                row->start = r->start + b * H;
                continue;
            }
            const int64_t now = wf_recurrence_place(r, b, s), before = s > 0 ? wf_recurrence_place(r, b, s - 1) : 0;
            const wf_real *first = r->gru ? r->h0 : r->c0;
            row->gates = r->gate + now * r->gates;
            row->kept = r->kept + now * H;
            row->before = s > 0 ? (r->gru ? r->y : r->kept) + before * H : first ? first + b * H : NULL;
            row->dy = r->dy ? r->dy + now * H : NULL;
            row->grads = r->grads + now * 4 * H;
        }
        if (!last)
            *products = count;
    }
    return count;
}

struct before {
    const struct recurrence *r;
    wf_real *to; /* [N, H] */
};

/* The state h before each step of sequence b. */
static void states_before(void *ctx, int64_t b)
{
    const struct before *p = ctx;
    const struct recurrence *r = p->r;
    const size_t bytes = (size_t)r->hidden * sizeof(wf_real);
    for (int64_t s = 0, steps = wf_recurrence_length(r, b); s < steps; s++) {
        wf_real *to = p->to + wf_recurrence_place(r, b, s) * r->hidden;
        const wf_real *from = s > 0 ? r->y + wf_recurrence_place(r, b, s - 1) * r->hidden : r->h0 ? r->h0 + b * r->hidden : NULL;
        if (from)
            memcpy(to, from, bytes);
        else
            memset(to, 0, bytes);
    }
}

/* Gives the gradients of W_hh or b_hh: of the rows 0 .. G H - 1 from the columns of D, [N, 4 H]. The LSTM's four blocks of H columns are
 * adjacent in D; of the GRU's three, that of s is the fourth in D. `part` computes rows begin ... of the gradient from columns of D. */
static wf_status give_recurrent(wf_call *c, const struct recurrence *r, int i, const wf_array *d, const wf_array *states)
{
    bool add;
    const wf_array g = wf_grad_into(c, i, &add);
    const int64_t H = r->hidden, first = r->gru ? 2 * H : 4 * H;
    wf_status status = g.data ? WF_OK : WF_ERR_MEMORY;
    for (int part = 0; part < (r->gru ? 2 : 1) && status == WF_OK; part++) {
        const wf_array columns = wf_array_slice(*d, 1, part ? 3 * H : 0, part ? H : first);
        const wf_array rows = wf_array_slice(g, 0, part ? first : 0, part ? H : first);
        status = states ? wf_product_of_columns(c, &columns, states, &rows, add) : wf_sum_into(c, &rows, &columns, 1, add);
    }
    return status;
}

static wf_status give_weights(wf_call *c, const struct recurrence *r)
{
    const wf_array d = wf_array_contiguous(r->grads, WF_REAL, &(wf_shape){2, {r->n, 4 * r->hidden}});
    wf_shape shape = wf_array_shape(&c->in[X]);
    shape.dim[shape.ndim - 1] = 4 * r->hidden;
    const wf_array all = wf_array_contiguous(r->grads, WF_REAL, &shape), dx = wf_array_slice(all, shape.ndim - 1, 0, r->gates);
    wf_status status = wf_linear_gradients(c, &dx, 1);
    if (c->need[W_HH] && status == WF_OK) {
        struct before p = {r, wf_recurrence_temp(c, r->n * r->hidden)};
        if (!p.to)
            return WF_ERR_MEMORY;
        wf_parallel(r->sequences, 0.2 * (double)r->n * (double)r->hidden, states_before, &p);
        const wf_array states = wf_array_contiguous(p.to, WF_REAL, &(wf_shape){2, {r->n, r->hidden}});
        status = give_recurrent(c, r, W_HH, &d, &states);
    }
    if (wf_has(c, B_HH) && c->need[B_HH] && status == WF_OK)
        status = give_recurrent(c, r, B_HH, &d, NULL);
    return status;
}

/* The contiguous elements of output i's gradient; NULL if there is none. False without memory. */
static bool gradient_of(wf_call *c, int i, const wf_real **d)
{
    *d = NULL;
    if (i >= c->outputs || !c->dout[i].data)
        return true;
    *d = wf_call_contiguous(c, &c->dout[i]).data;
    return *d != NULL;
}

wf_status wf_recurrent_backward(wf_call *c)
{
    struct recurrence r;
    const wf_real *dc;
    if (!wf_recurrence_of(c, true, &r) || !gradient_of(c, Y, &r.dy) || !gradient_of(c, H_LAST, &r.dh) || !gradient_of(c, C_LAST, &dc))
        return WF_ERR_MEMORY;
    const bool need_h0 = wf_has(c, H0) && c->need[H0], need_c0 = wf_has(c, C0) && c->need[C0];
    const wf_shape state = {2, {r.sequences, r.hidden}};
    const int64_t count = r.sequences * r.hidden;
    r.gate = c->saved[GATES].data;
    r.kept = c->saved[KEPT].data;
    r.y = c->out[Y].data;
    r.grads = wf_recurrence_temp(c, r.n * 4 * r.hidden);
    wf_array carry = wf_call_temp(c, WF_REAL, &state), start = need_h0 ? wf_call_temp(c, WF_REAL, &state) : (wf_array){0};
    r.carry = carry.data;
    r.start = start.data;
    if (!r.grads || (count > 0 && (!r.carry || (need_h0 && !r.start))))
        return WF_ERR_MEMORY;
    if (count > 0 && dc)
        memcpy(r.carry, dc, (size_t)count * sizeof *dc);
    else if (count > 0)
        memset(r.carry, 0, (size_t)count * sizeof *r.carry);
    wf_status status = wf_recurrence_run(&r, true, backward_step, r.longest - 1, need_h0 ? -2 : -1);
    if (status == WF_OK)
        status = give_weights(c, &r);
    if (need_h0 && status == WF_OK)
        wf_grad_give(c, H0, &start);
    if (need_c0 && status == WF_OK)
        wf_grad_give(c, C0, &carry);
    return status;
}
