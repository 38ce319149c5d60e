/* SPDX-License-Identifier: MIT */
/* The processes that train together. A training loop is that of one process, with these calls in it; on one process they only add up
 * gradients of micro-batches.
 *
 *   struct wf_ranks ranks = {.error = &error, .leaf_bytes = sizeof(struct scalars)};
 *   wf_ranks_open(&ranks);
 *   ... ranks.registry, ranks.optimizer ...
 *   wf_ranks_shard(&ranks);
 *   wf_ranks_cut(&ranks, accumulate, leaves);
 *   const struct wf_range mine = wf_ranks_mine(&ranks);
 *   while (wf_ranks_agree(&ranks) == WF_OK) {
 *       wf_ranks_begin(&ranks, grads, count);
 *       for (int64_t i = mine.begin; i < mine.end && !error.code; i++) {
 *           ... forward, wf_ranks_leaf(&ranks, i) ...
 *           wf_ranks_backward(&ranks, i, loss);
 *           wf_ranks_add(&ranks, i);
 *       }
 *       if (wf_ranks_finish(&ranks) == WF_OK) {
 *           ... clipping, optimisers ...
 *       }
 *       wf_ranks_publish(&ranks, true);
 *   }
 *   wf_ranks_gather_state(&ranks, save, ctx, result);
 *   wf_ranks_close(&ranks, true);
 *
 * Bits: a batch is cut into micro-batches, which lie under the leaves of a binary tree. The gradients of a leaf's micro-batches are added
 * in order, then those of neighbouring leaves, neighbouring pairs, up to the root. The order depends on accumulate and leaves only.
 *
 * Shards (ZeRO, stage 1: Rajbhandari et al. 2020): each rank has the moments of its shard of the parameters. It alone adds, clips and
 * updates there, and sends the new values to the others.
 *
 * Errors: the first one wins, but for one of a message, which replaces it. It is *ranks->error, which the caller's functions share; its
 * code is what the functions return. A rank with an error still makes the calls of its phase, so that the others learn of it in
 * wf_ranks_finish. */
#ifndef WEFT_INTERNAL_RANKS_H
#define WEFT_INTERNAL_RANKS_H

#include <weft/dist.h>
#include <weft/internal/optimizer.h>

WF_BEGIN_DECLS

enum { WF_RANKS_REGISTRIES = 16, WF_RANKS_OPTIMIZERS = 16 }; /* at most */

struct wf_ranks {
    /* Set by the caller before wf_ranks_open. */
    wf_error *error;
    size_t leaf_bytes;                          /* of the scalars of a leaf */
    void (*waits)(void *ctx, const char *text); /* reports a long wait, on rank 0; may be NULL */
    void *ctx;
    /* Set by the caller before wf_ranks_shard, the same on all ranks. */
    wf_registry *registry[WF_RANKS_REGISTRIES];
    struct wf_optimizer *optimizer[WF_RANKS_OPTIMIZERS];
    int registries, optimizers;
    bool no_overlap;  /* sends only when nothing is computed */
    bool late_values; /* new values may come while the next forward runs: each op waits for those that it reads */

    /* For reading: */
    wf_dist *dist;
    int rank, size;             /* size: 1 before wf_ranks_open */
    int64_t accumulate, leaves; /* of wf_ranks_cut */

    /* Private: */
    bool open;                            /* other ranks take part */
    bool follows;                         /* the error follows from that of another rank */
    bool agreed;                          /* all ranks have this error */
    bool lost;                            /* messages fail: the others cannot learn of the error */
    struct wf_dist_watch watch;           /* the program's */
    wf_grads *grads[WF_RANKS_REGISTRIES]; /* of the phase */
    int count;
    char *leaf;                  /* [leaves][leaf_bytes] */
    struct ranks_layout *layout; /* [WF_RANKS_REGISTRIES]; NULL on one process */
    struct ranks_tree *tree;
    struct ranks_reduction *reduction;
    struct ranks_messages *messages;
    struct wf_optimizer_source source;
};
/* Micro-batches begin .. end - 1. */
struct wf_range {
    int64_t begin, end;
};

/* Joins the processes that were started together with this one. */
wf_status wf_ranks_open(struct wf_ranks *ranks);
/* Frees everything. Gives each rank memory for all moments again; with `whole`, the same on all ranks, their values too, even after a
 * failure. If a rank has no memory or is lost, moments of other ranks are 0. */
