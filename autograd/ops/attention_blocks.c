/* SPDX-License-Identifier: MIT */
/* Attention's work: which block computes what. The numeric part is in core/kernels/attention_*.c; what is kept for backward
 * is one number a query and head. */
#include "attention.h"

#include <math.h>
#include <stdatomic.h>

#include <weft/internal/attention.h>
#include <weft/internal/kernels.h>
#include <weft/internal/parallel.h>

/* An operand [B, T, width] or packed [N, width] with its elements side by side. */
struct rows {
    wf_real *data;
    int64_t item, step;
};

struct plan {
    const wf_call *c;
    const struct attention_attr *attr;
    int64_t sequences, heads, groups, share; /* `share` query heads to each of the groups of keys */
    int64_t queries, keys, e, f;             /* T and S; of packed rows N and M */
    int64_t longest;                         /* T of the longest sequence */
    double scores;                           /* that are computed, all heads */
    struct rows q, k, v, out, dout, dq, dk, dv;
    bool add[3];
    wf_array mask; /* as [B, H, T, S] */
    uint32_t threshold;
    int64_t chunk, chunks; /* forward: queries of a block */
    _Atomic bool no_memory;
};

/* --- the plan ------------------------------------------------------------------------------------------------------ */

static bool elements_adjoin(const wf_array *a)
{
    return a->dim[a->ndim - 1] <= 1 || a->stride[a->ndim - 1] == 1;
}

static struct rows rows_of(const wf_array *a)
{
    return (struct rows){a->data, a->ndim == 3 ? a->stride[0] : 0, a->stride[a->ndim - 2]};
}

static bool operand(wf_call *c, const wf_array *a, struct rows *out)
{
    wf_array x = elements_adjoin(a) ? *a : wf_call_dense(c, a);
    *out = rows_of(&x);
    return x.data != NULL;
}

static bool make_plan(wf_call *c, struct plan *p)
{
    const struct attention_attr *a = c->attr;
    const int last = c->in[Q].ndim - 1;
    *p = (struct plan){.c = c, .attr = a, .heads = a->heads, .groups = a->kv_heads, .share = a->heads / a->kv_heads};
    p->queries = c->in[Q].dim[last - 1];
    p->keys = c->in[K].dim[last - 1];
    p->e = c->in[Q].dim[last] / a->heads;
    p->f = c->in[V].dim[last] / a->kv_heads;
    p->sequences = wf_attention_packed(a) ? a->sequences : c->in[Q].dim[0];
    p->longest = wf_attention_packed(a) ? 0 : p->queries;
    p->scores = wf_attention_packed(a) ? 0 : (double)p->sequences * (double)p->queries * (double)p->keys;
    for (int i = 0; wf_attention_packed(a) && i < a->sequences; i++) {
        int64_t t = a->q_offsets[i + 1] - a->q_offsets[i], s = a->k_offsets[i + 1] - a->k_offsets[i];
        p->longest = t > p->longest ? t : p->longest;
        p->scores += (double)t * (double)s;
    }
    p->scores *= (double)p->heads * (a->causal ? 0.5 : 1);
    if (wf_has(c, MASK)) {
        wf_shape full = {4, {c->in[Q].dim[0], a->heads, p->queries, p->keys}};
        p->mask = wf_array_expand(&c->in[MASK], &full);
    }
    if (a->dropout > 0 && wf_tape_mode(c->tape) == WF_TRAIN) {
        p->threshold = (uint32_t)(a->dropout * 65536 + 0.5);
        p->threshold = p->threshold > 65535 ? 65535 : p->threshold;
    }
    p->out = rows_of(&c->out[0]);
    return operand(c, &c->in[Q], &p->q) && operand(c, &c->in[K], &p->k) && operand(c, &c->in[V], &p->v);
}

static wf_real *place(const struct rows *r, int64_t sequence, int64_t row, int64_t column)
{
    return r->data ? r->data + sequence * r->item + row * r->step + column : NULL;
}

