/* SPDX-License-Identifier: MIT */
/* The parameters of a model. A program first declares all of them, with names and shapes; then one call, wf_registry_build or
 * wf_registry_load, allocates and fills them.
 *
 *   wf_registry *registry = wf_registry_new(&error);
 *   my_model_init(wf_root(registry), &model, &config);               declares
 *   if (wf_registry_build(registry, seed, &error) != WF_OK) ...      allocates, initialises; or wf_registry_load
 *
 * The registry keeps the first error of a declaration (a duplicate name, an invalid size, no memory), and wf_registry_build or
 * wf_registry_load returns it, so modules need not check for errors. Since all parameters are declared first, their number is known before
 * any memory is allocated. All values that are not stored as bf16 or mapped
 * lie in one block of memory, the slab of values, and all gradients in another, the gradient slab, so
 * optimisers run over contiguous ranges.
 *
 * Several threads, each with its own tape, may use the parameters of one registry at the same time: in WF_INFER, or to train with separate
 * gradients for each thread (wf_grads_new). Each thread gets the same bits as if it ran alone. A call that replaces values
 * (wf_registry_build, wf_registry_load, wf_parameter_set, wf_registry_update_buffers) is refused with WF_ERR_BUSY while another running
 * thread is in a pass that has used one of the parameters; a pass ends with wf_tape_reset or wf_tape_free. A pass that begins while values
 * are replaced gets an error on its tape. Freezing is safe while other threads are in passes in WF_INFER. The following is not protected,
 * so the program must keep it apart from other threads: wf_registry_free, an optimiser's step, freezing while another thread trains, and
 * reads and writes of values through pointers (wf_registry_values, wf_view, wf_read of a parameter). */
#ifndef WEFT_REGISTRY_H
#define WEFT_REGISTRY_H

#include <weft/op.h>
#include <weft/safetensors.h>
#include <weft/tape.h>

WF_BEGIN_DECLS

typedef struct wf_registry wf_registry;

/* Returns NULL with *error if `abi` is not the library's WF_ABI, or without memory. Free the registry with wf_registry_free. */
WF_API wf_registry *wf_registry_new_abi(uint32_t abi, wf_error *error);
#define wf_registry_new(error) wf_registry_new_abi(WF_ABI, error)
/* Frees the registry and its parameters; NULL is allowed. An op on a freed parameter fails with a message that names the parameter, until
 * thousands of other parameters are freed. */
WF_API void wf_registry_free(wf_registry *registry);

/* --- initialisers -------------------------------------------------------------------------------------------------- */

enum wf_init_kind {
    WF_INIT_DEFAULT,        /* the module's default */
    WF_INIT_CONSTANT,       /* the number a */
    WF_INIT_NORMAL,         /* N(0, a^2) */
    WF_INIT_UNIFORM,        /* U(-a, a) */
    WF_INIT_FAN_IN,         /* U(-1/sqrt(fan_in), 1/sqrt(fan_in)): PyTorch's default for Linear */
    WF_INIT_XAVIER_UNIFORM, /* U(-b, b), b = sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010) */
    WF_INIT_FUNCTION        /* the values that `fill` writes */
};
struct wf_initializer {
    enum wf_init_kind kind;
    double a;        /* the number a of WF_INIT_CONSTANT, WF_INIT_NORMAL and WF_INIT_UNIFORM */
    int64_t fan_in;  /* 0: the size of the last dimension. Modules set it where the shape does not tell it: for biases, and for the kernels
                        of convolutions: the size of dimension 1 times Kh * Kw */
    int64_t fan_out; /* 0: the size of dimension 0, divided by `parts`. Convolutions set it to the size of dimension 0 times Kh * Kw */
    int64_t parts;   /* number of matrices stacked along dimension 0, such as 3 for q, k and v in one weight, or 4 for the gates of an LSTM;
                        0 means 1 */
    /* WF_INIT_FUNCTION: writes to `value`, which is row-major and holds zeros. `seed` is that of wf_registry_build; for buffers it is 0,
     * because wf_registry_load, which has no seed, fills them too. `name` is the full name. Random numbers keyed by seed and name, such as
     * wf_fill_normal(value, n, 0, 1, seed, wf_stream_of(name)), do not depend on the order of declarations. */
    void (*fill)(void *ctx, wf_real *value, const wf_shape *shape, uint64_t seed, const char *name);
    void *ctx; /* passed to `fill`; must live until the registry is built or loaded */
};
/* Initialisers by kind of parameter. They replace PyTorch's defaults, which are U(+-1/sqrt(fan_in)) for weights and biases and N(0,1) for
 * embeddings. */
