/* SPDX-License-Identifier: MIT */
/* A perceptron with two hidden layers that tells the three arms of a spiral apart: the loop by hand, without wf_fit, over shuffled epochs.
 *
 *   cc perceptron.c $(pkg-config --cflags --libs weft) -o perceptron
 *   ./perceptron            1,000 updates: at least 98 % of the points that it was not trained on are right, else it exits with 1
 *   ./perceptron --steps 5  only a few updates; nothing is asked of the result
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/weft.h>

enum { ARMS = 3, POINTS = 3000, VALID = 600, BATCH = 100, HIDDEN = 64, STEPS = 1000 };

struct spiral {
    wf_real point[POINTS][2];
    int32_t label[POINTS];
};
struct perceptron {
    struct wf_linear in, hidden, out;
};

/* Arms that turn by 4 radians from the centre to a radius of 1, with noise in the angle. */
static void spiral_make(struct spiral *s, uint64_t seed)
{
    wf_rng rng = wf_rng_new(seed, wf_stream_of("spiral"));
    for (int i = 0; i < POINTS; i++) {
        s->label[i] = (int32_t)wf_rng_below(&rng, ARMS);
        double radius = wf_rng_uniform(&rng);
        double angle = 4 * radius + 2 * 3.14159265 / ARMS * s->label[i] + 0.15 * wf_rng_normal(&rng);
        s->point[i][0] = (wf_real)(radius * cos(angle));
        s->point[i][1] = (wf_real)(radius * sin(angle));
    }
}

static void perceptron_init(wf_scope s, struct perceptron *m)
{
    wf_linear_init(wf_sub(s, "in"), &m->in, 2, HIDDEN);
    wf_linear_init(wf_sub(s, "hidden"), &m->hidden, HIDDEN, HIDDEN);
    wf_linear_init(wf_sub(s, "out"), &m->out, HIDDEN, ARMS);
}

static wf_tensor *perceptron_forward(const struct perceptron *m, wf_tensor *x) /* [B, 2] -> [B, ARMS] */
{
    x = wf_relu(wf_linear_forward(&m->in, x));
    x = wf_relu(wf_linear_forward(&m->hidden, x));
    return wf_linear_forward(&m->out, x);
}

/* Errors of ops stay on the tape: wf_backward and wf_item report them. */
static wf_status train(const struct perceptron *m, wf_registry *registry, struct spiral *data, wf_tape *tape, int64_t steps,
                       wf_error *error)
{
    const wf_array points = wf_array_contiguous(data->point, WF_REAL, WF_SHAPE(POINTS, 2));
    const wf_array labels = wf_array_contiguous(data->label, WF_I32, WF_SHAPE(POINTS));
    struct wf_optimizer adam = {0};
    struct wf_epochs epochs;
    wf_status status = wf_epochs_init(&epochs, POINTS, BATCH, 1, error);
    if (status == WF_OK)
        status = wf_adamw_init(&adam, registry, error, .lr = 3e-3);
    for (int64_t step = 0; step < steps && status == WF_OK; step++) {
        int64_t rows[BATCH], count = wf_epochs_batch(&epochs, step, rows);
        wf_real point[BATCH][2];
        int32_t label[BATCH];
        double value;
        if ((status = wf_rows_copy(&points, rows, count, WF_REAL, point, error)) != WF_OK ||
            (status = wf_rows_copy(&labels, rows, count, WF_I32, label, error)) != WF_OK)
            break;
        wf_tape_reset(tape, WF_TRAIN);
        wf_tensor *x = wf_input(tape, point[0], WF_SHAPE(count, 2), false);
        wf_tensor *loss = wf_cross_entropy(perceptron_forward(m, x), wf_ids_of(tape, label, WF_SHAPE(count)));
        if (wf_item(loss, &value) != WF_OK || wf_backward(loss) != WF_OK)
            status = wf_tape_status(tape, error);
        else
            status = wf_adamw_step(&adam, error);
        if (step % 200 == 0)
            printf("step %4lld: loss %.4f\n", (long long)step, value);
    }
    wf_optimizer_free(&adam);
    return status;
}

static wf_status measure(const struct perceptron *m, const struct spiral *data, wf_tape *tape, double *accuracy, wf_error *error)
{
    static wf_real logits[VALID][ARMS];
    int right = 0;
    wf_tape_reset(tape, WF_INFER);
    wf_tensor *y = perceptron_forward(m, wf_input(tape, data->point[0], WF_SHAPE(VALID, 2), false));
    if (wf_read(y, logits[0], VALID * ARMS) != WF_OK)
        return wf_tape_status(tape, error);
    for (int i = 0; i < VALID; i++) {
        int best = 0;
        for (int a = 1; a < ARMS; a++)
            best = logits[i][a] > logits[i][best] ? a : best;
        right += best == data->label[i];
    }
    *accuracy = right / (double)VALID;
    return WF_OK;
}

int main(int argc, char **argv)
{
    static struct spiral data, unseen;
    struct perceptron m;
    wf_error error = {0};
    double accuracy = 0;
    int64_t steps = argc == 3 && strcmp(argv[1], "--steps") == 0 ? atoll(argv[2]) : STEPS;
    spiral_make(&data, 1);
    spiral_make(&unseen, 2);
    wf_tape *tape = wf_tape_new(&error);
    wf_registry *registry = tape ? wf_registry_new(&error) : NULL;
    wf_status status = error.code;
    if (registry) {
        perceptron_init(wf_root(registry), &m);
        status = wf_registry_build(registry, 1, &error);
    }
    if (status == WF_OK)
        status = train(&m, registry, &data, tape, steps, &error);
    if (status == WF_OK)
        status = measure(&m, &unseen, tape, &accuracy, &error);
    if (status == WF_OK)
        printf("accuracy %.3f\n", accuracy);
    else
        fprintf(stderr, "perceptron: %s\n", error.message);
    wf_registry_free(registry);
    wf_tape_free(tape);
    return status != WF_OK || (steps >= STEPS && accuracy < 0.98);
}
