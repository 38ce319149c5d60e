/* SPDX-License-Identifier: MIT */
/* The public functions of <weft/models.h>, for models of all families. */
#include <string.h>

#include <weft/internal/gemm.h>
#include <weft/internal/needs.h>
#include <weft/internal/tape_needs.h>
#include <weft/memory.h>
#include <weft/models.h>

#include <weft/internal/family.h>
#include <weft/internal/weights_end.h>

#include "keys.h"

/* Bytes of zeros after a model's struct. If a family's `size` or `block_size` is too small, its `init` writes to these bytes, and
 * wf_model_new reports the mistake. */
enum { BEHIND = 1 << 20 };

static size_t body_size(const wf_model *model)
{
    return model->family->size + (size_t)(model->shape.layers + model->shape.encoder_layers) * model->family->block_size;
}

static bool within(const wf_model *model, wf_error *error)
{
    const size_t size = body_size(model);
    const unsigned char *behind = (const unsigned char *)model->body + size;
    if (behind[0] == 0 && memcmp(behind, behind + 1, BEHIND - 1) == 0)
        return true;
    wf_error_set(
        error, WF_ERR_ARGUMENT,
        "family %s: init wrote behind its struct of %zu bytes: .size is that of the struct, and .block_size that of a block, of which "
        "it has %lld",
        model->family->name, size, (long long)(model->shape.layers + model->shape.encoder_layers));
    return false;
}

/* The linear layer from hidden states to logits; NULL if the family has none. */
static const struct wf_linear *head(const wf_model *model)
{
    return model->family->head ? (const void *)((const char *)model->body + model->family->head - 1) : NULL;
}

wf_model *wf_model_new_with(const struct wf_config *config, const struct wf_model_options *options, wf_error *error)
{
    if (wf_needs(error, "config", config))
        return NULL;
    static const struct wf_model_options none = {0};
    options = options ? options : &none;
    if (config_check_model(config, error) != WF_OK)
        return NULL;
    struct wf_model_shape shape = wf_config_shape(config);
    int64_t layers = shape.layers + shape.encoder_layers;
    if (shape.vocab_size < 1) {
        wf_error_set(error, WF_ERR_ARGUMENT, "%s: the vocabulary size is not set: call wf_config_set_vocab first", config->model);
        return NULL;
    }
    wf_model *model = wf_alloc_zero(1, sizeof *model);
    if (!model) {
        wf_error_set(error, WF_ERR_MEMORY, "no memory for a model");
        return NULL;
    }
    model->config = *config;
    model->family = config->family;
    model->shape = shape;
    model->registry = wf_registry_new(error);
    const char *pattern = options->lora_pattern ? options->lora_pattern : "*";
    if (model->registry && (options->lora.rank == 0 || wf_registry_lora_with(model->registry, pattern, &options->lora, error) == WF_OK)) {
        model->body = wf_alloc_zero(1, body_size(model) + BEHIND);
        if (!model->body)
            wf_error_set(error, WF_ERR_MEMORY, "no memory for a model of %lld layers", (long long)layers);
    }
    if (model->body) {
        model->family->init(wf_root(model->registry), model->body, config->architecture);
        const wf_error *declared = wf_registry_error(model->registry);
        if (declared->code == WF_OK && model->family->head && head(model)->weight)
            wf_registry_table(model->registry, head(model)->weight, true);
        if (declared->code == WF_OK && within(model, error))
            return model;
        wf_error_set(error, declared->code, "%s", declared->message);
    }
    wf_model_free(model);
    return NULL;
}

wf_model *wf_model_new(const struct wf_config *config, wf_error *error)
{
    if (wf_needs(error, "config", config))
        return NULL;
    return wf_model_new_with(config, NULL, error);
}

enum wf_precision wf_model_precision(const wf_model *model)
{
    return model ? model->config.training.precision : WF_PRECISION_REAL;
}

wf_status wf_model_set_precision(wf_model *model, enum wf_precision precision, wf_error *error)
{
    if (wf_needs(error, "model", model))
        return WF_ERR_ARGUMENT;
    if (wf_precision_check(precision, "precision", error))
        return WF_ERR_ARGUMENT;
    model->config.training.precision = precision;
    return WF_OK;
}

void wf_model_free(wf_model *model)
{
    if (!model)
        return;
    wf_registry_free(model->registry);
    wf_free(model->body);
    wf_free(model);
}

wf_registry *wf_model_registry(const wf_model *model)
{
    return model ? model->registry : NULL;
}

