/* SPDX-License-Identifier: MIT */
/* A vision transformer (Dosovitskiy et al. 2021), trained with wf_fit on pictures that the program draws: a ring and a cross somewhere on
 * 16 x 16 pixels. The class is where the ring lies as seen from the cross (left or right, above or below): only positions tell it.
 *   cc vit.c $(pkg-config --cflags --libs weft) -o vit
 *   ./vit               1,500 updates into the folder vit-run: at least 90 % of new pictures are right, else it exits with 1
 *   ./vit --resume      goes on from the last save after Ctrl-C or a crash, to the bytes of an uninterrupted training
 *   ./vit --steps 5     ends after 5 updates; nothing is asked of the result, and --resume goes on from there
 *   ./vit --accumulate 4   in four parts, also as mpirun -n 4 ./vit --accumulate 4, with the same bytes
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/weft.h>

enum { SIDE = 16, PATCH = 4, GRID = SIDE / PATCH, CLASSES = 4, WIDTH = 64, HEADS = 4, BLOCKS = 2, BATCH = 64, VALID = 256, STEPS = 1500 };

struct vit {
    struct wf_linear patches, head;
    struct wf_positions positions;
    struct wf_layer_norm norm;
    struct {
        struct wf_layer_norm norm1, norm2;
        struct wf_mha attn;
        struct wf_ffn ffn;
    } block[BLOCKS];
    wf_real picture[VALID][SIDE][SIDE]; /* those of the batch */
    int32_t label[VALID];
};

static void vit_init(wf_scope s, struct vit *m)
{
    wf_linear_init(wf_sub(s, "patches"), &m->patches, PATCH * PATCH, WIDTH);
    wf_positions_init(wf_sub(s, "positions"), &m->positions, GRID * GRID, WIDTH, .learned = true);
    for (int i = 0; i < BLOCKS; i++) {
        wf_scope b = wf_sub_at(s, "blocks", i);
        wf_layer_norm_init(wf_sub(b, "norm1"), &m->block[i].norm1, WIDTH);
        wf_mha_init(wf_sub(b, "attn"), &m->block[i].attn, WIDTH, HEADS);
        wf_layer_norm_init(wf_sub(b, "norm2"), &m->block[i].norm2, WIDTH);
        wf_ffn_init(wf_sub(b, "ffn"), &m->block[i].ffn, WIDTH, 4 * WIDTH, .activation = WF_GELU);
    }
    wf_layer_norm_init(wf_sub(s, "norm"), &m->norm, WIDTH);
    wf_linear_init(wf_sub(s, "head"), &m->head, WIDTH, CLASSES);
}

static wf_tensor *vit_forward(const struct vit *m, wf_tensor *x) /* [B,SIDE,SIDE] -> [B,CLASSES] */
{
    x = wf_permute(wf_reshape(x, -1, GRID, PATCH, GRID, PATCH), 0, 1, 3, 2, 4); /* rows and columns of patches, then of pixels */
    x = wf_linear_forward(&m->patches, wf_reshape(x, -1, GRID * GRID, PATCH * PATCH));
    x = wf_positions_forward(&m->positions, x, NULL); /* [B,16,WIDTH] */
    for (int i = 0; i < BLOCKS; i++) {
        x = wf_mha_forward(&m->block[i].attn, wf_layer_norm_forward(&m->block[i].norm1, x), .residual = x);
        x = wf_ffn_forward(&m->block[i].ffn, wf_layer_norm_forward(&m->block[i].norm2, x), .residual = x);
    }
    return wf_linear_forward(&m->head, wf_mean_dim(wf_layer_norm_forward(&m->norm, x), 1, false));
}

