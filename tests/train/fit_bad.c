/* SPDX-License-Identifier: MIT */
/* wf_fit with numbers that are not finite, and with callbacks that fail. */
#include "stranger.h"

/* The message of a training that must end with a number that is not finite. */
static const char *not_finite(const struct wf_task *task, const struct wf_fit_options *o)
{
    static wf_error problem;
    problem = (wf_error){0};
    ck_assert_int_eq(wf_fit(task, o, NULL, &problem), WF_ERR_NUMERIC);
    return problem.message;
}

START_TEST(a_nan_is_named)
{
    for (int round = 0; round < 4; round++) {
        const int gradient = round % 2;
        const char *folder = in_folder((const char *[]){"a", "b", "c", "d"}[round]);
        struct study *s = study_open(0.1);
        struct wf_fit_options o = study_options(s, folder);
        o.clip = round < 2 ? o.clip : 0; /* refused all the same, before either of the two optimisers steps */
        s->bad_at = 9;
        s->bad_gradient = gradient;
        o.accumulate = 2;
        const char *message = not_finite(&vit_task, &o);
        ck_says(message, "step 9: ");
        ck_says(message, gradient ? "the gradient's norm is not finite" : "the loss is not finite; the first bad tensor");
        ck_says(message, gradient ? "; the forward pass is, and the backward of sqrt(flattened [8,4]) gave a gradient that is not finite "
                                    "for its operand flattened [8,4]: inf at [0,0]: "
                                  : "log");
        ck_says(message, round < 2 ? "this step was not saved; .resume with a lower learning rate continues from the last save"
                                   : "this step was not saved; .resume with a lower learning rate, or with .clip, continues from");
        ck_assert(!strstr(message, "--"));
        ck_assert_int_eq(s->adam.step, 8);
        ck_assert_int_eq(s->sgd.step, 8);
        study_close(s);
        s = study_open(0.1); /* the state is that of step 7 */
        o = study_options(s, folder);
        o.resume = true;
        o.accumulate = 2;
        ck_ok(wf_fit(&vit_task, &o, NULL, error));
        ck_assert_int_eq(s->seen.first_step, 8);
        study_close(s);
    }
}
END_TEST

START_TEST(bad_data_are_named)
{
    for (int mask = 0; mask < 2; mask++) {
        struct study *s = study_open(0.1);
        struct wf_fit_options o = study_options(s, in_folder(mask ? "mask" : "data"));
        s->bad_at = 9;
        s->bad_data = !mask;
        s->bad_mask = mask;
        const char *message = not_finite(&vit_task, &o);
        ck_says(message,
                mask ? "step 9: the loss is not finite; it is -inf, from -inf in an input or where a mask fills it in: this step was"
                     : "step 9: the loss is not finite; the first bad tensor: the input noise [2] has nan at [1], and add(");
        if (!mask)
            ck_says(message, " reads it: this step was not saved; look at the data of its batch");
        study_close(s);
    }
}
END_TEST

/* Advice is only of what can help: no rate before any update, no .clip if it is set, no save without a folder. */
START_TEST(advice_fits_the_run)
{
    static const struct {
        const char *out, *says, *advice;
        int64_t bad_at;
        double clip;
    } cases[] = {
        {"run", "step 1: the loss is not finite; the first bad tensor: log(",
         ": no update was made before it: look at the data and the initial weights", 1, 0},
        {NULL, "step 9: ", ": lower the learning rate", 9, 1},
        {NULL, "step 9: ", ": lower the learning rate, or set .clip", 9, 0},
        {NULL, "the input noise [2] has nan", " reads it: look at the data of its batch", 9, 1},
    };
    for (int i = 0; i < 4; i++) {
        struct study *s = study_open(0);
        struct wf_fit_options o = study_options(s, cases[i].out ? in_folder(cases[i].out) : NULL);
        s->bad_at = cases[i].bad_at;
        s->bad_data = i == 3;
        o.save_every = o.keep = i == 0;
        o.clip = cases[i].clip;
        const char *message = not_finite(&vit_task, &o), *end = message + strlen(message) - strlen(cases[i].advice);
        ck_says(message, cases[i].says);
        ck_assert_str_eq(end, cases[i].advice);
        study_close(s);
    }
}
END_TEST

START_TEST(bad_validation_data_are_named)
{
    struct study *s = study_open(0.1);
    struct wf_task task = vit_task;
    struct wf_fit_options o = study_options(s, in_folder("run"));
    task.best = 0;
    s->image[IMAGES + BATCH + 4][5] = NAN;
    const char *message = not_finite(&task, &o);
    ck_says(message, "step 10: the validation loss is nan; the first bad tensor: an input [16,64] has nan at [4,5], and linear");
    ck_says(message, " reads it: look at the data of the validation");
    ck_assert(!strstr(message, "learning rate"));
    study_close(s);
}
END_TEST

START_TEST(bad_weights_replace_nothing)
{
    struct study *s = study_open(0);
    struct wf_fit_options o = study_options(s, in_folder("run"));
    struct wf_fit_result result;
    s->sgd.lr = 1e300;
    o.clip = 0;
    o.steps = o.save_every = o.valid_every = 1;
    ck_fails(wf_fit(&vit_task, &o, &result, error), WF_ERR_NUMERIC, "step 1: the parameter head.out.");
    ck_assert(!exists("run/state.safetensors") && !exists("run/best.safetensors"));
    study_close(s);
}
END_TEST

static double weight_of_batch;
static wf_status what_next;
static wf_status bad_next(void *ctx, int64_t step, double *weight, wf_error *error)
{
    wf_status status = next_batch(ctx, step, weight, error);
    *weight = weight_of_batch;
    return status == WF_OK ? what_next : status;
}

