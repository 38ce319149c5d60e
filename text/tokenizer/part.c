/* SPDX-License-Identifier: MIT */
/* Parts by their descriptors, and those that are made of others. */
#include <inttypes.h>
#include <string.h>

#include "pattern.h"
#include <weft/internal/hash.h>
#include <weft/internal/json.h>
#include <weft/internal/text.h>
#include <weft/memory.h>

/* The head of a kept block, as wide as its alignment. */
struct block {
    struct block *next;
    char pad[64 - sizeof(struct block *)];
};

void *tokenizer_keep(wf_tokenizer *t, int64_t count, int64_t size)
{
    if (count < 0 || count > (PTRDIFF_MAX - (int64_t)sizeof(struct block)) / size)
        return NULL;
    struct block *block = wf_alloc_zero(1, sizeof *block + (size_t)(count * size));
    if (!block)
        return NULL;
    block->next = t->block;
    t->block = block;
    return block + 1;
}

wf_status keep_text(struct reader *r, const char *text, int64_t length, struct text *out)
{
    char *copy = tokenizer_keep(r->t, length + 1, 1);
    if (!copy)
        return reader_no_memory(r);
    memcpy(copy, text, (size_t)length);
    *out = (struct text){copy, length};
    return WF_OK;
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

wf_status reader_no_memory(struct reader *r)
{
    return wf_error_set(r->error, WF_ERR_MEMORY, "%s: no memory for the tokenizer", r->where);
}

wf_status part_refuse(struct reader *r, const char *part, const char *type)
{
    char quoted[WF_QUOTE_SIZE];
    return wf_error_set(r->error, WF_ERR_FORMAT, "%s: it asks for %s %s, which this version does not have", r->where, part,
                        wf_text_quote(type, quoted));
}

/* --- by their descriptors ------------------------------------------------------------------------------------------ */

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

/* Each step goes over the whole text, and over each added token when the file is read. Real files have less than ten. */
enum { MOST_PARTS = 256 };

wf_status part_type_of(struct reader *r, enum part_stage stage, json_t *value, const char *otherwise, const struct part_type **out)
{
    const char *name = otherwise;
    if (!json_is_object(value))
        return wf_error_set(r->error, WF_ERR_FORMAT, "%s: key \"%s\": an object or null is expected", r->where, stages[stage]);
    wf_status status = wf_json_get_string(value, r->where, "type", otherwise ? WF_JSON_OPTIONAL : WF_JSON_REQUIRED, &name, r->error);
    if (status != WF_OK)
        return status;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i]->stage == stage && !strcmp(types[i]->name, name)) {
            *out = types[i];
            return WF_OK;
        }
    return part_refuse(r, stages[stage], name);
}

wf_status part_read(struct reader *r, enum part_stage stage, json_t *value, const struct part **out)
{
    const struct part_type *type;
    *out = NULL;
    if (!value || json_is_null(value))
        return WF_OK;
    wf_status status = part_type_of(r, stage, value, NULL, &type);
    if (status != WF_OK)
        return status;
    if (++r->parts[stage] > MOST_PARTS)
        return wf_error_set(r->error, WF_ERR_FORMAT, "%s: the %s has more than %d steps; leave some out", r->where, stages[stage],
                            MOST_PARTS);
    struct part *part = tokenizer_keep(r->t, 1, type->size ? (int64_t)type->size : (int64_t)sizeof *part);
    if (!part)
        return reader_no_memory(r);
    part->type = type;
    status = keys_read(r, type->keys, true, value, part);
    if (status == WF_OK && type->ready)
        status = type->ready(r, value, part);
    *out = part;
    return status;
}

json_t *part_write(const wf_tokenizer *t, const struct part *part)
{
    if (!part)
        return json_null();
    json_t *object = json_object();
    json_object_set_new(object, "type", json_string(part->type->name));
    keys_write(t, part->type->keys, part, object);
    return object;
}

uint64_t part_hash(const wf_tokenizer *t, const struct part *part, uint64_t hash)
{
    const char *name = part ? part->type->name : "";
    hash = wf_hash(name, (int64_t)strlen(name), hash);
    return part ? keys_hash(t, part->type->keys, part, hash) : hash;
}

/* --- one after the other ------------------------------------------------------------------------------------------- */

static const struct steps *steps_of(const struct part *part)
{
    static const struct steps none;
    bool several = part->type == &normalizer_sequence || part->type == &pre_sequence || part->type == &post_sequence ||
                   part->type == &decoder_sequence;
    return several ? &((const struct sequence *)part)->steps : &none;
}

