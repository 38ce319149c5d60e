/* SPDX-License-Identifier: MIT */
/* Declares, allocates and initialises parameters. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/grow.h>
#include <weft/internal/runtime.h>
#include <weft/random.h>

#include "internal.h"

wf_registry *wf_registry_new_abi(uint32_t abi, wf_error *error)
{
    if (abi != WF_ABI) {
        wf_error_set(error, WF_ERR_ARGUMENT, "the program was compiled for another version or precision of Weft than the library %s in %s",
                     WF_VERSION, sizeof(wf_real) == 8 ? "double" : "float");
        return NULL;
    }
    if (wf_init_default(error) != WF_OK)
        return NULL;
    wf_registry *registry = wf_alloc_zero(1, sizeof *registry);
    if (registry)
        registry->arena = wf_arena_new();
    if (registry && registry->arena)
        registry->use = wf_values_use_new();
    if (!registry || !registry->use) {
        if (registry) {
            wf_arena_free(registry->arena);
            wf_values_use_release(registry->use);
        }
        wf_free(registry);
        wf_error_set(error, WF_ERR_MEMORY, "no memory for a registry");
        return NULL;
    }
    static _Atomic uint64_t registries;
    registry->number = ++registries;
    return registry;
}

void wf_registry_free(wf_registry *registry)
{
    if (!registry)
        return;
    for (int i = 0; i < registry->count; i++)
        wf_parameter_free(registry->entry[i].tensor);
    for (int i = 0; i < registry->refusals; i++)
        wf_parameter_free(registry->refused[i]);
    wf_free(registry->refused);
    registry->use->freed = true;
    wf_values_use_release(registry->use);
    wf_safetensors_close(registry->file);
    wf_grads_free(registry->grads);
    wf_arena_free(registry->arena);
    wf_name_table_free(&registry->names);
    wf_free(registry->entry);
    wf_free(registry);
}

/* --- scopes -------------------------------------------------------------------------------------------------------- */

static const char *out_of_memory(wf_registry *registry)
{
    wf_error_set(&registry->error, WF_ERR_MEMORY, "no memory for the names of %d parameters", registry->count);
    return "";
}

static const char *join(wf_registry *registry, const char *a, const char *b, const char *end)
{
    if (!registry) /* wf_parameter_with returns a tensor even so, and using that tensor reports the error */
        return "";
    if (!b) {
        wf_error_set(&registry->error, WF_ERR_ARGUMENT, "%sNULL%s: a name of a scope or a parameter is NULL", a, end);
        return "";
    }
    if (!*b) {
        wf_error_set(&registry->error, WF_ERR_ARGUMENT, "%s\"\"%s: a name of a scope or a parameter is empty", a, end);
        return "";
    }
    size_t bytes = strlen(a) + strlen(b) + strlen(end) + 1;
    char *text = wf_arena_get(registry->arena, bytes);
    if (!text)
        return out_of_memory(registry);
    snprintf(text, bytes, "%s%s%s", a, b, end);
    return text;
}

wf_scope wf_root(wf_registry *registry)
{
    return (wf_scope){registry, "", NULL};
}

wf_scope wf_sub(wf_scope scope, const char *name)
{
    scope.path = join(scope.registry, scope.path, name, ".");
    return scope;
}

wf_scope wf_sub_at(wf_scope scope, const char *name, int64_t index)
{
    char number[32];
    snprintf(number, sizeof number, ".%lld.", (long long)index);
    scope.path = join(scope.registry, scope.path, name, number);
    return scope;
}

wf_scope wf_with_init(wf_scope scope, const struct wf_init_rules *rules)
{
    if (!rules || !scope.registry) {
        scope.rules = NULL;
        return scope;
    }
    struct wf_init_rules *copy = wf_arena_get(scope.registry->arena, sizeof *copy);
    if (!copy) {
        out_of_memory(scope.registry);
        return scope;
    }
    *copy = *rules;
    scope.rules = copy;
    return scope;
}

