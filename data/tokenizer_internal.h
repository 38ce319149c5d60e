/* SPDX-License-Identifier: MIT */
/* Inside the room: what a kind of tokenizer is made of. A kind is a file (tokenizer_KIND.c) with one tokenizer_kind. */
#ifndef WEFT_DATA_TOKENIZER_INTERNAL_H
#define WEFT_DATA_TOKENIZER_INTERNAL_H

#include <jansson.h>

#include <weft/tokenizer.h>

/* Where encoding failed; `point` is the character that the vocabulary lacks, or NOT_UTF8. */
struct encode_fault {
    int64_t offset;
    uint32_t point;
};
enum { NOT_UTF8 = 0x110000 };

struct tokenizer_kind {
    const char *name;
    /* `where` stands for the file in messages. All but train and parse take a tokenizer of their kind. WF_ERR_FORMAT from encode means that
     * *fault is set; WF_ERR_MEMORY leaves the message to the caller. */
    wf_status (*train)(const char *text, int64_t length, const struct wf_tokenizer_options *options, wf_tokenizer **out, wf_error *error);
    wf_status (*parse)(json_t *vocab, const char *where, wf_tokenizer **out, wf_error *error); /* of the file's model */
    wf_status (*encode)(const wf_tokenizer *tokenizer, const char *text, int64_t length, struct wf_tokens *out, struct encode_fault *fault);
    wf_status (*decode)(const wf_tokenizer *tokenizer, const int32_t *ids, int64_t count, struct wf_string *out);
    int32_t (*id)(const wf_tokenizer *tokenizer, const char *piece, int64_t length);
    const char *(*token)(const wf_tokenizer *tokenizer, int32_t id, int64_t *length);
    void (*free)(wf_tokenizer *tokenizer);
};
extern const struct tokenizer_kind tokenizer_char;

/* The head of every kind's struct. */
struct wf_tokenizer {
    wf_tokenizer_kind kind;
    int64_t vocab_size;
};

/* Encodes with the place of a fault instead of a message. */
wf_status tokenizer_encode(const wf_tokenizer *tokenizer, const char *text, int64_t length, struct wf_tokens *out,
                           struct encode_fault *fault);
/* The message for a fault at `place`. */
wf_status tokenizer_fault(const wf_tokenizer *tokenizer, const char *text, int64_t length, const struct encode_fault *fault,
                          const char *place, wf_error *error);

/* Room for `more` further elements; false without memory. */
bool tokens_reserve(struct wf_tokens *tokens, int64_t more);
bool string_reserve(struct wf_string *string, int64_t more);
bool string_add(struct wf_string *string, const char *data, int64_t length);

#endif
