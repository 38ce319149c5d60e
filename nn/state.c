/* SPDX-License-Identifier: MIT */
/* Loads a registry's parameters from safetensors files, of Weft or of other libraries, and saves them. */
#include <stdio.h>
#include <string.h>

#include <weft/internal/files.h>
#include <weft/internal/minmax.h>
#include <weft/internal/name_list.h>
#include <weft/internal/pattern.h>
#include <weft/internal/safetensors_from.h>

#include "sources.h"

static bool is_ignored(const char *name, const char *const *ignored)
{
    for (; ignored && *ignored; ignored++) {
        if (wf_pattern_matches(*ignored, name))
            return true;
    }
    return false;
}

/* Whether the tensor is the number of batches beside running statistics that are loaded. PyTorch saves it; Weft has no use for it. */
static bool is_batch_count(const wf_safetensors *file, const char *name, const bool *used)
{
    static const char count[] = "num_batches_tracked", mean[] = "running_mean";
    char beside[WF_SOURCE_NAME];
    const size_t length = strlen(name), before = length - WF_MIN(length, sizeof count - 1);
    if (strcmp(name + before, count) != 0 || before + sizeof mean > sizeof beside)
        return false;
    snprintf(beside, sizeof beside, "%.*s%s", (int)before, name, mean);
    const struct wf_safetensors_entry *found = wf_safetensors_find(file, beside);
    return found && used[found - wf_safetensors_at(file, 0)];
}

static void compare_one(const struct entry *e, const struct reading *r, bool *used, struct wf_name_list *missing,
                        struct wf_name_list *shaped)
{
    struct wf_sources s;
    sources_find(e, r, &s);
    int present = 0;
    for (int i = 0; i < s.count; i++)
        present += wf_safetensors_find(r->file, s.name[i]) != NULL;
    r->left_out[e->info.index] = present == 0 && r->options->allow_missing;
    for (int i = 0; i < s.count && !r->left_out[e->info.index]; i++) {
        const struct wf_safetensors_entry *found = wf_safetensors_find(r->file, s.name[i]);
        if (!found) {
            if (s.parts == 1 || !strstr(missing->text, s.name[i])) /* another part may have named it */
                wf_name_list_add(missing, s.name[i], "");
            continue;
        }
        bool *known = &used[found - wf_safetensors_at(r->file, 0)], named = s.parts > 1 && *known;
        *known = true;
        if (present < s.count || named || sources_fit(e, r->file, &s))
            continue;
        const wf_shape wanted = sources_wanted_shape(e, r->file, &s, i);
        if (!wf_shape_equal(&found->shape, &wanted)) {
            char have[96], want[96], detail[256];
            snprintf(detail, sizeof detail, " %s instead of %s", wf_shape_text(&found->shape, have, sizeof have),
                     wf_shape_text(&wanted, want, sizeof want));
            wf_name_list_add(shaped, s.name[i], detail);
        }
    }
}

static wf_status compare(const wf_registry *registry, const struct reading *r, wf_error *error)
{
    const wf_safetensors *file = r->file;
    const struct wf_load_options *o = r->options;
    struct wf_name_list missing = {0}, unexpected = {0}, shaped = {0};
    size_t skip = o->prefix ? strlen(o->prefix) : 0;
    int64_t count = wf_safetensors_count(file);
    bool *used = wf_alloc_zero((size_t)count + 1, sizeof *used);
    if (!used)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for the names of %lld tensors", (long long)count);
    for (int i = 0; i < registry->count; i++)
        if (entry_is_saved(&registry->entry[i]))
            compare_one(&registry->entry[i], r, used, &missing, &shaped);
    for (int64_t i = 0; i < count; i++) {
        const char *has = wf_safetensors_at(file, i)->name;
        if (used[i] || (skip > 0 && strncmp(has, o->prefix, skip) != 0) || is_ignored(has + skip, o->ignored) ||
            is_batch_count(file, has, used))
            continue;
        wf_name_list_add(&unexpected, has, "");
    }
    wf_free(used);
    const char *left_out = NULL;
    bool any = false;
    for (int i = 0; i < registry->count; i++) {
        any = any || (entry_is_saved(&registry->entry[i]) && !r->left_out[i]);
        if (r->left_out[i] && !left_out)
            left_out = registry->entry[i].info.name;
        if (r->left_out[i] && !registry->values)
            return wf_error_set(
                error, WF_ERR_STATE,
                "%s: the weights lack '%s', which has no value to keep: call wf_registry_build before a load with .allow_missing",
                wf_safetensors_path(file), registry->entry[i].info.name);
    }
    if (left_out && !any) /* other buffers do not count, because no file holds them */
        return wf_error_set(error, WF_ERR_FORMAT,
                            "%s: the weights do not match the model: the file has none of its parameters, such as '%s%s'",
                            wf_safetensors_path(file), o->prefix ? o->prefix : "", left_out);
    if (missing.count + unexpected.count + shaped.count == 0)
        return WF_OK;
    char text[1000] = "";
    wf_name_list_put(&missing, "missing", text, sizeof text);
    wf_name_list_put(&unexpected, "unexpected", text, sizeof text);
    wf_name_list_put(&shaped, "with another shape", text, sizeof text);
    return wf_error_set(error, WF_ERR_FORMAT, "%s: the weights do not match the model: %s", wf_safetensors_path(file), text);
}

