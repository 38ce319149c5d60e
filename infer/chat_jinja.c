/* SPDX-License-Identifier: MIT */
/* Rewrites a chat template in Jinja in a canonical form, which is the same for templates that differ only in layout:
 *
 * - No white space outside of strings, no comments, strings in single quotes with their escapes replaced.
 * - Text outside of tags becomes a string in a tag {{...}}, after white space was removed as transformers sets it in Jinja: trim_blocks and
 *   lstrip_blocks on, keep_trailing_newline off. Adjacent tags {{a}}{{b}} become {{a+b}}, and 'a'+'b' becomes 'ab'.
 * - x.role and x.content become x['role'] and x['content'], and .strip() becomes |trim. */
#include <ctype.h>
#include <string.h>

#include <weft/internal/string.h>

#include "chat_form.h"

struct canon {
    struct wf_string out;
    const char *at, *end; /* the rest of the template */
    int64_t closed;       /* length of `out` behind the last string; a string that follows it or a + behind it joins it */
    int64_t shown;        /* length of `out` behind the last tag }} */
    bool trim_newline;    /* the tag before was a block or comment, behind which one line end is dropped */
    bool trim_space;      /* the tag before ended with - */
    bool line_start;      /* what was read so far ends at the start of a line */
};

static bool ends_with(const struct wf_string *s, const char *text)
{
    int64_t length = (int64_t)strlen(text);
    return s->length >= length && memcmp(s->data + s->length - length, text, (size_t)length) == 0;
}

/* Begins a string, or continues the string before: 'a' 'b' and 'a'+'b' are one. */
static void open_string(struct canon *c)
{
    const bool sum = c->closed > 0 && c->out.length == c->closed + 1 && ends_with(&c->out, "+");
    if (sum || (c->closed > 0 && c->out.length == c->closed))
        wf_string_cut(&c->out, c->closed - 1);
    else
        wf_string_char(&c->out, '\'');
}

static void close_string(struct canon *c)
{
    wf_string_char(&c->out, '\'');
    c->closed = c->out.length;
}

static void put_character(struct canon *c, char character)
{
    if (character == '\'' || character == '\\')
        wf_string_char(&c->out, '\\');
    wf_string_char(&c->out, character);
}

/* Begins a tag {{, or continues the one before. */
static void open_shown(struct canon *c)
{
    if (c->shown > 0 && c->shown == c->out.length) {
        wf_string_cut(&c->out, c->out.length - 2);
        wf_string_char(&c->out, '+');
    } else {
        wf_string_text(&c->out, "{{");
    }
}

static void close_shown(struct canon *c)
{
    wf_string_text(&c->out, "}}");
    c->shown = c->out.length;
}

/* Copies a string of the template. */
static void take_string(struct canon *c)
{
    const char quote = *c->at++;
    open_string(c);
    for (; c->at < c->end && *c->at != quote; c->at++) {
        char character = *c->at;
        if (character == '\\' && c->at + 1 < c->end) {
            character = *++c->at;
            character = character == 'n' ? '\n' : character == 't' ? '\t' : character == 'r' ? '\r' : character;
        }
        if (character != '\r') /* Jinja reads line ends of every kind as \n */
            put_character(c, character);
    }
    c->at += c->at < c->end;
    close_string(c);
}

static bool is_word(char character)
{
    return isalnum((unsigned char)character) || character == '_';
}

/* Replaces another form of the same at the template's place, and moves behind it. */
static bool take_form(struct canon *c)
{
    static const char *const forms[][2] = {{".strip()", "|trim"}, {".role", "['role']"}, {".content", "['content']"}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        int64_t length = (int64_t)strlen(forms[i][0]);
        if (c->end - c->at < length || memcmp(c->at, forms[i][0], (size_t)length) != 0 ||
            (i > 0 && c->at + length < c->end && (is_word(c->at[length]) || c->at[length] == '(')))
            continue;
        c->at += length;
        return wf_string_text(&c->out, forms[i][1]);
    }
    return false;
}

