/* SPDX-License-Identifier: MIT */
/* What language models and encoders are trained on: one long sequence of ids, of which an update takes crops. */
#ifndef WEFT_TRAIN_SEQUENCE_H
#define WEFT_TRAIN_SEQUENCE_H

#include <weft/batches.h>
#include <weft/corpus.h>

#include "trainer.h"

struct sequence {
    struct wf_corpus corpus;
    struct wf_crops crops;
    bool made; /* the tokenizer, from the training text */
};

/* The run's tokenizer or the given one; where neither is, one is trained on the training text, and, with `both`, on the validation text
 * too. */
wf_status sequence_tokenizer(struct trainer *t, struct sequence *s, bool resuming, bool both);
/* The ids of the texts, with the trainer's hashes and counts. */
wf_status sequence_encode(struct trainer *t, struct sequence *s);
/* Warns of a small vocabulary and of unknown tokens. */
wf_status sequence_tell(struct trainer *t, const struct sequence *s);
void sequence_free(struct sequence *s);

/* Micro-batch `micro` of a batch: its first row, and how many. */
int64_t sequence_rows(const struct trainer *t, int64_t micro, int64_t *first);
/* The ids of the largest of them. */
size_t sequence_room(const struct trainer *t);

#endif
