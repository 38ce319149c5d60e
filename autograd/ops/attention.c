/* SPDX-License-Identifier: MIT */
/* Fused attention: what may be asked of it, its cases and its constructor; the work itself is in attention_blocks.c. */
#include "attention.h"

#include <math.h>
#include <string.h>

#include "common.h"

/* --- shape --------------------------------------------------------------------------------------------------------- */

static wf_status check_offsets(wf_call *c, const char *what, const int32_t *offsets, int n, int64_t rows)
{
    for (int i = 0; i < n; i++)
        if (offsets[i] < 0 || offsets[i] > offsets[i + 1])
            return wf_call_fail(c, WF_ERR_ARGUMENT, "%s must rise from 0, but %d follows %d at place %d", what, offsets[i + 1], offsets[i],
                                i + 1);
    if (offsets[0] != 0 || offsets[n] != rows)
        return wf_call_fail(c, WF_ERR_ARGUMENT, "%s must run from 0 to the number of rows, %lld; they run from %d to %d", what,
                            (long long)rows, offsets[0], offsets[n]);
    return WF_OK;
}

static wf_status check_mask(wf_call *c, const wf_shape *full)
{
    if (!wf_has(c, MASK))
        return WF_OK;
    wf_status status = wf_want(c, MASK, WF_BOOL);
    if (status != WF_OK)
        return status;
    wf_shape shape = wf_array_shape(&c->in[MASK]), both;
    char text[96];
    if (!wf_shape_broadcast(&shape, full, &both) || !wf_shape_equal(&both, full))
        return wf_call_fail(c, WF_ERR_SHAPE, "the mask must broadcast to [B,H,T,S] = %s", wf_shape_text(full, text, sizeof text));
    return WF_OK;
}

static wf_status attention_shape(wf_call *c)
{
    const struct attention_attr *a = c->attr;
    if (wf_want_reals(c, 3) != WF_OK)
        return WF_ERR_ARGUMENT;
    const wf_array *q = &c->in[Q], *k = &c->in[K], *v = &c->in[V];
    const int n = wf_attention_packed(a) ? 2 : 3, last = n - 1;
    if (q->ndim != n || k->ndim != n || v->ndim != n)
        return wf_call_fail(c, WF_ERR_SHAPE,
                            wf_attention_packed(a) ? "with offsets q, k and v must be [rows, width]"
                                                   : "q must be [B,T,H*E], k [B,S,G*E] and v [B,S,G*F]");
    if (a->heads < 1 || a->kv_heads < 1 || a->heads % a->kv_heads != 0)
        return wf_call_fail(c, WF_ERR_ARGUMENT, "%d heads cannot share %d heads of keys", a->heads, a->kv_heads);
    if (q->dim[last] < 1 || q->dim[last] % a->heads != 0)
        return wf_call_fail(c, WF_ERR_SHAPE, "q's width %lld does not divide into %d heads", (long long)q->dim[last], a->heads);
    const int64_t e = q->dim[last] / a->heads;
    if (k->dim[last] != e * a->kv_heads)
        return wf_call_fail(c, WF_ERR_SHAPE, "k's width must be %lld: %d heads of %lld", (long long)(e * a->kv_heads), a->kv_heads,
                            (long long)e);
    if (v->dim[last] < 1 || v->dim[last] % a->kv_heads != 0)
        return wf_call_fail(c, WF_ERR_SHAPE, "v's width %lld does not divide into %d heads", (long long)v->dim[last], a->kv_heads);
    if (k->dim[n - 2] != v->dim[n - 2] || (n == 3 && (q->dim[0] != k->dim[0] || q->dim[0] != v->dim[0])))
        return wf_call_fail(c, WF_ERR_SHAPE, "q, k and v must have one B, and k and v one S");
    if (!(a->dropout >= 0 && a->dropout < 1))
        return wf_call_fail(c, WF_ERR_ARGUMENT, "dropout is %g, it must be in 0 <= p < 1", a->dropout);
    if (!isfinite(a->scale))
        return wf_call_fail(c, WF_ERR_ARGUMENT, "scale is %g", a->scale);
    wf_status status = WF_OK;
    if (wf_attention_packed(a)) {
        if (a->key_lengths || wf_has(c, MASK) || c->outputs > 1)
            return wf_call_fail(c, WF_ERR_ARGUMENT, "packed rows go neither with key_lengths, nor with a mask, nor with weights");
        if (a->sequences < 0)
            return wf_call_fail(c, WF_ERR_ARGUMENT, "%d sequences", a->sequences);
        status = check_offsets(c, "q_offsets", a->q_offsets, a->sequences, q->dim[0]);
        if (status == WF_OK)
            status = check_offsets(c, "k_offsets", a->k_offsets, a->sequences, k->dim[0]);
    } else {
        wf_shape full = {4, {q->dim[0], a->heads, q->dim[1], k->dim[1]}};
        status = check_mask(c, &full);
        for (int64_t b = 0; status == WF_OK && a->key_lengths && b < q->dim[0]; b++)
            if (a->key_lengths[b] < 0 || a->key_lengths[b] > k->dim[1])
                status = wf_call_fail(c, WF_ERR_ARGUMENT, "key_lengths[%lld] = %d is not in 0 .. %lld", (long long)b, a->key_lengths[b],
                                      (long long)k->dim[1]);
        if (c->outputs > 1)
            c->out[1] = wf_call_shape(WF_REAL, &full);
    }
    wf_shape out = wf_array_shape(q),
             log_sums = wf_attention_packed(a) ? (wf_shape){2, {a->heads, q->dim[0]}} : (wf_shape){3, {q->dim[0], a->heads, q->dim[1]}};
    out.dim[last] = v->dim[last] / a->kv_heads * a->heads;
    c->out[0] = wf_call_shape(WF_REAL, &out);
    c->saved[0] = wf_call_shape(WF_REAL, &log_sums);
    return status;
}

