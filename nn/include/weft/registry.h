/* SPDX-License-Identifier: MIT */
/* The parameters of a model: declared first, with names and shapes, then allocated and filled in one go.
 *
 *   wf_registry *registry = wf_registry_new(&error);
 *   my_model_init(wf_root(registry), &model, &config);               declares
 *   if (wf_registry_build(registry, seed, &error) != WF_OK) ...      allocates, initialises; or wf_registry_load
 *
 * The registry keeps the first error of a declaration (a duplicate name, an invalid size, no memory), and build or load
 * returns it: modules need not check. Values lie in one slab and gradients in another, so that counts are
 * known without memory and optimisers run over flat ranges.
 *
 * Several threads, each with its tape, may use the parameters of one registry at the same time, in WF_INFER, or in training with separate
 * gradients (wf_grads_new): each gets the bits that it gets alone. A call that replaces values (build, load, wf_parameter_set) is refused
 * with WF_ERR_BUSY while a tape of another thread, which has not ended, is in a pass that has used one of them; a pass ends with
 * wf_tape_reset or wf_tape_free. Passes that begin while values are replaced get an error on their tape. Freezing is safe beside passes in
 * WF_INFER. Not protected, so that the program has to see to it: wf_registry_free, an optimiser's step, and freezing beside another
 * thread's training; values read or written through pointers (wf_registry_values, wf_view, wf_read of a parameter). */
#ifndef WEFT_REGISTRY_H
#define WEFT_REGISTRY_H

#include <weft/op.h>
#include <weft/safetensors.h>
#include <weft/tape.h>

WF_BEGIN_DECLS

typedef struct wf_registry wf_registry;

/* NULL with *error for a wrong ABI word or if out of memory. Free with wf_registry_free. */
WF_API wf_registry *wf_registry_new_abi(uint32_t abi, wf_error *error);
#define wf_registry_new(error) wf_registry_new_abi(WF_ABI, error)
/* Frees all parameters; NULL is allowed. Ops refuse a freed parameter by name, until some thousand others were freed. */
WF_API void wf_registry_free(wf_registry *registry);

/* --- initialisers -------------------------------------------------------------------------------------------------- */

enum wf_init_kind {
    WF_INIT_DEFAULT,        /* the module's own default */
    WF_INIT_CONSTANT,       /* a */
    WF_INIT_NORMAL,         /* N(0, a^2) */
    WF_INIT_UNIFORM,        /* U(-a, a) */
    WF_INIT_FAN_IN,         /* U(-1/sqrt(fan_in), 1/sqrt(fan_in)): PyTorch's default for Linear */
    WF_INIT_XAVIER_UNIFORM, /* U(-b, b), b = sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010) */
    WF_INIT_FUNCTION        /* fill(ctx, value, shape, seed, name) */
};
struct wf_initializer {
    enum wf_init_kind kind;
    double a;
    int64_t fan_in; /* 0: the last dimension; the module sets it for biases */
    int64_t parts;  /* matrices stacked along dim 0 (q, k, v in one); fan_out counts one of them; 0 means 1 */
    /* value: row-major, zeros before; seed: that of wf_registry_build, 0 for buffers, which wf_registry_load fills too; name: the full
     * name. Random numbers keyed by both, wf_fill_normal(value, n, 0, 1, seed, wf_stream_of(name)), depend on no order of declaration. */
    void (*fill)(void *ctx, wf_real *value, const wf_shape *shape, uint64_t seed, const char *name);
    void *ctx; /* has to live until the registry is built or loaded */
};
/* Initialisers by kind of parameter, in place of PyTorch's defaults (linear weights and biases U(+-1/sqrt(fan_in)), embeddings
 * N(0,1)). */
struct wf_init_rules {
    struct wf_initializer weight;   /* of linear maps */
    struct wf_initializer residual; /* of linear maps that end a residual branch; default: as weight */
    struct wf_initializer bias;
    struct wf_initializer embedding;
};

