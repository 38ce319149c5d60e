/* SPDX-License-Identifier: MIT */
/* The life of a tape: reset, errors, marks, and the structs of its tensors. */
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/asan.h>
#include <weft/internal/grow.h>
#include <weft/internal/parallel.h>
#include <weft/internal/runtime.h>
#include <weft/random.h>

#include "engine.h"

wf_tensor lost_poison = {.kind = TENSOR_POISON, .a = {.dtype = WF_REAL, .ndim = 0}, .made_by = "poison"};

/* --- the tape of a thread --- */

/* Parameters carry no tape. Ops on parameters alone run on the tape that their thread used last, so that they read like all others. Another
 * thread may have freed that tape, and a new one may lie in its place: hence the list and the serial numbers. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static wf_tape *all;
static uint64_t serials;
static _Thread_local struct {
    const wf_tape *tape;
    uint64_t serial;
} latest;

static void enlist(wf_tape *tape)
{
    pthread_mutex_lock(&lock);
    tape->serial = ++serials;
    tape->next = all;
    all = tape;
    pthread_mutex_unlock(&lock);
}

static void strike(wf_tape *tape)
{
    pthread_mutex_lock(&lock);
    wf_tape **link = &all;
    while (*link != tape)
        link = &(*link)->next;
    *link = tape->next;
    pthread_mutex_unlock(&lock);
}

wf_tape *tape_latest(void)
{
    if (latest.serial == 0)
        return NULL;
    pthread_mutex_lock(&lock);
    wf_tape *tape = all;
    while (tape && (tape != latest.tape || tape->serial != latest.serial))
        tape = tape->next;
    bool mine = tape && atomic_load_explicit(&tape->user, memory_order_relaxed) == &latest;
    pthread_mutex_unlock(&lock);
    return mine ? tape : NULL;
}

void wf_tape_use(wf_tape *tape)
{
    if (!tape)
        return;
    latest.tape = tape;
    latest.serial = tape->serial;
    atomic_store_explicit(&tape->user, &latest, memory_order_relaxed);
}

wf_tape *wf_tape_of_operands(int count, wf_tensor *const x[])
{
    for (int i = 0; i < count; i++)
        if (x[i] && x[i]->tape)
            return x[i]->tape;
    return tape_latest();
}

wf_tape *wf_tape_new_abi(uint32_t abi, wf_error *error)
{
    if (abi != WF_ABI) {
        wf_error_set(error, WF_ERR_ARGUMENT,
                     "the program was compiled for Weft %u.%u in %s, the library is %s in %s: compile with the flags of the same "
                     "pkg-config file that is linked",
                     abi >> 24, abi >> 16 & 255, (abi & 255) == 8 ? "double" : "float", WF_VERSION,
                     sizeof(wf_real) == 8 ? "double" : "float");
        return NULL;
    }
    if (wf_init_default(error) != WF_OK)
        return NULL;
    wf_tape *tape = wf_alloc_zero(1, sizeof *tape);
    if (tape)
        tape->arena = wf_arena_new();
    if (!tape || !tape->arena) {
        wf_free(tape);
        wf_error_set(error, WF_ERR_MEMORY, "no memory for a tape");
        return NULL;
    }
    tape->poison = lost_poison;
    tape->poison.tape = tape;
    enlist(tape);
    wf_tape_reset(tape, WF_INFER);
    return tape;
}

static void set_free(struct tensor_set *set)
{
    for (int64_t i = 0; i < set->chunks; i++)
        wf_free(set->chunk[i]);
    wf_free(set->chunk);
}

void wf_tape_free(wf_tape *tape)
{
    if (!tape)
        return;
    strike(tape);
    set_free(&tape->set[0]);
    set_free(&tape->set[1]);
    set_free(&tape->leaves);
    wf_free(tape->slots);
    wf_arena_free(tape->arena);
    wf_free(tape);
}

/* The first pass of a step has the seed itself, each further one a seed that is drawn for it. */
static uint64_t seed_of_pass(wf_tape *tape, const struct wf_tape_options *o)
{
    if (o->step != tape->trained_step)
        tape->trainings = 0;
    tape->trained_step = o->step;
    uint64_t pass = tape->trainings++;
    if (pass == 0 || o->exact)
        return o->seed;
    uint32_t drawn[4];
    wf_philox((const uint32_t[4]){(uint32_t)pass, (uint32_t)(pass >> 32), 0, 0},
              (const uint32_t[2]){(uint32_t)o->seed, (uint32_t)(o->seed >> 32)}, drawn);
    return (uint64_t)drawn[1] << 32 | drawn[0];
}

