/* SPDX-License-Identifier: MIT */
/* Connects and disconnects the ranks, and makes them agree on one outcome. */
#include <weft/memory.h>

#include "private.h"

wf_status ranks_lost(struct wf_ranks *ranks)
{
    ranks->lost |= ranks->error->code != WF_OK;
    return ranks->error->code;
}

wf_status ranks_failed(struct wf_ranks *ranks, const wf_error *why)
{
    *ranks->error = *why;
    return ranks_lost(ranks);
}

wf_status ranks_no_memory(struct wf_ranks *ranks)
{
    wf_error_set(ranks->error, WF_ERR_MEMORY, "no memory for an update of %d processes", ranks->size);
    return ranks_lost(ranks);
}

/* --- beginning and end --------------------------------------------------------------------------------------------- */

wf_status wf_ranks_open(struct wf_ranks *ranks)
{
    ranks->dist = wf_dist_world(ranks->error);
    ranks->rank = wf_dist_rank(ranks->dist);
    ranks->size = wf_dist_size(ranks->dist);
    ranks->open = ranks->dist && ranks->size > 1;
    if (ranks->open) {
        wf_dist_together(ranks->dist, true);
        ranks->watch = wf_dist_watch(ranks->dist, NULL);
        const struct wf_dist_watch mine = {ranks->watch.seconds, ranks->rank == 0 ? ranks->waits : NULL, ranks->ctx};
        wf_dist_watch(ranks->dist, &mine);
    }
    return ranks->error->code;
}

void wf_ranks_close(struct wf_ranks *ranks, bool whole)
{
    wf_ranks_settle(ranks);
    layouts_free(ranks, whole);
    gather_free(ranks);
    if (ranks->open && !ranks->lost)
        wf_dist_together(ranks->dist, false);
    if (ranks->open)
        wf_dist_watch(ranks->dist, &ranks->watch);
    ranks->open = false;
    reduction_free(ranks);
    if (ranks->tree)
        tree_free(ranks->tree);
    wf_free(ranks->tree);
    wf_free(ranks->leaf);
    ranks->tree = NULL;
    ranks->leaf = NULL;
}

/* --- one outcome --------------------------------------------------------------------------------------------------- */

wf_status wf_ranks_agree(struct wf_ranks *ranks)
{
    if (!ranks->open || ranks->lost || (ranks->agreed && ranks->error->code))
        return ranks->error->code;
    wf_error why = *ranks->error;
    /* The error with the greatest weight wins. From the greatest to the least: a real error, the time limit, a cancellation, an error that
     * only follows from the error of another rank. */
    const int weight = ranks->follows ? 1 : why.code == WF_ERR_CANCELLED ? 2 : why.code == WF_ERR_TIME ? 3 : 4;
    bool sent;
    const wf_status status = wf_dist_agree_as(ranks->dist, why.code, weight, &sent, &why);
    *ranks->error = why;
    ranks->lost |= !sent;
    ranks->agreed = status != WF_OK;
    return status;
}

void wf_ranks_clear_error(struct wf_ranks *ranks)
{
    wf_error_clear(ranks->error);
    ranks->agreed = false;
}

wf_status wf_ranks_compare(struct wf_ranks *ranks, struct wf_string *words)
{
    ranks->agreed = wf_dist_compare(ranks->dist, words, ranks->error) != WF_OK;
    return ranks->error->code;
}

void wf_ranks_rest(struct wf_ranks *ranks)
{
    wf_error why = {0};
    if (ranks->open && !ranks->lost && wf_dist_rest(ranks->dist, &why)) {
        if (!ranks->error->code)
            *ranks->error = why;
        ranks->lost = true;
    }
}

wf_status wf_ranks_broadcast(struct wf_ranks *ranks, void *data, int64_t bytes)
{
    if (ranks->size > 1 && wf_dist_broadcast(ranks->dist, data, bytes, 0, ranks->error))
        return ranks_lost(ranks);
    return WF_OK;
}
