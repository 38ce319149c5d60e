/* SPDX-License-Identifier: MIT */
/* Divides words at matches, by the behaviours of the package `tokenizers`. */
#include <string.h>

#include "split.h"

const char *const behavior_names[] = {[SPLIT_ISOLATED] = "Isolated",
                                      [SPLIT_REMOVED] = "Removed",
                                      [SPLIT_MERGED_WITH_PREVIOUS] = "MergedWithPrevious",
                                      [SPLIT_MERGED_WITH_NEXT] = "MergedWithNext",
                                      [SPLIT_CONTIGUOUS] = "Contiguous",
                                      NULL};

static void add(struct splitter *sp, int64_t begin, int64_t end)
{
    sp->failed = sp->failed || !spans_add(sp->out, begin, end);
}

/* Extends the word's last span to `end`; if the word has no span yet, adds one. */
static void join(struct splitter *sp, int64_t begin, int64_t end)
{
    if (sp->out->count > sp->first)
        sp->out->span[sp->out->count - 1].end = end;
    else
        add(sp, begin, end);
}

static void put(struct splitter *sp, int64_t begin, int64_t end, bool match)
{
    switch (sp->behavior) {
    case SPLIT_REMOVED:
        if (!match)
            add(sp, begin, end);
        break;
    case SPLIT_ISOLATED:
        add(sp, begin, end);
        break;
    case SPLIT_MERGED_WITH_PREVIOUS: /* only the first of adjacent matches is joined to the span before */
        if (match && !sp->was_match)
            join(sp, begin, end);
        else
            add(sp, begin, end);
        break;
    case SPLIT_MERGED_WITH_NEXT: /* only the last of adjacent matches is joined to the span after */
        if (match) {
            if (sp->waits)
                add(sp, sp->waiting.begin, sp->waiting.end);
            sp->waiting = (struct span){begin, end};
        } else {
            add(sp, sp->waits ? sp->waiting.begin : begin, end);
        }
        sp->waits = match;
        break;
    case SPLIT_CONTIGUOUS:
        if (match == sp->was_match)
            join(sp, begin, end);
        else
            add(sp, begin, end);
        break;
    }
    sp->was_match = match;
}

void split_match(struct splitter *sp, int64_t begin, int64_t end)
{
    if (sp->at < begin)
        put(sp, sp->at, begin, sp->invert);
    if (sp->behavior == SPLIT_ISOLATED)
        add(sp, begin, end);
    else
        put(sp, begin, end, !sp->invert);
    sp->at = end;
}

void split_at(struct splitter *sp, const char *data, int64_t begin, int64_t end, const struct text *mark)
{
    /* A simple loop: the next mark is usually one word away, and for such short distances memmem took a sixth of the encoding time. */
    for (int64_t at = begin; at <= end - mark->length;)
        if (data[at] == mark->data[0] && memcmp(data + at, mark->data, (size_t)mark->length) == 0) {
            split_match(sp, at, at + mark->length);
            at += mark->length;
        } else {
            at++;
        }
}

wf_status split_words(const struct part *part, struct scratch *s)
{
    struct spans *words = &s->words.spans, *out = &s->spare, swap = *words;
    out->count = 0;
    for (int64_t i = 0; i < words->count; i++) {
        struct span word = words->span[i];
        struct splitter sp = {.out = out, .first = out->count, .at = word.begin};
        wf_status status = part->type->cut(part, s, &sp, word.begin, word.end);
        if (sp.at < word.end)
            put(&sp, sp.at, word.end, sp.invert);
        if (sp.waits)
            add(&sp, sp.waiting.begin, sp.waiting.end);
        if (sp.failed || status != WF_OK)
            return sp.failed ? WF_ERR_MEMORY : status;
        /* Empty matches make empty spans. These affect how their neighbours are joined above, but they are no words. */
        int64_t kept = sp.first;
        for (int64_t k = sp.first; k < out->count; k++)
            if (out->span[k].begin < out->span[k].end)
                out->span[kept++] = out->span[k];
        out->count = kept;
    }
    *words = *out;
    *out = swap;
    return WF_OK;
}

bool split_rewrite(const void *part, struct scratch *s, rewrite_word *rewrite)
{
    struct flow *out = scratch_flow(s, FLOW_PRE);
    for (struct span *span = s->words.spans.span; span < s->words.spans.span + s->words.spans.count; span++) {
        struct span word = *span;
        span->begin = out->length;
        if (!rewrite(part, out, &s->words.text, word))
            return false;
        span->end = out->length;
    }
    s->words.text = flow_view(out);
    return true;
}
