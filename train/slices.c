/* SPDX-License-Identifier: MIT */
/* Which process owns what of a registry, and what goes from owner to all: parts of the norm, values, moments. */
#include "slices.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <weft/internal/dist.h>
#include <weft/internal/grow.h>
#include <weft/memory.h>

#include "loop.h"

/* --- layout -------------------------------------------------------------------------------------------------------- */

int64_t slicing_bound(const struct slicing *s, int64_t piece, int process)
{
    const int64_t begin = s->blocks * piece / s->pieces, end = s->blocks * (piece + 1) / s->pieces;
    return begin + (end - begin) * process / s->fit->processes;
}

int64_t slicing_piece(const struct slicing *s, int64_t block)
{
    int64_t piece = block * s->pieces / s->blocks; /* about */
    while (piece + 1 < s->pieces && block >= slicing_bound(s, piece + 1, 0))
        piece++;
    while (block < slicing_bound(s, piece, 0))
        piece--;
    return piece;
}

int slicing_owner(const struct slicing *s, int64_t block)
{
    const int64_t piece = slicing_piece(s, block);
    int process = 0;
    while (block >= slicing_bound(s, piece, process + 1))
        process++;
    return process;
}

static void free_slicing(struct slicing *s)
{
    wf_free(s->slice.first);
    wf_free(s->slice.before);
    wf_free(s->block);
    wf_free(s->partial);
    wf_free(s->at);
    *s = (struct slicing){0};
}

static int64_t elements(const wf_registry *registry, int i)
{
    return wf_registry_is_buffer(registry, i) ? 0 : wf_array_count(&wf_parameter_info(wf_registry_at(registry, i))->value);
}

static wf_status share_partial(void *ctx, wf_grads *grads, wf_error *error);

static wf_status lay_out(struct slicing *s, struct fit *f, const wf_registry *registry)
{
    const int parameters = wf_registry_count(registry);
    const int64_t least = 256 / f->processes, share = least < 1 ? 1 : least < SLICE_SHARE ? least : SLICE_SHARE;
    int64_t blocks = 0;
    for (int i = 0; i < parameters; i++)
        blocks += (elements(registry, i) + WF_GRADS_BLOCK - 1) / WF_GRADS_BLOCK;
    *s = (struct slicing){.fit = f, .registry = registry, .blocks = blocks};
    s->slice = (struct wf_slice){.parameters = parameters, .share = share_partial, .ctx = s};
    s->slice.first = wf_alloc_zero((size_t)parameters + 1, sizeof *s->slice.first);
    s->slice.before = wf_alloc_zero((size_t)blocks + 1, sizeof *s->slice.before);
    s->block = wf_alloc_zero((size_t)blocks + 1, sizeof *s->block);
    s->partial = wf_alloc_zero((size_t)blocks + 1, sizeof *s->partial);
    s->at = wf_alloc_zero((size_t)f->processes + 1, sizeof *s->at);
    if (!s->slice.first || !s->slice.before || !s->block || !s->partial || !s->at) {
        free_slicing(s);
        return wf_error_set(f->error, WF_ERR_MEMORY, "no memory for the shares of %d processes", f->processes);
    }
    s->pieces = (blocks + share * f->processes - 1) / (share * f->processes);
    s->pieces = s->pieces > 0 ? s->pieces : 1;
    int64_t n = 0;
    for (int i = 0; i < parameters; i++) {
        const int64_t count = elements(registry, i);
        s->slice.first[i] = n;
        for (int64_t at = 0; at < count; at += WF_GRADS_BLOCK)
            s->block[n++] = (struct wf_grads_block){i, at, count - at < WF_GRADS_BLOCK ? count - at : WF_GRADS_BLOCK};
    }
    s->slice.first[parameters] = n;
    for (int64_t b = 0; b < blocks; b++)
        s->slice.before[b + 1] = s->slice.before[b] + (slicing_owner(s, b) == f->rank);
    return WF_OK;
}

wf_status slices_make(struct fit *f, int k, wf_registry *registry)
{
    struct slicing *s = &f->slicing[k];
    wf_grads *grads = wf_registry_grads(registry);
    if (f->processes == 1 || f->error->code || s->registry || !grads || lay_out(s, f, registry))
        return f->error->code;
    for (int i = 0; i < f->o.optimizers; i++)
        if (wf_optimizer_slice(f->o.optimizer[i].optimizer, registry, &s->slice, f->error))
            return f->error->code;
    grads->slice = &s->slice;
    return WF_OK;
}

/* --- from owner to all --------------------------------------------------------------------------------------------- */

