/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weft/memory.h>

#include "buffer.h"

static bool make_room(struct buffer *b, int64_t bytes)
{
    int64_t need;
    if (b->failed || __builtin_add_overflow(b->bytes, bytes, &need) || need > INT64_MAX / 2) {
        b->failed = true;
        return false;
    }
    if (need <= b->room)
        return true;
    int64_t room = need > 2 * b->room ? need : 2 * b->room;
    if (room < 256)
        room = 256;
    char *data = wf_realloc(b->data, (size_t)room);
    if (!data) {
        b->failed = true;
        return false;
    }
    b->data = data;
    b->room = room;
    return true;
}

void wf_buffer_put(struct buffer *b, const void *data, int64_t bytes)
{
    if (bytes > 0 && make_room(b, bytes)) {
        memcpy(b->data + b->bytes, data, (size_t)bytes);
        b->bytes += bytes;
    }
}

void wf_buffer_text(struct buffer *b, const char *text)
{
    wf_buffer_put(b, text, (int64_t)strlen(text));
}

void wf_buffer_int(struct buffer *b, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    wf_buffer_text(b, text);
}

void wf_buffer_json_string(struct buffer *b, const char *text, int64_t bytes)
{
    wf_buffer_put(b, "\"", 1);
    int64_t start = 0;
    for (int64_t i = 0; i < bytes; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        wf_buffer_put(b, text + start, i - start);
        start = i + 1;
        static const char names[] = "\b\t\n\f\r\"\\", letters[] = "btnfr\"\\";
        const char *found = c ? strchr(names, c) : NULL;
        char escape[8];
        if (found)
            snprintf(escape, sizeof escape, "\\%c", letters[found - names]);
        else
            snprintf(escape, sizeof escape, "\\u%04x", c);
        wf_buffer_text(b, escape);
    }
    wf_buffer_put(b, text + start, bytes - start);
    wf_buffer_put(b, "\"", 1);
}
