/* SPDX-License-Identifier: MIT */
/* Single characters of UTF-8 (weft/internal/utf8.h). */
#include <stdio.h>

#include <weft/internal/utf8.h>

int wf_utf8_decode(const char *data, int64_t length, uint32_t *point)
{
    const unsigned char *p = (const unsigned char *)data;
    if (p[0] < 0x80) {
        *point = p[0];
        return 1;
    }
    /* The range of the second byte excludes overlong forms (after E0, F0), surrogates (after ED) and points above U+10FFFF (after F4). */
    int size = 2;
    unsigned low = 0x80, high = 0xBF;
    if (p[0] < 0xC2 || p[0] > 0xF4)
        return 0;
    if (p[0] >= 0xE0) {
        size = p[0] < 0xF0 ? 3 : 4;
        low = p[0] == 0xE0 ? 0xA0 : p[0] == 0xF0 ? 0x90 : 0x80;
        high = p[0] == 0xED ? 0x9F : p[0] == 0xF4 ? 0x8F : 0xBF;
    }
    if (length < size || p[1] < low || p[1] > high)
        return 0;
    uint32_t value = (p[0] & (0x7Fu >> size)) << 6 | (p[1] & 0x3Fu);
    for (int i = 2; i < size; i++) {
        if ((p[i] & 0xC0) != 0x80)
            return 0;
        value = value << 6 | (p[i] & 0x3Fu);
    }
    *point = value;
    return size;
}

int wf_utf8_encode(uint32_t point, char *out)
{
    if (point < 0x80) {
        out[0] = (char)point;
        return 1;
    }
    int size = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (int i = size - 1; i > 0; i--, point >>= 6)
        out[i] = (char)(0x80 | (point & 0x3F));
    out[0] = (char)((0xF00 >> size & 0xFF) | point);
    return size;
}

const char *wf_utf8_fault(const char *data, int64_t length)
{
    const unsigned char *p = (const unsigned char *)data;
    if (p[0] < 0xC0)
        return "a continuation byte without a start byte";
    if (p[0] < 0xC2)
        return "an overlong form";
    if (p[0] > 0xF4)
        return p[0] < 0xF8 ? "above U+10FFFF" : "a byte that never occurs in UTF-8";
    if (length < 2)
        return "a truncated sequence";
    if ((p[1] & 0xC0) == 0x80) {
        if ((p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xF0 && p[1] < 0x90))
            return "an overlong form";
        if (p[0] == 0xED && p[1] > 0x9F)
            return "a surrogate";
        if (p[0] == 0xF4 && p[1] > 0x8F)
            return "above U+10FFFF";
    }
    return "a truncated sequence";
}

bool wf_utf8_printable(uint32_t point)
{
    /* Characters that are invisible, that combine with the quotation mark printed before them, or that could reverse the direction of a
     * terminal's line. Unassigned points are not listed, because a new version of Unicode may make them printable characters. */
    static const uint32_t hidden[][2] = {
        {0x0, 0x1F},      {0x7F, 0x9F},       {0xAD, 0xAD},       {0x300, 0x36F},     {0x483, 0x489},     {0x591, 0x5BD},
        {0x600, 0x605},   {0x610, 0x61A},     {0x61C, 0x61C},     {0x64B, 0x65F},     {0x6DD, 0x6DD},     {0x70F, 0x70F},
        {0x8E2, 0x8E2},   {0x180B, 0x180F},   {0x1AB0, 0x1AFF},   {0x1DC0, 0x1DFF},   {0x200B, 0x200F},   {0x2028, 0x202E},
        {0x2060, 0x206F}, {0x20D0, 0x20FF},   {0xD800, 0xF8FF},   {0xFE00, 0xFE0F},   {0xFE20, 0xFE2F},   {0xFEFF, 0xFEFF},
        {0xFFF0, 0xFFFB}, {0x13430, 0x1343F}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF}, {0xF0000, 0x10FFFF},
    };
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        if (point >= hidden[i][0] && point <= hidden[i][1])
            return false;
    return (point & 0xFFFE) != 0xFFFE;
}

char *wf_utf8_name(uint32_t point, char *text, size_t size)
{
    char character[5] = "";
    if (wf_utf8_printable(point)) {
        character[wf_utf8_encode(point, character)] = 0;
        snprintf(text, size, "U+%04X '%s'", (unsigned)point, character);
    } else {
        snprintf(text, size, "U+%04X", (unsigned)point);
    }
    return text;
}
