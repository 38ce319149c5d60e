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

static bool digit(uint32_t point)
{
    return point >= '0' && point <= '9';
}

/* All printable ASCII but letters, digits, ' , - and . */
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

/* Whether the category of Unicode is one of those from `first` to `last`: utf8proc numbers those of a class one after another. */
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

/* --- steps ----------------------------------------------------------------------------------------------------------- */

/* A substitution: a character that `alone` accepts becomes " a ", or two that `pair` accepts become "a b ", or " a b" with `lead`. */
struct step {
    bool (*alone)(uint32_t point);
    bool (*pair)(uint32_t a, uint32_t b);
    bool lead;
};
static const struct step steps[][5] = {
    [WF_BLEU_13A] = {{.alone = sign},
                     {.pair = stop_after_no_digit},
                     {.pair = stop_before_no_digit, .lead = true},
                     {.pair = dash_after_digit}},
    [WF_BLEU_INTL] = {{.pair = punctuation_after_no_number}, {.pair = punctuation_before_no_number, .lead = true}, {.alone = symbol}},
    [WF_BLEU_NONE] = {{0}},
    [WF_BLEU_CHAR] = {{.alone = any}},
};

static void run(const struct step *step, const struct wf_string *in, struct wf_string *out)
{
    for (int64_t at = 0; at < in->length;) {
        int size, next = 0;
        uint32_t a = wf_utf8_at(in->data, at, &size), b = at + size < in->length ? wf_utf8_at(in->data, at + size, &next) : 0;
        bool alone = step->alone && step->alone(a), pair = step->pair && next > 0 && step->pair(a, b);
        if (alone || (pair && step->lead))
            wf_string_char(out, ' ');
        wf_string_add(out, in->data + at, size);
        if (alone || pair)
            wf_string_char(out, ' ');
        at += size;
        if (!pair)
            continue;
        wf_string_add(out, in->data + at, next);
        if (!step->lead)
            wf_string_char(out, ' ');
        at += next;
    }
}

bool score_tokenize(enum wf_bleu_tokenizer tokenizer, const char *text, int64_t length, struct wf_string *out, struct wf_string *scratch)
{
    static const char *const changes[][2] = {{"<skipped>", ""}, {"-\n", ""},   {"\n", " "},  {"&quot;", "\""},
                                             {"&amp;", "&"},    {"&lt;", "<"}, {"&gt;", ">"}};
    bool is_13a = tokenizer == WF_BLEU_13A;
    /* With spaces around the line for 13a alone: a stop at its start or end is looked at against them. In mteval-v14 a stop after a number
     * at the end stays with it. */
    const char *around = is_13a ? " " : "";
    out->length = 0;
    wf_string_text(out, around);
    wf_string_add(out, text, length);
    wf_string_text(out, around);
    for (size_t i = 0; is_13a && !out->failed && i < sizeof changes / sizeof *changes; i++)
        replace(out, changes[i][0], changes[i][1]);
    for (const struct step *step = steps[tokenizer]; !out->failed && (step->alone || step->pair); step++) {
        scratch->length = 0;
        wf_string_reserve(scratch, out->length);
        run(step, out, scratch);
        struct wf_string last = *scratch;
        *scratch = *out;
        *out = last;
    }
    return !out->failed && !scratch->failed;
}
