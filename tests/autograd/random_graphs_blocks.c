/* SPDX-License-Identifier: MIT */
/* Attention, losses, modules, and what a pass does not keep, in random graphs. */
#include "random_graphs_choose.h"

/* Non-decreasing offsets from 0 to n. */
static void cut(struct graph *g, int32_t *offset, int sequences, int64_t n)
{
    offset[0] = 0;
    for (int i = 1; i < sequences; i++)
        offset[i] = offset[i - 1] + (int32_t)below(g, n - offset[i - 1] + 1);
    offset[sequences] = (int32_t)n;
}

static double some_softcap(struct graph *g)
{
    return below(g, 3) ? 0 : 0.5 + 0.5 * (double)below(g, 4);
}

static int64_t some_window(struct graph *g)
{
    return below(g, 3) ? 0 : 1 + below(g, 4);
}

/* One that broadcasts to scores of this shape; NULL where 16 tries find none. */
static wf_tensor *some_bias(struct graph *g, const wf_shape *scores)
{
    for (int i = 0; i < 16; i++) {
        wf_tensor *x = graph_any(g);
        wf_shape s = wf_shape_of(x), both;
        if (wf_shape_broadcast(&s, scores, &both) && wf_shape_equal(&both, scores))
            return x;
    }
    return NULL;
}

wf_tensor *graph_packed_attention(struct graph *g)
{
    wf_tensor *q = of_dims(g, 2, -1, -1, 0), *k = q ? of_dims(g, 2, -1, wf_dim(q, 1), 0) : NULL,
              *v = k ? of_dims(g, 2, wf_dim(k, 0), -1, 0) : NULL;
    if (!v || wf_dim(q, 0) * wf_dim(v, 1) > MOST)
        return NULL;
    int32_t qo[5], ko[5];
    int n = 1 + (int)below(g, 4), heads = wf_dim(q, 1) % 2 == 0 && wf_dim(v, 1) % 2 == 0 && below(g, 2) ? 2 : 1;
    cut(g, qo, n, wf_dim(q, 0));
    cut(g, ko, n, wf_dim(k, 0));
    const wf_shape scores = {4, {n, heads, wf_packed_longest((struct wf_packed){qo, n}), wf_packed_longest((struct wf_packed){ko, n})}};
    wf_tensor *bias = below(g, 2) ? NULL : some_bias(g, &scores);
    return wf_attention(q, k, v, .heads = heads, .packed = {qo, n}, .k_packed = {ko, n}, .bias = bias, .causal = below(g, 2),
                        .window = some_window(g), .softcap = some_softcap(g));
}

wf_tensor *graph_attention(struct graph *g)
{
    wf_tensor *q = of_dims(g, 3, -1, -1, -1), *weights = NULL, *mask = NULL;
    if (!q)
        return NULL;
    int64_t B = wf_dim(q, 0), T = wf_dim(q, 1), W = wf_dim(q, 2);
    int heads = W % 2 == 0 && below(g, 2) ? 2 : 1, kv_heads = heads == 2 && below(g, 2) ? 1 : heads;
    wf_tensor *k = of_dims(g, 3, B, -1, W / heads * kv_heads), *v = k ? of_dims(g, 3, B, wf_dim(k, 1), -1) : NULL;
    if (!v || wf_dim(v, 2) % kv_heads != 0 || B > 8 || B * T * wf_dim(v, 2) * 2 > MOST)
        return NULL;
    int64_t S = wf_dim(k, 1);
    int32_t lengths[8], starts[8];
    bool may[MOST];
    for (int64_t b = 0; b < B; b++) {
        lengths[b] = (int32_t)below(g, S + 1);
        starts[b] = (int32_t)below(g, S + 1);
    }
    wf_shape shape = below(g, 2) ? (wf_shape){2, {T, S}} : (wf_shape){4, {B, below(g, 2) ? heads : 1, T, S}};
    if (wf_shape_count(&shape) > MOST || B * heads * T * S > MOST)
        return NULL;
    for (int64_t i = 0; i < wf_shape_count(&shape); i++)
        may[i] = below(g, 4) > 0;
    if (!below(g, 3))
        mask = wf_bools(g->tape, may, &shape);
    wf_tensor *bias = below(g, 2) ? NULL : some_bias(g, &(wf_shape){4, {B, heads, T, S}});
    const bool wanted = !below(g, 4), causal = below(g, 2);
    const int64_t window = some_window(g);
    wf_tensor *y = wf_attention(q, k, v, .heads = heads, .kv_heads = kv_heads, .causal = causal, .window = window,
                                .key_lengths = below(g, 3) ? NULL : lengths, .starts = (causal || window) && !below(g, 3) ? starts : NULL,
                                .mask = mask, .bias = bias, .softcap = some_softcap(g), .scale = below(g, 2) ? 0.4 : 0,
                                .dropout = below(g, 3) ? 0 : 0.2, .weights = wanted ? &weights : NULL);
    if (wanted)
        graph_put(g, graph_fixed(g, weights));
    return y;
}

