/* SPDX-License-Identifier: MIT */
/* The struct for the sentence pairs of a batch, or of one of its micro-batches. Readers of data fill it, and encoder-decoder models take
 * it. */
#ifndef WEFT_PAIRS_H
#define WEFT_PAIRS_H

#include <weft/base.h>

/* `count` sentence pairs, packed end to end without padding. Sentence i of the source is source[source_offsets[i] ..
 * source_offsets[i+1]-1]. target_offsets gives in the same way the sentences of both `input`, the decoder's input (<s> y1 .. yn), and
 * `target`, what it has to predict (y1 .. yn </s>). */
struct wf_pairs {
    int64_t count;
    const int32_t *source;
    const int32_t *source_offsets; /* [count + 1] */
    const int32_t *input;
    const int32_t *target;
    const int32_t *target_offsets; /* [count + 1] */
    int64_t first_source;          /* number of source ids in the batch's earlier micro-batches; 0 for a whole batch */
    int64_t first_target;          /* number of target ids in the batch's earlier micro-batches; 0 for a whole batch */
};

#endif
