/* SPDX-License-Identifier: MIT */
/* Random graphs: gradients of all leaves and of retained tensors against central differences along random directions, in double; in
 * float the same passes without the comparison. Without gradients the value is the same. Then the check itself: each gradient of each op,
 * wrong by a thousandth, is found.
 *
 * WF_FUZZ_GRAPHS=N checks N graphs, WF_FUZZ_SEED=S those from seed S on. A failure names the seed and prints the graph. */
#include "random_graphs.h"

#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cases.h"
#include "check_weft.h"

static const bool exact = sizeof(wf_real) == 8;

static int64_t setting(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    return text ? atoll(text) : otherwise;
}

/* The slope along g->direction of the leaf g->moving, from two passes. */
static double slope(struct graph *g, double step)
{
    double value[2];
    for (int side = 0; side < 2; side++) {
        g->step = side ? step : -step;
        value[side] = graph_run(g, g->train ? WF_TRAIN : g->differentiates ? WF_GRADIENTS : WF_INFER);
    }
    return (value[1] - value[0]) / (2 * step);
}

struct outcome {
    int64_t graphs, ops, slopes, rough;
    char wrong[10000]; /* the first gradient that is not the slope */
};

/* One leaf: its gradient along a random direction against differences. Those at another step, and extrapolated ones, have to agree before
 * a gradient is called wrong: some graphs bend too much for one step. */
static void check_leaf(struct graph *g, int i, const wf_real *gradient, double value, struct outcome *o)
{
    int64_t n = g->leaf[i].count;
    wf_real direction[MOST];
    double norm = 0, along = 0, length = 0;
    wf_fill_normal(direction, n, 0, 1, g->seed, 5000 + (uint64_t)i);
    for (int64_t k = 0; k < n; k++)
        norm += (double)direction[k] * direction[k];
    for (int64_t k = 0; k < n; k++) {
        direction[k] /= (wf_real)sqrt(norm);
        along += (double)gradient[k] * direction[k];
        length += (double)gradient[k] * gradient[k];
    }
    g->moving = i;
    g->direction = direction;
    double bound = 1e-6 * sqrt(length) + 1e-8 * (1 + fabs(value)), d = slope(g, 1e-5);
    o->slopes++;
    if (fabs(d - along) > bound) {
        double wide = slope(g, 1e-3), half = slope(g, 5e-4), narrow = slope(g, 1e-6), better = (4 * half - wide) / 3;
        double apart = fmax(fabs(better - d), fabs(narrow - d));
        if (fabs(better - along) <= bound || fabs(narrow - along) <= 10 * bound) {
            o->rough++;
        } else if (apart > 0.1 * fabs(d - along)) {
            o->rough++;
        } else if (!*o->wrong) {
            snprintf(o->wrong, sizeof o->wrong,
                     "graph %llu: the gradient of leaf %d (%s, %lld elements) along a direction is %.12g, differences give %.12g\n%s",
                     (unsigned long long)g->seed, i, g->leaf[i].what, (long long)n, along, d, g->text);
        }
    }
    g->moving = -1;
}

/* All gradients, by one backward or by two, the second over ops that follow the first. wf_gradients of an input comes before, and gives
 * what the backward gives. */
static bool differentiate(struct graph *g)
{
    wf_tensor *chosen = NULL;
    wf_array a;
    wf_real before[MOST], after[MOST];
    const bool several = g->output[1], choose = !several && g->seed % 3 == 0;
    int64_t count = count_of(g->first);
    if (choose && (wf_gradients(g->output[0], 1, &g->first, &chosen, .gradient = g->weight, .retain = true) != WF_OK ||
                   wf_read(chosen, before, count) != WF_OK))
        return false;
    if (wf_backward(g->output[0], .gradient = g->weight, .retain = several) != WF_OK ||
        (several && wf_backward(wf_scale(g->output[1], 1)) != WF_OK))
        return false;
    if (choose) {
        ck_assert_int_eq(wf_grad(g->first, &a), WF_OK);
        wf_shape shape = wf_array_shape(&a);
        wf_array to = wf_array_contiguous(after, WF_REAL, &shape);
        wf_array_copy(&to, &a);
        for (int64_t i = 0; i < count; i++)
            ck_assert_msg(fabs((double)before[i] - (double)after[i]) <= (exact ? 1e-12 : 1e-4) * (1 + fabs((double)after[i])),
                          "graph %llu: wf_gradients gives %.15g, wf_backward %.15g\n%s", (unsigned long long)g->seed, (double)before[i],
                          (double)after[i], g->text);
    }
    return true;
}

