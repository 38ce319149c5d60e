/* SPDX-License-Identifier: MIT */
/* Saves and loads the state of an optimiser: moments and number of updates of each parameter, by name. */
#include <stdio.h>
#include <string.h>

#include <weft/internal/minmax.h>
#include <weft/internal/name_list.h>
#include <weft/internal/needs.h>
#include <weft/internal/safetensors_from.h>

#include "internal.h"

enum { FULL = NAME + 256 };
static const char *join(char text[FULL], const char *prefix, const char *what, const char *name)
{
    snprintf(text, FULL, "%s%s%s%s", prefix, what, name[0] ? "." : "", name);
    return text;
}

static void put_moment(const struct wf_optimizer *opt, wf_safetensors_writer *writer, const char *name, int64_t j, int i, int k,
                       const wf_shape *shape, const struct wf_optimizer_source *source)
{
    const struct wf_optimizer_part *part = &opt->part[j];
    wf_array moment = wf_array_contiguous(NULL, WF_REAL, shape);
    const struct wf_optimizer_place place = {opt, j, i, k};
    if (source) {
        wf_safetensors_put_from(writer, name, &moment, source->read, source->ctx, &place, sizeof place);
        return;
    }
    moment.data = part->moment[k] + part->parameter[i].place[k];
    wf_safetensors_put(writer, name, &moment);
}

void wf_optimizer_save(const struct wf_optimizer *opt, wf_safetensors_writer *writer, const char *prefix)
{
    wf_optimizer_save_from(opt, writer, prefix, NULL);
}

void wf_optimizer_save_from(const struct wf_optimizer *opt, wf_safetensors_writer *writer, const char *prefix,
                            const struct wf_optimizer_source *source)
{
    if (!opt || !writer)
        return;
    char name[FULL], own[NAME];
    prefix = prefix ? prefix : "";
    const wf_shape one = {1, {1}};
    if (!opt->rule)
        return;
    if (!source && is_shared(opt))
        wf_safetensors_refuse(writer, WF_ERR_STATE, SHARED);
    wf_array step = wf_array_contiguous((void *)&opt->step, WF_I64, &one);
    wf_safetensors_put(writer, join(name, prefix, "step", ""), &step);
    wf_safetensors_put_metadata(writer, join(name, prefix, "optimizer", ""), opt->rule->name);
    for (int64_t j = 0; j < opt->parts; j++)
        for (int i = 0; i < wf_registry_count(opt->part[j].registry); i++) {
            const struct wf_optimizer_part *part = &opt->part[j];
            struct wf_optimizer_parameter *p = &part->parameter[i];
            wf_shape shape;
            if (!p->placed)
                continue;
            wf_array updates = wf_array_contiguous(&p->updates, WF_I64, &one);
            wf_safetensors_put(writer, join(name, prefix, "updates", name_in(part, i, own)), &updates);
            for (int k = 0; k < SLABS; k++)
                if (slab_used(opt, k) && has_slab(opt, part, i, k, &shape) && (k != AVERAGE || p->averaged))
                    put_moment(opt, writer, join(name, prefix, slab_name(opt, k), own), j, i, k, &shape, source);
        }
}

/* --- reading ------------------------------------------------------------------------------------------------------- */

struct reading {
    struct wf_optimizer *opt;
    const wf_safetensors *file;
    const char *prefix;
    int moments;
    int64_t step;
    int64_t **updates; /* [parts][parameters]: updates of each parameter; -1: the file has none */
    bool by_index;     /* the file is of Weft 0.1, with one tensor "steps" for the updates of all parameters in order */
};

static wf_status read_updates(struct reading *r, const char *name, int64_t *out, int64_t count, wf_error *error)
{
    wf_status status = wf_safetensors_read(r->file, name, WF_I64, out, count, error);
    for (int64_t i = 0; status == WF_OK && i < count; i++)
        if (out[i] < 0 || out[i] > r->step)
            status =
                wf_error_set(error, WF_ERR_FORMAT, "%s: a parameter has %lld updates of %lld", name, (long long)out[i], (long long)r->step);
    return status;
}

