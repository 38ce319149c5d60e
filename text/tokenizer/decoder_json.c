/* SPDX-License-Identifier: MIT */
/* Decoders in the file, and those that trained tokenizers get. */
#include <string.h>

#include "decoder.h"
#include <weft/internal/json.h>

#define MARK "\xE2\x96\x81" /* U+2581 */

static const char *const type_names[] = {"Metaspace", "ByteLevel", "ByteFallback", "Fuse",    "Replace",
                                         "Strip",     "WordPiece", "BPEDecoder",   "Sequence"};
enum { TYPES = 9 };

static wf_status read_metaspace(wf_tokenizer *t, json_t *value, const char *where, struct decoder *d, wf_error *error)
{
    static const char *const keys[] = {"type", "replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep", NULL};
    wf_status status = wf_json_only_keys(value, where, keys, error);
    if (status == WF_OK)
        status = part_character(t, value, "replacement", where, &d->text, &d->text_length, error);
    if (status == WF_OK)
        status = prepend_read(value, where, &d->prepend, error);
    d->split = true;
    return status == WF_OK ? wf_json_get_bool(value, where, "split", WF_JSON_OPTIONAL, &d->split, error) : status;
}

static wf_status read_byte_level(json_t *value, const char *where, struct decoder *d, wf_error *error)
{
    static const char *const keys[] = {"type", "add_prefix_space", "trim_offsets", "use_regex", NULL};
    d->add_prefix_space = d->trim_offsets = d->use_regex = true;
    wf_status status = wf_json_only_keys(value, where, keys, error);
    if (status == WF_OK)
        status = wf_json_get_bool(value, where, "add_prefix_space", WF_JSON_OPTIONAL, &d->add_prefix_space, error);
    if (status == WF_OK)
        status = wf_json_get_bool(value, where, "trim_offsets", WF_JSON_OPTIONAL, &d->trim_offsets, error);
    return status == WF_OK ? wf_json_get_bool(value, where, "use_regex", WF_JSON_OPTIONAL, &d->use_regex, error) : status;
}

static wf_status read_strip(wf_tokenizer *t, json_t *value, const char *where, struct decoder *d, wf_error *error)
{
    wf_status status = wf_json_only_keys(value, where, (const char *const[]){"type", "content", "start", "stop", NULL}, error);
    if (status == WF_OK)
        status = part_character(t, value, "content", where, &d->text, &d->text_length, error);
    if (status == WF_OK)
        status = wf_json_get_int(value, where, "start", WF_JSON_REQUIRED, 0, INT64_MAX, &d->start, error);
    return status == WF_OK ? wf_json_get_int(value, where, "stop", WF_JSON_REQUIRED, 0, INT64_MAX, &d->stop, error) : status;
}

static wf_status read_replace(wf_tokenizer *t, json_t *value, const char *where, struct decoder *d, wf_error *error)
{
    wf_status status = wf_json_only_keys(value, where, (const char *const[]){"type", "pattern", "content", NULL}, error);
    if (status == WF_OK)
        status = pattern_read(t, json_object_get(value, "pattern"), false, where, &d->pattern, error);
    return status == WF_OK ? part_text(t, value, "content", where, &d->text, &d->text_length, error) : status;
}

static wf_status read_sequence(wf_tokenizer *t, json_t *value, const char *where, struct decoder *d, wf_error *error)
{
    json_t *steps = NULL;
    wf_status status = wf_json_only_keys(value, where, (const char *const[]){"type", "decoders", NULL}, error);
    if (status == WF_OK)
        status = wf_json_get_array(value, where, "decoders", WF_JSON_REQUIRED, &steps, error);
    if (status != WF_OK)
        return status;
    d->steps = (int64_t)json_array_size(steps);
    d->step = tokenizer_keep(t, d->steps, sizeof *d->step);
    if (!d->step)
        return part_no_memory(where, error);
    for (int64_t i = 0; status == WF_OK && i < d->steps; i++) {
        json_t *step = json_array_get(steps, (size_t)i);
        status = json_is_object(step) ? decoder_read(t, step, where, &d->step[i], error)
                                      : wf_error_set(error, WF_ERR_FORMAT, "%s: a step of the decoder is not an object", where);
    }
    return status;
}

