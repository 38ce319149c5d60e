/* SPDX-License-Identifier: MIT */
/* The tokenizers of BLEU. A tokenizer is a chain of substitutions, in a fixed order. Each substitution goes over the whole line from left
 * to right, and its matches do not overlap. This matters for the result. For example, one substitution of 13a puts spaces around a stop
 * that follows a character other than a digit. In "x.." its match "x." uses up the first stop, so the second stop has no character before
 * it with which it could form a match. */
#include <string.h>

#include <utf8proc.h>

#include <weft/internal/utf8.h>

#include "text.h"

/* --- 13a ------------------------------------------------------------------------------------------------------------- */

/* Python's str.replace(), in place. `to` must not be longer than `from`. */
static void replace(struct wf_string *s, const char *from, const char *to)
{
    size_t from_length = strlen(from), to_length = strlen(to);
    char *out = s->data, *at = s->data, *end = s->data + s->length;
    for (char *hit; (hit = memmem(at, (size_t)(end - at), from, from_length)); at = hit + from_length) {
        memmove(out, at, (size_t)(hit - at));
        out += hit - at;
        memcpy(out, to, to_length);
        out += to_length;
    }
    memmove(out, at, (size_t)(end - at));
    s->length = out + (end - at) - s->data;
}

static bool digit(uint32_t point)
{
    return point >= '0' && point <= '9';
}

/* True for printable ASCII characters except letters, digits, and ' , - . */
static bool sign(uint32_t point)
{
    return (point >= ' ' && point <= '/' && point != '\'' && point != ',' && point != '-' && point != '.') ||
           (point >= ':' && point <= '@') || (point >= '[' && point <= '`') || (point >= '{' && point <= '~');
}

static bool stop_after_no_digit(uint32_t a, uint32_t b)
{
    return !digit(a) && (b == '.' || b == ',');
}

static bool stop_before_no_digit(uint32_t a, uint32_t b)
{
    return (a == '.' || a == ',') && !digit(b);
}

static bool dash_after_digit(uint32_t a, uint32_t b)
{
    return digit(a) && b == '-';
}

/* --- intl ------------------------------------------------------------------------------------------------------------ */

/* True if the Unicode category is one of `first` to `last`. utf8proc numbers related categories, such as all kinds of symbols,
 * consecutively. */
static bool within(uint32_t point, utf8proc_category_t first, utf8proc_category_t last)
{
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)point);
    return category >= first && category <= last;
}

static bool number(uint32_t point)
{
    return within(point, UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO);
}

static bool punctuation(uint32_t point)
{
    return within(point, UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO);
}

static bool symbol(uint32_t point)
{
    return within(point, UTF8PROC_CATEGORY_SM, UTF8PROC_CATEGORY_SO);
}

static bool punctuation_after_no_number(uint32_t a, uint32_t b)
{
    return punctuation(b) && !number(a);
}

static bool punctuation_before_no_number(uint32_t a, uint32_t b)
{
    return punctuation(a) && !number(b);
}

static bool any(uint32_t point)
{
    (void)point;
    return true;
}

/* --- substitutions --------------------------------------------------------------------------------------------------- */

typedef bool accepts(uint32_t point);
typedef bool accepts_pair(uint32_t a, uint32_t b);

static bool letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* One substitution over the whole text. A character x that `alone` accepts becomes " x ". Two characters x and y that `pair` accepts become
 * "x y ", or with `lead` " x y". `out` must have room for three times the bytes of `in`. The function is inlined into each function that
 * STEP defines, one for each substitution, so that the calls of `alone` and `pair` are inlined, too. */
static inline __attribute__((always_inline)) void substitute(const struct wf_string *in, struct wf_string *out, accepts *alone,
                                                             accepts_pair *pair, bool lead)
{
    char *to = out->data;
    for (int64_t at = 0; at < in->length;) {
        /* fast path for a letter before a letter: only `any` accepts a letter, and no function `pair` accepts two letters */
        if (alone != any && letter(in->data[at]) && letter(in->data[at + 1])) {
            *to++ = in->data[at++];
            continue;
        }
        int size, next = 0;
        uint32_t a = wf_utf8_at(in->data, at, &size), b = pair && at + size < in->length ? wf_utf8_at(in->data, at + size, &next) : 0;
        bool one = alone && alone(a), two = next > 0 && pair(a, b);
        if (one || (two && lead))
            *to++ = ' ';
        for (int i = 0; i < size; i++)
            *to++ = in->data[at + i];
        if (one || two)
            *to++ = ' ';
        at += size;
        if (!two)
            continue;
        for (int i = 0; i < next; i++)
            *to++ = in->data[at + i];
        if (!lead)
            *to++ = ' ';
        at += next;
    }
    *to = 0;
    out->length = to - out->data;
}

typedef void step(const struct wf_string *in, struct wf_string *out);

#define STEP(name, ...)                                                                                                                    \
    static void name(const struct wf_string *in, struct wf_string *out)                                                                    \
    {                                                                                                                                      \
        substitute(in, out, __VA_ARGS__);                                                                                                  \
    }
STEP(signs, sign, NULL, false)
STEP(stops_after_no_digit, NULL, stop_after_no_digit, false)
STEP(stops_before_no_digit, NULL, stop_before_no_digit, true)
STEP(dashes_after_digit, NULL, dash_after_digit, false)
STEP(punctuations_after_no_number, NULL, punctuation_after_no_number, false)
STEP(punctuations_before_no_number, NULL, punctuation_before_no_number, true)
STEP(symbols, symbol, NULL, false)
STEP(characters, any, NULL, false)

static step *const steps[][5] = {
    [WF_BLEU_13A] = {signs, stops_after_no_digit, stops_before_no_digit, dashes_after_digit},
    [WF_BLEU_INTL] = {punctuations_after_no_number, punctuations_before_no_number, symbols},
    [WF_BLEU_NONE] = {NULL},
    [WF_BLEU_CHAR] = {characters},
};

bool score_tokenize(enum wf_bleu_tokenizer tokenizer, const char *text, int64_t length, struct wf_string *out, struct wf_string *scratch)
{
    static const char *const changes[][2] = {{"<skipped>", ""}, {"-\n", ""},   {"\n", " "},  {"&quot;", "\""},
                                             {"&amp;", "&"},    {"&lt;", "<"}, {"&gt;", ">"}};
    bool is_13a = tokenizer == WF_BLEU_13A;
    /* 13a adds a space at both ends of the line, so that a stop at the start or the end is part of a pair, too. mteval-v14 (intl) adds no
     * spaces, so it does not separate a number from a stop at the end of the line. */
    const char *around = is_13a ? " " : "";
    out->length = 0;
    wf_string_text(out, around);
    wf_string_add(out, text, length);
    wf_string_text(out, around);
    for (size_t i = 0; is_13a && !out->failed && i < sizeof changes / sizeof *changes; i++)
        replace(out, changes[i][0], changes[i][1]);
    for (step *const *run = steps[tokenizer]; !out->failed && *run; run++) {
        if (!wf_string_reserve(scratch, 3 * out->length))
            return false;
        (*run)(out, scratch);
        struct wf_string last = *scratch;
        *scratch = *out;
        *out = last;
    }
    return !out->failed && !scratch->failed;
}
