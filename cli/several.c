/* SPDX-License-Identifier: MIT */
/* Commands that mpirun starts several times, to do one work together. */
#include "several.h"

#include <stdio.h>

wf_dist *open_world(wf_error *error)
{
    wf_dist *dist = wf_dist_world(error);
    if (wf_dist_rank(dist) > 0 && (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)))
        wf_error_set(error, WF_ERR_IO, "/dev/null cannot be opened");
    return dist;
}

wf_status open_in_turn(wf_dist *dist, wf_status (*open)(void *ctx, wf_error *error), void *ctx, wf_error *error)
{
    const bool first = wf_dist_local_rank(dist) == 0;
    wf_status status = first ? open(ctx, error) : WF_OK;
    (void)!wf_dist_rest(dist, NULL); /* a failure is that of agreeing, too */
    status = wf_dist_agree(dist, status, error);
    return status != WF_OK ? status : wf_dist_agree(dist, first ? WF_OK : open(ctx, error), error);
}

wf_status compare_words(wf_dist *dist, struct wf_string *words, wf_error *error)
{
    wf_status status = words->failed ? wf_error_set(error, WF_ERR_MEMORY, "no memory to compare the processes") : WF_OK;
    status = wf_dist_agree(dist, status, error);
    if (status == WF_OK)
        status = wf_dist_compare(dist, words->data, error);
    wf_string_free(words);
    return status;
}
