/* SPDX-License-Identifier: MIT */
/* Applying an op: operands in, shape, forward, record. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/kernels.h>
#include <weft/internal/shape.h>

#include "engine.h"

void call_describe(const wf_call *c, char *text, size_t size)
{
    const struct call_state *state = c->internal;
    size_t used = (size_t)snprintf(text, size, "%s(", op_name(c->op, c->attr));
    for (int i = 0; i < c->inputs && used + 1 < size; i++) {
        const wf_tensor *x = state->node->in[i];
        char shape[96] = "none";
        if (x) {
            wf_shape s = array_shape(&x->a);
            wf_shape_text(&s, shape, sizeof shape);
        }
        used += (size_t)snprintf(text + used, size - used, "%s%s%s%s", i ? ", " : "", x ? wf_name_of(x) : "", x ? " " : "", shape);
    }
    if (used + 1 < size)
        snprintf(text + used, size - used, ")");
}

wf_status wf_call_fail(wf_call *c, wf_status code, const char *format, ...)
{
    char what[512], text[512];
    call_describe(c, what, sizeof what);
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    wf_tape_fail(c->tape, code, "%s: %s", what, text);
    return code;
}

wf_array wf_call_shape(wf_dtype dtype, const wf_shape *shape)
{
    return array_contiguous(NULL, dtype, shape);
}

wf_array wf_call_like(const wf_call *c, const wf_array *a)
{
    (void)c;
    wf_shape shape = array_shape(a);
    return array_contiguous(NULL, WF_REAL, &shape);
}

void *wf_tape_memory(wf_tape *tape, size_t bytes)
{
    void *p = wf_arena_get(tape->arena, bytes);
    if (!p)
        tape_out_of_memory(tape, bytes);
    return p;
}

wf_array wf_call_temp(wf_call *c, wf_dtype dtype, const wf_shape *shape)
{
    struct call_state *state = c->internal;
    wf_array a = array_contiguous(NULL, dtype, shape);
    size_t bytes;
    if (!wf_shape_bytes(dtype, shape, &bytes)) {
        wf_call_fail(c, WF_ERR_SHAPE, "a temporary array is invalid or too large: make the operands smaller");
        return a;
    }
    struct buffer *b = pool_take(c->tape, bytes);
    if (b) {
        b->next = state->temps;
        state->temps = b;
        a.data = b->data;
    }
    return a;
}

wf_array wf_call_contiguous(wf_call *c, const wf_array *a)
{
    if (array_is_contiguous(a))
        return *a;
    wf_shape shape = array_shape(a);
    wf_array contiguous = wf_call_temp(c, a->dtype, &shape);
    if (contiguous.data)
        wf_array_copy(&contiguous, a);
    return contiguous;
}

/* What the op's functions are given, but for outputs and saved arrays. */
void call_begin(wf_call *c, wf_tape *tape, struct node *node, struct call_state *state)
{
    tape->doing = op_name(node->op, node->attr);
    state->node = node;
    state->temps = NULL;
    c->op = node->op;
    c->tape = tape;
    c->attr = node->attr;
    c->inputs = node->inputs;
    c->outputs = node->outputs;
    c->internal = state;
    c->seed = tape->options.seed;
    c->step = tape->options.step;
    c->first_row = node->first_row;
    c->dropout_call = node->dropout_call;
    for (int i = 0; i < WF_MAX_INPUTS; i++) {
        c->need[i] = i < node->inputs && node_needs(node, i);
        if (i < node->inputs && node->in[i]) {
            c->in[i] = node->in[i]->a;
        } else {
            c->in[i].data = NULL;
            c->in[i].ndim = 0;
        }
    }
}

void call_finish(wf_call *c)
{
    struct call_state *state = c->internal;
    for (struct buffer *b = state->temps, *next; b; b = next) {
        next = b->next;
        pool_release(c->tape, b);
    }
    c->tape->doing = NULL;
}

bool node_record(wf_tape *tape, const struct node *n)
{
    /* One block: the node, what it saved, its operands and results, the attributes. */
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
    wf_tensor *cut = NULL;
    for (int i = 0; i < n->inputs; i++) {
        wf_tensor *x = n->in[i];
        if (!x)
            continue;
        x->recorded = true;
        if (reads_input(n->op, i))
            value_root(x)->readers++;
        if (node_needs(n, i)) {
            wf_tensor *root = uses_root(x);
            root->uses++;
            cut = root->cut ? root->cut : cut;
        }
    }
    for (int j = 0; j < n->outputs; j++) {
        /* Output 0 carries the gradient; the others do where they are reals of an op with several. */
        n->out[j]->needs_grad = n->need && n->out[j]->a.dtype == WF_REAL && (j == 0 || n->op->outputs > 1);
        if (reads & WF_READS_OUTPUT(j))
            n->out[j]->readers++;
        n->out[j]->cut = cut;
    }
    return true;
}

