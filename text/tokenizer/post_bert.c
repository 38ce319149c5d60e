/* SPDX-License-Identifier: MIT */
/* BertProcessing and RobertaProcessing: a token before the text and one behind it. */
#include <inttypes.h>
#include <string.h>

#include "internal.h"
#include <weft/internal/json.h>

struct mark {
    struct text token;
    int32_t id;
};
struct bert {
    struct part part;
    struct mark sep, cls;
    bool trim_offsets, add_prefix_space; /* they move offsets, not ids */
};

wf_status post_id(struct reader *r, json_t *value, int32_t *id)
{
    int64_t number = json_is_integer(value) ? json_integer_value(value) : -1;
    if (number < 0 || number >= r->t->vocab.count)
        return wf_error_set(r->error, WF_ERR_FORMAT, "%s: the post_processor adds the id %" PRId64 ", outside the vocabulary 0 .. %" PRId64,
                            r->where, number, r->t->vocab.count - 1);
    *id = (int32_t)number;
    return WF_OK;
}

void post_grow(int64_t *times, int64_t *added, int64_t by, int64_t more)
{
    if (__builtin_mul_overflow(*times, by, times))
        *times = INT64_MAX;
    if (__builtin_mul_overflow(*added, by, added) || __builtin_add_overflow(*added, more, added))
        *added = INT64_MAX;
}

/* ["[SEP]", 102] */
static wf_status read_mark(struct reader *r, const struct key *key, json_t *object, void *field)
{
    struct mark *mark = field;
    json_t *pair = json_object_get(object, key->name), *name = json_array_get(pair, 0);
    if (json_array_size(pair) != 2 || !json_is_string(name) || !json_is_integer(json_array_get(pair, 1)))
        return wf_error_set(r->error, WF_ERR_FORMAT, "%s: key \"%s\" of the post_processor: a token and its id are expected", r->where,
                            key->name);
    wf_status status = post_id(r, json_array_get(pair, 1), &mark->id);
    return status == WF_OK ? keep_text(r, json_string_value(name), (int64_t)json_string_length(name), &mark->token) : status;
}

static json_t *write_mark(const wf_tokenizer *t, const struct key *key, const void *field)
{
    const struct mark *mark = field;
    json_t *pair = json_array();
    json_array_append_new(pair, value_text.write(t, key, &mark->token));
    json_array_append_new(pair, json_integer(mark->id));
    return pair;
}

static uint64_t hash_mark(const wf_tokenizer *t, const struct key *key, const void *field, uint64_t hash)
{
    const struct mark *mark = field;
    return value_text.hash(t, key, &mark->token, value_id.hash(t, key, &mark->id, hash));
}

static const struct key_kind value_mark = {read_mark, write_mark, hash_mark};

static void grows(const void *part, int64_t *times, int64_t *added)
{
    (void)part;
    post_grow(times, added, 1, 2);
}

static bool finish(const void *part, struct wf_tokens *out, int64_t begin)
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

#define MARKS                                                                                                                              \
    {"sep", &value_mark, offsetof(struct bert, sep)},                                                                                      \
    {                                                                                                                                      \
        "cls", &value_mark, offsetof(struct bert, cls)                                                                                     \
    }
const struct part_type post_bert = {.name = "BertProcessing",
                                    .stage = PART_POST_PROCESSOR,
                                    .size = sizeof(struct bert),
                                    .keys = KEYS(MARKS),
                                    .finish = finish,
                                    .grows = grows};
const struct part_type post_roberta = {.name = "RobertaProcessing",
                                       .stage = PART_POST_PROCESSOR,
                                       .size = sizeof(struct bert),
                                       .keys = KEYS(MARKS, {"trim_offsets", &value_bool, offsetof(struct bert, trim_offsets)},
                                                    {"add_prefix_space", &value_bool, offsetof(struct bert, add_prefix_space)}),
                                       .finish = finish,
                                       .grows = grows};
