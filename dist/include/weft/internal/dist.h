/* SPDX-License-Identifier: MIT */
/* Messages and collective calls for code that computes on several processes. */
#ifndef WEFT_INTERNAL_DIST_H
#define WEFT_INTERNAL_DIST_H

#include <weft/dist.h>
#include <weft/internal/transport.h>
#include <weft/strings.h>

WF_BEGIN_DECLS

/* Sends the messages `out`, receives the messages `in`, and returns when all are done. With one process it does nothing. After a failure
 * the ranks are out of step, and every further message is refused. */
wf_status wf_dist_exchange(wf_dist *dist, const struct wf_message *out, int outs, const struct wf_message *in, int ins, wf_error *error);
/* All-gather of ranges of different sizes. Rank r contributes the bytes all[at[r]] .. all[at[r + 1] - 1], which it has stored in `all`
 * before the call. `at` is the same on all ranks. */
wf_status wf_dist_gather_parts(wf_dist *dist, void *all, const int64_t *at, wf_error *error);
/* wf_dist_exchange in two steps, so that a rank can compute in between. wf_dist_begin starts the messages and sets *transfer.
 * wf_dist_finish sets *done to whether they are done; with `wait` it returns only when they are. The data must stay valid until then. All
 * ranks begin the transfers of one label in the same order; transfers of different labels are independent. Labels are taken modulo
 * WF_TRANSPORT_LABELS; the functions above use label 0. */
wf_status wf_dist_begin(wf_dist *dist, int label, const struct wf_message *out, int outs, const struct wf_message *in, int ins,
                        int *transfer, wf_error *error);
wf_status wf_dist_finish(wf_dist *dist, int transfer, bool wait, bool *done, wf_error *error);
/* A barrier for waits of several seconds, while one rank works for the others. The waiting ranks sleep, because waiting in MPI would keep a
 * processor busy. Returns some milliseconds after the last rank has called it. */
wf_status wf_dist_rest(wf_dist *dist, wf_error *error) WF_CHECKED;
/* Call this with begin = true before work in which the other ranks wait for this one, and with begin = false after it. Calls nest. If this
 * rank exits in between, all ranks are aborted. */
void wf_dist_together(wf_dist *dist, bool begin);
/* wf_dist_agree, except that all ranks return the failure with the greatest weight; among failures of equal weight, the lowest rank counts.
 * A failure that only follows from another failure gets a smaller weight. *sent becomes true if the ranks have exchanged their outcomes. */
wf_status wf_dist_agree_as(wf_dist *dist, wf_status status, int weight, bool *sent, wf_error *error);
/* Compares settings that must be the same on all ranks. `words` holds words separated by blanks: KEY=VALUE, or #KEY=HASH for large data.
 * For large data, a message shows only the key: "training text" for #training-text=HASH. If the words differ, all ranks return
 * WF_ERR_ARGUMENT with the first difference. Frees the content of `words`. */
wf_status wf_dist_compare(wf_dist *dist, struct wf_string *words, wf_error *error);

/* --- share.c: distributes items of work over the ranks ---------------------------------------------------------------
 * Every rank loops over all items, computes some of them and appends their results, as bytes, to its own buffer. After the gather, every
 * rank reads the results of all items in order. So a sum of the results has the same bits as with one process.
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
    char *mine;    /* results of this rank */
    int64_t bytes; /* length of `mine` */
    int64_t room;  /* bytes that are allocated for `mine` */
    bool failed;   /* there was no memory for a result */
    char *all;     /* results of all ranks, in the order of the ranks; with one process, the same as `mine` */
    /* [2 size + 1]: first the bounds, so that rank r has the results all[at[r]] .. all[at[r + 1] - 1]; then the next byte to read of each
     * rank */
    int64_t *at;
    int64_t one; /* the next byte to read, if there is one process */
};
/* Returns true if this rank computes the item. With three ranks, items 0, 1, 2, ... go to ranks 0 1 2 2 1 0 0 1 ... . If the items are
 * sorted by size, this order gives all ranks about equal work. */
bool wf_share_mine(const struct wf_share *share, int64_t item);
/* Appends the result of an item. wf_share_gather reports a lack of memory. */
void wf_share_add(struct wf_share *share, const void *result, int64_t bytes);
/* Sends the results of every rank to all ranks. Called by all ranks, each with its status and, unless that is WF_OK, a message in *error.
 * All ranks return the same outcome. */
wf_status wf_share_gather(struct wf_share *share, wf_status status, wf_error *error) WF_CHECKED;
/* Reads the next `bytes` bytes from the results of the rank that computed the item. Items are read in the order in which they were added.
 * WF_ERR_STATE: fewer bytes are left, so that rank has added fewer results than this one reads. */
wf_status wf_share_take(struct wf_share *share, int64_t item, void *result, int64_t bytes, wf_error *error) WF_CHECKED;
void wf_share_free(struct wf_share *share);

WF_END_DECLS

#endif
