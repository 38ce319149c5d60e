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

/* After a node: values that only it still read are free, and whoever waits for a parameter's gradient (an all-reduce) is told when it is
 * complete. */
static void node_done(wf_tape *tape, const struct node *node)
{
    unsigned reads = values_read(node->op);
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

/* The records, newest first. */
static wf_status walk(wf_tape *tape)
{
    for (struct node *node = tape->last; node; node = node->previous) {
        wf_status status = tape_goes_on(tape) ? node_backward(tape, node) : tape->error.code;
        if (status != WF_OK)
            return status;
        for (int j = 0; j < node->outputs; j++)
            if (!node->out[j]->retain)
                gradient_release(tape, node->out[j]);
        for (int i = 0; i < node->saves; i++)
            pool_release(tape, node->saved[i].buffer);
        node_done(tape, node);
    }
    return WF_OK;
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

wf_status wf_backward(wf_tensor *x)
{
    wf_tape *tape = wf_tape_of(x);
    if (!tape)
        return x ? WF_ERR_STATE : WF_ERR_ARGUMENT;
    if (x && x->kind == TENSOR_PARAMETER && tape_accepts(tape, "wf_backward", x)) {
        wf_tensor *leaf = tape->mode == WF_INFER ? x : tape_leaf(tape, x);
        x = leaf ? leaf : x;
    }
    if (tape->error.code == WF_OK) {
        if (tape->mode == WF_INFER)
            wf_tape_fail(tape, WF_ERR_STATE, "wf_backward: the tape is in WF_INFER, which records nothing: reset it with WF_TRAIN");
        else if (tape->backward_done)
            wf_tape_fail(tape, WF_ERR_STATE,
                         "wf_backward was already called in this pass: add the losses and call it once "
                         "(second-order gradients are not supported)");
        else if (tape_accepts(tape, "wf_backward", x) && !x->needs_grad)
            wf_tape_fail(tape, WF_ERR_STATE, "wf_backward: '%s' does not depend on a tensor that needs a gradient", wf_name_of(x));
    }
    if (tape->error.code != WF_OK) {
        mark_broken(tape);
        return tape->error.code;
    }
    tape->backward_done = true;
    wf_keep(x);
    for (struct node *node = tape->last; node; node = node->previous)
        for (int j = 0; j < node->outputs; j++)
            give_up_value(tape, node->out[j]);
    struct node seed_node = {.op = NULL};
    struct call_state state = {.node = &seed_node};
    wf_call seed = {.tape = tape, .internal = &state};
    gradient_seed(&seed, x);
    wf_status status = tape->error.code;
    if (status == WF_OK)
        status = walk(tape);
    if (status != WF_OK)
        mark_broken(tape);
    return status;
}
