/* SPDX-License-Identifier: MIT */
/* fontconfig's list of fonts, through its program fc-list, which comes with what pngcairo needs. */
#include <stdlib.h>
#include <string.h>

#include <weft/internal/string.h>
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

/* What all fonts together have: pango looks into each that has outlines, so not the old Type 1. */
static wf_status list_characters(uint8_t *set, wf_error *error)
{
    static const char *const arguments[] = {"fc-list", "--format=%{fontformat} %{charset}\n", NULL};
    struct wf_string list = {0};
    char complaint[PROGRAM_COMPLAINT + 1];
    int end;
    wf_status status = program_run(arguments, &(struct wf_string){0}, &list, &end, complaint, error);
    char *rest = status == WF_OK ? list.data : NULL;
    for (char *line; (line = strsep(&rest, "\n"));)
        if (strncmp(line, "TrueType ", 9) == 0 || strncmp(line, "CFF ", 4) == 0)
            add_ranges(strchr(line, ' '), set);
    wf_string_free(&list);
    return status;
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

wf_status fonts_mend(const struct wf_string *script, struct wf_string *out, wf_error *error)
{
    uint8_t *set = wf_alloc_zero(CHARACTERS / 8, 1);
    wf_status status = set ? list_characters(set, error) : wf_error_set(error, WF_ERR_MEMORY, "no memory for the list of fonts");
    /* without a letter in any it is no list of fonts, and says nothing */
    for (int64_t i = 0; status == WF_OK && has(set, 'a') && i < script->length;) {
        uint32_t c;
        int length = wf_utf8_decode(script->data + i, script->length - i, &c);
        if (length > 1 && !has(set, c) && !invisible(c))
            wf_string_point(out, has(set, REPLACEMENT) ? REPLACEMENT : '?');
        else
            wf_string_add(out, script->data + i, length ? length : 1);
        i += length ? length : 1;
    }
    wf_free(set);
    return status == WF_OK && out->failed ? wf_error_set(error, WF_ERR_MEMORY, "no memory for a script of gnuplot") : status;
}
