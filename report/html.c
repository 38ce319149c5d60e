/* SPDX-License-Identifier: MIT */
/* The page of attention maps: page/, put together by tools/embed-page, with the title and the data filled in. */
#include <weft/attention_map.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weft/file.h>
#include <weft/internal/text.h>

#include "map_check.h"

/* page/ as tools/embed-page puts it together; @TITLE@ and @DATA@ are filled in here. */
extern const char wf_page[];

/* Weights are stored in steps of 1/65535, so that what the page shows is off by at most 7.7e-6: 200 tokens in 48 heads take 5 MB. */
enum { ONE = 65535 };

struct page {
    wf_file_writer *file;
    int64_t used;
    char buffer[8192];
};

static void flush(struct page *p)
{
    wf_file_append(p->file, p->buffer, p->used); /* a failure is kept until the commit */
    p->used = 0;
}

static void put(struct page *p, const char *text, int64_t bytes)
{
    if (bytes > (int64_t)sizeof p->buffer - p->used)
        flush(p);
    if (bytes > (int64_t)sizeof p->buffer) {
        wf_file_append(p->file, text, bytes);
        return;
    }
    memcpy(p->buffer + p->used, text, (size_t)bytes);
    p->used += bytes;
}

static void put_text(struct page *p, const char *text)
{
    put(p, text, (int64_t)strlen(text));
}

static void put_number(struct page *p, const char *before, int64_t number)
{
    char text[96];
    put(p, text, snprintf(text, sizeof text, "%s%lld", before, (long long)number));
}

/* The bytes of the character at `text`, 0 for one that is not well-formed UTF-8. */
static int64_t character(const char *text)
{
    unsigned char first = (unsigned char)*text;
    int64_t bytes = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    return (int64_t)strnlen(text, (size_t)bytes) == bytes && wf_utf8_check(text, bytes) < 0 ? bytes : 0;
}

/* Calls for each character; what is not UTF-8 becomes U+FFFD, for a page that holds such bytes is no UTF-8 at all. */
static void put_escaped(struct page *p, const char *text, void (*one)(struct page *p, const char *text, int64_t bytes))
{
    while (*text) {
        int64_t bytes = character(text);
        if (bytes)
            one(p, text, bytes);
        else
            put_text(p, "\xef\xbf\xbd");
        text += bytes ? bytes : 1;
    }
}

static void markup(struct page *p, const char *text, int64_t bytes)
{
    switch (*text) {
    case '<':
        put_text(p, "&lt;");
        break;
    case '>':
        put_text(p, "&gt;");
        break;
    case '&':
        put_text(p, "&amp;");
        break;
    case '"':
        put_text(p, "&quot;");
        break;
    default:
        put(p, text, bytes);
    }
}

/* JSON inside of a script element: its end, a comment's begin and the line ends that only JSON allows are written as escapes. */
static void json(struct page *p, const char *text, int64_t bytes)
{
    char code[8];
    if (strchr("<>&\"\\'", *text) || (unsigned char)*text < 0x20 || *text == 0x7f)
        put(p, code, snprintf(code, sizeof code, "\\u%04x", (unsigned)(unsigned char)*text));
    else if (bytes == 3 && (!memcmp(text, "\xe2\x80\xa8", 3) || !memcmp(text, "\xe2\x80\xa9", 3)))
        put_text(p, text[2] == '\xa8' ? "\\u2028" : "\\u2029");
    else
        put(p, text, bytes);
}

static void put_string(struct page *p, const char *text)
{
    put_text(p, "\"");
    put_escaped(p, text, json);
    put_text(p, "\"");
}

static void put_tokens(struct page *p, const char *name, char *const *token, int64_t count)
{
    put_text(p, ", \"");
    put_text(p, name);
    put_text(p, "\": [");
    for (int64_t i = 0; i < count; i++) {
        if (i)
            put_text(p, ", ");
        put_string(p, token[i]);
    }
    put_text(p, "]");
}

static void put_maps(struct page *p, const struct wf_attention_maps *maps, const struct wf_attention_opening *opening)
{
    put_number(p, "<script type=\"application/json\" id=\"data\">\n{\"one\": ", ONE);
    put_text(p, ", \"model\": ");
    put_string(p, maps->model);
    put_text(p, ", \"opening\": {\"kind\": ");
    put_string(p, wf_map_kind_name(opening->map->kind));
    put_number(p, ", \"layer\": ", opening->head.layer);
    put_number(p, ", \"head\": ", opening->head.head);
    put_text(p, "}, \"maps\": [");
    for (int i = 0; i < maps->count; i++) {
        const struct wf_attention_map *map = &maps->map[i];
        put_text(p, i ? ",\n{\"kind\": " : "\n{\"kind\": ");
        put_string(p, wf_map_kind_name(map->kind));
        put_number(p, ", \"layers\": ", map->layers);
        put_number(p, ", \"heads\": ", map->heads);
        put_tokens(p, "query", map->query_label, map->queries);
        put_tokens(p, "key", map->key_label, map->keys);
        put_tokens(p, "query_token", map->query, map->queries);
        put_tokens(p, "key_token", map->key, map->keys);
        put_text(p, "}");
    }
    put_text(p, "\n]}\n</script>\n");
}

