/* SPDX-License-Identifier: MIT */
/* sort and argsort along a dimension. The order is sort.h's: stable, with NaN as the greatest of all. */
#include "common.h"
#include "sort.h"

struct sorting {
    int dim;
    bool descending;
};

static int dim_of(const wf_call *c)
{
    const int dim = ((const struct sorting *)c->attr)->dim;
    return dim < 0 ? dim + c->in[0].ndim : dim;
}

/* Sets *shape to the operand's. */
static wf_status check(wf_call *c, wf_shape *shape)
{
    const int dim = ((const struct sorting *)c->attr)->dim;
    if (wf_want(c, 0, WF_REAL) != WF_OK)
        return WF_ERR_ARGUMENT;
    const int d = wf_want_dim(c, 0, dim);
    if (d < 0)
        return WF_ERR_SHAPE;
    *shape = wf_array_shape(&c->in[0]);
    if (shape->dim[d] > INT32_MAX)
        return wf_call_fail(c, WF_ERR_SHAPE, "dimension %d has size %lld, more than ids of 32 bits can name", dim,
                            (long long)shape->dim[d]);
    return WF_OK;
}

static wf_status sort_shape(wf_call *c)
{
    wf_shape shape;
    const wf_status status = check(c, &shape);
    if (status != WF_OK)
        return status;
    c->out[0] = wf_call_shape(WF_REAL, &shape);
    *(c->outputs > 1 ? &c->out[1] : &c->saved[0]) = wf_call_shape(WF_I32, &shape);
    return WF_OK;
}

static wf_status argsort_shape(wf_call *c)
{
    wf_shape shape;
    const wf_status status = check(c, &shape);
    if (status == WF_OK)
        c->out[0] = wf_call_shape(WF_I32, &shape);
    return status;
}

struct work {
    int64_t n;
    bool descending;
    const wf_real *x; /* [rows, n] */
    wf_real *y;       /* [rows, n], or NULL: the values are not wanted */
    int32_t *id;      /* [rows, n], or NULL: the ids are not wanted */
    bool *no_memory;
};

