/* SPDX-License-Identifier: MIT */
/* Training: the trainers, what they share, and functions that make tokenizers from their results. */
#ifndef WEFT_TEXT_TOKENIZER_BUILD_H
#define WEFT_TEXT_TOKENIZER_BUILD_H

#include "internal.h"

/* Makes a tokenizer from the JSON value of a file, with the vocabulary and merges of `table`. Releases `root` and empties `table`.
 * WF_ERR_MEMORY if `root` is NULL, or if jansson lacked memory since the last wf_json_memory_clear. */
wf_status build_tokenizer(json_t *root, struct tokenizer_table *table, const char *where, wf_tokenizer **out, wf_error *error) WF_CHECKED;
json_t *build_added_token(const char *content, int64_t id);          /* the JSON of a special token */
bool build_running_text(const struct wf_tokenizer_options *options); /* whether line ends become tokens */
/* Sets *pre_tokenizer to the pre-tokenizer for these options. Returns an otherwise empty tokenizer, which owns it; NULL on an error. */
wf_tokenizer *build_cutter(const struct wf_tokenizer_options *options, const struct part **pre_tokenizer, wf_error *error) WF_CHECKED;

/* The trainers (bpe_train.c, char.c, word_train.c). A source is `count` files, or the text in memory if count is 0. */
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

/* The distinct words of a corpus, and how often each occurs. */
struct word_counts {
    struct vocab words;
    int64_t *times; /* [words.count]: number of occurrences of each word */
    int64_t times_room;
};

void word_counts_free(struct word_counts *counts); /* frees the memory and leaves *counts empty */

/* Counts the words of a source, line by line, on all threads. The number of threads affects only the order of the words. */
wf_status word_counts_read(const struct tokenizer_source *source, const struct wf_tokenizer_options *options, struct word_counts *out,
                           wf_error *error) WF_CHECKED;

/* Limits calls of the user's progress function to ten per second. */
struct train_clock {
    const struct wf_tokenizer_options *options;
    double last;
};
/* Calls the user's progress function if it is due, or in any case with `always`, as when all text is read or all merges are made.
 * WF_ERR_CANCELLED if the function returns false. */
wf_status train_tick(struct train_clock *clock, const char *phase, int64_t done, int64_t total, bool always, wf_error *error) WF_CHECKED;

/* Reads a source in blocks of whole lines (a line longer than a block is divided), and calls block() and the user's progress function for
 * each block. */
struct wf_lines;
wf_status train_read(const struct tokenizer_source *source, const struct wf_tokenizer_options *options,
                     wf_status (*block)(void *ctx, const struct wf_lines *block, wf_error *error), void *ctx, wf_error *error) WF_CHECKED;

/* Checks the numbers in the options, and adds the special tokens to an empty vocabulary. If the options have none (`specials` is NULL), the
 * default special tokens of the kind are added. */
wf_status train_specials(const struct wf_tokenizer_options *options, struct tokenizer_table *table, wf_error *error) WF_CHECKED;

#endif
