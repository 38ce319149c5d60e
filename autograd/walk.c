/* SPDX-License-Identifier: MIT */
/* Runs the backward of each record, the newest record first, and releases values and gradients that are no longer needed. */
#include <string.h>

#include "engine.h"

/* Values of at most SMALL bytes keep their memory, because releasing it is not worth the time. An op still may not read such a value after
 * its release, so that the rule does not depend on sizes. */
enum { SMALL = 4096 };

static void set_used_by(const wf_tape *tape, wf_tensor *x)
{
    if (x->by != BY_CHECKPOINT)
        x->by = tape->in_gradients ? BY_GRADIENTS : BY_BACKWARD;
}

static void release_value(wf_tape *tape, wf_tensor *x)
{
    if (!x->buffer || x->value == VALUE_KEPT || value_is_released(x) || x->readers > 0 || x->kind == TENSOR_INPUT)
        return;
    x->value = x->value == VALUE_FOR_BACKWARD ? VALUE_USER_RELEASED : VALUE_RELEASED;
    set_used_by(tape, x);
    if (x->buffer->bytes > SMALL || tape->erase)
        pool_release(tape, x->buffer);
}

/* For a record that needs its operand x no more: takes back what the record added to the counts of x, and does what is due when a count
 * becomes 0, that is, releases the value, or calls the ready function of a leaf's slab. `read` says that the record was counted as a reader
 * of the value, `rounds` that it may read it in bf16, `need` that it was counted as a use of the gradient. */
static void operand_done(wf_tape *tape, wf_tensor *x, bool read, bool rounds, bool need)
{
    if (read) {
        wf_tensor *root = value_root(x);
        root->readers--;
        root->rounding -= rounds;
        release_value(tape, root);
    }
    wf_tensor *root = need ? uses_root(x) : NULL;
    if (root && --root->uses <= 0 && root->kind == TENSOR_LEAF) {
        wf_grads *grads = root->info->grads;
        if (grads->ready)
            grads->ready(grads->ready_ctx, root->info->index);
    }
}

/* Called after the last backward of a record: releases the arrays that it saved, and those values that no other record will read. If a
 * parameter's gradient is now complete, calls the ready function of its slab, which may start an all-reduce. */
static void node_done(wf_tape *tape, const struct node *node)
{
    unsigned reads = values_read(node->op);
    for (int i = 0; i < node->saves; i++)
        pool_release(tape, node->saved[i].buffer);
    for (int i = 0; i < node->inputs; i++)
        if (node->in[i])
            operand_done(tape, node->in[i], reads_input(node->op, i), rounds_input(node, i), node_needs(node, i));
    if (node->op == &op_checkpoint) {
        const struct checkpoint *k = node->attr;
        for (int64_t i = 0; i < k->operands; i++)
            operand_done(tape, k->operand[i].x, true, false, k->operand[i].need);
    }
    for (int j = 0; j < node->outputs; j++) {
        if (reads & WF_READS_OUTPUT(j)) {
            node->out[j]->readers--;
            node->out[j]->rounding -= (node->rounds & WF_READS_OUTPUT(j)) != 0;
        }
        node->out[j]->detached_at = node->out[j];
        set_used_by(tape, node->out[j]);
        release_value(tape, node->out[j]);
    }
}

static bool is_on_path(const wf_tape *tape, wf_tensor *x)
{
    return gradient_root(x)->path == tape->path;
}

bool node_needs_now(const wf_tape *tape, const struct node *node, int i)
{
    return node_needs(node, i) && (!tape->in_gradients || is_on_path(tape, node->in[i]));
}

unsigned node_needs_mask(const wf_tape *tape, const struct node *node)
{
    if (!tape->in_gradients)
        return node->need;
    unsigned need = 0;
    for (int i = 0; i < node->inputs; i++)
        if (node_needs_now(tape, node, i))
            need |= node->inputs <= WF_MAX_INPUTS ? 1u << i : 1;
    const struct checkpoint *k = node->op == &op_checkpoint ? node->attr : NULL;
    for (int64_t i = 0; k && i < k->operands && !need; i++)
        need = k->operand[i].need && is_on_path(tape, k->operand[i].x);
    return need;
}

/* Whether x is a parameter, or a view of one, that was updated after the record read it. */
static bool has_changed(const struct node *node, wf_tensor *x)
{
    const wf_tensor *root = value_root(x);
    return root->kind == TENSOR_LEAF && node->event <= ((const struct parameter *)root)->changed_at;
}

