/* SPDX-License-Identifier: MIT */
/* Random graphs have these ops besides the ops' own cases: ops of tensors as they are, each of operands that fit among the tensors so far.
 * See random_graphs.h. */
#include "random_graphs_choose.h"

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

/* Functions of tensors as they are: parameters, views, and results that other ops read. */
static wf_tensor *function(struct graph *g)
{
    static wf_tensor *(*const smooth[])(wf_tensor *) = {wf_neg,  wf_exp,    wf_tanh, wf_sigmoid, wf_gelu, wf_gelu_tanh,
                                                        wf_silu, wf_square, wf_sin,  wf_softmax, wf_mish};
    wf_tensor *x = graph_any(g);
    const int64_t which = below(g, 2 + (int64_t)(sizeof smooth / sizeof *smooth));
    if (which < 2)
        return wf_affine(x, 0.1 * (double)(below(g, 41) - 20), 0.1 * (double)(below(g, 41) - 20));
    return wf_ndim(x) > 0 || smooth[which - 2] != wf_softmax ? smooth[which - 2](x) : NULL;
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

static wf_tensor *embedding(struct graph *g)
{
    wf_tensor *weight = of_dims(g, 2, -1, -1, 0);
    wf_shape s = {(int)below(g, 3), {1 + below(g, 3), 1 + below(g, 4)}};
    return weight && wf_shape_count(&s) * wf_dim(weight, 1) <= MOST ? wf_embedding(weight, ids(g, &s, wf_dim(weight, 0), 0)) : NULL;
}

/* The mean and the variance have gradients too. */
static wf_tensor *batch_norm(struct graph *g)
{
    wf_tensor *x = graph_any(g), *mean, *variance;
    const int64_t channels = wf_ndim(x) < 2 || wf_ndim(x) > 4 ? 0 : wf_dim(x, 1);
    if (channels == 0 || count_of(x) <= channels)
        return NULL;
    wf_tensor *weight = below(g, 3) ? of_dims(g, 1, channels, 0, 0) : NULL, *bias = below(g, 2) ? of_dims(g, 1, channels, 0, 0) : NULL;
    wf_tensor *y = wf_batch_norm(x, weight, bias, 0.05, &mean, &variance);
    return below(g, 3) ? y : below(g, 2) ? mean : variance;
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
           {"function", function, 8},
           {"reshape", reshape, 4},
           {"expand", expand, 3},
           {"transpose", transpose, 3},
           {"slice", slice, 4},
           {"split", split, 2},
           {"contiguous", contiguous, 1},
           {"concat", concat, 3},
           {"stack", stack, 2},
           {"sums", sums, 3},
           {"matmul", matmul, 5},
           {"linear", linear, 4},
           {"embedding", embedding, 2},
           {"batch_norm", batch_norm, 3},
           {"attention", graph_attention, 5},
           {"packed_attention", graph_packed_attention, 3},
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

enum { CASES = 60 }; /* how often an op in one of its cases */

wf_tensor *graph_op(struct graph *g, const char **name)
{
    int64_t total = CASES;
    size_t i;
    for (i = 0; i < sizeof ops / sizeof *ops; i++)
        total += ops[i].often;
    int64_t at = below(g, total) - CASES;
    if (at < 0 || (g->prefer && below(g, 2)))
        return graph_case(g, name);
    for (i = 0; at >= ops[i].often; i++)
        at -= ops[i].often;
    *name = ops[i].name;
    return ops[i].make(g);
}
