/* SPDX-License-Identifier: MIT */
/* From pieces to text, as `tokenizers` does. Each step makes new pieces of all pieces; the last ones are joined. */
#include <string.h>

#include "decoder.h"
#include "unicode.h"
#include <weft/internal/utf8.h>
#include <weft/memory.h>

#define REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

bool pieces_begin(struct pieces *pieces)
{
    if (!scratch_room(&pieces->end, &pieces->capacity, pieces->count + 1, sizeof *pieces->end))
        return false;
    pieces->end[pieces->count++] = pieces->bytes.length;
    return true;
}

bool pieces_add(struct pieces *pieces, const char *bytes, int64_t length)
{
    if (length > pieces->most - pieces->bytes.length || !wf_string_add(&pieces->bytes, bytes, length))
        return false;
    pieces->end[pieces->count - 1] = pieces->bytes.length;
    return true;
}

static bool pieces_new(struct pieces *pieces, const char *bytes, int64_t length)
{
    return pieces_begin(pieces) && pieces_add(pieces, bytes, length);
}

static const char *piece(const struct pieces *pieces, int64_t i, int64_t *length)
{
    int64_t begin = i > 0 ? pieces->end[i - 1] : 0;
    *length = pieces->end[i] - begin;
    return pieces->bytes.data + begin;
}

/* Appends data with each `from` as `to`; an empty `from` is around every character. */
static bool add_replaced(struct pieces *out, const char *data, int64_t length, const char *from, int64_t from_length, const char *to)
{
    int64_t to_length = (int64_t)strlen(to);
    for (int size; from_length == 0 && length > 0; data += size, length -= size) {
        unicode_at(data, 0, &size);
        if (!pieces_add(out, to, to_length) || !pieces_add(out, data, size))
            return false;
    }
    if (from_length == 0)
        return pieces_add(out, to, to_length);
    for (const char *found; (found = memmem(data, (size_t)length, from, (size_t)from_length));) {
        if (!pieces_add(out, data, found - data) || !pieces_add(out, to, to_length))
            return false;
        length -= found - data + from_length;
        data = found + from_length;
    }
    return pieces_add(out, data, length);
}

/* Appends bytes as text: what is not UTF-8 becomes U+FFFD, one for each longest beginning of a character, as Unicode advises. */
static bool add_lossy(struct pieces *out, const char *data, int64_t length)
{
    for (int64_t at = 0; at < length;) {
        uint32_t point;
        int size = wf_utf8_decode(data + at, length - at, &point);
        if (size > 0) {
            if (!pieces_add(out, data + at, size))
                return false;
            at += size;
            continue;
        }
        if (!pieces_add(out, REPLACEMENT, 3))
            return false;
        /* How much of it could have begun a character: a cut one decodes with some continuation put after it. */
        int64_t n = 1;
        for (int64_t take = 2; take <= 3 && at + take <= length; take++) {
            char trial[4] = {0};
            memcpy(trial, data + at, (size_t)take);
            for (int64_t k = take; k < 4; k++)
                trial[k] = (char)0x80;
            if ((unsigned char)trial[0] < 0xE0 || wf_utf8_decode(trial, 4, &point) <= take)
                break;
            n = take;
        }
        at += n;
    }
    return true;
}

static bool byte_level(const struct pieces *in, struct pieces *out)
{
    struct wf_string bytes = {0};
    bool ok = wf_string_reserve(&bytes, in->bytes.length);
    for (int64_t i = 0; ok && i < in->count; i++) {
        int64_t length, before = bytes.length;
        const char *text = piece(in, i, &length);
        for (int64_t at = 0; at < length;) {
            int size, byte = unicode_to_byte(unicode_at(text, at, &size));
            if (byte < 0) { /* not a piece of bytes, such as a special token: it stands for itself */
                bytes.length = before;
                ok = wf_string_add(&bytes, text, length);
                break;
            }
            bytes.data[bytes.length++] = (char)byte;
            at += size;
        }
    }
    ok = ok && pieces_begin(out) && add_lossy(out, bytes.data, bytes.length);
    wf_string_free(&bytes);
    return ok;
}

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

static bool byte_fallback(const struct pieces *in, struct pieces *out)
{
    struct wf_string bytes = {0};
    bool ok = true;
    for (int64_t i = 0; ok && i < in->count; i++) {
        int64_t length;
        const char *text = piece(in, i, &length);
        int byte = byte_of(text, length);
        if (byte >= 0)
            ok = wf_string_add(&bytes, &(char){(char)byte}, 1);
        else
            ok = put_bytes(out, &bytes) && pieces_new(out, text, length);
    }
    ok = ok && put_bytes(out, &bytes);
    wf_string_free(&bytes);
    return ok;
}

/* The first piece loses its marks: they were put there. */
static bool metaspace(const struct decoder *d, const struct pieces *in, struct pieces *out)
{
    for (int64_t i = 0; i < in->count; i++) {
        int64_t length;
        const char *text = piece(in, i, &length);
        if (!pieces_begin(out) ||
            !add_replaced(out, text, length, d->text, d->text_length, i == 0 && d->prepend != PREPEND_NEVER ? "" : " "))
            return false;
    }
    return true;
}

static bool strip(const struct decoder *d, const struct pieces *in, struct pieces *out)
{
    for (int64_t i = 0; i < in->count; i++) {
        int64_t length, n = d->text_length;
        const char *text = piece(in, i, &length);
        for (int64_t k = 0; k < d->start && n > 0 && length >= n && !memcmp(text, d->text, (size_t)n); k++) {
            text += n;
            length -= n;
        }
        for (int64_t k = 0; k < d->stop && n > 0 && length >= n && !memcmp(text + length - n, d->text, (size_t)n); k++)
            length -= n;
        if (!pieces_new(out, text, length))
            return false;
    }
    return true;
}

