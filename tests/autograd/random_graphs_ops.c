/* SPDX-License-Identifier: MIT */
/* The ops of random graphs: each chooses operands that fit among the tensors so far. See random_graphs.h. */
#include "random_graphs_choose.h"

#include <math.h>
#include <string.h>

#include <weft/internal/minmax.h>

wf_tensor *graph_any(struct graph *g)
{
    int n = g->pooled;
    int64_t i = below(g, 3) ? n - 1 - below(g, WF_MIN(n, 6)) : below(g, n);
    g->chosen[i] = true;
    return g->pool[i];
}

/* --- ops: NULL where no operands fit ---------------------------------------------------------------------------------- */

static wf_tensor *arithmetic(struct graph *g)
{
    wf_tensor *a = graph_any(g), *b = beside(g, a);
    switch (below(g, 6)) {
    case 0:
    case 1:
        return wf_add(a, b);
    case 2:
        return wf_subtract(a, b);
    case 3:
    case 4:
        return wf_mul(a, b);
    default:
        return wf_div(a, positive(b));
    }
}

static wf_tensor *function(struct graph *g)
{
    static wf_tensor *(*const smooth[])(wf_tensor *) = {wf_neg,    wf_exp, wf_tanh, wf_sigmoid, wf_gelu,        wf_gelu_tanh, wf_silu,
                                                        wf_square, wf_sin, wf_cos,  wf_erf,     wf_log_sigmoid, wf_mish};
    wf_tensor *x = graph_any(g);
    double least, most;
    int64_t which = below(g, 10 + (int64_t)(sizeof smooth / sizeof *smooth));
    switch (which) {
    case 0:
        return wf_affine(x, 0.1 * (double)(below(g, 41) - 20), 0.1 * (double)(below(g, 41) - 20));
    case 1:
        return wf_scale(x, 1.5);
    case 2:
        return wf_log(positive(x));
    case 3:
        return below(g, 2) ? wf_sqrt(positive(x)) : wf_rsqrt(positive(x));
    case 4:
        return wf_softplus(x, 0.5 + 0.25 * (double)below(g, 8));
    case 5:
        return wf_pow_constant(positive(x), 0.25 * (double)(below(g, 13) - 6));
    case 6:
        return wf_pow(positive(x), wf_tanh(beside(g, x)));
    case 7:
        return wf_div_constant(wf_constant_minus(1.5, x), 3);
    case 8:
        return below(g, 2) ? wf_softcap(x, 1.5) : wf_constant_over(0.5, wf_add_constant(wf_square(x), 0.7));
    case 9:
        graph_magnitudes(g, x, &least, &most);
        x = least > 1e-3 ? x : positive(x);
        return below(g, 2) ? wf_relu(x) : wf_relu_dropout(x, 0.1 * (double)(1 + below(g, 5)));
    default:
        return smooth[which - 10](x);
    }
}

/* Functions that bend at 0, and at ties: not where a moved leaf could cross. */
static wf_tensor *bent(struct graph *g)
{
    wf_tensor *x = graph_any(g), *y = beside(g, x);
    double least, most;
    switch (below(g, 8)) {
    case 6:
        x = wf_scale(wf_tanh(x), 2.5); /* -3 and 3, where it bends, are out of reach */
        return wf_hard_swish(x);
    case 7:
        return wf_mul(x, wf_sign(wf_add_constant(wf_square(y), 0.5)));
    case 0:
        graph_magnitudes(g, x, &least, &most);
        return wf_abs(least > 1e-3 ? x : wf_neg(positive(x)));
    case 1:
        graph_magnitudes(g, x, &least, &most);
        return wf_leaky_relu(least > 1e-3 ? x : wf_neg(positive(x)), 0.25);
    case 2:
        graph_magnitudes(g, x, &least, &most);
        return wf_elu(least > 1e-3 ? x : wf_neg(positive(x)), 0.75);
    case 3:
        graph_magnitudes(g, wf_add_constant(x, -0.5), &least, &most);
        return wf_clamp(least > 1e-3 ? x : wf_add_constant(positive(x), 0.5), 0.5, INFINITY);
    default:
        graph_magnitudes(g, wf_subtract(x, y), &least, &most);
        if (least <= 1e-3)
            y = wf_neg(positive(y)), x = positive(x);
        return below(g, 2) ? wf_maximum(x, y) : wf_minimum(x, y);
    }
}

