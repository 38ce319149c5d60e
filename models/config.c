/* SPDX-License-Identifier: MIT */
/* The keys of a configuration: their kinds and ranges, once, for `--set`, config.json and the check. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/config.h>
#include <weft/internal/text.h>

#include "families.h"

#define AT(field) offsetof(struct wf_config, field)
#define INT(field, low, high)                                                                                                              \
    {                                                                                                                                      \
#field, KEY_INT, AT(field), low, high, false, false                                                                                \
    }
#define REAL(field, low, high, ...)                                                                                                        \
    {                                                                                                                                      \
#field, KEY_REAL, AT(field), low, high, __VA_ARGS__                                                                                \
    }
#define BOOL(field)                                                                                                                        \
    {                                                                                                                                      \
#field, KEY_BOOL, AT(field), 0, 1, false, false                                                                                    \
    }
#define MANY 1e12 /* steps, and what counts in steps */
#define ABOVE true, false
#define BELOW false, true
#define BETWEEN true, true
#define WITHIN false, false

static const struct key keys[] = {
    INT(d_model, 1, 65536),
    INT(heads, 1, 1024),
    INT(kv_heads, 0, 1024),
    INT(d_ff, 1, 262144),
    INT(layers, 1, 1024),
    INT(context, 1, 1048576),
    INT(vocab_size, 0, 16777216),
    REAL(dropout, 0, 1, BELOW),
    {"activation", KEY_ACTIVATION, AT(activation), WF_RELU, WF_SWIGLU, WITHIN},
    BOOL(tied),
    BOOL(bias),
    INT(steps, 1, MANY),
    INT(batch, 1, 1048576),
    INT(accumulate, 1, 1048576),
    REAL(lr, 0, INFINITY, ABOVE),
    REAL(min_lr, 0, INFINITY, WITHIN),
    INT(warmup, 0, MANY),
    {"schedule", KEY_SCHEDULE, AT(schedule), 0, 2, WITHIN},
    REAL(weight_decay, 0, INFINITY, WITHIN),
    REAL(beta1, 0, 1, BETWEEN),
    REAL(beta2, 0, 1, BETWEEN),
    REAL(eps, 0, 1, ABOVE),
    REAL(clip, 0, INFINITY, WITHIN),
    REAL(label_smoothing, 0, 1, BELOW),
    INT(save_every, 0, MANY),
    INT(valid_every, 0, MANY),
    INT(keep, 0, 1000000),
    INT(patience, 0, MANY),
    REAL(temperature, 0, 1000, ABOVE),
    INT(top_k, 0, 16777216),
    REAL(top_p, 0, 1, ABOVE),
    INT(max_tokens, 1, MANY),
};
enum { KEYS = sizeof keys / sizeof *keys };

/* wf_schedule_kind, of the room optim, which models don't need otherwise; tests compare them. */
static const char *const schedules[] = {"constant", "cosine", "inverse_sqrt"};
static const char *const activations[] = {"relu", "gelu", "gelu_tanh", "silu", "swiglu"};

int wf_config_key_count(void)
{
    return KEYS;
}

const char *wf_config_key_at(int index)
{
    return index >= 0 && index < KEYS ? keys[index].name : NULL;
}

const struct key *key_at(int index)
{
    return &keys[index];
}

/* --- one key ------------------------------------------------------------------------------------------------------- */

int64_t key_int(const struct key *key, const struct wf_config *config)
{
    const char *at = (const char *)config + key->offset;
    return key->kind == KEY_ACTIVATION ? (int64_t)config->activation : key->kind == KEY_SCHEDULE ? config->schedule : *(const int64_t *)at;
}

double key_real(const struct key *key, const struct wf_config *config)
{
    return *(const double *)((const char *)config + key->offset);
}

bool key_bool(const struct key *key, const struct wf_config *config)
{
    return *(const bool *)((const char *)config + key->offset);
}