/* Reads a matrix [in, out] and writes its transpose to `dst`. */
static wf_status read_transposed(const struct reading *r, const struct wf_safetensors_entry *found, wf_dtype dtype, void *dst,
                                 wf_error *error)
{
    void *data = wf_alloc((size_t)found->count * wf_dtype_size(dtype) + 1);
    if (!data)
        return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory to transpose '%s'", wf_safetensors_path(r->file), found->name);
    const wf_status status = wf_safetensors_read(r->file, found->name, dtype, data, found->count, error);
    const wf_array matrix = wf_array_transpose(wf_array_contiguous(data, dtype, &found->shape), 0, 1);
    const wf_shape shape = wf_array_shape(&matrix);
    wf_array to = wf_array_contiguous(dst, dtype, &shape);
    if (status == WF_OK)
        wf_array_copy(&to, &matrix);
    wf_free(data);
    return status;
}

static wf_status read_one(const struct entry *e, const struct reading *r, wf_error *error)
{
    struct wf_sources s;
    wf_status status = WF_OK;
    sources_find(e, r, &s);
    const wf_dtype dtype = e->info.value.dtype;
    char *dst = e->info.value.data;
    for (int i = 0; status == WF_OK && i < s.count; i++) {
        const struct wf_safetensors_entry *found = wf_safetensors_find(r->file, s.name[i]);
        const int64_t count = found->count / s.parts;
        status = s.transposed && found->shape.ndim == 2
                     ? read_transposed(r, found, dtype, dst, error)
                     : wf_safetensors_read_range(r->file, s.name[i], dtype, s.part * count, dst, count, error);
        dst += (size_t)count * wf_dtype_size(dtype);
    }
    return status;
}

/* Whether the options ask for the parameter to be stored as bf16. */
static bool is_to_store(const struct entry *e, const struct reading *r)
{
    struct wf_sources s;
    if (!e->storable || r->options->stored == WF_STORED_REAL || WF_REAL != WF_F32)
        return false;
    if (r->options->stored == WF_STORED_BF16)
        return true;
    sources_find(e, r, &s);
    for (int i = 0; i < s.count; i++)
        if (wf_safetensors_find(r->file, s.name[i])->dtype != WF_BF16)
            return false;
    return true;
}

/* Whether another parameter has this memory already: then a change of one would change the other. */
static bool is_taken(const wf_registry *registry, const void *data)
{
    for (int i = 0; i < registry->count; i++)
        if (registry->entry[i].mapped == data)
            return true;
    return false;
}

/* Leaves a parameter in the file if the file has it in one tensor that needs no change. */
static void take_mapped(wf_registry *registry, struct entry *e, const struct reading *r)
{
    struct wf_sources s;
    sources_find(e, r, &s);
    const struct wf_safetensors_entry *found = wf_safetensors_find(r->file, s.name[0]);
    const wf_dtype dtype = e->stored ? WF_BF16 : WF_REAL;
    const char *data = wf_safetensors_data(r->file, found);
    if (!data || s.count != 1 || (s.transposed && found->shape.ndim == 2) || found->dtype != dtype)
        return;
    data += s.part * (found->count / s.parts) * (int64_t)wf_dtype_size(dtype);
    if (is_taken(registry, data))
        return;
    e->mapped = (void *)data; /* the memory is writable: wf_safetensors_take_memory */
    e->info.frozen = true;
}

