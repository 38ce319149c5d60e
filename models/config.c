/* SPDX-License-Identifier: MIT */
/* The functions on whole configurations: they list and set keys, check the conditions between keys, and make defaults and presets. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/gemm.h>
#include <weft/internal/minmax.h>
#include <weft/internal/needs.h>
#include <weft/internal/text.h>

#include "keys.h"

/* --- keys of a configuration --------------------------------------------------------------------------------------- */

/* Finds key number *index among the keys that the kind of model uses. If there are fewer such keys, subtracts their number from *index, so
 * that the caller can go on with the next table. */
static bool take_row(const struct wf_keys *keys, enum wf_model_kind kind, int *index, const struct wf_key **out)
{
    for (int i = 0; i < keys->count; i++)
        if (key_used(&keys->key[i], kind) && (*index)-- == 0) {
            *out = &keys->key[i];
            return true;
        }
    return false;
}

bool slot_at(const struct wf_config *config, int index, struct slot *out)
{
    const struct wf_family *family = config->family;
    if (!family || index < 0)
        return false;
    *out = (struct slot){.values = (void *)config->architecture, .section = family->name};
    if (take_row(&family->keys, family->kind, &index, &out->key))
        return true;
    for (int i = 0; i < SECTIONS; i++) {
        *out = (struct slot){.values = (char *)config + sections[i].offset, .section = sections[i].name};
        if (take_row(&sections[i].keys, family->kind, &index, &out->key))
            return true;
        out->values = (void *)config->optimizer.values;
        if (i == OPTIMIZER && take_row(optimizer_keys(config), family->kind, &index, &out->key))
            return true;
    }
    return false;
}

bool slot_find(const struct wf_config *config, const char *name, struct slot *out)
{
    for (int i = 0; slot_at(config, i, out); i++)
        if (strcmp(out->key->name, name) == 0)
            return true;
    return false;
}

static void describe(const struct wf_key *key, const char *section, struct wf_config_key *out)
{
    *out = (struct wf_config_key){.name = key->name, .meaning = key->meaning, .section = section, .value = key->value, .kinds = key->kinds};
    out->of_batches = key->of_batches;
    out->of_validation = key->of_validation;
    out->resumable = !key->of_bits && (key->resumable || strcmp(section, "training") == 0 || strcmp(section, "generation") == 0);
    key_range(key, out->values, sizeof out->values);
}

bool wf_config_key_at(const struct wf_config *config, int index, struct wf_config_key *out)
{
    struct slot slot;
    if (!config || !out || !slot_at(config, index, &slot))
        return false;
    describe(slot.key, slot.section, out);
    return true;
}

const char *wf_config_section_at(int index)
{
    if (index < SECTIONS)
        return index < 0 ? NULL : sections[index].name;
    index -= SECTIONS;
    const struct wf_family *family = wf_family_at(index);
    return family ? family->name : NULL;
}

bool wf_config_section_key(const char *section, int index, struct wf_config_key *out)
{
    if (!section || !out)
        return false;
    const struct wf_family *family = wf_family_find(section, NULL);
    const struct wf_keys *keys = family ? &family->keys : NULL;
    for (int i = 0; i < SECTIONS && !keys; i++)
        if (strcmp(sections[i].name, section) == 0)
            keys = &sections[i].keys;
    if (!keys || index < 0)
        return false;
    const struct wf_key *key = index < keys->count                 ? &keys->key[index]
                               : keys == &sections[OPTIMIZER].keys ? optimizer_key_at(index - keys->count)
                                                                   : NULL;
    if (!key)
        return false;
    describe(key, section, out);
    return true;
}

/* --- text ---------------------------------------------------------------------------------------------------------- */

wf_status wf_config_set_as(struct wf_config *config, const char *name, const char *value, bool in_file, wf_error *error)
{
    struct slot slot;
    if (!config->family)
        return wf_error_set(error, WF_ERR_STATE,
                            "%s: the configuration has no model family yet: call wf_config_preset or wf_config_defaults first", name);
    if (strcmp(name, "optimizer") == 0)
        return optimizer_choose(config, value, error);
    return slot_find(config, name, &slot) ? key_parse(slot.key, slot.values, value, in_file, error) : key_unknown(config, name, error);
}

void wf_config_settle(struct wf_config *config)
{
    struct wf_training *t = &config->training;
    int64_t context = wf_config_shape(config).context;
    if (wf_config_kind(config) == WF_MODEL_ENCODER && context > 0 && t->crop > context)
        t->crop = context;
}

/* A preset's `min_lr`, `accumulate` and `crop` may contradict the user's `lr`, `batch` and `context`, and `leaves` may contradict
 * `accumulate`. These keys are adjusted, so that the user need not set them too. A new value of `steps` sets `epochs` to 0, because
 * `epochs` would override it. */
