/* SPDX-License-Identifier: MIT */
/* Multi-head attention, with its projections, norms, positions and cache. */

#include <math.h>

#include <weft/internal/minmax.h>
#include <weft/internal/weights_end.h>

#include "internal.h"

static bool size_valid(int64_t size)
{
    return size >= 0 && size <= 1 << 30;
}

static bool rotary_given(const struct wf_rotary *r)
{
    return r->width || r->interleaved || r->base != 0 || r->scaling != WF_ROPE_UNSCALED || r->factor != 0 || r->frequencies ||
           r->frequency_tensor;
}

static int64_t key_width(int64_t d, int heads, const struct wf_mha_options *o)
{
    return o->d_key > 0 ? o->d_key : d / heads;
}

/* Refuses the options with the message if the condition holds. */
#define REFUSED_IF(condition, ...)                                                                                                         \
    if (condition)                                                                                                                         \
    return wf_scope_fail(scope, WF_ERR_ARGUMENT, __VA_ARGS__), false

static bool options_valid(wf_scope scope, int64_t d, int heads, const struct wf_mha_options *o)
{
    REFUSED_IF(!size_valid(d) || !size_valid(o->kv_heads) || !size_valid(o->d_key) || !size_valid(o->d_value) || !size_valid(o->d_memory) ||
                   !size_valid(o->d_values),
               "the width %lld, kv_heads = %d, d_key = %lld, d_value = %lld, d_memory = %lld or d_values = %lld is out of range",
               (long long)d, o->kv_heads, (long long)o->d_key, (long long)o->d_value, (long long)o->d_memory, (long long)o->d_values);
    if (!dropout_valid(scope, o->dropout) || !dropout_valid(scope, o->residual_dropout))
        return false;
    REFUSED_IF(heads < 1 || (o->d_key == 0 && d % heads != 0), "heads = %d does not divide the width %lld: choose a divisor", heads,
               (long long)d);
    REFUSED_IF(o->kv_heads > 0 && heads % o->kv_heads != 0, "kv_heads = %d does not divide heads = %d", o->kv_heads, heads);
    const int64_t d_key = key_width(d, heads, o), turned = o->rotary.width ? o->rotary.width : d_key;
    REFUSED_IF(!o->rope && rotary_given(&o->rotary), "rotary is given without rope: set .rope = true, too");
    REFUSED_IF(o->rope && o->cross, "rope is for self-attention, not for cross-attention: turn queries and keys with wf_rope");
    REFUSED_IF(o->rope && (turned < 2 || turned % 2 != 0 || turned > d_key),
               "rope needs an even rotary.width in 2 .. d_key = %lld, not %lld", (long long)d_key, (long long)turned);
    REFUSED_IF(!o->qk_norm && o->qk_norm_eps != 0, "qk_norm_eps = %g is given without qk_norm: set .qk_norm = true, too", o->qk_norm_eps);
    REFUSED_IF(!o->qk_norm && o->qk_norm_from_one, "qk_norm_from_one is given without qk_norm: set .qk_norm = true, too");
    REFUSED_IF(!(o->softcap == 0 || (o->softcap >= 1e-30 && o->softcap <= 1e30)), "softcap = %g is not in 1e-30 .. 1e30; 0 stands for none",
               o->softcap);
    REFUSED_IF(!isfinite(o->scale), "scale = %g is not finite; 0 stands for 1 / sqrt(d_key)", o->scale);
    REFUSED_IF(o->window < 0, "window = %lld is negative; 0 stands for none", (long long)o->window);
    REFUSED_IF(o->window > 0 && o->cross, "window = %lld is for self-attention, not for cross-attention: use wf_attention, or a mask",
               (long long)o->window);
    REFUSED_IF(o->apart && !o->cross, "apart is for cross-attention: set .cross = true, too");
    REFUSED_IF(o->d_values > 0 && !o->apart, "d_values is given without apart: set .apart = true, too");
    return true;
}

