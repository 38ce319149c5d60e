/* SPDX-License-Identifier: MIT */
/* wf_gradients with .create_graph: visits the records as walk.c does, but calls the `gradient` of each op, which computes with ops on
 * tensors. So the gradients are results with records of their own.
 *
 * As in gradients.c, the gradient of a view goes to the tensor that holds it: it is placed into zeros of the root's shape (ops/place.c). */
#include <string.h>

#include <weft/internal/ops_all.h>
#include <weft/internal/shape.h>
#include <weft/ops.h>

#include "engine.h"

/* g summed over the dimensions along which x is repeated in it, or expanded to x's shape. */
static wf_tensor *fit(wf_tape *tape, const wf_tensor *x, wf_tensor *g)
{
    wf_shape want = array_shape(&x->a), have = wf_shape_of(g), both;
    if (wf_is_poison(g) || wf_shape_equal(&have, &want))
        return g;
    const bool fits = wf_shape_broadcast(&have, &want, &both);
    if (fits && wf_shape_equal(&both, &want))
        return wf_expand_to(g, &want);
    if (!fits || !wf_shape_equal(&both, &have)) {
        char text[2][96];
        return wf_tape_fail(tape, WF_ERR_SHAPE, "the op's `gradient` gives '%s', of shape %s, a gradient of shape %s", wf_name_of(x),
                            wf_shape_text(&want, text[0], sizeof text[0]), wf_shape_text(&have, text[1], sizeof text[1]));
    }
    while (wf_ndim(g) > want.ndim && !wf_is_poison(g))
        g = wf_sum_dim(g, 0, false);
    for (int d = 0; d < want.ndim && !wf_is_poison(g); d++)
        if (wf_dim(g, d) != want.dim[d])
            g = wf_sum_dim(g, d, true);
    return g;
}

static int64_t offset_of(const wf_tensor *x, const wf_tensor *root)
{
    return ((char *)x->a.data - (char *)root->a.data) / (int64_t)sizeof(wf_real);
}

/* The contribution of x's gradient g to that of `owner`, of which x is a view. */
static wf_tensor *placed(wf_tape *tape, wf_tensor *owner, wf_tensor *x, wf_tensor *g)
{
    wf_tensor *root = value_root(x);
    wf_shape shape = array_shape(&root->a);
    wf_array view;
    if (array_is_contiguous(&x->a) && wf_array_count(&x->a) == wf_array_count(&root->a))
        g = wf_reshape_to(g, &shape);
    else
        g = wf_place(g, &shape, &x->a, offset_of(x, root));
    if (owner == root)
        return g;
    g = wf_contiguous(g);
    if (wf_is_poison(g) || wf_view(g, &view) != WF_OK)
        return &tape->poison;
    char *data = (char *)view.data + offset_of(owner, root) * (int64_t)sizeof(wf_real);
    view = owner->a;
    view.data = data;
    return wf_apply_view("view", g, &view);
}

void graph_add(wf_tape *tape, wf_tensor *x, wf_tensor *g)
{
    wf_tensor *owner = gradient_root(x);
    g = fit(tape, x, g);
    if (owner != x)
        g = placed(tape, owner, x, g);
    owner->graph = owner->graph ? wf_add(owner->graph, g) : g;
}

static bool is_empty(const wf_tensor *x)
{
    return wf_array_count(&x->a) == 0;
}

/* Whether all gradients of the results are empty, and all that have to be given: `gradient` then need not handle that. */
static bool computes_nothing(const wf_gradient_call *g)
{
    bool nothing = true;
    for (int j = 0; j < g->outputs && nothing; j++)
        nothing = !g->dy[j] || is_empty(g->dy[j]);
    for (int i = 0; i < g->inputs && nothing; i++)
        nothing = !g->need[i] || is_empty(g->x[i]);
    return nothing;
}

