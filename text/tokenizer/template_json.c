/* SPDX-License-Identifier: MIT */
/* Post-processors in the file. Those for pairs of texts are kept for writing only. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "template.h"
#include <weft/internal/json.h>
#include <weft/internal/text.h>

static const char *const type_names[] = {"TemplateProcessing", "BertProcessing", "RobertaProcessing", "ByteLevel", "Sequence"};
enum { TYPES = 5 };

int template_by_name(const void *a, const void *b)
{
    return strcmp(((const struct special *)a)->id, ((const struct special *)b)->id);
}

static wf_status check_id(const wf_tokenizer *t, int64_t id, const char *where, wf_error *error)
{
    if (id >= 0 && id < t->vocab.count)
        return WF_OK;
    return wf_error_set(error, WF_ERR_FORMAT, "%s: the post_processor adds the id %" PRId64 ", outside the vocabulary 0 .. %" PRId64, where,
                        id, t->vocab.count - 1);
}

static wf_status read_special(wf_tokenizer *t, json_t *value, struct special *special, const char *where, wf_error *error)
{
    json_t *ids = NULL, *tokens = NULL;
    wf_status status = wf_json_only_keys(value, where, (const char *const[]){"id", "ids", "tokens", NULL}, error);
    if (status == WF_OK)
        status = part_text(t, value, "id", where, &special->id, NULL, error);
    if (status == WF_OK)
        status = wf_json_get_array(value, where, "ids", WF_JSON_REQUIRED, &ids, error);
    if (status == WF_OK)
        status = wf_json_get_array(value, where, "tokens", WF_JSON_REQUIRED, &tokens, error);
    if (status != WF_OK)
        return status;
    special->count = (int64_t)json_array_size(ids);
    if (special->count != (int64_t)json_array_size(tokens))
        return wf_error_set(error, WF_ERR_FORMAT, "%s: a special token of the post_processor has other numbers of ids and of tokens",
                            where);
    special->ids = tokenizer_keep(t, special->count, sizeof *special->ids);
    special->token = tokenizer_keep(t, special->count, sizeof *special->token);
    if (!special->ids || !special->token)
        return part_no_memory(where, error);
    for (int64_t i = 0; status == WF_OK && i < special->count; i++) {
        json_t *id = json_array_get(ids, (size_t)i), *token = json_array_get(tokens, (size_t)i);
        special->ids[i] = json_is_integer(id) ? json_integer_value(id) : -1;
        status = check_id(t, special->ids[i], where, error);
        if (status == WF_OK && !json_is_string(token))
            status = wf_error_set(error, WF_ERR_FORMAT, "%s: a token of the post_processor is not a string", where);
        if (status == WF_OK && !(special->token[i] = tokenizer_keep_text(t, json_string_value(token), (int64_t)json_string_length(token))))
            status = part_no_memory(where, error);
    }
    return status;
}

static wf_status read_item(wf_tokenizer *t, json_t *value, struct template *template, struct item *item, bool pair, const char *where,
                           wf_error *error)
{
    json_t *sequence = json_object_get(value, "Sequence"), *special = json_object_get(value, "SpecialToken");
    json_t *inner = sequence ? sequence : special;
    char quoted[WF_QUOTE_SIZE];
    if (!json_is_object(inner) || json_object_size(value) != 1)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: an item of the post_processor is neither a Sequence nor a SpecialToken", where);
    item->sequence = sequence != NULL;
    wf_status status = wf_json_only_keys(inner, where, (const char *const[]){"id", "type_id", NULL}, error);
    if (status == WF_OK)
        status = part_text(t, inner, "id", where, &item->id, NULL, error);
    if (status == WF_OK)
        status = wf_json_get_int(inner, where, "type_id", WF_JSON_REQUIRED, 0, UINT32_MAX, &item->type_id, error);
    if (status != WF_OK)
        return status;
    if (item->sequence)
        return !strcmp(item->id, "A") || (pair && !strcmp(item->id, "B"))
                   ? WF_OK
                   : wf_error_set(error, WF_ERR_FORMAT, "%s: the post_processor names the sequence %s", where,
                                  wf_text_quote(item->id, quoted));
    item->special =
        bsearch(&(struct special){.id = item->id}, template->special, (size_t) template->specials, sizeof *item->special, template_by_name);
    return item->special ? WF_OK
                         : wf_error_set(error, WF_ERR_FORMAT, "%s: the post_processor uses %s, which is not among its special_tokens",
                                        where, wf_text_quote(item->id, quoted));
}

static wf_status read_items(wf_tokenizer *t, json_t *value, const char *key, struct template *template, struct items *items,
                            const char *where, wf_error *error)
{
    json_t *array = NULL;
    wf_status status = wf_json_get_array(value, where, key, WF_JSON_REQUIRED, &array, error);
    if (status != WF_OK)
        return status;
    items->count = (int64_t)json_array_size(array);
    items->item = tokenizer_keep(t, items->count, sizeof *items->item);
    if (!items->item)
        return part_no_memory(where, error);
    for (int64_t i = 0; status == WF_OK && i < items->count; i++)
        status = read_item(t, json_array_get(array, (size_t)i), template, items->item + i, items == &template->pair, where, error);
    return status;
}

static wf_status read_template(wf_tokenizer *t, json_t *value, struct template *template, const char *where, wf_error *error)
{
    json_t *specials = NULL, *special;
    const char *key;
    wf_status status = wf_json_only_keys(value, where, (const char *const[]){"type", "single", "pair", "special_tokens", NULL}, error);
    if (status == WF_OK)
        status = wf_json_get_object(value, where, "special_tokens", WF_JSON_REQUIRED, &specials, error);
    if (status != WF_OK)
        return status;
    template->special = tokenizer_keep(t, (int64_t)json_object_size(specials), sizeof *template->special);
    if (!template->special)
        return part_no_memory(where, error);
    json_object_foreach(specials, key, special)
    {
        struct special *out = template->special + template->specials++;
        if (!json_is_object(special))
            status = wf_error_set(error, WF_ERR_FORMAT, "%s: a special token of the post_processor is not an object", where);
        if (status == WF_OK)
            status = read_special(t, special, out, where, error);
        if (status == WF_OK && strcmp(key, out->id) != 0)
            status = wf_error_set(error, WF_ERR_FORMAT, "%s: a special token of the post_processor has another id than key", where);
        if (status != WF_OK)
            return status;
    }
    qsort(template->special, (size_t) template->specials, sizeof *template->special, template_by_name);
    status = read_items(t, value, "single", template, &template->single, where, error);
    return status == WF_OK ? read_items(t, value, "pair", template, &template->pair, where, error) : status;
}

/* ["[SEP]", 102] */
static wf_status read_pair(wf_tokenizer *t, json_t *value, const char *key, const char **token, int64_t *id, const char *where,
                           wf_error *error)
{
    json_t *pair = json_object_get(value, key), *name = json_array_get(pair, 0), *number = json_array_get(pair, 1);
    if (json_array_size(pair) != 2 || !json_is_string(name) || !json_is_integer(number))
        return wf_error_set(error, WF_ERR_FORMAT, "%s: key \"%s\" of the post_processor: a token and its id are expected", where, key);
    *id = json_integer_value(number);
    *token = tokenizer_keep_text(t, json_string_value(name), (int64_t)json_string_length(name));
    return *token ? check_id(t, *id, where, error) : part_no_memory(where, error);
}

