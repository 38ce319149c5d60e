/* SPDX-License-Identifier: MIT */
/* Batches of pairs for processes that need some of their parts only (wf_pair_batches_part): all plan the whole batch, each encodes its
 * parts.
 */
#ifndef WEFT_INTERNAL_PAIR_PARTS_H
#define WEFT_INTERNAL_PAIR_PARTS_H

#include <weft/bitext.h>

/* wf_pair_batches_next that encodes parts begin .. end - 1 of `parts`: the ids of other pairs are not set, their offsets are. */
wf_status wf_pair_batches_next_parts(wf_pair_batches *batches, int64_t begin, int64_t end, int64_t parts, struct wf_pairs *pairs,
                                     wf_error *error) WF_CHECKED;
/* Encodes such parts of the last batch. After an error there is no last batch. */
wf_status wf_pair_batches_encode_parts(wf_pair_batches *batches, int64_t begin, int64_t end, int64_t parts, wf_error *error) WF_CHECKED;

#endif
