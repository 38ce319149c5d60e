/* SPDX-License-Identifier: MIT */
/* Packed rows: checks and copies of their offsets for all ops; pad_rows and pack_rows, which move rows to padded batches and back; and
 * mean_packed, the means of sequences. */
#include <math.h>
#include <string.h>

#include "common.h"

wf_status wf_want_packed(wf_call *c, struct wf_packed packed, const char *what, int64_t rows)
{
    wf_error error = {0};
    return wf_packed_check(packed, rows, what, &error) == WF_OK ? WF_OK : wf_call_fail(c, error.code, "%s", error.message);
}

struct wf_packed wf_packed_copy(wf_tape *tape, struct wf_packed packed)
{
    if (!tape || !packed.offsets || packed.count < 0)
        return packed;
    const size_t bytes = ((size_t)packed.count + 1) * sizeof *packed.offsets;
    int32_t *copy = wf_tape_memory(tape, bytes);
    return (struct wf_packed){copy ? memcpy(copy, packed.offsets, bytes) : NULL, packed.count};
}

struct packed_attr {
    struct wf_packed packed;
    double fill;
};

/* Elements of a row of x, if the first `dims` dimensions of x index rows. */
static int64_t row_of(const wf_array *x, int dims)
{
    int64_t d = 1;
    for (int i = dims; i < x->ndim; i++)
        d *= x->dim[i];
    return d;
}

/* --- pad_rows and pack_rows ----------------------------------------------------------------------------------------- */

/* The work of copying packed rows to padded rows [n, length], or padded rows to packed ones. */
struct moving {
    struct wf_packed at;
    int64_t length; /* padded rows of a sequence */
    int64_t bytes;  /* bytes of a row */
    int64_t size;   /* bytes of an element */
    char *packed, *padded;
    bool pad;         /* copy packed rows to padded ones; false: the other way */
    const void *fill; /* the element that fills the padded rows after the end of a sequence */
};

static void move_rows(void *ctx, int64_t begin, int64_t end)
{
    const struct moving *m = ctx;
    for (int64_t r = begin; r < end; r++) {
        const int64_t i = r / m->length, row = m->at.offsets[i] + r % m->length;
        char *padded = m->padded + r * m->bytes, *packed = m->packed + row * m->bytes;
        if (row < m->at.offsets[i + 1])
            memcpy(m->pad ? padded : packed, m->pad ? packed : padded, (size_t)m->bytes);
        else if (m->pad)
            for (int64_t j = 0; j < m->bytes; j += m->size)
                memcpy(padded + j, m->fill, (size_t)m->size);
    }
}

/* Copies packed rows to padded rows [n, L, ...] if `pad` is set, otherwise the other way. False without memory. */
static bool moved(wf_call *c, const wf_array *src, const wf_array *dst, bool pad, double fill)
{
    const wf_array from = wf_call_contiguous(c, src), *padded = pad ? dst : &from, *packed = pad ? &from : dst;
    const wf_real real = (wf_real)fill;
    const int32_t id = src->dtype == WF_I32 ? (int32_t)fill : 0;
    const bool truth = fill != 0;
    struct moving m = {.at = ((const struct packed_attr *)c->attr)->packed,
                       .length = padded->dim[1],
                       .size = (int64_t)wf_dtype_size(src->dtype),
                       .packed = packed->data,
                       .padded = padded->data,
                       .pad = pad,
                       .fill = src->dtype == WF_I32    ? &id
                               : src->dtype == WF_BOOL ? (const void *)&truth
                                                       : &real};
    if (!from.data)
        return false;
    m.bytes = row_of(padded, 2) * m.size;
    const int64_t rows = padded->dim[0] * m.length;
    if (m.bytes > 0)
        wf_parallel_ranges(rows, 1 + 32768 / m.bytes, (double)rows * (2 + 0.02 * (double)m.bytes), move_rows, &m);
    return true;
}

