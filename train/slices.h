/* SPDX-License-Identifier: MIT */
/* Shards of a registry: the blocks that each rank owns.
 *
 * The blocks of all parameters of a registry are cut into pieces, in their order, and each piece into a share for each process. A process
 * adds, clips and updates its shares, and alone has their moments (ZeRO, stage 1: Rajbhandari et al. 2020). */
#ifndef WEFT_TRAIN_SLICES_H
#define WEFT_TRAIN_SLICES_H

#include <weft/internal/optimizer.h>
#include <weft/internal/transport.h>

struct fit;
struct slicing {
    struct fit *fit;
    const wf_registry *registry;
    struct wf_slice slice;
    int64_t blocks, pieces;
    struct wf_grads_block *block; /* [blocks]: of all parameters but buffers, frozen or not */
    double *partial;              /* [blocks]: of the norm, in the order of the processes */
    int64_t *at;                  /* [processes + 1]: where those of a process begin, bytes */
    int *transfer;                /* [pieces]: of values; -1: none is under way */
    int64_t arrived;              /* pieces of values before which none is under way; pieces: all are here */
};
/* Number of the first block of a process's share of a piece; process number `processes`: the end of the piece. */
int64_t slicing_bound(const struct slicing *s, int64_t piece, int process);
int64_t slicing_piece(const struct slicing *s, int64_t block);
int slicing_owner(const struct slicing *s, int64_t block);
/* The slicing of gradients that are shared. */
static inline const struct slicing *slicing_of(const wf_grads *grads)
{
    return grads->slice->ctx;
}
enum { SLICE_SHARE = 64 }; /* blocks of a share, about; 2 MiB in float */

/* Shares registry number k, which has gradients, among the ranks; nothing on one process, or if it is shared already. Its optimisers are
 * those of f->o, and later ones. */
wf_status slices_make(struct fit *f, int k, wf_registry *registry);
/* Gives each rank memory for all moments again. `whole`, the same on all ranks: gathers their values, too, also after a failure. If a rank
 * has no memory or is lost, moments of other ranks are 0. */
void slices_drop(struct fit *f, bool whole);
/* spread.c. After the optimisers: starts to gather the values of all shares, the first parameters first. An op waits for the values that
 * it reads; other readers call slices_settle. */
wf_status slices_values(struct fit *f, wf_grads *const *grads, int count);
bool slices_are_late(const struct fit *f); /* whether values come while the next forward runs */
wf_status slices_settle(struct fit *f);    /* f->error's code; no other error is lost */
/* The first parameter with a partial norm that is not finite, with its registry's name; NULL: none, or one process. */
const char *slices_bad(const struct fit *f, wf_grads *const *grads, int count, char text[], size_t size);
/* active: during the update of all ranks. Otherwise a norm is that of this rank's gradients. */
void slices_activate(struct fit *f, bool active);

/* spread.c, for slices.c: the gathering of moments, wf_slice.share, and the end of their memory. */
void slices_gather(struct fit *f, const struct slicing *s);
wf_status slices_partial(void *slicing, wf_grads *grads, wf_error *error);
void slices_free_messages(struct fit *f);

/* moments.c: a save. Rank 0 reads moments of other shards; the other ranks serve them until it has finished. */
struct wf_optimizer_source slices_source(struct fit *f);
wf_status slices_serve(struct fit *f);
wf_status slices_served(struct fit *f); /* rank 0: tells the others that it has finished */

#endif