void wf_ranks_close(struct wf_ranks *ranks, bool whole);

/* Agrees on one outcome: if a rank has an error, all ranks get it. */
wf_status wf_ranks_agree(struct wf_ranks *ranks);
/* Forgets an error on which all ranks have agreed. */
void wf_ranks_clear_error(struct wf_ranks *ranks);
/* Compares words that must be the same on all ranks (wf_dist_compare); an error is that of all ranks. Frees the words. */
wf_status wf_ranks_compare(struct wf_ranks *ranks, struct wf_string *words);
/* Broadcasts rank 0's data. */
wf_status wf_ranks_broadcast(struct wf_ranks *ranks, void *data, int64_t bytes);
/* A barrier whose waiters sleep, while a rank works for long. */
void wf_ranks_rest(struct wf_ranks *ranks);

/* Leaves for `accumulate` micro-batches: the largest power of two that divides them, 8 at most. */
int64_t wf_leaves(int64_t accumulate);
/* Leaves of a resume: the number asked for; 0: that of the state, `was`, if it still fits. 0 in a state stands for 1. */
int64_t wf_leaves_again(int64_t asked, int64_t was, int64_t accumulate);
/* Whether `leaves` is a power of two that divides `accumulate`. */
bool wf_leaves_fit(int64_t leaves, int64_t accumulate);
/* Sets the number of micro-batches and leaves of a batch: leaves divide accumulate, and are at least as many as ranks. Once. */
wf_status wf_ranks_cut(struct wf_ranks *ranks, int64_t accumulate, int64_t leaves);
/* The micro-batches of this rank: contiguous, and about evenly divided. After wf_ranks_cut. */
struct wf_range wf_ranks_mine(const struct wf_ranks *ranks);

/* Cuts the listed registries that have gradients into shards, with the moments of the listed optimisers; does nothing on one process, or
 * for a registry that was cut before. Optimisers that are made later have moments for the shard only. */
wf_status wf_ranks_shard(struct wf_ranks *ranks);

/* Begins a phase of an update. grads[count], of the registries that the phase trains, are zero. */
wf_status wf_ranks_begin(struct wf_ranks *ranks, wf_grads *const *grads, int count);
/* The scalars of the leaf over micro-batch i: zero before its first one. */
void *wf_ranks_leaf(struct wf_ranks *ranks, int64_t i);
/* wf_backward of micro-batch i. During that of the last one, finished gradients are sent. */
wf_status wf_ranks_backward(struct wf_ranks *ranks, int64_t i, wf_tensor *loss);
/* After micro-batch i, also without a backward: adds gradients of finished leaves. */
wf_status wf_ranks_add(struct wf_ranks *ranks, int64_t i);
/* The gradients of all micro-batches in this rank's shard, and the scalars of all leaves; or a failure on all ranks. From here to
 * wf_ranks_publish, norms and optimisers are those of all ranks. */
wf_status wf_ranks_finish(struct wf_ranks *ranks);
/* The scalars of leaf 0 .. leaves - 1, of all ranks; after wf_ranks_finish. */
const void *wf_ranks_leaf_at(const struct wf_ranks *ranks, int64_t leaf);
/* The registry and *parameter of the first norm that is not finite; -1: none, or one process. */
int wf_ranks_bad(const struct wf_ranks *ranks, int *parameter);
/* Ends the phase. `values`: sends the new values of this rank's shard and begins to receive those of the others. */
wf_status wf_ranks_publish(struct wf_ranks *ranks, bool values);
bool wf_ranks_are_late(const struct wf_ranks *ranks); /* whether values come while the next forward runs */
/* Waits for all values. *ranks->error's code; an error of a message replaces it. */
wf_status wf_ranks_settle(struct wf_ranks *ranks);

/* Rank 0 calls write(ctx, result), which may read the moments of all ranks through wf_ranks_source; meanwhile the others serve them, and
 * get rank 0's result. */
wf_status wf_ranks_gather_state(struct wf_ranks *ranks, void (*write)(void *ctx, int64_t result[2]), void *ctx, int64_t result[2]);
const struct wf_optimizer_source *wf_ranks_source(struct wf_ranks *ranks); /* NULL: all moments are here */

WF_END_DECLS

#endif
