/* SPDX-License-Identifier: MIT */
/* The loop over the blocks of a model: each block gets the result of the block before it, its layer of the cache and its element of the
 * attention weights.
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
    int64_t index;       /* number of the block, from 0 */
    struct wf_kv *cache; /* the block's layer of the cache; NULL: no cache */
    wf_tensor **weights; /* where the block's attention stores its weights; NULL: the caller wants no weights */
    const void *ctx;     /* ctx of struct wf_blocks_options */
};
typedef wf_tensor *wf_block_forward(const void *block, wf_tensor *x, const struct wf_block_call *call);

struct wf_blocks_options {
    struct wf_cache *cache; /* has a layer for each block; the caller advances it with wf_cache_advance afterwards. NULL: no cache */
    wf_tensor **weights;    /* [count]: weights[i] receives the attention weights of block i. NULL: the caller wants no weights */
    const void *ctx;        /* passed on to the blocks */
    bool keep;              /* besides the result, the caller uses other tensors that the blocks make, such as a term of the loss */
    /* A mark that the caller took with wf_tape_here before it made x. With it the memory of a sublayer is freed after that sublayer, not
     * only after the whole block (see below). A model may set `since` if each block is a chain of sublayers wf_mha_forward,
     * wf_ffn_forward and wf_ssm_forward with .residual and a norm before or after each of them, and if it uses no tensor made since the
     * mark other than the residual sum; wf_release of such a tensor is allowed. All zeros: memory is freed after each block. */
    wf_tape_mark since;
};

/* Calls `forward` for `count` blocks in order, x -> forward(block 0, x) -> ... -> forward(block count-1, ...), and returns the last result.
 * The blocks are structs of `size` bytes that begin at `first`.
 *
 * Memory: if no op is recorded for a backward, as in WF_INFER, all tensors of a block except its result are dropped after the block
 * (wf_tape_compact), and with .since after each sublayer. So a model needs the memory of one block, or with .since of one sublayer. With
 * .weights or .keep nothing is dropped. WF_ERR_SHAPE on the tape: the cache has fewer than `count` layers.
 *
 * In a training with the setting checkpoint=true each block runs in wf_checkpoint. Everything that a block reads through ctx must then stay
 * valid until wf_backward, so let ctx be the model's struct or memory of wf_tape_memory (weft/op.h). With .keep such a training fails with
 * WF_ERR_ARGUMENT on the tape. */
WF_API wf_tensor *wf_blocks_forward_with(const void *first, size_t size, int64_t count, wf_block_forward *forward, wf_tensor *x,
                                         const struct wf_blocks_options *options);
#ifndef __cplusplus
#define wf_blocks_forward(first, count, forward, x, ...)                                                                                   \
    wf_blocks_forward_with(first, sizeof *(first), count, forward, x, &(struct wf_blocks_options){__VA_ARGS__})
#endif

WF_END_DECLS

#endif
