/* SPDX-License-Identifier: MIT */
/* Attention maps: a text through the model once, and the weights of every layer and head. */
#include <weft/attention_map.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weft/encoder.h>
#include <weft/internal/grow.h>
#include <weft/internal/sentence.h>
#include <weft/memory.h>
#include <weft/seq2seq.h>
#include <weft/translate.h>

#include "labels.h"

const char *wf_map_kind_name(enum wf_map_kind kind)
{
    static const char *const names[] = {"encoder", "decoder", "cross"};
    return (unsigned)kind <= WF_MAP_CROSS ? names[kind] : "?";
}

void wf_attention_free(struct wf_attention_maps *maps)
{
    for (int i = 0; i < maps->count; i++) {
        struct wf_attention_map *m = &maps->map[i];
        labels_free(m->query, m->queries);
        labels_free(m->query_label, m->queries);
        labels_free(m->key, m->keys);
        labels_free(m->key_label, m->keys);
        wf_free(m->weights);
    }
    *maps = (struct wf_attention_maps){0};
}

const struct wf_attention_map *wf_attention_find(const struct wf_attention_maps *maps, enum wf_map_kind kind)
{
    for (int i = 0; i < maps->count; i++)
        if (maps->map[i].kind == kind)
            return &maps->map[i];
    return NULL;
}

wf_status map_check(const struct wf_attention_map *map, wf_error *error)
{
    const char *kind = wf_map_kind_name(map->kind);
    int64_t head = map->queries * map->keys;
    const struct {
        char *const *name;
        int64_t count;
        const char *what;
    } lists[] = {{map->query, map->queries, "query"},
                 {map->key, map->keys, "key"},
                 {map->query_label, map->queries, "query_label"},
                 {map->key_label, map->keys, "key_label"}};
    if ((unsigned)map->kind > WF_MAP_CROSS)
        return wf_error_set(error, WF_ERR_ARGUMENT, "an attention map of kind %d: encoder, decoder and cross are 0, 1 and 2",
                            (int)map->kind);
    if (map->layers < 1 || map->heads < 1 || map->queries < 1 || map->keys < 1 || !map->weights)
        return wf_error_set(error, WF_ERR_ARGUMENT, "the %s's attention map is empty", kind);
    for (int l = 0; l < 4; l++)
        for (int64_t i = 0; i < lists[l].count; i++)
            if (!lists[l].name || !lists[l].name[i])
                return wf_error_set(error, WF_ERR_ARGUMENT, "the %s's attention map has no %s %" PRId64 ": give one for each token", kind,
                                    lists[l].what, i + 1);
    for (int64_t i = 0; i < map->layers * map->heads * head; i++)
        if (!isfinite(map->weights[i]))
            return wf_error_set(error, WF_ERR_NUMERIC, "%s attention, layer %" PRId64 ", head %" PRId64 ": a weight is not a number", kind,
                                i / head / map->heads + 1, i / head % map->heads + 1);
    return WF_OK;
}

wf_status wf_attention_check_head(const struct wf_attention_maps *maps, const struct wf_attention_map *map, struct wf_head head,
                                  wf_error *error)
{
    bool layer = head.layer < 1 || head.layer > map->layers;
    if (!layer && head.head >= 1 && head.head <= map->heads)
        return WF_OK;
    return wf_error_set(error, WF_ERR_ARGUMENT,
                        "there is no %s %" PRId64 ": the %s-attention of %s has %" PRId64 " layer%s of %" PRId64 " head%s, counted from 1",
                        layer ? "layer" : "head", layer ? head.layer : head.head, wf_map_kind_name(map->kind), maps->model, map->layers,
                        map->layers == 1 ? "" : "s", map->heads, map->heads == 1 ? "" : "s");
}

/* --- text to ids --------------------------------------------------------------------------------------------------- */

static wf_status no_memory(wf_error *error)
{
    return wf_error_set(error, WF_ERR_MEMORY, "no memory for attention maps");
}

static wf_status push(struct wf_tokens *ids, int32_t id, wf_error *error)
{
    if (!wf_grow(&ids->id, &ids->capacity, ids->count + 1, sizeof *ids->id))
        return no_memory(error);
    ids->id[ids->count++] = id;
    return WF_OK;
}

static wf_status push_mark(struct wf_tokens *ids, const wf_tokenizer *tokenizer, enum wf_special special, const char *side, wf_error *error)
{
    int32_t id = wf_tokenizer_special(tokenizer, special);
    if (id >= 0)
        return push(ids, id, error);
    return wf_error_set(error, WF_ERR_ARGUMENT, "the %s tokenizer has no token for the %s of a sentence, which the model needs", side,
                        special == WF_SPECIAL_BOS ? "beginning" : "end");
}

