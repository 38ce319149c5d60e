/* SPDX-License-Identifier: MIT */
/* The steps from pieces to text, as `tokenizers` has them. Each makes new pieces of those that have arrived, and keeps back what a later
 * piece may still change: the text is the same however many pieces arrive at a time. */
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
    if (length > pieces->most - pieces->total || !wf_string_add(&pieces->bytes, bytes, length))
        return false;
    pieces->total += length;
    pieces->end[pieces->count - 1] = pieces->bytes.length;
    return true;
}

void pieces_drop(struct pieces *pieces, int64_t count, int64_t partial)
{
    int64_t from = (count > 0 ? pieces->end[count - 1] : 0) + partial;
    if (from > 0)
        memmove(pieces->bytes.data, pieces->bytes.data + from, (size_t)(pieces->bytes.length - from + 1));
    pieces->bytes.length -= from;
    pieces->count -= count;
    for (int64_t i = 0; i < pieces->count; i++)
        pieces->end[i] = pieces->end[i + count] - from;
}

/* The piece that a step is still writing, or a new one. */
static bool pieces_continue(struct pieces *pieces, bool open)
{
    if (!pieces->open && !pieces_begin(pieces))
        return false;
    pieces->open = open;
    return true;
}

static bool pieces_new(struct pieces *pieces, const char *bytes, int64_t length)
{
    return pieces_begin(pieces) && pieces_add(pieces, bytes, length);
}

const char *pieces_get(const struct pieces *pieces, int64_t i, int64_t *length)
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

