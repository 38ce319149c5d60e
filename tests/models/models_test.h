/* SPDX-License-Identifier: MIT */
/* Shared by the tests of the room models: small models, checks, and a short training. */
#ifndef TESTS_MODELS_TEST_H
#define TESTS_MODELS_TEST_H

#include <unistd.h>

#include "check_weft.h"
#include "config_test.h"
#include "tape_values.h"
#include <weft/generate.h>
#include <weft/memory.h>
#include <weft/models.h>
#include <weft/optim.h>
#include <weft/random.h>
#include <weft/run.h>
#include <weft/runtime.h>

static inline struct wf_config preset(const char *name)
{
    struct wf_config c;
    ck_ok(wf_config_preset(&c, name, error));
    return c;
}

/* wf_config_set, with keys that follow: must succeed; must be refused with these words. */
static inline void set_value(struct wf_config *c, const char *key, const char *value)
{
    ck_ok(wf_config_set(c, key, value, error));
}

static inline void set_value_fails(struct wf_config *c, const char *key, const char *value, const char *says)
{
    ck_fails(wf_config_set(c, key, value, error), WF_ERR_ARGUMENT, says);
}

/* The configuration does not pass wf_config_check, for a reason with these words. */
static inline void ck_conflict(const struct wf_config *c, const char *says)
{
    ck_fails(wf_config_check(c, error), WF_ERR_ARGUMENT, says);
}

/* A small configuration of a preset. */
static inline struct wf_config small_config(const char *name, int64_t context, int64_t vocab)
{
    struct wf_config c = preset(name);
    set_keys(&c, "d_model=24 heads=4 d_ff=40 layers=2 dropout=0");
    set_key(&c, "context", context);
    set_key(&c, "vocab_size", vocab);
    return c;
}

/* Each KEY=VALUE is a key of the configuration with its value, as wf_config_get writes it. */
static inline void ck_keys(const struct wf_config *c, const char *settings)
{
    char key[64], value[64], got[64];
    for (int length; sscanf(settings, " %63[^=]=%63s%n", key, value, &length) == 2; settings += length) {
        ck_assert_msg(wf_config_get(c, key, got, sizeof got), "%s has no key %s", c->model, key);
        ck_assert_msg(strcmp(got, value) == 0, "%s: %s=%s, not %s", c->model, key, got, value);
    }
    ck_assert_msg(!*settings, "%s", settings);
}

/* A model with parameters that are declared, but without memory. */
static inline wf_model *bare_model(const struct wf_config *c)
{
    wf_error error = {0};
    wf_model *m = wf_model_new(c, &error);
    ck_assert_msg(m != NULL, "%s", error.message);
    return m;
}

static inline wf_model *model_of(const struct wf_config *c, uint64_t seed)
{
    wf_model *m = bare_model(c);
    ck_ok(wf_registry_build(wf_model_registry(m), seed, error));
    return m;
}

static inline const wf_array *value_of(const wf_model *m, const char *name)
{
    wf_tensor *t = wf_registry_find(wf_model_registry(m), name);
    ck_assert_msg(t != NULL, "there is no %s", name);
    return &wf_parameter_info(t)->value;
}

/* Checks that the model has a parameter or buffer of this shape; columns 0: of one dimension. */
static inline void has(const wf_model *m, const char *name, int64_t rows, int64_t columns)
{
    const wf_array *a = value_of(m, name);
    ck_assert_msg(a->ndim == (columns ? 2 : 1) && a->dim[0] == rows && (!columns || a->dim[1] == columns), "%s has another shape", name);
}

/* `count` values that begin at w have this standard deviation and the mean 0, up to five of their standard errors. */
static inline void ck_spread(const wf_real *w, int64_t count, double deviation, const char *name)
{
    double sum = 0, square = 0, n = (double)count;
    for (int64_t i = 0; i < count; i++) {
        sum += w[i];
        square += (double)w[i] * w[i];
    }
    double mean = sum / n, s = sqrt(square / n - mean * mean);
    ck_assert_msg(fabs(s / deviation - 1) < 5 / sqrt(2 * n), "%s: deviation %g instead of %g", name, s, deviation);
    ck_assert_msg(fabs(mean) < 5 * deviation / sqrt(n), "%s: mean %g", name, mean);
}

static inline void ck_deviation(const wf_model *m, const char *name, double deviation)
{
    const wf_array *a = value_of(m, name);
    ck_spread(a->data, wf_array_count(a), deviation, name);
}

/* Checks that x is poison with this status and these words in the message, and resets the tape. */
static inline void poisoned(wf_tape *tape, const wf_tensor *x, wf_status code, const char *says)
{
    ck_assert(wf_is_poison(x));
    ck_says(wf_tape_error(tape)->message, says);
    ck_assert_int_eq(wf_tape_error(tape)->code, code);
    wf_tape_reset(tape, WF_INFER);
}

/* -log softmax of logits [types], of one id. */
static inline double loss_of_id(const wf_real *logits, int types, int32_t id)
{
    double z = 0;
    for (int v = 0; v < types; v++)
        z += exp((double)logits[v]);
    return log(z) - (double)logits[id];
}

static inline void random_ids(int32_t *ids, int64_t n, int64_t vocab, uint64_t seed)
{
    wf_rng rng = wf_rng_new(seed, 7);
    for (int64_t i = 0; i < n; i++)
        ids[i] = (int32_t)wf_rng_below(&rng, (uint64_t)vocab);
}

/* A few steps on a melody of seven notes; returns the last loss. */
static inline double train_a_little(wf_model *m, wf_tape *tape, int steps)
{
    const struct wf_config *c = wf_model_config(m);
    int64_t B = 4, T = key_of(c, "context");
    int32_t *x = wf_alloc((size_t)(B * T) * sizeof *x), *y = wf_alloc((size_t)(B * T) * sizeof *y);
    struct wf_optimizer opt;
    double loss = 0;
    ck_ok(wf_adamw_init(&opt, wf_model_registry(m), error, .lr = 1e-2));
    for (int s = 0; s < steps; s++) {
        for (int64_t i = 0; i < B * T; i++) {
            int64_t at = i % T + 5 * (i / T) + s;
            x[i] = (int32_t)(at % 7 * 3 % key_of(c, "vocab_size"));
            y[i] = (int32_t)((at + 1) % 7 * 3 % key_of(c, "vocab_size"));
        }
        wf_tape_reset(tape, WF_TRAIN, .seed = 1, .step = (uint64_t)s);
        wf_tensor *l = wf_model_loss(m, wf_ids(tape, x, B, T), wf_ids(tape, y, B, T));
        loss = backward(l);
        ck_ok(wf_clip_norm(wf_registry_grads(wf_model_registry(m)), 1.0, NULL, error));
        ck_ok(wf_adam_step(&opt, error));
    }
    wf_optimizer_free(&opt);
    wf_free(x);
    wf_free(y);
    return loss;
}

#endif
