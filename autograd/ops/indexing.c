/* SPDX-License-Identifier: MIT */
/* Slices along a dimension by a vector of ids: index_select takes slices, index_add adds to them. */
#include <string.h>

#include "common.h"

/* --- rows by ids ---------------------------------------------------------------------------------------------------- */

struct take {
    const wf_array *planes;
    const int32_t *id;
    int64_t n;
    wf_real *to;
};

static void take_body(void *ctx, int64_t begin, int64_t end)
{
    const struct take *t = ctx;
    const int64_t d = t->planes->dim[2], row = t->planes->stride[1], step = t->planes->stride[2];
    for (int64_t r = begin, p = begin / t->n, i = begin % t->n; r < end; r++) {
        const wf_real *from = (const wf_real *)t->planes->data + p * t->planes->stride[0] + t->id[i] * row;
        wf_real *to = t->to + r * d;
        if (step == 1 && d >= 16)
            memcpy(to, from, (size_t)d * sizeof *to);
        else
            for (int64_t j = 0; j < d; j++)
                to[j] = from[j * step];
        if (++i == t->n)
            i = 0, p++;
    }
}

void wf_take_rows(const wf_array *planes, const int32_t *id, int64_t n, wf_real *to)
{
    int64_t rows = planes->dim[0] * n, d = planes->dim[2];
    if (rows * d > 0)
        wf_parallel_ranges(rows, 1 + 8192 / d, (double)rows * (1 + 0.07 * (double)d), take_body, &(struct take){planes, id, n, to});
}

enum { COLUMNS = 256, BUCKETS = 16, NARROW = 16 };

/* Ids go into buckets by their low bits. A block of work is one plane, one bucket and COLUMNS columns, so no two blocks write to the same
 * element, and the additions to an element come in the order of positions (indices of the ids) on any number of threads. If planes and
 * pieces of columns give enough blocks, there are no buckets. */
struct add {
    const wf_array *from; /* [P, n, d], with the elements of a row contiguous */
    const int32_t *id;
    const int32_t *position;    /* [n]: positions sorted by bucket, ascending in each bucket; NULL: no buckets */
    int64_t begin[BUCKETS + 1]; /* bucket b is position[begin[b] .. begin[b + 1] - 1]; without buckets: {0, n} */
    int64_t limit;              /* rows of a plane of `to` */
    int64_t pieces;             /* blocks of COLUMNS columns in a row */
    wf_real *to;
};

static void add_row(int64_t n, const wf_real *from, wf_real *to)
{
    if (n >= NARROW)
        wf_kernel->add(n, to, 1, from, 1, to);
    else
        for (int64_t j = 0; j < n; j++)
            to[j] += from[j];
}

static void add_body(void *ctx, int64_t block)
{
    const struct add *s = ctx;
    const int64_t buckets = s->position ? BUCKETS : 1, bucket = block % buckets, piece = block / buckets % s->pieces,
                  plane = block / buckets / s->pieces, d = s->from->dim[2], first = piece * COLUMNS, n = WF_MIN(d - first, COLUMNS);
    const wf_real *from = (const wf_real *)s->from->data + plane * s->from->stride[0] + first;
    wf_real *to = s->to + plane * s->limit * d + first;
    for (int64_t k = s->begin[bucket]; k < s->begin[bucket + 1]; k++) {
        int64_t i = s->position ? s->position[k] : k;
        add_row(n, from + i * s->from->stride[1], to + s->id[i] * d);
    }
}

bool wf_add_rows(wf_call *c, const wf_array *from, const int32_t *id, int64_t limit, wf_real *planes)
{
    wf_array rows = *from;
    if (rows.dim[2] <= 1)
        rows.stride[2] = 1;
    if (rows.stride[2] != 1)
        rows = wf_call_contiguous(c, &rows);
    if (!rows.data)
        return false;
    struct add s = {.from = &rows, .id = id, .limit = limit, .to = planes};
    const int64_t n = rows.dim[1], d = rows.dim[2];
    s.pieces = (d + COLUMNS - 1) / COLUMNS;
    const bool by_bucket = rows.dim[0] * s.pieces < BUCKETS;
    if (by_bucket) {
        int64_t next[BUCKETS];
        int32_t *position = wf_call_temp(c, WF_I32, &(wf_shape){1, {n}}).data;
        if (!position)
            return false;
        for (int64_t i = 0; i < n; i++)
            s.begin[id[i] % BUCKETS + 1]++;
        for (int b = 0; b < BUCKETS; b++) {
            next[b] = s.begin[b];
            s.begin[b + 1] += s.begin[b];
        }
        for (int64_t i = 0; i < n; i++)
            position[next[id[i] % BUCKETS]++] = (int32_t)i;
        s.position = position;
    } else {
        s.begin[1] = n;
    }
    wf_parallel(rows.dim[0] * s.pieces * (by_bucket ? BUCKETS : 1), 0.08 * (double)rows.dim[0] * (double)n * (double)(d + 30), add_body,
                &s);
    return true;
}

