/* SPDX-License-Identifier: MIT */
/* What a training trains on: the part of the loop that differs between language models, encoders (sequence.c) and translation
 * (translation.c). Everything else, from the schedule to the state, is the same for all and does not ask which it is. */
#ifndef WEFT_TRAIN_TASK_H
#define WEFT_TRAIN_TASK_H

#include <weft/safetensors.h>
#include <weft/tape.h>

struct trainer;
struct wf_evaluation;
struct wf_string;

struct task {
    size_t size; /* bytes of the task's struct, t->data, zeroed */
    /* Options, tokenizers (tokenizers_open) and texts. Fills the trainer's hashes, counts of tokens and `validates`. */
    wf_status (*open)(struct trainer *t, bool resuming);
    /* Tells what was found in the texts (WF_EVENT_DATA, WF_EVENT_WARNING). */
    wf_status (*tell)(struct trainer *t);
    /* Takes the batch of update t->step and sets t->step_tokens, the tokens that it predicts. */
    wf_status (*next)(struct trainer *t);
    /* Forward of micro-batch `micro` of that batch -> the loss on the tape, which is reset; *plain is the mean without smoothing. Both are
     * divided by the tokens of the whole batch, so that micro-batches add up. NULL: a part without anything in it. May be called
     * again, and gives the same. */
    wf_tensor *(*forward)(struct trainer *t, int64_t micro, wf_tensor **plain);
    /* The loss over about t->valid_limit tokens of the validation text. */
    wf_status (*evaluate)(struct trainer *t, struct wf_evaluation *out);
    /* Appends a text that the model writes now, for people to look at: the same for the same weights. Changes nothing of the training but
     * the tape. May be NULL. */
    wf_status (*sample)(struct trainer *t, struct wf_string *text, wf_error *error);
    /* The place in the data, into the state and out of it. May be NULL: the step says it all. */
    void (*put)(const struct trainer *t, wf_safetensors_writer *w);
    wf_status (*get)(struct trainer *t, const wf_safetensors *file, const char *path);
    void (*free)(struct trainer *t); /* what the struct holds */
};
extern const struct task language_task, translation_task, masked_task;

#endif
