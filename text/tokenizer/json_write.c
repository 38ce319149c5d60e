/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"
#include "json_write.h"
#include "pipeline.h"
#include <weft/file.h>
#include <weft/internal/hash.h>

static void put(struct json_writer *w, const char *bytes, int64_t length)
{
    if (!w->out)
        w->hash = wf_hash(bytes, length, w->hash);
    else if (!w->failed)
        w->failed = !wf_string_add(w->out, bytes, length);
}

static void put_text(struct json_writer *w, const char *text)
{
    put(w, text, (int64_t)strlen(text));
}

/* A JSON string in the shortest form, UTF-8 as it is. */
static void put_quoted(struct json_writer *w, const char *text, int64_t length)
{
    static const char named[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    put(w, "\"", 1);
    int64_t plain = 0;
    for (int64_t i = 0; i < length; i++) {
        char escape[8];
        const char *pair = named;
        if ((unsigned char)text[i] >= 0x20 && text[i] != '"' && text[i] != '\\')
            continue;
        put(w, text + plain, i - plain);
        plain = i + 1;
        while (*pair && *pair != text[i])
            pair += 2;
        if (text[i] && *pair)
            put(w, (const char[]){'\\', pair[1]}, 2);
        else
            put(w, escape, snprintf(escape, sizeof escape, "\\u%04x", (unsigned)(unsigned char)text[i]));
    }
    put(w, text + plain, length - plain);
    put(w, "\"", 1);
}

static void line(struct json_writer *w)
{
    static const char spaces[] = "\n                                                                                ";
    int64_t width = 1 + 2 * (int64_t)w->depth;
    put(w, spaces, width < (int64_t)sizeof spaces ? width : (int64_t)sizeof spaces - 1);
}

/* What stands before a value. */
static void member(struct json_writer *w, const char *key, int64_t length)
{
    if (w->depth > 0) {
        if (w->started)
            put(w, ",", 1);
        line(w);
    }
    w->started = true;
    if (key) {
        put_quoted(w, key, length);
        put(w, ": ", 2);
    }
}

static void member_text(struct json_writer *w, const char *key)
{
    member(w, key, key ? (int64_t)strlen(key) : 0);
}

void json_open(struct json_writer *w, const char *key, char bracket)
{
    member_text(w, key);
    put(w, &bracket, 1);
    w->depth++;
    w->started = false;
}

void json_close(struct json_writer *w, char bracket)
{
    w->depth--;
    if (w->started)
        line(w);
    put(w, &bracket, 1);
    w->started = true;
}

void json_put_bytes(struct json_writer *w, const char *key, const char *text, int64_t length)
{
    member_text(w, key);
    put_quoted(w, text, length);
}

void json_put_string(struct json_writer *w, const char *key, const char *text)
{
    if (text)
        json_put_bytes(w, key, text, (int64_t)strlen(text));
    else
        json_put_null(w, key);
}

static void put_number(struct json_writer *w, int64_t value)
{
    char number[24];
    put(w, number, snprintf(number, sizeof number, "%" PRId64, value));
}

void json_put_int(struct json_writer *w, const char *key, int64_t value)
{
    member_text(w, key);
    put_number(w, value);
}

void json_put_entry(struct json_writer *w, const char *key, int64_t length, int64_t value)
{
    member(w, key, length);
    put_number(w, value);
}

void json_put_bool(struct json_writer *w, const char *key, bool value)
{
    member_text(w, key);
    put_text(w, value ? "true" : "false");
}

void json_put_null(struct json_writer *w, const char *key)
{
    member_text(w, key);
    put_text(w, "null");
}
