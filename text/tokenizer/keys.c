/* SPDX-License-Identifier: MIT */
/* The keys of tokenizer.json: reads, writes and hashes each kind of value. The hash covers values in the order of the descriptors' keys, so
 * it does not depend on the layout of a file. */
#include <stdio.h>
#include <string.h>

#include "internal.h"
#include <weft/internal/hash.h>
#include <weft/internal/json.h>
#include <weft/internal/text.h>
#include <weft/internal/utf8.h>

const struct key_kind value_any = {KIND_ANY}, value_bool = {KIND_BOOL}, value_choice = {KIND_CHOICE}, value_count = {KIND_COUNT},
                      value_id = {KIND_ID}, value_name = {KIND_NAME}, value_text = {KIND_TEXT}, value_character = {KIND_CHARACTER};

void text_read(struct reader *r, const json_t *value, const char *what, struct text *out)
{
    if (!json_is_string(value)) {
        reader_refuse(r, "%s is not a string", what);
        return;
    }
    int64_t length = (int64_t)json_string_length(value);
    char *copy = reader_keep(r, length + 1, 1);
    if (copy)
        *out = (struct text){memcpy(copy, json_string_value(value), (size_t)length), length};
}

json_t *text_write(const struct text *text)
{
    return text->data ? json_stringn(text->data, (size_t)text->length) : json_null();
}

uint64_t number_hash(int64_t number, uint64_t hash)
{
    return wf_hash(&number, sizeof number, hash);
}

uint64_t text_hash(const struct text *text, uint64_t hash)
{
    return text->data ? wf_hash(text->data, text->length, hash) : number_hash(-1, hash);
}

static void read_name(struct reader *r, const struct key *key, const char *name, int32_t *out)
{
    char quoted[WF_QUOTE_SIZE], list[256] = "";
    for (int i = 0, at = 0; key->names[i]; i++) {
        if (!strcmp(name, key->names[i])) {
            *out = i;
            return;
        }
        at += snprintf(list + at, sizeof list - (size_t)at, "%s%s", i ? ", " : "", key->names[i]);
    }
    reader_refuse(r, "key \"%s\": %s is none of %s", key->name, wf_text_quote(name, quoted), list);
}

static void read_key(struct reader *r, const struct key *key, json_t *object, void *field)
{
    struct wf_json_reader in = {.object = object, .where = r->where, .error = r->error};
    enum wf_json_need need = key->optional ? WF_JSON_OPTIONAL : WF_JSON_REQUIRED;
    json_t *value = json_object_get(object, key->name);
    char quoted[WF_QUOTE_SIZE];
    int64_t number = key->otherwise;
    bool yes = key->otherwise;
    uint32_t point;
    const struct text *text = field;
    const char *string = key->kind->plain == KIND_NAME && key->otherwise >= 0 ? key->names[key->otherwise] : NULL;
    switch (key->kind->plain) {
    case KIND_OWN:
        key->kind->read(r, key, object, field);
        break;
    case KIND_ANY:
        break;
    case KIND_BOOL:
        wf_json_read_bool(&in, key->name, need, &yes);
        *(bool *)field = yes;
        break;
    case KIND_CHOICE:
        wf_json_read_bool(&in, key->name, WF_JSON_OPTIONAL, &yes);
        *(int32_t *)field = json_is_boolean(value) ? yes : -1;
        break;
    case KIND_COUNT:
        wf_json_read_int(&in, key->name, need, 0, key->most ? key->most : INT64_MAX, &number);
        *(int64_t *)field = number;
        break;
    case KIND_ID:
        wf_json_read_int(&in, key->name, need, 0, INT32_MAX, &number);
        *(int32_t *)field = (int32_t)number;
        break;
    case KIND_NAME:
        wf_json_read_string(&in, key->name, need, &string);
        *(int32_t *)field = -1;
        if (string)
            read_name(r, key, string, field);
        break;
    case KIND_TEXT:
    case KIND_CHARACTER:
        wf_json_read_string(&in, key->name, need, &string);
        if (string)
            text_read(r, value, key->name, field);
        if (key->kind->plain == KIND_CHARACTER && !reader_failed(r) &&
            (text->length == 0 || wf_utf8_decode(text->data, text->length, &point) != text->length))
            reader_refuse(r, "key \"%s\": one character is expected, not %s", key->name, wf_text_quote(string, quoted));
        break;
    }
}

void keys_read(struct reader *r, const struct key *keys, bool typed, json_t *object, void *out)
{
    const char *known[16] = {"type"};
    int count = typed;
    for (const struct key *key = keys; key && key->name; key++)
        known[count++] = key->name;
    known[count] = NULL;
    if (wf_json_only_keys(object, r->where, known, r->error) != WF_OK)
        return;
    for (const struct key *key = keys; key && key->name && !reader_failed(r); key++)
        read_key(r, key, object, (char *)out + key->at);
}

static int64_t number_of(const struct key *key, const void *field)
{
    return key->kind->plain == KIND_BOOL    ? *(const bool *)field
           : key->kind->plain == KIND_COUNT ? *(const int64_t *)field
                                            : *(const int32_t *)field;
}

static json_t *write_key(const struct key *key, const void *field)
{
    switch (key->kind->plain) {
    case KIND_OWN:
        return key->kind->write ? key->kind->write(field) : json_null();
    case KIND_TEXT:
    case KIND_CHARACTER:
        return text_write(field);
    case KIND_NAME:
        return json_string(key->names[number_of(key, field)]);
    default:
        break;
    }
    int64_t number = number_of(key, field);
    bool boolean = key->kind->plain == KIND_BOOL || key->kind->plain == KIND_CHOICE;
    return number < 0 ? json_null() : boolean ? json_boolean(number) : json_integer(number);
}

void keys_write(const struct key *keys, const void *from, json_t *object)
{
    for (const struct key *key = keys; key && key->name; key++)
        if (!key->old)
            json_object_set_new(object, key->name, write_key(key, (const char *)from + key->at));
}

uint64_t keys_hash(const struct key *keys, const void *from, uint64_t hash)
{
    for (const struct key *key = keys; key && key->name; key++) {
        const void *field = (const char *)from + key->at;
        if (key->old || (key->kind->plain == KIND_OWN && !key->kind->hash))
            continue;
        hash = wf_hash(key->name, (int64_t)strlen(key->name), hash);
        if (key->kind->plain == KIND_OWN) {
            hash = key->kind->hash(field, hash);
        } else if (key->kind->plain == KIND_NAME) {
            const char *name = key->names[number_of(key, field)];
            hash = wf_hash(name, (int64_t)strlen(name), hash);
        } else if (key->kind->plain >= KIND_TEXT) {
            hash = text_hash(field, hash);
        } else {
            hash = number_hash(number_of(key, field), hash);
        }
    }
    return hash;
}
