/* SPDX-License-Identifier: MIT */
/* Keys of a configuration as text, and what holds between them. The keys themselves: config_keys.c. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/config.h>
#include <weft/internal/text.h>

#include <weft/internal/families.h>

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

/* A name that is no key: with the nearest of those that this model takes. */
static wf_status unknown_key(const struct wf_config *config, const char *name, wf_error *error)
{
    char text[WF_QUOTE_SIZE];
    const char *names[MOST_KEYS];
    int count = 0;
    for (int i = 0; i < wf_config_key_count(); i++)
        if (key_used(key_at(i), config))
            names[count++] = key_at(i)->name;
    const char *near = wf_nearest(name, names, count);
    if (near)
        return wf_error_set(error, WF_ERR_ARGUMENT, "there is no key %s: did you mean %s?", wf_text_quote(name, text), near);
    return wf_error_set(error, WF_ERR_ARGUMENT, "there is no key %s among those that can be set (d_model, heads, lr, steps, ...)",
                        wf_text_quote(name, text));
}

static wf_status unused_key(const struct wf_config *config, const struct key *key, wf_error *error)
{
    static const char *const kinds[] = {"a language model", "an encoder-decoder", "an encoder"};
    const struct family *family = family_find(config->family, NULL);
    /* What others may mean by it can be one that these have no use for either; two names are of no single key. */
    const struct key *other = key->instead_key ? key_find(key->instead_key) : NULL;
    bool advise = key->instead_key && (!other || key_used(other, config));
    return wf_error_set(error, WF_ERR_ARGUMENT, "%s: %s, %s, has no use for it%s%s", key->name,
                        config->model[0] ? config->model : config->family, kinds[family ? family->kind : WF_MODEL_LANGUAGE],
                        advise ? ": set " : "", advise ? key->instead_key : "");
}

wf_status wf_config_set(struct wf_config *config, const char *name, const char *value, wf_error *error)
{
    char text[WF_QUOTE_SIZE];
    const struct key *key = key_find(name);
    int64_t whole;
    double real;
    bool truth, beyond;
    if (!key)
        return unknown_key(config, name, error);
    if (!key_used(key, config))
        return unused_key(config, key, error);
    switch (key->kind) {
    case KEY_INT:
        if (parse_int(value, &whole, &beyond) && !beyond)
            return key_set_int(key, config, whole, error);
        if (beyond || overflows(value))
            return key_too_large(key, config, wf_text_quote(value, text), error);
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s: %s is no whole number", key->name, wf_text_quote(value, text));
    case KEY_REAL:
        if (wf_text_to_double(value, &real))
            return key_set_real(key, config, real, error);
        if (overflows(value))
            return key_too_large(key, config, wf_text_quote(value, text), error);
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s: %s is no number", key->name, wf_text_quote(value, text));
    case KEY_BOOL:
        if (!parse_bool(value, &truth))
            return wf_error_set(error, WF_ERR_ARGUMENT, "%s: %s is neither true nor false", key->name, wf_text_quote(value, text));
        key_set_bool(key, config, truth);
        return WF_OK;
    case KEY_WORD:
        break;
    }
    return key_set_word(key, config, value, error);
}

bool wf_config_get(const struct wf_config *config, const char *name, char *text, size_t size)
{
    char number[WF_NUMBER_SIZE];
    const struct key *key = key_find(name);
    if (!key || !key_used(key, config))
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
    case KEY_WORD:
        snprintf(text, size, "%s", whole >= 0 && whole <= key->high ? key->words[whole] : "?");
        break;
    }
    return true;
}

/* --- what holds between keys --------------------------------------------------------------------------------------- */

/* An estimate from below is enough: the registry knows the exact number. */
static wf_status check_size(const struct wf_config *c, wf_error *error)
{
    double d = (double)c->d_model, layer = d * d * 2 + d * (double)c->d_ff * 2;
    double rows = (double)c->vocab_size + (double)c->source_vocab_size + (double)c->context + (double)c->positions + (double)c->max_length;
    double layers = (double)c->layers + (double)c->encoder_layers + (double)c->decoder_layers;
    if (d * rows + layers * layer <= 0x1p40)
        return WF_OK;
    return wf_error_set(error, WF_ERR_ARGUMENT,
                        "d_model %lld, d_ff %lld and %.0f layers make %.3g parameters, more than 2^40: choose smaller ones",
                        (long long)c->d_model, (long long)c->d_ff, layers, d * rows + layers * layer);
}

static wf_status check_pairs(const struct wf_config *c, wf_error *error)
{
    if (c->shared && c->source_vocab_size > 0 && c->source_vocab_size != c->vocab_size)
        return wf_error_set(
            error, WF_ERR_ARGUMENT,
            "source_vocab_size: source and target share one embedding, which has vocab_size %lld rows: set shared=false, or "
            "source_vocab_size 0",
            (long long)c->vocab_size);
    if (c->positions > 0 && c->positions < c->max_length)
        return wf_error_set(error, WF_ERR_ARGUMENT, "positions: %lld are fewer than max_length %lld: raise them, or set 0",
                            (long long)c->positions, (long long)c->max_length);
    return WF_OK;
}

wf_status wf_config_check(const struct wf_config *c, wf_error *error)
{
    const struct family *family = family_find(c->family, error);
    wf_status status = family ? WF_OK : WF_ERR_ARGUMENT;
    for (int i = 0; status == WF_OK && i < wf_config_key_count(); i++) {
        const struct key *key = key_at(i);
        if (key_used(key, c))
            status = key_check(key, c, error);
        else if (!key_is_zero(key, c))
            status = unused_key(c, key, error);
    }
    if (status != WF_OK)
        return status;
    if (c->d_model % c->heads != 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "heads: %lld don't divide d_model %lld: choose a number that does", (long long)c->heads,
                            (long long)c->d_model);
    if (c->kv_heads > 0 && c->heads % c->kv_heads != 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "kv_heads: %lld don't divide heads %lld: choose a number that does",
                            (long long)c->kv_heads, (long long)c->heads);
    if (c->training.min_lr > c->training.lr)
        return wf_error_set(error, WF_ERR_ARGUMENT, "min_lr: %g is above lr %g, the peak of the schedule: lower it", c->training.min_lr,
                            c->training.lr);
    if (family->kind != WF_MODEL_PAIRS && c->training.accumulate > c->training.batch)
        return wf_error_set(error, WF_ERR_ARGUMENT, "accumulate: %lld micro-batches can't be made of a batch of %lld rows",
                            (long long)c->training.accumulate, (long long)c->training.batch);
    status = family->kind == WF_MODEL_PAIRS ? check_pairs(c, error) : WF_OK;
    return status == WF_OK ? check_size(c, error) : status;
}
