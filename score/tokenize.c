/* SPDX-License-Identifier: MIT */
/* The tokenizers of BLEU. They are chains of substitutions, each over the whole line and from left to right without overlaps; the
 * order and the overlaps are part of what they mean ("..": the first point takes the space that the second would need). */
#include <string.h>

#include <utf8proc.h>

#include <weft/internal/utf8.h>

#include "text.h"

/* --- 13a ------------------------------------------------------------------------------------------------------------- */

/* str.replace(), in place: `to` is not longer than `from`. */
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

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_stop(char c)
{
    return c == '.' || c == ',';
}

/* All printable ASCII but letters, digits, ' , - and . */
static bool is_sign(char c)
{
    return (c >= ' ' && c <= '/' && c != '\'' && c != ',' && c != '-' && c != '.') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
           (c >= '{' && c <= '~');
}

static bool put3(struct wf_string *out, char a, char b, char c)
{
    return wf_string_char(out, a) && wf_string_char(out, b) && wf_string_char(out, c);
}

static bool signs(const struct wf_string *in, struct wf_string *out)
{
    bool fine = true;
    for (int64_t i = 0; i < in->length && fine; i++)
        fine = is_sign(in->data[i]) ? put3(out, ' ', in->data[i], ' ') : wf_string_char(out, in->data[i]);
    return fine;
}

/* Bytes serve for characters in what follows: what is looked for is ASCII, and a character's other bytes are no digits either. */
static bool stops_after_no_digit(const struct wf_string *in, struct wf_string *out)
{
    bool fine = true;
    for (int64_t i = 0; i < in->length && fine; i++) {
        fine = wf_string_char(out, in->data[i]);
        if (fine && !is_digit(in->data[i]) && i + 1 < in->length && is_stop(in->data[i + 1]))
            fine = put3(out, ' ', in->data[++i], ' ');
    }
    return fine;
}

static bool stops_before_no_digit(const struct wf_string *in, struct wf_string *out)
{
    bool fine = true;
    for (int64_t i = 0; i < in->length && fine; i++)
        if (is_stop(in->data[i]) && i + 1 < in->length && !is_digit(in->data[i + 1])) {
            fine = put3(out, ' ', in->data[i], ' ') && wf_string_char(out, in->data[i + 1]);
            i++;
        } else {
            fine = wf_string_char(out, in->data[i]);
        }
    return fine;
}

static bool dashes_after_digit(const struct wf_string *in, struct wf_string *out)
{
    bool fine = true;
    for (int64_t i = 0; i < in->length && fine; i++) {
        fine = wf_string_char(out, in->data[i]);
        if (fine && is_digit(in->data[i]) && i + 1 < in->length && in->data[i + 1] == '-')
            fine = put3(out, ' ', in->data[++i], ' ');
    }
    return fine;
}

static bool tokenize_13a(const char *text, int64_t length, struct wf_string *out, struct wf_string *scratch)
{
    static const char *const changes[][2] = {{"<skipped>", ""}, {"-\n", ""},   {"\n", " "},  {"&quot;", "\""},
                                             {"&amp;", "&"},    {"&lt;", "<"}, {"&gt;", ">"}};
    static bool (*const steps[])(const struct wf_string *in, struct wf_string *out) = {signs, stops_after_no_digit, stops_before_no_digit,
                                                                                       dashes_after_digit};
    out->length = 0;
    if (!wf_string_add(out, text, length))
        return false;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        replace(out, changes[i][0], changes[i][1]);
    scratch->length = 0; /* the spaces around the line are what a stop at its start or end is looked at against */
    if (!wf_string_char(scratch, ' ') || !wf_string_add(scratch, out->data, out->length) || !wf_string_char(scratch, ' '))
        return false;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        const struct wf_string *in = i % 2 ? out : scratch;
        struct wf_string *to = i % 2 ? scratch : out;
        to->length = 0;
        if (!steps[i](in, to))
            return false;
    }
    struct wf_string last = *scratch; /* an even number of steps ends there */
    *scratch = *out;
    *out = last;
    return true;
}

/* --- intl ------------------------------------------------------------------------------------------------------------ */

enum { NUMBER = 1, PUNCTUATION = 2, SYMBOL = 4 };

static int class_of(uint32_t point)
{
    switch (utf8proc_category((utf8proc_int32_t)point)) {
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
        return NUMBER;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
        return PUNCTUATION;
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO:
        return SYMBOL;
    default:
        return 0;
    }
}

/* Two characters of the classes that `match` accepts become " a b" or "a b ", as `lead` and `tail` say, with a space between. */
static bool pairs(const struct wf_string *in, struct wf_string *out, bool (*match)(int a, int b), bool lead, bool tail)
{
    const char *at = in->data, *end = in->data + in->length;
    while (at < end) {
        uint32_t a, b;
        int a_size = wf_utf8_decode(at, end - at, &a);
        int b_size = at + a_size < end ? wf_utf8_decode(at + a_size, end - at - a_size, &b) : 0;
        bool hit = b_size > 0 && match(class_of(a), class_of(b));
        if ((hit && lead && !wf_string_char(out, ' ')) || !wf_string_add(out, at, a_size))
            return false;
        at += a_size;
        if (!hit)
            continue;
        if (!wf_string_char(out, ' ') || !wf_string_add(out, at, b_size) || (tail && !wf_string_char(out, ' ')))
            return false;
        at += b_size;
    }
    return true;
}

static bool punctuation_after_no_number(int a, int b)
{
    return a != NUMBER && b == PUNCTUATION;
}

static bool punctuation_before_no_number(int a, int b)
{
    return a == PUNCTUATION && b != NUMBER;
}

/* Every character that `alone` accepts gets a space on both sides. */
static bool singles(const struct wf_string *in, struct wf_string *out, bool (*alone)(uint32_t point))
{
    const char *at = in->data, *end = in->data + in->length;
    while (at < end) {
        uint32_t point;
        int size = wf_utf8_decode(at, end - at, &point);
        bool hit = alone(point);
        if ((hit && !wf_string_char(out, ' ')) || !wf_string_add(out, at, size) || (hit && !wf_string_char(out, ' ')))
            return false;
        at += size;
    }
    return true;
}

static bool symbol(uint32_t point)
{
    return class_of(point) == SYMBOL;
}

static bool any(uint32_t point)
{
    (void)point;
    return true;
}

/* No spaces around the line here: a stop after a number at the end stays with it, as in mteval-v14. */
static bool tokenize_intl(const struct wf_string *text, struct wf_string *out, struct wf_string *scratch)
{
    out->length = scratch->length = 0;
    if (!pairs(text, out, punctuation_after_no_number, false, true) || !pairs(out, scratch, punctuation_before_no_number, true, false))
        return false;
    out->length = 0;
    return singles(scratch, out, symbol);
}

/* --------------------------------------------------------------------------------------------------------------------- */

bool score_tokenize(enum wf_bleu_tokenizer tokenizer, const char *text, int64_t length, struct wf_string *out, struct wf_string *scratch)
{
    struct wf_string in = {.data = (char *)text, .length = length};
    switch (tokenizer) {
    case WF_BLEU_13A:
        return tokenize_13a(text, length, out, scratch);
    case WF_BLEU_INTL:
        return tokenize_intl(&in, out, scratch);
    case WF_BLEU_CHAR:
        out->length = 0;
        return singles(&in, out, any);
    case WF_BLEU_NONE:
        break;
    }
    out->length = 0;
    return wf_string_add(out, text, length);
}
