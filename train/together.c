/* SPDX-License-Identifier: MIT */
/* Several ranks: one outcome for all, checks that they train the same, enough micro-batches for each. Gradients: exchange.c. */
#include <inttypes.h>

#include <weft/internal/dist.h>
#include <weft/internal/minmax.h>
#include <weft/internal/several.h>
#include <weft/memory.h>
#include <weft/runtime.h>

#include "loop.h"

wf_status together_lost(struct fit *f)
{
    f->lost |= f->error->code != WF_OK;
    return f->error->code;
}

wf_status together_failed(struct fit *f, const wf_error *why)
{
    *f->error = *why;
    return together_lost(f);
}

wf_status together_agree(struct fit *f)
{
    if (f->processes == 1 || f->lost || !f->in_company || (f->told && f->error->code)) /* told: all ranks have the error */
        return f->error->code;
    wf_error why = *f->error;
    bool sent;
    const wf_status status = wf_dist_agree_as(f->dist, why.code,
                                              f->echo                        ? 1
                                              : why.code == WF_ERR_CANCELLED ? 2
                                              : why.code == WF_ERR_TIME      ? 3
                                                                             : 4,
                                              &sent, &why);
    *f->error = why;
    f->lost |= !sent;
    f->told = status != WF_OK;
    return status;
}

void together_rest(struct fit *f)
{
    wf_error why = {0};
    if (f->processes > 1 && f->in_company && !f->lost && wf_dist_rest(f->dist, &why)) {
        if (!f->error->code)
            *f->error = why;
        f->lost = true;
    }
}

wf_status together_from_first(struct fit *f, void *data, int64_t bytes)
{
    if (f->processes > 1 && wf_dist_broadcast(f->dist, data, bytes, 0, f->error))
        return together_lost(f);
    return WF_OK;
}

/* A log that cannot be written does not end an update; the next line reports it. */
static void waits(void *fit, const char *text)
{
    struct fit *f = fit;
    const wf_error before = *f->error;
    report(f, WF_EVENT_WARNING, text);
    *f->error = before;
}

wf_status together_open(struct fit *f)
{
    f->dist = wf_dist_world(f->error);
    f->rank = wf_dist_rank(f->dist);
    f->processes = wf_dist_size(f->dist);
    if (f->dist && f->processes > 1)
        wf_dist_together(f->dist, true);
    f->in_company = f->dist && f->processes > 1;
    if (f->in_company) {
        f->watch = wf_dist_watch(f->dist, NULL);
        const struct wf_dist_watch mine = {f->watch.seconds, f->rank == 0 ? waits : NULL, f};
        wf_dist_watch(f->dist, &mine);
    }
    return f->error->code;
}

void together_close(struct fit *f)
{
    if (f->in_company && !f->lost)
        wf_dist_together(f->dist, false);
    if (f->in_company)
        wf_dist_watch(f->dist, &f->watch);
    f->in_company = false;
    exchange_free(&f->exchange);
}

/* Raises the number of micro-batches until each rank has one. */
wf_status together_share(struct fit *f)
{
    struct wf_string text = {0};
    int64_t least = 1, was = f->o.accumulate;
    const bool chosen = f->o.leaves == 0;
    while (least < f->processes)
        least *= 2;
    if (f->owner->any && f->processes > 1 && was < 2) /* its loss may ignore micro-batches, and use the whole batch for each */
        return wf_error_set(f->error, WF_ERR_ARGUMENT,
                            "%d processes were started, and the program's batch is one part: set .accumulate to %" PRId64
                            " or more, if its loss is that of part->part of part->parts",
                            f->processes, least);
    if (f->o.leaves > 0 && f->o.leaves < f->processes)
        return wf_error_set(f->error, WF_ERR_ARGUMENT,
                            "%d processes were started, and leaves = %" PRId64 " is for at most %" PRId64
                            ": start fewer, or set more leaves",
                            f->processes, f->o.leaves, f->o.leaves);
    f->o.accumulate = (was + least - 1) / least * least;
    if (f->o.leaves == 0)
        f->o.leaves = WF_MAX(tree_leaves(f->o.accumulate), least);
    const bool usual = !chosen || f->o.leaves == tree_leaves(f->o.accumulate);
    if (f->o.accumulate == was && usual)
        return WF_OK;
    wf_string_format(&text, "%d processes share a batch", f->processes);
    if (f->o.accumulate != was)
        wf_string_format(&text, ", which is cut into %" PRId64 " parts instead of %" PRId64, f->o.accumulate, was);
    wf_string_format(&text, ": set accumulate = %" PRId64, f->o.accumulate);
    if (!usual)
        wf_string_format(&text, " and leaves = %" PRId64, f->o.leaves);
    wf_string_format(&text, " for the same bytes on one process");
    return report_string(f, WF_EVENT_WARNING, &text);
}

wf_status together_resume(struct fit *f, const char *path)
{
    if (f->o.leaves >= f->processes)
        return WF_OK;
    return wf_error_set(f->error, WF_ERR_ARGUMENT,
                        "%s: the run has leaves = %" PRId64 ", the largest number of processes that can resume it; %d were started", path,
                        f->o.leaves, f->processes);
}

/* Everything that the bits depend on, as words. The weights are among them: a program may fill them differently on each rank. */
static void identify(const struct fit *f, struct wf_string *s)
{
    uint64_t weights = 0;
    for (int k = 0; k < f->o.registries; k++)
        weights = wf_registry_hash(f->o.registry[k].registry, weights);
    wf_program_words(f->dist, s);
    if (f->owner->identify) /* first: names that the user knows */
        f->owner->identify(f, s);
    wf_string_format(s,
                     "task=%s steps=%" PRId64 " accumulate=%" PRId64 " leaves=%" PRId64 " seed=%" PRIu64 " first-step=%" PRId64
                     " clip=%.17g patience=%" PRId64 " valid_every=%" PRId64 " save_every=%" PRId64 " max-time=%.17g ",
                     f->task.name, f->o.steps, f->o.accumulate, f->o.leaves, f->o.seed, f->step, f->o.clip, f->o.patience, f->o.valid_every,
                     f->o.save_every, f->o.max_time);
    settings_words(f->o.settings, s);
    settings_words(f->o.fixed, s);
    wf_string_format(s, "#weights=%016" PRIx64, weights);
}

wf_status together_compare(struct fit *f)
{
    struct wf_string words = {0};
    if (f->processes == 1)
        return WF_OK;
    identify(f, &words);
    f->told = wf_dist_compare(f->dist, &words, f->error) != WF_OK;
    return f->error->code;
}
