/* SPDX-License-Identifier: MIT */
/* wf_apply: runs an op's shape function and forward on its operands, and adds a record to the tape. */
#include <string.h>

#include <weft/internal/kernels.h>
#include <weft/internal/shape.h>

#include "engine.h"

bool node_record(wf_tape *tape, const struct node *n)
{
    /* The record is one block: struct node, saved arrays, operands, results, attributes. */
    const size_t saved = sizeof *n, in = saved + (size_t)n->saves * sizeof *n->saved, out = in + (size_t)n->inputs * sizeof *n->in,
                 attr = (out + (size_t)n->outputs * sizeof *n->out + 15) / 16 * 16;
    char *block = wf_tape_memory(tape, attr + (n->attr ? n->op->attr_size : 0));
    if (!block)
        return false;
    struct node *node = memcpy(block, n, sizeof *n);
    node->saved = n->saves > 0 ? memcpy(block + saved, n->saved, (size_t)n->saves * sizeof *n->saved) : NULL;
    node->in = n->inputs > 0 ? memcpy(block + in, n->in, (size_t)n->inputs * sizeof *n->in) : NULL;
    node->out = memcpy(block + out, n->out, (size_t)n->outputs * sizeof *n->out);
    if (n->attr)
        node->attr = memcpy(block + attr, n->attr, n->op->attr_size);
    node->previous = tape->last;
    tape->last = node;
    tape->nodes++;
    node->event = ++tape->events;
    const unsigned reads = values_read(n->op);
    node->rounds = tape->options.precision == WF_PRECISION_BF16 && tape->to_repeat == 0 ? reads & n->op->rounds : 0;
    wf_tensor *detached_at = NULL;
    for (int i = 0; i < n->inputs; i++) {
        wf_tensor *x = n->in[i];
        if (!x)
            continue;
        x->recorded = true;
        if (reads_input(n->op, i)) {
            value_root(x)->readers++;
            value_root(x)->rounding += rounds_input(node, i);
        }
        if (node_needs(n, i)) {
            wf_tensor *root = uses_root(x);
            root->uses++;
            detached_at = root->detached_at ? root->detached_at : detached_at;
        }
    }
    for (int j = 0; j < n->outputs; j++) {
        /* If the descriptor declares several outputs, each real output has a gradient; otherwise only output 0 has one. */
        n->out[j]->needs_grad = n->need && n->out[j]->a.dtype == WF_REAL && (j == 0 || n->op->outputs > 1);
        if (reads & WF_READS_OUTPUT(j)) {
            n->out[j]->readers++;
            n->out[j]->rounding += (node->rounds & WF_READS_OUTPUT(j)) != 0;
        }
        n->out[j]->detached_at = detached_at;
    }
    return true;
}

/* Allocates a buffer for an array that the shape function described. Returns false with the error on the tape. */
static bool allocate(wf_call *c, wf_array *a, struct buffer **buffer)
{
    wf_shape shape = array_shape(a);
    size_t bytes;
    if (!wf_shape_bytes(a->dtype, &shape, &bytes)) {
        char text[160];
        if (a->ndim < 0)
            wf_call_fail(c, WF_ERR_SHAPE, "the op's shape function does not set each of the %d results to 0 to %d dimensions", c->outputs,
                         WF_MAX_DIMS);
        else
            wf_call_fail(c, WF_ERR_SHAPE, "a result of shape %s is invalid or too large: make the operands smaller",
                         wf_shape_text(&shape, text, sizeof text));
        return false;
    }
    *buffer = pool_take(c->tape, bytes);
    if (!*buffer)
        return false;
    if (!array_is_contiguous(a)) /* the shape function set dimensions but no valid strides */
        *a = array_contiguous(NULL, a->dtype, &shape);
    a->data = (*buffer)->data;
    return true;
}

