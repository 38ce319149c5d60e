/* SPDX-License-Identifier: MIT */
/* The gradients of several processes: exchange.h. */
#include "exchange.h"

#include <string.h>

#include <weft/compute.h>
#include <weft/internal/dist.h>
#include <weft/internal/kernels.h>
#include <weft/internal/minmax.h>
#include <weft/memory.h>

#include "loop.h"

struct leaves_of together_leaves(const struct fit *f, int rank)
{
    return (struct leaves_of){f->o.leaves * rank / f->processes, f->o.leaves * (rank + 1) / f->processes};
}

void exchange_free(struct exchange *x)
{
    for (int i = 0; i < WINDOW; i++) {
        wf_free(x->slot[i].data);
        wf_free(x->slot[i].has);
        wf_free(x->slot[i].sends);
        wf_free(x->slot[i].out);
    }
    wf_free(x->span);
    wf_free(x->piece);
    wf_free(x->bound);
    wf_free(x->record);
    wf_free(x->at);
    *x = (struct exchange){0};
}

wf_status exchange_no_memory(struct fit *f)
{
    wf_error_set(f->error, WF_ERR_MEMORY, "no memory for an update of %d processes", f->processes);
    return together_lost(f);
}

/* --- what is made once --------------------------------------------------------------------------------------------- */

/* Most blocks of a share: pieces differ by one block. */
static int64_t largest_share(const struct fit *f)
{
    int64_t most = 1;
    for (int k = 0; k < WF_FIT_REGISTRIES; k++) {
        const struct slicing *s = &f->slicing[k];
        if (!s->registry) /* a registry without gradients */
            continue;
        const int64_t share = (s->blocks / s->pieces + 1) / f->processes + 1;
        most = WF_MAX(share, most);
    }
    return most;
}

static wf_status make(struct fit *f)
{
    struct exchange *x = &f->exchange;
    struct span span[2 * TREE_LEVELS];
    const size_t processes = (size_t)f->processes, share = (size_t)largest_share(f);
    x->span = wf_alloc_zero(processes * 2 * TREE_LEVELS, sizeof *x->span);
    x->at = wf_alloc_zero(processes + 1, sizeof *x->at);
    if (!x->span || !x->at)
        return exchange_no_memory(f);
    for (int r = 0; r < f->processes; r++) {
        const struct leaves_of l = together_leaves(f, r);
        const int n = tree_spans(l.begin, l.end, span);
        for (int i = 0; i < n; i++)
            x->span[x->spans++] = (struct sent){r, span[i]};
        x->own = r == f->rank ? n : x->own;
    }
    const size_t others = (size_t)(x->spans - x->own), own = (size_t)x->own;
    for (int i = 0; i < WINDOW; i++) {
        struct under_way *u = &x->slot[i];
        u->data = wf_alloc_zero(others * share * (WF_GRADS_BLOCK + 16) + 1, sizeof *u->data);
        u->has = wf_alloc_zero(others * share + 1, 1);
        u->sends = wf_alloc_zero(own * processes * share + 1, 1);
        u->out = wf_alloc_zero(2 * own * processes + 2 * others + 1, sizeof *u->out);
        u->in = u->out + 2 * own * processes;
        if (!u->data || !u->has || !u->sends || !u->out)
            return exchange_no_memory(f);
    }
    return WF_OK;
}

/* --- the pieces of an update --------------------------------------------------------------------------------------- */

/* The pieces of the parameters that are trained now: these may change between updates. */
static void cut(struct fit *f)
{
    struct exchange *x = &f->exchange;
    int n = 0;
    for (int k = 0; k < x->count; k++) {
        const wf_grads *grads = x->grads[k];
        const struct slicing *s = slicing_of(grads);
        int64_t block = 0;
        for (int64_t number = 0; number < s->pieces; number++, n++) {
            struct piece *p = &x->piece[n];
            *p = (struct piece){.k = k, .bound = x->bound + (size_t)n * ((size_t)f->processes + 1)};
            for (int r = 0; r <= f->processes; r++) {
                const int64_t bound = slicing_bound(s, number, r);
                while (block < grads->blocks && wf_slice_block(&s->slice, grads->block[block].parameter, grads->block[block].at) < bound)
                    block++;
                p->bound[r] = block;
            }
            for (int64_t i = p->bound[0]; i < block; i++)
                p->waits += i == p->bound[0] || grads->block[i].parameter != grads->block[i - 1].parameter;
        }
    }
}

