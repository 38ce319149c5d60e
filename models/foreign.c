/* SPDX-License-Identifier: MIT */
/* Reads parts of config.json, and weights, of Hugging Face. */
#include <stdio.h>
#include <string.h>

#include <weft/internal/text.h>

#include "foreign.h"

void foreign_refuse(struct wf_json_reader *r, const char *key, const char *value, const char *what)
{
    char quoted[WF_QUOTE_SIZE];
    if (r->status == WF_OK)
        r->status = wf_error_set(r->error, WF_ERR_FORMAT, "%s: key \"%s\": %s%s%s", r->where, key,
                                 value ? wf_text_quote(value, quoted) : "", value ? " is not supported: " : "", what);
}

void foreign_expect_bool(struct wf_json_reader *r, const char *key, bool expected, const char *what)
{
    bool have = expected;
    wf_json_read_bool(r, key, WF_JSON_OPTIONAL, &have);
    if (have != expected)
        foreign_refuse(r, key, NULL, what);
}

void foreign_expect_floats(struct wf_json_reader *r)
{
    const json_t *quantized = json_object_get(r->object, "quantization_config");
    if (quantized && !json_is_null(quantized))
        foreign_refuse(r, "quantization_config", NULL, "quantised weights are not supported");
}

void foreign_read_activation(struct wf_json_reader *r, const char *key, enum wf_activation *out)
{
    static const struct {
        const char *name;
        enum wf_activation activation;
    } names[] = {
        {"gelu", WF_GELU},           {"gelu_python", WF_GELU},        {"gelu_new", WF_GELU_TANH}, {"gelu_pytorch_tanh", WF_GELU_TANH},
        {"gelu_fast", WF_GELU_TANH}, {"gelu_accurate", WF_GELU_TANH}, {"relu", WF_RELU},          {"silu", WF_SILU},
        {"swish", WF_SILU}};
    const char *name = NULL;
    wf_json_read_string(r, key, WF_JSON_OPTIONAL, &name);
    for (size_t i = 0; name && i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i].name, name) == 0) {
            *out = names[i].activation;
            return;
        }
    if (name)
        foreign_refuse(r, key, name, "only gelu, gelu_new, relu and silu");
}

void foreign_options(const wf_safetensors *file, const struct foreign_weights *weights, struct wf_load_options *options)
{
    char name[128];
    snprintf(name, sizeof name, "%s%s", weights->prefix, weights->embedding);
    options->prefix = !file || wf_safetensors_find(file, name) ? weights->prefix : "";
    options->rule = weights->rule;
    options->rules = weights->rules;
    options->ignored = weights->ignored;
}

wf_status foreign_load(wf_registry *registry, const wf_safetensors *file, const struct wf_load_options *options,
                       const struct foreign_weights *weights, wf_error *error)
{
    struct wf_load_options o = *options;
    foreign_options(file, weights, &o);
    return wf_registry_load_with(registry, file, &o, error);
}

/* Reads the scaling of frequencies from the object that holds it. */
static void read_scaling(struct wf_json_reader *r, const char *key, struct foreign_rotary *out)
{
    const char *type = "default", *old = NULL;
    wf_json_read_string(r, "type", WF_JSON_OPTIONAL, &old); /* the name of the key until 2024 */
    type = old ? old : type;
    wf_json_read_string(r, "rope_type", WF_JSON_OPTIONAL, &type);
    if (r->status != WF_OK || strcmp(type, "default") == 0)
        return;
    if (strcmp(type, "linear") == 0)
        out->scaling = WF_ROPE_LINEAR;
    else if (strcmp(type, "llama3") == 0)
        out->scaling = WF_ROPE_LLAMA3;
    else
        foreign_refuse(r, key, type, "only the rope types default, linear and llama3");
    wf_json_read_double(r, "factor", WF_JSON_REQUIRED, 1e-6, 1e6, &out->factor);
    if (out->scaling != WF_ROPE_LLAMA3)
        return;
    wf_json_read_double(r, "low_freq_factor", WF_JSON_REQUIRED, 1e-6, 1e6, &out->low);
    wf_json_read_double(r, "high_freq_factor", WF_JSON_REQUIRED, 1e-6, 1e6, &out->high);
    wf_json_read_double(r, "original_max_position_embeddings", WF_JSON_REQUIRED, 1, 1e9, &out->context);
}

