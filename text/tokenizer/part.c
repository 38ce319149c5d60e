/* SPDX-License-Identifier: MIT */
/* The parts of a tokenizer (part.h): reads, writes and hashes them by their descriptors, and holds their memory. Also implements the type
 * "Sequence" of tokenizer.json, a part that runs several parts in order. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "pattern.h"
#include "split.h"
#include <weft/internal/hash.h>
#include <weft/internal/json.h>
#include <weft/internal/name_list.h>
#include <weft/internal/text.h>
#include <weft/memory.h>

/* The head of a block of memory. Its 64 bytes keep the memory after it aligned. */
struct block {
    struct block *next;
    char pad[64 - sizeof(struct block *)];
};

void *reader_keep(struct reader *r, int64_t count, int64_t size)
{
    struct block *block = NULL;
    if (count <= (PTRDIFF_MAX - (int64_t)sizeof *block) / size)
        block = wf_alloc_zero(1, sizeof *block + (size_t)(count * size));
    if (!block) {
        reader_no_memory(r);
        return NULL;
    }
    block->next = r->t->block;
    r->t->block = block;
    return block + 1;
}

void reader_refuse(struct reader *r, const char *format, ...)
{
    char text[sizeof r->error->message];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    wf_error_set(r->error, WF_ERR_FORMAT, "%s: %s", r->where, text);
}

void reader_no_memory(struct reader *r)
{
    wf_error_set(r->error, WF_ERR_MEMORY, "%s: no memory for the tokenizer", r->where);
}

json_t *reader_array(struct reader *r, const json_t *object, const char *name)
{
    struct wf_json_reader in = {.object = object, .where = r->where, .error = r->error};
    json_t *array = NULL;
    wf_json_read_array(&in, name, WF_JSON_REQUIRED, &array);
    return array;
}

json_t *reader_object(struct reader *r, const json_t *object, const char *name)
{
    struct wf_json_reader in = {.object = object, .where = r->where, .error = r->error};
    json_t *member = NULL;
    wf_json_read_object(&in, name, WF_JSON_REQUIRED, &member);
    return member;
}

void wf_tokenizer_free(wf_tokenizer *t)
{
    if (!t)
        return;
    for (struct pattern *p = t->pattern; p; p = p->next)
        pattern_free(p);
    for (struct block *block = t->block, *next; block; block = next) {
        next = block->next;
        wf_free(block);
    }
    point_map_free(&t->model.points);
    vocab_free(&t->vocab);
    wf_free(t);
}

/* --- reading and writing parts -------------------------------------------------------------------------------------- */

static const struct part_type *const types[] = {
#define PART(name) &name,
#include "parts.def"
#undef PART
};
static const char *const stages[] = {[PART_NORMALIZER] = "normalizer",
                                     [PART_PRE_TOKENIZER] = "pre_tokenizer",
                                     [PART_MODEL] = "model",
                                     [PART_POST_PROCESSOR] = "post_processor",
                                     [PART_DECODER] = "decoder"};

/* Maximum number of parts of one stage, including steps of Sequences. Each step costs a pass over the whole text, and when the file is read
 * a pass over each added token. Real files have fewer than ten. */
enum { MOST_PARTS = 256 };

const struct part_type *part_type_of(struct reader *r, enum part_stage stage, json_t *value, const char *otherwise)
{
    struct wf_json_reader in = {.object = value, .where = r->where, .error = r->error};
    const char *name = otherwise;
    char quoted[WF_QUOTE_SIZE];
    if (!json_is_object(value)) {
        reader_refuse(r, "key \"%s\": an object or null is expected", stages[stage]);
        return NULL;
    }
    wf_json_read_string(&in, "type", otherwise ? WF_JSON_OPTIONAL : WF_JSON_REQUIRED, &name);
    for (size_t i = 0; name && i < sizeof types / sizeof *types; i++)
        if (types[i]->stage == stage && !strcmp(types[i]->name, name))
            return types[i];
    struct wf_name_list known = {0};
    for (size_t i = 0; name && i < sizeof types / sizeof *types; i++)
        if (types[i]->stage == stage)
            wf_name_list_add(&known, types[i]->name, "");
    if (name)
        reader_refuse(r, "the %s %s is not supported by this version; these are: %s", stages[stage], wf_text_quote(name, quoted),
                      known.text);
    return NULL;
}

const struct part *part_read(struct reader *r, enum part_stage stage, json_t *value)
{
    const struct part_type *type = !value || json_is_null(value) ? NULL : part_type_of(r, stage, value, NULL);
    if (!type)
        return NULL;
    if (++r->parts[stage] > MOST_PARTS)
        reader_refuse(r, "the %s has more than %d steps; remove some", stages[stage], MOST_PARTS);
    struct part *part = reader_keep(r, 1, type->size ? (int64_t)type->size : (int64_t)sizeof *part);
    if (reader_failed(r))
        return NULL;
    part->type = type;
    keys_read(r, type->keys, true, value, part);
    if (!reader_failed(r) && type->ready)
        type->ready(r, part);
    return part;
}

