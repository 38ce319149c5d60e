/* SPDX-License-Identifier: MIT */
/* The moving average of the weights, ema.safetensors, is that of the checkpoints; a run opens with it. */
#include "zoo.h"

enum { STEPS = 6 };
static const double decay = 0.75;

static struct wf_train_options averaging(const char *out)
{
    struct wf_train_options o = translation(out, NULL);
    set_keys(&o.config, "steps=6 save_every=1 keep=6 ema=0.75");
    return o;
}

static wf_real *values_of(const char *name, const struct wf_safetensors_entry *e)
{
    wf_safetensors *file = tensors_of(name);
    wf_real *values = wf_alloc((size_t)e->count * sizeof *values);
    ck_ok(wf_safetensors_read(file, e->name, WF_REAL, values, e->count, error));
    wf_safetensors_close(file);
    return values;
}

/* The average and the latest weights of a run are the same. */
static bool average_is_latest(const char *name)
{
    struct wf_run mean = opened(name, "ema"), latest = opened(name, NULL);
    const bool same = same_weights(wf_model_registry(mean.model), wf_model_registry(latest.model));
    wf_run_close(&mean);
    wf_run_close(&latest);
    return same;
}

START_TEST(is_the_average_of_the_checkpoints)
{
    struct wf_train_options o = averaging("run");
    trained(&o);
    wf_safetensors *file = tensors_of("run/ema.safetensors");
    int64_t compared = 0;
    for (int64_t i = 0; i < wf_safetensors_count(file); i++) {
        const struct wf_safetensors_entry *e = wf_safetensors_at(file, i);
        wf_real *mean = NULL, *is = values_of("run/ema.safetensors", e);
        for (int step = 1; step <= STEPS; step++) {
            char checkpoint[128];
            snprintf(checkpoint, sizeof checkpoint, "run/checkpoints/step-%08d.safetensors", step);
            wf_real *now = values_of(checkpoint, e);
            for (int64_t k = 0; mean && k < e->count; k++)
                mean[k] += (wf_real)(1 - decay) * (now[k] - mean[k]);
            if (mean)
                wf_free(now);
            else
                mean = now;
        }
        for (int64_t k = 0; k < e->count; k++, compared++)
            ck_assert_msg(is[k] == mean[k], "%s[%d]: %g, not %g", e->name, (int)k, (double)is[k], (double)mean[k]);
        wf_free(mean);
        wf_free(is);
    }
    wf_safetensors_close(file);
    ck_assert_int_gt(compared, 1000);
    ck_assert(!average_is_latest("run"));
}
END_TEST

/* Without an average the weights are the same, and there is no such file; a run may begin with it later, and end it. */
START_TEST(may_begin_and_end)
{
    struct wf_train_options o = averaging("with");
    trained(&o);
    o = averaging("later");
    set_keys(&o.config, "ema=0 steps=3");
    trained(&o);
    ck_assert(!exists("later/ema.safetensors"));
    struct wf_run run;
    ck_fails(wf_run_open(&run, in_folder("later"), "ema", error), WF_ERR_IO, "trained without ema");
    o.resume = true;
    set_keys(&o.config, "ema=0.75 steps=4");
    trained(&o);
    ck_assert(average_is_latest("later")); /* after one update */
    set_keys(&o.config, "ema=0 steps=6");
    trained(&o);
    ck_assert(!exists("later/ema.safetensors"));
    ck_assert(same_file("with/model.safetensors", "later/model.safetensors"));
}
END_TEST

WF_TEST_MAIN("ema", is_the_average_of_the_checkpoints, may_begin_and_end)
