/* SPDX-License-Identifier: MIT */
/* Batches of pairs that several processes share: every process plans the whole batch but encodes only the micro-batches
 * (wf_pair_batches_part) that it computes. */
#ifndef WEFT_INTERNAL_PAIR_PARTS_H
#define WEFT_INTERNAL_PAIR_PARTS_H

#include <weft/bitext.h>

/* wf_pair_batches_next, but encodes only micro-batches begin .. end-1 of `parts`. The offsets of all pairs are set; the ids of pairs in
 * other micro-batches are not. */
wf_status wf_pair_batches_next_parts(wf_pair_batches *batches, int64_t begin, int64_t end, int64_t parts, struct wf_pairs *pairs,
                                     wf_error *error) WF_CHECKED;
/* Encodes micro-batches begin .. end-1 of `parts` of the last batch. After an error there is no last batch. */
wf_status wf_pair_batches_encode_parts(wf_pair_batches *batches, int64_t begin, int64_t end, int64_t parts, wf_error *error) WF_CHECKED;

#endif
