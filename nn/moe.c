/* SPDX-License-Identifier: MIT */
/* Mixture of experts. Plain C code chooses the experts, without a gradient; then each expert computes the rows that chose it. */
#include <string.h>

#include <weft/compute.h>
#include <weft/moe.h>

#include "internal.h"

void wf_moe_init_with(wf_scope scope, struct wf_moe *m, int64_t d, int64_t d_ff, int experts, const struct wf_moe_options *o)
{
    o = o ? o : &(struct wf_moe_options){0};
    const int chosen = o->chosen != 0 ? o->chosen : experts < 2 ? 1 : 2;
    *m = (struct wf_moe){.chosen = chosen,
                         .raw_weights = o->raw_weights,
                         .residual_dropout = dropout_valid(scope, o->residual_dropout) ? o->residual_dropout : 0};
    if (experts < 1 || chosen < 1 || chosen > experts) {
        wf_scope_fail(scope, WF_ERR_ARGUMENT, "a row cannot go to %d of %d experts", chosen, experts);
        return;
    }
    wf_linear_init(wf_sub(scope, "router"), &m->router, d, experts, .no_bias = true);
    m->expert = scope.registry ? wf_arena_get(scope.registry->arena, (size_t)experts * sizeof *m->expert) : NULL;
    if (!m->expert) {
        wf_scope_fail(scope, WF_ERR_MEMORY, "no memory for %d experts", experts);
        return;
    }
    m->experts = experts;
    for (int e = 0; e < experts; e++)
        wf_ffn_init(wf_sub_at(scope, "experts", e), &m->expert[e], d, d_ff, .activation = o->activation, .no_bias = o->no_bias,
                    .dropout = o->dropout);
}

/* --- choosing ------------------------------------------------------------------------------------------------------- */

struct choice {
    wf_array p;      /* [N, experts] */
    int32_t *chosen; /* [N, k] */
    int k;
};

/* Whether a > b, if NaN is less than every number. So a row of NaN also has k greatest elements. */
static bool greater(wf_real a, wf_real b)
{
    return a > b || (a == a && b != b);
}

/* Writes the indices of the k greatest elements of each row; ties in order of index. */
static void choose_body(void *ctx, int64_t begin, int64_t end)
{
    const struct choice *c = ctx;
    for (int64_t i = begin; i < end; i++) {
        const wf_real *p = (const wf_real *)c->p.data + i * c->p.stride[0];
        int32_t *best = c->chosen + i * c->k;
        for (int e = 0, have = 0; e < c->p.dim[1]; e++) {
            int at = have;
            while (at > 0 && greater(p[e * c->p.stride[1]], p[best[at - 1] * c->p.stride[1]]))
                at--;
            if (at == c->k)
                continue;
            have += have < c->k;
            for (int j = have - 1; j > at; j--)
                best[j] = best[j - 1];
            best[at] = e;
        }
    }
}

/* The choices of all rows, sorted by expert. A slot is an index in this order. */
struct order {
    wf_tensor *row;    /* ids [N k]: the row of a slot */
    wf_tensor *choice; /* ids [N k]: the index of a slot's choice in `chosen` [N, k] */
    int64_t *begin;    /* [experts + 1]: expert e has the slots begin[e] .. begin[e + 1] - 1 */
};

static bool sort_by_expert(wf_tape *tape, const int32_t *chosen, int64_t n, int k, int experts, struct order *order)
{
    int32_t *row = wf_tape_memory(tape, (size_t)(n * k) * sizeof *row), *choice = wf_tape_memory(tape, (size_t)(n * k) * sizeof *choice);
    int64_t *next = wf_tape_memory(tape, (size_t)experts * sizeof *next);
    order->begin = wf_tape_memory(tape, ((size_t)experts + 1) * sizeof *order->begin);
    if (!row || !choice || !next || !order->begin)
        return false;
    memset(order->begin, 0, ((size_t)experts + 1) * sizeof *order->begin);
    for (int64_t i = 0; i < n * k; i++)
        order->begin[chosen[i] + 1]++;
    for (int e = 0; e < experts; e++) {
        next[e] = order->begin[e];
        order->begin[e + 1] += order->begin[e];
    }
    for (int64_t i = 0; i < n * k; i++) {
        int64_t slot = next[chosen[i]]++;
        row[slot] = (int32_t)(i / k);
        choice[slot] = (int32_t)i;
    }
    order->row = wf_ids_of(tape, row, &(wf_shape){1, {n * k}});
    order->choice = wf_ids_of(tape, choice, &(wf_shape){1, {n * k}});
    return true;
}

/* The experts that each row of p [N, experts] goes to: [N, k], in the tape's memory. NULL: the tape has an error. */
static int32_t *choose(wf_tape *tape, const wf_tensor *p, int k)
{
    struct choice c = {.k = k};
    if (wf_view(p, &c.p) != WF_OK)
        return NULL;
    const int64_t n = c.p.dim[0];
    c.chosen = wf_tape_memory(tape, (size_t)(n * k) * sizeof *c.chosen);
    if (c.chosen)
        wf_parallel_ranges(n, 1 + 4096 / c.p.dim[1], (double)(n * c.p.dim[1]), choose_body, &c);
    return c.chosen;
}

/* --- forward -------------------------------------------------------------------------------------------------------- */

