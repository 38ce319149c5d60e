/* SPDX-License-Identifier: MIT */
/* Classes of characters. They are utf8proc's categories, changed where the package `tokenizers` decides otherwise. */
#include <stdlib.h>
#include <utf8proc.h>

#include "unicode.h"
#include <weft/internal/utf8.h>

/* Hugging Face's package `tokenizers` uses tables of Unicode 8 for BERT's classes, and of Unicode 9 for marks and decompositions. These
 * ranges contain all characters that were added later and that the package therefore does not classify. They were found by trying every
 * code point with version 0.23 of the package. */
struct range {
    uint32_t first, last;
};
static const struct range after_8[] = {
    {0x61D, 0x61D},     {0x7FD, 0x7FD},     {0x890, 0x8E2},     {0x9FD, 0x9FE},     {0xA76, 0xA76},     {0xAFA, 0xAFF},
    {0xB55, 0xB55},     {0xC04, 0xC3C},     {0xC77, 0xC77},     {0xC84, 0xC84},     {0xD00, 0xD00},     {0xD3B, 0xD3C},
    {0xD81, 0xD81},     {0xEBA, 0xEBA},     {0xECE, 0xECE},     {0x180F, 0x1886},   {0x1ABF, 0x1ACE},   {0x1B7D, 0x1B7E},
    {0x1DF6, 0x1DFB},   {0x2E43, 0x2E5D},   {0xA82C, 0xA82C},   {0xA8C5, 0xA8C5},   {0xA8FF, 0xA8FF},   {0xA9BD, 0xA9BD},
    {0x10D24, 0x10F89}, {0x11070, 0x11074}, {0x110C2, 0x110CD}, {0x111C9, 0x111C9}, {0x111CF, 0x111CF}, {0x1123E, 0x11241},
    {0x1133B, 0x1133B}, {0x11438, 0x1145E}, {0x11660, 0x1166C}, {0x116B9, 0x116B9}, {0x1182F, 0x11FFF}, {0x12FF1, 0x13455},
    {0x16E97, 0x16F4F}, {0x16FE2, 0x16FE4}, {0x1CF00, 0x1CF46}, {0x1E000, 0x1E4EF}, {0x1E944, 0x1E95F},
};
static const struct range after_9[] = {
    {0x7FD, 0x7FD},     {0x898, 0x8D3},     {0x9FE, 0x9FE},     {0xAFA, 0xAFF},     {0xB55, 0xB55},     {0xC04, 0xC3C},
    {0xCF3, 0xD00},     {0xD3B, 0xD3C},     {0xD81, 0xD81},     {0xEBA, 0xEBA},     {0xECE, 0xECE},     {0x1715, 0x1715},
    {0x180F, 0x180F},   {0x1ABF, 0x1ACE},   {0x1CF7, 0x1CF7},   {0x1DF6, 0x1DFA},   {0xA82C, 0xA82C},   {0xA8FF, 0xA8FF},
    {0x10D24, 0x10F85}, {0x11070, 0x11074}, {0x110C2, 0x110C2}, {0x11145, 0x11146}, {0x111C9, 0x111C9}, {0x111CE, 0x111CF},
    {0x11241, 0x11241}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E}, {0x1182C, 0x11A99}, {0x11D31, 0x13455}, {0x16F4F, 0x16F4F},
    {0x16F7F, 0x16F87}, {0x16FE4, 0x16FF1}, {0x1CF00, 0x1CF46}, {0x1E08F, 0x1E4EF},
};
static const struct range decomposed_later[] = {
    {0x32FF, 0x32FF},   {0xA7F2, 0xA7F4},   {0xAB69, 0xAB69},   {0x10781, 0x107BA},
    {0x11938, 0x11938}, {0x1E030, 0x1E06D}, {0x1F16C, 0x1F16C}, {0x1FBF0, 0x1FBF9},
};

static int compare_range(const void *key, const void *member)
{
    uint32_t point = *(const uint32_t *)key;
    const struct range *range = member;
    return point < range->first ? -1 : point > range->last;
}

static bool in(uint32_t point, const struct range *range, size_t count)
{
    return bsearch(&point, range, count, sizeof *range, compare_range) != NULL;
}
#define IN(point, ranges) in(point, ranges, sizeof(ranges) / sizeof *(ranges))

