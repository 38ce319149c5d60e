/* SPDX-License-Identifier: MIT */
/* Reads the patterns of a tokenizer's file, and finds all matches of a pattern in a text, with limits on the time. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "pattern.h"
#include <weft/internal/json.h>
#include <weft/internal/text.h>
#include <weft/internal/utf8.h>
#include <weft/memory.h>

enum {
    MOST_BYTES = 65536,   /* maximum length of a pattern */
    HEAP_KIB = 256 * 1024 /* maximum memory of a match, in KiB */
};
/* Limits against malicious patterns. A match is first searched in a window of WINDOW bytes with at most STEPS of PCRE2's steps, so that a
 * position costs little. If these do not suffice, positions are tried one by one, and at each the window or the steps are doubled until
 * they suffice. The search gives up at the maximum number of steps, or when the time for the text is over. The number of steps alone does
 * not limit the cost, because one step may look at the whole window. The patterns of real tokenizers do not need these limits. PCRE2's JIT
 * is not used, since it does not count most steps. */
enum { WINDOW = 256, STEPS = 64, MOST_STEPS = 1000000, MOST_STEPS_A_BYTE = 16 };
/* The caller's function `cancelled` is called after every ASK matches, and before an attempt in a window of more than ASK_WINDOW bytes. If
 * it returns true, the search ends with the code CANCELLED. */
enum { ASK = 1 << 14, ASK_WINDOW = 1 << 20, CANCELLED = INT32_MIN };
static const double most_seconds = 1, most_seconds_a_byte = 5e-6;

static void *allocate(size_t bytes, void *ctx)
{
    (void)ctx;
    return wf_alloc(bytes);
}

static void release(void *block, void *ctx)
{
    (void)ctx;
    wf_free(block);
}

/* A context that makes PCRE2 use Weft's allocator; NULL if there is no memory. It may be freed before the objects made with it. */
static pcre2_general_context *memory(void)
{
    return pcre2_general_context_create(allocate, release, NULL);
}

static void compile(struct reader *r, struct pattern *p)
{
    struct wf_string text = {0};
    char quoted[WF_QUOTE_SIZE], message[128];
    const char *problem = NULL;
    int code = PCRE2_ERROR_NOMEMORY;
    PCRE2_SIZE offset;
    wf_status status = regex_translate(p->text.data, p->text.length, &text, &problem);
    pcre2_general_context *general = memory();
    pcre2_compile_context *context = general ? pcre2_compile_context_create(general) : NULL;
    if (status == WF_OK && context) {
        pcre2_set_newline(context, PCRE2_NEWLINE_LF);
        pcre2_set_max_pattern_length(context, 8 * MOST_BYTES);
        p->code = pcre2_compile((PCRE2_SPTR)text.data, (PCRE2_SIZE)text.length,
                                PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &code, &offset, context);
        pcre2_get_error_message(code, (PCRE2_UCHAR *)message, sizeof message);
        problem = message;
    }
    pcre2_compile_context_free(context);
    pcre2_general_context_free(general);
    wf_string_free(&text);
    /* PCRE2 has two codes for lack of memory */
    if (status == WF_ERR_FORMAT || (!p->code && code != PCRE2_ERROR_NOMEMORY && code != PCRE2_ERROR_HEAP_FAILED))
        reader_refuse(r, "the pattern %s is not supported by this version: %s", wf_text_quote(p->text.data, quoted), problem);
    else if (!p->code)
        reader_no_memory(r);
}