wf_tensor *graph_recurrent(struct graph *g)
{
    const bool packed = below(g, 2), gru = below(g, 2), states = below(g, 2);
    wf_tensor *x = packed ? of_dims(g, 2, -1, -1, 0) : of_dims(g, 3, -1, -1, -1), *last[2] = {NULL};
    int32_t offsets[5];
    const int n = 1 + (int)below(g, 4);
    if (!x)
        return NULL;
    const int64_t in = wf_dim(x, -1), H = 1 + below(g, 3), rows = (gru ? 3 : 4) * H, B = packed ? n : wf_dim(x, 0);
    if (count_of(x) / in * H > MOST || rows * in > MOST || B * H > MOST)
        return NULL;
    if (packed)
        cut(g, offsets, n, wf_dim(x, 0));
    const wf_shape state = {2, {B, H}}, bias = {1, {rows}};
    struct wf_recurrent_options o = {.reverse = below(g, 2),
                                     .packed = {packed ? offsets : NULL, packed ? n : 0},
                                     .h = below(g, 2) ? of_elements(g, &state) : NULL,
                                     .c = !gru && below(g, 2) ? of_elements(g, &state) : NULL,
                                     .last_h = states ? &last[0] : NULL,
                                     .last_c = states && !gru ? &last[1] : NULL};
    wf_tensor *w = of_elements(g, &(wf_shape){2, {rows, in}}), *u = of_elements(g, &(wf_shape){2, {rows, H}}),
              *b = below(g, 2) ? of_elements(g, &bias) : NULL, *y = (gru ? wf_gru_with : wf_lstm_with)(x, w, u, b, b, &o);
    for (int i = 0; i < 2; i++)
        if (last[i])
            graph_put(g, last[i]);
    return y;
}

/* The step and A are below 1, so that no state grows beyond e^T. */
wf_tensor *graph_selective_scan(struct graph *g)
{
    wf_tensor *x = of_dims(g, 3, -1, -1, -1), *last = NULL;
    if (!x)
        return NULL;
    const int64_t B = wf_dim(x, 0), T = wf_dim(x, 1), E = wf_dim(x, 2), N = 1 + below(g, 5);
    if (E * N > MOST || B * T * N > MOST || B * E * N > MOST)
        return NULL;
    const wf_shape each = wf_shape_of(x), chosen = {3, {B, T, N}}, state = {3, {B, E, N}};
    wf_tensor *dt = wf_tanh(below(g, 2) ? x : of_elements(g, &each)), *a = wf_tanh(of_elements(g, &(wf_shape){2, {E, N}})),
              *b = of_elements(g, &chosen), *c = below(g, 3) ? of_elements(g, &chosen) : b;
    wf_tensor *d = below(g, 2) ? of_elements(g, &(wf_shape){1, {E}}) : NULL, *h = below(g, 2) ? of_elements(g, &state) : NULL;
    wf_tensor *y = wf_selective_scan(x, dt, a, b, c, .d = d, .state = h, .softplus = below(g, 2), .last = below(g, 2) ? &last : NULL);
    if (last)
        graph_put(g, last);
    return y;
}

wf_tensor *graph_losses(struct graph *g)
{
    wf_tensor *x = ending(g, 0, -1), *plain = NULL, *y;
    if (!x)
        return NULL;
    int32_t ignore = below(g, 2) ? -1 : 0;
    bool wanted = !below(g, 3);
    const enum wf_reduction how = (enum wf_reduction)below(g, 3);
    double smoothing = below(g, 2) ? 0.1 : 0, normalizer = how != WF_REDUCE_MEAN || below(g, 3) ? 0 : 7;
    wf_shape s = without_last(x);
    if (below(g, 2)) {
        y = wf_cross_entropy(x, ids(g, &s, wf_dim(x, -1), ignore), .has_ignore = ignore != 0, .ignore = ignore,
                             .label_smoothing = smoothing, .normalizer = normalizer, .reduction = how, .plain = wanted ? &plain : NULL);
    } else {
        wf_tensor *weight = of_dims(g, 2, -1, wf_dim(x, -1), 0),
                  *bias = weight && below(g, 2) ? of_dims(g, 1, wf_dim(weight, 0), 0, 0) : NULL;
        if (!weight)
            return NULL;
        y = wf_linear_cross_entropy(x, weight, bias, ids(g, &s, wf_dim(weight, 0), ignore), .has_ignore = ignore != 0, .ignore = ignore,
                                    .label_smoothing = smoothing, .normalizer = normalizer, .reduction = how,
                                    .plain = wanted ? &plain : NULL);
    }
    if (wanted)
        graph_put(g, graph_fixed(g, plain));
    return y;
}