static wf_status read_bert(wf_tokenizer *t, json_t *value, struct template *template, const char *where, wf_error *error)
{
    static const char *const bert[] = {"type", "sep", "cls", NULL}, *const roberta[] = {
                                                                        "type", "sep", "cls", "trim_offsets", "add_prefix_space", NULL};
    bool long_form = template->type == TEMPLATE_ROBERTA;
    enum wf_json_need need = long_form ? WF_JSON_REQUIRED : WF_JSON_OPTIONAL;
    wf_status status = wf_json_only_keys(value, where, long_form ? roberta : bert, error);
    if (status == WF_OK)
        status = read_pair(t, value, "sep", &template->sep.token, &template->sep.id, where, error);
    if (status == WF_OK)
        status = read_pair(t, value, "cls", &template->cls.token, &template->cls.id, where, error);
    if (status == WF_OK)
        status = wf_json_get_bool(value, where, "trim_offsets", need, &template->trim_offsets, error);
    return status == WF_OK ? wf_json_get_bool(value, where, "add_prefix_space", need, &template->add_prefix_space, error) : status;
}

static wf_status read_byte_level(json_t *value, struct template *template, const char *where, wf_error *error)
{
    static const char *const keys[] = {"type", "add_prefix_space", "trim_offsets", "use_regex", NULL};
    template->use_regex = true;
    wf_status status = wf_json_only_keys(value, where, keys, error);
    if (status == WF_OK)
        status = wf_json_get_bool(value, where, "add_prefix_space", WF_JSON_REQUIRED, &template->add_prefix_space, error);
    if (status == WF_OK)
        status = wf_json_get_bool(value, where, "trim_offsets", WF_JSON_REQUIRED, &template->trim_offsets, error);
    return status == WF_OK ? wf_json_get_bool(value, where, "use_regex", WF_JSON_OPTIONAL, &template->use_regex, error) : status;
}