/* Reads an object that the reader's object holds, or leaves it out if it is absent. */
static struct wf_json_reader within(struct wf_json_reader *r, const char *key)
{
    struct wf_json_reader inner = *r;
    json_t *object = NULL;
    wf_json_read_object(r, key, WF_JSON_OPTIONAL, &object);
    inner.object = object;
    inner.status = r->status;
    return inner;
}

static void refuse_part(struct wf_json_reader *r)
{
    double part = 1;
    wf_json_read_double(r, "partial_rotary_factor", WF_JSON_OPTIONAL, 0, 1, &part);
    if (part != 1)
        foreign_refuse(r, "partial_rotary_factor", NULL, "heads that are rotated in part are not supported");
}

/* Reads the positions of one kind of layer from the object `key` in rope_parameters, whose reader is `kinds`. */
static void read_kind(struct wf_json_reader *kinds, const char *key, struct foreign_rotary *out)
{
    struct wf_json_reader kind = within(kinds, key);
    *out = (struct foreign_rotary){.scaling = WF_ROPE_UNSCALED, .factor = 1};
    if (kind.object)
        wf_json_read_double(&kind, "rope_theta", WF_JSON_OPTIONAL, 1e-6, 1e12, &out->base);
    if (kind.status == WF_OK && out->base == 0)
        kind.status = wf_error_set(kind.error, WF_ERR_FORMAT,
                                   "%s: key \"rope_parameters\": \"rope_theta\", the base of rotary positions, is missing for \"%s\"",
                                   kind.where, key);
    if (kind.object) {
        read_scaling(&kind, "rope_parameters", out);
        refuse_part(&kind);
    }
    wf_json_read_status(kinds, kind.status);
}

void foreign_read_rotary_kinds(struct wf_json_reader *r, struct foreign_rotary *full, struct foreign_rotary *window)
{
    struct wf_json_reader kinds = within(r, "rope_parameters");
    if (kinds.object && kinds.status == WF_OK) {
        read_kind(&kinds, "full_attention", full);
        read_kind(&kinds, "sliding_attention", window);
        wf_json_read_status(r, kinds.status);
        return;
    }
    foreign_read_rotary(r, full);
    *window = (struct foreign_rotary){.scaling = WF_ROPE_UNSCALED, .factor = 1};
    wf_json_read_double(r, "rope_local_base_freq", WF_JSON_REQUIRED, 1e-6, 1e12, &window->base);
}

void foreign_read_rotary(struct wf_json_reader *r, struct foreign_rotary *out)
{
    struct wf_json_reader now = within(r, "rope_parameters"), before = within(r, "rope_scaling");
    struct wf_json_reader *base = now.object ? &now : r, *scaling = now.object ? &now : &before;
    *out = (struct foreign_rotary){.scaling = WF_ROPE_UNSCALED, .factor = 1};
    wf_json_read_double(base, "rope_theta", WF_JSON_OPTIONAL, 1e-6, 1e12, &out->base);
    if (base->status == WF_OK && out->base == 0)
        foreign_refuse(base, now.object ? "rope_parameters" : "rope_theta", NULL,
                       now.object ? "\"rope_theta\", the base of rotary positions, is missing in it"
                                  : "the base of rotary positions is missing: take it from the model's publication");
    if (scaling->object)
        read_scaling(scaling, now.object ? "rope_parameters" : "rope_scaling", out);
    refuse_part(r);
    if (now.object)
        refuse_part(&now);
    wf_json_read_status(r, base->status);
    wf_json_read_status(r, scaling->status);
}
