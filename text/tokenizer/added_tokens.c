/* SPDX-License-Identifier: MIT */
/* Tokens beside the model's: they are cut out of the text as they stand, before or after it is normalised. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline.h"
#include "unicode.h"
#include <weft/internal/json.h>
#include <weft/internal/text.h>
#include <weft/memory.h>

static wf_status read_one(wf_tokenizer *t, json_t *value, struct added_token *token, const char *where, wf_error *error)
{
    static const char *const keys[] = {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special", NULL};
    int64_t id = 0;
    char quoted[WF_QUOTE_SIZE];
    if (!json_is_object(value))
        return wf_error_set(error, WF_ERR_FORMAT, "%s: an added token is not an object", where);
    wf_status status = wf_json_only_keys(value, where, keys, error);
    if (status == WF_OK)
        status = part_text(t, value, "content", where, &token->content, &token->length, error);
    if (status == WF_OK)
        status = wf_json_get_int(value, where, "id", WF_JSON_REQUIRED, 0, INT32_MAX, &id, error);
    if (status == WF_OK)
        status = wf_json_get_bool(value, where, "single_word", WF_JSON_REQUIRED, &token->single_word, error);
    if (status == WF_OK)
        status = wf_json_get_bool(value, where, "lstrip", WF_JSON_REQUIRED, &token->lstrip, error);
    if (status == WF_OK)
        status = wf_json_get_bool(value, where, "rstrip", WF_JSON_REQUIRED, &token->rstrip, error);
    if (status == WF_OK)
        status = wf_json_get_bool(value, where, "normalized", WF_JSON_REQUIRED, &token->normalized, error);
    if (status == WF_OK)
        status = wf_json_get_bool(value, where, "special", WF_JSON_REQUIRED, &token->special, error);
    if (status == WF_OK && token->length == 0)
        status = wf_error_set(error, WF_ERR_FORMAT, "%s: an added token is empty", where);
    if (status != WF_OK)
        return status;
    token->id = vocab_find(&t->vocab, token->content, token->length);
    if (token->id < 0) {
        token->id = (int32_t)t->vocab.count;
        vocab_add(&t->vocab, token->content, token->length);
    }
    if (token->id != id)
        return wf_error_set(error, WF_ERR_FORMAT,
                            "%s: the added token %s has the id %" PRId64 " where the vocabulary gives it %" PRId32
                            "; ids that it lacks must follow on each other",
                            where, wf_text_quote(token->content, quoted), id, token->id);
    return WF_OK;
}

wf_status added_tokens_read(wf_tokenizer *t, json_t *value, const char *where, wf_error *error)
{
    int64_t count = (int64_t)json_array_size(value);
    char quoted[WF_QUOTE_SIZE];
    if (count == 0)
        return WF_OK;
    struct added_token *read = wf_alloc_zero((size_t)count, sizeof *read);
    const struct added_token **by_id = NULL;
    t->added = tokenizer_keep(t, count, sizeof *t->added);
    wf_status status = read && t->added ? WF_OK : part_no_memory(where, error);
    for (int64_t i = 0; status == WF_OK && i < count; i++)
        status = read_one(t, json_array_get(value, (size_t)i), read + i, where, error);
    if (status == WF_OK) {
        by_id = wf_alloc_zero((size_t)t->vocab.count, sizeof *by_id);
        status = by_id ? WF_OK : part_no_memory(where, error);
    }
    for (int64_t i = 0; status == WF_OK && i < count; i++) {
        if (by_id[read[i].id])
            status =
                wf_error_set(error, WF_ERR_FORMAT, "%s: the added token %s is there twice", where, wf_text_quote(read[i].content, quoted));
        by_id[read[i].id] = read + i;
    }
    for (int64_t id = 0; status == WF_OK && id < t->vocab.count; id++)
        if (by_id[id])
            t->added[t->added_count++] = *by_id[id];
    wf_free(by_id);
    wf_free(read);
    return status;
}

void added_tokens_write(const wf_tokenizer *t, struct json_writer *w)
{
    json_open(w, "added_tokens", '[');
    for (int64_t i = 0; i < t->added_count; i++) {
        const struct added_token *token = t->added + i;
        json_open(w, NULL, '{');
        json_put_int(w, "id", token->id);
        json_put_bytes(w, "content", token->content, token->length);
        json_put_bool(w, "single_word", token->single_word);
        json_put_bool(w, "lstrip", token->lstrip);
        json_put_bool(w, "rstrip", token->rstrip);
        json_put_bool(w, "normalized", token->normalized);
        json_put_bool(w, "special", token->special);
        json_close(w, '}');
    }
    json_close(w, ']');
}

static int compare(const void *a, const void *b)
{
    const struct added_token *x = *(const struct added_token *const *)a, *y = *(const struct added_token *const *)b;
    int64_t least = x->match_length < y->match_length ? x->match_length : y->match_length;
    int order = memcmp(x->match, y->match, (size_t)least);
    if (order != 0 || x->match_length != y->match_length)
        return order ? order : x->match_length < y->match_length ? -1 : 1;
    /* Two that match the same: the special one wins, then the earlier. */
    return x->special != y->special ? (x->special ? -1 : 1) : x->id < y->id ? -1 : x->id > y->id;
}

