/* SPDX-License-Identifier: MIT */
/* wf_gradients: computes the gradients with respect to chosen tensors (wrt), and returns them as tensors of the tape. */
#include <weft/ops.h>

#include "engine.h"

const char made_by_gradients[] = "gradient";

static const char name_of_call[] = "wf_gradients";

struct wrt {
    wf_tensor *x; /* NULL if y does not depend on it, with .allow_unused */
    bool own;     /* x is a view that holds its own gradient during the call (OWN_FOR_CALL) */
};

static bool is_without(wf_tape *tape, const wf_tensor *y, const wf_tensor *x)
{
    wf_tape_fail(tape, WF_ERR_STATE, "%s: '%s' does not depend on '%s'", name_of_call, wf_name_of(y), wf_name_of(x));
    return false;
}

static bool resolve(wf_tape *tape, const wf_tensor *y, wf_tensor *x, struct wrt *wrt, bool allow_unused)
{
    *wrt = (struct wrt){.x = NULL};
    if (!tape_accepts(tape, name_of_call, x))
        return false;
    wf_tensor *leaf = x->kind == TENSOR_PARAMETER ? tape_find_leaf(tape, x) : x;
    if (!leaf)
        return allow_unused || is_without(tape, y, x);
    if (!leaf->needs_grad) {
        wf_tape_fail(tape, WF_ERR_STATE, "%s: '%s' needs no gradient: %s", name_of_call, wf_name_of(x),
                     x->kind == TENSOR_PARAMETER ? "it is frozen, or its registry has no gradients"
                                                 : "it depends on no parameter that is trained, and on no input with needs_grad");
        return false;
    }
    *wrt = (struct wrt){.x = leaf};
    leaf->wanted = true;
    leaf->path = tape->path;
    return true;
}

/* --- views ------------------------------------------------------------------------------------------------------------- */

/* A view shares the gradient of its root, to which other views add too. To separate them, the view gets its own gradient during the call,
 * through a record like that of wf_retain_grad. In the order of recording, this record is put directly after the one that made the root,
 * and so before those that use the view. */
static bool hold_own(wf_tape *tape, wf_tensor *view)
{
    const wf_tensor *of = gradient_root(view->base);
    const struct node node = {.op = &op_retained_view, .inputs = 1, .outputs = 1, .in = &view->base, .out = &view, .need = 1};
    if (!node_record(tape, &node))
        return false;
    struct node *made = tape->last, **link = &tape->last;
    tape->last = made->previous;
    for (bool found = false; *link && !found; link = found ? link : &(*link)->previous)
        for (int j = 0; j < (*link)->outputs; j++)
            found = found || (*link)->out[j] == of;
    made->previous = *link;
    *link = made;
    view->place = OWN_FOR_CALL;
    return true;
}

static int views_between(const wf_tensor *x)
{
    int n = 0;
    for (; x && x->base; x = x->base)
        n++;
    return n;
}

/* Gives each wanted view its own gradient (hold_own). Bases come before their views, because a view's gradient is added to the gradient of
 * its base, and the base may also be one of the wrt. */
static bool hold_own_of_views(wf_tape *tape, int count, struct wrt *wrt)
{
    int deepest = 0;
    for (int i = 0; i < count; i++)
        deepest = WF_MAX(deepest, views_between(wrt[i].x));
    for (int depth = 1; depth <= deepest; depth++)
        for (int i = 0; i < count; i++) {
            wf_tensor *x = wrt[i].x;
            if (!x || views_between(x) != depth || x->place != IN_BASE)
                continue;
            wrt[i].own = true;
            if (!hold_own(tape, x))
                return false;
        }
    return true;
}

static void share_again(wf_tape *tape, wf_tensor *view)
{
    struct node **link = &tape->last;
    view->place = IN_BASE;
    while (*link && ((*link)->op != &op_retained_view || (*link)->out[0] != view))
        link = &(*link)->previous;
    if (!*link)
        return; /* the backward has used up the record */
    *link = (*link)->previous;
    uses_root(view)->uses--;
}

/* --- results ----------------------------------------------------------------------------------------------------------- */

/* Makes a tensor of the gradient of x. The tensor takes over the buffer of the gradient if nothing else uses the buffer, and if the
 * gradient is contiguous and begins where the buffer begins; otherwise the tensor gets a copy. It looks like a result whose record is used
 * up, so that a backward through it is refused. */