/* Extremes of elements that are far apart: tanh(x) plus 0, 3, 6, ... along each row, rotated by a random number of places. */
static wf_tensor *extremes(struct graph *g)
{
    wf_tensor *x = ending(g, 0, -1), *ids;
    if (!x)
        return NULL;
    int64_t n = wf_dim(x, -1), first = below(g, n);
    wf_real order[MOST];
    for (int64_t i = 0; i < n; i++)
        order[i] = (wf_real)(3 * ((i + first) % n));
    x = wf_add(wf_tanh(x), wf_input(g->tape, order, WF_SHAPE(n), false));
    switch (below(g, 4)) {
    case 0:
        return wf_max_dim(x, -1, below(g, 2), &ids);
    case 1:
        return wf_min_dim(x, wf_ndim(x) - 1, below(g, 2), NULL);
    default:
        return wf_top_k(x, 1 + below(g, n), -1, below(g, 2) ? &ids : NULL);
    }
}

/* The choice is the base point's. */
static wf_tensor *where(struct graph *g)
{
    wf_tensor *a = graph_any(g), *b = beside(g, a);
    wf_tensor *choice = wf_gt_constant(graph_fixed(g, below(g, 2) ? a : b), 0.1 * (double)(below(g, 11) - 5));
    return below(g, 2) ? wf_where(choice, a, b) : wf_where(wf_not(choice), b, a);
}

static wf_tensor *reshape(struct graph *g)
{
    wf_tensor *x = graph_any(g);
    wf_shape s = wf_shape_of(x);
    int d = s.ndim ? (int)below(g, s.ndim) : 0;
    if (s.ndim > 1 && below(g, 2)) { /* two dims become one */
        d = d < s.ndim - 1 ? d : s.ndim - 2;
        s.dim[d] *= s.dim[d + 1];
        memmove(s.dim + d + 1, s.dim + d + 2, (size_t)(WF_MAX_DIMS - d - 2) * sizeof *s.dim);
        s.ndim--;
    } else if (s.ndim < 4) { /* a dim becomes two, or a 1 is added */
        int64_t part = s.ndim == 0 ? 1 : s.dim[d] % 2 == 0 ? 2 : s.dim[d] % 3 == 0 ? 3 : 1;
        memmove(s.dim + d + 1, s.dim + d, (size_t)(WF_MAX_DIMS - d - 1) * sizeof *s.dim);
        s.ndim++;
        s.dim[d] = part;
        s.dim[d + 1] = s.ndim > 1 ? s.dim[d + 1] / part : 1;
    }
    if (s.ndim > 0 && below(g, 2))
        s.dim[below(g, s.ndim)] = -1;
    return wf_reshape_to(x, &s);
}

static wf_tensor *expand(struct graph *g)
{
    wf_tensor *x = graph_any(g);
    wf_shape s = wf_shape_of(x);
    if (s.ndim < 4 && below(g, 2)) {
        memmove(s.dim + 1, s.dim, (WF_MAX_DIMS - 1) * sizeof *s.dim);
        s.ndim++;
        s.dim[0] = 1 + below(g, 3);
    }
    for (int d = s.ndim - wf_ndim(x); d < s.ndim; d++)
        s.dim[d] = s.dim[d] == 1 ? 1 + below(g, 3) : s.dim[d];
    return wf_shape_count(&s) <= MOST ? wf_expand_to(x, &s) : NULL;
}

static wf_tensor *transpose(struct graph *g)
{
    wf_tensor *x = graph_any(g);
    int n = wf_ndim(x);
    return n ? wf_transpose(x, (int)below(g, n), (int)below(g, 2 * n) - n) : NULL;
}

static wf_tensor *slice(struct graph *g)
{
    wf_tensor *x = graph_any(g);
    if (wf_ndim(x) == 0)
        return NULL;
    int d = (int)below(g, wf_ndim(x));
    int64_t size = wf_dim(x, d), start = below(g, size), length = 1 + below(g, size - start);
    return wf_slice(x, below(g, 2) ? d : d - wf_ndim(x), below(g, 2) ? start : start - size, length);
}

