/* SPDX-License-Identifier: MIT */
/* Decoders of text: Metaspace, Fuse, Strip, Replace, BPEDecoder, WordPiece. */
#include <string.h>

#include "decoder.h"
#include "metaspace.h"
#include "pattern.h"

/* The first piece loses its marks: they were put there. */
static wf_status metaspace(struct stage *s, struct scratch *scratch, struct pieces *out)
{
    (void)scratch;
    const struct metaspace *d = (const struct metaspace *)s->part;
    for (int64_t i = 0; i < s->ready; i++) {
        int64_t length;
        const char *text = pieces_get(&s->in, i, &length);
        bool dropped = s->done + i == 0 && d->prepend != PREPEND_NEVER;
        if (!pieces_begin(out) || !pieces_add_replaced(out, text, length, &d->mark, dropped ? "" : " "))
            return WF_ERR_MEMORY;
    }
    return WF_OK;
}

const struct part_type decoder_metaspace = {.name = "Metaspace",
                                            .stage = PART_DECODER,
                                            .size = sizeof(struct metaspace),
                                            .keys = metaspace_keys,
                                            .ready = metaspace_ready,
                                            .decode = metaspace};

static wf_status fuse(struct stage *s, struct scratch *scratch, struct pieces *out)
{
    (void)scratch;
    if (s->in.open)
        pieces_get(&s->in, s->ready, &s->partial);
    return pieces_continue(out, !s->last) && pieces_add(out, s->in.bytes.data, s->in.bytes.length) ? WF_OK : WF_ERR_MEMORY;
}

const struct part_type decoder_fuse = {.name = "Fuse", .stage = PART_DECODER, .decode = fuse};

struct strip {
    struct part part;
    struct text text;
    int64_t start, stop;
};

/* Of a piece that is not whole yet it keeps back what may be stripped from its end. */
static wf_status strip(struct stage *s, struct scratch *scratch, struct pieces *out)
{
    (void)scratch;
    const struct strip *d = (const struct strip *)s->part;
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

const struct part_type decoder_strip = {.name = "Strip",
                                        .stage = PART_DECODER,
                                        .size = sizeof(struct strip),
                                        .keys = KEYS({"content", &value_character, offsetof(struct strip, text)},
                                                     {"start", &value_count, offsetof(struct strip, start)},
                                                     {"stop", &value_count, offsetof(struct strip, stop)}),
                                        .decode = strip};

struct replace {
    struct part part;
    const struct pattern *pattern;
    struct text text;
};

static wf_status replace(struct stage *s, struct scratch *scratch, struct pieces *out)
{
    const struct replace *d = (const struct replace *)s->part;
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
            if (!pieces_add(out, text + at, match.begin - at) || !pieces_add(out, d->text.data, d->text.length))
                status = WF_ERR_MEMORY;
            at = match.end;
        }
        if (status == WF_OK && !pieces_add(out, text + at, length - at))
            status = WF_ERR_MEMORY;
    }
    return status;
}

const struct part_type decoder_replace = {
    .name = "Replace",
    .stage = PART_DECODER,
    .size = sizeof(struct replace),
    .keys = KEYS({"pattern", &value_pattern, offsetof(struct replace, pattern)}, {"content", &value_text, offsetof(struct replace, text)}),
    .decode = replace};

struct bpe {
    struct part part;
    struct text text;
};

/* Suffixes end words: the last piece waits for the next one if it has any. */
static wf_status bpe(struct stage *s, struct scratch *scratch, struct pieces *out)
{
    (void)scratch;
    const struct bpe *d = (const struct bpe *)s->part;
    for (int64_t i = 0; i < s->ready; i++) {
        int64_t length;
        const char *text = pieces_get(&s->in, i, &length);
        bool final = i + 1 == s->in.count;
        if (final && !s->last && memmem(text, (size_t)length, d->text.data, (size_t)d->text.length)) {
            s->ready = i;
            break;
        }
        if (!pieces_begin(out) || !pieces_add_replaced(out, text, length, &d->text, final ? "" : " "))
            return WF_ERR_MEMORY;
    }
    return WF_OK;
}

const struct part_type decoder_bpe = {.name = "BPEDecoder",
                                      .stage = PART_DECODER,
                                      .size = sizeof(struct bpe),
                                      .keys = KEYS({"suffix", &value_text, offsetof(struct bpe, text)}),
                                      .decode = bpe};

struct wordpiece {
    struct part part;
    struct text text;
    bool cleanup;
};

/* What BERT's decoder does to English: one after the other, over the piece. */
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
}

static wf_status wordpiece(struct stage *s, struct scratch *scratch, struct pieces *out)
{
    (void)scratch;
    const struct wordpiece *d = (const struct wordpiece *)s->part;
    for (int64_t i = 0; i < s->ready; i++) {
        int64_t length;
        const char *text = pieces_get(&s->in, i, &length);
        bool first = s->done + i == 0, joins = length >= d->text.length && !memcmp(text, d->text.data, (size_t)d->text.length);
        if (!pieces_begin(out) || (!first && !joins && !pieces_add(out, " ", 1)))
            return WF_ERR_MEMORY;
        int64_t skip = !first && joins ? d->text.length : 0;
        if (!pieces_add(out, text + skip, length - skip))
            return WF_ERR_MEMORY;
        if (d->cleanup)
            clean(out);
    }
    return WF_OK;
}

const struct part_type decoder_wordpiece = {
    .name = "WordPiece",
    .stage = PART_DECODER,
    .size = sizeof(struct wordpiece),
    .keys = KEYS({"prefix", &value_text, offsetof(struct wordpiece, text)}, {"cleanup", &value_bool, offsetof(struct wordpiece, cleanup)}),
    .decode = wordpiece};
