/* SPDX-License-Identifier: MIT */
/* wf_checkpoint: a function whose inner values are not kept, but computed a second time in the backward.
 *
 * The forward calls the function, which makes its records as it would without a checkpoint, so the results have the same bits. When the
 * function returns, its records are dropped, and a single record replaces them.
 *
 * The backward of that record calls the function again and then runs the backward of the new records. The new records are processed at the
 * point in the order where the dropped ones would have been, and they add to the gradients of the same tensors. So each gradient is the sum
 * of the same terms in the same order as without a checkpoint.
 *
 * The operands of the single record are all tensors from outside, that is, tensors that the function uses but did not make: x, parameters,
 * and tensors that it reaches through ctx. Each of them counts as read by the backward, which needs its value for the second call. In this
 * file `first` is the number of the first tensor that the function made. */
#include <string.h>

#include "engine.h"

static bool is_outside(const wf_tensor *x, int64_t first)
{
    return x->kind == TENSOR_LEAF || x->kind == TENSOR_PARAMETER || (int64_t)x->number < first;
}

/* --- the records that a function made ---------------------------------------------------------------------------------- */

/* x itself if it was made outside the checkpoint's function, otherwise the outside tensor of which x is a view. NULL if the function made
 * the memory in which the value of x lies. */
static wf_tensor *from_outside(wf_tensor *x, int64_t first)
{
    while (!is_outside(x, first) && x->base)
        x = x->base;
    return is_outside(x, first) ? x : NULL;
}

/* The arguments of gather_all, which looks through a list of records for operands that come from outside. It counts every use of such an
 * operand in `count`, and writes the operand to `list` each time unless `list` is NULL. With `undo` it also takes back the counts of
 * readers and uses that node_record added. */
struct gathering {
    wf_tape *tape;
    int64_t first, count;
    struct outside *list;
    bool undo;
};

static void gather(struct gathering *g, wf_tensor *operand, bool read, bool need)
{
    wf_tensor *x = operand ? from_outside(operand, g->first) : NULL;
    if (!x)
        return;
    need = need && is_outside(uses_root(operand), g->first);
    if (g->undo) {
        value_root(x)->readers -= read;
        uses_root(x)->uses -= need;
    } else if (g->list) {
        /* The checkpoint's record reads all its operands. If the function's record did not read this operand, node_record has not counted a
         * reader for it, so that is done here. */
        value_root(x)->readers += !read;
        g->list[g->count] = (struct outside){x, need};
    }
    g->count++;
}

static void gather_all(struct gathering *g, const struct node *last)
{
    for (const struct node *node = last; node; node = node->previous) {
        for (int i = 0; i < node->inputs; i++)
            gather(g, node->in[i], reads_input(node->op, i), node_needs(node, i));
        const struct checkpoint *k = node->op == &op_checkpoint ? node->attr : NULL;
        for (int64_t i = 0; k && i < k->operands; i++)
            gather(g, k->operand[i].x, true, k->operand[i].need);
    }
}

static void mix(uint64_t *hash, uint64_t word)
{
    *hash = (*hash ^ word) * 0x9E3779B97F4A7C15u;
    *hash ^= *hash >> 29;
}

/* A hash of a list of records: their ops, the shapes of their results, and their operands from outside. Sets *records to their number. */
static uint64_t trace_of(const struct node *last, int64_t first, int64_t *records)
{
    uint64_t hash = 1;
    *records = 0;
    for (const struct node *node = last; node; node = node->previous) {
        ++*records;
        mix(&hash, (uintptr_t)node->op);
        for (int i = 0; i < node->inputs; i++)
            mix(&hash, node->in[i] ? (uintptr_t)from_outside(node->in[i], first) : 1);
        for (int j = 0; j < node->outputs; j++)
            for (int d = 0; d < node->out[j]->a.ndim; d++)
                mix(&hash, (uint64_t)node->out[j]->a.dim[d]);
    }
    return hash;
}

/* Releases the arrays that the records saved, and the values of the tensors from number `first` on. Then a backward through these tensors
 * is refused. Exceptions: the memory of the function's result, and values that were given to wf_keep, stay readable; and `result` is not
 * marked. `result` is the tensor that the function returned, or, if that is a view, the tensor that holds its gradient (gradient_root). */
static void drop(wf_tape *tape, int64_t first, const struct node *last, wf_tensor *result)
{
    const wf_tensor *memory = value_root(result);
    for (const struct node *node = last; node; node = node->previous)
        for (int i = 0; i < node->saves; i++)
            pool_release(tape, node->saved[i].buffer);
    for (int64_t i = first; i < tensors_of_pass(tape)->used; i++) {
        wf_tensor *x = tape_tensor(tape, i);
        if (x == result || gradient_root(x) != x)
            continue;
        x->by = BY_CHECKPOINT;
        x->detached_at = x->needs_grad ? x : NULL;
        if (!x->buffer || value_is_released(x) || x->value == VALUE_KEPT || x == memory)
            continue;
        x->value = VALUE_RELEASED;
        pool_release(tape, x->buffer);
    }
}

/* --- forward ----------------------------------------------------------------------------------------------------------- */