void wf_mha_init_with(wf_scope scope, struct wf_mha *m, int64_t d, int heads, const struct wf_mha_options *o)
{
    static const struct wf_mha_options none;
    struct wf_mha_options small;
    o = o ? o : &none;
    if (!options_valid(scope, d, heads, o)) { /* the error prevents a build: declare the same layers, with sizes of 1 */
        small = (struct wf_mha_options){.cross = o->cross, .apart = o->apart && o->cross, .no_output = o->no_output, .qk_norm = o->qk_norm};
        o = &small;
        d = heads = 1;
    }
    const int64_t d_key = key_width(d, heads, o);
    *m = (struct wf_mha){.heads = heads,
                         .kv_heads = o->kv_heads > 0 ? o->kv_heads : heads,
                         .d_key = d_key,
                         .d_value = o->d_value > 0 ? o->d_value : d_key,
                         .dropout = o->dropout,
                         .residual_dropout = o->residual_dropout,
                         .cross = o->cross,
                         .apart = o->apart,
                         .no_output = o->no_output,
                         .rope = o->rope,
                         .rotary = o->rotary,
                         .window = o->window,
                         .qk_norm = o->qk_norm,
                         .softcap = o->softcap,
                         .scale = o->scale};
    if (m->qk_norm) {
        wf_rms_norm_init(wf_sub(scope, "q_norm"), &m->q_norm, d_key, .eps = o->qk_norm_eps, .from_one = o->qk_norm_from_one);
        wf_rms_norm_init(wf_sub(scope, "k_norm"), &m->k_norm, d_key, .eps = o->qk_norm_eps, .from_one = o->qk_norm_from_one);
    }
    const int64_t q = m->heads * d_key, k = m->kv_heads * d_key, v = m->kv_heads * m->d_value, memory = o->d_memory > 0 ? o->d_memory : d;
    if (m->cross)
        wf_linear_init(wf_sub(scope, "q"), &m->q, d, q, .no_bias = o->no_bias);
    /* If the stacked matrices have the same size, .parts makes Xavier's bound that of one matrix. */
    if (m->apart) {
        wf_linear_init(wf_sub(scope, "k"), &m->k, memory, k, .no_bias = o->no_bias);
        wf_linear_init(wf_sub(scope, "v"), &m->v, o->d_values > 0 ? o->d_values : memory, v, .no_bias = o->no_bias);
    } else if (m->cross) {
        wf_linear_init(wf_sub(scope, "kv"), &m->kv, memory, k + v, .no_bias = o->no_bias, .parts = k == v ? 2 : 1);
    } else {
        wf_linear_init(wf_sub(scope, "qkv"), &m->qkv, d, q + k + v, .no_bias = o->no_bias, .parts = q == k && k == v ? 3 : 1);
    }
    if (!m->no_output)
        wf_linear_init(wf_sub(scope, "out"), &m->out, m->heads * m->d_value, d, .no_bias = o->no_bias || o->no_out_bias, .residual = true);
}

enum { MADE = 6 };
struct operands {
    struct wf_mha_parts part;
    const int32_t *key_lengths, *starts; /* for wf_attention */
    wf_tensor *made[MADE];               /* tensors that this call made: q, k and v, or the tensors of which they are views */
    int count;                           /* number of tensors in `made` */
};

/* Appends the new keys and values to the cache, and replaces k and v by everything that the cache holds. False: the tape has the error. */
static bool through_cache(wf_tape *tape, const struct wf_mha_call *call, struct operands *x)
{
    struct wf_kv_held held = wf_kv_append(call->cache, x->part.k, x->part.v);
    const int64_t rows = call->cache->cache ? call->cache->cache->rows : 0;
    x->part.k = held.keys;
    x->part.v = held.values;
    x->starts = held.starts;
    if (held.lengths && call->key_lengths) { /* a row's keys end at its key length or at its last token, whichever comes first */
        int32_t *least = wf_tape_memory(tape, (size_t)rows * sizeof *least);
        for (int64_t b = 0; least && b < rows; b++)
            least[b] = WF_MIN(call->key_lengths[b], held.lengths[b]);
        x->key_lengths = least;
        return least != NULL;
    }
    if (held.lengths)
        x->key_lengths = held.lengths;
    return !wf_is_poison(held.keys);
}

