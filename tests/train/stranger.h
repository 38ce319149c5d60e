/* SPDX-License-Identifier: MIT */
/* A program from outside that trains its model with wf_fit: a vision transformer on small images in the program's arrays, with a registry
 * and an optimiser for the body, and another of each for the head. */
#ifndef TESTS_STRANGER_H
#define TESTS_STRANGER_H

#include "train_test.h"

enum { IMAGES = 256, VALID = 64, SIDE = 8, PIXELS = SIDE * SIDE, PATCHES = 4, PATCH = 16, WIDTH = 16, CLASSES = 4, BATCH = 16, BLOCKS = 2 };

struct block {
    struct wf_layer_norm norm1, norm2;
    struct wf_mha attention;
    struct wf_ffn ffn;
};
struct study {
    struct seen seen; /* first, since it is the context of the events */
    double accuracy;  /* of the last validation */
    wf_registry *body, *head;
    struct wf_linear patch, out;
    struct wf_positions positions;
    struct block block[BLOCKS];
    struct wf_optimizer sgd, adam;
    wf_real image[IMAGES + VALID][PIXELS];
    int32_t label[IMAGES + VALID];

    /* the data: a walk over the images, in which each batch depends on the one before */
    int64_t place, before, taken; /* of the next batch; before the last `next`; the update of that batch, -1: none */
    int64_t row[BATCH];
    double dropout;

    int64_t bad_at;                        /* in this update the loss is not finite, by a bad op or by one of the following */
    bool bad_gradient, bad_data, bad_mask; /* an input with a NaN; -inf that leaves no loss */
    int openmp;                            /* threads in `loss` */
};

/* --- the model ------------------------------------------------------------------------------------------------------- */

static inline void vit_init(struct study *s)
{
    wf_scope b = wf_root(s->body);
    wf_linear_init(wf_sub(b, "patch"), &s->patch, PATCH, WIDTH);
    wf_positions_init(wf_sub(b, "positions"), &s->positions, PATCHES, WIDTH, .learned = true);
    for (int i = 0; i < BLOCKS; i++) {
        wf_scope at = wf_sub_at(b, "blocks", i);
        wf_layer_norm_init(wf_sub(at, "norm1"), &s->block[i].norm1, WIDTH);
        wf_mha_init(wf_sub(at, "attention"), &s->block[i].attention, WIDTH, 2, .residual_dropout = s->dropout);
        wf_layer_norm_init(wf_sub(at, "norm2"), &s->block[i].norm2, WIDTH);
        wf_ffn_init(wf_sub(at, "ffn"), &s->block[i].ffn, WIDTH, 2 * WIDTH, .activation = WF_GELU, .residual_dropout = s->dropout);
    }
    wf_linear_init(wf_sub(wf_root(s->head), "out"), &s->out, WIDTH, CLASSES);
}

/* images [B, PIXELS] -> logits [B, CLASSES] */
static inline wf_tensor *vit_forward(const struct study *s, wf_tensor *images)
{
    wf_tensor *x = wf_linear_forward(&s->patch, wf_reshape(images, wf_dim(images, 0), PATCHES, PATCH)); /* [B, PATCHES, WIDTH] */
    x = wf_positions_forward(&s->positions, x, NULL);
    for (int i = 0; i < BLOCKS; i++) {
        const struct block *b = &s->block[i];
        x = wf_mha_forward(&b->attention, wf_layer_norm_forward(&b->norm1, x), .residual = x);
        x = wf_ffn_forward(&b->ffn, wf_layer_norm_forward(&b->norm2, x), .residual = x);
    }
    return wf_linear_forward(&s->out, wf_mean_dim(x, 1, false));
}

/* --- the task -------------------------------------------------------------------------------------------------------- */

static inline wf_status next_batch(void *ctx, int64_t step, double *weight, wf_error *error)
{
    struct study *s = ctx;
    (void)error;
    s->before = s->place;
    s->taken = step;
    for (int i = 0; i < BATCH; i++) {
        s->place = (s->place * 5 + 3) % 1048573;
        s->row[i] = s->place % IMAGES;
    }
    *weight = BATCH;
    return WF_OK;
}

