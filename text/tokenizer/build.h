/* SPDX-License-Identifier: MIT */
/* Inside the room: between the trainers of tokenizers and the tokenizers that they make. */
#ifndef WEFT_DATA_TOKENIZER_BUILD_H
#define WEFT_DATA_TOKENIZER_BUILD_H

#include <weft/tokenizer.h>

/* A vocabulary in the making: piece i is bytes[start[i] .. start[i+1]-1]; the first `specials` of them are special tokens. Of byte
 * BPE the pieces are in the printable form of the file (GPT-2's 256 characters). */
struct tokenizer_table {
    struct wf_string bytes;
    int64_t *start; /* [count + 1] */
    int64_t count, specials;
    struct tokenizer_merge {
        int32_t left, right; /* pieces; their join is a piece too */
    } * merge;               /* best first */
    int64_t merges;
};
void tokenizer_table_free(struct tokenizer_table *table);

/* The tokenizer of a table, with the normalizer (none), pre-tokenizer, decoder and template (BOS ... EOS where the specials have them) that
 * the options mean. Takes the table over, also on failure. */
wf_status tokenizer_of_table(const struct wf_tokenizer_options *options, struct tokenizer_table *table, wf_tokenizer **out,
                             wf_error *error) WF_CHECKED;

/* The words of a text as encoding by these options would hand them to the model: word(ctx, bytes, length) for each, in order, valid during
 * the call; false ends it. WF_ERR_FORMAT leaves *fault at the first byte that is not UTF-8, the message to the caller. */
wf_status tokenizer_words(const struct wf_tokenizer_options *options, const char *text, int64_t length,
                          bool (*word)(void *ctx, const char *bytes, int64_t length), void *ctx, int64_t *fault) WF_CHECKED;

/* The trainers (bpe_train.c, word_train.c): from files, or from memory when count is 0. */
struct tokenizer_source {
    const char *const *path;
    int64_t count;
    const char *text;
    int64_t length;
};
wf_status tokenizer_train_bpe(const struct tokenizer_source *source, const struct wf_tokenizer_options *options,
                              struct tokenizer_table *out, wf_error *error) WF_CHECKED;
wf_status tokenizer_train_word(const struct tokenizer_source *source, const struct wf_tokenizer_options *options,
                               struct tokenizer_table *out, wf_error *error) WF_CHECKED;

#endif