static void give(wf_tape *tape, const wf_gradient_call *g)
{
    for (int i = 0; i < g->inputs && tape->error.code == WF_OK; i++)
        if (g->need[i]) {
            wf_shape shape = array_shape(&g->x[i]->a);
            graph_add(tape, g->x[i], g->dx[i] ? g->dx[i] : wf_zeros(tape, &shape));
        }
}

static void refuse(wf_call *c)
{
    char what[512];
    call_describe(c, what, sizeof what);
    wf_tape_fail(
        c->tape, WF_ERR_STATE,
        "wf_gradients: %s: this op has no `gradient`, so that .create_graph cannot go through it: compose it of other ops, or take "
        "the gradients without .create_graph",
        what);
}

/* Calls the op's `gradient`, and adds what it gives to the gradients of the operands. */
static void call_gradient(wf_call *c, struct node *node)
{
    wf_tape *tape = c->tape;
    const size_t pointers = (size_t)(2 * node->inputs + node->outputs) * sizeof(wf_tensor *);
    char *memory = wf_tape_memory(tape, pointers + (size_t)node->inputs * sizeof(bool));
    if (!memory)
        return;
    memset(memory, 0, pointers);
    wf_tensor **dx = (wf_tensor **)memory, **dy = dx + node->inputs;
    bool *need = (bool *)(memory + pointers);
    for (int i = 0; i < node->inputs; i++)
        need[i] = node_needs_now(tape, node, i);
    for (int j = 0; j < node->outputs; j++)
        dy[j] = node->out[j]->graph;
    const wf_gradient_call g = {.tape = tape,
                                .attr = node->attr,
                                .inputs = node->inputs,
                                .outputs = node->outputs,
                                .x = node->in,
                                .y = node->out,
                                .dy = dy,
                                .need = need,
                                .dx = dx};
    tape->in_gradients = false; /* the ops that are called now are not part of the records that are visited */
    if (!computes_nothing(&g)) {
        tape->building = true;
        node->op->gradient(&g);
        tape->building = false;
    }
    give(tape, &g);
    tape->in_gradients = true;
}

static void visit(wf_tape *tape, struct node *node)
{
    bool any = false;
    for (int j = 0; j < node->outputs; j++)
        any = any || node->out[j]->graph;
    if (!any || node_needs_mask(tape, node) == 0 || !tape_goes_on(tape))
        return;
    struct call_state state;
    wf_call c;
    call_begin(&c, tape, node, &state);
    if (node_unchanged(&c, node, true) != WF_OK) {
        ; /* the tape has the error */
    } else if (node->op == &op_retained_view) {
        wf_tensor alias = *node->out[0];
        alias.place = IN_BASE;
        graph_add(tape, &alias, alias.graph);
    } else if (node->op->gradient) {
        call_gradient(&c, node);
    } else {
        refuse(&c);
    }
    call_finish(&c);
}

void records_build_gradients(wf_tape *tape, wf_tensor *y, wf_tensor *gradient)
{
    struct node *last = tape->last;
    wf_shape shape = array_shape(&y->a);
    const bool no_grad = wf_tape_no_grad(tape, false); /* the gradients depend on x even if the caller records nothing else now */
    tape->differentiated = tape->walking = true;
    tape->changed = tape_parameters_changed(tape, true);
    tape->events++;
    graph_add(tape, y, gradient ? gradient : wf_expand_to(wf_full(tape, &(wf_shape){0}, 1), &shape));
    for (struct node *node = last; node; node = node->previous) {
        visit(tape, node);
        for (int j = 0; j < node->outputs; j++)
            if (!node->out[j]->wanted || tape->error.code != WF_OK)
                node->out[j]->graph = NULL;
    }
    wf_tensor *root = gradient_root(y); /* perhaps no result of a record, as an input or a leaf is none */
    if (!root->wanted || tape->error.code != WF_OK)
        root->graph = NULL;
    tape->walking = false;
    wf_tape_no_grad(tape, no_grad);
}
