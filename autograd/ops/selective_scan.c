/* SPDX-License-Identifier: MIT */
/* The scan of a selective state-space layer (Mamba: Gu and Dao 2023). The kernels are in core/kernels/selective_scan.c.
 *
 * A block of work is a row of the batch and some channels, over all steps. The states of a block stay in the cache. A forward keeps those
 * before each chunk of steps, and the backward computes the others again, one chunk at a time, from the last to the first. The sizes of
 * blocks and chunks are constants, so that the bits depend on no number of threads, and a row of the forward on no other row. */
#include <string.h>

#include <weft/internal/selective_scan.h>

#include "common.h"

enum { X, DT, A, B, C, D, STATE }; /* operands */
enum { Y, LAST };                  /* results */
enum { KEPT };                     /* saved: [B,chunks,N,pitch], the states before each chunk */

struct selective_scan_attr {
    bool softplus;
};

/* --- shape ----------------------------------------------------------------------------------------------------------- */

/* Fails unless operand i has this shape. */
static wf_status want_shape(wf_call *c, int i, const char *what, const wf_shape *want)
{
    char text[96];
    if (wf_want(c, i, WF_REAL) != WF_OK)
        return WF_ERR_ARGUMENT;
    const wf_shape have = wf_array_shape(&c->in[i]);
    return wf_shape_equal(&have, want) ? WF_OK
                                       : wf_call_fail(c, WF_ERR_SHAPE, "%s must be %s", what, wf_shape_text(want, text, sizeof text));
}

static int64_t chunks_of(int64_t steps)
{
    return (steps + WF_SCAN_STEPS - 1) / WF_SCAN_STEPS;
}

static wf_status selective_scan_shape(wf_call *c)
{
    if (wf_want(c, X, WF_REAL) != WF_OK || wf_want(c, A, WF_REAL) != WF_OK)
        return WF_ERR_ARGUMENT;
    const wf_array *x = &c->in[X], *a = &c->in[A];
    if (x->ndim != 3)
        return wf_call_fail(c, WF_ERR_SHAPE, "x must be [B,T,E]");
    const int64_t rows = x->dim[0], steps = x->dim[1], channels = x->dim[2];
    if (a->ndim != 2 || a->dim[0] != channels)
        return wf_call_fail(c, WF_ERR_SHAPE, "a must be [E,N], and x has E = %lld channels", (long long)channels);
    const int64_t states = a->dim[1];
    const wf_shape each = {3, {rows, steps, channels}}, chosen = {3, {rows, steps, states}}, state = {3, {rows, channels, states}};
    if (want_shape(c, DT, "dt", &each) != WF_OK || want_shape(c, B, "b", &chosen) != WF_OK || want_shape(c, C, "c", &chosen) != WF_OK ||
        wf_want_vector(c, D, "vector d", channels) != WF_OK ||
        (wf_has(c, STATE) && want_shape(c, STATE, "the initial state", &state) != WF_OK))
        return WF_ERR_SHAPE;
    c->out[Y] = wf_call_like(c, x);
    if (c->outputs > LAST)
        c->out[LAST] = wf_call_shape(WF_REAL, &state);
    c->saved[KEPT] = wf_call_shape(WF_REAL, &(wf_shape){4, {rows, chunks_of(steps), states, wf_scan_pitch(channels)}});
    return WF_OK;
}

/* --- the work of a call ---------------------------------------------------------------------------------------------- */

struct work {
    int64_t rows, steps, channels, states, pitch, blocks; /* blocks of channels */
    struct wf_scan_chunk all;                             /* the first chunk of the first block, if that had all steps and channels */
    wf_real *kept;                                        /* [B,chunks,N,pitch]; NULL: nothing is kept */
};

/* A temporary array of at least one element, so that its data are NULL only without memory. */
static wf_real *temp(wf_call *c, int64_t count)
{
    return wf_call_temp(c, WF_REAL, &(wf_shape){1, {WF_MAX(count, 1)}}).data;
}

/* The channels of an array [rows,N,pitch], as [rows,E,N]. */
static wf_array states_view(const struct work *w, wf_real *states)
{
    return (wf_array){.data = states,
                      .dtype = WF_REAL,
                      .ndim = 3,
                      .dim = {w->rows, w->channels, w->states},
                      .stride = {w->states * w->pitch, 1, w->pitch}};
}

