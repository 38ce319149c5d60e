/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <weft/internal/json.h>
#include <weft/internal/text.h>

#include "json_decode.h"

static const char *type_name(const json_t *value)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "an array", [JSON_STRING] = "a string", [JSON_INTEGER] = "an integer",
        [JSON_REAL] = "a number",    [JSON_TRUE] = "true",      [JSON_FALSE] = "false",     [JSON_NULL] = "null"};
    return names[json_typeof(value)];
}

/* The member, or NULL with *status: OK when it is optional and absent. */
static json_t *find(const json_t *object, const char *where, const char *key, enum wf_json_need need, wf_status *status, wf_error *error)
{
    char quoted[WF_QUOTE_SIZE];
    *status = WF_OK;
    if (!json_is_object(object)) {
        *status = wf_error_set(error, WF_ERR_FORMAT, "%s: %s where an object is expected", where, object ? type_name(object) : "nothing");
        return NULL;
    }
    json_t *value = json_object_get(object, key);
    if (value && !(json_is_null(value) && need == WF_JSON_OPTIONAL))
        return value;
    if (need == WF_JSON_REQUIRED)
        *status = wf_error_set(error, WF_ERR_FORMAT, "%s: the key %s is missing", where, wf_text_quote(key, quoted));
    return NULL;
}

static wf_status wrong_type(const json_t *value, const char *where, const char *key, const char *wanted, wf_error *error)
{
    char quoted[WF_QUOTE_SIZE];
    return wf_error_set(error, WF_ERR_FORMAT, "%s: key %s: %s where %s is expected", where, wf_text_quote(key, quoted), type_name(value),
                        wanted);
}

wf_status wf_json_get_int(const json_t *object, const char *where, const char *key, enum wf_json_need need, int64_t low, int64_t high,
                          int64_t *out, wf_error *error)
{
    wf_status status;
    const json_t *value = find(object, where, key, need, &status, error);
    if (!value)
        return status;
    if (!json_is_integer(value))
        return wrong_type(value, where, key, "an integer", error);
    int64_t number = json_integer_value(value);
    char quoted[WF_QUOTE_SIZE];
    if (number < low || number > high)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: key %s: %" PRId64 " is out of range, %" PRId64 " to %" PRId64, where,
                            wf_text_quote(key, quoted), number, low, high);
    *out = number;
    return WF_OK;
}

wf_status wf_json_get_double(const json_t *object, const char *where, const char *key, enum wf_json_need need, double low, double high,
                             double *out, wf_error *error)
{
    wf_status status;
    const json_t *value = find(object, where, key, need, &status, error);
    if (!value)
        return status;
    if (!json_is_number(value))
        return wrong_type(value, where, key, "a number", error);
    double number = json_number_value(value);
    char quoted[WF_QUOTE_SIZE], text[3][WF_NUMBER_SIZE];
    if (!(number >= low && number <= high))
        return wf_error_set(error, WF_ERR_FORMAT, "%s: key %s: %s is out of range, %s to %s", where, wf_text_quote(key, quoted),
                            wf_text_double(number, text[0]), wf_text_double(low, text[1]), wf_text_double(high, text[2]));
    *out = number;
    return WF_OK;
}

wf_status wf_json_get_bool(const json_t *object, const char *where, const char *key, enum wf_json_need need, bool *out, wf_error *error)
{
    wf_status status;
    const json_t *value = find(object, where, key, need, &status, error);
    if (!value)
        return status;
    if (!json_is_boolean(value))
        return wrong_type(value, where, key, "true or false", error);
    *out = json_is_true(value);
    return WF_OK;
}

wf_status wf_json_get_string(const json_t *object, const char *where, const char *key, enum wf_json_need need, const char **out,
                             wf_error *error)
{
    wf_status status;
    const json_t *value = find(object, where, key, need, &status, error);
    if (!value)
        return status;
    if (!json_is_string(value))
        return wrong_type(value, where, key, "a string", error);
    *out = json_string_value(value);
    return WF_OK;
}

wf_status wf_json_get_object(const json_t *object, const char *where, const char *key, enum wf_json_need need, json_t **out,
                             wf_error *error)
{
    wf_status status;
    json_t *value = find(object, where, key, need, &status, error);
    if (!value)
        return status;
    if (!json_is_object(value))
        return wrong_type(value, where, key, "an object", error);
    *out = value;
    return WF_OK;
}

wf_status wf_json_get_array(const json_t *object, const char *where, const char *key, enum wf_json_need need, json_t **out, wf_error *error)
{
    wf_status status;
    json_t *value = find(object, where, key, need, &status, error);
    if (!value)
        return status;
    if (!json_is_array(value))
        return wrong_type(value, where, key, "an array", error);
    *out = value;
    return WF_OK;
}

wf_status wf_json_only_keys(const json_t *object, const char *where, const char *const *known, wf_error *error)
{
    wf_status status;
    find(object, where, "", WF_JSON_OPTIONAL, &status, error);
    if (status != WF_OK)
        return status;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        const char *const *name = known;
        while (*name && strcmp(*name, key))
            name++;
        char quoted[WF_QUOTE_SIZE];
        if (!*name)
            return wf_error_set(error, WF_ERR_FORMAT, "%s: the key %s is not known", where, wf_text_quote(key, quoted));
    }
    return WF_OK;
}

wf_status wf_json_set_new(json_t *object, const char *key, json_t *value, wf_error *error)
{
    char quoted[WF_QUOTE_SIZE];
    if (!value)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for the JSON key %s", wf_text_quote(key, quoted));
    wf_json_memory_clear();
    if (json_object_set_new(object, key, value) == 0)
        return WF_OK;
    if (wf_json_memory_failed() || !object)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for the JSON key %s", wf_text_quote(key, quoted));
    return wf_error_set(error, WF_ERR_ARGUMENT, "the JSON key %s is not UTF-8, or not for this object", wf_text_quote(key, quoted));
}

wf_status wf_json_set_int(json_t *object, const char *key, int64_t value, wf_error *error)
{
    wf_json_init();
    return wf_json_set_new(object, key, json_integer(value), error);
}

wf_status wf_json_set_double(json_t *object, const char *key, double value, wf_error *error)
{
    char quoted[WF_QUOTE_SIZE];
    if (!isfinite(value))
        return wf_error_set(error, WF_ERR_NUMERIC, "the JSON key %s cannot hold %s", wf_text_quote(key, quoted),
                            isnan(value) ? "a NaN" : "an infinity");
    wf_json_init();
    return wf_json_set_new(object, key, json_real(value), error);
}

wf_status wf_json_set_bool(json_t *object, const char *key, bool value, wf_error *error)
{
    wf_json_init();
    return wf_json_set_new(object, key, json_boolean(value), error);
}

wf_status wf_json_set_string(json_t *object, const char *key, const char *value, wf_error *error)
{
    char quoted[WF_QUOTE_SIZE], quoted_value[WF_QUOTE_SIZE];
    if (wf_utf8_check(value, (int64_t)strlen(value)) >= 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "the JSON key %s cannot hold %s, which is not UTF-8", wf_text_quote(key, quoted),
                            wf_text_quote(value, quoted_value));
    wf_json_init();
    return wf_json_set_new(object, key, json_string(value), error);
}
