/* SPDX-License-Identifier: MIT */
/* Fused attention: which block of work computes what, and its cases. The numeric part is in
 * core/kernels/attention_*.c; what is kept for backward is one number a query and head. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include <weft/internal/attention.h>

#include "attention.h"
#include "common.h"

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
    struct rows in[3], out, dout, din[3];    /* data NULL where there is none */
    bool add[3];
    wf_array mask, bias; /* as [B, H, T, S] */
    wf_array dbias;      /* so, but of size 1 where the bias is broadcast over batch, queries or keys; data NULL where not wanted */
    bool in_turn;        /* backward: one block does all sequences, which add to one gradient of the bias */
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
    wf_array x = elements_adjoin(a) ? *a : wf_call_contiguous(c, a);
    *out = rows_of(&x);
    return x.data != NULL;
}

/* The rows of sequence i: of all of them where none are packed. */
struct part {
    int64_t first, count;
};
static struct part part_of(const int32_t *offsets, int64_t i, int64_t all)
{
    return offsets ? (struct part){offsets[i], offsets[i + 1] - offsets[i]} : (struct part){0, all};
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
    p->sequences = a->q_offsets ? a->sequences : c->in[Q].dim[0];
    for (int64_t i = 0; i < p->sequences; i++) {
        int64_t t = part_of(a->q_offsets, i, p->queries).count, s = part_of(a->k_offsets, i, p->keys).count;
        p->longest = t > p->longest ? t : p->longest;
        double each = (double)s * (a->causal ? 0.5 : 1), most = (double)a->window * (a->causal ? 1 : 2) + WF_ATTENTION_QUERIES;
        p->scores += (double)t * (a->window > 0 && most < each ? most : each);
    }
    p->scores *= (double)p->heads;
    const wf_shape full = {4, {c->in[Q].dim[0], a->heads, p->queries, p->keys}}; /* packed rows have neither mask nor bias */
    if (wf_has(c, MASK))
        p->mask = wf_array_expand(&c->in[MASK], &full);
    if (wf_has(c, BIAS))
        p->bias = wf_array_expand(&c->in[BIAS], &full);
    if (wf_tape_mode(c->tape) == WF_TRAIN)
        p->threshold = wf_dropout_threshold(a->dropout);
    p->out = rows_of(&c->out[0]);
    return operand(c, &c->in[Q], &p->in[Q]) && operand(c, &c->in[K], &p->in[K]) && operand(c, &c->in[V], &p->in[V]);
}

static wf_real *place(const struct rows *r, int64_t sequence, int64_t row, int64_t column, int64_t *step)
{
    *step = r->step;
    return r->data ? r->data + sequence * r->item + row * r->step + column : NULL;
}

/* Where a mask or bias [B, H, T, S] begins for a sequence and a head. */
static int64_t begin_of(const wf_array *x, int64_t sequence, int64_t head, struct wf_attention_steps *step)
{
    *step = (struct wf_attention_steps){x->stride[1], x->stride[2], x->stride[3]};
    return sequence * x->stride[0] + head * x->stride[1];
}

