/* SPDX-License-Identifier: MIT */
/* Makes labels of tokens in which every character is visible, and cleans text for pictures (labels.h). */
#include "labels.h"

#include <string.h>

#include <utf8proc.h>

#include <weft/internal/encode.h>
#include <weft/internal/string.h>
#include <weft/internal/utf8.h>
#include <weft/memory.h>

enum { JOINER = 0x200D, NON_JOINER = 0x200C, DOTTED_CIRCLE = 0x25CC };

/* --- pieces to bytes ----------------------------------------------------------------------------------------------- */

/* Whether `piece`, the text of a token in the vocabulary, is plain text, as for an added token ("<été>"), and not a byte-level code. It is
 * plain text if the tokenizer encodes it as exactly this token. (This can also be true for a code such as "the", but then the code is equal
 * to the text that it stands for.) */
static wf_status find_literal(const wf_tokenizer *tokenizer, int32_t id, const char *piece, int64_t length, bool *literal)
{
    struct wf_tokens ids = {0};
    wf_error unsaid = {0}; /* an error means only that the tokenizer cannot encode the text, so it is not reported */
    wf_status status = wf_tokenizer_encode_with(tokenizer, piece, length, &(struct wf_encode_options){.whole = true}, &ids, &unsaid);
    *literal = status == WF_OK && ids.count == 1 && ids.id[0] == id;
    wf_tokens_free(&ids);
    return status == WF_ERR_MEMORY ? status : WF_OK;
}

/* Appends the bytes that a byte-level piece stands for; false if some character of the piece is not the code of a byte. */
static bool piece_bytes(const char *piece, int64_t length, struct wf_string *out)
{
    for (int64_t i = 0; i < length;) {
        uint32_t point;
        int size = wf_utf8_decode(piece + i, length - i, &point), byte = size > 0 ? unicode_to_byte(point) : -1;
        if (byte < 0)
            return false;
        wf_string_char(out, (char)byte);
        i += size;
    }
    return true;
}

/* --- characters to labels ------------------------------------------------------------------------------------------ */

static void add_number(struct wf_string *t, uint32_t point)
{
    wf_string_format(t, "<U+%04X>", (unsigned)point);
}

/* True for characters that draw nothing: spaces, and a few characters that Unicode counts as letters or symbols. */
static bool blank(uint32_t point)
{
    return utf8proc_category((utf8proc_int32_t)point) == UTF8PROC_CATEGORY_ZS || point == 0x115F || point == 0x1160 || point == 0x2800 ||
           point == 0x3164 || point == 0xFFA0;
}

static bool mark(uint32_t point)
{
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)point);
    return c == UTF8PROC_CATEGORY_MN || c == UTF8PROC_CATEGORY_ME || c == UTF8PROC_CATEGORY_MC;
}

/* True if the character at text[at] has a character before it and a visible one after it. A joiner is shown only there, where it shapes
 * Persian words or emoji. */
static bool between(const char *text, int64_t length, int64_t at, int64_t size)
{
    uint32_t next;
    return at > 0 && at + size < length && wf_utf8_decode(text + at + size, length - at - size, &next) > 0 && wf_utf8_printable(next);
}

static void add_visible(struct wf_string *t, const char *text, int64_t length, int64_t at, int64_t size, uint32_t point)
{
    if (point == ' ')
        wf_string_point(t, 0x2581);
    else if (point == '\n')
        wf_string_point(t, 0x23CE);
    else if (point == '\t')
        wf_string_point(t, 0x21E5);
    else if (point < 0x20)
        wf_string_point(t, 0x2400 + point);
    else if (point == 0x7F)
        wf_string_point(t, 0x2421);
    else if (mark(point)) {
        if (t->length == 0)
            wf_string_point(t, DOTTED_CIRCLE); /* a combining mark needs a character to combine with */
        wf_string_point(t, point);
    } else if ((wf_utf8_printable(point) && !blank(point)) || ((point == JOINER || point == NON_JOINER) && between(text, length, at, size)))
        wf_string_point(t, point);
    else
        add_number(t, point);
}