static wf_status read_numbers(struct reading *r, wf_error *error)
{
    char name[FULL], own[NAME];
    wf_status status = wf_safetensors_read(r->file, join(name, r->prefix, "step", ""), WF_I64, &r->step, 1, error);
    if (status == WF_OK && r->step < 0)
        status = wf_error_set(error, WF_ERR_FORMAT, "%s is %lld, which is not a number of updates", name, (long long)r->step);
    r->by_index = wf_safetensors_find(r->file, join(name, r->prefix, "steps", "")) != NULL;
    if (status == WF_OK && r->by_index && r->opt->parts != 1)
        status =
            wf_error_set(error, WF_ERR_FORMAT, "%s: the state is of one registry, the optimiser has %lld", name, (long long)r->opt->parts);
    if (status == WF_OK && r->by_index)
        return read_updates(r, name, r->updates[0], wf_registry_count(r->opt->part[0].registry), error);
    for (int64_t j = 0; j < r->opt->parts; j++)
        for (int i = 0; status == WF_OK && i < wf_registry_count(r->opt->part[j].registry); i++) {
            join(name, r->prefix, "updates", name_in(&r->opt->part[j], i, own));
            if (wf_safetensors_find(r->file, name))
                status = read_updates(r, name, &r->updates[j][i], 1, error);
        }
    return status;
}

/* Finds a parameter by its name: sets *part and *index. Returns false if the optimiser has no such parameter. */
static bool find(const struct wf_optimizer *opt, const char *name, int64_t *part, int *index)
{
    for (int64_t j = 0; j < opt->parts; j++) {
        size_t skip = strlen(opt->part[j].prefix);
        wf_tensor *p = strncmp(name, opt->part[j].prefix, skip) == 0 ? wf_registry_find(opt->part[j].registry, name + skip) : NULL;
        if (!p || wf_registry_is_buffer(opt->part[j].registry, wf_parameter_info(p)->index) ||
            opt->part[j].parameter[wf_parameter_info(p)->index].skipped)
            continue;
        *part = j;
        *index = wf_parameter_info(p)->index;
        return true;
    }
    return false;
}

/* Returns true if the optimiser's state can have a tensor of this name; `name` is without the prefix. */
static bool is_known(const struct reading *r, const char *name)
{
    int64_t part;
    int index;
    wf_shape shape;
    if (strcmp(name, "step") == 0 || (r->by_index && strcmp(name, "steps") == 0))
        return true;
    for (int k = -1; k < SLABS; k++) {
        if (k >= r->moments && k != AVERAGE) /* a file may have averages that are no longer wanted */
            continue;
        const char *kind = k < 0 ? "updates" : slab_name(r->opt, k);
        size_t length = strlen(kind);
        if (strncmp(name, kind, length) == 0 && name[length] == '.' && (k >= 0 || !r->by_index))
            return find(r->opt, name + length + 1, &part, &index) && (k < 0 || has_slab(r->opt, &r->opt->part[part], index, k, &shape));
    }
    return false;
}

/* Returns the slab to which a tensor belongs, if the rule has that slab but the present settings don't use it; else -1. `name` is without
 * the prefix. */
static int unused_slab(const struct reading *r, const char *name)
{
    int64_t part;
    int index;
    for (int k = r->moments; k < AVERAGE && r->opt->rule->slab && r->opt->rule->slab[k]; k++) {
        size_t length = strlen(slab_name(r->opt, k));
        if (strncmp(name, slab_name(r->opt, k), length) == 0 && name[length] == '.' && find(r->opt, name + length + 1, &part, &index))
            return k;
    }
    return -1;
}

