/* SPDX-License-Identifier: MIT */
/* Metaspace: spaces become marks at the front of words, so that decoding gives back the text. */
#include <string.h>

#include "metaspace.h"
#include "split.h"
#include <weft/internal/json.h>

static const char *const prepend_names[] = {[PREPEND_ALWAYS] = "always", [PREPEND_FIRST] = "first", [PREPEND_NEVER] = "never", NULL};

const struct key metaspace_keys[] = {
    {"replacement", &value_character, offsetof(struct metaspace, mark)},
    {"prepend_scheme", &value_name, offsetof(struct metaspace, prepend), .optional = true, .names = prepend_names},
    {"split", &value_bool, offsetof(struct metaspace, split), .optional = true, .otherwise = true},
    {"add_prefix_space", &value_ignored},
    {"str_rep", &value_ignored},
    {0}};

/* Versions before 0.15 of the package say add_prefix_space. */
wf_status metaspace_ready(struct reader *r, json_t *object, void *part)
{
    struct metaspace *m = part;
    bool prefix = true;
    wf_status status = wf_json_get_bool(object, r->where, "add_prefix_space", WF_JSON_OPTIONAL, &prefix, r->error);
    json_t *scheme = json_object_get(object, "prepend_scheme");
    if (!prefix && (!scheme || json_is_null(scheme)))
        m->prepend = PREPEND_NEVER;
    if (m->part.type == &pre_metaspace && m->prepend == PREPEND_FIRST)
        r->t->marks_first = true;
    return status;
}

/* Puts the mark for each space, and before the word where that is asked for. */
static bool mark_spaces(const struct metaspace *m, struct scratch *s)
{
    struct view text = s->words.text;
    struct flow *flow = scratch_pre(s);
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
    const struct metaspace *m = part;
    split_at(sp, s->words.text.data, begin, end, m->mark.data, m->mark.length);
    return WF_OK;
}

static wf_status metaspace(const void *part, struct scratch *s)
{
    const struct metaspace *m = part;
    if (!mark_spaces(m, s))
        return WF_ERR_MEMORY;
    return m->split ? split_words(m, s, SPLIT_MERGED_WITH_NEXT, cut) : WF_OK;
}

const struct part_type pre_metaspace = {.name = "Metaspace",
                                        .stage = PART_PRE_TOKENIZER,
                                        .size = sizeof(struct metaspace),
                                        .keys = metaspace_keys,
                                        .ready = metaspace_ready,
                                        .split = metaspace};
