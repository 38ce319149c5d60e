/* SPDX-License-Identifier: MIT */
/* wf_fit as a program from outside uses it: a vision transformer in two registries with two optimisers. */
#include "stranger.h"

START_TEST(trains)
{
    struct study *s = study_open(0.1);
    struct wf_fit_options o = study_options(s, in_folder("run"));
    struct wf_fit_result result;
    ck_ok(wf_fit(&vit_task, &o, &result, error));
    ck_assert(result.step == 60 && result.loss == s->seen.last_loss && result.best > 0.9 && result.value[1] == s->accuracy);
    ck_assert(s->seen.last_loss < 0.4 * s->seen.first_loss);
    ck_assert_int_eq(s->openmp, openmp_threads());
    ck_assert(s->seen.count[WF_EVENT_START] == 1 && s->seen.count[WF_EVENT_STEP] == 60 && s->seen.count[WF_EVENT_VALID] == 6);
    ck_assert_int_eq(s->seen.count[WF_EVENT_SAVE], 9); /* 7, 14, ..., 56, the end */
    ck_assert_str_eq(s->seen.text[WF_EVENT_END], "trained to the end");
    ck_assert(s->sgd.step == 60 && s->adam.step == 60);
    ck_assert(exists("run/checkpoints/step-00000060.safetensors"));
    ck_assert(exists("run/checkpoints/step-00000056.safetensors"));
    ck_assert(!exists("run/checkpoints/step-00000049.safetensors"));
    /* the weights, by the names of the registries */
    wf_error e = {0};
    struct study *other = study_open(0.1);
    wf_safetensors *file = wf_safetensors_open(in_folder("run/model.safetensors"), &e);
    ck_assert_msg(file != NULL, "%s", e.message);
    ck_assert_str_eq(wf_safetensors_metadata(file, "task"), "vit");
    ck_ok(wf_registry_load(other->body, file, "body.", error));
    ck_ok(wf_registry_load(other->head, file, "head.", error));
    ck_assert(same_weights(other->body, s->body));
    wf_safetensors_close(file);
    ASSERT_HAS(in_folder("run/metrics.jsonl"),
               "\"event\":\"start\",\"step\":0,\"parameters\":", "\"loss/train\":", "\"lr/adam\":0.001,\"lr/sgd\":0.05,",
               "\"grad_norm\":", "\"images_per_second\":", "\"event\":\"valid\",\"step\":10,\"loss/valid\":", "\"accuracy/valid\":",
               "\"best\":", "\"event\":\"end\",\"step\":60,\"text\":\"trained to the end\"");
    char *lines = text_of(in_folder("run/metrics.jsonl"));
    ck_assert_ptr_null(strstr(lines, "minimized")); /* the reported loss is the minimised one */
    wf_free(lines);
    study_close(other);
    study_close(s);
}
END_TEST

/* Without a folder: the same numbers and weights, and no files. */
START_TEST(without_a_folder)
{
    struct study *s = study_open(0.1), *with = study_open(0.1);
    struct wf_fit_options o = study_options(s, NULL);
    o.save_every = o.keep = o.keep_every = 0;
    struct wf_fit_result result, other;
    ck_assert_int_eq(chdir(in_folder("")), 0);
    ck_ok(wf_fit(&vit_task, &o, &result, error));
    ck_assert_msg(system("test -z \"$(ls)\"") == 0, "a training without a folder has written files");
    o = study_options(with, in_folder("with"));
    ck_ok(wf_fit(&vit_task, &o, &other, error));
    ck_assert(result.step == 60 && result.loss == other.loss && result.best == other.best && result.value[0] == other.value[0]);
    ck_assert(same_weights(with->body, s->body));
    ck_assert_int_eq(s->seen.count[WF_EVENT_VALID], 6);
    ck_assert_int_eq(s->seen.count[WF_EVENT_SAVE], 0);
    ck_assert_str_eq(s->seen.text[WF_EVENT_END], "trained to the end");
    study_close(s);
    study_close(with);
    s = study_open(0.1);
    o = study_options(s, NULL);
    o.save_every = o.keep = o.keep_every = 0;
    s->seen.cancel_at = 900;
    wf_error e = {0};
    ck_assert_int_eq(wf_fit(&vit_task, &o, &result, &e), WF_ERR_CANCELLED);
    ck_assert_str_eq(s->seen.text[WF_EVENT_END], "interrupted; nothing is saved without .out");
    ck_assert_msg(result.step > 0 && !strstr(e.message, "resume"), "%s", e.message);
    study_close(s);
}
END_TEST

