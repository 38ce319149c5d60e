/* SPDX-License-Identifier: MIT */
/* Progress of weft train: a bar on a terminal, plain lines elsewhere. */
#ifndef WEFT_CLI_TRAIN_PROGRESS_H
#define WEFT_CLI_TRAIN_PROGRESS_H

#include <weft/train.h>

#include "display.h"

struct training_progress {
    struct display display;
    bool begun;                  /* WF_EVENT_START was received: the training has begun */
    enum wf_precision precision; /* arithmetic of the training's products */
    double loss;                 /* running mean of the loss; NaN before the first update */
    double speed;                /* running mean of tokens per second; 0 before the first update */
};

/* Shows an event of the training; to be used as wf_train_options.event, with a struct training_progress as ctx. */
void show_training(void *progress, const struct wf_event *event);

#endif
