/* SPDX-License-Identifier: MIT */
/* Unicode's normal forms. A text is divided into stretches that can be normalised separately, so that the time is linear in the text. */
#include <string.h>
#include <utf8proc.h>

#include "internal.h"
#include "scratch.h"
#include "unicode.h"
#include <weft/internal/grow.h>
#include <weft/internal/utf8.h>

/* Whether normalisation never combines a character with the characters before it, so that the text may be divided before it. False for
 * marks (except those newer than Unicode 9), because they are reordered and composed; for second halves of Hangul syllables and of Kirat
 * Rai vowels; and for characters that decompose into one of these. */
static bool starts_afresh(uint32_t point)
{
    if (point < 0x300)
        return true;
    if ((point >= 0x1160 && point <= 0x11FF) || (point >= 0x3130 && point <= 0x318F) || (point >= 0xFF9E && point <= 0xFFDC) ||
        point == 0x16D67)
        return false;
    switch (utf8proc_category((utf8proc_int32_t)point)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
        return unicode_is_later_mark(point);
    default:
        return utf8proc_get_property((utf8proc_int32_t)point)->combining_class == 0;
    }
}

static int class_of(uint32_t point)
{
    int class = (int)utf8proc_get_property((utf8proc_int32_t)point)->combining_class;
    return class != 0 && unicode_is_later_mark(point) ? 0 : class;
}

/* Sorts by combining class, stably. It counts instead of comparing, because a text may be one long run of marks. */
static void order_run(uint32_t *point, uint32_t *spare, int64_t count)
{
    int64_t place[257] = {0};
    bool ordered = true;
    for (int64_t i = 1; ordered && i < count; i++)
        ordered = class_of(point[i - 1]) <= class_of(point[i]);
    if (ordered)
        return;
    for (int64_t i = 0; i < count; i++)
        place[class_of(point[i]) + 1]++;
    for (int k = 1; k < 257; k++)
        place[k] += place[k - 1];
    for (int64_t i = 0; i < count; i++)
        spare[place[class_of(point[i])]++] = point[i];
    memcpy(point, spare, (size_t)count * sizeof *point);
}

static void reorder(uint32_t *point, uint32_t *spare, int64_t count)
{
    for (int64_t at = 0, end; at < count; at = end) {
        end = at + 1;
        if (class_of(point[at]) == 0)
            continue;
        while (end < count && class_of(point[end]) != 0)
            end++;
        order_run(point + at, spare, end - at);
    }
}

/* Appends the normal form of text[begin .. end-1]. Each of `begin` and `end` must be an end of the text, or a character for which
 * starts_afresh is true. */
static bool put_stretch(struct scratch *s, struct flow *out, const struct view *text, int64_t begin, int64_t end, bool compatible,
                        bool compose)
{
    enum { LONGEST = 32 }; /* room for one decomposition, with some to spare: the longest in Unicode has 18 characters */
    int64_t count = 0, origin = view_origin(text, begin);
    for (int64_t at = begin; at < end;) {
        int size, boundary = 0;
        uint32_t point = wf_utf8_at(text->data, at, &size);
        /* Twice the size, because order_run needs a second array. */
        if (!wf_grow(&s->point, &s->points_room, 2 * (count + LONGEST), sizeof *s->point))
            return false;
        utf8proc_option_t options = UTF8PROC_DECOMPOSE | UTF8PROC_STABLE | (compatible ? UTF8PROC_COMPAT : 0);
        utf8proc_ssize_t n =
            unicode_is_decomposed(point)
                ? utf8proc_decompose_char((utf8proc_int32_t)point, (utf8proc_int32_t *)s->point + count, LONGEST, options, &boundary)
                : 0;
        if (n <= 0 || n > LONGEST) {
            s->point[count] = point;
            n = 1;
        }
        count += n;
        at += size;
    }
    reorder(s->point, s->point + count, count);
    if (compose)
        count = utf8proc_normalize_utf32((utf8proc_int32_t *)s->point, count, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
    for (int64_t i = 0; i < count; i++)
        if (!flow_put_point(out, s->point[i], origin))
            return false;
    return true;
}

wf_status normal_form(struct scratch *s, struct view *text, bool compatible, bool compose)
{
    int64_t ascii = 0;
    while (ascii < text->length && (unsigned char)text->data[ascii] < 0x80)
        ascii++;
    if (ascii == text->length)
        return WF_OK;
    struct flow *out = scratch_flow(s, FLOW_NORMALIZED);
    for (int64_t at = 0, end; at < text->length; at = end) {
        int size;
        end = at;
        while (end < text->length && (unsigned char)text->data[end] < 0x80)
            end++;
        if (end > at + 1) { /* the run's last ASCII character may be followed by a mark, so it is left for put_stretch */
            end--;
            if (!flow_copy(out, text, at, end - at))
                return WF_ERR_MEMORY;
            continue;
        }
        wf_utf8_at(text->data, at, &size);
        for (end = at + size; end < text->length && !starts_afresh(wf_utf8_at(text->data, end, &size));)
            end += size;
        if (!put_stretch(s, out, text, at, end, compatible, compose))
            return WF_ERR_MEMORY;
    }
    *text = flow_view(out);
    return WF_OK;
}

#define FORM(id, file_name, compatible, compose)                                                                                           \
    static wf_status run_##id(const void *part, struct scratch *s, struct view *text)                                                      \
    {                                                                                                                                      \
        (void)part;                                                                                                                        \
        return normal_form(s, text, compatible, compose);                                                                                  \
    }                                                                                                                                      \
    const struct part_type normalizer_##id = {file_name, PART_NORMALIZER, .normalize = run_##id};
FORM(nfc, "NFC", false, true)
FORM(nfd, "NFD", false, false)
FORM(nfkc, "NFKC", true, true)
FORM(nfkd, "NFKD", true, false)
