/* SPDX-License-Identifier: MIT */
/* Makes attention maps: runs a text through a model once, and copies the attention weights of every layer and head. */
#include <weft/attention_map.h>
#include <weft/internal/needs.h>

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
    if (!maps)
        return;
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
    if (!maps)
        return NULL;
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
    if (wf_needs(error, "maps, map", maps, map))
        return WF_ERR_ARGUMENT;
    bool layer = head.layer < 1 || head.layer > map->layers;
    if (!layer && head.head >= 1 && head.head <= map->heads)
        return WF_OK;
    return wf_error_set(error, WF_ERR_ARGUMENT,
                        "there is no %s %" PRId64 ": the %s-attention of %s has %" PRId64 " layer%s of %" PRId64 " head%s, counted from 1",
                        layer ? "layer" : "head", layer ? head.layer : head.head, wf_map_kind_name(map->kind), maps->model, map->layers,
                        map->layers == 1 ? "" : "s", map->heads, map->heads == 1 ? "" : "s");
}

/* --- text to ids --------------------------------------------------------------------------------------------------- */

/* The tokens of one axis of the maps. */
struct axis {
    const char *name; /* "text", "source" or "target", for messages */
    const wf_tokenizer *tokenizer;
    struct wf_tokens ids;
    int64_t unknown; /* number of unknown tokens among the ids */
};

static wf_status no_memory(wf_error *error)
{
    return wf_error_set(error, WF_ERR_MEMORY, "no memory for attention maps");
}

static wf_status push(struct axis *a, int32_t id, wf_error *error)
{
    if (!wf_grow(&a->ids.id, &a->ids.capacity, a->ids.count + 1, sizeof *a->ids.id))
        return no_memory(error);
    a->ids.id[a->ids.count++] = id;
    return WF_OK;
}

static wf_status push_special(struct axis *a, enum wf_special special, wf_error *error)
{
    int32_t id = wf_tokenizer_special(a->tokenizer, special);
    if (id >= 0)
        return push(a, id, error);
    return wf_error_set(error, WF_ERR_ARGUMENT, "the %s tokenizer has no token for the %s of a sentence, which the model needs", a->name,
                        special == WF_SPECIAL_BOS ? "beginning" : "end");
}

static wf_status encode(struct axis *a, const char *text, int64_t length, bool specials, wf_error *error)
{
    const struct wf_encode_options o = {.specials = specials, .whole = true, .unknown = &a->unknown};
    wf_status status = wf_tokenizer_encode_with(a->tokenizer, text, length, &o, &a->ids, error);
    if (status != WF_OK)
        wf_error_prefix(error, "the %s", a->name);
    return status;
}

static wf_status refuse_empty(const struct axis *a, wf_error *error)
{
    return wf_error_set(error, WF_ERR_ARGUMENT, "the %s is empty: give at least a word", a->name);
}

static wf_status check_length(const struct axis *a, int64_t most, wf_error *error)
{
    if (a->ids.count <= most)
        return WF_OK;
    return wf_error_set(error, WF_ERR_ARGUMENT, "the %s has %" PRId64 " tokens, more than the maximum of %" PRId64 ": shorten it", a->name,
                        a->ids.count, most);
}

/* Encodes a sentence in the same way as translation does: it must be one line, and the white space around it is removed. */
static wf_status encode_sentence(struct axis *a, const char *text, wf_error *error)
{
    int64_t length = (int64_t)strlen(text), from = 0, to = 0, before = a->ids.count;
    for (int64_t next = 0, line_from = 0, line_to = 0; next < length;) {
        next = wf_line_at(text, length, next, &line_from, &line_to);
        if (line_to > line_from && to > from)
            return wf_error_set(error, WF_ERR_ARGUMENT, "the %s has several lines: maps are of one sentence", a->name);
        if (line_to > line_from)
            from = line_from, to = line_to;
    }
    wf_status status = encode(a, text + from, to - from, false, error);
    return status == WF_OK && a->ids.count == before ? refuse_empty(a, error) : status;
}

/* --- tensors to maps ----------------------------------------------------------------------------------------------- */

static char **pieces_of(const struct axis *a, bool labels)
{
    char **names = wf_alloc_zero((size_t)a->ids.count, sizeof *names);
    for (int64_t i = 0; names && i < a->ids.count; i++) {
        int32_t id = a->ids.id[i];
        names[i] = labels ? label_of(a->tokenizer, id) : wf_strdup(wf_tokenizer_token(a->tokenizer, id, NULL));
        if (!names[i]) {
            labels_free(names, i);
            return NULL;
        }
    }
    return names;
}

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