static wf_status pad_shape(wf_call *c)
{
    const struct packed_attr *a = c->attr;
    if (wf_want_there(c, 0) != WF_OK)
        return WF_ERR_ARGUMENT;
    const wf_array *x = &c->in[0];
    if (x->ndim < 1 || x->ndim >= WF_MAX_DIMS)
        return wf_call_fail(c, WF_ERR_SHAPE, "x must be [N, ...] of at most %d dimensions", WF_MAX_DIMS - 1);
    if (x->dtype == WF_I32 && (a->fill != floor(a->fill) || fabs(a->fill) > INT32_MAX))
        return wf_call_fail(c, WF_ERR_ARGUMENT, "fill = %g is no id", a->fill);
    if (wf_want_packed(c, a->packed, "packed", x->dim[0]) != WF_OK)
        return WF_ERR_ARGUMENT;
    wf_shape shape = {x->ndim + 1, {a->packed.count, wf_packed_longest(a->packed)}};
    memcpy(shape.dim + 2, x->dim + 1, (size_t)(x->ndim - 1) * sizeof *shape.dim);
    c->out[0] = wf_call_shape(x->dtype, &shape);
    return WF_OK;
}

static wf_status pad_forward(wf_call *c)
{
    return moved(c, &c->in[0], &c->out[0], true, ((const struct packed_attr *)c->attr)->fill) ? WF_OK : WF_ERR_MEMORY;
}

/* Forward copies rows, so backward copies their gradients the other way. Padded rows after the end of a sequence have the gradient 0. */
static wf_status give_moved(wf_call *c, bool pad)
{
    const wf_array dx = wf_grad_new(c, 0);
    if (!dx.data || !moved(c, &c->dout[0], &dx, pad, 0))
        return WF_ERR_MEMORY;
    wf_grad_give(c, 0, &dx);
    return WF_OK;
}

static wf_status pad_backward(wf_call *c)
{
    return give_moved(c, false);
}

static wf_status pack_shape(wf_call *c)
{
    const struct packed_attr *a = c->attr;
    if (wf_want_there(c, 0) != WF_OK)
        return WF_ERR_ARGUMENT;
    const wf_array *x = &c->in[0];
    const int64_t rows = a->packed.count >= 0 && a->packed.offsets ? a->packed.offsets[a->packed.count] : 0;
    if (wf_want_packed(c, a->packed, "packed", rows) != WF_OK)
        return WF_ERR_ARGUMENT;
    if (x->ndim < 2 || x->dim[0] != a->packed.count || x->dim[1] < wf_packed_longest(a->packed))
        return wf_call_fail(c, WF_ERR_SHAPE, "x must be [%d, L, ...] with L of at least %lld, the rows of the longest sequence",
                            a->packed.count, (long long)wf_packed_longest(a->packed));
    wf_shape shape = {x->ndim - 1, {rows}};
    memcpy(shape.dim + 1, x->dim + 2, (size_t)(x->ndim - 2) * sizeof *shape.dim);
    c->out[0] = wf_call_shape(x->dtype, &shape);
    return WF_OK;
}

static wf_status pack_forward(wf_call *c)
{
    return moved(c, &c->in[0], &c->out[0], false, 0) ? WF_OK : WF_ERR_MEMORY;
}

static wf_status pack_backward(wf_call *c)
{
    return give_moved(c, true);
}

/* --- mean_packed ----------------------------------------------------------------------------------------------------- */

struct means {
    struct wf_packed at;
    const wf_real *from;
    wf_real *to;
    int64_t d, pieces;
};

enum { COLUMNS = 64 };

/* Sums are in double and in the order of the rows, so the bits of a sequence's mean do not depend on the other sequences. */
static void mean_block(void *ctx, int64_t block)
{
    const struct means *m = ctx;
    const int64_t i = block / m->pieces, first = block % m->pieces * COLUMNS, n = WF_MIN(m->d - first, COLUMNS);
    const int64_t begin = m->at.offsets[i], end = m->at.offsets[i + 1];
    double sum[COLUMNS] = {0};
    for (int64_t t = begin; t < end; t++)
        for (int64_t j = 0; j < n; j++)
            sum[j] += (double)m->from[t * m->d + first + j];
    for (int64_t j = 0; j < n; j++)
        m->to[i * m->d + first + j] = (wf_real)(begin < end ? sum[j] / (double)(end - begin) : 0);
}

