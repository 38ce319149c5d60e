/* SPDX-License-Identifier: MIT */
/* Translates regular expressions of Oniguruma to PCRE2. What would match other text in PCRE2 is rewritten, or refused as a problem. */
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <utf8proc.h>

#include "pattern.h"
#include <weft/internal/utf8.h>
#include <weft/memory.h>

/* Members of Oniguruma 6.9's classes, found by trying every code point. BARE is \w outside of brackets, which also has six numbers of
 * Latin-1. */
#define WORD "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}"
#define BARE WORD "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}"
#define SPACE "\\t-\\r\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
#define HEX "0-9a-fA-F"

struct translation {
    const char *text;
    int64_t length; /* number of bytes of `text` */
    int64_t at;     /* index of the next byte */
    struct wf_string *out;
    const char *problem; /* syntax without a translation; NULL: none so far */
    bool full;           /* there was no memory */
    bool folds;          /* an option (?i) has occurred, so letters after it may match in either case */
    char before;         /* the character copied last, in lower case, if it was an ASCII letter outside of brackets; else 0 */
};

static void put(struct translation *t, const char *bytes, int64_t length)
{
    t->full = t->full || !wf_string_add(t->out, bytes, length);
}

static void put_text(struct translation *t, const char *text)
{
    put(t, text, (int64_t)strlen(text));
}

/* Copies the next `length` bytes unchanged. */
static void copy(struct translation *t, int64_t length)
{
    put(t, t->text + t->at, length);
    t->at += length;
}

static bool next_is(const struct translation *t, const char *text)
{
    int64_t n = (int64_t)strlen(text);
    return t->length - t->at >= n && !memcmp(t->text + t->at, text, (size_t)n);
}

/* Copies a character that matches itself. If case is ignored, Oniguruma lets "ss" match the sharp s and "fi" the ligature, but PCRE2 does
 * not. So such a pattern has no translation. */
static void literal(struct translation *t, bool inside)
{
    static const char pairs[][2] = {{'s', 's'}, {'s', 't'}, {'f', 'f'}, {'f', 'i'}, {'f', 'l'}};
    int size, boundary = 0;
    utf8proc_int32_t folded[8];
    uint32_t point = wf_utf8_at(t->text, t->at, &size);
    char letter = (point | 32) >= 'a' && (point | 32) <= 'z' && !inside ? (char)(point | 32) : 0;
    bool several = point >= 0x80 && utf8proc_decompose_char((utf8proc_int32_t)point, folded, 8, UTF8PROC_CASEFOLD, &boundary) > 1;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        several = several || (t->before == pairs[i][0] && letter == pairs[i][1]);
    if (t->folds && several)
        t->problem = "letters that are another character together where case does not count (ss, st, ff, fi, fl)";
    copy(t, size);
    t->before = letter;
}

static bool compiles(const char *pattern)
{
    int code;
    PCRE2_SIZE offset;
    pcre2_code *test = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_UTF, &code, &offset, NULL);
    pcre2_code_free(test);
    return test != NULL;
}

/* Translates \p{...}. In Oniguruma \p{Han} has the characters of the script Han. In PCRE2 it also has characters
 * of other scripts for which Unicode's Script_Extensions list Han, so the translation is \p{sc:Han}. */
static void property(struct translation *t)
{
    char name[48], test[64];
    const char *close = memchr(t->text + t->at, '}', (size_t)(t->length - t->at));
    int64_t n = close ? close - (t->text + t->at) + 1 : 0;
    if (t->text[t->at + 2] != '{' || n < 5 || n > 40) {
        t->problem = "a property without braces or with a long name";
        return;
    }
    bool negated = t->text[t->at + 3] == '^';
    snprintf(name, sizeof name, "%.*s", (int)(n - 4 - negated), t->text + t->at + 3 + negated);
    snprintf(test, sizeof test, "\\p{sc:%s}", name);
    const char *kind = strlen(name) > 2 && !strpbrk(name, ":=^") && compiles(test) ? "sc:" : "";
    put(t, (const char[]){'\\', t->text[t->at + 1]}, 2);
    put_text(t, negated ? "{^" : "{");
    put_text(t, kind);
    put_text(t, name);
    put_text(t, "}");
    t->at += n;
}

/* Translations of escapes of one letter, outside and inside of brackets. "": there is no translation. NULL: the escape stays unchanged. */
static const struct escape {
    char letter;
    const char *outside, *inside;
} escapes[] = {
    {'w', "[" BARE "]", WORD},
    {'W', "[^" BARE "]", ""},
    {'s', "[" SPACE "]", SPACE},
    {'S', "[^" SPACE "]", "\\S\\x{180e}"},
    {'h', "[" HEX "]", HEX},
    {'H', "[^" HEX "]", ""},
    {'b', "(?:(?<=[" BARE "])(?![" BARE "])|(?<![" BARE "])(?=[" BARE "]))", NULL},
    {'B', "(?:(?<=[" BARE "])(?=[" BARE "])|(?<![" BARE "])(?![" BARE "]))", ""},
    {'v', "\\x0b", "\\x0b"},
    {'R', "(?>\\r\\n|[\\n-\\r\\x{85}\\x{2028}\\x{2029}])", ""},
};

