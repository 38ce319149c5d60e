/* SPDX-License-Identifier: MIT */
/* Pre-tokenizers in the file, and those that trained tokenizers get. */
#include <string.h>

#include "pre_tokenizer.h"
#include <weft/internal/json.h>
#include <weft/internal/text.h>

#define MARK "\xE2\x96\x81" /* U+2581 */

static const char *const type_names[] = {[PRE_WHITESPACE] = "Whitespace", [PRE_WHITESPACE_SPLIT] = "WhitespaceSplit",
                                         [PRE_METASPACE] = "Metaspace",   [PRE_BYTE_LEVEL] = "ByteLevel",
                                         [PRE_BERT] = "BertPreTokenizer", [PRE_PUNCTUATION] = "Punctuation",
                                         [PRE_DIGITS] = "Digits",         [PRE_DELIMITER] = "CharDelimiterSplit",
                                         [PRE_SPLIT] = "Split",           [PRE_SEQUENCE] = "Sequence"};
static const char *const behavior_names[] = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"};
const char *const prepend_names[] = {"always", "first", "never"};
enum { TYPES = sizeof type_names / sizeof *type_names, BEHAVIORS = 5 };

wf_status prepend_read(json_t *value, const char *where, enum prepend *out, wf_error *error)
{
    const char *name = NULL;
    bool prefix = true;
    char quoted[WF_QUOTE_SIZE];
    wf_status status = wf_json_get_string(value, where, "prepend_scheme", WF_JSON_OPTIONAL, &name, error);
    if (status == WF_OK) /* how versions before 0.15 said it */
        status = wf_json_get_bool(value, where, "add_prefix_space", WF_JSON_OPTIONAL, &prefix, error);
    if (status != WF_OK)
        return status;
    *out = prefix ? PREPEND_ALWAYS : PREPEND_NEVER;
    if (!name)
        return WF_OK;
    for (*out = PREPEND_ALWAYS; *out <= PREPEND_NEVER; ++*out)
        if (!strcmp(name, prepend_names[*out]))
            return WF_OK;
    return wf_error_set(error, WF_ERR_FORMAT, "%s: prepend_scheme %s is none of always, first, never", where, wf_text_quote(name, quoted));
}

static wf_status read_behavior(json_t *value, const char *where, enum wf_json_need need, enum behavior *out, wf_error *error)
{
    const char *name = NULL;
    char quoted[WF_QUOTE_SIZE];
    wf_status status = wf_json_get_string(value, where, "behavior", need, &name, error);
    if (status != WF_OK || !name)
        return status;
    for (int i = 0; i < BEHAVIORS; i++)
        if (!strcmp(name, behavior_names[i])) {
            *out = (enum behavior)i;
            return WF_OK;
        }
    return wf_error_set(
        error, WF_ERR_FORMAT,
        "%s: it asks for the split behavior %s, which is none of Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous", where,
        wf_text_quote(name, quoted));
}

static wf_status read_metaspace(wf_tokenizer *t, json_t *value, const char *where, struct pre_tokenizer *pre, wf_error *error)
{
    static const char *const keys[] = {"type", "replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep", NULL};
    wf_status status = wf_json_only_keys(value, where, keys, error);
    if (status == WF_OK)
        status = part_character(t, value, "replacement", where, &pre->mark, &pre->mark_length, error);
    if (status == WF_OK)
        status = prepend_read(value, where, &pre->prepend, error);
    pre->split = true;
    return status == WF_OK ? wf_json_get_bool(value, where, "split", WF_JSON_OPTIONAL, &pre->split, error) : status;
}

static wf_status read_byte_level(json_t *value, const char *where, struct pre_tokenizer *pre, wf_error *error)
{
    static const char *const keys[] = {"type", "add_prefix_space", "trim_offsets", "use_regex", NULL};
    pre->use_regex = true;
    wf_status status = wf_json_only_keys(value, where, keys, error);
    if (status == WF_OK)
        status = wf_json_get_bool(value, where, "add_prefix_space", WF_JSON_REQUIRED, &pre->add_prefix_space, error);
    if (status == WF_OK)
        status = wf_json_get_bool(value, where, "trim_offsets", WF_JSON_REQUIRED, &pre->trim_offsets, error);
    return status == WF_OK ? wf_json_get_bool(value, where, "use_regex", WF_JSON_OPTIONAL, &pre->use_regex, error) : status;
}

