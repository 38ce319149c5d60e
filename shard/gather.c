/* SPDX-License-Identifier: MIT */
/* Sends data from the owner of each block to all ranks: new values, sums of squares for norms, and at the end of a training the moments. */
#include <math.h>
#include <string.h>

#include <weft/internal/grow.h>
#include <weft/internal/parameter.h>
#include <weft/memory.h>

#include "private.h"

/* A growing array of messages. */
struct list {
    struct wf_message *m;
    int64_t count, room;
};
static bool add(struct list *list, int peer, void *data, int64_t bytes)
{
    struct wf_message *last = list->count > 0 ? &list->m[list->count - 1] : NULL;
    if (last && last->peer == peer && (char *)last->data + last->bytes == (char *)data) {
        last->bytes += bytes; /* the data follow those of the last message: send both as one */
        return true;
    }
    if (!wf_grow(&list->m, &list->room, list->count + 1, sizeof *list->m))
        return false;
    list->m[list->count++] = (struct wf_message){peer, data, bytes};
    return true;
}

/* The messages of one transfer. Their memory is kept for the next transfer. */
struct ranks_messages {
    struct list mine; /* this rank's data; `peer` is this rank */
    struct list out;  /* messages with the data of `mine`, to each of the other ranks */
    struct list in;   /* data of the other ranks */
};

void gather_free(struct wf_ranks *ranks)
{
    struct ranks_messages *s = ranks->messages;
    if (s) {
        wf_free(s->mine.m);
        wf_free(s->out.m);
        wf_free(s->in.m);
    }
    wf_free(s);
    ranks->messages = NULL;
}

static struct ranks_messages *begin_messages(struct wf_ranks *ranks)
{
    struct ranks_messages *s = ranks->messages;
    if (!s && !(s = ranks->messages = wf_alloc_zero(1, sizeof *s)))
        wf_error_set(ranks->error, WF_ERR_MEMORY, "no memory for messages");
    if (s)
        s->mine.count = s->out.count = s->in.count = 0;
    return s;
}

/* Adds a block of `count` elements to the transfer: this rank sends the block if it is the owner, and receives it otherwise. */
static bool add_block(struct wf_ranks *ranks, int owner, void *data, int64_t count)
{
    return add(owner == ranks->rank ? &ranks->messages->mine : &ranks->messages->in, owner, data, count * (int64_t)sizeof(wf_real));
}

/* Begins the transfer of the blocks that add_block has listed. `ready` false means that there was no memory for the list. */
static wf_status begin_all(struct wf_ranks *ranks, int label, bool ready, int *transfer)
{
    struct ranks_messages *s = ranks->messages;
    for (int r = 0; ready && r < ranks->size; r++)
        for (int64_t i = 0; ready && r != ranks->rank && i < s->mine.count; i++)
            ready = add(&s->out, r, s->mine.m[i].data, s->mine.m[i].bytes);
    wf_error why = {0};
    if (!ready)
        wf_error_set(&why, WF_ERR_MEMORY, "no memory for messages");
    else if (wf_dist_begin(ranks->dist, label, s->out.m, (int)s->out.count, s->in.m, (int)s->in.count, transfer, &why) == WF_OK)
        return WF_OK;
    return ranks_failed(ranks, &why);
}

static wf_status finish(struct wf_ranks *ranks, int transfer, bool wait, bool *done)
{
    wf_error why = {0};
    if (wf_dist_finish(ranks->dist, transfer, wait, done, &why) == WF_OK)
        return WF_OK;
    return ranks_failed(ranks, &why);
}

static wf_status send_all(struct wf_ranks *ranks, bool ready)
{
    int transfer;
    bool done;
    return begin_all(ranks, 0, ready, &transfer) ? ranks->error->code : finish(ranks, transfer, true, &done);
}

/* --- values -------------------------------------------------------------------------------------------------------- */

/* The struct that all parameters of the registry share. autograd/parameters.c calls its `arrives` before an op reads a value. */
static struct wf_values_use *use_of(const struct ranks_layout *l)
{
    return wf_registry_count(l->registry) > 0 ? wf_parameter_info(wf_registry_at(l->registry, 0))->use : NULL;
}