static char *visible(const char *text, int64_t length)
{
    struct wf_string t = {0};
    for (int64_t i = 0; i < length;) {
        uint32_t point;
        int size = wf_utf8_decode(text + i, length - i, &point);
        if (size > 0)
            add_visible(&t, text, length, i, size, point);
        else
            wf_string_format(&t, "<%02X>", (unsigned)(unsigned char)text[i]);
        i += size > 0 ? size : 1;
    }
    if (length == 0)
        wf_string_point(&t, 0x2205); /* an empty token is shown as the sign of the empty set */
    if (t.failed)
        wf_string_free(&t);
    return t.data;
}

char *label_of(const wf_tokenizer *tokenizer, int32_t id)
{
    int64_t length;
    struct wf_string bytes = {0};
    const char *piece = wf_tokenizer_token(tokenizer, id, &length);
    bool literal = true;
    if (wf_tokenizer_kind_of(tokenizer) == WF_TOKENIZER_BYTE_BPE && find_literal(tokenizer, id, piece, length, &literal) != WF_OK)
        return NULL;
    bool coded = !literal && piece_bytes(piece, length, &bytes);
    char *label = bytes.failed ? NULL : coded ? visible(bytes.data, bytes.length) : visible(piece, length);
    wf_string_free(&bytes);
    return label;
}

void labels_free(char **labels, int64_t count)
{
    for (int64_t i = 0; labels && i < count; i++)
        wf_free(labels[i]);
    wf_free(labels);
}

/* --- widths -------------------------------------------------------------------------------------------------------- */

static double point_width(uint32_t point)
{
    if (point < 0x80) {
        if (strchr("mwMW@%", (int)point))
            return 1.0;
        if (strchr("#&+<=>^~", (int)point))
            return 0.84;
        if (strchr("fijlrtI.,:;!|'()[]- ", (int)point))
            return 0.45;
        return point >= 'A' && point <= 'Z' ? 0.78 : 0.64;
    }
    int columns = utf8proc_charwidth((utf8proc_int32_t)point);
    return columns == 0 ? 0 : columns == 2 ? 1.05 : point < 0x250 ? 0.8 : 0.85;
}

double label_width(const char *text)
{
    double width = 0;
    int64_t length = (int64_t)strlen(text);
    for (int64_t i = 0; i < length;) {
        uint32_t point;
        int size = wf_utf8_decode(text + i, length - i, &point);
        width += size > 0 ? point_width(point) : 0.64;
        i += size > 0 ? size : 1;
    }
    return width;
}

char *label_shorten(const char *text, double most)
{
    double width = 0;
    int64_t length = (int64_t)strlen(text), cut = 0;
    utf8proc_int32_t state = 0;
    uint32_t before = 0;
    if (label_width(text) <= most)
        return wf_strdup(text);
    for (int64_t i = 0; i < length;) {
        uint32_t point;
        int size = wf_utf8_decode(text + i, length - i, &point);
        if (size <= 0)
            break;
        if (i > 0 && utf8proc_grapheme_break_stateful((utf8proc_int32_t)before, (utf8proc_int32_t)point, &state))
            cut = i;
        width += point_width(point);
        if (width > most - 1 && cut > 0)
            break;
        before = point;
        i += size;
    }
    return cut > 0 ? wf_format("%.*s…", (int)cut, text) : wf_strdup(text);
}

/* --- text from outside --------------------------------------------------------------------------------------------- */

void label_clean(struct wf_string *out, const char *text, int64_t length, bool controls)
{
    for (int64_t i = 0; i < length;) {
        uint32_t c;
        int size = wf_utf8_decode(text + i, length - i, &c);
        bool shown = c >= 0x20 && (c < 0x7f || c >= 0xa0) && c != 0xfffe && c != 0xffff; /* XML 1.0 does not allow the last two */
        if (size > 0 && (shown || controls))
            wf_string_add(out, text + i, size);
        else
            wf_string_point(out, 0xfffd);
        i += size > 0 ? size : 1;
    }
    wf_string_add(out, "", 0); /* makes out->data a string even for an empty text */
}

void label_replace(struct wf_string *out, const char *text, const char *old, const char *new)
{
    for (const char *found; (found = strstr(text, old)); text = found + strlen(old)) {
        wf_string_add(out, text, found - text);
        wf_string_text(out, new);
    }
    wf_string_text(out, text);
}
