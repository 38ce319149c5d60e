/* SPDX-License-Identifier: MIT */
/* A save: rank 0 reads moments of other shards from their owners. */
#include "slices.h"

#include <string.h>

#include <weft/internal/dist.h>
#include <weft/internal/minmax.h>

#include "loop.h"

/* A request of rank 0 for moments. optimizer < 0: rank 0 has finished; `part` says whether the state on disk is that of this step, and `at`
 * gives its step. */
struct ask {
    int32_t optimizer, parameter, moment, unused;
    int64_t part, at, count;
};

static wf_status pass(struct fit *f, int peer, void *out, int64_t sent, void *in, int64_t received, wf_error *error)
{
    wf_error why = {0};
    const struct wf_message to = {peer, out, sent}, from = {peer, in, received};
    if (wf_dist_exchange(f->dist, &to, sent > 0, &from, received > 0, &why) == WF_OK)
        return WF_OK;
    f->lost = true;
    return wf_error_set(error, why.code, "%s", why.message);
}

static const struct slicing *slicing_with(const struct fit *f, const wf_registry *registry)
{
    int k = 0;
    while (f->slicing[k].registry != registry)
        k++;
    return &f->slicing[k];
}

/* Elements of a moment, in runs of one owner. */
static wf_status read_moment(void *ctx, const void *key, int64_t at, int64_t count, void *out, wf_error *error)
{
    struct fit *f = ctx;
    const struct wf_optimizer_place *place = key;
    const struct slicing *s = slicing_with(f, place->opt->part[place->part].registry);
    const int64_t first = s->slice.first[place->parameter];
    wf_real *to = out;
    wf_status status = WF_OK;
    int optimizer = 0;
    while (f->o.optimizer[optimizer].optimizer != place->opt)
        optimizer++;
    for (int64_t end = at + count, begin = at, next; status == WF_OK && begin < end; begin = next) {
        const int owner = slicing_owner(s, first + begin / WF_GRADS_BLOCK);
        for (next = begin; next < end && slicing_owner(s, first + next / WF_GRADS_BLOCK) == owner;)
            next += WF_GRADS_BLOCK;
        next = WF_MIN(next, end);
        struct ask ask = {.optimizer = optimizer,
                          .part = place->part,
                          .parameter = place->parameter,
                          .moment = place->moment,
                          .at = begin,
                          .count = next - begin};
        if (owner == f->rank)
            memcpy(to, wf_optimizer_moment(place, begin), (size_t)(next - begin) * sizeof *to);
        else if ((status = pass(f, owner, &ask, sizeof ask, NULL, 0, error)) == WF_OK)
            status = pass(f, owner, NULL, 0, to, (next - begin) * (int64_t)sizeof *to, error);
        to += next - begin;
    }
    return status;
}

struct wf_optimizer_source slices_source(struct fit *f)
{
    return (struct wf_optimizer_source){read_moment, f};
}

wf_status slices_serve(struct fit *f)
{
    struct ask ask = {0};
    while (!f->lost && pass(f, 0, NULL, 0, &ask, sizeof ask, f->error) == WF_OK) {
        if (ask.optimizer < 0) {
            f->saved = ask.part != 0;
            f->on_disk = ask.at;
            break;
        }
        const struct wf_optimizer_place place = {f->o.optimizer[ask.optimizer].optimizer, ask.part, ask.parameter, ask.moment};
        if (pass(f, 0, wf_optimizer_moment(&place, ask.at), ask.count * (int64_t)sizeof(wf_real), NULL, 0, f->error) != WF_OK)
            break;
    }
    return f->error->code;
}

wf_status slices_served(struct fit *f)
{
    struct ask done = {.optimizer = -1, .part = f->saved, .at = f->on_disk};
    wf_error why = {0};
    for (int r = 1; r < f->processes && !f->lost && why.code == WF_OK; r++)
        (void)!pass(f, r, &done, sizeof done, NULL, 0, &why);
    if (why.code)
        *f->error = why;
    return f->error->code;
}
