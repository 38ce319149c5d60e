/* SPDX-License-Identifier: MIT */
/* The batch of pairs of sequences that data/ makes and encoder-decoders take. */
#ifndef WEFT_PAIRS_H
#define WEFT_PAIRS_H

#include <weft/base.h>

/* Pairs of sentences as a model takes them: packed, end to end, without padding. Sentence i of the source is
 * source[source_offsets[i] .. source_offsets[i+1]-1]; the target's offsets hold for input (<s> y1 .. yn) and target
 * (y1 .. yn </s>) alike. */
struct wf_pairs {
    int64_t count;
    const int32_t *source, *source_offsets; /* offsets [count + 1] */
    const int32_t *input, *target, *target_offsets;
    int64_t first_source, first_target; /* ids of the whole batch that stand before these: of micro-batches */
};

#endif