/* Decides where the values will be, and allocates them. On a failure nothing has changed. */
static wf_status allocate(wf_registry *registry, const struct reading *r, wf_error *error)
{
    bool *was = wf_alloc_zero(2 * (size_t)registry->count + 1, sizeof *was); /* frozen and stored */
    if (!was)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for %d parameters", registry->count);
    const bool map = r->options->map && wf_safetensors_take_memory(r->file);
    for (int i = 0; i < registry->count; i++) {
        struct entry *e = &registry->entry[i];
        was[2 * i] = e->info.frozen;
        was[2 * i + 1] = e->stored;
        if (is_to_store(e, r))
            e->stored = e->info.frozen = true;
        if (map && !e->buffer)
            take_mapped(registry, e, r);
    }
    const wf_status status = registry_allocate(registry, error);
    for (int i = 0; i < registry->count && status != WF_OK; i++) {
        struct entry *e = &registry->entry[i];
        e->info.frozen = was[2 * i];
        e->stored = was[2 * i + 1];
        e->mapped = NULL;
    }
    if (map && status == WF_OK)
        registry->file = (wf_safetensors *)r->file;
    else if (map)
        wf_safetensors_return_memory(r->file);
    wf_free(was);
    return status;
}

static wf_status check_options(const struct wf_load_options *o, wf_error *error)
{
    if (o->rules < 0 || (o->rules > 0 && !o->rule))
        return wf_error_set(error, WF_ERR_ARGUMENT, "wf_registry_load_with: %d rules, but the list of rules is %s", o->rules,
                            o->rule ? "not empty" : "NULL");
    if ((unsigned)o->stored > WF_STORED_BF16 || (o->stored == WF_STORED_BF16 && WF_REAL != WF_F32))
        return wf_error_set(error, WF_ERR_ARGUMENT, "wf_registry_load_with: .stored is %s",
                            o->stored == WF_STORED_BF16 ? "bf16, which is for libweft, the library of floats; this is libweft-f64"
                                                        : "unknown: give WF_STORED_REAL, WF_STORED_AS_FILE or WF_STORED_BF16");
    for (int i = 0; i < o->rules; i++)
        if (!o->rule[i].parameter || !o->rule[i].source[0])
            return wf_error_set(error, WF_ERR_ARGUMENT, "wf_registry_load_with: rule %d, of \"%s\", names no %s", i,
                                o->rule[i].parameter ? o->rule[i].parameter : "", o->rule[i].parameter ? "source" : "parameter");
    for (int i = 0; i < o->rules; i++) {
        const struct wf_load_rule *rule = &o->rule[i];
        const bool cut = rule->part != 0 || rule->parts != 0;
        if (cut && (rule->parts < 1 || rule->part < 0 || rule->part >= rule->parts || rule->source[1] || rule->transposed))
            return wf_error_set(error, WF_ERR_ARGUMENT,
                                "wf_registry_load_with: rule %d, of \"%s\", takes part %d of %d: a part is from 0 to parts - 1, of one "
                                "source that is not transposed",
                                i, rule->parameter, rule->part, rule->parts);
    }
    return WF_OK;
}

