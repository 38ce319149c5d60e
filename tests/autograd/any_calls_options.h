/* SPDX-License-Identifier: MIT */
/* Calls of the functions that take options or reductions, with random, often wrong ones. */
#ifndef TESTS_ANY_CALLS_OPTIONS_H
#define TESTS_ANY_CALLS_OPTIONS_H

#include "any_tensors.h"

static wf_tensor *any_attention(wf_tensor *a, wf_tensor *b, wf_tensor *c)
{
    const int32_t lengths[] = {1, 2, 0, 3, 2, 1}, half = (int32_t)below(5);
    wf_tensor *weights = NULL;
    struct wf_attention_options o = {
        .heads = any_count(3), .kv_heads = any_count(2), .scale = any_number(0), .causal = below(2), .dropout = any_number(0.1)};
    bool packed = !below(3);
    for (int i = 0; i < 20 && (!a || wf_ndim(a) != (packed ? 2 : 3)); i++)
        a = real();
    const int32_t offsets[] = {0, half, seldom(9) ? half - 1 : half, a && wf_dim(a, 0) < 1 << 30 ? (int32_t)wf_dim(a, 0) : 3};
    if (packed) {
        o.packed = (struct wf_packed){seldom(20) ? NULL : offsets, seldom(9) ? (int)below(5) - 1 : 3};
        if (below(2))
            o.k_packed = (struct wf_packed){offsets, seldom(9) ? (int)below(4) : 3};
    }
    if (a && wf_dim(a, 0) <= 6 && below(2) && (!packed || seldom(9)))
        o.key_lengths = lengths;
    if (seldom(9))
        o.bias = below(2) ? a : any();
    if (seldom(packed ? 20 : 5))
        o.mask = below(9) ? pool[7] : any();
    if (seldom(packed ? 20 : 5))
        o.weights = &weights;
    wf_tensor *y = wf_attention_with(a, below(6) ? a : b, below(6) ? a : c, seldom(50) ? NULL : &o);
    if (weights)
        add_to_pool(weights);
    return y;
}

/* Mostly weights that fit, of zeros, so that the call goes on to the sequences and states. */
static wf_tensor *any_recurrent(wf_tensor *a, wf_tensor *b, wf_tensor *c)
{
    const bool gru = below(2), packed = !below(3);
    const int64_t H = seldom(20) ? any_size() : below(4), rows = (gru ? 3 : 4) * H;
    wf_tensor *last[2] = {NULL};
    for (int i = 0; i < 20 && (!a || wf_ndim(a) != (packed ? 2 : 3)); i++)
        a = real();
    const int64_t in = a ? wf_dim(a, -1) : 3;
    const int32_t half = (int32_t)below(5),
                  offsets[] = {0, half, seldom(9) ? half - 1 : half, a && wf_dim(a, 0) < 1 << 30 ? (int32_t)wf_dim(a, 0) : 3};
    struct wf_recurrent_options o = {.reverse = below(2), .h = seldom(5) ? b : NULL, .c = seldom(9) ? c : NULL};
    if (packed)
        o.packed = (struct wf_packed){seldom(20) ? NULL : offsets, seldom(9) ? (int)below(5) - 1 : 3};
    if (below(2))
        o.last_h = &last[0];
    if (seldom(gru ? 50 : 2))
        o.last_c = &last[1];
    wf_tensor *w = seldom(20) ? b : wf_zeros(tape, &(wf_shape){2, {rows, in}}),
              *u = seldom(20) ? c : wf_zeros(tape, &(wf_shape){2, {rows, H}}), *bias = seldom(9) ? b : NULL,
              *y = (gru ? wf_gru_with : wf_lstm_with)(a, w, u, bias, bias, seldom(50) ? NULL : &o);
    for (int i = 0; i < 2; i++)
        if (last[i])
            add_to_pool(last[i]);
    return y;
}

