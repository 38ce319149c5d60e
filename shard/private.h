/* SPDX-License-Identifier: MIT */
/* Declarations that the files of shard/ share.
 *
 * A registry's gradients are divided into blocks (struct wf_grads_block), and consecutive blocks form a bucket. Each bucket is divided into
 * one share for each rank; all of a bucket with parameters that an optimiser updates as a whole is the share of one rank. A rank's shard is
 * the union of its shares of all buckets. A bucket is sent in one transfer
 * (wf_dist_begin), whose messages carry shares of it. */
#ifndef WEFT_SHARD_PRIVATE_H
#define WEFT_SHARD_PRIVATE_H

#include <weft/internal/dist.h>
#include <weft/internal/ranks.h>
#include <weft/internal/slab.h>

#include "tree.h"

/* --- layout.c: which rank owns which blocks ------------------------------------------------------------------------ */

struct ranks_layout {
    struct wf_ranks *ranks;
    const wf_registry *registry; /* NULL: the registry has no shards yet */
    struct wf_shard shard;       /* this rank's shard of the registry */
    int64_t blocks;              /* number of blocks; frozen parameters have blocks too, buffers have none */
    int64_t buckets;             /* number of buckets */
    struct layout_bucket {
        int64_t begin; /* its first block */
        int owner;     /* the rank that owns all of its blocks; -1: they are divided among the ranks */
    } * bucket;        /* [buckets + 1]: the last one begins at `blocks` */
    int64_t bucket_room;
    struct wf_grads_block *block; /* [blocks] */
    double *partial;              /* [blocks]: sums of squares of the trained blocks' gradients, sorted by owner */
    int64_t *at;                  /* [size + 1]: byte offset of each rank's sums in `partial` */
    int *transfer;                /* [buckets]: number of the transfer of the bucket's new values; -1: the values have arrived */
    int64_t arrived;              /* the new values of buckets 0 .. arrived - 1 have arrived */
};
/* The first block of a rank's share of a bucket. For rank == size: the end of the bucket. */
int64_t layout_bound(const struct ranks_layout *l, int64_t bucket, int rank);
/* The bucket that contains a block. */
int64_t layout_bucket(const struct ranks_layout *l, int64_t block);
/* The rank that owns a block. */
int layout_owner(const struct ranks_layout *l, int64_t block);
/* The layout of gradients that have shards. */
static inline struct ranks_layout *layout_of(const wf_grads *grads)
{
    return grads->shard->ctx;
}
/* Removes the shards of all registries; `whole` as in wf_ranks_close. */
void layouts_free(struct wf_ranks *ranks, bool whole);
/* Sets wf_shard.active of all layouts: whether norms and optimisers use the sums of all ranks. */
void layouts_activate(struct wf_ranks *ranks, bool active);

/* --- ranks.c -------------------------------------------------------------------------------------------------------- */

/* If this rank has an error, marks it as lost: it sends no more messages, and its exit ends the other ranks (wf_dist_together). Returns the
 * error's code. */
wf_status ranks_lost(struct wf_ranks *ranks);
/* Replaces the error by *why, then acts as ranks_lost. */
wf_status ranks_failed(struct wf_ranks *ranks, const wf_error *why);
/* Sets WF_ERR_MEMORY, then acts as ranks_lost. */
wf_status ranks_no_memory(struct wf_ranks *ranks);

/* --- reduce.c: gradients, from all ranks to the owners of their blocks -----------------------------------------------
 *
 * Each rank sends the sums of its own leaves to the owners, from the last bucket to the first, because a backward usually finishes the
 * gradients of the last parameters first. The owner of a share adds the received sums in the order of the tree. A bucket is ready once the
 * backward of the rank's last micro-batch has finished all gradients in it, so messages travel while the processor computes. At most WINDOW
 * buckets are under way at a time, to limit the memory for messages. If the leaves of each rank form one subtree, the ranks send as many
 * bytes as with recursive halving, the usual algorithm for such sums, but in one round of messages instead of several. */