wf_status wf_registry_load_with(wf_registry *registry, const wf_safetensors *file, const struct wf_load_options *options, wf_error *error)
{
    options = options ? options : &(struct wf_load_options){0};
    if (!registry)
        return wf_error_set(error, WF_ERR_ARGUMENT, "wf_registry_load: the registry is NULL: look at what wf_registry_new returned");
    /* Everything is checked before the allocation, so that a refused load changes nothing. */
    if (registry->error.code != WF_OK)
        return wf_error_set(error, registry->error.code, "%s", registry->error.message);
    if (!file)
        return wf_error_set(error, WF_ERR_ARGUMENT, "wf_registry_load: the file is NULL: look at what wf_safetensors_open returned");
    struct reading r = {.file = file, .options = options};
    wf_status status = check_options(options, error);
    if (status != WF_OK)
        return status;
    r.left_out = wf_alloc_zero((size_t)registry->count + 1, sizeof *r.left_out);
    if (!r.left_out)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for the names of %d parameters", registry->count);
    status = sources_table_make(&r.rules, options, error);
    if (status == WF_OK)
        status = compare(registry, &r, error);
    for (int i = 0; status == WF_OK && registry->values && options->stored == WF_STORED_BF16 && i < registry->count; i++)
        if (registry->entry[i].storable && !registry->entry[i].stored)
            status =
                wf_error_set(error, WF_ERR_STATE,
                             "wf_registry_load_with: '%s' has its values as F32 already: give .stored at the first load, before a build",
                             registry->entry[i].info.name);
    if (status == WF_OK && !registry->values && lora_check(registry, error) != WF_OK)
        status = WF_ERR_ARGUMENT;
    const bool mapped = options->map && !registry->values;
    if (status == WF_OK && !registry->values)
        status = allocate(registry, &r, error);
    if (status == WF_OK)
        status = wf_values_write_begin(registry->use, "wf_registry_load", error);
    const bool begun = status == WF_OK;
    for (int i = 0; status == WF_OK && i < registry->count; i++)
        if (entry_is_saved(&registry->entry[i]) && !r.left_out[i] && !(mapped && registry->entry[i].mapped))
            status = read_one(&registry->entry[i], &r, error);
    if (begun)
        wf_values_write_end(registry->use);
    for (int i = 0; status == WF_OK && options->missing && i < registry->count; i++)
        if (r.left_out[i])
            options->missing(options->missing_ctx, registry->entry[i].info.name);
    sources_table_free(&r.rules);
    wf_free(r.left_out);
    return status;
}

wf_status wf_registry_intact(const wf_registry *registry, wf_error *error)
{
    const char *path, *harm = registry && registry->file ? wf_safetensors_harm(registry->file, &path) : NULL;
    if (!harm)
        return WF_OK;
    return wf_error_set(error, WF_ERR_IO, "%s: %s while its weights were in use: restore it, and start again", path, harm);
}

wf_status wf_registry_sources(const wf_registry *registry, const wf_safetensors *file, const struct wf_load_options *options,
                              wf_sources_of *each, void *ctx, wf_error *error)
{
    struct reading r = {.file = file, .options = options};
    struct wf_sources *s = wf_alloc(sizeof *s);
    wf_status status = check_options(options, error);
    r.left_out = wf_alloc_zero((size_t)registry->count + 1, sizeof *r.left_out);
    if (status == WF_OK && (!s || !r.left_out))
        status = wf_error_set(error, WF_ERR_MEMORY, "no memory for the names of %d parameters", registry->count);
    if (status == WF_OK)
        status = sources_table_make(&r.rules, options, error);
    if (status == WF_OK && file)
        status = compare(registry, &r, error);
    for (int i = 0; status == WF_OK && i < registry->count; i++) {
        const struct entry *e = &registry->entry[i];
        if (!entry_is_saved(e))
            continue;
        sources_find(e, &r, s);
        status = each(ctx, e->info.name, &e->shape, s, error);
    }
    sources_table_free(&r.rules);
    wf_free(r.left_out);
    wf_free(s);
    return status;
}

wf_status wf_registry_load(wf_registry *registry, const wf_safetensors *file, const char *prefix, wf_error *error)
{
    return wf_registry_load_with(registry, file, &(struct wf_load_options){.prefix = prefix}, error);
}

/* Reads elements of a mapped parameter for a writer. */
static wf_status read_mapped(void *ctx, const void *key, int64_t at, int64_t count, void *out, wf_error *error)
{
    const wf_registry *registry = ctx;
    const struct entry *e;
    memcpy(&e, key, sizeof e);
    const size_t size = wf_dtype_size(e->info.value.dtype);
    memcpy(out, (const char *)e->mapped + (size_t)at * size, (size_t)count * size);
    return wf_registry_intact(registry, error);
}

void wf_registry_save(const wf_registry *registry, wf_safetensors_writer *writer, const char *prefix)
{
    for (int i = 0; i < wf_registry_count(registry); i++) {
        const struct entry *e = &registry->entry[i];
        char name[WF_SOURCE_NAME];
        if (!entry_is_saved(e))
            continue;
        if (e->mapped)
            wf_safetensors_put_from(writer, sources_full_name(e, prefix, name), &e->info.value, read_mapped, (void *)registry, &e,
                                    sizeof e);
        else
            wf_safetensors_put(writer, sources_full_name(e, prefix, name), &e->info.value);
    }
}
