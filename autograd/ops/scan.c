/* SPDX-License-Identifier: MIT */
/* Recurrences along a dimension: cumulative sums, and h_t = a_t h_(t-1) + b_t. The work along the dimension is serial, so that the order of
 * additions is fixed. The other dimensions are computed in parallel. */
#include "common.h"

enum { COLUMNS = 64 };

/* A contiguous array as [planes, n, d]; n is the op's dimension. A block of work is COLUMNS columns of a plane, and a plane has `pieces`
 * blocks. If d is 1, planes are rows, and a block of work is several rows. */
struct around {
    int64_t planes, n, d, pieces;
};

static struct around around_of(wf_call *c)
{
    int dim = wf_along(c);
    struct around s = {1, c->in[0].dim[dim], 1, 0};
    for (int d = 0; d < c->in[0].ndim; d++)
        if (d != dim)
            *(d < dim ? &s.planes : &s.d) *= c->in[0].dim[d];
    s.pieces = (s.d + COLUMNS - 1) / COLUMNS;
    return s;
}

/* A block of columns. */
struct place {
    int64_t at;    /* offset of the block in arrays [planes, n, d] */
    int64_t state; /* offset of the block in arrays [planes, d], such as initial states */
    int64_t d;     /* columns in the block */
};

static struct place place_of(const struct around *s, int64_t block)
{
    int64_t plane = block / s->pieces, first = block % s->pieces * COLUMNS;
    return (struct place){plane * s->n * s->d + first, plane * s->d + first, WF_MIN(s->d - first, COLUMNS)};
}

/* Runs `rows` or `columns` on all blocks, with ctx as the argument. Kernels compute 4 rows together, so the number of rows in a block is a
 * multiple of 4. If n is 0, the only thing to compute is the gradients of initial states; `states` says whether they are needed. */
static void run(const struct around *s, bool states, double cost, void (*rows)(void *, int64_t, int64_t), void (*columns)(void *, int64_t),
                void *ctx)
{
    if (s->n == 0 && !states)
        return;
    cost *= (double)s->planes * (double)s->n * (double)s->d;
    if (s->d == 1)
        wf_parallel_ranges(s->planes, (wf_block_rows(s->n) + 3) / 4 * 4, 2 * cost, rows, ctx);
    else
        wf_parallel(s->planes * s->pieces, cost, columns, ctx);
}

static wf_status along_shape(wf_call *c)
{
    if (wf_same_shape(c) != WF_OK)
        return WF_ERR_ARGUMENT;
    return wf_along(c) < 0 ? WF_ERR_SHAPE : WF_OK;
}

/* --- cumsum --------------------------------------------------------------------------------------------------------- */

struct cumsum {
    struct around s;
    const wf_real *x;
    wf_real *y;
    bool reverse;
};

static void cumsum_rows(void *ctx, int64_t begin, int64_t end)
{
    const struct cumsum *k = ctx;
    wf_kernel->internal->cumsum(end - begin, k->s.n, k->x + begin * k->s.n, k->reverse, k->y + begin * k->s.n);
}

static void cumsum_columns(void *ctx, int64_t block)
{
    const struct cumsum *k = ctx;
    struct place p = place_of(&k->s, block);
    wf_kernel->internal->cumsum_columns(k->s.n, p.d, k->s.d, k->x + p.at, k->reverse, k->y + p.at);
}

static wf_status cumsum_of(wf_call *c, const wf_array *from, bool reverse, wf_real *to)
{
    wf_array x = wf_call_contiguous(c, from);
    if (!x.data || !to)
        return WF_ERR_MEMORY;
    struct cumsum k = {around_of(c), x.data, to, reverse};
    run(&k.s, false, 0.25, cumsum_rows, cumsum_columns, &k);
    return WF_OK;
}

static wf_status cumsum_forward(wf_call *c)
{
    return cumsum_of(c, &c->in[0], false, c->out[0].data);
}

/* y_t = sum of x_s for s <= t, so dx_s is the sum of dy_t for t >= s. */
static wf_status cumsum_backward(wf_call *c)
{
    wf_array dx = wf_grad_new(c, 0);
    wf_status status = cumsum_of(c, &c->dout[0], true, dx.data);
    if (status == WF_OK)
        wf_grad_give(c, 0, &dx);
    return status;
}

static void cumsum_gradient(const wf_gradient_call *c)
{
    const int dim = ((const struct along *)c->attr)->dim;
    c->dx[0] = wf_flip(wf_cumsum(wf_flip(c->dy[0], dim), dim), dim);
}

