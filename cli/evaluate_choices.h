/* SPDX-License-Identifier: MIT */
/* The part of `weft evaluate` that is about multiple-choice questions. */
#ifndef WEFT_CLI_EVALUATE_CHOICES_H
#define WEFT_CLI_EVALUATE_CHOICES_H

#include <weft/choices.h>
#include <weft/internal/several.h>

struct choices {
    const char *file;    /* value of --choices; NULL: the command is about something else */
    const char *details; /* value of --details, the file for log-likelihoods; NULL: none */
    bool begins;         /* the tokens of the run's template are put before each context */
    struct wf_questions questions;
    double *log_likelihood; /* of all choices */
    struct wf_choice_scores scores;
};
/* Reads the questions. */
wf_status choices_open(struct choices *c, wf_error *error);
/* A hash of the questions. */
uint64_t choices_hash(const struct choices *c);
/* Scores the questions; rank 0 writes the details. */
wf_status choices_evaluate(struct choices *c, wf_dist *dist, const struct wf_run *run, wf_tape *tape, const struct wf_progress *progress,
                           wf_error *error);
/* Prints the result; `json`: as one JSON object. */
void choices_print(const struct choices *c, bool json);
void choices_close(struct choices *c);

#endif
