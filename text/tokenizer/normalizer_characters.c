/* SPDX-License-Identifier: MIT */
/* Normalizers that go over the text character by character: Lowercase, StripAccents, BertNormalizer, ByteLevel. */
#include <utf8proc.h>

#include "normal_forms.h"
#include "unicode.h"
#include <weft/internal/json.h>
#include <weft/internal/utf8.h>

/* What becomes of one character, put to `out`. */
typedef bool put_point(struct flow *out, uint32_t point, int64_t origin);

static wf_status map(struct scratch *s, struct view *text, put_point *put)
{
    struct flow *out = scratch_normalized(s);
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
    if (point == 0x130) /* the only letter whose small form is two characters */
        return flow_put(out, "i\xCC\x87", 3, origin);
    return flow_put_point(out, (uint32_t)utf8proc_tolower((utf8proc_int32_t)point), origin);
}

static wf_status lowercase(const void *part, struct scratch *s, struct view *text)
{
    (void)part;
    return map(s, text, put_lower);
}
const struct part_type normalizer_lowercase = {.name = "Lowercase", .stage = PART_NORMALIZER, .normalize = lowercase};

static bool put_unmarked(struct flow *out, uint32_t point, int64_t origin)
{
    return unicode_is_mark(point) || flow_put_point(out, point, origin);
}

static wf_status strip_accents(const void *part, struct scratch *s, struct view *text)
{
    (void)part;
    return map(s, text, put_unmarked);
}
const struct part_type normalizer_strip_accents = {.name = "StripAccents", .stage = PART_NORMALIZER, .normalize = strip_accents};

static wf_status byte_level(const void *part, struct scratch *s, struct view *text)
{
    struct flow *out = scratch_normalized(s);
    (void)part;
    for (int64_t i = 0; i < text->length; i++)
        if (!flow_put_point(out, unicode_of_byte((unsigned char)text->data[i]), view_origin(text, i)))
            return WF_ERR_MEMORY;
    *text = flow_view(out);
    return WF_OK;
}
const struct part_type normalizer_byte_level = {.name = "ByteLevel", .stage = PART_NORMALIZER, .normalize = byte_level};

/* --- BERT ---------------------------------------------------------------------------------------------------------- */

struct bert {
    struct part part;
    bool clean, ideographs, lowercase;
    int accents; /* -1: as lowercase */
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
    wf_status status = n->clean ? map(s, text, put_clean) : WF_OK;
    if (status == WF_OK && n->ideographs)
        status = map(s, text, put_ideograph);
    if (status == WF_OK && (n->accents < 0 ? n->lowercase : n->accents)) {
        status = normal_form(s, text, false, false);
        status = status == WF_OK ? map(s, text, put_spacing) : status;
    }
    return status == WF_OK && n->lowercase ? map(s, text, put_lower) : status;
}

static wf_status read_choice(struct reader *r, const struct key *key, json_t *object, void *field)
{
    json_t *value = json_object_get(object, key->name);
    bool choice = false;
    wf_status status = wf_json_get_bool(object, r->where, key->name, WF_JSON_OPTIONAL, &choice, r->error);
    *(int *)field = value && !json_is_null(value) ? choice : -1;
    return status;
}

static json_t *write_choice(const wf_tokenizer *t, const struct key *key, const void *field)
{
    int choice = *(const int *)field;
    (void)t, (void)key;
    return choice < 0 ? json_null() : json_boolean(choice);
}

static uint64_t hash_choice(const wf_tokenizer *t, const struct key *key, const void *field, uint64_t hash)
{
    return value_id.hash(t, key, field, hash);
}

static const struct key_kind value_choice = {read_choice, write_choice, hash_choice};

const struct part_type normalizer_bert = {.name = "BertNormalizer",
                                          .stage = PART_NORMALIZER,
                                          .size = sizeof(struct bert),
                                          .keys = KEYS({"clean_text", &value_bool, offsetof(struct bert, clean)},
                                                       {"handle_chinese_chars", &value_bool, offsetof(struct bert, ideographs)},
                                                       {"strip_accents", &value_choice, offsetof(struct bert, accents)},
                                                       {"lowercase", &value_bool, offsetof(struct bert, lowercase)}),
                                          .normalize = bert};