static wf_status encode(const wf_tokenizer *tokenizer, const char *what, const char *text, int64_t length, bool specials,
                        struct wf_tokens *ids, wf_error *error)
{
    const struct wf_encode_options o = {.specials = specials, .whole = true};
    wf_status status = wf_tokenizer_encode_with(tokenizer, text, length, &o, ids, error);
    if (status != WF_OK)
        wf_error_prefix(error, "the %s", what);
    return status;
}

static wf_status refuse_empty(const char *what, wf_error *error)
{
    return wf_error_set(error, WF_ERR_ARGUMENT, "the %s is empty: give at least a word", what);
}

static wf_status check_length(const char *what, int64_t count, int64_t most, wf_error *error)
{
    if (count <= most)
        return WF_OK;
    return wf_error_set(error, WF_ERR_ARGUMENT, "the %s has %" PRId64 " tokens, more than the maximum of %" PRId64 ": shorten it", what,
                        count, most);
}

/* A sentence as translation sees it: one line, without the white space at its edges. */
static wf_status encode_sentence(const wf_tokenizer *tokenizer, const char *what, const char *text, struct wf_tokens *ids, wf_error *error)
{
    int64_t length = (int64_t)strlen(text), from = 0, to = 0, before = ids->count;
    if (length == 0)
        return refuse_empty(what, error);
    int64_t next = wf_line_at(text, length, 0, &from, &to), more_from = 0, more_to = 0;
    while (next < length) {
        next = wf_line_at(text, length, next, &more_from, &more_to);
        if (more_to > more_from && to > from)
            return wf_error_set(error, WF_ERR_ARGUMENT, "the %s has several lines: maps are of one sentence", what);
        if (to == from)
            from = more_from, to = more_to;
    }
    wf_status status = encode(tokenizer, what, text + from, to - from, false, ids, error);
    return status == WF_OK && ids->count == before ? refuse_empty(what, error) : status;
}

/* --- tensors to maps ----------------------------------------------------------------------------------------------- */

static char **pieces_of(const wf_tokenizer *tokenizer, const struct wf_tokens *ids, bool labels)
{
    char **names = wf_alloc_zero((size_t)ids->count, sizeof *names);
    for (int64_t i = 0; names && i < ids->count; i++) {
        names[i] = labels ? label_of(tokenizer, ids->id[i]) : wf_strdup(wf_tokenizer_token(tokenizer, ids->id[i], NULL));
        if (!names[i]) {
            labels_free(names, i);
            return NULL;
        }
    }
    return names;
}

/* The tokens of one axis. */
struct axis {
    const wf_tokenizer *tokenizer;
    const struct wf_tokens *ids;
};

static wf_status copy_weights(struct wf_attention_map *m, wf_tensor *const *weights, wf_tape *tape, wf_error *error)
{
    int64_t each = m->heads * m->queries * m->keys;
    wf_real *layer = wf_alloc((size_t)each * sizeof *layer);
    m->weights = wf_alloc_zero((size_t)m->layers, (size_t)each * sizeof *m->weights);
    wf_status status = layer && m->weights ? WF_OK : no_memory(error);
    for (int64_t l = 0; status == WF_OK && l < m->layers; l++) {
        if (wf_read(weights[l], layer, each) != WF_OK) /* [1,H,Q,K] */
            status = wf_tape_status(tape, error);
        for (int64_t i = 0; status == WF_OK && i < each; i++) {
            m->weights[l * each + i] = (float)layer[i];
            if (!isfinite(layer[i]))
                status =
                    wf_error_set(error, WF_ERR_NUMERIC,
                                 "the %s-attention of layer %" PRId64 " is not finite: the weights are damaged, or the training diverged",
                                 wf_map_kind_name(m->kind), l + 1);
        }
    }
    wf_free(layer);
    return status;
}

