/* SPDX-License-Identifier: MIT */
/* Families by name, and what a descriptor must hold. */
#include <stdio.h>
#include <string.h>

#include <weft/internal/text.h>

#include "keys.h"

const struct wf_family *wf_family_find(const char *name, wf_error *error)
{
    enum { MOST = 64 };
    char text[WF_QUOTE_SIZE], all[256] = "";
    const char *names[MOST];
    int count = 0;
    for (; count < MOST && wf_families[count]; count++) {
        size_t used = strlen(all);
        names[count] = wf_families[count]->name;
        if (strcmp(names[count], name) == 0)
            return wf_families[count];
        snprintf(all + used, sizeof all - used, "%s%s", count ? ", " : "", names[count]);
    }
    const char *near = wf_nearest(name, names, count);
    wf_error_set(error, WF_ERR_ARGUMENT, "unknown family %s: %s %s%s", wf_text_quote(name, text), near ? "did you mean" : "choose one of",
                 near ? near : all, near ? "?" : "");
    return NULL;
}

static wf_status check_key(const struct wf_family *f, int index, wf_error *error)
{
    const struct wf_key *key = &f->keys.key[index];
    int64_t values[WF_CONFIG_SPACE / 8] = {0};
    static const size_t sizes[] = {sizeof(int64_t), sizeof(double), sizeof(bool), sizeof(int)};
    if (!key->name || !key->meaning || !key->value)
        return wf_error_set(error, WF_ERR_ARGUMENT, "family %s: key %d lacks a name, meaning or default", f->name, index);
    if (key->offset + sizes[key->kind] > f->config_size || key->offset % sizes[key->kind] != 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "family %s: the offset of key %s is outside its struct or misaligned", f->name,
                            key->name);
    for (int i = 0; i < index; i++)
        if (strcmp(f->keys.key[i].name, key->name) == 0)
            return wf_error_set(error, WF_ERR_ARGUMENT, "family %s: two keys are named %s", f->name, key->name);
    for (int s = 0; s < SECTIONS; s++)
        for (int i = 0; i < sections[s].keys.count; i++)
            if (strcmp(sections[s].keys.key[i].name, key->name) == 0)
                return wf_error_set(error, WF_ERR_ARGUMENT, "family %s: the section %s already has a key %s", f->name, sections[s].name,
                                    key->name);
    wf_status status = key_parse(key, values, key->value, true, error);
    if (status != WF_OK)
        wf_error_prefix(error, "family %s: default of", f->name);
    return status;
}

wf_status wf_family_check(const struct wf_family *f, wf_error *error)
{
    static const struct {
        enum wf_key_role role;
        const char *what;
    } needed[] = {{WF_KEY_VOCAB, "vocabulary size"},
                  {WF_KEY_CONTEXT, "context"},
                  {WF_KEY_LAYERS, "number of layers"},
                  {WF_KEY_WIDTH, "width"},
                  {WF_KEY_HEADS, "number of heads"}};
    bool seen[WF_KEY_ROLES] = {false}, runs = f->kind == WF_MODEL_LANGUAGE  ? f->forward && f->head
                                              : f->kind == WF_MODEL_ENCODER ? f->hidden != NULL
                                                                            : f->encode && f->memory && f->decode && f->head;
    if (f->abi != WF_FAMILY_ABI)
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "the family was compiled for another version of Weft: struct wf_family has %zu bytes, not %zu", f->abi,
                            WF_FAMILY_ABI);
    if (!f->name || !f->init || !runs)
        return wf_error_set(error, WF_ERR_ARGUMENT, "family %s has no name, or lacks a function or the head that its kind requires",
                            f->name ? f->name : "?");
    if (f->config_size > WF_CONFIG_SPACE)
        return wf_error_set(error, WF_ERR_ARGUMENT, "family %s: its configuration has %zu bytes, more than the maximum of %d", f->name,
                            f->config_size, WF_CONFIG_SPACE);
    for (int i = 0; i < f->keys.count; i++) {
        if (check_key(f, i, error) != WF_OK)
            return WF_ERR_ARGUMENT;
        seen[f->keys.key[i].role] = true;
    }
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!seen[needed[i].role])
            return wf_error_set(error, WF_ERR_ARGUMENT, "family %s has no key for the %s", f->name, needed[i].what);
    return WF_OK;
}