wf_status wf_model_load_with(wf_model *model, const wf_safetensors *file, const struct wf_load_options *options, wf_error *error)
{
    static const struct wf_load_options strict = {0};
    if (wf_needs(error, "model, file", model, file))
        return WF_ERR_ARGUMENT;
    options = options ? options : &strict;
    if (options->prefix || options->rule || options->rules || options->ignored)
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "%s: names in files are mapped by the family: of the options of wf_model_load_with "
                            "only allow_missing, missing, missing_ctx, stored and map can be set",
                            model->config.model);
    return model->family->load ? model->family->load(model->registry, file, options, error)
                               : wf_registry_load_with(model->registry, file, options, error);
}

wf_status wf_model_load(wf_model *model, const wf_safetensors *file, wf_error *error)
{
    if (wf_needs(error, "model, file", model, file))
        return WF_ERR_ARGUMENT;
    return wf_model_load_with(model, file, NULL, error);
}

const struct wf_config *wf_model_config(const wf_model *model)
{
    return model ? &model->config : NULL;
}

enum wf_model_kind wf_model_kind_of(const wf_model *model)
{
    return model ? model->family->kind : WF_MODEL_LANGUAGE;
}

const struct wf_model_shape *wf_model_shape_of(const wf_model *model)
{
    return model ? &model->shape : NULL;
}

/* A family that forgets to use its cache would generate each token without a context, so such a family is refused. Before a forward
 * with an empty cache, a bit pattern is written in each layer where the keys and values of the first and the last new token belong.
 * If the forward overwrites none of these patterns, the family ignores its cache. A cache of states gets no patterns, because states are
 * read before they are written. For such a cache wf_kv_set_state sets `written`. */
static const uint32_t mark = 0x7fb1a0c5; /* a NaN in float, and the upper half of a NaN in double */

/* Sets *out to the address of pattern number `index` (four in each layer). False past the last, and if the cache gets no patterns. */
static bool place_at(const struct wf_cache *cache, int64_t tokens, int index, wf_real **out)
{
    const int layer = index / 4, last = index / 2 % 2, side = index % 2;
    const int64_t width = side ? cache->value_width : cache->key_width;
    if (cache->states || layer >= cache->layers || cache->length[0] != 0 || tokens < 1 || tokens > cache->capacity)
        return false;
    *out = (side ? cache->layer[layer].values : cache->layer[layer].keys) + (last ? tokens - 1 : 0) * width;
    return true;
}

static void cache_mark(struct wf_cache *cache, int64_t tokens)
{
    wf_real *place;
    for (int i = 0; i < cache->layers; i++)
        cache->layer[i].written = false;
    for (int i = 0; place_at(cache, tokens, i, &place); i++)
        memcpy((char *)place + sizeof *place - sizeof mark, &mark, sizeof mark);
}

static bool is_marked(const wf_real *place)
{
    return memcmp((const char *)place + sizeof *place - sizeof mark, &mark, sizeof mark) == 0;
}

static bool cache_written(struct wf_cache *cache, int64_t tokens)
{
    wf_real *place;
    bool any = cache->states, written = false;
    for (int i = 0; i < cache->layers; i++)
        written |= cache->layer[i].written;
    for (int i = 0; place_at(cache, tokens, i, &place); i++) {
        any = true;
        written |= !is_marked(place);
    }
    for (int i = 0; place_at(cache, tokens, i, &place); i++)
        if (is_marked(place))
            *place = 0;
    return written || !any;
}

wf_tensor *wf_cache_untouched(const wf_model *model, wf_tensor *x, const char *function, const struct wf_cache *cache, int32_t before)
{
    if (wf_is_poison(x) || cache->length[0] == before)
        return x;
    return wf_tape_fail(wf_tape_of(x), WF_ERR_STATE, "family %s: %s called wf_cache_advance, which Weft does afterwards: leave it out",
                        model->family->name, function);
}

