/* SPDX-License-Identifier: MIT */
/* config.json. Its keys are those of the table in config_keys.c that the family uses, besides weft_version, model_type, model
 * and family. Hugging Face's of a BERT: config_bert.c. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weft/config.h>
#include <weft/internal/json.h>
#include <weft/internal/text.h>
#include <weft/nn.h>

#include "config_bert.h"
#include <weft/internal/families.h>

enum { LIMIT = 1 << 20, HEAD = 4 };
static const char *const head[HEAD] = {"weft_version", "model_type", "model", "family"};

/* What "model_type" says: a name that no library takes for one of its own architectures, since the other keys aren't theirs. */
static const char *model_type(const char *family, char text[64])
{
    snprintf(text, 64, "weft-%s", family);
    return text;
}

static wf_status put(json_t *object, const struct wf_config *c, const struct key *key, wf_error *error)
{
    char text[64];
    switch (key->kind) {
    case KEY_INT:
        return wf_json_set_int(object, key->name, key_int(key, c), error);
    case KEY_REAL:
        return wf_json_set_double(object, key->name, key_real(key, c), error);
    case KEY_BOOL:
        return wf_json_set_bool(object, key->name, key_bool(key, c), error);
    case KEY_WORD:
        break;
    }
    wf_config_get(c, key->name, text, sizeof text);
    return wf_json_set_string(object, key->name, text, error);
}

wf_status wf_config_save(const struct wf_config *c, const char *path, wf_error *error)
{
    char text[64];
    const struct family *family = family_find(c->family, NULL);
    if (family && family->users == WF_CONFIG_READ)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s: a configuration of the family %s is read, not written: keep the one it came from",
                            path, c->family);
    wf_json_init();
    json_t *object = json_object();
    if (!object)
        return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for a configuration", path);
    wf_status status = wf_json_set_string(object, "weft_version", wf_version(), error);
    if (status == WF_OK)
        status = wf_json_set_string(object, "model_type", model_type(c->family, text), error);
    if (status == WF_OK)
        status = wf_json_set_string(object, "model", c->model, error);
    if (status == WF_OK)
        status = wf_json_set_string(object, "family", c->family, error);
    for (int i = 0; status == WF_OK && i < wf_config_key_count(); i++)
        if (key_used(key_at(i), c))
            status = put(object, c, key_at(i), error);
    if (status == WF_OK)
        status = wf_json_save(path, object, 2, error);
    json_decref(object);
    return status;
}

/* A member that is a name: it ends up in messages and in file names. */
static wf_status take_name(const json_t *object, const char *path, const char *key, char *out, size_t size, wf_error *error)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+";
    const char *text;
    char quoted[WF_QUOTE_SIZE];
    wf_status status = wf_json_get_string(object, path, key, WF_JSON_REQUIRED, &text, error);
    if (status != WF_OK)
        return status;
    size_t n = strlen(text);
    if (n == 0 || n >= size || strspn(text, allowed) != n)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: key \"%s\": %s is no name: 1 to %zu letters, digits and . _ - +", path, key,
                            wf_text_quote(text, quoted), size - 1);
    memcpy(out, text, n + 1);
    return WF_OK;
}

static wf_status take(const json_t *object, const char *path, struct wf_config *c, const struct key *key, wf_error *error)
{
    wf_error range = {0};
    int64_t whole;
    double real;
    bool truth;
    const char *word;
    wf_status status = WF_OK;
    switch (key->kind) {
    case KEY_INT:
        status = wf_json_get_int(object, path, key->name, WF_JSON_REQUIRED, INT64_MIN, INT64_MAX, &whole, error);
        if (status != WF_OK || key_set_int(key, c, whole, &range) == WF_OK)
            return status;
        break;
    case KEY_REAL:
        status = wf_json_get_double(object, path, key->name, WF_JSON_REQUIRED, -DBL_MAX, DBL_MAX, &real, error);
        if (status != WF_OK || key_set_real(key, c, real, &range) == WF_OK)
            return status;
        break;
    case KEY_BOOL:
        status = wf_json_get_bool(object, path, key->name, WF_JSON_REQUIRED, &truth, error);
        if (status == WF_OK)
            key_set_bool(key, c, truth);
        return status;
    case KEY_WORD:
        status = wf_json_get_string(object, path, key->name, WF_JSON_REQUIRED, &word, error);
        if (status != WF_OK || key_set_word(key, c, word, &range) == WF_OK)
            return status;
        break;
    }
    return wf_error_set(error, WF_ERR_FORMAT, "%s: %s", path, range.message);
}

static wf_status take_all(const json_t *object, const char *path, struct wf_config *c, wf_error *error)
{
    char type[64], version[64], expected[64];
    const char *known[HEAD + MOST_KEYS + 1] = {0};
    int count = 0;
    wf_error between = {0};
    /* The family says which keys there are. */
    wf_status status = take_name(object, path, "family", c->family, sizeof c->family, error);
    if (status == WF_OK)
        status = take_name(object, path, "model_type", type, sizeof type, error);
    if (status == WF_OK && strcmp(type, model_type(c->family, expected)) != 0)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: key \"model_type\": \"%s\" should be \"%s\" for this family", path, type, expected);
    if (status == WF_OK && !family_find(c->family, &between))
        return wf_error_set(error, WF_ERR_FORMAT, "%s: %s", path, between.message);
    if (status == WF_OK && family_find(c->family, NULL)->users == WF_CONFIG_READ)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: a configuration of the family %s is Hugging Face's, with \"model_type\": \"%s\"",
                            path, c->family, c->family);
    for (int i = 0; i < HEAD; i++)
        known[count++] = head[i];
    for (int i = 0; i < wf_config_key_count(); i++)
        if (key_used(key_at(i), c))
            known[count++] = wf_config_key_at(i);
    if (status == WF_OK)
        status = wf_json_only_keys(object, path, known, error);
    if (status == WF_OK)
        status = take_name(object, path, "weft_version", version, sizeof version, error);
    if (status == WF_OK)
        status = take_name(object, path, "model", c->model, sizeof c->model, error);
    for (int i = 0; status == WF_OK && i < wf_config_key_count(); i++)
        if (key_used(key_at(i), c))
            status = take(object, path, c, key_at(i), error);
    if (status == WF_OK && wf_config_check(c, &between) != WF_OK)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: %s", path, between.message);
    return status;
}

/* Ours, or by its "model_type" another library's. */
static wf_status take_any(const json_t *object, const char *path, struct wf_config *c, wf_error *error)
{
    char quoted[WF_QUOTE_SIZE];
    const char *type = json_string_value(json_object_get(object, "model_type"));
    if (type && strcmp(type, "bert") == 0)
        return config_bert_take(object, path, c, error);
    if (type && strncmp(type, "weft-", 5) != 0 && !json_object_get(object, "family"))
        return wf_error_set(error, WF_ERR_FORMAT,
                            "%s: key \"model_type\": models of the type %s are not read here; of Hugging Face's \"bert\" is", path,
                            wf_text_quote(type, quoted));
    return take_all(object, path, c, error);
}

wf_status wf_config_load(struct wf_config *config, const char *path, wf_error *error)
{
    struct wf_config c = {0};
    wf_error local = {0};
    json_t *object = wf_json_load(path, LIMIT, &local);
    if (!object)
        return wf_error_set(error, local.code, "%s", local.message);
    wf_status status = json_is_object(object) ? take_any(object, path, &c, error)
                                              : wf_error_set(error, WF_ERR_FORMAT, "%s: this is not an object of keys", path);
    json_decref(object);
    if (status == WF_OK)
        *config = c;
    return status;
}
