/* SPDX-License-Identifier: MIT */
/* Keys of tokenizer.json: each kind of value is read, written and hashed in one place. The hash is of what the values mean, in the order of
 * the keys here, so that it does not depend on how a file is laid out. */
#include <inttypes.h>
#include <string.h>

#include "internal.h"
#include <weft/internal/hash.h>
#include <weft/internal/json.h>
#include <weft/internal/text.h>
#include <weft/internal/utf8.h>

wf_status keys_read(struct reader *r, const struct key *keys, bool typed, json_t *object, void *out)
{
    const char *known[16] = {"type"};
    int count = typed;
    for (const struct key *key = keys; key && key->name; key++)
        known[count++] = key->name;
    known[count] = NULL;
    wf_status status = wf_json_only_keys(object, r->where, known, r->error);
    for (const struct key *key = keys; status == WF_OK && key && key->name; key++)
        status = key->kind->read(r, key, object, (char *)out + key->at);
    return status;
}

void keys_write(const wf_tokenizer *t, const struct key *keys, const void *from, json_t *object)
{
    for (const struct key *key = keys; key && key->name; key++)
        if (key->kind->write)
            json_object_set_new(object, key->name, key->kind->write(t, key, (const char *)from + key->at));
}

uint64_t keys_hash(const wf_tokenizer *t, const struct key *keys, const void *from, uint64_t hash)
{
    for (const struct key *key = keys; key && key->name; key++)
        if (key->kind->hash)
            hash = key->kind->hash(t, key, (const char *)from + key->at, wf_hash(key->name, (int64_t)strlen(key->name), hash));
    return hash;
}

static enum wf_json_need need(const struct key *key)
{
    return key->optional ? WF_JSON_OPTIONAL : WF_JSON_REQUIRED;
}

static uint64_t hash_number(int64_t number, uint64_t hash)
{
    return wf_hash(&number, sizeof number, hash);
}

static wf_status read_bool(struct reader *r, const struct key *key, json_t *object, void *field)
{
    *(bool *)field = key->otherwise;
    return wf_json_get_bool(object, r->where, key->name, need(key), field, r->error);
}

static json_t *write_bool(const wf_tokenizer *t, const struct key *key, const void *field)
{
    (void)t, (void)key;
    return json_boolean(*(const bool *)field);
}

static uint64_t hash_bool(const wf_tokenizer *t, const struct key *key, const void *field, uint64_t hash)
{
    (void)t, (void)key;
    return hash_number(*(const bool *)field, hash);
}

const struct key_kind value_bool = {read_bool, write_bool, hash_bool};

static wf_status read_count(struct reader *r, const struct key *key, json_t *object, void *field)
{
    *(int64_t *)field = key->otherwise;
    return wf_json_get_int(object, r->where, key->name, need(key), 0, key->most ? key->most : INT64_MAX, field, r->error);
}

static json_t *write_count(const wf_tokenizer *t, const struct key *key, const void *field)
{
    int64_t count = *(const int64_t *)field;
    (void)t, (void)key;
    return count < 0 ? json_null() : json_integer(count);
}

static uint64_t hash_count(const wf_tokenizer *t, const struct key *key, const void *field, uint64_t hash)
{
    (void)t, (void)key;
    return hash_number(*(const int64_t *)field, hash);
}

const struct key_kind value_count = {read_count, write_count, hash_count};

static wf_status read_id(struct reader *r, const struct key *key, json_t *object, void *field)
{
    int64_t id = 0;
    wf_status status = wf_json_get_int(object, r->where, key->name, need(key), 0, INT32_MAX, &id, r->error);
    *(int32_t *)field = (int32_t)id;
    return status;
}

static json_t *write_id(const wf_tokenizer *t, const struct key *key, const void *field)
{
    (void)t, (void)key;
    return json_integer(*(const int32_t *)field);
}

static uint64_t hash_id(const wf_tokenizer *t, const struct key *key, const void *field, uint64_t hash)
{
    (void)t, (void)key;
    return hash_number(*(const int32_t *)field, hash);
}

const struct key_kind value_id = {read_id, write_id, hash_id};

static wf_status read_text(struct reader *r, const struct key *key, json_t *object, void *field)
{
    const char *text = NULL;
    wf_status status = wf_json_get_string(object, r->where, key->name, need(key), &text, r->error);
    return status == WF_OK && text ? keep_text(r, text, (int64_t)strlen(text), field) : status;
}

static json_t *write_text(const wf_tokenizer *t, const struct key *key, const void *field)
{
    const struct text *text = field;
    (void)t, (void)key;
    return text->data ? json_stringn(text->data, (size_t)text->length) : json_null();
}

static uint64_t hash_text(const wf_tokenizer *t, const struct key *key, const void *field, uint64_t hash)
{
    const struct text *text = field;
    (void)t, (void)key;
    return text->data ? wf_hash(text->data, text->length, hash) : hash_number(-1, hash);
}

const struct key_kind value_text = {read_text, write_text, hash_text};

static wf_status read_character(struct reader *r, const struct key *key, json_t *object, void *field)
{
    uint32_t point;
    char quoted[WF_QUOTE_SIZE];
    const struct text *text = field;
    wf_status status = read_text(r, key, object, field);
    if (status != WF_OK || (text->length > 0 && wf_utf8_decode(text->data, text->length, &point) == text->length))
        return status;
    return wf_error_set(r->error, WF_ERR_FORMAT, "%s: key \"%s\": one character is expected, not %s", r->where, key->name,
                        wf_text_quote(text->data, quoted));
}

const struct key_kind value_character = {read_character, write_text, hash_text};

static wf_status read_name(struct reader *r, const struct key *key, json_t *object, void *field)
{
    const char *name = key->names[key->otherwise];
    char quoted[WF_QUOTE_SIZE], list[256] = "";
    wf_status status = wf_json_get_string(object, r->where, key->name, need(key), &name, r->error);
    for (int i = 0, at = 0; key->names[i]; i++) {
        if (!strcmp(name, key->names[i])) {
            *(int *)field = i;
            return status;
        }
        at += snprintf(list + at, sizeof list - (size_t)at, "%s%s", i ? ", " : "", key->names[i]);
    }
    return wf_error_set(r->error, WF_ERR_FORMAT, "%s: key \"%s\": %s is none of %s", r->where, key->name, wf_text_quote(name, quoted),
                        list);
}

static json_t *write_name(const wf_tokenizer *t, const struct key *key, const void *field)
{
    (void)t;
    return json_string(key->names[*(const int *)field]);
}

static uint64_t hash_name(const wf_tokenizer *t, const struct key *key, const void *field, uint64_t hash)
{
    const char *name = key->names[*(const int *)field];
    (void)t;
    return wf_hash(name, (int64_t)strlen(name), hash);
}

const struct key_kind value_name = {read_name, write_name, hash_name};

static wf_status read_ignored(struct reader *r, const struct key *key, json_t *object, void *field)
{
    (void)r, (void)key, (void)object, (void)field;
    return WF_OK;
}

const struct key_kind value_ignored = {.read = read_ignored};