/* Adds a map with the weights of `layers` tensors [1,H,Q,K]. */
static wf_status add_map(struct wf_attention_maps *maps, enum wf_map_kind kind, wf_tensor *const *weights, int64_t layers,
                         const struct axis *query, const struct axis *key, wf_tape *tape, wf_error *error)
{
    for (int64_t l = 0; l < layers; l++)
        if (!weights[l]) /* the layer, or the whole family, has no attention */
            return wf_error_set(error, WF_ERR_ARGUMENT, "layer %lld of the model has no attention weights to show", (long long)l + 1);
    struct wf_attention_map *m = &maps->map[maps->count++];
    *m = (struct wf_attention_map){.kind = kind,
                                   .layers = layers,
                                   .heads = wf_dim(weights[0], 1),
                                   .queries = query->ids.count,
                                   .keys = key->ids.count,
                                   .query = pieces_of(query, false),
                                   .key = pieces_of(key, false),
                                   .query_label = pieces_of(query, true),
                                   .key_label = pieces_of(key, true)};
    if (!m->query || !m->key || !m->query_label || !m->key_label)
        return no_memory(error);
    return copy_weights(m, weights, tape, error);
}

/* --- kinds of models ----------------------------------------------------------------------------------------------- */

static wf_status of_text(const struct wf_run *run, const char *text, wf_tape *tape, struct wf_attention_maps *maps, wf_error *error)
{
    struct axis a = {.name = "text", .tokenizer = run->tokenizer};
    const struct wf_model_shape *c = wf_model_shape_of(run->model);
    bool encoder = wf_model_kind_of(run->model) == WF_MODEL_ENCODER;
    wf_tensor **weights = wf_alloc_zero((size_t)c->layers, sizeof *weights);
    wf_status status = weights ? encode(&a, "", 0, encoder, error) : no_memory(error);
    int64_t alone = a.ids.count; /* number of special tokens that the tokenizer adds; a text that gives only these is refused as empty */
    a.ids.count = 0;
    if (status == WF_OK)
        status = encode(&a, text, (int64_t)strlen(text), encoder, error);
    if (status == WF_OK)
        status = a.ids.count == alone ? refuse_empty(&a, error) : check_length(&a, c->context, error);
    if (status == WF_OK) {
        wf_tape_reset(tape, WF_INFER, .precision = wf_model_precision(run->model));
        wf_tensor *in = wf_ids(tape, a.ids.id, 1, a.ids.count); /* [1,T] */
        wf_tensor *out = encoder ? wf_encoder_forward(run->model, in, .weights = weights) : wf_model_attention(run->model, in, weights);
        status = wf_is_poison(out) ? wf_tape_status(tape, error)
                                   : add_map(maps, encoder ? WF_MAP_ENCODER : WF_MAP_DECODER, weights, c->layers, &a, &a, tape, error);
    }
    maps->unknown = a.unknown;
    maps->tokens = a.ids.count;
    wf_tokens_free(&a.ids);
    wf_free(weights);
    return status;
}

static wf_status source_ids(const struct wf_run *run, const char *text, struct axis *source, wf_error *error)
{
    struct wf_model_shape c = wf_config_shape(&run->config);
    wf_status status = c.source_bos ? push_special(source, WF_SPECIAL_BOS, error) : WF_OK;
    if (status == WF_OK)
        status = encode_sentence(source, text, error);
    if (status == WF_OK && c.source_eos)
        status = push_special(source, WF_SPECIAL_EOS, error);
    return status == WF_OK ? check_length(source, c.context, error) : status;
}

/* Makes the input of the decoder: <s>, then the tokens of the text, or of the model's translation if there is no text. */
static wf_status target_ids(const struct wf_run *run, const char *text, wf_tape *tape, const struct axis *source, struct axis *target,
                            wf_error *error)
{
    int64_t most = wf_model_shape_of(run->model)->context;
    int32_t eos = wf_tokenizer_special(run->tokenizer, WF_SPECIAL_EOS);
    wf_status status = push_special(target, WF_SPECIAL_BOS, error);
    if (status == WF_OK && text)
        status = encode_sentence(target, text, error);
    if (status != WF_OK || text)
        return status == WF_OK ? check_length(target, most, error) : status;
    if (eos < 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "the target tokenizer has no token for the end of a sentence: give a target");
    const int32_t offsets[2] = {0, (int32_t)source->ids.count};
    struct wf_translations t = {0};
    status = wf_translate(run->model, tape, source->ids.id, offsets, 1, target->ids.id[0], eos, &t, error);
    /* with <s> before it, a translation of maximum length has one token more than the decoder accepts, so the last token is left out */
    for (int64_t i = 0; status == WF_OK && i < t.hypothesis[0].length && i < most - 1; i++)
        status = push(target, t.hypothesis[0].ids[i], error);
    wf_translations_free(&t);
    return status;
}