/* What a block works on: sequence i and group g of heads. */
static struct wf_attention problem(const struct plan *p, int64_t i, int64_t g)
{
    const struct attention_attr *a = p->attr;
    const wf_call *c = p->c;
    const bool packed = a->q_offsets;
    const struct part t = part_of(a->q_offsets, i, p->queries), s = part_of(a->k_offsets, i, p->keys);
    const int64_t h = g * p->share;
    struct wf_attention x = {.queries = t.count, .all_keys = s.count, .e = p->e, .f = p->f, .heads = p->share};
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
    if (c->grad)
        x.log_sum = (wf_real *)c->saved[0].data + (packed ? h * p->queries + t.first : (i * p->heads + h) * p->queries);
    x.log_sum_head = p->queries;
    x.scale = (wf_real)(a->scale != 0 ? a->scale : 1 / sqrt((double)p->e));
    x.cap = (wf_real)a->softcap;
    /* Query t is at position at + t of the keys. */
    const int64_t at = a->starts ? a->starts[i] : x.all_keys - x.queries, window = a->window < WF_ATTENTION_ALL / 2 ? a->window : 0;
    x.first_limit = a->causal ? at + 1 : window > 0 ? at + window : WF_ATTENTION_ALL;
    x.first_key = window > 0 ? at - window + 1 : -WF_ATTENTION_ALL;
    if (p->mask.data)
        x.mask = (const bool *)p->mask.data + begin_of(&p->mask, i, h, &x.mask_step);
    if (p->bias.data)
        x.bias = (const wf_real *)p->bias.data + begin_of(&p->bias, i, h, &x.bias_step);
    if (p->dbias.data) {
        wf_array d = p->dbias; /* sizes of 1 are summed over */
        for (int k = 0; k < d.ndim; k++)
            d.stride[k] = d.dim[k] > 1 ? d.stride[k] : 0;
        x.dbias = (wf_real *)d.data + begin_of(&d, i, h, &x.dbias_step);
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
    x.first_row =
        packed ? (c->first_row + (uint64_t)t.first) * heads + (uint64_t)h : ((c->first_row + (uint64_t)i) * heads + (uint64_t)h) * queries;
    x.row_head = packed ? 1 : queries;
    x.row_query = packed ? heads : 1;
    return x;
}

/* --- forward ------------------------------------------------------------------------------------------------------- */

enum {
    FEW = 8,       /* queries up to which the other layout is faster */
    BLOCKS = 32,   /* forward cuts sequences when there are fewer heads than this ... */
    SHORTEST = 128 /* ... into pieces not shorter than this, or four windows, as each packs its keys anew */
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
        wf_kernel->internal->attention_rows(&a, begin, end);
        return;
    }
    wf_real *scratch =
        wf_scratch(WF_SCRATCH_OP, (size_t)wf_attention_forward_scratch(wf_attention_span(&a, begin, end), a.e, a.f) * sizeof *scratch);
    if (scratch)
        wf_kernel->internal->attention_forward(&a, begin, end, scratch);
    else
        atomic_store(&p->no_memory, true);
}

static wf_status attention_forward(wf_call *c)
{
    struct plan p;
    if (!make_plan(c, &p))
        return WF_ERR_MEMORY;
    const int64_t window = p.attr->window < p.longest ? p.attr->window : 0, shortest = 4 * window > SHORTEST ? 4 * window : SHORTEST;
    int64_t heads = p.sequences * p.groups, most = (p.longest + shortest - 1) / shortest;
    p.chunks = heads >= BLOCKS || heads == 0 ? 1 : (BLOCKS + heads - 1) / heads;
    p.chunks = p.chunks > most ? most > 0 ? most : 1 : p.chunks;
    p.chunk = (p.longest + p.chunks * WF_ATTENTION_QUERIES - 1) / (p.chunks * WF_ATTENTION_QUERIES) * WF_ATTENTION_QUERIES;
    double cost = p.scores * (0.5 + 0.03 * (double)(p.e + p.f)) * (c->outputs > 1 ? 2 : 1);
    wf_parallel(heads * p.chunks, cost, forward_block, &p);
    return p.no_memory ? wf_call_fail(c, WF_ERR_MEMORY, "no memory for tiles") : WF_OK;
}

/* --- backward ------------------------------------------------------------------------------------------------------ */

static void backward_part(struct plan *p, int64_t sequence, int64_t group)
{
    struct wf_attention a = problem(p, sequence, group);
    wf_real *scratch = wf_scratch(WF_SCRATCH_OP, (size_t)wf_attention_backward_scratch(a.keys, a.e, a.f) * sizeof *scratch);
    if (scratch)
        wf_kernel->internal->attention_backward(&a, scratch);
    else
        atomic_store(&p->no_memory, true);
}

