/* SPDX-License-Identifier: MIT */
/* Encoding for readers of files, which place a fault in the file. */
#ifndef WEFT_INTERNAL_ENCODE_H
#define WEFT_INTERNAL_ENCODE_H

#include <weft/tokenizer.h>

/* Why text could not be encoded, and where. */
struct wf_encode_fault {
    enum { FAULT_UTF8, FAULT_CHARACTER, FAULT_WORD, FAULT_PATTERN, FAULT_GROWTH, FAULT_LENGTH } kind;
    int64_t offset;
    uint32_t point; /* the character that the vocabulary lacks */
    char word[72];  /* the word, or its beginning */
};

/* Encodes with the place of a fault instead of a message. WF_ERR_FORMAT means that *fault is set; WF_ERR_MEMORY and WF_ERR_CANCELLED leave
 * the message to the caller. On an error *out keeps what it had. */
wf_status wf_tokenizer_encode_placed(const wf_tokenizer *tokenizer, const char *text, int64_t length,
                                     const struct wf_encode_options *options, struct wf_tokens *out, struct wf_encode_fault *fault);
/* The message for a fault at `place`. */
wf_status wf_tokenizer_fault(const wf_tokenizer *tokenizer, const char *text, int64_t length, const struct wf_encode_fault *fault,
                             const char *place, wf_error *error);

/* "unknown tokens: 12 of 3,456 (0.3 %)", for warnings. Returns text. */
char *wf_unknown_describe(int64_t unknown, int64_t tokens, char *text, size_t size);

/* The id of special token number `index`, or -1 where that added token is not special; false past the last. */
bool wf_tokenizer_special_at(const wf_tokenizer *tokenizer, int64_t index, int32_t *id);

/* WF_ERR_ARGUMENT, with `name` in the message, for a tokenizer whose file asks for truncation or padding of each text: what another program
 * wants of its batches would change sentences here. */
wf_status wf_tokenizer_check_whole(const wf_tokenizer *tokenizer, const char *name, wf_error *error);

/* The byte that a character of a byte-level piece stands for; -1 when it stands for none. */
int unicode_to_byte(uint32_t point);

#endif
