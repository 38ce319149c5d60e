/* SPDX-License-Identifier: MIT */
/* The backward of attention: divides the work into blocks for threads. The kernels compute the gradients. */
#include <string.h>

#include <weft/runtime.h>

#include "attention_plan.h"

static void work_on(struct attention_plan *p, const struct wf_attention *a, const struct wf_attention_part *part)
{
    wf_real *scratch = wf_scratch(WF_SCRATCH_OP, (size_t)wf_attention_backward_scratch(a->keys, a->e, a->f) * sizeof *scratch);
    if (scratch)
        wf_kernel->internal->attention_backward(a, part, scratch);
    else
        atomic_store(&p->no_memory, true);
}

/* --- one block for each sequence and head of keys --------------------------------------------------------------------- */

static void whole(struct attention_plan *p, int64_t sequence, int64_t group)
{
    const struct wf_attention a = wf_attention_problem(p, sequence, group);
    work_on(p, &a, &(struct wf_attention_part){.head_end = a.heads, .end = a.queries});
}

/* The number of blocks. If the sequences add to the same gradient of the bias, the block for a head of keys computes all sequences in turn;
 * otherwise there is a block for each sequence and head of keys. */
static int64_t blocks_of(const struct attention_plan *p)
{
    return p->in_turn ? p->groups : p->sequences * p->groups;
}

static void whole_block(void *ctx, int64_t block)
{
    struct attention_plan *p = ctx;
    if (!p->in_turn)
        whole(p, block / p->groups, block % p->groups);
    for (int64_t i = 0; p->in_turn && i < p->sequences; i++)
        whole(p, i, block);
}

/* --- if those blocks are too few for the threads: one block for each piece of the queries ------------------------------- */

enum {
    BLOCKS = 4,        /* wanted number of blocks for each thread */
    KEY_ROWS = 128,    /* keys whose gradients one block adds up */
    ELEMENTS = 1 << 24 /* limit: elements of all partial gradients that are kept at once */
};

/* A piece is WF_ATTENTION_PIECE queries of one head; a group is a head of keys with the query heads that share it. Each piece has
 * its own partial gradients of keys and values. Pieces are computed in rounds, so that few partial gradients exist at a time. At the end of
 * a round they are added to the gradients of keys and values. */
struct pieces {
    struct attention_plan *p;
    int64_t of_head;    /* pieces of a head in the longest sequence */
    int64_t all;        /* pieces of all query heads that share a head of keys */
    int64_t from;       /* the first piece of this round */
    int64_t count;      /* pieces of this round, in each sequence and group */
    int64_t rows;       /* the largest number of keys for which a piece has gradients */
    int64_t key_blocks; /* blocks of KEY_ROWS keys in a sequence */
    wf_array dk;        /* partial gradients of keys [count, sequences, groups, rows, pe] */
    wf_array dv;        /* partial gradients of values [count, sequences, groups, rows, pf] */
    int64_t pe;         /* e, rounded up to whole registers */
    int64_t pf;         /* f, rounded up to whole registers */
};

/* Piece n of a head. It has no queries if the sequence is too short for n + 1 pieces. */
static struct wf_attention_part piece_of(const struct wf_attention *a, int64_t head, int64_t n)
{
    const int64_t begin = n * WF_ATTENTION_PIECE, end = begin + WF_ATTENTION_PIECE;
    return (struct wf_attention_part){head, head + 1, begin, WF_MIN(end, a->queries), true};
}

static struct wf_attention_part part_of(const struct pieces *w, const struct wf_attention *a, int64_t index)
{
    return piece_of(a, index / w->of_head, index % w->of_head);
}

/* The partial gradients from piece `index` of sequence i and group g. Their first row is for key `first`, but the result is the address
 * that a row for key 0 would have, so the row for key s lies s rows after it. */
static wf_real *partial(const struct pieces *w, const wf_array *x, int64_t width, int64_t index, int64_t i, int64_t g, int64_t first)
{
    const int64_t at = (((index - w->from) * w->p->sequences + i) * w->p->groups + g) * w->rows;
    return x->data ? (wf_real *)x->data + (at - first) * width : NULL;
}

static void range_of(const struct wf_attention *a, const struct wf_attention_part *part, int64_t *first, int64_t *last)
{
    *first = wf_attention_first(a, part->begin);
    *last = wf_attention_end(a, part->begin, part->end - part->begin);
}

static void piece_block(void *ctx, int64_t block)
{
    const struct pieces *w = ctx;
    const struct attention_plan *p = w->p;
    const int64_t index = w->from + block % w->count, g = block / w->count % p->groups, chosen = block / w->count / p->groups;
    for (int64_t i = p->in_turn ? 0 : chosen; i < (p->in_turn ? p->sequences : chosen + 1); i++) {
        struct wf_attention a = wf_attention_problem(p, i, g);
        const struct wf_attention_part part = part_of(w, &a, index);
        if (part.begin >= part.end)
            continue;
        int64_t first, last;
        range_of(&a, &part, &first, &last);
        a.dk = partial(w, &w->dk, w->pe, index, i, g, first);
        a.dv = partial(w, &w->dv, w->pf, index, i, g, first);
        a.dk_step = w->pe;
        a.dv_step = w->pf;
        a.dk_add = a.dv_add = false;
        a.key_scale = 1;
        work_on(w->p, &a, &part);
    }
}

