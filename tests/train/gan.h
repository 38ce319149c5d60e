/* SPDX-License-Identifier: MIT */
/* A program whose update has two phases with an optimiser each: a GAN of points of the plane. */
#ifndef TESTS_GAN_H
#define TESTS_GAN_H

#include "stranger.h"

/* A generator of points of the plane and a discriminator, each a perceptron of one hidden layer. */
enum { NOISE = 4, HIDDEN = 16, POINTS = 32 };
struct net {
    wf_registry *registry;
    struct wf_linear up, down;
    struct wf_optimizer adam;
};
struct gan {
    struct seen seen; /* first, since it is the context of the events */
    struct net generator, discriminator;
    double losses[2];
};

static inline void net_open(struct net *n, int64_t in, int64_t out, uint64_t seed, double lr)
{
    n->registry = wf_registry_new(NULL);
    wf_linear_init(wf_sub(wf_root(n->registry), "up"), &n->up, in, HIDDEN);
    wf_linear_init(wf_sub(wf_root(n->registry), "down"), &n->down, HIDDEN, out);
    ck_ok(wf_registry_build(n->registry, seed, error));
    ck_ok(wf_adamw_init(&n->adam, n->registry, error, .lr = lr, .beta1 = 0.5));
}

static inline void net_close(struct net *n)
{
    wf_optimizer_free(&n->adam);
    wf_registry_free(n->registry);
}

static inline wf_tensor *net_forward(const struct net *n, wf_tensor *x)
{
    return wf_linear_forward(&n->down, wf_dropout(wf_tanh(wf_linear_forward(&n->up, x)), 0.1));
}

static inline struct gan *gan_open(void)
{
    struct gan *g = calloc(1, sizeof *g);
    ck_ok(wf_init(error, .threads = 1));
    net_open(&g->generator, NOISE, 2, 1, 0.01);
    net_open(&g->discriminator, 2, 1, 2, 0.02);
    return g;
}

static inline void gan_close(struct gan *g)
{
    net_close(&g->generator);
    net_close(&g->discriminator);
    free(g);
}

static inline wf_status gan_next(void *ctx, int64_t step, double *weight, wf_error *error)
{
    (void)ctx, (void)step, (void)error;
    *weight = POINTS;
    return WF_OK;
}

/* Least squares (Mao et al. 2017). */
static inline wf_tensor *squares(wf_tensor *logits, double target, double weight)
{
    wf_tensor *d = wf_affine(logits, 1, -target);
    return wf_scale(wf_sum(wf_mul(d, d)), 1 / weight);
}

static inline wf_tensor *gan_loss(void *ctx, struct wf_micro_batch *p)
{
    struct gan *g = ctx;
    wf_real noise[POINTS][NOISE], real[POINTS][2];
    wf_fill_normal(noise[0], POINTS * NOISE, 0, 1, 7, (uint64_t)p->step);
    wf_fill_normal(real[0], POINTS * 2, 2, 0.5, 8, (uint64_t)p->step);
    int64_t first = POINTS * p->index / p->count, rows = POINTS * (p->index + 1) / p->count - first;
    wf_tape_first_row(p->tape, (uint64_t)first);
    wf_tensor *fake = net_forward(&g->generator, wf_input(p->tape, noise[first], &(wf_shape){2, {rows, NOISE}}, false));
    p->report[0] = wf_scale(wf_sum(wf_slice(fake, 1, 0, 1)), 1 / p->weight / 2); /* the mean over both phases */
    if (p->phase == 1)
        return squares(net_forward(&g->discriminator, fake), 1, p->weight);
    wf_tensor *x = wf_input(p->tape, real[first], &(wf_shape){2, {rows, 2}}, false);
    return wf_add(squares(net_forward(&g->discriminator, x), 1, p->weight),
                  squares(net_forward(&g->discriminator, wf_detach(fake)), 0, p->weight));
}

static inline void gan_event(void *ctx, const struct wf_fit_event *e)
{
    see_fit(ctx, e);
    memcpy(((struct gan *)ctx)->losses, e->losses, sizeof(double[2]));
}

static const struct wf_task gan_task = {.abi = WF_TASK_ABI,
                                        .name = "gan",
                                        .phases = (const char *const[]){"discriminator", "generator", NULL},
                                        .reports = (const char *const[]){"x", NULL},
                                        .next = gan_next,
                                        .loss = gan_loss};

static inline struct wf_fit_options gan_options(struct gan *g, const char *out)
{
    struct wf_fit_options o = options_of_two(
        out, g, gan_event, (struct wf_fit_registry[]){{"generator", g->generator.registry}, {"discriminator", g->discriminator.registry}},
        (struct wf_fit_optimizer[]){{"g", &g->generator.adam, .phase = 1}, {"d", &g->discriminator.adam, .phase = 0}});
    o.steps = 30;
    o.clip = 0.5;
    o.save_every = 8;
    o.log_every = 1;
    o.seed = 3;
    return o;
}

#endif
