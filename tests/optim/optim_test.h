/* SPDX-License-Identifier: MIT */
/* Three parameters with given gradients, as in tests/golden/make_torch.py. */
#ifndef TESTS_OPTIM_TEST_H
#define TESTS_OPTIM_TEST_H

#include <weft/optim.h>

#include "../golden/golden.h"
#include "written.h"

#ifndef SHAPE_OF_C
#define SHAPE_OF_C                                                                                                                         \
    {                                                                                                                                      \
        2,                                                                                                                                 \
        {                                                                                                                                  \
            3, 4                                                                                                                           \
        }                                                                                                                                  \
    }
#endif
enum { STEPS = 6, PARAMETERS = 3 };
static const struct {
    const char *name;
    wf_shape shape;
} declared[PARAMETERS] = {{"w", {2, {5, 7}}}, {"b", {1, {7}}}, {"c", SHAPE_OF_C}};

static inline struct rig start_in(const char *file, const char *name)
{
    struct rig r = rig_open(file, name);
    for (int i = 0; i < PARAMETERS; i++)
        wf_parameter(wf_root(r.registry), declared[i].name, &declared[i].shape, .init = {0});
    rig_start(&r, WF_GRADIENTS, 0.5);
    return r;
}

static inline struct rig start(const char *name)
{
    return start_in("optim", name);
}

static inline wf_real *value_of(const wf_registry *r, const char *name)
{
    return wf_parameter_info(wf_registry_find(r, name))->value.data;
}

static inline size_t bytes_of(int parameter)
{
    return (size_t)wf_shape_count(&declared[parameter].shape) * sizeof(wf_real);
}

/* The gradient of sum(p * g) is g: gives the parameters whose bits are in `which` the gradients of step t. */
static inline void gradients(struct rig *r, int t, unsigned which)
{
    wf_tape_reset(r->tape, WF_GRADIENTS);
    wf_tensor *sum = wf_zeros(r->tape, &(wf_shape){0});
    for (int i = 0; i < PARAMETERS; i++) {
        char key[16];
        snprintf(key, sizeof key, "g%d.%s", t, declared[i].name);
        if (which >> i & 1)
            sum = wf_add(
                sum, wf_sum(wf_mul(wf_registry_at(r->registry, i), rig_tensor(r, key, &declared[i].shape, t == 3 ? 0.05 : 2.0, false))));
    }
    ck_assert_msg(wf_backward(sum) == WF_OK, "%s", wf_tape_error(r->tape)->message);
}

/* How many times as large the differences may be as those of other tests. */
#ifndef LOOSER
#define LOOSER 1
#endif

/* The values against STEP.NAME of the file. */
static inline void compare_values(const struct rig *r, int step)
{
    for (int i = 0; i < PARAMETERS; i++) {
        const struct wf_parameter_info *info = wf_parameter_info(wf_registry_at(r->registry, i));
        char key[128];
        snprintf(key, sizeof key, "%s/%d.%s", r->name, step, declared[i].name);
        golden_near(r->file, key, &info->value, LOOSER * golden_tolerance());
    }
}

/* Slab k of the moments against SLAB.NAME of the file, which has it for the parameters that have it here. */
static inline void compare_moments(const struct rig *r, const struct wf_optimizer *opt, int k, const char *slab)
{
    for (int i = 0; i < PARAMETERS; i++) {
        char key[128];
        const int64_t place = opt->part[0].parameter[i].place[k];
        snprintf(key, sizeof key, "%s/%s.%s", r->name, slab, declared[i].name);
        const struct wf_safetensors_entry *e = wf_safetensors_find(r->file, key);
        ck_assert_msg((e != NULL) == (place >= 0), "%s", key);
        if (!e)
            continue;
        wf_array a = wf_array_contiguous(opt->part[0].moment[k] + place, WF_REAL, &e->shape);
        golden_near(r->file, key, &a, LOOSER * golden_tolerance());
    }
}

/* A step with clipping at a norm; 0: none. */
static inline void clipped(struct wf_optimizer *opt, const struct rig *r, double clip)
{
    ck_ok(wf_clip_norm(wf_registry_grads(r->registry), clip, NULL, error));
    ck_ok(wf_optimizer_step(opt, error));
}

/* An open file with the state as optim.* and the weights as model.*. */
static inline wf_safetensors *saved(const struct wf_optimizer *opt, const struct rig *r)
{
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    wf_optimizer_save(opt, w, "optim.");
    wf_registry_save(r->registry, w, "model.");
    return written(w);
}

/* Loads such a file and closes it. */
static inline void restored(struct wf_optimizer *opt, const struct rig *r, wf_safetensors *file)
{
    ck_ok(wf_registry_load(r->registry, file, "model.", error));
    ck_ok(wf_optimizer_load(opt, file, "optim.", error));
    wf_safetensors_close(file);
}

/* Six steps as in the golden file, and the moments at their end. */
static inline void follow(struct wf_optimizer *opt, struct rig *r, double clip, const struct wf_schedule *schedule, int moments,
                          const char *const *moment)
{
    char key[64];
    wf_grads *grads = wf_registry_grads(r->registry);
    snprintf(key, sizeof key, "%s/norms", r->name);
    double *norms = golden_read(r->file, key, STEPS), norm;
    for (int t = 0; t < STEPS; t++) {
        gradients(r, t, 7);
        opt->lr = schedule ? wf_schedule_lr(schedule, t) : 1e-2;
        ck_assert(fabs(wf_grad_norm(grads) - norms[t]) <= golden_tolerance() * norms[t]);
        ck_ok(wf_clip_norm(grads, clip, &norm, error));
        ck_assert(fabs(norm - norms[t]) <= golden_tolerance() * norms[t]);
        ck_ok(wf_optimizer_step(opt, error));
        ck_assert_int_eq(opt->step, t + 1);
        ck_assert_double_eq(wf_grad_norm(grads), 0); /* forgotten */
        compare_values(r, t);
    }
    for (int k = 0; k < moments; k++)
        compare_moments(r, opt, k, moment[k]);
    free(norms);
    wf_optimizer_free(opt);
    rig_close(r);
}

#endif
