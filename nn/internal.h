/* SPDX-License-Identifier: MIT */
/* Declarations that the files of this room share. */
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
/* Sets the values of 1 to PARAMETERS_SET parameters, all or none, as wf_parameter_set does: no pass of another thread begins in between.
 * `call` is for messages. */
wf_status parameters_set(const char *call, int count, const struct parameter_values p[], wf_error *error) WF_CHECKED;

/* --- layers.c ------------------------------------------------------------------------------------------------------ */
/* The first of the two that is neither NULL nor WF_INIT_DEFAULT, else one of `kind`. */
struct wf_initializer init_or(const struct wf_initializer *first, const struct wf_initializer *second, enum wf_init_kind kind, double a);
/* Whether p is a probability to drop by; the scope gets the error otherwise. */
bool dropout_valid(wf_scope scope, double p);
/* The end of a module: residual + dropout(y); dropout(y) if residual is NULL. Releases y, unless it is the result. */
wf_tensor *end_branch(wf_tensor *y, double dropout, wf_tensor *residual);
/* In a chain of sublayers (sublayers.c): x as sublayer_end of the module's result takes it. *residual may be x, and then stays it. */
wf_tensor *sublayer_begin(wf_tensor *x, wf_tensor **residual);
wf_tensor *sublayer_end(wf_tensor *y, const wf_tensor *x, const wf_tensor *residual);

/* --- kv.c ---------------------------------------------------------------------------------------------------------- */
/* Whether the cache takes new keys k [R,T,Wk] and values v [R,T,Wv]; the tape has the error otherwise. */
bool cache_fits(wf_tape *tape, const struct wf_kv *kv, const wf_tensor *k, const wf_tensor *v);
int64_t cache_longest(const struct wf_cache *cache);       /* tokens of the longest row */
int64_t cache_common_length(const struct wf_cache *cache); /* tokens that all rows hold; -1: they differ */

/* --- lora.c -------------------------------------------------------------------------------------------------------- */
struct lora_rule {
    struct lora_rule *next;
    const char *pattern;
    struct wf_lora lora;
    bool used;
};
/* Declares the adapters that the options or a rule of the registry give to a linear map of these sizes. */
void lora_init(wf_scope scope, struct wf_linear *m, int64_t in, int64_t out, const struct wf_lora *lora);
wf_tensor *lora_forward(const struct wf_linear *m, wf_tensor *x, wf_tensor *y); /* y + what the adapters add; y is released */
wf_status lora_check(const wf_registry *registry, wf_error *error) WF_CHECKED;  /* that each rule is used */

/* --- registry.c ---------------------------------------------------------------------------------------------------- */
struct entry {
    struct wf_parameter_info info; /* as the tensor has it */
    wf_shape shape;
    int64_t count;
    struct wf_initializer init;
    bool buffer;
    wf_tensor *tensor;
};

struct wf_registry {
    wf_arena *arena; /* names, tensors, slabs */
    struct entry *entry;
    struct wf_name_table names; /* to indices of entries */
    int count;
    int64_t capacity;
    int64_t slab;
    uint64_t number; /* wf_parameter_info.registry */
    wf_real *values;
    wf_grads *grads;
    struct wf_values_use *use;
    struct lora_rule *lora;
    wf_tensor **refused; /* [refusals]: parameters that could not be declared */
    int refusals;
    int64_t refused_capacity;
    bool (*cancelled)(void *ctx);
    void *cancelled_ctx;
    wf_error error;
};

/* Elements that a parameter takes in a slab: it begins on a cache line in either precision. */
static inline int64_t registry_room(int64_t count)
{
    return (count + 15) / 16 * 16;
}
void registry_connect(wf_registry *registry, struct entry *e);       /* points a tensor at value and gradients as they are now */
wf_status registry_allocate(wf_registry *registry, wf_error *error); /* values and tables */

#endif
