/* SPDX-License-Identifier: MIT */
/* Text to ids: runs the parts in their order, keeps a cache of words, and makes messages with positions. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"
#include "scratch.h"
#include "unicode.h"
#include <weft/internal/hash.h>
#include <weft/internal/minmax.h>
#include <weft/internal/needs.h>
#include <weft/internal/text.h>
#include <weft/internal/utf8.h>
#include <weft/memory.h>

/* An entry of the cache takes 64 bytes, which is a cache line of the processor. Nearly all words fit into one entry. */
enum {
    CACHE_WORD = 30,      /* maximum bytes of a cached word */
    CACHE_IDS = 8,        /* maximum ids of a cached word */
    MOST_CACHED = 1 << 24 /* maximum entries of a cache */
};
enum { ASK = 1 << 14 }; /* words between two calls of the caller's function `cancelled` */
struct cached {
    uint8_t length; /* number of bytes of the word; 0: empty entry */
    uint8_t count;  /* number of ids of the word */
    char word[CACHE_WORD];
    int32_t id[CACHE_IDS];
};
struct wf_token_cache {
    const wf_tokenizer *tokenizer;
    uint64_t mask;
    struct scratch scratch;
    _Alignas(64) struct cached entry[];
};

wf_token_cache *wf_token_cache_new(const wf_tokenizer *tokenizer, int64_t words, wf_error *error)
{
    if (wf_needs(error, "tokenizer", tokenizer))
        return NULL;
    uint64_t entries = 1;
    if (words < 1 || words > MOST_CACHED) {
        wf_error_set(error, WF_ERR_ARGUMENT, "a cache of %" PRId64 " words is out of range, 1 to %d", words, MOST_CACHED);
        return NULL;
    }
    while (entries < (uint64_t)words)
        entries *= 2;
    wf_token_cache *cache = wf_alloc_zero(1, sizeof *cache + (size_t)entries * sizeof *cache->entry);
    if (cache) {
        cache->tokenizer = tokenizer;
        cache->mask = entries - 1;
    } else {
        wf_error_set(error, WF_ERR_MEMORY, "no memory for a cache of %" PRId64 " words", words);
    }
    return cache;
}

void wf_token_cache_free(wf_token_cache *cache)
{
    if (!cache)
        return;
    scratch_free(&cache->scratch);
    wf_free(cache);
}

static wf_status encode_word(const struct encoding *e, const char *word, int64_t length)
{
    const struct part_type *model = e->t->model.part.type;
    struct wf_tokens *out = e->out;
    wf_token_cache *cache = e->options->cache;
    if (!cache || length > CACHE_WORD)
        return model->word(e, word, length);
    struct cached *entry = cache->entry + (wf_hash(word, length, 0) & cache->mask);
    if (entry->length == length && !memcmp(entry->word, word, (size_t)length)) {
        if (!tokens_reserve(out, CACHE_IDS))
            return WF_ERR_MEMORY;
        memcpy(out->id + out->count, entry->id, sizeof entry->id);
        out->count += entry->count;
        return WF_OK;
    }
    int64_t before = out->count;
    wf_status status = model->word(e, word, length);
    if (status != WF_OK || out->count - before > CACHE_IDS)
        return status;
    entry->length = (uint8_t)length;
    entry->count = (uint8_t)(out->count - before);
    memcpy(entry->word, word, (size_t)length);
    memcpy(entry->id, out->id + before, (size_t)entry->count * sizeof *entry->id);
    return WF_OK;
}