/* The results of the experts [N k, d], one row for each slot. x is [N, d]. */
static wf_tensor *run_experts(const struct wf_moe *m, wf_tape *tape, wf_tensor *x, const struct order *order)
{
    wf_tensor **part = wf_tape_memory(tape, (size_t)m->experts * sizeof(wf_tensor *)), *rows = wf_index_select(x, 0, order->row);
    int parts = 0;
    for (int e = 0; part && e < m->experts; e++) {
        const int64_t begin = order->begin[e], n = order->begin[e + 1] - begin;
        if (n == 0)
            continue;
        wf_tensor *own = wf_slice(rows, 0, begin, n);
        part[parts++] = wf_ffn_forward(&m->expert[e], own); /* [n, d] */
        wf_release(own);
    }
    if (parts == 0)
        return rows; /* x has no rows; or there is no memory for `part`, and the tape has the error */
    wf_release(rows);
    wf_tensor *all = parts == 1 ? part[0] : wf_concat(part, parts, 0);
    for (int i = 0; parts > 1 && i < parts; i++)
        wf_release(part[i]);
    return all;
}

/* The weights of the choices [N k, 1], one row for each slot. */
static wf_tensor *weights_of(const struct wf_moe *m, wf_tensor *p, wf_tensor *chosen, const struct order *order)
{
    wf_tensor *w = wf_gather(p, 1, chosen); /* [N, k] */
    if (!m->raw_weights) {
        wf_tensor *sum = wf_sum_dim(w, 1, true), *share = wf_div(w, sum);
        wf_release(sum);
        wf_release(w);
        w = share;
    }
    wf_tensor *by_slot = wf_index_select(wf_reshape(w, -1, 1), 0, order->choice);
    wf_release(w);
    return by_slot;
}

wf_tensor *wf_moe_forward_with(const struct wf_moe *m, wf_tensor *x, const struct wf_moe_call *call)
{
    static const struct wf_moe_call none;
    call = call ? call : &none;
    if (call->routing)
        *call->routing = (struct wf_moe_routing){x, x}; /* if x is poison, so is the routing */
    wf_tape *tape = wf_tape_of(x);
    if (!tape || wf_is_poison(x))
        return wf_neg(x); /* x is invalid: this op returns poison, and the error is set */
    const wf_shape shape = wf_shape_of(x);
    const int64_t d = wf_dim(x, -1), n = d > 0 && shape.ndim > 0 ? wf_shape_count(&shape) / d : 0;
    if (m->experts < 1 || shape.ndim < 1)
        return wf_tape_fail(tape, WF_ERR_SHAPE, "moe: x must be [...,d], and the module needs wf_moe_init");
    if (n > INT32_MAX / m->chosen)
        return wf_tape_fail(tape, WF_ERR_SHAPE, "moe: %lld rows are too many", (long long)n);
    wf_tensor *rows = wf_reshape(x, n, d), *logits = wf_linear_forward(&m->router, rows), *p = wf_softmax(logits); /* [N, experts] */
    wf_release(logits);
    struct order order;
    const int32_t *chosen = choose(tape, p, m->chosen);
    if (!chosen || !sort_by_expert(tape, chosen, n, m->chosen, m->experts, &order))
        return wf_tape_fail(tape, WF_ERR_MEMORY, "moe: no memory for the routing");
    wf_tensor *ids = wf_ids_of(tape, chosen, &(wf_shape){2, {n, m->chosen}});
    wf_tensor *weight = weights_of(m, p, ids, &order), *y = run_experts(m, tape, rows, &order), *weighted = wf_mul(y, weight);
    wf_release(y);
    wf_release(weight);
    if (call->routing)
        *call->routing = (struct wf_moe_routing){p, ids};
    else
        wf_release(p);
    /* Each row adds the results of its experts in the order of the experts, whatever the other rows chose. */
    wf_tensor *sum = wf_index_add(wf_zeros(tape, &(wf_shape){2, {n, d}}), 0, order.row, weighted);
    wf_release(weighted);
    return end_branch(wf_reshape_to(sum, &shape), m->residual_dropout, call->residual);
}

/* --- balance -------------------------------------------------------------------------------------------------------- */

wf_tensor *wf_moe_balance(const struct wf_moe_routing *routing, int layers)
{
    wf_tape *tape = layers > 0 ? wf_tape_of(routing[0].probabilities) : NULL;
    if (!tape)
        return wf_sum(NULL);
    const int64_t experts = wf_dim(routing[0].probabilities, 1);
    wf_real *count = wf_tape_memory(tape, (size_t)experts * sizeof *count);
    wf_tensor *sum = NULL;
    double rows = 0;
    for (int64_t e = 0; count && e < experts; e++)
        count[e] = 0;
    for (int l = 0; count && l < layers; l++) {
        wf_tensor *p = routing[l].probabilities;
        wf_array ids;
        if (wf_dim(p, 1) != experts)
            return wf_tape_fail(tape, WF_ERR_SHAPE, "moe: layer %d has %lld experts, but the first has %lld", l, (long long)wf_dim(p, 1),
                                (long long)experts);
        if (wf_view(routing[l].chosen, &ids) != WF_OK)
            break;
        for (int64_t i = 0; i < wf_array_count(&ids); i++)
            count[((const int32_t *)ids.data)[i]]++;
        rows += (double)ids.dim[0];
        wf_tensor *part = wf_sum_dim(p, 0, false); /* [experts] */
        sum = sum ? wf_add(sum, part) : part;
    }
    if (!count || !sum)
        return wf_tape_fail(tape, WF_ERR_MEMORY, "moe: no memory for the balance");
    wf_tensor *load = wf_input(tape, count, &(wf_shape){1, {experts}}, false);
    return wf_scale(wf_sum(wf_mul(sum, load)), rows > 0 ? (double)experts / (rows * rows) : 0);
}