struct wf_init_rules {
    struct wf_initializer weight;    /* weights of linear maps, convolutions, LSTM and GRU */
    struct wf_initializer residual;  /* weights of linear maps that end a residual branch; WF_INIT_DEFAULT: as `weight` */
    struct wf_initializer bias;      /* their biases */
    struct wf_initializer embedding; /* embeddings, learned positions and relative biases */
};

/* --- scopes and parameters ----------------------------------------------------------------------------------------- */

/* A prefix of parameter names, with the initialisers for parameters under it; passed by value. */
typedef struct wf_scope {
    wf_registry *registry;
    const char *path;                  /* the prefix, such as "layers.0."; "" for the root */
    const struct wf_init_rules *rules; /* NULL: the defaults */
} wf_scope;

WF_API wf_scope wf_root(wf_registry *registry);
/* The scope below `scope`: wf_sub appends "name." to the prefix, and wf_sub_at appends, for index 3, "name.3.". */
WF_API wf_scope wf_sub(wf_scope scope, const char *name);
WF_API wf_scope wf_sub_at(wf_scope scope, const char *name, int64_t index);
/* The same scope with other initialisers, which are copied into the registry. NULL: the defaults. */
WF_API wf_scope wf_with_init(wf_scope scope, const struct wf_init_rules *rules);

struct wf_parameter_options {
    struct wf_initializer init; /* default: constant 0 */
    bool frozen;                /* the parameter has no gradient */
    bool buffer; /* values that the model reads but does not learn: frozen, not counted as a parameter, and (unless .persistent) not
                    saved */
    /* WF_BF16, for the library of floats and with .frozen: the values are stored as bf16, in 2 bytes each. Only some operands may be stored
     * so: the weight of wf_linear, wf_linear_cross_entropy and wf_embedding, and the second operand of wf_matmul. They give the same bits
     * as with the same values as floats. wf_read widens the values, wf_parameter_set rounds them, and files hold them as BF16. 0: wf_real.
     */
    wf_dtype stored;
    /* The parameter is used only as such an operand, so a load may store it as bf16 (wf_load_options.stored). Modules set this for the
     * weights of linear maps and embeddings. */
    bool storable;
    /* The rows are vectors of single ids or classes, as in an embedding or an output layer, not a map between hidden states. Optimisers of
     * matrices, such as Muon, then update the elements one by one. wf_embedding_init, learned positions and relative biases set this, and
     * for the output layer of a family (weft/family.h) Weft does. For other output layers see wf_registry_table. */
    bool table;
    /* With .buffer: a persistent buffer, state that changes in training but is not learned, such as running statistics. Files hold it as
     * they hold parameters. wf_running_average (weft/op.h) and wf_parameter_set change it. */
    bool persistent;
};
/* Declares a parameter and returns it; never NULL. Errors go to the registry. The parameter belongs to the registry, and ops can use it
 * after wf_registry_build or wf_registry_load. To tie two weights, use the same pointer in both places. */
WF_API wf_tensor *wf_parameter_with(wf_scope scope, const char *name, const wf_shape *shape, const struct wf_parameter_options *options);
#ifndef __cplusplus
#define wf_parameter(scope, name, shape, ...) wf_parameter_with(scope, name, shape, &(struct wf_parameter_options){__VA_ARGS__})
#endif
/* Sets .table of a parameter that is declared already, such as the weight of a wf_linear that is the output layer. Call this before an
 * optimiser is initialised. If the parameter is not of this registry, the registry gets an error. */
WF_API void wf_registry_table(wf_registry *registry, wf_tensor *parameter, bool table);
/* Records an error of a declaration in the registry, with the path of the scope before the message. */
WF_API void wf_scope_fail(wf_scope scope, wf_status code, const char *format, ...) WF_PRINTF(3, 4);

/* --- building ------------------------------------------------------------------------------------------------------ */

/* Allocates all values, and gradients for the parameters that are not frozen, and initialises the values. Each value depends only on
 * `seed`, the name of its parameter and its index in the parameter. */
WF_API wf_status wf_registry_build(wf_registry *registry, uint64_t seed, wf_error *error) WF_CHECKED;
/* Makes wf_registry_build call `cancelled` before it initialises each parameter, because a large model takes seconds. If `cancelled`
 * returns true, wf_registry_build ends with WF_ERR_CANCELLED. NULL: no function is called. */
WF_API void wf_registry_cancel(wf_registry *registry, bool (*cancelled)(void *ctx), void *ctx);
/* Allocates values, without gradients, and fills them from an open file. The file must hold every parameter and persistent buffer with its
 * shape, and no other tensor under the prefix (but PyTorch's num_batches_tracked beside a running_mean, which is not read). If it does not,
 * no value changes, and the error lists the missing names, the unexpected names, and the names with another shape. After a read error the
 * values are undefined. The function may be called several times, and also after wf_registry_build. */