/* Copies the inside of a tag up to `close`, "}}" or "%}", and moves behind it. */
static void take_code(struct canon *c, const char *close)
{
    while (c->at < c->end && !(c->at + 1 < c->end && c->at[0] == close[0] && c->at[1] == close[1])) {
        const bool dash = (*c->at == '-' || *c->at == '+') && c->at + 2 < c->end && c->at[1] == close[0] && c->at[2] == close[1];
        if (*c->at == '\'' || *c->at == '"')
            take_string(c);
        else if (dash || isspace((unsigned char)*c->at))
            c->at++;
        else if (*c->at != '.' || !take_form(c))
            wf_string_char(&c->out, *c->at++);
    }
}

/* Appends the text data[length] that is outside of tags. `next` is the kind of the tag behind it ('{', '%', '#' or 0 for the end), and
 * `dash` the sign behind the tag's beginning. */
static void put_data(struct canon *c, const char *data, int64_t length, char next, char dash)
{
    const char *end = data + length;
    while (c->trim_space && data < end && isspace((unsigned char)*data))
        c->line_start = *data++ == '\n';
    if (c->trim_newline && !c->trim_space && data < end && *data == '\r')
        data++;
    if (c->trim_newline && !c->trim_space && data < end && *data == '\n') {
        data++;
        c->line_start = true;
    }
    if (next && dash == '-')
        while (end > data && isspace((unsigned char)end[-1]))
            end--;
    if ((next == '%' || next == '#') && dash != '+' && dash != '-') {
        const char *line = end;
        while (line > data && (line[-1] == ' ' || line[-1] == '\t'))
            line--;
        if (line > data ? line[-1] == '\n' : c->line_start)
            end = line;
    }
    if (data == end)
        return;
    open_shown(c);
    open_string(c);
    for (; data < end; data++)
        if (*data != '\r')
            put_character(c, *data);
    close_string(c);
    close_shown(c);
}

static const char *find_tag(const char *at, const char *end)
{
    for (; at + 1 < end; at++)
        if (at[0] == '{' && (at[1] == '{' || at[1] == '%' || at[1] == '#'))
            return at;
    return end;
}

/* Copies the tag at the template's place, and notes how white space behind it is treated. */
static void take_tag(struct canon *c)
{
    const char kind = c->at[1];
    c->at += 2;
    if (c->at < c->end && (*c->at == '-' || *c->at == '+'))
        c->at++;
    if (kind == '#') {
        const char *close = memmem(c->at, (size_t)(c->end - c->at), "#}", 2);
        c->at = close ? close : c->end;
    } else if (kind == '%') {
        wf_string_text(&c->out, "{%");
        take_code(c, "%}");
        wf_string_text(&c->out, "%}");
    } else {
        open_shown(c);
        take_code(c, "}}");
        close_shown(c);
    }
    const char sign = c->at > c->end - 1 ? 0 : c->at[-1];
    c->trim_space = sign == '-';
    c->trim_newline = kind != '{' && sign != '+';
    c->line_start = false;
    c->at = c->end - c->at < 2 ? c->end : c->at + 2;
}

void chat_canonical(const char *jinja, int64_t length, struct wf_string *out)
{
    length -= length > 0 && jinja[length - 1] == '\n';
    struct canon c = {.at = jinja, .end = jinja + length, .line_start = true};
    while (c.at < c.end) {
        const char *tag = find_tag(c.at, c.end);
        put_data(&c, c.at, tag - c.at, tag < c.end ? tag[1] : 0, tag + 2 < c.end ? tag[2] : 0);
        c.at = tag;
        if (tag < c.end)
            take_tag(&c);
    }
    wf_string_add(&c.out, "", 0); /* an empty template is a string too */
    *out = c.out;
}
