/* SPDX-License-Identifier: MIT */
/* Between the trainers of tokenizers and the tokenizers that they make. */
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

/* The words of a text as the part would hand them to the model: word(ctx, bytes, length) for each, in order, valid during the call; false
 * ends it. WF_ERR_FORMAT leaves *fault at the first byte that is not UTF-8, the message to the caller. */
wf_status tokenizer_words(const struct part *pre_tokenizer, struct scratch *s, const char *text, int64_t length,
                          bool (*word)(void *ctx, const char *bytes, int64_t length), void *ctx, int64_t *fault) WF_CHECKED;

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

#endif
