/* SPDX-License-Identifier: MIT */
/* Writes the interactive page of attention maps. It is a template with the title and the data filled in. */
#include <weft/attention_map.h>
#include <weft/internal/needs.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <weft/file.h>
#include <weft/internal/string.h>

#include "labels.h"

/* The template, which tools/embed-page makes from the files in page/. fill() replaces @TITLE@ and @DATA@ in it. */
extern const char wf_page[];

/* Weights are stored as 16-bit integers, in steps of 1/65535. So the page shows a weight with an error of at most 7.7e-6, and 200 tokens in
 * 48 heads take 5 MB. */
enum { ONE = 65535 };

/* Appends a text as content of an HTML element. Bytes that are not UTF-8 become U+FFFD. */
static void add_markup(struct wf_string *p, const char *text)
{
    struct wf_string clean = {0};
    label_clean(&clean, text, (int64_t)strlen(text), false);
    p->failed |= clean.failed;
    for (int64_t i = 0; i < clean.length; i++)
        wf_string_format(p, strchr("<>&\"", clean.data[i]) ? "&#%d;" : "%c", clean.data[i]);
    wf_string_free(&clean);
}

static void add_string(struct wf_string *json, const char *text)
{
    struct wf_string clean = {0};
    label_clean(&clean, text, (int64_t)strlen(text), true);
    wf_string_json(json, clean.data, clean.length);
    json->failed |= clean.failed;
    wf_string_free(&clean);
}

static void add_tokens(struct wf_string *p, const char *name, char *const *token, int64_t count)
{
    wf_string_format(p, ", \"%s\": [", name);
    for (int64_t i = 0; i < count; i++) {
        wf_string_text(p, i ? ", " : "");
        add_string(p, token[i]);
    }
    wf_string_text(p, "]");
}

static void add_maps(struct wf_string *p, const struct wf_attention_maps *maps, const struct wf_attention_opening *opening)
{
    struct wf_string json = {0}, half = {0};
    wf_string_format(&json, "{\"one\": %d, \"model\": ", ONE);
    add_string(&json, maps->model);
    wf_string_format(&json, ", \"opening\": {\"kind\": \"%s\", \"layer\": %" PRId64 ", \"head\": %" PRId64 "}, \"maps\": [",
                     wf_map_kind_name(opening->map->kind), opening->head.layer, opening->head.head);
    for (int i = 0; i < maps->count; i++) {
        const struct wf_attention_map *map = &maps->map[i];
        wf_string_format(&json, "%s\n{\"kind\": \"%s\", \"layers\": %" PRId64 ", \"heads\": %" PRId64, i ? "," : "",
                         wf_map_kind_name(map->kind), map->layers, map->heads);
        add_tokens(&json, "query", map->query_label, map->queries);
        add_tokens(&json, "key", map->key_label, map->keys);
        add_tokens(&json, "query_token", map->query, map->queries);
        add_tokens(&json, "key_token", map->key, map->keys);
        wf_string_text(&json, "}");
    }
    wf_string_text(&json, "\n]}");
    /* a token such as "</script>" must not end the element, so < and > are escaped */
    wf_string_text(p, "<script type=\"application/json\" id=\"data\">\n");
    label_replace(&half, json.failed ? "" : json.data, "<", "\\u003c");
    label_replace(p, half.failed ? "" : half.data, ">", "\\u003e");
    wf_string_text(p, "\n</script>\n");
    p->failed |= json.failed || half.failed;
    wf_string_free(&json);
    wf_string_free(&half);
}

/* Byte i of the array of weights as little-endian 16-bit integers; 0 past the end. */
static unsigned byte_at(const struct wf_attention_map *map, int64_t i, int64_t bytes)
{
    unsigned value = i < bytes ? (unsigned)lrint(fmin(fmax(map->weights[i / 2], 0), 1) * ONE) : 0;
    return i % 2 ? value >> 8 : value & 255;
}

