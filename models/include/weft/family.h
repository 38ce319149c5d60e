/* SPDX-License-Identifier: MIT */
/* A family of models: a descriptor, struct wf_family, with the configuration keys, presets and functions of a model. Weft's own families
 * are files in models/. A program registers its own family with wf_family_register. Every function for models, such as wf_train,
 * wf_run_open or wf_generate, then accepts that family too, and so does the command, which a program runs by wf_main (<weft/main.h>).
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
struct wf_counterpart;

WF_BEGIN_DECLS

/* --- keys ---------------------------------------------------------------------------------------------------------- */

/* The C type of the member that a key sets. */
enum wf_key_kind {
    WF_KEY_INT,  /* int64_t */
    WF_KEY_REAL, /* double */
    WF_KEY_BOOL, /* bool */
    WF_KEY_WORD  /* an enum; in text each enumerator is a word */
};
/* The role of a family's key tells common code what the value means. struct wf_model_shape describes the values. */
enum wf_key_role {
    WF_KEY_PLAIN,        /* a key without a meaning for common code */
    WF_KEY_VOCAB,        /* vocabulary size; a training sets it to that of its tokenizer */
    WF_KEY_SOURCE_VOCAB, /* vocabulary size of a translation model's source tokenizer; 0: the value of WF_KEY_VOCAB */
    WF_KEY_CONTEXT,
    WF_KEY_LAYERS, /* number of blocks; a family without such a key has 1 */
    WF_KEY_ENCODER_LAYERS,
    WF_KEY_WIDTH,
    WF_KEY_HEADS,      /* number of attention heads, which must divide the width; a family without attention has no such key */
    WF_KEY_KV_HEADS,   /* number of key and value heads, which must divide the number of attention heads; 0: the same number */
    WF_KEY_HEAD_WIDTH, /* width of a head; 0: width / heads. With another value the heads need not divide the width */
    WF_KEY_FFN_WIDTH,
    WF_KEY_ACTIVATION, /* an enum wf_activation */
    WF_KEY_SEGMENTS,
    WF_KEY_HEAD, /* a bool: whether the model has an output layer. Every training needs one; files of other libraries may lack it */
    WF_KEY_SHARED,
    WF_KEY_SOURCE_BOS,
    WF_KEY_SOURCE_EOS,
    WF_KEY_ROLES /* the number of roles */
};
/* A configuration key: it describes one member of a struct of settings. `--set`, config.json, the help and the checks follow from it. */
struct wf_key {
    const char *name;
    const char *meaning;   /* one line for the help */
    const char *value;     /* the default as text, which also applies to files without the key */
    enum wf_key_kind kind; /* type of the member */
    size_t offset;         /* offset of the member in the struct */
    double low, high;
    bool above;               /* the value must be above `low`; otherwise it may equal `low` */
    bool below;               /* the value must be below `high`; otherwise it may equal `high` */
    const char *const *words; /* the texts of a WF_KEY_WORD, in the order of its enum; ends with NULL */
    int settable;     /* number of words, counted from the first, that a user can set; files may hold any word. 0: all words can be set */
    int kinds;        /* the kinds of model that use the key: the sum of 1 << kind over these values of enum wf_model_kind; 0: all kinds */
    const char *also; /* names of this key in other models and programs, separated by spaces. If a user sets one of them, the error message
                         names this key. Names that follow from the role, such as n_embd for a width, need not be listed */
    enum wf_key_role role;
    bool resumable;     /* for a family's key: no parameter depends on it, so a resumed training may have another value of it */
    bool of_bits;       /* the weights that a training computes depend on the key, so a resume cannot change it */
    bool of_batches;    /* batches of sentence pairs depend on the key, so a resume that changes it begins a new epoch */
    bool of_validation; /* validation losses depend on the key, so a resume that changes it selects the best weights anew */
};
/* The rows of a table of keys. */
struct wf_keys {
    const struct wf_key *key;
    int count;
};

/* Macros for the rows of a table of keys. The C type of the member must fit the macro; otherwise the row does not compile. Further members
 * of struct wf_key can follow as arguments: .above = true, .also = "..." */
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
#define WF_KEY_MANY 1e12 /* a `high` that no user reaches: messages then say "at least N" instead of "N to M" */

/* The .words of keys that are enums, ending with NULL. */
WF_API extern const char *const wf_activation_words[]; /* for enum wf_activation */
WF_API extern const char *const wf_norm_words[];       /* for enum wf_norm_place */

/* --- presets ------------------------------------------------------------------------------------------------------- */

/* The rows of a table of presets (struct wf_preset in <weft/config.h>). */
struct wf_presets {
    const struct wf_preset *preset;
    int count;
};

/* --- the descriptor ------------------------------------------------------------------------------------------------ */

/* The inputs of a decoder besides the target ids. The sentences are packed. The arrays of a single sentence may instead have the shape
 * [1,T,..], without offsets. */
