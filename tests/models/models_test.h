/* SPDX-License-Identifier: MIT */
/* What the tests of the room models share: small models, and a short training. */
#ifndef TESTS_MODELS_TEST_H
#define TESTS_MODELS_TEST_H

#include <unistd.h>

#include "check_weft.h"
#include "config_test.h"
#include "new_tape.h"
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

/* A small model of a family, as random as initialisation makes it. */
static inline struct wf_config small_config(const char *name, int64_t context, int64_t vocab)
{
    struct wf_config c = preset(name);
    set_key(&c, "d_model", 24);
    set_key(&c, "heads", 4);
    set_key(&c, "d_ff", 40);
    set_key(&c, "layers", 2);
    set_key(&c, "context", context);
    set_key(&c, "vocab_size", vocab);
    set_key(&c, "dropout", 0);
    return c;
}

static inline wf_model *model_of(const struct wf_config *c, uint64_t seed)
{
    wf_error error = {0};
    wf_model *m = wf_model_new(c, &error);
    ck_assert_msg(m != NULL, "%s", error.message);
    ck_assert_msg(wf_registry_build(wf_model_registry(m), seed, &error) == WF_OK, "%s", error.message);
    return m;
}

/* It has a parameter or buffer of this shape; columns 0: of one dimension. */
static inline void has(const wf_model *m, const char *name, int64_t rows, int64_t columns)
{
    wf_tensor *t = wf_registry_find(wf_model_registry(m), name);
    ck_assert_msg(t != NULL, "there is no %s", name);
    wf_shape s = wf_shape_of(t);
    ck_assert_msg(s.ndim == (columns ? 2 : 1) && s.dim[0] == rows && (!columns || s.dim[1] == columns), "%s has another shape", name);
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
        ck_assert_msg(wf_backward(l) == WF_OK, "%s", wf_tape_error(tape)->message);
        ck_assert_int_eq(wf_item(l, &loss), WF_OK);
        ck_ok(wf_clip_norm(wf_registry_grads(wf_model_registry(m)), 1.0, NULL, error));
        ck_ok(wf_adam_step(&opt, error));
    }
    wf_optimizer_free(&opt);
    wf_free(x);
    wf_free(y);
    return loss;
}

#endif
