/* SPDX-License-Identifier: MIT */
/* WordPiece: the longest piece that the word begins with, then the longest that the rest begins with, and so on; pieces that do not begin
 * the word carry a prefix ("##"). A word that cannot be cut so to its end is unknown as a whole. */
#include <string.h>

#include "internal.h"
#include "scratch.h"
#include "unicode.h"

/* The longest piece at word[at ..], or -1. */
static wf_status longest(const wf_tokenizer *t, struct scratch *s, const char *word, int64_t at, int64_t length, int64_t *end, int32_t *id)
{
    const struct model *m = &t->model;
    int64_t prefix = at > 0 && m->prefix ? (int64_t)strlen(m->prefix) : 0, rest = length - at;
    rest = rest < m->longest ? rest : m->longest;
    s->piece.length = 0;
    *id = -1;
    if (!wf_string_add(&s->piece, m->prefix, prefix) || !wf_string_add(&s->piece, word + at, rest))
        return WF_ERR_MEMORY;
    if (rest < length - at) /* to a whole character */
        while (rest > 0 && (word[at + rest] & 0xC0) == 0x80)
            rest--;
    for (; rest > 0; rest -= unicode_before(word + at, rest)) {
        *id = vocab_find(&t->vocab, s->piece.data, prefix + rest);
        if (*id >= 0 && *id < t->model_size) {
            *end = at + rest;
            return WF_OK;
        }
    }
    *id = -1;
    return WF_OK;
}

static wf_status unknown(const wf_tokenizer *t, struct wf_tokens *out, int64_t before, struct wf_encode_fault *fault)
{
    out->count = before;
    if (t->model.unknown_id < 0) {
        *fault = (struct wf_encode_fault){.kind = FAULT_WORD};
        return WF_ERR_FORMAT;
    }
    out->id[out->count++] = t->model.unknown_id;
    return WF_OK;
}

wf_status wordpiece_word(const wf_tokenizer *t, struct scratch *s, const char *word, int64_t length, struct wf_tokens *out,
                         struct wf_encode_fault *fault)
{
    int64_t before = out->count, characters = 0;
    for (int64_t i = 0; i < length; i++)
        characters += (word[i] & 0xC0) != 0x80;
    if (!tokens_reserve(out, characters))
        return WF_ERR_MEMORY;
    if (characters > t->model.most_characters)
        return unknown(t, out, before, fault);
    for (int64_t at = 0; at < length;) {
        int32_t id;
        int64_t end = at;
        wf_status status = longest(t, s, word, at, length, &end, &id);
        if (status != WF_OK)
            return status;
        if (id < 0)
            return unknown(t, out, before, fault);
        out->id[out->count++] = id;
        at = end;
    }
    return WF_OK;
}