static void backward_block(void *ctx, int64_t block)
{
    struct plan *p = ctx;
    if (!p->in_turn)
        backward_part(p, block / p->groups, block % p->groups);
    for (int64_t i = 0; p->in_turn && i < p->sequences; i++)
        backward_part(p, i, block);
}

/* Makes the place for the gradient of the bias: of each head its own, so that every sum has one order, and where the bias is broadcast over
 * the batch, queries or keys, the sum. */
static bool make_dbias(wf_call *c, struct plan *p)
{
    const wf_array *bias = &c->in[BIAS];
    wf_shape shape = {4, {p->sequences, p->heads, p->queries, p->keys}};
    for (int d = 0; d < 4; d++)
        if (d != 1 && (4 - d > bias->ndim || bias->dim[bias->ndim - (4 - d)] == 1))
            shape.dim[d] = 1;
    p->dbias = wf_call_temp(c, WF_REAL, &shape);
    if (!p->dbias.data)
        return false;
    memset(p->dbias.data, 0, (size_t)wf_shape_count(&shape) * sizeof(wf_real));
    p->in_turn = shape.dim[0] == 1 && p->sequences > 1;
    return true;
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
        if (j != i && c->need[j] && !wf_apart(x, &c->in[j]))
            return false;
    return true;
}

/* The derivation stands above the kernel, core/kernels/attention_backward.c. */
static wf_status attention_backward(wf_call *c)
{
    struct plan p;
    if (!c->dout[0].data)
        return WF_OK;
    if (!make_plan(c, &p) || !operand(c, &c->dout[0], &p.dout))
        return WF_ERR_MEMORY;
    wf_array gradient[3];
    const bool fill = direct(c, Q) && direct(c, K) && direct(c, V) && wf_grad_fills(c, 3);
    for (int i = Q; i <= V; i++) {
        if (!c->need[i])
            continue;
        gradient[i] = direct(c, i) ? wf_grad_into(c, i, &p.add[i]) : wf_grad_new(c, i);
        if (!gradient[i].data)
            return WF_ERR_MEMORY;
        p.add[i] = p.add[i] && !fill;
        p.din[i] = rows_of(&gradient[i]);
    }
    const bool with_bias = wf_has(c, BIAS) && c->need[BIAS];
    if (with_bias && !make_dbias(c, &p))
        return WF_ERR_MEMORY;
    double cost = p.scores * (1 + 0.08 * (double)(p.e + p.f));
    wf_parallel(p.in_turn ? p.groups : p.sequences * p.groups, cost, backward_block, &p);
    for (int i = Q; i <= V; i++)
        if (c->need[i] && !direct(c, i))
            wf_grad_give(c, i, &gradient[i]);
    if (with_bias) {
        wf_shape shape = wf_array_shape(&c->in[BIAS]);
        if (wf_shape_count(&shape) == wf_array_count(&p.dbias)) /* the same but for leading sizes of 1 */
            p.dbias = wf_array_contiguous(p.dbias.data, WF_REAL, &shape);
        wf_grad_give(c, BIAS, &p.dbias);
    }
    return p.no_memory ? wf_call_fail(c, WF_ERR_MEMORY, "no memory for tiles") : WF_OK;
}

/* --- descriptor and constructor ------------------------------------------------------------------------------------ */

