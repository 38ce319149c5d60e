/* SPDX-License-Identifier: MIT */
/* Declarations that the source files of nn share. */
#ifndef WEFT_NN_INTERNAL_H
#define WEFT_NN_INTERNAL_H

#include <weft/internal/arena.h>
#include <weft/internal/name_table.h>
#include <weft/internal/parameter.h>
#include <weft/memory.h>
#include <weft/nn.h>

/* --- values.c ------------------------------------------------------------------------------------------------------ */
enum { PARAMETERS_SET = 2 };
struct parameter_values {
    wf_tensor *parameter;
    const wf_real *values; /* [count], row-major */
    int64_t count;
};
/* Sets the values of 1 to PARAMETERS_SET parameters, as wf_parameter_set does: all of them, or after an error none. While they are
 * set, no pass of another thread can begin to read them. `call` is the name of the function for messages. */
wf_status parameters_set(const char *call, int count, const struct parameter_values p[], wf_error *error) WF_CHECKED;

/* --- layers.c ------------------------------------------------------------------------------------------------------ */
/* `first` if it is given and is not WF_INIT_DEFAULT; else `second` if it is given and is not WF_INIT_DEFAULT; else an initialiser of `kind`
 * with the number a. */
struct wf_initializer init_or(const struct wf_initializer *first, const struct wf_initializer *second, enum wf_init_kind kind, double a);
/* Sets fan_in, unless the user of the module gave it. */
static inline void fan_in_or(struct wf_initializer *init, int64_t fan_in)
{
    init->fan_in = init->fan_in > 0 ? init->fan_in : fan_in;
}

/* Whether p is a valid probability for dropout, 0 <= p < 1. If not, the registry of the scope gets the error. */
bool dropout_valid(wf_scope scope, double p);
/* The end of a residual branch: residual + dropout(y), or dropout(y) if residual is NULL. Releases y, unless y is the result. */
wf_tensor *end_branch(wf_tensor *y, double dropout, wf_tensor *residual);
/* To save memory, a module in a chain of sublayers (weft/internal/sublayers.h) passes its operand x through sublayer_begin and its result y
 * through sublayer_end. These can drop the tensors of the sublayer that is done, and return the tensor with which the module goes on. If
 * *residual was x, sublayer_begin sets it to the returned tensor too. */
wf_tensor *sublayer_begin(wf_tensor *x, wf_tensor **residual);
wf_tensor *sublayer_end(wf_tensor *y, const wf_tensor *x, const wf_tensor *residual);

/* --- kv.c ---------------------------------------------------------------------------------------------------------- */
/* Whether the cache can take new keys k [R,T,Wk] and values v [R,T,Wv]. If not, the tape has the error. */
bool cache_fits(wf_tape *tape, const struct wf_kv *kv, const wf_tensor *k, const wf_tensor *v);
int64_t cache_longest(const struct wf_cache *cache);       /* tokens of the longest row */
int64_t cache_common_length(const struct wf_cache *cache); /* tokens that each row holds; -1 if rows hold different numbers */

/* --- lora.c -------------------------------------------------------------------------------------------------------- */
struct lora_rule {
    struct lora_rule *next;
    const char *pattern;
    struct wf_lora lora;
    bool used; /* the pattern has matched the path of a linear map */
};
/* Declares the adapter of a linear map of these sizes, if the option `lora` or else a rule of the registry asks for one. */
void lora_init(wf_scope scope, struct wf_linear *m, int64_t in, int64_t out, const struct wf_lora *lora);
wf_tensor *lora_forward(const struct wf_linear *m, wf_tensor *x, wf_tensor *y); /* y plus the adapter's result; releases y */
wf_status lora_check(const wf_registry *registry, wf_error *error) WF_CHECKED;  /* fails unless each rule has been used */

/* --- buffers.c ----------------------------------------------------------------------------------------------------- */
/* Sets *out to new wf_averages for the gradients of the registry, or to NULL if it has no persistent buffers. False without memory. */
bool averages_new(const wf_registry *registry, struct wf_averages **out);

/* --- registry.c ---------------------------------------------------------------------------------------------------- */
struct entry {
    struct wf_parameter_info info; /* a copy of the tensor's information */
    wf_shape shape;
    int64_t count;
    struct wf_initializer init;
    bool buffer, storable; /* info.persistent tells whether a buffer is persistent */
    bool stored;           /* as bf16: `offset` then counts numbers in the registry's `stored` instead of in the slab */
    void *mapped;          /* the value in the memory of a mapped file; NULL: it is in the slab or in `stored` */
    wf_tensor *tensor;
};

struct wf_registry {
    wf_arena *arena; /* holds names, the slab of values, and rules and arrays of modules */
    struct entry *entry;
    struct wf_name_table names; /* from the name of a parameter to its index in `entry` */
    int count;
    int64_t capacity;
    int64_t slab;    /* elements of the slab of values, gaps included */
    uint64_t number; /* the number of this registry in wf_parameter_info */
    wf_real *values;
    int64_t stored_count; /* numbers in `stored`, gaps included */
    uint16_t *stored;     /* values of the parameters that are stored as bf16 */
    wf_safetensors *file; /* holds the values that are mapped; NULL if there are none */
    wf_grads *grads;
    struct wf_values_use *use; /* says which passes read the values */
    struct lora_rule *lora;
    wf_tensor **refused; /* [refusals]: parameters that could not be declared */
    int refusals;
    int64_t refused_capacity;
    bool (*cancelled)(void *ctx);
    void *cancelled_ctx;
    wf_error error;
};

/* Elements that a parameter takes in a slab: a multiple of 16, so that each parameter begins at the start of a cache line, in float and in
 * double. */
static inline int64_t registry_room(int64_t count)
{
    return (count + 15) / 16 * 16;
}
/* Whether files have the values: of parameters and of persistent buffers. */
static inline bool entry_is_saved(const struct entry *e)
{
    return !e->buffer || e->info.persistent;
}
void registry_connect(wf_registry *registry, struct entry *e); /* tells the tensor where its value and gradients are now */
/* NULL if a parameter may become trainable; otherwise why not, as the end of "is ...". */
const char *registry_untrainable(const struct entry *e);
wf_status registry_allocate(wf_registry *registry, wf_error *error); /* allocates the values, and fills the buffers */

#endif
