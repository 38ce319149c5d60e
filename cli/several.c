/* SPDX-License-Identifier: MIT */
/* Opens the group of processes that mpirun started, and lets one process of each machine open the texts, and write their caches, before the
 * others. */
#include "several.h"

#include <stdio.h>

#include <weft/internal/string.h>

#include "cli.h"
#include "display.h"

static void waits(void *unused, const char *text)
{
    (void)unused;
    display_wipe();
    fprintf(stderr, "%s: warning: %s\n", program(), text);
}

wf_dist *open_world(const char *command, wf_error *error)
{
    static const struct wf_dist_watch watch = {.waits = waits};
    wf_dist *dist = wf_dist_world(error);
    struct wf_string words = {0};
    if (wf_dist_size(dist) == 1)
        return dist;
    if (wf_dist_rank(dist) == 0)
        wf_dist_watch(dist, &watch);
    else if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
        wf_error_set(error, WF_ERR_IO, "/dev/null cannot be opened");
    wf_string_format(&words, "command=%s", command);
    if (wf_dist_agree(dist, error->code, error) == WF_OK)
        (void)!wf_dist_compare(dist, &words, error);
    wf_string_free(&words);
    return dist;
}

wf_status open_in_turn(wf_dist *dist, wf_status (*open)(void *ctx, wf_error *error), void *ctx, wf_error *error)
{
    const bool first = wf_dist_local_rank(dist) == 0;
    wf_status status = first ? open(ctx, error) : WF_OK;
    /* the other processes sleep here until the first ones have opened; an error is ignored, because wf_dist_agree then fails too */
    (void)!wf_dist_rest(dist, NULL);
    status = wf_dist_agree(dist, status, error);
    return status != WF_OK ? status : wf_dist_agree(dist, first ? WF_OK : open(ctx, error), error);
}
