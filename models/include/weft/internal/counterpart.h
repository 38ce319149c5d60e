/* SPDX-License-Identifier: MIT */
/* The counterpart of a model in another library, transformers: its config.json, and the names and shapes of its tensors. */
#ifndef WEFT_INTERNAL_COUNTERPART_H
#define WEFT_INTERNAL_COUNTERPART_H

#include <weft/family.h>
#include <weft/internal/sources.h>

struct foreign_weights;

/* How a family's models are written for the other library. */
struct wf_counterpart {
    /* Fills `object` with the keys of config.json that describe the architecture, the first of which are "architectures" and "model_type".
     * May change *config, the family's struct, to settings with the same results that the other library has: parameters that only the
     * changed model has are written as zeros. WF_ERR_ARGUMENT: no architecture of the other library has these settings; the message names
     * the keys. */
    wf_status (*write)(void *config, struct json_t *object, wf_error *error);
    const struct foreign_weights *weights;
    /* The names of the configuration's tensors have no prefix, as those of a model without an output layer. NULL: they always have it. */
    bool (*bare)(const void *config);
};

/* The .write of the configuration's family. WF_ERR_ARGUMENT: the family has no counterpart. *config is changed as .write says. */
wf_status wf_config_counterpart(struct wf_config *config, struct json_t *object, wf_error *error) WF_CHECKED;

/* Whether the file has the other library's names of the family's tensors. False if the family has no counterpart. */
bool wf_model_is_foreign(const wf_model *model, const wf_safetensors *file);
/* wf_registry_sources for a file with Weft's names or with those of the other library. */
wf_status wf_model_sources(const wf_model *model, const wf_safetensors *file, wf_sources_of *each, void *ctx, wf_error *error) WF_CHECKED;

/* A tensor of the other library that is a part of a parameter: `rows` of its rows from `row` on, or their transpose. A parameter without
 * dimensions has one row. With parts > 1 a parameter is a part of the tensor instead: of `parts` equal parts that are stacked along
 * dimension 0 the one with number `part`, counted from 0; each of the others comes as a target of its own with the same name. */
struct wf_target {
    const char *parameter; /* a parameter of the model */
    const char *name;      /* the tensor's name; valid during the call */
    wf_shape shape;        /* as it is written; with parts > 1 that of the part */
    int64_t row, rows;
    bool transposed;
    int part, parts; /* parts is at least 1 */
};
typedef wf_status wf_target_of(void *ctx, const struct wf_target *target, wf_error *error);
/* Calls `each` for each tensor that the model has in the other library, or if `foreign` is false in Weft's own files. */
wf_status wf_model_targets(const wf_model *model, bool foreign, wf_target_of *each, void *ctx, wf_error *error) WF_CHECKED;

#endif
