/* SPDX-License-Identifier: MIT */
/* Model-agnostic meta-learning (Finn et al. 2017): a network learns weights from which one step of gradient descent, on 10 points of a sine
 * wave that it has not seen, fits the wave. The step itself is differentiated: its gradients are made with .create_graph.
 *
 *   cc maml.c $(pkg-config --cflags --libs weft) -o maml
 *   ./maml            3,000 updates: after one step the mean squared error on new waves is below 0.5, and below a sixth of that before;
 *                     else it exits with 1
 *   ./maml --steps 5  only a few updates; nothing is asked of the result
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/weft.h>

enum { TASKS = 25, SHOTS = 10, HIDDEN = 40, LAYERS = 3, WEIGHTS = 2 * LAYERS, STEPS = 3000, TRIALS = 40 };

static const double inner_rate = 0.01;

struct net {
    struct wf_linear layer[LAYERS];
};

/* Sine waves of different amplitudes and phases, a task each, and points of them: one set to learn from, one to be judged by. */
struct waves {
    wf_real x[2][TASKS][SHOTS], y[2][TASKS][SHOTS];
};

static double even(int64_t i, double step, double low, double high) /* numbers that fill low .. high evenly */
{
    return low + (high - low) * fmod((double)i * step, 1);
}

static void waves_make(struct waves *w, int64_t first)
{
    for (int set = 0; set < 2; set++)
        for (int t = 0; t < TASKS; t++) {
            const double amplitude = even(first + t, 0.7548776662466927, 0.1, 5),
                         phase = even(first + t, 0.5698402909980532, 0, 3.14159265);
            for (int i = 0; i < SHOTS; i++) {
                const double x = even(((first + t) * 2 + set) * SHOTS + i, 0.6180339887498949, -5, 5);
                w->x[set][t][i] = (wf_real)x;
                w->y[set][t][i] = (wf_real)(amplitude * sin(x - phase));
            }
        }
}

/* The net with weights of its own for each task: w[2l] is the weight of layer l, [TASKS,out,in], and w[2l+1] its bias, [TASKS,1,out]. */
static wf_tensor *forward(wf_tensor *const w[], wf_tensor *x) /* [TASKS,SHOTS,1] -> [TASKS,SHOTS,1] */
{
    for (int l = 0; l < LAYERS; l++) {
        x = wf_add(wf_matmul(x, wf_transpose(w[2 * l], 1, 2)), w[2 * l + 1]);
        x = l + 1 < LAYERS ? wf_relu(x) : x;
    }
    return x;
}

/* The sum over the tasks of their mean squared errors on one of the sets. */
static wf_tensor *error_of(wf_tape *tape, wf_tensor *const w[], const struct waves *waves, int set)
{
    wf_tensor *x = wf_input(tape, waves->x[set][0], WF_SHAPE(TASKS, SHOTS, 1), false);
    wf_tensor *y = wf_input(tape, waves->y[set][0], WF_SHAPE(TASKS, SHOTS, 1), false);
    return wf_scale(wf_mse(forward(w, x), y, WF_REDUCE_SUM), 1.0 / SHOTS);
}

/* The mean error on the second set after a step of each task on the first; *before is the error without that step. */
static wf_tensor *adapted_error(const struct net *n, wf_tape *tape, const struct waves *waves, wf_tensor **before)
{
    wf_tensor *w[WEIGHTS], *g[WEIGHTS];
    for (int l = 0; l < LAYERS; l++) {
        wf_tensor *weight = n->layer[l].weight, *bias = n->layer[l].bias;
        w[2 * l] = wf_expand(weight, TASKS, wf_dim(weight, 0), wf_dim(weight, 1));
        w[2 * l + 1] = wf_expand(bias, TASKS, 1, wf_dim(bias, 0));
    }
    *before = wf_keep(wf_scale(error_of(tape, w, waves, 1), 1.0 / TASKS));
    if (wf_gradients(error_of(tape, w, waves, 0), WEIGHTS, w, g, .create_graph = true) != WF_OK)
        return *before; /* the tape has the error */
    for (int i = 0; i < WEIGHTS; i++)
        w[i] = wf_subtract(w[i], wf_scale(g[i], inner_rate));
    return wf_keep(wf_scale(error_of(tape, w, waves, 1), 1.0 / TASKS));
}

/* One update on new waves, or without `adam` only the errors. */
static wf_status step_on(const struct net *n, wf_tape *tape, int64_t first, struct wf_optimizer *adam, double error_at[2], wf_error *error)
{
    static struct waves waves;
    wf_tensor *before;
    waves_make(&waves, first);
    wf_tape_reset(tape, adam ? WF_TRAIN : WF_GRADIENTS);
    wf_tensor *loss = adapted_error(n, tape, &waves, &before);
    if (wf_item(before, &error_at[0]) != WF_OK || wf_item(loss, &error_at[1]) != WF_OK || (adam && wf_backward(loss) != WF_OK))
        return wf_tape_status(tape, error);
    return adam ? wf_adam_step(adam, error) : WF_OK;
}

static wf_status train(const struct net *n, wf_registry *r, wf_tape *tape, int64_t steps, double mean[2], wf_error *error)
{
    struct wf_optimizer adam = {0};
    double value[2];
    wf_status status = wf_adam_init(&adam, r, error, .lr = 2e-3);
    for (int64_t step = 0; step < steps && status == WF_OK; step++) {
        status = step_on(n, tape, step * TASKS, &adam, value, error);
        if (status == WF_OK && (step % 500 == 0 || steps < 50))
            printf("step %lld: error %.7g, after a step %.7g\n", (long long)step, value[0], value[1]);
    }
    for (int i = 0; i < TRIALS && status == WF_OK; i++) {
        status = step_on(n, tape, 10000000 + i * TASKS, NULL, value, error);
        mean[0] += value[0] / TRIALS, mean[1] += value[1] / TRIALS;
    }
    wf_optimizer_free(&adam);
    return status;
}

int main(int argc, char **argv)
{
    struct net n;
    wf_error error = {0};
    const int64_t steps = argc == 3 && strcmp(argv[1], "--steps") == 0 ? atoll(argv[2]) : STEPS;
    double mean[2] = {0};
    wf_tape *tape = wf_tape_new(&error);
    wf_registry *r = tape ? wf_registry_new(&error) : NULL;
    wf_status status = error.code;
    if (r) {
        for (int l = 0; l < LAYERS; l++)
            wf_linear_init(wf_sub_at(wf_root(r), "layer", l), &n.layer[l], l ? HIDDEN : 1, l + 1 < LAYERS ? HIDDEN : 1);
        status = wf_registry_build(r, 1, &error);
    }
    if (status == WF_OK)
        status = train(&n, r, tape, steps, mean, &error);
    if (status == WF_OK)
        printf("new waves: error %.3f, after a step %.3f\n", mean[0], mean[1]);
    else
        fprintf(stderr, "maml: %s\n", error.message);
    wf_registry_free(r);
    wf_tape_free(tape);
    return status != WF_OK || (steps >= STEPS && !(mean[1] < 0.5 && mean[1] < mean[0] / 6));
}