static void spread_block(void *ctx, int64_t i)
{
    const struct means *m = ctx;
    const int64_t begin = m->at.offsets[i], end = m->at.offsets[i + 1];
    for (int64_t t = begin; t < end; t++)
        for (int64_t j = 0; j < m->d; j++)
            m->to[t * m->d + j] = m->from[i * m->d + j] / (wf_real)(end - begin);
}

static wf_status mean_shape(wf_call *c)
{
    const struct packed_attr *a = c->attr;
    const wf_array *x = &c->in[0];
    if (wf_want(c, 0, WF_REAL) != WF_OK)
        return WF_ERR_ARGUMENT;
    if (x->ndim < 1)
        return wf_call_fail(c, WF_ERR_SHAPE, "x must be [N, ...]");
    if (wf_want_packed(c, a->packed, "packed", x->dim[0]) != WF_OK)
        return WF_ERR_ARGUMENT;
    wf_shape shape = wf_array_shape(x);
    shape.dim[0] = a->packed.count;
    c->out[0] = wf_call_shape(WF_REAL, &shape);
    return WF_OK;
}

static wf_status mean_forward(wf_call *c)
{
    const wf_array x = wf_call_contiguous(c, &c->in[0]);
    struct means m = {.at = ((const struct packed_attr *)c->attr)->packed, .from = x.data, .to = c->out[0].data, .d = row_of(&x, 1)};
    if (!x.data)
        return WF_ERR_MEMORY;
    m.pieces = (m.d + COLUMNS - 1) / COLUMNS;
    wf_parallel(m.at.count * m.pieces, 0.3 * (double)wf_array_count(&x) + 10 * (double)m.at.count, mean_block, &m);
    return WF_OK;
}

/* y_i = (x_1 + ... + x_l) / l, so each of the l rows has the gradient dy_i / l. */
static wf_status mean_backward(wf_call *c)
{
    const wf_array dy = wf_call_contiguous(c, &c->dout[0]), dx = wf_grad_new(c, 0);
    if (!dy.data || !dx.data)
        return WF_ERR_MEMORY;
    struct means m = {.at = ((const struct packed_attr *)c->attr)->packed, .from = dy.data, .to = dx.data, .d = row_of(&dy, 1)};
    wf_parallel(m.at.count, 0.3 * (double)wf_array_count(&dx) + 10 * (double)m.at.count, spread_block, &m);
    wf_grad_give(c, 0, &dx);
    return WF_OK;
}

/* --- gradients from ops ----------------------------------------------------------------------------------------------- */

static struct wf_packed packed_of(const wf_gradient_call *c)
{
    return ((const struct packed_attr *)c->attr)->packed;
}

static void pad_gradient(const wf_gradient_call *c)
{
    c->dx[0] = wf_pack_rows(c->dy[0], packed_of(c));
}

static void pack_gradient(const wf_gradient_call *c)
{
    wf_tensor *dx = wf_pad_rows(c->dy[0], packed_of(c), 0);
    c->dx[0] = wf_pad(dx, 1, 0, wf_dim(c->x[0], 1) - wf_dim(dx, 1), 0);
}

/* dy_i / l in each of the l rows: dy_i repeated over the longest sequence's rows, then packed. */
static void mean_gradient(const wf_gradient_call *c)
{
    const struct wf_packed packed = packed_of(c);
    const wf_shape shape = wf_shape_of(c->x[0]), factors = {2, {packed.count, 1}};
    wf_shape rows = {2, {packed.count, 1}};
    for (int d = 1; d < shape.ndim; d++)
        rows.dim[1] *= shape.dim[d];
    wf_real *factor = wf_tape_memory(c->tape, (size_t)(packed.count + 1) * sizeof *factor);
    if (!factor)
        return;
    for (int i = 0; i < packed.count; i++)
        factor[i] = (wf_real)1 / (wf_real)WF_MAX(packed.offsets[i + 1] - packed.offsets[i], 1);
    wf_tensor *dy = wf_mul(wf_reshape_to(c->dy[0], &rows), wf_input(c->tape, factor, &factors, false));
    const wf_shape padded = {3, {packed.count, wf_packed_longest(packed), rows.dim[1]}};
    c->dx[0] = wf_reshape_to(wf_pack_rows(wf_expand_to(wf_unsqueeze(dy, 1), &padded), packed), &shape);
}

