/* SPDX-License-Identifier: MIT */
/* Attention with several heads, its projections and its cache. */

#include <math.h>

#include "internal.h"

static void init_rope(wf_scope scope, struct wf_mha *m, const struct wf_mha_options *o)
{
    const struct wf_rotary *r = &o->rotary;
    const int64_t width = r->width ? r->width : m->d_key;
    if (!o->rope) {
        if (r->width || r->interleaved || r->base != 0 || r->scaling != WF_ROPE_UNSCALED || r->factor != 0 || r->frequencies ||
            r->frequency_tensor)
            wf_scope_fail(scope, WF_ERR_ARGUMENT, "rotary is given without rope: set .rope = true, too");
        return;
    }
    if (m->cross)
        wf_scope_fail(scope, WF_ERR_ARGUMENT, "rope is for self-attention, not for cross-attention: turn queries and keys with wf_rope");
    else if (width < 2 || width % 2 != 0 || width > m->d_key)
        wf_scope_fail(scope, WF_ERR_ARGUMENT, "rope needs an even rotary.width in 2 .. d_key = %lld, not %lld", (long long)m->d_key,
                      (long long)width);
    m->rope = true;
    m->rotary = *r;
}

void wf_mha_init_with(wf_scope scope, struct wf_mha *m, int64_t d, int heads, const struct wf_mha_options *o)
{
    static const struct wf_mha_options none;
    o = o ? o : &none;
    const int64_t sizes[] = {d, o->kv_heads, o->d_key, o->d_value, o->d_memory, o->d_values};
    for (int i = 0; i < 6; i++)
        if (sizes[i] < 0 || sizes[i] > 1 << 30) {
            wf_scope_fail(scope, WF_ERR_ARGUMENT,
                          "the width %lld, kv_heads = %d, d_key = %lld, d_value = %lld, d_memory = %lld or d_values = %lld is out of range",
                          (long long)d, o->kv_heads, (long long)o->d_key, (long long)o->d_value, (long long)o->d_memory,
                          (long long)o->d_values);
            o = &none;
            d = heads = 1;
        }
    *m = (struct wf_mha){.heads = heads,
                         .kv_heads = o->kv_heads > 0 ? o->kv_heads : heads,
                         .cross = o->cross,
                         .no_output = o->no_output,
                         .dropout = dropout_valid(scope, o->dropout) ? o->dropout : 0,
                         .residual_dropout = dropout_valid(scope, o->residual_dropout) ? o->residual_dropout : 0};
    if (heads < 1 || (o->d_key == 0 && d % heads != 0)) {
        wf_scope_fail(scope, WF_ERR_ARGUMENT, "heads = %d does not divide the width %lld: choose a divisor", heads, (long long)d);
        m->heads = m->kv_heads = 1;
    } else if (m->heads % m->kv_heads != 0) {
        wf_scope_fail(scope, WF_ERR_ARGUMENT, "kv_heads = %d does not divide heads = %d", m->kv_heads, heads);
        m->kv_heads = m->heads;
    }
    m->d_key = o->d_key > 0 ? o->d_key : d / m->heads;
    m->d_value = o->d_value > 0 ? o->d_value : o->d_key > 0 ? o->d_key : d / m->heads;
    init_rope(scope, m, o);
    m->qk_norm = o->qk_norm;
    if (o->qk_norm) {
        wf_rms_norm_init(wf_sub(scope, "q_norm"), &m->q_norm, m->d_key, .eps = o->qk_norm_eps);
        wf_rms_norm_init(wf_sub(scope, "k_norm"), &m->k_norm, m->d_key, .eps = o->qk_norm_eps);
    } else if (o->qk_norm_eps != 0) {
        wf_scope_fail(scope, WF_ERR_ARGUMENT, "qk_norm_eps = %g is given without qk_norm: set .qk_norm = true, too", o->qk_norm_eps);
    }
    if (o->softcap == 0 || (o->softcap >= 1e-30 && o->softcap <= 1e30))
        m->softcap = o->softcap;
    else
        wf_scope_fail(scope, WF_ERR_ARGUMENT, "softcap = %g is not in 1e-30 .. 1e30; 0 stands for none", o->softcap);
    if (isfinite(o->scale))
        m->scale = o->scale;
    else
        wf_scope_fail(scope, WF_ERR_ARGUMENT, "scale = %g is not finite; 0 stands for 1 / sqrt(d_key)", o->scale);
    if (o->window < 0 || (o->window > 0 && m->cross))
        wf_scope_fail(scope, WF_ERR_ARGUMENT,
                      o->window < 0 ? "window = %lld is negative; 0 stands for none"
                                    : "window = %lld is for self-attention, not for cross-attention: use wf_attention, or a mask",
                      (long long)o->window);
    else
        m->window = o->window;
    int64_t q = m->heads * m->d_key, k = m->kv_heads * m->d_key, v = m->kv_heads * m->d_value;
    /* Xavier looks at one matrix of the stack, which has a meaning only if they are alike. */
    if ((o->apart && !m->cross) || (o->d_values > 0 && !o->apart))
        wf_scope_fail(scope, WF_ERR_ARGUMENT,
                      o->apart ? "apart is for cross-attention: set .cross = true, too"
                               : "d_values is given without apart: set .apart = true, too");
    m->apart = o->apart && m->cross;
    if (m->apart) {
        const int64_t keys = o->d_memory > 0 ? o->d_memory : d, values = o->d_values > 0 ? o->d_values : keys;
        wf_linear_init(wf_sub(scope, "q"), &m->q, d, q, .no_bias = o->no_bias);
        wf_linear_init(wf_sub(scope, "k"), &m->k, keys, k, .no_bias = o->no_bias);
        wf_linear_init(wf_sub(scope, "v"), &m->v, values, v, .no_bias = o->no_bias);
    } else if (m->cross) {
        wf_linear_init(wf_sub(scope, "q"), &m->q, d, q, .no_bias = o->no_bias);
        wf_linear_init(wf_sub(scope, "kv"), &m->kv, o->d_memory > 0 ? o->d_memory : d, k + v, .no_bias = o->no_bias,
                       .parts = k == v ? 2 : 1);
    } else {
        wf_linear_init(wf_sub(scope, "qkv"), &m->qkv, d, q + k + v, .no_bias = o->no_bias, .parts = q == k && k == v ? 3 : 1);
    }
    if (!m->no_output)
        wf_linear_init(wf_sub(scope, "out"), &m->out, m->heads * m->d_value, d, .no_bias = o->no_bias, .residual = true);
}

