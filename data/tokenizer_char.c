/* SPDX-License-Identifier: MIT */
/* Tokenizers whose tokens are single code points. */
#include <inttypes.h>
#include <string.h>

#include "tokenizer_internal.h"
#include <weft/internal/json.h>
#include <weft/internal/text.h>
#include <weft/internal/utf8.h>
#include <weft/memory.h>

enum { POINTS = 0x110000, PAGE = 256 };

struct piece {
    char text[7]; /* UTF-8 and a NUL */
    char length;
};

/* Ids are looked up by pages of code points: real texts touch few of them. Page 0 of `ids` stands for all absent ones. */
struct char_tokenizer {
    struct wf_tokenizer head;
    struct piece *piece; /* [vocab_size] */
    int32_t *ids;        /* [pages][PAGE], -1 where there is none */
    uint16_t page[POINTS / PAGE];
};

static const struct char_tokenizer *chars(const wf_tokenizer *tokenizer)
{
    return (const struct char_tokenizer *)tokenizer;
}

static int32_t id_of(const struct char_tokenizer *t, uint32_t point)
{
    return t->ids[t->page[point / PAGE] * PAGE + point % PAGE];
}

/* points[id] are distinct and valid. */
static wf_status build(const uint32_t *points, int64_t count, wf_tokenizer **out, wf_error *error)
{
    struct char_tokenizer *t = wf_alloc_zero(1, sizeof *t);
    int64_t pages = 1;
    for (int64_t i = 0; t && i < count; i++)
        if (t->page[points[i] / PAGE] == 0)
            t->page[points[i] / PAGE] = (uint16_t)pages++;
    if (t) {
        t->head = (struct wf_tokenizer){.kind = WF_TOKENIZER_CHAR, .vocab_size = count};
        t->piece = wf_alloc_zero((size_t)count, sizeof *t->piece);
        t->ids = wf_alloc((size_t)(pages * PAGE) * sizeof *t->ids);
    }
    if (!t || !t->piece || !t->ids) {
        tokenizer_char.free((wf_tokenizer *)t);
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for a tokenizer of %" PRId64 " characters", count);
    }
    memset(t->ids, -1, (size_t)(pages * PAGE) * sizeof *t->ids);
    for (int64_t i = 0; i < count; i++) {
        t->ids[t->page[points[i] / PAGE] * PAGE + points[i] % PAGE] = (int32_t)i;
        t->piece[i].length = (char)wf_utf8_encode(points[i], t->piece[i].text);
    }
    *out = &t->head;
    return WF_OK;
}

static wf_status train(const char *text, int64_t length, const struct wf_tokenizer_options *options, wf_tokenizer **out, wf_error *error)
{
    (void)options;
    if (length < 1)
        return wf_error_set(error, WF_ERR_FORMAT, "a tokenizer needs text to be made from, and this one is empty");
    uint8_t *seen = wf_alloc_zero(POINTS, 1);
    if (!seen)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory to count characters");
    int64_t count = 0;
    for (int64_t at = 0; at < length;) {
        uint32_t point;
        int size = wf_utf8_decode(text + at, length - at, &point);
        if (size == 0 || point == 0) {
            wf_free(seen);
            return wf_error_set(error, WF_ERR_FORMAT, "the text for the tokenizer is not UTF-8 text: byte 0x%02X (offset %" PRId64 "): %s",
                                (unsigned char)text[at], at, size ? "a NUL" : wf_utf8_fault(text + at, length - at));
        }
        count += !seen[point];
        seen[point] = 1;
        at += size;
    }
    uint32_t *points = wf_alloc((size_t)count * sizeof *points);
    if (!points) {
        wf_free(seen);
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for a tokenizer of %" PRId64 " characters", count);
    }
    for (uint32_t point = 0, n = 0; point < POINTS; point++)
        if (seen[point])
            points[n++] = point;
    wf_status status = build(points, count, out, error);
    wf_free(points);
    wf_free(seen);
    return status;
}

