/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <math.h>

#include "map_check.h"

/* Its tokens, on one axis. */
static wf_status check_names(const struct wf_attention_map *map, char *const *name, int64_t count, const char *what, wf_error *error)
{
    for (int64_t i = 0; i < count; i++)
        if (!name || !name[i])
            return wf_error_set(error, WF_ERR_ARGUMENT, "the %s's attention map has no %s %" PRId64 ": give one for each token",
                                wf_map_kind_name(map->kind), what, i + 1);
    return WF_OK;
}

wf_status map_check(const struct wf_attention_map *map, wf_error *error)
{
    const char *kind = wf_map_kind_name(map->kind);
    int64_t head = map->queries * map->keys;
    if ((unsigned)map->kind > WF_MAP_CROSS)
        return wf_error_set(error, WF_ERR_ARGUMENT, "an attention map of kind %d: encoder, decoder and cross are 0, 1 and 2",
                            (int)map->kind);
    if (map->layers < 1 || map->heads < 1 || map->queries < 1 || map->keys < 1 || !map->weights)
        return wf_error_set(error, WF_ERR_ARGUMENT, "the %s's attention map is empty", kind);
    wf_status status = check_names(map, map->query, map->queries, "query", error);
    if (status == WF_OK)
        status = check_names(map, map->key, map->keys, "key", error);
    if (status == WF_OK)
        status = check_names(map, map->query_label, map->queries, "query_label", error);
    if (status == WF_OK)
        status = check_names(map, map->key_label, map->keys, "key_label", error);
    for (int64_t i = 0; status == WF_OK && i < map->layers * map->heads * head; i++)
        if (!isfinite(map->weights[i]))
            status = wf_error_set(error, WF_ERR_NUMERIC, "%s attention, layer %" PRId64 ", head %" PRId64 ": a weight is not a number",
                                  kind, i / head / map->heads + 1, i / head % map->heads + 1);
    return status;
}

wf_status wf_attention_check_head(const struct wf_attention_maps *maps, const struct wf_attention_map *map, struct wf_head head,
                                  wf_error *error)
{
    bool layer = head.layer < 1 || head.layer > map->layers;
    if (!layer && head.head >= 1 && head.head <= map->heads)
        return WF_OK;
    return wf_error_set(error, WF_ERR_ARGUMENT,
                        "there is no %s %" PRId64 ": the %s-attention of %s has %" PRId64 " layer%s of %" PRId64 " head%s, counted from 1",
                        layer ? "layer" : "head", layer ? head.layer : head.head, wf_map_kind_name(map->kind), maps->model, map->layers,
                        map->layers == 1 ? "" : "s", map->heads, map->heads == 1 ? "" : "s");
}
