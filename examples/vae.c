/* SPDX-License-Identifier: MIT */
/* A variational autoencoder (Kingma and Welling 2014) of pictures that the program draws: one soft stroke on 8 x 8 pixels, anywhere and at
 * any angle. It describes a picture by 4 numbers, and draws new ones from noise.
 *
 *   cc vae.c $(pkg-config --cflags --libs weft) -o vae
 *   ./vae            4,000 updates: of the variance of the pixels of new pictures at most 2 % is lost, else it exits with 1
 *   ./vae --steps 5  only a few updates; nothing is asked of the result
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/weft.h>

enum { SIDE = 8, PIXELS = SIDE * SIDE, HIDDEN = 128, LATENT = 4, BATCH = 64, VALID = 512, STEPS = 4000 };
static const double pixel_variance = 0.01; /* of the decoder's normal distribution */

struct vae {
    struct wf_linear encode1, encode2, mean, log_variance, decode1, decode2, pixels;
};

static void vae_init(wf_scope s, struct vae *m)
{
    wf_linear_init(wf_sub(s, "encode1"), &m->encode1, PIXELS, HIDDEN);
    wf_linear_init(wf_sub(s, "encode2"), &m->encode2, HIDDEN, HIDDEN);
    wf_linear_init(wf_sub(s, "mean"), &m->mean, HIDDEN, LATENT);
    wf_linear_init(wf_sub(s, "log_variance"), &m->log_variance, HIDDEN, LATENT);
    wf_linear_init(wf_sub(s, "decode1"), &m->decode1, LATENT, HIDDEN);
    wf_linear_init(wf_sub(s, "decode2"), &m->decode2, HIDDEN, HIDDEN);
    wf_linear_init(wf_sub(s, "pixels"), &m->pixels, HIDDEN, PIXELS);
}

static wf_tensor *vae_encode(const struct vae *m, wf_tensor *x) /* [B,PIXELS] -> [B,HIDDEN] */
{
    return wf_silu(wf_linear_forward(&m->encode2, wf_silu(wf_linear_forward(&m->encode1, x))));
}

static wf_tensor *vae_decode(const struct vae *m, wf_tensor *z) /* [B,LATENT] -> [B,PIXELS] */
{
    z = wf_silu(wf_linear_forward(&m->decode1, z));
    return wf_sigmoid(wf_linear_forward(&m->pixels, wf_silu(wf_linear_forward(&m->decode2, z))));
}

/* Strokes of 5 pixels: the brightness falls off with the distance from the line. */
static void draw(wf_real *picture, int64_t count, uint64_t seed, uint64_t stream)
{
    wf_rng rng = wf_rng_new(seed, stream);
    for (int64_t i = 0; i < count; i++) {
        double x = 2 + 3 * wf_rng_uniform(&rng), y = 2 + 3 * wf_rng_uniform(&rng), angle = 3.14159265 * wf_rng_uniform(&rng);
        for (int p = 0; p < PIXELS; p++) {
            double dx = p % SIDE - x, dy = p / SIDE - y, along = dx * cos(angle) + dy * sin(angle);
            double beyond = fmax(fabs(along) - 2.5, 0), across = dy * cos(angle) - dx * sin(angle);
            picture[i * PIXELS + p] = (wf_real)exp(-(across * across + beyond * beyond));
        }
    }
}

/* The negative evidence lower bound of a picture, without constants: |x - y|^2 / (2 pixel_variance) + KL(N(m, e^s) || N(0, 1)), where y is
 * decoded from z = m + e^(s/2) noise. */
static wf_tensor *vae_loss(const struct vae *m, wf_tensor *x)
{
    wf_tensor *h = vae_encode(m, x), *mean = wf_linear_forward(&m->mean, h), *log_variance = wf_linear_forward(&m->log_variance, h);
    wf_tensor *noise = wf_normal(wf_tape_of(x), WF_SHAPE(wf_dim(x, 0), LATENT), 0, 1);
    wf_tensor *z = wf_add(mean, wf_mul(wf_exp(wf_scale(log_variance, 0.5)), noise));
    wf_tensor *error = wf_scale(wf_mse(vae_decode(m, z), x, WF_REDUCE_BATCH_MEAN), 0.5 / pixel_variance);
    return wf_add(error, wf_kl_normal(mean, log_variance, WF_REDUCE_BATCH_MEAN));
}