/* Replaces the records in the list `made` by a single one, whose attributes are k. */
static bool replace(struct gathering *g, const struct node *made, struct checkpoint *k, wf_tensor *result)
{
    wf_tape *tape = g->tape;
    gather_all(g, made);
    k->operands = g->count;
    k->operand = g->list = wf_tape_memory(tape, ((size_t)g->count + 1) * sizeof *g->list);
    if (!g->list)
        return false;
    g->count = 0;
    gather_all(g, made);
    for (int64_t i = 0; i < k->operands; i++) {
        const wf_tensor *x = value_root(k->operand[i].x);
        if (value_is_released(x)) {
            wf_tape_fail(tape, WF_ERR_STATE, "wf_checkpoint: the function released '%s', which is not its own: backward computes it again",
                         wf_name_of(x));
            return false;
        }
    }
    if (!is_outside(value_root(result), g->first))
        value_root(result)->readers = 0; /* the records that counted as its readers are dropped */
    wf_tensor *detached_at = result->detached_at;
    const struct node node = {.op = &op_checkpoint, .attr = k, .out = &result, .outputs = 1, .need = 1, .first_row = k->first_row};
    if (!node_record(tape, &node))
        return false;
    result->detached_at = detached_at;
    return true;
}

/* Calls the function. Returns its result, or NULL with the error on the tape, and sets *made to the list of its records. */
static wf_tensor *call(wf_tape *tape, const struct checkpoint *k, struct node **made)
{
    struct node *last = tape->last;
    const int64_t nodes = tape->nodes;
    tape->last = NULL;
    tape->checkpoints++;
    wf_tensor *y = k->function(k->ctx, k->x);
    tape->checkpoints--;
    *made = tape->last;
    tape->last = last;
    tape->nodes = nodes;
    if (tape->error.code != WF_OK || !tape_accepts(tape, "wf_checkpoint: the function's result", y) || y->kind == TENSOR_POISON)
        return NULL;
    return y;
}

wf_tensor *wf_checkpoint(wf_tensor *(*function)(void *ctx, wf_tensor *x), void *ctx, wf_tensor *x)
{
    wf_tape *tape = wf_tape_of(x);
    if (!tape)
        return &tapeless_poison;
    if (tape->error.code != WF_OK || !tape_accepts(tape, "wf_checkpoint", x) || x->kind == TENSOR_POISON)
        return &tape->poison;
    if (!function)
        return wf_tape_fail(tape, WF_ERR_ARGUMENT, "wf_checkpoint: the function is NULL");
    if (tape->mode == WF_INFER || tape->no_grad)
        return function(ctx, x);
    struct checkpoint k = {
        .function = function, .ctx = ctx, .x = x, .first_row = tape->options.first_row, .dropout_calls = tape->dropout_calls};
    struct gathering g = {.tape = tape, .first = tensors_of_pass(tape)->used};
    struct node *made;
    tape->to_repeat++;
    wf_tensor *y = call(tape, &k, &made);
    tape->to_repeat--;
    if (!y)
        return &tape->poison;
    wf_tensor *result = gradient_root(y);
    k.trace = trace_of(made, g.first, &k.records);
    if (result->kind == TENSOR_INNER && result->needs_grad && !is_outside(result, g.first)) {
        if (!replace(&g, made, &k, result))
            return &tape->poison;
    } else { /* no gradient flows through the function, so no backward will call it again */
        g.undo = true;
        gather_all(&g, made);
    }
    drop(tape, g.first, made, result);
    return y;
}

/* --- backward ---------------------------------------------------------------------------------------------------------- */

static wf_status changed(wf_tape *tape, const char *what)
{
    wf_tape_fail(tape, WF_ERR_STATE,
                 "wf_checkpoint: in backward the function %s than in the forward: what it reads through ctx must not change in between",
                 what);
    return WF_ERR_STATE;
}

/* The result of the second call takes over the gradient of the first call's result, in the same buffer. */
static void pass_on(wf_tensor *from, wf_tensor *to)
{
    from->grad_buffer->refs++;
    to->grad_buffer = from->grad_buffer;
    to->grad = from->grad;
    memcpy(to->grad_stride, from->grad_stride, sizeof to->grad_stride);
}

static wf_status recompute(wf_tape *tape, const struct checkpoint *k, wf_tensor *result)
{
    const int64_t first = tensors_of_pass(tape)->used;
    struct node *made;
    wf_tensor *y = call(tape, k, &made), *again = y ? gradient_root(y) : NULL;
    if (!again)
        return tape->error.code;
    int64_t records;
    if (trace_of(made, first, &records) != k->trace || records != k->records || is_outside(again, first) || !again->needs_grad ||
        memcmp(again->a.stride, result->a.stride, (size_t)again->a.ndim * sizeof *again->a.stride) != 0)
        return changed(tape, "did something else");
    pass_on(result, again);
    records_release_values(tape, made);
    if (tape->in_gradients)
        records_mark_path(tape, made);
    records_walk(tape, made, false);
    if (tape->error.code == WF_OK)
        drop(tape, first, NULL, again);
    return tape->error.code;
}

static wf_status checkpoint_backward(wf_call *c)
{
    wf_tape *tape = c->tape;
    const struct call_state *state = c->internal;
    const struct checkpoint *k = c->attr;
    const uint64_t first_row = tape->options.first_row;
    const uint32_t dropout_calls = tape->dropout_calls;
    const bool no_grad = tape->no_grad;
    tape->no_grad = false; /* the forward ran with no_grad false */
    tape->options.first_row = k->first_row;
    tape->dropout_calls = k->dropout_calls;
    tape->recomputing++;
    wf_status status = recompute(tape, k, state->node->out[0]);
    tape->recomputing--;
    tape->no_grad = no_grad;
    tape->options.first_row = first_row;
    tape->dropout_calls = dropout_calls;
    return status;
}

const wf_op op_checkpoint = {
    .name = "checkpoint", .attr_size = sizeof(struct checkpoint), .reads = WF_READS_NOTHING, .backward = checkpoint_backward};