/* Messages of one transfer. */
struct messages {
    struct wf_message *m;
    int64_t count, room;
};
static bool add(struct messages *list, int peer, void *data, int64_t bytes)
{
    struct wf_message *last = list->count > 0 ? &list->m[list->count - 1] : NULL;
    if (last && last->peer == peer && (char *)last->data + last->bytes == (char *)data) {
        last->bytes += bytes; /* end to end */
        return true;
    }
    if (!wf_grow(&list->m, &list->room, list->count + 1, sizeof *list->m))
        return false;
    list->m[list->count++] = (struct wf_message){peer, data, bytes};
    return true;
}

/* Memory that grows to what an update needs, and stays. */
struct spread {
    struct messages mine, out, in;
};

static void free_spread(struct fit *f)
{
    if (f->spread) {
        wf_free(f->spread->mine.m);
        wf_free(f->spread->out.m);
        wf_free(f->spread->in.m);
    }
    wf_free(f->spread);
    f->spread = NULL;
}

static struct spread *begin_spread(struct fit *f)
{
    if (!f->spread && !(f->spread = wf_alloc_zero(1, sizeof *f->spread)))
        wf_error_set(f->error, WF_ERR_MEMORY, "no memory for messages");
    if (f->spread)
        f->spread->mine.count = f->spread->out.count = f->spread->in.count = 0;
    return f->spread;
}

/* `data` of a block, of its owner's, for all. */
static bool add_block(struct fit *f, int owner, void *data, int64_t count)
{
    return add(owner == f->rank ? &f->spread->mine : &f->spread->in, owner, data, count * (int64_t)sizeof(wf_real));
}

static wf_status send_all(struct fit *f, bool ready)
{
    struct spread *s = f->spread;
    for (int r = 0; ready && r < f->processes; r++)
        for (int64_t i = 0; ready && r != f->rank && i < s->mine.count; i++) {
            ready = wf_grow(&s->out.m, &s->out.room, s->out.count + 1, sizeof *s->out.m);
            if (ready)
                s->out.m[s->out.count++] = (struct wf_message){r, s->mine.m[i].data, s->mine.m[i].bytes};
        }
    wf_error why = {0};
    if (!ready)
        wf_error_set(&why, WF_ERR_MEMORY, "no memory for messages");
    else if (wf_dist_exchange(f->dist, s->out.m, (int)s->out.count, s->in.m, (int)s->in.count, &why) == WF_OK)
        return WF_OK;
    *f->error = why;
    return together_lost(f);
}

wf_status slices_values(struct fit *f, wf_grads *const *grads, int count)
{
    if (f->processes == 1 || f->lost)
        return f->error->code;
    bool ready = begin_spread(f) != NULL;
    for (int k = 0; k < count; k++) {
        const struct slicing *s = slicing_of(grads[k]);
        int64_t piece = 0;
        int owner = 0;
        for (int64_t i = 0; ready && i < grads[k]->blocks; i++) {
            const struct wf_grads_block *b = &grads[k]->block[i];
            const int64_t number = wf_slice_block(&s->slice, b->parameter, b->at);
            for (; number >= slicing_bound(s, piece, owner + 1); owner++)
                if (owner + 1 == f->processes) {
                    piece++;
                    owner = -1;
                }
            ready =
                add_block(f, owner, (wf_real *)wf_parameter_info(wf_registry_at(s->registry, b->parameter))->value.data + b->at, b->count);
        }
    }
    return send_all(f, ready);
}

/* grads->partial of all, in the order of the blocks. */
static wf_status share_partial(void *ctx, wf_grads *grads, wf_error *error)
{
    struct slicing *s = ctx;
    struct fit *f = s->fit;
    memset(s->at, 0, ((size_t)f->processes + 1) * sizeof *s->at);
    for (int64_t i = 0; i < grads->blocks; i++)
        s->at[slicing_owner(s, wf_slice_block(&s->slice, grads->block[i].parameter, grads->block[i].at)) + 1]++;
    for (int r = 0; r < f->processes; r++)
        s->at[r + 1] += s->at[r];
    double *next = s->partial + s->at[f->rank];
    for (int64_t i = 0; i < grads->blocks; i++)
        if (wf_slice_owns(&s->slice, grads->block[i].parameter, grads->block[i].at))
            *next++ = grads->partial[i];
    struct wf_error why = {0};
    bool ready = begin_spread(f) != NULL;
    for (int r = 0; ready && r < f->processes; r++)
        if (s->at[r + 1] > s->at[r])
            ready = add(r == f->rank ? &f->spread->mine : &f->spread->in, r, s->partial + s->at[r],
                        (int64_t)(s->at[r + 1] - s->at[r]) * (int64_t)sizeof *s->partial);
    wf_error *const told = f->error;
    f->error = &why;
    const wf_status status = send_all(f, ready);
    f->error = told;
    if (status != WF_OK)
        return wf_error_set(error, status, "%s", why.message);
    for (int64_t i = 0; i < grads->blocks; i++)
        grads->partial[i] = s->partial[s->at[slicing_owner(s, wf_slice_block(&s->slice, grads->block[i].parameter, grads->block[i].at))]++];
    return WF_OK;
}

