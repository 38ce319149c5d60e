/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "pattern.h"
#include "pipeline.h"
#include "regex.h"
#include "unicode.h"
#include <weft/internal/json.h>
#include <weft/internal/text.h>
#include <weft/memory.h>

#define EVERY_CHARACTER "[\\s\\S]"
enum { MOST_BYTES = 65536, HEAP_KIB = 256 * 1024 };
/* Steps of one match: enough for a pattern that goes over a long text some times, not for one that tries all ways to cut it. */
enum { MATCH_STEPS = 1000000, MATCH_STEPS_A_BYTE = 16 };

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

/* PCRE2 by the library's allocator; NULL without memory. The context may go before what was made by it. */
static pcre2_general_context *memory(void)
{
    return pcre2_general_context_create(allocate, release, NULL);
}

static wf_status compile(struct pattern *p, const char *where, wf_error *error)
{
    struct wf_string text = {0};
    char quoted[WF_QUOTE_SIZE], message[128];
    const char *problem = NULL;
    wf_status status = regex_translate(p->text, p->length, &text, &problem);
    if (status == WF_OK) {
        pcre2_general_context *general = memory();
        pcre2_compile_context *context = general ? pcre2_compile_context_create(general) : NULL;
        int code = PCRE2_ERROR_NOMEMORY;
        PCRE2_SIZE offset;
        if (context) {
            pcre2_set_newline(context, PCRE2_NEWLINE_LF);
            pcre2_set_max_pattern_length(context, 8 * MOST_BYTES);
            p->code = pcre2_compile((PCRE2_SPTR)text.data, (PCRE2_SIZE)text.length,
                                    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &code, &offset, context);
        }
        if (!p->code) {
            /* ERR21: failed to allocate heap memory */
            status = code == PCRE2_ERROR_NOMEMORY || code == PCRE2_ERROR_HEAP_FAILED ? WF_ERR_MEMORY : WF_ERR_FORMAT;
            pcre2_get_error_message(code, (PCRE2_UCHAR *)message, sizeof message);
            problem = message;
        }
        pcre2_compile_context_free(context);
        pcre2_general_context_free(general);
    }
    wf_string_free(&text);
    if (status == WF_ERR_MEMORY)
        return part_no_memory(where, error);
    if (status != WF_OK)
        wf_error_set(error, status, "%s: it asks for the pattern %s, which this version cannot run: %s", where,
                     wf_text_quote(p->text, quoted), problem);
    return status;
}

wf_status pattern_read(wf_tokenizer *t, json_t *value, bool plain, const char *where, struct pattern **out, wf_error *error)
{
    struct pattern *p = tokenizer_keep(t, 1, sizeof *p);
    json_t *string = plain && json_is_string(value) ? value : json_object_get(value, "String"), *regex = json_object_get(value, "Regex");
    json_t *text = string ? string : regex;
    *out = p;
    if (!p)
        return part_no_memory(where, error);
    if (!json_is_string(text) || (json_is_object(value) && json_object_size(value) != 1))
        return wf_error_set(error, WF_ERR_FORMAT, "%s: a pattern must be {\"String\": text} or {\"Regex\": text}", where);
    p->regex = !string;
    p->length = (int64_t)json_string_length(text);
    p->text = tokenizer_keep_text(t, json_string_value(text), p->length);
    if (!p->text)
        return part_no_memory(where, error);
    if (p->length > MOST_BYTES)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: a pattern of %" PRId64 " bytes is too long; at most %d", where, p->length,
                            MOST_BYTES);
    p->every = p->regex && !strcmp(p->text, EVERY_CHARACTER);
    if (!p->regex || p->every)
        return WF_OK;
    wf_status status = compile(p, where, error);
    if (p->code) {
        p->next = t->pattern;
        t->pattern = p;
    }
    return status;
}

void pattern_of_characters(struct pattern *out)
{
    *out = (struct pattern){.text = EVERY_CHARACTER, .length = sizeof EVERY_CHARACTER - 1, .regex = true, .every = true};
}