struct wf_decoding {
    struct wf_packed target, source;
    wf_tensor *memory;      /* the encoder's output [M,d]; NULL if `kv` is set */
    wf_tensor *const *kv;   /* the keys and values of the cross-attention, one tensor for each decoder layer, which the family's function
                               .memory computes from the encoder's output; NULL if `memory` is set */
    struct wf_cache *cache; /* the keys and values of the target ids before those of this call; NULL: the call has all ids of each target */
    /* [layers]: receive the self-attention weights [1,H,T,T] and the cross-attention weights [1,H,T,S] of one sentence pair. NULL: the
     * caller wants none. */
    wf_tensor **weights;
    wf_tensor **cross_weights;
};

/* The descriptor of a family. A member that is 0 or NULL is not set. */
struct wf_family {
    size_t abi;       /* WF_FAMILY_ABI: the size of this struct in the program that made it */
    const char *name; /* letters, digits, _ . and -, fewer than 64; config.json holds the name */
    enum wf_model_kind kind;
    bool read_only; /* the models are read from folders of another library, and cannot be trained */

    /* The configuration: a plain struct of config_size bytes, at most WF_CONFIG_SPACE, whose members are set by the keys. */
    size_t config_size;
    struct wf_keys keys;
    struct wf_presets presets;
    /* Checks conditions between keys, after the ranges and the roles were checked. NULL: there are no other conditions. */
    wf_status (*check)(const void *config, wf_error *error);
    /* If the config.json of another library has one of these "model_type"s, which spaces separate, `read` fills *config from it. NULL: the
     * family reads no such files. */
    const char *model_type;
    wf_status (*read)(const struct json_t *object, const char *path, void *config, wf_error *error);

    /* The model's struct has `size` bytes, followed by block_size bytes for each block (of an encoder-decoder: of both stacks). */
    size_t size, block_size;
    /* Declares all parameters of a configuration. `model` points to the model's struct, zero-filled. Errors go to the registry. */
    void (*init)(wf_scope scope, void *model, const void *config);
    /* Fills the parameters from a file, whose tensors have another library's names or Weft's. `options` is not NULL, and only its members
     * allow_missing, missing and missing_ctx can be set: the family itself maps the names. NULL: wf_registry_load_with reads the file. */
    wf_status (*load)(wf_registry *registry, const wf_safetensors *file, const struct wf_load_options *options, wf_error *error);

    /* The output layer, from hidden states to logits. Set `head` to WF_HEAD_AT(struct model, member) for a struct wf_linear in the model's
     * struct, or set `logits` to a function x [..,d] -> [..,V]. Training is faster with `head`, because the loss then never holds all
     * logits. An encoder may set neither. If the family has a key with the role WF_KEY_HEAD, and the value of the key is false, `init` must
     * leave the weight of the linear layer NULL. */
    size_t head;
    wf_tensor *(*logits)(const void *model, wf_tensor *x);
    /* Layers before the linear layer that belong to the output layer, not to the hidden states: x [..,d] -> [..,d]. NULL: none. */
    wf_tensor *(*before_head)(const void *model, wf_tensor *x);

    /* For language models: ids [B,T] -> input of the output layer [B,T,d]. With a cache the ids continue its sequences: read the cache, and
     * append to it, but do not call wf_cache_advance, which Weft does afterwards. If `weights` is not NULL, set weights[i] to the attention
     * weights [B,H,T,T] of each layer i that has attention. */
    wf_tensor *(*forward)(const void *model, wf_tensor *ids, struct wf_cache *cache, wf_tensor **weights);
    /* `forward` accepts no cache, so each new token is computed from the whole context. */
    bool no_cache;

    /* For encoders: ids [B,T] -> [B,T,d], or packed ids [N] -> [N,d]. Weft has checked `call` before. */
    wf_tensor *(*hidden)(const void *model, wf_tensor *ids, const struct wf_encoder_call *call);

    /* For encoder-decoders: source ids [M] -> memory [M,d], or for a single sentence [1,S] -> [1,S,d]. `weights` is NULL, or, only for a
     * single sentence, an array of encoder_layers elements, which the function sets to attention weights. */
    wf_tensor *(*encode)(const void *model, wf_tensor *ids, const struct wf_packed *source, wf_tensor **weights);
    /* For encoder-decoders: the memory -> keys and values of one decoder layer's cross-attention. */
    wf_tensor *(*memory)(const void *model, int64_t layer, wf_tensor *memory);
    /* For encoder-decoders: target ids [N] -> input of the output layer [N,d], or for a single sentence [1,T] -> [1,T,d], or with a cache
     * [R,T] -> [R T,d]. Read the cache and append to it, but do not call wf_cache_advance, which Weft does afterwards. */
    wf_tensor *(*decode)(const void *model, wf_tensor *ids, const struct wf_decoding *decoding);

    /* Makes an empty cache for `rows` sequences of up to `capacity` tokens: with wf_cache_init, or for the states of a recurrent model with
     * wf_cache_init_states. wf_model_cache calls it. NULL: wf_model_cache makes a cache whose layers are the blocks, with keys and values
     * of width / heads * kv_heads elements. */
    wf_status (*cache)(const void *model, struct wf_cache *cache, int64_t rows, int64_t capacity, wf_error *error);