/* A next that computes with the model on another tape, as in a search for hard examples. */
static wf_tape *own_tape;
static int64_t own_passes;
static wf_status next_that_computes(void *ctx, int64_t step, double *weight, wf_error *error)
{
    struct study *s = ctx;
    wf_tensor *labels;
    double loss;
    wf_status status = next_batch(ctx, step, weight, error);
    if (status != WF_OK)
        return status;
    wf_tape_reset(own_tape, WF_INFER);
    wf_tensor *images = images_of(s, own_tape, s->row, BATCH, &labels);
    if (wf_item(wf_cross_entropy(vit_forward(s, images), labels), &loss) != WF_OK)
        return wf_tape_status(own_tape, error);
    own_passes += isfinite(loss);
    return WF_OK;
}

START_TEST(next_may_use_another_tape)
{
    struct wf_fit_result result[2];
    own_tape = wf_tape_new(NULL);
    for (int i = 0; i < 2; i++) {
        struct study *s = study_open(0.1);
        struct wf_fit_options o = study_options(s, in_folder(i ? "computes" : "plain"));
        struct wf_task task = vit_task;
        task.next = i ? next_that_computes : next_batch;
        ck_ok(wf_fit(&task, &o, &result[i], error));
        study_close(s);
    }
    wf_tape_free(own_tape);
    ck_assert_int_eq(own_passes, 60);
    ck_assert(result[0].loss == result[1].loss && result[0].best == result[1].best);
    ck_assert(same_file("plain/model.safetensors", "computes/model.safetensors"));
}
END_TEST

static double by_hand(void *ctx, int optimizer, int64_t step)
{
    (void)ctx;
    return optimizer ? 0.25 : 0.001 * (double)(step + 1);
}

START_TEST(rates_are_the_programs)
{
    struct study *s = study_open(0);
    struct wf_fit_options o = study_options(s, in_folder("run"));
    o.steps = 3;
    o.rate = by_hand;
    ck_ok(wf_fit(&vit_task, &o, NULL, error));
    ck_assert(s->adam.lr == 0.003 && s->sgd.lr == 0.25 && s->seen.last_lr == 0.003);
    study_close(s);
}
END_TEST

static double rising(void *ctx, int64_t step)
{
    return *(const double *)ctx * (double)(step + 1);
}

static double first_norm;
static void keep_norm(void *ctx, const struct wf_fit_event *e)
{
    (void)ctx;
    if (e->kind == WF_EVENT_STEP && e->step == 1)
        first_norm = e->grad_norm;
}

/* A schedule may be a function of the program: the bytes are those of a .rate that gives the same rates. Clipping by value changes the
 * weights, and not the gradient norm that is reported. */
START_TEST(functions_as_schedules_and_clipping_by_value)
{
    double first = 0.001;
    const struct wf_schedule schedule = {.kind = WF_SCHEDULE_FUNCTION, .function = rising, .ctx = &first};
    struct study *by[3];
    double norm[3];
    for (int i = 0; i < 3; i++) {
        static const char *const folder[] = {"rate", "schedule", "clipped"};
        struct study *s = by[i] = study_open(0);
        const struct wf_fit_options o = {.out = in_folder(folder[i]),
                                         .steps = 3,
                                         .rate = i == 0 ? by_hand : NULL,
                                         .clip = 0.5,
                                         .clip_value = i == 2 ? 1e-3 : 0,
                                         .event = keep_norm,
                                         .ctx = s};
        ck_ok(wf_fit_one_with(&vit_task, s->body, &s->adam, i == 0 ? NULL : &schedule, &o, NULL, error));
        norm[i] = first_norm;
        ck_assert(s->adam.lr == 0.001 * 3);
    }
    ck_assert(same_weights(by[0]->body, by[1]->body) && !same_weights(by[1]->body, by[2]->body));
    ck_assert(norm[0] == norm[1] && norm[1] == norm[2] && norm[0] > 0);
    for (int i = 0; i < 3; i++)
        study_close(by[i]);
}
END_TEST

/* A resume with another deciding metric reports it and begins a new best value. */
START_TEST(another_metric_decides)
{
    struct wf_task by_loss = vit_task;
    struct study *s = study_open(0);
    struct wf_fit_options o = study_options(s, in_folder("run"));
    o.steps = 10;
    ck_ok(wf_fit(&vit_task, &o, NULL, error));
    study_close(s);
    s = study_open(0);
    o = study_options(s, in_folder("run"));
    o.steps = 20;
    o.resume = true;
    by_loss.best = 0;
    ck_ok(wf_fit(&by_loss, &o, NULL, error));
    ck_assert_str_eq(s->seen.text[WF_EVENT_CHANGE], "resuming with best by loss instead of accuracy");
    ck_assert_int_ge(s->seen.bests, 1);
    study_close(s);
}
END_TEST

