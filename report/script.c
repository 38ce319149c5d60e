/* SPDX-License-Identifier: MIT */
/* Building a script for gnuplot. */
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/text.h>
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

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* Letters, digits, blanks and what is beyond ASCII go as they are, all else by its number: in double quotes gnuplot runs `commands` and
 * knows escapes. Of a number that begins with 0 it reads four digits, so that those of the text behind it are safe. */
static void quote(struct script *s, const char *text, bool tic)
{
    int64_t bytes = (int64_t)strlen(text), good;
    script_add(s, "\"");
    for (int64_t i = 0; i < bytes && s->status == WF_OK;) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x80) {
            int length = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
            good = wf_utf8_check(text + i, length < bytes - i ? length : bytes - i);
            /* U+0080 to U+009F are control characters, and XML 1.0 has neither U+FFFE nor U+FFFF */
            bool shown = good < 0 && !(c == 0xc2 && (unsigned char)text[i + 1] < 0xa0) &&
                         !(c == 0xef && (unsigned char)text[i + 1] == 0xbf && (unsigned char)text[i + 2] >= 0xbe);
            script_add(s, "%.*s", shown ? length : 3, shown ? text + i : REPLACEMENT);
            i += good < 0 ? length : 1;
            continue;
        }
        if (c < 0x20 || c == 0x7f)
            script_add(s, REPLACEMENT);
        else if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == ' ')
            script_add(s, "%c", c);
        else
            script_add(s, tic && c == '%' ? "\\%04o\\%04o" : "\\%04o", c, c);
        i++;
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