const char *slices_bad(const struct fit *f, wf_grads *const *grads, int count)
{
    for (int k = 0; f->processes > 1 && k < count; k++)
        for (int64_t i = 0; i < grads[k]->blocks; i++)
            if (!isfinite(grads[k]->partial[i]))
                return wf_name_of(wf_registry_at(slicing_of(grads[k])->registry, grads[k]->block[i].parameter));
    return NULL;
}

/* --- the end ------------------------------------------------------------------------------------------------------- */

/* A moment of all processes, which each has room for. */
static wf_status gather(struct fit *f, const struct slicing *s, const struct wf_optimizer_place *place)
{
    const int64_t first = s->slice.first[place->parameter], end = s->slice.first[place->parameter + 1];
    bool ready = begin_spread(f) != NULL;
    for (int64_t b = first; ready && b < end; b++) {
        wf_real *data = wf_optimizer_moment(place, s->block[b].at);
        ready = !data || add_block(f, slicing_owner(s, b), data, s->block[b].count);
    }
    return send_all(f, ready);
}

static void gather_all(struct fit *f, const struct slicing *s)
{
    for (int i = 0; i < f->o.optimizers; i++) {
        const struct wf_optimizer *opt = f->o.optimizer[i].optimizer;
        for (int64_t j = 0; j < opt->parts; j++)
            for (int p = 0; opt->part[j].registry == s->registry && p < s->slice.parameters; p++)
                for (int k = 0; k < (int)(sizeof opt->part[j].moment / sizeof *opt->part[j].moment); k++)
                    if (f->lost || (opt->part[j].moment[k] && gather(f, s, &(struct wf_optimizer_place){opt, j, p, k})))
                        return;
    }
}

/* Where a process has failed, or has no memory for them, none gets the moments, and the caller of each is told. */
static bool all_are_well(struct fit *f, const wf_error *why)
{
    const wf_error told = *f->error;
    if (told.code == WF_OK || told.code == WF_ERR_CANCELLED)
        *f->error = *why;
    if (together_agree(f))
        return false;
    *f->error = told;
    return true;
}

void slices_drop(struct fit *f, bool whole)
{
    wf_error why = {0};
    bool any = false;
    for (int k = 0; k < WF_FIT_REGISTRIES; k++) {
        wf_grads *grads = f->slicing[k].registry ? wf_registry_grads(f->slicing[k].registry) : NULL;
        if (!grads || !grads->slice)
            continue;
        any = true;
        for (int i = 0; i < f->o.optimizers; i++)
            (void)!wf_optimizer_slice(f->o.optimizer[i].optimizer, f->slicing[k].registry, NULL, &why);
        grads->slice = NULL;
    }
    whole = whole && any && !f->lost && !f->told && all_are_well(f, &why);
    for (int k = 0; k < WF_FIT_REGISTRIES; k++) {
        if (whole && f->slicing[k].registry)
            gather_all(f, &f->slicing[k]);
        free_slicing(&f->slicing[k]);
    }
    free_spread(f);
}

/* --- saves --------------------------------------------------------------------------------------------------------- */

/* What rank 0 asks another for; or, with optimizer < 0, that it has done. */
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

/* Elements of a moment, run by run of one owner. */
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
        next = next < end ? next : end;
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
    while (!f->lost && pass(f, 0, NULL, 0, &ask, sizeof ask, f->error) == WF_OK && ask.optimizer >= 0) {
        const struct wf_optimizer_place place = {f->o.optimizer[ask.optimizer].optimizer, ask.part, ask.parameter, ask.moment};
        if (pass(f, 0, wf_optimizer_moment(&place, ask.at), ask.count * (int64_t)sizeof(wf_real), NULL, 0, f->error) != WF_OK)
            break;
    }
    return f->error->code;
}

wf_status slices_served(struct fit *f)
{
    struct ask done = {.optimizer = -1};
    wf_error why = {0};
    for (int r = 1; r < f->processes && !f->lost && why.code == WF_OK; r++)
        (void)!pass(f, r, &done, sizeof done, NULL, 0, &why);
    if (why.code)
        *f->error = why;
    return f->error->code;
}
