/* SPDX-License-Identifier: MIT */
/* The arguments of an op's shape, forward and backward, and the functions that these may call. */
#include <stdarg.h>
#include <stdio.h>

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

/* Sets the members of c that the op's functions read, except `grad`, `rows_alone`, the results and their gradients, and saved arrays. */
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
    c->precision = tape->options.precision;
    c->dropout_call = node->dropout_call;
    for (int i = 0; i < WF_MAX_INPUTS; i++) {
        c->need[i] = i < node->inputs && node_needs(node, i);
        if (i < node->inputs && node->in[i]) {
            c->in[i] = rounds_input(node, i) ? value_for_backward(node->in[i]) : node->in[i]->a;
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

const wf_array *wf_call_in(const wf_call *c, int input)
{
    const struct call_state *state = c->internal;
    const wf_tensor *x = input >= 0 && input < c->inputs ? state->node->in[input] : NULL;
    return !x ? NULL : input < WF_MAX_INPUTS ? &c->in[input] : &x->a;
}

bool wf_call_needs(const wf_call *c, int input)
{
    const struct call_state *state = c->internal;
    if (input < 0 || input >= c->inputs)
        return false;
    return input < WF_MAX_INPUTS ? c->need[input] : node_needs_now(c->tape, state->node, input);
}
