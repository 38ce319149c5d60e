/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "split.h"

const char *const behavior_names[] = {[SPLIT_REMOVED] = "Removed",
                                      [SPLIT_ISOLATED] = "Isolated",
                                      [SPLIT_MERGED_WITH_PREVIOUS] = "MergedWithPrevious",
                                      [SPLIT_MERGED_WITH_NEXT] = "MergedWithNext",
                                      [SPLIT_CONTIGUOUS] = "Contiguous",
                                      NULL};

void split_begin(struct splitter *sp, struct spans *out, enum behavior behavior)
{
    *sp = (struct splitter){.out = out, .behavior = behavior, .first = out->count};
}

static void add(struct splitter *sp, int64_t begin, int64_t end)
{
    sp->failed = sp->failed || !spans_add(sp->out, begin, end);
}

/* To the last stretch of the word, if there is one. */
static void join(struct splitter *sp, int64_t begin, int64_t end)
{
    if (sp->out->count > sp->first)
        sp->out->span[sp->out->count - 1].end = end;
    else
        add(sp, begin, end);
}

void split_put(struct splitter *sp, int64_t begin, int64_t end, bool match)
{
    switch (sp->behavior) {
    case SPLIT_REMOVED:
        if (!match)
            add(sp, begin, end);
        break;
    case SPLIT_ISOLATED:
        add(sp, begin, end);
        break;
    case SPLIT_MERGED_WITH_PREVIOUS: /* of several matches in a row, the first */
        if (match && !sp->was_match)
            join(sp, begin, end);
        else
            add(sp, begin, end);
        break;
    case SPLIT_MERGED_WITH_NEXT: /* the last */
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

bool split_end(struct splitter *sp)
{
    if (sp->waits)
        add(sp, sp->waiting.begin, sp->waiting.end);
    /* Empty stretches come from empty matches; they count above, but are no words. */
    int64_t kept = sp->first;
    for (int64_t i = sp->first; i < sp->out->count; i++)
        if (sp->out->span[i].begin < sp->out->span[i].end)
            sp->out->span[kept++] = sp->out->span[i];
    sp->out->count = kept;
    return !sp->failed;
}

wf_status split_words(const void *part, struct scratch *s, enum behavior behavior, cut_word *cut)
{
    struct spans *words = &s->words.spans, *out = &s->spare;
    out->count = 0;
    for (int64_t i = 0; i < words->count; i++) {
        struct splitter sp;
        split_begin(&sp, out, behavior);
        wf_status status = cut(part, s, &sp, words->span[i].begin, words->span[i].end);
        if (!split_end(&sp))
            return WF_ERR_MEMORY;
        if (status != WF_OK)
            return status;
    }
    struct spans swap = *words;
    *words = *out;
    *out = swap;
    return WF_OK;
}

void split_at(struct splitter *sp, const char *data, int64_t begin, int64_t end, const char *mark, int64_t length)
{
    int64_t run = begin;
    const char *found;
    for (int64_t at = begin; (found = memmem(data + at, (size_t)(end - at), mark, (size_t)length)); at = run) {
        if (run < found - data)
            split_put(sp, run, found - data, false);
        run = found - data + length;
        split_put(sp, found - data, run, true);
    }
    if (run < end)
        split_put(sp, run, end, false);
}
