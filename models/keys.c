/* SPDX-License-Identifier: MIT */
/* The functions on a single key (keys.h): they check its value, and read and write the value as text or JSON. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/internal/json.h>
#include <weft/internal/needs.h>
#include <weft/internal/text.h>

#include "keys.h"

const char *const wf_activation_words[] = {"relu", "gelu", "gelu_tanh", "silu", "swiglu", "geglu_tanh", NULL};
const char *const wf_norm_words[] = {"post", "pre", NULL};

bool key_used(const struct wf_key *key, enum wf_model_kind kind)
{
    return key->kinds == 0 || (key->kinds >> kind & 1);
}

static void *place(const struct wf_key *key, const void *values)
{
    return (char *)values + key->offset;
}

double key_number(const struct wf_key *key, const void *values)
{
    const void *value = place(key, values);
    return key->kind == WF_KEY_INT    ? (double)*(const int64_t *)value
           : key->kind == WF_KEY_REAL ? *(const double *)value
           : key->kind == WF_KEY_BOOL ? *(const bool *)value
                                      : *(const int *)value;
}

static int words_of(const struct wf_key *key, bool in_file)
{
    int count = 0;
    while (key->words[count])
        count++;
    return key->settable && !in_file ? key->settable : count;
}

/* --- ranges -------------------------------------------------------------------------------------------------------- */

void key_range(const struct wf_key *key, char *text, size_t size)
{
    long long low = (long long)key->low, high = key->high < WF_KEY_MANY ? (long long)key->high : 0;
    const char *least = key->above ? "above" : "at least";
    if (key->kind == WF_KEY_BOOL)
        snprintf(text, size, "true or false");
    else if (key->kind == WF_KEY_WORD) {
        int count = words_of(key, false);
        text[0] = 0;
        for (int i = 0; i < count; i++) {
            size_t used = strlen(text);
            snprintf(text + used, size - used, "%s%s", i == 0 ? "" : i + 1 < count ? ", " : " or ", key->words[i]);
        }
    } else if (key->high >= WF_KEY_MANY)
        snprintf(text, size, "%s %lld", least, low);
    else if (key->kind == WF_KEY_INT)
        snprintf(text, size, "%lld to %lld", low, high);
    else
        snprintf(text, size, "%s %lld and %s %lld", least, low, key->below ? "below" : "at most", high);
}

static wf_status out_of_range(const struct wf_key *key, const char *value, wf_error *error)
{
    char range[96];
    key_range(key, range, sizeof range);
    return wf_error_set(error, WF_ERR_ARGUMENT, "%s: %s is out of range: %s", key->name, value, range);
}

/* Writes a number as text. Whole numbers get no decimal point. */
static const char *plain_number(double value, char text[WF_NUMBER_SIZE])
{
    if (value != floor(value) || fabs(value) > 0x1p53)
        return wf_text_double(value, text);
    snprintf(text, WF_NUMBER_SIZE, "%lld", (long long)value);
    return text;
}

static wf_status check_number(const struct wf_key *key, double value, wf_error *error)
{
    char text[WF_NUMBER_SIZE];
    bool low = key->above ? value > key->low : value >= key->low, high = key->below ? value < key->high : value <= key->high;
    if (isfinite(value) && low && high)
        return WF_OK;
    return out_of_range(key, isfinite(value) ? plain_number(value, text) : isnan(value) ? "NaN" : "infinity", error);
}

wf_status key_check(const struct wf_key *key, const void *values, wf_error *error)
{
    double value = key_number(key, values);
    if (key->kind == WF_KEY_INT || key->kind == WF_KEY_REAL)
        return check_number(key, value, error);
    if (key->kind == WF_KEY_WORD && (value < 0 || value >= words_of(key, true)))
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s: %g is not the index of one of %d values", key->name, value, words_of(key, true));
    return WF_OK;
}

