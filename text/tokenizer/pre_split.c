/* SPDX-License-Identifier: MIT */
/* Pre-tokenizers that divide words at characters or patterns: Whitespace, WhitespaceSplit, BertPreTokenizer, Punctuation, Digits,
 * CharDelimiterSplit, Split. */
#include "pattern.h"
#include "split.h"
#include "unicode.h"
#include <weft/internal/utf8.h>

/* Divides a word into runs of characters that are equal in `classes`, and drops white space if CHAR_SPACE is among `classes`. Each
 * character of the classes `alone` is a word of its own. */
static inline wf_status cut_runs(struct scratch *s, struct splitter *sp, int64_t begin, int64_t end, unsigned classes, unsigned alone)
{
    unsigned last = CHAR_SPACE;
    int64_t run = begin;
    for (int64_t at = begin, asked = begin; at < end;) {
        int size;
        if (scratch_cancelled_at(s, at, &asked))
            return WF_ERR_CANCELLED;
        unsigned now = unicode_class(wf_utf8_at(s->words.text.data, at, &size)) & classes;
        if (now != last || now & alone) {
            if (last != CHAR_SPACE)
                split_match(sp, run, at);
            run = sp->at = at;
            last = now;
        }
        at += size;
    }
    if (last != CHAR_SPACE && run < end)
        split_match(sp, run, end);
    sp->at = end;
    return WF_OK;
}

static wf_status whitespace(const void *part, struct scratch *s, struct splitter *sp, int64_t begin, int64_t end)
{
    (void)part; /* the words are the matches of \w+|[^\w\s]+ */
    return cut_runs(s, sp, begin, end, CHAR_WORD | CHAR_SPACE, 0);
}
const struct part_type pre_whitespace = {"Whitespace", PART_PRE_TOKENIZER, .cut = whitespace};

static wf_status whitespace_split(const void *part, struct scratch *s, struct splitter *sp, int64_t begin, int64_t end)
{
    (void)part;
    return cut_runs(s, sp, begin, end, CHAR_SPACE, 0);
}
const struct part_type pre_whitespace_split = {"WhitespaceSplit", PART_PRE_TOKENIZER, .cut = whitespace_split};

static wf_status bert(const void *part, struct scratch *s, struct splitter *sp, int64_t begin, int64_t end)
{
    (void)part;
    return cut_runs(s, sp, begin, end, CHAR_SPACE | CHAR_PUNCTUATION, CHAR_PUNCTUATION);
}
const struct part_type pre_bert = {"BertPreTokenizer", PART_PRE_TOKENIZER, .cut = bert};

struct digits {
    struct part part;
    bool individual;
};

static wf_status digits(const void *part, struct scratch *s, struct splitter *sp, int64_t begin, int64_t end)
{
    return cut_runs(s, sp, begin, end, CHAR_NUMBER, ((const struct digits *)part)->individual ? CHAR_NUMBER : 0);
}
const struct part_type pre_digits = {"Digits", PART_PRE_TOKENIZER, sizeof(struct digits),
                                     KEYS({"individual_digits", &value_bool, offsetof(struct digits, individual)}), .cut = digits};

struct punctuation {
    struct part part;
    int32_t behavior;
};

static wf_status punctuation(const void *part, struct scratch *s, struct splitter *sp, int64_t begin, int64_t end)
{
    sp->behavior = ((const struct punctuation *)part)->behavior;
    for (int64_t at = begin, asked = begin, next; at < end; at = next) {
        int size;
        if (scratch_cancelled_at(s, at, &asked))
            return WF_ERR_CANCELLED;
        bool match = unicode_class(wf_utf8_at(s->words.text.data, at, &size)) & CHAR_PUNCTUATION;
        next = at + size;
        if (match)
            split_match(sp, at, next);
    }
    return WF_OK;
}
const struct part_type pre_punctuation = {
    "Punctuation", PART_PRE_TOKENIZER, sizeof(struct punctuation),
    KEYS({"behavior", &value_name, offsetof(struct punctuation, behavior), .optional = true, .names = behavior_names}), .cut = punctuation};

struct delimiter {
    struct part part;
    struct text mark;
};

static wf_status delimiter(const void *part, struct scratch *s, struct splitter *sp, int64_t begin, int64_t end)
{
    sp->behavior = SPLIT_REMOVED;
    split_at(sp, s->words.text.data, begin, end, &((const struct delimiter *)part)->mark);
    return WF_OK;
}
const struct part_type pre_delimiter = {"CharDelimiterSplit", PART_PRE_TOKENIZER, sizeof(struct delimiter),
                                        KEYS({"delimiter", &value_character, offsetof(struct delimiter, mark)}), .cut = delimiter};

struct split {
    struct part part;
    const struct pattern *pattern;
    int32_t behavior;
    bool invert;
};

static wf_status split(const void *part, struct scratch *s, struct splitter *sp, int64_t begin, int64_t end)
{
    const struct split *p = part;
    wf_status status = pattern_find(p->pattern, s, s->words.text.data, begin, end);
    sp->behavior = p->behavior;
    sp->invert = p->invert;
    for (int64_t i = 0; status == WF_OK && i < s->matches.count; i++)
        split_match(sp, s->matches.span[i].begin, s->matches.span[i].end);
    return status;
}
const struct part_type pre_split = {"Split", PART_PRE_TOKENIZER, sizeof(struct split),
                                    KEYS({"pattern", &value_pattern, offsetof(struct split, pattern)},
                                         {"behavior", &value_name, offsetof(struct split, behavior), .names = behavior_names},
                                         {"invert", &value_bool, offsetof(struct split, invert), .optional = true}),
                                    .cut = split};

bool pre_split_is_characters(const struct part *part)
{
    const struct split *p = (const struct split *)part;
    return part && part->type == &pre_split && p->behavior == SPLIT_ISOLATED && !p->invert && p->pattern->every;
}
