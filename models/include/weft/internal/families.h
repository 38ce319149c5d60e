/* SPDX-License-Identifier: MIT */
/* What a family of models gives to the common face in model.c, and what the files of this room share. */
#ifndef WEFT_MODELS_FAMILIES_H
#define WEFT_MODELS_FAMILIES_H

#include <weft/encoder.h>
#include <weft/models.h>

/* Sentences end to end: sentence i is rows offsets[i] .. offsets[i+1]-1. Without offsets there is one, as [1,T,..]. */
struct packed {
    const int32_t *offsets;
    int count;
};

/* What a decoder looks at. */
struct decoding {
    struct packed target, source;
    wf_tensor *memory, *const *kv; /* one of both: the encoder's output, or each layer's keys and values of it */
    struct wf_cache *cache;        /* NULL: whole targets */
    wf_tensor **weights, **cross_weights;
};

struct family {
    const char *name;
    enum wf_model_kind kind; /* says which of the functions below it has */
    int users;               /* of the keys of a configuration: one of WF_CONFIG_LANGUAGE, ... */
    size_t size, block_size; /* bytes of the model's struct: size + (all layers) * block_size */
    /* Declares all parameters of a configuration; errors go to the registry. `model` is `size + ...` zero bytes. */
    void (*init)(wf_scope scope, void *model, const struct wf_config *config);
    /* Fills the parameters from a file that has another library's names. NULL: wf_registry_load does. */
    wf_status (*load)(wf_registry *registry, const wf_safetensors *file, wf_error *error);
    /* The map to logits. NULL: it has none. */
    const struct wf_linear *(*head)(const void *model);

    /* Language models: ids [B,T] -> what the head sees [B,T,d]; the cache is read, not advanced. weights: NULL, or [layers]. */
    wf_tensor *(*forward)(const void *model, wf_tensor *ids, struct wf_cache *cache, wf_tensor **weights);

    /* Encoders: ids [B,T], or packed [N] -> [B,T,d] or [N,d]. The call was checked. */
    wf_tensor *(*hidden)(const void *model, wf_tensor *ids, const struct wf_encoder_call *call);

    /* Encoder-decoders. Source ids [M] (or [1,S]) -> memory [M,d]. weights: NULL, or [encoder_layers], for one sentence as [1,S]. */
    wf_tensor *(*encode)(const void *model, wf_tensor *ids, const struct packed *source, wf_tensor **weights);
    /* Keys and values of one decoder layer's cross-attention for the memory. */
    wf_tensor *(*memory)(const void *model, int64_t layer, wf_tensor *memory);
    /* Target ids [N] (or [1,T], or with a cache [R,T]) -> what the head sees, [N,d]; the cache is read, not advanced. */
    wf_tensor *(*decode)(const void *model, wf_tensor *ids, const struct decoding *decoding);
};

/* A wf_model. */
struct wf_model {
    struct wf_config config;
    const struct family *family;
    wf_registry *registry;
    void *body; /* the family's struct */
};

extern const struct family family_gpt, family_rms, family_seq2seq, family_encoder, family_bert;

/* By name; NULL with the nearest name in *error. */
const struct family *family_find(const char *name, wf_error *error);

/* One configuration key, for `--set` and for config.json (config_keys.c has the table). */
enum key_kind { KEY_INT, KEY_REAL, KEY_BOOL, KEY_WORD };
enum { MOST_KEYS = 64 };
struct key {
    const char *name, *meaning;
    enum key_kind kind;
    size_t offset; /* in struct wf_config */
    double low, high;
    double low_of_pairs;      /* added to low for encoder-decoders */
    bool above, below;        /* the bounds themselves are outside */
    const char *const *words; /* of KEY_WORD, high + 1 of them; the field is an enum */
    int users;                /* bits; 0: WF_CONFIG_TRAINED */
    const char *instead_key;  /* what others may mean; or NULL */
};
const struct key *key_at(int index);
const struct key *key_find(const char *name); /* NULL: there is none */
int key_users(const struct key *key);
/* Whether the configuration's family has a use for it; true for a family that is not known. */
bool key_used(const struct key *key, const struct wf_config *config);
bool key_is_zero(const struct key *key, const struct wf_config *config);
wf_status key_check(const struct key *key, const struct wf_config *config, wf_error *error) WF_CHECKED; /* the range */
int64_t key_int(const struct key *key, const struct wf_config *config); /* the enums too */
double key_real(const struct key *key, const struct wf_config *config);
bool key_bool(const struct key *key, const struct wf_config *config);
/* These check the range; the message says "name: value is out of range: ...". */
wf_status key_set_int(const struct key *key, struct wf_config *config, int64_t value, wf_error *error) WF_CHECKED;
wf_status key_set_real(const struct key *key, struct wf_config *config, double value, wf_error *error) WF_CHECKED;
void key_set_bool(const struct key *key, struct wf_config *config, bool value);
wf_status key_set_word(const struct key *key, struct wf_config *config, const char *word, wf_error *error) WF_CHECKED;
/* The error for a number that its C type does not hold, as the user wrote it. */
wf_status key_too_large(const struct key *key, const struct wf_config *config, const char *text, wf_error *error);

#endif
