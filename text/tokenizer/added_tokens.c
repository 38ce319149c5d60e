/* SPDX-License-Identifier: MIT */
/* Tokens beside the model's: they are cut out of the text as they stand, before or after it is normalised. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "scratch.h"
#include "unicode.h"
#include <weft/internal/json.h>
#include <weft/internal/text.h>
#include <weft/internal/utf8.h>

/* The longest in use are some dozen bytes. */
enum { MOST_BYTES = 1000 };

static const struct key keys[] = {{"id", &value_id, offsetof(struct added_token, id)},
                                  {"content", &value_text, offsetof(struct added_token, content)},
                                  {"single_word", &value_bool, offsetof(struct added_token, single_word)},
                                  {"lstrip", &value_bool, offsetof(struct added_token, lstrip)},
                                  {"rstrip", &value_bool, offsetof(struct added_token, rstrip)},
                                  {"normalized", &value_bool, offsetof(struct added_token, normalized)},
                                  {"special", &value_bool, offsetof(struct added_token, special)},
                                  {0}};

static wf_status read_one(struct reader *r, json_t *value, struct added_token *token)
{
    char quoted[WF_QUOTE_SIZE];
    if (!json_is_object(value))
        return wf_error_set(r->error, WF_ERR_FORMAT, "%s: an added token is not an object", r->where);
    wf_status status = keys_read(r, keys, false, value, token);
    if (status != WF_OK)
        return status;
    if (token->content.length == 0)
        return wf_error_set(r->error, WF_ERR_FORMAT, "%s: an added token is empty", r->where);
    int32_t id = vocab_add(&r->t->vocab, token->content.data, token->content.length);
    if (id < 0)
        return reader_no_memory(r);
    if (token->id != id)
        return wf_error_set(r->error, WF_ERR_FORMAT,
                            "%s: the added token %s has the id %" PRId32 " where the vocabulary gives it %" PRId32
                            "; ids that it lacks must follow on each other",
                            r->where, wf_text_quote(token->content.data, quoted), token->id, id);
    return WF_OK;
}

