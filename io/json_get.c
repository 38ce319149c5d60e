/* SPDX-License-Identifier: MIT */
/* Reads members of JSON objects and checks their types and ranges; sets members. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <weft/internal/json.h>
#include <weft/internal/text.h>

static const char *type_name(const json_t *value)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "an array", [JSON_STRING] = "a string", [JSON_INTEGER] = "an integer",
        [JSON_REAL] = "a number",    [JSON_TRUE] = "true",      [JSON_FALSE] = "false",     [JSON_NULL] = "null"};
    return value ? names[json_typeof(value)] : "nothing";
}

static wf_status check_object(const json_t *object, const char *where, wf_error *error)
{
    if (json_is_object(object))
        return WF_OK;
    return wf_error_set(error, WF_ERR_FORMAT, "%s: an object is expected, not %s", where, type_name(object));
}

/* Sets *value to a member, which must be of `type` or `or_type`. *value becomes NULL on an error, or if the member is optional and
 * absent. */
static wf_status find(const json_t *object, const char *where, const char *key, enum wf_json_need need, json_type type, json_type or_type,
                      const char *wanted, json_t **value, wf_error *error)
{
    char quoted[WF_QUOTE_SIZE];
    wf_status status = check_object(object, where, error);
    json_t *member = *value = NULL;
    if (status != WF_OK)
        return status;
    if (!(member = json_object_get(object, key)) && need == WF_JSON_REQUIRED)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: the key %s is missing", where, wf_text_quote(key, quoted));
    if (!member || (json_is_null(member) && need == WF_JSON_OPTIONAL))
        return WF_OK;
    if (json_typeof(member) != type && json_typeof(member) != or_type)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: key %s: %s is expected, not %s", where, wf_text_quote(key, quoted), wanted,
                            type_name(member));
    *value = member;
    return WF_OK;
}

wf_status wf_json_get_int(const json_t *object, const char *where, const char *key, enum wf_json_need need, int64_t low, int64_t high,
                          int64_t *out, wf_error *error)
{
    char quoted[WF_QUOTE_SIZE];
    json_t *value;
    wf_status status = find(object, where, key, need, JSON_INTEGER, JSON_INTEGER, "an integer", &value, error);
    if (!value)
        return status;
    int64_t number = json_integer_value(value);
    if (number < low || number > high)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: key %s: %" PRId64 " is out of range, %" PRId64 " to %" PRId64, where,
                            wf_text_quote(key, quoted), number, low, high);
    *out = number;
    return WF_OK;
}

wf_status wf_json_get_double(const json_t *object, const char *where, const char *key, enum wf_json_need need, double low, double high,
                             double *out, wf_error *error)
{
    char quoted[WF_QUOTE_SIZE], text[3][WF_NUMBER_SIZE];
    json_t *value;
    wf_status status = find(object, where, key, need, JSON_INTEGER, JSON_REAL, "a number", &value, error);
    if (!value)
        return status;
    double number = json_number_value(value);
    if (!(number >= low && number <= high))
        return wf_error_set(error, WF_ERR_FORMAT, "%s: key %s: %s is out of range, %s to %s", where, wf_text_quote(key, quoted),
                            wf_text_double(number, text[0]), wf_text_double(low, text[1]), wf_text_double(high, text[2]));
    *out = number;
    return WF_OK;
}

wf_status wf_json_get_bool(const json_t *object, const char *where, const char *key, enum wf_json_need need, bool *out, wf_error *error)
{
    json_t *value;
    wf_status status = find(object, where, key, need, JSON_TRUE, JSON_FALSE, "true or false", &value, error);
    if (value)
        *out = json_is_true(value);
    return status;
}

wf_status wf_json_get_string(const json_t *object, const char *where, const char *key, enum wf_json_need need, const char **out,
                             wf_error *error)
{
    json_t *value;
    wf_status status = find(object, where, key, need, JSON_STRING, JSON_STRING, "a string", &value, error);
    if (value)
        *out = json_string_value(value);
    return status;
}

wf_status wf_json_get_object(const json_t *object, const char *where, const char *key, enum wf_json_need need, json_t **out,
                             wf_error *error)
{
    json_t *value;
    wf_status status = find(object, where, key, need, JSON_OBJECT, JSON_OBJECT, "an object", &value, error);
    if (value)
        *out = value;
    return status;
}

wf_status wf_json_get_array(const json_t *object, const char *where, const char *key, enum wf_json_need need, json_t **out, wf_error *error)
{
    json_t *value;
    wf_status status = find(object, where, key, need, JSON_ARRAY, JSON_ARRAY, "an array", &value, error);
    if (value)
        *out = value;
    return status;
}

wf_status wf_json_only_keys(const json_t *object, const char *where, const char *const *known, wf_error *error)
{
    char quoted[WF_QUOTE_SIZE];
    const char *key;
    json_t *value;
    wf_status status = check_object(object, where, error);
    json_object_foreach((json_t *)object, key, value)
    {
        const char *const *name = known;
        while (*name && strcmp(*name, key))
            name++;
        if (!*name)
            return wf_error_set(error, WF_ERR_FORMAT, "%s: unknown key %s", where, wf_text_quote(key, quoted));
    }
    return status;
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
    return wf_error_set(error, WF_ERR_ARGUMENT, "the JSON key %s is not UTF-8", wf_text_quote(key, quoted));
}

wf_status wf_json_set_int(json_t *object, const char *key, int64_t value, wf_error *error)
{
    return wf_json_set_new(object, key, json_integer(value), error);
}

wf_status wf_json_set_double(json_t *object, const char *key, double value, wf_error *error)
{
    char quoted[WF_QUOTE_SIZE];
    if (!isfinite(value))
        return wf_error_set(error, WF_ERR_NUMERIC, "the JSON key %s cannot have the value %s", wf_text_quote(key, quoted),
                            isnan(value) ? "NaN" : "infinity");
    return wf_json_set_new(object, key, json_real(value), error);
}

wf_status wf_json_set_bool(json_t *object, const char *key, bool value, wf_error *error)
{
    return wf_json_set_new(object, key, json_boolean(value), error);
}

wf_status wf_json_set_string(json_t *object, const char *key, const char *value, wf_error *error)
{
    char quoted[WF_QUOTE_SIZE], quoted_value[WF_QUOTE_SIZE];
    if (wf_utf8_check(value, (int64_t)strlen(value)) >= 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "the value of the JSON key %s is not UTF-8: %s", wf_text_quote(key, quoted),
                            wf_text_quote(value, quoted_value));
    return wf_json_set_new(object, key, json_string(value), error);
}
