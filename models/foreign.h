/* SPDX-License-Identifier: MIT */
/* Functions that the families share which read and write folders of Hugging Face. Those that read config.json do nothing if an earlier read
 * has failed. */
#ifndef WEFT_MODELS_FOREIGN_H
#define WEFT_MODELS_FOREIGN_H

#include <weft/family.h>
#include <weft/internal/counterpart.h>
#include <weft/internal/json.h>

/* Refuses a key of the file with a value that Weft does not support. It is called only for keys that would change the model's results;
 * other unknown keys are ignored. `value` may be NULL. */
void foreign_refuse(struct wf_json_reader *r, const char *key, const char *value, const char *what);
/* Refuses the key unless it is absent or has this value. */
void foreign_expect_bool(struct wf_json_reader *r, const char *key, bool expected, const char *what);
/* Refuses quantised weights. */
void foreign_expect_floats(struct wf_json_reader *r);
/* Reads an activation, of which Hugging Face has several names for the same function, whose implementations differ only by rounding. An
 * absent key leaves *out as it is. */
void foreign_read_activation(struct wf_json_reader *r, const char *key, enum wf_activation *out);

/* The weights of another library: their names, and those of a model with an output layer, which begin with `prefix`. */
struct foreign_weights {
    const char *prefix,
        *embedding; /* the name of a tensor that is always there, after the prefix: it tells whether names have the prefix */
    const struct wf_load_rule *rule;
    int rules;
    const char *const *ignored;
};
/* Sets the members of *options by which a file with these names is loaded. The prefix is left out if the file's names lack it; `file` may
 * be NULL for a file that is to be written. */
void foreign_options(const wf_safetensors *file, const struct foreign_weights *weights, struct wf_load_options *options);
wf_status foreign_load(wf_registry *registry, const wf_safetensors *file, const struct wf_load_options *options,
                       const struct foreign_weights *weights, wf_error *error);

/* The rotary positions of a model, as keys of a configuration. */
struct foreign_rotary {
    double base;
    enum wf_rope_scaling scaling;
    double factor, low, high, context; /* struct wf_rotary: factor, low_frequency, high_frequency, original_context */
};
/* Reads them in the layouts of transformers 4 (rope_theta, rope_scaling) and 5 (rope_parameters). */
void foreign_read_rotary(struct wf_json_reader *r, struct foreign_rotary *out);
/* The same for a model whose layers with a sliding window have positions of their own, as in Gemma 3: in the layout of transformers 4 their
 * base is rope_local_base_freq, and in that of 5 rope_parameters has an object for each kind of layer. */
void foreign_read_rotary_kinds(struct wf_json_reader *r, struct foreign_rotary *full, struct foreign_rotary *window);

/* For the .write of struct wf_counterpart (counterpart.c). foreign_put sets a key, and takes over the reference to the value; if there is
 * no memory, wf_config_counterpart fails. */
void foreign_put(json_t *object, const char *key, json_t *value);
/* Sets "architectures" and "model_type". */
void foreign_put_architecture(json_t *object, const char *class, const char *model_type);
/* WF_ERR_ARGUMENT: the other library has no such activation. */
wf_status foreign_put_activation(json_t *object, const char *key, enum wf_activation activation, wf_error *error);
/* Sets the keys of both layouts. WF_ERR_ARGUMENT: the other library has no such scaling. */
wf_status foreign_put_rotary(json_t *object, const struct foreign_rotary *rotary, wf_error *error);
/* The same for what foreign_read_rotary_kinds reads. */
wf_status foreign_put_rotary_kinds(json_t *object, const struct foreign_rotary *full, const struct foreign_rotary *window, wf_error *error);
/* Sets "layer_types": of `layers` layers the one with number i, counted from 0, has a window if windowed(config, i). */
void foreign_put_layer_types(json_t *object, int64_t layers, bool (*windowed)(const void *config, int64_t i), const void *config);

#endif