/* The gradient of keys or of values, and the partial gradients that are added to it. */
struct target {
    wf_real *to;           /* the gradient's first row in this sequence and group; NULL if it is not needed */
    int64_t step;          /* elements from one row of the gradient to the next */
    int64_t columns;       /* elements of a row */
    bool add;              /* add to what the gradient held before this backward; false: overwrite it */
    wf_real scale;         /* factor of the partial gradients */
    const wf_array *parts; /* the partial gradients */
    int64_t width;         /* elements of a row of `parts` */
};

static void zero_rows(const struct target *t, int64_t from, int64_t to)
{
    for (int64_t i = from; !t->add && i < to; i++)
        memset(t->to + i * t->step, 0, (size_t)t->columns * sizeof *t->to);
}

static void add_rows(const struct target *t, const wf_real *part, int64_t from, int64_t to, bool add)
{
    if (from < to)
        wf_kernel->internal->attention_add_keys(to - from, t->columns, t->scale, part + from * t->width, t->width, t->to + from * t->step,
                                                t->step, add);
}

/* Adds this round's pieces of sequence i and group g to rows c0 .. c1 - 1 of the gradient. Pieces are added in the same order as when one
 * call of the kernel computes all of them, so the bits are the same. */
static void add_parts(const struct pieces *w, const struct wf_attention *a, int64_t i, int64_t g, int64_t c0, int64_t c1,
                      const struct target *t)
{
    int64_t high = c0; /* rows c0 .. high - 1 of the gradient are written; the pieces of earlier rounds are visited only to find this */
    for (int64_t index = 0; t->to && index < w->from + w->count; index++) {
        const struct wf_attention_part part = part_of(w, a, index);
        if (part.begin >= part.end)
            continue;
        int64_t first, last;
        range_of(a, &part, &first, &last);
        const int64_t from = WF_MAX(first, c0), to = WF_MIN(last, c1);
        const int64_t known = WF_MIN(from, c1), met = to < high ? to : WF_MAX(high, from);
        if (index >= w->from) {
            const wf_real *x = partial(w, t->parts, t->width, index, i, g, first);
            zero_rows(t, high, known);
            add_rows(t, x, from, met, true);
            add_rows(t, x, met, to, t->add);
        }
        high = WF_MAX(high, known);
        high = WF_MAX(high, to);
    }
    if (t->to && w->from + w->count == w->all)
        zero_rows(t, high, c1);
}

static void add_block(void *ctx, int64_t block)
{
    const struct pieces *w = ctx;
    const int64_t g = block / w->key_blocks % w->p->groups, i = block / w->key_blocks / w->p->groups;
    const struct wf_attention a = wf_attention_problem(w->p, i, g);
    const int64_t c0 = block % w->key_blocks * KEY_ROWS, c1 = WF_MIN(c0 + KEY_ROWS, a.all_keys);
    add_parts(w, &a, i, g, c0, c1, &(struct target){a.dk, a.dk_step, a.e, a.dk_add, a.scale, &w->dk, w->pe});
    add_parts(w, &a, i, g, c0, c1, &(struct target){a.dv, a.dv_step, a.f, a.dv_add, 1, &w->dv, w->pf});
}

/* Whether to compute in pieces: the blocks of whole heads are too few for the threads, a round has several pieces, and no two pieces add to
 * the same row of the bias' gradient. */
static bool pieces_pay(struct attention_plan *p, struct pieces *w)
{
    *w = (struct pieces){.p = p};
    const int64_t blocks = blocks_of(p);
    if (blocks == 0 || blocks >= BLOCKS * wf_threads() || wf_threads() == 1 || (p->dbias.data && p->dbias.dim[2] == 1))
        return false;
    for (int64_t i = 0; i < p->sequences; i++) {
        const struct wf_attention a = wf_attention_problem(p, i, 0);
        int64_t n = 0, first, last;
        for (; n * WF_ATTENTION_PIECE < a.queries; n++) {
            const struct wf_attention_part piece = piece_of(&a, 0, n);
            range_of(&a, &piece, &first, &last);
            w->rows = WF_MAX(w->rows, last - first);
        }
        w->of_head = WF_MAX(w->of_head, n);
    }
    w->all = w->of_head * p->share;
    w->count = BLOCKS * wf_threads() / blocks;
    w->count = WF_MIN(w->count, w->all);
    w->pe = wf_attention_pad(p->e);
    w->pf = wf_attention_pad(p->f);
    const int64_t each = p->sequences * p->groups * w->rows * (w->pe + w->pf);
    w->count = w->count * each < ELEMENTS ? w->count : each > 0 ? ELEMENTS / each : 0;
    return w->count > 1 && w->rows > 0;
}

