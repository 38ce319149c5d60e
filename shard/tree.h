/* SPDX-License-Identifier: MIT */
/* The gradients of an update, added as a binary tree.
 *
 * A leaf is the sum of the gradients of its micro-batches, added in order, in place. Two neighbouring leaves are added, then two
 * neighbouring pairs, up to the root. The order of the additions, and with it every bit, depends on the number of leaves only: any rank can
 * compute a whole leaf.
 *
 * As in a binary counter, the leaves of a rank need one more slab for each level, log2(leaves) in all. */
#ifndef WEFT_SHARD_TREE_H
#define WEFT_SHARD_TREE_H

#include <weft/internal/ranks.h>

/* The gradients of a registry in a sum, and which of them exist. */
struct tree_slab {
    wf_real *slab;
    bool *valid;
    int64_t count;
    int parameters;
};
/* Leaves first .. first + leaves - 1: a whole subtree. */
struct span {
    int64_t first, leaves;
};
/* Its sum. */
struct subtree {
    struct span span;
    struct tree_slab slab[WF_RANKS_REGISTRIES];
};
enum { TREE_LEVELS = 21 }; /* of a tree of 2^20 leaves */
struct ranks_tree {
    struct subtree held[2 * TREE_LEVELS]; /* earlier ones, in order, `count` of them; their memory stays for the next update */
    int count;
    int joins; /* held[count .. count + joins - 1] are still to be added to the last leaf, last one first */
};

/* Fills in the subtrees that leaves begin .. end - 1 make, in order, and returns their number: 1 if the leaves are a subtree, always fewer
 * than 2 TREE_LEVELS. */
int tree_spans(int64_t begin, int64_t end, struct span out[2 * TREE_LEVELS]);
/* Whether two spans, one after the other, are the halves of a subtree. */
bool tree_joins(struct span left, struct span right);
/* Before the first leaf of an update. */
void tree_begin(struct ranks_tree *t);
/* grads[count] hold the sum of leaf `leaf`, which is not the last. It is added to the subtrees that it completes and kept; grads are
 * zero afterwards. */
wf_status tree_add(struct ranks_tree *t, int64_t leaf, wf_grads *const *grads, int count, wf_error *error);
/* Leaf `leaf` is the last here: its gradients stay in grads, and the subtrees that it completes are added to them, by blocks as these are
 * ready or all at once. A gradient that only one of two subtrees has is copied, so that an empty micro-batch changes no bit (-0 + 0 is 0).
 */
void tree_last(struct ranks_tree *t, int64_t leaf);
void tree_join(const struct ranks_tree *t, int k, wf_grads *grads, int64_t begin, int64_t end); /* blocks begin .. end - 1, each once */
bool tree_valid(const struct ranks_tree *t, int k, const wf_grads *grads, int parameter);       /* the held subtrees included */
void tree_joined(struct ranks_tree *t, wf_grads *const *grads, int count);                      /* after all blocks */
void tree_free(struct ranks_tree *t);

#endif