wf_status wf_key_conflict(const char *key, double value, const char *rule, const char *other, double other_value, wf_error *error)
{
    if (wf_needs(error, "key, rule, other", key, rule, other))
        return WF_ERR_ARGUMENT;
    char a[WF_NUMBER_SIZE], b[WF_NUMBER_SIZE];
    return wf_error_set(error, WF_ERR_ARGUMENT, "%s (%s) must %s %s (%s)", key, plain_number(value, a), rule, other,
                        plain_number(other_value, b));
}

/* --- text ---------------------------------------------------------------------------------------------------------- */

/* True if the text is a number that is too large for a double. The error is then "out of range", not "not a number". The number is read
 * without its decimal point, because the point that strtod expects depends on the locale. This makes it larger, which is harmless, because
 * the function is called only if the text could not be read as a double. */
static bool overflows(const char *text)
{
    char digits[64], *end;
    size_t n = strlen(text), before = strcspn(text, ".");
    if (n == 0 || n >= sizeof digits || strspn(text, "+-.eE0123456789") != n)
        return false;
    snprintf(digits, sizeof digits, "%.*s%s", (int)before, text, before < n ? text + before + 1 : "");
    return isinf(strtod(digits, &end)) && !*end;
}

/* Checks and stores a number. `number` holds integers exactly, because the range of every integer key ends below 2^53. */
static wf_status set_number(const struct wf_key *key, void *values, double number, wf_error *error)
{
    wf_status status = check_number(key, number, error);
    if (status == WF_OK && key->kind == WF_KEY_INT)
        *(int64_t *)place(key, values) = (int64_t)number;
    else if (status == WF_OK)
        *(double *)place(key, values) = number;
    return status;
}

static wf_status parse_number(const struct wf_key *key, void *values, const char *text, wf_error *error)
{
    double number;
    char quoted[WF_QUOTE_SIZE];
    bool whole = key->kind == WF_KEY_INT, read = wf_text_to_double(text, &number);
    if (read && (!whole || number == floor(number)))
        return set_number(key, values, number, error);
    if (!read && whole && overflows(text))
        return out_of_range(key, wf_text_quote(text, quoted), error);
    if (!read && overflows(text))
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s: %s is out of range: the number is too large", key->name,
                            wf_text_quote(text, quoted));
    return wf_error_set(error, WF_ERR_ARGUMENT, "%s: %s is not %s", key->name, wf_text_quote(text, quoted),
                        whole ? "an integer" : "a number");
}

static wf_status parse_bool(const struct wf_key *key, void *values, const char *text, wf_error *error)
{
    static const char *const words[] = {"false", "true", "no", "yes", "0", "1"};
    char quoted[WF_QUOTE_SIZE];
    for (int i = 0; i < 6; i++)
        if (strcmp(words[i], text) == 0) {
            *(bool *)place(key, values) = i % 2 == 1;
            return WF_OK;
        }
    return wf_error_set(error, WF_ERR_ARGUMENT, "%s: %s is not true or false", key->name, wf_text_quote(text, quoted));
}

static wf_status set_word(const struct wf_key *key, void *values, const char *word, bool in_file, wf_error *error)
{
    char text[WF_QUOTE_SIZE], list[96];
    for (int i = 0, count = words_of(key, in_file); i < count; i++)
        if (strcmp(key->words[i], word) == 0) {
            *(int *)place(key, values) = i;
            return WF_OK;
        }
    key_range(key, list, sizeof list);
    return wf_error_set(error, WF_ERR_ARGUMENT, "%s: %s is not one of %s", key->name, wf_text_quote(word, text), list);
}

wf_status key_parse(const struct wf_key *key, void *values, const char *text, bool in_file, wf_error *error)
{
    return key->kind == WF_KEY_WORD   ? set_word(key, values, text, in_file, error)
           : key->kind == WF_KEY_BOOL ? parse_bool(key, values, text, error)
                                      : parse_number(key, values, text, error);
}