/* Checks the descriptor and the arguments. Returns false with the error on the tape. */
static bool call_valid(wf_tape *tape, const wf_op *op, const void *attr, int inputs, wf_tensor *const given[], int outputs)
{
    if (op->many && inputs < 0)
        wf_tape_fail(tape, WF_ERR_ARGUMENT, "%s: the number of operands is %d", op->name, inputs);
    else if (op->many && op->backward && values_read(op) & ((1u << WF_MAX_INPUTS) - 1))
        wf_tape_fail(tape, WF_ERR_ARGUMENT,
                     "%s: an op with .many reads no operand in its backward: set .reads to WF_READS_NOTHING or to results", op->name);
    else if (inputs < 0 || (inputs > WF_MAX_INPUTS && !op->many) || outputs < 1 || outputs > WF_MAX_OUTPUTS)
        wf_tape_fail(tape, WF_ERR_ARGUMENT, "%s: an op has 0 to %d operands and 1 to %d results, not %d and %d", op->name, WF_MAX_INPUTS,
                     WF_MAX_OUTPUTS, inputs, outputs);
    else if (inputs > 0 && !given)
        wf_tape_fail(tape, WF_ERR_ARGUMENT, "%s: the array of %d operands is NULL", op->name, inputs);
    else if (!op->shape || (!op->forward && !op->view) || (op->view && inputs < 1))
        wf_tape_fail(tape, WF_ERR_ARGUMENT, "%s: the op's descriptor lacks .shape or .forward, or the operand of .view", op->name);
    else if (op->attr_size > 0 && !attr)
        wf_tape_fail(tape, WF_ERR_ARGUMENT, "%s: attr is NULL, but the op has attributes of %zu bytes", op->name, op->attr_size);
    return tape->error.code == WF_OK;
}

/* Marks the arrays as absent. Writing these two members is cheaper than clearing the structs. */
static void clear(wf_array *a, int count)
{
    for (int i = 0; i < count; i++) {
        a[i].data = NULL;
        a[i].ndim = -1;
    }
}

/* --- the steps of a call: if a step returns false, the tape has the error ---------------------------------------------- */

/* Fills in the operands of the record: a parameter is replaced by its leaf. */
static bool resolve(wf_tape *tape, struct node *node, wf_tensor *const given[])
{
    if (node->inputs > WF_MAX_INPUTS && !(node->in = wf_tape_memory(tape, (size_t)node->inputs * sizeof *node->in)))
        return false;
    for (int i = 0; i < node->inputs; i++) {
        wf_tensor *x = node->in[i] = given[i];
        if (!x)
            continue;
        if (!tape_accepts(tape, op_name(node->op, node->attr), x) || x->kind == TENSOR_POISON)
            return false;
        /* Records refer to leaves, not to parameters, and inside a checkpoint every call makes a record. */
        if (x->kind == TENSOR_PARAMETER && (tape_records(tape) || tape->checkpoints > 0) && !(x = node->in[i] = tape_leaf(tape, x)))
            return false;
        if (tape_records(tape) && node->op->backward && x->needs_grad)
            node->need |= node->inputs <= WF_MAX_INPUTS ? 1u << i : 1;
    }
    return true;
}

/* Whether forward may be skipped: all results and saved arrays are empty, and no operand holds ids or bools. Without the skip, forward
 * would loop over 2^40 empty rows for the shape [2^40, 0]. With ids it must run, because it checks their range. */
static bool computes_nothing(const wf_call *c)
{
    bool nothing = true;
    for (int j = 0; j < c->outputs && nothing; j++)
        nothing = wf_array_count(&c->out[j]) == 0;
    for (int i = 0; i < WF_MAX_SAVED && nothing && c->grad; i++)
        nothing = c->saved[i].ndim < 0 || wf_array_count(&c->saved[i]) == 0;
    for (int i = 0; i < c->inputs && i < WF_MAX_INPUTS && nothing; i++)
        nothing = !wf_has(c, i) || c->in[i].dtype == WF_REAL;
    return nothing;
}

/* Fails the call with `message` unless the op has set an error itself. */
static bool fail(wf_call *c, wf_status status, const char *message)
{
    if (c->tape->error.code == WF_OK)
        wf_call_fail(c, status, "%s", message);
    return false;
}

static bool make_results(wf_call *c, struct node *node)
{
    for (int j = 0; j < c->outputs; j++) {
        wf_tensor *y = node->out[j] = tape_new_tensor(c->tape);
        if (!y || (!c->op->view && !allocate(c, &c->out[j], &y->buffer)))
            return false;
        y->a = c->out[j];
        y->made_by = op_name(c->op, c->attr);
        y->base = c->op->view ? node->in[0] : NULL;
        y->place = c->op->view && c->grad ? APART : IN_BASE;
    }
    return true;
}