wf_status wf_config_set(struct wf_config *config, const char *name, const char *value, wf_error *error)
{
    if (wf_needs(error, "config, key, value", config, name, value))
        return WF_ERR_ARGUMENT;
    struct wf_training *t = &config->training;
    wf_status status = optimizer_refuse(config, name, error);
    if (status == WF_OK)
        status = wf_config_set_as(config, name, value, false, error);
    if (status != WF_OK)
        return status;
    if (!strcmp(name, "lr"))
        t->min_lr = WF_MIN(t->lr, t->min_lr);
    if (!strcmp(name, "steps"))
        t->epochs = 0;
    if (!strcmp(name, "batch"))
        t->accumulate = WF_MIN(t->accumulate, t->batch);
    if (strcmp(name, "crop") != 0)
        wf_config_settle(config);
    if (strcmp(name, "leaves") != 0 && t->leaves > 0 && t->accumulate % t->leaves != 0)
        t->leaves = 0;
    return WF_OK;
}

wf_status wf_config_set_all(struct wf_config *config, const char *settings, wf_error *error)
{
    if (wf_needs(error, "config, settings", config, settings))
        return WF_ERR_ARGUMENT;
    char text[96], quoted[WF_QUOTE_SIZE];
    for (const char *at = settings + strspn(settings, " "); *at; at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");
        snprintf(text, sizeof text, "%.*s", (int)n, at);
        char *equals = strchr(text, '=');
        if (!equals || equals == text || n >= sizeof text)
            return wf_error_set(error, WF_ERR_ARGUMENT, "%s: not of the form KEY=VALUE, such as lr=1e-3", wf_text_quote(text, quoted));
        *equals = 0;
        wf_status status = wf_config_set_as(config, text, equals + 1, false, error);
        if (status != WF_OK)
            return status;
        at += n;
    }
    return WF_OK;
}

bool wf_config_get(const struct wf_config *config, const char *name, char *text, size_t size)
{
    struct slot slot;
    if (!config || !name || !text || !slot_find(config, name, &slot))
        return false;
    key_text(slot.key, slot.values, text, size);
    return true;
}

static const struct wf_keys *family_keys(const struct wf_config *config)
{
    static const struct wf_keys none = {0};
    return config->family ? &config->family->keys : &none;
}

void wf_config_set_vocab(struct wf_config *config, int64_t vocab_size, int64_t source)
{
    if (!config)
        return;
    const struct wf_keys *keys = family_keys(config);
    for (int i = 0; i < keys->count; i++)
        if (keys->key[i].role == WF_KEY_VOCAB || keys->key[i].role == WF_KEY_SOURCE_VOCAB)
            *(int64_t *)((char *)config->architecture + keys->key[i].offset) = keys->key[i].role == WF_KEY_VOCAB ? vocab_size : source;
}

const char *wf_config_set_head(struct wf_config *config)
{
    const char *name = NULL;
    const struct wf_keys *keys = family_keys(config);
    for (int i = 0; i < keys->count; i++)
        if (keys->key[i].role == WF_KEY_HEAD) {
            *((bool *)config->architecture + keys->key[i].offset) = true;
            name = keys->key[i].name;
        }
    return name;
}

bool wf_config_fits(const struct wf_config *config, int64_t types)
{
    int64_t rows = wf_config_shape(config).vocab_size;
    int64_t multiple = 128; /* other libraries pad to a multiple of at most 128 rows, and some leave room for further tokens */
    while (multiple > 1 && rows % multiple != 0)
        multiple /= 2;
    bool padded = config->family && config->family->model_type && multiple >= 8;
    return types == rows || (padded && types < rows && rows - types < (multiple == 128 ? 1024 : multiple));
}

bool wf_config_takes(const struct wf_config *config, int64_t types)
{
    return wf_config_shape(config).vocab_size == 0 || wf_config_fits(config, types);
}

/* --- properties of the family -------------------------------------------------------------------------------------- */

const char *wf_config_family(const struct wf_config *config)
{
    return config && config->family ? config->family->name : "";
}

enum wf_model_kind wf_config_kind(const struct wf_config *config)
{
    return config && config->family ? config->family->kind : WF_MODEL_LANGUAGE;
}

bool wf_config_read_only(const struct wf_config *config)
{
    return config && config->family && config->family->read_only;
}

