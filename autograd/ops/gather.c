/* SPDX-License-Identifier: MIT */
/* gather takes elements along a dimension by ids, one id for each element of the result. scatter_add adds the elements of a source to the
 * elements that such ids name. */
#include "common.h"

/* A loop over two arrays at once: a contiguous one of the ids' shape, and x, whose index along `dim` is the id. The dimensions other than
 * `dim` and the last are called outer. A block of work is one index of the outer dimensions and a piece of the last dimension. Two ids can
 * lead to the same element of x only if their indices differ in `dim` alone. A block runs over all of `dim`, in order, so no two blocks
 * write to the same element. */
struct pass {
    const int32_t *id;
    const wf_real *from;
    wf_real *to;
    int outer;                   /* number of outer dimensions */
    int64_t size[WF_MAX_DIMS];   /* sizes of the outer dimensions */
    int64_t x_step[WF_MAX_DIMS]; /* strides of x in the outer dimensions */
    int64_t step[WF_MAX_DIMS];   /* strides of the contiguous array in the outer dimensions */
    int64_t steps;               /* size of `dim` in the ids; 1 if `dim` is the last dimension */
    int64_t x_along;             /* stride of x along `dim` */
    int64_t along;               /* stride of the contiguous array along `dim`, if that is not the last dimension */
    int64_t columns;             /* size of the last dimension */
    int64_t x_column;            /* stride of x in the last dimension; 0 if that is `dim` */
    int64_t piece;               /* columns in a block */
    int64_t pieces;              /* blocks that share the last dimension */
    bool add;                    /* add to x; false: take from x */
};

#define LINE(TO)                                                                                                                           \
    if (p->x_along == 1 && p->x_column == 0)                                                                                               \
        for (int64_t j = 0; j < n; j++)                                                                                                    \
            TO(id[j]);                                                                                                                     \
    else                                                                                                                                   \
        for (int64_t j = 0; j < n; j++)                                                                                                    \
        TO(id[j] * along + j * column)
#define TAKE(at) own[j] = x[at]
#define ADD(at) x[at] += own[j]

static void take_line(const struct pass *p, int64_t n, const int32_t *restrict id, const wf_real *restrict x, wf_real *restrict own)
{
    const int64_t along = p->x_along, column = p->x_column;
    LINE(TAKE);
}

static void add_line(const struct pass *p, int64_t n, const int32_t *restrict id, wf_real *restrict x, const wf_real *restrict own)
{
    const int64_t along = p->x_along, column = p->x_column;
    LINE(ADD);
}

/* Moves to the next outer index. *x and *own become its offsets in x and in the contiguous array. */
static void next_index(const struct pass *p, int64_t index[], int64_t *x, int64_t *own)
{
    for (int d = p->outer - 1; d >= 0; d--) {
        *x += p->x_step[d];
        *own += p->step[d];
        if (++index[d] < p->size[d])
            return;
        *x -= p->size[d] * p->x_step[d];
        *own -= p->size[d] * p->step[d];
        index[d] = 0;
    }
}

static void pass_body(void *ctx, int64_t begin, int64_t end)
{
    const struct pass *p = ctx;
    int64_t index[WF_MAX_DIMS], x0 = 0, own0 = 0, at = begin / p->pieces, piece = begin % p->pieces;
    for (int d = p->outer - 1; d >= 0; at /= p->size[d--]) {
        index[d] = at % p->size[d];
        x0 += index[d] * p->x_step[d];
        own0 += index[d] * p->step[d];
    }
    for (int64_t block = begin; block < end; block++) {
        int64_t first = piece * p->piece, x = x0 + first * p->x_column, own = own0 + first;
        int64_t n = WF_MIN(p->columns - first, p->piece);
        for (int64_t i = 0; i < p->steps; i++, own += p->along)
            if (p->add)
                add_line(p, n, p->id + own, p->to + x, p->from + own);
            else
                take_line(p, n, p->id + own, p->from + x, p->to + own);
        if (++piece == p->pieces) {
            piece = 0;
            next_index(p, index, &x0, &own0);
        }
    }
}

