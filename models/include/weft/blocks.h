/* SPDX-License-Identifier: MIT */
/* A stack of blocks: the loop that hands x from one to the next, with each block's slot of the cache and of the attention weights.
 *
 *   static wf_tensor *block_forward(const void *block, wf_tensor *x, const struct wf_block_call *call)
 *   {
 *       const struct block *b = block;
 *       x = wf_mha_forward(&b->attn, wf_rms_norm_forward(&b->norm1, x), .causal = true, .cache = call->cache, .weights = call->weights,
 *                          .residual = x);
 *       return wf_ffn_forward(&b->ffn, wf_rms_norm_forward(&b->norm2, x), .residual = x);
 *   }
 *   ...
 *   x = wf_blocks_forward(m->block, m->layers, block_forward, x, .cache = cache, .weights = weights);
 */
#ifndef WEFT_BLOCKS_H
#define WEFT_BLOCKS_H

#include <weft/cache.h>
#include <weft/tape.h>

WF_BEGIN_DECLS

/* The arguments of a block besides its struct and x. */
struct wf_block_call {
    int64_t index;       /* of the block, from 0 */
    struct wf_kv *cache; /* of this block; NULL: no cache */
    wf_tensor **weights; /* where its attention puts its weights; NULL: nowhere */
    const void *ctx;     /* of the options */
};
typedef wf_tensor *wf_block_forward(const void *block, wf_tensor *x, const struct wf_block_call *call);

struct wf_blocks_options {
    struct wf_cache *cache; /* with a layer for each block, or NULL; wf_cache_advance is up to the caller */
    wf_tensor **weights;    /* [count], to be set to attention weights, or NULL */
    const void *ctx;
    /* Tensors that blocks make are used after them, as a term of the loss is. */
    bool keep;
    /* A mark from before x was made. Zeros: x is older than all that is dropped. With a mark no tensor made since may be used, but in a
     * sublayer: by wf_mha_forward and wf_ffn_forward with .residual, and the norm before or after them. Their sum alone goes on to the next
     * one. */
    wf_tape_mark since;
};

/* forward(block i, ... forward(block 0, x)), for `count` structs of `size` bytes from `first` on. Of what a block makes its result alone
 * is used later: where nothing is recorded, in WF_INFER, the rest is dropped after each block (wf_tape_compact), and with .since after each
 * sublayer, so that the memory is that of one. With .weights or .keep nothing is dropped. WF_ERR_SHAPE on the tape: the cache has fewer
 * layers.
 *
 * In a training with the setting checkpoint=true each block runs in wf_checkpoint: what it reads through ctx must stay until wf_backward,
 * so ctx is the model's struct, or memory of wf_tape_memory (weft/op.h). WF_ERR_ARGUMENT with .keep. */
WF_API wf_tensor *wf_blocks_forward_with(const void *first, size_t size, int64_t count, wf_block_forward *forward, wf_tensor *x,
                                         const struct wf_blocks_options *options);
#ifndef __cplusplus
#define wf_blocks_forward(first, count, forward, x, ...)                                                                                   \
    wf_blocks_forward_with(first, sizeof *(first), count, forward, x, &(struct wf_blocks_options){__VA_ARGS__})
#endif

WF_END_DECLS

#endif
