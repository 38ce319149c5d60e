/* SPDX-License-Identifier: MIT */
/* What the families share that read config.json of Hugging Face. Each function does nothing if an earlier read has failed. */
#ifndef WEFT_MODELS_FOREIGN_H
#define WEFT_MODELS_FOREIGN_H

#include <weft/family.h>
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

/* The rotary positions of a model, as keys of a configuration. */
struct foreign_rotary {
    double base;
    enum wf_rope_scaling scaling;
    double factor, low, high, context; /* struct wf_rotary: factor, low_frequency, high_frequency, original_context */
};
/* Reads them in the layouts of transformers 4 (rope_theta, rope_scaling) and 5 (rope_parameters). */
void foreign_read_rotary(struct wf_json_reader *r, struct foreign_rotary *out);

#endif
