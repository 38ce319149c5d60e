/* SPDX-License-Identifier: MIT */
/* Building a random graph: see random_graphs.h. */
#include "random_graphs.h"

#include <math.h>

#include <weft/internal/minmax.h>
#include <weft/internal/ops_all.h>

#include "check_weft.h"

/* --- notes of the base run ------------------------------------------------------------------------------------------ */

static bool base(struct graph *g)
{
    return g->moving < 0;
}

static wf_real *note(struct graph *g, int64_t count)
{
    ck_assert_msg(g->noted + count <= g->room, "graph %llu takes more notes than there is room for", (unsigned long long)g->seed);
    g->noted += count;
    return g->notes + g->noted - count;
}

static void read_all(const struct graph *g, const wf_tensor *x, wf_real *value)
{
    ck_assert(count_of(x) <= MOST * 4);
    ck_assert_msg(wf_read(x, value, count_of(x)) == WF_OK, "graph %llu: %s\n%s", (unsigned long long)g->seed,
                  wf_tape_error(g->tape)->message, g->text);
}

wf_tensor *graph_fixed(struct graph *g, wf_tensor *x)
{
    int64_t count = count_of(x);
    wf_real *value = note(g, count);
    wf_shape shape = wf_shape_of(x);
    if (!base(g))
        return wf_input(g->tape, value, &shape, false);
    read_all(g, x, value);
    return x;
}

/* The largest magnitude of x at the base point. */
static double greatest(struct graph *g, wf_tensor *x)
{
    wf_real *noted = note(g, 1), value[MOST * 4];
    if (!base(g))
        return *noted;
    read_all(g, x, value);
    *noted = 0;
    for (int64_t i = 0; i < count_of(x); i++) {
        ck_assert_msg(isfinite(value[i]), "graph %llu: a value is %g\n%s", (unsigned long long)g->seed, (double)value[i], g->text);
        *noted = WF_MAX(*noted, value[i] < 0 ? -value[i] : value[i]);
    }
    return *noted;
}

/* --- leaves --------------------------------------------------------------------------------------------------------- */

/* Registers a leaf at the base point; its value where it is now, for which `moved` has room. */
static const wf_real *leaf(struct graph *g, const char *what, wf_real *value, int64_t count, wf_real *moved)
{
    int i = g->leaves++;
    ck_assert_int_lt(i, LEAVES);
    if (base(g))
        g->leaf[i] = (struct leaf){.what = what, .value = value, .count = count};
    if (g->moving != i)
        return value;
    for (int64_t k = 0; k < count; k++)
        moved[k] = value[k] + (wf_real)(g->step * g->direction[k]);
    return moved;
}

static wf_tensor *input(struct graph *g, const wf_shape *shape, bool needs_grad)
{
    int64_t count = wf_shape_count(shape);
    wf_real moved[MOST], *value = note(g, count);
    if (base(g))
        wf_fill_normal(value, count, 0, 1, g->seed, 1000 + (uint64_t)g->noted);
    wf_tensor *x = wf_input(g->tape, needs_grad ? leaf(g, "input", value, count, moved) : value, shape, needs_grad);
    if (needs_grad && base(g))
        g->leaf[g->leaves - 1].tensor = x;
    return x;
}

static void set_parameters(struct graph *g)
{
    for (int i = 0; i < wf_registry_count(g->registry); i++) {
        wf_tensor *x = wf_registry_at(g->registry, i);
        const struct wf_parameter_info *info = wf_parameter_info(x);
        int64_t count = count_of(x);
        wf_real moved[MOST], *value = note(g, count), *slab = info->value.data;
        if (base(g))
            wf_fill_normal(value, count, 0, 0.7, g->seed, (uint64_t)i);
        memcpy(slab, info->frozen ? value : leaf(g, info->name, value, count, moved), (size_t)count * sizeof *slab);
        if (!info->frozen && base(g))
            g->leaf[g->leaves - 1].tensor = x;
    }
    g->parameters = g->leaves;
}

