/* SPDX-License-Identifier: MIT */
/* For the rooms that train on several processes. */
#ifndef WEFT_INTERNAL_DIST_H
#define WEFT_INTERNAL_DIST_H

#include <weft/dist.h>
#include <weft/internal/transport.h>
#include <weft/strings.h>

WF_BEGIN_DECLS

/* Sends `out` and receives `in`, and returns when both are done. Nothing with one process. Where it fails the processes have lost each
 * other, and nothing is sent any more. */
wf_status wf_dist_exchange(wf_dist *dist, const struct wf_message *out, int outs, const struct wf_message *in, int ins, wf_error *error);
/* Parts of any size, of all processes to all: that of rank r is all[at[r]] .. all[at[r + 1]], bytes, and this process's is there already.
 * The same `at` on all. */
wf_status wf_dist_gather_parts(wf_dist *dist, void *all, const int64_t *at, wf_error *error);
/* wf_dist_exchange in two halves, so that a process computes meanwhile: the data stay in use until finish says *done, with `wait` when it
 * returns. Transfers of different labels (0: that of the functions above; modulo WF_TRANSPORT_LABELS) may be begun in another order on each
 * process; those of one label in the same. */
wf_status wf_dist_begin(wf_dist *dist, int label, const struct wf_message *out, int outs, const struct wf_message *in, int ins,
                        int *transfer, wf_error *error);
wf_status wf_dist_finish(wf_dist *dist, int transfer, bool wait, bool *done, wf_error *error);
/* A barrier for waits of seconds, while one process of a machine works for the others: those sleep, where an MPI that waits keeps a
 * processor busy. Returns some milliseconds after the last has come. */
wf_status wf_dist_rest(wf_dist *dist, wf_error *error) WF_CHECKED;
/* Between begin and end a process that exits ends them all: the others would wait for it. */
void wf_dist_together(wf_dist *dist, bool begin);
/* wf_dist_agree, where the failure of the greatest weight is told, of the lowest rank among equals: one that only echoes another's weighs
 * less. *sent: false where the processes could not tell each other. */
wf_status wf_dist_agree_as(wf_dist *dist, wf_status status, int weight, bool *sent, wf_error *error);
/* On what the result depends, words with blanks between: KEY=VALUE, or #KEY=HASH, of which a message says the key only ("#training-text=",
 * for what is large). WF_ERR_ARGUMENT, on all, where they differ, with the first that does. Frees the words. */
wf_status wf_dist_compare(wf_dist *dist, struct wf_string *words, wf_error *error);

/* --- share.c: work in items, of which each process does some ---------------------------------------------------------
 * All walk over all items; who does one adds its results, as bytes; when they are gathered, all read those of all items in order, so that
 * what is made of them, a sum say, has the bits that one process gives.
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
    bool failed; /* to get memory for them */
    char *all;   /* of all, rank by rank; `mine` where there is one process */
    int64_t *at; /* where each rank's begin, and the last end; then what is read next of each */
    int64_t one; /* the same of one process */
};
/* Items are dealt out to and fro, 0 1 2 2 1 0 0 1 ...: where they are sorted by size the shares are about equal. */
bool wf_share_mine(const struct wf_share *share, int64_t item);
void wf_share_add(struct wf_share *share, const void *result, int64_t bytes);
/* Called by all, with the status of each, a message in *error where it is not WF_OK: one outcome for all. */
wf_status wf_share_gather(struct wf_share *share, wf_status status, wf_error *error) WF_CHECKED;
/* The next bytes of an item's results. WF_ERR_STATE: there are not so many, since the processes do not do the same. */
wf_status wf_share_take(struct wf_share *share, int64_t item, void *result, int64_t bytes, wf_error *error) WF_CHECKED;
void wf_share_free(struct wf_share *share);

WF_END_DECLS

#endif
