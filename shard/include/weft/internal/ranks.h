/* SPDX-License-Identifier: MIT */
/* Training on several processes, for a training loop. The loop is written as for one process and calls these functions at fixed points. On
 * one process the functions only add up the gradients of micro-batches.
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
 * Order of additions: the micro-batches of a batch are divided among the leaves of a binary tree. The gradients of a leaf's micro-batches
 * are added in order. Then neighbouring leaves are added, then neighbouring pairs, up to the root. This order, and so the bits of the sum,
 * depends only on `accumulate` and `leaves`, not on the number of processes.
 *
 * Shards (ZeRO, stage 1: Rajbhandari et al. 2020): each rank owns a shard of the parameters. Only the owner adds up the gradients of the
 * shard, holds the optimisers' moments of its parameters, clips and updates. It then sends the new values to the other ranks.
 *
 * Changes of persistent buffers (wf_running_average) are collected for each leaf, and sent with its scalars. wf_ranks_finish joins them in
 * the order of the leaves, on every rank, so that the optimisers' steps change the buffers of all ranks in the same way.
 *
 * Errors: *ranks->error holds the first error, and every function returns its code. A later error of the transport replaces it. The
 * caller's own functions use the same error. A rank with an error still makes the remaining calls of its phase, because the other ranks
 * learn of the error in wf_ranks_finish. */
#ifndef WEFT_INTERNAL_RANKS_H
#define WEFT_INTERNAL_RANKS_H

#include <weft/dist.h>
#include <weft/internal/optimizer.h>

WF_BEGIN_DECLS

/* The largest numbers of registries and of optimisers in struct wf_ranks. */
enum { WF_RANKS_REGISTRIES = 16, WF_RANKS_OPTIMIZERS = 16 };

struct wf_ranks {
    /* Set by the caller before wf_ranks_open. */
    wf_error *error;
    size_t leaf_bytes;                          /* size of the caller's struct of scalars for one leaf: wf_ranks_leaf */
    void (*waits)(void *ctx, const char *text); /* reports a long wait for another rank; called on rank 0; may be NULL */
    void *ctx;                                  /* first argument of `waits` */
    /* Set by the caller before wf_ranks_shard, the same on all ranks. */
    wf_registry *registry[WF_RANKS_REGISTRIES];
    struct wf_optimizer *optimizer[WF_RANKS_OPTIMIZERS];
    int registries; /* used elements of `registry` */
    int optimizers; /* used elements of `optimizer` */
    /* The rule of an optimiser that will be initialised after wf_ranks_shard, and the argument of its functions; NULL: there is none. The
     * parameters that it updates as a whole, and those of the optimisers in `optimizer`, get one owner each. */
    const struct wf_optimizer_rule *rule;
    void *rule_ctx;
    bool no_overlap;  /* messages are sent only while nothing is computed */
    bool late_values; /* new values may arrive while the next forward runs; each op waits for the values that it reads */

    /* Read-only for the caller. */
    wf_dist *dist;
    int rank;           /* number of this process */
    int size;           /* number of processes; set it to 1 if you read it before wf_ranks_open */
    int64_t accumulate; /* micro-batches of a batch, set by wf_ranks_cut */
    int64_t leaves;     /* leaves of the reduction tree, set by wf_ranks_cut */

    /* Private. */
    bool open;                  /* there are other ranks, and wf_ranks_close has not been called */
    bool follows;               /* this rank's error only repeats that another rank has failed */
    bool agreed;                /* all ranks have this error */
    bool lost;                  /* the transport or this rank has failed: no more messages, so other ranks do not learn of the error */
    struct wf_dist_watch watch; /* the program's own settings of wf_dist_watch, which wf_ranks_close restores */
    wf_grads *grads[WF_RANKS_REGISTRIES]; /* gradients that the present phase trains */
    int count;                            /* used elements of `grads` */
    size_t
        leaf_size; /* bytes of a leaf: the caller's scalars, and the changes of buffers (weft/internal/averages.h) of its micro-batches */
    char *leaf;    /* [leaves][leaf_size] */
    struct ranks_layout *layout; /* [WF_RANKS_REGISTRIES]; NULL on one process */
    struct ranks_tree *tree;
    struct ranks_reduction *reduction;
    struct ranks_messages *messages;
    struct wf_optimizer_source source;
};
/* Micro-batches or leaves begin .. end - 1. */
struct wf_range {
    int64_t begin, end;
};

/* Connects this process with the other processes of the same mpirun. */
wf_status wf_ranks_open(struct wf_ranks *ranks);
/* Frees everything, and gives each optimiser memory for all moments again. `whole`, the same on all ranks: also fetches the moments of the
 * other shards, even after a failed training. Without `whole`, or if a rank has no memory or is lost, those moments are 0. */
void wf_ranks_close(struct wf_ranks *ranks, bool whole);