static wf_tensor *split(struct graph *g)
{
    wf_tensor *x = graph_any(g), *part[6];
    int d = wf_ndim(x) ? (int)below(g, wf_ndim(x)) : 0, n = 1 + (int)below(g, 6);
    if (wf_ndim(x) == 0 || wf_dim(x, d) % n != 0 || g->pooled + n > POOL - 16)
        return NULL;
    wf_split(x, d, n, part);
    for (int i = 1; i < n; i++)
        graph_put(g, part[i]);
    return part[0];
}

static wf_tensor *contiguous(struct graph *g)
{
    return wf_contiguous(graph_any(g));
}

static wf_tensor *concat(struct graph *g)
{
    wf_tensor *a = graph_any(g), *part[WF_MAX_INPUTS] = {a};
    int64_t elements = count_of(a);
    int n = 1, want = 1 + (int)below(g, WF_MAX_INPUTS), ndim = wf_ndim(a), d = ndim ? (int)below(g, ndim) : 0;
    if (ndim == 0)
        return NULL;
    for (int i = 0; i < 24 && n < want; i++) {
        wf_tensor *b = graph_any(g);
        bool fits = wf_ndim(b) == ndim;
        for (int k = 0; k < ndim && fits; k++)
            fits = k == d || wf_dim(b, k) == wf_dim(a, k);
        if (fits && elements + count_of(b) <= MOST) {
            part[n++] = b;
            elements += count_of(b);
        }
    }
    return wf_concat(part, n, d - (int)below(g, 2) * ndim);
}

/* Of up to 12 parts, some of them the same. */
static wf_tensor *stack(struct graph *g)
{
    wf_tensor *a = graph_any(g), *part[12] = {a};
    int n = 1, want = 1 + (int)below(g, 12);
    if (wf_ndim(a) == WF_MAX_DIMS || count_of(a) * want > MOST)
        return NULL;
    for (; n < want; n++) {
        wf_tensor *b = graph_any(g);
        bool fits = wf_ndim(b) == wf_ndim(a);
        for (int k = 0; fits && k < wf_ndim(a); k++)
            fits = wf_dim(b, k) == wf_dim(a, k);
        part[n] = fits ? b : part[below(g, n)];
    }
    return wf_stack(part, n, (int)below(g, 2 * (wf_ndim(a) + 1)) - wf_ndim(a) - 1);
}

static wf_tensor *arrange(struct graph *g)
{
    wf_tensor *x = ending(g, 0, -1), *ids;
    if (!x)
        return NULL;
    const int n = wf_ndim(x), d = (int)below(g, 2 * n) - n;
    const int64_t size = wf_dim(x, d), line = size > 0 ? count_of(x) / size : 0, length = 1 + below(g, size), step = 1 + below(g, 3);
    switch (below(g, 9)) {
    case 0:
        return wf_flip(x, d);
    case 1:
        return wf_roll(x, below(g, 9) - 4, d);
    case 2:
        return count_of(x) + 5 * line > MOST ? NULL : wf_pad(x, d, below(g, 4), below(g, 3), 0.5);
    case 3:
        return n > 1 ? wf_tril(x, below(g, 5) - 2) : NULL;
    case 4:
        return n > 1 ? wf_triu(x, below(g, 5) - 2) : NULL;
    case 5:
        return n < 5 && count_of(x) * 3 <= MOST ? wf_repeat_to(x, &(wf_shape){n + 1, {1 + below(g, 3), 1, 1, 1, 1, 1}}) : NULL;
    case 6:
        return n < 4 && ((size - length) / step + 1) * length * line <= MOST ? wf_unfold(x, d, length, step) : NULL;
    case 7:
        if (n < 2)
            return NULL;
        const int of = (int)below(g, n - 1);
        return wf_fold(x, of, (wf_dim(x, of) - 1) * step + wf_dim(x, -1) + below(g, 3), step);
    default: /* elements that are far apart, as in `extremes` */
        x = wf_add(wf_tanh(x),
                   wf_scale(wf_expand_to(wf_arange(g->tape, (double)wf_dim(x, -1), 0, -1), &(wf_shape){1, {wf_dim(x, -1)}}), 3));
        return wf_sort(x, -1, below(g, 2), below(g, 2) ? &ids : NULL);
    }
}

