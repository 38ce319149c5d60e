/* SPDX-License-Identifier: MIT */
/* The names and shapes of a model's tensors in files of Hugging Face, by the rules that also load them, and parts of its config.json. */
#include <stdio.h>
#include <string.h>

#include <weft/internal/counterpart.h>
#include <weft/internal/family.h>

#include "foreign.h"

/* --- config.json --------------------------------------------------------------------------------------------------- */

void foreign_put(json_t *object, const char *key, json_t *value)
{
    (void)!json_object_set_new(object, key, value); /* wf_config_counterpart asks whether there was memory */
}

void foreign_put_architecture(json_t *object, const char *class, const char *model_type)
{
    foreign_put(object, "architectures", json_pack("[s]", class));
    foreign_put(object, "model_type", json_string(model_type));
}

wf_status foreign_put_activation(json_t *object, const char *key, enum wf_activation activation, wf_error *error)
{
    static const char *const names[] = {[WF_RELU] = "relu", [WF_GELU] = "gelu", [WF_GELU_TANH] = "gelu_new", [WF_SILU] = "silu"};
    if ((size_t)activation >= sizeof names / sizeof *names)
        return wf_error_set(error, WF_ERR_ARGUMENT, "activation=%s has no counterpart in this architecture of transformers",
                            wf_activation_words[activation]);
    foreign_put(object, key, json_string(names[activation]));
    return WF_OK;
}

wf_status foreign_put_rotary(json_t *object, const struct foreign_rotary *rotary, wf_error *error)
{
    if (rotary->scaling == WF_ROPE_NTK)
        return wf_error_set(error, WF_ERR_ARGUMENT, "rope_scaling=ntk has no counterpart in transformers");
    json_t *now = json_object();
    foreign_put(now, "rope_theta", json_real(rotary->base));
    foreign_put(now, "rope_type",
                json_string(rotary->scaling == WF_ROPE_LINEAR   ? "linear"
                            : rotary->scaling == WF_ROPE_LLAMA3 ? "llama3"
                                                                : "default"));
    if (rotary->scaling != WF_ROPE_UNSCALED)
        foreign_put(now, "factor", json_real(rotary->factor));
    if (rotary->scaling == WF_ROPE_LLAMA3) {
        foreign_put(now, "low_freq_factor", json_real(rotary->low));
        foreign_put(now, "high_freq_factor", json_real(rotary->high));
        foreign_put(now, "original_max_position_embeddings", json_integer((json_int_t)rotary->context));
    }
    json_t *before = rotary->scaling == WF_ROPE_UNSCALED ? json_null() : json_copy(now);
    if (json_is_object(before))
        json_object_del(before, "rope_theta"); /* the layout of transformers 4 */
    foreign_put(object, "rope_parameters", now);
    foreign_put(object, "rope_theta", json_real(rotary->base));
    foreign_put(object, "rope_scaling", before);
    return WF_OK;
}

void foreign_put_layer_types(json_t *object, int64_t layers, bool (*windowed)(const void *config, int64_t i), const void *config)
{
    json_t *types = json_array();
    for (int64_t i = 0; i < layers; i++)
        (void)!json_array_append_new(types, json_string(windowed(config, i) ? "sliding_attention" : "full_attention"));
    foreign_put(object, "layer_types", types);
}

/* The layout of transformers 5 has an object for each kind of layer. */
wf_status foreign_put_rotary_kinds(json_t *object, const struct foreign_rotary *full, const struct foreign_rotary *window, wf_error *error)
{
    json_t *kind = json_object(), *both = json_object();
    wf_status status = foreign_put_rotary(kind, window, error);
    foreign_put(both, "sliding_attention", json_incref(json_object_get(kind, "rope_parameters")));
    json_decref(kind);
    if (status == WF_OK)
        status = foreign_put_rotary(object, full, error);
    foreign_put(both, "full_attention", json_incref(json_object_get(object, "rope_parameters")));
    foreign_put(object, "rope_parameters", both);
    foreign_put(object, "rope_local_base_freq", json_real(window->base));
    return status;
}

