/* SPDX-License-Identifier: MIT */
/* A training's events, as a bar on a terminal and as plain lines elsewhere. */
#ifndef WEFT_CLI_PROGRESS_H
#define WEFT_CLI_PROGRESS_H

#include <weft/train.h>

#include "display.h"

struct progress {
    struct display display;
    int64_t first; /* step at the start of this process; -1: not begun */
    double start;  /* seconds of getting ready, which say nothing about what is left */
    double loss;   /* running mean; NaN before the first update */
    double speed;
};
void progress_start(struct progress *p);
void progress_event(void *progress, const struct wf_event *event);
void progress_clear(struct progress *p);

#endif
