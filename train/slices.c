/* SPDX-License-Identifier: MIT */
/* Shards of a registry: the blocks that each rank owns. */
#include "slices.h"

#include <weft/internal/minmax.h>
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
    wf_free(s->transfer);
    *s = (struct slicing){0};
}

static int64_t elements(const wf_registry *registry, int i)
{
    return wf_registry_is_buffer(registry, i) ? 0 : wf_array_count(&wf_parameter_info(wf_registry_at(registry, i))->value);
}

static wf_status lay_out(struct slicing *s, struct fit *f, const wf_registry *registry, wf_error *error)
{
    const int parameters = wf_registry_count(registry);
    const int64_t least = 256 / f->processes, share = least < 1 ? 1 : WF_MIN(least, SLICE_SHARE);
    int64_t blocks = 0;
    for (int i = 0; i < parameters; i++)
        blocks += (elements(registry, i) + WF_GRADS_BLOCK - 1) / WF_GRADS_BLOCK;
    *s = (struct slicing){.fit = f, .registry = registry, .blocks = blocks};
    s->slice = (struct wf_slice){.parameters = parameters, .share = slices_partial, .ctx = s};
    s->slice.first = wf_alloc_zero((size_t)parameters + 1, sizeof *s->slice.first);
    s->slice.before = wf_alloc_zero((size_t)blocks + 1, sizeof *s->slice.before);
    s->block = wf_alloc_zero((size_t)blocks + 1, sizeof *s->block);
    s->partial = wf_alloc_zero((size_t)blocks + 1, sizeof *s->partial);
    s->at = wf_alloc_zero((size_t)f->processes + 1, sizeof *s->at);
    s->pieces = (blocks + share * f->processes - 1) / (share * f->processes);
    s->pieces = s->arrived = s->pieces > 0 ? s->pieces : 1;
    s->transfer = wf_alloc_zero((size_t)s->pieces, sizeof *s->transfer);
    if (!s->slice.first || !s->slice.before || !s->block || !s->partial || !s->at || !s->transfer) {
        free_slicing(s);
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for the shares of %d processes", f->processes);
    }
    int64_t n = 0;
    for (int i = 0; i < parameters; i++) {
        const int64_t count = elements(registry, i);
        s->slice.first[i] = n;
        for (int64_t at = 0; at < count; at += WF_GRADS_BLOCK)
            s->block[n++] = (struct wf_grads_block){i, at, WF_MIN(count - at, WF_GRADS_BLOCK)};
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
    wf_error why = {0};
    if (f->processes == 1 || s->registry || !grads)
        return WF_OK;
    if (lay_out(s, f, registry, &why) == WF_OK) {
        int done = 0;
        while (done < f->o.optimizers && wf_optimizer_slice(f->o.optimizer[done].optimizer, registry, &s->slice, &why) == WF_OK)
            done++;
        grads->slice = &s->slice;
        exchange_free(&f->exchange); /* its memory has the size of the earlier shares */
        if (why.code == WF_OK)
            return WF_OK;
        while (done > 0)
            (void)!wf_optimizer_slice(f->o.optimizer[--done].optimizer, registry, NULL, NULL);
        grads->slice = NULL;
        free_slicing(s);
    }
    return wf_error_set(f->error, why.code, "%s", why.message);
}

/* --- the end ------------------------------------------------------------------------------------------------------- */

/* Whether every rank has its slices and memory for all moments. All ranks call this, also after a failure. */
static bool all_are_well(struct fit *f, const wf_error *why)
{
    const wf_error was = *f->error;
    const bool told = f->told;
    *f->error = *why;
    f->told = false;
    const bool well = together_agree(f) == WF_OK;
    if (was.code != WF_OK) { /* the earlier error says more */
        *f->error = was;
        f->told = told;
    }
    return well;
}

void slices_drop(struct fit *f, bool whole)
{
    wf_error why = {0};
    slices_settle(f);
    if (f->o.registries == 0)
        wf_error_set(&why, WF_ERR_STATE, "the options were refused here");
    for (int k = 0; k < f->o.registries; k++) {
        wf_grads *grads = wf_registry_grads(f->o.registry[k].registry);
        if (grads && !grads->slice)
            wf_error_set(&why, WF_ERR_STATE, "registry %d is not shared", k);
    }
    for (int k = 0; k < WF_FIT_REGISTRIES; k++) {
        wf_grads *grads = f->slicing[k].registry ? wf_registry_grads(f->slicing[k].registry) : NULL;
        for (int i = 0; grads && i < f->o.optimizers; i++)
            (void)!wf_optimizer_slice(f->o.optimizer[i].optimizer, f->slicing[k].registry, NULL, &why);
        if (grads)
            grads->slice = NULL;
    }
    whole = whole && f->in_company && !f->lost && all_are_well(f, &why);
    for (int k = 0; k < WF_FIT_REGISTRIES; k++) {
        if (whole && f->slicing[k].registry)
            slices_gather(f, &f->slicing[k]);
        free_slicing(&f->slicing[k]);
    }
    slices_free_messages(f);
}