/* --- index_select --------------------------------------------------------------------------------------------------- */

/* `a` with three dimensions: those to the left of `dim` as one, `dim` itself, and those to the right of `dim` as one; a contiguous copy if
 * the strides of `a` do not allow that. data is NULL without memory. */
static wf_array planes_of(wf_call *c, const wf_array *a, int dim)
{
    wf_shape shape = {3, {1, a->dim[dim], 1}};
    for (int d = 0; d < a->ndim; d++)
        if (d != dim)
            shape.dim[d < dim ? 0 : 2] *= a->dim[d];
    wf_array planes;
    if (wf_array_count(a) == 0)
        return wf_array_contiguous(a->data, WF_REAL, &shape);
    if (wf_array_reshape(a, &shape, &planes))
        return planes;
    wf_array copy = wf_call_contiguous(c, a);
    return wf_array_contiguous(copy.data, WF_REAL, &shape);
}

/* Checks operand 0 and the ids, operand 1, which must be a vector. *dim becomes the op's dimension, counted from the front. */
static wf_status index_shape(wf_call *c, int *dim)
{
    if (wf_want(c, 0, WF_REAL) != WF_OK || wf_want(c, 1, WF_I32) != WF_OK)
        return WF_ERR_ARGUMENT;
    *dim = wf_along(c);
    if (*dim < 0)
        return WF_ERR_SHAPE;
    if (c->in[1].ndim != 1 || c->in[1].dim[0] > INT32_MAX)
        return wf_call_fail(c, WF_ERR_SHAPE, "the ids must be a vector");
    return WF_OK;
}

static wf_status select_shape(wf_call *c)
{
    int dim;
    wf_status status = index_shape(c, &dim);
    if (status != WF_OK)
        return status;
    wf_shape shape = wf_array_shape(&c->in[0]);
    shape.dim[dim] = c->in[1].dim[0];
    c->out[0] = wf_call_shape(WF_REAL, &shape);
    return WF_OK;
}

static wf_status select_forward(wf_call *c)
{
    int dim = wf_along(c);
    wf_array ids = wf_ids_below(c, 1, c->in[0].dim[dim]);
    wf_array x = planes_of(c, &c->in[0], dim);
    if (!ids.data || !x.data)
        return WF_ERR_ARGUMENT;
    wf_take_rows(&x, ids.data, c->in[1].dim[0], c->out[0].data);
    return WF_OK;
}

/* y_i = x[id_i], so dx[v] is the sum of dy_i over the i with id_i = v. */
static wf_status select_backward(wf_call *c)
{
    int dim = wf_along(c);
    wf_array ids = wf_call_contiguous(c, &c->in[1]), dy = planes_of(c, &c->dout[0], dim);
    struct contiguous_grad dx;
    if (!ids.data || !dy.data || !wf_contiguous_grad_to_add(c, 0, &dx) ||
        !wf_add_rows(c, &dy, ids.data, c->in[0].dim[dim], dx.contiguous.data))
        return WF_ERR_MEMORY;
    wf_contiguous_grad_done(&dx);
    return WF_OK;
}

static void select_gradient(const wf_gradient_call *c)
{
    const wf_shape shape = wf_shape_of(c->x[0]);
    c->dx[0] = wf_index_add(wf_zeros(c->tape, &shape), ((const struct along *)c->attr)->dim, c->x[1], c->dy[0]);
}

#define ALONG(d) ATTR(struct along, d)
#define IDS(n) .fill = {WF_FILL_NORMAL, WF_FILL_IDS}, .limit = {0, n}
const wf_op wf_op_index_select = {
    .name = "index_select",
    .operands = "x ids",
    .attr_size = sizeof(struct along),
    .reads = WF_READS_INPUT(1),
    .shape = select_shape,
    .forward = select_forward,
    .backward = select_backward,
    .gradient = select_gradient,
    .cases = WF_CASES({"rows", {{5, 4}, {3}}, IDS(5), ALONG(0)}, {"columns", {{3, 5}, {7}}, IDS(5), ALONG(-1)},
                      {"middle", {{2, 5, 3}, {4}}, IDS(5), ALONG(1)}, {"vector", {{7}, {3}}, IDS(7), ALONG(0)},
                      {"repeated ids", {{2, 3}, {11}}, IDS(2), ALONG(0)}, {"one id", {{4, 2}, {1}}, IDS(4), ALONG(0)},
                      {"no ids", {{4, 2}, {-1}}, IDS(4), ALONG(0)}, {"empty rows", {{4, -1}, {3}}, IDS(4), ALONG(0)},
                      {"no planes", {{-1, 4, 2}, {3}}, IDS(4), ALONG(1)}, {"many planes", {{40, 3, 2}, {5}}, IDS(3), ALONG(1)},
                      {"wide", {{3, 300}, {9}}, IDS(3), ALONG(0)}, {"odd", {{2, 3, 17}, {5}}, IDS(3), ALONG(-2)})};