/* Mostly operands that fit, of zeros. */
static wf_tensor *any_selective_scan(wf_tensor *a, wf_tensor *b, wf_tensor *c)
{
    wf_tensor *last = NULL;
    for (int i = 0; i < 20 && (!a || wf_ndim(a) != 3); i++)
        a = real();
    const bool fits = a && wf_ndim(a) == 3;
    const int64_t B = fits ? wf_dim(a, 0) : 2, T = fits ? wf_dim(a, 1) : 3, E = fits ? wf_dim(a, 2) : 4,
                  N = seldom(20) ? any_size() : below(6);
    const wf_shape chosen = {3, {B, T, N}}, state = {3, {B, E, N}}, zeros = {2, {E, N}};
    struct wf_selective_scan_options o = {.d = seldom(9) ? c : NULL, .softplus = below(2), .last = below(2) ? &last : NULL};
    if (below(2))
        o.state = seldom(9) ? b : wf_zeros(tape, &state);
    wf_tensor *y =
        wf_selective_scan_with(a, seldom(9) ? b : a, seldom(20) ? c : wf_zeros(tape, &zeros), seldom(20) ? b : wf_zeros(tape, &chosen),
                               seldom(20) ? c : wf_zeros(tape, &chosen), seldom(50) ? NULL : &o);
    if (last)
        add_to_pool(last);
    return y;
}

static wf_tensor *any_loss(wf_tensor *a, wf_tensor *m, wf_tensor *bias, wf_tensor *targets)
{
    wf_tensor *plain = NULL;
    struct wf_cross_entropy_options o = {
        .has_ignore = below(2), .ignore = -3, .label_smoothing = any_number(0.1), .normalizer = any_number(0)};
    if (below(2))
        o.plain = &plain;
    if (seldom(3))
        o.reduction = (enum wf_reduction)below(5);
    if (seldom(4))
        o.class_weights = any();
    const enum wf_reduction how = (enum wf_reduction)below(5);
    switch (below(8)) {
    case 0:
        return wf_mse(a, like(a, false), how);
    case 1:
        return wf_bce_with_logits(a, wf_sigmoid(below(9) ? a : bias), .reduction = how, .positive_weight = below(2) ? NULL : bias);
    case 2:
        return wf_kl_div(a, below(9) ? a : bias, .reduction = how, .log_target = below(2));
    case 3:
        return wf_kl_normal(a, like(a, false), how);
    }
    wf_tensor *y =
        below(2) ? wf_cross_entropy_with(a, targets, seldom(50) ? NULL : &o) : wf_linear_cross_entropy_with(a, m, bias, targets, &o);
    if (plain)
        add_to_pool(plain);
    return y;
}

static wf_tensor *any_convolution(wf_tensor *a, wf_tensor *b, wf_tensor *c)
{
    const struct wf_conv_axis axes[2] = {{below(4) - 1, below(4) - 1, below(4) - 1, below(4) - 1},
                                         {below(3), below(3), below(3), below(3)}};
    const struct wf_conv_axis *some = below(2) ? axes : NULL;
    const int64_t stride = some ? 0 : below(4) - 1, padding = some ? 0 : below(4) - 1, groups = below(4) - 1;
    wf_tensor *bias = below(2) ? NULL : c;
    switch (below(6)) {
    case 0:
        return wf_max_pool(a, below(4) - 1, .stride = below(3), .padding = below(3) - 1);
    case 1:
        return wf_avg_pool(a, below(4) - 1, .padding = below(3), .skip_padding = below(2));
    case 2:
        return below(2) ? wf_adaptive_avg_pool(a, below(4) - 1, below(4) - 1)
                        : wf_resize(a, below(5) - 1, below(5) - 1, (enum wf_resize)(below(5) - 1));
    default:
        break;
    }
    if (below(2))
        return wf_conv(a, b, bias, .stride = stride, .padding = padding, .groups = groups, .axes = some);
    return wf_conv_transpose(a, b, bias, .stride = stride, .padding = padding, .output_padding = some ? 0 : below(2), .groups = groups,
                             .axes = some);
}

static wf_tensor *any_row_loss(wf_tensor *a, wf_tensor *b)
{
    const enum wf_reduction how = (enum wf_reduction)below(5);
    switch (below(5)) {
    case 0:
        return wf_l1(a, b, how);
    case 1:
        return wf_huber(a, b, any_number(1), how);
    case 2:
        return wf_cross_entropy_soft(a, below(9) ? wf_softmax(b) : b, how, any_number(0.1), seldom(9) ? any() : NULL);
    case 3:
        return wf_triplet_margin(a, b, seldom(9) ? any() : a, how, any_number(1), any_number(2), .swap = below(2));
    default:
        return wf_info_nce(a, b, how, any_number(0.1), seldom(4) ? any() : NULL, below(2));
    }
}

#endif