static wf_tensor *take(wf_tape *tape, wf_tensor *x)
{
    wf_array from = gradient_of(x);
    wf_shape shape = wf_array_shape(&from);
    wf_tensor *g = tape_new_tensor(tape);
    struct buffer *b = x->grad_buffer;
    const bool whole = b->refs == 1 && from.data == b->data && wf_array_is_contiguous(&from);
    if (g && !whole)
        b = pool_take(tape, (size_t)wf_array_count(&from) * sizeof(wf_real));
    if (!g || !b)
        return &tape->poison;
    g->a = wf_array_contiguous(b->data, WF_REAL, &shape);
    if (!whole) {
        wf_array_copy(&g->a, &from);
        pool_release(tape, x->grad_buffer);
    }
    x->grad_buffer = NULL;
    g->buffer = b;
    g->value = VALUE_KEPT;
    g->needs_grad = true;
    g->detached_at = g;
    g->made_by = made_by_gradients;
    g->name = x->name;
    return g;
}

/* Sets gradient[i]. A caller may ask for the same tensor twice. */
static void take_all(wf_tape *tape, const wf_tensor *y, int count, const struct wrt *wrt, wf_tensor *const x[], wf_tensor *gradient[],
                     const struct wf_backward_options *o)
{
    for (int i = 0; i < count; i++) {
        wf_tensor *of = wrt[i].x;
        int first = 0;
        while (wrt[first].x != of)
            first++;
        if (of && first < i) {
            gradient[i] = gradient[first];
        } else if (of && o->create_graph && of->graph) {
            /* not the caller's own tensor, whose memory may change */
            gradient[i] = wf_keep(of->graph == o->gradient ? wf_scale(of->graph, 1) : of->graph);
        } else if (of && of->grad_buffer) {
            gradient[i] = take(tape, of);
        } else if (o->allow_unused) {
            wf_shape shape = wf_shape_of(x[i]);
            gradient[i] = wf_zeros(tape, &shape);
        } else {
            is_without(tape, y, of);
            return;
        }
    }
}

static void run(wf_call *c, wf_tensor *y, int count, struct wrt *wrt, wf_tensor *const x[], wf_tensor *gradient[],
                const struct wf_backward_options *o)
{
    wf_tape *tape = c->tape;
    if (!hold_own_of_views(tape, count, wrt))
        return;
    struct earlier *earlier = gradients_set_aside(tape);
    for (int i = 0; i < count; i++) /* inputs are no results of records, so gradients_set_aside does not visit them */
        if (wrt[i].x)
            gradient_set_aside(tape, wrt[i].x, &earlier);
    wf_tensor *root = gradient_root(y); /* nor is y, with .allow_unused */
    gradient_set_aside(tape, root, &earlier);
    tape->in_gradients = true;
    records_mark_path(tape, tape->last);
    if (o->create_graph)
        records_build_gradients(tape, y, o->gradient);
    else
        backward_run(c, y, o);
    tape->in_gradients = false;
    if (tape->error.code == WF_OK)
        take_all(tape, y, count, wrt, x, gradient, o);
    if (!root->wanted)
        gradient_release(tape, root);
    for (int i = 0; i < count; i++) {
        if (wrt[i].own)
            share_again(tape, wrt[i].x);
        if (wrt[i].x)
            wrt[i].x->graph = NULL;
    }
    gradients_add_earlier(c, earlier);
}

wf_status wf_gradients_with(wf_tensor *y, int count, wf_tensor *const x[], wf_tensor *gradient[], const struct wf_backward_options *options)
{
    static const struct wf_backward_options none;
    const struct wf_backward_options *o = options ? options : &none;
    wf_tape *tape = wf_tape_of(y);
    for (int i = 0; i < count && gradient; i++)
        gradient[i] = tape ? &tape->poison : &tapeless_poison;
    if (!tape)
        return y ? WF_ERR_STATE : WF_ERR_ARGUMENT;
    if (tape->error.code == WF_OK && (count < 1 || !x || !gradient))
        wf_tape_fail(tape, WF_ERR_ARGUMENT, "%s: no tensors are given, or no places for their gradients", name_of_call);
    y = backward_operand(tape, name_of_call, y);
    if (!backward_valid(tape, name_of_call, y, o))
        return tape->error.code;
    struct node node = {.op = NULL};
    struct call_state state = {.node = &node};
    wf_call c = {.tape = tape, .internal = &state};
    struct buffer *memory = pool_take(tape, (size_t)count * sizeof(struct wrt));
    if (!memory)
        return tape->error.code;
    struct wrt *wrt = memory->data;
    int resolved = 0;
    tape->path++;
    while (resolved < count && resolve(tape, y, x[resolved], &wrt[resolved], o->allow_unused))
        resolved++;
    if (resolved == count)
        run(&c, y, count, wrt, x, gradient, o);
    for (int i = 0; i < resolved; i++)
        if (wrt[i].x)
            wrt[i].x->wanted = false;
    pool_release(tape, memory);
    return tape->error.code;
}