/* --- descriptor and constructor ------------------------------------------------------------------------------------ */

/* clang-format off */
#define A(...) .attr = &(const struct attention_attr){__VA_ARGS__}
#define BOOLS(...) .fill = {0, 0, 0, WF_FILL_BOOLS}, .in = {__VA_ARGS__}
#define I32(...) (const int32_t[]){__VA_ARGS__}
const wf_op wf_op_attention = {
    .name = "attention", .attr_size = sizeof(struct attention_attr), .random = true, .reads_outputs = true,
    .reads_inputs = 1 << Q | 1 << K | 1 << V | 1 << MASK,
    .shape = attention_shape, .forward = wf_attention_run, .backward = wf_attention_run_backward,
    .cases = WF_CASES(
        {"plain", {{2, 5, 6}, {2, 5, 6}, {2, 5, 6}}, A(2, 2)},
        {"one query", {{2, 1, 6}, {2, 9, 6}, {2, 9, 6}}, A(2, 2, .causal = true)},
        {"causal", {{2, 7, 8}, {2, 7, 8}, {2, 7, 8}}, A(2, 2, .causal = true)},
        {"causal, more keys", {{1, 3, 4}, {1, 8, 4}, {1, 8, 4}}, A(1, 1, .causal = true)},
        {"causal, more queries", {{1, 8, 4}, {1, 3, 4}, {1, 3, 4}}, A(1, 1, .causal = true)},
        {"lengths", {{3, 4, 6}, {3, 5, 6}, {3, 5, 6}}, A(2, 2, .key_lengths = I32(5, 0, 2))},
        {"lengths, causal", {{3, 4, 6}, {3, 6, 6}, {3, 6, 6}}, A(2, 2, .causal = true, .key_lengths = I32(6, 1, 3))},
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

static const int32_t *copied(wf_tape *tape, const int32_t *list, int64_t count)
{
    if (!tape || !list || count < 0)
        return NULL;
    int32_t *copy = wf_tape_memory(tape, (size_t)(count + 1) * sizeof *copy);
    return copy ? memcpy(copy, list, (size_t)count * sizeof *copy) : NULL;
}

wf_tensor *wf_attention_with(wf_tensor *q, wf_tensor *k, wf_tensor *v, const struct wf_attention_options *options)
{
    const struct wf_attention_options *o = options;
    wf_tape *tape = wf_tape_of(q) ? wf_tape_of(q) : wf_tape_of(k) ? wf_tape_of(k) : wf_tape_of(v);
    struct attention_attr a = {.heads = o->heads ? o->heads : 1, .scale = o->scale, .dropout = o->dropout, .causal = o->causal};
    a.kv_heads = o->kv_heads ? o->kv_heads : a.heads;
    a.key_lengths = copied(tape, o->key_lengths, wf_dim(q, 0));
    if (tape && (o->sequences < 0 || (o->k_offsets && !o->q_offsets)))
        wf_tape_fail(tape, WF_ERR_ARGUMENT, "attention: %d sequences%s", o->sequences, o->q_offsets ? "" : ", k_offsets without q_offsets");
    if (o->q_offsets) {
        a.sequences = o->sequences;
        a.q_offsets = copied(tape, o->q_offsets, (int64_t)o->sequences + 1);
        a.k_offsets = copied(tape, o->k_offsets ? o->k_offsets : o->q_offsets, (int64_t)o->sequences + 1);
    }
    wf_tensor *out[2];
    wf_apply_multi(&wf_op_attention, &a, o->mask ? 4 : 3, (wf_tensor *[]){q, k, v, o->mask}, o->weights ? 2 : 1, out);
    if (o->weights)
        *o->weights = out[1];
    return out[0];
}
