/* SPDX-License-Identifier: MIT */
/* Cutting text into words, as `tokenizers` does. Each step goes over all words so far and writes the list of the next ones; Metaspace and
 * ByteLevel also rewrite the text. */
#include <string.h>

#include "pre_tokenizer.h"
#include "unicode.h"
#include <weft/internal/utf8.h>

/* \w+|[^\w\s]+: runs of one kind, without the spaces. */
static void split_whitespace(struct splitter *sp, const char *data, int64_t begin, int64_t end)
{
    unsigned last = CHAR_SPACE;
    int64_t run = begin;
    for (int64_t at = begin; at < end;) {
        int size;
        unsigned now = unicode_class(unicode_at(data, at, &size)) & (CHAR_WORD | CHAR_SPACE);
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
}

/* Every character of this class is a match of its own. */
static void split_class(struct splitter *sp, const char *data, int64_t begin, int64_t end, unsigned class)
{
    int64_t run = begin;
    for (int64_t at = begin; at < end;) {
        int size;
        if (unicode_class(unicode_at(data, at, &size)) & class) {
            if (run < at)
                split_put(sp, run, at, false);
            split_put(sp, at, at + size, true);
            run = at + size;
        }
        at += size;
    }
    if (run < end)
        split_put(sp, run, end, false);
}

/* The same for a character or a string. */
static void split_string(struct splitter *sp, const char *data, int64_t begin, int64_t end, const char *mark, int64_t length)
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

/* BERT: at spaces, which go, and around punctuation. */
static void split_bert(struct splitter *sp, const char *data, int64_t begin, int64_t end)
{
    int64_t run = begin;
    for (int64_t at = begin; at < end;) {
        int size;
        unsigned class = unicode_class(unicode_at(data, at, &size));
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
}

/* The end of the match of GPT-2's pattern at data[at]:
 * 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
static int64_t gpt2_match(const char *data, int64_t at, int64_t end)
{
    enum { KINDS = CHAR_LETTER | CHAR_NUMBER | CHAR_SPACE };
    if (data[at] == '\'' && at + 1 < end) {
        char a = data[at + 1], b = at + 2 < end ? data[at + 2] : 0;
        if (a == 's' || a == 't' || a == 'm' || a == 'd')
            return at + 2;
        if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l'))
            return at + 3;
    }
    int size;
    int64_t next = at + (data[at] == ' ' && at + 1 < end);
    unsigned kind = unicode_class(unicode_at(data, next, &size)) & KINDS;
    if (kind == CHAR_SPACE) {
        int64_t last = next = at;
        while (next < end && unicode_class(unicode_at(data, next, &size)) & CHAR_SPACE) {
            last = next;
            next += size;
        }
        /* Before a word the last space stays for it, unless it is the only one. */
        return next < end && last > at ? last : next;
    }
    while (next < end && (unicode_class(unicode_at(data, next, &size)) & KINDS) == kind)
        next += size;
    return next;
}

static void split_gpt2(struct splitter *sp, const char *data, int64_t begin, int64_t end)
{
    for (int64_t at = begin; at < end;) {
        int64_t next = gpt2_match(data, at, end);
        split_put(sp, at, next, false);
        at = next;
    }
}

static wf_status split_pattern(struct splitter *sp, const struct pre_tokenizer *pre, struct scratch *s, int64_t begin, int64_t end)
{
    wf_status status = pattern_find(pre->pattern, s, s->words.text.data, begin, end);
    int64_t run = begin;
    for (int64_t i = 0; status == WF_OK && i < s->matches.count; i++) {
        struct span match = s->matches.span[i];
        if (run != match.begin)
            split_put(sp, run, match.begin, pre->invert);
        split_put(sp, match.begin, match.end, !pre->invert);
        run = match.end;
    }
    if (status == WF_OK && run != end)
        split_put(sp, run, end, pre->invert);
    return status;
}

/* Puts Metaspace's mark for each space, and before the word where it asks for that. */
static bool mark_spaces(const struct pre_tokenizer *pre, struct scratch *s)
{
    struct view text = s->words.text;
    struct flow *flow = scratch_pre(s);
    for (int64_t i = 0; i < s->words.spans.count; i++) {
        struct span *span = s->words.spans.span + i, old = *span;
        int64_t origin = view_origin(&text, old.begin);
        bool marked = old.end - old.begin >= pre->mark_length && !memcmp(text.data + old.begin, pre->mark, (size_t)pre->mark_length);
        bool prepend = pre->prepend == PREPEND_ALWAYS || (pre->prepend == PREPEND_FIRST && origin == 0);
        span->begin = flow->length;
        if (prepend && !marked && text.data[old.begin] != ' ' && !flow_put(flow, pre->mark, pre->mark_length, origin))
            return false;
        for (int64_t at = old.begin; at < old.end;) {
            const char *space = memchr(text.data + at, ' ', (size_t)(old.end - at));
            int64_t next = space ? space - text.data : old.end;
            if (!flow_copy(flow, &text, at, next - at) || (space && !flow_put(flow, pre->mark, pre->mark_length, view_origin(&text, next))))
                return false;
            at = next + (space != NULL);
        }
        span->end = flow->length;
    }
    s->words.text = flow_view(flow);
    return true;
}