/* --- scopes and parameters ----------------------------------------------------------------------------------------- */

/* A place in the tree of names, by value. */
typedef struct wf_scope {
    wf_registry *registry;
    const char *path;                  /* "" or "layers.0." */
    const struct wf_init_rules *rules; /* NULL: the defaults */
} wf_scope;

WF_API wf_scope wf_root(wf_registry *registry);
WF_API wf_scope wf_sub(wf_scope scope, const char *name);                   /* "name." */
WF_API wf_scope wf_sub_at(wf_scope scope, const char *name, int64_t index); /* "name.3." */
/* The same scope with other initialisers; the rules are copied into the registry. NULL: the defaults. */
WF_API wf_scope wf_with_init(wf_scope scope, const struct wf_init_rules *rules);

struct wf_parameter_options {
    struct wf_initializer init; /* default: constant 0 */
    bool frozen;                /* no gradient */
    bool buffer;                /* a table: frozen, not counted, not saved */
};
/* Declares a parameter and returns it, never NULL. It belongs to the registry and can be used by ops after build or load.
 * To tie two weights, use the same pointer in both places. */
WF_API wf_tensor *wf_parameter_with(wf_scope scope, const char *name, const wf_shape *shape, const struct wf_parameter_options *options);
#ifndef __cplusplus
#define wf_parameter(scope, name, shape, ...) wf_parameter_with(scope, name, shape, &(struct wf_parameter_options){__VA_ARGS__})
#endif
/* Records a declaration error as "scope: message". */
WF_API void wf_scope_fail(wf_scope scope, wf_status code, const char *format, ...) WF_PRINTF(3, 4);

/* --- building ------------------------------------------------------------------------------------------------------ */

/* Allocates values, and gradients of all parameters that are not frozen, and initialises: each value depends on (seed, name, index) alone.
 */
WF_API wf_status wf_registry_build(wf_registry *registry, uint64_t seed, wf_error *error) WF_CHECKED;
/* wf_registry_build then asks `cancelled` before each parameter, since a large model takes seconds: true ends it with WF_ERR_CANCELLED.
 * NULL: it does not ask. */
WF_API void wf_registry_cancel(wf_registry *registry, bool (*cancelled)(void *ctx), void *ctx);
/* Allocates values only and fills them from an open file, strictly: the file must hold every parameter with its shape, and nothing
 * else under the prefix. The error lists missing and unexpected names and names with another shape; no value has changed then. After a
 * read error the values are undefined. May be called again, also after build. */
WF_API wf_status wf_registry_load(wf_registry *registry, const wf_safetensors *file, const char *prefix, wf_error *error) WF_CHECKED;

/* Maps the tensor names of another library to parameters. A name may hold one '*', which stands for a number (the same one in all names
 * of the rule). Several rules may name one parameter: the first rule whose first source is in the file is used. A parameter without a rule
 * is looked up under its own name. A source that begins with '/' is, without it, a name outside the prefix. */
struct wf_load_rule {
    const char *parameter; /* "blocks.*.attn.qkv.weight" */
    const char *source[4]; /* 1 to 4 tensors stacked along dim 0, all of one shape; ends with NULL: "layer.*.query.weight", ... */
};
struct wf_load_options {
    const char *prefix; /* prefix of every name in the file; other names are ignored */
    const struct wf_load_rule *rule;
    int rules;
    const char *const *ignored; /* names that may be present and are not read, ends with NULL; "pooler.*" is a prefix */
    /* A parameter that has no tensor in the file keeps its value: build the registry first. Still errors: a file without any of the
     * parameters, and a parameter that has only some of its tensors in the file. */
    bool allow_missing;
    void (*missing)(void *ctx, const char *name); /* called for each of them after the load, in the order of declaration; may be NULL */
    void *missing_ctx;
};
/* wf_registry_load for such a file, equally strict. */
WF_API wf_status wf_registry_load_with(wf_registry *registry, const wf_safetensors *file, const struct wf_load_options *options,
                                       wf_error *error) WF_CHECKED;
