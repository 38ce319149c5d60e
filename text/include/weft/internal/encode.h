/* SPDX-License-Identifier: MIT */
/* Encoding for functions that read files and report the position of an error in the file. */
#ifndef WEFT_INTERNAL_ENCODE_H
#define WEFT_INTERNAL_ENCODE_H

#include <weft/tokenizer.h>

/* The reason why a text could not be encoded, and the position. */
struct wf_encode_fault {
    enum { FAULT_UTF8, FAULT_CHARACTER, FAULT_WORD, FAULT_PATTERN, FAULT_GROWTH, FAULT_LENGTH } kind;
    int64_t offset; /* number of bytes of the text before the fault */
    uint32_t point; /* FAULT_CHARACTER: the character that is not in the vocabulary */
    char word[72];  /* FAULT_WORD: the word that is not in the vocabulary, or its beginning */
};

/* wf_tokenizer_encode_with, but without messages: WF_ERR_FORMAT sets *fault, from which wf_tokenizer_fault makes the message. The caller
 * also writes the messages for WF_ERR_MEMORY and WF_ERR_CANCELLED. On an error *out keeps its former ids. */
wf_status wf_tokenizer_encode_placed(const wf_tokenizer *tokenizer, const char *text, int64_t length,
                                     const struct wf_encode_options *options, struct wf_tokens *out, struct wf_encode_fault *fault);
/* Sets the error for a fault at `place`, such as "file:line:byte". Returns WF_ERR_FORMAT. */
wf_status wf_tokenizer_fault(const wf_tokenizer *tokenizer, const char *text, int64_t length, const struct wf_encode_fault *fault,
                             const char *place, wf_error *error);

/* Writes "unknown tokens: 12 of 3,456 (0.3 %)" to text[0 .. size-1], for a warning. Returns text. */
char *wf_unknown_describe(int64_t unknown, int64_t tokens, char *text, size_t size);

/* Sets *id to the id of added token number `index`, or to -1 if that token is not special. Returns false if there is no such token. */
bool wf_tokenizer_special_at(const wf_tokenizer *tokenizer, int64_t index, int32_t *id);

/* WF_ERR_ARGUMENT, with `name` in the message, if the tokenizer's file asks for truncation, or for padding to a fixed length or to a
 * multiple of a number. These settings are for batches of another program; here they would change sentences. */
wf_status wf_tokenizer_check_whole(const wf_tokenizer *tokenizer, const char *name, wf_error *error);

/* In a byte-level piece each byte is written as one of GPT-2's 256 characters. Returns the byte for such a character; -1 for any other
 * character. */
int unicode_to_byte(uint32_t point);

#endif