/* A space before each word that does not begin with one. */
static bool prefix_spaces(struct scratch *s)
{
    struct view text = s->words.text;
    struct flow *flow = scratch_pre(s);
    for (int64_t i = 0; i < s->words.spans.count; i++) {
        struct span *span = s->words.spans.span + i, old = *span;
        span->begin = flow->length;
        if (text.data[old.begin] != ' ' && !flow_put(flow, " ", 1, view_origin(&text, old.begin)))
            return false;
        if (!flow_copy(flow, &text, old.begin, old.end - old.begin))
            return false;
        span->end = flow->length;
    }
    s->words.text = flow_view(flow);
    return true;
}

/* Bytes as GPT-2's characters. */
static bool print_bytes(struct scratch *s)
{
    struct view text = s->words.text;
    struct flow *flow = scratch_pre(s);
    int64_t bytes = 0;
    for (int64_t i = 0; i < s->words.spans.count; i++)
        bytes += s->words.spans.span[i].end - s->words.spans.span[i].begin;
    if (!flow_reserve(flow, 2 * bytes))
        return false;
    for (int64_t i = 0; i < s->words.spans.count; i++) {
        struct span *span = s->words.spans.span + i, old = *span;
        span->begin = flow->length;
        for (int64_t at = old.begin; at < old.end; at++) {
            uint32_t point = unicode_of_byte((unsigned char)text.data[at]);
            int size = wf_utf8_encode(point, flow->data + flow->length);
            for (int k = 0; flow->tracked && k < size; k++)
                flow->origin[flow->length + k] = view_origin(&text, at);
            flow->length += size;
        }
        span->end = flow->length;
    }
    s->words.text = flow_view(flow);
    return true;
}

static wf_status split_one(const struct pre_tokenizer *pre, struct scratch *s, struct splitter *sp, int64_t begin, int64_t end)
{
    const char *data = s->words.text.data;
    switch (pre->type) {
    case PRE_WHITESPACE:
        split_whitespace(sp, data, begin, end);
        break;
    case PRE_WHITESPACE_SPLIT:
        split_class(sp, data, begin, end, CHAR_SPACE);
        break;
    case PRE_PUNCTUATION:
        split_class(sp, data, begin, end, CHAR_PUNCTUATION);
        break;
    case PRE_DIGITS:
        split_class(sp, data, begin, end, CHAR_NUMBER);
        break;
    case PRE_METASPACE:
    case PRE_DELIMITER:
        split_string(sp, data, begin, end, pre->mark, pre->mark_length);
        break;
    case PRE_BERT:
        split_bert(sp, data, begin, end);
        break;
    case PRE_BYTE_LEVEL:
        split_gpt2(sp, data, begin, end);
        break;
    case PRE_SPLIT:
        return split_pattern(sp, pre, s, begin, end);
    case PRE_SEQUENCE:
        break;
    }
    return WF_OK;
}

static enum behavior behavior_of(const struct pre_tokenizer *pre)
{
    switch (pre->type) {
    case PRE_WHITESPACE_SPLIT:
    case PRE_DELIMITER:
        return SPLIT_REMOVED;
    case PRE_METASPACE:
        return SPLIT_MERGED_WITH_NEXT;
    case PRE_DIGITS:
        return pre->individual ? SPLIT_ISOLATED : SPLIT_CONTIGUOUS;
    case PRE_PUNCTUATION:
    case PRE_SPLIT:
        return pre->behavior;
    default:
        return SPLIT_ISOLATED; /* these hand over words only */
    }
}

static wf_status split_all(const struct pre_tokenizer *pre, struct scratch *s)
{
    struct spans *words = &s->words.spans, *out = &s->spare;
    out->count = 0;
    for (int64_t i = 0; i < words->count; i++) {
        struct splitter sp;
        split_begin(&sp, out, behavior_of(pre));
        wf_status status = split_one(pre, s, &sp, words->span[i].begin, words->span[i].end);
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

wf_status pre_tokenizer_run(const struct pre_tokenizer *pre, struct scratch *s)
{
    wf_status status = WF_OK;
    switch (pre->type) {
    case PRE_SEQUENCE:
        for (int64_t i = 0; status == WF_OK && i < pre->steps; i++)
            status = pre_tokenizer_run(pre->step[i], s);
        return status;
    case PRE_METASPACE:
        if (!mark_spaces(pre, s))
            return WF_ERR_MEMORY;
        return pre->split ? split_all(pre, s) : WF_OK;
    case PRE_BYTE_LEVEL:
        if (pre->add_prefix_space && !prefix_spaces(s))
            return WF_ERR_MEMORY;
        if (pre->use_regex)
            status = split_all(pre, s);
        return status == WF_OK && !print_bytes(s) ? WF_ERR_MEMORY : status;
    default:
        return split_all(pre, s);
    }
}
