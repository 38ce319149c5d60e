/* SPDX-License-Identifier: MIT */
/* A family of models: one descriptor in its own file, with its configuration keys, presets and functions. Everything else asks the
 * descriptor; nothing outside the file names the family, its keys or its struct. A file models/NAME.c defines `family_NAME`;
 * models/meson.build lists the names. The descriptor holds no state and says its size, so that a program can hand in one at run time. */
#ifndef WEFT_INTERNAL_FAMILY_H
#define WEFT_INTERNAL_FAMILY_H

#include <weft/encoder.h>
#include <weft/models.h>

struct json_t; /* of jansson */

/* --- keys ---------------------------------------------------------------------------------------------------------- */

/* One configuration key: a member of a struct of settings, for `--set`, config.json, the help and the checks. */
enum wf_key_kind { WF_KEY_INT, WF_KEY_REAL, WF_KEY_BOOL, WF_KEY_WORD }; /* int64_t, double, bool, an enum */
/* What common code takes a family's key for, as it does not know its name: see struct wf_model_shape. */
enum wf_key_role {
    WF_KEY_PLAIN,        /* nothing */
    WF_KEY_VOCAB,        /* set from the tokenizers */
    WF_KEY_SOURCE_VOCAB, /* too; 0: as the target's */
    WF_KEY_CONTEXT,
    WF_KEY_LAYERS,
    WF_KEY_ENCODER_LAYERS,
    WF_KEY_WIDTH,
    WF_KEY_HEADS,    /* must divide the width */
    WF_KEY_KV_HEADS, /* must divide the heads; 0: as heads */
    WF_KEY_FFN_WIDTH,
    WF_KEY_ACTIVATION, /* an enum wf_activation */
    WF_KEY_SEGMENTS,
    WF_KEY_SHARED,
    WF_KEY_SOURCE_BOS,
    WF_KEY_SOURCE_EOS,
    WF_KEY_ROLES
};
struct wf_key {
    const char *name, *meaning; /* meaning: one line */
    const char *value;          /* the default, as text: also for files that lack the key */
    enum wf_key_kind kind;
    size_t offset; /* in the struct */
    double low, high;
    bool above, below;        /* the bounds themselves are excluded */
    const char *const *words; /* of WF_KEY_WORD, in the enum's order; ends with NULL */
    int settable;             /* only the first `settable` words can be set, the others are found in files; 0: all */
    int kinds;                /* kinds of model that use it, as bits 1 << enum wf_model_kind; 0: all */
    const char *also;         /* what users of other models call it, separated by spaces: named when one of these is set */
    enum wf_key_role role;
    bool resumable; /* of a family: no parameter depends on it, so that the resume of a training may change it */
};
struct wf_keys {
    const struct wf_key *key;
    int count;
};

/* Rows of a table. A member of the wrong C type does not compile. Further fields follow: .above = true, .also = "..." */
/* clang-format off */
#define WF_ROWS(rows) {rows, sizeof(rows) / sizeof *(rows)} /* a struct wf_keys or wf_presets */
#define WF_KEY_AT(type, field, ...) .name = #field, .offset = offsetof(type, field), .kind = _Generic(((type *)0)->field, __VA_ARGS__)
#define WF_NUMBER_KEY(type, field, text, least, most, about, ...) \
    {WF_KEY_AT(type, field, int64_t: WF_KEY_INT, double: WF_KEY_REAL), .value = text, .low = least, .high = most, .meaning = about, \
     __VA_ARGS__}
#define WF_BOOL_KEY(type, field, text, about, ...) \
    {WF_KEY_AT(type, field, bool: WF_KEY_BOOL), .value = text, .meaning = about, __VA_ARGS__}
#define WF_WORD_KEY(type, field, text, list, about, ...) \
    {WF_KEY_AT(type, field, int: WF_KEY_WORD, unsigned: WF_KEY_WORD), .value = text, .words = list, .meaning = about, __VA_ARGS__}
