/* SPDX-License-Identifier: MIT */
/* Normalizers: text rewritten before it is cut into words, as `tokenizers` does. */
#include <utf8proc.h>

#include "normal_forms.h"
#include "normalizer.h"
#include "unicode.h"

/* What becomes of one character, put to `out`. */
typedef bool put_point(struct flow *out, uint32_t point, int64_t origin);

static wf_status map(struct scratch *s, struct view *text, put_point *put)
{
    struct flow *out = scratch_normalized(s);
    for (int64_t at = 0; at < text->length;) {
        int size;
        uint32_t point = unicode_at(text->data, at, &size);
        if (!put(out, point, view_origin(text, at)))
            return WF_ERR_MEMORY;
        at += size;
    }
    *text = flow_view(out);
    return WF_OK;
}

static bool put_lower(struct flow *out, uint32_t point, int64_t origin)
{
    if (point == 0x130) /* the only letter whose small form is two characters */
        return flow_put(out, "i\xCC\x87", 3, origin);
    return flow_put_point(out, (uint32_t)utf8proc_tolower((utf8proc_int32_t)point), origin);
}

static bool put_unmarked(struct flow *out, uint32_t point, int64_t origin)
{
    return unicode_is_mark(point) || flow_put_point(out, point, origin);
}

static bool put_spacing(struct flow *out, uint32_t point, int64_t origin)
{
    return unicode_is_nonspacing(point) || flow_put_point(out, point, origin);
}

static bool put_clean(struct flow *out, uint32_t point, int64_t origin)
{
    if (point == 0xFFFD || unicode_is_control(point))
        return true;
    return flow_put_point(out, unicode_class(point) & CHAR_SPACE ? ' ' : point, origin);
}

static bool put_ideograph(struct flow *out, uint32_t point, int64_t origin)
{
    if (!unicode_is_ideograph(point))
        return flow_put_point(out, point, origin);
    return flow_put(out, " ", 1, origin) && flow_put_point(out, point, origin) && flow_put(out, " ", 1, origin);
}

static wf_status run_bert(const struct normalizer *n, struct scratch *s, struct view *text)
{
    wf_status status = n->clean ? map(s, text, put_clean) : WF_OK;
    if (status == WF_OK && n->ideographs)
        status = map(s, text, put_ideograph);
    if (status == WF_OK && n->accents) {
        status = normal_form(s, text, false, false);
        status = status == WF_OK ? map(s, text, put_spacing) : status;
    }
    return status == WF_OK && n->lowercase ? map(s, text, put_lower) : status;
}

static wf_status run_replace(const struct normalizer *n, struct scratch *s, struct view *text)
{
    int64_t at = 0;
    wf_status status = pattern_find(n->pattern, s, text->data, 0, text->length);
    if (status == WF_ERR_FORMAT)
        s->fault = s->fault < text->length ? view_origin(text, s->fault) : 0;
    if (status != WF_OK || s->matches.count == 0)
        return status;
    struct flow *out = scratch_normalized(s);
    for (int64_t i = 0; i < s->matches.count; i++) {
        struct span match = s->matches.span[i];
        int64_t place = match.begin < text->length ? match.begin : text->length - 1;
        if (!flow_copy(out, text, at, match.begin - at) || !flow_put(out, n->text, n->length, place < 0 ? 0 : view_origin(text, place)))
            return WF_ERR_MEMORY;
        at = match.end;
    }
    if (!flow_copy(out, text, at, text->length - at))
        return WF_ERR_MEMORY;
    *text = flow_view(out);
    return WF_OK;
}

static void run_strip(const struct normalizer *n, struct view *text)
{
    int size;
    while (n->left && text->length > 0 && unicode_class(unicode_at(text->data, 0, &size)) & CHAR_SPACE) {
        text->data += size;
        text->length -= size;
        text->base += size;
        text->origin += text->origin ? size : 0;
    }
    while (n->right && text->length > 0 &&
           unicode_class(unicode_at(text->data, text->length - unicode_before(text->data, text->length), &size)) & CHAR_SPACE)
        text->length -= size;
}

static wf_status run_prepend(const struct normalizer *n, struct scratch *s, struct view *text)
{
    struct flow *out = scratch_normalized(s);
    if (!flow_put(out, n->text, n->length, view_origin(text, 0)) || !flow_copy(out, text, 0, text->length))
        return WF_ERR_MEMORY;
    *text = flow_view(out);
    return WF_OK;
}

static wf_status run_byte_level(struct scratch *s, struct view *text)
{
    struct flow *out = scratch_normalized(s);
    for (int64_t i = 0; i < text->length; i++)
        if (!flow_put_point(out, unicode_of_byte((unsigned char)text->data[i]), view_origin(text, i)))
            return WF_ERR_MEMORY;
    *text = flow_view(out);
    return WF_OK;
}

wf_status normalizer_run(const struct normalizer *n, struct scratch *s, struct view *text)
{
    wf_status status = WF_OK;
    if (text->length == 0 && n->type != NORM_SEQUENCE && n->type != NORM_REPLACE)
        return WF_OK;
    switch (n->type) {
    case NORM_NFC:
        return normal_form(s, text, false, true);
    case NORM_NFD:
        return normal_form(s, text, false, false);
    case NORM_NFKC:
        return normal_form(s, text, true, true);
    case NORM_NFKD:
        return normal_form(s, text, true, false);
    case NORM_LOWERCASE:
        return map(s, text, put_lower);
    case NORM_STRIP_ACCENTS:
        return map(s, text, put_unmarked);
    case NORM_STRIP:
        run_strip(n, text);
        return WF_OK;
    case NORM_REPLACE:
        return run_replace(n, s, text);
    case NORM_PREPEND:
        return run_prepend(n, s, text);
    case NORM_BERT:
        return run_bert(n, s, text);
    case NORM_BYTE_LEVEL:
        return run_byte_level(s, text);
    case NORM_SEQUENCE:
        for (int64_t i = 0; status == WF_OK && i < n->steps; i++)
            status = normalizer_run(n->step[i], s, text);
    }
    return status;
}
