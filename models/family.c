/* SPDX-License-Identifier: MIT */
/* Finds families by name, checks descriptors, and registers the families of a program. */
#include <ctype.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/fork.h>
#include <weft/internal/minmax.h>
#include <weft/internal/needs.h>
#include <weft/internal/text.h>

#include "keys.h"

/* add() writes an entry before it raises the count, and never changes the entry later. So wf_family_at can read the entries without the
 * mutex. */
static const struct wf_family *registered[WF_FAMILIES_MOST];
static atomic_int registered_count;
static pthread_mutex_t registering = PTHREAD_MUTEX_INITIALIZER;
WF_FREE_AFTER_FORK(registering)

bool family_next_type(const char **at, char type[64])
{
    *at += strspn(*at, " ");
    const size_t length = strcspn(*at, " ");
    snprintf(type, 64, "%.*s", (int)WF_MIN(length, 63), *at);
    *at += length;
    return length > 0;
}

bool family_reads(const struct wf_family *family, const char *type)
{
    char own[64];
    for (const char *at = family->model_type; at && family_next_type(&at, own);)
        if (strcmp(own, type) == 0)
            return true;
    return false;
}

const struct wf_family *wf_family_at(int index)
{
    int first = 0;
    while (wf_zoo[first] && first != index)
        first++;
    if (index < 0 || wf_zoo[first])
        return index < 0 ? NULL : wf_zoo[first];
    return index - first < atomic_load_explicit(&registered_count, memory_order_acquire) ? registered[index - first] : NULL;
}

const struct wf_family *wf_family_find(const char *name, wf_error *error)
{
    if (wf_needs(error, "name", name))
        return NULL;
    enum { MOST = 64 };
    char text[WF_QUOTE_SIZE], all[256] = "";
    const char *names[MOST];
    const struct wf_family *family;
    int count = 0;
    for (; count < MOST && (family = wf_family_at(count)); count++) {
        size_t used = strlen(all);
        names[count] = family->name;
        if (strcmp(names[count], name) == 0)
            return family;
        snprintf(all + used, sizeof all - used, "%s%s", count ? ", " : "", names[count]);
    }
    const char *near = wf_nearest(name, names, count);
    wf_error_set(error, WF_ERR_ARGUMENT,
                 near ? "unknown family %s: did you mean %s?" : "unknown family %s: choose one of %s, or use the program that registers it",
                 wf_text_quote(name, text), near ? near : all);
    return NULL;
}

/* --- checks -------------------------------------------------------------------------------------------------------- */

static wf_status check_key(const struct wf_family *f, int index, wf_error *error)
{
    const struct wf_key *key = &f->keys.key[index];
    for (int s = 0; key->name && s < SECTIONS; s++)
        for (int i = 0; i < sections[s].keys.count; i++)
            if (strcmp(sections[s].keys.key[i].name, key->name) == 0)
                return wf_error_set(error, WF_ERR_ARGUMENT, "family %s: the section %s already has a key %s", f->name, sections[s].name,
                                    key->name);
    return key_describes("family", f->name, &f->keys, index, f->config_size, error);
}

/* True if the name can stand in config.json and on the command line. */
static bool is_name(const char *name)
{
    size_t length = name ? strlen(name) : 0;
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)name[i]) && !strchr("_-.", name[i]))
            return false;
    return length > 0 && length < sizeof((struct wf_config *)0)->model;
}

/* Names what the family must set and does not set, such as "forward" or "head or logits". NULL: nothing is missing. */
static const char *missing_function(const struct wf_family *f)
{
    if (!f->init)
        return "init";
    if (f->kind == WF_MODEL_LANGUAGE && !f->forward)
        return "forward";
    if (f->kind == WF_MODEL_ENCODER && !f->hidden)
        return "hidden";
    if (f->kind == WF_MODEL_PAIRS && (!f->encode || !f->memory || !f->decode))
        return !f->encode ? "encode" : !f->memory ? "memory" : "decode";
    if (f->kind != WF_MODEL_ENCODER && !f->head && !f->logits)
        return "head or logits";
    return f->model_type && !f->read ? "read, which model_type requires" : NULL;
}

static wf_status check_functions(const struct wf_family *f, wf_error *error)
{
    const char *missing = missing_function(f);
    if (missing)
        return wf_error_set(error, WF_ERR_ARGUMENT, "family %s has no function %s", f->name, missing);
    if (f->head && ((f->head - 1) % _Alignof(struct wf_linear) != 0 || f->head - 1 + sizeof(struct wf_linear) > f->size))
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "family %s: the head is not a member of its struct of %zu bytes: set it with WF_HEAD_AT(struct, member)",
                            f->name, f->size);
    if (f->loss_term && (!is_name(f->loss_term) || strcmp(f->loss_term, "loss") == 0))
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "family %s: the name of its loss_term must be letters, digits, _, . and -, fewer than 64, and not loss: \"%s\"",
                            f->name, f->loss_term);
    if (f->no_cache && (f->kind == WF_MODEL_PAIRS || f->cache))
        return wf_error_set(error, WF_ERR_ARGUMENT, "family %s: no_cache cannot be combined with %s", f->name,
                            f->cache ? "cache" : "an encoder-decoder, which decodes with a cache");
    return WF_OK;
}

