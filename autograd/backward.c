/* SPDX-License-Identifier: MIT */
/* The walk back over the record. */
#include <string.h>

#include "engine.h"

/* Smaller values are not worth giving up: scalars (losses) stay readable. */
enum { SMALL = 4096 };

static void give_up_value(wf_tape *tape, wf_tensor *x)
{
    if (!x->buffer || x->keep || x->released || x->readers > 0 || (x->buffer->bytes <= SMALL && !tape->erase))
        return;
    x->released = true;
    pool_release(tape, x->buffer);
}

/* After a node's last backward: what it saved and values that only it still read are free, and whoever waits for a parameter's gradient
 * (an all-reduce) is told when it is complete. */
static void node_done(wf_tape *tape, const struct node *node)
{
    unsigned reads = values_read(node->op);
    for (int i = 0; i < node->saves; i++)
        pool_release(tape, node->saved[i].buffer);
    for (int i = 0; i < node->inputs; i++) {
        if (node->in[i] && reads & WF_READS_INPUT(i)) {
            wf_tensor *root = value_root(node->in[i]);
            root->readers--;
            give_up_value(tape, root);
        }
        wf_tensor *root = node->need >> i & 1 ? gradient_root(node->in[i]) : NULL;
        if (root && --root->uses <= 0 && root->kind == TENSOR_LEAF) {
            wf_grads *grads = root->info->grads;
            if (grads->ready)
                grads->ready(grads->ready_ctx, root->info->index);
        }
    }
    for (int j = 0; j < node->outputs; j++) {
        if (reads & WF_READS_OUTPUT(j))
            node->out[j]->readers--;
        node->out[j]->cut = node->out[j];
        give_up_value(tape, node->out[j]);
    }
}

static wf_status node_backward(wf_tape *tape, struct node *node)
{
    struct call_state state;
    wf_call c;
    call_begin(&c, tape, node, &state);
    c.grad = true;
    c.rows_alone = false;
    for (int i = 0; i < WF_MAX_SAVED; i++)
        if (i < node->saves) {
            c.saved[i] = node->saved[i].array;
        } else {
            c.saved[i].data = NULL;
            c.saved[i].ndim = -1;
        }
    bool any = false;
    for (int j = 0; j < node->outputs; j++) {
        c.out[j] = node->out[j]->a;
        c.dout[j].data = NULL;
        if (node->out[j]->has_grad) {
            c.dout[j] = gradient_of(node->out[j]);
            any = true;
        }
    }
    wf_status status = any ? node->op->backward(&c) : WF_OK;
    call_finish(&c);
    if (status == WF_OK)
        status = tape->error.code;
    if (status != WF_OK && tape->error.code == WF_OK)
        wf_call_fail(&c, status, "the op's backward failed");
    return status;
}

/* The records, newest first. What a ready function records meanwhile is not among them. */
static void walk(wf_tape *tape, bool retain)
{
    struct node *node = tape->last;
    if (!retain)
        tape->last = NULL;
    for (; node; node = node->previous) {
        if (!tape_goes_on(tape) || node_backward(tape, node) != WF_OK)
            return;
        for (int j = 0; j < node->outputs; j++)
            if (!node->out[j]->retain)
                gradient_release(tape, node->out[j]);
        if (!retain)
            node_done(tape, node);
    }
}

/* --- several backwards in a pass --- */

/* A gradient that was retained in an earlier backward; it must not flow once more. */
struct earlier {
    wf_tensor *of;
    struct buffer *buffer;
    wf_array grad;
    struct earlier *next;
};

static struct earlier *set_aside(wf_tape *tape)
{
    struct earlier *list = NULL;
    for (struct node *node = tape->last; node; node = node->previous)
        for (int j = 0; j < node->outputs; j++) {
            wf_tensor *x = node->out[j];
            struct earlier *e = x->has_grad ? wf_tape_memory(tape, sizeof *e) : NULL;
            if (!e)
                continue;
            *e = (struct earlier){x, x->grad_buffer, gradient_of(x), list};
            list = e;
            x->grad_buffer = NULL;
            x->has_grad = false;
        }
    return list;
}

static void add_earlier(wf_call *c, struct earlier *list)
{
    for (; list && c->tape->error.code == WF_OK; list = list->next) {
        wf_tensor *x = list->of;
        if (x->has_grad) {
            gradient_add(c, x, &list->grad);
            pool_release(c->tape, list->buffer);
        } else {
            x->grad_buffer = list->buffer;
            x->grad = list->grad.data;
            memcpy(x->grad_stride, list->grad.stride, sizeof x->grad_stride);
            x->has_grad = true;
        }
    }
}