static bool make_saved(wf_call *c, struct node *node)
{
    for (int i = 0; i < WF_MAX_SAVED && c->grad; i++) {
        if (c->saved[i].ndim < 0)
            continue;
        for (; node->saves <= i; node->saves++)
            node->saved[node->saves] = (struct saved){.array.ndim = -1};
        if (!allocate(c, &c->saved[i], &node->saved[i].buffer))
            return false;
        node->saved[i].array = c->saved[i];
    }
    return true;
}

/* Calls the op's shape function, and makes the results and the saved arrays that the function describes. */
static bool shape(wf_call *c, wf_tape *tape, struct node *node, struct call_state *state)
{
    if (node->op->random)
        node->dropout_call = tape->dropout_calls++;
    call_begin(c, tape, node, state);
    c->grad = node->need != 0;
    c->rows_alone = tape->mode == WF_INFER;
    clear(c->saved, WF_MAX_SAVED);
    clear(c->out, c->outputs);
    clear(c->dout, c->outputs);
    if (c->op->shape(c) != WF_OK)
        return fail(c, WF_ERR_SHAPE, "the op's shape function failed on these operands");
    for (int j = 0; j < c->outputs && c->op->view; j++)
        if (!node->in[0] || !view_inside(node->in[0], &c->out[j])) {
            wf_call_fail(c, WF_ERR_SHAPE, "the view is not inside the operand's storage, or has another dtype");
            return false;
        }
    return make_results(c, node) && make_saved(c, node);
}

static bool run(wf_call *c)
{
    const wf_tape *tape = c->tape;
    wf_status status = c->op->view || computes_nothing(c) ? WF_OK : c->op->forward(c);
    call_finish(c);
    if (status == WF_OK && tape->error.code == WF_OK && tape->check_finite && !c->op->view)
        status = call_check_finite(c);
    return (status == WF_OK && tape->error.code == WF_OK) || fail(c, status, "the op failed");
}

/* Inside a checkpoint a call is recorded even if it needs no gradient, because the backward of the checkpoint repeats it and needs its
 * operands. */
static bool record(wf_tape *tape, const struct node *node)
{
    return (node->need == 0 && tape->checkpoints == 0) || node_record(tape, node);
}

/* The tape on which the op runs. NULL if there is none; then wf_tape_error(NULL) has the message. */
static wf_tape *tape_of_call(const wf_op *op, const void *attr, int inputs, wf_tensor *const given[])
{
    wf_tape *tape = wf_tape_of_operands(inputs, given);
    const wf_tensor *named = NULL;
    for (int i = 0; !tape && given && i < inputs && !named; i++)
        named = given[i];
    if (!tape && (!named || named->kind != TENSOR_POISON)) /* if an operand is poison, an earlier error has the message */
        fail_without_tape(WF_ERR_STATE, op_name(op, attr), named);
    return tape;
}

void wf_apply_multi(const wf_op *op, const void *attr, int inputs, wf_tensor *const given[], int outputs, wf_tensor *out[])
{
    wf_tape *tape = tape_of_call(op, attr, inputs, given);
    for (int j = 0; j < outputs; j++)
        out[j] = tape ? &tape->poison : &tapeless_poison;
    if (!tape || tape->error.code != WF_OK || !tape_goes_on(tape) || !call_valid(tape, op, attr, inputs, given, outputs))
        return;
    wf_tensor *in[WF_MAX_INPUTS], *made[WF_MAX_OUTPUTS];
    struct saved saved[WF_MAX_SAVED];
    struct node node = {.op = op,
                        .attr = op->attr_size > 0 ? attr : NULL,
                        .in = in,
                        .out = made,
                        .saved = saved,
                        .inputs = inputs,
                        .outputs = outputs,
                        .first_row = tape->options.first_row};
    struct call_state state;
    wf_call c;
    if (resolve(tape, &node, given) && shape(&c, tape, &node, &state) && run(&c) && record(tape, &node))
        memcpy(out, made, (size_t)outputs * sizeof *out);
}

wf_tensor *wf_apply(const wf_op *op, const void *attr, int inputs, wf_tensor *const in[])
{
    wf_tensor *out[WF_MAX_OUTPUTS];
    wf_apply_multi(op, attr, inputs, in, 1, out);
    return out[0];
}
