/* SPDX-License-Identifier: MIT */
/* wf_fit refuses wrong tasks and options, and runs of others. */
#include "stranger.h"
#include "zoo.h"

START_TEST(tasks_are_checked)
{
    struct study *s = study_open(0);
    struct wf_fit_options o = study_options(s, in_folder("run"));
    fit_refused(NULL, &o, WF_ERR_ARGUMENT, "the task is NULL");
    fit_refused(&vit_task, NULL, WF_ERR_ARGUMENT, "the options are NULL");
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
        {MEMBER(phases, const char *const *, twice), "two phases 'one'"},
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
        fit_refused(&task, &o, WF_ERR_ARGUMENT, bad[i].says);
    }
    ck_assert(!exists("run/.weft-lock") && !wf_folder_exists(in_folder("run"))); /* nothing was begun */
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
        fit_refused(&vit_task, &o, WF_ERR_ARGUMENT, says);                                                                                 \
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
    REFUSED(o.clip_value = -1, "clip_value is -1");
    REFUSED(o.clip_value = NAN, "clip_value is nan");
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
    REFUSED(optimizer[1].phase = 1, "phases are 0 to 0");
    REFUSED(optimizer[1].optimizer = &other->adam, "optimizer 1 updates a registry");
    ck_ok(wf_optimizer_add(&s->sgd, s->body, "body.", error));
    REFUSED((void)0, "both update patch.weight in phase 0");
    o = good;
    registry[0].registry = unbuilt;
    fit_refused(&vit_task, &(struct wf_fit_options){.out = "x", .steps = 1, .registry = registry, .registries = 1}, WF_ERR_STATE,
                "not built");
    struct wf_task blind = vit_task;
    blind.validate = NULL;
    o.patience = 3;
    fit_refused(&blind, &o, WF_ERR_ARGUMENT, "the task has no validate");
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
        fit_refused(&task, &o, code, says);                                                                                                \
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
    RESUME((void)0, WF_ERR_ARGUMENT, "holds the place of the training 'vit' (\"task.");
    task = vit_task;
    task.name = "cnn";
    RESUME((void)0, WF_ERR_ARGUMENT, "is of the training 'vit', not of 'cnn'");
    task.name = "vit";
    o = good;
    o.settings = "lr=0.001 more=1";
    ck_ok(wf_fit(&task, &o, NULL, error));
    ck_assert_str_eq(s->seen.text[WF_EVENT_CHANGE],
                     "resuming with lr 0.001 instead of 0.005, more 1 instead of nothing, note nothing instead of first");
    ck_assert(s->seen.first_step == 21 && s->seen.last_step == 22);
    s->seen.text[WF_EVENT_CHANGE][0] = 0;
    o.steps = 23;
    ck_ok(wf_fit(&task, &o, NULL, error)); /* these are the run's settings now */
    ck_assert_str_eq(s->seen.text[WF_EVENT_CHANGE], "");
    study_close(s);
}
END_TEST

/* Other parameters than those of the state are named, and the run stays. */
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
    fit_refused(&vit_task, &o, WF_ERR_FORMAT, "with another shape: model.head.out.weight [4,16] instead of [5,16]");
    study_close(s);
    s = study_open(0);
    o = study_options(s, in_folder("run"));
    o.fixed = "data=digits width=16";
    o.resume = true;
    ck_ok(wf_fit(&vit_task, &o, NULL, error));
    study_close(s);
}
END_TEST

/* A state with a slab that the present settings do not use is refused, and nothing of it is loaded. */
START_TEST(a_slab_that_is_no_longer_used)
{
    make_run();
    struct study *s = study_open(0);
    struct wf_fit_options o = study_options(s, in_folder("run"));
    wf_optimizer_free(&s->sgd);
    ck_ok(wf_sgd_init(&s->sgd, s->head, error)); /* without momentum */
    o.fixed = "data=digits width=16";
    o.resume = true;
    fit_refused(&vit_task, &o, WF_ERR_FORMAT, "run/state.safetensors: the state does not match the optimiser: 2 unexpected: ");
    fit_refused(&vit_task, &o, WF_ERR_FORMAT, ": slab momentum is not in use with the present settings");
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
    fit_refused(&vit_task, &o, WF_ERR_BUSY, "is being trained by another process");
    wf_lock_release(lock);
    /* a file that would be replaced is set aside */
    ck_ok(wf_file_save(in_folder("run/model.safetensors"), "mine", 4, error));
    o.steps = 2;
    o.resume = true;
    ck_ok(wf_fit(&vit_task, &o, NULL, error));
    ck_assert_int_eq(s->seen.count[WF_EVENT_WARNING], 2); /* nothing to resume; what was set aside */
    assert_warned(&s->seen, "model.previous-1.safetensors");
    assert_file_is(in_folder("run/model.previous-1.safetensors"), "mine", 4);
    study_close(s);
}
END_TEST

/* A state that was saved without put has no place in the data from which to resume. */
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
    fit_refused(&vit_task, &o, WF_ERR_FORMAT, "holds no place of the training 'vit', which has a get: it was saved without put");
    ck_ok(wf_fit(&task, &o, NULL, error));
    study_close(s);
}
END_TEST

/* A task does not resume a run of the zoo, nor wf_train the run of a task. */
START_TEST(runs_of_the_zoo_are_others)
{
    struct wf_train_options zoo = language("zoo", NULL);
    zoo.config.training.steps = 1;
    trained(&zoo);
    struct study *s = study_open(0);
    struct wf_fit_options o = study_options(s, in_folder("zoo"));
    o.resume = true;
    fit_refused(&vit_task, &o, WF_ERR_ARGUMENT, "is of the training 'nanogpt-char-small', not of 'vit'");
    make_run();
    zoo.out = lasting("run");
    zoo.resume = true;
    refused(&zoo, WF_ERR_FORMAT, "it is not the state of a Weft run");
    study_close(s);
}
END_TEST

/* Functions for runs of the zoo name the program's training. */
START_TEST(the_folder_is_the_programs)
{
    make_run();
    const char *run = in_folder("run");
    struct wf_run none;
    char says[512];
    snprintf(says, sizeof says,
             "%s was written by a program with wf_fit, as its training \"vit\", and has no config.json: use that program", run);
    ck_fails(wf_run_open(&none, run, NULL, error), WF_ERR_FORMAT, says);
    ck_fails(wf_average(run, 2, in_folder("mean"), NULL, error), WF_ERR_FORMAT, says);
}
END_TEST

WF_TEST_MAIN("fit_refused", tasks_are_checked, options_are_checked, a_resume_changes_what_it_may, other_parameters_are_refused,
             a_slab_that_is_no_longer_used, another_program_in_the_folder, a_state_without_a_place, runs_of_the_zoo_are_others,
             the_folder_is_the_programs)
