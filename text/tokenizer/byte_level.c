/* SPDX-License-Identifier: MIT */
/* ByteLevel as a normalizer, a pre-tokenizer, a decoder and a post-processor. The pre-tokenizer divides text by GPT-2's pattern, and
 * replaces each byte by a printable character; the decoder restores the bytes. The post-processor changes only offsets, which Weft does not
 * keep. */
#include <string.h>

#include "decoder.h"
#include "split.h"
#include "unicode.h"
#include <weft/internal/utf8.h>

struct byte_level {
    struct part part;
    bool add_prefix_space, trim_offsets, use_regex;
};
#define BYTE_LEVEL_KEYS(may_lack)                                                                                                          \
    KEYS({"add_prefix_space", &value_bool, offsetof(struct byte_level, add_prefix_space), .optional = may_lack, .otherwise = true},        \
         {"trim_offsets", &value_bool, offsetof(struct byte_level, trim_offsets), .optional = may_lack, .otherwise = true},                \
         {"use_regex", &value_bool, offsetof(struct byte_level, use_regex), .optional = true, .otherwise = true})

static wf_status normalize(const void *part, struct scratch *s, struct view *text)
{
    struct flow *out = scratch_flow(s, FLOW_NORMALIZED);
    (void)part;
    for (int64_t i = 0; i < text->length; i++)
        if (!flow_put_point(out, unicode_of_byte((unsigned char)text->data[i]), view_origin(text, i)))
            return WF_ERR_MEMORY;
    *text = flow_view(out);
    return WF_OK;
}
const struct part_type normalizer_byte_level = {"ByteLevel", PART_NORMALIZER, .normalize = normalize};

/* The end of the match of GPT-2's pattern at data[at]; -1 if the caller wants to stop. The pattern is
 * 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
static int64_t gpt2_match(const struct scratch *s, const char *data, int64_t at, int64_t end)
{
    enum { KINDS = CHAR_LETTER | CHAR_NUMBER | CHAR_SPACE };
    if (data[at] == '\'' && at + 1 < end) {
        char a = data[at + 1], b = at + 2 < end ? data[at + 2] : 0;
        if (a == 's' || a == 't' || a == 'm' || a == 'd')
            return at + 2;
        if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l'))
            return at + 3;
    }
    int size;
    int64_t asked = at, next = at + (data[at] == ' ' && at + 1 < end);
    unsigned kind = unicode_class(wf_utf8_at(data, next, &size)) & KINDS;
    if (kind == CHAR_SPACE) {
        int64_t last = next = at;
        while (next < end && unicode_class(wf_utf8_at(data, next, &size)) & CHAR_SPACE) {
            last = next;
            next += size;
            if (scratch_cancelled_at(s, next, &asked))
                return -1;
        }
        /* The pattern leaves the last of several white-space characters to the word that follows. */
        return next < end && last > at ? last : next;
    }
    while (next < end && (unicode_class(wf_utf8_at(data, next, &size)) & KINDS) == kind) {
        next += size;
        if (scratch_cancelled_at(s, next, &asked))
            return -1;
    }
    return next;
}

static wf_status cut(const void *part, struct scratch *s, struct splitter *sp, int64_t begin, int64_t end)
{
    (void)part;
    for (int64_t at = begin, asked = begin; at < end; at = sp->at) {
        int64_t next = gpt2_match(s, s->words.text.data, at, end);
        if (next < 0 || scratch_cancelled_at(s, at, &asked))
            return WF_ERR_CANCELLED;
        split_match(sp, at, next);
    }
    return WF_OK;
}

/* Puts a space before each word that does not begin with a space. */
static bool prefix_space(const void *part, struct flow *out, const struct view *text, struct span word)
{
    (void)part;
    if (text->data[word.begin] != ' ' && !flow_put(out, " ", 1, view_origin(text, word.begin)))
        return false;
    return flow_copy(out, text, word.begin, word.end - word.begin);
}