/* Encodes a range of normalised text that has no added tokens. */
static wf_status encode_plain(const struct encoding *e, const struct view *text, int64_t begin, int64_t end)
{
    struct words *words = &e->s->words;
    words->text = *text;
    words->spans.count = 0;
    if (begin == end)
        return WF_OK;
    if (!spans_add(&words->spans, begin, end))
        return WF_ERR_MEMORY;
    wf_status status = part_split(e->t->pre_tokenizer, e->s);
    if (status == WF_ERR_FORMAT)
        *e->fault = (struct wf_encode_fault){.kind = FAULT_PATTERN,
                                             .offset = e->s->fault < words->text.length ? view_origin(&words->text, e->s->fault) : 0};
    for (int64_t i = 0; status == WF_OK && i < words->spans.count; i++) {
        if (i % ASK == ASK - 1 && scratch_cancelled(e->s))
            return WF_ERR_CANCELLED;
        int64_t at = words->spans.span[i].begin, length = words->spans.span[i].end - at, most = (int64_t)sizeof e->fault->word - 1;
        const char *word = words->text.data + at;
        status = encode_word(e, word, length);
        if (status == WF_ERR_FORMAT) {
            if (e->fault->kind == FAULT_WORD)
                snprintf(e->fault->word, sizeof e->fault->word, "%.*s", (int)WF_MIN(length, most), word);
            e->fault->offset = view_origin(&words->text, at + e->fault->offset);
        }
    }
    return status;
}

/* Encodes a text in which added tokens of `set` may occur: appends their ids, and calls `between` for the text between them. */
static wf_status encode_around(const struct encoding *e, const struct prefixes *set, const struct view *text,
                               wf_status (*between)(const struct encoding *e, const struct view *text, int64_t begin, int64_t end))
{
    const struct added_token *token;
    int64_t search = 0, at = 0, begin, end;
    wf_status status = WF_OK;
    while (status == WF_OK && (token = added_tokens_next(e, set, text, &search, at, &begin, &end))) {
        status = between(e, text, at, begin);
        if (status == WF_OK)
            status = tokens_add(e->out, token->id);
        at = end;
    }
    return status == WF_OK ? between(e, text, at, text->length) : status;
}

/* Encodes a range of the caller's text that has none of the added tokens that are found before the normalizer. */
static wf_status encode_stretch(const struct encoding *e, const struct view *whole, int64_t begin, int64_t end)
{
    struct view text = {.data = whole->data + begin, .length = end - begin, .base = begin};
    if (begin == end)
        return WF_OK;
    wf_status status = part_normalize(e->t->normalizer, e->s, &text);
    if (status == WF_ERR_FORMAT)
        *e->fault = (struct wf_encode_fault){.kind = FAULT_PATTERN, .offset = e->s->fault};
    return status == WF_OK ? encode_around(e, &e->t->normalized, &text, encode_plain) : status;
}

static wf_status encode_text(const struct encoding *e, const char *text, int64_t length)
{
    return encode_around(e, &e->t->raw, &(struct view){.data = text, .length = length}, encode_stretch);
}

static void truncate_ids(const wf_tokenizer *t, const struct wf_encode_options *options, struct wf_tokens *out, int64_t before)
{
    int64_t count = out->count - before, most = options->most > 0 ? options->most : t->truncation.length;
    if (options->most <= 0 && (options->whole || !t->truncation.on))
        return;
    most -= options->specials ? t->specials : 0;
    most = WF_MAX(0, most);
    if (count <= most)
        return;
    if (options->most > 0 && options->cut)
        *options->cut += count - most;
    if (t->truncation.direction == DIRECTION_LEFT)
        memmove(out->id + before, out->id + out->count - most, (size_t)most * sizeof *out->id);
    out->count = before + most;
}

static bool pad_ids(const wf_tokenizer *t, struct wf_tokens *out, int64_t before)
{
    int64_t count = out->count - before, wanted = t->padding.fixed >= 0 ? t->padding.fixed : count;
    if (t->padding.multiple_of > 0 && wanted % t->padding.multiple_of > 0)
        wanted += t->padding.multiple_of - wanted % t->padding.multiple_of;
    if (!t->padding.on || wanted <= count)
        return true;
    if (!tokens_reserve(out, wanted - count))
        return false;
    int32_t *pad = out->id + out->count;
    if (t->padding.direction == DIRECTION_LEFT) {
        pad = out->id + before;
        memmove(pad + wanted - count, pad, (size_t)count * sizeof *pad);
    }
    for (int64_t i = 0; i < wanted - count; i++)
        pad[i] = t->padding.id;
    out->count = before + wanted;
    return true;
}