struct wf_model_shape wf_config_shape(const struct wf_config *config)
{
    if (!config)
        return (struct wf_model_shape){0};
    const struct wf_keys *keys = family_keys(config);
    int64_t of[WF_KEY_ROLES] = {0};
    bool has[WF_KEY_ROLES] = {false};
    for (int i = 0; i < keys->count; i++) {
        of[keys->key[i].role] = (int64_t)key_number(&keys->key[i], config->architecture);
        has[keys->key[i].role] = true;
    }
    bool pairs = wf_config_kind(config) == WF_MODEL_PAIRS;
    int64_t heads = of[WF_KEY_HEADS], kv_heads = of[WF_KEY_KV_HEADS] > 0 ? of[WF_KEY_KV_HEADS] : heads;
    return (struct wf_model_shape){.vocab_size = of[WF_KEY_VOCAB],
                                   .source_vocab_size = of[pairs && !of[WF_KEY_SOURCE_VOCAB] ? WF_KEY_VOCAB : WF_KEY_SOURCE_VOCAB],
                                   .context = of[WF_KEY_CONTEXT],
                                   .width = of[WF_KEY_WIDTH],
                                   .layers = has[WF_KEY_LAYERS] ? of[WF_KEY_LAYERS] : 1,
                                   .encoder_layers = of[WF_KEY_ENCODER_LAYERS],
                                   .heads = heads,
                                   .kv_width =
                                       heads > 0 ? kv_heads * (of[WF_KEY_HEAD_WIDTH] > 0 ? of[WF_KEY_HEAD_WIDTH] : of[WF_KEY_WIDTH] / heads)
                                                 : of[WF_KEY_WIDTH],
                                   .ffn_weights = (of[WF_KEY_ACTIVATION] >= WF_SWIGLU ? 3 : 2) * of[WF_KEY_WIDTH] * of[WF_KEY_FFN_WIDTH],
                                   .segments = of[WF_KEY_SEGMENTS],
                                   .shared_tokenizer = of[WF_KEY_SHARED],
                                   .source_bos = of[WF_KEY_SOURCE_BOS],
                                   .source_eos = of[WF_KEY_SOURCE_EOS]};
}

/* --- conditions between keys --------------------------------------------------------------------------------------- */

/* Checks that the value of the key with role `whole` is a multiple of that of the key with role `part`. Checks nothing if no key has the
 * role `part`, or if the value of that key is 0. */
static wf_status check_multiple(const struct wf_config *config, enum wf_key_role whole, enum wf_key_role part, wf_error *error)
{
    const struct wf_keys *keys = &config->family->keys;
    const char *name[WF_KEY_ROLES] = {0};
    double value[WF_KEY_ROLES] = {0};
    for (int i = 0; i < keys->count; i++) {
        name[keys->key[i].role] = keys->key[i].name;
        value[keys->key[i].role] = key_number(&keys->key[i], config->architecture);
    }
    if (value[part] == 0 || fmod(value[whole], value[part]) == 0)
        return WF_OK;
    return wf_key_conflict(name[whole], value[whole], "be a multiple of", name[part], value[part], error);
}

/* Whether the configuration gives the width of a head. */
static bool has_head_width(const struct wf_config *config)
{
    const struct wf_keys *keys = &config->family->keys;
    for (int i = 0; i < keys->count; i++)
        if (keys->key[i].role == WF_KEY_HEAD_WIDTH)
            return key_number(&keys->key[i], config->architecture) != 0;
    return false;
}

/* Refuses models with more than 2^40 parameters. The number computed here is a lower bound; the registry later counts exactly. */
static wf_status check_size(const struct wf_config *config, wf_error *error)
{
    struct wf_model_shape s = wf_config_shape(config);
    double d = (double)s.width, rows = (double)s.vocab_size + (double)s.source_vocab_size + (double)s.context;
    double layers = (double)s.layers + (double)s.encoder_layers, all = d * rows + layers * (2 * d * d + (double)s.ffn_weights);
    if (all <= 0x1p40)
        return WF_OK;
    return wf_error_set(error, WF_ERR_ARGUMENT,
                        "%s: a model of width %lld and %.0f layers has %.3g parameters, more than 2^40: choose a smaller one",
                        config->model, (long long)s.width, layers, all);
}

wf_status wf_config_check(const struct wf_config *config, wf_error *error)
{
    if (wf_needs(error, "config", config) || config_check_model(config, error))
        return WF_ERR_ARGUMENT;
    return optimizer_kept(&config->optimizer) ? optimizer_check(config, error) : WF_OK;
}