enum { MADE = 6 };
struct operands {
    struct wf_mha_parts part;
    const int32_t *key_lengths, *starts;
    wf_tensor *made[MADE]; /* by this call: what q, k and v are, or are views of */
    int count;
};

/* Puts the new keys and values into the cache and replaces k and v by all that are there. */
static bool through_cache(wf_tape *tape, const struct wf_mha_call *call, struct operands *x)
{
    struct wf_kv_held held = wf_kv_append(call->cache, x->part.k, x->part.v);
    const int64_t rows = call->cache->cache ? call->cache->cache->rows : 0;
    x->part.k = held.keys;
    x->part.v = held.values;
    x->starts = held.starts;
    if (held.lengths && call->key_lengths) { /* what lies behind a row's own tokens is not its own */
        int32_t *least = wf_tape_memory(tape, (size_t)rows * sizeof *least);
        for (int64_t b = 0; least && b < rows; b++)
            least[b] = call->key_lengths[b] < held.lengths[b] ? call->key_lengths[b] : held.lengths[b];
        x->key_lengths = least;
        return least != NULL;
    }
    if (held.lengths)
        x->key_lengths = held.lengths;
    return !wf_is_poison(held.keys);
}

/* A tensor that this call made; returned. */
static wf_tensor *made(struct operands *x, wf_tensor *t)
{
    return x->made[x->count++] = t;
}

/* Turns queries and keys by their positions; qk: where they lie side by side [..., (H + G) E], or NULL. */
static void turn(const struct wf_mha *m, const struct wf_mha_call *call, wf_tensor *qk, struct operands *x)
{
    const struct wf_cache *cache = call->cache ? call->cache->cache : NULL;
    const int64_t start = cache && !call->positions ? cache_common_length(cache) : 0, q = m->heads * m->d_key;
    struct wf_rope_options o = {.rotary = m->rotary, .positions = call->positions};
    o.start = start >= 0 ? start : 0;
    o.starts = start >= 0 ? NULL : cache->length;
    if (!call->positions)
        o.packed = call->packed;
    const bool alike = !wf_is_packed(call->k_packed) || call->k_packed.offsets == call->packed.offsets;
    if (qk && (!wf_is_packed(o.packed) || alike)) {
        o.heads = m->heads + m->kv_heads;
        qk = made(x, wf_rope_with(qk, &o));
        x->part.q = wf_slice(qk, -1, 0, q);
        x->part.k = wf_slice(qk, -1, q, m->kv_heads * m->d_key);
        return;
    }
    o.heads = m->heads;
    x->part.q = made(x, wf_rope_with(x->part.q, &o));
    o.heads = m->kv_heads;
    if (wf_is_packed(o.packed) && wf_is_packed(call->k_packed))
        o.packed = call->k_packed;
    x->part.k = made(x, wf_rope_with(x->part.k, &o));
}

