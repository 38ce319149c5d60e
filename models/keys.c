/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/internal/json.h>
#include <weft/internal/text.h>

#include "keys.h"

const char *const wf_activation_words[] = {"relu", "gelu", "gelu_tanh", "silu", "swiglu", NULL};
const char *const wf_norm_words[] = {"post", "pre", NULL};

bool key_used(const struct wf_key *key, enum wf_model_kind kind)
{
    return key->kinds == 0 || (key->kinds >> kind & 1);
}

static void *place(const struct wf_key *key, const void *values)
{
    return (char *)values + key->offset;
}

static int64_t whole_of(const struct wf_key *key, const void *values)
{
    return key->kind == WF_KEY_WORD ? *(const int *)place(key, values) : *(const int64_t *)place(key, values);
}

static int words_of(const struct wf_key *key, bool in_file)
{
    int count = 0;
    while (key->words[count])
        count++;
    return key->settable && !in_file ? key->settable : count;
}

bool key_is_zero(const struct wf_key *key, const void *values)
{
    return key->kind == WF_KEY_REAL   ? *(const double *)place(key, values) == 0
           : key->kind == WF_KEY_BOOL ? !*(const bool *)place(key, values)
                                      : whole_of(key, values) == 0;
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

static wf_status check_int(const struct wf_key *key, int64_t value, wf_error *error)
{
    char text[WF_NUMBER_SIZE];
    if ((double)value >= key->low && (double)value <= key->high)
        return WF_OK;
    snprintf(text, sizeof text, "%lld", (long long)value);
    return out_of_range(key, text, error);
}

static wf_status check_real(const struct wf_key *key, double value, wf_error *error)
{
    char text[WF_NUMBER_SIZE];
    bool low = key->above ? value > key->low : value >= key->low, high = key->below ? value < key->high : value <= key->high;
    if (isfinite(value) && low && high)
        return WF_OK;
    return out_of_range(key, isfinite(value) ? wf_text_double(value, text) : isnan(value) ? "NaN" : "infinity", error);
}

wf_status key_check(const struct wf_key *key, const void *values, wf_error *error)
{
    int64_t whole;
    switch (key->kind) {
    case WF_KEY_INT:
        return check_int(key, whole_of(key, values), error);
    case WF_KEY_REAL:
        return check_real(key, *(const double *)place(key, values), error);
    case WF_KEY_WORD:
        whole = whole_of(key, values);
        if (whole < 0 || whole >= words_of(key, true))
            return wf_error_set(error, WF_ERR_ARGUMENT, "%s: %lld is out of range: it counts %d words", key->name, (long long)whole,
                                words_of(key, true));
        break;
    case WF_KEY_BOOL:
        break;
    }
    return WF_OK;
}

/* --- text ---------------------------------------------------------------------------------------------------------- */

/* Also 1e9, so that it is the range that is complained of. *beyond: a whole number that int64_t does not hold. */
static bool parse_int(const char *text, int64_t *value, bool *beyond)
{
    double real;
    char *end;
    errno = 0;
    *beyond = false;
    if (strspn(text, "-0123456789") == strlen(text) && *text) {
        *value = strtoll(text, &end, 10);
        if (*end == 0 && errno == 0)
            return true;
    }
    if (!wf_text_to_double(text, &real) || real != floor(real))
        return false;
    *beyond = fabs(real) >= 0x1p62;
    *value = *beyond ? 0 : (int64_t)real;
    return true;
}

/* A number too large for a double: it is one, but out of every range. Without the point, which the locale has a say in. */
static bool overflows(const char *text)
{
    char digits[64], *end;
    size_t n = strlen(text), before = strcspn(text, ".");
    if (n == 0 || n >= sizeof digits || strspn(text, "+-.eE0123456789") != n)
        return false;
    snprintf(digits, sizeof digits, "%.*s%s", (int)before, text, before < n ? text + before + 1 : "");
    return isinf(strtod(digits, &end)) && !*end;
}

static bool parse_bool(const char *text, bool *value)
{
    static const char *const words[] = {"false", "true", "no", "yes", "0", "1"};
    for (int i = 0; i < 6; i++)
        if (strcmp(words[i], text) == 0) {
            *value = i % 2 == 1;
            return true;
        }
    return false;
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

wf_status key_parse(const struct wf_key *key, void *values, const char *value, bool in_file, wf_error *error)
{
    char text[WF_QUOTE_SIZE];
    int64_t whole;
    double real;
    bool truth, beyond = false;
    wf_status status;
    switch (key->kind) {
    case WF_KEY_INT:
        if (parse_int(value, &whole, &beyond) && !beyond) {
            if ((status = check_int(key, whole, error)) == WF_OK)
                *(int64_t *)place(key, values) = whole;
            return status;
        }
        if (beyond || overflows(value))
            return out_of_range(key, wf_text_quote(value, text), error);
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s: %s is not an integer", key->name, wf_text_quote(value, text));
    case WF_KEY_REAL:
        if (wf_text_to_double(value, &real)) {
            if ((status = check_real(key, real, error)) == WF_OK)
                *(double *)place(key, values) = real;
            return status;
        }
        if (overflows(value))
            return wf_error_set(error, WF_ERR_ARGUMENT, "%s: %s is out of range: too large a number", key->name,
                                wf_text_quote(value, text));
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s: %s is not a number", key->name, wf_text_quote(value, text));
    case WF_KEY_BOOL:
        if (!parse_bool(value, &truth))
            return wf_error_set(error, WF_ERR_ARGUMENT, "%s: %s is neither true nor false", key->name, wf_text_quote(value, text));
        *(bool *)place(key, values) = truth;
        return WF_OK;
    case WF_KEY_WORD:
        break;
    }
    return set_word(key, values, value, in_file, error);
}

void key_text(const struct wf_key *key, const void *values, char *text, size_t size)
{
    char number[WF_NUMBER_SIZE];
    int64_t whole;
    switch (key->kind) {
    case WF_KEY_INT:
        snprintf(text, size, "%lld", (long long)whole_of(key, values));
        break;
    case WF_KEY_REAL:
        snprintf(text, size, "%s", wf_text_double(*(const double *)place(key, values), number));
        break;
    case WF_KEY_BOOL:
        snprintf(text, size, "%s", *(const bool *)place(key, values) ? "true" : "false");
        break;
    case WF_KEY_WORD:
        whole = whole_of(key, values);
        snprintf(text, size, "%s", whole >= 0 && whole < words_of(key, true) ? key->words[whole] : "?");
        break;
    }
}

/* --- JSON ---------------------------------------------------------------------------------------------------------- */

wf_status key_from_json(const struct wf_key *key, void *values, const json_t *object, const char *path, wf_error *error)
{
    wf_error range = {0};
    struct wf_json_reader r = {.object = object, .where = path, .error = error};
    int64_t whole = 0;
    double real = 0;
    const char *word = NULL;
    switch (key->kind) {
    case WF_KEY_INT:
        wf_json_read_int(&r, key->name, WF_JSON_REQUIRED, INT64_MIN, INT64_MAX, &whole);
        if (r.status == WF_OK && check_int(key, whole, &range) == WF_OK)
            *(int64_t *)place(key, values) = whole;
        break;
    case WF_KEY_REAL:
        wf_json_read_double(&r, key->name, WF_JSON_REQUIRED, -DBL_MAX, DBL_MAX, &real);
        if (r.status == WF_OK && check_real(key, real, &range) == WF_OK)
            *(double *)place(key, values) = real;
        break;
    case WF_KEY_BOOL:
        wf_json_read_bool(&r, key->name, WF_JSON_REQUIRED, place(key, values));
        break;
    case WF_KEY_WORD:
        wf_json_read_string(&r, key->name, WF_JSON_REQUIRED, &word);
        if (r.status == WF_OK)
            set_word(key, values, word, true, &range);
        break;
    }
    return range.code ? wf_error_set(error, WF_ERR_FORMAT, "%s: %s", path, range.message) : r.status;
}

wf_status key_to_json(const struct wf_key *key, const void *values, json_t *object, wf_error *error)
{
    char text[64];
    switch (key->kind) {
    case WF_KEY_INT:
        return wf_json_set_int(object, key->name, whole_of(key, values), error);
    case WF_KEY_REAL:
        return wf_json_set_double(object, key->name, *(const double *)place(key, values), error);
    case WF_KEY_BOOL:
        return wf_json_set_bool(object, key->name, *(const bool *)place(key, values), error);
    case WF_KEY_WORD:
        break;
    }
    key_text(key, values, text, sizeof text);
    return wf_json_set_string(object, key->name, text, error);
}
