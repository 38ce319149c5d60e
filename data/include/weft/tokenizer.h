/* SPDX-License-Identifier: MIT */
/* Tokenizers: text to token ids and back. A tokenizer does not change once it is made, so that threads may share one.
 *
 * Kinds: WF_TOKENIZER_CHAR takes each Unicode code point as a token. Its vocabulary is the sorted distinct code points of
 * the text it was made from; ids are their ranks. Nothing is normalised and there are no special tokens: decoding gives back
 * what was encoded, byte for byte. A character that the vocabulary lacks is an error, never a silent replacement.
 *
 * The file is Hugging Face's tokenizer.json and gives the same ids and texts there (package `tokenizers`): a WordLevel
 * model, split at every code point by the regular expression [\s\S], with the decoder Fuse. */
#ifndef WEFT_TOKENIZER_H
#define WEFT_TOKENIZER_H

#include <weft/error.h>

WF_BEGIN_DECLS

typedef struct wf_tokenizer wf_tokenizer;

typedef enum wf_tokenizer_kind {
    WF_TOKENIZER_CHAR /* the default */
} wf_tokenizer_kind;

/* Growing lists that encoding and decoding append to. Start them as {0}; free them with wf_tokens_free and
 * wf_string_free. To reuse the memory set count or length back to 0. */
struct wf_tokens {
    int32_t *id;
    int64_t count, capacity;
};
struct wf_string {
    char *data; /* a NUL follows at data[length] once something was appended */
    int64_t length, capacity;
};
WF_API void wf_tokens_free(struct wf_tokens *tokens);
WF_API void wf_string_free(struct wf_string *string);

struct wf_tokenizer_options {
    wf_tokenizer_kind kind;
};

/* Makes a tokenizer from `length` bytes of text and puts it into *out (NULL on an error). WF_ERR_FORMAT when the text is
 * empty, is not UTF-8 or holds NUL, which no tokenizer file could keep. Free with wf_tokenizer_free. */
WF_API wf_status wf_tokenizer_train_with(const char *text, int64_t length, const struct wf_tokenizer_options *options, wf_tokenizer **out,
                                         wf_error *error) WF_CHECKED;
#ifndef __cplusplus
#define wf_tokenizer_train(text, length, out, error, ...)                                                                                  \
    wf_tokenizer_train_with(text, length, &(struct wf_tokenizer_options){__VA_ARGS__}, out, error)
#endif

/* Reads a tokenizer.json. Nothing in it is trusted; what this library does not do is refused by name ("model BPE",
 * "normalizer NFC"), never ignored. WF_ERR_IO, WF_ERR_FORMAT, WF_ERR_MEMORY. */
WF_API wf_status wf_tokenizer_load(const char *path, wf_tokenizer **out, wf_error *error) WF_CHECKED;
/* The same from memory; `name` stands for the file in messages. */
WF_API wf_status wf_tokenizer_parse(const char *json, int64_t length, const char *name, wf_tokenizer **out, wf_error *error) WF_CHECKED;

/* Writes a tokenizer.json: to a temporary name, synced, renamed. The bytes depend on the vocabulary alone; they are those
 * that `tokenizers` writes for it. */
WF_API wf_status wf_tokenizer_save(const wf_tokenizer *tokenizer, const char *path, wf_error *error) WF_CHECKED;
/* The same, appended to *out. */
WF_API wf_status wf_tokenizer_json(const wf_tokenizer *tokenizer, struct wf_string *out, wf_error *error) WF_CHECKED;

WF_API void wf_tokenizer_free(wf_tokenizer *tokenizer); /* NULL is fine */

WF_API wf_tokenizer_kind wf_tokenizer_kind_of(const wf_tokenizer *tokenizer);
WF_API const char *wf_tokenizer_kind_name(wf_tokenizer_kind kind); /* "char": as the command spells it */
WF_API int64_t wf_tokenizer_vocab_size(const wf_tokenizer *tokenizer);

/* The token's piece of text as the vocabulary holds it, NUL-terminated, *length bytes (length may be NULL); it belongs to
 * the tokenizer. NULL for an id outside 0 .. vocab_size-1. */
WF_API const char *wf_tokenizer_token(const wf_tokenizer *tokenizer, int32_t id, int64_t *length);
/* The id of a piece of `length` bytes, -1 when the vocabulary lacks it. */
WF_API int32_t wf_tokenizer_id(const wf_tokenizer *tokenizer, const char *piece, int64_t length);

/* Appends the ids of `length` bytes of text to *out; an empty text appends nothing. On an error *out keeps what it had
 * before the call. The message names the first character that is not in the vocabulary, as U+00E9 and itself if it
 * can be printed, with line and column (in characters, from 1) and offset (in bytes, from 0); or the first byte that is
 * not UTF-8. Both are WF_ERR_FORMAT. */
WF_API wf_status wf_tokenizer_encode(const wf_tokenizer *tokenizer, const char *text, int64_t length, struct wf_tokens *out,
                                     wf_error *error) WF_CHECKED;

/* Appends the text of `count` ids to *out. On an error (an id outside the vocabulary, WF_ERR_ARGUMENT) *out keeps what it had. */
WF_API wf_status wf_tokenizer_decode(const wf_tokenizer *tokenizer, const int32_t *ids, int64_t count, struct wf_string *out,
                                     wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
