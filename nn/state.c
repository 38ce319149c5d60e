/* SPDX-License-Identifier: MIT */
/* State dicts: a registry's parameters in safetensors files. */
#include <stdio.h>
#include <string.h>

#include "registry_internal.h"

/* Names for a message: the first few, and how many more. */
struct names {
    char text[400];
    size_t used;
    int count;
};

static void add_name(struct names *n, const char *name, const char *detail)
{
    n->count++;
    if (n->used + strlen(name) + strlen(detail) + 4 < sizeof n->text)
        n->used += (size_t)snprintf(n->text + n->used, sizeof n->text - n->used, "%s%s%s", n->used ? ", " : "", name, detail);
}

static void say(const struct names *n, const char *what, char *text, size_t size)
{
    size_t used = strlen(text);
    if (n->count > 0)
        snprintf(text + used, size - used, "%s%d %s: %s", used ? "; " : "", n->count, what, n->text);
}

static const char *full_name(const struct entry *e, const char *prefix, char *text, size_t size)
{
    snprintf(text, size, "%s%s", prefix ? prefix : "", e->name);
    return text;
}

static wf_status compare(const wf_registry *registry, const wf_safetensors *file, const char *prefix, wf_error *error)
{
    struct names missing = {0}, unexpected = {0}, shaped = {0};
    char name[1024];
    for (int i = 0; i < registry->count; i++) {
        const struct entry *e = &registry->entry[i];
        if (e->buffer)
            continue;
        const struct wf_safetensors_entry *found = wf_safetensors_find(file, full_name(e, prefix, name, sizeof name));
        if (!found) {
            add_name(&missing, name, "");
        } else if (!wf_shape_equal(&found->shape, &e->shape)) {
            char have[96], want[96], detail[256];
            snprintf(detail, sizeof detail, " %s instead of %s", wf_shape_text(&found->shape, have, sizeof have),
                     wf_shape_text(&e->shape, want, sizeof want));
            add_name(&shaped, name, detail);
        }
    }
    size_t skip = prefix ? strlen(prefix) : 0;
    for (int64_t i = 0; i < wf_safetensors_count(file); i++) {
        const char *has = wf_safetensors_at(file, i)->name;
        if (skip > 0 && strncmp(has, prefix, skip) != 0)
            continue;
        bool known = false;
        for (int j = 0; j < registry->count && !known; j++)
            known = !registry->entry[j].buffer && strcmp(registry->entry[j].name, has + skip) == 0;
        if (!known)
            add_name(&unexpected, has, "");
    }
    if (missing.count + unexpected.count + shaped.count == 0)
        return WF_OK;
    char text[1000] = "";
    say(&missing, "missing", text, sizeof text);
    say(&unexpected, "unexpected", text, sizeof text);
    say(&shaped, "with another shape", text, sizeof text);
    return wf_error_set(error, WF_ERR_FORMAT, "the weights are not this model's: %s", text);
}

wf_status wf_registry_load(wf_registry *registry, const wf_safetensors *file, const char *prefix, wf_error *error)
{
    /* Allocation comes second: what is wrong with the file is said before memory is asked for. */
    if (registry->error.code != WF_OK)
        return wf_error_set(error, registry->error.code, "%s", registry->error.message);
    wf_status status = compare(registry, file, prefix, error);
    if (status == WF_OK && !registry->values)
        status = registry_allocate(registry, error);
    for (int i = 0; status == WF_OK && i < registry->count; i++) {
        const struct entry *e = &registry->entry[i];
        char name[1024];
        if (!e->buffer)
            status = wf_safetensors_read(file, full_name(e, prefix, name, sizeof name), WF_REAL, registry->values + e->offset, e->count,
                                         error);
    }
    return status;
}

void wf_registry_save(const wf_registry *registry, wf_safetensors_writer *writer, const char *prefix)
{
    for (int i = 0; i < registry->count; i++) {
        const struct entry *e = &registry->entry[i];
        char name[1024];
        if (e->buffer || !registry->values)
            continue;
        wf_array value = wf_array_dense(registry->values + e->offset, WF_REAL, &e->shape);
        wf_safetensors_put(writer, full_name(e, prefix, name, sizeof name), &value);
    }
}