/* A new array [rows,N,pitch] of `from` [rows,E,N], or of zeros if that is NULL. NULL without memory. */
static wf_real *new_states(wf_call *c, const struct work *w, const wf_array *from)
{
    const int64_t count = w->rows * w->states * w->pitch;
    wf_real *states = temp(c, count);
    if (!states)
        return NULL;
    if (!from || w->pitch > w->channels)
        memset(states, 0, (size_t)count * sizeof *states);
    const wf_array view = states_view(w, states);
    if (from && count > 0)
        wf_array_copy(&view, from);
    return states;
}

/* A times log2 e, [N,pitch]. NULL without memory. */
static const wf_real *exponents(wf_call *c, const struct work *w)
{
    wf_array from = c->in[A];
    struct work one = *w;
    one.rows = from.ndim = 1;
    from = (wf_array){.data = from.data,
                      .dtype = WF_REAL,
                      .ndim = 3,
                      .dim = {1, w->channels, w->states},
                      .stride = {0, c->in[A].stride[0], c->in[A].stride[1]}};
    wf_real *a = new_states(c, &one, &from);
    if (a)
        wf_kernel->affine(w->states * w->pitch, (wf_real)1.44269504088896340736, 0, a, a);
    return a;
}

/* Fills *w from the operands. False without memory. */
static bool work_of(wf_call *c, struct work *w)
{
    const wf_array x = wf_rows_of(c, &c->in[X]), dt = wf_rows_of(c, &c->in[DT]), b = wf_rows_of(c, &c->in[B]), v = wf_rows_of(c, &c->in[C]);
    *w = (struct work){.rows = c->in[X].dim[0], .steps = c->in[X].dim[1], .channels = c->in[X].dim[2], .states = c->in[A].dim[1]};
    w->pitch = wf_scan_pitch(w->channels);
    w->blocks = (w->channels + WF_SCAN_CHANNELS - 1) / WF_SCAN_CHANNELS;
    w->all = (struct wf_scan_chunk){.softplus = ((const struct selective_scan_attr *)c->attr)->softplus,
                                    .states = w->states,
                                    .pitch = w->pitch,
                                    .x = x.data,
                                    .dt = dt.data,
                                    .b = b.data,
                                    .c = v.data,
                                    .x_row = x.stride[0],
                                    .dt_row = dt.stride[0],
                                    .b_row = b.stride[0],
                                    .c_row = v.stride[0],
                                    .y_row = w->channels,
                                    .a = exponents(c, w)};
    return x.data && dt.data && b.data && v.data && w->all.a && wf_vector_of(c, D, &w->all.skip);
}

/* p + offset, or NULL if p is NULL. */
#define FROM(p, offset) ((p) ? (p) + (offset) : NULL)

/* Chunk number k of a block. */
static struct wf_scan_chunk chunk_of(const struct work *w, int64_t block, int64_t k)
{
    struct wf_scan_chunk c = w->all;
    const int64_t row = block / w->blocks, first = block % w->blocks * WF_SCAN_CHANNELS, t = k * WF_SCAN_STEPS, at = row * w->steps + t;
    const int64_t state = row * w->states * w->pitch + first, sums = (block % w->blocks * w->rows * w->steps + at) * w->states;
    c.steps = WF_MIN(w->steps - t, WF_SCAN_STEPS);
    c.channels = WF_MIN(w->channels - first, WF_SCAN_CHANNELS);
    c.x += at * c.x_row + first;
    c.dt += at * c.dt_row + first;
    c.b += at * c.b_row;
    c.c += at * c.c_row;
    c.a += first;
    c.skip = FROM(c.skip, first);
    c.h = FROM(c.h, state);
    c.y = FROM(c.y, at * c.y_row + first);
    c.dy = FROM(c.dy, at * c.y_row + first);
    c.carry = FROM(c.carry, state);
    c.da = FROM(c.da, state);
    c.dskip = FROM(c.dskip, row * w->pitch + first);
    c.dx = FROM(c.dx, at * c.y_row + first);
    c.ddt = FROM(c.ddt, at * c.y_row + first);
    c.db = FROM(c.db, sums);
    c.dc = FROM(c.dc, sums);
    return c;
}

