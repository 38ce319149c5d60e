/* SPDX-License-Identifier: MIT */
/* TemplateProcessing: special tokens and the text's ids in the order of a template. That for pairs of texts is kept for writing only. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include <weft/internal/hash.h>
#include <weft/internal/json.h>
#include <weft/internal/text.h>

struct item {
    bool sequence;
    struct text id; /* "A" or "B", or a special token's name */
    int64_t type_id;
    const struct special *special;
};
struct items {
    struct item *item;
    int64_t count;
};
struct special {
    struct text id, *token;
    int32_t *ids;
    int64_t count;
};
struct template
{
    struct part part;
    struct items single, pair;
    struct specials {
        struct special *special; /* by name */
        int64_t count;
    } specials;
};

static const struct key item_keys[] = {
    {"id", &value_text, offsetof(struct item, id)}, {"type_id", &value_count, offsetof(struct item, type_id), .most = UINT32_MAX}, {0}};

/* --- special_tokens ------------------------------------------------------------------------------------------------ */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct special *)a)->id.data, ((const struct special *)b)->id.data);
}

static wf_status read_special(struct reader *r, const char *name, json_t *object, struct special *special)
{
    static const struct key keys[] = {
        {"id", &value_text, offsetof(struct special, id)}, {"ids", &value_ignored}, {"tokens", &value_ignored}, {0}};
    json_t *ids = NULL, *tokens = NULL;
    wf_status status = keys_read(r, keys, false, object, special);
    if (status == WF_OK)
        status = wf_json_get_array(object, r->where, "ids", WF_JSON_REQUIRED, &ids, r->error);
    if (status == WF_OK)
        status = wf_json_get_array(object, r->where, "tokens", WF_JSON_REQUIRED, &tokens, r->error);
    if (status != WF_OK)
        return status;
    special->count = (int64_t)json_array_size(ids);
    if (strcmp(name, special->id.data) || special->count != (int64_t)json_array_size(tokens))
        return wf_error_set(r->error, WF_ERR_FORMAT,
                            "%s: a special token of the post_processor has another id than key, or other numbers of ids and of tokens",
                            r->where);
    special->ids = tokenizer_keep(r->t, special->count, sizeof *special->ids);
    special->token = tokenizer_keep(r->t, special->count, sizeof *special->token);
    if (!special->ids || !special->token)
        return reader_no_memory(r);
    for (int64_t i = 0; status == WF_OK && i < special->count; i++) {
        json_t *token = json_array_get(tokens, (size_t)i);
        status = post_id(r, json_array_get(ids, (size_t)i), &special->ids[i]);
        if (status == WF_OK && !json_is_string(token))
            status = wf_error_set(r->error, WF_ERR_FORMAT, "%s: a token of the post_processor is not a string", r->where);
        if (status == WF_OK)
            status = keep_text(r, json_string_value(token), (int64_t)json_string_length(token), &special->token[i]);
    }
    return status;
}

static wf_status read_specials(struct reader *r, const struct key *key, json_t *object, void *field)
{
    struct specials *specials = field;
    json_t *value = NULL, *special;
    const char *name;
    wf_status status = wf_json_get_object(object, r->where, key->name, WF_JSON_REQUIRED, &value, r->error);
    if (status != WF_OK)
        return status;
    specials->special = tokenizer_keep(r->t, (int64_t)json_object_size(value), sizeof *specials->special);
    if (!specials->special)
        return reader_no_memory(r);
    json_object_foreach(value, name, special)
    {
        status = read_special(r, name, special, &specials->special[specials->count++]);
        if (status != WF_OK)
            return status;
    }
    qsort(specials->special, (size_t)specials->count, sizeof *specials->special, by_name);
    return WF_OK;
}

static json_t *write_specials(const wf_tokenizer *t, const struct key *key, const void *field)
{
    const struct specials *specials = field;
    json_t *object = json_object();
    (void)key;
    for (int64_t i = 0; i < specials->count; i++) {
        const struct special *special = specials->special + i;
        json_t *ids = json_array(), *tokens = json_array(), *member = json_object();
        for (int64_t k = 0; k < special->count; k++) {
            json_array_append_new(ids, json_integer(special->ids[k]));
            json_array_append_new(tokens, value_text.write(t, NULL, &special->token[k]));
        }
        json_object_set_new(member, "id", value_text.write(t, NULL, &special->id));
        json_object_set_new(member, "ids", ids);
        json_object_set_new(member, "tokens", tokens);
        json_object_set_new(object, special->id.data, member);
    }
    return object;
}

static uint64_t hash_specials(const wf_tokenizer *t, const struct key *key, const void *field, uint64_t hash)
{
    const struct specials *specials = field;
    for (int64_t i = 0; i < specials->count; i++) {
        const struct special *special = specials->special + i;
        hash = value_text.hash(t, key, &special->id, hash);
        for (int64_t k = 0; k < special->count; k++)
            hash = value_text.hash(t, key, &special->token[k], value_id.hash(t, key, &special->ids[k], hash));
    }
    return hash;
}

static const struct key_kind value_specials = {read_specials, write_specials, hash_specials};