/* Reads {"String": ...} or {"Regex": ...}. A regular expression that PCRE2 would not match as Oniguruma does is an error. */
static void read_pattern(struct reader *r, const struct key *key, json_t *object, void *field)
{
    struct pattern *p = reader_keep(r, 1, sizeof *p);
    json_t *value = json_object_get(object, key->name), *string = json_object_get(value, "String");
    json_t *text = string ? string : json_object_get(value, "Regex");
    *(const struct pattern **)field = p;
    if (!json_is_string(text) || json_object_size(value) != 1)
        reader_refuse(r, "a pattern must be {\"String\": text} or {\"Regex\": text}");
    if (!p || reader_failed(r))
        return;
    text_read(r, text, key->name, &p->text);
    if (p->text.length > MOST_BYTES)
        reader_refuse(r, "a pattern of %" PRId64 " bytes is too long; at most %d", p->text.length, MOST_BYTES);
    if (reader_failed(r))
        return;
    p->regex = !string;
    p->every = p->regex && !strcmp(p->text.data, EVERY_CHARACTER);
    if (!p->regex || p->every)
        return;
    p->next = r->t->pattern;
    r->t->pattern = p;
    compile(r, p);
}

static json_t *write_pattern(const void *field)
{
    const struct pattern *p = *(const struct pattern *const *)field;
    return json_pack("{s:o}", p->regex ? "Regex" : "String", text_write(&p->text));
}

static uint64_t hash_pattern(const void *field, uint64_t hash)
{
    const struct pattern *p = *(const struct pattern *const *)field;
    return text_hash(&p->text, number_hash(p->regex, hash));
}

const struct key_kind value_pattern = {KIND_OWN, read_pattern, write_pattern, hash_pattern};

static wf_status find_string(const struct pattern *p, struct scratch *s, const char *data, int64_t begin, int64_t end)
{
    const char *found;
    for (int64_t at = begin; (found = memmem(data + at, (size_t)(end - at), p->text.data, (size_t)p->text.length));
         at = found - data + p->text.length)
        if (!spans_add(&s->matches, found - data, found - data + p->text.length))
            return WF_ERR_MEMORY;
    return WF_OK;
}

/* Matches every character, or with `empty` the empty strings before and after every character. */
static wf_status find_every(struct scratch *s, const char *data, int64_t begin, int64_t end, bool empty)
{
    int size = 1;
    for (int64_t at = begin; at < end + empty; at += size) {
        if (at < end)
            wf_utf8_at(data, at, &size);
        if (!spans_add(&s->matches, at, empty ? at : at + size))
            return WF_ERR_MEMORY;
    }
    return WF_OK;
}

struct search {
    const struct pattern *pattern;
    struct scratch *s;
    const char *text;
    int64_t length;     /* number of bytes of the text */
    int64_t window;     /* the next attempt looks at most this number of bytes beyond the position that it tries */
    int64_t steps;      /* maximum steps of the next attempt */
    int64_t one_by_one; /* positions before this index are tried one by one */
    double end;         /* CPU time at which the search gives up; 0: not set, since no attempt has needed more than WINDOW and STEPS */
};

/* Searches for a match that begins at text[at] or later; with `here`, only at text[at]. Returns PCRE2's code; the match data has the
 * bounds. */
static int attempt(struct search *q, int64_t at, bool here)
{
    int64_t stop = q->length - at > q->window ? at + q->window : q->length;
    while (stop < q->length && (q->text[stop] & 0xC0) == 0x80)
        stop++;
    pcre2_set_match_limit(q->s->match_context, (uint32_t)q->steps);
    return pcre2_match(q->pattern->code, (PCRE2_SPTR)q->text, (PCRE2_SIZE)stop, (PCRE2_SIZE)at,
                       PCRE2_NO_UTF_CHECK | (here ? PCRE2_ANCHORED : 0) | (stop < q->length ? PCRE2_PARTIAL_HARD : 0), q->s->match_data,
                       q->s->match_context);
}

/* Doubles the window or the steps. False if the limits of steps or time are reached. */
static bool grow(struct search *q, bool window)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    double time = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
    if (q->end == 0)
        q->end = time + most_seconds + most_seconds_a_byte * (double)q->length;
    q->window *= window ? 2 : 1;
    q->steps *= window ? 1 : 2;
    return time < q->end && q->steps / 2 <= MOST_STEPS + MOST_STEPS_A_BYTE * q->length && q->steps <= UINT32_MAX;
}

