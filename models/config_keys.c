/* SPDX-License-Identifier: MIT */
/* The keys of a configuration: their kinds, ranges and users, once, for `--set`, config.json and the check. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/text.h>

#include "families.h"

#define AT(field) .name = #field, .offset = offsetof(struct wf_config, field)
#define INT(field, least, most, ...) {AT(field), .kind = KEY_INT, .low = least, .high = most, __VA_ARGS__}
#define REAL(field, least, most, ...) {AT(field), .kind = KEY_REAL, .low = least, .high = most, __VA_ARGS__}
#define BOOL(field, ...) {AT(field), .kind = KEY_BOOL, .high = 1, __VA_ARGS__}
#define WORD(field, list, ...) {AT(field), .kind = KEY_WORD, .words = list, .high = sizeof list / sizeof *list - 1, __VA_ARGS__}
#define MANY 1e12 /* steps, and what counts in steps */
#define ABOVE .above = true
#define BELOW .below = true
/* Keys that one kind of model has no use for, and what is meant there. */
#define LANGUAGE(instead) .users = USED_BY_LANGUAGE, .instead_key = instead
#define PAIRS(instead) .users = USED_BY_PAIRS, .instead_key = instead

/* The enums that the words count. Those of other rooms: wf_schedule_kind of optim, which models don't need otherwise, and
 * wf_tokenizer_kind without the kinds that can't be trained; tests compare them. */
static const char *const activations[] = {"relu", "gelu", "gelu_tanh", "silu", "swiglu"};
static const char *const schedules[] = {"constant", "cosine", "inverse_sqrt"};
static const char *const norms[] = {"post", "pre"};
static const char *const tokenizers[] = {"char", "word", "bpe", "byte-bpe"};
static const char *const costs[] = {"both", "side"};

/* clang-format off */
static const struct key keys[] = {
    INT(d_model, 1, 65536),
    INT(heads, 1, 1024),
    INT(kv_heads, 0, 1024, LANGUAGE(NULL)),
    INT(d_ff, 1, 262144),
    INT(layers, 1, 1024, LANGUAGE("encoder_layers and decoder_layers")),
    INT(encoder_layers, 1, 1024, PAIRS("layers")),
    INT(decoder_layers, 1, 1024, PAIRS("layers")),
    INT(context, 1, 1048576, LANGUAGE("max_length")),
    INT(max_length, 2, 1048576, PAIRS("context")),
    INT(positions, 0, 1048576, PAIRS("context")),
    INT(vocab_size, 0, 16777216),
    INT(source_vocab_size, 0, 16777216, PAIRS("vocab_size")),
    REAL(dropout, 0, 1, BELOW),
    BOOL(inner_dropout, PAIRS("dropout")),
    WORD(activation, activations),
    WORD(norm, norms, PAIRS(NULL)),
    BOOL(final_norm, PAIRS(NULL)),
    BOOL(shared, PAIRS("tied")),
    BOOL(tied),
    BOOL(bias),
    BOOL(scale_embeddings, PAIRS(NULL)),
    BOOL(xavier, PAIRS(NULL)),
    BOOL(source_bos, PAIRS(NULL)),
    BOOL(source_eos, PAIRS(NULL)),
    WORD(tokenizer, tokenizers, PAIRS(NULL)),
    INT(min_frequency, 0, MANY, PAIRS(NULL)),
    INT(steps, 1, MANY),
    INT(batch, 1, 1048576, LANGUAGE("batch_tokens")),
    INT(batch_tokens, 0, 1073741824, PAIRS("batch")),
    WORD(batch_cost, costs, PAIRS("batch")),
    INT(batch_window, 0, MANY, PAIRS("batch")),
    INT(accumulate, 1, 1048576),
    REAL(lr, 0, INFINITY, ABOVE),
    REAL(min_lr, 0, INFINITY),
    INT(warmup, 0, MANY),
    WORD(schedule, schedules),
    REAL(weight_decay, 0, INFINITY),
    REAL(beta1, 0, 1, ABOVE, BELOW),
    REAL(beta2, 0, 1, ABOVE, BELOW),
    REAL(eps, 0, 1, ABOVE),
    REAL(clip, 0, INFINITY),
    REAL(label_smoothing, 0, 1, BELOW),
    INT(save_every, 0, MANY),
    INT(valid_every, 0, MANY),
    INT(keep, 0, 1000000),
    INT(keep_every, 0, MANY, PAIRS("keep")),
    INT(patience, 0, MANY),
    REAL(temperature, 0, 1000, ABOVE, LANGUAGE("beam")),
    INT(top_k, 0, 16777216, LANGUAGE("beam")),
    REAL(top_p, 0, 1, ABOVE, LANGUAGE("beam")),
    INT(max_tokens, 1, MANY, .low_of_pairs = -1),
    INT(beam, 1, 1024, PAIRS("top_k")),
    REAL(length_penalty, 0, INFINITY, PAIRS(NULL)),
    INT(extra_tokens, 0, MANY, PAIRS("max_tokens")),
};
/* clang-format on */
enum { KEYS = sizeof keys / sizeof *keys };
_Static_assert((int)KEYS <= MOST_KEYS, "the reader of config.json has room for every key");

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