enum { WINDOW = 4 };
/* A whole subtree that one rank computes. */
struct rank_span {
    int rank;
    struct span span;
};
struct bucket {
    int k;          /* index of its registry's gradients in wf_ranks.grads */
    int64_t *bound; /* [size + 1]: rank r's share is the blocks bound[r] .. bound[r + 1] - 1 of these gradients */
    int waits;      /* parameters in the bucket whose gradients are not finished; 0: the bucket may be sent */
};
/* A bucket whose messages are under way. `sends` and `has` hold a flag for each block: whether the block has a gradient. Blocks without one
 * are sent too, but not added. */
struct under_way {
    int bucket;             /* index in ranks_reduction.bucket */
    int transfer;           /* number of the transfer (wf_dist_begin) */
    wf_real *data;          /* received gradients of this rank's share, one copy for each subtree of the other ranks */
    unsigned char *has;     /* [subtree of another rank][block of this rank's share]: received flags */
    unsigned char *sends;   /* [own subtree][block of the bucket]: flags to send */
    struct wf_message *out; /* messages to send: flags and gradients, for each own subtree and owner */
    struct wf_message *in;  /* messages to receive; in the same allocation as `out` */
};
struct ranks_reduction {
    struct rank_span *span; /* [spans]: the subtrees of all ranks, in the order of the leaves */
    int spans;              /* number of subtrees of all ranks */
    int own;                /* number of subtrees of this rank */
    struct bucket *bucket;  /* [buckets]: the buckets of the phase, registry by registry */
    int64_t *bound;         /* memory of all bucket[].bound */
    int buckets;            /* buckets of the present phase */
    int bucket_room;        /* buckets for which `bucket` and `bound` have memory */
    /* For each registry of the phase: the program's own wf_grads.ready and ready_ctx, which reduction_listen replaces and restores. */
    struct {
        void (*ready)(void *ctx, int parameter);
        void *ctx;
        struct listener {
            struct wf_ranks *ranks;
            int k;  /* index in wf_ranks.grads */
        } listener; /* the ready_ctx that replaces the program's */
    } former[WF_RANKS_REGISTRIES];
    int next;                      /* the next bucket to send, in the order from the last to the first; -1: all are sent */
    struct under_way slot[WINDOW]; /* a ring: buckets under way, in the order in which they were sent */
    int first;                     /* slot of the oldest bucket under way */
    int in_flight;                 /* number of buckets under way */
    char *outcome;                 /* outcomes.c: the outcomes of all ranks, one after the other */
    size_t outcome_room;           /* bytes of `outcome` */
    int64_t *at;                   /* [size + 1]: byte offset of each rank's outcome */
};
/* Plans the buckets of a phase. */
wf_status reduction_begin(struct wf_ranks *ranks);
/* Called with true before and with false after the backward of the rank's last micro-batch. In between, each bucket is sent as soon as its
 * gradients are finished. */
void reduction_listen(struct wf_ranks *ranks, bool on);
/* Sends the remaining buckets, adds all received gradients, and exchanges outcomes. */
wf_status reduction_end(struct wf_ranks *ranks);
/* Frees the reduction's memory. The next reduction_begin allocates it again. */
void reduction_free(struct wf_ranks *ranks);
/* Whether this rank's subtree i has a gradient of the parameter of grads[k]; false if this rank has an error. */
bool reduction_has(const struct wf_ranks *ranks, int i, int k, int parameter);
/* The leaves that a rank computes. */
struct wf_range own_leaves(const struct wf_ranks *ranks, int rank);

/* --- outcomes.c: each rank's message about the end of a phase --------------------------------------------------------- */

/* Exchanges status, scalars of the leaves, and which parameters have gradients. If one rank has failed, all ranks get an error. */
wf_status outcomes_gather(struct wf_ranks *ranks);

/* --- gather.c: data from the owners to all ranks --------------------------------------------------------------------- */

/* Fills in the elements of grads->partial that belong to the other ranks' blocks: their sums of squares. wf_shard.share points to this
 * function; `layout` is its ctx. */
wf_status gather_partial(void *layout, wf_grads *grads, wf_error *error);
/* Begins to send and receive new values. With wf_ranks.late_values each op waits for the values that it reads; otherwise this call waits
 * for all of them. */
wf_status gather_values(struct wf_ranks *ranks);
/* Fetches the moments that the other ranks hold for the registry's parameters. Stops at the first error. */
void gather_moments(struct wf_ranks *ranks, const struct ranks_layout *l);
/* Frees the lists of messages. */
void gather_free(struct wf_ranks *ranks);

#endif