static wf_tensor *sums(struct graph *g)
{
    wf_tensor *x = graph_any(g);
    int n = wf_ndim(x), d = n ? (int)below(g, 2 * n) - n : 0;
    switch (n ? below(g, 6) : below(g, 2)) {
    case 0:
        return wf_sum(x);
    case 1:
        return wf_mean(x);
    case 2:
    case 3:
        return wf_sum_dim(x, d, below(g, 2));
    default:
        return wf_mean_dim(x, d, below(g, 2));
    }
}

/* Variances of elements that differ, norms and products of elements away from 0. */
static wf_tensor *moments(struct graph *g)
{
    wf_tensor *x = ending(g, 0, -1);
    if (!x)
        return NULL;
    const int d = (int)below(g, 2 * wf_ndim(x)) - wf_ndim(x);
    const bool all = below(g, 3) == 0, keep = below(g, 2);
    switch (below(g, 5)) {
    case 0:
        return all ? wf_var(x, 0) : wf_var_dim(x, d, keep, wf_dim(x, d) > 1);
    case 1:
        x = wf_concat((wf_tensor *[]){positive(x), wf_neg(positive(x))}, 2, d);
        return count_of(x) > MOST ? NULL : all ? wf_std(x, 1) : wf_std_dim(x, d, keep, below(g, 2));
    case 2:
        x = wf_neg(positive(x));
        const double p = 0.5 * (double)(1 + below(g, 6));
        return all ? wf_norm(x, p) : wf_norm_dim(x, p, d, keep);
    case 3:
        x = wf_constant_minus(1.25, wf_scale(wf_tanh(x), 0.5));
        return all ? wf_prod(x) : wf_prod_dim(x, d, keep);
    default:
        return wf_cumprod(wf_constant_minus(1.25, wf_scale(wf_tanh(x), 0.5)), d);
    }
}

static wf_tensor *matmul(struct graph *g)
{
    wf_tensor *a = ending(g, -1, -1), *b = NULL;
    for (int i = 0; a && !b && i < 6; i++) {
        b = below(g, 2) ? ending(g, wf_dim(a, -1), -1) : ending(g, -1, wf_dim(a, -1));
        if (b && wf_dim(b, -2) != wf_dim(a, -1))
            b = wf_transpose(b, -1, -2);
        if (!b)
            return NULL;
        wf_shape x = wf_shape_of(a), y = wf_shape_of(b), out;
        x.ndim -= 2;
        y.ndim -= 2;
        if (!wf_shape_broadcast(&x, &y, &out) || wf_shape_count(&out) * wf_dim(a, -2) * wf_dim(b, -1) > MOST)
            b = NULL;
    }
    return b ? wf_matmul(a, b) : NULL;
}

static wf_tensor *linear(struct graph *g)
{
    wf_tensor *x = ending(g, 0, -1), *weight = x ? of_dims(g, 2, -1, wf_dim(x, -1), 0) : NULL;
    if (!weight || count_of(x) / wf_dim(x, -1) * wf_dim(weight, 0) > MOST)
        return NULL;
    return wf_linear(x, weight, below(g, 2) ? of_dims(g, 1, wf_dim(weight, 0), 0, 0) : NULL);
}