/* The norm of each head of t [..., heads E]. */
static wf_tensor *norm_heads(const struct wf_rms_norm *norm, int64_t heads, int64_t e, wf_tensor *t, struct operands *x)
{
    wf_shape shape = wf_shape_of(t), split = shape;
    if (shape.ndim < 2 || shape.ndim > 3) /* wf_attention refuses it */
        return t;
    split.dim[shape.ndim - 1] = heads;
    split.dim[split.ndim++] = e;
    return wf_reshape_to(made(x, wf_rms_norm_forward(norm, wf_reshape_to(t, &split))), &shape);
}

wf_tensor *wf_mha_memory(const struct wf_mha *m, wf_tensor *memory)
{
    if (!m->cross)
        return wf_tape_fail(wf_tape_of(memory), WF_ERR_ARGUMENT, "attention: wf_mha_memory requires cross-attention (.cross)");
    if (m->apart)
        return wf_tape_fail(wf_tape_of(memory), WF_ERR_ARGUMENT,
                            "attention: values come from an input of their own here (.apart): call wf_mha_memory_apart");
    return wf_linear_forward(&m->kv, memory);
}

wf_tensor *wf_mha_memory_apart(const struct wf_mha *m, wf_tensor *memory, wf_tensor *value)
{
    if (!m->apart)
        return wf_tape_fail(wf_tape_of(memory), WF_ERR_ARGUMENT,
                            "attention: wf_mha_memory_apart requires .apart; otherwise call wf_mha_memory");
    wf_tensor *part[] = {wf_linear_forward(&m->k, memory), wf_linear_forward(&m->v, value)}, *kv = wf_concat(part, 2, -1);
    wf_release(part[0]);
    wf_release(part[1]);
    return kv;
}

static bool cache_refused(const struct wf_mha *m, wf_tape *tape, const struct wf_mha_call *call, const struct wf_mha_parts *part)
{
    if (!call->cache)
        return false;
    if (m->cross)
        wf_tape_fail(tape, WF_ERR_ARGUMENT, "attention: a cache is for self-attention: keep a memory with wf_mha_memory instead");
    else
        return !cache_fits(tape, call->cache, part->k, part->v);
    return true;
}