static wf_status replace(const struct decoder *d, const struct pieces *in, struct pieces *out)
{
    struct scratch s = {0};
    wf_status status = WF_OK;
    for (int64_t i = 0; status == WF_OK && i < in->count; i++) {
        int64_t length, at = 0;
        const char *text = piece(in, i, &length);
        status = pattern_find(d->pattern, &s, text, 0, length);
        if (status == WF_OK && !pieces_begin(out))
            status = WF_ERR_MEMORY;
        for (int64_t k = 0; status == WF_OK && k < s.matches.count; k++) {
            struct span match = s.matches.span[k];
            if (!pieces_add(out, text + at, match.begin - at) || !pieces_add(out, d->text, d->text_length))
                status = WF_ERR_MEMORY;
            at = match.end;
        }
        if (status == WF_OK && !pieces_add(out, text + at, length - at))
            status = WF_ERR_MEMORY;
    }
    scratch_free(&s);
    return status;
}

/* What BERT's decoder does to English: one after the other, over the piece. */
static bool clean(struct pieces *out)
{
    static const char *const pairs[][2] = {{" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
                                           {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
                                           {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++) {
        int64_t begin = out->count > 1 ? out->end[out->count - 2] : 0, from = (int64_t)strlen(pairs[p][0]),
                to = (int64_t)strlen(pairs[p][1]);
        char *data = out->bytes.data, *at = data + begin, *end = data + out->bytes.length, *write = at, *found;
        if (at == end || !memmem(at, (size_t)(end - at), pairs[p][0], (size_t)from))
            continue;
        for (; (found = memmem(at, (size_t)(end - at), pairs[p][0], (size_t)from)); at = found + from) { /* none gets longer */
            memmove(write, at, (size_t)(found - at));
            write += found - at;
            memcpy(write, pairs[p][1], (size_t)to);
            write += to;
        }
        memmove(write, at, (size_t)(end - at));
        out->bytes.length = write + (end - at) - data;
        out->end[out->count - 1] = out->bytes.length;
    }
    return true;
}

static bool wordpiece(const struct decoder *d, const struct pieces *in, struct pieces *out)
{
    for (int64_t i = 0; i < in->count; i++) {
        int64_t length;
        const char *text = piece(in, i, &length);
        bool joins = length >= d->text_length && !memcmp(text, d->text, (size_t)d->text_length);
        if (!pieces_begin(out) || (i > 0 && !joins && !pieces_add(out, " ", 1)))
            return false;
        int64_t skip = i > 0 && joins ? d->text_length : 0;
        if (!pieces_add(out, text + skip, length - skip) || (d->cleanup && !clean(out)))
            return false;
    }
    return true;
}

/* Suffixes end words. */
static bool bpe(const struct decoder *d, const struct pieces *in, struct pieces *out)
{
    for (int64_t i = 0; i < in->count; i++) {
        int64_t length;
        const char *text = piece(in, i, &length);
        if (!pieces_begin(out) || !add_replaced(out, text, length, d->text, d->text_length, i + 1 == in->count ? "" : " "))
            return false;
    }
    return true;
}

static wf_status step(const struct decoder *d, struct pieces *in, struct pieces *out)
{
    bool ok = true;
    switch (d->type) {
    case DECODE_METASPACE:
        ok = metaspace(d, in, out);
        break;
    case DECODE_BYTE_LEVEL:
        ok = byte_level(in, out);
        break;
    case DECODE_BYTE_FALLBACK:
        ok = byte_fallback(in, out);
        break;
    case DECODE_FUSE:
        ok = pieces_new(out, in->bytes.data, in->bytes.length);
        break;
    case DECODE_REPLACE:
        return replace(d, in, out);
    case DECODE_STRIP:
        ok = strip(d, in, out);
        break;
    case DECODE_WORDPIECE:
        ok = wordpiece(d, in, out);
        break;
    case DECODE_BPE:
        ok = bpe(d, in, out);
        break;
    case DECODE_SEQUENCE:
        break;
    }
    return ok ? WF_OK : WF_ERR_MEMORY;
}

/* Runs a step, or all of a sequence, on *pieces. */
static wf_status run(const struct decoder *d, struct pieces *pieces, struct pieces *spare)
{
    wf_status status = WF_OK;
    if (d->type == DECODE_SEQUENCE) {
        for (int64_t i = 0; status == WF_OK && i < d->steps; i++)
            status = run(d->step[i], pieces, spare);
        return status;
    }
    spare->count = spare->bytes.length = 0;
    status = step(d, pieces, spare);
    struct pieces swap = *pieces;
    *pieces = *spare;
    *spare = swap;
    return status;
}

wf_status decoder_run(const struct decoder *d, struct pieces *pieces, struct wf_string *out)
{
    struct pieces spare = {.most = ((int64_t)16 << 20) + 32 * pieces->bytes.length};
    pieces->most = spare.most;
    wf_status status = d ? run(d, pieces, &spare) : WF_OK;
    if (status == WF_OK && !wf_string_reserve(out, pieces->bytes.length + (d ? 0 : pieces->count)))
        status = WF_ERR_MEMORY;
    for (int64_t i = 0; status == WF_OK && i < pieces->count; i++) {
        int64_t length;
        const char *text = piece(pieces, i, &length);
        if (!d && i > 0)
            wf_string_add(out, " ", 1);
        wf_string_add(out, text, length);
    }
    wf_string_free(&spare.bytes);
    wf_free(spare.end);
    return status;
}