/* clang-format off */
#define A(...) .attr = &(const struct attention_attr){__VA_ARGS__}
#define BOOLS(...) .fill = {0, 0, 0, WF_FILL_BOOLS}, .in = {__VA_ARGS__}
#define BIASED(...) .fill = {0, 0, 0, WF_FILL_ABSENT}, .inputs = 5, .in = {__VA_ARGS__}
/* What is added to all scores of a row changes no weight: its gradient is 0 but for rounding, which differences cannot check. */
#define ONE_FOR_ALL_KEYS .constant = {[BIAS] = true}
#define I32(...) (const int32_t[]){__VA_ARGS__}
const wf_op wf_op_attention = {
    .name = "attention", .attr_size = sizeof(struct attention_attr), .random = true,
    .reads = WF_READS_INPUT(Q) | WF_READS_INPUT(K) | WF_READS_INPUT(V) | WF_READS_INPUT(MASK) | WF_READS_INPUT(BIAS) | WF_READS_OUTPUT(0),
    .shape = wf_attention_shape, .forward = attention_forward, .backward = attention_backward,
    .cases = WF_CASES(
        {"plain", {{2, 5, 6}, {2, 5, 6}, {2, 5, 6}}, A(2, 2)},
        {"one query", {{2, 1, 6}, {2, 9, 6}, {2, 9, 6}}, A(2, 2, .causal = true)},
        {"causal", {{2, 7, 8}, {2, 7, 8}, {2, 7, 8}}, A(2, 2, .causal = true)},
        {"causal, more keys", {{1, 3, 4}, {1, 8, 4}, {1, 8, 4}}, A(1, 1, .causal = true)},
        {"causal, more queries", {{1, 8, 4}, {1, 3, 4}, {1, 3, 4}}, A(1, 1, .causal = true)},
        {"lengths", {{3, 4, 6}, {3, 5, 6}, {3, 5, 6}}, A(2, 2, .key_lengths = I32(5, 0, 2))},
        {"lengths, causal", {{3, 4, 6}, {3, 6, 6}, {3, 6, 6}}, A(2, 2, .causal = true, .key_lengths = I32(6, 1, 3))},
        {"starts, causal", {{3, 4, 6}, {3, 7, 6}, {3, 7, 6}}, A(2, 2, .causal = true, .starts = I32(3, 0, 7))},
        {"starts, lengths, causal", {{2, 9, 6}, {2, 40, 6}, {2, 40, 6}}, A(2, 2, .causal = true, .starts = I32(31, 2), .key_lengths = I32(40, 11))},
        {"window, causal", {{2, 9, 8}, {2, 9, 8}, {2, 9, 8}}, A(2, 2, .causal = true, .window = 3)},
        {"window", {{2, 9, 8}, {2, 9, 8}, {2, 9, 8}}, A(2, 2, .window = 2)},
        {"window of one", {{1, 5, 4}, {1, 5, 4}, {1, 5, 6}}, A(1, 1, .window = 1)},
        {"window, more keys", {{1, 3, 4}, {1, 12, 4}, {1, 12, 4}}, A(1, 1, .window = 4)},
        {"window, more queries", {{1, 9, 4}, {1, 5, 4}, {1, 5, 4}}, A(1, 1, .causal = true, .window = 2)},
        {"window, starts", {{2, 4, 6}, {2, 9, 6}, {2, 9, 6}}, A(2, 2, .window = 2, .starts = I32(4, 0))},
        {"window, starts, lengths, causal", {{2, 4, 6}, {2, 9, 6}, {2, 9, 6}},
         A(2, 2, .causal = true, .window = 3, .starts = I32(5, 2), .key_lengths = I32(9, 3))},
        {"window, mask, causal", BOOLS({2, 9, 6}, {2, 9, 6}, {2, 9, 6}, {2, 2, 9, 9}), A(2, 2, .causal = true, .window = 4)},
        {"window, packed", {{9, 8}, {9, 4}, {9, 4}}, A(4, 2, .window = 2, .q_offsets = I32(0, 4, 4, 9), .k_offsets = I32(0, 4, 4, 9), .sequences = 3)},
        {"window over the edges of tiles", {{1, 150, 6}, {1, 150, 6}, {1, 150, 6}}, A(1, 1, .causal = true, .window = 40)},
        {"window over the edges of tiles, dropout", {{1, 90, 6}, {1, 150, 6}, {1, 150, 6}}, A(1, 1, .window = 30, .dropout = 0.3), .train = true},
        {"softcap", {{2, 5, 6}, {2, 7, 6}, {2, 7, 4}}, A(2, 2, .scale = 1.5, .softcap = 0.7)},
        {"softcap, causal", {{2, 7, 8}, {2, 7, 4}, {2, 7, 4}}, A(4, 2, .causal = true, .softcap = 2)},
        {"softcap, mask, window", BOOLS({2, 9, 6}, {2, 11, 6}, {2, 11, 6}, {2, 2, 9, 11}), A(2, 2, .softcap = 1, .window = 6)},
        {"softcap over the edges of tiles, dropout", {{1, 70, 10}, {1, 131, 10}, {1, 131, 6}},
         A(1, 1, .causal = true, .window = 90, .softcap = 3, .dropout = 0.1), .train = true},
        {"softcap, packed, lengths apart", {{9, 6}, {11, 6}, {11, 4}},
         A(2, 2, .softcap = 1, .q_offsets = I32(0, 4, 4, 9, 9), .k_offsets = I32(0, 5, 7, 11, 11), .sequences = 4)},
        {"bias", BIASED({2, 5, 6}, {2, 7, 6}, {2, 7, 4}, {0}, {2, 2, 5, 7}), A(2, 2)},
        {"bias of heads", BIASED({3, 5, 8}, {3, 7, 4}, {3, 7, 4}, {0}, {4, 5, 7}), A(4, 2, .causal = true)},
        {"bias of pairs", BIASED({2, 5, 6}, {2, 5, 6}, {2, 5, 6}, {0}, {1, 5, 5}), A(2, 2, .window = 3)},
        {"bias of keys", BIASED({2, 5, 6}, {2, 7, 6}, {2, 7, 4}, {0}, {2, 1, 7}), A(2, 2, .key_lengths = I32(7, 3))},
        {"bias of queries, softcap", BIASED({2, 5, 6}, {2, 7, 6}, {2, 7, 4}, {0}, {2, 1, 5, 1}), ONE_FOR_ALL_KEYS, A(2, 2, .softcap = 2)},
        {"bias of one number", BIASED({2, 5, 6}, {2, 7, 6}, {2, 7, 4}, {0}, {1}), ONE_FOR_ALL_KEYS, A(2, 2)},
        {"bias, mask, softcap", .fill = {0, 0, 0, WF_FILL_BOOLS}, .in = {{2, 9, 6}, {2, 11, 6}, {2, 11, 6}, {9, 11}, {1, 2, 9, 11}},
         A(2, 2, .softcap = 1)},
        {"bias over the edges of tiles, dropout", BIASED({2, 70, 6}, {2, 131, 6}, {2, 131, 6}, {0}, {70, 131}),
         A(1, 1, .causal = true, .dropout = 0.1), .train = true},
        {"mask", BOOLS({2, 9, 6}, {2, 11, 6}, {2, 11, 6}, {2, 2, 9, 11}), A(2, 2)},
        {"mask of keys", BOOLS({3, 4, 6}, {3, 5, 6}, {3, 5, 6}, {3, 1, 1, 5}), A(2, 2)},
        {"mask of pairs, causal", BOOLS({2, 6, 4}, {2, 6, 4}, {2, 6, 4}, {6, 6}), A(2, 2, .causal = true)},
        {"shared keys, wide values", {{2, 5, 12}, {2, 4, 6}, {2, 4, 10}}, A(4, 2, .scale = 0.3)},
        {"wide values", {{1, 6, 3}, {1, 6, 3}, {1, 6, 21}}, A(1, 1, .causal = true)},
        {"packed, an empty sentence", {{9, 6}, {11, 6}, {11, 4}},
         A(2, 2, .q_offsets = I32(0, 4, 4, 9, 9), .k_offsets = I32(0, 5, 7, 11, 11), .sequences = 4)},
        {"packed, causal", {{9, 8}, {9, 4}, {9, 4}},
         A(4, 2, .causal = true, .q_offsets = I32(0, 4, 4, 9), .k_offsets = I32(0, 4, 4, 9), .sequences = 3)},
        {"packed, a sentence without keys", {{5, 4}, {3, 4}, {3, 4}},
         A(2, 2, .q_offsets = I32(0, 2, 5), .k_offsets = I32(0, 0, 3), .sequences = 2)},
        {"dropout", {{2, 6, 8}, {2, 9, 8}, {2, 9, 8}}, A(2, 2, .dropout = 0.3), .train = true},
        {"dropout, shared keys, causal", {{2, 6, 8}, {2, 6, 4}, {2, 6, 4}}, A(4, 2, .dropout = 0.5, .causal = true), .train = true},
        {"dropout, packed", {{9, 6}, {9, 6}, {9, 6}},
         A(2, 2, .dropout = 0.2, .q_offsets = I32(0, 4, 9), .k_offsets = I32(0, 4, 9), .sequences = 2), .train = true},
        {"over the edges of tiles", {{1, 70, 10}, {1, 70, 10}, {1, 70, 6}}, A(2, 2, .causal = true)},
        {"over the edges of tiles, dropout", {{1, 37, 17}, {1, 131, 17}, {1, 131, 19}}, A(1, 1, .dropout = 0.1), .train = true},
        {"no queries", {{2, -1, 4}, {2, 3, 4}, {2, 3, 4}}, A(2, 2)},
        {"no keys", {{2, 3, 4}, {2, -1, 4}, {2, -1, 4}}, A(2, 2)},
        {"empty", {{-1, 3, 4}, {-1, 3, 4}, {-1, 3, 4}}, A(2, 2)})};
