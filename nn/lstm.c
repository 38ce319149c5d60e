/* SPDX-License-Identifier: MIT */
/* LSTM and GRU: layers and directions of the ops wf_lstm and wf_gru. Rows of several lengths are packed for the layers, so that no layer
 * computes steps after the end of a row. */
#include <math.h>
#include <stdio.h>

#include <weft/lstm.h>

#include "internal.h"

/* --- parameters ------------------------------------------------------------------------------------------------------ */

static wf_tensor *declare(wf_scope scope, const char *what, int layer, bool reverse, const wf_shape *shape, struct wf_initializer init)
{
    char name[64];
    snprintf(name, sizeof name, "%s_l%d%s", what, layer, reverse ? "_reverse" : "");
    return wf_parameter(scope, name, shape, .init = init);
}

static void recurrent_init(wf_scope scope, struct wf_recurrent *m, bool gru, int64_t in, int64_t hidden,
                           const struct wf_recurrent_module_options *o)
{
    o = o ? o : &(struct wf_recurrent_module_options){0};
    const int layers = o->layers != 0 ? o->layers : 1, directions = o->bidirectional ? 2 : 1;
    *m = (struct wf_recurrent){
        .directions = directions, .gru = gru, .hidden = hidden, .dropout = dropout_valid(scope, o->dropout) ? o->dropout : 0};
    if (layers < 1 || layers > 1024) {
        wf_scope_fail(scope, WF_ERR_ARGUMENT, "layers = %d must be in 1 .. 1024", layers);
        return;
    }
    if (hidden < 1 || hidden > (int64_t)1 << 24 || in < 1 || in > (int64_t)1 << 31) {
        wf_scope_fail(scope, WF_ERR_ARGUMENT, "an input of %lld and a state of %lld numbers are no sizes of a recurrent layer",
                      (long long)in, (long long)hidden);
        return;
    }
    m->layer = scope.registry ? wf_arena_get(scope.registry->arena, (size_t)(layers * directions) * sizeof *m->layer) : NULL;
    if (!m->layer) {
        wf_scope_fail(scope, WF_ERR_MEMORY, "no memory for %d layers", layers);
        return;
    }
    m->layers = layers;
    struct wf_initializer weight = init_or(&o->init, scope.rules ? &scope.rules->weight : NULL, WF_INIT_FAN_IN, 0);
    struct wf_initializer bias = init_or(scope.rules ? &scope.rules->bias : NULL, NULL, WF_INIT_FAN_IN, 0);
    const int64_t rows = (gru ? 3 : 4) * hidden;
    if (weight.kind == WF_INIT_FAN_IN)
        fan_in_or(&weight, hidden); /* PyTorch's bound, 1 / sqrt(H), for weight_ih too */
    weight.parts = gru ? 3 : 4;
    fan_in_or(&bias, hidden);
    for (int l = 0; l < layers; l++)
        for (int d = 0; d < directions; d++) {
            struct wf_recurrent_layer *at = &m->layer[l * directions + d];
            at->weight_ih = declare(scope, "weight_ih", l, d, WF_SHAPE(rows, l > 0 ? directions * hidden : in), weight);
            at->weight_hh = declare(scope, "weight_hh", l, d, WF_SHAPE(rows, hidden), weight);
            at->bias_ih = o->no_bias ? NULL : declare(scope, "bias_ih", l, d, WF_SHAPE(rows), bias);
            at->bias_hh = o->no_bias ? NULL : declare(scope, "bias_hh", l, d, WF_SHAPE(rows), bias);
        }
}

void wf_lstm_init_with(wf_scope scope, struct wf_recurrent *m, int64_t in, int64_t hidden,
                       const struct wf_recurrent_module_options *options)
{
    recurrent_init(scope, m, false, in, hidden, options);
}

void wf_gru_init_with(wf_scope scope, struct wf_recurrent *m, int64_t in, int64_t hidden, const struct wf_recurrent_module_options *options)
{
    recurrent_init(scope, m, true, in, hidden, options);
}

int64_t wf_recurrent_width(const struct wf_recurrent *m)
{
    return m->gru ? m->hidden : 2 * m->hidden;
}

/* --- checks ---------------------------------------------------------------------------------------------------------- */

/* Fails unless `state` is absent or [layers * directions, B, H]. */
static bool state_fits(wf_tape *tape, const struct wf_recurrent *m, const char *what, const wf_tensor *state, int64_t B)
{
    const int n = m->layers * m->directions;
    if (!state || wf_is_poison(state) ||
        (wf_ndim(state) == 3 && wf_dim(state, 0) == n && wf_dim(state, 1) == B && wf_dim(state, 2) == m->hidden))
        return true;
    wf_tape_fail(tape, WF_ERR_SHAPE, "wf_recurrent_forward: the initial state %s must be [layers * directions, B, H] = [%d,%lld,%lld]",
                 what, n, (long long)B, (long long)m->hidden);
    return false;
}