/* ids [B,T] -> input of the output layer [B,T,d]. A row longer than the context is refused, even if the table of positions is longer. */
static wf_tensor *hidden(const wf_model *model, wf_tensor *ids, struct wf_cache *cache, wf_tensor **weights)
{
    wf_tape *tape = wf_tape_of(ids);
    if (wf_is_poison(ids) || !tape)
        return ids;
    if (model->family->kind != WF_MODEL_LANGUAGE)
        return wf_tape_fail(tape, WF_ERR_STATE, "%s is an %s, not a language model: use the functions of weft/%s.h", model->config.model,
                            model->family->kind == WF_MODEL_PAIRS ? "encoder-decoder" : "encoder",
                            model->family->kind == WF_MODEL_PAIRS ? "seq2seq" : "encoder");
    if (wf_ndim(ids) != 2)
        return wf_tape_fail(tape, WF_ERR_SHAPE, "%s: the ids '%s' are not [B,T]", model->config.model, wf_name_of(ids));
    if (wf_dim(ids, 1) > model->shape.context)
        return wf_tape_fail(tape, WF_ERR_SHAPE, "%s: a row has %lld ids, but the context is %lld: shorten it", model->config.model,
                            (long long)wf_dim(ids, 1), (long long)model->shape.context);
    if (cache && (cache->layers < 1 || (!model->family->cache && cache->layers != model->shape.layers)))
        return wf_tape_fail(tape, WF_ERR_SHAPE, "%s: the cache has %d layers, but the model has %lld: create it with wf_model_cache",
                            model->config.model, cache->layers, (long long)model->shape.layers);
    if (cache && model->family->no_cache)
        return wf_tape_fail(tape, WF_ERR_STATE, "%s takes no cache: give all ids of the context each time, and NULL", model->config.model);
    const int32_t before = cache ? cache->length[0] : 0;
    if (cache)
        cache_mark(cache, wf_dim(ids, 1));
    struct wf_blocks_pass pass;
    wf_blocks_begin(&pass, model, tape);
    wf_tensor *x = wf_blocks_end(&pass, tape, model->family->forward(model->body, ids, cache, weights));
    if (!x)
        return wf_tape_fail(tape, WF_ERR_ARGUMENT, "family %s: forward returned NULL, not a tensor", model->family->name);
    if (!cache || wf_is_poison(x))
        return x;
    x = wf_cache_untouched(model, x, "forward", cache, before);
    if (wf_is_poison(x))
        return x;
    if (!cache_written(cache, wf_dim(ids, 1)))
        return wf_tape_fail(tape, WF_ERR_STATE, "family %s ignores its cache: %s, or set .no_cache", model->family->name,
                            cache->states ? "keep states with wf_kv_set_state" : "pass &cache->layer[i] on to the attention of layer i");
    wf_cache_advance(cache, wf_dim(ids, 1));
    return x;
}

bool wf_has_head(const wf_model *model)
{
    return model->family->logits || (model->family->head && head(model)->weight);
}

/* Applies .before_head to *x and returns true if the linear layer can follow. Otherwise returns false; *x is then the poison that the
 * caller must return. */
static bool has_logits(const wf_model *model, wf_tensor **x)
{
    wf_tape *tape = wf_tape_of(*x);
    if (wf_is_poison(*x) || !tape)
        return false;
    if (wf_has_head(model)) {
        if (model->family->before_head)
            *x = model->family->before_head(model->body, *x);
        return true;
    }
    *x = wf_tape_fail(tape, WF_ERR_STATE, "%s has no output layer: use wf_encoder_forward for its vectors", model->config.model);
    return false;
}

static wf_tensor *through_head(const wf_model *model, wf_tensor *x)
{
    return model->family->logits ? model->family->logits(model->body, x) : wf_linear_forward(head(model), x);
}

static double logits_bound(const wf_model *model)
{
    return model->family->softcap ? model->family->softcap(model->config.architecture) : 0;
}

wf_tensor *wf_head_logits(const wf_model *model, wf_tensor *x)
{
    if (!has_logits(model, &x))
        return x;
    const double bound = logits_bound(model);
    wf_tensor *logits = through_head(model, x);
    if (bound != 0) {
        wf_tensor *capped = wf_softcap(logits, bound);
        wf_release(logits);
        logits = capped;
    }
    return wf_model_intact(model, logits);
}

wf_tensor *wf_head_loss(const wf_model *model, wf_tensor *x, wf_tensor *targets, const struct wf_cross_entropy_options *options)
{
    const struct wf_linear *h = head(model);
    struct wf_cross_entropy_options bounded = options ? *options : (struct wf_cross_entropy_options){0};
    if (!has_logits(model, &x))
        return x;
    if (logits_bound(model) != 0) {
        bounded.softcap = logits_bound(model);
        options = &bounded;
    }
    if (!h || model->family->logits || h->lora_a) /* the fused loss below needs a linear layer without adapters */
        return wf_model_intact(model, wf_cross_entropy_with(through_head(model, x), targets, options));
    return wf_model_intact(model, wf_linear_cross_entropy_with(x, h->weight, h->bias, targets, options));
}

wf_tensor *wf_model_logits(const wf_model *model, wf_tensor *ids, struct wf_cache *cache)
{
    wf_tensor *refused = wf_tape_needs(wf_tape_of(ids), "model, ids", model, ids);
    if (refused)
        return refused;
    return wf_head_logits(model, hidden(model, ids, cache, NULL)); /* [B,T,d] -> [B,T,V] */
}

wf_tensor *wf_model_attention(const wf_model *model, wf_tensor *ids, wf_tensor **weights)
{
    wf_tensor *refused = wf_tape_needs(wf_tape_of(ids), "model, ids, weights", model, ids, weights);
    if (refused)
        return refused;
    wf_tensor *x = hidden(model, ids, NULL, weights);
    wf_weights_end(x, weights, model->shape.layers);
    return wf_head_logits(model, x);
}