static void sort_body(void *ctx, int64_t begin, int64_t end)
{
    const struct work *w = ctx;
    const int64_t n = w->n;
    struct item *items = wf_scratch(WF_SCRATCH_OP, (size_t)(2 * n) * sizeof *items);
    if (!items) {
        __atomic_store_n(w->no_memory, true, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t row = begin; row < end; row++) {
        sort_row(n, w->x + row * n, !w->descending, items, items + n);
        for (int64_t i = 0; i < n; i++) {
            if (w->y)
                w->y[row * n + i] = items[i].value;
            if (w->id)
                w->id[row * n + i] = items[i].id;
        }
    }
}

/* `to` with dimension d moved to the end; if the elements then do not lie in rows, a temporary array in their place. */
static wf_array rows_for(wf_call *c, const wf_array *to, int d, wf_array *place)
{
    const wf_shape shape = wf_array_shape(place);
    *place = wf_dim_last(*to, d);
    return wf_array_is_contiguous(place) ? *place : wf_call_temp(c, to->dtype, &shape);
}

/* Writes sorted values to *values and their ids to *ids, each of which may be NULL. */
static wf_status sort_into(wf_call *c, const wf_array *values, const wf_array *ids)
{
    const int d = dim_of(c);
    const wf_array last = wf_dim_last(c->in[0], d), x = wf_call_contiguous(c, &last);
    const int64_t count = wf_array_count(&x);
    if (count == 0)
        return WF_OK;
    bool no_memory = false;
    wf_array y_place = last, id_place = last, y = {0}, id = {0};
    if (values)
        y = rows_for(c, values, d, &y_place);
    if (ids)
        id = rows_for(c, ids, d, &id_place);
    if (!x.data || (values && !y.data) || (ids && !id.data))
        return WF_ERR_MEMORY;
    struct work w = {c->in[0].dim[d], ((const struct sorting *)c->attr)->descending, x.data, y.data, id.data, &no_memory};
    wf_parallel_ranges(count / w.n, WF_MAX(1, 4096 / w.n), 15.0 * (double)count, sort_body, &w);
    if (no_memory)
        return wf_call_fail(c, WF_ERR_MEMORY, "no memory to sort a row");
    if (values && y.data != y_place.data)
        wf_array_copy(&y_place, &y);
    if (ids && id.data != id_place.data)
        wf_array_copy(&id_place, &id);
    return WF_OK;
}

static wf_status sort_forward(wf_call *c)
{
    const wf_array *ids = c->outputs > 1 ? &c->out[1] : &c->saved[0];
    return sort_into(c, &c->out[0], ids->data ? ids : NULL);
}

static wf_status sort_backward(wf_call *c)
{
    return spread_taken(c, dim_of(c), c->in[0].dim[dim_of(c)]);
}

wf_tensor *apply_with_ids(const wf_op *op, const void *attr, wf_tensor *x, wf_tensor **ids)
{
    wf_tensor *out[2];
    wf_apply_multi(op, attr, 1, &x, ids || wf_records(x) ? 2 : 1, out);
    if (ids)
        *ids = out[1];
    return out[0];
}

wf_tensor *ids_of_taken(const wf_gradient_call *c, const wf_op *op)
{
    wf_tensor *ids;
    if (c->outputs > 1)
        return c->y[1];
    apply_with_ids(op, c->attr, wf_detach(c->x[0]), &ids);
    return ids;
}

void spread_taken_gradient(const wf_gradient_call *c, const wf_op *op, int dim, bool reduced)
{
    wf_tensor *ids = ids_of_taken(c, op), *dy = c->dy[0];
    const wf_shape shape = wf_shape_of(c->x[0]);
    dim = dim < 0 ? dim + shape.ndim : dim;
    if (reduced) {
        ids = wf_unsqueeze(ids, dim);
        dy = wf_unsqueeze(dy, dim);
    }
    c->dx[0] = wf_scatter_add(wf_zeros(c->tape, &shape), dim, ids, dy);
}

static void sort_gradient(const wf_gradient_call *c)
{
    spread_taken_gradient(c, &wf_op_sort, ((const struct sorting *)c->attr)->dim, false);
}

static wf_status argsort_forward(wf_call *c)
{
    return sort_into(c, NULL, &c->out[0]);
}

#define BY(...) {WF_FILL_APART}, ATTR(struct sorting, __VA_ARGS__)
#define SORT_CASES                                                                                                                         \
    WF_CASES({"last", {{3, 5}}, BY(-1)}, {"descending", {{3, 5}}, BY(1, true)}, {"columns", {{9, 4}}, BY(0)},                              \
             {"middle", {{2, 6, 3}}, BY(1, true)}, {"vector", {{7}}, BY(0)}, {"size 1", {{3, 1}}, BY(1)}, {"empty", {{-1, 4}}, BY(1)},     \
             {"nothing", {{4, -1}}, BY(1)}, {"long", {{2, 131}}, BY(1)})
const wf_op wf_op_sort = {.name = "sort",
                          .attr_size = sizeof(struct sorting),
                          .outputs = 2,
                          .reads = WF_READS_OUTPUT(1),
                          .shape = sort_shape,
                          .forward = sort_forward,
                          .backward = sort_backward,
                          .gradient = sort_gradient,
                          .cases = SORT_CASES};
const wf_op wf_op_argsort = {.name = "argsort",
                             .constant = true,
                             .attr_size = sizeof(struct sorting),
                             .shape = argsort_shape,
                             .forward = argsort_forward,
                             .cases = SORT_CASES};

wf_tensor *wf_sort(wf_tensor *x, int dim, bool descending, wf_tensor **ids)
{
    return apply_with_ids(&wf_op_sort, &(struct sorting){dim, descending}, x, ids);
}

wf_tensor *wf_argsort(wf_tensor *x, int dim, bool descending)
{
    return wf_apply(&wf_op_argsort, &(struct sorting){dim, descending}, 1, &x);
}