void wf_tape_reset_with(wf_tape *tape, wf_mode mode, const struct wf_tape_options *options)
{
    wf_tape_use(tape);
    tape->generation++;
    tape->poison.generation = tape->generation;
    tape->set[tape->generation & 1].used = 0;
    tape->leaves.used = 0;
    wf_arena_reset(tape->arena);
    memset(&tape->pool, 0, sizeof tape->pool);
    tape->mode = mode;
    tape->options = options ? *options : (struct wf_tape_options){0};
    if (mode == WF_TRAIN)
        tape->options.seed = seed_of_pass(tape, &tape->options);
    wf_error_clear(&tape->error);
    tape->last = NULL;
    tape->nodes = 0;
    tape->dropout_calls = 0;
    tape->backward_done = false;
    if ((unsigned)mode > WF_GRADIENTS)
        wf_tape_fail(tape, WF_ERR_ARGUMENT, "wf_tape_reset: the mode %d is unknown: give WF_INFER, WF_TRAIN or WF_GRADIENTS", (int)mode);
}

void wf_tape_first_row(wf_tape *tape, uint64_t row)
{
    tape->options.first_row = row;
}

wf_mode wf_tape_mode(const wf_tape *tape)
{
    return tape->mode;
}

const wf_error *wf_tape_error(const wf_tape *tape)
{
    static const wf_error none = {WF_ERR_STATE,
                                  "an op on parameters alone needs a tape: call wf_tape_reset, or wf_tape_use, in this thread before it"};
    return tape ? &tape->error : &none;
}

wf_status wf_tape_status(const wf_tape *tape, wf_error *error)
{
    const wf_error *e = wf_tape_error(tape);
    return wf_error_set(error, e->code != WF_OK ? e->code : WF_ERR_STATE, "%s", e->message);
}

wf_tensor *wf_tape_fail(wf_tape *tape, wf_status code, const char *format, ...)
{
    if (!tape)
        return &lost_poison;
    char text[sizeof tape->error.message];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    wf_error_set(&tape->error, code, "%s", text);
    return &tape->poison;
}

wf_tensor *tape_out_of_memory(wf_tape *tape)
{
    return wf_tape_fail(tape, WF_ERR_MEMORY, "no memory on the tape, which holds %.1f MiB: use a smaller batch or context",
                        wf_arena_stats(tape->arena).reserved / 1048576.0);
}

struct wf_tape_stats wf_tape_stats(const wf_tape *tape)
{
    struct wf_arena_stats a = wf_arena_stats(tape->arena);
    return (struct wf_tape_stats){a.used, a.peak, a.reserved, tape->nodes};
}

void wf_tape_check_finite(wf_tape *tape, bool on)
{
    tape->check_finite = on;
}

void wf_tape_cancel(wf_tape *tape, bool (*cancelled)(void *ctx), void *ctx)
{
    tape->cancelled = cancelled;
    tape->cancel_ctx = ctx;
}

bool tape_goes_on(wf_tape *tape)
{
    if (tape->cancelled && tape->cancelled(tape->cancel_ctx))
        wf_tape_fail(tape, WF_ERR_CANCELLED, "cancelled");
    return tape->error.code == WF_OK;
}

/* A struct for a tensor, cleared; NULL without memory. */
wf_tensor *tape_new_tensor(wf_tape *tape, bool leaf)
{
    struct tensor_set *set = leaf ? &tape->leaves : &tape->set[tape->generation & 1];
    wf_tape_use(tape);
    if (set->used == set->chunks * TENSORS_PER_CHUNK) {
        bool room = wf_grow(&set->chunk, &set->capacity, set->chunks + 1, sizeof *set->chunk);
        wf_tensor *chunk = room ? wf_alloc_zero(TENSORS_PER_CHUNK, sizeof *chunk) : NULL;
        if (!chunk) {
            tape_out_of_memory(tape);
            return NULL;
        }
        set->chunk[set->chunks++] = chunk;
    }
    wf_tensor *x = &set->chunk[set->used / TENSORS_PER_CHUNK][set->used % TENSORS_PER_CHUNK];
    set->used++;
    memset(x, 0, sizeof *x);
    x->tape = tape;
    x->generation = tape->generation;
    return x;
}

/* The slot of a parameter in this pass, or the free one where it belongs. */
static struct leaf_slot *find_slot(const wf_tape *tape, struct leaf_slot *slots, int count, const wf_tensor *parameter)
{
    size_t h = ((uintptr_t)parameter >> 4) * 0x9E3779B97F4A7C15u >> 32;
    while (slots[h & (count - 1)].generation == tape->generation && slots[h & (count - 1)].parameter != parameter)
        h++;
    return &slots[h & (count - 1)];
}

static bool slots_grow(wf_tape *tape)
{
    int count = tape->slot_count ? 2 * tape->slot_count : 64;
    struct leaf_slot *slots = wf_alloc_zero((size_t)count, sizeof *slots);
    if (!slots)
        return false;
    for (int i = 0; i < tape->slot_count; i++)
        if (tape->slots[i].generation == tape->generation)
            *find_slot(tape, slots, count, tape->slots[i].parameter) = tape->slots[i];
    wf_free(tape->slots);
    tape->slots = slots;
    tape->slot_count = count;
    return true;
}