#define ALONG(d) ATTR(struct along, d)
const wf_op wf_op_cumsum = {.name = "cumsum",
                            .attr_size = sizeof(struct along),
                            .reads = WF_READS_NOTHING,
                            .shape = along_shape,
                            .forward = cumsum_forward,
                            .backward = cumsum_backward,
                            .gradient = cumsum_gradient,
                            .cases =
                                WF_CASES({"last", {{3, 5}}, ALONG(-1)}, {"first", {{5, 3}}, ALONG(0)}, {"middle", {{2, 5, 3}}, ALONG(1)},
                                         {"vector", {{7}}, ALONG(0)}, {"one", {{1, 1}}, ALONG(1)}, {"no rows", {{-1, 5}}, ALONG(1)},
                                         {"nothing", {{3, -1}}, ALONG(1)}, {"odd", {{13, 17}}, ALONG(-1)}, {"long", {{1, 1100}}, ALONG(1)},
                                         {"wide columns", {{3, 4, 150}}, ALONG(1)})};

wf_tensor *wf_cumsum(wf_tensor *x, int dim)
{
    return wf_apply(&wf_op_cumsum, &(struct along){dim}, 1, &x);
}

/* --- scan ----------------------------------------------------------------------------------------------------------- */

enum { A, B, INITIAL };

static wf_status scan_shape(wf_call *c)
{
    if (along_shape(c) != WF_OK || wf_want(c, B, WF_REAL) != WF_OK)
        return WF_ERR_ARGUMENT;
    wf_shape a = wf_array_shape(&c->in[A]), b = wf_array_shape(&c->in[B]);
    if (!wf_shape_equal(&a, &b))
        return wf_call_fail(c, WF_ERR_SHAPE, "a and b must have the same shape: wf_expand repeats one that is smaller");
    if (!wf_has(c, INITIAL))
        return WF_OK;
    wf_shape want = wf_shape_without(&c->in[A], wf_along(c), false), have = wf_array_shape(&c->in[INITIAL]);
    char text[96];
    if (wf_want(c, INITIAL, WF_REAL) != WF_OK)
        return WF_ERR_ARGUMENT;
    return wf_shape_equal(&want, &have) ? WF_OK
                                        : wf_call_fail(c, WF_ERR_SHAPE, "the initial state must be %s: a without the dimension",
                                                       wf_shape_text(&want, text, sizeof text));
}

struct scan {
    struct around s;
    const wf_real *a, *b, *initial;
    wf_real *h;
    const wf_real *dh; /* backward: the gradient of h; forward: NULL */
    wf_real *d[3];     /* backward: the gradients of a, b and initial; NULL if not needed */
};

/* p + offset, or NULL if p is NULL. */
static const wf_real *from(const wf_real *p, int64_t offset)
{
    return p ? p + offset : NULL;
}

static wf_real *to(wf_real *p, int64_t offset)
{
    return p ? p + offset : NULL;
}

static void scan_rows(void *ctx, int64_t begin, int64_t end)
{
    const struct scan *k = ctx;
    const int64_t n = k->s.n, at = begin * n, rows = end - begin;
    if (k->dh)
        wf_kernel->internal->scan_grad(rows, n, k->a + at, k->h + at, from(k->initial, begin), k->dh + at, to(k->d[A], at), to(k->d[B], at),
                                       to(k->d[INITIAL], begin));
    else
        wf_kernel->internal->scan(rows, n, k->a + at, k->b + at, from(k->initial, begin), k->h + at);
}

static void scan_columns(void *ctx, int64_t block)
{
    const struct scan *k = ctx;
    struct place p = place_of(&k->s, block);
    if (k->dh)
        wf_kernel->internal->scan_grad_columns(k->s.n, p.d, k->s.d, k->a + p.at, k->h + p.at, from(k->initial, p.state), k->dh + p.at,
                                               to(k->d[A], p.at), to(k->d[B], p.at), to(k->d[INITIAL], p.state));
    else
        wf_kernel->internal->scan_columns(k->s.n, p.d, k->s.d, k->a + p.at, k->b + p.at, from(k->initial, p.state), k->h + p.at);
}

static wf_status scan_forward(wf_call *c)
{
    wf_array a = wf_call_contiguous(c, &c->in[A]), b = wf_call_contiguous(c, &c->in[B]);
    struct scan k = {.s = around_of(c), .a = a.data, .b = b.data, .h = c->out[0].data};
    if (!a.data || !b.data || !wf_vector_of(c, INITIAL, &k.initial))
        return WF_ERR_MEMORY;
    run(&k.s, false, 0.3, scan_rows, scan_columns, &k);
    return WF_OK;
}