/* Appends the weights in Base64, in which three bytes are four characters. */
static void add_weights(struct wf_string *p, const struct wf_attention_map *map)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    int64_t bytes = 2 * map->layers * map->heads * map->queries * map->keys;
    wf_string_format(p, "<script type=\"application/octet-stream\" id=\"weights-%s\">", wf_map_kind_name(map->kind));
    for (int64_t i = 0; i < bytes; i += 3) {
        unsigned bits = byte_at(map, i, bytes) << 16 | byte_at(map, i + 1, bytes) << 8 | byte_at(map, i + 2, bytes);
        char text[] = {digit[bits >> 18], digit[bits >> 12 & 63], digit[bits >> 6 & 63], digit[bits & 63]};
        if (i % 96 == 0) /* begin a new line after 128 characters */
            wf_string_text(p, "\n");
        if (bytes - i < 3)
            memset(text + 1 + bytes - i, '=', (size_t)(3 - (bytes - i)));
        wf_string_add(p, text, 4);
    }
    wf_string_text(p, "\n</script>\n");
}

/* Checks the maps and the initial selection, and fills in the defaults of the selection. */
static wf_status check(const struct wf_attention_maps *maps, const struct wf_attention_opening *chosen, struct wf_attention_opening *out,
                       wf_error *error)
{
    if (maps->count < 1)
        return wf_error_set(error, WF_ERR_ARGUMENT, "there are no attention maps to write");
    if (maps->count > 3)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%d attention maps: a page has at most 3, one of each kind", maps->count);
    for (const struct wf_attention_map *m = maps->map; m < maps->map + maps->count; m++) {
        wf_status status = map_check(m, error);
        if (status != WF_OK)
            return status;
        if (wf_attention_find(maps, m->kind) != m)
            return wf_error_set(error, WF_ERR_ARGUMENT, "two maps of the kind %s: a page has one of each kind, write another page",
                                wf_map_kind_name(m->kind));
    }
    *out = chosen ? *chosen : (struct wf_attention_opening){0};
    out->map = out->map ? out->map : &maps->map[maps->count - 1];
    if (wf_attention_find(maps, out->map->kind) != out->map)
        return wf_error_set(error, WF_ERR_ARGUMENT, "the map to open the page with is not among those given");
    if (out->head.layer == 0 && out->head.head == 0)
        out->head = (struct wf_head){1, 1};
    return wf_attention_check_head(maps, out->map, out->head, error);
}

static void fill(struct wf_string *p, const struct wf_attention_maps *maps, const struct wf_attention_opening *opening)
{
    const char *rest = wf_page;
    for (const char *title; (title = strstr(rest, "@TITLE@")); rest = title + strlen("@TITLE@")) {
        wf_string_add(p, rest, title - rest);
        wf_string_text(p, "Attention of ");
        add_markup(p, maps->model[0] ? maps->model : "a model");
        for (int i = 0; i < maps->count; i++)
            wf_string_format(p, "%s%s", i ? ", " : ": ", wf_map_kind_name(maps->map[i].kind));
    }
    const char *data = strstr(rest, "@DATA@"); /* comes after the last @TITLE@ */
    wf_string_add(p, rest, data - rest);
    add_maps(p, maps, opening);
    for (int i = 0; i < maps->count; i++)
        add_weights(p, &maps->map[i]);
    wf_string_text(p, data + strlen("@DATA@"));
}

wf_status wf_attention_save_html(const struct wf_attention_maps *maps, const struct wf_attention_opening *opening, const char *path,
                                 wf_error *error)
{
    if (wf_needs(error, "maps, path", maps, path))
        return WF_ERR_ARGUMENT;
    struct wf_string page = {0};
    struct wf_attention_opening first = {0};
    wf_status status = check(maps, opening, &first, error);
    if (status != WF_OK)
        return status;
    fill(&page, maps, &first);
    status = page.failed ? wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for the page", path)
                         : wf_file_save(path, page.data, page.length, error);
    wf_string_free(&page);
    return status;
}
