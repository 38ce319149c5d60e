/* SPDX-License-Identifier: MIT */
#include "split.h"

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
