/* SPDX-License-Identifier: MIT */
/* Post-processors that put special tokens around the ids of a text: TemplateProcessing, BertProcessing, RobertaProcessing. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include <weft/internal/hash.h>
#include <weft/internal/json.h>
#include <weft/internal/text.h>

struct item {
    bool sequence;  /* the item stands for a text; otherwise for a special token */
    struct text id; /* "A" or "B" for a text; else the name of the special token */
    int64_t type_id;
    const struct special *special;
};
struct items {
    struct item *item;
    int64_t count;
};
struct special {
    struct text id;
    struct text *token; /* [count] */
    int32_t *ids;       /* [count] */
    int64_t count;
};
/* Weft encodes single texts only: the template for pairs is just read and written. */
struct template
{
    struct part part;
    struct items single, pair;
    struct specials {
        struct special *special; /* sorted by name */
        int64_t count;
    } specials;
};

static const struct key item_keys[] = {
    {"id", &value_text, offsetof(struct item, id)}, {"type_id", &value_count, offsetof(struct item, type_id), .most = UINT32_MAX}, {0}};

/* Reads an id, which must be in the vocabulary. */
static int32_t read_id(struct reader *r, const json_t *value)
{
    int64_t id = json_is_integer(value) ? json_integer_value(value) : -1;
    if (id < 0 || id >= r->t->vocab.count)
        reader_refuse(r, "the post_processor adds the id %" PRId64 ", outside the vocabulary 0 .. %" PRId64, id, r->t->vocab.count - 1);
    return (int32_t)id;
}

static void grow(int64_t *times, int64_t *added, int64_t by, int64_t more)
{
    if (__builtin_mul_overflow(*times, by, times))
        *times = INT64_MAX;
    if (__builtin_mul_overflow(*added, by, added) || __builtin_add_overflow(*added, more, added))
        *added = INT64_MAX;
}

/* --- special_tokens ------------------------------------------------------------------------------------------------ */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct special *)a)->id.data, ((const struct special *)b)->id.data);
}

static void read_special(struct reader *r, const char *name, json_t *object, struct special *special)
{
    static const struct key keys[] = {{"id", &value_text, offsetof(struct special, id)}, {"ids", &value_any}, {"tokens", &value_any}, {0}};
    keys_read(r, keys, false, object, special);
    json_t *ids = reader_array(r, object, "ids"), *tokens = reader_array(r, object, "tokens");
    size_t count = json_array_size(ids);
    if (!reader_failed(r) && (strcmp(name, special->id.data) || count != json_array_size(tokens)))
        reader_refuse(r, "a special token of the post_processor has an id that differs from its key, or not as many ids as tokens");
    special->ids = reader_keep(r, (int64_t)count, sizeof *special->ids);
    special->token = reader_keep(r, (int64_t)count, sizeof *special->token);
    for (size_t i = 0; i < count && !reader_failed(r); i++) {
        special->ids[i] = read_id(r, json_array_get(ids, i));
        text_read(r, json_array_get(tokens, i), "a token of the post_processor", &special->token[i]);
    }
    special->count = (int64_t)count;
}

static void read_specials(struct reader *r, const struct key *key, json_t *object, void *field)
{
    struct specials *specials = field;
    json_t *value = reader_object(r, object, key->name), *special;
    const char *name;
    specials->special = reader_keep(r, (int64_t)json_object_size(value), sizeof *specials->special);
    json_object_foreach(value, name, special)
    {
        if (!reader_failed(r))
            read_special(r, name, special, &specials->special[specials->count++]);
    }
    if (!reader_failed(r))
        qsort(specials->special, (size_t)specials->count, sizeof *specials->special, by_name);
}

static json_t *write_specials(const void *field)
{
    const struct specials *specials = field;
    json_t *object = json_object();
    for (int64_t i = 0; i < specials->count; i++) {
        const struct special *special = specials->special + i;
        json_t *ids = json_array(), *tokens = json_array();
        for (int64_t k = 0; k < special->count; k++) {
            json_array_append_new(ids, json_integer(special->ids[k]));
            json_array_append_new(tokens, text_write(&special->token[k]));
        }
        json_object_set_new(object, special->id.data,
                            json_pack("{s:o, s:o, s:o}", "id", text_write(&special->id), "ids", ids, "tokens", tokens));
    }
    return object;
}

static uint64_t hash_specials(const void *field, uint64_t hash)
{
    const struct specials *specials = field;
    for (int64_t i = 0; i < specials->count; i++) {
        const struct special *special = specials->special + i;
        hash = text_hash(&special->id, hash);
        for (int64_t k = 0; k < special->count; k++)
            hash = text_hash(&special->token[k], number_hash(special->ids[k], hash));
    }
    return hash;
}

static const struct key_kind value_specials = {KIND_OWN, read_specials, write_specials, hash_specials};

/* --- single, pair -------------------------------------------------------------------------------------------------- */

static void read_item(struct reader *r, json_t *value, struct item *item)
{
    json_t *sequence = json_object_get(value, "Sequence");
    json_t *inner = sequence ? sequence : json_object_get(value, "SpecialToken");
    item->sequence = sequence != NULL;
    if (json_is_object(inner) && json_object_size(value) == 1)
        keys_read(r, item_keys, false, inner, item);
    else
        reader_refuse(r, "an item of the post_processor is neither a Sequence nor a SpecialToken");
}