/* Fills x->part. False: the tape has the error. */
static bool project(const struct wf_mha *m, wf_tensor *x, const struct wf_mha_call *call, struct operands *a)
{
    wf_tape *tape = wf_tape_of(x);
    const int64_t q = m->heads * m->d_key, k = m->kv_heads * m->d_key, v = m->kv_heads * m->d_value;
    wf_tensor *qk = NULL;
    if (call->positions && !m->rope)
        wf_tape_fail(tape, WF_ERR_ARGUMENT, "attention: .positions requires rotary positions (.rope)");
    else if (m->cross && !cache_refused(m, tape, call, NULL) && !call->memory && !call->memory_kv)
        wf_tape_fail(tape, WF_ERR_ARGUMENT, "attention: cross-attention needs .memory or .memory_kv");
    else if (m->cross && call->memory && call->memory_kv)
        wf_tape_fail(tape, WF_ERR_ARGUMENT, "attention: give either .memory or .memory_kv");
    else if (!m->cross && (call->memory || call->memory_kv))
        wf_tape_fail(tape, WF_ERR_ARGUMENT, "attention: .memory and .memory_kv require cross-attention (.cross)");
    else if (call->value && !m->apart)
        wf_tape_fail(tape, WF_ERR_ARGUMENT, "attention: .value requires a module whose values come from an input of their own (.apart)");
    else if (m->apart && !call->value == !call->memory_kv)
        wf_tape_fail(tape, WF_ERR_ARGUMENT,
                     call->value ? "attention: .memory_kv has the values already: leave .value out"
                                 : "attention: with .apart, .memory needs .value");
    if (wf_is_poison(x) || !tape || wf_tape_error(tape)->code != WF_OK)
        return false;
    if (m->cross)
        a->part.q = made(a, wf_linear_forward(&m->q, x)); /* [B,T,HE] */
    if (m->apart && !call->memory_kv) {
        a->part.k = made(a, wf_linear_forward(&m->k, call->memory)); /* [B,S,GE] */
        a->part.v = made(a, wf_linear_forward(&m->v, call->value));  /* [B,S,GF] */
    } else if (m->cross) {
        wf_tensor *kv = call->memory_kv ? call->memory_kv : made(a, wf_mha_memory(m, call->memory)); /* [B,S,G(E+F)] */
        if (!wf_is_poison(kv) && wf_dim(kv, -1) != k + v) {
            wf_tape_fail(tape, WF_ERR_SHAPE, "attention: '%s' has width %lld, but .memory_kv needs the %lld of wf_mha_memory",
                         wf_name_of(kv), (long long)wf_dim(kv, -1), (long long)(k + v));
            return false;
        }
        a->part.k = wf_slice(kv, -1, 0, k);
        a->part.v = wf_slice(kv, -1, k, v);
    } else {
        wf_tensor *qkv = made(a, wf_linear_forward(&m->qkv, x)); /* [B,T,HE+GE+GF] */
        a->part.q = wf_slice(qkv, -1, 0, q);
        a->part.k = wf_slice(qkv, -1, q, k);
        a->part.v = wf_slice(qkv, -1, q + k, v);
        if (cache_refused(m, tape, call, &a->part))
            return false;
        if (m->rope && !m->qk_norm)
            qk = wf_slice(qkv, -1, 0, q + k);
    }
    if (m->qk_norm) {
        a->part.q = norm_heads(&m->q_norm, m->heads, m->d_key, a->part.q, a);
        a->part.k = norm_heads(&m->k_norm, m->kv_heads, m->d_key, a->part.k, a);
    }
    if (m->rope)
        turn(m, call, qk, a);
    return true;
}

/* Releases what `a` made, after its last use. */
static wf_tensor *attend(const struct wf_mha *m, struct operands *a, const struct wf_mha_call *call)
{
    wf_tape *tape = wf_tape_of_operands(3, (wf_tensor *[]){a->part.q, a->part.k, a->part.v});
    a->key_lengths = call->key_lengths;
    if (cache_refused(m, tape, call, &a->part) || (call->cache && !through_cache(tape, call, a)))
        return wf_tape_fail(tape, WF_ERR_STATE, "attention: the cache cannot be used");
    wf_tensor *y =
        wf_attention(a->part.q, a->part.k, a->part.v, .heads = m->heads, .kv_heads = m->kv_heads, .scale = m->scale, .causal = call->causal,
                     .starts = call->causal || m->window > 0 ? a->starts : NULL, .window = m->window, .softcap = m->softcap,
                     .key_lengths = a->key_lengths, .mask = call->mask, .bias = call->bias, .packed = call->packed,
                     .k_packed = call->k_packed, .dropout = m->dropout, .weights = call->weights); /* [B,T,HF] */
    for (int i = 0; i < a->count; i++)
        wf_release(a->made[i]);
    if (!m->no_output) {
        wf_tensor *heads = y;
        y = wf_linear_forward(&m->out, heads); /* [B,T,d] */
        wf_release(heads);
    }
    return end_branch(y, m->residual_dropout, call->residual);
}

static const struct wf_mha_call no_call;

wf_tensor *wf_mha_forward_with(const struct wf_mha *m, wf_tensor *x, const struct wf_mha_call *call)
{
    struct operands a = {.count = 0};
    call = call ? call : &no_call;
    if (wf_is_poison(x))
        return x;
    if (!project(m, x, call, &a))
        return wf_tape_fail(wf_tape_of(x), WF_ERR_STATE, "attention: no queries and keys");
    return attend(m, &a, call);
}

struct wf_mha_parts wf_mha_project_with(const struct wf_mha *m, wf_tensor *x, const struct wf_mha_call *call)
{
    struct operands a = {.count = 0};
    if (project(m, x, call ? call : &no_call, &a))
        return a.part;
    wf_tensor *poison = wf_is_poison(x) ? x : wf_tape_fail(wf_tape_of(x), WF_ERR_STATE, "attention: no queries and keys");
    return (struct wf_mha_parts){poison, poison, poison};
}

wf_tensor *wf_mha_attend_with(const struct wf_mha *m, struct wf_mha_parts parts, const struct wf_mha_call *call)
{
    struct operands a = {.part = parts};
    return attend(m, &a, call ? call : &no_call);
}