/* A ring and a cross of 5 x 5 pixels that share no row and no column of centres, over noise. */
static void draw(struct vit *m, int count, uint64_t seed, uint64_t stream)
{
    static const char *const shape[2] = {".###.#...##...##...#.###.", "#...#.#.#...#...#.#.#...#"};
    wf_rng rng = wf_rng_new(seed, stream);
    for (int i = 0; i < count; i++) {
        int at[2][2]; /* row and column of ring and cross */
        for (int axis = 0; axis < 2; axis++) {
            at[0][axis] = (int)wf_rng_below(&rng, SIDE - 4);
            at[1][axis] = (at[0][axis] + 1 + (int)wf_rng_below(&rng, SIDE - 5)) % (SIDE - 4);
        }
        for (int p = 0; p < SIDE * SIDE; p++)
            m->picture[i][p / SIDE][p % SIDE] = (wf_real)(0.1 * wf_rng_normal(&rng));
        for (int p = 0; p < 25; p++)
            for (int s = 0; s < 2; s++)
                m->picture[i][at[s][0] + p / 5][at[s][1] + p % 5] += shape[s][p] == '#';
        m->label[i] = 2 * (at[0][0] > at[1][0]) + (at[0][1] > at[1][1]);
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
    const struct vit *m = ctx;
    const int64_t first = BATCH * p->index / p->count, rows = BATCH * (p->index + 1) / p->count - first;
    wf_tensor *x = wf_input(p->tape, m->picture[first][0], WF_SHAPE(rows, SIDE, SIDE), false);
    return wf_cross_entropy(vit_forward(m, x), wf_ids_of(p->tape, m->label + first, WF_SHAPE(rows)), .normalizer = p->weight);
}

static wf_status validate(void *ctx, wf_tape *tape, double *value, wf_error *error)
{
    struct vit *m = ctx;
    static wf_real logits[VALID][CLASSES];
    draw(m, VALID, 2, 0);
    wf_tape_reset(tape, WF_INFER);
    if (wf_read(vit_forward(m, wf_input(tape, m->picture[0][0], WF_SHAPE(VALID, SIDE, SIDE), false)), logits[0], VALID * CLASSES) != WF_OK)
        return wf_tape_status(tape, error);
    value[0] = 1;
    for (int i = 0, better; i < VALID; i++) {
        better = 0; /* classes that score no lower than the true one */
        for (int c = 0; c < CLASSES; c++)
            better += c != m->label[i] && !(logits[i][c] < logits[i][m->label[i]]);
        value[0] -= (better > 0) / (double)VALID;
    }
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
    static struct vit m;
    struct wf_optimizer adam = {0};
    struct wf_fit_result result = {0};
    wf_error error = {0};
    wf_registry *registry = wf_registry_new(&error);
    const struct wf_schedule schedule = {WF_SCHEDULE_COSINE, .peak = 3e-3, .warmup = 50, .steps = STEPS};
    struct wf_metric metric = {.name = "accuracy", .higher = true};
    struct wf_task task = {WF_TASK_ABI, .name = "vit", .next = next, .loss = loss, .validate = validate, .metric = &metric, .metrics = 1};
    int64_t steps = STEPS, parts = 1;
    bool resume = false;
    for (int i = 1; i < argc; i++) {
        const int64_t number = i + 1 < argc ? atoll(argv[i + 1]) : 0;
        resume |= strcmp(argv[i], "--resume") == 0;
        steps = strcmp(argv[i], "--steps") == 0 ? number : steps;
        parts = strcmp(argv[i], "--accumulate") == 0 ? number : parts;
    }
    if (registry)
        vit_init(wf_root(registry), &m);
    wf_status status = registry ? wf_registry_build(registry, 1, &error) : error.code;
    if (status == WF_OK && (status = wf_adamw_init(&adam, registry, &error)) == WF_OK)
        status = wf_fit_one(&task, registry, &adam, &schedule, &result, &error, .out = "vit-run", .steps = steps, .resume = resume,
                            .accumulate = parts, .clip = 1, .save_every = 250, .valid_every = 250, .event = print, .ctx = &m);
    if (status != WF_OK)
        fprintf(stderr, "vit: %s\n", error.message);
    wf_optimizer_free(&adam);
    wf_registry_free(registry);
    return status != WF_OK || (steps >= STEPS && !(result.value[0] >= 0.9));
}