static int by_id(const void *a, const void *b)
{
    const struct added_token *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

wf_status added_tokens_read(struct reader *r, json_t *root)
{
    wf_tokenizer *t = r->t;
    json_t *array = NULL;
    char quoted[WF_QUOTE_SIZE];
    wf_status status = wf_json_get_array(root, r->where, "added_tokens", WF_JSON_OPTIONAL, &array, r->error);
    t->added = tokenizer_keep(t, (int64_t)json_array_size(array), sizeof *t->added);
    if (status == WF_OK && !t->added)
        return reader_no_memory(r);
    for (size_t i = 0; status == WF_OK && i < json_array_size(array); i++)
        status = read_one(r, json_array_get(array, i), &t->added[t->added_count++]);
    if (status != WF_OK)
        return status;
    qsort(t->added, (size_t)t->added_count, sizeof *t->added, by_id);
    for (int64_t i = 1; i < t->added_count; i++)
        if (t->added[i].id == t->added[i - 1].id)
            return wf_error_set(r->error, WF_ERR_FORMAT, "%s: the added token %s is there twice", r->where,
                                wf_text_quote(t->added[i].content.data, quoted));
    return WF_OK;
}

json_t *added_tokens_write(const wf_tokenizer *t)
{
    json_t *array = json_array();
    for (int64_t i = 0; i < t->added_count; i++) {
        json_t *object = json_object();
        keys_write(t, keys, t->added + i, object);
        json_array_append_new(array, object);
    }
    return array;
}

uint64_t added_tokens_hash(const wf_tokenizer *t, uint64_t hash)
{
    for (int64_t i = 0; i < t->added_count; i++)
        hash = keys_hash(t, keys, t->added + i, hash);
    return hash;
}

/* What a token is looked for as: it goes through the normalizer, as the text around it does. */
static wf_status find_match(struct reader *r, struct scratch *s, struct added_token *token)
{
    const struct part *normalizer = r->t->normalizer;
    struct view text = {.data = token->content.data, .length = token->content.length};
    struct text match = {0};
    char quoted[WF_QUOTE_SIZE];
    const char *name = wf_text_quote(token->content.data, quoted);
    wf_status status = WF_OK;
    scratch_start(s, text.length, false);
    if (token->normalized && normalizer && text.length <= MOST_BYTES)
        status = normalizer->type->normalize(normalizer, s, &text);
    if (status == WF_ERR_FORMAT)
        return wf_error_set(r->error, status, "%s: a pattern of the normalizer gives up on the added token %s", r->where, name);
    if (text.length > MOST_BYTES || scratch_over(s))
        return wf_error_set(r->error, WF_ERR_FORMAT, "%s: the added token %s is longer than %d bytes; shorten it", r->where, name,
                            MOST_BYTES);
    if (status == WF_OK && text.length == 0)
        return wf_error_set(r->error, WF_ERR_FORMAT, "%s: nothing is left of the added token %s after the normalizer", r->where, name);
    if (status == WF_OK)
        status = keep_text(r, text.data, text.length, &match);
    token->match = match.data;
    token->match_length = match.length;
    return status == WF_ERR_MEMORY ? reader_no_memory(r) : status;
}

wf_status added_tokens_index(struct reader *r)
{
    wf_tokenizer *t = r->t;
    struct scratch s = {0};
    t->raw.prefix = tokenizer_keep(t, t->added_count, sizeof *t->raw.prefix);
    t->normalized.prefix = tokenizer_keep(t, t->added_count, sizeof *t->normalized.prefix);
    wf_status status = t->raw.prefix && t->normalized.prefix ? WF_OK : reader_no_memory(r);
    for (int32_t i = 0; status == WF_OK && i < t->added_count; i++) {
        struct added_token *token = t->added + i;
        struct prefixes *set = token->normalized ? &t->normalized : &t->raw;
        status = find_match(r, &s, token);
        /* Of two that match the same the special one counts, then the earlier. */
        int32_t value = i - (token->special ? INT32_MAX : 0);
        set->prefix[set->count++] = (struct prefix){token->match, token->match_length, value};
    }
    scratch_free(&s);
    if (status == WF_OK) {
        prefixes_sort(&t->raw);
        prefixes_sort(&t->normalized);
    }
    return status;
}

static unsigned class_before(const char *data, int64_t at)
{
    int size;
    return at > 0 ? unicode_class(wf_utf8_at(data, at - wf_utf8_before(data, at), &size)) : 0;
}

static unsigned class_at(const char *data, int64_t length, int64_t at, int *size)
{
    return at < length ? unicode_class(wf_utf8_at(data, at, size)) : 0;
}

const struct added_token *added_tokens_next(const wf_tokenizer *t, const struct prefixes *set, const char *data, int64_t length,
                                            int64_t *search, int64_t from, int64_t *begin, int64_t *end)
{
    for (int64_t at = *search; set->count > 0 && at < length; at++) {
        const struct prefix *found = prefixes_find(set, data + at, length - at);
        const struct added_token *token = !found ? NULL : t->added + found->value + (found->value < 0 ? INT32_MAX : 0);
        int size;
        if (!token)
            continue;
        *begin = at;
        *end = *search = at + token->match_length;
        at = *end - 1;
        if (token->single_word && ((class_before(data, *begin) | class_at(data, length, *end, &size)) & CHAR_WORD))
            continue;
        if (token->lstrip)
            while (*begin > 0 && class_before(data, *begin) & CHAR_SPACE)
                *begin -= wf_utf8_before(data, *begin);
        if (*begin < from)
            *begin = from; /* what the one before took stays with it */
        if (token->rstrip)
            while (class_at(data, length, *end, &size) & CHAR_SPACE)
                *end += size;
        return token;
    }
    return NULL;
}

bool wf_tokenizer_special_at(const wf_tokenizer *tokenizer, int64_t index, int32_t *id)
{
    if (index >= tokenizer->added_count)
        return false;
    *id = tokenizer->added[index].special ? tokenizer->added[index].id : -1;
    return true;
}