    /* The name, such as "balance", of the term that the functions above add to the loss of a training with wf_loss_term_add. metrics.jsonl
     * and TensorBoard hold its value as NAME/train. NULL: the functions add no term. */
    const char *loss_term;

    /* The bound of the logits of a model with this configuration: each logit of the output layer, z, becomes bound * tanh(z / bound)
     * (wf_softcap). 0: they stay. NULL: they stay in all configurations. */
    double (*softcap)(const void *config);
    bool needs_begin; /* the model predicts badly without the tokenizer's BOS token before a text, so evaluation puts it there */

    /* For Weft's own families: how their models are written for transformers. NULL: they cannot be. */
    const struct wf_counterpart *counterpart;
};
/* The value of .head: the offset of the member plus 1. So it is never 0, which would mean that .head is not set. */
#define WF_HEAD_AT(type, member) (offsetof(type, member) + 1)
#define WF_FAMILY_ABI sizeof(struct wf_family)

/* --- a term of the loss -------------------------------------------------------------------------------------------- */

/* A training can minimise a further term besides the cross-entropy, such as the balance of a mixture of experts or a penalty of large
 * activations. The functions .forward, .hidden, .encode and .decode of a family add the term, and .loss_term names it.
 *
 *     const bool term = wf_loss_term_wanted(tape);          with tape = wf_tape_of(ids)
 *     struct wf_moe_routing routing;
 *     x = wf_moe_forward(&b->moe, x, .residual = x, .routing = term ? &routing : NULL);
 *     if (term)
 *         wf_loss_term_add(tape, wf_scale(wf_moe_balance(&routing, 1), 0.01));
 *
 * The tensor that wf_loss_term_add gets, a scalar [], should be a mean over the ids, or over the rows, of one call of .forward, .hidden,
 * .encode or .decode. Each micro-batch calls these functions once. An update minimises
 *
 *     L = sum over micro-batches of (sum of the micro-batch's cross-entropies / number of targets of the batch
 *                                    + share * sum of the terms that the micro-batch adds)
 *
 * where share = (number of ids of the call) / (number of ids of the batch). For `encode` these are the source ids, and for `decode` the
 * target ids. So a term that is a mean over ids becomes the mean over the batch, whatever the value of `accumulate`. A term that is not a
 * mean, such as wf_moe_balance, is computed for each micro-batch, so its value depends on `accumulate`. In metrics.jsonl, loss/train and
 * the losses of validations do not contain terms, nor do the losses of evaluations; loss/train_minimized is the loss that is minimised.
 * wf_train and the command bench add terms; wf_model_loss, wf_encoder_loss and wf_pairs_loss do not.
 *
 * wf_loss_term_wanted returns whether the present call belongs to a training step. Otherwise, for example in a validation or a generation,
 * wf_loss_term_add does nothing. Do not add terms in a function that wf_checkpoint calls. */
WF_API bool wf_loss_term_wanted(const wf_tape *tape);
WF_API void wf_loss_term_add(wf_tape *tape, wf_tensor *term);

/* --- registration -------------------------------------------------------------------------------------------------- */

enum { WF_FAMILIES_MOST = 32 }; /* maximum number of families that a program can register */

/* Makes a family and its presets known by their names, until the program ends: *family and everything that it points to must stay valid
 * that long. Register it before the program calls functions that look for models by name, such as wf_main, wf_config_preset or
 * wf_config_load. Other threads may use Weft meanwhile. The same descriptor may be registered again. WF_ERR_ARGUMENT, with the reason in
 * the message: wf_family_check refuses the descriptor, or another family or preset has one of its names. */
WF_API wf_status wf_family_register(const struct wf_family *family, wf_error *error) WF_CHECKED;
/* Entry `index` in the list of families: Weft's own, then the registered ones in order. NULL past the last entry. */
WF_API const struct wf_family *wf_family_at(int index);
/* The family with this name. If there is none, returns NULL and sets *error to WF_ERR_ARGUMENT; the message suggests the nearest name. */
WF_API const struct wf_family *wf_family_find(const char *name, wf_error *error);
/* Checks that a descriptor can be used: its size, the functions of its kind, its keys (names, defaults within their ranges, members inside
 * the struct, a key with the role of vocabulary size, one of context and one of width), and its presets. WF_ERR_ARGUMENT, with the reason
 * in the message. */
WF_API wf_status wf_family_check(const struct wf_family *family, wf_error *error) WF_CHECKED;

/* For .check: sets *error to a message about two keys with contradicting values, and returns WF_ERR_ARGUMENT. With the rule
 * "be a multiple of" the message is "d_model (100) must be a multiple of heads (6)". */
WF_API wf_status wf_key_conflict(const char *key, double value, const char *rule, const char *other, double other_value, wf_error *error);

WF_END_DECLS

#endif
