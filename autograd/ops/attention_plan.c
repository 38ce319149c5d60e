/* SPDX-License-Identifier: MIT */
/* Prepares a call of attention, and finds the elements of a sequence and a head of keys in each operand. */
#include <math.h>

#include "attention_plan.h"

bool wf_attention_adjoin(const wf_array *a)
{
    return a->dim[a->ndim - 1] <= 1 || a->stride[a->ndim - 1] == 1;
}

struct attention_rows wf_attention_rows(const wf_array *a)
{
    return (struct attention_rows){a->data, a->ndim == 3 ? a->stride[0] : 0, a->stride[a->ndim - 2]};
}

bool wf_attention_operand(wf_call *c, const wf_array *a, struct attention_rows *out)
{
    wf_array x = wf_reals_of(c, a); /* the kernels round what was in bf16 again, which changes nothing */
    if (x.data && !wf_attention_adjoin(&x))
        x = wf_call_contiguous(c, &x);
    *out = wf_attention_rows(&x);
    return x.data != NULL;
}

/* The rows of sequence i: rows first .. first + count - 1 if rows are packed, otherwise all rows of item i of the batch. */
struct part {
    int64_t first, count;
};
static struct part part_of(struct wf_packed packed, int64_t i, int64_t all)
{
    const int32_t *offsets = packed.offsets;
    return offsets ? (struct part){offsets[i], offsets[i + 1] - offsets[i]} : (struct part){0, all};
}

/* The members of struct wf_attention that are the same for all sequences and heads. Dropout gives a number to each query of each head in
 * the global batch: (item H + head) T + query, or (row of q) H + head if q is packed. row_head is the difference of this number from one
 * head to the next, row_query that from one query to the next. */
static struct wf_attention common_of(const struct attention_plan *p)
{
    const struct attention_attr *a = p->attr;
    const wf_call *c = p->c;
    const uint32_t threshold = wf_tape_mode(c->tape) == WF_TRAIN ? wf_dropout_threshold(a->dropout) : 0;
    const wf_real scale = (wf_real)(a->scale != 0 ? a->scale : 1 / sqrt((double)p->e));
    return (struct wf_attention){
        .e = p->e,
        .f = p->f,
        .heads = p->share,
        .per_head = p->queries,
        .precision = c->precision,
        .scale = scale,
        .cap = (wf_real)a->softcap,
        .threshold = threshold,
        .call = c->dropout_call,
        .keep_scale = (wf_real)(65536.0 / (65536.0 - threshold)),
        .seed = c->seed,
        .step = c->step,
        .row_head = a->packed.offsets ? 1 : (uint64_t)p->queries,
        .row_query = a->packed.offsets ? (uint64_t)p->heads : 1,
        .key_scale = scale,
    };
}

bool wf_attention_plan(wf_call *c, struct attention_plan *p)
{
    const struct attention_attr *a = c->attr;
    const int last = c->in[Q].ndim - 1;
    *p = (struct attention_plan){.c = c, .attr = a, .heads = a->heads, .groups = a->kv_heads, .share = a->heads / a->kv_heads};
    p->queries = c->in[Q].dim[last - 1];
    p->keys = c->in[K].dim[last - 1];
    p->e = c->in[Q].dim[last] / a->heads;
    p->f = c->in[V].dim[last] / a->kv_heads;
    p->sequences = a->packed.offsets ? a->packed.count : c->in[Q].dim[0];
    for (int64_t i = 0; i < p->sequences; i++) {
        int64_t t = part_of(a->packed, i, p->queries).count, s = part_of(a->k_packed, i, p->keys).count;
        p->longest = WF_MAX(p->longest, t);
        double each = (double)s * (a->causal ? 0.5 : 1), most = (double)a->window * (a->causal ? 1 : 2) + WF_ATTENTION_QUERIES;
        p->scores += (double)t * (a->window > 0 ? WF_MIN(most, each) : each);
    }
    p->scores *= (double)p->heads;
    const wf_shape mask = wf_attention_scores(c, MASK), bias = wf_attention_scores(c, BIAS);
    if (wf_has(c, MASK))
        p->mask = wf_array_expand(&c->in[MASK], &mask);
    if (wf_has(c, BIAS))
        p->bias = wf_array_expand(&c->in[BIAS], &bias);
    p->common = common_of(p);
    p->out = wf_attention_rows(&c->out[0]);
    return wf_attention_operand(c, &c->in[Q], &p->in[Q]) && wf_attention_operand(c, &c->in[K], &p->in[K]) &&
           wf_attention_operand(c, &c->in[V], &p->in[V]);
}