void pattern_write(const struct pattern *p, struct json_writer *w)
{
    json_put_bytes(w, p->regex ? "Regex" : "String", p->text, p->length);
}

static wf_status find_string(const struct pattern *p, struct scratch *s, const char *data, int64_t begin, int64_t end)
{
    const char *found;
    for (int64_t at = begin; (found = memmem(data + at, (size_t)(end - at), p->text, (size_t)p->length)); at = found - data + p->length)
        if (!spans_add(&s->matches, found - data, found - data + p->length))
            return WF_ERR_MEMORY;
    return WF_OK;
}

/* An empty string is before and after every character. */
static wf_status find_empty(struct scratch *s, const char *data, int64_t begin, int64_t end)
{
    for (int64_t at = begin; at <= end;) {
        int size = 1;
        if (!spans_add(&s->matches, at, at))
            return WF_ERR_MEMORY;
        if (at < end)
            unicode_at(data, at, &size);
        at += size;
    }
    return WF_OK;
}

static wf_status find_every(struct scratch *s, const char *data, int64_t begin, int64_t end)
{
    for (int64_t at = begin; at < end;) {
        int size;
        unicode_at(data, at, &size);
        if (!spans_add(&s->matches, at, at + size))
            return WF_ERR_MEMORY;
        at += size;
    }
    return WF_OK;
}

/* As the crate `onig` goes through a text: an empty match right after the last one is passed over by a character. */
static wf_status find_regex(const struct pattern *p, struct scratch *s, const char *data, int64_t begin, int64_t end,
                            pcre2_match_context *context)
{
    const char *text = data + begin;
    int64_t length = end - begin, last = -1;
    PCRE2_SIZE *found = pcre2_get_ovector_pointer(s->match_data);
    for (int64_t at = 0; at <= length;) {
        int code = pcre2_match(p->code, (PCRE2_SPTR)text, (PCRE2_SIZE)length, (PCRE2_SIZE)at, PCRE2_NO_UTF_CHECK, s->match_data, context);
        if (code == PCRE2_ERROR_NOMATCH)
            return WF_OK;
        if (code == PCRE2_ERROR_NOMEMORY)
            return WF_ERR_MEMORY;
        if (code < 0 || found[0] > found[1]) { /* \K in a look-ahead can turn them around */
            s->fault = begin + at;
            return WF_ERR_FORMAT;
        }
        int64_t from = (int64_t)found[0], to = (int64_t)found[1];
        int size = 1;
        if (from == to && to == last) {
            if (at < length)
                unicode_at(text, at, &size);
            at += size;
            continue;
        }
        if (!spans_add(&s->matches, begin + from, begin + to))
            return WF_ERR_MEMORY;
        at = last = to;
    }
    return WF_OK;
}

wf_status pattern_find(const struct pattern *p, struct scratch *s, const char *data, int64_t begin, int64_t end)
{
    s->matches.count = 0;
    if (p->every)
        return find_every(s, data, begin, end);
    if (!p->regex)
        return p->length == 0 ? find_empty(s, data, begin, end) : find_string(p, s, data, begin, end);
    if (!s->match_data) {
        pcre2_general_context *general = memory();
        s->match_data = general ? pcre2_match_data_create(1, general) : NULL;
        s->match_context = general ? pcre2_match_context_create(general) : NULL;
        pcre2_general_context_free(general);
        if (!s->match_data || !s->match_context)
            return WF_ERR_MEMORY;
        pcre2_set_heap_limit(s->match_context, HEAP_KIB);
    }
    int64_t steps = end - begin > INT32_MAX / MATCH_STEPS_A_BYTE ? INT32_MAX : (end - begin) * MATCH_STEPS_A_BYTE;
    pcre2_set_match_limit(s->match_context, (uint32_t)steps + MATCH_STEPS);
    return find_regex(p, s, data, begin, end, s->match_context);
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
