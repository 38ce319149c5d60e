/* SPDX-License-Identifier: MIT */
/* Sends gradients to the owners of their blocks, and adds them there. private.h describes the method. */
#include <string.h>

#include <weft/compute.h>
#include <weft/internal/kernels.h>
#include <weft/internal/minmax.h>
#include <weft/memory.h>

#include "private.h"

void reduction_free(struct wf_ranks *ranks)
{
    struct ranks_reduction *x = ranks->reduction;
    if (!x)
        return;
    for (int i = 0; i < WINDOW; i++) {
        wf_free(x->slot[i].data);
        wf_free(x->slot[i].has);
        wf_free(x->slot[i].sends);
        wf_free(x->slot[i].out);
    }
    wf_free(x->span);
    wf_free(x->bucket);
    wf_free(x->bound);
    wf_free(x->outcome);
    wf_free(x->at);
    wf_free(x);
    ranks->reduction = NULL;
}

/* --- memory, allocated once ---------------------------------------------------------------------------------------- */

/* The blocks in the largest share of any rank, so that the shares of a bucket have at most `size` times as many. */
static int64_t largest_share(const struct wf_ranks *ranks)
{
    int64_t most = 1;
    for (int k = 0; k < WF_RANKS_REGISTRIES; k++) {
        const struct ranks_layout *l = &ranks->layout[k]; /* without gradients a registry has no shards, and no buckets */
        for (int64_t bucket = 0; bucket < l->buckets; bucket++)
            for (int r = 0; r < ranks->size; r++)
                most = WF_MAX(layout_bound(l, bucket, r + 1) - layout_bound(l, bucket, r), most);
    }
    return most;
}

static wf_status make(struct wf_ranks *ranks)
{
    struct ranks_reduction *x = wf_alloc_zero(1, sizeof *x);
    struct span span[2 * TREE_LEVELS];
    const size_t size = (size_t)ranks->size, share = (size_t)largest_share(ranks);
    if (!(ranks->reduction = x))
        return ranks_no_memory(ranks);
    x->span = wf_alloc_zero(size * 2 * TREE_LEVELS, sizeof *x->span);
    x->at = wf_alloc_zero(size + 1, sizeof *x->at);
    if (!x->span || !x->at)
        return ranks_no_memory(ranks);
    for (int r = 0; r < ranks->size; r++) {
        const struct wf_range l = own_leaves(ranks, r);
        const int n = tree_spans(l.begin, l.end, span);
        for (int i = 0; i < n; i++)
            x->span[x->spans++] = (struct rank_span){r, span[i]};
        x->own = r == ranks->rank ? n : x->own;
    }
    const size_t others = (size_t)(x->spans - x->own), own = (size_t)x->own;
    for (int i = 0; i < WINDOW; i++) {
        struct under_way *u = &x->slot[i];
        /* + 16: each parameter begins at a multiple of 16 elements, so a share may have gaps. */
        u->data = wf_alloc_zero(others * share * (WF_GRADS_BLOCK + 16) + 1, sizeof *u->data);
        u->has = wf_alloc_zero(others * share + 1, 1);
        u->sends = wf_alloc_zero(own * size * share + 1, 1);
        u->out = wf_alloc_zero(2 * own * size + 2 * others + 1, sizeof *u->out);
        u->in = u->out + 2 * own * size;
        if (!u->data || !u->has || !u->sends || !u->out)
            return ranks_no_memory(ranks);
    }
    return WF_OK;
}

/* --- the buckets of an update --------------------------------------------------------------------------------------- */

/* Fills in the buckets of the phase from the parameters that are trained now. Freezing may change these between updates. */
static void cut(struct wf_ranks *ranks)
{
    struct ranks_reduction *x = ranks->reduction;
    int n = 0;
    for (int k = 0; k < ranks->count; k++) {
        const wf_grads *grads = ranks->grads[k];
        const struct ranks_layout *l = layout_of(grads);
        int64_t block = 0;
        for (int64_t number = 0; number < l->buckets; number++, n++) {
            struct bucket *p = &x->bucket[n];
            *p = (struct bucket){.k = k, .bound = x->bound + (size_t)n * ((size_t)ranks->size + 1)};
            for (int r = 0; r <= ranks->size; r++) {
                const int64_t bound = layout_bound(l, number, r);
                while (block < grads->blocks && wf_shard_block(&l->shard, grads->block[block].parameter, grads->block[block].at) < bound)
                    block++;
                p->bound[r] = block;
            }
            for (int64_t i = p->bound[0]; i < block; i++)
                p->waits += i == p->bound[0] || grads->block[i].parameter != grads->block[i - 1].parameter;
        }
    }
}