static int kind_of_loss;
static wf_tape *foreign;
static wf_tensor *bad_loss(void *ctx, struct wf_micro_batch *p)
{
    if (kind_of_loss == 0) /* not a scalar */
        return wf_linear_forward(&((struct study *)ctx)->out, wf_zeros(p->tape, WF_SHAPE(2, WIDTH)));
    if (kind_of_loss == 1) /* no op of the model's: an error of an op */
        return wf_matmul(wf_name(wf_zeros(p->tape, WF_SHAPE(2, 3)), "odd"), wf_zeros(p->tape, WF_SHAPE(2, 3)));
    if (kind_of_loss == 2) { /* on another tape */
        wf_tape_reset(foreign, WF_TRAIN);
        return wf_zeros(foreign, &(wf_shape){0});
    }
    if (kind_of_loss == 4) { /* that of a pass that failed, which the task gave up */
        double value;
        wf_tape_check_finite(p->tape, true);
        (void)!wf_item(wf_sum(wf_name(wf_log(wf_affine(wf_zeros(p->tape, WF_SHAPE(2)), 1, -1)), "odd")), &value);
    }
    return NULL; /* an empty part */
}

static bool accuracy_is_nan;
static wf_status bad_validate(void *ctx, wf_tape *tape, double *value, wf_error *error)
{
    (void)ctx, (void)tape, (void)error;
    value[0] = 1; /* and not the accuracy, which decides */
    if (accuracy_is_nan)
        value[1] = NAN;
    return WF_OK;
}

/* A validation that ignores the status of its reads is cancelled all the same. */
static bool stop_now;
static bool stops(void *ctx)
{
    (void)ctx;
    return stop_now;
}

static wf_status careless_validate(void *ctx, wf_tape *tape, double *value, wf_error *error)
{
    wf_tensor *labels;
    int64_t row[1] = {IMAGES};
    (void)error;
    stop_now = true;
    wf_tape_reset(tape, WF_INFER);
    wf_tensor *logits = vit_forward(ctx, images_of(ctx, tape, row, 1, &labels));
    (void)!wf_item(wf_cross_entropy(logits, labels), &value[0]);
    value[1] = 1;
    return WF_OK;
}

START_TEST(a_careless_validation_is_cancelled)
{
    struct study *s = study_open(0);
    struct wf_task task = vit_task;
    struct wf_fit_options o = study_options(s, in_folder("run"));
    task.validate = careless_validate;
    o.cancelled = stops;
    stop_now = false;
    ck_fails(wf_fit(&task, &o, NULL, error), WF_ERR_CANCELLED, "interrupted after step 10 of 60; .resume continues from there");
    ck_assert_str_eq(s->seen.text[WF_EVENT_END], "interrupted; .resume continues from here");
    ck_assert(!exists("run/best.safetensors"));
    o.resume = true;
    o.cancelled = NULL;
    ck_ok(wf_fit(&vit_task, &o, NULL, error)); /* the validation is made up for */
    ck_assert_int_eq(s->seen.count[WF_EVENT_VALID], 6);
    study_close(s);
}
END_TEST

START_TEST(callbacks_that_fail)
{
    struct study *s = study_open(0);
    struct wf_task task = vit_task;
    struct wf_fit_options o = study_options(s, in_folder("run"));
    o.steps = 2;
    task.next = bad_next;
    const double weights[] = {-1, NAN, INFINITY};
    for (int i = 0; i < 3; i++) {
        weight_of_batch = weights[i];
        fit_refused(&task, &o, WF_ERR_ARGUMENT, "next gave the batch a weight of");
    }
    what_next = WF_ERR_IO;
    fit_refused(&task, &o, WF_ERR_IO, "the task's next failed without a message; fix this and start again");
    task = vit_task;
    task.loss = bad_loss;
    fit_refused(&task, &o, WF_ERR_SHAPE, "step 1: ");
    kind_of_loss = 1;
    fit_refused(&task, &o, WF_ERR_SHAPE, "odd");
    kind_of_loss = 2;
    foreign = wf_tape_new(NULL);
    fit_refused(&task, &o, WF_ERR_ARGUMENT, "is on another tape than its micro-batch");
    wf_tape_free(foreign);
    kind_of_loss = 3;
    fit_refused(&task, &o, WF_ERR_ARGUMENT,
                "step 1: the task's loss returned NULL for every micro-batch, though next gave the batch a weight of 16");
    kind_of_loss = 4;
    fit_refused(&task, &o, WF_ERR_NUMERIC, "log(");
    kind_of_loss = 3;
    task.next = bad_next;
    what_next = WF_OK;
    weight_of_batch = 0;
    ck_ok(wf_fit(&task, &o, NULL, error)); /* nothing to learn */
    ck_assert(s->seen.last_loss == 0);
    task = vit_task;
    task.validate = bad_validate;
    o.out = in_folder("other");
    ck_fails(wf_fit(&task, &o, NULL, error), WF_ERR_ARGUMENT,
             "step 2: the task's validate did not set value[1], accuracy, which decides what is best");
    accuracy_is_nan = true;
    o.out = in_folder("third");
    const char *message = not_finite(&task, &o);
    ck_says(message, "step 2: the validation accuracy is nan, though all weights are finite, and a second one with a look at each result "
                     "found no bad one; look at the data of the validation, and at how it is computed");
    study_close(s);
}
END_TEST

WF_TEST_MAIN("fit_bad", a_nan_is_named, bad_data_are_named, advice_fits_the_run, bad_validation_data_are_named, bad_weights_replace_nothing,
             a_careless_validation_is_cancelled, callbacks_that_fail)