wf_tensor *wf_index_select(wf_tensor *x, int dim, wf_tensor *ids)
{
    return wf_apply(&wf_op_index_select, &(struct along){dim}, 2, (wf_tensor *[]){x, ids});
}

/* --- index_add ------------------------------------------------------------------------------------------------------ */

static wf_status index_add_shape(wf_call *c)
{
    int dim;
    wf_status status = index_shape(c, &dim);
    if (status == WF_OK)
        status = wf_want(c, 2, WF_REAL);
    if (status != WF_OK)
        return status;
    wf_shape source = wf_array_shape(&c->in[0]), given = wf_array_shape(&c->in[2]);
    source.dim[dim] = c->in[1].dim[0];
    char text[96];
    if (!wf_shape_equal(&source, &given))
        return wf_call_fail(c, WF_ERR_SHAPE, "the source must be %s: a slice for each id", wf_shape_text(&source, text, sizeof text));
    c->out[0] = wf_call_like(c, &c->in[0]);
    return WF_OK;
}

static wf_status index_add_forward(wf_call *c)
{
    int dim = wf_along(c);
    wf_array ids = wf_ids_below(c, 1, c->in[0].dim[dim]);
    wf_array source = planes_of(c, &c->in[2], dim);
    if (!ids.data || !source.data)
        return WF_ERR_ARGUMENT;
    wf_array_copy(&c->out[0], &c->in[0]);
    return wf_add_rows(c, &source, ids.data, c->in[0].dim[dim], c->out[0].data) ? WF_OK : WF_ERR_MEMORY;
}

/* y = x, then y[id_i] += s_i. So dx = dy and ds_i = dy[id_i]. */
static wf_status index_add_backward(wf_call *c)
{
    int dim = wf_along(c);
    if (c->need[2]) {
        wf_array ids = wf_call_contiguous(c, &c->in[1]), dy = planes_of(c, &c->dout[0], dim), ds = wf_grad_new(c, 2);
        if (!ids.data || !dy.data || !ds.data)
            return WF_ERR_MEMORY;
        wf_take_rows(&dy, ids.data, c->in[1].dim[0], ds.data);
        wf_grad_give(c, 2, &ds);
    }
    if (c->need[0])
        wf_grad_give(c, 0, &c->dout[0]);
    return WF_OK;
}

static void index_add_gradient(const wf_gradient_call *c)
{
    c->dx[0] = c->dy[0];
    if (c->need[2])
        c->dx[2] = wf_index_select(c->dy[0], ((const struct along *)c->attr)->dim, c->x[1]);
}

#define IDS_AND_SOURCE(n) .fill = {WF_FILL_NORMAL, WF_FILL_IDS, WF_FILL_NORMAL}, .limit = {0, n, 0}
const wf_op wf_op_index_add = {
    .name = "index_add",
    .operands = "x ids source",
    .attr_size = sizeof(struct along),
    .reads = WF_READS_INPUT(1),
    .shape = index_add_shape,
    .forward = index_add_forward,
    .backward = index_add_backward,
    .gradient = index_add_gradient,
    .cases = WF_CASES(
        {"rows", {{5, 4}, {3}, {3, 4}}, IDS_AND_SOURCE(5), ALONG(0)}, {"columns", {{3, 5}, {7}, {3, 7}}, IDS_AND_SOURCE(5), ALONG(-1)},
        {"middle", {{2, 5, 3}, {4}, {2, 4, 3}}, IDS_AND_SOURCE(5), ALONG(1)}, {"vector", {{3}, {11}, {11}}, IDS_AND_SOURCE(3), ALONG(0)},
        {"one", {{1, 1}, {1}, {1, 1}}, IDS_AND_SOURCE(1), ALONG(0)}, {"no ids", {{4, 2}, {-1}, {-1, 2}}, IDS_AND_SOURCE(4), ALONG(0)},
        {"empty rows", {{4, -1}, {3}, {3, -1}}, IDS_AND_SOURCE(4), ALONG(0)},
        {"many planes", {{40, 3, 2}, {5}, {40, 5, 2}}, IDS_AND_SOURCE(3), ALONG(1)},
        {"wide", {{3, 300}, {9}, {9, 300}}, IDS_AND_SOURCE(3), ALONG(0)})};

wf_tensor *wf_index_add(wf_tensor *x, int dim, wf_tensor *ids, wf_tensor *source)
{
    return wf_apply(&wf_op_index_add, &(struct along){dim}, 3, (wf_tensor *[]){x, ids, source});
}
