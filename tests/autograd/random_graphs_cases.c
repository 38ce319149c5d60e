/* SPDX-License-Identifier: MIT */
/* Any op of ops.def in random graphs, in one of its test cases: see random_graphs.h. */
#include "cases.h"
#include "random_graphs_choose.h"

/* How far a graph's tensor moves the values of a fill, so that they stay what the fill promises: positive, probabilities, or away from
 * kinks, which lie at least 0.03 from multiples of 0.1, and from each other. */
static const double distance[] = {[WF_FILL_NORMAL] = 0.5, [WF_FILL_POSITIVE] = 0.2, [WF_FILL_UNIT] = 0.08, [WF_FILL_APART] = 0.02};

/* Values as the gradient check has them; unless they are constants, moved by elements of a tensor of the graph. */
static wf_tensor *reals(struct graph *g, const wf_shape *shape, enum wf_fill fill, bool constant)
{
    wf_tensor *fixed = wf_input(g->tape, graph_values(g, fill, wf_shape_count(shape)), shape, false);
    return constant ? fixed : wf_add(fixed, wf_affine(wf_sigmoid(of_elements(g, shape)), 2 * distance[fill], -distance[fill]));
}

/* The same, sometimes as a view of other strides. */
static wf_tensor *reals_in_memory(struct graph *g, const wf_shape *shape, enum wf_fill fill, bool constant)
{
    wf_shape s = *shape;
    const int last = s.ndim - 1;
    const int64_t how = below(g, 4);
    if (how == 0 && s.ndim >= 2) {
        s.dim[last] = shape->dim[last - 1];
        s.dim[last - 1] = shape->dim[last];
        return wf_transpose(reals(g, &s, fill, constant), -1, -2);
    }
    if (how == 1 && s.ndim >= 1 && ++s.dim[last] && wf_shape_count(&s) <= MOST)
        return wf_slice(reals(g, &s, fill, constant), -1, 1, shape->dim[last]);
    return reals(g, shape, fill, constant);
}

static wf_tensor *bools(struct graph *g, const wf_shape *shape)
{
    bool value[MOST];
    wf_case_fill(WF_FILL_BOOLS, 0, wf_shape_count(shape), &g->rng, value);
    return wf_bools(g->tape, value, shape);
}

/* An operand before i with the same shape and fill, so that one tensor is two operands; NULL if there is none. */
static wf_tensor *same_as_before(const struct wf_case *c, int i, const wf_shape *shape, wf_tensor *const in[])
{
    for (int j = 0; j < i; j++) {
        const wf_shape other = in[j] ? wf_shape_of(in[j]) : *shape;
        if (in[j] && c->fill[j] == c->fill[i] && !c->constant[i] && !c->constant[j] && wf_shape_equal(&other, shape))
            return in[j];
    }
    return NULL;
}

/* Whether a graph has room for the case's operands, and the mode that it needs. */
static bool fits(const struct graph *g, const struct wf_case *c)
{
    bool any = false;
    for (int i = 0, n = wf_case_operands(c); i < n; i++) {
        wf_shape shape;
        const int64_t count = wf_case_operand(c, i, &shape) ? wf_shape_count(&shape) : 1;
        if (count == 0 || count > MOST)
            return false;
        any |= case_has_gradient(c, i);
    }
    return any && (g->train || !c->train);
}

static const struct wf_case *some_case(struct graph *g, const wf_op *op)
{
    const int64_t first = below(g, op->cases.count);
    for (int64_t k = 0; k < op->cases.count && !op->constant && !is_step(op); k++) {
        const struct wf_case *c = &op->cases.list[(first + k) % op->cases.count];
        if (fits(g, c))
            return c;
    }
    return NULL;
}

wf_tensor *graph_case(struct graph *g, const char **name)
{
    const wf_op *op = g->prefer ? g->prefer : wf_op_at((int)below(g, wf_op_count()));
    const struct wf_case *c = some_case(g, op);
    wf_tensor *in[WF_MAX_INPUTS] = {NULL};
    const int n = c ? wf_case_operands(c) : 0;
    for (int i = 0; i < n; i++) {
        wf_shape shape;
        if (!wf_case_operand(c, i, &shape))
            continue;
        if (c->fill[i] == WF_FILL_IDS)
            in[i] = ids(g, &shape, c->limit[i], 0);
        else if (c->fill[i] == WF_FILL_BOOLS)
            in[i] = bools(g, &shape);
        else if (below(g, 4) || !(in[i] = same_as_before(c, i, &shape, in)))
            in[i] = reals_in_memory(g, &shape, c->fill[i], c->constant[i]);
        if (case_has_gradient(c, i) && !below(g, 4)) /* for other ops too */
            graph_put(g, in[i]);
    }
    *name = op->name;
    wf_tensor *y = c ? wf_apply(op, c->attr, n, in) : NULL;
    const int64_t count = y ? count_of(y) : 0;
    return count == 0 ? NULL : count > MOST ? wf_slice(wf_reshape(y, -1), 0, 0, MOST) : y;
}
