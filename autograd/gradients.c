/* SPDX-License-Identifier: MIT */
/* Stores gradients, and adds up the contributions to a gradient.
 *
 * A gradient is held by a root, or by a view whose `place` is not IN_BASE (engine.h). Several tensors may share one buffer: the backward of
 * add gives the gradient of its result to both operands without a copy. So a gradient is changed in place only if its tensor is the sole
 * owner of the buffer. */
#include <string.h>

#include <weft/compute.h>
#include <weft/internal/kernels.h>
#include <weft/internal/ops_all.h>
#include <weft/internal/shape.h>

#include "engine.h"
#include "ops/common.h"

wf_tensor *gradient_root(wf_tensor *x)
{
    while (x->base && x->place == IN_BASE)
        x = x->base;
    return x;
}

wf_tensor *uses_root(wf_tensor *x)
{
    while (x->base && x->place <= OWN_FOR_CALL)
        x = x->base;
    return x;
}

bool wf_gradient_is_apart(const wf_tensor *x)
{
    return x && x->place == APART;
}

void gradient_release(wf_tape *tape, wf_tensor *x)
{
    pool_release(tape, x->grad_buffer);
    x->grad_buffer = NULL;
}

/* The layout that x's gradient must have before something is added to it in place. If x is APART, views of x are refused, and the layout is
 * contiguous. Otherwise it is the layout of the value, so that each view of x finds its elements. */
static wf_array gradient_layout(const wf_tensor *x)
{
    if (x->place != APART)
        return x->a;
    wf_shape shape = array_shape(&x->a);
    return array_contiguous(NULL, WF_REAL, &shape);
}

static void set_gradient(wf_tensor *x, wf_array layout, void *data)
{
    x->grad = data;
    memcpy(x->grad_stride, layout.stride, sizeof x->grad_stride);
}

/* Gives x a buffer for its gradient. If x is a view that is not APART, the buffer has the layout of the root, so that views of x find their
 * elements. */
static bool allocate(wf_call *c, wf_tensor *x, bool zero)
{
    wf_tensor *root = x->place == APART ? x : value_root(x);
    size_t bytes = (size_t)wf_array_count(&root->a) * sizeof(wf_real);
    struct buffer *b = pool_take(c->tape, bytes);
    if (!b)
        return false;
    x->grad_buffer = b;
    set_gradient(x, gradient_layout(x), (char *)b->data + ((char *)x->a.data - (char *)root->a.data));
    if (zero || root != x)
        memset(b->data, 0, bytes);
    return true;
}

/* Whether x's gradient may be changed in place: x is the sole owner of the buffer, and the strides are those of gradient_layout. */
static bool is_own(const wf_tensor *x)
{
    if (x->grad_buffer->refs != 1)
        return false;
    wf_array layout = gradient_layout(x);
    bool same = true;
    for (int d = 0; same && d < x->a.ndim; d++)
        same = x->grad_stride[d] == layout.stride[d];
    return same;
}

static bool make_own(wf_call *c, wf_tensor *x)
{
    if (is_own(x))
        return true;
    struct buffer *shared = x->grad_buffer;
    wf_array old = gradient_of(x);
    if (!allocate(c, x, false))
        return false;
    wf_array own = gradient_of(x);
    wf_array_copy(&own, &old);
    pool_release(c->tape, shared);
    return true;
}

/* Whether the gradient of x goes into a slab: x is the leaf of a parameter, and no wf_gradients runs. */
static bool is_in_slab(const wf_call *c, const wf_tensor *x)
{
    return x->kind == TENSOR_LEAF && !c->tape->in_gradients;
}

/* Whether each element of `owner` is also in x, which is for example a transpose or a reshape. Comparing the numbers of elements is enough,
 * because a view in which an element appears twice holds its own gradient, and then `owner` is x. */
static bool shows_all(const wf_tensor *x, const wf_tensor *owner)
{
    return wf_array_count(&x->a) == wf_array_count(&owner->a);
}

/* The array to which a contribution to x's gradient is written. If *accumulate becomes true, the caller must add the contribution to the
 * elements that the array holds; otherwise it must overwrite them (wf_grad_into). */