void wf_scope_fail(wf_scope scope, wf_status code, const char *format, ...)
{
    char text[512];
    if (!scope.registry)
        return;
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    int length = (int)strlen(scope.path);
    wf_error_set(&scope.registry->error, code, "%.*s%s%s", length > 0 ? length - 1 : 0, scope.path, length > 0 ? ": " : "", text);
}

/* --- parameters ---------------------------------------------------------------------------------------------------- */

/* Keeps the tensor of a refused parameter, and returns it: modules may use it until it is freed with the registry, like the others. The
 * registry's error prevents a build. */
static wf_tensor *refused(wf_registry *registry, wf_tensor *tensor)
{
    if (wf_grow(&registry->refused, &registry->refused_capacity, registry->refusals + 1, sizeof(wf_tensor *)))
        return registry->refused[registry->refusals++] = tensor;
    wf_parameter_free(tensor);
    return wf_parameter_of_none();
}

/* Places the values of a parameter behind those of the parameters before it. */
static void place(wf_registry *registry, struct entry *e)
{
    if (e->mapped) {
        e->info.offset = -1;
        return;
    }
    int64_t *end = e->stored ? &registry->stored_count : &registry->slab;
    e->info.offset = *end;
    *end += registry_room(e->count);
}

wf_tensor *wf_parameter_with(wf_scope scope, const char *name, const wf_shape *shape, const struct wf_parameter_options *options)
{
    wf_registry *registry = scope.registry;
    if (!registry)
        return wf_parameter_of_none();
    options = options ? options : &(struct wf_parameter_options){0};
    struct wf_parameter_info info = {.name = join(registry, scope.path, name, ""),
                                     .registry = registry->number,
                                     .index = registry->count,
                                     .use = registry->use,
                                     .table = options->table,
                                     .persistent = options->persistent};
    const struct wf_initializer *init = &options->init;
    int64_t count = shape ? wf_shape_count(shape) : -1;
    bool possible = count >= 1 && count <= (int64_t)1 << 40;
    const bool stored = options->stored == WF_BF16;
    info.value = wf_array_contiguous(NULL, stored ? WF_BF16 : WF_REAL,
                                     possible ? shape : &(wf_shape){0}); /* the strides of an invalid shape may overflow */
    info.frozen = options->frozen || options->buffer;
    wf_tensor *tensor = wf_parameter_new(&info);
    if (!tensor) {
        out_of_memory(registry);
        return wf_parameter_of_none();
    }
    char text[96];
    if (!possible || registry->slab > (int64_t)1 << 41)
        wf_error_set(&registry->error, WF_ERR_ARGUMENT,
                     "%s: the shape %s is invalid for a parameter: a size is below 1, or the product is too large", info.name,
                     shape ? wf_shape_text(shape, text, sizeof text) : "NULL");
    else if ((unsigned)init->kind > WF_INIT_FUNCTION || (init->kind == WF_INIT_FUNCTION && !init->fill))
        wf_error_set(&registry->error, WF_ERR_ARGUMENT, "%s: the initialiser has %s", info.name,
                     init->kind == WF_INIT_FUNCTION ? "no fill function" : "an unknown kind");
    else if (options->persistent && !options->buffer)
        wf_error_set(&registry->error, WF_ERR_ARGUMENT, "%s: .persistent is for buffers, and parameters are always saved: give .buffer too",
                     info.name);
    else if (stored && options->buffer)
        wf_error_set(&registry->error, WF_ERR_ARGUMENT, "%s: a buffer cannot be stored as BF16", info.name);
    else if (options->stored != 0 && options->stored != WF_REAL && !(stored && WF_REAL == WF_F32))
        wf_error_set(&registry->error, WF_ERR_ARGUMENT, "%s: .stored is %s, but a parameter of this library is stored as %s", info.name,
                     wf_dtype_name(options->stored), WF_REAL == WF_F32 ? "F32 or BF16" : "F64");
    else if (stored && !info.frozen)
        wf_error_set(&registry->error, WF_ERR_ARGUMENT, "%s: a parameter that is stored as BF16 has no gradient: give .frozen = true",
                     info.name);
    else if (registry->values)
        wf_error_set(&registry->error, WF_ERR_STATE, "%s: declared after the registry was built", info.name);
    else if (wf_registry_find(registry, info.name))
        wf_error_set(&registry->error, WF_ERR_ARGUMENT, "%s: declared twice", info.name);
    else if (!wf_grow(&registry->entry, &registry->capacity, registry->count + 1, sizeof *registry->entry) ||
             !wf_name_table_add(&registry->names, info.name, registry->count))
        out_of_memory(registry);
    else {
        struct entry *e = &registry->entry[registry->count++];
        *e = (struct entry){.info = info,
                            .shape = *shape,
                            .count = count,
                            .init = options->init,
                            .buffer = options->buffer,
                            .storable = options->storable && !options->buffer,
                            .stored = stored,
                            .tensor = tensor};
        place(registry, e);
        registry_connect(registry, e);
        return tensor;
    }
    return refused(registry, tensor);
}

