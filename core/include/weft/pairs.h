/* SPDX-License-Identifier: MIT */
/* A batch of sentence pairs, as data/ produces it and encoder-decoders take it. */
#ifndef WEFT_PAIRS_H
#define WEFT_PAIRS_H

#include <weft/base.h>

/* Sentence pairs, packed end to end without padding. Sentence i of the source is source[source_offsets[i] .. source_offsets[i+1]-1];
 * target_offsets applies to both the decoder's input (<s> y1 .. yn) and the target (y1 .. yn </s>). */
struct wf_pairs {
    int64_t count;
    const int32_t *source, *source_offsets; /* offsets [count + 1] */
    const int32_t *input, *target, *target_offsets;
    int64_t first_source, first_target; /* of a micro-batch: number of ids of the whole batch before it */
};

#endif