/* A buffer for what the op's shape function described; false: the tape has the error. */
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
    if (!array_is_contiguous(a)) /* the shape function set dims, but no strides */
        *a = array_contiguous(NULL, a->dtype, &shape);
    a->data = (*buffer)->data;
    return true;
}

/* What is checked before anything of a call is used; the tape has the error otherwise. */
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

/* Whether all elements of the view lie in the storage of x. */
static bool view_inside(wf_tensor *x, const wf_array *view)
{
    const wf_array *whole = &value_root(x)->a;
    wf_shape shape = array_shape(view);
    uintptr_t first, end, view_first, view_end;
    size_t bytes;
    if (view->dtype != whole->dtype || !wf_shape_bytes(view->dtype, &shape, &bytes))
        return false;
    return bytes == 0 || (wf_array_count(whole) > 0 && wf_array_span(whole, &first, &end) && wf_array_span(view, &view_first, &view_end) &&
                          view_first >= first && view_end <= end);
}

/* Marks arrays as absent, without writing all of them. */
static void clear(wf_array *a, int count)
{
    for (int i = 0; i < count; i++) {
        a[i].data = NULL;
        a[i].ndim = -1;
    }
}

const wf_array *wf_call_in(const wf_call *c, int input)
{
    const struct call_state *state = c->internal;
    const wf_tensor *x = input >= 0 && input < c->inputs ? state->node->in[input] : NULL;
    return x ? &x->a : NULL;
}

bool wf_call_needs(const wf_call *c, int input)
{
    const struct call_state *state = c->internal;
    if (input < 0 || input >= c->inputs)
        return false;
    return input < WF_MAX_INPUTS ? c->need[input] : node_needs(state->node, input) && node_needs_now(c->tape, state->node->in[input]);
}

/* The operands as the record has them: leaves in place of parameters. False: the tape has the error. */
static bool resolve(wf_tape *tape, struct node *node, wf_tensor *const given[])
{
    for (int i = 0; i < node->inputs; i++) {
        wf_tensor *x = node->in[i] = given[i];
        if (!x)
            continue;
        if (!tape_accepts(tape, op_name(node->op, node->attr), x) || x->kind == TENSOR_POISON)
            return false;
        /* In a checkpoint also what needs no gradient is recorded. */
        if (x->kind == TENSOR_PARAMETER && (tape_records(tape) || tape->checkpoints > 0) && !(x = node->in[i] = tape_leaf(tape, x)))
            return false;
        if (tape_records(tape) && node->op->backward && x->needs_grad)
            node->need |= node->inputs <= WF_MAX_INPUTS ? 1u << i : 1;
    }
    return true;
}

/* All results are empty, so forward is skipped: of [2^40, 0] it would loop over 2^40 empty rows. Ops with ids still run, because forward
 * checks the ids. */
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

void wf_apply_multi(const wf_op *op, const void *attr, int inputs, wf_tensor *const given[], int outputs, wf_tensor *out[])
{
    wf_tape *tape = wf_tape_of_operands(inputs, given);
    if (!tape) {
        const wf_tensor *named = NULL;
        for (int i = 0; given && i < inputs; i++)
            named = named ? named : given[i];
        if (!named || named->kind != TENSOR_POISON) /* that has its message */
            lost(WF_ERR_STATE, op_name(op, attr), named);
    }
    for (int j = 0; j < outputs; j++)
        out[j] = tape ? &tape->poison : &lost_poison;
    if (!tape || tape->error.code != WF_OK || !tape_goes_on(tape) || !call_valid(tape, op, attr, inputs, given, outputs))
        return;
    wf_tensor *few[WF_MAX_INPUTS], *made[WF_MAX_OUTPUTS];
    wf_tensor **in = inputs <= WF_MAX_INPUTS ? few : wf_tape_memory(tape, (size_t)inputs * sizeof *in);
    struct saved saved[WF_MAX_SAVED];
    struct node node = {.op = op,
                        .attr = op->attr_size > 0 ? attr : NULL,
                        .in = in,
                        .out = made,
                        .saved = saved,
                        .inputs = inputs,
                        .outputs = outputs,
                        .first_row = tape->options.first_row};
    if (!in || !resolve(tape, &node, given))
        return;
    if (op->random)
        node.dropout_call = tape->dropout_calls++;
    wf_call c;
    struct call_state state;
    call_begin(&c, tape, &node, &state);
    c.grad = node.need != 0;
    c.rows_alone = tape->mode == WF_INFER;
    clear(c.saved, WF_MAX_SAVED);
    clear(c.out, outputs);
    clear(c.dout, outputs);
    if (op->shape(&c) != WF_OK) {
        if (tape->error.code == WF_OK)
            wf_call_fail(&c, WF_ERR_SHAPE, "the op's shape function failed on these operands");
        return;
    }
    for (int j = 0; j < outputs && op->view; j++)
        if (!in[0] || !view_inside(in[0], &c.out[j])) {
            wf_call_fail(&c, WF_ERR_SHAPE, "the view is not inside the operand's storage, or has another dtype");
            return;
        }
    for (int j = 0; j < outputs; j++) {
        made[j] = tape_new_tensor(tape);
        if (!made[j] || (!op->view && !allocate(&c, &c.out[j], &made[j]->buffer)))
            return;
        made[j]->a = c.out[j];
        made[j]->made_by = op_name(op, attr);
        made[j]->base = op->view ? in[0] : NULL;
        made[j]->apart = op->view && c.grad;
    }
    for (int i = 0; i < WF_MAX_SAVED && c.grad; i++) {
        if (c.saved[i].ndim < 0)
            continue;
        for (; node.saves <= i; node.saves++)
            saved[node.saves] = (struct saved){.array.ndim = -1};
        if (!allocate(&c, &c.saved[i], &saved[i].buffer))
            return;
        saved[i].array = c.saved[i];
    }
    wf_status status = op->view || computes_nothing(&c) ? WF_OK : op->forward(&c);
    call_finish(&c);
    if (status == WF_OK && tape->error.code == WF_OK && tape->check_finite && !op->view)
        status = call_check_finite(&c);
    if (status != WF_OK || tape->error.code != WF_OK) {
        if (tape->error.code == WF_OK)
            wf_call_fail(&c, status, "the op failed");
        return;
    }
    /* In a checkpoint also what needs no gradient: it is computed again. */
    if ((!c.grad && tape->checkpoints == 0) || node_record(tape, &node))
        memcpy(out, made, (size_t)outputs * sizeof *out);
}

