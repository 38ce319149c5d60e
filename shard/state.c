/* SPDX-License-Identifier: MIT */
/* Saving moments: rank 0 writes the file, and reads the moments of the other shards from their owners. */
#include <string.h>

#include <weft/internal/minmax.h>

#include "private.h"

/* A request of rank 0 for elements of a moment. optimizer < 0: no request but rank 0's last message, which tells the other ranks what
 * `write` of wf_ranks_gather_state returned in `result`. */
struct ask {
    int32_t optimizer, parameter, moment, unused;
    union {
        struct {
            int64_t part, at, count;
        };
        int64_t result[2];
    };
};

static wf_status pass(struct wf_ranks *ranks, int peer, void *out, int64_t sent, void *in, int64_t received, wf_error *error)
{
    wf_error why = {0};
    const struct wf_message to = {peer, out, sent}, from = {peer, in, received};
    if (wf_dist_exchange(ranks->dist, &to, sent > 0, &from, received > 0, &why) == WF_OK)
        return WF_OK;
    ranks->lost = true;
    return wf_error_set(error, why.code, "%s", why.message);
}

static const struct ranks_layout *layout_with(const struct wf_ranks *ranks, const wf_registry *registry)
{
    int k = 0;
    while (ranks->layout[k].registry != registry)
        k++;
    return &ranks->layout[k];
}

/* Reads elements at .. at + count - 1 of a moment, with one request for each run of blocks that have the same owner. */
static wf_status read_moment(void *ctx, const void *key, int64_t at, int64_t count, void *out, wf_error *error)
{
    struct wf_ranks *ranks = ctx;
    const struct wf_optimizer_place *place = key;
    const struct ranks_layout *l = layout_with(ranks, place->opt->part[place->part].registry);
    const int64_t first = l->shard.first[place->parameter];
    wf_real *to = out;
    wf_status status = WF_OK;
    int optimizer = 0;
    while (ranks->optimizer[optimizer] != place->opt)
        optimizer++;
    const bool whole = wf_shard_is_whole(&l->shard, place->parameter); /* then the moment may have another shape than the parameter */
    for (int64_t end = at + count, begin = at, next; status == WF_OK && begin < end; begin = next) {
        const int owner = layout_owner(l, whole ? first : first + begin / WF_GRADS_BLOCK);
        for (next = whole ? end : begin; next < end && layout_owner(l, first + next / WF_GRADS_BLOCK) == owner;)
            next += WF_GRADS_BLOCK;
        next = WF_MIN(next, end);
        struct ask ask = {.optimizer = optimizer,
                          .part = place->part,
                          .parameter = place->parameter,
                          .moment = place->moment,
                          .at = begin,
                          .count = next - begin};
        if (owner == ranks->rank)
            memcpy(to, wf_optimizer_moment(place, begin), (size_t)(next - begin) * sizeof *to);
        else if ((status = pass(ranks, owner, &ask, sizeof ask, NULL, 0, error)) == WF_OK)
            status = pass(ranks, owner, NULL, 0, to, (next - begin) * (int64_t)sizeof *to, error);
        to += next - begin;
    }
    return status;
}

const struct wf_optimizer_source *wf_ranks_source(struct wf_ranks *ranks)
{
    ranks->source = (struct wf_optimizer_source){read_moment, ranks};
    return ranks->size > 1 ? &ranks->source : NULL;
}

/* Answers requests of rank 0 until its last message, and copies the `result` in that message. */
static void serve(struct wf_ranks *ranks, int64_t result[2])
{
    struct ask ask = {0};
    while (!ranks->lost && pass(ranks, 0, NULL, 0, &ask, sizeof ask, ranks->error) == WF_OK) {
        if (ask.optimizer < 0) {
            memcpy(result, ask.result, sizeof ask.result);
            return;
        }
        const struct wf_optimizer_place place = {ranks->optimizer[ask.optimizer], ask.part, ask.parameter, ask.moment};
        if (pass(ranks, 0, wf_optimizer_moment(&place, ask.at), ask.count * (int64_t)sizeof(wf_real), NULL, 0, ranks->error) != WF_OK)
            return;
    }
}

wf_status wf_ranks_gather_state(struct wf_ranks *ranks, void (*write)(void *ctx, int64_t result[2]), void *ctx, int64_t result[2])
{
    if (ranks->rank > 0) {
        serve(ranks, result);
        return ranks->error->code;
    }
    write(ctx, result);
    struct ask done = {.optimizer = -1};
    memcpy(done.result, result, sizeof done.result);
    wf_error why = {0};
    for (int rank = 1; rank < ranks->size && !ranks->lost && why.code == WF_OK; rank++)
        (void)!pass(ranks, rank, &done, sizeof done, NULL, 0, &why);
    if (why.code)
        *ranks->error = why;
    return ranks->error->code;
}