/* Replaces each byte by GPT-2's character for it. */
static bool print_bytes(const void *part, struct flow *out, const struct view *text, struct span word)
{
    (void)part;
    if (!flow_reserve(out, 2 * (word.end - word.begin)))
        return false;
    for (int64_t at = word.begin; at < word.end; at++) {
        unsigned char byte = (unsigned char)text->data[at];
        int size = 1;
        if ((at - word.begin) % ASK_BYTES == ASK_BYTES - 1 && !flow_go_on(out))
            return false;
        if (byte > ' ' && byte < 0x7F)
            out->data[out->length] = (char)byte;
        else
            size = wf_utf8_encode(unicode_of_byte(byte), out->data + out->length);
        for (int k = 0; out->tracked && k < size; k++)
            out->origin[out->length + k] = view_origin(text, at);
        out->length += size;
    }
    return true;
}

static wf_status split(const void *part, struct scratch *s)
{
    const struct byte_level *b = part;
    if (b->add_prefix_space && !split_rewrite(part, s, prefix_space))
        return WF_ERR_MEMORY;
    wf_status status = b->use_regex ? split_words(part, s) : WF_OK;
    return status == WF_OK && !split_rewrite(part, s, print_bytes) ? WF_ERR_MEMORY : status;
}
const struct part_type pre_byte_level = {"ByteLevel",    PART_PRE_TOKENIZER, sizeof(struct byte_level), BYTE_LEVEL_KEYS(false),
                                         .split = split, .cut = cut};
const struct part_type post_byte_level = {"ByteLevel", PART_POST_PROCESSOR, sizeof(struct byte_level), BYTE_LEVEL_KEYS(false)};

/* Appends bytes as text. Invalid bytes become U+FFFD as Unicode recommends: one for bytes that begin a valid character but are cut off, and
 * one for each other invalid byte. Afterwards `bytes` holds only the start of an incomplete character; with `last` it is empty. */
static bool add_lossy(struct pieces *out, struct wf_string *bytes, bool last)
{
    const char *data = bytes->data;
    int64_t at = 0, length = bytes->length;
    while (at < length) {
        uint32_t point;
        int size = wf_utf8_decode(data + at, length - at, &point);
        if (size > 0) {
            if (!pieces_add(out, data + at, size))
                return false;
            at += size;
            continue;
        }
        /* Sets n to the number of bytes from `at` on that are the start of a valid character, at least to 1. Bytes are such a start if
         * they become a valid character when bytes 0x80 are appended. */
        unsigned char first = (unsigned char)data[at];
        int64_t n = 1;
        for (int64_t take = 2; first >= 0xE0 && take <= 3 && at + take <= length; take++) {
            char trial[4] = {(char)0x80, (char)0x80, (char)0x80, (char)0x80};
            memcpy(trial, data + at, (size_t)take);
            if (wf_utf8_decode(trial, 4, &point) <= take)
                break;
            n = take;
        }
        if (!last && at + n == length && first >= 0xC2 && first <= 0xF4)
            break;
        if (!pieces_add(out, REPLACEMENT, 3))
            return false;
        at += n;
    }
    if (at > 0)
        memmove(bytes->data, data + at, (size_t)(length - at));
    bytes->length -= at;
    return true;
}

static wf_status decode(struct stage *s, struct pieces *out)
{
    bool ok = wf_string_reserve(&s->bytes, s->in.bytes.length);
    for (int64_t i = 0; ok && i < s->ready; i++) {
        int64_t length, before = s->bytes.length;
        const char *text = pieces_get(&s->in, i, &length);
        for (int64_t at = 0; at < length;) {
            int size, byte = unicode_to_byte(wf_utf8_at(text, at, &size));
            if (byte < 0) { /* this piece does not stand for bytes, for example a special token, and is appended unchanged */
                s->bytes.length = before;
                ok = wf_string_add(&s->bytes, text, length);
                break;
            }
            s->bytes.data[s->bytes.length++] = (char)byte;
            at += size;
        }
    }
    return ok && pieces_continue(out, !s->last) && add_lossy(out, &s->bytes, s->last) ? WF_OK : WF_ERR_MEMORY;
}

const struct part_type decoder_byte_level = {"ByteLevel", PART_DECODER, sizeof(struct byte_level), BYTE_LEVEL_KEYS(true), .decode = decode};
