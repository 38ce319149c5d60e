/* SPDX-License-Identifier: MIT */
/* Normalizers that remove, add or replace text: Strip, Prepend, Replace. */
#include "pattern.h"
#include "unicode.h"

struct strip {
    struct part part;
    bool left, right;
};

static wf_status strip(const void *part, struct scratch *s, struct view *text)
{
    const struct strip *n = part;
    int64_t begin = n->left ? unicode_skip_space(text->data, 0, text->length) : 0;
    int64_t end = n->right ? unicode_skip_space_back(text->data, begin, text->length) : text->length;
    (void)s;
    *text = (struct view){text->data + begin, end - begin, text->origin ? text->origin + begin : NULL, text->base + begin};
    return WF_OK;
}

const struct part_type normalizer_strip = {
    "Strip", PART_NORMALIZER, sizeof(struct strip),
    KEYS({"strip_left", &value_bool, offsetof(struct strip, left)}, {"strip_right", &value_bool, offsetof(struct strip, right)}),
    .normalize = strip};

struct prepend {
    struct part part;
    struct text text;
};

static wf_status prepend(const void *part, struct scratch *s, struct view *text)
{
    const struct prepend *n = part;
    if (text->length == 0)
        return WF_OK;
    struct flow *out = scratch_flow(s, FLOW_NORMALIZED);
    if (!flow_put(out, n->text.data, n->text.length, view_origin(text, 0)) || !flow_copy(out, text, 0, text->length))
        return WF_ERR_MEMORY;
    *text = flow_view(out);
    return WF_OK;
}

const struct part_type normalizer_prepend = {"Prepend", PART_NORMALIZER, sizeof(struct prepend),
                                             KEYS({"prepend", &value_text, offsetof(struct prepend, text)}), .normalize = prepend};

struct replace {
    struct part part;
    const struct pattern *pattern;
    struct text content;
};

static wf_status replace(const void *part, struct scratch *s, struct view *text)
{
    const struct replace *n = part;
    int64_t at = 0;
    wf_status status = pattern_find(n->pattern, s, text->data, 0, text->length);
    if (status == WF_ERR_FORMAT)
        s->fault = s->fault < text->length ? view_origin(text, s->fault) : 0;
    if (status != WF_OK || s->matches.count == 0)
        return status;
    struct flow *out = scratch_flow(s, FLOW_NORMALIZED);
    for (int64_t i = 0; i < s->matches.count; i++) {
        struct span match = s->matches.span[i];
        int64_t place = match.begin < text->length ? match.begin : text->length - 1;
        if (!flow_copy(out, text, at, match.begin - at) ||
            !flow_put(out, n->content.data, n->content.length, place < 0 ? 0 : view_origin(text, place)))
            return WF_ERR_MEMORY;
        at = match.end;
    }
    if (!flow_copy(out, text, at, text->length - at))
        return WF_ERR_MEMORY;
    *text = flow_view(out);
    return WF_OK;
}

const struct part_type normalizer_replace = {
    "Replace", PART_NORMALIZER, sizeof(struct replace),
    KEYS({"pattern", &value_pattern, offsetof(struct replace, pattern)}, {"content", &value_text, offsetof(struct replace, content)}),
    .normalize = replace};