wf_status reduction_begin(struct wf_ranks *ranks)
{
    if (ranks->size == 1 || ranks->lost || (!ranks->reduction && make(ranks)))
        return ranks->error->code;
    struct ranks_reduction *x = ranks->reduction;
    x->buckets = 0;
    for (int k = 0; k < ranks->count; k++)
        x->buckets += (int)layout_of(ranks->grads[k])->buckets;
    if (x->buckets > x->bucket_room) {
        wf_free(x->bucket);
        wf_free(x->bound);
        x->bucket = wf_alloc_zero((size_t)x->buckets, sizeof *x->bucket);
        x->bound = wf_alloc_zero((size_t)x->buckets * ((size_t)ranks->size + 1), sizeof *x->bound);
        x->bucket_room = x->bucket && x->bound ? x->buckets : 0;
        if (x->bucket_room == 0)
            return ranks_no_memory(ranks);
    }
    cut(ranks);
    x->next = x->buckets - 1;
    x->first = x->in_flight = 0;
    return ranks->error->code;
}

/* The sum of this rank's subtree i: a slab of tree->held, or for the last subtree the gradients themselves. After an error it is the
 * gradients for every i, whatever they contain: the messages must still have the right size, and the flags sent with them say that they
 * contain no gradients. */
static const wf_real *own_slab(const struct wf_ranks *ranks, int i, int k)
{
    return i < ranks->tree->count && !ranks->error->code ? ranks->tree->held[i].slab[k].slab : ranks->grads[k]->slab;
}

bool reduction_has(const struct wf_ranks *ranks, int i, int k, int parameter)
{
    if (ranks->error->code)
        return false;
    return i < ranks->tree->count ? ranks->tree->held[i].slab[k].valid[parameter] : tree_valid(ranks->tree, k, ranks->grads[k], parameter);
}

/* A range of elements of a slab. range_of returns the range from block `begin` to block `end - 1`, with the gaps in it: the blocks are
 * contiguous, except that each parameter begins at a multiple of 16 elements. */
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

/* Adds up this rank's gradients in the bucket, and begins to send and receive the bucket's messages. */
static wf_status send_bucket(struct wf_ranks *ranks, int number)
{
    struct ranks_reduction *x = ranks->reduction;
    const struct bucket *p = &x->bucket[number];
    wf_grads *grads = ranks->grads[p->k];
    struct under_way *u = &x->slot[(x->first + x->in_flight) % WINDOW];
    const int64_t *bound = p->bound, begin = bound[0], all = bound[ranks->size] - begin, mine = bound[ranks->rank + 1] - bound[ranks->rank];
    const struct range share = range_of(grads, bound[ranks->rank], bound[ranks->rank + 1]);
    int outs = 0, ins = 0, other = 0;
    u->bucket = number;
    if (!ranks->error->code)
        tree_join(ranks->tree, p->k, grads, begin, begin + all);
    for (int i = 0; i < x->own; i++) {
        unsigned char *sends = u->sends + i * all;
        for (int64_t b = 0; b < all; b++)
            sends[b] = reduction_has(ranks, i, p->k, grads->block[begin + b].parameter);
        for (int r = 0; r < ranks->size; r++)
            if (r != ranks->rank && bound[r + 1] > bound[r]) {
                const struct range theirs = range_of(grads, bound[r], bound[r + 1]);
                u->out[outs++] = (struct wf_message){r, sends + (bound[r] - begin), bound[r + 1] - bound[r]};
                u->out[outs++] =
                    (struct wf_message){r, (wf_real *)own_slab(ranks, i, p->k) + theirs.offset, theirs.count * (int64_t)sizeof(wf_real)};
            }
    }
    for (int i = 0; mine > 0 && i < x->spans; i++)
        if (x->span[i].rank != ranks->rank) {
            u->in[ins++] = (struct wf_message){x->span[i].rank, u->has + other * mine, mine};
            u->in[ins++] = (struct wf_message){x->span[i].rank, u->data + other * share.count, share.count * (int64_t)sizeof(wf_real)};
            other++;
        }
    x->in_flight++;
    wf_error why = {0};
    if (wf_dist_begin(ranks->dist, 1 + number, u->out, outs, u->in, ins, &u->transfer, &why) == WF_OK)
        return WF_OK;
    return ranks_failed(ranks, &why);
}

/* --- sums ---------------------------------------------------------------------------------------------------------- */

struct adding {
    const struct wf_ranks *ranks;
    const struct under_way *u;
    wf_grads *grads;
    struct range share; /* elements of this rank's share in the slab */
    int64_t first;      /* first block of this rank's share */
    int64_t mine;       /* number of blocks in this rank's share */
    int64_t before;     /* number of blocks in the bucket's shares of lower ranks */
    int64_t all;        /* number of blocks in the bucket */
    int k;              /* index of the gradients in wf_ranks.grads */
};

/* Adds up block i of this rank's share over the subtrees of all ranks, in the order of the tree. The sum replaces the block's gradients in
 * the slab. Messages of this rank may still be under way, but none reads this block: they contain only the shares of other owners. */
