/* SPDX-License-Identifier: MIT */
/* Decoders of bytes: ByteLevel, ByteFallback. */
#include <string.h>

#include "byte_level.h"
#include "decoder.h"
#include "unicode.h"
#include <weft/internal/utf8.h>

#define REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

/* Appends bytes as text: what is not UTF-8 becomes U+FFFD, one for each longest beginning of a character, as Unicode advises. What is left
 * in `bytes` begins a character that is not complete. */
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
        /* How much of it could have begun a character: a cut one decodes with some continuation put after it. */
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

static wf_status byte_level(struct stage *s, struct scratch *scratch, struct pieces *out)
{
    (void)scratch;
    bool ok = wf_string_reserve(&s->bytes, s->in.bytes.length);
    for (int64_t i = 0; ok && i < s->ready; i++) {
        int64_t length, before = s->bytes.length;
        const char *text = pieces_get(&s->in, i, &length);
        for (int64_t at = 0; at < length;) {
            int size, byte = unicode_to_byte(wf_utf8_at(text, at, &size));
            if (byte < 0) { /* not a piece of bytes, such as a special token: it stands for itself */
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

static const struct key keys[] = BYTE_LEVEL_KEYS(true);
const struct part_type decoder_byte_level = {
    .name = "ByteLevel", .stage = PART_DECODER, .size = sizeof(struct byte_level), .keys = keys, .decode = byte_level};

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* The byte of "<0x41>", or -1. */
static int byte_of(const char *text, int64_t length)
{
    if (length != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>')
        return -1;
    int high = text[3] == '+' ? 0 : hex(text[3]), low = hex(text[4]); /* Rust reads a sign too */
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

static bool put_bytes(struct pieces *out, struct wf_string *bytes)
{
    bool valid = true, ok = true;
    for (int64_t at = 0; valid && at < bytes->length;) {
        uint32_t point;
        int size = wf_utf8_decode(bytes->data + at, bytes->length - at, &point);
        valid = size > 0;
        at += size;
    }
    if (valid && bytes->length > 0)
        ok = pieces_new(out, bytes->data, bytes->length);
    for (int64_t i = 0; ok && !valid && i < bytes->length; i++)
        ok = pieces_new(out, REPLACEMENT, 3);
    bytes->length = 0;
    return ok;
}

/* Whether a run of bytes is text is known when it ends. */
static wf_status byte_fallback(struct stage *s, struct scratch *scratch, struct pieces *out)
{
    (void)scratch;
    bool ok = true;
    for (int64_t i = 0; ok && i < s->ready; i++) {
        int64_t length;
        const char *text = pieces_get(&s->in, i, &length);
        int byte = byte_of(text, length);
        if (byte >= 0)
            ok = wf_string_char(&s->bytes, (char)byte);
        else
            ok = put_bytes(out, &s->bytes) && pieces_new(out, text, length);
    }
    return ok && (!s->last || put_bytes(out, &s->bytes)) ? WF_OK : WF_ERR_MEMORY;
}

const struct part_type decoder_byte_fallback = {.name = "ByteFallback", .stage = PART_DECODER, .decode = byte_fallback};
