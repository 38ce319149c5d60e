/* SPDX-License-Identifier: MIT */
/* The position-wise feed-forward network. */
#include "internal.h"

void wf_ffn_init_with(wf_scope scope, struct wf_ffn *m, int64_t d, int64_t d_ff, const struct wf_ffn_options *o)
{
    o = o ? o : &(struct wf_ffn_options){0};
    if ((unsigned)o->activation > WF_SWIGLU)
        wf_scope_fail(scope, WF_ERR_ARGUMENT, "the activation %d is unknown", (int)o->activation);
    *m = (struct wf_ffn){.activation = o->activation, .dropout = dropout_valid(scope, o->dropout) ? o->dropout : 0};
    if (o->activation == WF_SWIGLU)
        wf_linear_init(wf_sub(scope, "gate"), &m->gate, d, d_ff, .no_bias = o->no_bias);
    wf_linear_init(wf_sub(scope, "up"), &m->up, d, d_ff, .no_bias = o->no_bias);
    wf_linear_init(wf_sub(scope, "down"), &m->down, d_ff, d, .no_bias = o->no_bias, .residual = true);
}

wf_tensor *wf_ffn_forward(const struct wf_ffn *m, wf_tensor *x)
{
    wf_tensor *h = wf_linear_forward(&m->up, x); /* [..., d_ff] */
    switch (m->activation) {
    case WF_RELU:
        h = wf_relu(h);
        break;
    case WF_GELU:
        h = wf_gelu(h);
        break;
    case WF_GELU_TANH:
        h = wf_gelu_tanh(h);
        break;
    case WF_SILU:
        h = wf_silu(h);
        break;
    case WF_SWIGLU:
        h = wf_mul(wf_silu(wf_linear_forward(&m->gate, x)), h);
        break;
    }
    if (m->dropout > 0)
        h = wf_dropout(h, m->dropout);
    return wf_linear_forward(&m->down, h); /* [..., d] */
}
