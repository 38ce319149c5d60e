/* SPDX-License-Identifier: MIT */
/* Attention maps as JSON. The weights are written number by number, for a tree of them would take a hundred times their memory. */
#include <weft/attention_map.h>

#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include <weft/file.h>
#include <weft/internal/json.h>
#include <weft/internal/text.h>
#include <weft/memory.h>

#include "map_check.h"

/* ["a","b"] */
static wf_status add_tokens(wf_file_writer *w, char *const *token, int64_t count, wf_error *error)
{
    wf_json_init();
    json_t *array = json_array();
    int64_t bytes;
    wf_status status = array ? WF_OK : wf_error_set(error, WF_ERR_MEMORY, "no memory for tokens");
    for (int64_t i = 0; status == WF_OK && i < count; i++)
        if (wf_utf8_check(token[i], (int64_t)strlen(token[i])) >= 0)
            status = wf_error_set(error, WF_ERR_ARGUMENT, "token %" PRId64 " is not UTF-8, which JSON must be", i + 1);
        else if (json_array_append_new(array, json_string(token[i])) != 0)
            status = wf_error_set(error, WF_ERR_MEMORY, "no memory for tokens");
    char *text = status == WF_OK ? wf_json_text(array, 0, &bytes, error) : NULL;
    if (status == WF_OK && !text)
        status = WF_ERR_MEMORY;
    if (text)
        wf_file_append(w, text, bytes);
    wf_free(text);
    json_decref(array);
    return status;
}

static void add_text(wf_file_writer *w, const char *text)
{
    wf_file_append(w, text, (int64_t)strlen(text));
}

/* One query's row, with as many digits as give back the same float. */
static void add_row(wf_file_writer *w, const float *row, int64_t count)
{
    char text[32];
    for (int64_t k = 0; k < count; k++) {
        int length = snprintf(text, sizeof text, "%s%.9g", k > 0 ? "," : "[", (double)row[k]);
        wf_file_append(w, text, length);
    }
    add_text(w, "]");
}

static void add_number(wf_file_writer *w, const char *before, int64_t number)
{
    char text[64];
    wf_file_append(w, text, snprintf(text, sizeof text, "%s%" PRId64, before, number));
}

/* Of all heads, or of one. */
static void add_weights(wf_file_writer *w, const struct wf_attention_map *m, const struct wf_head *one)
{
    /* newlocale gives the C locale as a constant object: it neither allocates nor fails */
    locale_t before = uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
    int64_t layers = one ? 1 : m->layers, heads = one ? 1 : m->heads;
    const float *row = m->weights + (one ? ((one->layer - 1) * m->heads + one->head - 1) * m->queries * m->keys : 0);
    for (int64_t l = 0; l < layers; l++)
        for (int64_t h = 0; h < heads; h++) {
            add_text(w, h > 0 ? ",\n[" : l > 0 ? "],\n[[" : "[[[");
            for (int64_t q = 0; q < m->queries; q++, row += m->keys) {
                add_text(w, q > 0 ? "," : "");
                add_row(w, row, m->keys);
            }
            add_text(w, "]");
        }
    add_text(w, "]]");
    uselocale(before);
}

wf_status wf_attention_save_json(const struct wf_attention_maps *maps, const struct wf_attention_map *map, const struct wf_head *head,
                                 const char *path, wf_error *error)
{
    wf_status status = map_check(map, error);
    if (status == WF_OK && head)
        status = wf_attention_check_head(maps, map, *head, error);
    if (status != WF_OK)
        return status;
    wf_file_writer *w = wf_file_begin(path, error);
    if (!w)
        return wf_file_commit(NULL, error);
    add_text(w, "{\"kind\": \"");
    add_text(w, wf_map_kind_name(map->kind));
    add_text(w, "\", \"query\": ");
    status = add_tokens(w, map->query, map->queries, error);
    add_text(w, ",\n\"key\": ");
    if (status == WF_OK)
        status = add_tokens(w, map->key, map->keys, error);
    if (head) {
        add_number(w, ",\n\"layer\": ", head->layer);
        add_number(w, ", \"head\": ", head->head);
    }
    add_text(w, ",\n\"weights\": ");
    add_weights(w, map, head);
    add_text(w, "}\n");
    if (status == WF_OK)
        return wf_file_commit(w, error);
    wf_file_abort(w);
    return status;
}
