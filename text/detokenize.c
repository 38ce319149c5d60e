/* SPDX-License-Identifier: MIT */
/* The rules of Moses' detokenizer, tried in order for each word; a rule says whether a space goes before the word and whether one may
 * go before the next. */
#include <inttypes.h>
#include <string.h>

#include <utf8proc.h>

#include <weft/detokenize.h>
#include <weft/internal/grow.h>
#include <weft/internal/string.h>
#include <weft/internal/text.h>
#include <weft/internal/utf8.h>
#include <weft/memory.h>

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

/* Scripts without spaces. Korean has them. */
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

static uint32_t first(const struct line *l, int64_t i)
{
    uint32_t point = 0;
    wf_utf8_decode(l->text + l->word[i].start, l->word[i].length, &point);
    return point;
}

static uint32_t last(const struct line *l, int64_t i)
{
    const char *word = l->text + l->word[i].start;
    int64_t at = l->word[i].length;
    uint32_t point = 0;
    while (at > 0 && ((unsigned char)word[--at] & 0xC0) == 0x80) {
    }
    wf_utf8_decode(word + at, l->word[i].length - at, &point);
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

/* --- rules ----------------------------------------------------------------------------------------------------------- */

enum { ALONE = 0, JOIN_LEFT = 1, JOIN_RIGHT = 2 }; /* to the word before, to the one after */

/* 's of "it 's", and the n't of tokenizers that split "do n't" */
static bool contracted(const struct line *l, int64_t i)
{
    if (i == 0 || !letter_or_digit(last(l, i - 1)))
        return false;
    uint32_t second = 0;
    if (first(l, i) == '\'' && l->word[i].length > 1)
        wf_utf8_decode(l->text + l->word[i].start + 1, l->word[i].length - 1, &second);
    return letter(second) || is(l, i, "n't");
}

/* How often each kind of mark was met. A line with more kinds than these is no text; its last ones count together. */
enum { KINDS = 8 };
struct kind {
    const char *mark;
    int64_t length, count;
};

static int64_t *count_of(struct kind kinds[KINDS], const char *mark, int64_t length)
{
    int k = 0;
    while (k < KINDS - 1 && kinds[k].mark && (kinds[k].length != length || memcmp(kinds[k].mark, mark, (size_t)length) != 0))
        k++;
    kinds[k].mark = mark;
    kinds[k].length = length;
    return &kinds[k].count;
}

static bool low_or_high(uint32_t point)
{
    return point == 0x201E || point == 0x201C;
}

/* Opening and closing by turns, counted for each kind of mark separately; low and high German marks count as one kind with ". */
static int quote(const struct line *l, int64_t i, bool english, struct kind kinds[KINDS])
{
    bool german = all(l, i, low_or_high);
    int64_t *count = german ? count_of(kinds, "\"", 1) : count_of(kinds, l->text + l->word[i].start, l->word[i].length);
    if (*count % 2 == 0 && english && is(l, i, "'") && i > 0 && last(l, i - 1) == 's')
        return JOIN_LEFT; /* "the boys ' room": no quote at all */
    return (*count)++ % 2 == 0 ? JOIN_RIGHT : JOIN_LEFT;
}

static void write_words(const struct line *l, bool english, struct wf_string *out)
{
    struct kind kinds[KINDS] = {{0}};
    bool space = false; /* none before the first word */
    for (int64_t i = 0; i < l->count; i++) {
        int join = ALONE;
        if (cjk(first(l, i)))
            join = i > 0 && cjk(last(l, i - 1)) ? JOIN_LEFT : ALONE;
        else if (all(l, i, opens))
            join = JOIN_RIGHT;
        else if (all(l, i, closes) || (english && contracted(l, i)))
            join = JOIN_LEFT;
        else if (all(l, i, quotes))
            join = quote(l, i, english, kinds);
        if (space && join != JOIN_LEFT)
            wf_string_char(out, ' ');
        wf_string_add(out, l->text + l->word[i].start, l->word[i].length);
        space = join != JOIN_RIGHT;
    }
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
        if (!wf_grow(words, &capacity, *count + 1, sizeof **words))
            return false;
        (*words)[(*count)++] = (struct word){start, i - start};
    }
    return true;
}

wf_status wf_detokenize(const char *text, int64_t length, const char *language, struct wf_string *out, wf_error *error)
{
    int64_t bad = length > 0 ? wf_utf8_check(text, length) : -1;
    if (bad >= 0)
        return wf_error_set(error, WF_ERR_FORMAT, "the tokens are not UTF-8 at byte %" PRId64 ": 0x%02X: %s", bad + 1,
                            (unsigned char)text[bad], wf_utf8_fault(text + bad, length - bad));
    struct wf_string plain = {0};
    struct word *words = NULL;
    int64_t count = 0, before = out->length;
    wf_string_char(&plain, ' ');
    unescape(text, length, &plain);
    bool fine = wf_string_char(&plain, ' ');
    if (fine) {
        join_hyphens(&plain);
        fine = split(&plain, &words, &count);
    }
    if (fine) {
        write_words(&(struct line){plain.data, words, count}, language && strcmp(language, "en") == 0, out);
        fine = wf_string_add(out, "", 0);
    }
    wf_free(words);
    wf_string_free(&plain);
    if (fine)
        return WF_OK;
    wf_string_cut(out, before);
    out->failed = false;
    return wf_error_set(error, WF_ERR_MEMORY, "no memory for %" PRId64 " bytes of text", length);
}
