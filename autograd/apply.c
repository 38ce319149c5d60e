/* SPDX-License-Identifier: MIT */
/* Applying an op: operands in, shape, forward, record. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/kernels.h>

#include "engine.h"

/* "matmul(linear [2,3], wte.weight [65,128])" */
void call_describe(const wf_call *c, char *text, size_t size)
{
    const struct call_state *state = c->internal;
    size_t used = (size_t)snprintf(text, size, "%s(", c->op->name);
    for (int i = 0; i < c->inputs && used + 1 < size; i++) {
        const wf_tensor *x = state->node->in[i];
        char shape[96] = "none";
        if (x) {
            wf_shape s = wf_array_shape(&x->a);
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
    return wf_array_dense(NULL, dtype, shape);
}

wf_array wf_call_like(const wf_call *c, const wf_array *a)
{
    (void)c;
    wf_shape shape = wf_array_shape(a);
    return wf_array_dense(NULL, WF_REAL, &shape);
}

void *wf_tape_memory(wf_tape *tape, size_t bytes)
{
    void *p = wf_arena_get(tape->arena, bytes);
    if (!p)
        tape_out_of_memory(tape);
    return p;
}

wf_array wf_call_temp(wf_call *c, wf_dtype dtype, const wf_shape *shape)
{
    struct call_state *state = c->internal;
    wf_array a = wf_array_dense(NULL, dtype, shape);
    if (state->temps == (int)(sizeof state->temp / sizeof *state->temp)) {
        wf_call_fail(c, WF_ERR_STATE, "the op asks for more than %d temporaries", state->temps);
        return a;
    }
    struct buffer *b = pool_take(c->tape, (size_t)wf_shape_count(shape) * wf_dtype_size(dtype));
    if (b) {
        state->temp[state->temps++] = b;
        a.data = b->data;
    }
    return a;
}

wf_array wf_call_dense(wf_call *c, const wf_array *a)
{
    if (wf_array_is_dense(a))
        return *a;
    wf_shape shape = wf_array_shape(a);
    wf_array dense = wf_call_temp(c, a->dtype, &shape);
    if (dense.data)
        wf_array_copy(&dense, a);
    return dense;
}

void call_finish(wf_call *c)
{
    struct call_state *state = c->internal;
    for (int i = 0; i < state->temps; i++)
        pool_release(c->tape, state->temp[i]);
    state->temps = 0;
}

static void all_poison(wf_tensor *poison, int outputs, wf_tensor *out[])
{
    for (int i = 0; i < outputs; i++)
        out[i] = poison;
}

/* Looks for NaN and infinities in the results; the first becomes the tape's error. */
static wf_status check_finite(wf_call *c)
{
    for (int j = 0; j < c->outputs; j++) {
        if (c->out[j].dtype != WF_REAL)
            continue;
        int64_t at = wf_kernel->find_nonfinite(wf_array_count(&c->out[j]), c->out[j].data);
        if (at < 0)
            continue;
        char shape[96];
        wf_shape s = wf_array_shape(&c->out[j]);
        return wf_call_fail(c, WF_ERR_NUMERIC, "result %s has the value %g at element %lld", wf_shape_text(&s, shape, sizeof shape),
                            (double)((const wf_real *)c->out[j].data)[at], (long long)at);
    }
    return WF_OK;
}

static bool record(wf_call *c, const struct node *n, wf_tensor *out[])
{
    wf_tape *tape = c->tape;
    struct node *node = wf_arena_get(tape->arena, sizeof *node);
    wf_tensor **in = wf_arena_get(tape->arena, (size_t)(c->inputs + c->outputs) * sizeof *in);
    if (!node || !in)
        return false;
    *node = *n;
    node->in = memcpy(in, n->in, (size_t)c->inputs * sizeof *in);
    node->out = memcpy(in + c->inputs, out, (size_t)c->outputs * sizeof *in);
    node->previous = tape->last;
    tape->last = node;
    tape->nodes++;
    unsigned reads = inputs_read(c->op);
    for (int i = 0; i < c->inputs; i++) {
        if (!in[i])
            continue;
        in[i]->recorded = true;
        if (reads >> i & 1)
            value_root(in[i])->readers++;
        if (node->need >> i & 1)
            gradient_root(in[i])->uses++;
    }
    for (int j = 0; j < c->outputs; j++) {
        out[j]->node = node;
        /* Output 0 carries the gradient; the others do where they are reals of an op with several. */
        out[j]->needs_grad = out[j]->a.dtype == WF_REAL && (j == 0 || c->op->outputs > 1);
        if (c->op->reads_outputs)
            out[j]->readers++;
    }
    return true;
}

void wf_apply_multi(const wf_op *op, const void *attr, int inputs, wf_tensor *const given[], int outputs, wf_tensor *out[])
{
    wf_tape *tape = NULL;
    for (int i = 0; i < inputs && !tape; i++)
        tape = given[i] ? given[i]->tape : NULL;
    all_poison(tape ? &tape->poison : &lost_poison, outputs, out);
    if (!tape || tape->error.code != WF_OK || !tape_goes_on(tape))
        return;
    wf_tensor *in[WF_MAX_INPUTS];
    struct node node = {.op = op, .inputs = inputs, .outputs = outputs, .in = in};
    struct call_state state = {.node = &node};
    wf_call c;
    c.op = op;
    c.tape = tape;
    c.inputs = inputs;
    c.outputs = outputs;
    c.internal = &state;
    c.grad = false;
    memset(c.need, 0, sizeof c.need);
    for (int i = 0; i < inputs; i++) {
        c.in[i].data = NULL;
        c.in[i].ndim = 0;
        in[i] = given[i];
        if (!given[i])
            continue;
        if (!tape_accepts(tape, op->name, given[i]))
            return;
        if (given[i]->kind == TENSOR_POISON)
            return;
        if (given[i]->kind == TENSOR_PARAMETER && tape->mode != WF_INFER) {
            in[i] = tape_leaf(tape, given[i]);
            if (!in[i])
                return;
        }
        c.in[i] = in[i]->a;
        c.need[i] = tape_grads_on(tape) && op->backward && in[i]->needs_grad;
        c.grad |= c.need[i];
        node.need |= (unsigned)c.need[i] << i;
    }
    if (tape->backward_done) {
        wf_tape_fail(tape, WF_ERR_STATE, "%s: wf_backward has run on this tape; wf_tape_reset starts the next pass", op->name);
        return;
    }
    c.rows_alone = tape->mode == WF_INFER;
    c.seed = tape->options.seed;
    c.step = tape->options.step;
    c.first_row = node.first_row = tape->options.first_row;
    c.dropout_call = node.dropout_call = op->random ? tape->dropout_calls++ : 0;
    for (int i = 0; i < WF_MAX_SAVED; i++)
        c.saved[i] = (wf_array){.ndim = -1};
    for (int j = 0; j < outputs; j++)
        c.out[j] = (wf_array){.ndim = -1}, c.dout[j].data = NULL;
    c.attr = NULL;
    if (op->attr_size > 0) {
        void *copy = wf_arena_get(tape->arena, op->attr_size);
        if (!copy) {
            tape_out_of_memory(tape);
            return;
        }
        c.attr = node.attr = memcpy(copy, attr, op->attr_size);
    }
    if (op->shape(&c) != WF_OK) {
        if (tape->error.code == WF_OK)
            wf_call_fail(&c, WF_ERR_SHAPE, "the op refuses these operands");
        return;
    }
    wf_tensor *made[WF_MAX_OUTPUTS];
    for (int j = 0; j < outputs; j++) {
        wf_tensor *x = tape_new_tensor(tape, false);
        struct buffer *b = x ? pool_take(tape, (size_t)wf_array_count(&c.out[j]) * wf_dtype_size(c.out[j].dtype)) : NULL;
        if (!b)
            return;
        c.out[j].data = b->data;
        x->a = c.out[j];
        x->buffer = b;
        x->made_by = op->name;
        made[j] = x;
    }
    if (c.grad) {
        node.saved = wf_arena_get(tape->arena, WF_MAX_SAVED * sizeof *node.saved);
        node.saved_buffer = wf_arena_get(tape->arena, WF_MAX_SAVED * sizeof *node.saved_buffer);
        if (!node.saved || !node.saved_buffer) {
            tape_out_of_memory(tape);
            return;
        }
        for (int i = 0; i < WF_MAX_SAVED; i++) {
            node.saved_buffer[i] = NULL;
            if (c.saved[i].ndim < 0)
                continue;
            node.saved_buffer[i] = pool_take(tape, (size_t)wf_array_count(&c.saved[i]) * wf_dtype_size(c.saved[i].dtype));
            if (!node.saved_buffer[i])
                return;
            c.saved[i].data = node.saved_buffer[i]->data;
        }
    }
    wf_status status = op->forward(&c);
    call_finish(&c);
    if (status == WF_OK && tape->error.code == WF_OK && tape->check_finite)
        status = check_finite(&c);
    if (status != WF_OK || tape->error.code != WF_OK) {
        if (tape->error.code == WF_OK)
            wf_call_fail(&c, status, "the op failed");
        return;
    }
    if (c.grad) {
        memcpy(node.saved, c.saved, sizeof c.saved);
        if (!record(&c, &node, made)) {
            tape_out_of_memory(tape);
            return;
        }
    }
    memcpy(out, made, (size_t)outputs * sizeof *out);
}

wf_tensor *wf_apply(const wf_op *op, const void *attr, int inputs, wf_tensor *const in[])
{
    wf_tensor *out[WF_MAX_OUTPUTS];
    wf_apply_multi(op, attr, inputs, in, 1, out);
    return out[0];
}

wf_tensor *wf_apply_view(const char *name, wf_tensor *x, const wf_array *view)
{
    wf_tape *tape = x->tape;
    if (!tape)
        return x->kind == TENSOR_PARAMETER ? &lost_poison : x;
    if (tape->error.code != WF_OK || x->kind == TENSOR_POISON)
        return &tape->poison;
    if (!tape_accepts(tape, name, x))
        return &tape->poison;
    wf_tensor *y = tape_new_tensor(tape, false);
    if (!y)
        return &tape->poison;
    x->recorded = true; /* of what is seen through y */
    y->kind = TENSOR_INNER;
    y->a = *view;
    y->made_by = name;
    y->base = x;
    y->needs_grad = x->needs_grad;
    return y;
}
