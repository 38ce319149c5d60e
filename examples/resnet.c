/* SPDX-License-Identifier: MIT */
/* A residual net of convolutions with batch norm (He et al. 2016), trained with wf_fit on pictures that the program draws: one of eight
 * letters somewhere on 16 x 16 pixels of strong noise. Convolutions see a letter wherever it stands.
 *   cc resnet.c $(pkg-config --cflags --libs weft) -o resnet
 *   ./resnet               600 updates into the folder resnet-run: at least 95 % of new pictures are right, else it exits with 1
 *   ./resnet --resume      goes on from the last save after Ctrl-C or a crash, to the bytes of an uninterrupted training
 *   ./resnet --steps 5     ends after 5 updates; nothing is asked of the result, and --resume goes on from there
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/weft.h>

enum { SIDE = 16, LETTER = 5, CLASSES = 8, STAGES = 3, BATCH = 64, VALID = 512, STEPS = 600 };

struct layer {
    struct wf_convolution conv;
    struct wf_batch_norm norm;
};
struct resnet {
    struct layer first;
    struct {
        struct layer up, down, shortcut; /* `shortcut` gives x the shape of the block's result */
    } block[STAGES];
    struct wf_linear head;
    wf_real picture[VALID][SIDE][SIDE]; /* those of the batch */
    int32_t label[VALID];
};

/* Without a bias: that of the norm follows. */
static void layer_init(wf_scope s, struct layer *m, int64_t channels, int64_t filters, int64_t kernel, int64_t stride)
{
    wf_conv2d_init(wf_sub(s, "conv"), &m->conv, channels, filters, kernel, .stride = stride, .padding = kernel / 2, .no_bias = true);
    wf_batch_norm_init(wf_sub(s, "norm"), &m->norm, filters);
}

static wf_tensor *layer_forward(const struct layer *m, wf_tensor *x) /* [B,C,H,W] -> [B,F,H/stride,W/stride] */
{
    return wf_batch_norm_forward(&m->norm, wf_convolution_forward(&m->conv, x));
}

static void resnet_init(wf_scope s, struct resnet *m)
{
    layer_init(wf_sub(s, "first"), &m->first, 1, 16, 3, 1);
    for (int i = 0, channels = 16, filters = 16; i < STAGES; i++, channels = filters, filters *= 2) {
        wf_scope b = wf_sub_at(s, "blocks", i);
        layer_init(wf_sub(b, "up"), &m->block[i].up, channels, filters, 3, i == 0 ? 1 : 2);
        layer_init(wf_sub(b, "down"), &m->block[i].down, filters, filters, 3, 1);
        layer_init(wf_sub(b, "shortcut"), &m->block[i].shortcut, channels, filters, 1, i == 0 ? 1 : 2);
    }
    wf_linear_init(wf_sub(s, "head"), &m->head, 16 << (STAGES - 1), CLASSES);
}

static wf_tensor *resnet_forward(const struct resnet *m, wf_tensor *x) /* [B,1,SIDE,SIDE] -> [B,CLASSES] */
{
    x = wf_relu(layer_forward(&m->first, x));
    for (int i = 0; i < STAGES; i++) {
        wf_tensor *y = wf_relu(layer_forward(&m->block[i].up, x));
        x = wf_relu(wf_add(layer_forward(&m->block[i].down, y), layer_forward(&m->block[i].shortcut, x)));
    }
    return wf_linear_forward(&m->head, wf_flatten(wf_adaptive_avg_pool(x, 1, 1), 1, -1)); /* the mean of each of the 64 channels */
}

