/* SPDX-License-Identifier: MIT */
/* Detokenisation by the rules of Moses' detokenizer. For each word the rules are tried in order, and the first that fits the word
 * decides whether to write a space before it, and whether to allow one after it. */
#include <inttypes.h>
#include <string.h>

#include <utf8proc.h>

#include <weft/detokenize.h>
#include <weft/internal/needs.h>
#include <weft/internal/string.h>
#include <weft/internal/text.h>
#include <weft/internal/utf8.h>

struct word {
    const char *text;
    int64_t length; /* 0: there is no word */
};

/* --- undoing the tokenizer's escapes --------------------------------------------------------------------------------- */

/* The entities of Moses' tokenizer, including those of older versions. &amp; comes last, because "&amp;lt;" stands for the text "&lt;". */
static const char *const entities[][2] = {{"&bar;", "|"},   {"&#124;", "|"}, {"&lt;", "<"},  {"&gt;", ">"},  {"&bra;", "["}, {"&ket;", "]"},
                                          {"&quot;", "\""}, {"&apos;", "'"}, {"&#91;", "["}, {"&#93;", "]"}, {"&amp;", "&"}};

/* Replaces all entities in one pass. The result is never unescaped again, so the "&" from &amp; cannot begin another entity. */
static void unescape(const char *text, int64_t length, struct wf_string *out)
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
        wf_string_char(out, c);
        i += (int64_t)size;
    }
}

static bool blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Replaces " @-@ ", which Moses' tokenizer writes with its option -a, by "-". If two such strings share a space, only the first is
 * replaced. */
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

/* --- classes of words ------------------------------------------------------------------------------------------------ */

static bool letter(uint32_t point)
{
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)point);
    return (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO) || c == UTF8PROC_CATEGORY_NL;
}

static bool letter_or_digit(uint32_t point)
{
    return letter(point) || utf8proc_category((utf8proc_int32_t)point) == UTF8PROC_CATEGORY_ND;
}

/* Characters of scripts without spaces between words. Korean is not among them. */
static bool cjk(uint32_t point)
{
    static const uint32_t ranges[][2] = {{0x2E80, 0x312F}, {0x3190, 0xA4CF}, {0xF900, 0xFAFF},
                                         {0xFE30, 0xFE4F}, {0xFF65, 0xFF9F}, {0x20000, 0x2FFFF}};
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

static uint32_t first(const struct word *w)
{
    uint32_t point = 0;
    wf_utf8_decode(w->text, w->length, &point);
    return point;
}

static uint32_t last(const struct word *w)
{
    int size;
    return w->length > 0 ? wf_utf8_at(w->text, w->length - wf_utf8_before(w->text, w->length), &size) : 0;
}

static bool all(const struct word *w, bool (*of)(uint32_t point))
{
    int size;
    for (int64_t at = 0; at < w->length; at += size)
        if (!of(wf_utf8_at(w->text, at, &size)))
            return false;
    return true;
}

static bool is(const struct word *w, const char *text, int64_t length)
{
    return w->length == length && memcmp(w->text, text, (size_t)length) == 0;
}

/* --- rules ----------------------------------------------------------------------------------------------------------- */

enum {
    ALONE = 0,     /* spaces on both sides */
    JOIN_LEFT = 1, /* no space before the word */
    JOIN_RIGHT = 2 /* no space after the word */
};

/* Whether the word is a suffix such as the 's of "it 's", or the n't of "do n't". */
static bool contracted(const struct word *before, const struct word *w)
{
    int size;
    if (!letter_or_digit(last(before)))
        return false;
    return (w->text[0] == '\'' && w->length > 1 && letter(wf_utf8_at(w->text, 1, &size))) || is(w, "n't", 3);
}

/* How often each kind of quote has occurred in the line. Text has few kinds; if there are more than KINDS, the last entry counts all
 * further kinds together. */
enum { KINDS = 8 };
struct kind {
    struct word quote;
    int64_t count;
};

static int64_t *count_of(struct kind kinds[KINDS], struct word quote)
{
    int k = 0;
    while (k < KINDS - 1 && kinds[k].quote.length > 0 && !is(&kinds[k].quote, quote.text, quote.length))
        k++;
    kinds[k].quote = quote;
    return &kinds[k].count;
}

static bool low_or_high(uint32_t point)
{
    return point == 0x201E || point == 0x201C;
}

/* Quotes of a kind open and close in turn. German low and high quotes count as the same kind as ". */
static int quote(const struct word *before, const struct word *w, bool english, struct kind kinds[KINDS])
{
    int64_t *count = count_of(kinds, all(w, low_or_high) ? (struct word){"\"", 1} : *w);
    if (*count % 2 == 0 && english && is(w, "'", 1) && last(before) == 's')
        return JOIN_LEFT; /* an apostrophe, as in "the boys ' room" */
    return (*count)++ % 2 == 0 ? JOIN_RIGHT : JOIN_LEFT;
}

static void write_words(const struct wf_string *text, bool english, struct wf_string *out)
{
    struct kind kinds[KINDS] = {{{0}}};
    struct word before = {0};
    bool space = false; /* there is no space before the first word */
    for (int64_t at = 0, start = 0; at <= text->length; at++) {
        if (at < text->length && !blank(text->data[at]))
            continue;
        struct word word = {text->data + start, at - start};
        start = at + 1;
        if (word.length == 0)
            continue;
        int join = ALONE;
        if (cjk(first(&word)))
            join = cjk(last(&before)) ? JOIN_LEFT : ALONE;
        else if (all(&word, opens))
            join = JOIN_RIGHT;
        else if (all(&word, closes) || (english && contracted(&before, &word)))
            join = JOIN_LEFT;
        else if (all(&word, quotes))
            join = quote(&before, &word, english, kinds);
        if (space && join != JOIN_LEFT)
            wf_string_char(out, ' ');
        wf_string_add(out, word.text, word.length);
        space = join != JOIN_RIGHT;
        before = word;
    }
}

wf_status wf_detokenize(const char *text, int64_t length, const char *language, struct wf_string *out, wf_error *error)
{
    if (wf_needs(error, "text, out", wf_some(text, length), out))
        return WF_ERR_ARGUMENT;
    int64_t bad = length > 0 ? wf_utf8_check(text, length) : -1;
    if (bad >= 0)
        return wf_error_set(error, WF_ERR_FORMAT, "the tokens are not UTF-8 at byte %" PRId64 ": 0x%02X: %s", bad + 1,
                            (unsigned char)text[bad], wf_utf8_fault(text + bad, length - bad));
    struct wf_string plain = {0};
    int64_t before = out->length;
    wf_string_char(&plain, ' ');
    unescape(text, length, &plain);
    bool fine = wf_string_char(&plain, ' ');
    if (fine) {
        join_hyphens(&plain);
        write_words(&plain, language && strcmp(language, "en") == 0, out);
        fine = wf_string_add(out, "", 0);
    }
    wf_string_free(&plain);
    if (fine)
        return WF_OK;
    wf_string_cut(out, before);
    out->failed = false;
    return wf_error_set(error, WF_ERR_MEMORY, "no memory for %" PRId64 " bytes of text", length);
}