/* One more map of `layers` tensors [1,H,Q,K]. */
static wf_status add_map(struct wf_attention_maps *maps, enum wf_map_kind kind, wf_tensor *const *weights, int64_t layers,
                         const struct axis *query, const struct axis *key, wf_tape *tape, wf_error *error)
{
    struct wf_attention_map *m = &maps->map[maps->count++];
    *m = (struct wf_attention_map){.kind = kind,
                                   .layers = layers,
                                   .heads = wf_dim(weights[0], 1),
                                   .queries = query->ids->count,
                                   .keys = key->ids->count,
                                   .query = pieces_of(query->tokenizer, query->ids, false),
                                   .key = pieces_of(key->tokenizer, key->ids, false),
                                   .query_label = pieces_of(query->tokenizer, query->ids, true),
                                   .key_label = pieces_of(key->tokenizer, key->ids, true)};
    if (!m->query || !m->key || !m->query_label || !m->key_label)
        return no_memory(error);
    return copy_weights(m, weights, tape, error);
}

/* --- kinds of models ----------------------------------------------------------------------------------------------- */

/* The ids of a text, with the marks of the tokenizer's template for an encoder. A text of nothing else is refused. */
static wf_status text_ids(const struct wf_run *run, const char *text, bool marks, struct wf_tokens *ids, wf_error *error)
{
    wf_status status = text[0] ? encode(run->tokenizer, "text", "", 0, marks, ids, error) : refuse_empty("text", error);
    int64_t alone = ids->count;
    ids->count = 0;
    if (status == WF_OK)
        status = encode(run->tokenizer, "text", text, (int64_t)strlen(text), marks, ids, error);
    if (status == WF_OK && ids->count == alone)
        status = refuse_empty("text", error);
    return status == WF_OK ? check_length("text", ids->count, wf_model_shape_of(run->model)->context, error) : status;
}

static wf_status of_text(const struct wf_run *run, const char *text, wf_tape *tape, struct wf_attention_maps *maps, wf_error *error)
{
    struct wf_tokens ids = {0};
    const struct wf_model_shape *c = wf_model_shape_of(run->model);
    bool encoder = wf_model_kind_of(run->model) == WF_MODEL_ENCODER;
    wf_tensor **weights = wf_alloc_zero((size_t)c->layers, sizeof *weights);
    wf_status status = weights ? text_ids(run, text, encoder, &ids, error) : no_memory(error);
    if (status == WF_OK) {
        wf_tape_reset(tape, WF_INFER);
        wf_tensor *in = wf_ids(tape, ids.id, 1, ids.count); /* [1,T] */
        wf_tensor *out = encoder ? wf_encoder_forward(run->model, in, .weights = weights) : wf_model_attention(run->model, in, weights);
        struct axis axis = {run->tokenizer, &ids};
        if (wf_is_poison(out))
            status = wf_tape_status(tape, error);
        else
            status = add_map(maps, encoder ? WF_MAP_ENCODER : WF_MAP_DECODER, weights, c->layers, &axis, &axis, tape, error);
    }
    wf_tokens_free(&ids);
    wf_free(weights);
    return status;
}

static wf_status source_ids(const struct wf_run *run, const char *text, struct wf_tokens *ids, wf_error *error)
{
    struct wf_model_shape c = wf_config_shape(&run->config);
    wf_status status = c.source_bos ? push_mark(ids, run->source_tokenizer, WF_SPECIAL_BOS, "source", error) : WF_OK;
    if (status == WF_OK)
        status = encode_sentence(run->source_tokenizer, "source", text, ids, error);
    if (status == WF_OK && c.source_eos)
        status = push_mark(ids, run->source_tokenizer, WF_SPECIAL_EOS, "source", error);
    return status == WF_OK ? check_length("source", ids->count, c.context, error) : status;
}

/* What the decoder is given: <s> w1 .. wn, of the text or of the model's own translation. */
static wf_status input_ids(const struct wf_run *run, const char *text, wf_tape *tape, const struct wf_tokens *source, struct wf_tokens *ids,
                           wf_error *error)
{
    wf_status status = push_mark(ids, run->tokenizer, WF_SPECIAL_BOS, "target", error);
    if (status == WF_OK && text) {
        status = encode_sentence(run->tokenizer, "target", text, ids, error);
        return status == WF_OK ? check_length("target", ids->count, wf_model_shape_of(run->model)->context, error) : status;
    }
    int32_t eos = wf_tokenizer_special(run->tokenizer, WF_SPECIAL_EOS);
    if (status == WF_OK && eos < 0)
        status = wf_error_set(error, WF_ERR_ARGUMENT, "the target tokenizer has no token for the end of a sentence: give a target");
    if (status != WF_OK)
        return status;
    const int32_t offsets[2] = {0, (int32_t)source->count};
    struct wf_translations t = {0};
    status = wf_translate(run->model, tape, source->id, offsets, 1, ids->id[0], eos, &t, error);
    int64_t most =
        wf_model_shape_of(run->model)->context - 1; /* a translation that the limit cut may have one more than the decoder takes */
    for (int64_t i = 0; status == WF_OK && i < t.hypothesis[0].length && i < most; i++)
        status = push(ids, t.hypothesis[0].ids[i], error);
    wf_translations_free(&t);
    return status;
}