/* Runs the loop over x (any strides) and a contiguous array of the ids' shape, which is `from` or `to`. */
static void run(const wf_array *x, const wf_array *ids, int dim, bool add, const wf_real *from, wf_real *to)
{
    enum { PIECE = 256, GRAIN = 8192 };
    int last = ids->ndim - 1;
    /* With one id in a row, the inner loop would have one step, so the last but one dimension takes the place of the last. */
    last -= last > 0 && dim == last && ids->dim[last] == 1;
    struct pass p = {.id = ids->data, .from = from, .to = to, .steps = 1, .pieces = 1, .x_along = x->stride[dim], .add = add};
    int64_t blocks = 1, stride = 1, count = wf_array_count(ids);
    for (int d = ids->ndim - 1; d >= 0; stride *= ids->dim[d--]) {
        if (d == dim && d != last) {
            p.steps = ids->dim[d];
            p.along = stride;
        } else if (d == last) {
            p.columns = ids->dim[d];
            p.x_column = d == dim ? 0 : x->stride[d];
        } else {
            p.size[p.outer] = ids->dim[d];
            p.x_step[p.outer] = x->stride[d];
            p.step[p.outer++] = stride;
            blocks *= ids->dim[d];
        }
    }
    if (count == 0)
        return;
    p.piece = p.columns;
    if (dim != last && p.columns > PIECE) {
        p.piece = PIECE;
        p.pieces = (p.columns + PIECE - 1) / PIECE;
        blocks *= p.pieces;
    }
    int64_t grain = GRAIN / (p.piece * p.steps);
    wf_parallel_ranges(blocks, WF_MAX(grain, 1), (double)count * 1.0 + (double)blocks * 5, pass_body, &p);
}

static wf_status ids_shape(wf_call *c)
{
    if (wf_want(c, 0, WF_REAL) != WF_OK || wf_want(c, 1, WF_I32) != WF_OK)
        return WF_ERR_ARGUMENT;
    const struct along *a = c->attr;
    int dim = wf_want_dim(c, 0, a->dim);
    if (dim < 0)
        return WF_ERR_SHAPE;
    bool fits = c->in[1].ndim == c->in[0].ndim;
    for (int d = 0; fits && d < c->in[0].ndim; d++)
        fits = d == dim || c->in[1].dim[d] <= c->in[0].dim[d];
    return fits
               ? WF_OK
               : wf_call_fail(c, WF_ERR_SHAPE, "the ids must have as many dimensions as x, and may be larger in dimension %d only", a->dim);
}

static wf_status gather_shape(wf_call *c)
{
    wf_status status = ids_shape(c);
    if (status == WF_OK)
        c->out[0] = wf_call_like(c, &c->in[1]);
    return status;
}

static wf_status gather_forward(wf_call *c)
{
    int dim = wf_along(c);
    wf_array ids = wf_ids_below(c, 1, c->in[0].dim[dim]);
    if (!ids.data)
        return WF_ERR_ARGUMENT;
    run(&c->in[0], &ids, dim, false, c->in[0].data, c->out[0].data);
    return WF_OK;
}

/* y[..i..] = x[..id[..i..]..], so an element of dx is the sum of dy over the ids that name the element. */
static wf_status gather_backward(wf_call *c)
{
    int dim = wf_along(c);
    wf_array ids = wf_call_contiguous(c, &c->in[1]), dy = wf_call_contiguous(c, &c->dout[0]);
    struct contiguous_grad dx;
    if (!ids.data || !dy.data || !wf_contiguous_grad_to_add(c, 0, &dx))
        return WF_ERR_MEMORY;
    run(&dx.contiguous, &ids, dim, true, dy.data, dx.contiguous.data);
    wf_contiguous_grad_done(&dx);
    return WF_OK;
}

static void gather_gradient(const wf_gradient_call *c)
{
    const wf_shape shape = wf_shape_of(c->x[0]);
    c->dx[0] = wf_scatter_add(wf_zeros(c->tape, &shape), ((const struct along *)c->attr)->dim, c->x[1], c->dy[0]);
}

#define ALONG(d) ATTR(struct along, d)
#define IDS(n) .fill = {WF_FILL_NORMAL, WF_FILL_IDS}, .limit = {0, n}
const wf_op wf_op_gather = {
    .name = "gather",
    .operands = "x ids",
    .attr_size = sizeof(struct along),
    .reads = WF_READS_INPUT(1),
    .shape = gather_shape,
    .forward = gather_forward,
    .backward = gather_backward,
    .gradient = gather_gradient,
    .cases = WF_CASES({"last", {{3, 5}, {3, 2}}, IDS(5), ALONG(-1)}, {"first", {{5, 3}, {7, 3}}, IDS(5), ALONG(0)},
                      {"middle", {{2, 4, 3}, {2, 6, 3}}, IDS(4), ALONG(1)}, {"fewer ids", {{3, 4, 5}, {2, 6, 3}}, IDS(4), ALONG(1)},
                      {"one id a row", {{4, 6}, {4, 1}}, IDS(6), ALONG(1)}, {"vector, repeated", {{2}, {9}}, IDS(2), ALONG(0)},
                      {"one", {{1, 1}, {1, 1}}, IDS(1), ALONG(0)}, {"no ids", {{3, 4}, {3, -1}}, IDS(4), ALONG(1)},
                      {"no rows", {{-1, 4}, {-1, 2}}, IDS(4), ALONG(1)}, {"wide", {{3, 300}, {2, 290}}, IDS(3), ALONG(0)},
                      {"four dims", {{2, 3, 4, 5}, {2, 2, 7, 4}}, IDS(4), ALONG(-2)}, {"deep", {{2, 4, 3}, {7, 3, 2}}, IDS(2), ALONG(0)})};