const struct key *key_find(const char *name)
{
    for (int i = 0; i < KEYS; i++)
        if (strcmp(keys[i].name, name) == 0)
            return &keys[i];
    return NULL;
}

bool key_used(const struct key *key, const struct wf_config *config)
{
    const struct family *family = family_find(config->family, NULL);
    return !family || !key->users || key->users == (family->translates ? USED_BY_PAIRS : USED_BY_LANGUAGE);
}

/* --- values -------------------------------------------------------------------------------------------------------- */

int64_t key_int(const struct key *key, const struct wf_config *config)
{
    const char *at = (const char *)config + key->offset;
    return key->kind == KEY_WORD ? *(const int *)at : *(const int64_t *)at;
}

double key_real(const struct key *key, const struct wf_config *config)
{
    return *(const double *)((const char *)config + key->offset);
}

bool key_bool(const struct key *key, const struct wf_config *config)
{
    return *(const bool *)((const char *)config + key->offset);
}

static wf_status out_of_range(const struct key *key, const char *value, double least, wf_error *error)
{
    char low[WF_NUMBER_SIZE], high[WF_NUMBER_SIZE];
    if (key->kind != KEY_REAL)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s: %s is out of range: %lld to %lld", key->name, value, (long long)least,
                            (long long)key->high);
    snprintf(low, sizeof low, "%lld", (long long)least);
    if (isinf(key->high))
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s: %s is out of range: %s %s", key->name, value, key->above ? "above" : "at least",
                            low);
    snprintf(high, sizeof high, "%lld", (long long)key->high);
    return wf_error_set(error, WF_ERR_ARGUMENT, "%s: %s is out of range: %s %s and %s %s", key->name, value,
                        key->above ? "above" : "at least", low, key->below ? "below" : "at most", high);
}

static wf_status check_int(const struct key *key, const struct wf_config *config, int64_t value, wf_error *error)
{
    const struct family *family = key->low_of_pairs ? family_find(config->family, NULL) : NULL;
    double low = family && family->translates ? key->low + key->low_of_pairs : key->low;
    char text[WF_NUMBER_SIZE];
    if ((double)value >= low && (double)value <= key->high)
        return WF_OK;
    snprintf(text, sizeof text, "%lld", (long long)value);
    return out_of_range(key, text, low, error);
}

static wf_status check_real(const struct key *key, double value, wf_error *error)
{
    char text[WF_NUMBER_SIZE];
    bool low = key->above ? value > key->low : value >= key->low, high = key->below ? value < key->high : value <= key->high;
    if (isfinite(value) && low && high)
        return WF_OK;
    return out_of_range(key, isfinite(value) ? wf_text_double(value, text) : isnan(value) ? "NaN" : "an infinity", key->low, error);
}

wf_status key_check(const struct key *key, const struct wf_config *config, wf_error *error)
{
    switch (key->kind) {
    case KEY_INT:
    case KEY_WORD:
        return check_int(key, config, key_int(key, config), error);
    case KEY_REAL:
        return check_real(key, key_real(key, config), error);
    case KEY_BOOL:
        break;
    }
    return WF_OK;
}

bool key_is_zero(const struct key *key, const struct wf_config *config)
{
    return key->kind == KEY_REAL ? key_real(key, config) == 0 : key->kind == KEY_BOOL ? !key_bool(key, config) : key_int(key, config) == 0;
}

wf_status key_set_int(const struct key *key, struct wf_config *config, int64_t value, wf_error *error)
{
    wf_status status = check_int(key, config, value, error);
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
    char text[WF_QUOTE_SIZE], list[128] = "";
    int count = (int)key->high + 1;
    for (int i = 0; i < count; i++) {
        if (strcmp(key->words[i], word) == 0) {
            *(int *)((char *)config + key->offset) = i;
            return WF_OK;
        }
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i == 0 ? "" : i + 1 < count ? ", " : " or ", key->words[i]);
    }
    return wf_error_set(error, WF_ERR_ARGUMENT, "%s: %s is none of %s", key->name, wf_text_quote(word, text), list);
}