/* --- descriptors and constructors ----------------------------------------------------------------------------------- */

/* clang-format off */
#define PACKED(n, ...) ATTR(struct packed_attr, .packed = {(const int32_t[]){__VA_ARGS__}, n}, .fill = 0.5)
const wf_op wf_op_pad_rows = {
    .name = "pad_rows", .operands = "x", .attr_size = sizeof(struct packed_attr), .reads = WF_READS_NOTHING,
    .shape = pad_shape, .forward = pad_forward, .backward = pad_backward, .gradient = pad_gradient,
    .cases = WF_CASES(
        {"rows", {{9, 3}}, PACKED(3, 0, 4, 5, 9)}, {"empty sequences", {{5, 2}}, PACKED(4, 0, 0, 2, 2, 5)},
        {"numbers", {{7}}, PACKED(2, 0, 5, 7)}, {"planes", {{6, 2, 3}}, PACKED(2, 0, 2, 6)}, {"one", {{4, 5}}, PACKED(1, 0, 4)},
        {"nothing", {{-1, 5}}, PACKED(2, 0, 0, 0)}, {"no sequences", {{-1, 5}}, PACKED(0, 0)})};
const wf_op wf_op_pack_rows = {
    .name = "pack_rows", .operands = "x", .attr_size = sizeof(struct packed_attr), .reads = WF_READS_NOTHING,
    .shape = pack_shape, .forward = pack_forward, .backward = pack_backward, .gradient = pack_gradient,
    .cases = WF_CASES(
        {"rows", {{3, 4, 3}}, PACKED(3, 0, 4, 5, 9)}, {"longer than all", {{3, 6, 3}}, PACKED(3, 0, 4, 5, 9)},
        {"empty sequences", {{4, 3, 2}}, PACKED(4, 0, 0, 2, 2, 5)}, {"numbers", {{2, 5}}, PACKED(2, 0, 5, 7)},
        {"planes", {{2, 4, 2, 3}}, PACKED(2, 0, 2, 6)}, {"nothing", {{2, 3, 5}}, PACKED(2, 0, 0, 0)})};
const wf_op wf_op_mean_packed = {
    .name = "mean_packed", .operands = "x", .attr_size = sizeof(struct packed_attr), .reads = WF_READS_NOTHING,
    .shape = mean_shape, .forward = mean_forward, .backward = mean_backward, .gradient = mean_gradient,
    .cases = WF_CASES(
        {"rows", {{9, 3}}, PACKED(3, 0, 4, 5, 9)}, {"empty sequences", {{5, 2}}, PACKED(4, 0, 0, 2, 2, 5)},
        {"numbers", {{7}}, PACKED(2, 0, 5, 7)}, {"wide", {{6, 2, 70}}, PACKED(2, 0, 2, 6)}, {"most dims", {{3, 1, 2, 1, 2, 1}}, PACKED(2, 0, 2, 3)}, {"nothing", {{-1, 5}}, PACKED(2, 0, 0, 0)},
        {"no sequences", {{-1, 5}}, PACKED(0, 0)})};
/* clang-format on */

static wf_tensor *apply(const wf_op *op, wf_tensor *x, struct wf_packed packed, double fill)
{
    return wf_apply(op, &(struct packed_attr){wf_packed_copy(wf_tape_of_operands(1, &x), packed), fill}, 1, &x);
}

wf_tensor *wf_pad_rows(wf_tensor *x, struct wf_packed packed, double fill)
{
    return apply(&wf_op_pad_rows, x, packed, fill);
}

wf_tensor *wf_pack_rows(wf_tensor *x, struct wf_packed packed)
{
    return apply(&wf_op_pack_rows, x, packed, 0);
}

wf_tensor *wf_mean_packed(wf_tensor *x, struct wf_packed packed)
{
    return apply(&wf_op_mean_packed, x, packed, 0);
}