/* ids 0 .. n-1, each once; keys of one code point. */
static wf_status read_vocab(json_t *vocab, const char *where, uint32_t *points, wf_error *error)
{
    int64_t count = (int64_t)json_object_size(vocab);
    const char *key;
    json_t *value;
    char quoted[WF_QUOTE_SIZE];
    memset(points, 0xFF, (size_t)count * sizeof *points);
    json_object_foreach(vocab, key, value)
    {
        int64_t length = (int64_t)strlen(key), id = json_is_integer(value) ? json_integer_value(value) : -1;
        uint32_t point;
        if (length == 0 || wf_utf8_decode(key, length, &point) != length)
            return wf_error_set(error, WF_ERR_FORMAT, "%s: the token %s is not one character: this is no character tokenizer", where,
                                wf_text_quote(key, quoted));
        if (id < 0 || id >= count)
            return wf_error_set(error, WF_ERR_FORMAT,
                                "%s: the id of token %s is not an integer in 0 .. %" PRId64 ", one less than the tokens", where,
                                wf_text_quote(key, quoted), count - 1);
        if (points[id] != UINT32_MAX)
            return wf_error_set(error, WF_ERR_FORMAT, "%s: the id %" PRId64 " of token %s belongs to another token too", where, id,
                                wf_text_quote(key, quoted));
        points[id] = point;
    }
    return WF_OK;
}

static wf_status parse(json_t *vocab, const char *where, wf_tokenizer **out, wf_error *error)
{
    int64_t count = (int64_t)json_object_size(vocab);
    if (count == 0)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: the vocabulary is empty", where);
    uint32_t *points = wf_alloc((size_t)count * sizeof *points);
    if (!points)
        return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for a vocabulary of %" PRId64 " tokens", where, count);
    wf_status status = read_vocab(vocab, where, points, error);
    if (status == WF_OK)
        status = build(points, count, out, error);
    wf_free(points);
    return status;
}

static wf_status encode(const wf_tokenizer *tokenizer, const char *text, int64_t length, struct wf_tokens *out, struct encode_fault *fault)
{
    const struct char_tokenizer *t = chars(tokenizer);
    int64_t characters = 0;
    for (int64_t i = 0; i < length; i++)
        characters += (text[i] & 0xC0) != 0x80;
    if (!tokens_reserve(out, characters))
        return WF_ERR_MEMORY;
    for (int64_t at = 0; at < length;) {
        uint32_t point = NOT_UTF8;
        int size = wf_utf8_decode(text + at, length - at, &point);
        int32_t id = size ? id_of(t, point) : -1;
        if (id < 0) {
            *fault = (struct encode_fault){at, point};
            return WF_ERR_FORMAT;
        }
        out->id[out->count++] = id;
        at += size;
    }
    return WF_OK;
}

static wf_status decode(const wf_tokenizer *tokenizer, const int32_t *ids, int64_t count, struct wf_string *out)
{
    const struct char_tokenizer *t = chars(tokenizer);
    int64_t bytes = 0;
    for (int64_t i = 0; i < count; i++)
        bytes += t->piece[ids[i]].length;
    if (!string_reserve(out, bytes))
        return WF_ERR_MEMORY;
    for (int64_t i = 0; i < count; i++)
        string_add(out, t->piece[ids[i]].text, t->piece[ids[i]].length);
    return WF_OK;
}

static int32_t id(const wf_tokenizer *tokenizer, const char *piece, int64_t length)
{
    uint32_t point;
    return wf_utf8_decode(piece, length, &point) == length ? id_of(chars(tokenizer), point) : -1;
}

static const char *token(const wf_tokenizer *tokenizer, int32_t id, int64_t *length)
{
    const struct piece *piece = chars(tokenizer)->piece + id;
    *length = piece->length;
    return piece->text;
}

static void char_free(wf_tokenizer *tokenizer)
{
    struct char_tokenizer *t = (struct char_tokenizer *)tokenizer;
    if (!t)
        return;
    wf_free(t->piece);
    wf_free(t->ids);
    wf_free(t);
}

const struct tokenizer_kind tokenizer_char = {
    .name = "char",
    .train = train,
    .parse = parse,
    .encode = encode,
    .decode = decode,
    .id = id,
    .token = token,
    .free = char_free,
};