static bool in_pieces(wf_call *c, struct pieces *w, double cost)
{
    struct attention_plan *p = w->p;
    w->key_blocks = (p->keys + KEY_ROWS - 1) / KEY_ROWS;
    const wf_shape dk = {2, {w->count * p->sequences * p->groups * w->rows, w->pe}}, dv = {2, {dk.dim[0], w->pf}};
    if (p->din[K].data && !(w->dk = wf_call_temp(c, WF_REAL, &dk)).data)
        return false;
    if (p->din[V].data && !(w->dv = wf_call_temp(c, WF_REAL, &dv)).data)
        return false;
    for (int64_t done = 0, left = w->all; left > 0; done += w->count, left -= w->count) {
        w->from = done;
        w->count = WF_MIN(w->count, left);
        const double share = (double)w->count / (double)w->all;
        wf_parallel(blocks_of(p) * w->count, cost * share, piece_block, w);
        wf_parallel(p->sequences * p->groups * w->key_blocks,
                    0.1 * (double)(w->count * p->sequences * p->groups * w->rows * (w->pe + w->pf)), add_block, w);
    }
    return true;
}

/* Makes a cleared array for the gradient of the bias. Each head has rows in it that no other head adds to, so that every sum has one order.
 * Along a dimension in which the bias is broadcast (batch, queries, keys) the array has size 1 and takes the sum. */
static bool make_dbias(wf_call *c, struct attention_plan *p)
{
    const wf_array *bias = &c->in[BIAS];
    wf_shape shape = wf_attention_scores(c, BIAS);
    for (int d = 0; d < 4; d++)
        if (d != 1 && (4 - d > bias->ndim || bias->dim[bias->ndim - (4 - d)] == 1))
            shape.dim[d] = 1;
    p->dbias = wf_call_temp(c, WF_REAL, &shape);
    if (!p->dbias.data)
        return false;
    memset(p->dbias.data, 0, (size_t)wf_shape_count(&shape) * sizeof(wf_real));
    p->in_turn = shape.dim[0] == 1 && p->sequences > 1;
    return true;
}

/* Whether backward may write straight to the gradient of input i, which lies in memory like the input: strides are positive, the elements
 * of a row are contiguous, and no element is shared with another input that needs a gradient. */
static bool direct(const wf_call *c, int i)
{
    const wf_array *x = &c->in[i];
    for (int d = 0; d < x->ndim; d++)
        if (x->dim[d] > 1 && x->stride[d] < 1)
            return false;
    if (!wf_attention_adjoin(x))
        return false;
    for (int j = Q; j <= V; j++)
        if (j != i && c->need[j] && !wf_apart(x, &c->in[j]))
            return false;
    return true;
}

/* The derivation is in core/kernels/attention_backward.c. */
wf_status wf_attention_backward(wf_call *c)
{
    struct attention_plan p;
    if (!c->dout[0].data)
        return WF_OK;
    if (wf_array_count(&c->out[0]) == 0)
        return wf_give_zeros(c);
    if (!wf_attention_plan(c, &p) || !wf_attention_operand(c, &c->dout[0], &p.dout))
        return WF_ERR_MEMORY;
    wf_array gradient[3];
    const bool fill = direct(c, Q) && direct(c, K) && direct(c, V) && wf_grad_fills(c, 3);
    for (int i = Q; i <= V; i++) {
        if (!c->need[i])
            continue;
        gradient[i] = direct(c, i) ? wf_grad_into(c, i, &p.add[i]) : wf_grad_new(c, i);
        if (!gradient[i].data)
            return WF_ERR_MEMORY;
        p.add[i] = p.add[i] && !fill;
        p.din[i] = wf_attention_rows(&gradient[i]);
    }
    const bool with_bias = wf_has(c, BIAS) && c->need[BIAS];
    if (with_bias && !make_dbias(c, &p))
        return WF_ERR_MEMORY;
    double cost = p.scores * (1 + 0.08 * (double)(p.e + p.f)) + 250 * (double)(p.sequences * p.groups);
    struct pieces pieces;
    if (!pieces_pay(&p, &pieces))
        wf_parallel(blocks_of(&p), cost, whole_block, &p);
    else if (!in_pieces(c, &pieces, cost))
        return WF_ERR_MEMORY;
    for (int i = Q; i <= V; i++)
        if (c->need[i] && !direct(c, i))
            wf_grad_give(c, i, &gradient[i]);
    if (with_bias) {
        wf_shape shape = wf_array_shape(&c->in[BIAS]);
        if (wf_shape_count(&shape) == wf_array_count(&p.dbias)) /* the shapes are equal, except for leading sizes of 1 */
            p.dbias = wf_array_contiguous(p.dbias.data, WF_REAL, &shape);
        wf_grad_give(c, BIAS, &p.dbias);
    }
    return p.no_memory ? wf_call_fail(c, WF_ERR_MEMORY, "no memory for tiles") : WF_OK;
}
