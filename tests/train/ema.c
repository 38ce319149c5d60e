/* SPDX-License-Identifier: MIT */
/* The moving average of the weights: ema.safetensors is what the checkpoints give, through resumes; a run opens with it. */
#include <weft/tape.h>

#include "pairs_test.h"

enum { STEPS = 6 };
static const double decay = 0.75;

static struct wf_train_options averaging(const char *out, struct seen *seen)
{
    struct wf_train_options o = small(out, seen);
    o.config.training.steps = STEPS;
    o.config.training.save_every = 1;
    o.config.training.keep = STEPS;
    ck_ok(wf_config_set(&o.config, "ema", "0.75", error));
    return o;
}

static wf_real *values_of(const char *path, const char *name, int64_t count)
{
    wf_error problem = {0};
    wf_safetensors *file = wf_safetensors_open(path, &problem);
    ck_assert_msg(file != NULL, "%s", problem.message);
    wf_real *values = wf_alloc((size_t)count * sizeof *values);
    ck_ok(wf_safetensors_read(file, name, WF_REAL, values, count, error));
    wf_safetensors_close(file);
    return values;
}

START_TEST(is_what_the_checkpoints_give)
{
    begin();
    struct seen seen = {0};
    char path[256];
    struct wf_train_options o = averaging(in_folder("run"), &seen);
    ck_ok(wf_train(&o, NULL, error));
    snprintf(path, sizeof path, "%s", in_folder("run/ema.safetensors"));
    wf_error problem = {0};
    wf_safetensors *file = wf_safetensors_open(path, &problem);
    ck_assert_msg(file != NULL, "%s", problem.message);
    int compared = 0;
    for (int64_t i = 0; i < wf_safetensors_count(file); i++) {
        const struct wf_safetensors_entry *e = wf_safetensors_at(file, i);
        const int64_t count = wf_shape_count(&e->shape);
        wf_real *mean = NULL, *is = values_of(path, e->name, count);
        for (int step = 1; step <= STEPS; step++) {
            char checkpoint[128];
            snprintf(checkpoint, sizeof checkpoint, "run/checkpoints/step-%08d.safetensors", step);
            wf_real *now = values_of(in_folder(checkpoint), e->name, count);
            for (int64_t k = 0; mean && k < count; k++)
                mean[k] += (wf_real)(1 - decay) * (now[k] - mean[k]);
            if (mean)
                wf_free(now);
            else
                mean = now;
        }
        for (int64_t k = 0; k < count; k++, compared++)
            ck_assert_msg(is[k] == mean[k], "%s[%d]: %g, not %g", e->name, (int)k, (double)is[k], (double)mean[k]);
        wf_free(mean);
        wf_free(is);
    }
    wf_safetensors_close(file);
    ck_assert_int_gt(compared, 1000);
    struct wf_run mean, latest;
    ck_ok(wf_run_open(&mean, in_folder("run"), "ema", error));
    ck_ok(wf_run_open(&latest, in_folder("run"), NULL, error));
    const wf_registry *a = wf_model_registry(mean.model), *b = wf_model_registry(latest.model);
    ck_assert_int_ne(memcmp(wf_registry_values(a), wf_registry_values(b), (size_t)wf_registry_slab(a) * sizeof(wf_real)), 0);
    wf_run_close(&mean);
    wf_run_close(&latest);
    finish();
}
END_TEST

START_TEST(goes_on_after_a_resume)
{
    begin();
    struct seen seen = {0};
    struct wf_train_options o = averaging(in_folder("straight"), &seen);
    ck_ok(wf_train(&o, NULL, error));
    seen = (struct seen){0};
    o = averaging(in_folder("halves"), &seen);
    o.config.training.steps = STEPS / 2;
    ck_ok(wf_train(&o, NULL, error));
    o.config.training.steps = STEPS;
    o.resume = true;
    seen = (struct seen){.last_step = STEPS / 2};
    ck_ok(wf_train(&o, NULL, error));
    ck_assert(wf_file_same(in_folder("straight/ema.safetensors"), in_folder("halves/ema.safetensors")));
    ck_assert(wf_file_same(in_folder("straight/model.safetensors"), in_folder("halves/model.safetensors")));
    finish();
}
END_TEST

/* Without it the weights are the same, and there is no such file; a run may begin with it later, and end it. */
START_TEST(may_begin_and_end)
{
    begin();
    struct seen seen = {0};
    struct wf_train_options o = averaging(in_folder("with"), &seen);
    ck_ok(wf_train(&o, NULL, error));
    seen = (struct seen){0};
    o = averaging(in_folder("later"), &seen);
    o.config.training.ema = 0;
    o.config.training.steps = 3;
    ck_ok(wf_train(&o, NULL, error));
    ck_assert(!wf_file_exists(in_folder("later/ema.safetensors")));
    struct wf_run run;
    wf_error problem = {0};
    ck_assert_int_eq(wf_run_open(&run, in_folder("later"), "ema", &problem), WF_ERR_IO);
    ck_assert_msg(strstr(problem.message, "trained without ema"), "%s", problem.message);
    o.resume = true;
    o.config.training.ema = decay;
    o.config.training.steps = 4;
    seen = (struct seen){.last_step = 3};
    ck_ok(wf_train(&o, NULL, error));
    /* after one update the average is the value */
    ck_ok(wf_run_open(&run, in_folder("later"), "ema", error));
    struct wf_run latest;
    ck_ok(wf_run_open(&latest, in_folder("later"), NULL, error));
    const wf_registry *a = wf_model_registry(run.model), *b = wf_model_registry(latest.model);
    ck_assert_int_eq(memcmp(wf_registry_values(a), wf_registry_values(b), (size_t)wf_registry_slab(a) * sizeof(wf_real)), 0);
    wf_run_close(&run);
    wf_run_close(&latest);
    o.config.training.ema = 0;
    o.config.training.steps = STEPS;
    seen = (struct seen){.last_step = 4};
    ck_ok(wf_train(&o, NULL, error));
    ck_assert(!wf_file_exists(in_folder("later/ema.safetensors")));
    ck_assert(wf_file_same(in_folder("with/model.safetensors"), in_folder("later/model.safetensors")));
    finish();
}
END_TEST

WF_TEST_MAIN("ema", is_what_the_checkpoints_give, goes_on_after_a_resume, may_begin_and_end)
