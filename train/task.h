/* SPDX-License-Identifier: MIT */
/* Data and losses of wf_train, for each kind of model: language models and encoders (sequence.c), and translation models (translation.c).
 * The other files of wf_train work the same for all kinds. */
#ifndef WEFT_TRAIN_TASK_H
#define WEFT_TRAIN_TASK_H

#include <weft/fit.h>

struct trainer;

struct task {
    size_t size; /* bytes of the task's own struct, which t->data points to; wf_train allocates it and zeroes it */
    /* Checks options, opens tokenizers (tokenizers_open) and texts, and sets the trainer's hashes, numbers of tokens and `validates`. */
    wf_status (*open)(struct trainer *t, bool resuming);
    /* Reports findings about the texts, such as skipped pairs and unknown tokens (WF_EVENT_DATA, WF_EVENT_WARNING). */
    wf_status (*tell)(struct trainer *t);
    /* Frees the members of the task's struct. */
    void (*free)(struct trainer *t);
    /* The functions for wf_fit; their ctx is the trainer. The weight of a batch is the number of tokens that it predicts. validate uses
     * about t->valid_limit tokens of the validation text. It always sets value[LOSS]; with label smoothing also value[SMOOTHED]; and for a
     * translation with t->scores also value[BLEU] and value[CHRF]. Several processes share the work of a validation. */
    struct wf_task fit;
};
/* Indices of the metrics that a validation measures, and their number. */
enum { LOSS, SMOOTHED, BLEU, CHRF, METRICS };
extern const struct task language_task, translation_task, masked_task;

#endif