wf_tensor *graph_modules(struct graph *g)
{
    wf_tensor *x = ending(g, 0, 4);
    if (!x || count_of(x) > MOST / 4)
        return NULL;
    switch (below(g, 7)) {
    case 0:
        return wf_linear_forward(&g->module.linear, x);
    case 1:
        return wf_rms_norm_forward(&g->module.rms, x);
    case 2:
        return wf_layer_norm_forward(&g->module.norm, x);
    case 3:
    case 4:
        return wf_ffn_forward(&g->module.ffn[below(g, 5)], x, .residual = below(g, 2) ? x : NULL);
    case 5:
        return wf_ndim(x) == 3 ? wf_mha_forward(&g->module.self, x, .causal = below(g, 2), .residual = below(g, 2) ? x : NULL) : NULL;
    default: {
        wf_tensor *memory = wf_ndim(x) == 3 ? of_dims(g, 3, wf_dim(x, 0), -1, 6) : NULL;
        if (!memory || count_of(memory) > MOST / 4)
            return NULL;
        if (below(g, 2))
            return wf_mha_forward(&g->module.cross, x, .memory = memory);
        return wf_mha_forward(&g->module.cross, x, .memory_kv = wf_mha_memory(&g->module.cross, memory));
    }
    }
}

/* --- what is not kept ------------------------------------------------------------------------------------------------ */

wf_tensor *graph_released(struct graph *g)
{
    wf_tensor *x = graph_any(g), *h = wf_affine(x, 0.9, 0.2), *y = below(g, 2) ? wf_gelu(h) : wf_tanh(h);
    wf_release(h);
    wf_tensor *z = wf_mul(y, below(g, 2) ? x : y);
    wf_release(y);
    return z;
}

wf_tensor *graph_without_gradient(struct graph *g)
{
    bool before = wf_tape_no_grad(g->tape, true);
    wf_tensor *a = graph_any(g), *y = wf_tanh(wf_add(a, beside(g, a)));
    wf_tape_no_grad(g->tape, before);
    return graph_fixed(g, y);
}

static wf_tensor *part_of_checkpoint(void *ctx, wf_tensor *x)
{
    const struct checkpointed *p = ctx;
    wf_tensor *y;
    switch (p->kind) {
    case 0:
        y = wf_gelu(wf_mul(x, p->other));
        break;
    case 1:
        y = wf_subtract(wf_exp(wf_scale(x, 0.5)), wf_mean(x));
        break;
    case 2:
        y = wf_dropout(wf_sigmoid(x), 0.2);
        break;
    case 3:
        y = wf_linear_forward(&p->g->module.linear, wf_silu(x));
        break;
    case 4:
        y = wf_ffn_forward(&p->g->module.ffn[2], x, .residual = x);
        break;
    default:
        y = wf_mha_forward(&p->g->module.self, wf_rms_norm_forward(&p->g->module.rms, x), .causal = true, .residual = x);
        break;
    }
    return p->inner >= 0 ? wf_checkpoint(part_of_checkpoint, &p->g->part[p->inner], y) : y;
}

wf_tensor *graph_checkpoint(struct graph *g)
{
    wf_tensor *x = below(g, 2) ? graph_any(g) : ending(g, 0, 4);
    if (!x || count_of(x) > MOST / 4 || g->parts >= PARTS - 2)
        return NULL;
    for (int i = 0, n = 1 + (int)below(g, 2); i < n; i++) { /* those that come first lie deeper */
        int64_t kinds = wf_ndim(x) == 0 || wf_dim(x, -1) != 4 ? 3 : wf_ndim(x) == 3 ? 6 : 5;
        g->part[g->parts] = (struct checkpointed){g, (int)below(g, kinds), i > 0 ? g->parts - 1 : -1, NULL};
        g->part[g->parts].other = positive(wf_mean(graph_any(g)));
        g->parts++;
    }
    return wf_checkpoint(part_of_checkpoint, &g->part[g->parts - 1], x);
}
