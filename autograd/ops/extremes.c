/* SPDX-License-Identifier: MIT */
/* max, min, argmax and argmin along a dimension, and top_k: the k greatest elements and their indices. "In order" means in the order of
 * sort.h: NaN first, then from the greatest to the smallest. */
#include <string.h>

#include "common.h"
#include "sort.h"

/* A contiguous array as [outer, n, inner], with the op's dimension n in the middle. A plane is [n, inner]; elements along n lie `inner`
 * apart. */
struct planes {
    int64_t outer, n, inner;
};

static struct planes planes_of(const wf_array *a, int dim)
{
    struct planes p = {1, a->dim[dim], 1};
    for (int d = 0; d < a->ndim; d++)
        if (d != dim)
            *(d < dim ? &p.outer : &p.inner) *= a->dim[d];
    return p;
}

/* Checks operand 0 and the dimension, and sets *shape to the operand's shape with `size` in place of this dimension, or without the
 * dimension if `size` is 0. */
static wf_status reduced(wf_call *c, int dim, int64_t size, wf_shape *shape)
{
    if (wf_want(c, 0, WF_REAL) != WF_OK)
        return WF_ERR_ARGUMENT;
    const wf_array *x = &c->in[0];
    int at = wf_want_dim(c, 0, dim);
    if (at < 0)
        return WF_ERR_SHAPE;
    if (x->dim[at] == 0)
        return wf_call_fail(c, WF_ERR_SHAPE, "dimension %d has size 0: there is no greatest or smallest element", dim);
    if (x->dim[at] > INT32_MAX)
        return wf_call_fail(c, WF_ERR_SHAPE, "dimension %d has size %lld, more than ids of 32 bits can name", dim, (long long)x->dim[at]);
    *shape = (wf_shape){0};
    for (int d = 0; d < x->ndim; d++)
        if (d != at || size > 0)
            shape->dim[shape->ndim++] = d == at ? size : x->dim[d];
    return WF_OK;
}

/* The array for the ids: the second result if the call has one, otherwise the array that is saved for backward; data is NULL if neither
 * exists. */
static wf_array ids_of(const wf_call *c)
{
    return c->outputs > 1 ? c->out[1] : c->saved[0];
}

static void set_ids(wf_call *c, const wf_shape *shape)
{
    *(c->outputs > 1 ? &c->out[1] : &c->saved[0]) = wf_call_shape(WF_I32, shape);
}

/* The gradient dx[id] = dy, and 0 elsewhere. Along the dimension dx has n elements, and dy has k. */
struct spread {
    struct planes p;
    int64_t k;
    const wf_real *dy;
    const int32_t *id;
    wf_real *dx;
};

static void spread_body(void *ctx, int64_t begin, int64_t end)
{
    const struct spread *s = ctx;
    const int64_t inner = s->p.inner;
    for (int64_t o = begin; o < end; o++) {
        wf_real *dx = s->dx + o * s->p.n * inner;
        memset(dx, 0, (size_t)(s->p.n * inner) * sizeof *dx);
        for (int64_t i = 0; i < s->k * inner; i++)
            dx[s->id[o * s->k * inner + i] * inner + i % inner] = s->dy[o * s->k * inner + i];
    }
}

wf_status spread_taken(wf_call *c, int dim, int64_t k)
{
    wf_array dx = wf_grad_new(c, 0), dy = wf_call_contiguous(c, &c->dout[0]), ids = ids_of(c);
    if (!dx.data || !dy.data)
        return WF_ERR_MEMORY;
    struct spread s = {planes_of(&c->in[0], dim), k, dy.data, ids.data, dx.data};
    double count = (double)wf_array_count(&dx);
    int64_t line = s.p.n * s.p.inner;
    if (count > 0)
        wf_parallel_ranges(s.p.outer, line < 8192 ? 8192 / line : 1, 0.1 * count, spread_body, &s);
    wf_grad_give(c, 0, &dx);
    return WF_OK;
}

static int find(const wf_call *c, int dim)
{
    return dim < 0 ? dim + c->in[0].ndim : dim;
}

/* --- max, min, argmax, argmin ----------------------------------------------------------------------------------------- */

struct extreme {
    int dim;
    bool keep, least;
};

static wf_status extreme_shape(wf_call *c)
{
    const struct extreme *a = c->attr;
    wf_shape shape;
    wf_status status = reduced(c, a->dim, a->keep, &shape);
    if (status != WF_OK)
        return status;
    c->out[0] = wf_call_shape(WF_REAL, &shape);
    set_ids(c, &shape);
    return WF_OK;
}

enum {
    COLUMNS = 512, /* columns in a block of work */
    SHORT = 64     /* rows of fewer elements are searched several at a time */
};
struct search {
    struct planes p;
    bool least;
    const wf_real *x;
    wf_real *y;     /* NULL: the values are not wanted */
    int32_t *id;    /* NULL: the ids are not wanted */
    int64_t pieces; /* blocks of COLUMNS columns in a plane */
};