/* Classes by utf8proc's category. A category that is not listed has no class. */
static const uint8_t category_class[32] = {
    [UTF8PROC_CATEGORY_LU... UTF8PROC_CATEGORY_LO] = CHAR_LETTER | CHAR_WORD,
    [UTF8PROC_CATEGORY_MN... UTF8PROC_CATEGORY_ME] = CHAR_WORD,
    [UTF8PROC_CATEGORY_ND... UTF8PROC_CATEGORY_NL] = CHAR_NUMBER | CHAR_WORD,
    [UTF8PROC_CATEGORY_NO] = CHAR_NUMBER,
    [UTF8PROC_CATEGORY_PC] = CHAR_PUNCTUATION | CHAR_WORD,
    [UTF8PROC_CATEGORY_PD... UTF8PROC_CATEGORY_PO] = CHAR_PUNCTUATION,
    [UTF8PROC_CATEGORY_ZS... UTF8PROC_CATEGORY_ZP] = CHAR_SPACE,
};

unsigned unicode_class_of(uint32_t point)
{
    /* Joiners, and letters in circles or squares, belong to CHAR_WORD. Two signs, Mongolian (U+166D) and Sharada (U+111C9), count as
     * punctuation, as in older versions of Unicode. */
    static const struct range words[] = {{0x200C, 0x200D}, {0x24B6, 0x24E9}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};
    unsigned class = category_class[utf8proc_category((utf8proc_int32_t)point)];
    if (class & CHAR_LETTER)
        return class;
    if (point == 0x85)
        return CHAR_SPACE;
    if (point == 0x166D || point == 0x111C9)
        return class | CHAR_PUNCTUATION;
    if (class == CHAR_PUNCTUATION && IN(point, after_8))
        return 0;
    return class == 0 && IN(point, words) ? CHAR_WORD : class;
}

/* Classes of ASCII characters. Here symbols count as punctuation too. */
const uint8_t unicode_ascii[128] = {
    0,  0,  0,  0,  0,  0,  0,  0,  0,  1,  1,  1,  1,  1,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,
    1,  16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 16, 16, 16, 16, 16, 16,
    16, 6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  16, 16, 16, 16, 18,
    16, 6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  16, 16, 16, 16, 0,
};

bool unicode_is_control(uint32_t point)
{
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)point);
    if (point == '\t' || point == '\n' || point == '\r')
        return false;
    return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CO ||
           (category == UTF8PROC_CATEGORY_CF && !IN(point, after_8));
}

bool unicode_is_nonspacing(uint32_t point)
{
    return point == 0x1734 || (utf8proc_category((utf8proc_int32_t)point) == UTF8PROC_CATEGORY_MN && !IN(point, after_8));
}

bool unicode_is_mark(uint32_t point)
{
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)point);
    bool mark = category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC || category == UTF8PROC_CATEGORY_ME;
    return point == 0x1CF2 || point == 0x1CF3 || (mark && !IN(point, after_9));
}

bool unicode_is_later_mark(uint32_t point)
{
    return IN(point, after_9);
}

bool unicode_is_decomposed(uint32_t point)
{
    return !IN(point, decomposed_later);
}

bool unicode_is_ideograph(uint32_t point)
{
    static const struct range ideographs[] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},  {0x20000, 0x2A6DF},
                                              {0x2A700, 0x2B81F}, {0x2B920, 0x2CEAF}, {0x2F800, 0x2FA1F}};
    return IN(point, ideographs);
}

int64_t unicode_skip_space(const char *text, int64_t from, int64_t to)
{
    while (from < to) {
        uint32_t c;
        int size = wf_utf8_decode(text + from, to - from, &c);
        if (!size || !(unicode_class(c) & CHAR_SPACE))
            break;
        from += size;
    }
    return from;
}

int64_t unicode_skip_space_back(const char *text, int64_t from, int64_t to)
{
    while (from < to) {
        uint32_t c;
        int64_t at = to - 1;
        while (at > from && to - at < 4 && (text[at] & 0xC0) == 0x80)
            at--;
        if (wf_utf8_decode(text + at, to - at, &c) != to - at || !(unicode_class(c) & CHAR_SPACE))
            break;
        to = at;
    }
    return to;
}

/* Printable bytes are 33 to 126, 161 to 172 and 174 to 255. All other bytes, in order, have the characters from U+0100 on. */
uint32_t unicode_of_byte(unsigned char byte)
{
    if (byte <= 32)
        return 256 + byte;
    if (byte >= 127 && byte <= 160)
        return 256 + 33 + byte - 127;
    return byte == 173 ? 256 + 67 : byte;
}

int unicode_to_byte(uint32_t point)
{
    if (point < 256)
        return unicode_of_byte((unsigned char)point) == point ? (int)point : -1;
    if (point <= 256 + 32)
        return (int)point - 256;
    if (point <= 256 + 66)
        return (int)point - 256 - 33 + 127;
    return point == 256 + 67 ? 173 : -1;
}