static wf_status of_ids(const struct wf_run *run, const struct wf_tokens *source, const struct wf_tokens *input, wf_tape *tape,
                        struct wf_attention_maps *maps, wf_error *error)
{
    int64_t encoders = wf_model_shape_of(run->model)->encoder_layers, decoders = wf_model_shape_of(run->model)->layers;
    const int32_t source_offsets[2] = {0, (int32_t)source->count}, target_offsets[2] = {0, (int32_t)input->count};
    const struct axis from = {run->source_tokenizer, source}, to = {run->tokenizer, input};
    wf_tensor **weights = wf_alloc_zero((size_t)(encoders + 2 * decoders), sizeof *weights);
    if (!weights)
        return no_memory(error);
    struct wf_seq2seq_weights w = {.encoder = weights, .decoder = weights + encoders, .cross = weights + encoders + decoders};
    struct wf_pairs pair = {.count = 1,
                            .source = source->id,
                            .source_offsets = source_offsets,
                            .input = input->id,
                            .target = input->id, /* nothing is compared with it */
                            .target_offsets = target_offsets};
    wf_tape_reset(tape, WF_INFER);
    wf_tensor *out = wf_pairs_logits(run->model, tape, &pair, &w);
    wf_status status = WF_OK;
    if (wf_is_poison(out))
        status = wf_tape_status(tape, error);
    if (status == WF_OK)
        status = add_map(maps, WF_MAP_ENCODER, w.encoder, encoders, &from, &from, tape, error);
    if (status == WF_OK)
        status = add_map(maps, WF_MAP_DECODER, w.decoder, decoders, &to, &to, tape, error);
    if (status == WF_OK)
        status = add_map(maps, WF_MAP_CROSS, w.cross, decoders, &to, &from, tape, error);
    wf_free(weights);
    return status;
}

static wf_status of_pair(const struct wf_run *run, const struct wf_attention_request *request, wf_tape *tape,
                         struct wf_attention_maps *maps, wf_error *error)
{
    struct wf_tokens source = {0}, input = {0};
    wf_status status = source_ids(run, request->source, &source, error);
    if (status == WF_OK)
        status = input_ids(run, request->target, tape, &source, &input, error);
    if (status == WF_OK)
        status = of_ids(run, &source, &input, tape, maps, error);
    wf_tokens_free(&source);
    wf_tokens_free(&input);
    return status;
}

/* What is asked for is what the model takes. */
static wf_status check(const struct wf_run *run, const struct wf_attention_request *r, wf_error *error)
{
    const char *name = run->config.model;
    enum wf_model_kind kind = wf_model_kind_of(run->model);
    const char *what = kind == WF_MODEL_ENCODER ? "an encoder" : "a language model";
    if (kind == WF_MODEL_PAIRS) {
        if (r->text)
            return wf_error_set(error, WF_ERR_ARGUMENT,
                                "%s translates: give --source TEXT, and --target TEXT if you like, instead of --text", name);
        if (!r->source)
            return wf_error_set(error, WF_ERR_ARGUMENT, "%s translates: which sentence? Give --source TEXT", name);
        return WF_OK;
    }
    if (r->source || r->target)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s is %s, which has no %s: give --text TEXT", name, what,
                            r->source ? "--source" : "--target");
    if (!r->text)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s is %s: which text? Give --text TEXT", name, what);
    return WF_OK;
}

wf_status wf_attention_of(const struct wf_run *run, const struct wf_attention_request *request, struct wf_attention_maps *maps,
                          wf_error *error)
{
    *maps = (struct wf_attention_maps){0};
    snprintf(maps->model, sizeof maps->model, "%s", run->config.model);
    wf_status status = check(run, request, error);
    wf_tape *tape = status == WF_OK ? wf_tape_new(error) : NULL;
    if (status == WF_OK && !tape)
        status = WF_ERR_MEMORY;
    if (status == WF_OK && wf_model_kind_of(run->model) == WF_MODEL_PAIRS)
        status = of_pair(run, request, tape, maps, error);
    else if (status == WF_OK)
        status = of_text(run, request->text, tape, maps, error);
    wf_tape_free(tape);
    if (status != WF_OK)
        wf_attention_free(maps);
    return status;
}