/* clang-format on */
#define WF_KEY_MANY 1e12 /* no bound that a user would meet: "at least N" */

extern const char *const wf_activation_words[]; /* enum wf_activation */
extern const char *const wf_norm_words[];       /* enum wf_norm_place */

/* --- presets ------------------------------------------------------------------------------------------------------- */

/* The settings are those that differ from the defaults of the keys: "d_model=384 heads=6 lr=1e-3". See wf_preset. */
struct wf_presets {
    const struct wf_preset *preset;
    int count;
};

/* --- the descriptor ------------------------------------------------------------------------------------------------ */

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

struct wf_family {
    size_t abi; /* WF_FAMILY_ABI: the size of this struct in the program that made it */
    const char *name;
    enum wf_model_kind kind; /* says which of the functions below it has */
    bool read_only;          /* read from other libraries' folders, not trained here */

    /* Its configuration: a plain struct of config_size bytes, at most WF_CONFIG_SPACE. */
    size_t config_size;
    struct wf_keys keys;
    struct wf_presets presets;
    /* What holds between keys, besides what their roles ask for; ranges were checked. NULL: nothing. */
    wf_status (*check)(const void *config, wf_error *error);
    /* The "model_type" of another library's config.json that this family reads, and how. NULL: none. */
    const char *model_type;
    wf_status (*read)(const struct json_t *object, const char *path, void *config, wf_error *error);

    size_t size, block_size; /* bytes of the model's struct: size + (all layers of the shape) * block_size */
    /* Declares all parameters of a configuration; errors go to the registry. `model` is `size + ...` zero bytes. */
    void (*init)(wf_scope scope, void *model, const void *config);
    /* Fills the parameters from a file with another library's names. NULL: wf_registry_load does. */
    wf_status (*load)(wf_registry *registry, const wf_safetensors *file, wf_error *error);
    size_t head; /* offset of the struct wf_linear that maps to logits in the model's struct; 0: it has none */

    /* Language models: ids [B,T] -> what the head sees [B,T,d]. The cache is read and filled from its length on, but not advanced.
     * weights: NULL, or [layers] to be set to the attention weights [B,H,T,T] where a layer has some. */
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
#define WF_FAMILY_ABI sizeof(struct wf_family)

/* All families, in the order of models/meson.build; ends with NULL. */
extern const struct wf_family *const wf_families[];
/* By name; NULL with the nearest name in *error. */
const struct wf_family *wf_family_find(const char *name, wf_error *error);
/* Whether a descriptor can be used: its ABI, functions of its kind, keys (names, defaults within their ranges, members inside the struct, a
 * key for the vocabulary size), presets. WF_ERR_ARGUMENT says what is wrong. */
wf_status wf_family_check(const struct wf_family *family, wf_error *error) WF_CHECKED;

/* A check's message between two keys: "d_model (100) must be a multiple of heads (6)". Returns WF_ERR_ARGUMENT. */
wf_status wf_key_conflict(const char *key, double value, const char *rule, const char *other, double other_value, wf_error *error);

/* wf_config_set for one key alone. in_file: for a value in a file of Weft's, where a tokenizer that can't be trained may stand. */
wf_status wf_config_set_as(struct wf_config *config, const char *key, const char *value, bool in_file, wf_error *error) WF_CHECKED;

/* A wf_model. */
struct wf_model {
    struct wf_config config;
    const struct wf_family *family;
    struct wf_model_shape shape;
    wf_registry *registry;
    void *body; /* the family's struct */
};
/* What the head sees [..,d] -> logits [..,V], or the mean cross-entropy of targets [..]. A model without a head is an error of the tape. */
wf_tensor *wf_head_logits(const wf_model *model, wf_tensor *x);
wf_tensor *wf_head_loss(const wf_model *model, wf_tensor *x, wf_tensor *targets, const struct wf_cross_entropy_options *options);

#endif
