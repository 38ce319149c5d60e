/* SPDX-License-Identifier: MIT */
/* Building a script for gnuplot. */
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/utf8.h>
#include <weft/memory.h>

#include "gnuplot.h"

/* Room for `more` bytes and a NUL behind what is there. */
static bool make_room(struct script *s, int64_t more)
{
    if (s->status != WF_OK)
        return false;
    int64_t need = s->text.length + more + 1;
    if (need <= s->text.capacity)
        return true;
    int64_t capacity = need + need / 2 + 1024;
    char *data = wf_realloc(s->text.data, (size_t)capacity);
    if (!data) {
        s->status = WF_ERR_MEMORY;
        return false;
    }
    s->text.data = data;
    s->text.capacity = capacity;
    return true;
}

void script_add(struct script *s, const char *format, ...)
{
    /* newlocale gives the C locale as a constant object: it neither allocates nor fails. */
    locale_t before = uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
    va_list list;
    va_start(list, format);
    int length = vsnprintf(NULL, 0, format, list);
    va_end(list);
    if (length < 0)
        s->status = s->status != WF_OK ? s->status : WF_ERR_MEMORY;
    else if (make_room(s, length)) {
        va_start(list, format);
        vsnprintf(s->text.data + s->text.length, (size_t)length + 1, format, list);
        va_end(list);
        s->text.length += length;
    }
    uselocale(before);
}

bool script_shows(uint32_t c)
{
    bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);
    return !control && c != 0xfffe && c != 0xffff; /* which XML 1.0 has not */
}

/* Letters, digits, blanks and what is beyond ASCII go as they are, all else by its number: in double quotes gnuplot runs `commands` and
 * knows escapes. Of a number that begins with 0 it reads four digits, so that those of the text behind it are safe. */
static void quote(struct script *s, const char *text, bool tic)
{
    int64_t bytes = (int64_t)strlen(text);
    script_add(s, "\"");
    for (int64_t i = 0; i < bytes && s->status == WF_OK;) {
        uint32_t c = 0;
        int length = wf_utf8_decode(text + i, bytes - i, &c);
        bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == ' ' || c >= 0x80;
        if (length == 0 || !script_shows(c))
            script_add(s, SCRIPT_REPLACEMENT);
        else if (plain)
            script_add(s, "%.*s", length, text + i);
        else
            script_add(s, tic && c == '%' ? "\\%04o\\%04o" : "\\%04o", (unsigned)c, (unsigned)c);
        i += length ? length : 1;
    }
    script_add(s, "\"");
}

void script_quote(struct script *s, const char *text)
{
    quote(s, text, false);
}

void script_quote_tic(struct script *s, const char *text)
{
    quote(s, text, true);
}

void script_terminal(struct script *s, enum picture_format format, int width, int height, int font_size)
{
    /* one that there is comes for each character */
    static const char *const fonts = "DejaVu Sans,Noto Sans,Liberation Sans,Arial,sans-serif";
    script_add(s, "set encoding utf8\n");
    if (format == PICTURE_TEXT)
        script_add(s, "set terminal dumb size %d,%d noenhanced mono nofeed\n", width, height);
    else if (format == PICTURE_PNG) /* points of 1/72 inch, where an inch has 96 pixels */
        script_add(s,
                   "set terminal pngcairo size %d,%d noenhanced font \"%s,%g\" fontscale 2 linewidth 2 pointscale 2 "
                   "background \"#ffffff\"\n",
                   2 * width, 2 * height, fonts, 0.75 * font_size);
    else
        script_add(s, "set terminal svg size %d,%d noenhanced font \"%s,%d\" background \"#ffffff\"\n", width, height, fonts, font_size);
}