/* Encodes a text with all parts of the pipeline. */
static wf_status run(const wf_tokenizer *t, struct scratch *s, const struct wf_encode_options *options, const char *text, int64_t length,
                     struct wf_tokens *out, struct wf_encode_fault *fault)
{
    int64_t before = out->count, bad = length > 0 ? wf_utf8_check(text, length) : -1;
    if (bad >= 0) {
        *fault = (struct wf_encode_fault){.kind = FAULT_UTF8, .offset = bad};
        return WF_ERR_FORMAT;
    }
    struct encoding e = {t, s, options, out, fault};
    const bool tracks = t->tracks || options->plains > 0;
    s->cancelled = options->cancelled;
    s->ctx = options->ctx;
    scratch_start(s, length, tracks);
    wf_status status = encode_text(&e, text, length);
    if (status == WF_ERR_FORMAT &&
        !tracks) { /* encoded a second time, with origins, to find the position of the fault in the caller's text */
        out->count = before;
        scratch_start(s, length, true);
        status = encode_text(&e, text, length);
    }
    if (status == WF_ERR_MEMORY && scratch_stopped(s))
        return WF_ERR_CANCELLED;
    if (status == WF_ERR_MEMORY && scratch_over(s)) {
        *fault = (struct wf_encode_fault){.kind = FAULT_GROWTH};
        return WF_ERR_FORMAT;
    }
    if (status != WF_OK)
        return status;
    for (int64_t i = before; options->unknown && t->model.unknown_id >= 0 && i < out->count; i++)
        *options->unknown += out->id[i] == t->model.unknown_id;
    truncate_ids(t, options, out, before);
    if (options->specials && !part_finish(t->post_processor, out, before))
        return WF_ERR_MEMORY;
    return options->whole || pad_ids(t, out, before) ? WF_OK : WF_ERR_MEMORY;
}

wf_status wf_tokenizer_encode_placed(const wf_tokenizer *t, const char *text, int64_t length, const struct wf_encode_options *options,
                                     struct wf_tokens *out, struct wf_encode_fault *fault)
{
    int64_t before = out->count;
    wf_status status;
    if (t->plain) {
        status = char_encode(t, text, length, out, fault);
        if (status == WF_OK)
            truncate_ids(t, options, out, before);
    } else if (options->cache) {
        status = run(t, &options->cache->scratch, options, text, length, out, fault);
    } else {
        struct scratch s = {0};
        status = run(t, &s, options, text, length, out, fault);
        scratch_free(&s);
    }
    if (status != WF_OK)
        out->count = before;
    return status;
}

