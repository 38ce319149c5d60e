/* SPDX-License-Identifier: MIT */
/* A family of models: one descriptor with its configuration keys, presets and functions. The families of the zoo are files in models/ and
 * use nothing else; a program registers its own with wf_family_register, and from then on they are trained, resumed, generated from,
 * evaluated, drawn and timed as those of the zoo are: by wf_train, wf_run_open, wf_generate and their likes, and by wf_main
 * (<weft/main.h>), which gives a program the whole command.
 *
 *   struct tiny_config { int64_t d_model, layers, heads, context, vocab_size; };
 *   static const struct wf_key keys[] = {
 *       WF_NUMBER_KEY(struct tiny_config, d_model, "64", 1, 4096, "model width", .role = WF_KEY_WIDTH), ...};
 *   static const struct wf_preset presets[] = {{"tiny", "a model to try", "d_model=32 steps=200"}};
 *   static const struct wf_family tiny = {
 *       .abi = WF_FAMILY_ABI, .name = "tiny", .kind = WF_MODEL_LANGUAGE, .config_size = sizeof(struct tiny_config),
 *       .keys = WF_ROWS(keys), .presets = WF_ROWS(presets), .size = sizeof(struct tiny_model), .init = tiny_init,
 *       .forward = tiny_forward, .head = WF_HEAD_AT(struct tiny_model, head)};
 *
 *   int main(int argc, char **argv)
 *   {
 *       wf_error error = {0};
 *       if (wf_family_register(&tiny, &error) != WF_OK) ...
 *       return wf_main(argc, argv);
 *   }
 */
#ifndef WEFT_FAMILY_H
#define WEFT_FAMILY_H

#include <stddef.h>

#include <weft/blocks.h>
#include <weft/encoder.h>
#include <weft/models.h>

struct json_t; /* of jansson */

WF_BEGIN_DECLS

/* --- keys ---------------------------------------------------------------------------------------------------------- */

/* One configuration key: a member of a struct of settings, for `--set`, config.json, the help and the checks. */
enum wf_key_kind { WF_KEY_INT, WF_KEY_REAL, WF_KEY_BOOL, WF_KEY_WORD }; /* int64_t, double, bool, an enum */
/* The role of a family's key, by which common code finds it: see struct wf_model_shape. */
enum wf_key_role {
    WF_KEY_PLAIN,        /* nothing */
    WF_KEY_VOCAB,        /* set from the tokenizers */
    WF_KEY_SOURCE_VOCAB, /* too; 0: as the target's */
    WF_KEY_CONTEXT,
    WF_KEY_LAYERS, /* without one: 1 */
    WF_KEY_ENCODER_LAYERS,
    WF_KEY_WIDTH,
    WF_KEY_HEADS,    /* must divide the width; for models without attention there is none */
    WF_KEY_KV_HEADS, /* must divide the heads; 0: as heads */
    WF_KEY_FFN_WIDTH,
    WF_KEY_ACTIVATION, /* an enum wf_activation */
    WF_KEY_SEGMENTS,
    WF_KEY_HEAD, /* a bool: whether there is the output layer, which a training needs and files of other libraries may lack */
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
    const char *also;         /* what users of other models and programs call it, separated by spaces: named when one of these is set; names
                                 that follow from the role, such as n_embd of a width, are known */
    enum wf_key_role role;
    bool resumable;     /* of a family: no parameter depends on it, so that the resume of a training may change it */
    bool of_batches;    /* the batches of pairs depend on it: a resume that changes it begins an epoch */
    bool of_validation; /* the loss of a validation depends on it, apart from the weights: a resume that changes it compares losses anew */
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

WF_API extern const char *const wf_activation_words[]; /* enum wf_activation */
WF_API extern const char *const wf_norm_words[];       /* enum wf_norm_place */

/* --- presets ------------------------------------------------------------------------------------------------------- */

/* The settings are those that differ from the defaults of the keys: "d_model=384 heads=6 lr=1e-3". See wf_preset. */
struct wf_presets {
    const struct wf_preset *preset;
    int count;
};

/* --- the descriptor ------------------------------------------------------------------------------------------------ */

/* The inputs of a decoder. Sentences are packed; a single one may be [1,T,..] without offsets. */
struct wf_decoding {
    struct wf_packed target, source;
    wf_tensor *memory, *const *kv;        /* one of both: the encoder's output [M,d], or what .memory made of it for each layer */
    struct wf_cache *cache;               /* NULL: whole targets */
    wf_tensor **weights, **cross_weights; /* NULL, or [layers], to be set to weights [1,H,T,T] and [1,H,T,S] of one sentence pair */
};

struct wf_family {
    size_t abi;       /* WF_FAMILY_ABI: the size of this struct in the program that made it */
    const char *name; /* letters, digits, _ and -; config.json holds it */
    enum wf_model_kind kind;
    bool read_only; /* read from other libraries' folders, not trained here */

