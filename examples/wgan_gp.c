/* SPDX-License-Identifier: MIT */
/* A Wasserstein GAN with a penalty on gradients (Gulrajani et al. 2017) for points on a ring of 8 clusters. The critic's gradient by its
 * input should have length 1 between points and generated ones: its deviation is part of the loss, and is differentiated again.
 *
 *   cc wgan_gp.c $(pkg-config --cflags --libs weft) -o wgan_gp
 *   ./wgan_gp            3,000 updates of the generator: 80 % of the generated points lie within 0.2 of a cluster's centre, and each
 *                        cluster has 4 % of them at least; else it exits with 1
 *   ./wgan_gp --steps 5  only a few updates; nothing is asked of the result
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/weft.h>

enum { CLUSTERS = 8, NOISE = 2, HIDDEN = 64, BATCH = 128, VALID = 1024, STEPS = 3000, CRITIC_STEPS = 3 };

static const double penalty_weight = 1, pi = 3.14159265358979;

struct net {
    struct wf_linear in, hidden, out;
    wf_registry *registry;
    struct wf_optimizer adam;
};
struct gan {
    struct net generator, critic;
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
    return wf_adam_init(&n->adam, n->registry, error, .lr = 1e-3, .beta1 = 0.5, .beta2 = 0.9);
}

static void net_close(struct net *n)
{
    wf_optimizer_free(&n->adam);
    wf_registry_free(n->registry);
}

static wf_tensor *net_forward(const struct net *n, wf_tensor *x)
{
    x = wf_relu(wf_linear_forward(&n->in, x));
    return wf_linear_forward(&n->out, wf_relu(wf_linear_forward(&n->hidden, x)));
}

static double even(int64_t i, double step) /* numbers that fill 0 .. 1 evenly; `step` differs for each use */
{
    return fmod(((double)i + 1) * step, 1);
}

/* Pairs of numbers from N(0,1) times `deviation` (Box and Muller 1958), moved to the clusters in turn if `ring`. */
static wf_tensor *points(wf_tape *tape, int64_t first, int64_t count, double deviation, bool ring)
{
    static wf_real x[VALID][2];
    for (int64_t i = 0; i < count; i++) {
        const double length = deviation * sqrt(-2 * log(1 - even(first + i, 0.7548776662466927))),
                     turn = 2 * pi * even(first + i, 0.5698402909980532), centre = 2 * pi / CLUSTERS * (double)(i % CLUSTERS);
        x[i][0] = (wf_real)(length * cos(turn) + ring * cos(centre));
        x[i][1] = (wf_real)(length * sin(turn) + ring * sin(centre));
    }
    return wf_input(tape, x[0], WF_SHAPE(count, 2), false);
}

/* The mean over points between real and generated ones of (|gradient of the critic| - 1)^2. */
static wf_tensor *penalty(const struct gan *g, wf_tape *tape, wf_tensor *real, wf_tensor *fake, int64_t first)
{
    wf_real share[BATCH];
    wf_tensor *slope;
    for (int i = 0; i < BATCH; i++)
        share[i] = (wf_real)even(first + i, 0.6180339887498949);
    wf_tensor *e = wf_input(tape, share, WF_SHAPE(BATCH, 1), true); /* so that what is made of it needs a gradient */
    wf_tensor *between = wf_add(fake, wf_mul(e, wf_subtract(real, fake)));
    if (wf_gradients(wf_sum(net_forward(&g->critic, between)), 1, &between, &slope, .create_graph = true) != WF_OK)
        return slope; /* poison; the tape has the error */
    return wf_mean(wf_square(wf_add_constant(wf_norm_dim(slope, 2, 1, false), -1)));
}

/* One update: of the critic, which is to tell points from generated ones, or of the generator, whose points the critic is to value. */
static wf_status update(struct gan *g, wf_tape *tape, int64_t number, bool critic, double *value, wf_error *error)
{
    const int64_t first = number * BATCH;
    wf_tape_reset(tape, WF_TRAIN, .step = (uint64_t)number);
    wf_tensor *fake = net_forward(&g->generator, points(tape, first, BATCH, 1, false)), *loss;
    if (critic) {
        wf_tensor *real = points(tape, first, BATCH, 0.05, true);
        fake = wf_detach(fake);
        loss = wf_subtract(wf_mean(net_forward(&g->critic, fake)), wf_mean(net_forward(&g->critic, real)));
        loss = wf_add(loss, wf_scale(penalty(g, tape, real, fake, first), penalty_weight));
    } else {
        loss = wf_neg(wf_mean(net_forward(&g->critic, fake)));
    }
    wf_grads_zero(wf_registry_grads(g->critic.registry)); /* those of the generator's update */
    if (wf_item(loss, value) != WF_OK || wf_backward(loss) != WF_OK)
        return wf_tape_status(tape, error);
    return wf_adam_step(critic ? &g->critic.adam : &g->generator.adam, error);
}

/* The part of the generated points near a centre, and the part near that which has fewest. */
static wf_status validate(const struct gan *g, wf_tape *tape, double *near, double *rarest, wf_error *error)
{
    static wf_real point[VALID][2];
    wf_tape_reset(tape, WF_INFER);
    if (wf_read(net_forward(&g->generator, points(tape, 50000000, VALID, 1, false)), point[0], 2 * VALID) != WF_OK)
        return wf_tape_status(tape, error);
    *near = 0, *rarest = 1;
    for (int c = 0; c < CLUSTERS; c++) {
        double part = 0, angle = 2 * pi / CLUSTERS * c;
        for (int i = 0; i < VALID; i++)
            part += (hypot(point[i][0] - cos(angle), point[i][1] - sin(angle)) < 0.2) / (double)VALID;
        *near += part, *rarest = fmin(*rarest, part);
    }
    return WF_OK;
}

int main(int argc, char **argv)
{
    static struct gan g;
    wf_error error = {0};
    const int64_t steps = argc == 3 && strcmp(argv[1], "--steps") == 0 ? atoll(argv[2]) : STEPS;
    double near = 0, rarest = 0, loss[2] = {0};
    wf_tape *tape = wf_tape_new(&error);
    const bool open = tape && net_open(&g.generator, NOISE, 2, 1, &error) == WF_OK && net_open(&g.critic, 2, 1, 2, &error) == WF_OK;
    wf_status status = open ? WF_OK : error.code;
    for (int64_t step = 0; step < steps && status == WF_OK; step++) {
        g.critic.adam.lr = g.generator.adam.lr = 1e-3 * (1 - (double)step / STEPS);
        for (int turn = 0; turn <= CRITIC_STEPS && status == WF_OK; turn++)
            status = update(&g, tape, step * (CRITIC_STEPS + 1) + turn, turn < CRITIC_STEPS, &loss[turn == CRITIC_STEPS], &error);
        if (status == WF_OK && (step % 500 == 0 || steps < 50))
            printf("step %lld: critic %.7g, generator %.7g\n", (long long)step, loss[0], loss[1]);
    }
    if (status == WF_OK)
        status = validate(&g, tape, &near, &rarest, &error);
    if (status == WF_OK)
        printf("near %.3f, rarest %.3f\n", near, rarest);
    else
        fprintf(stderr, "wgan_gp: %s\n", error.message);
    net_close(&g.generator);
    net_close(&g.critic);
    wf_tape_free(tape);
    return status != WF_OK || (steps >= STEPS && !(near >= 0.8 && rarest >= 0.04));
}