/* Returns true if the state of a parameter is read: the parameter is trained now, or has been updated before. */
static bool is_read(const struct reading *r, int64_t j, int i)
{
    const wf_registry *registry = r->opt->part[j].registry;
    return !wf_registry_is_buffer(registry, i) && !r->opt->part[j].parameter[i].skipped &&
           (!wf_parameter_info(wf_registry_at(registry, i))->frozen || r->updates[j][i] > 0);
}

/* Returns true if the file has a parameter's moving average. A state that was saved without averages lacks it; then the average begins with
 * the next update. */
static bool average_is_there(const struct reading *r, int64_t j, int i)
{
    char name[FULL], own[NAME];
    return wf_safetensors_find(r->file, join(name, r->prefix, "ema", name_in(&r->opt->part[j], i, own))) != NULL;
}

static wf_status compare(const struct reading *r, wf_error *error)
{
    struct wf_name_list missing = {0}, unexpected = {0}, shaped = {0};
    char name[FULL], own[NAME], text[1000] = "", unused[NAME] = "";
    size_t skip = strlen(r->prefix);
    for (int64_t j = 0; j < r->opt->parts; j++)
        for (int i = 0; i < wf_registry_count(r->opt->part[j].registry); i++) {
            if (!is_read(r, j, i))
                continue;
            name_in(&r->opt->part[j], i, own);
            if (r->updates[j][i] < 0)
                wf_name_list_add(&missing, join(name, r->prefix, "updates", own), "");
            for (int k = 0; k < SLABS; k++) {
                wf_shape shape;
                if ((k >= r->moments && (k != AVERAGE || !average_is_there(r, j, i))) || !has_slab(r->opt, &r->opt->part[j], i, k, &shape))
                    continue;
                const struct wf_safetensors_entry *e = wf_safetensors_find(r->file, join(name, r->prefix, slab_name(r->opt, k), own));
                if (!e || !wf_shape_equal(&e->shape, &shape))
                    wf_name_list_add(e ? &shaped : &missing, name, "");
            }
        }
    for (int64_t i = 0; i < wf_safetensors_count(r->file); i++) {
        const char *has = wf_safetensors_at(r->file, i)->name;
        if (strncmp(has, r->prefix, skip) != 0 || is_known(r, has + skip))
            continue;
        wf_name_list_add(&unexpected, has, "");
        const int slab = unused_slab(r, has + skip);
        if (slab >= 0)
            snprintf(unused, sizeof unused, ": slab %s is not in use with the present settings", slab_name(r->opt, slab));
    }
    wf_name_list_put(&missing, "missing", text, sizeof text);
    wf_name_list_put(&unexpected, "unexpected", text, sizeof text);
    wf_name_list_put(&shaped, "with another shape", text, sizeof text);
    return text[0] ? wf_error_set(error, WF_ERR_FORMAT, "the state does not match the optimiser: %s%s", text, unused) : WF_OK;
}

/* Reads the blocks of a moment that this process owns. Blocks that follow each other are read in one call. */
static wf_status read_moment(const struct reading *r, int64_t j, int i, int k, wf_error *error)
{
    char name[FULL], own[NAME];
    const struct wf_optimizer_part *part = &r->opt->part[j];
    const struct wf_shard *shard = wf_registry_grads(part->registry)->shard;
    const int64_t count = wf_array_count(&wf_parameter_info(wf_registry_at(part->registry, i))->value);
    wf_status status = WF_OK;
    wf_shape shape;
    if (!has_slab(r->opt, part, i, k, &shape))
        return WF_OK;
    join(name, r->prefix, slab_name(r->opt, k), name_in(part, i, own));
    if (part->parameter[i].whole) {
        const int64_t here = room_of(r->opt, part, shard, i, k);
        return here > 0 ? wf_safetensors_read_range(r->file, name, WF_REAL, 0, moment_at(part, shard, i, count, 0, k), here, error) : WF_OK;
    }
    for (int64_t at = 0, end; status == WF_OK && at < count; at = end) {
        const bool owned = wf_shard_owns(shard, i, at);
        for (end = at; end < count && wf_shard_owns(shard, i, end) == owned;)
            end = shard ? (end / WF_GRADS_BLOCK + 1) * WF_GRADS_BLOCK : count;
        end = WF_MIN(end, count);
        if (owned)
            status = wf_safetensors_read_range(r->file, name, WF_REAL, at, moment_at(part, shard, i, count, at, k), end - at, error);
    }
    return status;
}