wf_tensor *graph_probed(struct graph *g, wf_tensor *x)
{
    int64_t count = count_of(x);
    wf_real moved[MOST], *value = note(g, count);
    if (count > MOST || g->leaves >= LEAVES - 2)
        return NULL;
    if (base(g)) {
        memset(value, 0, (size_t)count * sizeof *value);
        leaf(g, "retained", value, count, moved);
        return g->leaf[g->leaves - 1].tensor = wf_retain_grad(x);
    }
    wf_shape shape = wf_shape_of(x);
    bool mine = g->moving == g->leaves;
    const wf_real *now = leaf(g, "retained", value, count, moved);
    return mine ? wf_add(x, wf_input(g->tape, now, &shape, false)) : x;
}

/* --- a pass -------------------------------------------------------------------------------------------------------- */

const wf_real *graph_values(struct graph *g, enum wf_fill fill, int64_t count)
{
    wf_real *value = note(g, count);
    wf_rng rng = wf_rng_new(g->seed, 1000 + (uint64_t)g->noted);
    if (base(g))
        wf_case_fill(fill, 0, count, &rng, value);
    return value;
}

void graph_put(struct graph *g, wf_tensor *x)
{
    const double most = greatest(g, x);
    ck_assert_int_lt(g->pooled, POOL);
    g->pool[g->pooled++] = most > 3 ? wf_scale(x, 3 / most) : x;
}

static void write_op(struct graph *g, const char *name, const wf_tensor *x)
{
    char shape[96];
    wf_shape s = wf_shape_of(x);
    if (base(g) && g->written + 128 < sizeof g->text)
        g->written += (size_t)snprintf(g->text + g->written, sizeof g->text - g->written, "%s%s %s", g->written ? ", " : "", name,
                                       wf_shape_text(&s, shape, sizeof shape));
}

static void one_op(struct graph *g)
{
    const char *name;
    wf_tensor *x = graph_op(g, &name);
    if (!x)
        return;
    g->ops++;
    write_op(g, name, x);
    graph_put(g, x);
}

static wf_tensor *part_of_loss(struct graph *g, wf_tensor *x)
{
    wf_shape shape = wf_shape_of(x);
    return below(g, 4) && count_of(x) <= MOST ? wf_sum(wf_mul(x, input(g, &shape, false))) : below(g, 2) ? wf_sum(x) : wf_mean(x);
}

/* All tensors that no op used, so that each op has a gradient to pass on, and some others; or, with other tensors, one of several elements
 * whose gradient is given. */
static void outputs(struct graph *g)
{
    wf_tensor *loss = wf_mean(g->first), *other = loss; /* so that there is a gradient in any case */
    for (int i = g->given; i < g->pooled; i++)
        if (!g->chosen[i] || !below(g, 8))
            loss = wf_add(loss, part_of_loss(g, g->pool[i]));
    g->output[0] = loss;
    g->output[1] = below(g, 3) ? NULL : wf_add(other, part_of_loss(g, graph_any(g)));
    g->weight = NULL;
    if (below(g, 4))
        return;
    wf_shape shape = wf_shape_of(g->pool[g->pooled - 1]);
    g->output[0] = wf_add(g->pool[g->pooled - 1], loss);
    if (below(g, 2) && wf_shape_count(&shape) <= MOST)
        g->weight = input(g, &shape, false);
}

static double objective(const struct graph *g)
{
    wf_real value[MOST * 4], weight[MOST * 4];
    double sum = 0;
    for (int k = 0; k < 2 && g->output[k]; k++) {
        read_all(g, g->output[k], value);
        if (g->weight && k == 0)
            read_all(g, g->weight, weight);
        for (int64_t i = 0; i < count_of(g->output[k]); i++)
            sum += g->weight && k == 0 ? (double)value[i] * weight[i] : value[i];
    }
    return sum;
}