/* Base64 of little-endian 16-bit integers: three of them are six bytes, eight characters. */
static void put_weights(struct page *p, const struct wf_attention_map *map)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    int64_t count = map->layers * map->heads * map->queries * map->keys;
    put_text(p, "<script type=\"application/octet-stream\" id=\"weights-");
    put_text(p, wf_map_kind_name(map->kind));
    put_text(p, "\">");
    for (int64_t i = 0; i < count; i += 3) {
        unsigned char byte[6] = {0};
        char text[9];
        int have = (int)(count - i < 3 ? count - i : 3);
        if (i % 48 == 0) /* lines of 128 characters */
            put_text(p, "\n");
        for (int k = 0; k < have; k++) {
            unsigned value = (unsigned)lrint(fmin(fmax(map->weights[i + k], 0), 1) * ONE);
            byte[2 * k] = value & 255;
            byte[2 * k + 1] = (unsigned char)(value >> 8);
        }
        for (int k = 0; k < 2; k++) {
            unsigned bits = (unsigned)byte[3 * k] << 16 | (unsigned)byte[3 * k + 1] << 8 | byte[3 * k + 2];
            for (int c = 0; c < 4; c++)
                text[4 * k + c] = digit[bits >> (18 - 6 * c) & 63];
        }
        if (have == 1)
            memcpy(text + 3, "=", 2);
        if (have == 2)
            memcpy(text + 6, "==", 3);
        put(p, text, have == 1 ? 4 : 8);
    }
    put_text(p, "\n</script>\n");
}

static wf_status check(const struct wf_attention_maps *maps, wf_error *error)
{
    wf_status status = WF_OK;
    if (maps->count < 1)
        return wf_error_set(error, WF_ERR_ARGUMENT, "there are no attention maps to write");
    if (maps->count > 3)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%d attention maps: a page has at most 3, one of each kind", maps->count);
    for (int i = 0; status == WF_OK && i < maps->count; i++) {
        status = map_check(&maps->map[i], error);
        if (status == WF_OK && wf_attention_find(maps, maps->map[i].kind) != &maps->map[i])
            status = wf_error_set(error, WF_ERR_ARGUMENT, "two maps of the kind %s: a page has one of each kind, write another page",
                                  wf_map_kind_name(maps->map[i].kind));
    }
    return status;
}

/* What is chosen, with the defaults filled in. */
static wf_status open_at(const struct wf_attention_maps *maps, const struct wf_attention_opening *chosen, struct wf_attention_opening *out,
                         wf_error *error)
{
    *out = chosen ? *chosen : (struct wf_attention_opening){0};
    out->map = out->map ? out->map : &maps->map[maps->count - 1];
    if (wf_attention_find(maps, out->map->kind) != out->map)
        return wf_error_set(error, WF_ERR_ARGUMENT, "the map that the page is to open with is none of those in it");
    if (out->head.layer == 0 && out->head.head == 0)
        out->head = (struct wf_head){1, 1};
    return wf_attention_check_head(maps, out->map, out->head, error);
}

wf_status wf_attention_save_html(const struct wf_attention_maps *maps, const struct wf_attention_opening *opening, const char *path,
                                 wf_error *error)
{
    struct page p = {0};
    struct wf_attention_opening first;
    wf_status status = check(maps, error);
    if (status == WF_OK)
        status = open_at(maps, opening, &first, error);
    if (status != WF_OK)
        return status;
    if (!(p.file = wf_file_begin(path, error)))
        return wf_file_commit(NULL, error);
    for (const char *rest = wf_page; *rest;) {
        const char *title = strstr(rest, "@TITLE@"), *data = strstr(rest, "@DATA@");
        const char *next = title && (!data || title < data) ? title : data;
        if (!next) {
            put_text(&p, rest);
            break;
        }
        put(&p, rest, next - rest);
        if (next == title) {
            put_text(&p, "Attention of ");
            put_escaped(&p, maps->model[0] ? maps->model : "a model", markup);
            for (int i = 0; i < maps->count; i++) {
                put_text(&p, i ? ", " : ": ");
                put_text(&p, wf_map_kind_name(maps->map[i].kind));
            }
        } else {
            put_maps(&p, maps, &first);
            for (int i = 0; i < maps->count; i++)
                put_weights(&p, &maps->map[i]);
        }
        rest = next + strlen(next == title ? "@TITLE@" : "@DATA@");
    }
    flush(&p);
    return wf_file_commit(p.file, error);
}