wf_status exchange_begin(struct fit *f, wf_grads *const *grads, int count)
{
    struct exchange *x = &f->exchange;
    if (f->processes == 1 || f->lost || (!x->span && make(f)))
        return f->error->code;
    x->count = count;
    x->pieces = 0;
    for (int k = 0; k < count; k++) {
        x->grads[k] = grads[k];
        x->pieces += (int)slicing_of(grads[k])->pieces;
    }
    if (x->pieces > x->piece_room) {
        wf_free(x->piece);
        wf_free(x->bound);
        x->piece = wf_alloc_zero((size_t)x->pieces, sizeof *x->piece);
        x->bound = wf_alloc_zero((size_t)x->pieces * ((size_t)f->processes + 1), sizeof *x->bound);
        x->piece_room = x->piece && x->bound ? x->pieces : 0;
        if (x->piece_room == 0)
            return exchange_no_memory(f);
    }
    cut(f);
    x->next = x->pieces - 1;
    x->first = x->going = 0;
    return f->error->code;
}

/* This rank's subtree i: a held slab, or the gradients themselves. After a failure its contents do not count. */
static const wf_real *own_slab(const struct fit *f, int i, int k)
{
    return i < f->tree.count && !f->error->code ? f->tree.held[i].slab[k].slab : f->exchange.grads[k]->slab;
}

bool exchange_valid(const struct fit *f, int i, int k, int parameter)
{
    if (f->error->code)
        return false;
    return i < f->tree.count ? f->tree.held[i].slab[k].valid[parameter] : tree_valid(&f->tree, k, f->exchange.grads[k], parameter);
}

/* The range of the slab with blocks begin .. end - 1, which are contiguous apart from the padding of parameters to 16 elements. */
struct range {
    int64_t offset, count;
};
static struct range range_of(const wf_grads *grads, int64_t begin, int64_t end)
{
    if (begin == end)
        return (struct range){0};
    const struct wf_grads_block *last = &grads->block[end - 1];
    const int64_t offset = wf_grads_block_data(grads, &grads->block[begin]) - grads->slab;
    return (struct range){offset, wf_grads_block_data(grads, last) + last->count - grads->slab - offset};
}

/* Adds this rank's gradients of the piece, and starts its messages. */
static wf_status go(struct fit *f, int number)
{
    struct exchange *x = &f->exchange;
    const struct piece *p = &x->piece[number];
    wf_grads *grads = x->grads[p->k];
    struct under_way *u = &x->slot[(x->first + x->going) % WINDOW];
    const int64_t *bound = p->bound, begin = bound[0], all = bound[f->processes] - begin, mine = bound[f->rank + 1] - bound[f->rank];
    const struct range share = range_of(grads, bound[f->rank], bound[f->rank + 1]);
    int outs = 0, ins = 0, other = 0;
    u->piece = number;
    if (!f->error->code)
        tree_join(&f->tree, p->k, grads, begin, begin + all);
    for (int i = 0; i < x->own; i++) {
        unsigned char *sends = u->sends + i * all;
        for (int64_t b = 0; b < all; b++)
            sends[b] = exchange_valid(f, i, p->k, grads->block[begin + b].parameter);
        for (int r = 0; r < f->processes; r++)
            if (r != f->rank && bound[r + 1] > bound[r]) {
                const struct range theirs = range_of(grads, bound[r], bound[r + 1]);
                u->out[outs++] = (struct wf_message){r, sends + (bound[r] - begin), bound[r + 1] - bound[r]};
                u->out[outs++] =
                    (struct wf_message){r, (wf_real *)own_slab(f, i, p->k) + theirs.offset, theirs.count * (int64_t)sizeof(wf_real)};
            }
    }
    for (int i = 0; mine > 0 && i < x->spans; i++)
        if (x->span[i].rank != f->rank) {
            u->in[ins++] = (struct wf_message){x->span[i].rank, u->has + other * mine, mine};
            u->in[ins++] = (struct wf_message){x->span[i].rank, u->data + other * share.count, share.count * (int64_t)sizeof(wf_real)};
            other++;
        }
    x->going++;
    wf_error why = {0};
    if (wf_dist_begin(f->dist, 1 + number, u->out, outs, u->in, ins, &u->transfer, &why) == WF_OK)
        return WF_OK;
    return together_failed(f, &why);
}

/* --- sums ---------------------------------------------------------------------------------------------------------- */

struct adding {
    const struct fit *f;
    const struct under_way *u;
    wf_grads *grads;
    struct range share;
    int64_t first, mine, before; /* blocks: where the share begins, its number, those of the piece before it */
    int64_t all;
    int k;
};