static bool cache_has_layers(wf_tape *tape, const struct wf_recurrent *m, const struct wf_recurrent_call *call)
{
    const struct wf_kv *kv = call->cache;
    if (!kv)
        return true;
    if (m->directions > 1 || call->lengths || wf_is_packed(call->packed) || call->h || call->c || call->last_h || call->last_c)
        wf_tape_fail(tape, WF_ERR_ARGUMENT, "wf_recurrent_forward: a cache is for one direction, without lengths, packed rows and states");
    else if (!kv->cache || kv->cache->layers - (kv - kv->cache->layer) < m->layers)
        wf_tape_fail(tape, WF_ERR_ARGUMENT, "wf_recurrent_forward: the cache has fewer than %d layers from the given one on", m->layers);
    else
        return true;
    return false;
}

static bool call_fits(wf_tape *tape, const struct wf_recurrent *m, wf_tensor *x, const struct wf_recurrent_call *call)
{
    const bool packed = wf_is_packed(call->packed);
    const int64_t B = packed ? call->packed.count : wf_dim(x, 0);
    if (m->layers < 1)
        wf_tape_fail(tape, WF_ERR_ARGUMENT, "wf_recurrent_forward: the module needs wf_lstm_init or wf_gru_init");
    else if (wf_ndim(x) != (packed ? 2 : 3))
        wf_tape_fail(tape, WF_ERR_SHAPE, "wf_recurrent_forward: x must be %s", packed ? "[N,in] with .packed" : "[B,T,in]");
    else if (packed && call->lengths)
        wf_tape_fail(tape, WF_ERR_ARGUMENT, "wf_recurrent_forward: .lengths is for rows that are not packed");
    else if (m->gru && (call->c || call->last_c))
        wf_tape_fail(tape, WF_ERR_ARGUMENT, "wf_recurrent_forward: .c and .last_c are for the LSTM: a GRU has no state c");
    else
        return state_fits(tape, m, "h", call->h, B) && state_fits(tape, m, "c", call->c, B) && cache_has_layers(tape, m, call);
    return false;
}

/* Sets *packed to the rows of x [B,T,...] that `lengths` leaves; zeroed if it leaves all rows. False with the tape's error. */
static bool pack_lengths(wf_tape *tape, const int32_t *lengths, const wf_tensor *x, struct wf_packed *packed)
{
    const int64_t B = wf_dim(x, 0), T = wf_dim(x, 1);
    *packed = (struct wf_packed){0};
    if (B * T > INT32_MAX) {
        wf_tape_fail(tape, WF_ERR_SHAPE, "wf_recurrent_forward: %lld x %lld rows with lengths are too many", (long long)B, (long long)T);
        return false;
    }
    int32_t *offsets = wf_tape_memory(tape, (size_t)(B + 1) * sizeof *offsets);
    if (!offsets)
        return false;
    offsets[0] = 0;
    for (int64_t b = 0; b < B; b++) {
        if (lengths[b] < 0 || lengths[b] > T) {
            wf_tape_fail(tape, WF_ERR_ARGUMENT, "wf_recurrent_forward: lengths[%lld] = %d must be in 0 .. %lld, the steps of x",
                         (long long)b, lengths[b], (long long)T);
            return false;
        }
        offsets[b + 1] = offsets[b] + lengths[b];
    }
    if (offsets[B] < B * T)
        *packed = (struct wf_packed){offsets, (int)B};
    return true;
}

/* --- forward --------------------------------------------------------------------------------------------------------- */

struct pass {
    const struct wf_recurrent *m;
    const struct wf_recurrent_call *call;
    struct wf_packed packed;
    wf_tensor **last_h, **last_c; /* [layers * directions], or NULL */
};

/* Layer number i of m->layer, over the sequences x. With a cache, `state` is the state in it. */
static wf_tensor *one_direction(const struct pass *p, int i, wf_tensor *x, wf_tensor *state)
{
    const struct wf_recurrent *m = p->m;
    const struct wf_recurrent_layer *l = &m->layer[i];
    const int64_t H = m->hidden;
    const struct wf_recurrent_options o = {.reverse = i % m->directions == 1,
                                           .packed = p->packed,
                                           .h = state        ? wf_slice(state, 1, 0, H)
                                                : p->call->h ? wf_select(p->call->h, 0, i)
                                                             : NULL,
                                           .c = m->gru       ? NULL
                                                : state      ? wf_slice(state, 1, H, H)
                                                : p->call->c ? wf_select(p->call->c, 0, i)
                                                             : NULL,
                                           .last_h = p->last_h ? &p->last_h[i] : NULL,
                                           .last_c = p->last_c ? &p->last_c[i] : NULL};
    return (m->gru ? wf_gru_with : wf_lstm_with)(x, l->weight_ih, l->weight_hh, l->bias_ih, l->bias_hh, &o);
}