bool part_has(const struct part *part, const struct part_type *type)
{
    bool found = part && part->type == type;
    for (int64_t i = 0; part && !found && i < steps_of(part)->count; i++)
        found = part_has(steps_of(part)->step[i], type);
    return found;
}

static wf_status read_steps(struct reader *r, const struct key *key, json_t *object, void *field)
{
    struct steps *steps = field;
    json_t *array = NULL;
    enum part_stage stage = (enum part_stage)key->most;
    wf_status status = wf_json_get_array(object, r->where, key->name, WF_JSON_REQUIRED, &array, r->error);
    if (status != WF_OK)
        return status;
    steps->step = tokenizer_keep(r->t, (int64_t)json_array_size(array), sizeof *steps->step);
    if (!steps->step)
        return reader_no_memory(r);
    for (size_t i = 0; status == WF_OK && i < json_array_size(array); i++) {
        json_t *step = json_array_get(array, i);
        status = json_is_object(step)
                     ? part_read(r, stage, step, &steps->step[i])
                     : wf_error_set(r->error, WF_ERR_FORMAT, "%s: a step of the %s is not an object", r->where, stages[stage]);
        steps->count++;
    }
    return status;
}

static json_t *write_steps(const wf_tokenizer *t, const struct key *key, const void *field)
{
    const struct steps *steps = field;
    json_t *array = json_array();
    (void)key;
    for (int64_t i = 0; i < steps->count; i++)
        json_array_append_new(array, part_write(t, steps->step[i]));
    return array;
}

static uint64_t hash_steps(const wf_tokenizer *t, const struct key *key, const void *field, uint64_t hash)
{
    const struct steps *steps = field;
    (void)key;
    hash = wf_hash(&steps->count, sizeof steps->count, hash);
    for (int64_t i = 0; i < steps->count; i++)
        hash = part_hash(t, steps->step[i], hash);
    return hash;
}

static const struct key_kind value_steps = {read_steps, write_steps, hash_steps};
#define STEPS(key, stage) KEYS({key, &value_steps, offsetof(struct sequence, steps), .most = stage})

static wf_status normalize(const void *part, struct scratch *s, struct view *text)
{
    const struct steps *steps = &((const struct sequence *)part)->steps;
    wf_status status = WF_OK;
    for (int64_t i = 0; status == WF_OK && i < steps->count; i++)
        status = steps->step[i]->type->normalize(steps->step[i], s, text);
    return status;
}

static wf_status split(const void *part, struct scratch *s)
{
    const struct steps *steps = &((const struct sequence *)part)->steps;
    wf_status status = WF_OK;
    for (int64_t i = 0; status == WF_OK && i < steps->count; i++)
        status = steps->step[i]->type->split(steps->step[i], s);
    return status;
}

static bool finish(const void *part, struct wf_tokens *out, int64_t begin)
{
    const struct steps *steps = &((const struct sequence *)part)->steps;
    bool ok = true;
    for (int64_t i = 0; ok && i < steps->count; i++)
        ok = part_finish(steps->step[i], out, begin);
    return ok;
}

bool part_finish(const struct part *part, struct wf_tokens *out, int64_t begin)
{
    return !part || !part->type->finish || part->type->finish(part, out, begin);
}

static void grows(const void *part, int64_t *times, int64_t *added)
{
    const struct steps *steps = &((const struct sequence *)part)->steps;
    for (int64_t i = 0; i < steps->count; i++)
        part_grows(steps->step[i], times, added);
}

void part_grows(const struct part *part, int64_t *times, int64_t *added)
{
    if (part && part->type->grows)
        part->type->grows(part, times, added);
}

const struct part_type normalizer_sequence = {.name = "Sequence",
                                              .stage = PART_NORMALIZER,
                                              .size = sizeof(struct sequence),
                                              .keys = STEPS("normalizers", PART_NORMALIZER),
                                              .normalize = normalize};
const struct part_type pre_sequence = {.name = "Sequence",
                                       .stage = PART_PRE_TOKENIZER,
                                       .size = sizeof(struct sequence),
                                       .keys = STEPS("pretokenizers", PART_PRE_TOKENIZER),
                                       .split = split};
const struct part_type post_sequence = {.name = "Sequence",
                                        .stage = PART_POST_PROCESSOR,
                                        .size = sizeof(struct sequence),
                                        .keys = STEPS("processors", PART_POST_PROCESSOR),
                                        .finish = finish,
                                        .grows = grows};
const struct part_type decoder_sequence = {
    .name = "Sequence", .stage = PART_DECODER, .size = sizeof(struct sequence), .keys = STEPS("decoders", PART_DECODER)};