static wf_array gradient_target(wf_call *c, wf_tensor *x, bool *accumulate)
{
    wf_tensor *owner = gradient_root(x);
    wf_array target = x->a;
    char *base; /* address of the owner's gradient */
    target.data = NULL;
    if (is_in_slab(c, owner)) {
        bool *valid;
        base = (char *)slab_target(c->tape, owner->info, &valid);
        if (!base)
            return target;
        *accumulate = *valid;
        if (!*accumulate && !shows_all(x, owner)) {
            memset(base, 0, (size_t)wf_array_count(&owner->a) * sizeof(wf_real));
            *accumulate = true;
        }
        *valid = true;
    } else {
        *accumulate = owner->grad_buffer || !shows_all(x, owner) || (owner->base && owner->place != APART);
        if (!(owner->grad_buffer ? make_own(c, owner) : allocate(c, owner, !shows_all(x, owner))))
            return target;
        if (owner == x)
            return gradient_of(x);
        base = owner->grad;
    }
    target.data = base + ((char *)x->a.data - (char *)owner->a.data);
    return target;
}

/* Whether the backward may give a gradient to this operand. If not, the tape has the error. */
static bool is_needed(wf_call *c, int input)
{
    if (wf_call_needs(c, input))
        return true;
    wf_call_fail(c, WF_ERR_ARGUMENT, "the backward gives a gradient to operand %d, which needs none: it must ask c->need first", input + 1);
    return false;
}

wf_array wf_grad_into(wf_call *c, int input, bool *accumulate)
{
    struct call_state *state = c->internal;
    *accumulate = false;
    if (!is_needed(c, input))
        return (wf_array){.data = NULL};
    return gradient_target(c, state->node->in[input], accumulate);
}

bool wf_grad_fills(wf_call *c, int count)
{
    struct call_state *state = c->internal;
    if (count < 1 || count > c->inputs || count > WF_MAX_INPUTS)
        return false;
    wf_tensor *owner = gradient_root(state->node->in[0]);
    int64_t elements = 0;
    for (int i = 0; i < count; i++) {
        if (!c->need[i] || gradient_root(state->node->in[i]) != owner || state->node->in[i] == owner)
            return false;
        for (int j = 0; j < i; j++)
            if (!wf_apart(&c->in[i], &c->in[j]))
                return false;
        elements += wf_array_count(&c->in[i]);
    }
    /* The operands do not overlap. None of them has an element twice, because such a view holds its own gradient and was refused above. So
     * together they have `elements` different elements of the owner. */
    return elements == wf_array_count(&owner->a) && !owner->grad_buffer && !owner->base && !is_in_slab(c, owner) &&
           allocate(c, owner, false);
}

wf_array wf_grad_new(wf_call *c, int input)
{
    const wf_array *x = wf_call_in(c, input);
    /* A given x gets an array even if it needs no gradient, because a backward may use it to compute other gradients. */
    if (!x && !is_needed(c, input))
        return (wf_array){.data = NULL};
    wf_shape shape = array_shape(x);
    return wf_call_temp(c, WF_REAL, &shape);
}

static bool holds(const struct buffer *b, const wf_array *g)
{
    return b && (char *)g->data >= (char *)b->data && (char *)g->data < (char *)b->data + b->bytes;
}

/* The buffer of this call that g points into: the gradient of an output, a saved array, or a temporary. NULL if there is none. */
static struct buffer *owner_of(const struct call_state *state, const wf_array *g)
{
    for (int j = 0; j < state->node->outputs; j++)
        if (holds(state->node->out[j]->grad_buffer, g))
            return state->node->out[j]->grad_buffer;
    for (int i = 0; i < state->node->saves; i++)
        if (holds(state->node->saved[i].buffer, g))
            return state->node->saved[i].buffer;
    struct buffer *b = state->temps;
    while (b && !holds(b, g))
        b = b->next;
    return b;
}

void gradient_add(wf_call *c, wf_tensor *x, const wf_array *g)
{
    bool accumulate;
    wf_array target = gradient_target(c, x, &accumulate);
    if (target.data)
        (accumulate ? strided_add : wf_array_copy)(&target, g);
}

static bool broadcasts_to(const wf_shape *from, const wf_shape *to)
{
    wf_shape both;
    return wf_shape_broadcast(from, to, &both) && wf_shape_equal(&both, to);
}