/* Where the states before chunk k of a block are kept: [N,channels]. */
static wf_real *kept_of(const struct work *w, int64_t block, int64_t k)
{
    return w->kept + (block / w->blocks * chunks_of(w->steps) + k) * w->states * w->pitch + block % w->blocks * WF_SCAN_CHANNELS;
}

/* Runs `body` for all blocks; an exponential and what belongs to it take `cost` nanoseconds. */
static void run(struct work *w, double cost, void (*body)(void *ctx, int64_t block))
{
    if (w->steps > 0)
        wf_parallel(w->rows * w->blocks, (double)(w->rows * w->steps) * (double)w->channels * (cost * (double)w->states + 2), body, w);
}

/* --- forward --------------------------------------------------------------------------------------------------------- */

static void forward_block(void *ctx, int64_t block)
{
    const struct work *w = ctx;
    for (int64_t k = 0; k < chunks_of(w->steps); k++) {
        const struct wf_scan_chunk c = chunk_of(w, block, k);
        const size_t bytes = (size_t)wf_scan_pitch(c.channels) * sizeof *c.h;
        for (int64_t n = 0; w->kept && n < w->states; n++)
            memcpy(kept_of(w, block, k) + n * w->pitch, c.h + n * w->pitch, bytes);
        wf_kernel->internal->selective_scan(&c);
    }
}

static wf_status selective_scan_forward(wf_call *c)
{
    struct work w;
    if (!work_of(c, &w) || !(w.all.h = new_states(c, &w, wf_has(c, STATE) ? &c->in[STATE] : NULL)))
        return WF_ERR_MEMORY;
    w.all.y = c->out[Y].data;
    w.kept = c->grad ? c->saved[KEPT].data : NULL;
    run(&w, 0.35, forward_block);
    if (c->outputs > LAST) {
        const wf_array last = states_view(&w, w.all.h);
        wf_array_copy(&c->out[LAST], &last);
    }
    return WF_OK;
}

/* --- backward: its derivation is with its kernel --------------------------------------------------------------------- */

static void backward_block(void *ctx, int64_t block)
{
    const struct work *w = ctx;
    for (int64_t k = chunks_of(w->steps) - 1; k >= 0; k--) {
        struct wf_scan_chunk c = chunk_of(w, block, k);
        c.h = kept_of(w, block, k);
        wf_kernel->internal->selective_scan_back(&c);
    }
}

/* Gives operand i the sum of `terms`, an array with a dimension more in front. */
static wf_status give_sum(wf_call *c, int i, const wf_array *terms)
{
    bool add;
    if (!wf_has(c, i) || !c->need[i])
        return WF_OK;
    const wf_array g = wf_grad_into(c, i, &add);
    return g.data ? wf_sum_into(c, &g, terms, 1, add) : WF_ERR_MEMORY;
}

static wf_status selective_scan_backward(wf_call *c)
{
    struct work w;
    const wf_array none = {0}, dy = c->dout[Y].data ? wf_call_contiguous(c, &c->dout[Y]) : none;
    wf_array dx = wf_grad_new(c, X), ddt = wf_grad_new(c, DT);
    if (!work_of(c, &w) || (c->dout[Y].data && !dy.data) || !dx.data || !ddt.data)
        return WF_ERR_MEMORY;
    const int64_t sums = w.blocks * w.rows * w.steps * w.states;
    struct wf_scan_chunk *all = &w.all;
    w.kept = c->saved[KEPT].data;
    all->dy = dy.data;
    all->dx = dx.data;
    all->ddt = ddt.data;
    all->carry = new_states(c, &w, c->outputs > LAST && c->dout[LAST].data ? &c->dout[LAST] : NULL);
    all->da = new_states(c, &w, NULL);
    all->dskip = temp(c, w.rows * w.pitch);
    all->db = temp(c, sums);
    all->dc = temp(c, sums);
    if (!all->carry || !all->da || !all->dskip || !all->db || !all->dc)
        return WF_ERR_MEMORY;
    memset(all->dskip, 0, (size_t)(w.rows * w.pitch) * sizeof *all->dskip);
    run(&w, 0.9, backward_block);

    const wf_shape chosen = {4, {w.blocks, w.rows, w.steps, w.states}};
    const wf_array da = states_view(&w, all->da), carry = states_view(&w, all->carry), db = wf_array_contiguous(all->db, WF_REAL, &chosen),
                   dc = wf_array_contiguous(all->dc, WF_REAL, &chosen),
                   dskip = {.data = all->dskip, .dtype = WF_REAL, .ndim = 2, .dim = {w.rows, w.channels}, .stride = {w.pitch, 1}};
    if (c->need[X])
        wf_grad_give(c, X, &dx);
    if (c->need[DT])
        wf_grad_give(c, DT, &ddt);
    if (wf_has(c, STATE) && c->need[STATE])
        wf_grad_give(c, STATE, &carry);
    wf_status status = give_sum(c, A, &da);
    if (status == WF_OK)
        status = give_sum(c, B, &db);
    if (status == WF_OK)
        status = give_sum(c, C, &dc);
    return status == WF_OK ? give_sum(c, D, &dskip) : status;
}

