/* SPDX-License-Identifier: MIT */
/* Checks the options of attention, and sets the shapes of its results. */
#include <math.h>

#include "attention.h"
#include "common.h"

wf_shape wf_attention_scores(const wf_call *c, int i)
{
    const struct attention_attr *a = c->attr;
    const wf_array *q = &c->in[Q], *k = &c->in[K], *over = &c->in[i];
    if (!wf_is_packed(a->packed))
        return (wf_shape){4, {q->dim[0], a->heads, q->dim[1], k->dim[1]}};
    wf_shape full = {4, {a->packed.count, a->heads, wf_packed_longest(a->packed), wf_packed_longest(a->k_packed)}};
    for (int d = 2; d < 4; d++) {
        const int at = over->ndim - 4 + d;
        if (at >= 0 && over->dim[at] > full.dim[d])
            full.dim[d] = over->dim[at];
    }
    return full;
}

/* Checks the dtype and the shape of a mask or a bias, if one is given. */
static wf_status check_over_scores(wf_call *c, int operand, wf_dtype dtype, const char *what)
{
    if (!wf_has(c, operand))
        return WF_OK;
    if (wf_want(c, operand, dtype) != WF_OK)
        return WF_ERR_ARGUMENT;
    const wf_shape shape = wf_array_shape(&c->in[operand]), full = wf_attention_scores(c, operand);
    wf_shape both;
    char text[96];
    if (!wf_shape_broadcast(&shape, &full, &both) || !wf_shape_equal(&both, &full))
        return wf_call_fail(c, WF_ERR_SHAPE, "the %s must broadcast to %s = %s", what,
                            wf_is_packed(((const struct attention_attr *)c->attr)->packed)
                                ? "[sequences,H,L,K], L and K of the longest sequences or more,"
                                : "[B,H,T,S]",
                            wf_shape_text(&full, text, sizeof text));
    return WF_OK;
}

wf_status wf_attention_shape(wf_call *c)
{
    const struct attention_attr *a = c->attr;
    if (wf_want_reals(c, 3) != WF_OK)
        return WF_ERR_ARGUMENT;
    const wf_array *q = &c->in[Q], *k = &c->in[K], *v = &c->in[V];
    const bool packed = wf_is_packed(a->packed);
    const int n = packed ? 2 : 3, last = n - 1;
    if (q->ndim != n || k->ndim != n || v->ndim != n)
        return wf_call_fail(c, WF_ERR_SHAPE,
                            packed ? "packed q, k and v must be [rows, width]"
                                   : "q must be [B,T,H*E], k [B,S,G*E] and v [B,S,G*F]; or [N,H*E], [M,G*E] and [M,G*F] with .packed");
    if (a->heads < 1 || a->kv_heads < 1 || a->heads % a->kv_heads != 0)
        return wf_call_fail(c, WF_ERR_ARGUMENT, "heads = %d is not a multiple of kv_heads = %d", a->heads, a->kv_heads);
    if (q->dim[last] < 1 || q->dim[last] % a->heads != 0)
        return wf_call_fail(c, WF_ERR_SHAPE, "the width %lld of q is not divisible by %d heads", (long long)q->dim[last], a->heads);
    const int64_t e = q->dim[last] / a->heads;
    if (k->dim[last] != e * a->kv_heads)
        return wf_call_fail(c, WF_ERR_SHAPE, "the width of k must be %lld: %d heads of width %lld", (long long)(e * a->kv_heads),
                            a->kv_heads, (long long)e);
    if (v->dim[last] < 1 || v->dim[last] % a->kv_heads != 0)
        return wf_call_fail(c, WF_ERR_SHAPE, "the width %lld of v is not divisible by %d heads", (long long)v->dim[last], a->kv_heads);
    if (k->dim[n - 2] != v->dim[n - 2] || (n == 3 && (q->dim[0] != k->dim[0] || q->dim[0] != v->dim[0])))
        return wf_call_fail(c, WF_ERR_SHAPE, "q, k and v must have the same B, and k and v the same S");
    if (!(a->dropout >= 0 && a->dropout < 1))
        return wf_call_fail(c, WF_ERR_ARGUMENT, "dropout = %g is not in 0 <= p < 1", a->dropout);
    if (!isfinite(a->scale))
        return wf_call_fail(c, WF_ERR_ARGUMENT, "scale = %g is not finite", a->scale);
    if (!(a->softcap == 0 || (a->softcap >= 1e-30 && a->softcap <= 1e30)))
        return wf_call_fail(c, WF_ERR_ARGUMENT, "softcap = %g is not in 1e-30 .. 1e30; 0 stands for none", a->softcap);
    if (a->window < 0)
        return wf_call_fail(c, WF_ERR_ARGUMENT, "window = %lld is negative; 0 stands for none", (long long)a->window);
    wf_status status = WF_OK;
    if (packed) {
        if (a->key_lengths || a->starts || c->outputs > 1)
            return wf_call_fail(c, WF_ERR_ARGUMENT, "packed rows cannot be combined with key_lengths, starts or weights");
        status = wf_want_packed(c, a->packed, "packed", q->dim[0]);
        if (status == WF_OK && a->k_packed.count != a->packed.count)
            status = wf_call_fail(c, WF_ERR_ARGUMENT, "k_packed has %d sequences, but packed has %d", a->k_packed.count, a->packed.count);
        if (status == WF_OK)
            status = wf_want_packed(c, a->k_packed, "k_packed", k->dim[0]);
    }
    if (status == WF_OK)
        status = check_over_scores(c, MASK, WF_BOOL, "mask");
    if (status == WF_OK)
        status = check_over_scores(c, BIAS, WF_REAL, "bias");
    if (!packed) {
        for (int64_t b = 0; status == WF_OK && a->key_lengths && b < q->dim[0]; b++)
            if (a->key_lengths[b] < 0 || a->key_lengths[b] > k->dim[1])
                status = wf_call_fail(c, WF_ERR_ARGUMENT, "key_lengths[%lld] = %d is not in 0 .. %lld", (long long)b, a->key_lengths[b],
                                      (long long)k->dim[1]);
        if (status == WF_OK && a->starts && !a->causal && a->window == 0)
            status = wf_call_fail(c, WF_ERR_ARGUMENT, "starts say what causal or a window means: set causal, too, or window");
        for (int64_t b = 0; status == WF_OK && a->starts && b < q->dim[0]; b++)
            if (a->starts[b] < 0 || a->starts[b] > k->dim[1])
                status = wf_call_fail(c, WF_ERR_ARGUMENT, "starts[%lld] = %d is not in 0 .. %lld", (long long)b, a->starts[b],
                                      (long long)k->dim[1]);
        if (c->outputs > 1)
            c->out[1] = wf_call_shape(WF_REAL, &(wf_shape){4, {q->dim[0], a->heads, q->dim[1], k->dim[1]}});
    }
    wf_shape out = wf_array_shape(q),
             each = packed ? (wf_shape){2, {a->heads, q->dim[0]}} : (wf_shape){3, {q->dim[0], a->heads, q->dim[1]}};
    out.dim[last] = v->dim[last] / a->kv_heads * a->heads;
    c->out[0] = wf_call_shape(WF_REAL, &out);
    c->saved[0] = c->saved[1] = wf_call_shape(WF_REAL, &each);
    return status;
}