void wf_grad_give(wf_call *c, int input, const wf_array *g)
{
    struct call_state *state = c->internal;
    if (!g->data || c->tape->error.code != WF_OK || !is_needed(c, input))
        return;
    wf_tensor *x = state->node->in[input];
    wf_shape have = array_shape(g), want = array_shape(&x->a);
    const bool same = wf_shape_equal(&have, &want);
    if (g->dtype != WF_REAL || (!same && !broadcasts_to(&want, &have))) {
        char given[96], needed[96];
        wf_call_fail(c, WF_ERR_SHAPE, "the backward gives operand %d, of shape %s, a gradient of shape %s and dtype %s", input + 1,
                     wf_shape_text(&want, needed, sizeof needed), wf_shape_text(&have, given, sizeof given), wf_dtype_name(g->dtype));
        return;
    }
    if (!same) {
        wf_array sum = wf_call_temp(c, WF_REAL, &want);
        if (sum.data && wf_array_sum(&sum, g, 1, false) == WF_OK)
            wf_grad_give(c, input, &sum);
        else
            wf_call_fail(c, WF_ERR_MEMORY, "no memory for the sum over broadcast dimensions");
        return;
    }
    wf_tensor *root = gradient_root(x);
    if (root == x && (!x->base || x->place == APART) && !is_in_slab(c, x) && !x->grad_buffer) {
        struct buffer *b = owner_of(state, g);
        if (b) {
            b->refs++;
            x->grad_buffer = b;
            set_gradient(x, *g, g->data);
            return;
        }
    }
    gradient_add(c, x, g);
}

/* --- several backwards in a pass ------------------------------------------------------------------------------------ */

void gradient_set_aside(wf_tape *tape, wf_tensor *x, struct earlier **list)
{
    struct earlier *e = x->grad_buffer ? wf_tape_memory(tape, sizeof *e) : NULL;
    if (!e)
        return;
    *e = (struct earlier){x, x->grad_buffer, gradient_of(x), *list};
    *list = e;
    x->grad_buffer = NULL;
}

void gradients_add_earlier(wf_call *c, struct earlier *list)
{
    for (; list && c->tape->error.code == WF_OK; list = list->next) {
        wf_tensor *x = list->of;
        if (x->grad_buffer) {
            gradient_add(c, x, &list->grad);
            pool_release(c->tape, list->buffer);
        } else {
            x->grad_buffer = list->buffer;
            set_gradient(x, list->grad, list->grad.data);
        }
    }
}

/* --- retained views ------------------------------------------------------------------------------------------------ */

/* Adds the gradient that the view itself holds to the gradient of its base. */
static wf_status retained_backward(wf_call *c)
{
    struct call_state *state = c->internal;
    wf_tensor alias = *state->node->out[0];
    alias.place = IN_BASE;
    gradient_add(c, &alias, &c->dout[0]);
    return c->tape->error.code;
}

const wf_op op_retained_view = {.name = "retained view", .reads = WF_READS_NOTHING, .backward = retained_backward};

wf_tensor *wf_retain_grad(wf_tensor *x)
{
    if (!x)
        return wf_tape_fail(wf_tape_of(x), WF_ERR_ARGUMENT, "wf_retain_grad: the tensor is NULL");
    wf_tape *tape = x->tape;
    if (x->kind == TENSOR_POISON || !tape || x->kind == TENSOR_LEAF || x->retain)
        return x;
    if (!tape_accepts(tape, "wf_retain_grad", x))
        return &tape->poison;
    if (!x->needs_grad)
        return wf_tape_fail(tape, WF_ERR_STATE, "wf_retain_grad: '%s' needs no gradient", wf_name_of(x));
    const wf_tensor *detached_at = gradient_root(x)->detached_at;
    if (detached_at)
        return wf_tape_fail(tape, WF_ERR_STATE,
                            "wf_retain_grad: no gradient will reach '%s', whose record an earlier %s used up: call "
                            "wf_retain_grad before that, or give it .retain = true",
                            wf_name_of(x), used_up_by(detached_at));
    const bool shared = x->base && x->place != APART; /* the gradient of the view is stored in that of its root */
    if (shared && x->recorded)
        return wf_tape_fail(tape, WF_ERR_STATE,
                            "wf_retain_grad: the view '%s' was already used by an op: call it directly after creating the view",
                            wf_name_of(x));
    const struct node node = {.op = &op_retained_view, .inputs = 1, .outputs = 1, .in = &x->base, .out = &x, .need = 1};
    if (shared && !node_record(tape, &node))
        return &tape->poison;
    if (shared)
        x->place = OWN;
    x->retain = true;
    return x;
}