/* The short form writes the bytes of the long one, and refuses lists of registries or optimisers. */
START_TEST(one_registry_and_one_optimiser)
{
    const struct wf_schedule schedule = {.kind = WF_SCHEDULE_COSINE, .peak = 5e-3, .warmup = 4};
    struct study *a = study_open(0.1), *b = study_open(0.1), *c = study_open(0.1);
    const struct wf_fit_registry registry = {.registry = a->body};
    const struct wf_fit_optimizer optimizer = {.optimizer = &a->adam, .schedule = schedule};
    const struct wf_fit_options o = {.out = in_folder("long"),
                                     .registry = &registry,
                                     .registries = 1,
                                     .optimizer = &optimizer,
                                     .optimizers = 1,
                                     .steps = 20,
                                     .valid_every = 10,
                                     .ctx = a};
    struct wf_fit_result result, again;
    ck_ok(wf_fit(&vit_task, &o, &result, error));
    ck_ok(wf_fit_one(&vit_task, b->body, &b->adam, &schedule, &again, error, .out = in_folder("short"), .steps = 20, .valid_every = 10,
                     .ctx = b));
    assert_same_runs("long", "short");
    ck_assert(again.step == 20 && again.loss == result.loss && again.best == result.best);
    c->adam.lr = 2e-3; /* without a schedule it stays */
    ck_ok(wf_fit_one(&vit_task, c->body, &c->adam, NULL, NULL, error, .out = in_folder("constant"), .steps = 3, .ctx = c));
    ck_assert(c->adam.lr == 2e-3);
    ck_fails(wf_fit_one_with(&vit_task, c->body, &c->adam, NULL, &o, &again, error), WF_ERR_ARGUMENT,
             "wf_fit_one: the options list registries or optimisers too");
    ck_assert(isnan(again.loss));
    ck_fails(wf_fit_one_with(&vit_task, c->body, &c->adam, NULL, NULL, NULL, error), WF_ERR_ARGUMENT, "the options are NULL");
    ck_fails(wf_fit_one(&vit_task, NULL, &c->adam, NULL, NULL, error, .out = in_folder("none"), .steps = 3), WF_ERR_ARGUMENT,
             "registry 0 is NULL");
    study_close(a);
    study_close(b);
    study_close(c);
}
END_TEST

#ifdef WF_DOUBLE
START_TEST(in_bf16)
{
    struct study *s = study_open(0.1);
    struct wf_fit_options o = study_options(s, in_folder("bf16"));
    o.precision = WF_PRECISION_BF16;
    fit_refused(&vit_task, &o, WF_ERR_ARGUMENT, "wf_fit: bf16 is a precision of libweft, the library of floats; this is libweft-f64");
    study_close(s);
}
END_TEST
#else
static double one_rate(void *ctx, int optimizer, int64_t step)
{
    (void)ctx, (void)optimizer, (void)step;
    return 1e-3;
}

/* Trains in a folder up to update `steps`. The rate does not depend on `steps`, as a schedule's does. */
static struct study *up_to(int64_t steps, const char *folder, int threads, enum wf_precision precision, bool resume)
{
    struct study *s = study_open(0.1);
    struct wf_fit_options o = study_options(s, in_folder(folder));
    o.rate = one_rate;
    o.steps = steps;
    o.precision = precision;
    o.resume = resume;
    ck_ok(wf_set_threads(threads, error));
    ck_ok(wf_fit(&vit_task, &o, NULL, error));
    return s;
}

START_TEST(in_bf16)
{
    struct study *one = up_to(6, "one", 1, WF_PRECISION_BF16, false), *two = up_to(6, "two", 2, WF_PRECISION_BF16, false),
                 *exact = up_to(6, "float", 2, WF_PRECISION_REAL, false);
    ck_assert(same_weights(one->body, two->body) && !same_weights(one->body, exact->body));
    wf_error e = {0};
    wf_safetensors *state = wf_safetensors_open(in_folder("one/state.safetensors"), &e);
    ck_assert_ptr_nonnull(state);
    ck_assert_str_eq(wf_safetensors_metadata(state, "precision"), "bf16");
    wf_safetensors_close(state);
    ck_assert(fabs(one->seen.last_loss - exact->seen.last_loss) < 0.02 * exact->seen.last_loss);
    struct wf_fit_options o = study_options(exact, in_folder("one"));
    o.resume = true;
    fit_refused(&vit_task, &o, WF_ERR_ARGUMENT, "was trained with the precision bf16, the resume asks for f32");
    o = study_options(exact, in_folder("float"));
    o.resume = true;
    o.precision = WF_PRECISION_BF16;
    fit_refused(&vit_task, &o, WF_ERR_ARGUMENT, "was trained with the precision f32, the resume asks for bf16");
    /* a resume in bf16 goes on with the same bytes */
    struct study *whole = up_to(9, "whole", 2, WF_PRECISION_BF16, false), *second = up_to(9, "one", 2, WF_PRECISION_BF16, true);
    ck_assert(same_weights(whole->body, second->body));
    study_close(one), study_close(two), study_close(exact), study_close(whole), study_close(second);
}
END_TEST
#endif

WF_TEST_MAIN("fit", trains, in_bf16, next_may_use_another_tape, without_a_folder, one_registry_and_one_optimiser, another_metric_decides,
             rates_are_the_programs, functions_as_schedules_and_clipping_by_value)
