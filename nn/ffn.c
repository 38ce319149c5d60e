/* SPDX-License-Identifier: MIT */
/* The position-wise feed-forward network. */
#include "internal.h"

static bool is_gated(enum wf_activation activation)
{
    return activation == WF_SWIGLU || activation == WF_GEGLU_TANH;
}

void wf_ffn_init_with(wf_scope scope, struct wf_ffn *m, int64_t d, int64_t d_ff, const struct wf_ffn_options *o)
{
    o = o ? o : &(struct wf_ffn_options){0};
    if ((unsigned)o->activation > WF_GEGLU_TANH)
        wf_scope_fail(scope, WF_ERR_ARGUMENT, "the activation %d is unknown", (int)o->activation);
    *m = (struct wf_ffn){.activation = o->activation,
                         .dropout = dropout_valid(scope, o->dropout) ? o->dropout : 0,
                         .residual_dropout = dropout_valid(scope, o->residual_dropout) ? o->residual_dropout : 0};
    if (is_gated(o->activation))
        wf_linear_init(wf_sub(scope, "gate"), &m->gate, d, d_ff, .no_bias = o->no_bias);
    wf_linear_init(wf_sub(scope, "up"), &m->up, d, d_ff, .no_bias = o->no_bias);
    wf_linear_init(wf_sub(scope, "down"), &m->down, d_ff, d, .no_bias = o->no_bias, .residual = true);
}

static wf_tensor *activate(enum wf_activation activation, wf_tensor *x)
{
    switch (activation) {
    case WF_RELU:
        return wf_relu(x);
    case WF_GELU:
        return wf_gelu(x);
    case WF_GELU_TANH:
        return wf_gelu_tanh(x);
    case WF_SILU:
    case WF_SWIGLU:
    case WF_GEGLU_TANH:
        break;
    }
    return wf_silu(x);
}

/* dropout(activation(up)), or with a gate dropout(activation(gate) up). Releases up and gate. */
static wf_tensor *hidden_of(const struct wf_ffn *m, wf_tensor *up, wf_tensor *gate)
{
    const bool relu = m->activation == WF_RELU; /* ReLU and dropout are one op */
    wf_tensor *h = relu   ? wf_relu_dropout(up, m->dropout)
                   : gate ? (m->activation == WF_SWIGLU ? wf_swiglu : wf_geglu_tanh)(gate, up)
                          : activate(m->activation, up);
    wf_release(gate);
    wf_release(up);
    return relu ? h : end_branch(h, m->dropout, NULL);
}

wf_tensor *wf_ffn_forward_with(const struct wf_ffn *m, wf_tensor *x, const struct wf_ffn_call *call)
{
    wf_tensor *residual = call ? call->residual : NULL;
    x = sublayer_begin(x, &residual);
    wf_tensor *up = wf_linear_forward(&m->up, x); /* [..., d_ff] */
    wf_tensor *gate = is_gated(m->activation) ? wf_linear_forward(&m->gate, x) : NULL;
    wf_tensor *h = hidden_of(m, up, gate);
    wf_tensor *y = wf_linear_forward(&m->down, h); /* [..., d] */
    wf_release(h);
    return sublayer_end(end_branch(y, m->residual_dropout, residual), x, residual);
}