/* What a block works on: sequence i and group g of heads. */
static struct wf_attention problem(const struct plan *p, int64_t i, int64_t g)
{
    const struct attention_attr *a = p->attr;
    const wf_call *c = p->c;
    const int64_t h = g * p->share, t0 = wf_attention_packed(a) ? a->q_offsets[i] : 0, s0 = wf_attention_packed(a) ? a->k_offsets[i] : 0;
    struct wf_attention x = {.e = p->e, .f = p->f, .heads = p->share};
    x.queries = wf_attention_packed(a) ? a->q_offsets[i + 1] - t0 : p->queries;
    x.all_keys = wf_attention_packed(a) ? a->k_offsets[i + 1] - s0 : p->keys;
    x.keys = a->key_lengths ? a->key_lengths[i] : x.all_keys;
    x.q = place(&p->q, i, t0, h * p->e);
    x.k = place(&p->k, i, s0, g * p->e);
    x.v = place(&p->v, i, s0, g * p->f);
    x.q_step = p->q.step;
    x.k_step = p->k.step;
    x.v_step = p->v.step;
    x.out = place(&p->out, i, t0, h * p->f);
    x.out_step = p->out.step;
    if (c->grad)
        x.log_sum = (wf_real *)c->saved[0].data + (wf_attention_packed(a) ? h * p->queries + t0 : (i * p->heads + h) * p->queries);
    x.log_sum_head = p->queries;
    x.scale = (wf_real)(a->scale != 0 ? a->scale : 1 / sqrt((double)p->e));
    x.first_limit = a->causal ? x.all_keys - x.queries + 1 : WF_ATTENTION_ALL;
    if (p->mask.data) {
        const int64_t *stride = p->mask.stride;
        x.mask = (const bool *)p->mask.data + i * stride[0] + h * stride[1];
        x.mask_head = stride[1];
        x.mask_query = stride[2];
        x.mask_key = stride[3];
    }
    if (c->outputs > 1) {
        x.weights_head = p->queries * p->keys;
        x.weights = (wf_real *)c->out[1].data + (i * p->heads + h) * x.weights_head;
    }
    /* Row of the global batch: ((item H + head) T + query) or, packed, (row H + head). */
    x.threshold = p->threshold;
    x.keep_scale = (wf_real)(65536.0 / (65536.0 - p->threshold));
    x.seed = c->seed;
    x.step = c->step;
    x.call = c->dropout_call;
    const uint64_t heads = (uint64_t)p->heads, queries = (uint64_t)p->queries;
    x.first_row = wf_attention_packed(a) ? (c->first_row + (uint64_t)t0) * heads + (uint64_t)h
                                         : ((c->first_row + (uint64_t)i) * heads + (uint64_t)h) * queries;
    x.row_head = wf_attention_packed(a) ? 1 : queries;
    x.row_query = wf_attention_packed(a) ? heads : 1;
    return x;
}

/* --- forward ------------------------------------------------------------------------------------------------------- */

enum {
    FEW = 8,       /* queries up to which the other layout is faster */
    BLOCKS = 32,   /* forward cuts sequences when there are fewer heads than this ... */
    SHORTEST = 128 /* ... into pieces not shorter than this, as each packs its keys anew */
};

static void forward_block(void *ctx, int64_t block)
{
    struct plan *p = ctx;
    int64_t head = block / p->chunks, begin = block % p->chunks * p->chunk;
    struct wf_attention a = problem(p, head / p->groups, head % p->groups);
    int64_t end = a.queries - begin < p->chunk ? a.queries : begin + p->chunk;
    if (begin >= end)
        return;
    if (a.queries <= FEW && !a.log_sum && !a.weights && !a.threshold) {
        wf_kernel->attention_rows(&a, begin, end);
        return;
    }
    wf_real *scratch = wf_scratch(WF_SCRATCH_OP, (size_t)wf_attention_forward_scratch(a.keys, a.e, a.f) * sizeof *scratch);
    if (scratch)
        wf_kernel->attention_forward(&a, begin, end, scratch);
    else
        atomic_store(&p->no_memory, true);
}

wf_status wf_attention_run(wf_call *c)
{
    struct plan p;
    if (!make_plan(c, &p))
        return WF_ERR_MEMORY;
    int64_t heads = p.sequences * p.groups, most = (p.longest + SHORTEST - 1) / SHORTEST;
    p.chunks = heads >= BLOCKS || heads == 0 ? 1 : (BLOCKS + heads - 1) / heads;
    p.chunks = p.chunks > most ? most > 0 ? most : 1 : p.chunks;
    p.chunk = (p.longest + p.chunks * WF_ATTENTION_QUERIES - 1) / (p.chunks * WF_ATTENTION_QUERIES) * WF_ATTENTION_QUERIES;
    double cost = p.scores * (0.5 + 0.03 * (double)(p.e + p.f)) * (c->outputs > 1 ? 2 : 1);
    wf_parallel(heads * p.chunks, cost, forward_block, &p);
    return p.no_memory ? wf_call_fail(c, WF_ERR_MEMORY, "no memory for tiles") : WF_OK;
}

/* --- backward ------------------------------------------------------------------------------------------------------ */