wf_tensor *wf_apply(const wf_op *op, const void *attr, int inputs, wf_tensor *const in[])
{
    wf_tensor *out[WF_MAX_OUTPUTS];
    wf_apply_multi(op, attr, inputs, in, 1, out);
    return out[0];
}

/* Whether two indices of a may lead to the same element: surely not where each stride is longer than all smaller ones reach. */
static bool may_repeat(const wf_array *a)
{
    int64_t dim[WF_MAX_DIMS], stride[WF_MAX_DIMS], reach = 0;
    int n = 0;
    for (int d = 0; d < a->ndim; d++) {
        int64_t step = a->stride[d] < 0 ? -a->stride[d] : a->stride[d];
        if (a->dim[d] == 0)
            return false;
        if (a->dim[d] == 1)
            continue;
        int at = n++;
        for (; at > 0 && stride[at - 1] > step; at--) {
            dim[at] = dim[at - 1];
            stride[at] = stride[at - 1];
        }
        dim[at] = a->dim[d];
        stride[at] = step;
    }
    for (int i = 0; i < n; i++) {
        if (stride[i] <= reach)
            return true;
        reach += (dim[i] - 1) * stride[i];
    }
    return false;
}

wf_tensor *wf_apply_view(const char *name, wf_tensor *x, const wf_array *view)
{
    wf_tape *tape = wf_tape_of(x);
    if (!tape)
        return x && x->kind == TENSOR_POISON ? &lost_poison : lost(WF_ERR_STATE, name, x);
    if (tape->error.code != WF_OK || (x && x->kind == TENSOR_POISON))
        return &tape->poison;
    if (!tape_accepts(tape, name, x))
        return &tape->poison;
    if (x->kind == TENSOR_PARAMETER)
        x = tape->no_grad ? wf_borrow(tape, &x->a) : tape_leaf(tape, x);
    if (wf_is_poison(x))
        return &tape->poison;
    if (!view_inside(x, view))
        return wf_tape_fail(tape, WF_ERR_SHAPE, "%s: the view of '%s' is not inside its storage, or has another dtype", name,
                            wf_name_of(x));
    if (x->apart)
        return wf_tape_fail(tape, WF_ERR_STATE,
                            "%s: '%s' is a view with repeated elements that needs a gradient: call wf_contiguous on it first", name,
                            wf_name_of(x));
    const bool needs_grad = x->needs_grad && !tape->no_grad;
    if (needs_grad && may_repeat(view))
        return wf_tape_fail(tape, WF_ERR_STATE,
                            "%s: the view repeats elements of '%s', which needs a gradient: use wf_expand or an op with .view, or, where "
                            "no gradient is wanted, wf_detach first",
                            name, wf_name_of(x));
    wf_tensor *y = tape_new_tensor(tape);
    if (!y)
        return &tape->poison;
    x->recorded = true; /* of what is seen through y */
    y->kind = TENSOR_INNER;
    y->a = *view;
    y->made_by = name;
    y->base = x;
    y->needs_grad = needs_grad;
    return y;
}
