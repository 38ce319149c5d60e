/* SPDX-License-Identifier: MIT */
/* ByteLevel: GPT-2's cutting, and bytes as printable characters. The post-processor of that name moves offsets, which are not kept here;
 * the decoder takes the characters back. */
#include "byte_level.h"
#include "split.h"
#include "unicode.h"
#include <weft/internal/utf8.h>

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
    unsigned kind = unicode_class(wf_utf8_at(data, next, &size)) & KINDS;
    if (kind == CHAR_SPACE) {
        int64_t last = next = at;
        while (next < end && unicode_class(wf_utf8_at(data, next, &size)) & CHAR_SPACE) {
            last = next;
            next += size;
        }
        /* Before a word the last space stays for it, unless it is the only one. */
        return next < end && last > at ? last : next;
    }
    while (next < end && (unicode_class(wf_utf8_at(data, next, &size)) & KINDS) == kind)
        next += size;
    return next;
}

static wf_status cut(const void *part, struct scratch *s, struct splitter *sp, int64_t begin, int64_t end)
{
    (void)part;
    for (int64_t at = begin; at < end;) {
        int64_t next = gpt2_match(s->words.text.data, at, end);
        split_put(sp, at, next, false);
        at = next;
    }
    return WF_OK;
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

static wf_status byte_level(const void *part, struct scratch *s)
{
    const struct byte_level *b = part;
    if (b->add_prefix_space && !prefix_spaces(s))
        return WF_ERR_MEMORY;
    wf_status status = b->use_regex ? split_words(part, s, SPLIT_ISOLATED, cut) : WF_OK;
    return status == WF_OK && !print_bytes(s) ? WF_ERR_MEMORY : status;
}

static const struct key keys[] = BYTE_LEVEL_KEYS(false);
const struct part_type pre_byte_level = {
    .name = "ByteLevel", .stage = PART_PRE_TOKENIZER, .size = sizeof(struct byte_level), .keys = keys, .split = byte_level};

const struct part_type post_byte_level = {
    .name = "ByteLevel", .stage = PART_POST_PROCESSOR, .size = sizeof(struct byte_level), .keys = keys};