json_t *part_write(const struct part *part)
{
    if (!part)
        return json_null();
    json_t *object = json_object();
    json_object_set_new(object, "type", json_string(part->type->name));
    keys_write(part->type->keys, part, object);
    return object;
}

uint64_t part_hash(const struct part *part, uint64_t hash)
{
    const char *name = part ? part->type->name : "";
    hash = wf_hash(name, (int64_t)strlen(name), hash);
    return part ? keys_hash(part->type->keys, part, hash) : hash;
}

/* --- Sequence ------------------------------------------------------------------------------------------------------- */

static void read_steps(struct reader *r, const struct key *key, json_t *object, void *field)
{
    struct steps *steps = field;
    enum part_stage stage = (enum part_stage)key->most;
    json_t *array = reader_array(r, object, key->name);
    steps->step = reader_keep(r, (int64_t)json_array_size(array), sizeof *steps->step);
    for (size_t i = 0; i < json_array_size(array) && !reader_failed(r); i++) {
        json_t *step = json_array_get(array, i);
        if (!json_is_object(step))
            reader_refuse(r, "a step of the %s is not an object", stages[stage]);
        steps->step[steps->count++] = part_read(r, stage, step);
    }
}

static json_t *write_steps(const void *field)
{
    const struct steps *steps = field;
    json_t *array = json_array();
    for (int64_t i = 0; i < steps->count; i++)
        json_array_append_new(array, part_write(steps->step[i]));
    return array;
}

static uint64_t hash_steps(const void *field, uint64_t hash)
{
    const struct steps *steps = field;
    hash = number_hash(steps->count, hash);
    for (int64_t i = 0; i < steps->count; i++)
        hash = part_hash(steps->step[i], hash);
    return hash;
}

static const struct key_kind value_steps = {KIND_OWN, read_steps, write_steps, hash_steps};

const struct steps *part_steps(const struct part *part)
{
    static const struct steps none;
    bool several = part && part->type->keys && part->type->keys->kind == &value_steps;
    return several ? &((const struct sequence *)part)->steps : &none;
}

bool part_has(const struct part *part, const struct part_type *type)
{
    const struct steps *steps = part_steps(part);
    bool found = part && part->type == type;
    for (int64_t i = 0; !found && i < steps->count; i++)
        found = part_has(steps->step[i], type);
    return found;
}

wf_status part_normalize(const struct part *part, struct scratch *s, struct view *text)
{
    const struct steps *steps = part_steps(part);
    wf_status status = WF_OK;
    if (part && part->type->normalize)
        status = part->type->normalize(part, s, text);
    else if (part && part->type->put)
        status = normalize_points(s, text, part->type->put);
    for (int64_t i = 0; status == WF_OK && i < steps->count; i++)
        status = part_normalize(steps->step[i], s, text);
    return status;
}

wf_status part_split(const struct part *part, struct scratch *s)
{
    const struct steps *steps = part_steps(part);
    wf_status status = WF_OK;
    if (part && part->type->split)
        status = part->type->split(part, s);
    else if (part && part->type->cut)
        status = split_words(part, s);
    for (int64_t i = 0; status == WF_OK && i < steps->count; i++)
        status = part_split(steps->step[i], s);
    return status;
}

bool part_finish(const struct part *part, struct wf_tokens *out, int64_t begin)
{
    const struct steps *steps = part_steps(part);
    bool ok = !part || !part->type->finish || part->type->finish(part, out, begin);
    for (int64_t i = 0; ok && i < steps->count; i++)
        ok = part_finish(steps->step[i], out, begin);
    return ok;
}

void part_grows(const struct part *part, int64_t *times, int64_t *added)
{
    const struct steps *steps = part_steps(part);
    if (part && part->type->grows)
        part->type->grows(part, times, added);
    for (int64_t i = 0; i < steps->count; i++)
        part_grows(steps->step[i], times, added);
}

#define SEQUENCE(stage, name)                                                                                                              \
    {                                                                                                                                      \
        "Sequence", stage, sizeof(struct sequence), KEYS({name, &value_steps, offsetof(struct sequence, steps), .most = stage})            \
    }
const struct part_type normalizer_sequence = SEQUENCE(PART_NORMALIZER, "normalizers");
const struct part_type pre_sequence = SEQUENCE(PART_PRE_TOKENIZER, "pretokenizers");
const struct part_type post_sequence = SEQUENCE(PART_POST_PROCESSOR, "processors");
const struct part_type decoder_sequence = SEQUENCE(PART_DECODER, "decoders");
