/* SPDX-License-Identifier: MIT */
/* The data of a training of the zoo: the part of wf_train that differs between language models, encoders (sequence.c) and translation
 * (translation.c). Everything else, from the schedule to the state, is the same for all and does not ask which it is. */
#ifndef WEFT_TRAIN_TASK_H
#define WEFT_TRAIN_TASK_H

#include <weft/fit.h>

struct trainer;

struct task {
    size_t size; /* bytes of the task's struct, t->data, zeroed */
    /* Options, tokenizers (tokenizers_open) and texts. Fills the trainer's hashes, counts of tokens and `validates`. */
    wf_status (*open)(struct trainer *t, bool resuming);
    /* Tells what was found in the texts (WF_EVENT_DATA, WF_EVENT_WARNING). */
    wf_status (*tell)(struct trainer *t);
    void (*free)(struct trainer *t); /* what the struct holds */
    /* The functions, with the trainer as their context. A batch's weight are the tokens that it predicts; validate fills value[LOSS] and
     * value[SMOOTHED] over about t->valid_limit tokens of the validation text, and of translation value[BLEU] and value[CHRF] where
     * t->scores; processes do it together. */
    struct wf_task fit;
};
enum { LOSS, SMOOTHED, BLEU, CHRF, METRICS };
extern const struct task language_task, translation_task, masked_task;

#endif