static void search_rows(void *ctx, int64_t begin, int64_t end)
{
    const struct search *s = ctx;
    if (s->p.n < SHORT) {
        wf_kernel->internal->extreme_rows(end - begin, s->p.n, s->x + begin * s->p.n, s->least, s->y ? s->y + begin : NULL,
                                          s->id ? s->id + begin : NULL);
        return;
    }
    for (int64_t o = begin; o < end; o++) {
        const wf_real *x = s->x + o * s->p.n;
        int32_t id = wf_kernel->internal->extreme(s->p.n, x, s->least);
        if (s->y)
            s->y[o] = x[id];
        if (s->id)
            s->id[o] = id;
    }
}

static void search_columns(void *ctx, int64_t begin, int64_t end)
{
    const struct search *s = ctx;
    wf_real y[COLUMNS];
    int32_t id[COLUMNS];
    for (int64_t block = begin; block < end; block++) {
        int64_t o = block / s->pieces, j = block % s->pieces * COLUMNS, d = WF_MIN(s->p.inner - j, COLUMNS);
        int64_t to = o * s->p.inner + j;
        wf_kernel->internal->extreme_columns(s->p.n, d, s->x + o * s->p.n * s->p.inner + j, s->p.inner, s->least, s->y ? s->y + to : y,
                                             s->id ? s->id + to : id);
    }
}

static wf_status search(wf_call *c, wf_real *y, int32_t *id)
{
    const struct extreme *a = c->attr;
    wf_array x = wf_call_contiguous(c, &c->in[0]);
    double count = (double)wf_array_count(&x);
    if (count == 0)
        return WF_OK;
    if (!x.data)
        return WF_ERR_MEMORY;
    struct search s = {planes_of(&x, find(c, a->dim)), a->least, x.data, y, id, 0};
    s.pieces = (s.p.inner + COLUMNS - 1) / COLUMNS;
    if (s.p.inner == 1)
        wf_parallel_ranges(s.p.outer, s.p.n < 8192 ? 8192 / s.p.n : 1, 0.15 * count, search_rows, &s);
    else
        wf_parallel_ranges(s.p.outer * s.pieces, s.p.n * COLUMNS < 16384 ? 16384 / (s.p.n * COLUMNS) : 1, 0.3 * count, search_columns, &s);
    return WF_OK;
}

static wf_status extreme_forward(wf_call *c)
{
    return search(c, c->out[0].data, ids_of(c).data);
}

static wf_status extreme_backward(wf_call *c)
{
    return spread_taken(c, find(c, ((const struct extreme *)c->attr)->dim), 1);
}

static void extreme_gradient(const wf_gradient_call *c, const wf_op *op)
{
    const struct extreme *a = c->attr;
    spread_taken_gradient(c, op, a->dim, !a->keep);
}

static wf_status arg_shape(wf_call *c)
{
    const struct extreme *a = c->attr;
    wf_shape shape;
    wf_status status = reduced(c, a->dim, a->keep, &shape);
    if (status == WF_OK)
        c->out[0] = wf_call_shape(WF_I32, &shape);
    return status;
}

static wf_status arg_forward(wf_call *c)
{
    return search(c, NULL, c->out[0].data);
}

#define ALONG(...) ATTR(struct extreme, __VA_ARGS__)
#define CASES(least)                                                                                                                       \
    WF_CASES({"last", {{3, 5}}, {WF_FILL_APART}, ALONG(-1, false, least)}, {"first", {{5, 3}}, {WF_FILL_APART}, ALONG(0, false, least)},   \
             {"middle, kept", {{2, 3, 5}}, {WF_FILL_APART}, ALONG(1, true, least)},                                                        \
             {"last, kept", {{4, 7}}, {WF_FILL_APART}, ALONG(1, true, least)},                                                             \
             {"size 1", {{3, 1, 2}}, {WF_FILL_APART}, ALONG(1, false, least)}, {"vector", {{7}}, {WF_FILL_APART}, ALONG(0, false, least)}, \
             {"empty", {{-1, 3}}, {WF_FILL_APART}, ALONG(1, false, least)},                                                                \
             {"long", {{2, 1031}}, {WF_FILL_APART}, ALONG(1, false, least)},                                                               \
             {"wide", {{2, 3, 700}}, {WF_FILL_NORMAL}, ALONG(1, false, least)},                                                            \
             {"six dims", {{2, 1, 3, 1, 2, 3}}, {WF_FILL_APART}, ALONG(2, false, least)})
