/* SPDX-License-Identifier: MIT */
/* Gathers from owners to all ranks: values, partial norms, moments at the end. */
#include "slices.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/dist.h>
#include <weft/internal/grow.h>
#include <weft/internal/parameter.h>
#include <weft/memory.h>

#include "loop.h"

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

/* Memory that grows to the need of an update, and is kept. */
struct spread {
    struct messages mine, out, in;
};

void slices_free_messages(struct fit *f)
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

/* Broadcasts `data` of a block from its owner. */
static bool add_block(struct fit *f, int owner, void *data, int64_t count)
{
    return add(owner == f->rank ? &f->spread->mine : &f->spread->in, owner, data, count * (int64_t)sizeof(wf_real));
}

/* Own data to each of the others, and theirs from them. */
static wf_status begin_all(struct fit *f, int label, bool ready, int *transfer)
{
    struct spread *s = f->spread;
    for (int r = 0; ready && r < f->processes; r++)
        for (int64_t i = 0; ready && r != f->rank && i < s->mine.count; i++)
            ready = add(&s->out, r, s->mine.m[i].data, s->mine.m[i].bytes);
    wf_error why = {0};
    if (!ready)
        wf_error_set(&why, WF_ERR_MEMORY, "no memory for messages");
    else if (wf_dist_begin(f->dist, label, s->out.m, (int)s->out.count, s->in.m, (int)s->in.count, transfer, &why) == WF_OK)
        return WF_OK;
    return together_failed(f, &why);
}

static wf_status finish(struct fit *f, int transfer, bool wait, bool *done)
{
    wf_error why = {0};
    if (wf_dist_finish(f->dist, transfer, wait, done, &why) == WF_OK)
        return WF_OK;
    return together_failed(f, &why);
}

static wf_status send_all(struct fit *f, bool ready)
{
    int transfer;
    bool done;
    return begin_all(f, 0, ready, &transfer) ? f->error->code : finish(f, transfer, true, &done);
}

/* --- values -------------------------------------------------------------------------------------------------------- */

static struct wf_values_use *use_of(const struct slicing *s)
{
    return wf_registry_count(s->registry) > 0 ? wf_parameter_info(wf_registry_at(s->registry, 0))->use : NULL;
}

static void end_arrivals(struct slicing *s)
{
    s->arrived = s->pieces;
    if (use_of(s))
        use_of(s)->arrives = NULL;
}

/* Takes the pieces that have arrived; waits for piece number `until`, unless it is negative. */
static void arrive(struct slicing *s, int64_t until)
{
    struct fit *f = s->fit;
    bool done = true;
    if (until >= 0 && s->transfer[until] >= 0 && finish(f, s->transfer[until], true, &done) == WF_OK)
        s->transfer[until] = -1;
    while (done && s->arrived < s->pieces && !f->lost)
        if (s->transfer[s->arrived] < 0 || (finish(f, s->transfer[s->arrived], false, &done) == WF_OK && done))
            s->transfer[s->arrived++] = -1;
    if (f->lost || s->arrived == s->pieces)
        end_arrivals(s);
}

static void settle(struct slicing *s)
{
    for (int64_t piece = 0; piece < s->pieces && s->arrived < s->pieces; piece++)
        arrive(s, piece);
}

/* Before an op reads a parameter; below 0: before all are replaced. */
static void await(void *slicing, int parameter)
{
    struct slicing *s = slicing;
    if (parameter < 0) {
        settle(s);
        return;
    }
    const int64_t first = s->slice.first[parameter], end = s->slice.first[parameter + 1];
    if (first == end) /* a table has no blocks */
        return;
    for (int64_t piece = slicing_piece(s, first); piece <= slicing_piece(s, end - 1) && s->arrived < s->pieces; piece++)
        arrive(s, piece);
}

wf_status slices_settle(struct fit *f)
{
    for (int k = 0; k < WF_FIT_REGISTRIES; k++)
        settle(&f->slicing[k]);
    return f->error->code;
}