    /* Its configuration: a plain struct of config_size bytes, at most WF_CONFIG_SPACE. */
    size_t config_size;
    struct wf_keys keys;
    struct wf_presets presets;
    /* Conditions between keys, besides those of their roles; ranges were checked. NULL: none. */
    wf_status (*check)(const void *config, wf_error *error);
    /* The "model_type" of another library's config.json that this family reads, and how. NULL: none. */
    const char *model_type;
    wf_status (*read)(const struct json_t *object, const char *path, void *config, wf_error *error);

    size_t size, block_size; /* bytes of the model's struct: size + (layers + encoder_layers of the shape) * block_size */
    /* Declares all parameters of a configuration; errors go to the registry. `model` is `size + ...` zero bytes. */
    void (*init)(wf_scope scope, void *model, const void *config);
    /* Fills the parameters from a file with another library's names, and from one with Weft's. Of the options, which are not NULL,
     * allow_missing, missing and missing_ctx are set; the names are up to the family. NULL: wf_registry_load_with does. */
    wf_status (*load)(wf_registry *registry, const wf_safetensors *file, const struct wf_load_options *options, wf_error *error);

    /* From hidden states to logits: a struct wf_linear in the model's struct, WF_HEAD_AT(struct model, member), or a function
     * x [..,d] -> [..,V]. The first is faster to train: the loss then never holds all logits. Encoders may lack both, or leave the
     * linear layer without a weight where their configuration has no output layer (WF_KEY_HEAD). */
    size_t head;
    wf_tensor *(*logits)(const void *model, wf_tensor *x);
    /* Layers before the linear layer at `head` that belong to the output, not to the hidden states: x [..,d] -> [..,d]. NULL: none. */
    wf_tensor *(*before_head)(const void *model, wf_tensor *x);

    /* Language models: ids [B,T] -> what the head sees [B,T,d]. The cache is read and filled from its length on, but not advanced.
     * weights: NULL, or [layers] to be set to the attention weights [B,H,T,T] where a layer has some. */
    wf_tensor *(*forward)(const void *model, wf_tensor *ids, struct wf_cache *cache, wf_tensor **weights);
    /* It takes no cache: each new token is generated from the whole context. */
    bool no_cache;

    /* Encoders: ids [B,T], or packed [N] -> [B,T,d] or [N,d]. The call was checked. */
    wf_tensor *(*hidden)(const void *model, wf_tensor *ids, const struct wf_encoder_call *call);

    /* Encoder-decoders. Source ids [M] (or [1,S]) -> memory [M,d]. weights: NULL, or [encoder_layers], for one sentence as [1,S]. */
    wf_tensor *(*encode)(const void *model, wf_tensor *ids, const struct wf_packed *source, wf_tensor **weights);
    /* Keys and values of one decoder layer's cross-attention for the memory. */
    wf_tensor *(*memory)(const void *model, int64_t layer, wf_tensor *memory);
    /* Target ids [N] (or [1,T], or with a cache [R,T]) -> what the head sees, [N,d]; the cache is read, not advanced. */
    wf_tensor *(*decode)(const void *model, wf_tensor *ids, const struct wf_decoding *decoding);

