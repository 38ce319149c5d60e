/* SPDX-License-Identifier: MIT */
/* Allocates the structs of tensors, makes the leaves of parameters, and checks whether an op may use an operand. */
#include <stddef.h>
#include <string.h>

#include <weft/internal/grow.h>
#include <weft/internal/ops_all.h>
#include <weft/internal/stale.h>

#include "engine.h"

static wf_tensor *struct_at(const struct tensor_set *set, int64_t i, size_t size)
{
    return (wf_tensor *)(set->chunk[i / TENSORS_PER_CHUNK] + (size_t)(i % TENSORS_PER_CHUNK) * size);
}

static bool add_chunk(struct tensor_set *set, size_t size)
{
    bool room = wf_grow(&set->chunk, &set->capacity, set->chunks + 1, sizeof *set->chunk);
    char *chunk = room ? wf_alloc_zero(TENSORS_PER_CHUNK, size) : NULL;
    if (chunk)
        set->chunk[set->chunks++] = chunk;
    return chunk != NULL;
}

/* The next unused struct of `set`, or NULL with the error on the tape. Each struct has `size` bytes and begins with a wf_tensor. `set` is
 * one element of the array `all`, which has `sets` elements: tape->set, whose elements successive passes use in turn, or
 * tape->leaves, an array of one. */
static void *next_struct(wf_tape *tape, struct tensor_set *set, int sets, struct tensor_set *all, size_t size)
{
    wf_tape_use(tape);
    if (set->used == set->chunks * TENSORS_PER_CHUNK) {
        /* All sets get a chunk at once, so that later passes need no allocation. */
        const int64_t chunks = set->chunks + 1;
        for (int i = 0; i < sets; i++)
            if (all[i].chunks < chunks && !add_chunk(&all[i], size)) {
                tape_out_of_memory(tape, TENSORS_PER_CHUNK * size);
                return NULL;
            }
    }
    wf_tensor *x = struct_at(set, set->used, size);
    set->live = ++set->used;
    /* Clears all members except `a`, which the caller sets, and the last two, which nobody reads while grad_buffer is NULL. */
    memset((char *)x + offsetof(wf_tensor, tape), 0, offsetof(wf_tensor, grad) - offsetof(wf_tensor, tape));
    x->tape = tape;
    x->generation = tape->generation;
    return x;
}

wf_tensor *tape_new_tensor(wf_tape *tape)
{
    struct tensor_set *set = tensors_of_pass(tape);
    wf_tensor *x = next_struct(tape, set, TENSOR_SETS, tape->set, sizeof *x);
    if (x)
        x->number = (uint32_t)(set->used - 1);
    return x;
}

wf_tensor *tape_tensor(const wf_tape *tape, int64_t number)
{
    return struct_at(tensors_of_pass(tape), number, sizeof(wf_tensor));
}

int wf_stale_resets(void)
{
    return TENSOR_SETS - 1;
}

void wf_stale_skip(wf_tape *tape, uint64_t resets)
{
    tape->generation = resets;
    wf_tape_reset(tape, tape->mode);
}

void tape_drop_tensors(wf_tape *tape, int64_t live)
{
    struct tensor_set *set = tensors_of_pass(tape);
    for (int64_t i = live; i < set->used; i++)
        struct_at(set, i, sizeof(wf_tensor))->generation = 0; /* the tensor now belongs to no pass */
    if (set->used - live > DROPPED)
        set->used = live;
    set->live = live;
}

/* The hash slot of a parameter in this pass, or the free slot where it would be inserted. */
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
    bool used = slot && slot->generation == tape->generation && slot->leaf->info->registry == parameter->info->registry;
    return used ? slot->leaf : NULL;
}

/* Clears needs_grad in the leaves of a registry that was freed during this pass, so that no more gradients are written for it. Called when
 * a new registry has got the memory of the freed one. */
static void forget_registry(wf_tape *tape, uint64_t registry)
{
    for (int i = 0; i < tape->slot_count; i++)
        if (tape->slots[i].generation == tape->generation && tape->slots[i].leaf->info->registry == registry)
            tape->slots[i].leaf->needs_grad = false;
}

static uint64_t updates_of(const struct parameter *p)
{
    if (p->info.use && p->info.use->freed)
        return p->updates;
    return (p->own ? p->own->updates : 0) + (p->info.use ? p->info.use->updates : 0);
}

/* Notes whether the leaf's parameter was updated since the last use of the leaf. If so, the records made so far have read older values than
 * the leaf has now. */
static void note_update(const wf_tape *tape, wf_tensor *leaf)
{
    struct parameter *p = (struct parameter *)leaf;
    const uint64_t updates = updates_of(p);
    if (p->updates == updates)
        return;
    p->updates = updates;
    p->changed_at = tape->events;
}

bool tape_parameters_changed(const wf_tape *tape, bool all)
{
    bool any = false;
    for (int64_t i = 0; i < tape->leaves.used; i++) {
        wf_tensor *leaf = struct_at(&tape->leaves, i, sizeof(struct parameter));
        if (all || leaf->readers > 0) {
            note_update(tape, leaf);
            any = any || ((struct parameter *)leaf)->changed_at > 0;
        }
    }
    return any;
}

