/* SPDX-License-Identifier: MIT */
/* Writes and reads config.json, which holds all keys of a configuration and the members in `head` below. */
#include <stdio.h>
#include <string.h>

#include <weft/internal/config_json.h>
#include <weft/internal/json.h>
#include <weft/internal/name_list.h>
#include <weft/internal/needs.h>
#include <weft/internal/text.h>
#include <weft/nn.h>

#include "keys.h"

enum { LIMIT = 1 << 20 };
static const char *const head[] = {"weft_version", "model_type", "model", "family", "trained_on"};
enum { HEAD = sizeof head / sizeof *head, NAMES = 4 /* the first 4 members of `head` are strings, the last is an object */ };

/* Writes the value of "model_type". It begins with "weft-", so that no other library takes the file for one of its own architectures. */
static const char *model_type(const struct wf_config *config, char text[64])
{
    snprintf(text, 64, "weft-%s", config->family->name);
    return text;
}

wf_status wf_config_put(const struct wf_config *config, json_t *object, wf_error *error)
{
    struct slot slot;
    wf_status status = WF_OK;
    for (int i = 0; status == WF_OK && slot_at(config, i, &slot); i++)
        status = key_to_json(slot.key, slot.values, object, error);
    return status;
}

wf_status wf_config_save(const struct wf_config *config, const char *path, wf_error *error)
{
    if (wf_needs(error, "config, path", config, path))
        return WF_ERR_ARGUMENT;
    return wf_config_save_with(config, NULL, path, error);
}

wf_status wf_config_save_with(const struct wf_config *config, json_t *trained_on, const char *path, wf_error *error)
{
    char text[64];
    if (!config->family || config->family->read_only)
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "%s: a configuration of the family %s can be read but not written: copy its config.json", path,
                            wf_config_family(config));
    if (optimizer_kept(&config->optimizer))
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "%s: the configuration has the optimizer %s of another program, whose keys are not known here: copy its "
                            "config.json, or choose another optimizer",
                            path, optimizer_kept(&config->optimizer));
    wf_json_init();
    json_t *object = json_object();
    const char *values[NAMES] = {wf_version(), model_type(config, text), config->model, config->family->name};
    wf_status status = object ? WF_OK : wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for a configuration", path);
    for (int i = 0; status == WF_OK && i < NAMES; i++)
        status = wf_json_set_string(object, head[i], values[i], error);
    if (status == WF_OK)
        status = wf_config_put(config, object, error);
    if (status == WF_OK && trained_on)
        status = wf_json_set_new(object, head[NAMES], json_incref(trained_on), error);
    if (status == WF_OK)
        status = wf_json_save(path, object, 2, error);
    json_decref(object);
    return status;
}

/* Reads a member that is a name; NULL if it is absent. Only characters that are safe in messages and file names are accepted. */
static const char *read_name(struct wf_json_reader *r, const char *key, size_t size)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+";
    const char *text = NULL;
    char quoted[WF_QUOTE_SIZE];
    wf_json_read_string(r, key, json_object_get(r->object, key) ? WF_JSON_REQUIRED : WF_JSON_OPTIONAL, &text);
    if (r->status != WF_OK || !text)
        return NULL;
    size_t n = strlen(text);
    if (n == 0 || n >= size || strspn(text, allowed) != n)
        r->status =
            wf_error_set(r->error, WF_ERR_FORMAT, "%s: key \"%s\": %s is not a valid name: 1 to %zu letters, digits, or any of . _ - +",
                         r->where, key, wf_text_quote(text, quoted), size - 1);
    return text;
}

static void fail(struct wf_json_reader *r, const wf_error *why)
{
    wf_json_read_status(r,
                        wf_error_set(r->error, why->code == WF_ERR_ARGUMENT ? WF_ERR_FORMAT : why->code, "%s: %s", r->where, why->message));
}

static bool is_preset(const char *name)
{
    struct wf_config c;
    return wf_config_preset(&c, name, NULL) == WF_OK;
}

/* Sets every key of *c to the value that it has if the file lacks the key. For the file of a run, which has "weft_version", these are the
 * family's defaults, because an older file lacks newer keys. For a user's file they are the values of the preset that it names, or the
 * family's defaults if it names none. */
static void read_start(struct wf_json_reader *r, struct wf_config *c)
{
    wf_error why = {0};
    const char *version = read_name(r, "weft_version", 64), *model = read_name(r, "model", sizeof c->model),
               *family = read_name(r, "family", 64);
    char quoted[WF_QUOTE_SIZE];
    bool preset = model && (!family || (!version && is_preset(model)));
    if (r->status != WF_OK)
        return;
    if (!model && !family)
        wf_error_set(&why, WF_ERR_FORMAT,
                     "the key \"model\" is missing: set it to a name that the command `models` lists, or set \"family\"");
    else if (preset ? wf_config_preset(c, model, &why) == WF_OK : wf_config_defaults(c, family, &why) == WF_OK) {
        if (c->family->read_only)
            wf_error_set(&why, WF_ERR_FORMAT,
                         "the family %s is read only from another library's configuration, with \"model_type\": \"%s\"", family,
                         c->family->model_type);
        else if (family && strcmp(family, c->family->name) != 0)
            wf_error_set(&why, WF_ERR_FORMAT, "key \"family\": %s is of the family %s, not %s", model, c->family->name, family);
        else if (model)
            snprintf(c->model, sizeof c->model, "%s", model);
    }
    if (why.code && family && version && !preset && !wf_family_find(family, NULL)) {
        wf_error_clear(&why);
        wf_error_set(&why, WF_ERR_FORMAT,
                     "key \"family\": no family %s is registered here: use the program that registers it (wf_family_register), such as the "
                     "one that wrote this folder",
                     wf_text_quote(family, quoted));
    }
    if (why.code)
        fail(r, &why);
}

