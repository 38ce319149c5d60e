/* SPDX-License-Identifier: MIT */
/* What language models and encoders are trained on: one long sequence of ids, of which an update takes crops. */
#ifndef WEFT_TRAIN_SEQUENCE_H
#define WEFT_TRAIN_SEQUENCE_H

#include <weft/batches.h>
#include <weft/corpus.h>

#include "trainer.h"

struct sequence {
    struct wf_text train_text, valid_text; /* until they are ids */
    struct wf_corpus corpus;
    struct wf_crops crops;
    bool made; /* the tokenizer, from the training text */
};

/* The texts, and the run's tokenizer or the given one; where neither is, one is made of the training text, and, with `both`, of the
 * validation text too. */
wf_status sequence_read(struct trainer *t, struct sequence *s, bool resuming, bool both);
/* Their ids, with the trainer's hashes and counts, which take the place of the texts. */
wf_status sequence_encode(struct trainer *t, struct sequence *s);
void sequence_free(struct sequence *s);

/* Micro-batch `micro` of a batch: its first row, and how many. */
int64_t sequence_rows(const struct trainer *t, int64_t micro, int64_t *first);
/* The ids of the largest of them. */
size_t sequence_room(const struct trainer *t);

#endif
