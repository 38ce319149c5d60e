/* SPDX-License-Identifier: MIT */
/* A physics-informed network (Raissi et al. 2019): a network u(x, t) learns to solve Burgers' equation, in which a wave becomes a shock.
 * The derivatives of u by its input come from wf_gradients with .create_graph, and the loss is what they leave of the equation.
 *
 *   cc pinn_burgers.c $(pkg-config --cflags --libs weft) -o pinn_burgers
 *   ./pinn_burgers            4,000 updates: the relative error against the exact solution is below 2 %; else it exits with 1
 *   ./pinn_burgers --steps 5  only a few updates; nothing is asked of the result
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/weft.h>

enum { HIDDEN = 32, POINTS = 512, GRID = 50, STEPS = 4000 };

static const double pi = 3.14159265358979, viscosity = 0.1 / 3.14159265358979;

struct net {
    struct wf_linear in, hidden, deep, out;
};

static wf_tensor *net_forward(const struct net *n, wf_tensor *x) /* [N,2] -> [N,1] */
{
    x = wf_tanh(wf_linear_forward(&n->in, x));
    x = wf_tanh(wf_linear_forward(&n->hidden, x));
    return wf_linear_forward(&n->out, wf_tanh(wf_linear_forward(&n->deep, x)));
}

/* The derivatives of the elements of u by both inputs of their rows, [N,2]; they can be differentiated again. */
static wf_tensor *derivatives(wf_tensor *u, wf_tensor *x)
{
    wf_tensor *g;
    return wf_gradients(wf_sum(u), 1, &x, &g, .create_graph = true) == WF_OK ? g : u; /* on an error g is poison, and the tape has it */
}

static wf_tensor *column(wf_tensor *x, int i)
{
    return wf_slice(x, 1, i, 1); /* [N,2] -> [N,1] */
}

/* Burgers' equation for a flow, u_t + u u_x = v u_xx with u = -sin(pi x) at t = 0 and u = 0 at x = -1 and 1. Here x = 2 x0 - 1. */
static wf_tensor *burgers(const struct net *n, wf_tensor *x, wf_tensor **residual)
{
    wf_tensor *at = wf_affine(column(x, 0), 2, -1), *t = column(x, 1), *wall = wf_constant_minus(1, wf_mul(at, at));
    wf_tensor *u = wf_subtract(wf_mul(wf_mul(wall, t), net_forward(n, x)), wf_sin(wf_scale(at, pi)));
    if (!residual)
        return u;
    wf_tensor *g = derivatives(u, x), *ux = wf_scale(column(g, 0), 0.5), *uxx = wf_scale(column(derivatives(ux, x), 0), 0.5);
    *residual = wf_subtract(wf_add(column(g, 1), wf_mul(u, ux)), wf_scale(uxx, viscosity));
    return u;
}

/* Cole 1951: the ratio of two integrals of a normal density times a function, as sums. */
static double burgers_exact(double x0, double t)
{
    double above = 0, below = 0;
    for (int i = -400; i <= 400 && t > 0; i++) {
        const double z = 0.015 * i, y = 2 * x0 - 1 - sqrt(4 * viscosity * t) * z;
        const double f = exp(-z * z - cos(pi * y) / (2 * pi * viscosity));
        above -= sin(pi * y) * f;
        below += f;
    }
    return t > 0 ? above / below : -sin(pi * (2 * x0 - 1));
}

/* |u - exact| / |exact| on a grid. */
static wf_status error_of(const struct net *n, wf_tape *tape, double *relative, wf_error *error)
{
    static wf_real x[GRID * GRID][2], u[GRID * GRID];
    double difference = 0, norm = 0;
    for (int i = 0; i < GRID * GRID; i++)
        x[i][0] = (wf_real)((i / GRID + 0.5) / GRID), x[i][1] = (wf_real)((i % GRID + 0.5) / GRID);
    wf_tape_reset(tape, WF_INFER);
    if (wf_read(burgers(n, wf_input(tape, x[0], WF_SHAPE(GRID * GRID, 2), false), NULL), u, GRID * GRID) != WF_OK)
        return wf_tape_status(tape, error);
    for (int i = 0; i < GRID * GRID; i++) {
        const double exact = burgers_exact(x[i][0], x[i][1]);
        difference += (u[i] - exact) * (u[i] - exact);
        norm += exact * exact;
    }
    *relative = sqrt(difference / norm);
    return WF_OK;
}

static wf_status train(wf_registry *r, const struct net *n, wf_tape *tape, int64_t steps, wf_error *error)
{
    static wf_real x[POINTS][2];
    struct wf_optimizer adam = {0};
    wf_status status = wf_adam_init(&adam, r, error, .lr = 5e-3);
    for (int64_t step = 0; step < steps && status == WF_OK; step++) {
        for (int i = 0; i < POINTS; i++) /* points that fill the square evenly (Roberts' sequence), new ones in each step */
            x[i][0] = (wf_real)fmod((double)(step * POINTS + i) * 0.7548776662466927, 1),
            x[i][1] = (wf_real)fmod((double)(step * POINTS + i) * 0.5698402909980532, 1);
        double value;
        wf_tensor *residual = NULL;
        wf_tape_reset(tape, WF_TRAIN, .step = (uint64_t)step);
        burgers(n, wf_input(tape, x[0], WF_SHAPE(POINTS, 2), true), &residual);
        wf_tensor *loss = wf_keep(wf_mean(wf_mul(residual, residual)));
        if (wf_backward(loss) != WF_OK || wf_item(loss, &value) != WF_OK)
            status = wf_tape_status(tape, error);
        else if (step % 500 == 0 || steps < 50)
            printf("step %lld: loss %.7g\n", (long long)step, value);
        adam.lr = 5e-3 * 0.5 * (1 + cos(pi * (double)step / STEPS));
        status = status == WF_OK ? wf_adam_step(&adam, error) : status;
    }
    wf_optimizer_free(&adam);
    return status;
}

int main(int argc, char **argv)
{
    struct net n;
    wf_error error = {0};
    double relative = 0;
    const int64_t steps = argc == 3 && strcmp(argv[1], "--steps") == 0 ? atoll(argv[2]) : STEPS;
    wf_tape *tape = wf_tape_new(&error);
    wf_registry *r = tape ? wf_registry_new(&error) : NULL;
    wf_status status = error.code;
    if (r) {
        wf_linear_init(wf_sub(wf_root(r), "in"), &n.in, 2, HIDDEN);
        wf_linear_init(wf_sub(wf_root(r), "hidden"), &n.hidden, HIDDEN, HIDDEN);
        wf_linear_init(wf_sub(wf_root(r), "deep"), &n.deep, HIDDEN, HIDDEN);
        wf_linear_init(wf_sub(wf_root(r), "out"), &n.out, HIDDEN, 1);
        status = wf_registry_build(r, 1, &error);
    }
    if (status == WF_OK)
        status = train(r, &n, tape, steps, &error);
    if (status == WF_OK)
        status = error_of(&n, tape, &relative, &error);
    if (status == WF_OK)
        printf("relative error %.5f\n", relative);
    else
        fprintf(stderr, "pinn_burgers: %s\n", error.message);
    wf_registry_free(r);
    wf_tape_free(tape);
    return status != WF_OK || (steps >= STEPS && !(relative < 0.02));
}