wf_status wf_tokenizer_fault(const wf_tokenizer *t, const char *text, int64_t length, const struct wf_encode_fault *fault,
                             const char *place, wf_error *error)
{
    char name[WF_UTF8_NAME], quoted[WF_QUOTE_SIZE];
    uint32_t point = fault->point;
    switch (fault->kind) {
    case FAULT_UTF8:
        return wf_error_set(error, WF_ERR_FORMAT, "%s: not UTF-8: byte 0x%02X: %s; give text in UTF-8", place,
                            (unsigned char)text[fault->offset], wf_utf8_fault(text + fault->offset, length - fault->offset));
    case FAULT_PATTERN:
        return wf_error_set(error, WF_ERR_FORMAT,
                            "%s: a pattern of the tokenizer takes too long here; shorten the text, or use another tokenizer", place);
    case FAULT_GROWTH:
        return wf_error_set(
            error, WF_ERR_FORMAT,
            "%s: the tokenizer makes the text more than %d times as long; remove steps from \"normalizer\" or \"pre_tokenizer\" "
            "in its file, or use another tokenizer",
            place, FLOW_GROWTH);
    case FAULT_LENGTH:
        return wf_error_set(error, WF_ERR_FORMAT,
                            "%s: the merges of this tokenizer make a word here depend on more than %d characters; put spaces into the text",
                            place, WORD_WINDOW_MOST);
    case FAULT_WORD:
        return wf_error_set(error, WF_ERR_FORMAT,
                            "%s: the word %s is not in the vocabulary of %" PRId64
                            " tokens, which has no unknown token; remove it, or train on text that contains it",
                            place, wf_text_quote(fault->word, quoted), t->vocab.count);
    default:
        if (t->kind == WF_TOKENIZER_BYTE_BPE) /* the model saw GPT-2's character for this byte */
            return wf_error_set(error, WF_ERR_FORMAT, "%s: the byte 0x%02X is not in the vocabulary of %" PRId64 " tokens", place,
                                (unsigned char)text[fault->offset], t->vocab.count);
        return wf_error_set(
            error, WF_ERR_FORMAT,
            "%s: the character %s is not in the vocabulary of %" PRId64
            " tokens; remove it, or train on text that contains it (--set new_tokens=FILE adds characters to trained weights)",
            place, wf_utf8_name(point, name, sizeof name), t->vocab.count);
    }
}

wf_status wf_tokenizer_encode_with(const wf_tokenizer *t, const char *text, int64_t length, const struct wf_encode_options *options,
                                   struct wf_tokens *out, wf_error *error)
{
    if (wf_needs(error, "tokenizer, text, out", t, wf_some(text, length), out))
        return WF_ERR_ARGUMENT;
    struct wf_encode_fault fault = {0};
    if (options->cache && options->cache->tokenizer != t)
        return wf_error_set(error, WF_ERR_ARGUMENT, "the cache of words was made for another tokenizer");
    wf_status status = wf_tokenizer_encode_placed(t, text, length, options, out, &fault);
    if (status == WF_ERR_MEMORY)
        return wf_error_set(error, status, "no memory for the ids of %" PRId64 " bytes of text", length);
    if (status == WF_ERR_CANCELLED)
        return wf_error_set(error, status, "encoding was cancelled");
    if (status != WF_ERR_FORMAT)
        return status;
    int64_t line = 1, begin = 0;
    for (int64_t i = 0; i < fault.offset; i++)
        if (text[i] == '\n') {
            line++;
            begin = i + 1;
        }
    int64_t column = 1 + wf_utf8_count(text + begin, fault.offset - begin);
    char place[96];
    snprintf(place, sizeof place, "line %" PRId64 ", column %" PRId64 " (offset %" PRId64 ")", line, column, fault.offset);
    return wf_tokenizer_fault(t, text, length, &fault, place, error);
}

wf_status wf_tokenizer_encode(const wf_tokenizer *t, const char *text, int64_t length, struct wf_tokens *out, wf_error *error)
{
    if (wf_needs(error, "tokenizer, text, out", t, wf_some(text, length), out))
        return WF_ERR_ARGUMENT;
    return wf_tokenizer_encode_with(t, text, length, &(struct wf_encode_options){0}, out, error);
}

wf_status wf_tokenizer_check_whole(const wf_tokenizer *t, const char *name, wf_error *error)
{
    if (t->truncation.on)
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "%s: its tokenizer truncates sentences to %" PRId64
                            " tokens; set \"truncation\" in its file to null (the maximum length is an option here)",
                            name, t->truncation.length);
    if (t->padding.on && (t->padding.fixed >= 0 || t->padding.multiple_of > 0))
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s: its tokenizer pads each sentence; set \"padding\" in its file to null", name);
    return WF_OK;
}
