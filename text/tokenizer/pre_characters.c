/* SPDX-License-Identifier: MIT */
/* Pre-tokenizers that look at characters: Whitespace, WhitespaceSplit, BertPreTokenizer, Punctuation, Digits, CharDelimiterSplit. */
#include "internal.h"
#include "split.h"
#include "unicode.h"
#include <weft/internal/utf8.h>

/* \w+|[^\w\s]+: runs of one kind, without the spaces. */
static wf_status cut_runs(const void *part, struct scratch *s, struct splitter *sp, int64_t begin, int64_t end)
{
    unsigned last = CHAR_SPACE;
    int64_t run = begin;
    (void)part;
    for (int64_t at = begin; at < end;) {
        int size;
        unsigned now = unicode_class(wf_utf8_at(s->words.text.data, at, &size)) & (CHAR_WORD | CHAR_SPACE);
        if (now != last) {
            if (last != CHAR_SPACE)
                split_put(sp, run, at, false);
            run = at;
            last = now;
        }
        at += size;
    }
    if (last != CHAR_SPACE)
        split_put(sp, run, end, false);
    return WF_OK;
}

static wf_status whitespace(const void *part, struct scratch *s)
{
    return split_words(part, s, SPLIT_ISOLATED, cut_runs);
}
const struct part_type pre_whitespace = {.name = "Whitespace", .stage = PART_PRE_TOKENIZER, .split = whitespace};

/* BERT: at spaces, which go, and around punctuation. */
static wf_status cut_bert(const void *part, struct scratch *s, struct splitter *sp, int64_t begin, int64_t end)
{
    int64_t run = begin;
    (void)part;
    for (int64_t at = begin; at < end;) {
        int size;
        unsigned class = unicode_class(wf_utf8_at(s->words.text.data, at, &size));
        if (class & (CHAR_SPACE | CHAR_PUNCTUATION)) {
            if (run < at)
                split_put(sp, run, at, false);
            if (class & CHAR_PUNCTUATION)
                split_put(sp, at, at + size, false);
            run = at + size;
        }
        at += size;
    }
    if (run < end)
        split_put(sp, run, end, false);
    return WF_OK;
}

static wf_status bert(const void *part, struct scratch *s)
{
    return split_words(part, s, SPLIT_ISOLATED, cut_bert);
}
const struct part_type pre_bert = {.name = "BertPreTokenizer", .stage = PART_PRE_TOKENIZER, .split = bert};

/* Every character of this class is a match. */
static wf_status cut_class(struct scratch *s, struct splitter *sp, int64_t begin, int64_t end, unsigned class)
{
    int64_t run = begin;
    for (int64_t at = begin; at < end;) {
        int size;
        if (unicode_class(wf_utf8_at(s->words.text.data, at, &size)) & class) {
            if (run < at)
                split_put(sp, run, at, false);
            split_put(sp, at, at + size, true);
            run = at + size;
        }
        at += size;
    }
    if (run < end)
        split_put(sp, run, end, false);
    return WF_OK;
}

static wf_status cut_spaces(const void *part, struct scratch *s, struct splitter *sp, int64_t begin, int64_t end)
{
    (void)part;
    return cut_class(s, sp, begin, end, CHAR_SPACE);
}

static wf_status whitespace_split(const void *part, struct scratch *s)
{
    return split_words(part, s, SPLIT_REMOVED, cut_spaces);
}
const struct part_type pre_whitespace_split = {.name = "WhitespaceSplit", .stage = PART_PRE_TOKENIZER, .split = whitespace_split};

struct punctuation {
    struct part part;
    int behavior;
};

static wf_status cut_punctuation(const void *part, struct scratch *s, struct splitter *sp, int64_t begin, int64_t end)
{
    (void)part;
    return cut_class(s, sp, begin, end, CHAR_PUNCTUATION);
}

static wf_status punctuation(const void *part, struct scratch *s)
{
    return split_words(part, s, (enum behavior)((const struct punctuation *)part)->behavior, cut_punctuation);
}

const struct part_type pre_punctuation = {.name = "Punctuation",
                                          .stage = PART_PRE_TOKENIZER,
                                          .size = sizeof(struct punctuation),
                                          .keys = KEYS({"behavior", &value_name, offsetof(struct punctuation, behavior), .optional = true,
                                                        .otherwise = SPLIT_ISOLATED, .names = behavior_names}),
                                          .split = punctuation};

struct digits {
    struct part part;
    bool individual;
};

static wf_status cut_digits(const void *part, struct scratch *s, struct splitter *sp, int64_t begin, int64_t end)
{
    (void)part;
    return cut_class(s, sp, begin, end, CHAR_NUMBER);
}

static wf_status digits(const void *part, struct scratch *s)
{
    return split_words(part, s, ((const struct digits *)part)->individual ? SPLIT_ISOLATED : SPLIT_CONTIGUOUS, cut_digits);
}

const struct part_type pre_digits = {.name = "Digits",
                                     .stage = PART_PRE_TOKENIZER,
                                     .size = sizeof(struct digits),
                                     .keys = KEYS({"individual_digits", &value_bool, offsetof(struct digits, individual)}),
                                     .split = digits};

struct delimiter {
    struct part part;
    struct text mark;
};

static wf_status cut_delimiter(const void *part, struct scratch *s, struct splitter *sp, int64_t begin, int64_t end)
{
    const struct text *mark = &((const struct delimiter *)part)->mark;
    split_at(sp, s->words.text.data, begin, end, mark->data, mark->length);
    return WF_OK;
}

static wf_status delimiter(const void *part, struct scratch *s)
{
    return split_words(part, s, SPLIT_REMOVED, cut_delimiter);
}

const struct part_type pre_delimiter = {.name = "CharDelimiterSplit",
                                        .stage = PART_PRE_TOKENIZER,
                                        .size = sizeof(struct delimiter),
                                        .keys = KEYS({"delimiter", &value_character, offsetof(struct delimiter, mark)}),
                                        .split = delimiter};