/* --- building ------------------------------------------------------------------------------------------------------ */

/* Where the values of a parameter are; NULL before they are allocated. */
static void *value_of(const wf_registry *registry, const struct entry *e)
{
    if (!registry->values || e->mapped)
        return registry->values ? e->mapped : NULL;
    return e->stored ? (void *)(registry->stored + e->info.offset) : (void *)(registry->values + e->info.offset);
}

/* Fills the value of one parameter by its initialiser. Each element depends on (seed, name, index) alone. */
static void initialise(const struct entry *e, wf_real *value, uint64_t seed)
{
    const struct wf_initializer *init = &e->init;
    uint64_t stream = wf_stream_of(e->info.name);
    double fan_in = init->fan_in > 0 ? (double)init->fan_in : e->shape.ndim > 0 ? (double)e->shape.dim[e->shape.ndim - 1] : 1;
    double rows = e->shape.ndim > 0 ? (double)e->shape.dim[0] : 1;
    double fan_out = init->fan_out > 0 ? (double)init->fan_out : rows / (double)(init->parts > 0 ? init->parts : 1);
    double bound;
    switch (init->kind) {
    case WF_INIT_DEFAULT:
    case WF_INIT_CONSTANT:
        for (int64_t i = 0; i < e->count; i++)
            value[i] = (wf_real)init->a;
        break;
    case WF_INIT_NORMAL:
        wf_fill_normal(value, e->count, 0, init->a, seed, stream);
        break;
    case WF_INIT_UNIFORM:
        wf_fill_uniform(value, e->count, -init->a, init->a, seed, stream);
        break;
    case WF_INIT_FAN_IN:
        bound = 1 / sqrt(fan_in);
        wf_fill_uniform(value, e->count, -bound, bound, seed, stream);
        break;
    case WF_INIT_XAVIER_UNIFORM:
        bound = sqrt(6 / (fan_in + fan_out));
        wf_fill_uniform(value, e->count, -bound, bound, seed, stream);
        break;
    case WF_INIT_FUNCTION:
        init->fill(init->ctx, value, &e->shape, seed, e->info.name);
        break;
    }
}

/* The same, rounded to bf16. */
static wf_status initialise_stored(wf_registry *registry, const struct entry *e, uint64_t seed, wf_error *error)
{
    wf_real *value = wf_alloc_zero((size_t)e->count, sizeof *value);
    if (!value)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory to initialise %s", e->info.name);
    initialise(e, value, seed);
    (void)wf_convert(WF_BF16, value_of(registry, e), WF_REAL, value, e->count);
    wf_free(value);
    return WF_OK;
}

void registry_connect(wf_registry *registry, struct entry *e)
{
    e->info.value = wf_array_contiguous(value_of(registry, e), e->stored ? WF_BF16 : WF_REAL, &e->shape);
    e->info.grads = registry->grads;
    wf_parameter_update(e->tensor, &e->info);
}

static void connect_all(wf_registry *registry)
{
    for (int i = 0; i < registry->count; i++)
        registry_connect(registry, &registry->entry[i]);
}