static wf_status train(const struct vae *m, wf_registry *registry, wf_tape *tape, int64_t steps, wf_error *error)
{
    static wf_real picture[BATCH * PIXELS];
    struct wf_optimizer adam;
    const struct wf_schedule schedule = {WF_SCHEDULE_COSINE, .peak = 3e-3, .warmup = 50, .steps = STEPS};
    wf_status status = wf_adamw_init(&adam, registry, error);
    for (int64_t step = 0; step < steps && status == WF_OK; step++) {
        double value;
        draw(picture, BATCH, 1, (uint64_t)step);
        wf_tape_reset(tape, WF_TRAIN, .seed = 2, .step = (uint64_t)step); /* noise is a function of the step, as the pictures are */
        wf_tensor *loss = vae_loss(m, wf_input(tape, picture, WF_SHAPE(BATCH, PIXELS), false));
        if (wf_item(loss, &value) != WF_OK || wf_backward(loss) != WF_OK)
            return wf_optimizer_free(&adam), wf_tape_status(tape, error);
        adam.lr = wf_schedule_lr(&schedule, step);
        status = wf_adamw_step(&adam, error);
        if (step % 500 == 0)
            printf("step %4lld: loss %.2f\n", (long long)step, value);
    }
    wf_optimizer_free(&adam);
    return status;
}

/* The part of the variance of new pictures that is missing when they are decoded from their means; and a picture from noise. */
static wf_status measure(const struct vae *m, wf_tape *tape, double *lost, wf_error *error)
{
    static wf_real picture[VALID * PIXELS], drawn[PIXELS];
    double squares, variance;
    draw(picture, VALID, 3, 0);
    wf_tape_reset(tape, WF_INFER);
    wf_tensor *x = wf_input(tape, picture, WF_SHAPE(VALID, PIXELS), false);
    wf_tensor *y = vae_decode(m, wf_linear_forward(&m->mean, vae_encode(m, x)));
    wf_tensor *average = wf_expand(wf_mean_dim(x, 0, true), VALID, PIXELS);
    wf_tensor *sample = vae_decode(m, wf_normal(tape, WF_SHAPE(1, LATENT), 0, 1));
    if (wf_item(wf_mse(y, x, WF_REDUCE_MEAN), &squares) != WF_OK || wf_item(wf_mse(average, x, WF_REDUCE_MEAN), &variance) != WF_OK ||
        wf_read(sample, drawn, PIXELS) != WF_OK)
        return wf_tape_status(tape, error);
    for (int p = 0; p < PIXELS; p++)
        printf("%c%s", " .:-=+*#%@"[(int)(9.99 * drawn[p])], p % SIDE == SIDE - 1 ? "\n" : "");
    *lost = squares / variance;
    return WF_OK;
}

int main(int argc, char **argv)
{
    struct vae m;
    wf_error error = {0};
    double lost = 1;
    int64_t steps = argc == 3 && strcmp(argv[1], "--steps") == 0 ? atoll(argv[2]) : STEPS;
    wf_tape *tape = wf_tape_new(&error);
    wf_registry *registry = tape ? wf_registry_new(&error) : NULL;
    wf_status status = error.code;
    if (registry) {
        vae_init(wf_root(registry), &m);
        status = wf_registry_build(registry, 1, &error);
    }
    if (status == WF_OK)
        status = train(&m, registry, tape, steps, &error);
    if (status == WF_OK)
        status = measure(&m, tape, &lost, &error);
    if (status == WF_OK)
        printf("variance lost: %.3f\n", lost);
    else
        fprintf(stderr, "vae: %s\n", error.message);
    wf_registry_free(registry);
    wf_tape_free(tape);
    return status != WF_OK || (steps >= STEPS && !(lost <= 0.02));
}