/* A matrix as one sequence, or rows of a sequence, with a weight made of a part of it. */
static wf_tensor *convolution(struct graph *g)
{
    wf_tensor *x = graph_any(g);
    if (wf_ndim(x) < 2 || wf_ndim(x) > 4)
        return NULL;
    x = wf_ndim(x) == 2 ? wf_unsqueeze(x, 0) : x;
    const int dims = wf_ndim(x) - 2;
    const int64_t channels = wf_dim(x, 1), width = wf_dim(x, -1);
    wf_tensor *part = wf_tanh(wf_slice(wf_select(x, 0, 0), -1, 0, WF_MIN(width, 2))); /* [C,k] or [C,H,k] */
    wf_tensor *weight = wf_unsqueeze(part, 0); /* [1,C,k] or [1,C,H,k]: one filter, or one for each */
    const bool each = below(g, 2) && dims == 1;
    if (each)
        weight = wf_transpose(weight, 0, 1); /* [C,1,k]: depthwise */
    const int64_t stride = 1 + below(g, 2), padding = below(g, 2);
    wf_tensor *bias = below(g, 2) ? NULL : each ? wf_mean_dim(part, -1, false) : wf_reshape(wf_mean(part), 1);
    if (below(g, 3) == 0)
        return wf_conv_transpose(x, each ? weight : wf_transpose(weight, 0, 1), bias, .stride = stride, .groups = each ? channels : 1);
    return wf_conv(x, weight, bias, .stride = stride, .padding = padding, .groups = each ? channels : 1);
}

static wf_tensor *pooling(struct graph *g)
{
    wf_tensor *x = graph_any(g);
    if (wf_ndim(x) < 2 || wf_ndim(x) > 4)
        return NULL;
    x = wf_ndim(x) == 2 ? wf_unsqueeze(x, 0) : x;
    const int64_t rows = wf_dim(x, -2), cols = wf_dim(x, -1);
    switch (below(g, 3)) {
    case 0:
        return wf_adaptive_avg_pool(x, 1 + below(g, 2), 1 + below(g, 2));
    case 1:
        return wf_avg_pool(x, 1 + below(g, cols == 1 || (rows == 1 && wf_ndim(x) == 4) ? 1 : 2), .stride = 1 + below(g, 2));
    default:
        return wf_resize(x, 1 + below(g, rows), 1 + below(g, cols + 1), (enum wf_resize)below(g, 3));
    }
}

static wf_tensor *embedding(struct graph *g)
{
    wf_tensor *weight = of_dims(g, 2, -1, -1, 0);
    wf_shape s = {(int)below(g, 3), {1 + below(g, 3), 1 + below(g, 4)}};
    return weight && wf_shape_count(&s) * wf_dim(weight, 1) <= MOST ? wf_embedding(weight, ids(g, &s, wf_dim(weight, 0), 0)) : NULL;
}

static wf_tensor *softmax(struct graph *g)
{
    wf_tensor *x = ending(g, 0, -1);
    return x ? wf_softmax(x) : NULL;
}

static wf_tensor *norms(struct graph *g)
{
    wf_tensor *x = ending(g, 0, -1);
    if (!x)
        return NULL;
    wf_tensor *gain = below(g, 3) ? of_dims(g, 1, wf_dim(x, -1), 0, 0) : NULL,
              *bias = below(g, 2) ? of_dims(g, 1, wf_dim(x, -1), 0, 0) : NULL;
    if (below(g, 2))
        return wf_layer_norm(x, gain, bias, 0.05);
    return gain && below(g, 2) ? wf_rms_norm_from_one(x, gain, 0.05) : wf_rms_norm(x, gain, 0.05);
}

static wf_tensor *batch_norm(struct graph *g)
{
    wf_tensor *x = graph_any(g), *mean, *variance;
    const int64_t channels = wf_ndim(x) < 2 || wf_ndim(x) > 4 ? 0 : wf_dim(x, 1);
    if (channels == 0 || count_of(x) <= channels)
        return NULL;
    wf_tensor *weight = below(g, 3) ? of_dims(g, 1, channels, 0, 0) : NULL, *bias = below(g, 2) ? of_dims(g, 1, channels, 0, 0) : NULL;
    wf_tensor *given = below(g, 3) ? NULL : of_dims(g, 1, channels, 0, 0); /* as a constant */
    if (given && (given = graph_fixed(g, wf_detach(given))))
        return wf_batch_norm_running(x, given, wf_exp(given), weight, bias, 0.05);
    wf_tensor *y = wf_batch_norm(x, weight, bias, 0.05, &mean, &variance);
    return below(g, 3) ? y : below(g, 2) ? mean : variance;
}

