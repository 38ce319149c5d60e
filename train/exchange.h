/* SPDX-License-Identifier: MIT */
/* The gradients of several processes. Each has computed the leaves of its part of the tree; each block of the sum is added by its owner
 * (slices.h).
 *
 * Piece by piece, from the last one to the first, each process sends to every owner what the owner lacks of the piece, and adds up its own
 * share in the order of the tree. A piece may go once the backward of the last leaf has finished the gradients in it, so that messages are
 * under way while the processor computes; WINDOW pieces at most, since messages need memory. With one subtree for each process the
 * messages have the bytes of recursive halving, in one round. */
#ifndef WEFT_TRAIN_EXCHANGE_H
#define WEFT_TRAIN_EXCHANGE_H

#include <weft/internal/transport.h>

#include "slices.h"
#include "tree.h"

/* A subtree of a rank. */
struct sent {
    int rank;
    struct span span;
};
/* A piece of a registry's gradients. */
struct piece {
    int k;          /* of the update's gradients */
    int64_t *bound; /* [processes + 1]: where the blocks of the owners begin, among those of the gradients */
    int waits;      /* parameters in it whose gradients are not finished; 0: it may go */
};
/* A piece that is under way. */
struct under_way {
    int piece;
    int transfer;
    wf_real *data;              /* received subtrees: [subtrees of others][the largest share] */
    unsigned char *has, *sends; /* whether gradients exist: in received subtrees; in own ones, for all owners */
    struct wf_message *out, *in;
};
enum { WINDOW = 4 };
struct exchange {
    struct sent *span; /* the subtrees of all processes, in the order of the leaves */
    int spans, own;    /* own: of this process */
    struct piece *piece;
    int64_t *bound;
    int pieces, piece_room, count;
    wf_grads *grads[WF_FIT_REGISTRIES];
    struct {
        void (*ready)(void *ctx, int parameter); /* of the program */
        void *ctx;
        struct exchange_listener {
            struct fit *fit;
            int k;
        } listener;
    } heard[WF_FIT_REGISTRIES];
    int next; /* the piece that goes next; below 0: all have gone */
    struct under_way slot[WINDOW];
    int first, going; /* of the slots, in order */
    char *record;     /* of all processes, one after the other */
    size_t record_room;
    int64_t *at; /* [processes + 1]: where each begins */
};

struct leaves_of {
    int64_t begin, end;
};
struct leaves_of together_leaves(const struct fit *f, int rank); /* contiguous, and about evenly divided */

/* A phase of an update on several ranks, in this order on each; nothing on one. */
wf_status exchange_begin(struct fit *f, wf_grads *const *grads, int count);
/* Around the backward of the last micro-batch of the last leaf: sends pieces as they are finished. */
void exchange_listen(struct fit *f, bool on);
/* After the leaves, even if they failed here: the sums of this rank's share and f->leaf of all ranks, or a failure on all. */
wf_status exchange_end(struct fit *f);
void exchange_free(struct exchange *x);

/* For records.c. Whether own subtree i has a gradient of registry k's parameter; nothing after a failure. */
bool exchange_valid(const struct fit *f, int i, int k, int parameter);
wf_status exchange_no_memory(struct fit *f);
/* records.c: f->leaf of all ranks, and which gradients exist; or a failure on all. */
wf_status records_pass(struct fit *f);

#endif