/* The slabs that the leaves of this pass write to are unusable after a failure in the middle. */
static void mark_broken(wf_tape *tape)
{
    for (int i = 0; i < tape->slot_count; i++) {
        struct leaf_slot *s = &tape->slots[i];
        if (s->parameter && s->generation == tape->generation && s->leaf->needs_grad)
            s->leaf->info->grads->broken = true;
    }
}

static bool gradient_fits(wf_tape *tape, const wf_tensor *x, const wf_tensor *gradient)
{
    if (!tape_accepts(tape, "wf_backward: .gradient", gradient))
        return false;
    wf_shape have = wf_array_shape(&gradient->a), want = wf_array_shape(&x->a);
    if (gradient->a.dtype == WF_REAL && wf_shape_equal(&have, &want))
        return true;
    char text[2][96];
    wf_tape_fail(tape, WF_ERR_SHAPE,
                 "wf_backward: .gradient is %s %s, but '%s' has shape %s: give one real number for each of its elements",
                 wf_dtype_name(gradient->a.dtype), wf_shape_text(&have, text[0], sizeof text[0]), wf_name_of(x),
                 wf_shape_text(&want, text[1], sizeof text[1]));
    return false;
}

/* Whether the call is allowed now; the tape has the error otherwise. */
static bool call_valid(wf_tape *tape, wf_tensor *x, const struct wf_backward_options *o)
{
    if (tape->error.code != WF_OK)
        return false;
    if (tape->mode == WF_INFER) {
        wf_tape_fail(tape, WF_ERR_STATE, "wf_backward: the tape is in WF_INFER, which records nothing: reset it with WF_TRAIN");
        return false;
    }
    if (tape->walking) {
        wf_tape_fail(tape, WF_ERR_STATE, "wf_backward: called inside wf_backward, from a ready function: call it after that");
        return false;
    }
    if (!tape_accepts(tape, "wf_backward", x))
        return false;
    const wf_tensor *root = gradient_root(x);
    if (!x->needs_grad)
        wf_tape_fail(tape, WF_ERR_STATE, "wf_backward: '%s' does not depend on a tensor that needs a gradient", wf_name_of(x));
    else if (root->cut == root)
        wf_tape_fail(tape, WF_ERR_STATE,
                     "wf_backward was already called over the record of '%s', and used it up: give the earlier call .retain = true "
                     "(second-order gradients are not supported)",
                     wf_name_of(x));
    else if (root->cut)
        wf_tape_fail(tape, WF_ERR_STATE,
                     "wf_backward: '%s' depends on '%s', whose record an earlier wf_backward used up: give that call .retain = true, or "
                     "take wf_detach of '%s' where no gradient is wanted",
                     wf_name_of(x), wf_name_of(root->cut), wf_name_of(root->cut));
    return tape->error.code == WF_OK && (!o->gradient || gradient_fits(tape, x, o->gradient));
}

static void run(wf_tape *tape, wf_tensor *x, const struct wf_backward_options *o)
{
    struct node seed_node = {.op = NULL};
    struct call_state state = {.node = &seed_node};
    wf_call c = {.tape = tape, .internal = &state};
    struct earlier *earlier = tape->differentiated ? set_aside(tape) : NULL;
    tape->differentiated = true;
    wf_keep(x);
    if (o->gradient)
        wf_keep(o->gradient);
    for (struct node *node = o->retain ? NULL : tape->last; node; node = node->previous)
        for (int j = 0; j < node->outputs; j++)
            give_up_value(tape, node->out[j]);
    wf_real one = 1;
    wf_shape shape = wf_array_shape(&x->a);
    wf_array scalar = wf_array_dense(&one, WF_REAL, &(wf_shape){0}), ones = wf_array_expand(&scalar, &shape);
    gradient_add(&c, x, o->gradient ? &o->gradient->a : &ones);
    if (tape->error.code == WF_OK)
        walk(tape, o->retain);
    add_earlier(&c, earlier);
}

wf_status wf_backward_with(wf_tensor *x, const struct wf_backward_options *options)
{
    static const struct wf_backward_options none;
    wf_tape *tape = wf_tape_of(x);
    if (!tape)
        return x ? WF_ERR_STATE : WF_ERR_ARGUMENT;
    if (x && x->kind == TENSOR_PARAMETER && tape_accepts(tape, "wf_backward", x)) {
        wf_tensor *leaf = tape->mode == WF_INFER ? x : tape_leaf(tape, x);
        x = leaf ? leaf : x;
    }
    if (call_valid(tape, x, options ? options : &none)) {
        tape->walking = true;
        run(tape, x, options ? options : &none);
        tape->walking = false;
    }
    if (tape->error.code != WF_OK)
        mark_broken(tape);
    return tape->error.code;
}