static wf_tensor *rope(struct graph *g)
{
    wf_tensor *x = ending(g, -1, -1);
    if (!x || wf_ndim(x) > 3 || wf_dim(x, -1) % 2 != 0 || wf_dim(x, -1) == 0)
        return NULL;
    return wf_rope(x, .rotary.interleaved = below(g, 2), .start = below(g, 50));
}

/* x with at least one dimension, and one of its dimensions. */
static wf_tensor *with_dim(struct graph *g, int *dim)
{
    wf_tensor *x = ending(g, 0, -1);
    *dim = x ? (int)below(g, 2 * wf_ndim(x)) - wf_ndim(x) : 0;
    return x;
}

static wf_tensor *indexing(struct graph *g)
{
    int dim;
    wf_tensor *x = with_dim(g, &dim);
    if (!x)
        return NULL;
    wf_shape s = wf_shape_of(x);
    const int d = dim < 0 ? dim + s.ndim : dim;
    const int64_t limit = s.dim[d];
    s.dim[d] = 1 + below(g, 4);
    if (limit == 0 || wf_shape_count(&s) > MOST)
        return NULL;
    wf_tensor *each = ids(g, &s, limit, 0), *slices = ids(g, WF_SHAPE(s.dim[d]), limit, 0);
    switch (below(g, 4)) {
    case 0:
        return wf_gather(x, dim, each);
    case 1:
        return wf_scatter_add(x, dim, each, wf_scale(wf_gather(x, dim, each), 0.5));
    case 2:
        return wf_index_add(x, dim, slices, wf_neg(wf_index_select(x, dim, slices)));
    default:
        return wf_index_select(x, dim, slices);
    }
}

static wf_tensor *over_dimension(struct graph *g)
{
    int dim;
    wf_tensor *x = with_dim(g, &dim);
    if (!x)
        return NULL;
    switch (below(g, 5)) {
    case 0:
        return wf_logsumexp(x, dim, below(g, 2));
    case 1:
        return wf_log_softmax(x, dim);
    case 2:
        return wf_cumsum(x, dim);
    case 3:
        return wf_l2_normalize(positive(x), 0.01);
    default:
        return wf_scan(wf_tanh(x), wf_scale(x, 0.5), below(g, 2) ? NULL : wf_mean_dim(x, dim, false), dim);
    }
}

static wf_tensor *element_losses(struct graph *g)
{
    wf_tensor *x = wf_tanh(graph_any(g)), *t = wf_sigmoid(x);
    const enum wf_reduction how = (enum wf_reduction)below(g, wf_ndim(x) > 0 ? 4 : 3);
    switch (below(g, 7)) {
    case 4:
        return wf_l1(wf_add_constant(x, 2), t, how);
    case 5: /* the error is below or above 1.5 in all elements */
        return wf_huber(wf_add_constant(x, below(g, 2) ? 4 : 0.25), wf_scale(t, 0.25), 1.5, how);
    case 6:
        return wf_ndim(x) > 0 ? wf_cross_entropy_soft(x, t, how, .label_smoothing = 0.1) : NULL;
    case 0:
        return wf_mse(x, t, how);
    case 1:
        return wf_bce_with_logits(x, t, .reduction = how, .positive_weight = below(g, 2) ? NULL : wf_exp(wf_mean(x)));
    case 2:
        return below(g, 2) ? wf_kl_div(x, t, .reduction = how) : wf_kl_div(t, x, .reduction = how, .log_target = true);
    default:
        return wf_kl_normal(x, t, how);
    }
}

static wf_tensor *dropout(struct graph *g)
{
    wf_tensor *x = graph_any(g);
    const double p = 0.1 * (double)(1 + below(g, 5));
    if (wf_ndim(x) > 0 && below(g, 3) == 0)
        return wf_dropout_shared(x, p, WF_SHAPE(wf_dim(x, -1)));
    return below(g, 2) ? wf_dropout(x, p) : wf_dropout_add(x, beside(g, x), p);
}

static wf_tensor *detach(struct graph *g)
{
    return graph_fixed(g, wf_detach(graph_any(g)));
}