/* Rows of the arrays as tensors. */
static inline wf_tensor *images_of(const struct study *s, wf_tape *tape, const int64_t *row, int64_t rows, wf_tensor **labels)
{
    wf_real image[BATCH][PIXELS];
    int32_t label[BATCH];
    for (int64_t i = 0; i < rows; i++) {
        memcpy(image[i], s->image[row[i]], sizeof image[i]);
        label[i] = s->label[row[i]];
    }
    *labels = wf_ids_of(tape, label, &(wf_shape){1, {rows}});
    return wf_input(tape, image[0], &(wf_shape){2, {rows, PIXELS}}, false);
}

/* How many threads a region of the program's own OpenMP gets. */
static inline int openmp_threads(void)
{
    int threads = 0;
#if !defined __SANITIZE_THREAD__ /* does not see libgomp's barriers */
#pragma omp parallel num_threads(3) reduction(+ : threads)
    threads++;
#endif
    return threads;
}

static inline wf_tensor *loss_of(void *ctx, struct wf_micro_batch *p)
{
    struct study *s = ctx;
    if (p->step == 3)
        s->openmp = openmp_threads();
    wf_tensor *labels;
    int64_t first = BATCH * p->index / p->count, rows = BATCH * (p->index + 1) / p->count - first;
    wf_tape_first_row(p->tape, (uint64_t)first);
    wf_tensor *images = images_of(s, p->tape, s->row + first, rows, &labels), *logits = vit_forward(s, images);
    if (s->bad_at > 0 && p->step + 1 == s->bad_at && !s->bad_data && !s->bad_mask)
        logits = s->bad_gradient ? wf_sqrt(wf_name(wf_scale(logits, 0), "flattened")) : wf_name(wf_log(wf_scale(logits, 0)), "logarithm");
    if (s->bad_at == p->step + 1 && (s->bad_data || s->bad_mask)) {
        const wf_real number[2] = {1, s->bad_data ? NAN : -INFINITY};
        logits = wf_add(logits, wf_slice(wf_name(wf_input(p->tape, number, WF_SHAPE(2), false), "noise"), 0, 1, 1));
        return s->bad_mask ? wf_sum(logits) : wf_cross_entropy(logits, labels, .normalizer = p->weight);
    }
    return s->bad_gradient && s->bad_at == p->step + 1 ? wf_scale(wf_sum(logits), 1 / p->weight)
                                                       : wf_cross_entropy(logits, labels, .normalizer = p->weight);
}

static inline wf_status validate_vit(void *ctx, wf_tape *tape, double *value, wf_error *error)
{
    const struct study *s = ctx;
    double sum = 0, right = 0;
    for (int64_t first = IMAGES; first < IMAGES + VALID; first += BATCH) {
        int64_t row[BATCH];
        wf_real logit[BATCH][CLASSES];
        double loss;
        wf_tensor *labels;
        for (int i = 0; i < BATCH; i++)
            row[i] = first + i;
        wf_tape_reset(tape, WF_INFER);
        wf_tensor *images = images_of(s, tape, row, BATCH, &labels), *logits = vit_forward(s, images);
        if (wf_item(wf_cross_entropy(logits, labels), &loss) || wf_read(logits, logit[0], BATCH * CLASSES))
            return wf_tape_status(tape, error);
        sum += loss * BATCH;
        for (int i = 0; i < BATCH; i++) {
            int best = 0;
            for (int c = 1; c < CLASSES; c++)
                best = logit[i][c] > logit[i][best] ? c : best;
            right += best == s->label[row[i]];
        }
    }
    value[0] = sum / VALID;
    value[1] = right / VALID;
    return WF_OK;
}

static inline void put_place(void *ctx, int64_t step, wf_fit_state *state)
{
    const struct study *s = ctx;
    wf_fit_put_int(state, "place", step == s->taken ? s->before : s->place);
}

static inline wf_status get_place(void *ctx, int64_t step, const wf_fit_state *state, wf_error *error)
{
    struct study *s = ctx;
    (void)step;
    s->taken = -1;
    return wf_fit_get_int(state, "place", &s->place, error);
}