static void escape(struct translation *t, bool inside)
{
    char letter = t->at + 1 < t->length ? t->text[t->at + 1] : 0;
    if (letter == 'p' || letter == 'P') {
        property(t);
        return;
    }
    if (letter == 'x' && (next_is(t, "\\x{") || (t->at + 2 < t->length && t->text[t->at + 2] >= '0' && t->text[t->at + 2] <= '7'))) {
        copy(t, 2);
        return;
    }
    if (letter == 'u' && t->length - t->at >= 6 && strspn(t->text + t->at + 2, "0123456789abcdefABCDEF") >= 4) {
        put_text(t, "\\x{");
        put(t, t->text + t->at + 2, 4);
        put_text(t, "}");
        t->at += 6;
        return;
    }
    bool is_letter = (letter | 32) >= 'a' && (letter | 32) <= 'z';
    bool same = letter && (!is_letter || strchr(inside ? "dDtnrfae" : "dDtnrfaeAZzKk", letter));
    const char *becomes = same ? NULL : "";
    for (size_t i = 0; is_letter && i < sizeof escapes / sizeof *escapes; i++)
        if (escapes[i].letter == letter)
            becomes = inside ? escapes[i].inside : escapes[i].outside;
    if (!becomes) {
        copy(t, 2);
        return;
    }
    if (!*becomes)
        t->problem = "an escape that is not known here";
    put_text(t, becomes);
    t->at += 2;
}

/* Translates a class [...], from its opening bracket on. */
static void class(struct translation *t)
{
    static const struct {
        const char *name, *becomes;
    } posix[] = {{"[:space:]", SPACE}, {"[:digit:]", "\\p{Nd}"}, {"[:xdigit:]", HEX}, {"[:alpha:]", "\\p{Alphabetic}"}, {"[:word:]", WORD}};
    copy(t, 1);
    if (next_is(t, "^"))
        copy(t, 1);
    for (bool first = true; t->at < t->length && !t->problem; first = false) {
        char c = t->text[t->at];
        if (c == ']' && !first) {
            copy(t, 1);
            return;
        }
        if (c == '\\') {
            escape(t, true);
        } else if (c == '[') {
            size_t i = 0;
            while (i < sizeof posix / sizeof *posix && !next_is(t, posix[i].name))
                i++;
            if (i == sizeof posix / sizeof *posix) {
                t->problem = "a class in a class";
                return;
            }
            put_text(t, posix[i].becomes);
            t->at += (int64_t)strlen(posix[i].name);
        } else if (next_is(t, "&&")) {
            t->problem = "an intersection of classes";
        } else {
            literal(t, true);
        }
    }
    if (!t->problem)
        t->problem = "a class without an end";
}

/* Translates what follows an opening parenthesis: the kind of a group, or options. Oniguruma's (?m) is PCRE2's (?s). */
static void group(struct translation *t)
{
    if (next_is(t, "(*")) {
        t->problem = "a callout";
        return;
    }
    bool plain = !next_is(t, "(?");
    if (plain || (t->text[t->at + 2] && strchr(":=!><#", t->text[t->at + 2]))) {
        copy(t, plain ? 1 : 3);
        return;
    }
    for (copy(t, 2); t->at < t->length; t->at++) {
        char c = t->text[t->at];
        if (c == ':' || c == ')')
            return;
        if (c != 'i' && c != 'x' && c != 'm' && c != '-')
            break;
        put(t, c == 'm' ? "s" : &c, 1);
        t->folds = t->folds || c == 'i';
    }
    t->problem = "a group of a kind that is not known here";
}

/* Translates an interval {n,m}. Any other opening brace matches itself. */
static void interval(struct translation *t)
{
    const char *p = t->text + t->at + 1;
    size_t low = strspn(p, "0123456789"), comma = p[low] == ',', high = comma ? strspn(p + low + 1, "0123456789") : 0;
    size_t n = low + comma + high;
    if (p[n] != '}' || low + high == 0) {
        put_text(t, "\\{");
        t->at++;
        return;
    }
    if (p[n + 1] == '+' || (p[n + 1] == '?' && !comma)) {
        t->problem = "a repeated interval";
        return;
    }
    put_text(t, low ? "{" : "{0");
    put(t, p, (int64_t)n + 1);
    t->at += (int64_t)n + 2;
}

wf_status regex_translate(const char *text, int64_t length, struct wf_string *out, const char **problem)
{
    struct translation t = {.text = text, .length = length, .out = out};
    if (!wf_string_reserve(out, length))
        return WF_ERR_MEMORY;
    while (t.at < t.length && !t.problem && !t.full) {
        char c = text[t.at];
        if (strchr("\\[({", c))
            t.before = 0;
        if (c == '\\') {
            escape(&t, false);
        } else if (c == '[') {
            class(&t);
        } else if (c == '(') {
            group(&t);
        } else if (c == '{') {
            interval(&t);
        } else {
            literal(&t, false);
        }
    }
    *problem = t.problem;
    return t.full ? WF_ERR_MEMORY : t.problem ? WF_ERR_FORMAT : WF_OK;
}
