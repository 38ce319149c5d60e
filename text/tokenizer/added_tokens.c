/* SPDX-License-Identifier: MIT */
/* Added tokens, which the file lists besides the model's vocabulary. They are found in the text by their exact spelling, before or after
 * the normalizer, and cut out before the pre-tokenizer divides the rest. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "scratch.h"
#include "unicode.h"
#include <weft/internal/json.h>
#include <weft/internal/text.h>
#include <weft/internal/utf8.h>

/* maximum length of an added token; the longest in use have a few dozen bytes */
enum { MOST_BYTES = 1000 };

static const struct key keys[] = {{"id", &value_id, offsetof(struct added_token, id)},
                                  {"content", &value_text, offsetof(struct added_token, content)},
                                  {"single_word", &value_bool, offsetof(struct added_token, single_word)},
                                  {"lstrip", &value_bool, offsetof(struct added_token, lstrip)},
                                  {"rstrip", &value_bool, offsetof(struct added_token, rstrip)},
                                  {"normalized", &value_bool, offsetof(struct added_token, normalized)},
                                  {"special", &value_bool, offsetof(struct added_token, special)},
                                  {0}};

static void read_one(struct reader *r, json_t *value, struct added_token *token)
{
    char quoted[WF_QUOTE_SIZE];
    if (json_is_object(value))
        keys_read(r, keys, false, value, token);
    else
        reader_refuse(r, "an added token is not an object");
    if (token->content.length == 0)
        reader_refuse(r, "an added token is empty");
    if (reader_failed(r))
        return;
    int32_t id = vocab_add(&r->t->vocab, token->content.data, token->content.length);
    if (id < 0)
        reader_no_memory(r);
    else if (token->id != id)
        reader_refuse(r,
                      "the added token %s has the id %" PRId32 ", but %" PRId32
                      " is expected: new ids follow those of the vocabulary without gaps",
                      wf_text_quote(token->content.data, quoted), token->id, id);
}

static int by_id(const void *a, const void *b)
{
    const struct added_token *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

void added_tokens_read(struct reader *r, json_t *root)
{
    wf_tokenizer *t = r->t;
    json_t *array = json_object_get(root, "added_tokens");
    char quoted[WF_QUOTE_SIZE];
    if (array && !json_is_null(array))
        array = reader_array(r, root, "added_tokens");
    t->added = reader_keep(r, (int64_t)json_array_size(array), sizeof *t->added);
    for (size_t i = 0; i < json_array_size(array) && !reader_failed(r); i++)
        read_one(r, json_array_get(array, i), &t->added[t->added_count++]);
    if (!reader_failed(r))
        qsort(t->added, (size_t)t->added_count, sizeof *t->added, by_id);
    for (int64_t i = 1; i < t->added_count && !reader_failed(r); i++)
        if (t->added[i].id == t->added[i - 1].id)
            reader_refuse(r, "the added token %s is listed twice", wf_text_quote(t->added[i].content.data, quoted));
}

json_t *added_tokens_write(const wf_tokenizer *t)
{
    json_t *array = json_array();
    for (int64_t i = 0; i < t->added_count; i++) {
        json_t *object = json_object();
        keys_write(keys, t->added + i, object);
        json_array_append_new(array, object);
    }
    return array;
}

uint64_t added_tokens_hash(const wf_tokenizer *t, uint64_t hash)
{
    for (int64_t i = 0; i < t->added_count; i++)
        hash = keys_hash(keys, t->added + i, hash);
    return hash;
}

/* Sets the text by which a token is found: its content, or the normalised content for a token that is searched in normalised text. */
static void find_match(struct reader *r, struct scratch *s, struct added_token *token)
{
    struct view text = {.data = token->content.data, .length = token->content.length};
    char quoted[WF_QUOTE_SIZE];
    const char *name = wf_text_quote(token->content.data, quoted);
    wf_status status = WF_OK;
    scratch_start(s, text.length, false);
    if (token->normalized && text.length <= MOST_BYTES)
        status = part_normalize(r->t->normalizer, s, &text);
    char *match = status == WF_OK ? reader_keep(r, text.length + 1, 1) : NULL;
    if (status == WF_ERR_FORMAT)
        reader_refuse(r, "a pattern of the normalizer takes too long on the added token %s", name);
    else if (text.length > MOST_BYTES || scratch_over(s))
        reader_refuse(r, "the added token %s is longer than %d bytes; shorten it", name, MOST_BYTES);
    else if (!match)
        reader_no_memory(r);
    else if (text.length == 0)
        reader_refuse(r, "the normalizer removes the whole added token %s", name);
    else
        memcpy(match, text.data, (size_t)text.length);
    token->match = match;
    token->match_length = text.length;
}

void added_tokens_index(struct reader *r)
{
    wf_tokenizer *t = r->t;
    struct scratch s = {0};
    t->raw.prefix = reader_keep(r, t->added_count, sizeof *t->raw.prefix);
    t->normalized.prefix = reader_keep(r, t->added_count, sizeof *t->normalized.prefix);
    for (int32_t i = 0; i < t->added_count && !reader_failed(r); i++) {
        struct added_token *token = t->added + i;
        struct prefixes *set = token->normalized ? &t->normalized : &t->raw;
        find_match(r, &s, token);
        /* If two tokens match the same text, the special one wins; if both or neither are special, the one with the lower id. */
        int32_t value = i - (token->special ? INT32_MAX : 0);
        set->prefix[set->count++] = (struct prefix){token->match, token->match_length, value};
    }
    scratch_free(&s);
    if (!reader_failed(r)) {
        prefixes_sort(&t->raw);
        prefixes_sort(&t->normalized);
    }
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

/* Whether one of the ranges has one of the bytes first .. last. */
static bool in_plain(const struct wf_encode_options *o, int64_t first, int64_t last)
{
    int64_t low = 0, high = o->plains; /* find the first range that ends after `first` */
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (o->plain[middle].end > first)
            high = middle;
        else
            low = middle + 1;
    }
    return low < o->plains && o->plain[low].begin <= last;
}

const struct added_token *added_tokens_next(const struct encoding *e, const struct prefixes *set, const struct view *text, int64_t *search,
                                            int64_t from, int64_t *begin, int64_t *end)
{
    const wf_tokenizer *t = e->t;
    const char *data = text->data;
    const int64_t length = text->length;
    for (int64_t at = *search; set->count > 0 && at < length; at++) {
        unsigned char first = (unsigned char)data[at];
        if (set->first[first] == set->first[first + 1]) /* most often no token begins with this byte */
            continue;
        const struct prefix *found = prefixes_find(set, data + at, length - at);
        const struct added_token *token = !found ? NULL : t->added + found->value + (found->value < 0 ? INT32_MAX : 0);
        int size;
        if (!token)
            continue;
        if (token->special && in_plain(e->options, view_origin(text, at), view_origin(text, at + token->match_length - 1)))
            continue;
        *begin = at;
        *end = *search = at + token->match_length;
        at = *end - 1;
        if (token->single_word && ((class_before(data, *begin) | class_at(data, length, *end, &size)) & CHAR_WORD))
            continue;
        if (token->lstrip)
            *begin = unicode_skip_space_back(data, 0, *begin);
        if (*begin < from)
            *begin = from; /* white space that belongs to the token before stays with that token */
        if (token->rstrip)
            *end = unicode_skip_space(data, *end, length);
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