static wf_status read_sequence(wf_tokenizer *t, json_t *value, struct template *template, const char *where, wf_error *error)
{
    json_t *steps = NULL;
    wf_status status = wf_json_only_keys(value, where, (const char *const[]){"type", "processors", NULL}, error);
    if (status == WF_OK)
        status = wf_json_get_array(value, where, "processors", WF_JSON_REQUIRED, &steps, error);
    if (status != WF_OK)
        return status;
    template->steps = (int64_t)json_array_size(steps);
    template->step = tokenizer_keep(t, template->steps, sizeof *template->step);
    if (!template->step)
        return part_no_memory(where, error);
    for (int64_t i = 0; status == WF_OK && i < template->steps; i++) {
        json_t *step = json_array_get(steps, (size_t)i);
        status = json_is_object(step) ? template_read(t, step, where, &template->step[i], error)
                                      : wf_error_set(error, WF_ERR_FORMAT, "%s: a step of the post_processor is not an object", where);
    }
    return status;
}

wf_status template_read(wf_tokenizer *t, json_t *value, const char *where, struct template **out, wf_error *error)
{
    int i;
    *out = NULL;
    if (!value || json_is_null(value))
        return WF_OK;
    wf_status status = part_type(value, "post_processor", where, type_names, TYPES, &i, error);
    if (status != WF_OK)
        return status;
    struct template *template = tokenizer_keep(t, 1, sizeof *template);
    if (!template)
        return part_no_memory(where, error);
    template->type = (enum template_type)i;
    *out = template;
    switch (template->type) {
    case TEMPLATE:
        return read_template(t, value, template, where, error);
    case TEMPLATE_BERT:
    case TEMPLATE_ROBERTA:
        return read_bert(t, value, template, where, error);
    case TEMPLATE_BYTE_LEVEL:
        return read_byte_level(value, template, where, error);
    default:
        return read_sequence(t, value, template, where, error);
    }
}

static void write_items(const struct items *items, const char *key, struct json_writer *w)
{
    json_open(w, key, '[');
    for (int64_t i = 0; i < items->count; i++) {
        json_open(w, NULL, '{');
        json_open(w, items->item[i].sequence ? "Sequence" : "SpecialToken", '{');
        json_put_string(w, "id", items->item[i].id);
        json_put_int(w, "type_id", items->item[i].type_id);
        json_close(w, '}');
        json_close(w, '}');
    }
    json_close(w, ']');
}

static void write_template(const struct template *template, struct json_writer *w)
{
    write_items(&template->single, "single", w);
    write_items(&template->pair, "pair", w);
    json_open(w, "special_tokens", '{');
    for (int64_t i = 0; i < template->specials; i++) {
        const struct special *special = template->special + i;
        json_open(w, special->id, '{');
        json_put_string(w, "id", special->id);
        json_open(w, "ids", '[');
        for (int64_t k = 0; k < special->count; k++)
            json_put_int(w, NULL, special->ids[k]);
        json_close(w, ']');
        json_open(w, "tokens", '[');
        for (int64_t k = 0; k < special->count; k++)
            json_put_string(w, NULL, special->token[k]);
        json_close(w, ']');
        json_close(w, '}');
    }
    json_close(w, '}');
}

static void write_pair(const char *key, const char *token, int64_t id, struct json_writer *w)
{
    json_open(w, key, '[');
    json_put_string(w, NULL, token);
    json_put_int(w, NULL, id);
    json_close(w, ']');
}

void template_write(const struct template *template, const char *key, struct json_writer *w)
{
    if (!template) {
        json_put_null(w, key);
        return;
    }
    json_open(w, key, '{');
    json_put_string(w, "type", type_names[template->type]);
    switch (template->type) {
    case TEMPLATE:
        write_template(template, w);
        break;
    case TEMPLATE_BERT:
    case TEMPLATE_ROBERTA:
        write_pair("sep", template->sep.token, template->sep.id, w);
        write_pair("cls", template->cls.token, template->cls.id, w);
        if (template->type == TEMPLATE_ROBERTA) {
            json_put_bool(w, "trim_offsets", template->trim_offsets);
            json_put_bool(w, "add_prefix_space", template->add_prefix_space);
        }
        break;
    case TEMPLATE_BYTE_LEVEL:
        json_put_bool(w, "add_prefix_space", template->add_prefix_space);
        json_put_bool(w, "trim_offsets", template->trim_offsets);
        json_put_bool(w, "use_regex", template->use_regex);
        break;
    case TEMPLATE_SEQUENCE:
        json_open(w, "processors", '[');
        for (int64_t i = 0; i < template->steps; i++)
            template_write(template->step[i], NULL, w);
        json_close(w, ']');
    }
    json_close(w, '}');
}