/* Overwrites *c with the keys of the file. */
static void read_keys(struct wf_json_reader *r, struct wf_config *c)
{
    const char *key, *type = read_name(r, "model_type", 64), *family = read_name(r, "family", 64);
    char expected[64];
    json_t *value;
    struct slot slot;
    wf_error why = {0};
    if (r->status == WF_OK && type && strcmp(type, model_type(c, expected)) != 0)
        wf_error_set(&why, WF_ERR_FORMAT, "key \"model_type\": \"%s\" must be \"%s\" for this family", type, expected);
    else if (r->status == WF_OK && family && strcmp(family, c->family->name) != 0)
        wf_error_set(&why, WF_ERR_FORMAT, "key \"family\": %s is of the family %s, not %s", c->model, c->family->name, family);
    /* The optimiser is chosen before the loop below sets the other keys, because keys such as sgd.momentum belong to the chosen optimiser.
     */
    const char *optimizer = json_string_value(json_object_get(r->object, "optimizer"));
    if (r->status == WF_OK && !why.code && optimizer && optimizer_choose(c, optimizer, &why) != WF_OK &&
        json_object_get(r->object, "weft_version") && optimizer_keep(c, optimizer)) /* the model of a run works without its optimiser */
        wf_error_clear(&why);
    json_object_foreach((json_t *)r->object, key, value)
    {
        bool known = why.code != WF_OK;
        for (int i = 0; i < HEAD && !known; i++)
            known = strcmp(head[i], key) == 0;
        if (optimizer_kept(&c->optimizer))
            known |= strcmp(key, "optimizer") == 0 || optimizer_kept_key(c, key);
        if (known || r->status != WF_OK)
            continue;
        if (slot_find(c, key, &slot))
            r->status = key_from_json(slot.key, slot.values, r->object, r->where, r->error);
        else if (wf_config_set(c, key, "", &why) == WF_OK) /* always fails; `why` then says what is wrong with the key */
            continue;
    }
    struct wf_training *t = &c->training;
    if (r->status == WF_OK && !json_object_get(r->object, "leaves") && t->leaves > 0 && t->accumulate % t->leaves != 0)
        t->leaves = 0; /* the preset's value of `leaves` is no divisor of the file's value of `accumulate` */
    if (r->status == WF_OK && json_object_get(r->object, "steps") && !json_object_get(r->object, "epochs"))
        t->epochs = 0;
    if (r->status == WF_OK && !why.code && config_check_model(c, &why) == WF_OK)
        return;
    if (r->status == WF_OK)
        fail(r, &why);
}

/* Reads a config.json of another library, by the family that has its "model_type". Returns false if the file is Weft's own, otherwise true,
 * even if reading failed. */
static bool read_other(struct wf_json_reader *r, struct wf_config *c)
{
    char quoted[WF_QUOTE_SIZE];
    wf_error why = {0};
    const char *type = json_string_value(json_object_get(r->object, "model_type"));
    const struct wf_family *family;
    const bool own_file = json_object_get(r->object, "weft_version");
    for (int i = 0; type && !own_file && (family = wf_family_at(i)); i++)
        if (family_reads(family, type)) {
            if (wf_config_preset(c, family->name, NULL) != WF_OK) /* the preset, if there is one, has the settings for further training */
                wf_json_read_status(r, wf_config_defaults(c, family->name, r->error));
            if (r->status == WF_OK)
                r->status = family->read(r->object, r->where, c->architecture, r->error);
            wf_config_settle(c);
            if (r->status == WF_OK && wf_config_check(c, &why) != WF_OK)
                fail(r, &why);
            return true;
        }
    if (!type || strncmp(type, "weft-", 5) == 0 || json_object_get(r->object, "family") || json_object_get(r->object, "model"))
        return false;
    struct wf_name_list known = {0};
    char own[64];
    for (int i = 0; (family = wf_family_at(i)); i++)
        for (const char *at = family->model_type; at && family_next_type(&at, own);)
            wf_name_list_add(&known, own, "");
    wf_json_read_status(r, wf_error_set(r->error, WF_ERR_FORMAT,
                                        "%s: key \"model_type\": models of the type %s are not supported; these types are: %s", r->where,
                                        wf_text_quote(type, quoted), known.text));
    return true;
}

static wf_status load(struct wf_config *config, const char *path, bool over, wf_error *error)
{
    struct wf_config c = *config;
    wf_error local = {0};
    json_t *object = wf_json_load(path, LIMIT, &local);
    struct wf_json_reader r = {.object = object, .where = path, .error = error};
    if (!object)
        return wf_error_set(error, local.code, "%s", local.message);
    if (!json_is_object(object))
        r.status = wf_error_set(error, WF_ERR_FORMAT, "%s: not a JSON object", path);
    else if (over || !read_other(&r, &c)) {
        if (!over)
            read_start(&r, &c);
        if (r.status == WF_OK)
            read_keys(&r, &c);
    }
    json_decref(object);
    if (r.status == WF_OK)
        *config = c;
    return r.status;
}

wf_status wf_config_load(struct wf_config *config, const char *path, wf_error *error)
{
    if (wf_needs(error, "config, path", config, path))
        return WF_ERR_ARGUMENT;
    return load(config, path, false, error);
}

wf_status wf_config_load_over(struct wf_config *config, const char *path, wf_error *error)
{
    if (wf_needs(error, "config, path", config, path))
        return WF_ERR_ARGUMENT;
    return config->family
               ? load(config, path, true, error)
               : wf_error_set(error, WF_ERR_STATE,
                              "%s: the configuration has no model family yet: call wf_config_preset or wf_config_defaults first", path);
}