static wf_real *place(const struct attention_rows *r, int64_t sequence, int64_t row, int64_t column, int64_t *step)
{
    *step = r->step;
    return r->data ? r->data + sequence * r->item + row * r->step + column : NULL;
}

/* The index of the first element for a sequence and a head in a mask or bias [B, H, T, S], or packed [n, H, L, K]. Sets *step to the
 * strides. */
static int64_t begin_of(const wf_array *x, int64_t sequence, int64_t head, struct wf_attention_steps *step)
{
    *step = (struct wf_attention_steps){x->stride[1], x->stride[2], x->stride[3]};
    return sequence * x->stride[0] + head * x->stride[1];
}

struct wf_attention wf_attention_problem(const struct attention_plan *p, int64_t i, int64_t g)
{
    const struct attention_attr *a = p->attr;
    const wf_call *c = p->c;
    const bool packed = a->packed.offsets;
    const struct part t = part_of(a->packed, i, p->queries), s = part_of(a->k_packed, i, p->keys);
    const int64_t h = g * p->share;
    struct wf_attention x = p->common;
    x.queries = t.count;
    x.all_keys = s.count;
    x.keys = a->key_lengths ? a->key_lengths[i] : s.count;
    x.q = place(&p->in[Q], i, t.first, h * p->e, &x.q_step);
    x.k = place(&p->in[K], i, s.first, g * p->e, &x.k_step);
    x.v = place(&p->in[V], i, s.first, g * p->f, &x.v_step);
    x.out = place(&p->out, i, t.first, h * p->f, &x.out_step);
    x.dout = place(&p->dout, i, t.first, h * p->f, &x.dout_step);
    x.dq = place(&p->din[Q], i, t.first, h * p->e, &x.dq_step);
    x.dk = place(&p->din[K], i, s.first, g * p->e, &x.dk_step);
    x.dv = place(&p->din[V], i, s.first, g * p->f, &x.dv_step);
    x.dq_add = p->add[Q];
    x.dk_add = p->add[K];
    x.dv_add = p->add[V];
    if (c->grad) {
        const int64_t place = packed ? h * p->queries + t.first : (i * p->heads + h) * p->queries;
        x.top = (wf_real *)c->saved[0].data + place;
        x.inverse = (wf_real *)c->saved[1].data + place;
    }
    /* Query t has the position `at` + t among the keys. */
    const int64_t at = a->starts ? a->starts[i] : x.all_keys - x.queries, window = a->window < WF_ATTENTION_ALL / 2 ? a->window : 0;
    x.first_limit = a->causal ? at + 1 : window > 0 ? at + window : WF_ATTENTION_ALL;
    x.first_key = window > 0 ? at - window + 1 : -WF_ATTENTION_ALL;
    if (p->mask.data)
        x.mask = (const bool *)p->mask.data + begin_of(&p->mask, i, h, &x.mask_step);
    if (p->bias.data)
        x.bias = (const wf_real *)p->bias.data + begin_of(&p->bias, i, h, &x.bias_step);
    if (p->dbias.data) {
        wf_array d = p->dbias; /* stride 0 along a dimension of size 1, so that the kernel sums over it */
        for (int k = 0; k < d.ndim; k++)
            d.stride[k] = d.dim[k] > 1 ? d.stride[k] : 0;
        x.dbias = (wf_real *)d.data + begin_of(&d, i, h, &x.dbias_step);
    }
    if (c->outputs > 1) {
        x.weights_head = p->queries * p->keys;
        x.weights = (wf_real *)c->out[1].data + (i * p->heads + h) * x.weights_head;
    }
    const uint64_t heads = (uint64_t)p->heads, queries = (uint64_t)p->queries;
    x.first_row =
        packed ? (c->first_row + (uint64_t)t.first) * heads + (uint64_t)h : ((c->first_row + (uint64_t)i) * heads + (uint64_t)h) * queries;
    return x;
}