wf_status registry_allocate(wf_registry *registry, wf_error *error)
{
    if (registry->error.code != WF_OK)
        return wf_error_set(error, registry->error.code, "%s", registry->error.message);
    if (lora_check(registry, error) != WF_OK)
        return WF_ERR_ARGUMENT;
    if (!registry->values) {
        registry->slab = registry->stored_count = 0; /* a load may have decided to store parameters since their declaration */
        for (int i = 0; i < registry->count; i++)
            place(registry, &registry->entry[i]);
        const size_t bytes = (size_t)registry->slab * sizeof(wf_real), stored = (size_t)registry->stored_count * sizeof *registry->stored;
        registry->stored = stored ? wf_arena_get(registry->arena, stored) : NULL;
        registry->values =
            registry->stored || !stored ? wf_arena_get(registry->arena, bytes + 1) : NULL; /* never NULL, even if all are stored */
        if (!registry->values)
            return wf_error_set(error, WF_ERR_MEMORY, "no memory for %lld parameters (%.1f MiB): make the model smaller",
                                (long long)wf_registry_parameters(registry), (double)(bytes + stored) / 1048576);
        if (stored)
            memset(registry->stored, 0, stored);
        memset(registry->values, 0, (size_t)registry->slab * sizeof(wf_real));
        /* Buffers do not depend on the seed: they are filled here, even if the caller fills the parameters from a file. */
        for (int i = 0; i < registry->count; i++)
            if (registry->entry[i].buffer)
                initialise(&registry->entry[i], value_of(registry, &registry->entry[i]), 0);
    }
    connect_all(registry);
    return WF_OK;
}

void wf_registry_cancel(wf_registry *registry, bool (*cancelled)(void *ctx), void *ctx)
{
    if (!registry)
        return;
    registry->cancelled = cancelled;
    registry->cancelled_ctx = ctx;
}

wf_status wf_registry_build(wf_registry *registry, uint64_t seed, wf_error *error)
{
    wf_status status = wf_registry_gradients(registry, error);
    if (status == WF_OK)
        status = wf_values_write_begin(registry->use, "wf_registry_build", error);
    const bool begun = status == WF_OK;
    for (int i = 0; status == WF_OK && i < registry->count; i++)
        if (registry->cancelled && registry->cancelled(registry->cancelled_ctx))
            status = wf_error_set(error, WF_ERR_CANCELLED, "interrupted while the parameters were initialised");
        else if (registry->entry[i].stored)
            status = initialise_stored(registry, &registry->entry[i], seed, error);
        else if (entry_is_saved(&registry->entry[i])) /* persistent buffers begin again too */
            initialise(&registry->entry[i], value_of(registry, &registry->entry[i]), registry->entry[i].buffer ? 0 : seed);
    if (begun)
        wf_values_write_end(registry->use);
    return status;
}

/* --- inspection ---------------------------------------------------------------------------------------------------- */

const wf_error *wf_registry_error(const wf_registry *registry)
{
    static const wf_error none = {WF_ERR_ARGUMENT, "the registry is NULL: look at what wf_registry_new returned"};
    return registry ? &registry->error : &none;
}

int wf_registry_count(const wf_registry *registry)
{
    return registry ? registry->count : 0;
}

int64_t wf_registry_parameters(const wf_registry *registry)
{
    int64_t sum = 0;
    for (int i = 0; i < wf_registry_count(registry); i++)
        sum += registry->entry[i].buffer ? 0 : registry->entry[i].count;
    return sum;
}

wf_tensor *wf_registry_at(const wf_registry *registry, int index)
{
    return index >= 0 && index < wf_registry_count(registry) ? registry->entry[index].tensor : NULL;
}

wf_tensor *wf_registry_find(const wf_registry *registry, const char *name)
{
    return name && registry ? wf_registry_at(registry, (int)wf_name_table_find(&registry->names, name, strlen(name))) : NULL;
}

bool wf_registry_is_mapped(const wf_registry *registry, int index)
{
    return index >= 0 && index < wf_registry_count(registry) && registry->entry[index].mapped;
}

wf_real *wf_registry_values(const wf_registry *registry)
{
    return registry ? registry->values : NULL;
}

int64_t wf_registry_slab(const wf_registry *registry)
{
    return registry ? registry->slab : 0;
}