wf_status key_describes(const char *kind, const char *owner, const struct wf_keys *keys, int index, size_t size, wf_error *error)
{
    static const size_t sizes[] = {sizeof(int64_t), sizeof(double), sizeof(bool), sizeof(int)};
    const struct wf_key *key = &keys->key[index];
    int64_t values[WF_CONFIG_SPACE / 8] = {0};
    if (!key->name || !key->meaning || !key->value)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s %s: key %d lacks a name, meaning or default", kind, owner, index);
    if (key->offset + sizes[key->kind] > size || key->offset % sizes[key->kind] != 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s %s: the offset of key %s is outside its struct or misaligned", kind, owner,
                            key->name);
    for (int i = 0; i < index; i++)
        if (strcmp(keys->key[i].name, key->name) == 0)
            return wf_error_set(error, WF_ERR_ARGUMENT, "%s %s: two keys are named %s", kind, owner, key->name);
    wf_status status = key_parse(key, values, key->value, true, error);
    if (status != WF_OK)
        wf_error_prefix(error, "%s %s: default of", kind, owner);
    return status;
}

/* The text of a WF_KEY_WORD. For the key `optimizer` it can be the name of an optimiser that this program has not registered. */
static const char *word_of(const struct wf_key *key, const void *values)
{
    const char *kept = key->words == optimizer_names ? optimizer_kept(values) : NULL;
    return kept ? kept : key_check(key, values, NULL) == WF_OK ? key->words[(int)key_number(key, values)] : "?";
}

void key_text(const struct wf_key *key, const void *values, char *text, size_t size)
{
    char number[WF_NUMBER_SIZE];
    double value = key_number(key, values);
    snprintf(text, size, "%s",
             key->kind == WF_KEY_INT    ? plain_number(value, number)
             : key->kind == WF_KEY_REAL ? wf_text_double(value, number)
             : key->kind == WF_KEY_BOOL ? (value ? "true" : "false")
                                        : word_of(key, values));
}

/* --- JSON ---------------------------------------------------------------------------------------------------------- */

wf_status key_from_json(const struct wf_key *key, void *values, const json_t *object, const char *path, wf_error *error)
{
    wf_error range = {0};
    struct wf_json_reader r = {.object = object, .where = path, .error = error};
    int64_t whole = 0;
    double number = 0;
    const char *word = NULL;
    if (key->kind == WF_KEY_BOOL)
        wf_json_read_bool(&r, key->name, WF_JSON_REQUIRED, place(key, values));
    else if (key->kind == WF_KEY_WORD)
        wf_json_read_string(&r, key->name, WF_JSON_REQUIRED, &word);
    else if (key->kind == WF_KEY_REAL)
        wf_json_read_double(&r, key->name, WF_JSON_REQUIRED, -DBL_MAX, DBL_MAX, &number);
    else
        wf_json_read_int(&r, key->name, WF_JSON_REQUIRED, INT64_MIN, INT64_MAX, &whole);
    if (word)
        (void)!set_word(key, values, word, true, &range);
    else if (r.status == WF_OK && key->kind != WF_KEY_BOOL)
        (void)!set_number(key, values, key->kind == WF_KEY_INT ? (double)whole : number, &range);
    return range.code ? wf_error_set(error, WF_ERR_FORMAT, "%s: %s", path, range.message) : r.status;
}

wf_status key_to_json(const struct wf_key *key, const void *values, json_t *object, wf_error *error)
{
    char text[64];
    double value = key_number(key, values);
    key_text(key, values, text, sizeof text);
    return key->kind == WF_KEY_INT    ? wf_json_set_int(object, key->name, (int64_t)value, error)
           : key->kind == WF_KEY_REAL ? wf_json_set_double(object, key->name, value, error)
           : key->kind == WF_KEY_BOOL ? wf_json_set_bool(object, key->name, value != 0, error)
                                      : wf_json_set_string(object, key->name, text, error);
}