/* --- single, pair -------------------------------------------------------------------------------------------------- */

static wf_status read_item(struct reader *r, json_t *value, struct item *item)
{
    json_t *sequence = json_object_get(value, "Sequence"), *special = json_object_get(value, "SpecialToken");
    json_t *inner = sequence ? sequence : special;
    if (!json_is_object(inner) || json_object_size(value) != 1)
        return wf_error_set(r->error, WF_ERR_FORMAT, "%s: an item of the post_processor is neither a Sequence nor a SpecialToken",
                            r->where);
    item->sequence = sequence != NULL;
    return keys_read(r, item_keys, false, inner, item);
}

static wf_status read_items(struct reader *r, const struct key *key, json_t *object, void *field)
{
    struct items *items = field;
    json_t *array = NULL;
    wf_status status = wf_json_get_array(object, r->where, key->name, WF_JSON_REQUIRED, &array, r->error);
    items->item = tokenizer_keep(r->t, (int64_t)json_array_size(array), sizeof *items->item);
    if (status == WF_OK && !items->item)
        return reader_no_memory(r);
    for (size_t i = 0; status == WF_OK && i < json_array_size(array); i++)
        status = read_item(r, json_array_get(array, i), &items->item[items->count++]);
    return status;
}

static json_t *write_items(const wf_tokenizer *t, const struct key *key, const void *field)
{
    const struct items *items = field;
    json_t *array = json_array();
    (void)key;
    for (int64_t i = 0; i < items->count; i++) {
        json_t *inner = json_object(), *item = json_object();
        keys_write(t, item_keys, &items->item[i], inner);
        json_object_set_new(item, items->item[i].sequence ? "Sequence" : "SpecialToken", inner);
        json_array_append_new(array, item);
    }
    return array;
}

static uint64_t hash_items(const wf_tokenizer *t, const struct key *key, const void *field, uint64_t hash)
{
    const struct items *items = field;
    (void)key;
    for (int64_t i = 0; i < items->count; i++)
        hash = keys_hash(t, item_keys, &items->item[i], value_bool.hash(t, key, &items->item[i].sequence, hash));
    return hash;
}

static const struct key_kind value_items = {read_items, write_items, hash_items};

static wf_status resolve(struct reader *r, const struct template *p, struct items *items)
{
    char quoted[WF_QUOTE_SIZE];
    for (struct item *item = items->item; item < items->item + items->count; item++) {
        const char *id = item->id.data;
        bool known = !strcmp(id, "A") || (items == &p->pair && !strcmp(id, "B"));
        if (item->sequence && !known)
            return wf_error_set(r->error, WF_ERR_FORMAT, "%s: the post_processor names the sequence %s", r->where,
                                wf_text_quote(id, quoted));
        if (item->sequence)
            continue;
        item->special =
            bsearch(&(struct special){.id = item->id}, p->specials.special, (size_t)p->specials.count, sizeof *item->special, by_name);
        if (!item->special)
            return wf_error_set(r->error, WF_ERR_FORMAT, "%s: the post_processor uses %s, which is not among its special_tokens", r->where,
                                wf_text_quote(id, quoted));
    }
    return WF_OK;
}

static wf_status ready(struct reader *r, json_t *object, void *part)
{
    struct template *p = part;
    (void)object;
    wf_status status = resolve(r, p, &p->single);
    return status == WF_OK ? resolve(r, p, &p->pair) : status;
}

/* --- running ------------------------------------------------------------------------------------------------------- */

static void grows(const void *part, int64_t *times, int64_t *added)
{
    const struct items *single = &((const struct template *)part)->single;
    int64_t sequences = 0, specials = 0;
    for (int64_t i = 0; i < single->count; i++) {
        sequences += single->item[i].sequence;
        specials += single->item[i].special ? single->item[i].special->count : 0;
    }
    post_grow(times, added, sequences, specials);
}

/* The ids of the text, out->id[begin ..], go to the end, and the result is put together where they were. */
static bool finish(const void *part, struct wf_tokens *out, int64_t begin)
{
    const struct items *single = &((const struct template *)part)->single;
    int64_t count = out->count - begin, times = 1, added = 0;
    grows(part, &times, &added);
    int64_t total = times * count + added;
    if (!tokens_reserve(out, total + count))
        return false;
    int32_t *to = out->id + begin, *text = to + total;
    memmove(text, to, (size_t)count * sizeof *to);
    for (int64_t i = 0; i < single->count; i++) {
        const struct special *special = single->item[i].special;
        int64_t n = special ? special->count : count;
        if (n > 0)
            memcpy(to, special ? special->ids : text, (size_t)n * sizeof *to);
        to += n;
    }
    out->count = begin + total;
    return true;
}

const struct part_type post_template = {.name = "TemplateProcessing",
                                        .stage = PART_POST_PROCESSOR,
                                        .size = sizeof(struct template),
                                        .keys = KEYS({"single", &value_items, offsetof(struct template, single)},
                                                     {"pair", &value_items, offsetof(struct template, pair)},
                                                     {"special_tokens", &value_specials, offsetof(struct template, specials)}),
                                        .ready = ready,
                                        .finish = finish,
                                        .grows = grows};
