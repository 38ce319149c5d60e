/* SPDX-License-Identifier: MIT */
/* Several processes: gives each rank at least one leaf, and checks that all ranks train the same. */
#include <inttypes.h>

#include <weft/internal/dist.h>
#include <weft/internal/gemm.h>
#include <weft/internal/several.h>
#include <weft/runtime.h>

#include "loop.h"

/* Raises `accumulate` and `leaves` until each rank has a leaf. */
wf_status ranks_share(struct fit *f)
{
    struct wf_string text = {0};
    int64_t least = 1, was = f->o.accumulate;
    const bool automatic = f->o.leaves == 0;
    while (least < f->ranks.size)
        least *= 2;
    if (f->owner->any && f->ranks.size > 1 && was < 2) /* wf_fit only: the program's loss may compute the whole batch */
        return wf_error_set(f->error, WF_ERR_ARGUMENT,
                            "%d processes were started, and the program's batch is one micro-batch: set .accumulate to %" PRId64
                            " or more, if its loss is that of one micro-batch",
                            f->ranks.size, least);
    if (f->o.leaves > 0 && f->o.leaves < f->ranks.size)
        return wf_error_set(f->error, WF_ERR_ARGUMENT,
                            "%d processes were started, and leaves = %" PRId64 " is for at most %" PRId64
                            ": start fewer, or set more leaves",
                            f->ranks.size, f->o.leaves, f->o.leaves);
    f->o.accumulate = (was + least - 1) / least * least;
    if (f->o.leaves == 0)
        f->o.leaves = WF_MAX(wf_leaves(f->o.accumulate), least);
    const bool usual = !automatic || f->o.leaves == wf_leaves(f->o.accumulate);
    if (f->o.accumulate == was && usual)
        return WF_OK;
    wf_string_format(&text, "%d processes share a batch", f->ranks.size);
    if (f->o.accumulate != was)
        wf_string_format(&text, ", which is cut into %" PRId64 " micro-batches instead of %" PRId64, f->o.accumulate, was);
    wf_string_format(&text, ": set accumulate = %" PRId64, f->o.accumulate);
    if (!usual)
        wf_string_format(&text, " and leaves = %" PRId64, f->o.leaves);
    wf_string_format(&text, " for the same bytes on one process");
    return report_string(f, WF_EVENT_WARNING, &text);
}

wf_status ranks_resume(struct fit *f, const char *path)
{
    if (f->o.leaves >= f->ranks.size)
        return WF_OK;
    return wf_error_set(f->error, WF_ERR_ARGUMENT,
                        "%s: the run has leaves = %" PRId64 ", the largest number of processes that can resume it; %d were started", path,
                        f->o.leaves, f->ranks.size);
}

/* Writes everything that the bits of the training depend on, as words KEY=VALUE. Includes a hash of the weights, because a program may have
 * filled them differently on each rank. */
static void identify(const struct fit *f, struct wf_string *s)
{
    uint64_t weights = 0;
    for (int k = 0; k < f->o.registries; k++)
        weights = wf_registry_hash(f->o.registry[k].registry, weights);
    wf_program_words(f->ranks.dist, s);
    if (f->owner->identify) /* first, because the message names the first difference, and the user knows these names */
        f->owner->identify(f, s);
    wf_string_format(s,
                     "task=%s steps=%" PRId64 " accumulate=%" PRId64 " leaves=%" PRId64 " seed=%" PRIu64 " first-step=%" PRId64
                     " precision=%s clip=%.17g clip_value=%.17g patience=%" PRId64 " valid_every=%" PRId64 " save_every=%" PRId64
                     " max-time=%.17g ",
                     f->task.name, f->o.steps, f->o.accumulate, f->o.leaves, f->o.seed, f->step, wf_precision_name(f->o.precision),
                     f->o.clip, f->o.clip_value, f->o.patience, f->o.valid_every, f->o.save_every, f->o.max_time);
    settings_words(f->o.settings, s);
    settings_words(f->o.fixed, s);
    wf_string_format(s, "#weights=%016" PRIx64, weights); /* '#': a message names this key without its value (wf_dist_compare) */
}

wf_status ranks_compare(struct fit *f)
{
    struct wf_string words = {0};
    if (f->ranks.size == 1)
        return WF_OK;
    identify(f, &words);
    return wf_ranks_compare(&f->ranks, &words);
}