wf_tensor *wf_model_next(const wf_model *model, wf_tensor *ids, struct wf_cache *cache)
{
    wf_tensor *refused = wf_tape_needs(wf_tape_of(ids), "model, ids", model, ids);
    if (refused)
        return refused;
    wf_tensor *x = hidden(model, ids, cache, NULL); /* [B,T,d] */
    if (wf_is_poison(x))
        return x;
    int64_t rows = wf_dim(x, 0);
    if (wf_dim(x, 1) > 1)
        x = wf_slice(x, 1, -1, 1);
    x = wf_reshape(x, rows, model->shape.width);
    return wf_head_logits(model, x); /* [B,V] */
}

wf_tensor *wf_model_loss_with(const wf_model *model, wf_tensor *ids, wf_tensor *targets, const struct wf_cross_entropy_options *options)
{
    wf_tensor *refused = wf_tape_needs(wf_tape_of(ids), "model, ids, targets", model, ids, targets);
    if (refused)
        return refused;
    return wf_head_loss(model, hidden(model, ids, NULL, NULL), targets, options);
}

wf_tensor *wf_model_token_losses(const wf_model *model, wf_tensor *ids, wf_tensor *targets, struct wf_cache *cache)
{
    wf_tensor *x = hidden(model, ids, cache, NULL); /* [B,T,d] */
    if (wf_is_poison(x) || wf_is_poison(targets))
        return wf_is_poison(x) ? x : targets;
    const int64_t scored = wf_dim(targets, 1);
    if (scored < wf_dim(x, 1))
        x = wf_slice(x, 1, -scored, scored);
    return wf_head_loss(
        model, x, targets,
        &(struct wf_cross_entropy_options){.has_ignore = true, .ignore = WF_NO_TARGET, .reduction = WF_REDUCE_NONE}); /* [B,t] */
}

/* Checks the size of a cache that the family's .cache made. On an error it frees the cache. */
static wf_status check_cache(const struct wf_family *f, struct wf_cache *cache, int64_t rows, int64_t capacity, wf_error *error)
{
    if (cache->rows == rows && cache->capacity >= capacity && cache->length)
        return WF_OK;
    wf_error_set(error, WF_ERR_ARGUMENT, "family %s: its cache has %lld rows of %lld tokens, not %lld of %lld: see wf_cache_init", f->name,
                 (long long)cache->rows, (long long)cache->capacity, (long long)rows, (long long)capacity);
    wf_cache_free(cache);
    return WF_ERR_ARGUMENT;
}

wf_status wf_model_cache_with(const wf_model *model, struct wf_cache *cache, int64_t rows, const struct wf_model_cache_options *options,
                              wf_error *error)
{
    if (wf_needs(error, "model, cache", model, cache))
        return WF_ERR_ARGUMENT;
    options = options ? options : &(const struct wf_model_cache_options){0};
    const struct wf_model_shape *s = &model->shape;
    const struct wf_family *f = model->family;
    const int64_t capacity = options->capacity ? options->capacity : s->context;
    *cache = (struct wf_cache){0};
    if (f->kind == WF_MODEL_ENCODER)
        return wf_error_set(error, WF_ERR_STATE, "%s is an encoder and has no cache: it processes all tokens at once", model->config.model);
    if (f->no_cache)
        return wf_error_set(error, WF_ERR_STATE, "%s takes no cache: give all ids of the context each time, and NULL", model->config.model);
    if (!f->cache)
        return wf_cache_init(cache, (int)s->layers, rows, capacity, s->kv_width, s->kv_width, error);
    wf_status status = f->cache(model->body, cache, rows, capacity, error);
    return status == WF_OK ? check_cache(f, cache, rows, capacity, error) : status;
}

wf_status wf_model_cache(const wf_model *model, struct wf_cache *cache, int64_t rows, wf_error *error)
{
    if (wf_needs(error, "model, cache", model, cache))
        return WF_ERR_ARGUMENT;
    return wf_model_cache_with(model, cache, rows, NULL, error);
}

struct wf_model_bytes wf_model_bytes(const wf_model *model)
{
    struct wf_model_bytes m = {0};
    for (int i = 0; model && i < wf_registry_count(model->registry); i++) {
        const wf_array *value = &wf_parameter_info(wf_registry_at(model->registry, i))->value;
        m.weights += wf_array_count(value) * (int64_t)wf_dtype_size(value->dtype);
        m.mapped += wf_registry_is_mapped(model->registry, i) ? wf_array_count(value) * (int64_t)wf_dtype_size(value->dtype) : 0;
    }
    if (model && model->family->kind == WF_MODEL_LANGUAGE && !model->family->no_cache && !model->family->cache)
        m.token = model->shape.layers * 2 * model->shape.kv_width * (int64_t)sizeof(wf_real);
    return m;
}
