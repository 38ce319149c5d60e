/* SPDX-License-Identifier: MIT */
/* Decoders that work on characters: Fuse, Strip, Replace, BPEDecoder, WordPiece, ByteFallback. */
#include <string.h>

#include "decoder.h"
#include "pattern.h"
#include <weft/internal/utf8.h>

/* The values of all these decoders' keys; each decoder uses those that its own keys set. */
struct text_decoder {
    struct part part;
    struct text text;
    const struct pattern *pattern;
    int64_t start, stop;
    bool cleanup;
};

static wf_status fuse(struct stage *s, struct pieces *out)
{
    if (s->in.open)
        pieces_get(&s->in, s->ready, &s->partial);
    return pieces_continue(out, !s->last) && pieces_add(out, s->in.bytes.data, s->in.bytes.length) ? WF_OK : WF_ERR_MEMORY;
}

const struct part_type decoder_fuse = {"Fuse", PART_DECODER, .decode = fuse};

/* Of an open piece, the end is held back if it may have to be stripped. */
static wf_status strip(struct stage *s, struct pieces *out)
{
    const struct text_decoder *d = (const struct text_decoder *)s->part;
    int64_t n = d->text.length;
    for (int64_t i = 0; i < s->in.count; i++) {
        int64_t length, end = 0;
        const char *text = pieces_get(&s->in, i, &length), *begin = text;
        for (; s->stripped < d->start && length >= n && !memcmp(text, d->text.data, (size_t)n); s->stripped++) {
            text += n;
            length -= n;
        }
        if (length > 0)
            s->stripped = d->start;
        for (int64_t k = 0; k < d->stop && length - end >= n && !memcmp(text + length - end - n, d->text.data, (size_t)n); k++)
            end += n;
        if (!pieces_continue(out, i == s->ready) || !pieces_add(out, text, length - end))
            return WF_ERR_MEMORY;
        if (i == s->ready)
            s->partial = text + length - end - begin;
        else
            s->stripped = 0;
    }
    return WF_OK;
}

const struct part_type decoder_strip = {"Strip", PART_DECODER, sizeof(struct text_decoder),
                                        KEYS({"content", &value_character, offsetof(struct text_decoder, text)},
                                             {"start", &value_count, offsetof(struct text_decoder, start)},
                                             {"stop", &value_count, offsetof(struct text_decoder, stop)}),
                                        .decode = strip};

static wf_status replace(struct stage *s, int64_t i, const char *text, int64_t length, struct pieces *out)
{
    const struct text_decoder *d = (const struct text_decoder *)s->part;
    const struct spans *matches = &s->scratch->matches;
    int64_t at = 0;
    (void)i;
    wf_status status = pattern_find(d->pattern, s->scratch, text, 0, length);
    if (status != WF_OK)
        return status;
    bool ok = pieces_begin(out);
    for (int64_t k = 0; ok && k < matches->count; k++) {
        ok = pieces_add(out, text + at, matches->span[k].begin - at) && pieces_add(out, d->text.data, d->text.length);
        at = matches->span[k].end;
    }
    return ok && pieces_add(out, text + at, length - at) ? WF_OK : WF_ERR_MEMORY;
}

const struct part_type decoder_replace = {"Replace", PART_DECODER, sizeof(struct text_decoder),
                                          KEYS({"pattern", &value_pattern, offsetof(struct text_decoder, pattern)},
                                               {"content", &value_text, offsetof(struct text_decoder, text)}),
                                          .piece = replace};

/* A suffix ends a word and becomes a space; in the last piece it is removed. So a piece with a suffix waits until another piece follows. */
static wf_status bpe(struct stage *s, int64_t i, const char *text, int64_t length, struct pieces *out)
{
    const struct text_decoder *d = (const struct text_decoder *)s->part;
    bool final = i + 1 == s->in.count;
    if (final && !s->last && memmem(text, (size_t)length, d->text.data, (size_t)d->text.length)) {
        s->ready = i;
        return WF_OK;
    }
    return pieces_begin(out) && pieces_add_replaced(out, text, length, &d->text, final ? "" : " ") ? WF_OK : WF_ERR_MEMORY;
}

const struct part_type decoder_bpe = {"BPEDecoder", PART_DECODER, sizeof(struct text_decoder),
                                      KEYS({"suffix", &value_text, offsetof(struct text_decoder, text)}), .piece = bpe};

/* BERT's clean-up of English text: applies these replacements, in order, to the last piece. */
static void clean(struct pieces *out)
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
        for (; (found = memmem(at, (size_t)(end - at), pairs[p][0], (size_t)from));
             at = found + from) { /* in place, since no replacement is longer than its original */
            memmove(write, at, (size_t)(found - at));
            write += found - at;
            memcpy(write, pairs[p][1], (size_t)to);
            write += to;
        }
        memmove(write, at, (size_t)(end - at));
        out->bytes.length = write + (end - at) - data;
        out->end[out->count - 1] = out->bytes.length;
    }
}

static wf_status wordpiece(struct stage *s, int64_t i, const char *text, int64_t length, struct pieces *out)
{
    const struct text_decoder *d = (const struct text_decoder *)s->part;
    bool first = s->done + i == 0, joins = length >= d->text.length && !memcmp(text, d->text.data, (size_t)d->text.length);
    int64_t skip = !first && joins ? d->text.length : 0;
    if (!pieces_begin(out) || (!first && !joins && !pieces_add(out, " ", 1)) || !pieces_add(out, text + skip, length - skip))
        return WF_ERR_MEMORY;
    if (d->cleanup)
        clean(out);
    return WF_OK;
}

const struct part_type decoder_wordpiece = {
    "WordPiece", PART_DECODER, sizeof(struct text_decoder),
    KEYS({"prefix", &value_text, offsetof(struct text_decoder, text)}, {"cleanup", &value_bool, offsetof(struct text_decoder, cleanup)}),
    .piece = wordpiece};

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* The byte that a piece such as "<0x41>" stands for; -1 for any other piece. */
static int byte_of(const char *text, int64_t length)
{
    if (length != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>')
        return -1;
    int high = text[3] == '+' ? 0 : hex(text[3]), low = hex(text[4]); /* Rust's parser accepts a plus sign as the first digit */
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

/* Holds back a run of bytes until it ends, because only then it is known whether the run is valid UTF-8. */
static wf_status byte_fallback(struct stage *s, struct pieces *out)
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
    return ok && (!s->last || put_bytes(out, &s->bytes)) ? WF_OK : WF_ERR_MEMORY;
}

const struct part_type decoder_byte_fallback = {"ByteFallback", PART_DECODER, .decode = byte_fallback};