wf_status node_unchanged(wf_call *c, const struct node *node, bool all)
{
    const wf_tensor *changed = NULL;
    if (!c->tape->changed)
        return WF_OK;
    for (int i = 0; i < node->inputs; i++)
        if (node->in[i] && (all || reads_input(node->op, i)) && has_changed(node, node->in[i]))
            changed = node->in[i];
    const struct checkpoint *k = node->op == &op_checkpoint ? node->attr : NULL;
    for (int64_t i = 0; k && i < k->operands; i++)
        if (has_changed(node, k->operand[i].x))
            changed = k->operand[i].x;
    if (!changed)
        return WF_OK;
    return wf_call_fail(c, WF_ERR_STATE,
                        "'%s' was changed after this op read it, and its backward would read the new values: update parameters after the "
                        "last backward over what was recorded with them",
                        wf_name_of(changed));
}

/* Whether the backward has nothing to do: all gradients of the results and all gradients that it must give are empty. */
static bool computes_nothing(const wf_call *c)
{
    bool nothing = true;
    for (int j = 0; j < c->outputs && nothing; j++)
        nothing = !c->dout[j].data || wf_array_count(&c->dout[j]) == 0;
    for (int i = 0; i < c->inputs && nothing; i++)
        nothing = !wf_call_needs(c, i) || wf_array_count(wf_call_in(c, i)) == 0;
    return nothing && c->op != &op_checkpoint;
}

static wf_status give_nothing(wf_call *c)
{
    for (int i = 0; i < c->inputs; i++)
        if (wf_call_needs(c, i)) {
            const wf_array g = wf_grad_new(c, i);
            wf_grad_give(c, i, &g);
        }
    return c->tape->error.code;
}

static wf_status node_backward(wf_tape *tape, struct node *node)
{
    struct call_state state;
    wf_call c;
    const unsigned need = node_needs_mask(tape, node);
    if (need == 0)
        return WF_OK;
    call_begin(&c, tape, node, &state);
    c.grad = true;
    c.rows_alone = false;
    for (int i = 0; i < node->inputs && i < WF_MAX_INPUTS && tape->in_gradients; i++)
        c.need[i] = node_needs_now(tape, node, i);
    for (int i = 0; i < WF_MAX_SAVED; i++)
        if (i < node->saves) {
            c.saved[i] = node->saved[i].array;
        } else {
            c.saved[i].data = NULL;
            c.saved[i].ndim = -1;
        }
    bool any = false;
    for (int j = 0; j < node->outputs; j++) {
        c.out[j] = node->rounds & WF_READS_OUTPUT(j) ? value_for_backward(node->out[j]) : node->out[j]->a;
        c.dout[j].data = NULL;
        if (node->out[j]->grad_buffer) {
            c.dout[j] = gradient_of(node->out[j]);
            any = true;
        }
    }
    wf_status status = any ? node_unchanged(&c, node, false) : WF_OK;
    const bool checks = any && tape->check_finite;
    if (checks && status == WF_OK)
        status = call_check_gradients(&c, true);
    if (any && status == WF_OK)
        status = computes_nothing(&c) ? give_nothing(&c) : node->op->backward(&c);
    if (checks && status == WF_OK && tape->error.code == WF_OK)
        status = call_check_gradients(&c, false);
    call_finish(&c);
    if (status == WF_OK)
        status = tape->error.code;
    if (status != WF_OK && tape->error.code == WF_OK)
        wf_call_fail(&c, status, "the op's backward failed");
    return status;
}

void records_walk(wf_tape *tape, struct node *last, bool retain)
{
    for (struct node *node = last; node; node = node->previous) {
        if (!tape_goes_on(tape) || node_backward(tape, node) != WF_OK)
            return;
        for (int j = 0; j < node->outputs; j++)
            if (!(tape->in_gradients ? node->out[j]->wanted : node->out[j]->retain))
                gradient_release(tape, node->out[j]);
        if (!retain)
            node_done(tape, node);
    }
}

void records_release_values(wf_tape *tape, struct node *last)
{
    for (struct node *node = last; node; node = node->previous)
        for (int j = 0; j < node->outputs; j++)
            release_value(tape, node->out[j]);
}

static struct node *reversed(struct node *node)
{
    struct node *done = NULL;
    while (node) {
        struct node *next = node->previous;
        node->previous = done;
        done = node;
        node = next;
    }
    return done;
}

void records_mark_path(wf_tape *tape, struct node *last)
{
    struct node *first = reversed(last); /* the oldest record comes first, so that operands are visited before results */
    for (struct node *node = first; node; node = node->previous)
        for (int j = 0; j < node->outputs && node_needs_mask(tape, node); j++)
            node->out[j]->path = tape->path;
    reversed(first);
}