static wf_status read_moments(struct reading *r, wf_error *error)
{
    wf_status status = WF_OK;
    for (int64_t j = 0; j < r->opt->parts; j++)
        for (int i = 0; i < wf_registry_count(r->opt->part[j].registry); i++)
            r->opt->part[j].parameter[i].wanted |= is_read(r, j, i);
    if ((status = make_moments(r->opt, error)) != WF_OK)
        return status;
    for (int64_t j = 0; j < r->opt->parts; j++)
        for (int i = 0; i < wf_registry_count(r->opt->part[j].registry); i++) {
            const struct wf_optimizer_part *part = &r->opt->part[j];
            struct wf_optimizer_parameter *p = &part->parameter[i];
            if (!is_read(r, j, i)) {
                p->updates = 0;
                p->averaged = false;
                for (int k = 0; k < r->moments && p->placed; k++)
                    if (p->place[k] >= 0)
                        memset(part->moment[k] + p->place[k], 0,
                               (size_t)room_of(r->opt, part, wf_registry_grads(part->registry)->shard, i, k) * sizeof(wf_real));
                continue;
            }
            p->averaged = r->opt->ema > 0 && average_is_there(r, j, i);
            if (status == WF_OK && p->averaged)
                status = read_moment(r, j, i, AVERAGE, error);
            for (int k = 0; status == WF_OK && k < r->moments; k++)
                status = read_moment(r, j, i, k, error);
            p->updates = r->updates[j][i];
        }
    r->opt->step = r->step;
    return status;
}

static wf_status load(struct reading *r, wf_error *error)
{
    char name[FULL];
    const char *kind = wf_safetensors_metadata(r->file, join(name, r->prefix, "optimizer", ""));
    if (kind && strcmp(kind, r->opt->rule->name) != 0)
        return wf_error_set(error, WF_ERR_FORMAT, "the state is that of %s, the optimiser is %s", kind, r->opt->rule->name);
    wf_status status = read_numbers(r, error);
    if (status == WF_OK)
        status = compare(r, error);
    return status == WF_OK ? read_moments(r, error) : status;
}

wf_status wf_optimizer_load(struct wf_optimizer *opt, const wf_safetensors *file, const char *prefix, wf_error *error)
{
    if (wf_needs(error, "opt, file", opt, file))
        return WF_ERR_ARGUMENT;
    if (!opt->rule)
        return wf_error_set(error, WF_ERR_ARGUMENT, "wf_optimizer_load: the optimiser is not initialised");
    struct reading r = {.opt = opt, .file = file, .prefix = prefix ? prefix : "", .moments = moments_used(opt)};
    size_t all = 0;
    for (int64_t j = 0; j < opt->parts; j++)
        all += (size_t)wf_registry_count(opt->part[j].registry);
    r.updates = wf_alloc_zero((size_t)opt->parts + 1, sizeof *r.updates);
    int64_t *updates = wf_alloc_zero(all + 1, sizeof *updates);
    if (!r.updates || !updates) {
        wf_free(r.updates);
        wf_free(updates);
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for the updates of %zu parameters", all);
    }
    for (size_t i = 0; i < all; i++)
        updates[i] = -1;
    int64_t *next = updates;
    for (int64_t j = 0; j < opt->parts; j++) {
        r.updates[j] = next;
        next += wf_registry_count(opt->part[j].registry);
    }
    wf_status status = load(&r, error);
    wf_free(r.updates);
    wf_free(updates);
    return status;
}
