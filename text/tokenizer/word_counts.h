/* SPDX-License-Identifier: MIT */
/* The distinct words of a corpus and how often each comes. */
#ifndef WEFT_TEXT_TOKENIZER_WORD_COUNTS_H
#define WEFT_TEXT_TOKENIZER_WORD_COUNTS_H

#include "build.h"

struct word_counts {
    struct vocab words;
    int64_t *times; /* [words.count] */
    int64_t times_room;
};

/* Adds `times` to the count of a word, which may be new. False without memory. */
bool word_counts_add(struct word_counts *counts, const char *word, int64_t length, int64_t times);
void word_counts_free(struct word_counts *counts); /* leaves it empty */

/* Counts the words of a source, each line by itself, on all threads. What comes out depends on the text alone but for the order of the
 * words. */
wf_status word_counts_read(const struct tokenizer_source *source, const struct wf_tokenizer_options *options, struct word_counts *out,
                           wf_error *error) WF_CHECKED;

/* --- what the trainers share --------------------------------------------------------------------------------------- */

/* Calls the caller's progress function at most ten times a second. */
struct train_clock {
    const struct wf_tokenizer_options *options;
    double last;
};
/* WF_ERR_CANCELLED, with its message, when the caller wants to stop. `always` calls it whatever the time: at the end of a phase. */
wf_status train_tick(struct train_clock *clock, const char *phase, int64_t done, int64_t total, bool always, wf_error *error) WF_CHECKED;

/* Calls block() with whole lines of the source, one block after the other, and the caller's progress function. */
struct wf_lines;
wf_status train_read(const struct tokenizer_source *source, const struct wf_tokenizer_options *options,
                     wf_status (*block)(void *ctx, const struct wf_lines *block, wf_error *error), void *ctx, wf_error *error) WF_CHECKED;

/* Checks the numbers in the options and puts the special tokens (the kind's default without any) into an empty vocabulary. */
wf_status train_specials(const struct wf_tokenizer_options *options, struct tokenizer_table *table, wf_error *error) WF_CHECKED;

#endif
