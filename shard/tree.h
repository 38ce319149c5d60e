/* SPDX-License-Identifier: MIT */
/* Adds the gradients of an update in the order of a binary tree, so that the bits do not depend on the number of processes.
 *
 * A leaf is the sum of the gradients of its micro-batches, added in order and in place. Two neighbouring leaves are added, then two
 * neighbouring pairs, up to the root. The number of leaves alone decides which sums are added to which, so any rank can compute any leaf.
 *
 * A sum waits for its right neighbour as a bit of a binary counter waits for a carry. Few sums wait at a time: a rank needs one more
 * gradient slab for each level of the tree over its own leaves. */
#ifndef WEFT_SHARD_TREE_H
#define WEFT_SHARD_TREE_H

#include <weft/internal/ranks.h>

/* A sum of a registry's gradients. */
struct tree_slab {
    wf_real *slab;  /* [count], laid out as wf_grads.slab */
    bool *valid;    /* [parameters]: the sum has a gradient of the parameter */
    int64_t count;  /* elements of `slab` */
    int parameters; /* elements of `valid` */
};
/* Leaves first .. first + leaves - 1, which form a whole subtree. */
struct span {
    int64_t first, leaves;
};
/* A subtree whose sum is complete. */
struct subtree {
    struct span span;                           /* its leaves */
    struct tree_slab slab[WF_RANKS_REGISTRIES]; /* its sum, for each registry of the phase */
};
enum { TREE_LEVELS = 21 }; /* levels of the largest tree, which has 2^20 leaves */
struct ranks_tree {
    /* held[0 .. count - 1] are complete subtrees in the order of their leaves, which wait for their right neighbours. Unused elements keep
     * their memory for the next update. */
    struct subtree held[2 * TREE_LEVELS];
    int count;
    int joins; /* held[count .. count + joins - 1] will be added to the last leaf, the last element first */
};

/* Divides leaves begin .. end - 1 into whole subtrees that are as large as possible. Writes these to `out`, in the order of their leaves,
 * and returns their number, which is always less than 2 TREE_LEVELS. */
int tree_spans(int64_t begin, int64_t end, struct span out[2 * TREE_LEVELS]);
/* Whether `left` and `right` are the two halves of a subtree. */
bool tree_joins(struct span left, struct span right);
/* Called before the first leaf of an update. */
void tree_begin(struct ranks_tree *t);
/* grads[count] hold the sum of leaf `leaf`, which is not this rank's last leaf. Adds to it the sums of the held
 * subtrees that form a larger subtree with this leaf, moves the result into `held`, and zeroes grads. */
wf_status tree_add(struct ranks_tree *t, int64_t leaf, wf_grads *const *grads, int count, wf_error *error);
/* Announces that `leaf` is this rank's last leaf. Its gradients stay in grads, and tree_join adds to them the sums of the
 * held subtrees that form a larger subtree with the leaf. A gradient that only one of two subtrees has is copied, not added to 0, because
 * -0 + 0 is 0 and would change a bit. */
void tree_last(struct ranks_tree *t, int64_t leaf);
/* Adds the subtrees of tree_last to blocks begin .. end - 1 of the gradients of registry k of the phase. Each block must be joined once. */
void tree_join(const struct ranks_tree *t, int k, wf_grads *grads, int64_t begin, int64_t end);
/* Whether the sum of the last leaf and the subtrees of tree_last has a gradient of the parameter. */
bool tree_valid(const struct ranks_tree *t, int k, const wf_grads *grads, int parameter);
/* Called once tree_join has joined all blocks: updates grads->valid. */
void tree_joined(struct ranks_tree *t, wf_grads *const *grads, int count);
void tree_free(struct ranks_tree *t);

#endif