static wf_tensor *keep(struct graph *g)
{
    return wf_keep(graph_any(g));
}

/* The sum needs a gradient in any case; a view of it keeps its gradient apart from that of the sum. */
static wf_tensor *retain(struct graph *g)
{
    wf_tensor *x = wf_add(graph_any(g), wf_mean(g->first));
    if (wf_ndim(x) > 0 && below(g, 2))
        x = below(g, 2) ? wf_transpose(x, 0, -1) : wf_slice(x, -1, 0, 1);
    return graph_probed(g, x);
}

/* The gradient of a function of x, by x; sometimes that of a function of the gradient. */
static wf_tensor *gradient(struct graph *g)
{
    wf_tensor *x = wf_add(graph_any(g), wf_mean(g->first)), *flat = wf_reshape(x, 1, 1, -1), *y = flat, *dx = NULL;
    const int64_t n = count_of(x);
    switch (below(g, 6)) {
    case 0:
        y = wf_avg_pool(flat, WF_MIN(n, 1 + below(g, 3)));
        break;
    case 1:
        y = wf_resize(flat, 1, n + below(g, 5), below(g, 2) ? WF_RESIZE_NEAREST : WF_RESIZE_LINEAR);
        break;
    case 2:
        y = wf_slice(flat, 2, n / 2, n - n / 2);
        break;
    case 3:
        y = wf_softmax(flat);
        break;
    case 4:
        y = n <= 20 ? wf_matmul(wf_reshape(x, -1, 1), wf_reshape(x, 1, -1)) : flat;
        break;
    default:
        y = wf_ndim(x) > 1 ? wf_transpose(x, 0, -1) : flat;
    }
    g->differentiates = true;
    for (int64_t k = 0, times = 1 + !below(g, 3); k < times; k++) {
        if (wf_gradients(wf_sum(wf_mul(wf_sin(y), y)), 1, &x, &dx, .create_graph = true) != WF_OK)
            return dx;
        y = dx;
    }
    return dx;
}

static const struct {
    const char *name;
    wf_tensor *(*make)(struct graph *g);
    int often;
} ops[] = {{"arithmetic", arithmetic, 12},
           {"function", function, 12},
           {"bent", bent, 4},
           {"where", where, 3},
           {"extremes", extremes, 3},
           {"reshape", reshape, 4},
           {"expand", expand, 3},
           {"transpose", transpose, 3},
           {"slice", slice, 4},
           {"split", split, 2},
           {"contiguous", contiguous, 1},
           {"concat", concat, 3},
           {"stack", stack, 2},
           {"arrange", arrange, 6},
           {"sums", sums, 3},
           {"moments", moments, 4},
           {"matmul", matmul, 5},
           {"linear", linear, 4},
           {"convolution", convolution, 3},
           {"pooling", pooling, 2},
           {"embedding", embedding, 2},
           {"softmax", softmax, 2},
           {"norms", norms, 4},
           {"batch_norm", batch_norm, 3},
           {"rope", rope, 3},
           {"indexing", indexing, 3},
           {"over_dimension", over_dimension, 4},
           {"element_losses", element_losses, 3},
           {"dropout", dropout, 2},
           {"attention", graph_attention, 5},
           {"packed_attention", graph_packed_attention, 3},
           {"packed_rows", graph_packed_rows, 3},
           {"recurrent", graph_recurrent, 4},
           {"selective_scan", graph_selective_scan, 4},
           {"losses", graph_losses, 3},
           {"modules", graph_modules, 5},
           {"released", graph_released, 3},
           {"without_gradient", graph_without_gradient, 1},
           {"checkpoint", graph_checkpoint, 4},
           {"detach", detach, 1},
           {"keep", keep, 1},
           {"retain", retain, 1},
           {"gradient", gradient, 3}};

wf_tensor *graph_op(struct graph *g, const char **name)
{
    int64_t total = 0;
    size_t i;
    for (i = 0; i < sizeof ops / sizeof *ops; i++)
        total += ops[i].often;
    int64_t at = below(g, total);
    for (i = 0; at >= ops[i].often; i++)
        at -= ops[i].often;
    *name = ops[i].name;
    return ops[i].make(g);
}