/* All directions of layer l. */
static wf_tensor *one_layer(const struct pass *p, int l, wf_tensor *x)
{
    const struct wf_recurrent *m = p->m;
    if (m->directions == 1 && !p->call->cache)
        return one_direction(p, l, x, NULL);
    if (m->directions == 1) {
        struct wf_kv *kv = p->call->cache + l;
        wf_tensor *state = wf_kv_state(kv, x, wf_recurrent_width(m)), *y = one_direction(p, l, x, state);
        wf_tensor *last = m->gru ? p->last_h[l] : wf_concat((wf_tensor *[]){p->last_h[l], p->last_c[l]}, 2, 1);
        wf_kv_set_state(kv, last);
        wf_release(last);
        return y;
    }
    wf_tensor *y[2] = {one_direction(p, 2 * l, x, NULL), one_direction(p, 2 * l + 1, x, NULL)};
    wf_tensor *both = wf_concat(y, 2, -1);
    wf_release(y[0]);
    wf_release(y[1]);
    return both;
}

/* y [N,...] of the packed rows as [B,T,...], with zeros in the other rows. */
static wf_tensor *unpack(wf_tape *tape, wf_tensor *y, struct wf_packed packed, int64_t T)
{
    wf_tensor *padded = wf_pad_rows(y, packed, 0);
    const int64_t missing = T - wf_packed_longest(packed);
    wf_release(y);
    if (missing == 0)
        return padded;
    wf_tensor *all = wf_concat((wf_tensor *[]){padded, wf_zeros(tape, WF_SHAPE(packed.count, missing, wf_dim(padded, 2)))}, 2, 1);
    wf_release(padded);
    return all;
}

/* Sets *to, if it is wanted, to the states of all layers and directions in one tensor, and releases `last`, if there are any. */
static void stack_states(wf_tensor **last, int n, wf_tensor **to)
{
    if (to)
        *to = wf_stack(last, n, 0);
    for (int i = 0; last && i < n; i++)
        wf_release(last[i]);
}

wf_tensor *wf_recurrent_forward_with(const struct wf_recurrent *m, wf_tensor *x, const struct wf_recurrent_call *call)
{
    static const struct wf_recurrent_call none;
    call = call ? call : &none;
    wf_tape *tape = wf_tape_of(x);
    if (call->last_h)
        *call->last_h = x; /* if x is poison, so are the states */
    if (call->last_c)
        *call->last_c = x;
    if (!tape || wf_is_poison(x))
        return wf_neg(x); /* x is invalid: this op returns poison, and the error is set */
    struct pass p = {m, call, call->packed, NULL, NULL};
    wf_tensor *poison = NULL;
    if (!call_fits(tape, m, x, call) || (call->lengths && !pack_lengths(tape, call->lengths, x, &p.packed)))
        poison = wf_tape_fail(tape, WF_ERR_STATE, "wf_recurrent_forward");
    const int n = m->layers * m->directions;
    const bool states = call->last_h || call->last_c || call->cache;
    if (!poison && states) {
        p.last_h = wf_tape_memory(tape, (size_t)n * sizeof *p.last_h);
        p.last_c = m->gru || (!call->last_c && !call->cache) ? NULL : wf_tape_memory(tape, (size_t)n * sizeof *p.last_c);
        if (!p.last_h || (!p.last_c && !m->gru && (call->last_c || call->cache)))
            poison = wf_tape_fail(tape, WF_ERR_MEMORY, "wf_recurrent_forward: no memory for %d states", n);
    }
    if (poison) {
        if (call->last_h)
            *call->last_h = poison;
        if (call->last_c)
            *call->last_c = poison;
        return poison;
    }
    const bool pack = call->lengths && wf_is_packed(p.packed);
    wf_tensor *y = pack ? wf_pack_rows(x, p.packed) : x;
    for (int l = 0; l < m->layers; l++) {
        wf_tensor *in = l > 0 && m->dropout > 0 ? wf_dropout(y, m->dropout) : y;
        if (in != y)
            wf_release(y);
        y = one_layer(&p, l, in);
        if (in != x)
            wf_release(in);
    }
    stack_states(p.last_h, n, call->last_h);
    stack_states(p.last_c, n, call->last_c);
    return pack ? unpack(tape, y, p.packed, wf_dim(x, 1)) : y;
}