static const struct wf_metric vit_metrics[] = {{"loss"}, {"accuracy", .higher = true}};
static const struct wf_task vit_task = {.abi = WF_TASK_ABI,
                                        .name = "vit",
                                        .unit = "images",
                                        .metric = vit_metrics,
                                        .metrics = 2,
                                        .best = 1,
                                        .next = next_batch,
                                        .loss = loss_of,
                                        .validate = validate_vit,
                                        .put = put_place,
                                        .get = get_place};

/* --- the program ----------------------------------------------------------------------------------------------------- */

static inline void see_study(void *ctx, const struct wf_fit_event *e)
{
    see_fit(ctx, e);
    if (e->kind == WF_EVENT_VALID)
        ((struct study *)ctx)->accuracy = e->value[1];
}

/* The program at its start. */
static inline struct study *study_open(double dropout)
{
    struct study *s = calloc(1, sizeof *s);
    s->place = 1;
    s->taken = -1;
    s->dropout = dropout;
    ck_ok(wf_init(error, .threads = 2));
    for (int i = 0; i < IMAGES + VALID; i++) {
        s->label[i] = i * 7 % CLASSES;
        wf_fill_normal(s->image[i], PIXELS, 0, 0.7, 3, (uint64_t)i);
        for (int k = 0; k < PATCH; k++) /* a class lights a part of each patch */
            s->image[i][k / 4 * PATCH + s->label[i] * 4 + k % 4] += 1;
    }
    s->body = wf_registry_new(NULL);
    s->head = wf_registry_new(NULL);
    vit_init(s);
    ck_ok(wf_registry_build(s->body, 1, error));
    ck_ok(wf_registry_build(s->head, 2, error));
    ck_ok(wf_adamw_init(&s->adam, s->body, error, .weight_decay = 0.01));
    ck_ok(wf_sgd_init(&s->sgd, s->head, error, .lr = 0.05, .momentum = 0.9));
    return s;
}

static inline void study_close(struct study *s)
{
    wf_optimizer_free(&s->adam);
    wf_optimizer_free(&s->sgd);
    wf_registry_free(s->body);
    wf_registry_free(s->head);
    free(s);
}

/* Options of a program with two registries and an optimiser for each; the lists live until the next call. */
static inline struct wf_fit_options options_of_two(const char *out, void *ctx, void (*event)(void *, const struct wf_fit_event *),
                                                   const struct wf_fit_registry registry[2], const struct wf_fit_optimizer optimizer[2])
{
    static struct wf_fit_registry registries[2];
    static struct wf_fit_optimizer optimizers[2];
    memcpy(registries, registry, sizeof registries);
    memcpy(optimizers, optimizer, sizeof optimizers);
    return (struct wf_fit_options){.out = out,
                                   .registry = registries,
                                   .registries = 2,
                                   .optimizer = optimizers,
                                   .optimizers = 2,
                                   .event = event,
                                   .cancelled = cancel,
                                   .ctx = ctx};
}

static inline struct wf_fit_options study_options(struct study *s, const char *out)
{
    const struct wf_schedule schedule = {.kind = WF_SCHEDULE_COSINE, .peak = 5e-3, .min = 5e-4, .warmup = 4};
    struct wf_fit_options o = options_of_two(out, s, see_study, (struct wf_fit_registry[]){{"body", s->body}, {"head", s->head}},
                                             (struct wf_fit_optimizer[]){{"adam", &s->adam, .schedule = schedule}, {"sgd", &s->sgd}});
    o.steps = 60;
    o.clip = 1;
    o.save_every = 7;
    o.valid_every = 10;
    o.keep = 2;
    o.seed = 5;
    return o;
}

/* A training that must fail before its first update, with this status and a line that says this. */
static inline void fit_refused(const struct wf_task *task, const struct wf_fit_options *o, wf_status code, const char *words)
{
    struct wf_fit_result result;
    ck_fails(wf_fit(task, o, &result, error), code, words);
    ck_assert(result.step == 0 && isnan(result.loss));
}

#endif