static void read_items(struct reader *r, const struct key *key, json_t *object, void *field)
{
    struct items *items = field;
    json_t *array = reader_array(r, object, key->name);
    items->item = reader_keep(r, (int64_t)json_array_size(array), sizeof *items->item);
    for (size_t i = 0; i < json_array_size(array) && !reader_failed(r); i++)
        read_item(r, json_array_get(array, i), &items->item[items->count++]);
}

static json_t *write_items(const void *field)
{
    const struct items *items = field;
    json_t *array = json_array();
    for (int64_t i = 0; i < items->count; i++) {
        json_t *inner = json_object();
        keys_write(item_keys, &items->item[i], inner);
        json_array_append_new(array, json_pack("{s:o}", items->item[i].sequence ? "Sequence" : "SpecialToken", inner));
    }
    return array;
}

static uint64_t hash_items(const void *field, uint64_t hash)
{
    const struct items *items = field;
    for (int64_t i = 0; i < items->count; i++)
        hash = keys_hash(item_keys, &items->item[i], number_hash(items->item[i].sequence, hash));
    return hash;
}

static const struct key_kind value_items = {KIND_OWN, read_items, write_items, hash_items};

static void resolve(struct reader *r, const struct template *p, const struct items *items)
{
    char quoted[WF_QUOTE_SIZE];
    for (struct item *item = items->item; item < items->item + items->count; item++) {
        const char *id = item->id.data;
        bool known = !strcmp(id, "A") || (items == &p->pair && !strcmp(id, "B"));
        if (item->sequence && !known)
            reader_refuse(r, "the post_processor has the sequence %s; only \"A\" is possible, and \"B\" for pairs",
                          wf_text_quote(id, quoted));
        if (item->sequence)
            continue;
        item->special =
            bsearch(&(struct special){.id = item->id}, p->specials.special, (size_t)p->specials.count, sizeof *item->special, by_name);
        if (!item->special)
            reader_refuse(r, "the post_processor uses %s, which is not among its special_tokens", wf_text_quote(id, quoted));
    }
}

static void ready(struct reader *r, void *part)
{
    const struct template *p = part;
    resolve(r, p, &p->single);
    resolve(r, p, &p->pair);
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
    grow(times, added, sequences, specials);
}

/* Moves the ids of the text, out->id[begin ..], behind the space for the result, and then copies the items of the template to that
 * space. */
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

const struct part_type post_template = {"TemplateProcessing",
                                        PART_POST_PROCESSOR,
                                        sizeof(struct template),
                                        KEYS({"single", &value_items, offsetof(struct template, single)},
                                             {"pair", &value_items, offsetof(struct template, pair)},
                                             {"special_tokens", &value_specials, offsetof(struct template, specials)}),
                                        .ready = ready,
                                        .finish = finish,
                                        .grows = grows};

/* --- BERT -----------------------------------------------------------------------------------------------------------*/

struct mark {
    struct text token;
    int32_t id;
};
struct bert {
    struct part part;
    struct mark sep, cls;
    bool trim_offsets, add_prefix_space; /* change only offsets, which Weft does not keep */
};

/* Reads a token and its id: ["[SEP]", 102]. */
static void read_mark(struct reader *r, const struct key *key, json_t *object, void *field)
{
    struct mark *mark = field;
    json_t *pair = json_object_get(object, key->name), *name = json_array_get(pair, 0), *id = json_array_get(pair, 1);
    if (json_array_size(pair) != 2 || !json_is_string(name) || !json_is_integer(id)) {
        reader_refuse(r, "key \"%s\" of the post_processor: a token and its id are expected", key->name);
        return;
    }
    mark->id = read_id(r, id);
    text_read(r, name, key->name, &mark->token);
}

static json_t *write_mark(const void *field)
{
    const struct mark *mark = field;
    return json_pack("[o, i]", text_write(&mark->token), (int)mark->id);
}

static uint64_t hash_mark(const void *field, uint64_t hash)
{
    const struct mark *mark = field;
    return text_hash(&mark->token, number_hash(mark->id, hash));
}

static const struct key_kind value_mark = {KIND_OWN, read_mark, write_mark, hash_mark};

static void bert_grows(const void *part, int64_t *times, int64_t *added)
{
    (void)part;
    grow(times, added, 1, 2);
}

static bool bert_finish(const void *part, struct wf_tokens *out, int64_t begin)
{
    const struct bert *p = part;
    if (!tokens_reserve(out, 2))
        return false;
    memmove(out->id + begin + 1, out->id + begin, (size_t)(out->count - begin) * sizeof *out->id);
    out->id[begin] = p->cls.id;
    out->count += 2;
    out->id[out->count - 1] = p->sep.id;
    return true;
}

const struct part_type post_bert = {
    "BertProcessing",      PART_POST_PROCESSOR,
    sizeof(struct bert),   KEYS({"sep", &value_mark, offsetof(struct bert, sep)}, {"cls", &value_mark, offsetof(struct bert, cls)}),
    .finish = bert_finish, .grows = bert_grows};
const struct part_type post_roberta = {"RobertaProcessing",
                                       PART_POST_PROCESSOR,
                                       sizeof(struct bert),
                                       KEYS({"sep", &value_mark, offsetof(struct bert, sep)},
                                            {"cls", &value_mark, offsetof(struct bert, cls)},
                                            {"trim_offsets", &value_bool, offsetof(struct bert, trim_offsets)},
                                            {"add_prefix_space", &value_bool, offsetof(struct bert, add_prefix_space)}),
                                       .finish = bert_finish,
                                       .grows = bert_grows};