double graph_run(struct graph *g, wf_mode mode)
{
    g->tape = g->tapes[g->seed % 2];
    g->rng = wf_rng_new(g->seed, 1);
    g->differentiates = false;
    g->noted = g->leaves = g->pooled = g->ops = g->parts = 0;
    memset(g->chosen, 0, sizeof g->chosen);
    if (base(g))
        g->written = 0;
    wf_tape_reset(g->tape, mode, .seed = g->seed, .step = 1, .exact = true);
    set_parameters(g);
    for (int i = 0; i < wf_registry_count(g->registry); i++)
        g->pool[g->pooled++] = wf_registry_at(g->registry, i);
    int64_t B = 1 + below(g, 3), T = 1 + below(g, 4);
    const wf_shape shapes[] = {{3, {B, T, 4}}, {3, {B, 1 + below(g, 4), 6}}, {2, {T, 4}}, {2, {below(g, 2) ? 4 : 6, 3}}, {1, {4}}, {0}};
    g->pool[g->pooled++] = g->first = input(g, &shapes[0], true);
    for (int i = 1; i < 6; i++)
        if (below(g, 3))
            g->pool[g->pooled++] = input(g, &shapes[i], below(g, 4));
    g->given = g->pooled;
    for (int64_t want = 5 + below(g, g->prefer ? 4 : 36), tries = 0;
         g->ops < want && tries < 200 && g->pooled < POOL - 16 && g->leaves < LEAVES - 2; tries++)
        one_op(g);
    outputs(g);
    return objective(g);
}

struct graph *graph_new(void)
{
    static const wf_shape shapes[] = {{1, {4}},    {1, {6}},       {2, {4, 4}}, {2, {6, 4}}, {2, {5, 4}},
                                      {2, {1, 4}}, {3, {2, 1, 4}}, {0},         {1, {3}}};
    wf_error error = {0};
    struct graph *graph = calloc(1, sizeof *graph);
    *graph = (struct graph){
        .moving = -1, .room = 1 << 18, .tapes = {wf_tape_new(&error), wf_tape_new(&error)}, .registry = wf_registry_new(&error)};
    graph->notes = malloc((size_t)graph->room * sizeof *graph->notes);
    wf_scope s = wf_root(graph->registry);
    for (int i = 0; i < (int)(sizeof shapes / sizeof *shapes); i++)
        wf_parameter_with(wf_sub_at(s, "p", i), "p", &shapes[i], &(struct wf_parameter_options){.frozen = i % 4 == 3});
    /* Tied: the matrix of the parameters above. */
    wf_linear_init(wf_sub(s, "linear"), &graph->module.linear, 4, 4, .tied = wf_registry_at(graph->registry, 2));
    wf_mha_init(wf_sub(s, "self"), &graph->module.self, 4, 2, .kv_heads = 1);
    wf_mha_init(wf_sub(s, "cross"), &graph->module.cross, 4, 2, .cross = true, .d_memory = 6, .no_bias = true, .dropout = 0.2);
    static const enum wf_activation activation[] = {WF_GELU, WF_GELU_TANH, WF_SILU, WF_SWIGLU, WF_GEGLU_TANH};
    for (int i = 0; i < 5; i++)
        wf_ffn_init(wf_sub_at(s, "ffn", i), &graph->module.ffn[i], 4, 6, .activation = activation[i], .dropout = i == 2 ? 0.1 : 0);
    wf_rms_norm_init(wf_sub(s, "rms"), &graph->module.rms, 4, .eps = 0.05);
    wf_layer_norm_init(wf_sub(s, "norm"), &graph->module.norm, 4, .eps = 0.05);
    ck_assert_msg(graph->tapes[0] && graph->tapes[1] && wf_registry_build(graph->registry, 1, &error) == WF_OK, "%s", error.message);
    wf_tape_erase(graph->tapes[1]);
    return graph;
}

void graph_free(struct graph *graph)
{
    wf_tape_free(graph->tapes[0]);
    wf_tape_free(graph->tapes[1]);
    wf_registry_free(graph->registry);
    free(graph->notes);
    free(graph);
}