wf_status wf_config_counterpart(struct wf_config *config, json_t *object, wf_error *error)
{
    const struct wf_counterpart *c = config->family->counterpart;
    if (!c)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s is of the family %s, which has no counterpart in Hugging Face's transformers",
                            config->model, wf_config_family(config));
    wf_json_memory_clear();
    if (c->write(config->architecture, object, error) != WF_OK)
        return wf_error_prefix(error, "%s", config->model), error->code;
    return wf_json_memory_failed() ? wf_error_set(error, WF_ERR_MEMORY, "no memory for a configuration") : WF_OK;
}

/* --- tensors ------------------------------------------------------------------------------------------------------- */

/* Whether the file has the tensor that is always there, with or without the prefix. */
static bool has_names(const wf_safetensors *file, const struct foreign_weights *w)
{
    char name[WF_SOURCE_NAME];
    snprintf(name, sizeof name, "%s%s", w->prefix, w->embedding);
    return wf_safetensors_find(file, name) || wf_safetensors_find(file, w->embedding);
}

bool wf_model_is_foreign(const wf_model *model, const wf_safetensors *file)
{
    const struct wf_counterpart *c = model->family->counterpart;
    return c && has_names(file, c->weights);
}

wf_status wf_model_sources(const wf_model *model, const wf_safetensors *file, wf_sources_of *each, void *ctx, wf_error *error)
{
    struct wf_load_options o = {0};
    if (wf_model_is_foreign(model, file))
        foreign_options(file, model->family->counterpart->weights, &o);
    return wf_registry_sources(model->registry, file, &o, each, ctx, error);
}

struct targets {
    const wf_model *model;
    wf_target_of *each;
    void *ctx;
};

/* The rows of source i of a parameter with `rows` rows. The sources of an uneven rule are queries, keys and values. */
static int64_t rows_of(const wf_model *model, const struct wf_sources *s, int i, int64_t rows)
{
    if (!s->uneven || s->count != 3)
        return rows / s->count;
    return i == 0 ? rows - 2 * model->shape.kv_width : model->shape.kv_width;
}

static wf_status take_targets(void *ctx, const char *name, const wf_shape *shape, const struct wf_sources *s, wf_error *error)
{
    const struct targets *t = ctx;
    const int64_t rows = shape->ndim > 0 ? shape->dim[0] : 1;
    wf_status status = WF_OK;
    int64_t row = 0;
    for (int i = 0; status == WF_OK && i < s->count; i++) {
        struct wf_target target = {.parameter = name,
                                   .name = s->name[i],
                                   .shape = *shape,
                                   .row = row,
                                   .rows = rows_of(t->model, s, i, rows),
                                   .transposed = s->transposed && shape->ndim == 2,
                                   .part = s->part,
                                   .parts = s->parts};
        if (shape->ndim > 0)
            target.shape.dim[0] = target.rows;
        if (target.transposed)
            target.shape = *WF_SHAPE(shape->dim[1], target.rows);
        row += target.rows;
        status = t->each(t->ctx, &target, error);
    }
    if (status == WF_OK && row != rows)
        return wf_error_set(error, WF_ERR_SHAPE, "parameter '%s' of %lld rows cannot be divided into %d tensors", name, (long long)rows,
                            s->count);
    return status;
}

wf_status wf_model_targets(const wf_model *model, bool foreign, wf_target_of *each, void *ctx, wf_error *error)
{
    const struct wf_counterpart *c = model->family->counterpart;
    struct targets t = {model, each, ctx};
    struct wf_load_options o = {0};
    if (foreign) {
        foreign_options(NULL, c->weights, &o);
        if (c->bare && c->bare(model->config.architecture))
            o.prefix = "";
    }
    return wf_registry_sources(model->registry, NULL, &o, take_targets, &t, error);
}
