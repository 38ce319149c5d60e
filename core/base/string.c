/* SPDX-License-Identifier: MIT */
/* The string builder (weft/internal/string.h). */
#include <stdarg.h>
#include <stdio.h>

#include <weft/internal/grow.h>
#include <weft/internal/locale_c.h>
#include <weft/internal/string.h>
#include <weft/internal/text.h>
#include <weft/internal/utf8.h>
#include <weft/memory.h>

bool wf_string_reserve(struct wf_string *s, int64_t more)
{
    int64_t need;
    if (s->failed || __builtin_add_overflow(s->length, more, &need) || need == INT64_MAX || !wf_grow(&s->data, &s->capacity, need + 1, 1))
        s->failed = true;
    return !s->failed;
}

bool wf_string_add(struct wf_string *s, const char *data, int64_t length)
{
    if (!wf_string_reserve(s, length))
        return false;
    if (length > 0)
        memcpy(s->data + s->length, data, (size_t)length);
    s->length += length;
    s->data[s->length] = 0;
    return true;
}

bool wf_string_point(struct wf_string *s, uint32_t point)
{
    char bytes[4];
    return wf_string_add(s, bytes, wf_utf8_encode(point, bytes));
}

bool wf_string_format(struct wf_string *s, const char *format, ...)
{
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    locale_t before = locale_c_enter();
    int length = vsnprintf(NULL, 0, format, list);
    if (length < 0)
        s->failed = true;
    else if (wf_string_reserve(s, length)) {
        vsnprintf(s->data + s->length, (size_t)length + 1, format, again);
        s->length += length;
    }
    locale_c_leave(before);
    va_end(again);
    va_end(list);
    return !s->failed;
}

bool wf_string_double(struct wf_string *s, double value)
{
    char text[WF_NUMBER_SIZE];
    return wf_string_text(s, wf_text_double(value, text));
}

bool wf_string_json(struct wf_string *s, const char *text, int64_t length)
{
    static const char named[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    int64_t plain = 0;
    wf_string_char(s, '"');
    for (int64_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        wf_string_add(s, text + plain, i - plain);
        plain = i + 1;
        const char *found = c ? strchr(named, c) : NULL;
        if (found)
            wf_string_add(s, (const char[]){'\\', letters[found - named]}, 2);
        else
            wf_string_format(s, "\\u%04x", c);
    }
    wf_string_add(s, text + plain, length - plain);
    return wf_string_char(s, '"');
}

void wf_string_cut(struct wf_string *s, int64_t length)
{
    if (length < s->length) {
        s->length = length;
        s->data[length] = 0;
    }
}

void wf_string_free(struct wf_string *s)
{
    if (!s)
        return;
    wf_free(s->data);
    *s = (struct wf_string){0};
}
