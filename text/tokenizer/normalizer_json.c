/* SPDX-License-Identifier: MIT */
/* Normalizers in the file. */
#include <string.h>

#include "normalizer.h"
#include <weft/internal/json.h>

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
    int i;
    *out = NULL;
    if (!value || json_is_null(value))
        return WF_OK;
    wf_status status = part_type(value, "normalizer", where, type_names, TYPES, &i, error);
    if (status != WF_OK)
        return status;
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
