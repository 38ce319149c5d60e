/* SPDX-License-Identifier: MIT */
/* A task of wf_fit with the batches of wf_epochs: it puts and gets nothing, and resumes within an epoch to the same bytes. */
#include "train_test.h"

enum { POINTS = 50, BATCH = 8, HIDDEN = 16, STEPS = 30 }; /* 7 steps an epoch, the last of 2 points */

struct points {
    struct seen seen; /* first, since it is the context of the events */
    wf_real point[POINTS][3];
    int32_t label[POINTS];
    struct wf_linear up, down;
    struct wf_epochs epochs;
    wf_real x[BATCH][3]; /* the batch */
    int32_t y[BATCH];
    int64_t count, row[STEPS][BATCH];
};

static wf_status next(void *ctx, int64_t step, double *weight, wf_error *error)
{
    struct points *p = ctx;
    const wf_array point = wf_array_contiguous(p->point, WF_REAL, WF_SHAPE(POINTS, 3));
    const wf_array label = wf_array_contiguous(p->label, WF_I32, WF_SHAPE(POINTS));
    *weight = (double)(p->count = wf_epochs_batch(&p->epochs, step, p->row[step]));
    wf_status status = wf_rows_copy(&point, p->row[step], p->count, WF_REAL, p->x, error);
    return status == WF_OK ? wf_rows_copy(&label, p->row[step], p->count, WF_I32, p->y, error) : status;
}

static wf_tensor *loss(void *ctx, struct wf_micro_batch *part)
{
    const struct points *p = ctx;
    const int64_t first = p->count * part->index / part->count, rows = p->count * (part->index + 1) / part->count - first;
    wf_tensor *x = wf_dropout(wf_input(part->tape, p->x[first], WF_SHAPE(rows, 3), false), 0.1);
    x = wf_linear_forward(&p->down, wf_tanh(wf_linear_forward(&p->up, x)));
    return wf_cross_entropy(x, wf_ids_of(part->tape, &p->y[first], WF_SHAPE(rows)), .normalizer = part->weight);
}

/* Trains until update `last`; 0: to the end. */
static struct points *train(const char *out, uint64_t seed, int64_t last)
{
    struct points *p = wf_alloc_zero(1, sizeof *p);
    struct wf_optimizer adam = {0};
    wf_registry *registry = wf_registry_new(NULL);
    wf_linear_init(wf_sub(wf_root(registry), "up"), &p->up, 3, HIDDEN);
    wf_linear_init(wf_sub(wf_root(registry), "down"), &p->down, HIDDEN, 3);
    wf_fill_normal(p->point[0], POINTS * 3, 0, 1, 1, 1);
    for (int i = 0; i < POINTS; i++)
        p->label[i] = i % 3;
    ck_ok(wf_registry_build(registry, 1, error));
    ck_ok(wf_adamw_init(&adam, registry, error, .lr = 1e-2));
    ck_ok(wf_epochs_init(&p->epochs, POINTS, BATCH, seed, error));
    p->seen.cancel_after = last;
    const struct wf_task task = {.abi = WF_TASK_ABI, .name = "points", .next = next, .loss = loss};
    ck_ends(wf_fit_one(&task, registry, &adam, NULL, NULL, error, .out = in_folder(out), .steps = STEPS, .accumulate = 2, .resume = true,
                       .ctx = p, .event = see_fit, .cancelled = cancel),
            last ? WF_ERR_CANCELLED : WF_OK);
    wf_optimizer_free(&adam);
    wf_registry_free(registry);
    return p;
}

START_TEST(resumes_within_an_epoch)
{
    struct points *straight = train("straight", 5, 0);
    static const int64_t stops[] = {11, 13, 14, 20}; /* in epoch 1, before and after its last batch, before the last one of epoch 2 */
    for (int i = 0; i < 4; i++) {
        struct points *cut = train("cut", 5, stops[i]);
        ck_assert_int_eq(cut->seen.last_step, stops[i]);
        wf_free(cut);
    }
    struct points *rest = train("cut", 5, 0);
    ck_assert_int_eq(memcmp(straight->row[20], rest->row[20], sizeof rest->row[0] * (STEPS - 20)), 0);
    assert_same_runs("straight", "cut");
    struct points *other = train("other", 6, 0);
    ck_assert(!same_file("straight/state.safetensors", "other/state.safetensors"));
    ck_assert(!same_file("straight/model.safetensors", "other/model.safetensors"));
    for (int epoch = 0; epoch < 4; epoch++) {
        int times[POINTS] = {0};
        for (int step = 7 * epoch; step < 7 * (epoch + 1); step++)
            for (int i = 0; i < (step % 7 == 6 ? 2 : BATCH); i++)
                times[straight->row[step][i]]++;
        for (int i = 0; i < POINTS; i++)
            ck_assert_int_eq(times[i], 1);
    }
    wf_free(straight);
    wf_free(rest);
    wf_free(other);
}
END_TEST

WF_TEST_MAIN("train/epochs", resumes_within_an_epoch)