static wf_status read_split(wf_tokenizer *t, json_t *value, const char *where, struct pre_tokenizer *pre, wf_error *error)
{
    wf_status status = wf_json_only_keys(value, where, (const char *const[]){"type", "pattern", "behavior", "invert", NULL}, error);
    if (status == WF_OK)
        status = pattern_read(t, json_object_get(value, "pattern"), false, where, &pre->pattern, error);
    if (status == WF_OK)
        status = read_behavior(value, where, WF_JSON_REQUIRED, &pre->behavior, error);
    return status == WF_OK ? wf_json_get_bool(value, where, "invert", WF_JSON_OPTIONAL, &pre->invert, error) : status;
}

static wf_status read_sequence(wf_tokenizer *t, json_t *value, const char *where, struct pre_tokenizer *pre, wf_error *error)
{
    json_t *steps = NULL;
    wf_status status = wf_json_only_keys(value, where, (const char *const[]){"type", "pretokenizers", NULL}, error);
    if (status == WF_OK)
        status = wf_json_get_array(value, where, "pretokenizers", WF_JSON_REQUIRED, &steps, error);
    if (status != WF_OK)
        return status;
    pre->steps = (int64_t)json_array_size(steps);
    pre->step = tokenizer_keep(t, pre->steps, sizeof *pre->step);
    if (!pre->step)
        return part_no_memory(where, error);
    for (int64_t i = 0; status == WF_OK && i < pre->steps; i++) {
        json_t *step = json_array_get(steps, (size_t)i);
        status = json_is_object(step) ? pre_tokenizer_read(t, step, where, &pre->step[i], error)
                                      : wf_error_set(error, WF_ERR_FORMAT, "%s: a step of the pre_tokenizer is not an object", where);
    }
    return status;
}

static wf_status read_parts(wf_tokenizer *t, json_t *value, const char *where, struct pre_tokenizer *pre, wf_error *error)
{
    static const char *const only_type[] = {"type", NULL};
    wf_status status;
    switch (pre->type) {
    case PRE_METASPACE:
        return read_metaspace(t, value, where, pre, error);
    case PRE_BYTE_LEVEL:
        return read_byte_level(value, where, pre, error);
    case PRE_SPLIT:
        return read_split(t, value, where, pre, error);
    case PRE_SEQUENCE:
        return read_sequence(t, value, where, pre, error);
    case PRE_PUNCTUATION:
        pre->behavior = SPLIT_ISOLATED;
        status = wf_json_only_keys(value, where, (const char *const[]){"type", "behavior", NULL}, error);
        return status == WF_OK ? read_behavior(value, where, WF_JSON_OPTIONAL, &pre->behavior, error) : status;
    case PRE_DIGITS:
        status = wf_json_only_keys(value, where, (const char *const[]){"type", "individual_digits", NULL}, error);
        return status == WF_OK ? wf_json_get_bool(value, where, "individual_digits", WF_JSON_REQUIRED, &pre->individual, error) : status;
    case PRE_DELIMITER:
        status = wf_json_only_keys(value, where, (const char *const[]){"type", "delimiter", NULL}, error);
        return status == WF_OK ? part_character(t, value, "delimiter", where, &pre->mark, &pre->mark_length, error) : status;
    default:
        return wf_json_only_keys(value, where, only_type, error);
    }
}

wf_status pre_tokenizer_read(wf_tokenizer *t, json_t *value, const char *where, struct pre_tokenizer **out, wf_error *error)
{
    int i;
    *out = NULL;
    if (!value || json_is_null(value))
        return WF_OK;
    wf_status status = part_type(value, "pre_tokenizer", where, type_names, TYPES, &i, error);
    if (status != WF_OK)
        return status;
    struct pre_tokenizer *pre = tokenizer_keep(t, 1, sizeof *pre);
    if (!pre)
        return part_no_memory(where, error);
    pre->type = (enum pre_type)i;
    *out = pre;
    return read_parts(t, value, where, pre, error);
}