static wf_status out_of_range(const struct key *key, const char *value, wf_error *error)
{
    char low[WF_NUMBER_SIZE], high[WF_NUMBER_SIZE];
    if (key->kind == KEY_INT)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s: %s is out of range: %lld to %lld", key->name, value, (long long)key->low,
                            (long long)key->high);
    snprintf(low, sizeof low, "%lld", (long long)key->low);
    if (isinf(key->high))
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s: %s is out of range: %s %s", key->name, value, key->above ? "above" : "at least",
                            low);
    snprintf(high, sizeof high, "%lld", (long long)key->high);
    return wf_error_set(error, WF_ERR_ARGUMENT, "%s: %s is out of range: %s %s and %s %s", key->name, value,
                        key->above ? "above" : "at least", low, key->below ? "below" : "at most", high);
}

static wf_status check_int(const struct key *key, int64_t value, wf_error *error)
{
    char text[WF_NUMBER_SIZE];
    if ((double)value >= key->low && (double)value <= key->high)
        return WF_OK;
    snprintf(text, sizeof text, "%lld", (long long)value);
    return out_of_range(key, text, error);
}

static wf_status check_real(const struct key *key, double value, wf_error *error)
{
    char text[WF_NUMBER_SIZE];
    bool low = key->above ? value > key->low : value >= key->low, high = key->below ? value < key->high : value <= key->high;
    if (isfinite(value) && low && high)
        return WF_OK;
    return out_of_range(key, isfinite(value) ? wf_text_double(value, text) : isnan(value) ? "NaN" : "an infinity", error);
}

wf_status key_set_int(const struct key *key, struct wf_config *config, int64_t value, wf_error *error)
{
    wf_status status = check_int(key, value, error);
    if (status == WF_OK)
        *(int64_t *)((char *)config + key->offset) = value;
    return status;
}

wf_status key_set_real(const struct key *key, struct wf_config *config, double value, wf_error *error)
{
    wf_status status = check_real(key, value, error);
    if (status == WF_OK)
        *(double *)((char *)config + key->offset) = value;
    return status;
}

void key_set_bool(const struct key *key, struct wf_config *config, bool value)
{
    *(bool *)((char *)config + key->offset) = value;
}

wf_status key_set_word(const struct key *key, struct wf_config *config, const char *word, wf_error *error)
{
    bool schedule = key->kind == KEY_SCHEDULE;
    const char *const *words = schedule ? schedules : activations;
    int count = schedule ? (int)(sizeof schedules / sizeof *schedules) : (int)(sizeof activations / sizeof *activations);
    char text[WF_QUOTE_SIZE], list[128] = "";
    for (int i = 0; i < count; i++) {
        if (strcmp(words[i], word) == 0) {
            if (schedule)
                config->schedule = i;
            else
                config->activation = (enum wf_activation)i;
            return WF_OK;
        }
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i == 0 ? "" : i + 1 < count ? ", " : " or ", words[i]);
    }
    return wf_error_set(error, WF_ERR_ARGUMENT, "%s: %s is none of %s", key->name, wf_text_quote(word, text), list);
}

/* --- text ---------------------------------------------------------------------------------------------------------- */

static const struct key *key_find(const char *name)
{
    for (int i = 0; i < KEYS; i++)
        if (strcmp(keys[i].name, name) == 0)
            return &keys[i];
    return NULL;
}