/* Agrees on one outcome: if any rank has an error, all ranks get an error. */
wf_status wf_ranks_agree(struct wf_ranks *ranks);
/* Clears an error that wf_ranks_agree has given to all ranks, so that training can go on. */
void wf_ranks_clear_error(struct wf_ranks *ranks);
/* Compares settings that must be the same on all ranks (wf_dist_compare). If they differ, all ranks get the error. Frees `words`. */
wf_status wf_ranks_compare(struct wf_ranks *ranks, struct wf_string *words);
/* Copies rank 0's `bytes` bytes of `data` to all ranks. */
wf_status wf_ranks_broadcast(struct wf_ranks *ranks, void *data, int64_t bytes);
/* A barrier for long waits: a waiting rank sleeps instead of polling. */
void wf_ranks_rest(struct wf_ranks *ranks);

/* The default number of leaves for `accumulate` micro-batches: the largest power of two up to 8 that divides `accumulate`. */
int64_t wf_leaves(int64_t accumulate);
/* The number of leaves for a resume. `asked` is the caller's choice; if it is 0, `was`, the number in the state, is used. If `was` does not
 * fit `accumulate`, the default is used. Old states have `was` 0, which means 1. */
int64_t wf_leaves_again(int64_t asked, int64_t was, int64_t accumulate);
/* Whether `leaves` is a power of two that divides `accumulate`. */
bool wf_leaves_fit(int64_t leaves, int64_t accumulate);
/* Sets the number of micro-batches and of leaves of each batch. `leaves` divides `accumulate` and is at least the number of ranks. Called
 * once, when ranks->registry is set. */
wf_status wf_ranks_cut(struct wf_ranks *ranks, int64_t accumulate, int64_t leaves);
/* The micro-batches of this rank: contiguous, and about the same number on each rank. Call wf_ranks_cut first. */
struct wf_range wf_ranks_mine(const struct wf_ranks *ranks);

/* Divides those registries of ranks->registry that have gradients into shards, and keeps in the optimisers of ranks->optimizer only this
 * rank's moments. An optimiser initialised later allocates moments for the shard only. Skips registries that have shards already. Does
 * nothing on one process. */
wf_status wf_ranks_shard(struct wf_ranks *ranks);

/* Begins a phase of an update. grads[count] are the gradients of the registries that the phase trains; the caller has zeroed them. */
wf_status wf_ranks_begin(struct wf_ranks *ranks, wf_grads *const *grads, int count);
/* The scalars of the leaf that contains micro-batch i, to add to. The call for the leaf's first micro-batch zeroes them. */
void *wf_ranks_leaf(struct wf_ranks *ranks, int64_t i);
/* wf_backward for micro-batch i. While the last one of this rank runs, gradients are sent as soon as they are finished. */
wf_status wf_ranks_backward(struct wf_ranks *ranks, int64_t i, wf_tensor *loss);
/* Called after micro-batch i, even if it had no backward. If i is the last of its leaf, adds the leaf to the tree. */
wf_status wf_ranks_add(struct wf_ranks *ranks, int64_t i);
/* Completes the sums: afterwards this rank's shard has the gradients of the whole batch, and the scalars of all leaves and the changes of
 * buffers are known. If one
 * rank has failed, all ranks get an error. From here to wf_ranks_publish, gradient norms are those of the whole batch, and an optimiser
 * updates this rank's shard. */
wf_status wf_ranks_finish(struct wf_ranks *ranks);
/* The scalars of leaf number `leaf`, 0 <= leaf < ranks->leaves, whichever rank computed them. Call after wf_ranks_finish. */
const void *wf_ranks_leaf_at(const struct wf_ranks *ranks, int64_t leaf);
/* Finds the first gradient that is not finite, on any rank, after clipping has computed the norms. Returns the index of its registry and
 * sets *parameter. Returns -1 if all gradients are finite, or on one process. */
int wf_ranks_bad(const struct wf_ranks *ranks, int *parameter);
/* Ends the phase. `values`: sends the new values of this rank's shard, and begins to receive the values of the other shards. */
wf_status wf_ranks_publish(struct wf_ranks *ranks, bool values);
/* Whether new values arrive while the next forward runs: .late_values on several processes, without .no_overlap. */
bool wf_ranks_are_late(const struct wf_ranks *ranks);
/* Waits until all new values have arrived. */
wf_status wf_ranks_settle(struct wf_ranks *ranks);

/* Rank 0 calls write(ctx, result), which may read moments of all shards through wf_ranks_source. Meanwhile the other ranks send the moments
 * that rank 0 asks for. All ranks return rank 0's `result`. */
wf_status wf_ranks_gather_state(struct wf_ranks *ranks, void (*write)(void *ctx, int64_t result[2]), void *ctx, int64_t result[2]);
/* The argument `source` of wf_optimizer_save_from; NULL on one process, which has all moments. */
const struct wf_optimizer_source *wf_ranks_source(struct wf_ranks *ranks);

WF_END_DECLS

#endif