static bool byte_level(struct stage *s, struct pieces *out)
{
    bool ok = wf_string_reserve(&s->bytes, s->in.bytes.length);
    for (int64_t i = 0; ok && i < s->ready; i++) {
        int64_t length, before = s->bytes.length;
        const char *text = pieces_get(&s->in, i, &length);
        for (int64_t at = 0; at < length;) {
            int size, byte = unicode_to_byte(unicode_at(text, at, &size));
            if (byte < 0) { /* not a piece of bytes, such as a special token: it stands for itself */
                s->bytes.length = before;
                ok = wf_string_add(&s->bytes, text, length);
                break;
            }
            s->bytes.data[s->bytes.length++] = (char)byte;
            at += size;
        }
    }
    return ok && pieces_continue(out, !s->last) && add_lossy(out, &s->bytes, s->last);
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

/* Whether a run of bytes is text is known when it ends. */
static bool byte_fallback(struct stage *s, struct pieces *out)
{
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
    return ok && (!s->last || put_bytes(out, &s->bytes));
}

/* The first piece loses its marks: they were put there. */
static bool metaspace(struct stage *s, struct pieces *out)
{
    const struct decoder *d = s->decoder;
    for (int64_t i = 0; i < s->ready; i++) {
        int64_t length;
        const char *text = pieces_get(&s->in, i, &length);
        bool dropped = s->done + i == 0 && d->prepend != PREPEND_NEVER;
        if (!pieces_begin(out) || !add_replaced(out, text, length, d->text, d->text_length, dropped ? "" : " "))
            return false;
    }
    return true;
}

static bool fuse(struct stage *s, struct pieces *out)
{
    if (s->in.open)
        pieces_get(&s->in, s->ready, &s->partial);
    return pieces_continue(out, !s->last) && pieces_add(out, s->in.bytes.data, s->in.bytes.length);
}

/* Of a piece that is not whole yet it keeps back what may be stripped from its end. */
static bool strip(struct stage *s, struct pieces *out)
{
    const struct decoder *d = s->decoder;
    int64_t n = d->text_length;
    for (int64_t i = 0; i < s->in.count; i++) {
        int64_t length, end = 0;
        const char *text = pieces_get(&s->in, i, &length), *begin = text;
        for (; s->stripped < d->start && length >= n && !memcmp(text, d->text, (size_t)n); s->stripped++) {
            text += n;
            length -= n;
        }
        if (length > 0)
            s->stripped = d->start;
        for (int64_t k = 0; k < d->stop && length - end >= n && !memcmp(text + length - end - n, d->text, (size_t)n); k++)
            end += n;
        if (!pieces_continue(out, i == s->ready) || !pieces_add(out, text, length - end))
            return false;
        if (i == s->ready)
            s->partial = text + length - end - begin;
        else
            s->stripped = 0;
    }
    return true;
}

static wf_status replace(struct stage *s, struct scratch *scratch, struct pieces *out)
{
    const struct decoder *d = s->decoder;
    wf_status status = WF_OK;
    for (int64_t i = 0; status == WF_OK && i < s->ready; i++) {
        int64_t length, at = 0;
        const char *text = pieces_get(&s->in, i, &length);
        scratch->matches.count = 0;
        status = pattern_find(d->pattern, scratch, text, 0, length);
        if (status == WF_OK && !pieces_begin(out))
            status = WF_ERR_MEMORY;
        for (int64_t k = 0; status == WF_OK && k < scratch->matches.count; k++) {
            struct span match = scratch->matches.span[k];
            if (!pieces_add(out, text + at, match.begin - at) || !pieces_add(out, d->text, d->text_length))
                status = WF_ERR_MEMORY;
            at = match.end;
        }
        if (status == WF_OK && !pieces_add(out, text + at, length - at))
            status = WF_ERR_MEMORY;
    }
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

static bool wordpiece(struct stage *s, struct pieces *out)
{
    const struct decoder *d = s->decoder;
    for (int64_t i = 0; i < s->ready; i++) {
        int64_t length;
        const char *text = pieces_get(&s->in, i, &length);
        bool first = s->done + i == 0, joins = length >= d->text_length && !memcmp(text, d->text, (size_t)d->text_length);
        if (!pieces_begin(out) || (!first && !joins && !pieces_add(out, " ", 1)))
            return false;
        int64_t skip = !first && joins ? d->text_length : 0;
        if (!pieces_add(out, text + skip, length - skip) || (d->cleanup && !clean(out)))
            return false;
    }
    return true;
}

/* Suffixes end words: the last piece waits for the next one if it has any. */
static bool bpe(struct stage *s, struct pieces *out)
{
    const struct decoder *d = s->decoder;
    for (int64_t i = 0; i < s->ready; i++) {
        int64_t length;
        const char *text = pieces_get(&s->in, i, &length);
        bool final = i + 1 == s->in.count;
        if (final && !s->last && memmem(text, (size_t)length, d->text, (size_t)d->text_length)) {
            s->ready = i;
            break;
        }
        if (!pieces_begin(out) || !add_replaced(out, text, length, d->text, d->text_length, final ? "" : " "))
            return false;
    }
    return true;
}

static wf_status step(struct stage *s, struct scratch *scratch, struct pieces *out)
{
    bool ok = true;
    switch (s->decoder->type) {
    case DECODE_METASPACE:
        ok = metaspace(s, out);
        break;
    case DECODE_BYTE_LEVEL:
        ok = byte_level(s, out);
        break;
    case DECODE_BYTE_FALLBACK:
        ok = byte_fallback(s, out);
        break;
    case DECODE_FUSE:
        ok = fuse(s, out);
        break;
    case DECODE_REPLACE:
        return replace(s, scratch, out);
    case DECODE_STRIP:
        ok = strip(s, out);
        break;
    case DECODE_WORDPIECE:
        ok = wordpiece(s, out);
        break;
    case DECODE_BPE:
        ok = bpe(s, out);
        break;
    case DECODE_SEQUENCE: /* has no stage of its own */
        break;
    }
    return ok ? WF_OK : WF_ERR_MEMORY;
}

wf_status stage_run(struct stage *s, struct scratch *scratch, struct pieces *out, bool last)
{
    s->ready = s->in.count - s->in.open;
    s->partial = 0;
    s->last = last;
    wf_status status = step(s, scratch, out);
    pieces_drop(&s->in, s->ready, s->partial);
    s->done += s->ready;
    return status;
}
