/* SPDX-License-Identifier: MIT */
/* Declarations that the files of the room share. A registry's blocks, in order, are cut into buckets, and each bucket into a share for each
 * rank; the shard of a rank is its shares of all buckets. A message carries a bucket or a share of it. */
#ifndef WEFT_SHARD_PRIVATE_H
#define WEFT_SHARD_PRIVATE_H

#include <weft/internal/dist.h>
#include <weft/internal/ranks.h>
#include <weft/internal/slab.h>

#include "tree.h"

/* --- layout.c: which rank owns which blocks ------------------------------------------------------------------------ */

struct ranks_layout {
    struct wf_ranks *ranks;
    const wf_registry *registry; /* NULL: not cut yet */
    struct wf_shard shard;
    int64_t blocks, buckets;
    struct wf_grads_block *block; /* [blocks]: of all parameters but buffers, frozen or not */
    double *partial;              /* [blocks]: of the norm, in the order of the ranks */
    int64_t *at;                  /* [size + 1]: offset of those of a rank, in bytes */
    int *transfer;                /* [buckets]: of values; -1: none is under way */
    int64_t arrived;              /* buckets of values, from the first on, that are here */
};
/* Number of the first block of a rank's share of a bucket; rank number `size`: the end of the bucket. */
int64_t layout_bound(const struct ranks_layout *l, int64_t bucket, int rank);
int64_t layout_bucket(const struct ranks_layout *l, int64_t block);
int layout_owner(const struct ranks_layout *l, int64_t block);
/* The layout of gradients that are cut. */
static inline struct ranks_layout *layout_of(const wf_grads *grads)
{
    return grads->shard->ctx;
}
void layouts_free(struct wf_ranks *ranks, bool whole); /* as wf_ranks_close */
void layouts_activate(struct wf_ranks *ranks, bool active);

/* --- ranks.c -------------------------------------------------------------------------------------------------------- */

/* After an error of the transport: the others get no message and end when this process ends. The error's code. */
wf_status ranks_lost(struct wf_ranks *ranks);
wf_status ranks_failed(struct wf_ranks *ranks, const wf_error *why); /* the same, with this error in place of an earlier one */
wf_status ranks_no_memory(struct wf_ranks *ranks);                   /* the same, for want of memory */

/* --- reduce.c: gradients, from all ranks to the owners of their blocks -----------------------------------------------
 *
 * From the last bucket to the first, each rank sends the gradients of its own leaves to the owners, and adds its own share in the order of
 * the tree. A bucket may go once the backward of the last leaf has finished the gradients in it, so that messages are under way while
 * the processor computes; WINDOW buckets at most, since messages need memory. With one subtree for each rank the messages have the bytes
 * of recursive halving, in one round. */

enum { WINDOW = 4 };
/* A subtree of a rank. */
struct rank_span {
    int rank;
    struct span span;
};
struct bucket {
    int k;          /* of the phase's gradients */
    int64_t *bound; /* [size + 1]: where the shares of the ranks begin, among the blocks of the gradients */
    int waits;      /* parameters in it whose gradients are not finished; 0: it may go */
};
/* A bucket whose messages are under way. */
struct under_way {
    int bucket;
    int transfer;
    wf_real *data;              /* received subtrees: [subtrees of others][the largest share] */
    unsigned char *has, *sends; /* a gradient exists: [received subtree][own block]; [own subtree][block] */
    struct wf_message *out, *in;
};
struct ranks_reduction {
    struct rank_span *span; /* the subtrees of all ranks, in the order of the leaves */
    int spans, own;         /* numbers of subtrees: of all ranks; of this rank */
    struct bucket *bucket;
    int64_t *bound;
    int buckets, bucket_room;
    struct {
        void (*ready)(void *ctx, int parameter); /* of the program */
        void *ctx;
        struct listener {
            struct wf_ranks *ranks;
            int k;
        } listener;
    } former[WF_RANKS_REGISTRIES];
    int next; /* bucket to send; below 0: all are sent */
    struct under_way slot[WINDOW];
    int first, in_flight; /* the ring of used slots */
    char *outcome;        /* of all ranks, one after the other */
    size_t outcome_room;
    int64_t *at; /* [size + 1]: where each begins */
};
wf_status reduction_begin(struct wf_ranks *ranks);
/* Around the backward of the last micro-batch: sends buckets as their gradients are finished. */
void reduction_listen(struct wf_ranks *ranks, bool on);
/* Sends the other buckets, and waits for all. */
wf_status reduction_end(struct wf_ranks *ranks);
void reduction_free(struct wf_ranks *ranks); /* it is made again by the next phase */
/* Whether own subtree i has a gradient of a parameter; false after a failure. */
bool reduction_has(const struct wf_ranks *ranks, int i, int k, int parameter);
struct wf_range own_leaves(const struct wf_ranks *ranks, int rank);

/* --- outcomes.c: the message of each rank at the end of a phase, apart from gradients -------------------------------- */

/* Scalars of all leaves, and which gradients exist; or a failure on all. */
wf_status outcomes_gather(struct wf_ranks *ranks);

/* --- gather.c: from owners to all ranks ----------------------------------------------------------------------------- */

wf_status gather_partial(void *layout, wf_grads *grads, wf_error *error); /* wf_shard.share */
wf_status gather_values(struct wf_ranks *ranks);                          /* begins; an op waits for the values that it reads */
void gather_moments(struct wf_ranks *ranks, const struct ranks_layout *l);
void gather_free(struct wf_ranks *ranks);

#endif