/* --- descriptor and constructor -------------------------------------------------------------------------------------- */

#define PLAIN ATTR(struct selective_scan_attr, false)
#define SOFTPLUS ATTR(struct selective_scan_attr, true)
#define NORMAL WF_FILL_NORMAL
/* The operands of rows, steps, channels and states. */
#define SIZES(b, t, e, n)                                                                                                                  \
    {b, t, e}, {b, t, e}, {e, n}, {b, t, n}, {b, t, n}, {e},                                                                               \
    {                                                                                                                                      \
        b, e, n                                                                                                                            \
    }
const wf_op wf_op_selective_scan = {
    .name = "selective_scan",
    .operands = "x dt a b c d state",
    .attr_size = sizeof(struct selective_scan_attr),
    .outputs = 2,
    .reads = WF_READS_INPUT(X) | WF_READS_INPUT(DT) | WF_READS_INPUT(A) | WF_READS_INPUT(B) | WF_READS_INPUT(C) | WF_READS_INPUT(D),
    .shape = selective_scan_shape,
    .forward = selective_scan_forward,
    .backward = selective_scan_backward,
    .cases = WF_CASES({"plain", {{2, 4, 3}, {2, 4, 3}, {3, 5}, {2, 4, 5}, {2, 4, 5}}, PLAIN, .inputs = 5},
                      {"all", {SIZES(2, 3, 5, 2)}, PLAIN}, {"softplus", {SIZES(2, 3, 4, 3)}, SOFTPLUS},
                      {"no d", {SIZES(2, 3, 2, 4)}, SOFTPLUS, .fill = {NORMAL, NORMAL, NORMAL, NORMAL, NORMAL, WF_FILL_ABSENT, NORMAL}},
                      {"no state", {SIZES(1, 3, 2, 6)}, SOFTPLUS, .inputs = 6}, {"one step", {SIZES(2, 1, 3, 4)}, SOFTPLUS},
                      {"one state", {SIZES(2, 5, 3, 1)}, SOFTPLUS}, {"ones", {SIZES(1, 1, 1, 1)}, PLAIN},
                      {"chunks", {SIZES(1, 67, 2, 1)}, PLAIN}, {"blocks of channels", {SIZES(1, 2, 131, 2)}, SOFTPLUS},
                      {"no steps", {SIZES(2, -1, 3, 2)}, PLAIN}, {"no rows", {SIZES(-1, 3, 4, 2)}, PLAIN},
                      {"no channels", {SIZES(2, 3, -1, 2)}, PLAIN}, {"no states", {SIZES(2, 3, 4, -1)}, SOFTPLUS}),
};

wf_tensor *wf_selective_scan_with(wf_tensor *x, wf_tensor *dt, wf_tensor *a, wf_tensor *b, wf_tensor *c,
                                  const struct wf_selective_scan_options *options)
{
    const struct wf_selective_scan_options *o = options ? options : &(const struct wf_selective_scan_options){0};
    wf_tensor *const in[] = {x, dt, a, b, c, o->d, o->state};
    wf_tensor *out[2] = {NULL};
    wf_apply_multi(&wf_op_selective_scan, &(struct selective_scan_attr){o->softplus}, 7, in, o->last ? 2 : 1, out);
    if (o->last)
        *o->last = out[LAST];
    return out[Y];
}
