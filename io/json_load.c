/* SPDX-License-Identifier: MIT */
/* Parses JSON with jansson. Adds what jansson lacks: surviving a lack of memory, and a limit of the depth of nesting. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <weft/file.h>
#include <weft/internal/foreign.h>
#include <weft/internal/json.h>
#include <weft/internal/lines.h>
#include <weft/internal/locale_c.h>
#include <weft/internal/minmax.h>
#include <weft/memory.h>

/* jansson's lexer does not check whether the buffer of its token could grow. Without memory it would lose characters, such as the closing
 * quote, and read past the end. So each parse begins by allocating a reserve. When an allocation fails for the first time, the reserve is
 * freed, the allocation is repeated, and the text ends there (see next_piece). All that jansson still allocates then fits into the freed
 * memory, and the result is thrown away. */
static _Thread_local bool no_memory;
static _Thread_local void *reserve;

enum { PIECE = 64, RESERVE = 1 << 16 };

static void *json_memory(size_t bytes)
{
    void *block = wf_alloc(bytes);
    if (block)
        return block;
    no_memory = true;
    if (!reserve)
        return NULL;
    wf_free(reserve);
    reserve = NULL;
    return wf_alloc(bytes);
}

static void set_functions(void)
{
    json_set_alloc_funcs(json_memory, wf_free);
}

void wf_json_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_functions);
}

void wf_json_memory_clear(void)
{
    no_memory = false;
}

bool wf_json_memory_failed(void)
{
    return no_memory;
}

/* Returns the offset of the first bracket that opens a level deeper than `limit`, or -1. This is checked before jansson parses the text,
 * because jansson calls itself for each level, up to 2048 deep. *longest becomes the length of the longest token or more; the reserve is
 * made large enough for it. The text need not be well-formed. */
static int64_t too_deep(const char *text, int64_t bytes, int limit, int64_t *longest)
{
    int depth = 0;
    int64_t start = 0; /* where the token begins */
    *longest = 0;
    for (int64_t i = 0; i < bytes; i++) {
        char c = text[i];
        if (c == '"') {
            for (i++; i < bytes && text[i] != '"'; i++)
                if (text[i] == '\\')
                    i++;
        } else if (c == '{' || c == '[') {
            if (++depth > limit)
                return i;
        } else if (c == '}' || c == ']') {
            depth--;
        } else if (c != ',' && c != ':' && c != ' ' && c != '\n') {
            continue;
        }
        if (i + 1 - start > *longest)
            *longest = i + 1 - start;
        start = i + 1;
    }
    if (bytes - start > *longest)
        *longest = bytes - start;
    return -1;
}

/* Sets *out to the place of a byte. Lines and columns count from 1; columns are characters. */
static void place_of(const char *text, int64_t offset, json_error_t *out)
{
    out->position = (int)offset;
    out->line = out->column = 1;
    for (int64_t i = 0; i < offset; i++) {
        out->column = text[i] == '\n' ? 1 : out->column + ((text[i] & 0xc0) != 0x80);
        out->line += text[i] == '\n';
    }
}

static bool is_blank(const char *text, int64_t bytes)
{
    while (bytes > 0 && memchr(" \t\r\n", text[bytes - 1], 4))
        bytes--;
    return bytes == 0;
}

struct source {
    const char *text;
    int64_t bytes, at;
};

/* Supplies the text in small pieces, so that it ends soon after an allocation has failed. */
static size_t next_piece(void *buffer, size_t room, void *data)
{
    struct source *source = data;
    int64_t left = source->bytes - source->at, most = room < PIECE ? (int64_t)room : PIECE, piece = WF_MIN(left, most);
    if (no_memory)
        return (size_t)-1;
    memcpy(buffer, source->text + source->at, (size_t)piece);
    source->at += piece;
    return (size_t)piece;
}

static json_t *parse(const char *text, int64_t bytes, int64_t longest, json_error_t *reason)
{
    wf_json_memory_clear();
    reserve = wf_alloc((size_t)(RESERVE + 4 * longest));
    if (!reserve) {
        no_memory = true;
        return NULL;
    }
    locale_t before = locale_c_enter();
    json_t *value = json_load_callback(next_piece, &(struct source){text, bytes, 0}, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, reason);
    locale_c_leave(before);
    wf_free(reserve);
    reserve = NULL;
    if (value && no_memory) {
        json_decref(value);
        return NULL;
    }
    return value;
}

json_t *wf_json_decode(const char *text, int64_t bytes, int depth, json_error_t *failure)
{
    wf_json_init();
    int64_t longest, deep = too_deep(text, bytes, depth, &longest);
    *failure = (json_error_t){0};
    json_t *value = deep < 0 ? parse(text, bytes, longest, failure) : NULL;
    if (deep >= 0) {
        wf_json_memory_clear();
        place_of(text, deep, failure);
        snprintf(failure->text, sizeof failure->text, "nested more than %d deep", depth);
    } else if (!value) {
        /* jansson gives the place of the last character that it has read, or column 0 if it has read none. Report at least line 1, column
         * 1. */
        failure->position = WF_MAX(failure->position, 0);
        failure->line = failure->line > 0 ? failure->line : 1;
        failure->column = failure->column > 0 ? failure->column : 1;
        if (is_blank(text, bytes))
            snprintf(failure->text, sizeof failure->text, "empty; JSON is expected");
    }
    return value;
}

json_t *wf_json_parse(const char *text, int64_t bytes, const char *where, wf_error *error)
{
    return wf_json_parse_line(text, bytes, where, 1, error);
}

json_t *wf_json_parse_line(const char *text, int64_t bytes, const char *where, int64_t line, wf_error *error)
{
    json_error_t failure;
    json_t *value = wf_json_decode(text, bytes, WF_JSON_MAX_DEPTH, &failure);
    if (!value && wf_json_memory_failed())
        wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for %" PRId64 " bytes of JSON", where, bytes);
    else if (!value)
        wf_error_set(error, WF_ERR_FORMAT, "%s:%" PRId64 ":%d: %s", where, line - 1 + failure.line, failure.column, failure.text);
    return value;
}

json_t *wf_json_load(const char *path, int64_t limit, wf_error *error)
{
    int64_t bytes;
    char *text = wf_file_load(path, limit, &bytes, error);
    if (!text)
        return NULL;
    wf_error failure = {0};                          /* `error` may be NULL */
    const int64_t mark = wf_line_first(text, bytes); /* RFC 8259 allows to ignore a byte order mark, which some editors write */
    json_t *value = wf_json_parse(text + mark, bytes - mark, path, &failure);
    const char *foreign = !value && failure.code == WF_ERR_FORMAT ? wf_foreign(text, bytes) : NULL;
    /* jansson's words if the text ends too early */
    const bool cut = strstr(failure.message, "near end of file") || strstr(failure.message, "premature end of input");
    if (foreign)
        wf_error_set(error, WF_ERR_FORMAT, "%s: %s", path, foreign);
    else if (!value && cut)
        wf_error_set(error, failure.code, "%s: is it truncated? Copy or download it again", failure.message);
    else if (!value)
        wf_error_set(error, failure.code, "%s", failure.message);
    wf_free(text);
    return value;
}
