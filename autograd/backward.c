/* SPDX-License-Identifier: MIT */
/* wf_backward, and the functions that it shares with wf_gradients. */
#include <weft/internal/shape.h>
#include <weft/runtime.h>

#include "engine.h"

static bool gradient_fits(wf_tape *tape, const char *call, const wf_tensor *x, const wf_tensor *gradient)
{
    if (!tape_accepts(tape, call, gradient))
        return false;
    wf_shape have = array_shape(&gradient->a), want = array_shape(&x->a);
    if (gradient->a.dtype == WF_REAL && wf_shape_equal(&have, &want))
        return true;
    char text[2][96];
    wf_tape_fail(tape, WF_ERR_SHAPE, "%s: .gradient is %s %s, but '%s' has shape %s: give one real number for each of its elements", call,
                 wf_dtype_name(gradient->a.dtype), wf_shape_text(&have, text[0], sizeof text[0]), wf_name_of(x),
                 wf_shape_text(&want, text[1], sizeof text[1]));
    return false;
}

/* Sets the error that says why no gradient can flow through x. */
static void fail_detached(wf_tape *tape, const char *call, const wf_tensor *x, const wf_tensor *detached_at)
{
    const char *name = wf_name_of(detached_at);
    if (detached_at->made_by == made_by_gradients)
        wf_tape_fail(
            tape, WF_ERR_STATE,
            "%s: '%s' depends on the gradient '%s': give its wf_gradients .create_graph = true, or take wf_detach of it if it is meant as "
            "a constant",
            call, wf_name_of(x), name);
    else if (detached_at->by == BY_CHECKPOINT)
        wf_tape_fail(
            tape, WF_ERR_STATE,
            "%s: '%s' depends on '%s', which was made inside wf_checkpoint and is not its result, so that no gradient flows through "
            "it: return it from the function, or take wf_detach of it where no gradient is wanted",
            call, wf_name_of(x), name);
    else if (detached_at == x)
        wf_tape_fail(tape, WF_ERR_STATE, "%s: an earlier %s used up the record of '%s': give that call .retain = true", call,
                     used_up_by(detached_at), name);
    else
        wf_tape_fail(tape, WF_ERR_STATE,
                     "%s: '%s' depends on '%s', whose record an earlier %s used up: give that call .retain = true, or take "
                     "wf_detach of '%s' where no gradient is wanted",
                     call, wf_name_of(x), name, used_up_by(detached_at), name);
}

bool backward_valid(wf_tape *tape, const char *call, wf_tensor *x, const struct wf_backward_options *o)
{
    if (tape->error.code != WF_OK)
        return false;
    if (tape->mode == WF_INFER)
        wf_tape_fail(tape, WF_ERR_STATE, "%s: the tape is in WF_INFER, which records nothing: reset it with WF_TRAIN or WF_GRADIENTS",
                     call);
    else if (tape->checkpoints > 0)
        wf_tape_fail(tape, WF_ERR_STATE, "%s: called inside wf_checkpoint, by its function: call it after that", call);
    else if (tape->walking)
        wf_tape_fail(tape, WF_ERR_STATE, "%s: called inside wf_backward, from a ready function: call it after that", call);
    else if (tape_registry_freed(tape))
        wf_tape_fail(tape, WF_ERR_STATE,
                     "%s: a registry whose parameters this pass has read was freed: call wf_registry_free after the pass", call);
    else if (x && x->tape == tape && x->generation == tape->generation && x->needs_grad && gradient_root(x)->detached_at)
        fail_detached(tape, call, gradient_root(x), gradient_root(x)->detached_at);
    else if (tape_accepts(tape, call, x) && !x->needs_grad)
        wf_tape_fail(tape, WF_ERR_STATE, "%s: '%s' does not depend on a tensor that needs a gradient%s", call, wf_name_of(x),
                     tape->no_grad ? ": wf_tape_no_grad is on" : "");
    return tape->error.code == WF_OK && (!o->gradient || gradient_fits(tape, call, x, o->gradient));
}

wf_tensor *backward_operand(wf_tape *tape, const char *call, wf_tensor *x)
{
    if (!x || x->kind != TENSOR_PARAMETER || tape->mode == WF_INFER || !tape_accepts(tape, call, x))
        return x;
    wf_tensor *leaf = tape_leaf(tape, x);
    return leaf ? leaf : x;
}

void backward_run(wf_call *c, wf_tensor *x, const struct wf_backward_options *o)
{
    wf_tape *tape = c->tape;
    struct node *last = tape->last;
    wf_real one = 1;
    wf_shape shape = array_shape(&x->a);
    wf_array scalar = array_contiguous(&one, WF_REAL, &(wf_shape){0}), ones = wf_array_expand(&scalar, &shape);
    wf_keep(x);
    if (o->gradient)
        wf_keep(o->gradient);
    tape->differentiated = tape->walking = true;
    tape->changed = tape_parameters_changed(tape, false);
    tape->events++;
    if (!o->retain) {
        records_release_values(tape, last);
        tape->last = NULL; /* a ready function (wf_grads.ready) may record ops: they start a new list */
    }
    if (o->gradient && tape->check_finite)
        gradient_check_given(tape, &o->gradient->a);
    gradient_add(c, x, o->gradient ? &o->gradient->a : &ones);
    if (tape->error.code == WF_OK)
        records_walk(tape, last, o->retain);
    tape->walking = false;
}

struct earlier *gradients_set_aside(wf_tape *tape)
{
    struct earlier *list = NULL;
    for (struct node *node = tape->differentiated ? tape->last : NULL; node; node = node->previous)
        for (int j = 0; j < node->outputs; j++)
            gradient_set_aside(tape, node->out[j], &list);
    return list;
}

/* After a failed backward: marks as invalid the slabs that the leaves of this pass write to. */
static void mark_broken(wf_tape *tape)
{
    for (int i = 0; i < tape->slot_count; i++) {
        struct leaf_slot *s = &tape->slots[i];
        if (s->parameter && s->generation == tape->generation && s->leaf->needs_grad && !(s->leaf->info->use && s->leaf->info->use->freed))
            s->leaf->info->grads->broken = true;
    }
}

static void run_pass(wf_tensor *x, const struct wf_backward_options *o)
{
    struct node node = {.op = NULL};
    struct call_state state = {.node = &node};
    wf_call c = {.tape = x->tape, .internal = &state};
    struct earlier *earlier = gradients_set_aside(x->tape);
    backward_run(&c, x, o);
    gradients_add_earlier(&c, earlier);
}

wf_status wf_backward_with(wf_tensor *x, const struct wf_backward_options *options)
{
    static const struct wf_backward_options none;
    const struct wf_backward_options *o = options ? options : &none;
    wf_tape *tape = wf_tape_of(x);
    if (!tape) {
        if (!x || x->kind != TENSOR_POISON)
            fail_without_tape(WF_ERR_STATE, "wf_backward", x);
        return x ? WF_ERR_STATE : WF_ERR_ARGUMENT;
    }
    wf_tensor *operand = backward_operand(tape, "wf_backward", x);
    if (tape->error.code == WF_OK && (o->create_graph || o->allow_unused))
        wf_tape_fail(tape, WF_ERR_ARGUMENT, "wf_backward: .%s is an option of wf_gradients",
                     o->create_graph ? "create_graph" : "allow_unused");
    if (backward_valid(tape, "wf_backward", operand, o))
        run_pass(operand, o);
    if (tape->error.code != WF_OK)
        mark_broken(tape);
    else
        averages_give(tape);
    return tape->error.code;
}