/* The leaf of a parameter on this tape. It is made when a pass first uses the parameter. */
wf_tensor *tape_leaf(wf_tape *tape, wf_tensor *parameter)
{
    if (2 * tape->leaves.used >= tape->slot_count && !slots_grow(tape)) {
        tape_out_of_memory(tape, 2 * (size_t)(tape->slot_count + 32) * sizeof *tape->slots);
        return NULL;
    }
    struct leaf_slot *slot = find_slot(tape, tape->slots, tape->slot_count, parameter);
    if (slot->generation == tape->generation && slot->leaf->info->registry == parameter->info->registry) {
        note_update(tape, slot->leaf);
        return slot->leaf;
    }
    if (slot->generation == tape->generation) {
        forget_registry(tape, slot->leaf->info->registry);
        wf_tape_fail(tape, WF_ERR_STATE, "the registry of '%s' was freed and created again during this pass: call wf_tape_reset after that",
                     wf_name_of(parameter));
        return NULL;
    }
    wf_grads *grads;
    struct parameter *copy =
        slab_of(tape, parameter->info, &grads) ? next_struct(tape, &tape->leaves, 1, &tape->leaves, sizeof *copy) : NULL;
    if (!copy)
        return NULL;
    wf_tensor *leaf = &copy->x;
    leaf->kind = TENSOR_LEAF;
    leaf->a = parameter->a;
    leaf->name = parameter->info->name;
    copy->info = *parameter->info;
    copy->info.grads = grads;
    leaf->info = &copy->info;
    leaf->needs_grad = grads != NULL;
    copy->own = parameter->info->grads;
    copy->updates = updates_of(copy);
    copy->changed_at = 0;
    *slot = (struct leaf_slot){parameter, leaf, tape->generation};
    return leaf;
}

bool wf_records(const wf_tensor *x)
{
    const wf_tape *tape = wf_tape_of(x);
    return x && tape && tape_records(tape) && (x->needs_grad || x->kind == TENSOR_PARAMETER);
}

bool tape_accepts(wf_tape *tape, const char *op, const wf_tensor *x)
{
    if (!x) {
        wf_tape_fail(tape, WF_ERR_ARGUMENT, "%s: the tensor is NULL", op);
        return false;
    }
    if (x->kind == TENSOR_PARAMETER) {
        return tape_reads(tape, op, x) && parameter_has_value(tape, op, x);
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
    if (x->generation == 0 && x->kind != TENSOR_POISON) {
        wf_tape_fail(tape, WF_ERR_STATE, "%s: an operand made by '%s' was dropped by wf_tape_rewind: give it to the rewind as keep", op,
                     x->made_by ? x->made_by : "nothing");
        return false;
    }
    if (x->generation != tape->generation) {
        /* The message does not use x->name, because its memory was freed with the pass in which the name was given. */
        wf_tape_fail(tape, WF_ERR_STATE, "%s: an operand made by '%s' is older than the last wf_tape_reset: create it again in each pass",
                     op, x->made_by ? x->made_by : "nothing");
        return false;
    }
    if (x->kind == TENSOR_POISON && tape->error.code == WF_OK) {
        wf_tape_fail(tape, WF_ERR_STATE, "%s: an operand is the result of an op that failed before the last wf_tape_reset", op);
        return false;
    }
    const wf_tensor *root = x, *by_user = user_released(x) ? x : NULL;
    while (root->base) {
        root = root->base;
        by_user = user_released(root) ? root : by_user;
    }
    if (root->kind == TENSOR_LEAF && root->info->use && root->info->use->freed) {
        wf_tape_fail(tape, WF_ERR_STATE, "%s: an operand is of a registry that was freed during this pass: call wf_registry_free after it",
                     op);
        return false;
    }
    if (value_is_released(root) && root->by == BY_CHECKPOINT) {
        wf_tape_fail(tape, WF_ERR_STATE,
                     "%s: the value of '%s' was released at the end of wf_checkpoint: return it from the function, or call wf_keep on it "
                     "there",
                     op, wf_name_of(x));
        return false;
    }
    /* While a checkpoint's function runs again, it may read tensors that the user released after its first call; so may the `gradient` of
     * an op, as long as a backward will read them. */
    if (by_user && tape->building && root->rounded) {
        wf_tape_fail(tape, WF_ERR_STATE,
                     "%s: '%s' was released with wf_release and is kept in bf16, but .create_graph reads it: do not release it, or take "
                     "the pass without products in bf16",
                     op, wf_name_of(x));
        return false;
    }
    if (by_user && (root->rounded || (tape->recomputing == 0 && (!tape->building || value_is_released(root))))) {
        wf_tape_fail(tape, WF_ERR_STATE,
                     "%s: '%s' was released with wf_release%s: release a tensor after its last use, and that of its views", op,
                     wf_name_of(x), by_user == x ? "" : ", as the tensor that it is a view of");
        return false;
    }
    if (value_is_released(root)) {
        wf_tape_fail(tape, WF_ERR_STATE,
                     "%s: the value of '%s' was released in %s: call wf_keep on it before, or give that call .retain = true where a "
                     "backward over the same records follows",
                     op, wf_name_of(x), used_up_by(root));
        return false;
    }
    return true;
}