/* Adds t to the tensors that this call made, which are released at its end. Returns t. */
static wf_tensor *made(struct operands *x, wf_tensor *t)
{
    return x->made[x->count++] = t;
}

/* Rotates queries and keys by their positions (RoPE). qk is one tensor [..., (H + G) E] that holds both, or NULL. */
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

/* Normalises each head of t [..., heads E]. */
static wf_tensor *norm_heads(const struct wf_rms_norm *norm, int64_t heads, int64_t e, wf_tensor *t, struct operands *x)
{
    wf_shape shape = wf_shape_of(t), split = shape;
    if (shape.ndim < 2 || shape.ndim > 3) /* wf_attention refuses such a tensor */
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

static const char cross_has_no_cache[] = "attention: a cache is for self-attention: keep a memory with wf_mha_memory instead";

/* Whether the call fits the module. If not, the tape has the error. */
static bool call_valid(const struct wf_mha *m, wf_tape *tape, const struct wf_mha_call *call)
{
    const bool memory = call->memory, kv = call->memory_kv, value = call->value;
    const struct {
        bool refused;
        const char *message;
    } row[] = {
        {call->positions && !m->rope, "attention: .positions requires rotary positions (.rope)"},
        {m->cross && call->cache, cross_has_no_cache},
        {m->cross && !memory && !kv, "attention: cross-attention needs .memory or .memory_kv"},
        {m->cross && memory && kv, "attention: give either .memory or .memory_kv"},
        {!m->cross && (memory || kv), "attention: .memory and .memory_kv require cross-attention (.cross)"},
        {!m->apart && value, "attention: .value requires a module whose values come from an input of their own (.apart)"},
        {m->apart && value && kv, "attention: .memory_kv has the values already: leave .value out"},
        {m->apart && !value && !kv, "attention: with .apart, .memory needs .value"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        if (row[i].refused) {
            wf_tape_fail(tape, WF_ERR_ARGUMENT, "%s", row[i].message);
            return false;
        }
    return true;
}

/* Fills a->part with queries, keys and values. False: the tape has the error. */
static bool project(const struct wf_mha *m, wf_tensor *x, const struct wf_mha_call *call, struct operands *a)
{
    wf_tape *tape = wf_tape_of(x);
    const int64_t q = m->heads * m->d_key, k = m->kv_heads * m->d_key, v = m->kv_heads * m->d_value;
    wf_tensor *qk = NULL;
    if (!call_valid(m, tape, call) || wf_is_poison(x) || !tape || wf_tape_error(tape)->code != WF_OK)
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
        if (call->cache && !cache_fits(tape, call->cache, a->part.k, a->part.v))
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

/* Attends, and applies output projection, dropout and residual. Releases the tensors in a->made after their last use. */
static wf_tensor *attend(const struct wf_mha *m, struct operands *a, const struct wf_mha_call *call)
{
    wf_tape *tape = wf_tape_of_operands(3, (wf_tensor *[]){a->part.q, a->part.k, a->part.v});
    a->key_lengths = call->key_lengths;
    if (call->cache && m->cross)
        return wf_tape_fail(tape, WF_ERR_ARGUMENT, cross_has_no_cache);
    if (call->cache && (!cache_fits(tape, call->cache, a->part.k, a->part.v) || !through_cache(tape, call, a)))
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

static wf_tensor *forward(const struct wf_mha *m, wf_tensor *x, struct wf_mha_call c)
{
    struct operands a = {.count = 0};
    if (wf_is_poison(x))
        return x;
    x = sublayer_begin(x, &c.residual);
    if (!project(m, x, &c, &a))
        return wf_tape_fail(wf_tape_of(x), WF_ERR_STATE, "attention: no queries and keys");
    return sublayer_end(attend(m, &a, &c), x, c.residual);
}

wf_tensor *wf_mha_forward_with(const struct wf_mha *m, wf_tensor *x, const struct wf_mha_call *call)
{
    call = call ? call : &no_call;
    wf_tensor *y = forward(m, x, *call);
    wf_weights_end(y, call->weights, 1);
    return y;
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
    call = call ? call : &no_call;
    wf_tensor *y = attend(m, &a, call);
    wf_weights_end(y, call->weights, 1);
    return y;
}
