/* SPDX-License-Identifier: MIT */
/* What a family of models gives to the common face in model.c, and what the files of this room share. */
#ifndef WEFT_MODELS_FAMILIES_H
#define WEFT_MODELS_FAMILIES_H

#include <weft/models.h>

struct family {
    const char *name;
    size_t size, block_size; /* bytes of the model's struct: size + layers * block_size */
    /* Declares all parameters of a configuration; errors go to the registry. `model` is `size + ...` zero bytes. */
    void (*init)(wf_scope scope, void *model, const struct wf_config *config);
    /* ids [B,T] -> what the head sees [B,T,d_model]; the cache is read, not advanced. */
    wf_tensor *(*forward)(const void *model, wf_tensor *ids, struct wf_cache *cache);
    /* The map to logits. */
    const struct wf_linear *(*head)(const void *model);
};

extern const struct family family_gpt, family_rms;

/* By name; NULL with the nearest name in *error. */
const struct family *family_find(const char *name, wf_error *error);

/* One configuration key, for the reader of config.json (config.c has the table). */
enum key_kind { KEY_INT, KEY_REAL, KEY_BOOL, KEY_ACTIVATION, KEY_SCHEDULE };
struct key {
    const char *name;
    enum key_kind kind;
    size_t offset; /* in struct wf_config */
    double low, high;
    bool above, below; /* the bounds themselves are outside */
};
const struct key *key_at(int index);
int64_t key_int(const struct key *key, const struct wf_config *config); /* the enums too */
double key_real(const struct key *key, const struct wf_config *config);
bool key_bool(const struct key *key, const struct wf_config *config);
/* These check the range; the message says "name: value is out of range: ...". */
wf_status key_set_int(const struct key *key, struct wf_config *config, int64_t value, wf_error *error) WF_CHECKED;
wf_status key_set_real(const struct key *key, struct wf_config *config, double value, wf_error *error) WF_CHECKED;
void key_set_bool(const struct key *key, struct wf_config *config, bool value);
/* The word of an enum's key. */
wf_status key_set_word(const struct key *key, struct wf_config *config, const char *word, wf_error *error) WF_CHECKED;

/* Copies a tape's error, if there is one; returns its code. */
wf_status error_of_tape(const wf_tape *tape, wf_error *error);

#endif