static wf_status check_presets(const struct wf_family *f, wf_error *error)
{
    for (int i = 0; i < f->presets.count; i++) {
        const struct wf_preset *p = &f->presets.preset[i];
        struct wf_config config;
        if (!is_name(p->name) || !p->purpose || !p->settings)
            return wf_error_set(error, WF_ERR_ARGUMENT,
                                "family %s: preset %d lacks a name of letters, digits, _, . and -, a purpose or settings", f->name, i);
        if (config_make(&config, f, p->name, p->settings, error) != WF_OK || wf_config_check(&config, error) != WF_OK) {
            wf_error_prefix(error, "family %s: preset %s", f->name, p->name);
            return WF_ERR_ARGUMENT;
        }
    }
    return WF_OK;
}

wf_status wf_family_check(const struct wf_family *f, wf_error *error)
{
    if (wf_needs(error, "family", f))
        return WF_ERR_ARGUMENT;
    static const struct {
        enum wf_key_role role;
        const char *what;
    } needed[] = {{WF_KEY_VOCAB, "vocabulary size"}, {WF_KEY_CONTEXT, "context"}, {WF_KEY_WIDTH, "width"}};
    bool seen[WF_KEY_ROLES] = {false};
    if (f->abi != WF_FAMILY_ABI)
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "the family was compiled for another version of Weft: struct wf_family has %zu bytes, not %zu: set "
                            ".abi = WF_FAMILY_ABI and compile it again",
                            f->abi, WF_FAMILY_ABI);
    if (!is_name(f->name))
        return wf_error_set(error, WF_ERR_ARGUMENT, "the name of a family must be letters, digits, _, . and -, fewer than 64: %s",
                            f->name ? f->name : "it has none");
    if ((int)f->kind < WF_MODEL_LANGUAGE || f->kind > WF_MODEL_ENCODER)
        return wf_error_set(error, WF_ERR_ARGUMENT, "family %s: kind %d is none of enum wf_model_kind", f->name, (int)f->kind);
    if (f->config_size > WF_CONFIG_SPACE)
        return wf_error_set(error, WF_ERR_ARGUMENT, "family %s: its configuration has %zu bytes, more than the maximum of %d", f->name,
                            f->config_size, WF_CONFIG_SPACE);
    if (check_functions(f, error) != WF_OK)
        return WF_ERR_ARGUMENT;
    for (int i = 0; i < f->keys.count; i++) {
        if (check_key(f, i, error) != WF_OK)
            return WF_ERR_ARGUMENT;
        seen[f->keys.key[i].role] = true;
    }
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!seen[needed[i].role])
            return wf_error_set(error, WF_ERR_ARGUMENT, "family %s has no key for the %s", f->name, needed[i].what);
    return f->read_only ? WF_OK : check_presets(f, error);
}

/* --- registration -------------------------------------------------------------------------------------------------- */

static wf_status check_names(const struct wf_family *f, wf_error *error)
{
    const struct wf_family *other;
    for (int i = 0; i < SECTIONS; i++)
        if (strcmp(sections[i].name, f->name) == 0)
            return wf_error_set(error, WF_ERR_ARGUMENT, "family %s: the name is that of a section of common keys: choose another", f->name);
    for (int i = 0; (other = wf_family_at(i)); i++) {
        if (strcmp(other->name, f->name) == 0)
            return wf_error_set(error, WF_ERR_ARGUMENT, "family %s: another family has this name: choose another", f->name);
        char type[64];
        for (const char *at = f->model_type; at && family_next_type(&at, type);)
            if (family_reads(other, type))
                return wf_error_set(error, WF_ERR_ARGUMENT, "family %s: the family %s already reads the model_type %s", f->name,
                                    other->name, type);
    }
    for (int i = 0; i < f->presets.count; i++) {
        const struct wf_preset *known;
        const char *name = f->presets.preset[i].name;
        for (int k = 0; (known = wf_preset_at(k)); k++)
            if (strcmp(known->name, name) == 0)
                return wf_error_set(error, WF_ERR_ARGUMENT, "family %s: another preset is named %s: choose another name", f->name, name);
        for (int k = 0; k < i; k++)
            if (strcmp(f->presets.preset[k].name, name) == 0)
                return wf_error_set(error, WF_ERR_ARGUMENT, "family %s: two presets are named %s", f->name, name);
    }
    return WF_OK;
}

static wf_status add(const struct wf_family *family, wf_error *error)
{
    int count = atomic_load_explicit(&registered_count, memory_order_relaxed);
    for (int i = 0; i < count; i++)
        if (registered[i] == family)
            return WF_OK;
    if (check_names(family, error) != WF_OK)
        return WF_ERR_ARGUMENT;
    if (count == WF_FAMILIES_MOST)
        return wf_error_set(error, WF_ERR_ARGUMENT, "family %s: %d families are registered already, the most there can be", family->name,
                            WF_FAMILIES_MOST);
    registered[count] = family;
    atomic_store_explicit(&registered_count, count + 1, memory_order_release);
    return WF_OK;
}

wf_status wf_family_register(const struct wf_family *family, wf_error *error)
{
    if (wf_needs(error, "family", family))
        return WF_ERR_ARGUMENT;
    if (wf_family_check(family, error) != WF_OK)
        return WF_ERR_ARGUMENT;
    pthread_mutex_lock(&registering);
    wf_status status = add(family, error);
    pthread_mutex_unlock(&registering);
    return status;
}