/* What a token is looked for as: it goes through the normalizer, as the text around it does. */
static wf_status find_match(wf_tokenizer *t, struct scratch *s, struct added_token *token)
{
    struct view text = {.data = token->content, .length = token->length};
    if (token->normalized && t->normalizer) {
        scratch_start(s, token->length, false);
        wf_status status = normalizer_run(t->normalizer, s, &text);
        if (status != WF_OK)
            return status;
    }
    token->match = tokenizer_keep_text(t, text.data, text.length);
    token->match_length = text.length;
    return token->match ? WF_OK : WF_ERR_MEMORY;
}

wf_status added_tokens_index(wf_tokenizer *t, const char *where, wf_error *error)
{
    struct scratch s = {0};
    wf_status status = WF_OK;
    char quoted[WF_QUOTE_SIZE];
    if (t->added_count == 0)
        return WF_OK;
    t->raw.token = tokenizer_keep(t, t->added_count, sizeof *t->raw.token);
    t->normalized.token = tokenizer_keep(t, t->added_count, sizeof *t->normalized.token);
    if (!t->raw.token || !t->normalized.token)
        status = WF_ERR_MEMORY;
    for (int64_t i = 0; status == WF_OK && i < t->added_count; i++) {
        struct added_token *token = t->added + i;
        struct added_set *set = token->normalized ? &t->normalized : &t->raw;
        status = find_match(t, &s, token);
        if (status == WF_OK && token->match_length == 0)
            status = wf_error_set(error, WF_ERR_FORMAT, "%s: nothing is left of the added token %s after the normalizer", where,
                                  wf_text_quote(token->content, quoted));
        if (status != WF_OK)
            break;
        set->token[set->count++] = token;
        set->first[(unsigned char)token->match[0]] = true;
    }
    scratch_free(&s);
    if (status == WF_ERR_MEMORY)
        return part_no_memory(where, error);
    if (status != WF_OK)
        return wf_error_set(error, status, "%s: a pattern of the normalizer gives up on an added token", where);
    qsort(t->raw.token, (size_t)t->raw.count, sizeof *t->raw.token, compare);
    qsort(t->normalized.token, (size_t)t->normalized.count, sizeof *t->normalized.token, compare);
    return WF_OK;
}

/* The longest token at data[at ..]: the tokens that agree with the text so far are a stretch of the sorted list, which each byte narrows.
 */
static const struct added_token *longest(const struct added_set *set, const char *data, int64_t length, int64_t at)
{
    const struct added_token *best = NULL;
    int64_t low = 0, high = set->count;
    for (int64_t depth = 0; low < high; depth++) {
        if (set->token[low]->match_length == depth) {
            best = set->token[low];
            while (low < high && set->token[low]->match_length == depth)
                low++;
        }
        if (at + depth >= length || low == high)
            break;
        unsigned char byte = (unsigned char)data[at + depth];
        int64_t a = low, b = high;
        while (a < b) { /* the first whose byte is not below */
            int64_t middle = a + (b - a) / 2;
            if ((unsigned char)set->token[middle]->match[depth] < byte)
                a = middle + 1;
            else
                b = middle;
        }
        low = a;
        b = high;
        while (a < b) { /* the first whose byte is above */
            int64_t middle = a + (b - a) / 2;
            if ((unsigned char)set->token[middle]->match[depth] <= byte)
                a = middle + 1;
            else
                b = middle;
        }
        high = a;
    }
    return best;
}

static unsigned class_before(const char *data, int64_t at)
{
    int size;
    return at > 0 ? unicode_class(unicode_at(data, at - unicode_before(data, at), &size)) : 0;
}

static unsigned class_at(const char *data, int64_t length, int64_t at, int *size)
{
    return at < length ? unicode_class(unicode_at(data, at, size)) : 0;
}

const struct added_token *added_tokens_next(const struct added_set *set, const char *data, int64_t length, int64_t *search, int64_t from,
                                            int64_t *begin, int64_t *end)
{
    for (int64_t at = *search; at < length; at++) {
        const struct added_token *token = set->first[(unsigned char)data[at]] ? longest(set, data, length, at) : NULL;
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
                *begin -= unicode_before(data, *begin);
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
