/* SPDX-License-Identifier: MIT */
/* Metaspace: the pre-tokenizer replaces each space by a mark at the start of the next word, and the decoder turns marks back into
 * spaces. */
#include <string.h>

#include "decoder.h"
#include "split.h"

enum prepend { PREPEND_ALWAYS, PREPEND_FIRST, PREPEND_NEVER };
struct metaspace {
    struct part part;
    struct text mark;
    int32_t prepend;
    bool split;      /* the pre-tokenizer divides the text at marks */
    bool add_prefix; /* the key of files from before version 0.15 of Hugging Face's package tokenizers, which replaced it by prepend_scheme
                      */
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

/* Replaces each space by the mark. Puts a mark before the word if `prepend` asks for it and the word begins with neither a mark nor a
 * space. */
static bool mark_spaces(const void *part, struct flow *out, const struct view *text, struct span word)
{
    const struct metaspace *m = part;
    const struct text *mark = &m->mark;
    const char *data = text->data;
    int64_t origin = view_origin(text, word.begin);
    bool marked = word.end - word.begin >= mark->length && !memcmp(data + word.begin, mark->data, (size_t)mark->length);
    bool prepend = m->prepend == PREPEND_ALWAYS || (m->prepend == PREPEND_FIRST && origin == 0);
    if (prepend && !marked && data[word.begin] != ' ' && !flow_put(out, mark->data, mark->length, origin))
        return false;
    for (int64_t at = word.begin; at < word.end;) {
        const char *space = memchr(data + at, ' ', (size_t)(word.end - at));
        int64_t next = space ? space - data : word.end;
        if (!flow_copy(out, text, at, next - at) || (space && !flow_put(out, mark->data, mark->length, view_origin(text, next))))
            return false;
        at = next + (space != NULL);
    }
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
    if (!split_rewrite(part, s, mark_spaces))
        return WF_ERR_MEMORY;
    return ((const struct metaspace *)part)->split ? split_words(part, s) : WF_OK;
}
const struct part_type pre_metaspace = {"Metaspace",    PART_PRE_TOKENIZER, sizeof(struct metaspace), keys, .ready = ready,
                                        .split = split, .cut = cut};

/* In the first piece the decoder drops marks, because the pre-tokenizer has put a mark before the text, unless `prepend` is "never". */
static wf_status piece(struct stage *s, int64_t i, const char *text, int64_t length, struct pieces *out)
{
    const struct metaspace *d = (const struct metaspace *)s->part;
    bool dropped = s->done + i == 0 && d->prepend != PREPEND_NEVER;
    return pieces_begin(out) && pieces_add_replaced(out, text, length, &d->mark, dropped ? "" : " ") ? WF_OK : WF_ERR_MEMORY;
}
const struct part_type decoder_metaspace = {"Metaspace", PART_DECODER, sizeof(struct metaspace), keys, .ready = ready, .piece = piece};