/* Adds one block over the subtrees of all ranks in the order of the tree; the gradients become the sum. */
static void add_block(void *ctx, int64_t i)
{
    const struct adding *a = ctx;
    const struct exchange *x = &a->f->exchange;
    const struct wf_grads_block *b = &a->grads->block[a->first + i];
    wf_real *to = wf_grads_block_data(a->grads, b);
    const int64_t at = to - a->grads->slab;
    struct entry {
        struct span span;
        wf_real *sum; /* NULL: no gradient */
    } stack[2 * TREE_LEVELS + 1];
    int depth = 0, own = 0, other = 0;
    for (int n = 0; n < x->spans; n++) {
        struct entry e = {x->span[n].span, NULL};
        if (x->span[n].rank == a->f->rank) {
            if (a->u->sends[own * a->all + a->before + i])
                e.sum = (wf_real *)own_slab(a->f, own, a->k) + at;
            own++;
        } else {
            if (a->u->has[other * a->mine + i])
                e.sum = a->u->data + other * a->share.count + (at - a->share.offset);
            other++;
        }
        for (; depth > 0 && tree_joins(stack[depth - 1].span, e.span); depth--) {
            wf_real *left = stack[depth - 1].sum;
            if (left && e.sum)
                wf_kernel->add(b->count, left, 1, e.sum, 1, e.sum);
            e = (struct entry){{stack[depth - 1].span.first, 2 * e.span.leaves}, e.sum ? e.sum : left};
        }
        stack[depth++] = e;
    }
    if (stack[0].sum && stack[0].sum != to)
        memcpy(to, stack[0].sum, (size_t)b->count * sizeof *to);
}

/* Completes the oldest piece under way, if it has arrived or `wait` is set. */
static wf_status arrive(struct fit *f, bool wait, bool *done)
{
    struct exchange *x = &f->exchange;
    const struct under_way *u = &x->slot[x->first];
    const struct piece *p = &x->piece[u->piece];
    wf_error why = {0};
    if (wf_dist_finish(f->dist, u->transfer, wait, done, &why))
        return together_failed(f, &why);
    if (!*done)
        return WF_OK;
    const int64_t first = p->bound[f->rank], mine = p->bound[f->rank + 1] - first;
    struct adding a = {.f = f,
                       .u = u,
                       .grads = x->grads[p->k],
                       .share = range_of(x->grads[p->k], first, first + mine),
                       .first = first,
                       .mine = mine,
                       .before = first - p->bound[0],
                       .all = p->bound[f->processes] - p->bound[0],
                       .k = p->k};
    wf_parallel(mine, 0.2 * (double)a.share.count * (double)(x->spans - 1), add_block, &a);
    x->first = (x->first + 1) % WINDOW;
    x->going--;
    return WF_OK;
}

/* Progress without waiting: adds pieces that have arrived, sends pieces that are finished. */
static void go_on(struct fit *f)
{
    struct exchange *x = &f->exchange;
    for (bool done = true; done && x->going > 0 && !f->lost;)
        arrive(f, false, &done);
    while (x->next >= 0 && x->piece[x->next].waits == 0 && x->going < WINDOW && !f->lost)
        go(f, x->next--);
}

static void on_ready(void *ctx, int parameter)
{
    const struct exchange_listener *l = ctx;
    struct exchange *x = &l->fit->exchange;
    const wf_grads *grads = x->grads[l->k];
    const struct slicing *s = slicing_of(grads);
    if (x->heard[l->k].ready)
        x->heard[l->k].ready(x->heard[l->k].ctx, parameter);
    int64_t last = -1;
    int n = 0;
    while (x->piece[n].k < l->k)
        n++;
    for (int64_t b = s->slice.first[parameter]; b < s->slice.first[parameter + 1] && grads->place[parameter].count > 0; b++) {
        const int64_t piece = slicing_piece(s, b);
        if (piece != last)
            x->piece[n + piece].waits--;
        last = piece;
    }
    go_on(l->fit);
}

void exchange_listen(struct fit *f, bool on)
{
    struct exchange *x = &f->exchange;
    for (int k = 0; k < x->count && f->processes > 1 && !f->o.no_overlap; k++) {
        wf_grads *grads = x->grads[k];
        if (on) {
            x->heard[k].ready = grads->ready;
            x->heard[k].ctx = grads->ready_ctx;
            x->heard[k].listener = (struct exchange_listener){f, k};
        }
        grads->ready = on ? on_ready : x->heard[k].ready;
        grads->ready_ctx = on ? &x->heard[k].listener : x->heard[k].ctx;
    }
}

/* --- the end of a turn --------------------------------------------------------------------------------------------- */

wf_status exchange_end(struct fit *f)
{
    struct exchange *x = &f->exchange;
    if (f->processes == 1 || f->lost)
        return f->error->code;
    for (int i = 0; i < x->pieces; i++)
        x->piece[i].waits = 0;
    go_on(f);
    for (bool done; x->going > 0 && !f->lost; go_on(f))
        arrive(f, true, &done);
    if (f->lost)
        return f->error->code;
    tree_joined(&f->tree, x->grads, f->error->code ? 0 : x->count);
    return records_pass(f);
}