wf_status config_check_model(const struct wf_config *config, wf_error *error)
{
    const struct wf_family *family = config->family;
    const struct wf_training *t = &config->training;
    struct slot slot;
    if (!family)
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "the configuration has no model family yet: call wf_config_preset or wf_config_defaults first");
    if (wf_precision_check(t->precision, "precision", error))
        return WF_ERR_ARGUMENT;
    for (int i = 0; slot_at(config, i, &slot); i++)
        if (!(slot.key->words == optimizer_names && optimizer_kept(&config->optimizer)) && key_check(slot.key, slot.values, error))
            return WF_ERR_ARGUMENT;
    for (int i = 0; i < SECTIONS; i++)
        for (int k = 0; k < sections[i].keys.count; k++) {
            const struct wf_key *key = &sections[i].keys.key[k];
            if (!slot_find(config, key->name, &slot) && key_number(key, (const char *)config + sections[i].offset) != 0)
                return key_unknown(config, key->name, error);
        }
    if ((!has_head_width(config) && check_multiple(config, WF_KEY_WIDTH, WF_KEY_HEADS, error)) ||
        check_multiple(config, WF_KEY_HEADS, WF_KEY_KV_HEADS, error) || (family->check && family->check(config->architecture, error)) ||
        check_size(config, error))
        return WF_ERR_ARGUMENT;
    if (family->read_only)
        return WF_OK;
    if (!optimizer_kept(&config->optimizer) && optimizer_check(config, error))
        return WF_ERR_ARGUMENT;
    if (t->min_lr > t->lr)
        return wf_key_conflict("lr", t->lr, "be at least", "min_lr", t->min_lr, error);
    if (family->kind != WF_MODEL_PAIRS && t->accumulate > t->batch)
        return wf_key_conflict("batch", (double)t->batch, "be at least", "accumulate", (double)t->accumulate, error);
    int64_t row = t->crop > 0 ? t->crop : wf_config_shape(config).context;
    if (t->frame && row < 3)
        return wf_error_set(
            error, WF_ERR_ARGUMENT,
            "frame=true takes two tokens of each row, and rows of %lld have no room for text: set a longer crop or context, "
            "or frame=false",
            (long long)row);
    if (family->kind == WF_MODEL_ENCODER && t->crop > wf_config_shape(config).context)
        return wf_key_conflict("crop", (double)t->crop, "be at most", "context", (double)wf_config_shape(config).context, error);
    if (t->max_ratio > 0 && t->max_ratio < 1)
        return wf_error_set(error, WF_ERR_ARGUMENT, "max_ratio = %g would leave no pair: set 1 or more, or 0 for no limit", t->max_ratio);
    if (t->leaves > 0 && ((t->leaves & (t->leaves - 1)) != 0 || t->accumulate % t->leaves != 0))
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "leaves = %lld is not a power of two that divides accumulate = %lld: set another, or 0, which chooses",
                            (long long)t->leaves, (long long)t->accumulate);
    return WF_OK;
}

/* --- defaults and presets ------------------------------------------------------------------------------------------ */

wf_status config_make(struct wf_config *config, const struct wf_family *family, const char *name, const char *settings, wf_error *error)
{
    struct wf_config made = {.family = family};
    struct slot slot;
    wf_status status = WF_OK;
    snprintf(made.model, sizeof made.model, "%s", name);
    for (int i = 0; status == WF_OK && slot_at(&made, i, &slot); i++)
        status = key_parse(slot.key, slot.values, slot.key->value, true, error);
    if (status == WF_OK)
        status = wf_config_set_all(&made, settings, error);
    if (status == WF_OK)
        *config = made;
    return status;
}

wf_status wf_config_defaults(struct wf_config *config, const char *family, wf_error *error)
{
    if (wf_needs(error, "config, family", config, family))
        return WF_ERR_ARGUMENT;
    const struct wf_family *found = wf_family_find(family, error);
    return found ? config_make(config, found, found->name, "", error) : WF_ERR_ARGUMENT;
}

static const struct wf_preset *preset_at(int index, const struct wf_family **family)
{
    for (int i = 0; index >= 0 && (*family = wf_family_at(i)); index -= (*family)->presets.count, i++)
        if (index < (*family)->presets.count)
            return &(*family)->presets.preset[index];
    return NULL;
}

const struct wf_preset *wf_preset_at(int index)
{
    const struct wf_family *family;
    return preset_at(index, &family);
}

wf_status wf_config_preset(struct wf_config *config, const char *name, wf_error *error)
{
    if (wf_needs(error, "config, name", config, name))
        return WF_ERR_ARGUMENT;
    enum { MOST = 256 };
    const char *names[MOST];
    char text[WF_QUOTE_SIZE];
    const struct wf_preset *preset;
    const struct wf_family *family;
    int count = 0;
    for (; count < MOST && (preset = preset_at(count, &family)); count++) {
        names[count] = preset->name;
        if (strcmp(preset->name, name) == 0)
            return config_make(config, family, name, preset->settings, error);
    }
    family = wf_family_find(name, NULL);
    if (family && family->read_only)
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "%s is read from a Hugging Face folder, not trained: the command `embed FOLDER` takes it", name);
    const char *near = wf_nearest(name, names, count);
    if (near)
        return wf_error_set(error, WF_ERR_ARGUMENT, "unknown model %s: did you mean %s?", wf_text_quote(name, text), near);
    return wf_error_set(error, WF_ERR_ARGUMENT, "unknown model %s: the command `models` lists them", wf_text_quote(name, text));
}