static void end_arrivals(struct ranks_layout *l)
{
    l->arrived = l->buckets;
    if (use_of(l))
        use_of(l)->arrives = NULL;
}

/* Waits for the values of bucket `until`. Then, in order, completes the transfers that have arrived, up to the first that has not. */
static void arrive(struct ranks_layout *l, int64_t until)
{
    struct wf_ranks *ranks = l->ranks;
    bool done = true;
    if (l->transfer[until] >= 0 && finish(ranks, l->transfer[until], true, &done) == WF_OK)
        l->transfer[until] = -1;
    while (done && l->arrived < l->buckets && !ranks->lost)
        if (l->transfer[l->arrived] < 0 || (finish(ranks, l->transfer[l->arrived], false, &done) == WF_OK && done))
            l->transfer[l->arrived++] = -1;
    if (ranks->lost || l->arrived == l->buckets)
        end_arrivals(l);
}

static void settle(struct ranks_layout *l)
{
    for (int64_t bucket = 0; bucket < l->buckets && l->arrived < l->buckets; bucket++)
        arrive(l, bucket);
}

/* Called before an op reads a parameter: waits for the parameter's new values. parameter < 0: waits for the new values of all parameters,
 * because all are about to be replaced. */
static void await(void *layout, int parameter)
{
    struct ranks_layout *l = layout;
    if (parameter < 0) {
        settle(l);
        return;
    }
    const int64_t first = l->shard.first[parameter], end = l->shard.first[parameter + 1];
    if (first == end) /* a buffer has no blocks */
        return;
    for (int64_t bucket = layout_bucket(l, first); bucket <= layout_bucket(l, end - 1) && l->arrived < l->buckets; bucket++)
        arrive(l, bucket);
}

wf_status wf_ranks_settle(struct wf_ranks *ranks)
{
    for (int k = 0; ranks->layout && k < WF_RANKS_REGISTRIES; k++)
        settle(&ranks->layout[k]);
    return ranks->error->code;
}

/* Adds the trained blocks of a bucket to the transfer. They begin at grads->block[*block]; advances *block past them. */
static bool add_values(struct wf_ranks *ranks, const struct ranks_layout *l, const wf_grads *grads, int64_t bucket, int64_t *block)
{
    bool ready = begin_messages(ranks) != NULL;
    for (int owner = 0; ready && *block < grads->blocks; ++*block) {
        const struct wf_grads_block *b = &grads->block[*block];
        const int64_t number = wf_shard_block(&l->shard, b->parameter, b->at);
        if (number >= layout_bound(l, bucket, ranks->size))
            break;
        while (number >= layout_bound(l, bucket, owner + 1))
            owner++;
        ready =
            add_block(ranks, owner, (wf_real *)wf_parameter_info(wf_registry_at(l->registry, b->parameter))->value.data + b->at, b->count);
    }
    return ready;
}

bool wf_ranks_are_late(const struct wf_ranks *ranks)
{
    return ranks->size > 1 && !ranks->no_overlap && ranks->late_values;
}

wf_status gather_values(struct wf_ranks *ranks)
{
    /* Labels of messages: send_all uses 0, and the gradients use 1 to the number of buckets. The values use the labels after these. */
    int label = 1 + (ranks->reduction ? ranks->reduction->buckets : 0);
    if (ranks->size == 1)
        return ranks->error->code;
    wf_ranks_settle(ranks);
    for (int k = 0; k < ranks->count && !ranks->lost; k++) {
        const wf_grads *grads = ranks->grads[k];
        struct ranks_layout *l = layout_of(grads);
        int64_t block = 0;
        for (int64_t bucket = 0; bucket < l->buckets && !ranks->lost; bucket++)
            begin_all(ranks, label++, add_values(ranks, l, grads, bucket, &block), &l->transfer[bucket]);
        l->arrived = ranks->lost ? l->buckets : 0;
        if (ranks->lost || l->blocks == 0)
            continue;
        use_of(l)->arrives = await;
        use_of(l)->arrives_ctx = l;
    }
    return wf_ranks_are_late(ranks) ? ranks->error->code : wf_ranks_settle(ranks);
}