/* Also 1e9, so that it is the range that is complained of. */
static bool parse_int(const char *text, int64_t *value)
{
    double real;
    char *end;
    errno = 0;
    if (strspn(text, "-0123456789") == strlen(text) && *text) {
        *value = strtoll(text, &end, 10);
        if (*end == 0 && errno == 0)
            return true;
    }
    if (!wf_text_to_double(text, &real) || real != floor(real))
        return false;
    *value = real >= 0x1p62 ? INT64_MAX : real <= -0x1p62 ? INT64_MIN : (int64_t)real;
    return true;
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

wf_status wf_config_set(struct wf_config *config, const char *name, const char *value, wf_error *error)
{
    char text[WF_QUOTE_SIZE];
    const struct key *key = key_find(name);
    int64_t whole;
    double real;
    bool truth;
    if (!key) {
        const char *names[KEYS];
        for (int i = 0; i < KEYS; i++)
            names[i] = keys[i].name;
        const char *near = wf_nearest(name, names, KEYS);
        if (near)
            return wf_error_set(error, WF_ERR_ARGUMENT, "there is no key %s: did you mean %s?", wf_text_quote(name, text), near);
        return wf_error_set(error, WF_ERR_ARGUMENT, "there is no key %s among those that can be set (d_model, layers, lr, steps, ...)",
                            wf_text_quote(name, text));
    }
    switch (key->kind) {
    case KEY_INT:
        if (parse_int(value, &whole))
            return key_set_int(key, config, whole, error);
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s: %s is no whole number", key->name, wf_text_quote(value, text));
    case KEY_REAL:
        if (wf_text_to_double(value, &real))
            return key_set_real(key, config, real, error);
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s: %s is no number", key->name, wf_text_quote(value, text));
    case KEY_BOOL:
        if (!parse_bool(value, &truth))
            return wf_error_set(error, WF_ERR_ARGUMENT, "%s: %s is neither true nor false", key->name, wf_text_quote(value, text));
        key_set_bool(key, config, truth);
        return WF_OK;
    case KEY_ACTIVATION:
    case KEY_SCHEDULE:
        break;
    }
    return key_set_word(key, config, value, error);
}

bool wf_config_get(const struct wf_config *config, const char *name, char *text, size_t size)
{
    char number[WF_NUMBER_SIZE];
    const struct key *key = key_find(name);
    if (!key)
        return false;
    int64_t whole = key->kind == KEY_REAL || key->kind == KEY_BOOL ? 0 : key_int(key, config);
    switch (key->kind) {
    case KEY_INT:
        snprintf(text, size, "%lld", (long long)whole);
        break;
    case KEY_REAL:
        snprintf(text, size, "%s", wf_text_double(key_real(key, config), number));
        break;
    case KEY_BOOL:
        snprintf(text, size, "%s", key_bool(key, config) ? "true" : "false");
        break;
    case KEY_ACTIVATION:
        snprintf(text, size, "%s", whole >= 0 && whole <= key->high ? activations[whole] : "?");
        break;
    case KEY_SCHEDULE:
        snprintf(text, size, "%s", whole >= 0 && whole <= key->high ? schedules[whole] : "?");
        break;
    }
    return true;
}

/* --- what holds between keys --------------------------------------------------------------------------------------- */

wf_status wf_config_check(const struct wf_config *c, wf_error *error)
{
    wf_status status = family_find(c->family, error) ? WF_OK : WF_ERR_ARGUMENT;
    for (int i = 0; status == WF_OK && i < KEYS; i++) {
        if (keys[i].kind == KEY_REAL)
            status = check_real(&keys[i], key_real(&keys[i], c), error);
        else if (keys[i].kind != KEY_BOOL)
            status = check_int(&keys[i], key_int(&keys[i], c), error);
    }
    if (status != WF_OK)
        return status;
    if (c->d_model % c->heads != 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "heads: %lld don't divide d_model %lld: choose a number that does", (long long)c->heads,
                            (long long)c->d_model);
    if (c->kv_heads > 0 && c->heads % c->kv_heads != 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "kv_heads: %lld don't divide heads %lld: choose a number that does",
                            (long long)c->kv_heads, (long long)c->heads);
    /* An estimate from below is enough: the registry knows the exact number. */
    double d = (double)c->d_model, layer = d * d * 2 + d * (double)c->d_ff * 2;
    double parameters = d * (double)(c->vocab_size + c->context) + (double)c->layers * layer;
    if (parameters > 0x1p40)
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "d_model %lld, d_ff %lld and layers %lld make %.3g parameters, more than 2^40: choose smaller ones",
                            (long long)c->d_model, (long long)c->d_ff, (long long)c->layers, parameters);
    if (c->min_lr > c->lr)
        return wf_error_set(error, WF_ERR_ARGUMENT, "min_lr: %g is above lr %g, the peak of the schedule: lower it", c->min_lr, c->lr);
    if (c->accumulate > c->batch)
        return wf_error_set(error, WF_ERR_ARGUMENT, "accumulate: %lld micro-batches can't be made of a batch of %lld rows",
                            (long long)c->accumulate, (long long)c->batch);
    return WF_OK;
}