    /* An empty cache for `rows` sequences of up to `capacity` tokens, made with wf_cache_init, or of a recurrent model's states with
     * wf_cache_init_states; wf_model_cache calls it. NULL: as many layers as the shape says, with keys and values of width / heads *
     * kv_heads each. */
    wf_status (*cache)(const void *model, struct wf_cache *cache, int64_t rows, int64_t capacity, wf_error *error);

    /* The name of what the functions above add to the loss of a training by wf_loss_term_add, as "balance": metrics.jsonl and TensorBoard
     * have its value as NAME/train. NULL: they add nothing. */
    const char *loss_term;
};
#define WF_HEAD_AT(type, member) (offsetof(type, member) + 1) /* not 0, which means none */
#define WF_FAMILY_ABI sizeof(struct wf_family)

/* --- a term of the loss -------------------------------------------------------------------------------------------- */

/* For forward, hidden, encode and decode: what a training minimises besides the cross-entropy, such as the balance of a mixture of experts
 * or a penalty of large activations. The family names it by .loss_term.
 *
 *     const bool term = wf_loss_term_wanted(tape);          with tape = wf_tape_of(ids)
 *     struct wf_moe_routing routing;
 *     x = wf_moe_forward(&b->moe, x, .residual = x, .routing = term ? &routing : NULL);
 *     if (term)
 *         wf_loss_term_add(tape, wf_scale(wf_moe_balance(&routing, 1), 0.01));
 *
 * `term` [] is of the ids of the call: a mean over them, or over their rows. An update minimises
 *
 *     L = sum over its parts of (sum of the part's cross-entropies / targets of the batch
 *                                + (ids of the call / ids of all parts' calls) * (sum of the terms that the call has added))
 *
 * with the calls of forward or hidden; of encode, whose ids are the sources'; and of decode, whose ids are the targets'. So a mean over ids
 * becomes the mean over the batch, for any accumulate. A term that is no mean, such as wf_moe_balance, a product of two, is computed for
 * each part. The losses of validations, of evaluations and loss/train are without terms; the minimised loss is loss/train_minimized.
 * wf_train and the command bench add terms; wf_model_loss and its likes do not.
 *
 * wanted: whether a term counts in this pass: not in a validation or a generation. wf_loss_term_add does nothing then. It is not for
 * functions that wf_checkpoint calls. */
WF_API bool wf_loss_term_wanted(const wf_tape *tape);
WF_API void wf_loss_term_add(wf_tape *tape, wf_tensor *term);

/* --- registration -------------------------------------------------------------------------------------------------- */

enum { WF_FAMILIES_MOST = 32 }; /* families that a program can register */

/* Makes a family and its presets known by their names, for the rest of the program: *family and everything that it points to must stay.
 * Call it before the functions that look for models, such as wf_main, wf_config_preset, wf_config_load. It is safe beside other threads.
 * The same descriptor may be registered again. WF_ERR_ARGUMENT, with what is wrong: a descriptor that wf_family_check refuses, or a name
 * of a family or preset that is taken. */
WF_API wf_status wf_family_register(const struct wf_family *family, wf_error *error) WF_CHECKED;
/* All families: those of the zoo, then those registered, in this order; NULL past the last. */
WF_API const struct wf_family *wf_family_at(int index);
/* By name; NULL with WF_ERR_ARGUMENT, and the nearest name in the message. */
WF_API const struct wf_family *wf_family_find(const char *name, wf_error *error);
/* Whether a descriptor can be used: its size, the functions of its kind, its keys (names, defaults within their ranges, members inside the
 * struct, a key for the vocabulary size, the context and the width), its presets. WF_ERR_ARGUMENT says what is wrong. */
WF_API wf_status wf_family_check(const struct wf_family *family, wf_error *error) WF_CHECKED;

/* For .check: the message of two keys that do not go together, "d_model (100) must be a multiple of heads (6)" with the rule
 * "be a multiple of". Returns WF_ERR_ARGUMENT. */
WF_API wf_status wf_key_conflict(const char *key, double value, const char *rule, const char *other, double other_value, wf_error *error);

WF_END_DECLS

#endif
