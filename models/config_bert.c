/* SPDX-License-Identifier: MIT */
/* Hugging Face's config.json of a BERT. Keys that say nothing about what the model computes may be there; a setting that would
 * change the numbers and is not done here is refused by name. */
#include <stdio.h>
#include <string.h>

#include <weft/internal/json.h>
#include <weft/internal/text.h>

#include "config_bert.h"
#include <weft/internal/families.h>

static wf_status refuse(const char *path, const char *key, const char *value, const char *why, wf_error *error)
{
    char quoted[WF_QUOTE_SIZE];
    return wf_error_set(error, WF_ERR_FORMAT, "%s: key \"%s\": %s %s", path, key, wf_text_quote(value, quoted), why);
}

/* Keys that must be false (or absent): what else they would make of the model. */
static wf_status refuse_truths(const json_t *object, const char *path, wf_error *error)
{
    static const struct {
        const char *key, *what;
    } not_done[] = {{"is_decoder", "a decoder"}, {"add_cross_attention", "cross-attention"}, {"is_encoder_decoder", "an encoder-decoder"}};
    for (size_t i = 0; i < sizeof not_done / sizeof *not_done; i++) {
        bool on = false;
        wf_status status = wf_json_get_bool(object, path, not_done[i].key, WF_JSON_OPTIONAL, &on, error);
        if (status == WF_OK && on)
            status = wf_error_set(error, WF_ERR_FORMAT, "%s: key \"%s\": %s is not done here, only a BERT that encodes", path,
                                  not_done[i].key, not_done[i].what);
        if (status != WF_OK)
            return status;
    }
    return WF_OK;
}

static wf_status refuse_others(const json_t *object, const char *path, wf_error *error)
{
    const char *positions = "absolute";
    json_t *pruned = NULL;
    wf_status status = wf_json_get_string(object, path, "position_embedding_type", WF_JSON_OPTIONAL, &positions, error);
    if (status == WF_OK && strcmp(positions, "absolute") != 0)
        return refuse(path, "position_embedding_type", positions, "is not done here, only \"absolute\"", error);
    if (status == WF_OK)
        status = wf_json_get_object(object, path, "pruned_heads", WF_JSON_OPTIONAL, &pruned, error);
    if (status == WF_OK && pruned && json_object_size(pruned) > 0)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: key \"pruned_heads\": models with heads cut out are not read here", path);
    json_t *quantized = json_object_get(object, "quantization_config");
    if (status == WF_OK && quantized && !json_is_null(quantized))
        return wf_error_set(error, WF_ERR_FORMAT, "%s: key \"quantization_config\": quantised weights are not read here", path);
    return status == WF_OK ? refuse_truths(object, path, error) : status;
}

/* Hugging Face has several names for some, which differ by no more than rounding. */
static wf_status take_activation(const json_t *object, const char *path, enum wf_activation *out, wf_error *error)
{
    static const struct {
        const char *name;
        enum wf_activation activation;
    } names[] = {
        {"gelu", WF_GELU},           {"gelu_python", WF_GELU},        {"gelu_new", WF_GELU_TANH}, {"gelu_pytorch_tanh", WF_GELU_TANH},
        {"gelu_fast", WF_GELU_TANH}, {"gelu_accurate", WF_GELU_TANH}, {"relu", WF_RELU},          {"silu", WF_SILU},
        {"swish", WF_SILU}};
    const char *name = "gelu";
    wf_status status = wf_json_get_string(object, path, "hidden_act", WF_JSON_OPTIONAL, &name, error);
    if (status != WF_OK)
        return status;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i].name, name) == 0) {
            *out = names[i].activation;
            return WF_OK;
        }
    return refuse(path, "hidden_act", name, "is not done here: gelu, gelu_new, relu and silu are", error);
}

/* A key of theirs that is a number of ours, within our key's range. fallback: what their library takes where it is absent; 0: none. */
static wf_status take_int(const json_t *object, const char *path, const char *theirs, const char *ours, int64_t fallback,
                          struct wf_config *c, wf_error *error)
{
    const struct key *key = key_find(ours);
    int64_t value = fallback;
    double low = key->low > 1 ? key->low : 1; /* here a vocabulary has a size */
    wf_status status = wf_json_get_int(object, path, theirs, fallback > 0 ? WF_JSON_OPTIONAL : WF_JSON_REQUIRED, (int64_t)low,
                                       (int64_t)key->high, &value, error);
    return status == WF_OK ? key_set_int(key, c, value, error) : status;
}

static wf_status take_real(const json_t *object, const char *path, const char *theirs, const char *ours, double fallback,
                           struct wf_config *c, wf_error *error)
{
    const struct key *key = key_find(ours);
    wf_error range = {0};
    double value = fallback;
    wf_status status = wf_json_get_double(object, path, theirs, WF_JSON_OPTIONAL, key->low, key->high, &value, error);
    if (status == WF_OK && key_set_real(key, c, value, &range) != WF_OK) /* a bound that is outside the range */
        status = wf_error_set(error, WF_ERR_FORMAT, "%s: key \"%s\": %s", path, theirs, range.message);
    return status;
}

wf_status config_bert_take(const json_t *object, const char *path, struct wf_config *c, wf_error *error)
{
    wf_error between = {0};
    snprintf(c->model, sizeof c->model, "bert");
    snprintf(c->family, sizeof c->family, "bert");
    wf_status status = refuse_others(object, path, error);
    if (status == WF_OK)
        status = take_int(object, path, "vocab_size", "vocab_size", 0, c, error);
    if (status == WF_OK)
        status = take_int(object, path, "hidden_size", "d_model", 0, c, error);
    if (status == WF_OK)
        status = take_int(object, path, "num_hidden_layers", "layers", 0, c, error);
    if (status == WF_OK)
        status = take_int(object, path, "num_attention_heads", "heads", 0, c, error);
    if (status == WF_OK)
        status = take_int(object, path, "intermediate_size", "d_ff", 0, c, error);
    if (status == WF_OK)
        status = take_int(object, path, "max_position_embeddings", "context", 512, c, error);
    if (status == WF_OK)
        status = take_int(object, path, "type_vocab_size", "segments", 2, c, error);
    if (status == WF_OK)
        status = take_real(object, path, "layer_norm_eps", "norm_eps", 1e-12, c, error);
    if (status == WF_OK)
        status = take_real(object, path, "hidden_dropout_prob", "dropout", 0.1, c, error);
    if (status == WF_OK)
        status = take_real(object, path, "attention_probs_dropout_prob", "attention_dropout", 0.1, c, error);
    if (status == WF_OK)
        status = take_activation(object, path, &c->activation, error);
    if (status == WF_OK && c->d_model % c->heads != 0)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: num_attention_heads: %lld don't divide hidden_size %lld", path, (long long)c->heads,
                            (long long)c->d_model);
    if (status == WF_OK && wf_config_check(c, &between) != WF_OK)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: %s", path, between.message);
    return status;
}
