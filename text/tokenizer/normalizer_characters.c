/* SPDX-License-Identifier: MIT */
/* Normalizers that replace single characters: Lowercase, StripAccents, BertNormalizer. */
#include <utf8proc.h>

#include "internal.h"
#include "scratch.h"
#include "unicode.h"
#include <weft/internal/utf8.h>

wf_status normalize_points(struct scratch *s, struct view *text, put_point *put)
{
    struct flow *out = scratch_flow(s, FLOW_NORMALIZED);
    for (int64_t at = 0; at < text->length;) {
        int size;
        uint32_t point = wf_utf8_at(text->data, at, &size);
        if (!put(out, point, view_origin(text, at)))
            return WF_ERR_MEMORY;
        at += size;
    }
    *text = flow_view(out);
    return WF_OK;
}

static bool put_lower(struct flow *out, uint32_t point, int64_t origin)
{
    if (point == 0x130) /* U+0130 is the only letter whose lower case has two characters */
        return flow_put(out, "i\xCC\x87", 3, origin);
    return flow_put_point(out, (uint32_t)utf8proc_tolower((utf8proc_int32_t)point), origin);
}

const struct part_type normalizer_lowercase = {"Lowercase", PART_NORMALIZER, .put = put_lower};

static bool put_unmarked(struct flow *out, uint32_t point, int64_t origin)
{
    return unicode_is_mark(point) || flow_put_point(out, point, origin);
}

const struct part_type normalizer_strip_accents = {"StripAccents", PART_NORMALIZER, .put = put_unmarked};

/* --- BERT ---------------------------------------------------------------------------------------------------------- */

struct bert {
    struct part part;
    bool clean;      /* removes control characters, and replaces white space by spaces */
    bool ideographs; /* puts spaces around ideographs */
    bool lowercase;
    int32_t accents; /* 1: strips accents; 0: keeps them; -1: strips them if `lowercase` is set */
};

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

static wf_status bert(const void *part, struct scratch *s, struct view *text)
{
    const struct bert *n = part;
    wf_status status = n->clean ? normalize_points(s, text, put_clean) : WF_OK;
    if (status == WF_OK && n->ideographs)
        status = normalize_points(s, text, put_ideograph);
    if (status == WF_OK && (n->accents < 0 ? n->lowercase : n->accents)) {
        status = normal_form(s, text, false, false);
        status = status == WF_OK ? normalize_points(s, text, put_spacing) : status;
    }
    return status == WF_OK && n->lowercase ? normalize_points(s, text, put_lower) : status;
}

const struct part_type normalizer_bert = {"BertNormalizer", PART_NORMALIZER, sizeof(struct bert),
                                          KEYS({"clean_text", &value_bool, offsetof(struct bert, clean)},
                                               {"handle_chinese_chars", &value_bool, offsetof(struct bert, ideographs)},
                                               {"strip_accents", &value_choice, offsetof(struct bert, accents)},
                                               {"lowercase", &value_bool, offsetof(struct bert, lowercase)}),
                                          .normalize = bert};
