/* SPDX-License-Identifier: MIT */
/* Creates and frees parameters, which belong to no tape, and notes which passes read a registry's values. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/internal/fork.h>
#include <weft/internal/grow.h>
#include <weft/internal/parameter.h>

#include "engine.h"

size_t wf_parameter_size(void)
{
    return sizeof(struct parameter);
}

wf_tensor *wf_parameter_init(void *memory, const struct wf_parameter_info *info)
{
    struct parameter *p = memory;
    memset(p, 0, sizeof *p);
    wf_tensor *x = &p->x;
    x->kind = TENSOR_PARAMETER;
    x->a = info->value;
    x->name = info->name;
    x->made_by = "parameter";
    x->needs_grad = !info->frozen;
    p->info = *info;
    x->info = &p->info;
    return x;
}

const struct wf_parameter_info *wf_parameter_info(const wf_tensor *parameter)
{
    return parameter && parameter->kind == TENSOR_PARAMETER ? parameter->info : NULL;
}

/* Writes only members that may change, because other threads may be reading the other members. */
void wf_parameter_update(wf_tensor *x, const struct wf_parameter_info *info)
{
    if (x->a.data != info->value.data)
        x->a.data = x->info->value.data = info->value.data;
    if (x->a.dtype != info->value.dtype) /* only before the values are allocated */
        x->a.dtype = x->info->value.dtype = info->value.dtype;
    if (x->info->offset != info->offset)
        x->info->offset = info->offset;
    x->needs_grad = !info->frozen;
    x->info->frozen = info->frozen;
    x->info->grads = info->grads;
    if (x->info->table != info->table) /* only before an optimiser reads it */
        x->info->table = info->table;
}

/* --- structs that stay valid after their registry is freed ------------------------------------------------------------- */

/* A caller may still have a pointer to a freed parameter, and an op then reports the mistake. For this the struct of a freed parameter is
 * used again only after KEPT other parameters were freed. */
enum { KEPT = 4096, STRUCTS_PER_CHUNK = 64 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
WF_FREE_AFTER_FORK(lock)
static struct parameter *oldest, *newest; /* the ends of the queue of freed structs, linked by x.base */
static int64_t waiting, fresh_left;
static struct parameter *fresh;

static struct parameter *take(void)
{
    if (waiting > KEPT) {
        struct parameter *p = oldest;
        oldest = (struct parameter *)p->x.base;
        waiting--;
        return p;
    }
    if (fresh_left == 0) {
        /* These chunks stay until the process ends, so they do not come from wf_alloc, whose blocks must all be freed. */
        fresh = calloc(STRUCTS_PER_CHUNK, sizeof *fresh);
        fresh_left = fresh ? STRUCTS_PER_CHUNK : 0;
    }
    return fresh_left > 0 ? &fresh[--fresh_left] : NULL;
}

wf_tensor *wf_parameter_new(const struct wf_parameter_info *info)
{
    pthread_mutex_lock(&lock);
    struct parameter *p = take();
    pthread_mutex_unlock(&lock);
    return p ? wf_parameter_init(p, info) : NULL;
}

void wf_parameter_free(wf_tensor *x)
{
    struct parameter *p = (struct parameter *)x;
    snprintf(p->former_name, sizeof p->former_name, "%s", p->info.name);
    x->name = p->info.name = p->former_name;
    x->a.data = p->info.value.data = NULL;
    x->base = NULL;
    p->info.grads = NULL;
    p->info.use = NULL;
    p->info.registry = 0; /* no registry has this number */
    pthread_mutex_lock(&lock);
    if (waiting++ > 0)
        newest->x.base = x;
    else
        oldest = p;
    newest = p;
    pthread_mutex_unlock(&lock);
}

wf_tensor *wf_parameter_of_none(void)
{
    static const char name[] = "a parameter of a NULL registry";
    static struct parameter none = {
        .x = {.kind = TENSOR_PARAMETER, .a = {.dtype = WF_REAL}, .name = name, .made_by = "parameter", .info = &none.info},
        .info = {.name = name}};
    return &none.x;
}

bool parameter_has_value(wf_tape *tape, const char *call, const wf_tensor *x)
{
    if (x->a.data) {
        if (x->info->use && x->info->use->arrives)
            x->info->use->arrives(x->info->use->arrives_ctx, x->info->index);
        return true;
    }
    if (x->info->registry == 0 && x->info->name == ((const struct parameter *)x)->former_name)
        wf_tape_fail(tape, WF_ERR_STATE,
                     "%s: the registry of the parameter '%s' was freed: call wf_registry_free after the last use of its parameters", call,
                     x->info->name);
    else
        wf_tape_fail(tape, WF_ERR_STATE, "%s: the parameter '%s' has no value yet: call wf_registry_build or wf_registry_load first", call,
                     wf_name_of(x));
    return false;
}

/* --- the passes that read a registry's values --------------------------------------------------------------------------- */

struct wf_values_use *wf_values_use_new(void)
{
    struct wf_values_use *use = wf_alloc_zero(1, sizeof *use);
    if (use)
        use->refs = 1;
    return use;
}

void wf_values_use_release(struct wf_values_use *use)
{
    if (use && atomic_fetch_sub(&use->refs, 1) == 1)
        wf_free(use);
}

bool tape_reads(wf_tape *tape, const char *call, const wf_tensor *parameter)
{
    struct wf_values_use *use = parameter->info->use;
    if (!use)
        return true;
    for (int64_t i = tape->readings - 1; i >= 0; i--)
        if (tape->reading[i] == use)
            return true;
    const enum reading begun = threads_begin_reading(tape, use);
    if (begun == READING_NO_MEMORY)
        tape_out_of_memory(tape, (size_t)(tape->readings + 1) * sizeof(void *));
    else if (begun == READING_REFUSED)
        wf_tape_fail(tape, WF_ERR_STATE, "%s: the values of the parameter '%s' are being replaced: start the pass after that", call,
                     wf_name_of(parameter));
    return begun == READING;
}

bool tape_registry_freed(const wf_tape *tape)
{
    bool any = false;
    for (int64_t i = 0; i < tape->readings; i++)
        any = any || tape->reading[i]->freed;
    return any;
}

wf_status wf_values_write_begin(struct wf_values_use *use, const char *call, wf_error *error)
{
    if (use->arrives)
        use->arrives(use->arrives_ctx, -1);
    switch (threads_begin_replacing(use)) {
    case REPLACING_BUSY:
        return wf_error_set(error, WF_ERR_BUSY, "%s: the values of this registry are being replaced already", call);
    case REPLACING_READ:
        return wf_error_set(error, WF_ERR_BUSY,
                            "%s: a tape of another thread is in a pass that reads these parameters: reset or free it first", call);
    case REPLACING:
        break;
    }
    return WF_OK;
}

void wf_values_write_end(struct wf_values_use *use)
{
    use->updates++;
    threads_end_replacing(use);
}