/* Each rank copies its own sums of squares into its range of l->partial. After the exchange the sums of all ranks are copied back into
 * grads->partial, in the order of the blocks. */
wf_status gather_partial(void *ctx, wf_grads *grads, wf_error *error)
{
    struct ranks_layout *l = ctx;
    struct wf_ranks *ranks = l->ranks;
    const int64_t size = (int64_t)sizeof *l->partial;
    memset(l->at, 0, ((size_t)ranks->size + 1) * sizeof *l->at);
    for (int64_t i = 0; i < grads->blocks; i++)
        l->at[layout_owner(l, wf_shard_block(&l->shard, grads->block[i].parameter, grads->block[i].at)) + 1] += size;
    for (int r = 0; r < ranks->size; r++)
        l->at[r + 1] += l->at[r];
    double *next = l->partial + l->at[ranks->rank] / size;
    for (int64_t i = 0; i < grads->blocks; i++)
        if (wf_shard_owns(&l->shard, grads->block[i].parameter, grads->block[i].at))
            *next++ = grads->partial[i];
    wf_error why = {0};
    if (wf_dist_gather_parts(ranks->dist, l->partial, l->at, &why) != WF_OK) {
        ranks->lost = true;
        return wf_error_set(error, why.code, "%s", why.message);
    }
    for (int64_t i = 0; i < grads->blocks; i++) {
        int64_t *at = &l->at[layout_owner(l, wf_shard_block(&l->shard, grads->block[i].parameter, grads->block[i].at))];
        grads->partial[i] = l->partial[*at / size];
        *at += size;
    }
    return WF_OK;
}

int wf_ranks_bad(const struct wf_ranks *ranks, int *parameter)
{
    for (int k = 0; ranks->size > 1 && k < ranks->count; k++) {
        const wf_grads *grads = ranks->grads[k];
        for (int64_t i = 0; i < grads->blocks; i++)
            if (!isfinite(grads->partial[i])) {
                *parameter = grads->block[i].parameter;
                return (int)(layout_of(grads) - ranks->layout);
            }
    }
    return -1;
}

/* --- moments, at the end of a training --------------------------------------------------------------------------- */

/* Fetches one moment of one parameter: each owner sends its blocks to all other ranks. Every rank has memory for the whole moment. */
static wf_status gather(struct wf_ranks *ranks, const struct ranks_layout *l, const struct wf_optimizer_place *place)
{
    const int64_t first = l->shard.first[place->parameter], end = l->shard.first[place->parameter + 1];
    bool ready = begin_messages(ranks) != NULL;
    if (ready && wf_shard_is_whole(&l->shard, place->parameter)) { /* the moment may have another shape than the parameter */
        wf_real *data = wf_optimizer_moment(place, 0);
        ready = !data || add_block(ranks, layout_owner(l, first), data, wf_optimizer_moment_count(place));
        return send_all(ranks, ready);
    }
    for (int64_t b = first; ready && b < end; b++) {
        wf_real *data = wf_optimizer_moment(place, l->block[b].at);
        ready = !data /* no rank has moments of this parameter */ || add_block(ranks, layout_owner(l, b), data, l->block[b].count);
    }
    return send_all(ranks, ready);
}

void gather_moments(struct wf_ranks *ranks, const struct ranks_layout *l)
{
    for (int i = 0; i < ranks->optimizers; i++) {
        const struct wf_optimizer *opt = ranks->optimizer[i];
        for (int64_t j = 0; j < opt->parts; j++)
            for (int p = 0; opt->part[j].registry == l->registry && p < l->shard.parameters; p++)
                for (int k = 0; k < (int)(sizeof opt->part[j].moment / sizeof *opt->part[j].moment); k++)
                    if (ranks->lost || (opt->part[j].moment[k] && gather(ranks, l, &(struct wf_optimizer_place){opt, j, p, k})))
                        return;
    }
}