WF_API wf_status wf_registry_load(wf_registry *registry, const wf_safetensors *file, const char *prefix, wf_error *error) WF_CHECKED;

/* Maps tensor names of another library to a parameter. A name may hold one '*', which stands for a number, the same number in all names of
 * the rule. If several rules name one parameter, the first rule whose first source is in the file is used. A parameter without a rule is
 * looked up under its own name. The prefix of struct wf_load_options is put before each source, except one that begins with '/': there, the
 * text after the '/' is the whole name. */
struct wf_load_rule {
    const char *parameter; /* for example "blocks.*.attn.qkv.weight" */
    const char *source[4]; /* names of 1 to 4 tensors of one shape, which are stacked along dimension 0; a NULL ends a list of fewer than 4:
                              for example "layer.*.query.weight", "layer.*.key.weight", "layer.*.value.weight" */
    bool uneven;           /* the sources may have different sizes along dimension 0, as with fewer heads of keys than of queries */
    bool transposed;       /* each source is a matrix [in, out], the transpose of what is stacked, as in files of GPT-2 */
    /* With parts > 1 the only source is cut along dimension 0 into this many equal parts, and the parameter is part number `part`, counted
     * from 0, as in files of Phi-3, whose feed-forward has one matrix for gate and up. Not with .transposed. */
    int part, parts;
};
/* WF_STORED_REAL: as wf_real. WF_STORED_BF16, for the library of floats: as bf16; values of another dtype in the file are rounded.
 * WF_STORED_AS_FILE: as bf16 if all tensors of the parameter are BF16 in the file, so that no value changes; otherwise as wf_real. */
enum wf_stored { WF_STORED_REAL, WF_STORED_AS_FILE, WF_STORED_BF16 };

struct wf_load_options {
    const char *prefix; /* prefix of the model's tensors in the file; tensors without it are ignored. NULL: no prefix */
    const struct wf_load_rule *rule;
    int rules;
    const char *const *ignored; /* names, after the prefix, that may be in the file and are not read; the list ends with NULL. Each
                                   '*' stands for any characters: "pooler.*" for all names that begin with "pooler." */
    /* A parameter that has no tensor in the file keeps its value, so build the registry first. It is still an error if the file has none of
     * the parameters, or only some of the tensors of one parameter. */
    bool allow_missing;
    /* How to store the parameters that are storable (struct wf_parameter_options), if this call allocates the values. A parameter that is
     * stored as bf16 is frozen. WF_ERR_STATE: WF_STORED_BF16, but the registry has the values as wf_real already. */
    enum wf_stored stored;
    /* If this call allocates the values: a parameter that the file has in one tensor, with the dtype and the order in which it is to be
     * stored, is not read but stays in the memory of the file, which must be open with .map (weft/safetensors.h). The registry keeps that
     * memory when the file is closed. Such a parameter is frozen; it may be set, which does not change the file. A file that is not mapped,
     * or from which another registry has mapped parameters already, is read. */
    bool map;
    void (*missing)(void *ctx, const char *name); /* called after the load for each parameter that kept its value, in the order of
                                                     declaration; may be NULL */
    void *missing_ctx;
};
/* wf_registry_load for a file with names of another library. Apart from the names that the options allow, it is as strict as
 * wf_registry_load. */
WF_API wf_status wf_registry_load_with(wf_registry *registry, const wf_safetensors *file, const struct wf_load_options *options,
                                       wf_error *error) WF_CHECKED;
/* WF_ERR_IO: a file from which parameters are mapped was truncated or changed in place since it was opened, so results may be wrong. A
 * truncation ends the process unless it has called wf_safetensors_guard. The functions of weft/models.h, weft/encoder.h and weft/seq2seq.h
 * check it themselves, and so does saving. */
WF_API wf_status wf_registry_intact(const wf_registry *registry, wf_error *error) WF_CHECKED;
/* Allocates gradients for the parameters that are not frozen now, and for no others. Call it after wf_registry_load if the parameters are
 * to be trained, and after wf_registry_freeze. Existing gradients keep their values, but their memory moves, so views from wf_grad become
 * invalid. */
WF_API wf_status wf_registry_gradients(wf_registry *registry, wf_error *error) WF_CHECKED;
/* Adds all parameters and persistent buffers to a writer, under their names with the prefix before them; a parameter that is used in
 * several places is added once. The writer reads the values at its commit. Before wf_registry_build or wf_registry_load the call is an
 * error of the writer. */
WF_API void wf_registry_save(const wf_registry *registry, wf_safetensors_writer *writer, const char *prefix);