wf_tensor *tape_find_leaf(const wf_tape *tape, const wf_tensor *parameter)
{
    const struct leaf_slot *slot = tape->slot_count ? find_slot(tape, tape->slots, tape->slot_count, parameter) : NULL;
    bool used = slot && slot->generation == tape->generation && slot->leaf->info.registry == parameter->info.registry;
    return used ? slot->leaf : NULL;
}

/* A registry was freed in this pass, and another one has its memory: nothing may touch the gradients of the first any more. */
static void forget_registry(wf_tape *tape, uint64_t registry)
{
    for (int i = 0; i < tape->slot_count; i++)
        if (tape->slots[i].generation == tape->generation && tape->slots[i].leaf->info.registry == registry)
            tape->slots[i].leaf->needs_grad = false;
}

/* The leaf of a parameter on this tape, made at its first use in a pass. */
wf_tensor *tape_leaf(wf_tape *tape, wf_tensor *parameter)
{
    if (2 * tape->leaves.used >= tape->slot_count && !slots_grow(tape)) {
        tape_out_of_memory(tape);
        return NULL;
    }
    struct leaf_slot *slot = find_slot(tape, tape->slots, tape->slot_count, parameter);
    if (slot->generation == tape->generation && slot->leaf->info.registry == parameter->info.registry)
        return slot->leaf;
    if (slot->generation == tape->generation) {
        forget_registry(tape, slot->leaf->info.registry);
        wf_tape_fail(tape, WF_ERR_STATE, "the registry of '%s' was freed and created again during this pass: call wf_tape_reset after that",
                     wf_name_of(parameter));
        return NULL;
    }
    wf_grads *grads;
    wf_tensor *leaf = gradient_slab(tape, &parameter->info, &grads) ? tape_new_tensor(tape, true) : NULL;
    if (!leaf)
        return NULL;
    leaf->kind = TENSOR_LEAF;
    leaf->a = parameter->a;
    leaf->name = parameter->info.name;
    leaf->info = parameter->info;
    leaf->info.grads = grads;
    leaf->needs_grad = grads != NULL;
    *slot = (struct leaf_slot){parameter, leaf, tape->generation};
    return leaf;
}

bool tape_accepts(wf_tape *tape, const char *op, const wf_tensor *x)
{
    if (!x) {
        wf_tape_fail(tape, WF_ERR_ARGUMENT, "%s: the tensor is NULL", op);
        return false;
    }
    if (x->kind == TENSOR_PARAMETER) {
        if (!x->a.data)
            wf_tape_fail(tape, WF_ERR_STATE, "%s: the parameter '%s' has no value yet: call wf_registry_build or wf_registry_load first",
                         op, wf_name_of(x));
        return x->a.data != NULL;
    }
    if (!x->tape) {
        wf_tape_fail(tape, WF_ERR_STATE, "%s: an operand is the result of an op without a tape: call wf_tape_use in this thread before it",
                     op);
        return false;
    }
    if (x->tape != tape) {
        wf_tape_fail(tape, WF_ERR_STATE, "%s: operand '%s' is on another tape: create all inputs of an expression on one tape", op,
                     wf_name_of(x));
        return false;
    }
    if (x->generation != tape->generation) {
        /* Its name, if it had one, is gone with the pass it was given in. */
        wf_tape_fail(tape, WF_ERR_STATE, "%s: an operand made by '%s' is older than the last wf_tape_reset: create it again in each pass",
                     op, x->made_by ? x->made_by : "nothing");
        return false;
    }
    if (x->kind == TENSOR_POISON && tape->error.code == WF_OK) {
        wf_tape_fail(tape, WF_ERR_STATE, "%s: an operand is the result of an op that failed before the last wf_tape_reset", op);
        return false;
    }
    const wf_tensor *root = x;
    while (root->base)
        root = root->base;
    if (root->released) {
        wf_tape_fail(tape, WF_ERR_STATE, "%s: the value of '%s' was released in wf_backward: call wf_keep on it before", op, wf_name_of(x));
        return false;
    }
    return true;
}

/* --- buffers -------------------------------------------------------------------------------------------------------- */

/* Taken from the arena, returned to lists by size and taken again. Sizes are rounded up to an eighth of a power of two, so that
 * activations and gradients of about the same size find each other. */
static int class_of(size_t bytes, size_t *rounded)
{
    if (bytes < 512)
        bytes = 512;
    int e = 63 - __builtin_clzll(bytes);
    size_t step = (size_t)1 << (e - 3);
    size_t up = (bytes + step - 1) / step * step;
    e = 63 - __builtin_clzll(up);
    *rounded = up;
    return e * 8 + (int)((up - ((size_t)1 << e)) >> (e - 3));
}