static void add_block(void *ctx, int64_t i)
{
    const struct adding *a = ctx;
    const struct ranks_reduction *x = a->ranks->reduction;
    const struct wf_grads_block *b = &a->grads->block[a->first + i];
    wf_real *to = wf_grads_block_data(a->grads, b);
    const int64_t at = to - a->grads->slab;
    struct entry {
        struct span span;
        wf_real *sum; /* NULL: the subtree has no gradient in this block */
    } stack[2 * TREE_LEVELS + 1];
    int depth = 0, own = 0, other = 0;
    for (int n = 0; n < x->spans; n++) {
        struct entry e = {x->span[n].span, NULL};
        if (x->span[n].rank == a->ranks->rank) {
            if (a->u->sends[own * a->all + a->before + i])
                e.sum = (wf_real *)own_slab(a->ranks, own, a->k) + at;
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

/* Adds up the oldest bucket under way if its messages have arrived, and sets *done to whether they have. `wait`: waits for them. */
static wf_status arrive(struct wf_ranks *ranks, bool wait, bool *done)
{
    struct ranks_reduction *x = ranks->reduction;
    const struct under_way *u = &x->slot[x->first];
    const struct bucket *p = &x->bucket[u->bucket];
    wf_error why = {0};
    if (wf_dist_finish(ranks->dist, u->transfer, wait, done, &why))
        return ranks_failed(ranks, &why);
    if (!*done)
        return WF_OK;
    const int64_t first = p->bound[ranks->rank], mine = p->bound[ranks->rank + 1] - first;
    struct adding a = {.ranks = ranks,
                       .u = u,
                       .grads = ranks->grads[p->k],
                       .share = range_of(ranks->grads[p->k], first, first + mine),
                       .first = first,
                       .mine = mine,
                       .before = first - p->bound[0],
                       .all = p->bound[ranks->size] - p->bound[0],
                       .k = p->k};
    wf_parallel(mine, 0.2 * (double)a.share.count * (double)(x->spans - 1), add_block, &a);
    x->first = (x->first + 1) % WINDOW;
    x->in_flight--;
    return WF_OK;
}

/* Adds the buckets that have arrived and sends the buckets that are ready, without waiting. */
static void advance(struct wf_ranks *ranks)
{
    struct ranks_reduction *x = ranks->reduction;
    for (bool done = true; done && x->in_flight > 0 && !ranks->lost;)
        arrive(ranks, false, &done);
    while (x->next >= 0 && x->bucket[x->next].waits == 0 && x->in_flight < WINDOW && !ranks->lost)
        send_bucket(ranks, x->next--);
}

static void on_ready(void *ctx, int parameter)
{
    const struct listener *to = ctx;
    struct wf_ranks *ranks = to->ranks;
    struct ranks_reduction *x = ranks->reduction;
    const wf_grads *grads = ranks->grads[to->k];
    const struct ranks_layout *l = layout_of(grads);
    if (x->former[to->k].ready)
        x->former[to->k].ready(x->former[to->k].ctx, parameter);
    int64_t last = -1;
    int n = 0;
    while (x->bucket[n].k < to->k)
        n++;
    /* Blocks of a frozen parameter (count 0) lower no `waits`, because `waits` does not count frozen parameters. */
    for (int64_t b = l->shard.first[parameter]; b < l->shard.first[parameter + 1] && grads->place[parameter].count > 0; b++) {
        const int64_t bucket = layout_bucket(l, b);
        if (bucket != last)
            x->bucket[n + bucket].waits--;
        last = bucket;
    }
    advance(ranks);
}

void reduction_listen(struct wf_ranks *ranks, bool on)
{
    struct ranks_reduction *x = ranks->reduction;
    for (int k = 0; x && k < ranks->count && !ranks->no_overlap; k++) {
        wf_grads *grads = ranks->grads[k];
        if (on) {
            x->former[k].ready = grads->ready;
            x->former[k].ctx = grads->ready_ctx;
            x->former[k].listener = (struct listener){ranks, k};
        }
        grads->ready = on ? on_ready : x->former[k].ready;
        grads->ready_ctx = on ? &x->former[k].listener : x->former[k].ctx;
    }
}

/* --- the end of a phase --------------------------------------------------------------------------------------------- */

wf_status reduction_end(struct wf_ranks *ranks)
{
    struct ranks_reduction *x = ranks->reduction;
    if (ranks->size == 1 || ranks->lost)
        return ranks->error->code;
    for (int i = 0; i < x->buckets; i++)
        x->bucket[i].waits = 0;
    advance(ranks);
    for (bool done; x->in_flight > 0 && !ranks->lost; advance(ranks))
        arrive(ranks, true, &done);
    if (ranks->lost)
        return ranks->error->code;
    tree_joined(ranks->tree, ranks->grads, ranks->error->code ? 0 : ranks->count);
    return outcomes_gather(ranks);
}