/* Blocks of a piece that are trained, from number *block of the gradients' on. */
static bool add_values(struct fit *f, const struct slicing *s, const wf_grads *grads, int64_t piece, int64_t *block)
{
    bool ready = begin_spread(f) != NULL;
    for (int owner = 0; ready && *block < grads->blocks; ++*block) {
        const struct wf_grads_block *b = &grads->block[*block];
        const int64_t number = wf_slice_block(&s->slice, b->parameter, b->at);
        if (number >= slicing_bound(s, piece, f->processes))
            break;
        while (number >= slicing_bound(s, piece, owner + 1))
            owner++;
        ready = add_block(f, owner, (wf_real *)wf_parameter_info(wf_registry_at(s->registry, b->parameter))->value.data + b->at, b->count);
    }
    return ready;
}

bool slices_are_late(const struct fit *f)
{
    return f->processes > 1 && !f->o.no_overlap && (f->o.values_by_ops || !f->owner->any);
}

wf_status slices_values(struct fit *f, wf_grads *const *grads, int count)
{
    int label = 1 + f->exchange.pieces;
    if (f->processes == 1)
        return f->error->code;
    slices_settle(f);
    for (int k = 0; k < count && !f->lost; k++) {
        struct slicing *s = (struct slicing *)slicing_of(grads[k]);
        int64_t block = 0;
        for (int64_t piece = 0; piece < s->pieces && !f->lost; piece++)
            begin_all(f, label++, add_values(f, s, grads[k], piece, &block), &s->transfer[piece]);
        s->arrived = f->lost ? s->pieces : 0;
        if (f->lost || s->blocks == 0)
            continue;
        use_of(s)->arrives = await;
        use_of(s)->arrives_ctx = s;
    }
    return slices_are_late(f) ? f->error->code : slices_settle(f);
}

/* grads->partial of all, in the order of the blocks. */
wf_status slices_partial(void *ctx, wf_grads *grads, wf_error *error)
{
    struct slicing *s = ctx;
    struct fit *f = s->fit;
    const int64_t size = (int64_t)sizeof *s->partial;
    memset(s->at, 0, ((size_t)f->processes + 1) * sizeof *s->at);
    for (int64_t i = 0; i < grads->blocks; i++)
        s->at[slicing_owner(s, wf_slice_block(&s->slice, grads->block[i].parameter, grads->block[i].at)) + 1] += size;
    for (int r = 0; r < f->processes; r++)
        s->at[r + 1] += s->at[r];
    double *next = s->partial + s->at[f->rank] / size;
    for (int64_t i = 0; i < grads->blocks; i++)
        if (wf_slice_owns(&s->slice, grads->block[i].parameter, grads->block[i].at))
            *next++ = grads->partial[i];
    wf_error why = {0};
    if (wf_dist_gather_parts(f->dist, s->partial, s->at, &why) != WF_OK) {
        f->lost = true;
        return wf_error_set(error, why.code, "%s", why.message);
    }
    for (int64_t i = 0; i < grads->blocks; i++) {
        int64_t *at = &s->at[slicing_owner(s, wf_slice_block(&s->slice, grads->block[i].parameter, grads->block[i].at))];
        grads->partial[i] = s->partial[*at / size];
        *at += size;
    }
    return WF_OK;
}

const char *slices_bad(const struct fit *f, wf_grads *const *grads, int count, char text[], size_t size)
{
    for (int k = 0; f->processes > 1 && k < count; k++)
        for (int64_t i = 0; i < grads[k]->blocks; i++)
            if (!isfinite(grads[k]->partial[i])) {
                const struct slicing *s = slicing_of(grads[k]);
                char prefix[PREFIX];
                snprintf(text, size, "%s%s", registry_prefix(f, (int)(s - f->slicing), "", prefix),
                         wf_name_of(wf_registry_at(s->registry, grads[k]->block[i].parameter)));
                return text;
            }
    return NULL;
}

void slices_activate(struct fit *f, bool active)
{
    for (int k = 0; k < WF_FIT_REGISTRIES; k++)
        f->slicing[k].slice.active = active;
}

/* --- moments at the end ------------------------------------------------------------------------------------------- */

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

void slices_gather(struct fit *f, const struct slicing *s)
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