enum { NAN_BYTE = 0xFF }; /* reals of these bytes are NaN, floats and doubles */

struct buffer *pool_take(wf_tape *tape, size_t bytes)
{
    size_t rounded;
    int class = class_of(bytes, &rounded);
    struct buffer *b = tape->pool.free[class];
    if (b) {
        tape->pool.free[class] = b->next;
    } else {
        b = wf_tape_memory(tape, sizeof *b);
        void *data = b ? wf_tape_memory(tape, rounded) : NULL;
        if (!data)
            return NULL;
        *b = (struct buffer){.data = data, .bytes = rounded, .class = class};
        WF_POISON(data, rounded);
    }
    WF_UNPOISON(b->data, bytes); /* what was added by rounding stays poisoned */
    if (tape->erase)
        memset(b->data, NAN_BYTE, bytes);
    b->refs = 1;
    b->next = NULL;
    return b;
}

void pool_release(wf_tape *tape, struct buffer *b)
{
    if (!b || --b->refs > 0)
        return;
    if (tape->erase) {
        WF_UNPOISON(b->data, b->bytes);
        memset(b->data, NAN_BYTE, b->bytes);
    }
    WF_POISON(b->data, b->bytes);
    if (tape->erase)
        return;
    b->next = tape->pool.free[b->class];
    tape->pool.free[b->class] = b;
}

/* --- marks --------------------------------------------------------------------------------------------------------- */

wf_tape_mark wf_tape_here(const wf_tape *tape)
{
    wf_arena_mark at = wf_arena_here(tape->arena);
    return (wf_tape_mark){{(uint64_t)at.chunk, at.used, at.total, (uint64_t)tape->set[tape->generation & 1].used, tape->dropout_calls,
                           tape->generation, (uint64_t)(uintptr_t)tape}};
}

wf_tensor *wf_tape_rewind(wf_tape *tape, wf_tape_mark mark, wf_tensor *keep)
{
    if (tape->mode != WF_INFER)
        return wf_tape_fail(tape, WF_ERR_STATE, "wf_tape_rewind works in WF_INFER only: a backward needs the recorded tensors");
    if (mark.word[6] != (uint64_t)(uintptr_t)tape)
        return wf_tape_fail(tape, WF_ERR_ARGUMENT, "wf_tape_rewind: the mark was not taken on this tape with wf_tape_here");
    if (mark.word[5] != tape->generation)
        return wf_tape_fail(tape, WF_ERR_STATE, "wf_tape_rewind: the mark was taken before the last wf_tape_reset");
    if (mark.word[2] > wf_arena_here(tape->arena).total || mark.word[3] > (uint64_t)tape->set[tape->generation & 1].used)
        return wf_tape_fail(tape, WF_ERR_STATE, "wf_tape_rewind: an earlier rewind went back behind this mark: take a new one");
    wf_tensor kept = {0};
    if (keep) {
        if (wf_is_poison(keep))
            return &tape->poison;
        if (!tape_accepts(tape, "wf_tape_rewind", keep))
            return &tape->poison;
        if (!wf_array_is_dense(&keep->a))
            return wf_tape_fail(tape, WF_ERR_STATE, "wf_tape_rewind: '%s' is a strided view: pass wf_dense of it as keep",
                                wf_name_of(keep));
        kept = *keep;
    }
    /* What lies above the mark is gone after the rewind (poisoned under AddressSanitizer): the value goes by a detour. */
    size_t bytes = keep ? (size_t)wf_array_count(&kept.a) * wf_dtype_size(kept.a.dtype) : 0;
    void *detour = keep ? wf_scratch(WF_SCRATCH_OP, bytes + 1) : NULL;
    if (keep && !detour)
        return tape_out_of_memory(tape);
    if (keep)
        memcpy(detour, kept.a.data, bytes);
    wf_arena_rewind(tape->arena, (wf_arena_mark){(int64_t)mark.word[0], mark.word[1], mark.word[2]});
    memset(&tape->pool, 0, sizeof tape->pool); /* its lists may hold buffers that are gone now */
    tape->set[tape->generation & 1].used = (int64_t)mark.word[3];
    tape->dropout_calls = (uint32_t)mark.word[4];
    if (!keep)
        return NULL;
    if (kept.kind == TENSOR_PARAMETER || kept.kind == TENSOR_LEAF)
        return keep;
    void *data = wf_arena_get(tape->arena, bytes);
    if (!data)
        return tape_out_of_memory(tape);
    memcpy(data, detour, bytes);
    wf_tensor *x = tape_new_tensor(tape, false);
    if (!x)
        return &tape->poison;
    x->a = kept.a;
    x->a.data = data;
    x->made_by = kept.made_by;
    return x;
}