/* Let g_t = dh_t + a_(t+1) g_(t+1), computed from the last t to the first. Then db_t = g_t, da_t = g_t h_(t-1), and the gradient of the
 * initial state h_0 is a_1 g_1. */
static wf_status scan_backward(wf_call *c)
{
    wf_array a = wf_call_contiguous(c, &c->in[A]), dh = wf_call_contiguous(c, &c->dout[0]), d[3] = {{0}};
    struct scan k = {.s = around_of(c), .a = a.data, .h = c->out[0].data, .dh = dh.data};
    if (!a.data || !dh.data || !wf_vector_of(c, INITIAL, &k.initial))
        return WF_ERR_MEMORY;
    for (int i = 0; i < 3; i++) {
        if (!c->need[i])
            continue;
        d[i] = wf_grad_new(c, i);
        k.d[i] = d[i].data;
        if (!d[i].data)
            return WF_ERR_MEMORY;
    }
    run(&k.s, k.d[INITIAL] != NULL, 0.5, scan_rows, scan_columns, &k);
    for (int i = 0; i < 3; i++)
        if (c->need[i])
            wf_grad_give(c, i, &d[i]);
    return WF_OK;
}

/* The g_t are a scan from the last t to the first. */
static void scan_gradient(const wf_gradient_call *c)
{
    int dim = ((const struct along *)c->attr)->dim;
    wf_tensor *a = c->x[A], *initial = c->inputs > INITIAL ? c->x[INITIAL] : NULL;
    const int64_t n = wf_dim(a, dim);
    if (n == 0)
        return;
    dim = dim < 0 ? dim + wf_ndim(a) : dim;
    wf_tensor *next = wf_slice(wf_pad(a, dim, 0, 1, 0), dim, 1, n);
    wf_tensor *g = wf_flip(wf_scan(wf_flip(next, dim), wf_flip(c->dy[0], dim), NULL, dim), dim);
    c->dx[B] = g;
    if (c->need[A]) {
        wf_tensor *before = wf_slice(c->y[0], dim, 0, n - 1);
        before = initial ? wf_concat((wf_tensor *[]){wf_unsqueeze(initial, dim), before}, 2, dim) : wf_pad(before, dim, 1, 0, 0);
        c->dx[A] = wf_mul(g, before);
    }
    if (initial && c->need[INITIAL])
        c->dx[INITIAL] = wf_mul(wf_select(a, dim, 0), wf_select(g, dim, 0));
}

#define NO_STATE .inputs = 3, .fill = {WF_FILL_NORMAL, WF_FILL_NORMAL, WF_FILL_ABSENT}
const wf_op wf_op_scan = {
    .name = "scan",
    .operands = "a b initial",
    .attr_size = sizeof(struct along),
    .reads = WF_READS_INPUT(A) | WF_READS_INPUT(INITIAL) | WF_READS_OUTPUT(0),
    .shape = scan_shape,
    .forward = scan_forward,
    .backward = scan_backward,
    .gradient = scan_gradient,
    .cases = WF_CASES({"last", {{3, 5}, {3, 5}, {3}}, ALONG(-1)}, {"first", {{5, 3}, {5, 3}, {3}}, ALONG(0)},
                      {"middle", {{2, 5, 3}, {2, 5, 3}, {2, 3}}, ALONG(1)}, {"from 0", {{2, 5, 3}, {2, 5, 3}}, ALONG(1), NO_STATE},
                      {"rows from 0", {{9, 4}, {9, 4}}, ALONG(1), NO_STATE}, {"vector", {{7}, {7}, {-2}}, ALONG(0)},
                      {"one", {{1, 1}, {1, 1}, {1}}, ALONG(1)}, {"no rows", {{-1, 5}, {-1, 5}, {-1}}, ALONG(1)},
                      {"no steps", {{3, -1}, {3, -1}, {3}}, ALONG(1)}, {"no steps, columns", {{-1, 3}, {-1, 3}, {3}}, ALONG(0)},
                      {"wide columns", {{3, 4, 150}, {3, 4, 150}, {3, 150}}, ALONG(1)}, {"long", {{6, 70}, {6, 70}, {6}}, ALONG(1)})};

wf_tensor *wf_scan(wf_tensor *a, wf_tensor *b, wf_tensor *initial, int dim)
{
    return wf_apply(&wf_op_scan, &(struct along){dim}, 3, (wf_tensor *[]){a, b, initial});
}
