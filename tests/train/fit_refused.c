/* SPDX-License-Identifier: MIT */
/* What wf_fit refuses, by name: tasks and options that can't be, runs of others; and numbers that go bad. */
#include "stranger.h"

static wf_error refusal;
static const char *refused(const struct wf_task *task, const struct wf_fit_options *o, wf_status code)
{
    struct wf_fit_result result;
    refusal = (wf_error){0};
    ck_assert_msg(wf_fit(task, o, &result, &refusal) == code && result.step == 0 && isnan(result.loss), "%s: %s",
                  wf_status_name(refusal.code), refusal.message);
    return refusal.message;
}
START_TEST(tasks_are_checked)
{
    struct study *s = study_open(0);
    struct wf_fit_options o = study_options(s, in_folder("run"));
    ck_says(refused(NULL, &o, WF_ERR_ARGUMENT), "the task is NULL");
    ck_says(refused(&vit_task, NULL, WF_ERR_ARGUMENT), "the options are NULL");
    ck_assert_int_eq(wf_fit(NULL, NULL, NULL, NULL), WF_ERR_ARGUMENT);
    static const char *const twice[] = {"one", "one", NULL}, *const blank[] = {"a b", NULL};
    static const struct wf_metric same[] = {{"loss"}, {"loss"}};
    static const struct wf_metric one_tag[] = {{"a", .tag = "x"}, {"b", .tag = "x"}}, best[] = {{"a", .tag = "best"}, {"b"}},
                                  trained[] = {{"a", .tag = "loss/train"}, {"b"}}, step[] = {{"a"}, {"b", .tag = "step"}},
                                  latin[] = {{"a", .tag = "caf\xe9"}, {"b"}}, empty[] = {{"a"}, {"b", .tag = ""}};
    static char name[97];
    memset(name, 'x', 96);
    const struct wf_metric lengthy[] = {{"a", .tag = name}, {"b"}};
    static const char *const loss[] = {"loss", NULL}, *const bad_bytes[] = {"caf\xe9", NULL};
    const struct {
        size_t at; /* the member that is set */
        size_t bytes;
        const void *value;
        const char *says;
    } bad[] = {
#define MEMBER(member, type, ...) offsetof(struct wf_task, member), sizeof(type), &(type){__VA_ARGS__}
        {MEMBER(abi, size_t, 0), "set .abi = WF_TASK_ABI"},
        {MEMBER(abi, size_t, sizeof(struct wf_task) + 8), "set .abi = WF_TASK_ABI"},
        {MEMBER(name, const char *, NULL), "task 0 is called NULL"},
        {MEMBER(name, const char *, "a.b"), "without blanks, dots"},
        {MEMBER(name, const char *, "\xff"), "\\xff"},
        {MEMBER(unit, const char *, "per second"), "unit 0 is called \"per second\""},
        {MEMBER(next, void *, NULL), "the task has no next"},
        {MEMBER(loss, void *, NULL), "the task has no loss"},
        {MEMBER(metrics, int, 0), "a validate and 0 metrics"},
        {MEMBER(metric, void *, NULL), "metrics at NULL"},
        {MEMBER(metrics, int, 1000), "1000 metrics"},
        {MEMBER(metric, const struct wf_metric *, same), "two metrics are called 'loss'"},
        {MEMBER(best, int, 2), "best is 2, not in 0 to 1"},
        {MEMBER(best, int, -1), "best is -1"},
        {MEMBER(turns, const char *const *, twice), "two turns 'one'"},
        {MEMBER(reports, const char *const *, blank), "reports 0 is called \"a b\""},
        {MEMBER(reports, const char *const *, bad_bytes), "reports 0 is called \"caf\\xe9\""},
        {MEMBER(reports, const char *const *, loss), "two numbers would be called 'loss/train'"},
        {MEMBER(metric, const struct wf_metric *, one_tag), "two numbers would be called 'x'"},
        {MEMBER(metric, const struct wf_metric *, best), "two numbers would be called 'best'"},
        {MEMBER(metric, const struct wf_metric *, trained), "two numbers would be called 'loss/train'"},
        {MEMBER(metric, const struct wf_metric *, step), "a metric has the tag 'step'"},
        {MEMBER(metric, const struct wf_metric *, latin), "metric 0 has the tag \"caf\\xe9\""},
        {MEMBER(metric, const struct wf_metric *, empty), "metric 1 has the tag \"\""},
        {MEMBER(metric, const struct wf_metric *, lengthy), "1 to 95 bytes"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct wf_task task = vit_task;
        memcpy((char *)&task + bad[i].at, bad[i].value, bad[i].bytes);
        ck_says(refused(&task, &o, WF_ERR_ARGUMENT), bad[i].says);
    }
    ck_assert(!wf_file_exists(in_folder("run/.weft-lock")) && !wf_folder_exists(in_folder("run"))); /* nothing was begun */
    study_close(s);
}
END_TEST

START_TEST(options_are_checked)
{
    struct study *s = study_open(0), *other = study_open(0);
    wf_registry *unbuilt = wf_registry_new(NULL);
    struct wf_optimizer none = {0};
    const struct wf_fit_options good = study_options(s, in_folder("run"));
    const struct wf_fit_registry r = {"body", s->body}, h = {"head", s->head};
    const struct wf_fit_optimizer a = {"adam", &s->adam}, g = {"sgd", &s->sgd};
    struct wf_fit_registry registry[2] = {r, h};
    struct wf_fit_optimizer optimizer[2] = {a, g};
    struct wf_fit_options o = good;
#define REFUSED(change, says)                                                                                                              \
    do {                                                                                                                                   \
        registry[0] = r, registry[1] = h, optimizer[0] = a, optimizer[1] = g;                                                              \
        o = good, o.registry = registry, o.optimizer = optimizer;                                                                          \
        change;                                                                                                                            \
        ck_says(refused(&vit_task, &o, WF_ERR_ARGUMENT), says);                                                                            \
    } while (0)
    REFUSED((o.out = NULL, o.keep = 0, o.save_every = 7), ".save_every is set, and there is no folder for the run: give .out");
    REFUSED((o.out = NULL, o.save_every = o.keep = 0, o.resume = true), ".resume is set, and there is no folder for the run: give .out");
    REFUSED(o.out = "", ".out, is empty: give a name, or NULL");
    REFUSED(o.steps = 0, "steps is 0");
    REFUSED(o.steps = -5, "steps is -5");
    REFUSED(o.accumulate = -1, "accumulate is -1");
    REFUSED(o.keep = -1, "keep is -1");
    REFUSED(o.clip = -1, "clip is -1");
    REFUSED(o.clip = NAN, "clip is nan");
    REFUSED(o.max_time = -1, "max_time is -1: give seconds");
    REFUSED(o.max_time = NAN, "max_time is nan");
    REFUSED(o.max_time = INFINITY, "max_time is inf");
    REFUSED(o.patience = 2; o.valid_every = 0, "patience=2 counts validations");
    REFUSED(o.settings = "width=16 verbose  lr=1", "settings has \"verbose\" without '=': settings are NAME=VALUE");
    REFUSED(o.fixed = " =16", "fixed has \"=16\" without a name");
    REFUSED(o.settings = "data=caf\xe9.bin", "settings is not UTF-8 at byte 8, \"\\xe9.bin\"");
    REFUSED(o.fixed = "\xff", "fixed is not UTF-8 at byte 0");
    REFUSED(o.registries = 0, "there is no registry");
    REFUSED(o.registry = NULL, "there is no registry");
    REFUSED(o.registries = 1000, "registries is 1000");
    REFUSED(registry[1].registry = NULL, "registry 1 is NULL");
    REFUSED(registry[1].name = NULL, "registry 1 is called NULL");
    REFUSED(registry[1].name = "a.b", "registry 1 is called \"a.b\"");
    REFUSED(registry[1].name = "body", "registries 0 and 1");
    REFUSED(registry[1].registry = s->body, "registries 0 and 1");
    REFUSED(o.registries = 1, "optimizer 1 updates a registry that .registry does not list");
    REFUSED(o.optimizers = 0, "there is no optimiser");
    REFUSED(o.optimizer = NULL, "there is no optimiser");
    REFUSED(optimizer[0].optimizer = NULL, "optimizer 0 is NULL");
    REFUSED(optimizer[0].optimizer = &none, "optimizer 0 is not initialised");
    REFUSED(optimizer[0].name = NULL, "optimizer 0 is called NULL");
    REFUSED(optimizer[0].name = "model", "'model'");
    REFUSED(optimizer[1].name = "adam", "optimizers 0 and 1");
    REFUSED(optimizer[1].turn = 1, "turns are 0 to 0");
    REFUSED(optimizer[1].optimizer = &other->adam, "optimizer 1 updates a registry");
    ck_ok(wf_optimizer_add(&s->sgd, s->body, "body.", error));
    REFUSED((void)0, "both update patch.weight in turn 0");
    o = good;
    registry[0].registry = unbuilt;
    ck_says(refused(&vit_task, &(struct wf_fit_options){.out = "x", .steps = 1, .registry = registry, .registries = 1}, WF_ERR_STATE),
            "not built");
    struct wf_task blind = vit_task;
    blind.validate = NULL;
    o.patience = 3;
    ck_says(refused(&blind, &o, WF_ERR_ARGUMENT), "the task has no validate");
    wf_registry_free(unbuilt);
    study_close(other);
    study_close(s);
}
END_TEST

/* A run of 20 steps in "run". */
static void make_run(void)
{
    struct study *s = study_open(0);
    struct wf_fit_options o = study_options(s, in_folder("run"));
    o.steps = 20;
    o.settings = "lr=0.005 note=first";
    o.fixed = "data=digits width=16";
    ck_ok(wf_fit(&vit_task, &o, NULL, error));
    study_close(s);
}

START_TEST(a_resume_changes_what_it_may)
{
    make_run();
    struct study *s = study_open(0);
    struct wf_fit_options good = study_options(s, in_folder("run")), o;
    good.steps = 22;
    good.settings = "lr=0.005 note=first";
    good.fixed = "data=digits  width=16\n";
    good.resume = true;
#define RESUME(change, code, says)                                                                                                         \
    do {                                                                                                                                   \
        o = good;                                                                                                                          \
        change;                                                                                                                            \
        ck_says(refused(&task, &o, code), says);                                                                                           \
    } while (0)
    struct wf_task task = vit_task;
    RESUME(o.resume = false, WF_ERR_EXISTS, "holds a run already: set .resume to continue it, or choose another .out");
    RESUME(o.seed = 6, WF_ERR_ARGUMENT, "was trained with seed 5, the resume asks for 6");
    RESUME(o.steps = 10, WF_ERR_ARGUMENT, "has trained 20 steps already");
    RESUME(o.fixed = "data=letters width=16", WF_ERR_ARGUMENT, "was trained with data = digits: a resume cannot change it to letters");
    RESUME(o.fixed = "data=digits width=16 depth=2", WF_ERR_ARGUMENT, "depth = nothing: a resume cannot change it to 2");
    RESUME(o.fixed = NULL, WF_ERR_ARGUMENT, "a resume cannot change it to nothing");
    task.get = NULL;
    RESUME((void)0, WF_ERR_ARGUMENT, "which has no get now to go on from it");
    ck_says(refusal.message, "holds the place of the training 'vit' (\"task.");
    task = vit_task;
    task.name = "cnn";
    RESUME((void)0, WF_ERR_ARGUMENT, "is of the training 'vit', not of 'cnn'");
    task.name = "vit";
    o = good;
    o.settings = "lr=0.001 more=1";
    ck_ok(wf_fit(&task, &o, NULL, error));
    ck_assert_str_eq(s->text, "resuming with lr 0.001 instead of 0.005, more 1 instead of nothing, note nothing instead of first");
    ck_assert(s->first_step == 21 && s->last_step == 22);
    s->text[0] = 0;
    o.steps = 23;
    ck_ok(wf_fit(&task, &o, NULL, error)); /* they are the run's now */
    ck_assert_str_eq(s->text, "");
    study_close(s);
}
END_TEST

/* Other parameters than those of the state: named, and the run stays. */
START_TEST(other_parameters_are_refused)
{
    make_run();
    struct study *s = study_open(0);
    wf_registry_free(s->head);
    s->head = wf_registry_new(NULL);
    wf_optimizer_free(&s->sgd);
    wf_linear_init(wf_sub(wf_root(s->head), "out"), &s->out, WIDTH, CLASSES + 1);
    ck_ok(wf_registry_build(s->head, 2, error));
    ck_ok(wf_sgd_init(&s->sgd, s->head, error));
    struct wf_fit_options o = study_options(s, in_folder("run"));
    o.fixed = "data=digits width=16";
    o.resume = true;
    const char *message = refused(&vit_task, &o, WF_ERR_FORMAT);
    ck_says(message, "with another shape: model.head.out.weight [4,16] instead of [5,16]");
    study_close(s);
    s = study_open(0);
    o = study_options(s, in_folder("run"));
    o.fixed = "data=digits width=16";
    o.resume = true;
    ck_ok(wf_fit(&vit_task, &o, NULL, error));
    study_close(s);
}
END_TEST

/* A state of settings that used more of the rule: said by the state's name, and nothing is taken over. */
START_TEST(a_slab_that_is_no_longer_used)
{
    make_run();
    struct study *s = study_open(0);
    struct wf_fit_options o = study_options(s, in_folder("run"));
    wf_optimizer_free(&s->sgd);
    ck_ok(wf_sgd_init(&s->sgd, s->head, error)); /* without momentum */
    o.fixed = "data=digits width=16";
    o.resume = true;
    const char *message = refused(&vit_task, &o, WF_ERR_FORMAT);
    ck_assert_msg(strncmp(message, o.out, strlen(o.out)) == 0, "%s", message);
    ck_says(message, "/state.safetensors: the state does not match the optimiser: 2 unexpected: ");
    ck_says(message, ": slab momentum is not in use with the present settings");
    study_close(s);
}
END_TEST

START_TEST(another_program_in_the_folder)
{
    struct study *s = study_open(0);
    wf_error e = {0};
    ck_ok(wf_folder_make(in_folder("run"), error));
    wf_lock *lock = wf_lock_take(in_folder("run/.weft-lock"), &e);
    struct wf_fit_options o = study_options(s, in_folder("run"));
    ck_says(refused(&vit_task, &o, WF_ERR_BUSY), "is being trained by another process");
    wf_lock_release(lock);
    /* what lies there and would be replaced goes aside */
    ck_ok(wf_file_save(in_folder("run/model.safetensors"), "mine", 4, error));
    o.steps = 2;
    o.resume = true;
    ck_ok(wf_fit(&vit_task, &o, NULL, error));
    ck_assert_int_eq(s->count[WF_EVENT_WARNING], 2); /* nothing to resume; what was set aside */
    ck_says(s->warning, "model.previous-1.safetensors");
    assert_file_is(in_folder("run/model.previous-1.safetensors"), "mine", 4);
    study_close(s);
}
END_TEST

/* A state that was saved without put has no place to go on from. */
START_TEST(a_state_without_a_place)
{
    struct study *s = study_open(0);
    struct wf_fit_options o = study_options(s, in_folder("run"));
    struct wf_task task = vit_task;
    task.put = NULL;
    task.get = NULL;
    o.steps = 2;
    ck_ok(wf_fit(&task, &o, NULL, error));
    o.steps = 4;
    o.resume = true;
    ck_says(refused(&vit_task, &o, WF_ERR_FORMAT), "holds no place of the training 'vit', which has a get: it was saved without put");
    ck_ok(wf_fit(&task, &o, NULL, error));
    study_close(s);
}
END_TEST

/* The zoo's run is none of a task, nor the other way round. */
START_TEST(runs_of_the_zoo_are_others)
{
    FILE *f = fopen(in_folder("text.txt"), "w");
    for (int i = 0; i < 400; i++)
        fprintf(f, "line %d of the text\n", i * 37 % 101);
    fclose(f);
    const char *files[1] = {in_folder("text.txt")};
    struct wf_train_options zoo = {.out = in_folder("zoo"), .train = files, .train_files = 1};
    ck_ok(wf_config_preset(&zoo.config, "char-rms", error));
    zoo.config.training.steps = 1;
    ck_ok(wf_train(&zoo, NULL, error));
    struct study *s = study_open(0);
    struct wf_fit_options o = study_options(s, in_folder("zoo"));
    o.resume = true;
    ck_says(refused(&vit_task, &o, WF_ERR_ARGUMENT), "is of the training 'char-rms', not of 'vit'");
    make_run();
    zoo.out = in_folder("run");
    zoo.resume = true;
    wf_error e = {0};
    ck_assert(wf_train(&zoo, NULL, &e) != WF_OK);
    ck_says(e.message, "it is not the state of a Weft run");
    study_close(s);
}
END_TEST

/* Functions for the zoo's runs say whose the folder is. */
START_TEST(the_folder_is_the_programs)
{
    make_run();
    const char *run = in_folder("run");
    struct wf_run opened;
    char says[512];
    snprintf(says, sizeof says,
             "%s was written by a program with wf_fit, as its training \"vit\", and has no config.json: use that program", run);
    refusal = (wf_error){0};
    ck_assert_int_eq(wf_run_open(&opened, run, NULL, &refusal), WF_ERR_FORMAT);
    ck_assert_str_eq(refusal.message, says);
    refusal = (wf_error){0};
    ck_assert_int_eq(wf_average(run, 2, in_folder("mean"), NULL, &refusal), WF_ERR_FORMAT);
    ck_assert_str_eq(refusal.message, says);
}
END_TEST

/* --- numbers and callbacks that go bad ------------------------------------------------------------------------------- */

START_TEST(a_nan_is_named)
{
    for (int round = 0; round < 4; round++) {
        const int gradient = round % 2;
        const char *folder = in_folder((const char *[]){"a", "b", "c", "d"}[round]);
        struct study *s = study_open(0.1);
        struct wf_fit_options o = study_options(s, folder);
        o.clip = round < 2 ? o.clip : 0; /* refused all the same, before either of the two optimisers steps */
        wf_error e = {0};
        s->bad_at = 9;
        s->bad_gradient = gradient;
        o.accumulate = 2;
        ck_assert_int_eq(wf_fit(&vit_task, &o, NULL, &e), WF_ERR_NUMERIC);
        ck_says(e.message, "step 9: ");
        ck_says(e.message, gradient ? "the gradient's norm is not finite" : "the loss is not finite; the first bad tensor");
        ck_says(e.message, gradient ? "; the forward pass is, and the backward of sqrt(flattened [8,4]) gave a gradient that is not finite "
                                      "for its operand flattened [8,4]: inf at [0,0]: "
                                    : "log");
        ck_says(e.message, round < 2 ? "this step was not saved; .resume with a lower learning rate continues from the last save"
                                     : "this step was not saved; .resume with a lower learning rate, or with .clip, continues from");
        ck_assert(!strstr(e.message, "--"));
        ck_assert_int_eq(s->adam.step, 8);
        ck_assert_int_eq(s->sgd.step, 8);
        study_close(s);
        s = study_open(0.1); /* the state is that of step 7 */
        o = study_options(s, folder);
        o.resume = true;
        o.accumulate = 2;
        ck_ok(wf_fit(&vit_task, &o, NULL, error));
        ck_assert_int_eq(s->first_step, 8);
        study_close(s);
    }
}
END_TEST

START_TEST(bad_data_are_named)
{
    for (int mask = 0; mask < 2; mask++) {
        struct study *s = study_open(0.1);
        struct wf_fit_options o = study_options(s, in_folder(mask ? "mask" : "data"));
        wf_error e = {0};
        s->bad_at = 9;
        s->bad_data = !mask;
        s->bad_mask = mask;
        ck_assert_int_eq(wf_fit(&vit_task, &o, NULL, &e), WF_ERR_NUMERIC);
        ck_says(e.message,
                mask ? "step 9: the loss is not finite; it is -inf, from -inf in an input or where a mask fills it in: this step was"
                     : "step 9: the loss is not finite; the first bad tensor: the input noise [2] has nan at [1], and add(");
        if (!mask)
            ck_says(e.message, " reads it: this step was not saved; look at the data of its batch");
        study_close(s);
    }
}
END_TEST

/* Advice is of what can help: no rate before any update, no .clip where it is set, no save without a folder. */
START_TEST(advice_fits_the_run)
{
    for (int round = 0; round < 3; round++) {
        struct study *s = study_open(0);
        struct wf_fit_options o = study_options(s, round == 0 ? in_folder("run") : NULL);
        wf_error e = {0};
        s->bad_at = round == 0 ? 1 : 9;
        o.save_every = round == 0 ? 1 : 0;
        o.keep = round == 0;
        o.clip = round == 1 ? 1 : 0;
        ck_assert_int_eq(wf_fit(&vit_task, &o, NULL, &e), WF_ERR_NUMERIC);
        const char *advice = strrchr(e.message, ':');
        ck_assert_str_eq(advice, round == 0   ? ": look at the data and the initial weights"
                                 : round == 1 ? ": lower the learning rate"
                                              : ": lower the learning rate, or set .clip");
        ck_says(e.message, round == 0 ? "step 1: the loss is not finite; the first bad tensor: log(" : "step 9: ");
        if (round == 0)
            ck_says(e.message, ": no update was made before it: look at");
        study_close(s);
    }
    struct study *s = study_open(0);
    struct wf_fit_options o = study_options(s, NULL);
    wf_error e = {0};
    o.save_every = o.keep = 0;
    s->bad_at = 9;
    s->bad_data = true;
    ck_assert_int_eq(wf_fit(&vit_task, &o, NULL, &e), WF_ERR_NUMERIC);
    ck_says(e.message, " reads it: look at the data of its batch");
    study_close(s);
}
END_TEST

START_TEST(bad_validation_data_are_named)
{
    struct study *s = study_open(0.1);
    struct wf_task task = vit_task;
    struct wf_fit_options o = study_options(s, in_folder("run"));
    wf_error e = {0};
    task.best = 0;
    s->image[IMAGES + BATCH + 4][5] = NAN;
    ck_assert_int_eq(wf_fit(&task, &o, NULL, &e), WF_ERR_NUMERIC);
    ck_says(e.message, "step 10: the validation loss is nan; the first bad tensor: an input [16,64] has nan at [4,5], and linear");
    ck_says(e.message, " reads it: look at the data of the validation");
    ck_assert(!strstr(e.message, "learning rate"));
    study_close(s);
}
END_TEST

START_TEST(bad_weights_replace_nothing)
{
    struct study *s = study_open(0);
    struct wf_fit_options o = study_options(s, in_folder("run"));
    wf_error e = {0};
    struct wf_fit_result result;
    s->sgd.lr = 1e300;
    o.clip = 0;
    o.steps = o.save_every = o.valid_every = 1;
    ck_assert_int_eq(wf_fit(&vit_task, &o, &result, &e), WF_ERR_NUMERIC);
    ck_says(e.message, "step 1: the parameter head.out.");
    ck_assert(!wf_file_exists(in_folder("run/state.safetensors")) && !wf_file_exists(in_folder("run/best.safetensors")));
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
static wf_tensor *bad_loss(void *ctx, struct wf_fit_part *p)
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

/* A validation that does not look at its reads: a cancellation counts all the same. */
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
    wf_error e = {0};
    task.validate = careless_validate;
    o.cancelled = stops;
    stop_now = false;
    ck_assert_int_eq(wf_fit(&task, &o, NULL, &e), WF_ERR_CANCELLED);
    ck_says(e.message, "interrupted after step 10 of 60; .resume continues from there");
    ck_assert_str_eq(s->end, "interrupted; .resume continues from here");
    ck_assert(!wf_file_exists(in_folder("run/best.safetensors")));
    o.resume = true;
    o.cancelled = NULL;
    ck_ok(wf_fit(&vit_task, &o, NULL, error)); /* makes up for it */
    ck_assert_int_eq(s->count[WF_EVENT_VALID], 6);
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
        ck_says(refused(&task, &o, WF_ERR_ARGUMENT), "next gave the batch a weight of");
    }
    what_next = WF_ERR_IO;
    ck_says(refused(&task, &o, WF_ERR_IO), "the task's next failed without a message; fix this and start again");
    task = vit_task;
    task.loss = bad_loss;
    ck_says(refused(&task, &o, WF_ERR_SHAPE), "step 1: ");
    kind_of_loss = 1;
    ck_says(refused(&task, &o, WF_ERR_SHAPE), "odd");
    kind_of_loss = 2;
    foreign = wf_tape_new(NULL);
    ck_says(refused(&task, &o, WF_ERR_ARGUMENT), "is on another tape than part->tape");
    wf_tape_free(foreign);
    kind_of_loss = 3;
    ck_says(refused(&task, &o, WF_ERR_ARGUMENT),
            "step 1: the task's loss returned NULL for every part, though next gave the batch a weight of 16");
    kind_of_loss = 4;
    ck_says(refused(&task, &o, WF_ERR_NUMERIC), "log(");
    kind_of_loss = 3;
    task.next = bad_next;
    what_next = WF_OK;
    weight_of_batch = 0;
    ck_ok(wf_fit(&task, &o, NULL, error)); /* nothing to learn */
    ck_assert(s->last_loss == 0);
    task = vit_task;
    task.validate = bad_validate;
    o.out = in_folder("other");
    wf_error e = {0};
    ck_assert_int_eq(wf_fit(&task, &o, NULL, &e), WF_ERR_ARGUMENT);
    ck_says(e.message, "step 2: the task's validate did not set value[1], accuracy, which decides what is best");
    accuracy_is_nan = true;
    o.out = in_folder("third");
    e = (wf_error){0};
    ck_assert_int_eq(wf_fit(&task, &o, NULL, &e), WF_ERR_NUMERIC);
    ck_says(e.message, "step 2: the validation accuracy is nan, though all weights are finite, and a second one with a look at each result "
                       "found no bad one; look at the data of the validation, and at how it is computed");
    study_close(s);
}
END_TEST

WF_TEST_MAIN("fit_refused", tasks_are_checked, options_are_checked, a_resume_changes_what_it_may, other_parameters_are_refused,
             a_slab_that_is_no_longer_used, another_program_in_the_folder, a_state_without_a_place, runs_of_the_zoo_are_others,
             the_folder_is_the_programs, a_nan_is_named, bad_data_are_named, advice_fits_the_run, bad_validation_data_are_named,
             bad_weights_replace_nothing, a_careless_validation_is_cancelled, callbacks_that_fail)