static wf_status read_parts(wf_tokenizer *t, json_t *value, const char *where, struct decoder *d, wf_error *error)
{
    wf_status status;
    switch (d->type) {
    case DECODE_METASPACE:
        return read_metaspace(t, value, where, d, error);
    case DECODE_BYTE_LEVEL:
        return read_byte_level(value, where, d, error);
    case DECODE_REPLACE:
        return read_replace(t, value, where, d, error);
    case DECODE_STRIP:
        return read_strip(t, value, where, d, error);
    case DECODE_WORDPIECE:
        status = wf_json_only_keys(value, where, (const char *const[]){"type", "prefix", "cleanup", NULL}, error);
        if (status == WF_OK)
            status = part_text(t, value, "prefix", where, &d->text, &d->text_length, error);
        return status == WF_OK ? wf_json_get_bool(value, where, "cleanup", WF_JSON_REQUIRED, &d->cleanup, error) : status;
    case DECODE_BPE:
        status = wf_json_only_keys(value, where, (const char *const[]){"type", "suffix", NULL}, error);
        return status == WF_OK ? part_text(t, value, "suffix", where, &d->text, &d->text_length, error) : status;
    case DECODE_SEQUENCE:
        return read_sequence(t, value, where, d, error);
    default:
        return wf_json_only_keys(value, where, (const char *const[]){"type", NULL}, error);
    }
}

wf_status decoder_read(wf_tokenizer *t, json_t *value, const char *where, struct decoder **out, wf_error *error)
{
    int i;
    *out = NULL;
    if (!value || json_is_null(value))
        return WF_OK;
    wf_status status = part_type(value, "decoder", where, type_names, TYPES, &i, error);
    if (status != WF_OK)
        return status;
    struct decoder *d = tokenizer_keep(t, 1, sizeof *d);
    if (!d)
        return part_no_memory(where, error);
    d->type = (enum decoder_type)i;
    *out = d;
    return read_parts(t, value, where, d, error);
}

void decoder_write(const struct decoder *d, const char *key, struct json_writer *w)
{
    if (!d) {
        json_put_null(w, key);
        return;
    }
    json_open(w, key, '{');
    json_put_string(w, "type", type_names[d->type]);
    switch (d->type) {
    case DECODE_METASPACE:
        json_put_string(w, "replacement", d->text);
        json_put_string(w, "prepend_scheme", prepend_names[d->prepend]);
        json_put_bool(w, "split", d->split);
        break;
    case DECODE_BYTE_LEVEL:
        json_put_bool(w, "add_prefix_space", d->add_prefix_space);
        json_put_bool(w, "trim_offsets", d->trim_offsets);
        json_put_bool(w, "use_regex", d->use_regex);
        break;
    case DECODE_REPLACE:
        json_open(w, "pattern", '{');
        pattern_write(d->pattern, w);
        json_close(w, '}');
        json_put_string(w, "content", d->text);
        break;
    case DECODE_STRIP:
        json_put_string(w, "content", d->text);
        json_put_int(w, "start", d->start);
        json_put_int(w, "stop", d->stop);
        break;
    case DECODE_WORDPIECE:
        json_put_string(w, "prefix", d->text);
        json_put_bool(w, "cleanup", d->cleanup);
        break;
    case DECODE_BPE:
        json_put_string(w, "suffix", d->text);
        break;
    case DECODE_SEQUENCE:
        json_open(w, "decoders", '[');
        for (int64_t i = 0; i < d->steps; i++)
            decoder_write(d->step[i], NULL, w);
        json_close(w, ']');
        break;
    default:
        break;
    }
    json_close(w, '}');
}

bool decoder_of(wf_tokenizer *t, const struct wf_tokenizer_options *options, struct decoder **out)
{
    bool bytes = options->kind == WF_TOKENIZER_BYTE_BPE;
    bool whitespace = options->other_pre_tokenizer ? options->pre_tokenizer == WF_WHITESPACE : options->kind == WF_TOKENIZER_WORD;
    *out = NULL;
    if (whitespace && !bytes)
        return true;
    struct decoder *d = tokenizer_keep(t, 1, sizeof *d);
    if (!d)
        return false;
    *d = (struct decoder){.type = bytes ? DECODE_BYTE_LEVEL : DECODE_METASPACE, .text = MARK, .text_length = sizeof MARK - 1};
    d->prepend = options->other_pre_tokenizer && options->pre_tokenizer == WF_RUNNING_TEXT ? PREPEND_NEVER : PREPEND_ALWAYS;
    d->split = d->trim_offsets = d->use_regex = true;
    d->add_prefix_space = true;
    *out = d;
    return true;
}

struct decoder *decoder_of_characters(wf_tokenizer *t)
{
    struct decoder *d = tokenizer_keep(t, 1, sizeof *d);
    if (d)
        d->type = DECODE_FUSE;
    return d;
}

bool decoder_is_fuse(const struct decoder *d)
{
    return d && d->type == DECODE_FUSE;
}