static wf_status of_ids(const struct wf_run *run, const struct axis *source, const struct axis *target, wf_tape *tape,
                        struct wf_attention_maps *maps, wf_error *error)
{
    int64_t encoders = wf_model_shape_of(run->model)->encoder_layers, decoders = wf_model_shape_of(run->model)->layers;
    const int32_t source_offsets[2] = {0, (int32_t)source->ids.count}, target_offsets[2] = {0, (int32_t)target->ids.count};
    wf_tensor **weights = wf_alloc_zero((size_t)(encoders + 2 * decoders), sizeof *weights);
    if (!weights)
        return no_memory(error);
    struct wf_seq2seq_weights w = {.encoder = weights, .decoder = weights + encoders, .cross = weights + encoders + decoders};
    struct wf_pairs pair = {.count = 1,
                            .source = source->ids.id,
                            .source_offsets = source_offsets,
                            .input = target->ids.id,
                            .target = target->ids.id, /* any ids will do, because no loss is computed */
                            .target_offsets = target_offsets};
    wf_tape_reset(tape, WF_INFER, .precision = wf_model_precision(run->model));
    wf_status status = wf_is_poison(wf_pairs_logits(run->model, tape, &pair, &w)) ? wf_tape_status(tape, error) : WF_OK;
    if (status == WF_OK)
        status = add_map(maps, WF_MAP_ENCODER, w.encoder, encoders, source, source, tape, error);
    if (status == WF_OK)
        status = add_map(maps, WF_MAP_DECODER, w.decoder, decoders, target, target, tape, error);
    if (status == WF_OK)
        status = add_map(maps, WF_MAP_CROSS, w.cross, decoders, target, source, tape, error);
    wf_free(weights);
    return status;
}

static wf_status of_pair(const struct wf_run *run, const struct wf_attention_request *request, wf_tape *tape,
                         struct wf_attention_maps *maps, wf_error *error)
{
    struct axis source = {.name = "source", .tokenizer = run->source_tokenizer}, target = {.name = "target", .tokenizer = run->tokenizer};
    wf_status status = source_ids(run, request->source, &source, error);
    if (status == WF_OK)
        status = target_ids(run, request->target, tape, &source, &target, error);
    if (status == WF_OK)
        status = of_ids(run, &source, &target, tape, maps, error);
    maps->unknown = source.unknown + target.unknown;
    maps->tokens = source.ids.count + (request->target ? target.ids.count : 0);
    wf_tokens_free(&source.ids);
    wf_tokens_free(&target.ids);
    return status;
}

/* Refuses a request that the kind of model cannot serve. */
static wf_status check(const struct wf_run *run, const struct wf_attention_request *r, wf_error *error)
{
    const char *name = run->config.model;
    enum wf_model_kind kind = wf_model_kind_of(run->model);
    const char *what = kind == WF_MODEL_ENCODER ? "an encoder" : "a language model";
    if (kind == WF_MODEL_PAIRS) {
        if (r->text)
            return wf_error_set(error, WF_ERR_ARGUMENT,
                                "%s is a translation model: give --source TEXT, and --target TEXT if you like, instead of --text", name);
        if (!r->source)
            return wf_error_set(error, WF_ERR_ARGUMENT, "%s is a translation model: give --source TEXT", name);
        return WF_OK;
    }
    if (r->source || r->target)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s is %s, which has no %s: give --text TEXT", name, what,
                            r->source ? "--source" : "--target");
    if (!r->text)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s is %s: give --text TEXT", name, what);
    return WF_OK;
}

wf_status wf_attention_of(const struct wf_run *run, const struct wf_attention_request *request, struct wf_attention_maps *maps,
                          wf_error *error)
{
    if (wf_needs(error, "maps", maps))
        return WF_ERR_ARGUMENT;
    *maps = (struct wf_attention_maps){0};
    if (wf_needs(error, "run, request", run, request))
        return WF_ERR_ARGUMENT;
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