static void backward_block(void *ctx, int64_t block)
{
    struct plan *p = ctx;
    int64_t i = block / p->groups, g = block % p->groups, h = g * p->share;
    struct wf_attention a = problem(p, i, g);
    const int64_t t0 = wf_attention_packed(p->attr) ? p->attr->q_offsets[i] : 0,
                  s0 = wf_attention_packed(p->attr) ? p->attr->k_offsets[i] : 0;
    a.dout = place(&p->dout, i, t0, h * p->f);
    a.dout_step = p->dout.step;
    a.dq = place(&p->dq, i, t0, h * p->e);
    a.dk = place(&p->dk, i, s0, g * p->e);
    a.dv = place(&p->dv, i, s0, g * p->f);
    a.dq_step = p->dq.step;
    a.dk_step = p->dk.step;
    a.dv_step = p->dv.step;
    a.dq_add = p->add[Q];
    a.dk_add = p->add[K];
    a.dv_add = p->add[V];
    wf_real *scratch = wf_scratch(WF_SCRATCH_OP, (size_t)wf_attention_backward_scratch(a.keys, a.e, a.f) * sizeof *scratch);
    if (scratch)
        wf_kernel->attention_backward(&a, scratch);
    else
        atomic_store(&p->no_memory, true);
}

/* First and one past the last address that a's elements can have. */
static void span(const wf_array *a, uintptr_t *first, uintptr_t *end)
{
    int64_t low = 0, high = 0;
    for (int d = 0; d < a->ndim; d++)
        *(a->stride[d] < 0 ? &low : &high) += (a->dim[d] - 1) * a->stride[d];
    *first = (uintptr_t)a->data + (uintptr_t)(low * (int64_t)sizeof(wf_real));
    *end = (uintptr_t)a->data + (uintptr_t)((high + 1) * (int64_t)sizeof(wf_real));
}

/* Whether a and b surely share no element: apart in memory, or different columns of one matrix (slices of q, k, v). */
static bool apart(const wf_array *a, const wf_array *b)
{
    if (wf_array_count(a) == 0 || wf_array_count(b) == 0)
        return true;
    uintptr_t a_first, a_end, b_first, b_end;
    span(a, &a_first, &a_end);
    span(b, &b_first, &b_end);
    if (a_end <= b_first || b_end <= a_first)
        return true;
    const int last = a->ndim - 1;
    const int64_t step = a->stride[last - 1];
    if (step <= 0 || b->stride[last - 1] != step || (last == 2 && (a->stride[0] % step != 0 || b->stride[0] % step != 0)))
        return false;
    int64_t column = ((const wf_real *)b->data - (const wf_real *)a->data) % step;
    column += column < 0 ? step : 0;
    return column >= a->dim[last] && column + b->dim[last] <= step;
}

/* Whether backward may write into the gradient of input i itself: rows in order, nothing shared with the other inputs. */
static bool direct(const wf_call *c, int i)
{
    const wf_array *x = &c->in[i];
    for (int d = 0; d < x->ndim; d++)
        if (x->dim[d] > 1 && x->stride[d] < 1)
            return false;
    if (!elements_adjoin(x))
        return false;
    for (int j = Q; j <= V; j++)
        if (j != i && c->need[j] && !apart(x, &c->in[j]))
            return false;
    return true;
}

/* The derivation stands above the kernel, core/kernels/attention_backward.c. */
wf_status wf_attention_run_backward(wf_call *c)
{
    struct plan p;
    if (!c->dout[0].data)
        return WF_OK;
    if (!make_plan(c, &p) || !operand(c, &c->dout[0], &p.dout))
        return WF_ERR_MEMORY;
    wf_array gradient[3];
    struct rows *to[3] = {&p.dq, &p.dk, &p.dv};
    for (int i = Q; i <= V; i++) {
        if (!c->need[i])
            continue;
        gradient[i] = direct(c, i) ? wf_grad_into(c, i, &p.add[i]) : wf_grad_new(c, i);
        if (!gradient[i].data)
            return WF_ERR_MEMORY;
        *to[i] = rows_of(&gradient[i]);
    }
    double cost = p.scores * (1 + 0.08 * (double)(p.e + p.f));
    wf_parallel(p.sequences * p.groups, cost, backward_block, &p);
    for (int i = Q; i <= V; i++)
        if (c->need[i] && !direct(c, i))
            wf_grad_give(c, i, &gradient[i]);
    return p.no_memory ? wf_call_fail(c, WF_ERR_MEMORY, "no memory for tiles") : WF_OK;
}