/* Searches for the next match from *at on. Returns PCRE2's code, or CANCELLED. After a match the match data has the bounds; after an error
 * *at is the position that was tried last. */
static int next_match(struct search *q, int64_t *at)
{
    q->window = WINDOW;
    q->steps = STEPS;
    for (;;) {
        if (q->window > ASK_WINDOW && scratch_cancelled(q->s))
            return CANCELLED;
        bool here = *at < q->one_by_one;
        int code = attempt(q, *at, here), size = 1;
        if (code == PCRE2_ERROR_NOMATCH) {
            if (!here && q->length - *at <= q->window)
                return code;
            if (here && *at < q->length)
                wf_utf8_at(q->text, *at, &size);
            for (*at += here ? size : q->window; *at < q->length && (q->text[*at] & 0xC0) == 0x80;)
                ++*at;
            if (*at > q->length)
                return code;
            q->window = WINDOW;
            q->steps = STEPS;
        } else if (code == PCRE2_ERROR_PARTIAL || code == PCRE2_ERROR_MATCHLIMIT) {
            bool partial = code == PCRE2_ERROR_PARTIAL;
            if (!here && partial)
                *at = (int64_t)pcre2_get_startchar(q->s->match_data);
            if (!here)
                q->one_by_one = partial ? *at + 1 : *at + q->window;
            if ((here || partial) && !grow(q, partial))
                return PCRE2_ERROR_MATCHLIMIT;
        } else {
            return code;
        }
    }
}

/* Finds all matches as `tokenizers` does with its library `onig`: an empty match right after another match is skipped, together with one
 * character. */
static wf_status find_regex(struct search *q, int64_t begin)
{
    int64_t last = -1;
    PCRE2_SIZE *found = pcre2_get_ovector_pointer(q->s->match_data);
    for (int64_t at = 0; at <= q->length;) {
        int code = q->s->matches.count % ASK == ASK - 1 && scratch_cancelled(q->s) ? CANCELLED : next_match(q, &at);
        if (code == CANCELLED)
            return WF_ERR_CANCELLED;
        if (code == PCRE2_ERROR_NOMATCH)
            return WF_OK;
        if (code == PCRE2_ERROR_NOMEMORY)
            return WF_ERR_MEMORY;
        if (code < 0 || found[0] > found[1]) { /* \K in a look-ahead can make the start greater than the end */
            q->s->fault = begin + at;
            return WF_ERR_FORMAT;
        }
        int64_t from = (int64_t)found[0], to = (int64_t)found[1];
        int size = 1;
        if (from == to && to == last) {
            if (to < q->length)
                wf_utf8_at(q->text, to, &size);
            at = to + size;
            continue;
        }
        if (!spans_add(&q->s->matches, begin + from, begin + to))
            return WF_ERR_MEMORY;
        at = last = to;
    }
    return WF_OK;
}

wf_status pattern_find(const struct pattern *p, struct scratch *s, const char *data, int64_t begin, int64_t end)
{
    s->matches.count = 0;
    if (p->every || p->text.length == 0)
        return find_every(s, data, begin, end, !p->every);
    if (!p->regex)
        return find_string(p, s, data, begin, end);
    if (!s->match_data) {
        pcre2_general_context *general = memory();
        s->match_data = general ? pcre2_match_data_create(1, general) : NULL;
        s->match_context = general ? pcre2_match_context_create(general) : NULL;
        pcre2_general_context_free(general);
        if (!s->match_data || !s->match_context)
            return WF_ERR_MEMORY;
        pcre2_set_heap_limit(s->match_context, HEAP_KIB);
    }
    struct search q = {.pattern = p, .s = s, .text = data + begin, .length = end - begin};
    return find_regex(&q, begin);
}

void pattern_free(struct pattern *p)
{
    pcre2_code_free(p->code);
}

void pattern_free_match(struct scratch *s)
{
    pcre2_match_context_free(s->match_context);
    pcre2_match_data_free(s->match_data);
}