wf_tensor *wf_gather(wf_tensor *x, int dim, wf_tensor *ids)
{
    return wf_apply(&wf_op_gather, &(struct along){dim}, 2, (wf_tensor *[]){x, ids});
}

/* --- scatter_add ---------------------------------------------------------------------------------------------------- */

static wf_status scatter_shape(wf_call *c)
{
    wf_status status = ids_shape(c);
    if (status == WF_OK)
        status = wf_want(c, 2, WF_REAL);
    if (status != WF_OK)
        return status;
    wf_shape ids = wf_array_shape(&c->in[1]), source = wf_array_shape(&c->in[2]);
    if (!wf_shape_equal(&ids, &source))
        return wf_call_fail(c, WF_ERR_SHAPE, "the source must have the shape of the ids");
    c->out[0] = wf_call_like(c, &c->in[0]);
    return WF_OK;
}

static wf_status scatter_forward(wf_call *c)
{
    int dim = wf_along(c);
    wf_array ids = wf_ids_below(c, 1, c->in[0].dim[dim]), source = wf_call_contiguous(c, &c->in[2]);
    if (!ids.data || !source.data)
        return WF_ERR_ARGUMENT;
    wf_array_copy(&c->out[0], &c->in[0]);
    run(&c->out[0], &ids, dim, true, source.data, c->out[0].data);
    return WF_OK;
}

/* y = x, then y[..id..] += s. So dx = dy and ds = dy[..id..]. */
static wf_status scatter_backward(wf_call *c)
{
    int dim = wf_along(c);
    if (c->need[2]) {
        wf_array ids = wf_call_contiguous(c, &c->in[1]), ds = wf_grad_new(c, 2);
        if (!ids.data || !ds.data)
            return WF_ERR_MEMORY;
        run(&c->dout[0], &ids, dim, false, c->dout[0].data, ds.data);
        wf_grad_give(c, 2, &ds);
    }
    if (c->need[0])
        wf_grad_give(c, 0, &c->dout[0]);
    return WF_OK;
}

static void scatter_gradient(const wf_gradient_call *c)
{
    c->dx[0] = c->dy[0];
    if (c->need[2])
        c->dx[2] = wf_gather(c->dy[0], ((const struct along *)c->attr)->dim, c->x[1]);
}

#define IDS_AND_SOURCE(n) .fill = {WF_FILL_NORMAL, WF_FILL_IDS, WF_FILL_NORMAL}, .limit = {0, n, 0}
const wf_op wf_op_scatter_add = {.name = "scatter_add",
                                 .operands = "x ids source",
                                 .attr_size = sizeof(struct along),
                                 .reads = WF_READS_INPUT(1),
                                 .shape = scatter_shape,
                                 .forward = scatter_forward,
                                 .backward = scatter_backward,
                                 .gradient = scatter_gradient,
                                 .cases = WF_CASES({"last", {{3, 5}, {3, 7}, {3, 7}}, IDS_AND_SOURCE(5), ALONG(-1)},
                                                   {"first", {{5, 3}, {7, 3}, {7, 3}}, IDS_AND_SOURCE(5), ALONG(0)},
                                                   {"middle, fewer ids", {{3, 4, 5}, {2, 6, 3}, {2, 6, 3}}, IDS_AND_SOURCE(4), ALONG(1)},
                                                   {"vector", {{2}, {9}, {9}}, IDS_AND_SOURCE(2), ALONG(0)},
                                                   {"one", {{1, 1}, {1, 1}, {1, 1}}, IDS_AND_SOURCE(1), ALONG(1)},
                                                   {"no ids", {{3, 4}, {3, -1}, {3, -1}}, IDS_AND_SOURCE(4), ALONG(1)},
                                                   {"wide", {{3, 300}, {5, 290}, {5, 290}}, IDS_AND_SOURCE(3), ALONG(0)})};

wf_tensor *wf_scatter_add(wf_tensor *x, int dim, wf_tensor *ids, wf_tensor *source)
{
    return wf_apply(&wf_op_scatter_add, &(struct along){dim}, 3, (wf_tensor *[]){x, ids, source});
}