/* clang-format on */

/* NULL without memory (the tape has the error) or without a list. */
static const int32_t *copied(wf_tape *tape, const int32_t *list, int64_t count)
{
    if (!tape || !list || count < 0)
        return NULL;
    int32_t *copy = wf_tape_memory(tape, (size_t)(count + 1) * sizeof *copy);
    return copy ? memcpy(copy, list, (size_t)count * sizeof *copy) : NULL;
}

wf_tensor *wf_attention_with(wf_tensor *q, wf_tensor *k, wf_tensor *v, const struct wf_attention_options *options)
{
    static const struct wf_attention_options none;
    const struct wf_attention_options *o = options ? options : &none;
    wf_tape *tape = wf_tape_of_operands(3, (wf_tensor *[]){q, k, v});
    struct attention_attr a = {.heads = o->heads ? o->heads : 1,
                               .scale = o->scale,
                               .dropout = o->dropout,
                               .causal = o->causal,
                               .window = o->window,
                               .softcap = o->softcap};
    a.kv_heads = o->kv_heads ? o->kv_heads : a.heads;
    /* [B] are read where the operands have one B; others are refused in `shape`, before the list is looked at. */
    const bool batch = !o->q_offsets && wf_ndim(q) == 3 && wf_ndim(k) == 3 && wf_dim(q, 0) == wf_dim(k, 0);
    a.key_lengths = batch ? copied(tape, o->key_lengths, wf_dim(q, 0)) : o->key_lengths;
    a.starts = batch ? copied(tape, o->starts, wf_dim(q, 0)) : o->starts;
    if (tape && (o->sequences < 0 || (o->k_offsets && !o->q_offsets)))
        wf_tape_fail(tape, WF_ERR_ARGUMENT, "attention: sequences = %d%s", o->sequences,
                     o->sequences < 0 ? " is negative" : ", but k_offsets are given without q_offsets");
    if (o->q_offsets) {
        a.sequences = o->sequences;
        a.q_offsets = copied(tape, o->q_offsets, (int64_t)o->sequences + 1);
        a.k_offsets = copied(tape, o->k_offsets ? o->k_offsets : o->q_offsets, (int64_t)o->sequences + 1);
    }
    wf_tensor *out[2];
    wf_apply_multi(&wf_op_attention, &a,
                   o->bias   ? 5
                   : o->mask ? 4
                             : 3,
                   (wf_tensor *[]){q, k, v, o->mask, o->bias}, o->weights ? 2 : 1, out);
    if (o->weights)
        *o->weights = out[1];
    return out[0];
}
