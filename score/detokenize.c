/* SPDX-License-Identifier: MIT */
/* The rules of Moses' detokenizer, tried in order for each word; a rule says whether a space goes before the word and whether one may
 * go before the next. */
#include <inttypes.h>
#include <string.h>

#include <utf8proc.h>

#include <weft/detokenize.h>
#include <weft/internal/utf8.h>
#include <weft/memory.h>

#include "grams.h"
#include "text.h"

struct word {
    int64_t start, length;
};

struct line {
    const char *text;
    const struct word *word;
    int64_t count;
};

/* --- what was escaped ------------------------------------------------------------------------------------------------ */

/* The entities of Moses' tokenizer, older ones too. &amp; comes last: "&amp;lt;" is the text "&lt;". */
static const char *const entities[][2] = {{"&bar;", "|"},   {"&#124;", "|"}, {"&lt;", "<"},  {"&gt;", ">"},  {"&bra;", "["}, {"&ket;", "]"},
                                          {"&quot;", "\""}, {"&apos;", "'"}, {"&#91;", "["}, {"&#93;", "]"}, {"&amp;", "&"}};

/* In one pass: no replacement begins an entity but that of &amp;, which is not looked at again. */
static bool unescape(const char *text, int64_t length, struct wf_string *out)
{
    for (int64_t i = 0; i < length;) {
        size_t size = 1;
        char c = text[i];
        for (size_t e = 0; text[i] == '&' && e < sizeof entities / sizeof *entities; e++) {
            size_t bytes = strlen(entities[e][0]);
            if ((int64_t)bytes <= length - i && memcmp(text + i, entities[e][0], bytes) == 0) {
                size = bytes;
                c = entities[e][1][0];
                break;
            }
        }
        if (!wf_string_char(out, c))
            return false;
        i += (int64_t)size;
    }
    return true;
}

static bool blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* " @-@ " becomes "-": what the tokenizer's option -a splits. Of marks with one space between them the first alone is joined. */
static void join_hyphens(struct wf_string *s)
{
    int64_t out = 0;
    for (int64_t i = 0; i < s->length;) {
        if (s->length - i >= 5 && memcmp(s->data + i, " @-@ ", 5) == 0) {
            s->data[out++] = '-';
            i += 5;
        } else {
            s->data[out++] = s->data[i++];
        }
    }
    s->length = out;
}

/* --- what words look like -------------------------------------------------------------------------------------------- */

static bool letter(uint32_t point)
{
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)point);
    return (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO) || c == UTF8PROC_CATEGORY_NL;
}

static bool letter_or_digit(uint32_t point)
{
    return letter(point) || utf8proc_category((utf8proc_int32_t)point) == UTF8PROC_CATEGORY_ND;
}

