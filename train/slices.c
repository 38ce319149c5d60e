/* SPDX-License-Identifier: MIT */
/* Which process owns what of a registry. */
#include "slices.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <weft/internal/dist.h>
#include <weft/internal/grow.h>
#include <weft/internal/parameter.h>
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

static wf_status lay_out(struct slicing *s, struct fit *f, const wf_registry *registry)
{
    const int parameters = wf_registry_count(registry);
    const int64_t least = 256 / f->processes, share = least < 1 ? 1 : least < SLICE_SHARE ? least : SLICE_SHARE;
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
        return wf_error_set(f->error, WF_ERR_MEMORY, "no memory for the shares of %d processes", f->processes);
    }
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

/* --- the end ------------------------------------------------------------------------------------------------------- */

/* Where a process has failed, or has no memory for them, none gets the moments, and the caller of each is told. */
static bool all_are_well(struct fit *f, const wf_error *why)
{
    const wf_error told = *f->error;
    if (told.code == WF_OK || told.code == WF_ERR_CANCELLED || told.code == WF_ERR_TIME)
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
    slices_settle(f);
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
            slices_gather(f, &f->slicing[k]);
        free_slicing(&f->slicing[k]);
    }
    slices_free_messages(f);
}