void pre_tokenizer_write(const struct pre_tokenizer *pre, const char *key, struct json_writer *w)
{
    if (!pre) {
        json_put_null(w, key);
        return;
    }
    json_open(w, key, '{');
    json_put_string(w, "type", type_names[pre->type]);
    switch (pre->type) {
    case PRE_METASPACE:
        json_put_string(w, "replacement", pre->mark);
        json_put_string(w, "prepend_scheme", prepend_names[pre->prepend]);
        json_put_bool(w, "split", pre->split);
        break;
    case PRE_BYTE_LEVEL:
        json_put_bool(w, "add_prefix_space", pre->add_prefix_space);
        json_put_bool(w, "trim_offsets", pre->trim_offsets);
        json_put_bool(w, "use_regex", pre->use_regex);
        break;
    case PRE_PUNCTUATION:
        json_put_string(w, "behavior", behavior_names[pre->behavior]);
        break;
    case PRE_DIGITS:
        json_put_bool(w, "individual_digits", pre->individual);
        break;
    case PRE_DELIMITER:
        json_put_string(w, "delimiter", pre->mark);
        break;
    case PRE_SPLIT:
        json_open(w, "pattern", '{');
        pattern_write(pre->pattern, w);
        json_close(w, '}');
        json_put_string(w, "behavior", behavior_names[pre->behavior]);
        json_put_bool(w, "invert", pre->invert);
        break;
    case PRE_SEQUENCE:
        json_open(w, "pretokenizers", '[');
        for (int64_t i = 0; i < pre->steps; i++)
            pre_tokenizer_write(pre->step[i], NULL, w);
        json_close(w, ']');
        break;
    default:
        break;
    }
    json_close(w, '}');
}

void pre_tokenizer_for(const struct wf_tokenizer_options *options, struct trained_pre_tokenizer *out)
{
    enum wf_pre_tokenizer wanted = options->kind == WF_TOKENIZER_WORD ? WF_WHITESPACE : WF_METASPACE;
    if (options->other_pre_tokenizer)
        wanted = options->pre_tokenizer;
    bool bytes = options->kind == WF_TOKENIZER_BYTE_BPE;
    struct pre_tokenizer one = {.mark = MARK, .mark_length = sizeof MARK - 1, .split = true, .trim_offsets = true, .use_regex = true};
    one.type = bytes ? PRE_BYTE_LEVEL : wanted == WF_WHITESPACE ? PRE_WHITESPACE : PRE_METASPACE;
    *out = (struct trained_pre_tokenizer){.whole = one};
    if (bytes || (wanted != WF_METASPACE && wanted != WF_RUNNING_TEXT))
        return;
    int64_t steps = 0;
    if (wanted == WF_RUNNING_TEXT) {
        one.prepend = PREPEND_NEVER;
        out->line_end = (struct pattern){.text = "\n", .length = 1};
        out->step[steps++] = (struct pre_tokenizer){.type = PRE_SPLIT, .behavior = SPLIT_ISOLATED, .pattern = &out->line_end};
    }
    out->step[steps++] = one;
    out->step[steps++] = (struct pre_tokenizer){.type = PRE_PUNCTUATION, .behavior = SPLIT_ISOLATED};
    for (int i = 0; i < steps; i++)
        out->steps[i] = &out->step[i];
    out->whole = (struct pre_tokenizer){.type = PRE_SEQUENCE, .step = out->steps, .steps = steps};
}

struct pre_tokenizer *pre_tokenizer_of(wf_tokenizer *t, const struct wf_tokenizer_options *options)
{
    struct trained_pre_tokenizer *pre = tokenizer_keep(t, 1, sizeof *pre);
    if (!pre)
        return NULL;
    pre_tokenizer_for(options, pre);
    return &pre->whole;
}

struct pre_tokenizer *pre_tokenizer_of_characters(wf_tokenizer *t)
{
    struct pre_tokenizer *pre = tokenizer_keep(t, 1, sizeof *pre);
    struct pattern *pattern = tokenizer_keep(t, 1, sizeof *pattern);
    if (!pre || !pattern)
        return NULL;
    pattern_of_characters(pattern);
    *pre = (struct pre_tokenizer){.type = PRE_SPLIT, .behavior = SPLIT_ISOLATED, .pattern = pattern};
    return pre;
}

bool pre_tokenizer_is_characters(const struct pre_tokenizer *pre)
{
    return pre && pre->type == PRE_SPLIT && pre->behavior == SPLIT_ISOLATED && !pre->invert && pre->pattern->every;
}

bool pre_tokenizer_has_bytes(const struct pre_tokenizer *pre)
{
    for (int64_t i = 0; pre && i < pre->steps; i++)
        if (pre_tokenizer_has_bytes(pre->step[i]))
            return true;
    return pre && pre->type == PRE_BYTE_LEVEL;
}

bool pre_tokenizer_needs_origin(const struct pre_tokenizer *pre)
{
    for (int64_t i = 0; pre && i < pre->steps; i++)
        if (pre_tokenizer_needs_origin(pre->step[i]))
            return true;
    return pre && pre->type == PRE_METASPACE && pre->prepend == PREPEND_FIRST;
}

bool pre_tokenizer_has_steps(const struct pre_tokenizer *pre)
{
    return pre && pre->type == PRE_SEQUENCE;
}
