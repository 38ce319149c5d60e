/* SPDX-License-Identifier: MIT */
/* Writes attention maps as JSON. The weights are written directly as text, because a tree of JSON values would take a hundred times their
 * memory. */
#include <weft/attention_map.h>
#include <weft/internal/needs.h>

#include <inttypes.h>

#include <weft/file.h>
#include <weft/internal/string.h>
#include <weft/internal/text.h>

#include "labels.h"

/* Appends a member with a list of tokens: "name": ["a","b"]. */
static wf_status add_tokens(struct wf_string *s, const char *name, char *const *token, int64_t count, wf_error *error)
{
    wf_string_format(s, "\"%s\": [", name);
    for (int64_t i = 0; i < count; i++) {
        int64_t length = (int64_t)strlen(token[i]);
        if (wf_utf8_check(token[i], length) >= 0)
            return wf_error_set(error, WF_ERR_ARGUMENT, "token %" PRId64 " is not UTF-8, which JSON must be", i + 1);
        wf_string_text(s, i ? "," : "");
        wf_string_json(s, token[i], length);
    }
    wf_string_text(s, "],\n");
    return WF_OK;
}

/* Appends the weights of all heads, or of the head *one, with enough digits to read back the same floats. */
static void add_weights(struct wf_string *s, const struct wf_attention_map *m, const struct wf_head *one)
{
    int64_t layers = one ? 1 : m->layers, heads = one ? 1 : m->heads;
    const float *w = m->weights + (one ? ((one->layer - 1) * m->heads + one->head - 1) * m->queries * m->keys : 0);
    wf_string_text(s, "\"weights\": [");
    for (int64_t i = 0; i < layers * heads; i++) {
        wf_string_text(s, i == 0 ? "[[" : i % heads == 0 ? "],\n[[" : ",\n[");
        for (int64_t q = 0; q < m->queries; q++)
            for (int64_t k = 0; k < m->keys; k++)
                wf_string_format(s, "%s%.9g%s", k > 0 ? "," : q > 0 ? ",[" : "[", (double)*w++, k + 1 < m->keys ? "" : "]");
        wf_string_text(s, "]");
    }
    wf_string_text(s, "]");
    wf_string_text(s, "]}\n");
}

wf_status wf_attention_save_json(const struct wf_attention_maps *maps, const struct wf_attention_map *map, const struct wf_head *head,
                                 const char *path, wf_error *error)
{
    if (wf_needs(error, "maps, map, path", maps, map, path))
        return WF_ERR_ARGUMENT;
    struct wf_string s = {0};
    wf_status status = map_check(map, error);
    if (status == WF_OK && head)
        status = wf_attention_check_head(maps, map, *head, error);
    if (status != WF_OK)
        return status;
    wf_string_format(&s, "{\"kind\": \"%s\", ", wf_map_kind_name(map->kind));
    status = add_tokens(&s, "query", map->query, map->queries, error);
    if (status == WF_OK)
        status = add_tokens(&s, "key", map->key, map->keys, error);
    if (head)
        wf_string_format(&s, "\"layer\": %" PRId64 ", \"head\": %" PRId64 ",\n", head->layer, head->head);
    add_weights(&s, map, head);
    if (status == WF_OK)
        status = s.failed ? wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for the weights", path)
                          : wf_file_save(path, s.data, s.length, error);
    wf_string_free(&s);
    return status;
}
