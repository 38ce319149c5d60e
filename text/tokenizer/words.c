/* SPDX-License-Identifier: MIT */
/* The words of a text that a tokenizer is to be trained on. */
#include "build.h"
#include "scratch.h"
#include <weft/internal/text.h>

wf_status tokenizer_words(const struct part *pre_tokenizer, struct scratch *s, const char *text, int64_t length,
                          bool (*word)(void *ctx, const char *bytes, int64_t length), void *ctx, int64_t *fault)
{
    int64_t bad = length > 0 ? wf_utf8_check(text, length) : -1;
    if (bad >= 0) {
        *fault = bad;
        return WF_ERR_FORMAT;
    }
    if (length == 0)
        return WF_OK;
    scratch_start(s, length, false);
    s->words.text = (struct view){.data = text, .length = length};
    s->words.spans.count = 0;
    wf_status status = spans_add(&s->words.spans, 0, length) ? pre_tokenizer->type->split(pre_tokenizer, s) : WF_ERR_MEMORY;
    for (int64_t i = 0; status == WF_OK && i < s->words.spans.count; i++) {
        struct span span = s->words.spans.span[i];
        if (!word(ctx, s->words.text.data + span.begin, span.end - span.begin))
            break;
    }
    return status;
}