static void check_graph(struct graph *g, uint64_t seed, struct outcome *o)
{
    g->seed = seed;
    g->train = seed % 4 == 0;
    g->moving = -1;
    wf_grads_zero(wf_registry_grads(g->registry));
    double value = graph_run(g, g->train ? WF_TRAIN : WF_GRADIENTS);
    int leaves = g->leaves;
    wf_real *gradient = calloc((size_t)(leaves * MOST), sizeof *gradient);
    ck_assert_msg(differentiate(g), "graph %llu: %s\n%s", (unsigned long long)seed, wf_tape_error(g->tape)->message, g->text);
    bool *used = calloc((size_t)leaves, sizeof *used);
    for (int i = 0; i < leaves; i++) {
        wf_array a;
        used[i] = wf_grad(g->leaf[i].tensor, &a) == WF_OK;
        if (!used[i])
            continue;
        wf_shape shape = wf_array_shape(&a);
        ck_assert_int_eq(wf_array_count(&a), g->leaf[i].count);
        wf_array to = wf_array_contiguous(gradient + i * MOST, WF_REAL, &shape);
        wf_array_copy(&to, &a);
        for (int64_t k = 0; k < g->leaf[i].count; k++)
            ck_assert_msg(isfinite(gradient[i * MOST + k]), "graph %llu: a gradient of leaf %d (%s) is %g\n%s", (unsigned long long)seed, i,
                          g->leaf[i].what, (double)gradient[i * MOST + k], g->text);
    }
    o->graphs++;
    o->ops += g->ops;
    if (!g->train && !g->differentiates) {
        g->moving = LEAVES;
        double again = graph_run(g, WF_INFER);
        ck_assert_msg(fabs(again - value) <= (exact ? 1e-10 : 1e-3) * (1 + fabs(value)),
                      "graph %llu: %.15g, but without gradients %.15g\n%s", (unsigned long long)seed, value, again, g->text);
    }
    /* Leaves that no output depends on: a sample. */
    for (int i = 0; exact && i < leaves && !*o->wrong; i++)
        if (used[i] || (seed + (uint64_t)i) % 16 == 0)
            check_leaf(g, i, gradient + i * MOST, value, o);
    g->moving = -1;
    free(gradient);
    free(used);
}

START_TEST(gradients_are_slopes)
{
    ck_ok(wf_set_threads(1, error));
    struct graph *g = graph_new();
    static struct outcome o;
    int64_t graphs = setting("WF_FUZZ_GRAPHS", sanitized() ? 100 : 400), seed = setting("WF_FUZZ_SEED", 1);
    for (int64_t i = 0; i < graphs && !*o.wrong; i++)
        check_graph(g, (uint64_t)(seed + i), &o);
    ck_assert_msg(!*o.wrong, "%s", o.wrong);
    if (getenv("VERBOSE"))
        printf("%lld graphs, %lld ops, %lld slopes, %lld of them too rough\n", (long long)o.graphs, (long long)o.ops, (long long)o.slopes,
               (long long)o.rough);
    ck_assert_msg(o.rough * 200 <= o.slopes, "%lld of %lld slopes are too rough", (long long)o.rough, (long long)o.slopes);
    graph_free(g);
}
END_TEST

/* --- the check finds errors ----------------------------------------------------------------------------------------- */

static const wf_op *changed;
static wf_status (*right_backward)(wf_call *c);
static int wrong_input;

/* The right backward, but the gradient of one input is too large by a thousandth: that input's part is computed from a larger gradient
 * of the result. */
static wf_status wrong_backward(wf_call *c)
{
    bool need[WF_MAX_INPUTS], others = false;
    wf_array dout[WF_MAX_OUTPUTS];
    wf_status status = WF_OK;
    memcpy(need, c->need, sizeof need);
    memcpy(dout, c->dout, sizeof dout);
    for (int i = 0; i < c->inputs; i++)
        others |= need[i] && i != wrong_input;
    if (need[wrong_input]) {
        memset(c->need, 0, sizeof c->need);
        c->need[wrong_input] = true;
        for (int j = 0; j < c->outputs; j++) {
            if (!dout[j].data)
                continue;
            wf_shape shape = wf_array_shape(&dout[j]);
            c->dout[j] = wf_call_temp(c, WF_REAL, &shape);
            wf_array_copy(&c->dout[j], &dout[j]);
            for (int64_t i = 0; i < wf_shape_count(&shape); i++)
                ((wf_real *)c->dout[j].data)[i] *= (wf_real)1.001;
        }
        status = right_backward(c);
        memcpy(c->dout, dout, sizeof dout);
        memcpy(c->need, need, sizeof need);
        c->need[wrong_input] = false;
    }
    if (status == WF_OK && others)
        status = right_backward(c);
    memcpy(c->need, need, sizeof need);
    return status;
}

/* Descriptors lie in memory that the loader made read-only. */
static void set_backward(const wf_op *op, wf_status (*backward)(wf_call *c))
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)&op->backward;
    ck_assert(mprotect((void *)(at / page * page), (size_t)(at % page + sizeof op->backward), PROT_READ | PROT_WRITE) == 0);
    wf_status (*volatile * place)(wf_call *) = (wf_status(*volatile *)(wf_call *))at;
    *place = backward;
}

START_TEST(finds_wrong_gradients)
{
    if (!exact)
        return;
    ck_ok(wf_set_threads(1, error));
    struct graph *g = graph_new();
    for (int k = 0; k < wf_op_count(); k++) {
        changed = wf_op_at(k);
        right_backward = changed->backward;
        g->prefer = changed;
        for (wrong_input = 0; wrong_input < WF_MAX_INPUTS; wrong_input++) {
            if (!operand_has_gradient(changed, wrong_input))
                continue;
            static struct outcome o;
            o = (struct outcome){0};
            set_backward(changed, wrong_backward);
            for (uint64_t seed = 1; seed <= 1000 && !*o.wrong; seed++)
                check_graph(g, seed, &o);
            set_backward(changed, right_backward);
            ck_assert_msg(*o.wrong, "%s: a gradient of input %d that is wrong by a thousandth is not found in %lld graphs", changed->name,
                          wrong_input, (long long)o.graphs);
            if (getenv("VERBOSE"))
                printf("%s, input %d: found in graph %lld\n", changed->name, wrong_input, (long long)o.graphs);
        }
    }
    graph_free(g);
}
END_TEST

WF_TEST_MAIN("random_graphs", gradients_are_slopes, finds_wrong_gradients)
