/* SPDX-License-Identifier: MIT */
/* What all kinds of tokenizers share: the public functions, messages and growing lists. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tokenizer_internal.h"
#include <weft/internal/utf8.h>
#include <weft/memory.h>

static const struct tokenizer_kind *const kinds[] = {[WF_TOKENIZER_CHAR] = &tokenizer_char};

/* A new capacity for at least `needed` elements, or 0 when their bytes cannot be counted. */
static int64_t grown(int64_t capacity, int64_t needed, int64_t size)
{
    int64_t most = (int64_t)(PTRDIFF_MAX / size);
    if (needed < 0 || needed > most)
        return 0;
    int64_t more = capacity + capacity / 2 + 64;
    return more < needed || more > most ? needed : more;
}

bool tokens_reserve(struct wf_tokens *tokens, int64_t more)
{
    if (more <= tokens->capacity - tokens->count)
        return true;
    int64_t capacity = grown(tokens->capacity, tokens->count + more, sizeof *tokens->id);
    int32_t *id = capacity ? wf_realloc(tokens->id, (size_t)capacity * sizeof *id) : NULL;
    if (!id)
        return false;
    tokens->id = id;
    tokens->capacity = capacity;
    return true;
}

bool string_reserve(struct wf_string *string, int64_t more)
{
    if (more < string->capacity - string->length)
        return true;
    int64_t capacity = grown(string->capacity, string->length + more + 1, 1);
    char *data = capacity ? wf_realloc(string->data, (size_t)capacity) : NULL;
    if (!data)
        return false;
    string->data = data;
    string->capacity = capacity;
    return true;
}

bool string_add(struct wf_string *string, const char *data, int64_t length)
{
    if (!string_reserve(string, length))
        return false;
    memcpy(string->data + string->length, data, (size_t)length);
    string->length += length;
    string->data[string->length] = 0;
    return true;
}

void wf_tokens_free(struct wf_tokens *tokens)
{
    wf_free(tokens->id);
    *tokens = (struct wf_tokens){0};
}

void wf_string_free(struct wf_string *string)
{
    wf_free(string->data);
    *string = (struct wf_string){0};
}

wf_status wf_tokenizer_train_with(const char *text, int64_t length, const struct wf_tokenizer_options *options, wf_tokenizer **out,
                                  wf_error *error)
{
    *out = NULL;
    if ((unsigned)options->kind >= sizeof kinds / sizeof *kinds)
        return wf_error_set(error, WF_ERR_ARGUMENT, "tokenizer: kind %d is unknown; this library makes char tokenizers",
                            (int)options->kind);
    return kinds[options->kind]->train(text, length, options, out, error);
}

void wf_tokenizer_free(wf_tokenizer *tokenizer)
{
    if (tokenizer)
        kinds[tokenizer->kind]->free(tokenizer);
}

wf_tokenizer_kind wf_tokenizer_kind_of(const wf_tokenizer *tokenizer)
{
    return tokenizer->kind;
}

const char *wf_tokenizer_kind_name(wf_tokenizer_kind kind)
{
    return (unsigned)kind < sizeof kinds / sizeof *kinds ? kinds[kind]->name : "unknown";
}

int64_t wf_tokenizer_vocab_size(const wf_tokenizer *tokenizer)
{
    return tokenizer->vocab_size;
}

const char *wf_tokenizer_token(const wf_tokenizer *tokenizer, int32_t id, int64_t *length)
{
    int64_t bytes = 0;
    const char *token = id < 0 || id >= tokenizer->vocab_size ? NULL : kinds[tokenizer->kind]->token(tokenizer, id, &bytes);
    if (length)
        *length = bytes;
    return token;
}

int32_t wf_tokenizer_id(const wf_tokenizer *tokenizer, const char *piece, int64_t length)
{
    return length > 0 ? kinds[tokenizer->kind]->id(tokenizer, piece, length) : -1;
}

wf_status tokenizer_encode(const wf_tokenizer *tokenizer, const char *text, int64_t length, struct wf_tokens *out,
                           struct encode_fault *fault)
{
    int64_t before = out->count;
    wf_status status = kinds[tokenizer->kind]->encode(tokenizer, text, length, out, fault);
    if (status != WF_OK)
        out->count = before;
    return status;
}

wf_status tokenizer_fault(const wf_tokenizer *tokenizer, const char *text, int64_t length, const struct encode_fault *fault,
                          const char *place, wf_error *error)
{
    char name[WF_UTF8_NAME];
    if (fault->point == NOT_UTF8)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: not UTF-8: byte 0x%02X: %s; give text in UTF-8", place,
                            (unsigned char)text[fault->offset], wf_utf8_fault(text + fault->offset, length - fault->offset));
    return wf_error_set(error, WF_ERR_FORMAT,
                        "%s: the character %s is not in the vocabulary of %" PRId64 " tokens; leave it out, or train on text that holds it",
                        place, wf_utf8_name(fault->point, name, sizeof name), tokenizer->vocab_size);
}

wf_status wf_tokenizer_encode_with(const wf_tokenizer *tokenizer, const char *text, int64_t length, const struct wf_encode_options *options,
                                   struct wf_tokens *out, wf_error *error)
{
    (void)options;
    struct encode_fault fault = {0};
    wf_status status = tokenizer_encode(tokenizer, text, length, out, &fault);
    if (status == WF_ERR_MEMORY)
        return wf_error_set(error, status, "no memory for the ids of %" PRId64 " bytes of text", length);
    if (status != WF_ERR_FORMAT)
        return status;
    int64_t line = 1, begin = 0, column = 1;
    for (int64_t i = 0; i < fault.offset; i++)
        if (text[i] == '\n') {
            line++;
            begin = i + 1;
        }
    for (int64_t i = begin; i < fault.offset; i++)
        column += (text[i] & 0xC0) != 0x80;
    char place[96];
    snprintf(place, sizeof place, "line %" PRId64 ", column %" PRId64 " (offset %" PRId64 ")", line, column, fault.offset);
    return tokenizer_fault(tokenizer, text, length, &fault, place, error);
}

wf_status wf_tokenizer_decode_with(const wf_tokenizer *tokenizer, const int32_t *ids, int64_t count, const struct wf_decode_options *options,
                                   struct wf_string *out, wf_error *error)
{
    (void)options;
    for (int64_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= tokenizer->vocab_size)
            return wf_error_set(error, WF_ERR_ARGUMENT, "token %" PRId64 " of %" PRId64 " is %d, outside the vocabulary 0 .. %" PRId64,
                                i + 1, count, (int)ids[i], tokenizer->vocab_size - 1);
    int64_t before = out->length;
    wf_status status = kinds[tokenizer->kind]->decode(tokenizer, ids, count, out);
    if (status != WF_OK) {
        out->length = before;
        if (out->data)
            out->data[before] = 0;
        return wf_error_set(error, status, "no memory for the text of %" PRId64 " tokens", count);
    }
    return WF_OK;
}

wf_status wf_tokenizer_encode(const wf_tokenizer *tokenizer, const char *text, int64_t length, struct wf_tokens *out, wf_error *error)
{
    return wf_tokenizer_encode_with(tokenizer, text, length, &(struct wf_encode_options){0}, out, error);
}

wf_status wf_tokenizer_decode(const wf_tokenizer *tokenizer, const int32_t *ids, int64_t count, struct wf_string *out, wf_error *error)
{
    return wf_tokenizer_decode_with(tokenizer, ids, count, &(struct wf_decode_options){0}, out, error);
}