static bool cjk(uint32_t point)
{
    static const uint32_t ranges[][2] = {{0x1100, 0x11FF}, {0x2E80, 0xA4CF}, {0xA840, 0xA87F}, {0xAC00, 0xD7AF},
                                         {0xF900, 0xFAFF}, {0xFE30, 0xFE4F}, {0xFF65, 0xFFDC}, {0x20000, 0x2FFFF}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (point >= ranges[i][0] && point <= ranges[i][1])
            return true;
    return false;
}

static bool opens(uint32_t point)
{
    return point == '(' || point == '[' || point == '{' || point == 0xBF || point == 0xA1 ||
           utf8proc_category((utf8proc_int32_t)point) == UTF8PROC_CATEGORY_SC;
}

static bool closes(uint32_t point)
{
    return point < 0x80 && point != 0 && strchr(",.?!:;\\%}])", (int)point);
}

static bool quotes(uint32_t point)
{
    return point == '\'' || point == '"' || point == '`' || point == 0x201E || point == 0x201C;
}

static bool digit(uint32_t point)
{
    return point >= '0' && point <= '9';
}

static uint32_t first(const struct line *l, int64_t i)
{
    uint32_t point = 0;
    wf_utf8_decode(l->text + l->word[i].start, l->word[i].length, &point);
    return point;
}

/* The last character, but for `skip` bytes behind it; 0 when there is none. */
static uint32_t last(const struct line *l, int64_t i, int64_t skip)
{
    const char *word = l->text + l->word[i].start;
    int64_t end = l->word[i].length - skip, at = end;
    uint32_t point = 0;
    while (at > 0 && ((unsigned char)word[--at] & 0xC0) == 0x80) {
    }
    if (end > 0)
        wf_utf8_decode(word + at, end - at, &point);
    return point;
}

static bool all(const struct line *l, int64_t i, bool (*of)(uint32_t point))
{
    const char *at = l->text + l->word[i].start, *end = at + l->word[i].length;
    while (at < end) {
        uint32_t point;
        at += wf_utf8_decode(at, end - at, &point);
        if (!of(point))
            return false;
    }
    return true;
}

static bool is(const struct line *l, int64_t i, const char *text)
{
    return l->word[i].length == (int64_t)strlen(text) && memcmp(l->text + l->word[i].start, text, strlen(text)) == 0;
}

static bool is_dash(const struct line *l, int64_t i)
{
    return is(l, i, "-") || is(l, i, "\xE2\x80\x93");
}

/* --- rules ----------------------------------------------------------------------------------------------------------- */

enum { ALONE = 0, JOIN_LEFT = 1, JOIN_RIGHT = 2 }; /* to the word before, to the one after */

/* 's of "it 's", and the n't of tokenizers that split "do n't" */
static bool contracted(const struct line *l, int64_t i)
{
    if (i == 0 || !letter_or_digit(last(l, i - 1, 0)))
        return false;
    uint32_t second = 0;
    if (first(l, i) == '\'' && l->word[i].length > 1)
        wf_utf8_decode(l->text + l->word[i].start + 1, l->word[i].length - 1, &second);
    return letter(second) || is(l, i, "n't");
}

/* l' of "l' eau" */
static bool elided(const struct line *l, int64_t i)
{
    return i + 1 < l->count && last(l, i, 0) == '\'' && letter(last(l, i, 1)) && letter(first(l, i + 1));
}

static bool czech_decimal(const struct line *l, int64_t i)
{
    return i > 1 && all(l, i - 2, digit) && (is(l, i - 1, ".") || is(l, i - 1, ",")) && all(l, i, digit);
}

/* Whether the word begins with `small`, in ASCII of either case. */
static bool begins(const struct line *l, int64_t i, const char *small)
{
    const char *word = l->text + l->word[i].start;
    int64_t length = 0;
    while (small[length] && length < l->word[i].length && (word[length] | 0x20) == small[length])
        length++;
    return !small[length];
}

/* "je - li", "e - mail" with a word behind them */
static bool czech_dash(const struct line *l, int64_t i)
{
    if (i + 3 >= l->count || !letter(last(l, i, 0)) || !is_dash(l, i + 1))
        return false;
    return (begins(l, i + 2, "li") && l->word[i + 2].length == 2) || begins(l, i + 2, "mail");
}

/* Opening and closing by turns, counted for each kind of mark by itself. */
static bool quote(const struct line *l, int64_t i, const char *language, struct grams *counts, int *join)
{
    const char *mark = l->text + l->word[i].start;
    int64_t length = l->word[i].length;
    bool low_high = true; /* of nothing but these two, which count as one kind with " */
    for (int64_t at = 0; at < length && low_high; at += 3)
        low_high = length - at >= 3 && (memcmp(mark + at, "\xE2\x80\x9E", 3) == 0 || memcmp(mark + at, "\xE2\x80\x9C", 3) == 0);
    uint32_t node = low_high ? grams_add_word(counts, "\"", 1) : grams_add_word(counts, mark, length);
    if (node == NO_GRAM)
        return false;
    struct gram *kind = &counts->gram[node];
    if (strcmp(language, "cs") == 0 && is(l, i, "\xE2\x80\x9E"))
        kind->count = 0;
    if (strcmp(language, "cs") == 0 && is(l, i, "\xE2\x80\x9C"))
        kind->count = 1;
    if (kind->count % 2 == 0 && strcmp(language, "en") == 0 && is(l, i, "'") && i > 0 && last(l, i - 1, 0) == 's') {
        *join = JOIN_LEFT; /* "the boys ' room": no quote at all */
        return true;
    }
    *join = kind->count % 2 == 0 ? JOIN_RIGHT : JOIN_LEFT;
    kind->count++;
    return true;
}

static bool write_words(const struct line *l, const char *language, struct grams *counts, struct wf_string *out)
{
    bool english = strcmp(language, "en") == 0, czech = strcmp(language, "cs") == 0, french = strcmp(language, "fr") == 0;
    bool romance = french || strcmp(language, "it") == 0 || strcmp(language, "ga") == 0;
    bool space = false; /* none before the first word */
    for (int64_t i = 0; i < l->count; i++) {
        int join = ALONE;
        bool dash = false;
        if (cjk(first(l, i)) && strcmp(language, "ko") != 0)
            join = i > 0 && cjk(last(l, i - 1, 0)) ? JOIN_LEFT : ALONE;
        else if (all(l, i, opens))
            join = JOIN_RIGHT;
        else if (all(l, i, closes))
            join = french && l->word[i].length == 1 && strchr("?!:;\\%", l->text[l->word[i].start]) ? ALONE : JOIN_LEFT;
        else if ((english && contracted(l, i)) || (czech && czech_decimal(l, i)))
            join = JOIN_LEFT;
        else if (romance && elided(l, i))
            join = JOIN_RIGHT;
        else if (czech && czech_dash(l, i))
            join = JOIN_RIGHT, dash = true;
        else if (all(l, i, quotes) && !quote(l, i, language, counts, &join))
            return false;
        /* the French space stands even behind an opening bracket */
        bool forced = french && join == ALONE && all(l, i, closes);
        if (((space && join != JOIN_LEFT) || (forced && i > 0)) && !wf_string_char(out, ' '))
            return false;
        if (!wf_string_add(out, l->text + l->word[i].start, l->word[i].length))
            return false;
        if (dash && !wf_string_add(out, l->text + l->word[i + 1].start, l->word[i + 1].length))
            return false;
        i += dash;
        space = join != JOIN_RIGHT;
    }
    return true;
}

static bool split(const struct wf_string *text, struct word **words, int64_t *count)
{
    int64_t capacity = 0;
    for (int64_t i = 0; i < text->length;) {
        int64_t start = i;
        while (i < text->length && !blank(text->data[i]))
            i++;
        if (i == start) {
            i++;
            continue;
        }
        if (*count == capacity) {
            capacity = capacity ? 2 * capacity : 64;
            struct word *more = wf_realloc(*words, (size_t)capacity * sizeof *more);
            if (!more)
                return false;
            *words = more;
        }
        (*words)[(*count)++] = (struct word){start, i - start};
    }
    return true;
}

wf_status wf_detokenize(const char *text, int64_t length, const char *language, struct wf_string *out, wf_error *error)
{
    struct wf_segment line = {text, length};
    wf_status status = score_check(&line, "text", 1, error);
    if (status != WF_OK)
        return status;
    struct wf_string plain = {0};
    struct word *words = NULL;
    struct grams counts = {0};
    int64_t count = 0, before = out->length;
    bool fine = wf_string_char(&plain, ' ') && unescape(line.text, line.length, &plain) && wf_string_char(&plain, ' ');
    if (fine)
        join_hyphens(&plain);
    fine = fine && split(&plain, &words, &count) &&
           write_words(&(struct line){plain.data, words, count}, language ? language : "", &counts, out) && wf_string_reserve(out, 1);
    if (!fine)
        out->length = before;
    if (out->data && out->length < out->capacity)
        out->data[out->length] = 0;
    grams_free(&counts);
    wf_free(words);
    wf_string_free(&plain);
    return fine ? WF_OK : wf_error_set(error, WF_ERR_MEMORY, "no memory for %" PRId64 " bytes of text", line.length);
}
