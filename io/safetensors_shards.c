/* SPDX-License-Identifier: MIT */
/* Tensors in several safetensors files, the shards, which an index lists: a JSON file with "weight_map", the name of the shard of each
 * tensor, as the libraries of Hugging Face write it. The shards lie beside the index. */
#include <inttypes.h>
#include <string.h>

#include <weft/file.h>
#include <weft/internal/json.h>
#include <weft/internal/name_table.h>
#include <weft/internal/text.h>
#include <weft/memory.h>

#include "safetensors_file.h"

enum { LIMIT = 1 << 28 }; /* maximum bytes of an index */

bool safetensors_is_index(const char *path)
{
    static const char ending[] = ".json";
    const size_t length = strlen(path), end = sizeof ending - 1;
    return length > end && strcmp(path + length - end, ending) == 0;
}

/* The path of a shard: the folder of the index with the shard's name. The caller frees it with wf_free. */
static char *path_of(const char *index, const char *name)
{
    const char *slash = strrchr(index, '/');
    return wf_format("%.*s%s", slash ? (int)(slash + 1 - index) : 0, index, name);
}

static wf_status open_shard(wf_safetensors *file, const char *name, const struct wf_safetensors_options *options, wf_error *error)
{
    char quoted[WF_QUOTE_SIZE];
    if (!name[0] || strchr(name, '/') || strcmp(name, "..") == 0 || safetensors_is_index(name))
        return wf_error_set(error, WF_ERR_FORMAT, "%s: \"weight_map\" names %s, which is not the name of a file beside it", file->path,
                            wf_text_quote(name, quoted));
    char *path = path_of(file->path, name);
    if (!path)
        return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for the name of a shard", file->path);
    wf_safetensors *shard = NULL;
    if (!wf_file_exists(path))
        wf_error_set(error, WF_ERR_IO, "%s is missing, but %s says that tensors are in it: is the download complete?", path, file->path);
    else
        shard = wf_safetensors_open_with(path, options, error);
    wf_free(path);
    if (!shard)
        return error->code;
    file->shard[file->shards++] = shard;
    return WF_OK;
}

/* Opens each shard that the map names once. Fills `names`: the number of the shard of each name. */
static wf_status open_shards(wf_safetensors *file, json_t *map, struct wf_name_table *names, const struct wf_safetensors_options *options,
                             wf_error *error)
{
    const char *tensor;
    json_t *value;
    char quoted[WF_QUOTE_SIZE];
    file->shard = wf_alloc_zero(json_object_size(map) + 1, sizeof(wf_safetensors *));
    if (!file->shard)
        return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for its shards", file->path);
    json_object_foreach(map, tensor, value)
    {
        const char *name = json_string_value(value);
        if (!name)
            return wf_error_set(error, WF_ERR_FORMAT, "%s: \"weight_map\": the file of tensor %s is not a string", file->path,
                                wf_text_quote(tensor, quoted));
        if (wf_name_table_find(names, name, strlen(name)) >= 0)
            continue;
        if (!wf_name_table_add(names, name, file->shards))
            return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for its shards", file->path);
        if (open_shard(file, name, options, error) != WF_OK)
            return error->code;
    }
    return WF_OK;
}

/* Adds the tensors of shard `at`. The index must list each of them in this shard. */
static wf_status take_tensors(wf_safetensors *file, json_t *map, int at, const struct wf_name_table *names, wf_error *error)
{
    const wf_safetensors *shard = file->shard[at];
    char quoted[2][WF_QUOTE_SIZE];
    for (int64_t i = 0; i < shard->count; i++) {
        const struct wf_safetensors_entry *entry = &shard->entry[i];
        const char *in = json_string_value(json_object_get(map, entry->name));
        wf_text_quote(entry->name, quoted[0]);
        if (!in)
            return wf_error_set(error, WF_ERR_FORMAT, "%s has the tensor %s, which %s does not list: the files are not of one download",
                                shard->path, quoted[0], file->path);
        if (wf_name_table_find(names, in, strlen(in)) != at)
            return wf_error_set(error, WF_ERR_FORMAT,
                                "%s has the tensor %s, but %s says that it is in %s: the files are not of one download", shard->path,
                                quoted[0], file->path, wf_text_quote(in, quoted[1]));
        file->shard_of[file->count] = at;
        file->entry[file->count] = *entry;
        file->by_name[file->count] = &file->entry[file->count];
        file->count++;
    }
    return WF_OK;
}

static wf_status take_all(wf_safetensors *file, json_t *map, const struct wf_name_table *names, wf_error *error)
{
    int64_t count = 0;
    char quoted[2][WF_QUOTE_SIZE];
    for (int i = 0; i < file->shards; i++)
        count += file->shard[i]->count;
    file->entry = wf_alloc_zero((size_t)count + 1, sizeof *file->entry);
    file->by_name = wf_alloc_zero((size_t)count + 1, sizeof *file->by_name);
    file->shard_of = wf_alloc_zero((size_t)count + 1, sizeof *file->shard_of);
    if (!file->entry || !file->by_name || !file->shard_of)
        return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for %" PRId64 " tensors", file->path, count);
    for (int i = 0; i < file->shards; i++)
        if (take_tensors(file, map, i, names, error) != WF_OK)
            return error->code;
    safetensors_sort(file);
    const char *tensor;
    json_t *value;
    json_object_foreach(map, tensor, value)
    {
        if (!wf_safetensors_find(file, tensor))
            return wf_error_set(error, WF_ERR_FORMAT, "%s says that the tensor %s is in %s, which does not have it", file->path,
                                wf_text_quote(tensor, quoted[0]), wf_text_quote(json_string_value(value), quoted[1]));
    }
    return WF_OK;
}

wf_status safetensors_open_index(wf_safetensors *file, const struct wf_safetensors_options *options, wf_error *error)
{
    struct wf_name_table names = {0};
    wf_error failure = {0};
    json_t *index = wf_json_load(file->path, LIMIT, &failure), *map = json_object_get(index, "weight_map");
    if (index && !json_is_object(map))
        wf_error_set(&failure, WF_ERR_FORMAT, "%s: it has no \"weight_map\", so it is not the index of weights in several files",
                     file->path);
    if (!failure.code && open_shards(file, map, &names, options, &failure) == WF_OK && take_all(file, map, &names, &failure) == WF_OK &&
        file->shards > 0)
        file->metadata = file->shard[0]->metadata;
    wf_name_table_free(&names);
    json_decref(index);
    return failure.code ? wf_error_set(error, failure.code, "%s", failure.message) : WF_OK;
}
