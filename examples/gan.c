/* SPDX-License-Identifier: MIT */
/* A generative adversarial network (Goodfellow et al. 2014) for points on a ring of 8 clusters: two networks with an optimiser each, which
 * wf_fit trains in turns. Its folder is gan-run, and --resume goes on from there.
 *
 *   cc gan.c $(pkg-config --cflags --libs weft) -o gan
 *   ./gan            5,000 updates: 80 % of the generated points lie within 0.2 of a cluster's centre, and each cluster has 4 % of them at
 *                    least; else it exits with 1
 *   ./gan --steps 5  only a few updates; nothing is asked of the result
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/weft.h>

enum { CLUSTERS = 8, NOISE = 4, HIDDEN = 64, BATCH = 128, VALID = 1024, STEPS = 5000 };

struct net {
    struct wf_linear in, hidden, out;
    wf_registry *registry;
    struct wf_optimizer adam;
};
struct gan {
    struct net generator, discriminator;
};

static wf_status net_open(struct net *n, int64_t in, int64_t out, uint64_t seed, wf_error *error)
{
    if (!(n->registry = wf_registry_new(error)))
        return error->code;
    wf_linear_init(wf_sub(wf_root(n->registry), "in"), &n->in, in, HIDDEN);
    wf_linear_init(wf_sub(wf_root(n->registry), "hidden"), &n->hidden, HIDDEN, HIDDEN);
    wf_linear_init(wf_sub(wf_root(n->registry), "out"), &n->out, HIDDEN, out);
    if (wf_registry_build(n->registry, seed, error) != WF_OK)
        return error->code;
    return wf_adam_init(&n->adam, n->registry, error, .lr = 1e-3, .beta1 = 0.5);
}

static void net_close(struct net *n)
{
    wf_optimizer_free(&n->adam);
    wf_registry_free(n->registry);
}

static wf_tensor *net_forward(const struct net *n, wf_tensor *x)
{
    x = wf_leaky_relu(wf_linear_forward(&n->in, x), 0.2);
    return wf_linear_forward(&n->out, wf_leaky_relu(wf_linear_forward(&n->hidden, x), 0.2));
}

static const double apart = 2 * 3.14159265 / CLUSTERS; /* the angle between clusters on a ring of radius 1 */

/* Noise of the tape, and the points of a batch below, are functions of the step. */
static wf_tensor *fake(const struct gan *g, wf_tape *tape, int64_t count)
{
    return net_forward(&g->generator, wf_normal(tape, WF_SHAPE(count, NOISE), 0, 1)); /* [count,2] */
}

static wf_tensor *real(wf_tape *tape, uint64_t step)
{
    wf_real point[BATCH][2];
    wf_rng rng = wf_rng_new(2, step);
    for (int i = 0; i < BATCH; i++) {
        double angle = apart * (double)wf_rng_below(&rng, CLUSTERS);
        point[i][0] = (wf_real)(cos(angle) + 0.05 * wf_rng_normal(&rng));
        point[i][1] = (wf_real)(sin(angle) + 0.05 * wf_rng_normal(&rng));
    }
    return wf_input(tape, point[0], WF_SHAPE(BATCH, 2), false);
}

static wf_status next(void *ctx, int64_t step, double *weight, wf_error *error)
{
    (void)ctx, (void)step, (void)error;
    *weight = BATCH;
    return WF_OK;
}

/* Sum of the binary cross-entropies of the discriminator's logits with one target, divided by the weight. */
static wf_tensor *judged(const struct gan *g, wf_tensor *points, double target, double weight)
{
    wf_tensor *logits = net_forward(&g->discriminator, points), *targets = wf_full(wf_tape_of(logits), WF_SHAPE(BATCH, 1), target);
    return wf_scale(wf_bce_with_logits(logits, targets, .reduction = WF_REDUCE_SUM), 1 / weight);
}

/* Turn 0 trains the discriminator to tell points from generated ones, turn 1 the generator to have its own taken for points. */
static wf_tensor *loss(void *ctx, struct wf_micro_batch *p)
{
    wf_tensor *generated = fake(ctx, p->tape, BATCH);
    if (p->phase == 1)
        return judged(ctx, generated, 1, p->weight);
    return wf_add(judged(ctx, real(p->tape, (uint64_t)p->step), 1, p->weight), judged(ctx, wf_detach(generated), 0, p->weight));
}

/* The part of the points near a centre, and the part near that which has fewest. */
static wf_status validate(void *ctx, wf_tape *tape, double *value, wf_error *error)
{
    static wf_real point[VALID][2];
    double near[CLUSTERS] = {0};
    wf_tape_reset(tape, WF_INFER);
    if (wf_read(fake(ctx, tape, VALID), point[0], 2 * VALID) != WF_OK)
        return wf_tape_status(tape, error);
    value[0] = 0, value[1] = 1;
    for (int c = 0; c < CLUSTERS; c++) {
        for (int i = 0; i < VALID; i++)
            near[c] += (hypot(point[i][0] - cos(apart * c), point[i][1] - sin(apart * c)) < 0.2) / (double)VALID;
        value[0] += near[c];
        value[1] = fmin(value[1], near[c]);
    }
    return WF_OK;
}

static void print(void *ctx, const struct wf_fit_event *e)
{
    (void)ctx;
    if (e->kind == WF_EVENT_VALID)
        printf("step %lld: near %.3f, rarest %.3f\n", (long long)e->step, e->value[0], e->value[1]);
}

int main(int argc, char **argv)
{
    static struct gan g;
    struct wf_fit_result result = {0};
    wf_error error = {0};
    const struct wf_metric metric[] = {{.name = "near", .higher = true}, {.name = "rarest", .higher = true}};
    const char *const turns[] = {"discriminator", "generator", NULL};
    struct wf_task task = {WF_TASK_ABI, .name = "gan", .phases = turns, .next = next, .loss = loss, .validate = validate};
    struct wf_fit_options options = {.out = "gan-run", .steps = STEPS, .save_every = 500, .valid_every = 500, .event = print, .ctx = &g};
    task.metric = metric, task.metrics = 2;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--resume") == 0)
            options.resume = true;
        else if (strcmp(argv[i], "--steps") == 0 && i + 1 < argc)
            options.steps = atoll(argv[++i]);
    const bool opened = net_open(&g.generator, NOISE, 2, 1, &error) == WF_OK && net_open(&g.discriminator, 2, 1, 2, &error) == WF_OK;
    options.registry = (struct wf_fit_registry[]){{"g", g.generator.registry}, {"d", g.discriminator.registry}}, options.registries = 2;
    const struct wf_fit_optimizer both[] = {{"adam_d", &g.discriminator.adam, .phase = 0}, {"adam_g", &g.generator.adam, .phase = 1}};
    options.optimizer = both, options.optimizers = 2;
    wf_status status = opened ? wf_fit(&task, &options, &result, &error) : error.code;
    if (status != WF_OK)
        fprintf(stderr, "gan: %s\n", error.message);
    net_close(&g.generator);
    net_close(&g.discriminator);
    return status != WF_OK || (options.steps >= STEPS && !(result.value[0] >= 0.8 && result.value[1] >= 0.04));
}
