/* SPDX-License-Identifier: MIT */
/* White space, lower case and checks of segments (text.h). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <utf8proc.h>

#include <weft/internal/text.h>
#include <weft/internal/utf8.h>
#include <weft/memory.h>

#include "text.h"

/* --- white space ----------------------------------------------------------------------------------------------------- */

bool score_space(uint32_t point)
{
    return (point >= 0x09 && point <= 0x0D) || (point >= 0x1C && point <= 0x20) || point == 0x85 || point == 0xA0 || point == 0x1680 ||
           (point >= 0x2000 && point <= 0x200A) || point == 0x2028 || point == 0x2029 || point == 0x202F || point == 0x205F ||
           point == 0x3000;
}

/* The character that ends just before text[*at]; the text is UTF-8. Moves *at to the start of this character. */
static uint32_t before(const char *text, int64_t *at)
{
    int size;
    *at -= wf_utf8_before(text, *at);
    return wf_utf8_at(text, *at, &size);
}

int64_t score_trim(const char *text, int64_t length)
{
    for (int64_t at = length; at > 0; length = at)
        if (!score_space(before(text, &at)))
            break;
    return length;
}

const char *score_word(const char **at, const char *end, int64_t *word)
{
    const char *start = NULL;
    uint32_t point;
    while (*at < end) {
        int size = wf_utf8_decode(*at, end - *at, &point);
        bool space = score_space(point);
        if (space && start)
            break;
        if (!space && !start)
            start = *at;
        *at += size;
    }
    if (start)
        *word = *at - start;
    return start;
}

/* --- lower case ------------------------------------------------------------------------------------------------------ */

/* Unicode's property Case_Ignorable: true for characters that do not end a word, such as an apostrophe. */
static bool case_ignorable(uint32_t point)
{
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)point);
    if (category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_ME || category == UTF8PROC_CATEGORY_CF ||
        category == UTF8PROC_CATEGORY_LM || category == UTF8PROC_CATEGORY_SK)
        return true;
    static const uint32_t within[] = {'\'',   '.',    ':',    0xB7,   0x387,  0x55F,  0x5F4,  0x2018, 0x2019,
                                      0x2024, 0x2027, 0xFE13, 0xFE52, 0xFE55, 0xFF07, 0xFF0E, 0xFF1A};
    for (size_t i = 0; i < sizeof within / sizeof *within; i++)
        if (point == within[i])
            return true;
    return false;
}

/* Unicode's property Cased: true for letters that have an upper or lower case. Not to be called for case-ignorable characters. */
static bool cased(uint32_t point)
{
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)point);
    if (category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL || category == UTF8PROC_CATEGORY_LT)
        return true;
    static const uint32_t other[][2] = {{0xAA, 0xAA},       {0xBA, 0xBA},       {0x2160, 0x217F},  {0x24B6, 0x24E9},
                                        {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if (point >= other[i][0] && point <= other[i][1])
            return true;
    return false;
}

/* True if the sigma in text[start .. end-1] ends a word: the last character before the sigma is cased, and the first character after it is
 * not. Both searches skip case-ignorable characters. */
static bool final_sigma(const char *text, int64_t length, int64_t start, int64_t end)
{
    uint32_t point = 0;
    bool found = false;
    while (start > 0 && !found) {
        point = before(text, &start);
        found = !case_ignorable(point);
    }
    if (!found || !cased(point))
        return false;
    while (end < length) {
        end += wf_utf8_decode(text + end, length - end, &point);
        if (!case_ignorable(point))
            return !cased(point);
    }
    return true;
}

/* Appends to *out what Python's str.lower() returns. Each character becomes one character, except U+0130, which becomes two. */
static bool lower(const char *text, int64_t length, struct wf_string *out)
{
    wf_string_reserve(out, length);
    for (int64_t i = 0; i < length;) {
        int size;
        uint32_t point = wf_utf8_at(text, i, &size);
        int64_t start = i;
        i += size;
        if (point < 0x80)
            wf_string_char(out, (char)(point >= 'A' && point <= 'Z' ? point + 32 : point));
        else if (point == 0x130)
            wf_string_text(out, "i\xCC\x87");
        else if (point == 0x3A3)
            wf_string_point(out, final_sigma(text, length, start, i) ? 0x3C2 : 0x3C3);
        else
            wf_string_point(out, (uint32_t)utf8proc_tolower((utf8proc_int32_t)point));
    }
    return !out->failed;
}

/* --- segments -------------------------------------------------------------------------------------------------------- */

static wf_status check(struct wf_segment segment, const char *what, int64_t number, wf_error *error)
{
    int64_t length = segment.length < 0 ? (int64_t)strlen(segment.text) : segment.length, bad = wf_utf8_check(segment.text, length);
    if (bad < 0)
        return WF_OK;
    return wf_error_set(error, WF_ERR_FORMAT, "%s %" PRId64 ", byte %" PRId64 ": not UTF-8: byte 0x%02X: %s", what, number, bad + 1,
                        (unsigned char)segment.text[bad], wf_utf8_fault(segment.text + bad, length - bad));
}

wf_status score_check(struct wf_segment hypothesis, const struct wf_segment *references, int64_t count, int64_t number, int64_t *present,
                      wf_error *error)
{
    if (!hypothesis.text)
        return wf_error_set(error, WF_ERR_ARGUMENT, "segment %" PRId64 ": there is no hypothesis; give an empty text for an empty one",
                            number);
    wf_status status = check(hypothesis, "hypothesis", number, error);
    *present = 0;
    for (int64_t i = 0; i < count && status == WF_OK; i++) {
        *present += references[i].text != NULL;
        if (references[i].text)
            status = check(references[i], "reference of segment", number, error);
    }
    if (status == WF_OK && *present == 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "segment %" PRId64 ": there is no reference to compare with", number);
    return status;
}

bool score_text(struct wf_segment segment, bool lowercase, struct wf_string *memory, struct wf_segment *out)
{
    if (segment.length < 0)
        segment.length = (int64_t)strlen(segment.text);
    memory->length = 0;
    bool done = !lowercase || lower(segment.text, segment.length, memory);
    *out = lowercase ? (struct wf_segment){memory->data, memory->length} : segment;
    return done;
}

/* --- output ---------------------------------------------------------------------------------------------------------- */

char *reference_count_text(int64_t count, char *text, size_t size)
{
    if (count == VARIES)
        snprintf(text, size, "var");
    else
        snprintf(text, size, "%" PRId64, count);
    return text;
}
