/* SPDX-License-Identifier: MIT */
/* Progress of weft train: a bar on a terminal, plain lines elsewhere. */
#ifndef WEFT_CLI_TRAIN_PROGRESS_H
#define WEFT_CLI_TRAIN_PROGRESS_H

#include <weft/train.h>

#include "display.h"

struct training_progress {
    struct display display;
    bool begun;
    double loss; /* running mean; NaN before the first update */
    double speed;
};

void show_training(void *progress, const struct wf_event *event); /* for wf_train_options.event */

#endif
