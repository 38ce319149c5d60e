/* SPDX-License-Identifier: MIT */
/* Distinct pieces of text with a number each: the words of a corpus, the types of a vocabulary. Piece i is
 * bytes[start[i] .. start[i+1]-1]; pieces are numbered in the order in which they came. */
#ifndef WEFT_DATA_TOKENIZER_WORD_COUNTS_H
#define WEFT_DATA_TOKENIZER_WORD_COUNTS_H

#include "build.h"

struct word_counts {
    char *bytes;
    int64_t used, room;
    int64_t *start; /* [count + 1] */
    int64_t *times; /* [count] */
    int64_t count, capacity;
    uint64_t *slot; /* open addressing: upper half of the hash, number + 1 */
    int64_t slots;
};

/* The piece's number, after `times` was added to its count; a new one is appended. -1 without memory. */
int64_t word_counts_add(struct word_counts *counts, const char *piece, int64_t length, int64_t times);
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

/* Checks the numbers in the options and puts the special tokens (the kind's default without any) into an empty vocabulary. */
wf_status train_specials(const struct wf_tokenizer_options *options, struct word_counts *vocabulary, wf_error *error) WF_CHECKED;
/* Moves a vocabulary into a table. */
void train_table(struct word_counts *vocabulary, int64_t specials, struct tokenizer_table *out);

#endif