static void draw(struct resnet *m, int count, uint64_t seed, uint64_t stream)
{
    static const char *const letter[CLASSES] = {"#####..#....#....#....#..", "#....#....#....#....#####", "#...##...#######...##...#",
                                                "#...#.#.#...#...#.#.#...#", "#####...#...#...#...#####", ".###.#...##...##...#.###.",
                                                "#...##...##.#.###.###...#", "######....####.#....#####"}; /* T L H X Z O W E */
    wf_rng rng = wf_rng_new(seed, stream);
    for (int i = 0; i < count; i++) {
        const int row = (int)wf_rng_below(&rng, SIDE - LETTER + 1), col = (int)wf_rng_below(&rng, SIDE - LETTER + 1);
        m->label[i] = (int32_t)wf_rng_below(&rng, CLASSES);
        for (int p = 0; p < SIDE * SIDE; p++)
            m->picture[i][p / SIDE][p % SIDE] = (wf_real)(0.4 * wf_rng_normal(&rng));
        for (int p = 0; p < LETTER * LETTER; p++)
            m->picture[i][row + p / LETTER][col + p % LETTER] += letter[m->label[i]][p] == '#';
    }
}

/* The batch is a function of the step: a resume needs nothing more. */
static wf_status next(void *ctx, int64_t step, double *weight, wf_error *error)
{
    draw(ctx, BATCH, 1, (uint64_t)step);
    *weight = BATCH;
    (void)error;
    return WF_OK;
}

static wf_tensor *loss(void *ctx, struct wf_micro_batch *p)
{
    const struct resnet *m = ctx;
    wf_tensor *x = wf_input(p->tape, m->picture[0][0], WF_SHAPE(BATCH, 1, SIDE, SIDE), false);
    return wf_cross_entropy(resnet_forward(m, x), wf_ids_of(p->tape, m->label, WF_SHAPE(BATCH)), .normalizer = p->weight);
}

static wf_status validate(void *ctx, wf_tape *tape, double *value, wf_error *error)
{
    struct resnet *m = ctx;
    int32_t best[VALID];
    draw(m, VALID, 2, 0);
    wf_tape_reset(tape, WF_INFER); /* batch norm with its running statistics */
    wf_tensor *logits = resnet_forward(m, wf_input(tape, m->picture[0][0], WF_SHAPE(VALID, 1, SIDE, SIDE), false));
    if (wf_read_ids(wf_argmax(logits, -1, false), best, VALID) != WF_OK)
        return wf_tape_status(tape, error);
    value[0] = 0;
    for (int i = 0; i < VALID; i++)
        value[0] += (best[i] == m->label[i]) / (double)VALID;
    return WF_OK;
}

static void print(void *ctx, const struct wf_fit_event *e)
{
    if (e->kind == WF_EVENT_VALID)
        printf("step %lld: loss %.4f, accuracy %.3f\n", (long long)e->step, e->loss, e->value[0]);
    (void)ctx;
}

int main(int argc, char **argv)
{
    static struct resnet m;
    struct wf_optimizer adam = {0};
    struct wf_fit_result result = {0};
    wf_error error = {0};
    wf_registry *registry = wf_registry_new(&error);
    const struct wf_schedule schedule = {WF_SCHEDULE_ONE_CYCLE, .peak = 1e-2, .steps = STEPS};
    struct wf_metric metric = {.name = "accuracy", .higher = true};
    struct wf_task task = {WF_TASK_ABI,          .name = "resnet",  .next = next, .loss = loss,
                           .validate = validate, .metric = &metric, .metrics = 1};
    int64_t steps = STEPS;
    bool resume = false;
    for (int i = 1; i < argc; i++) {
        resume |= strcmp(argv[i], "--resume") == 0;
        steps = i + 1 < argc && strcmp(argv[i], "--steps") == 0 ? atoll(argv[i + 1]) : steps;
    }
    if (registry)
        resnet_init(wf_root(registry), &m);
    wf_status status = registry ? wf_registry_build(registry, 1, &error) : error.code;
    if (status == WF_OK && (status = wf_adamw_init(&adam, registry, &error, .weight_decay = 0.05)) == WF_OK)
        status = wf_fit_one(&task, registry, &adam, &schedule, &result, &error, .out = "resnet-run", .steps = steps, .resume = resume,
                            .save_every = 100, .valid_every = 100, .event = print, .ctx = &m);
    if (status != WF_OK)
        fprintf(stderr, "resnet: %s\n", error.message);
    wf_optimizer_free(&adam);
    wf_registry_free(registry);
    return status != WF_OK || (steps >= STEPS && !(result.value[0] >= 0.95));
}