#define EXTREME(op, least)                                                                                                                 \
    static void op##_gradient(const wf_gradient_call *c)                                                                                   \
    {                                                                                                                                      \
        extreme_gradient(c, &wf_op_##op);                                                                                                  \
    }                                                                                                                                      \
    const wf_op wf_op_##op = {.name = #op,                                                                                                 \
                              .attr_size = sizeof(struct extreme),                                                                         \
                              .outputs = 2,                                                                                                \
                              .reads = WF_READS_OUTPUT(1),                                                                                 \
                              .shape = extreme_shape,                                                                                      \
                              .forward = extreme_forward,                                                                                  \
                              .backward = extreme_backward,                                                                                \
                              .gradient = op##_gradient,                                                                                   \
                              .cases = CASES(least)};                                                                                      \
    const wf_op wf_op_arg##op = {.name = "arg" #op,                                                                                        \
                                 .constant = true,                                                                                         \
                                 .attr_size = sizeof(struct extreme),                                                                      \
                                 .shape = arg_shape,                                                                                       \
                                 .forward = arg_forward,                                                                                   \
                                 .cases = CASES(least)};                                                                                   \
    wf_tensor *wf_##op##_dim(wf_tensor *x, int dim, bool keep, wf_tensor **ids)                                                            \
    {                                                                                                                                      \
        return apply_with_ids(&wf_op_##op, &(struct extreme){dim, keep, least}, x, ids);                                                   \
    }                                                                                                                                      \
    wf_tensor *wf_##op(wf_tensor *x)                                                                                                       \
    {                                                                                                                                      \
        return wf_##op##_dim(wf_reshape(x, -1), 0, false, NULL);                                                                           \
    }                                                                                                                                      \
    wf_tensor *wf_arg##op(wf_tensor *x, int dim, bool keep)                                                                                \
    {                                                                                                                                      \
        return wf_apply(&wf_op_arg##op, &(struct extreme){dim, keep, least}, 1, &x);                                                       \
    }

EXTREME(max, false)
EXTREME(min, true)

/* --- the k greatest --------------------------------------------------------------------------------------------------- */

struct top_k {
    int64_t k;
    int dim;
};

static wf_status top_k_shape(wf_call *c)
{
    const struct top_k *a = c->attr;
    wf_shape shape;
    wf_status status = reduced(c, a->dim, WF_MAX(a->k, 1), &shape);
    if (status != WF_OK)
        return status;
    int64_t n = c->in[0].dim[find(c, a->dim)];
    if (a->k < 1 || a->k > n)
        return wf_call_fail(c, WF_ERR_ARGUMENT, "k = %lld is not in 1 .. %lld, the size of dimension %d", (long long)a->k, (long long)n,
                            a->dim);
    c->out[0] = wf_call_shape(WF_REAL, &shape);
    set_ids(c, &shape);
    return WF_OK;
}

/* Moves element `at` of a heap down to its place. The root of the heap is the element that comes last in order. */
static void sift_down(struct item *heap, int64_t n, int64_t at)
{
    struct item moved = heap[at];
    for (int64_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && comes_before(heap[child], heap[child + 1]))
            child++;
        if (!comes_before(moved, heap[child]))
            break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

enum {
    FEW = 16,    /* up to this k, a sorted list holds the elements found so far; for a larger k, a heap does */
    LONG = 1024, /* in rows of at least this length, if k > n / PART, sorting the whole row is faster */
    PART = 8
};

/* Writes the first k elements in order to `top`. Each element is inserted at its place, which is fast for small k only: k <= FEW. */
static void few_of_row(int64_t n, const wf_real *x, int64_t k, struct item *top)
{
    int64_t held = 0;
    for (int64_t i = 0; i < n; i++) {
        if (held == k) {
            if (top[k - 1].value != top[k - 1].value)
                return; /* all k elements of `top` are NaN, and no later element comes before these in order */
            i += wf_kernel->internal->first_above(n - i, x + i, top[k - 1].value);
            if (i == n)
                return;
        }
        const struct item item = {x[i], (int32_t)i};
        int64_t at = held < k ? held++ : k - 1;
        for (; at > 0 && comes_before(item, top[at - 1]); at--)
            top[at] = top[at - 1];
        top[at] = item;
    }
}

static bool sorts_all(int64_t n, int64_t k)
{
    return n >= LONG && k > n / PART;
}

/* Puts the first k elements in order into heap[0 .. k-1]. `heap` has room for k items, or for 2 n if sorts_all(n, k). */
static void top_of_row(int64_t n, const wf_real *x, int64_t k, struct item *heap)
{
    if (sorts_all(n, k)) {
        sort_row(n, x, false, heap, heap + n);
        return;
    }
    if (k <= FEW) {
        few_of_row(n, x, k, heap);
        return;
    }
    for (int64_t i = 0; i < k; i++)
        heap[i] = (struct item){x[i], (int32_t)i};
    for (int64_t i = k / 2; i-- > 0;)
        sift_down(heap, k, i);
    for (int64_t i = k; i < n && heap[0].value == heap[0].value; i++) { /* if the root is NaN, no later element comes before it */
        i += wf_kernel->internal->first_above(n - i, x + i, heap[0].value);
        if (i < n) {
            heap[0] = (struct item){x[i], (int32_t)i};
            sift_down(heap, k, 0);
        }
    }
    for (int64_t left = k - 1; left > 0; left--) {
        struct item last = heap[0];
        heap[0] = heap[left];
        heap[left] = last;
        sift_down(heap, left, 0);
    }
}

struct top {
    struct planes p;
    int64_t k;
    const wf_real *x;
    wf_real *y;
    int32_t *id; /* NULL: the ids are not wanted */
    bool *no_memory;
};

static void top_body(void *ctx, int64_t begin, int64_t end)
{
    const struct top *t = ctx;
    const int64_t inner = t->p.inner, n = t->p.n, k = t->k;
    if (inner == 1 && n < SHORT && k <= WF_TOP_ROWS) {
        wf_kernel->internal->top_rows(end - begin, n, t->x + begin * n, k, t->y + begin * k, t->id ? t->id + begin * k : NULL);
        return;
    }
    struct item *heap = wf_scratch(WF_SCRATCH_OP, (size_t)(sorts_all(n, k) ? 2 * n : k) * sizeof *heap);
    wf_real *line = inner > 1 ? wf_scratch(WF_SCRATCH_OP_2, (size_t)n * sizeof *line) : NULL;
    if (!heap || (inner > 1 && !line)) {
        __atomic_store_n(t->no_memory, true, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t row = begin; row < end; row++) {
        int64_t o = row / inner, j = row % inner;
        const wf_real *x = t->x + o * n * inner + j;
        for (int64_t i = 0; line && i < n; i++)
            line[i] = x[i * inner];
        top_of_row(n, line ? line : x, k, heap);
        for (int64_t i = 0; i < k; i++) {
            int64_t to = (o * k + i) * inner + j;
            t->y[to] = heap[i].value;
            if (t->id)
                t->id[to] = heap[i].id;
        }
    }
}

static wf_status top_k_forward(wf_call *c)
{
    const struct top_k *a = c->attr;
    wf_array x = wf_call_contiguous(c, &c->in[0]);
    double count = (double)wf_array_count(&x);
    bool no_memory = false;
    if (count == 0)
        return WF_OK;
    if (!x.data)
        return WF_ERR_MEMORY;
    struct top t = {planes_of(&x, find(c, a->dim)), a->k, x.data, c->out[0].data, ids_of(c).data, &no_memory};
    wf_parallel_ranges(t.p.outer * t.p.inner, t.p.n < 4096 ? 4096 / t.p.n : 1, count + 30.0 * (double)wf_array_count(&c->out[0]), top_body,
                       &t);
    return no_memory ? wf_call_fail(c, WF_ERR_MEMORY, "no memory for the k greatest of a row") : WF_OK;
}

static wf_status top_k_backward(wf_call *c)
{
    const struct top_k *a = c->attr;
    return spread_taken(c, find(c, a->dim), a->k);
}

static void top_k_gradient(const wf_gradient_call *c)
{
    spread_taken_gradient(c, &wf_op_top_k, ((const struct top_k *)c->attr)->dim, false);
}

#define K(...) ATTR(struct top_k, __VA_ARGS__)
const wf_op wf_op_top_k = {.name = "top_k",
                           .attr_size = sizeof(struct top_k),
                           .outputs = 2,
                           .reads = WF_READS_OUTPUT(1),
                           .shape = top_k_shape,
                           .forward = top_k_forward,
                           .backward = top_k_backward,
                           .gradient = top_k_gradient,
                           .cases =
                               WF_CASES({"two", {{3, 5}}, {WF_FILL_APART}, K(2, -1)}, {"all", {{3, 5}}, {WF_FILL_APART}, K(5, 1)},
                                        {"one", {{4, 7}}, {WF_FILL_APART}, K(1, 1)}, {"columns", {{9, 4}}, {WF_FILL_APART}, K(3, 0)},
                                        {"middle", {{2, 6, 3}}, {WF_FILL_APART}, K(4, 1)}, {"vector", {{7}}, {WF_FILL_APART}, K(3, 0)},
                                        {"empty", {{-1, 4}}, {WF_FILL_APART}, K(3, 1)}, {"long", {{2, 131}}, {WF_FILL_APART}, K(20, 1)})};

wf_tensor *wf_top_k(wf_tensor *x, int64_t k, int dim, wf_tensor **ids)
{
    return apply_with_ids(&wf_op_top_k, &(struct top_k){k, dim}, x, ids);
}
