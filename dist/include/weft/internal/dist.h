/* SPDX-License-Identifier: MIT */
/* Messages and collective calls for rooms that compute on several processes. */
#ifndef WEFT_INTERNAL_DIST_H
#define WEFT_INTERNAL_DIST_H

#include <weft/dist.h>
#include <weft/internal/transport.h>
#include <weft/strings.h>

WF_BEGIN_DECLS

/* Sends `out`, receives `in`, and returns when both are done. With one process it does nothing. After a failure the ranks are out of step,
 * and every further message is refused. */
wf_status wf_dist_exchange(wf_dist *dist, const struct wf_message *out, int outs, const struct wf_message *in, int ins, wf_error *error);
/* All-gather of ranges of any size: rank r contributes the bytes all[at[r]] .. all[at[r + 1] - 1], and has them in place before the call.
 * `at` is the same on all ranks. */
wf_status wf_dist_gather_parts(wf_dist *dist, void *all, const int64_t *at, wf_error *error);
/* wf_dist_exchange in two halves, so that a rank can compute in between. The data stay in use until finish sets *done; with `wait`, until
 * it returns. Transfers with one label (modulo WF_TRANSPORT_LABELS) are begun in the same order on all ranks; labels are independent of
 * each other. Label 0 is that of the functions above. */
wf_status wf_dist_begin(wf_dist *dist, int label, const struct wf_message *out, int outs, const struct wf_message *in, int ins,
                        int *transfer, wf_error *error);
wf_status wf_dist_finish(wf_dist *dist, int transfer, bool wait, bool *done, wf_error *error);
/* A barrier for waits of seconds, while one rank works for the others. The waiting ranks sleep, because MPI's own waits keep a processor
 * busy. Returns some milliseconds after the last rank has called it. */
wf_status wf_dist_rest(wf_dist *dist, wf_error *error) WF_CHECKED;
/* Between begin and end (true and false; nests), a rank that exits aborts all: the others would wait for it. */
void wf_dist_together(wf_dist *dist, bool begin);
/* wf_dist_agree that reports the failure with the greatest weight; among equals, that of the lowest rank. A failure that only follows from
 * another one gets a smaller weight. *sent: the ranks have exchanged their outcomes. */
wf_status wf_dist_agree_as(wf_dist *dist, wf_status status, int weight, bool *sent, wf_error *error);
/* Compares settings that must be the same on all ranks: words separated by blanks, KEY=VALUE, or #KEY=HASH for large data; a message shows
 * only the key of those ("#training-text="). If they differ: WF_ERR_ARGUMENT on all ranks, with the first difference. Frees the words. */
wf_status wf_dist_compare(wf_dist *dist, struct wf_string *words, wf_error *error);

/* --- share.c: items of work dealt out to the ranks -------------------------------------------------------------------
 * Every rank walks over all items, computes its own and adds their results, as bytes. After the gather every rank reads the results of all
 * items in order. A sum of them therefore has the bits that one process gives.
 *
 *     struct wf_share share = {.dist = dist};
 *     for (int64_t i = 0; status == WF_OK && i < items; i++)
 *         if (wf_share_mine(&share, i)) {
 *             status = ... &result ...;
 *             wf_share_add(&share, &result, sizeof result);
 *         }
 *     status = wf_share_gather(&share, status, error);
 *     for (int64_t i = 0; status == WF_OK && i < items; i++) {
 *         status = wf_share_take(&share, i, &result, sizeof result, error);
 *         sum += result;
 *     }
 *     wf_share_free(&share);                                                                                                          */
struct wf_share {
    wf_dist *dist; /* NULL: this process alone */
    char *mine;    /* results of this process */
    int64_t bytes, room;
    bool failed; /* no memory for the results */
    char *all;   /* results of all ranks in order of rank; with one process, `mine` */
    int64_t *at; /* [2 size + 1]: first byte of each rank's results, and the end of the last; then the next byte to read of each */
    int64_t one; /* with one process: the next byte to read */
};
/* Ranks take items in turn, 0 1 2 2 1 0 0 1 ...: items sorted by size give about equal work. */
bool wf_share_mine(const struct wf_share *share, int64_t item);
void wf_share_add(struct wf_share *share, const void *result, int64_t bytes);
/* Called by all ranks, each with its status, and a message in *error if that is not WF_OK. All return the same outcome. */
wf_status wf_share_gather(struct wf_share *share, wf_status status, wf_error *error) WF_CHECKED;
/* Reads the next bytes of an item's results. WF_ERR_STATE: fewer are left, because the ranks did not do the same. */
wf_status wf_share_take(struct wf_share *share, int64_t item, void *result, int64_t bytes, wf_error *error) WF_CHECKED;
void wf_share_free(struct wf_share *share);

WF_END_DECLS

#endif