/* Makes room for the gradients of the parameters that are trained now, and of no others: to train after load, and after
 * wf_registry_freeze. Gradients that are there stay, but their memory moves, and views of wf_grad become invalid. */
WF_API wf_status wf_registry_gradients(wf_registry *registry, wf_error *error) WF_CHECKED;
/* Puts all parameters under their names (prefix + name) into a writer; tied ones once. Values are read at its commit. Before build or load
 * it is an error of the writer. */
WF_API void wf_registry_save(const wf_registry *registry, wf_safetensors_writer *writer, const char *prefix);

/* --- inspection ---------------------------------------------------------------------------------------------------- */

/* The first error of a declaration; code WF_OK if there is none. Never NULL. Of a NULL registry: that it is NULL. */
WF_API const wf_error *wf_registry_error(const wf_registry *registry);
WF_API int wf_registry_count(const wf_registry *registry);                /* parameters and buffers */
WF_API int64_t wf_registry_parameters(const wf_registry *registry);       /* elements of all saved parameters; known before build */
WF_API wf_tensor *wf_registry_at(const wf_registry *registry, int index); /* in the order of declaration; NULL if out of range */
WF_API wf_tensor *wf_registry_find(const wf_registry *registry, const char *name); /* NULL if there is none */
WF_API bool wf_registry_is_buffer(const wf_registry *registry, int index);         /* false if out of range */
/* Freezes a parameter, which then has no gradient (one that it had counts as 0), or makes it trainable again. Also after build or load:
 * then wf_registry_gradients gives the memory for the gradients of frozen parameters back, and must be called before a parameter is
 * trained that was frozen when the gradients were allocated; a pass that uses it is refused otherwise. A pass that has used the parameter
 * goes on as it began: call wf_tape_reset, and wf_grads_zero, after it. A parameter of another registry is
 * an error of this registry. */
WF_API void wf_registry_freeze(wf_registry *registry, wf_tensor *parameter, bool frozen);
/* The same for all parameters whose names fit a pattern, in which each '*' stands for any characters: all but the head of a model,
 *
 *   wf_registry_freeze_matching(registry, "*", true, &error), wf_registry_freeze_matching(registry, "head.*", false, &error)
 *
 * WF_ERR_ARGUMENT: no parameter has such a name. Buffers stay frozen. */
WF_API wf_status wf_registry_freeze_matching(wf_registry *registry, const char *pattern, bool frozen, wf_error *error) WF_CHECKED;

/* Replaces a parameter's values by count = its size values, row-major. Ops that are called later read the new ones. A backward over ops
 * that have read the old ones is refused, by the op's and the parameter's names: set values before a pass or after its backward.
 * WF_ERR_ARGUMENT: no parameter, another count, or NULL; WF_ERR_STATE: not built or loaded yet. */
WF_API wf_status wf_parameter_set(wf_tensor *parameter, const wf_real *values, int64_t count, wf_error *error) WF_CHECKED;

/* The slab of values, at the offsets of wf_parameter_info; NULL before build. */
WF_API wf_real *wf_registry_values(const wf_registry *registry);
WF_API int64_t wf_registry_slab(const wf_registry *registry);    /* its elements, gaps included */
WF_API wf_grads *wf_registry_grads(const wf_registry *registry); /* NULL without gradients */
/* The gradients since the last step or zero are forgotten: before a pass whose gradients shall not be added to them. A registry without
 * gradients is allowed. */
WF_API void wf_registry_zero_grads(wf_registry *registry);
/* Separate gradients, of the parameters that are trained now, for another thread's tape; NULL with *error. Free with wf_grads_free. */
WF_API wf_grads *wf_grads_new(const wf_registry *registry, wf_error *error);
WF_API void wf_grads_free(wf_grads *grads);

WF_END_DECLS

#endif