/* --- inspection ---------------------------------------------------------------------------------------------------- */

/* The first error of a declaration; its code is WF_OK if there is none. Never NULL: for a NULL registry, the error says that the registry
 * is NULL. */
WF_API const wf_error *wf_registry_error(const wf_registry *registry);
WF_API int wf_registry_count(const wf_registry *registry); /* parameters and buffers */
/* The number of elements of all parameters, without buffers; it is known before wf_registry_build. */
WF_API int64_t wf_registry_parameters(const wf_registry *registry);
WF_API wf_tensor *wf_registry_at(const wf_registry *registry, int index);          /* in the order of declaration; NULL if out of range */
WF_API wf_tensor *wf_registry_find(const wf_registry *registry, const char *name); /* NULL if no parameter has the name */
WF_API bool wf_registry_is_buffer(const wf_registry *registry, int index);         /* persistent or not; false if out of range */
WF_API bool wf_registry_is_saved(const wf_registry *registry, int index);          /* a parameter or persistent buffer, which files hold */
WF_API bool wf_registry_is_mapped(const wf_registry *registry, int index);         /* whether a load with .map left it in the file */
/* Freezes a parameter, or makes it trainable again. A frozen parameter has no gradient; a gradient that it had counts as 0. Allowed at any
 * time. Once gradients are allocated, call wf_registry_gradients afterwards, which frees the memory for the gradients of frozen parameters,
 * and allocates it for parameters that were frozen before; without that call, a pass that uses such a parameter fails. A pass that has
 * already used the parameter goes on as it began: after that pass, call wf_tape_reset and wf_grads_zero. A parameter of another registry is
 * an error of this registry, and so is one that is stored as bf16 or mapped and is to become trainable. */
WF_API void wf_registry_freeze(wf_registry *registry, wf_tensor *parameter, bool frozen);
/* The same for all parameters whose names match a pattern, in which each '*' stands for any characters. To freeze all but the head of a
 * model:
 *
 *   wf_registry_freeze_matching(registry, "*", true, &error), wf_registry_freeze_matching(registry, "head.*", false, &error)
 *
 * WF_ERR_ARGUMENT: no parameter has a matching name, or a parameter that is stored as bf16 or mapped is to become trainable. Buffers stay
 * frozen. */
WF_API wf_status wf_registry_freeze_matching(wf_registry *registry, const char *pattern, bool frozen, wf_error *error) WF_CHECKED;

/* Replaces the values of a parameter by `count` values, row-major; count must be the parameter's size. Ops that are called later read the
 * new values. A backward over ops that have read the old values fails, with an error that names the op and the parameter; so set values
 * before a pass, or after its backward. WF_ERR_ARGUMENT: the tensor is no parameter, `count` is another number, or a pointer is NULL.
 * WF_ERR_STATE: the registry is not built or loaded yet. */
WF_API wf_status wf_parameter_set(wf_tensor *parameter, const wf_real *values, int64_t count, wf_error *error) WF_CHECKED;

/* Makes the changes of persistent buffers that passes have asked for since the last update (wf_running_average, weft/op.h). Each
 * optimiser's step does this for its registries, so only a program that updates weights without an optimiser, or measures statistics
 * without an update, calls this function. WF_ERR_ARGUMENT: the registry is NULL. WF_ERR_STATE: it has no gradients, or a backward failed
 * since wf_grads_zero. WF_ERR_BUSY: as wf_parameter_set. */
WF_API wf_status wf_registry_update_buffers(wf_registry *registry, wf_error *error) WF_CHECKED;

/* The slab of the values that are stored as wf_real; wf_parameter_info has the offset of each parameter. Parameters that are stored as bf16
 * or mapped are not in the slab. NULL before wf_registry_build or wf_registry_load. */
WF_API wf_real *wf_registry_values(const wf_registry *registry);
WF_API int64_t wf_registry_slab(const wf_registry *registry);    /* elements of the slab, gaps between parameters included */
WF_API wf_grads *wf_registry_grads(const wf_registry *registry); /* the registry's own gradients; NULL if there are none */
/* Discards the gradients that were added since the last optimiser step or the last call of this function. Call it before a pass whose
 * gradients must not be added to those of earlier passes. A registry without gradients is allowed. */
WF_API void wf_registry_zero_grads(wf_registry *registry);
/* Makes separate gradients for another thread's tape (.grads of wf_tape_reset), for the parameters that are not frozen now. On an error
 * returns NULL and sets *error. Free the gradients with wf_grads_free. */
WF_API wf_grads *wf_grads_new(const wf_registry *registry, wf_error *error);
WF_API void wf_grads_free(wf_grads *grads);

WF_END_DECLS

#endif
