/* SPDX-License-Identifier: MIT */
/* Training: the trainers, what they share, and the tokenizers that they make. */
#ifndef WEFT_TEXT_TOKENIZER_BUILD_H
#define WEFT_TEXT_TOKENIZER_BUILD_H

#include "internal.h"

/* The tokenizer of a file's value (taken; NULL, or a jansson without memory since wf_json_memory_clear, is WF_ERR_MEMORY) with the
 * vocabulary and merges of a table, which is emptied. */
wf_status build_tokenizer(json_t *root, struct tokenizer_table *table, const char *where, wf_tokenizer **out, wf_error *error) WF_CHECKED;
json_t *build_added_token(const char *content, int64_t id);          /* a special one */
bool build_running_text(const struct wf_tokenizer_options *options); /* line ends are tokens */
/* How these options cut text: the pre-tokenizer, which lives as long as the tokenizer that is returned for that. NULL without memory. */
wf_tokenizer *build_cutter(const struct wf_tokenizer_options *options, const struct part **pre_tokenizer, wf_error *error) WF_CHECKED;

/* The trainers (bpe_train.c, char.c, word_train.c): from files, or from memory when count is 0. */
struct tokenizer_source {
    const char *const *path;
    int64_t count;
    const char *text;
    int64_t length;
};
wf_status tokenizer_train_bpe(const struct tokenizer_source *source, const struct wf_tokenizer_options *options,
                              struct tokenizer_table *out, wf_error *error) WF_CHECKED;
wf_status char_train(const struct tokenizer_source *source, const struct wf_tokenizer_options *options, struct tokenizer_table *out,
                     wf_error *error) WF_CHECKED;
wf_status tokenizer_train_word(const struct tokenizer_source *source, const struct wf_tokenizer_options *options,
                               struct tokenizer_table *out, wf_error *error) WF_CHECKED;

/* The distinct words of a corpus and how often each occurs. */
struct word_counts {
    struct vocab words;
    int64_t *times; /* [words.count] */
    int64_t times_room;
};

void word_counts_free(struct word_counts *counts); /* leaves it empty */

/* Counts the words of a source, each line by itself, on all threads. The number of threads changes only the order of the words. */
wf_status word_counts_read(const struct tokenizer_source *source, const struct wf_tokenizer_options *options, struct word_counts *out,
                           wf_error *error) WF_CHECKED;

/* Calls the caller's progress function at most ten times a second. */
struct train_clock {
    const struct wf_tokenizer_options *options;
    double last;
};
/* WF_ERR_CANCELLED, with its message, when the caller wants to stop. With `always` the caller is asked even if it was asked just before: at
 * the end of a phase. */
wf_status train_tick(struct train_clock *clock, const char *phase, int64_t done, int64_t total, bool always, wf_error *error) WF_CHECKED;

/* Calls block() with whole lines of the source, one block after the other, and the caller's progress function. */
struct wf_lines;
wf_status train_read(const struct tokenizer_source *source, const struct wf_tokenizer_options *options,
                     wf_status (*block)(void *ctx, const struct wf_lines *block, wf_error *error), void *ctx, wf_error *error) WF_CHECKED;

/* Checks the numbers in the options and puts the special tokens (the kind's default without any) into an empty vocabulary. */
wf_status train_specials(const struct wf_tokenizer_options *options, struct tokenizer_table *table, wf_error *error) WF_CHECKED;

#endif
