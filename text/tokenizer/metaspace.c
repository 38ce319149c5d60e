/* SPDX-License-Identifier: MIT */
/* Metaspace: spaces become marks at the front of words, so that decoding gives back the text. */
#include <string.h>

#include "decoder.h"
#include "split.h"

enum prepend { PREPEND_ALWAYS, PREPEND_FIRST, PREPEND_NEVER };
struct metaspace {
    struct part part;
    struct text mark;
    int32_t prepend;
    bool split;      /* of the pre-tokenizer */
    bool add_prefix; /* versions before 0.15 of the package have it instead of `prepend` */
};
static const char *const prepend_names[] = {"always", "first", "never", NULL};
static const struct key keys[] = {
    {"replacement", &value_character, offsetof(struct metaspace, mark)},
    {"prepend_scheme", &value_name, offsetof(struct metaspace, prepend), .optional = true, .otherwise = -1, .names = prepend_names},
    {"split", &value_bool, offsetof(struct metaspace, split), .optional = true, .otherwise = true},
    {"add_prefix_space", &value_bool, offsetof(struct metaspace, add_prefix), .optional = true, .otherwise = true, .old = true},
    {"str_rep", &value_any, .old = true},
    {0}};

static void ready(struct reader *r, void *part)
{
    struct metaspace *m = part;
    if (m->prepend < 0)
        m->prepend = m->add_prefix ? PREPEND_ALWAYS : PREPEND_NEVER;
    if (m->part.type == &pre_metaspace && m->prepend == PREPEND_FIRST)
        r->t->marks_first = true;
}

/* Puts the mark for each space, and before the word where that is asked for. */
static bool mark_spaces(const struct metaspace *m, struct scratch *s)
{
    struct view text = s->words.text;
    struct flow *flow = scratch_flow(s, FLOW_PRE);
    for (int64_t i = 0; i < s->words.spans.count; i++) {
        struct span *span = s->words.spans.span + i, old = *span;
        int64_t origin = view_origin(&text, old.begin);
        bool marked = old.end - old.begin >= m->mark.length && !memcmp(text.data + old.begin, m->mark.data, (size_t)m->mark.length);
        bool prepend = m->prepend == PREPEND_ALWAYS || (m->prepend == PREPEND_FIRST && origin == 0);
        span->begin = flow->length;
        if (prepend && !marked && text.data[old.begin] != ' ' && !flow_put(flow, m->mark.data, m->mark.length, origin))
            return false;
        for (int64_t at = old.begin; at < old.end;) {
            const char *space = memchr(text.data + at, ' ', (size_t)(old.end - at));
            int64_t next = space ? space - text.data : old.end;
            if (!flow_copy(flow, &text, at, next - at) ||
                (space && !flow_put(flow, m->mark.data, m->mark.length, view_origin(&text, next))))
                return false;
            at = next + (space != NULL);
        }
        span->end = flow->length;
    }
    s->words.text = flow_view(flow);
    return true;
}

static wf_status cut(const void *part, struct scratch *s, struct splitter *sp, int64_t begin, int64_t end)
{
    sp->behavior = SPLIT_MERGED_WITH_NEXT;
    split_at(sp, s->words.text.data, begin, end, &((const struct metaspace *)part)->mark);
    return WF_OK;
}

static wf_status split(const void *part, struct scratch *s)
{
    const struct metaspace *m = part;
    if (!mark_spaces(m, s))
        return WF_ERR_MEMORY;
    return m->split ? split_words(part, s) : WF_OK;
}
const struct part_type pre_metaspace = {"Metaspace",    PART_PRE_TOKENIZER, sizeof(struct metaspace), keys, .ready = ready,
                                        .split = split, .cut = cut};

/* The first piece loses its marks: they were put there. */
static wf_status piece(struct stage *s, int64_t i, const char *text, int64_t length, struct pieces *out)
{
    const struct metaspace *d = (const struct metaspace *)s->part;
    bool dropped = s->done + i == 0 && d->prepend != PREPEND_NEVER;
    return pieces_begin(out) && pieces_add_replaced(out, text, length, &d->mark, dropped ? "" : " ") ? WF_OK : WF_ERR_MEMORY;
}
const struct part_type decoder_metaspace = {"Metaspace", PART_DECODER, sizeof(struct metaspace), keys, .ready = ready, .piece = piece};
