/* SPDX-License-Identifier: MIT */
/* fontconfig's list of fonts, through its program fc-list, which comes with what pngcairo needs. */
#include <stdlib.h>
#include <string.h>

#include <weft/internal/utf8.h>
#include <weft/memory.h>

#include "fonts.h"
#include "program.h"

enum { CHARACTERS = 0x110000, REPLACEMENT = 0xfffd };

static bool has(const uint8_t *set, uint32_t c)
{
    return set[c / 8] >> c % 8 & 1;
}

/* "20-7e a0 192-1ff ...": ranges in hexadecimal. */
static void add_ranges(const char *text, uint8_t *set)
{
    char *end;
    for (;; text = end) {
        unsigned long from = strtoul(text, &end, 16), to = from;
        if (end == text)
            return;
        if (*end == '-')
            to = strtoul(end + 1, &end, 16);
        for (; from <= to && from < CHARACTERS; from++)
            set[from / 8] |= (uint8_t)(1 << from % 8);
    }
}

/* All fonts together: pango looks into each. It takes outlines only, so not those of the old Type 1. Without a letter in any, the list is
 * not what it should be, and says nothing. */
static wf_status list_characters(uint8_t **set, wf_error *error)
{
    static const char *const arguments[] = {"fc-list", "--format=%{fontformat} %{charset}\n", NULL}, *const drop[] = {NULL};
    struct wf_string list = {0};
    struct program_end end;
    wf_error failure = {0};
    *set = NULL;
    wf_status status = program_run(arguments, drop, NULL, &list, &end, &failure);
    if (status == WF_OK && list.length > 0 && !(*set = wf_alloc_zero(CHARACTERS / 8, 1)))
        status = WF_ERR_MEMORY;
    char *rest = *set ? list.data : NULL;
    for (char *line; (line = strsep(&rest, "\n"));)
        if (strncmp(line, "TrueType ", 9) == 0 || strncmp(line, "CFF ", 4) == 0)
            add_ranges(strchr(line, ' '), *set);
    if (*set && !has(*set, 'a')) {
        wf_free(*set);
        *set = NULL;
    }
    wf_string_free(&list);
    return status == WF_ERR_MEMORY ? wf_error_set(error, status, "no memory for the list of fonts") : WF_OK;
}

/* What is drawn as nothing needs no font: Unicode's default ignorable characters. */
static bool invisible(uint32_t c)
{
    static const uint32_t range[][2] = {{0xad, 0xad},     {0x34f, 0x34f},   {0x61c, 0x61c},   {0x180b, 0x180f}, {0x200b, 0x200f},
                                        {0x202a, 0x202e}, {0x2060, 0x206f}, {0xfe00, 0xfe0f}, {0xfeff, 0xfeff}, {0xe0000, 0xe0fff}};
    for (size_t i = 0; i < sizeof range / sizeof *range; i++)
        if (c >= range[i][0] && c <= range[i][1])
            return true;
    return false;
}

static bool plain(const struct wf_string *text)
{
    for (int64_t i = 0; i < text->length; i++)
        if ((unsigned char)text->data[i] >= 0x80)
            return false;
    return true;
}

static void mend(const struct wf_string *script, const uint8_t *set, struct wf_string *out)
{
    for (int64_t i = 0; i < script->length;) {
        uint32_t c;
        int length = wf_utf8_decode(script->data + i, script->length - i, &c);
        if (length > 1 && !has(set, c) && !invisible(c)) {
            out->length += wf_utf8_encode(has(set, REPLACEMENT) ? REPLACEMENT : '?', out->data + out->length);
        } else {
            length = length ? length : 1;
            memcpy(out->data + out->length, script->data + i, (size_t)length);
            out->length += length;
        }
        i += length;
    }
    out->data[out->length] = 0;
}

wf_status fonts_mend(const struct wf_string *script, struct wf_string *out, wf_error *error)
{
    uint8_t *set = NULL;
    if (plain(script))
        return WF_OK;
    wf_status status = list_characters(&set, error);
    if (set) {
        out->capacity = 2 * script->length + 1; /* three bytes at most for two */
        out->data = wf_alloc((size_t)out->capacity);
        if (out->data)
            mend(script, set, out);
        else
            status = wf_error_set(error, WF_ERR_MEMORY, "no memory for a script of gnuplot");
    }
    wf_free(set);
    return status;
}
