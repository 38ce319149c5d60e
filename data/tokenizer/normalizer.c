/* SPDX-License-Identifier: MIT */
/* Normalizers: text rewritten before it is cut into words, as `tokenizers` does. */
#include <string.h>
#include <utf8proc.h>

#include "normal_forms.h"
#include "pattern.h"
#include "unicode.h"
#include <weft/internal/json.h>

struct normalizer {
    enum normalizer_type {
        NORM_NFC,
        NORM_NFD,
        NORM_NFKC,
        NORM_NFKD,
        NORM_LOWERCASE,
        NORM_STRIP_ACCENTS,
        NORM_STRIP,
        NORM_REPLACE,
        NORM_PREPEND,
        NORM_BERT,
        NORM_BYTE_LEVEL,
        NORM_SEQUENCE
    } type;
    const char *text; /* Prepend, and what Replace puts */
    int64_t length;
    struct pattern *pattern; /* Replace */
    bool left, right;        /* Strip */
    bool clean, ideographs, lowercase, accents, accents_null; /* BERT; accents_null: as lowercase */
    struct normalizer **step;
    int64_t steps;
};

static const char *const type_names[] = {"NFC",   "NFD",     "NFKC",    "NFKD",           "Lowercase", "StripAccents",
                                         "Strip", "Replace", "Prepend", "BertNormalizer", "ByteLevel", "Sequence"};
enum { TYPES = 12 };

static wf_status read_bert(json_t *value, const char *where, struct normalizer *n, wf_error *error)
{
    static const char *const keys[] = {"type", "clean_text", "handle_chinese_chars", "strip_accents", "lowercase", NULL};
    json_t *accents = json_object_get(value, "strip_accents");
    n->accents_null = !accents || json_is_null(accents);
    wf_status status = wf_json_only_keys(value, where, keys, error);
    if (status == WF_OK)
        status = wf_json_get_bool(value, where, "clean_text", WF_JSON_REQUIRED, &n->clean, error);
    if (status == WF_OK)
        status = wf_json_get_bool(value, where, "handle_chinese_chars", WF_JSON_REQUIRED, &n->ideographs, error);
    if (status == WF_OK)
        status = wf_json_get_bool(value, where, "lowercase", WF_JSON_REQUIRED, &n->lowercase, error);
    n->accents = n->lowercase;
    return status == WF_OK ? wf_json_get_bool(value, where, "strip_accents", WF_JSON_OPTIONAL, &n->accents, error) : status;
}

static wf_status read_sequence(wf_tokenizer *t, json_t *value, const char *where, struct normalizer *n, wf_error *error)
{
    json_t *steps = NULL;
    wf_status status = wf_json_only_keys(value, where, (const char *const[]){"type", "normalizers", NULL}, error);
    if (status == WF_OK)
        status = wf_json_get_array(value, where, "normalizers", WF_JSON_REQUIRED, &steps, error);
    if (status != WF_OK)
        return status;
    n->steps = (int64_t)json_array_size(steps);
    n->step = tokenizer_keep(t, n->steps, sizeof *n->step);
    if (!n->step)
        return part_no_memory(where, error);
    for (int64_t i = 0; status == WF_OK && i < n->steps; i++) {
        json_t *step = json_array_get(steps, (size_t)i);
        status = json_is_object(step) ? normalizer_read(t, step, where, &n->step[i], error)
                                      : wf_error_set(error, WF_ERR_FORMAT, "%s: a step of the normalizer is not an object", where);
    }
    return status;
}

static wf_status read_parts(wf_tokenizer *t, json_t *value, const char *where, struct normalizer *n, wf_error *error)
{
    wf_status status;
    switch (n->type) {
    case NORM_STRIP:
        status = wf_json_only_keys(value, where, (const char *const[]){"type", "strip_left", "strip_right", NULL}, error);
        if (status == WF_OK)
            status = wf_json_get_bool(value, where, "strip_left", WF_JSON_REQUIRED, &n->left, error);
        return status == WF_OK ? wf_json_get_bool(value, where, "strip_right", WF_JSON_REQUIRED, &n->right, error) : status;
    case NORM_REPLACE:
        status = wf_json_only_keys(value, where, (const char *const[]){"type", "pattern", "content", NULL}, error);
        if (status == WF_OK)
            status = pattern_read(t, json_object_get(value, "pattern"), false, where, &n->pattern, error);
        return status == WF_OK ? part_text(t, value, "content", where, &n->text, &n->length, error) : status;
    case NORM_PREPEND:
        status = wf_json_only_keys(value, where, (const char *const[]){"type", "prepend", NULL}, error);
        return status == WF_OK ? part_text(t, value, "prepend", where, &n->text, &n->length, error) : status;
    case NORM_BERT:
        return read_bert(value, where, n, error);
    case NORM_SEQUENCE:
        return read_sequence(t, value, where, n, error);
    default:
        return wf_json_only_keys(value, where, (const char *const[]){"type", NULL}, error);
    }
}

wf_status normalizer_read(wf_tokenizer *t, json_t *value, const char *where, struct normalizer **out, wf_error *error)
{
    const char *type;
    *out = NULL;
    if (!value || json_is_null(value))
        return WF_OK;
    wf_status status = part_type(value, "normalizer", where, &type, error);
    if (status != WF_OK)
        return status;
    int i = 0;
    while (i < TYPES && strcmp(type, type_names[i]))
        i++;
    if (i == TYPES)
        return part_refuse("normalizer", type, where, error);
    struct normalizer *n = tokenizer_keep(t, 1, sizeof *n);
    if (!n)
        return part_no_memory(where, error);
    n->type = (enum normalizer_type)i;
    *out = n;
    return read_parts(t, value, where, n, error);
}

void normalizer_write(const struct normalizer *n, const char *key, struct json_writer *w)
{
    if (!n) {
        json_put_null(w, key);
        return;
    }
    json_open(w, key, '{');
    json_put_string(w, "type", type_names[n->type]);
    switch (n->type) {
    case NORM_STRIP:
        json_put_bool(w, "strip_left", n->left);
        json_put_bool(w, "strip_right", n->right);
        break;
    case NORM_REPLACE:
        json_open(w, "pattern", '{');
        pattern_write(n->pattern, w);
        json_close(w, '}');
        json_put_string(w, "content", n->text);
        break;
    case NORM_PREPEND:
        json_put_string(w, "prepend", n->text);
        break;
    case NORM_BERT:
        json_put_bool(w, "clean_text", n->clean);
        json_put_bool(w, "handle_chinese_chars", n->ideographs);
        if (n->accents_null)
            json_put_null(w, "strip_accents");
        else
            json_put_bool(w, "strip_accents", n->accents);
        json_put_bool(w, "lowercase", n->lowercase);
        break;
    case NORM_SEQUENCE:
        json_open(w, "normalizers", '[');
        for (int64_t i = 0; i < n->steps; i++)
            normalizer_write(n->step[i], NULL, w);
        json_close(w, ']');
        break;
    default:
        break;
    }
    json_close(w, '}');
}

bool normalizer_has_bytes(const struct normalizer *n)
{
    for (int64_t i = 0; n && i < n->steps; i++)
        if (normalizer_has_bytes(n->step[i]))
            return true;
    return n && n->type == NORM_BYTE_LEVEL;
}

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
