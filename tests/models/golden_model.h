/* SPDX-License-Identifier: MIT */
/* A model with the weights of the golden files. */
#ifndef TESTS_GOLDEN_MODEL_H
#define TESTS_GOLDEN_MODEL_H

#include <weft/models.h>

#include "../golden/golden.h"
#include "config_test.h"
#include "tape_values.h"

/* A model's weights by the formula, in streams NAME/PARAMETER: matrices in +-1/sqrt(columns), gains 1 +- 1/4, biases +-1/4, as in
 * make_torch.py, make_encoder.py and make_seq2seq.py. */
static inline void golden_fill(wf_registry *registry, const char *name)
{
    for (int i = 0; i < wf_registry_count(registry); i++) {
        const struct wf_parameter_info *info = wf_parameter_info(wf_registry_at(registry, i));
        wf_real *value = wf_registry_values(registry) + info->offset;
        char key[256];
        snprintf(key, sizeof key, "%s/%s", name, info->name);
        uint64_t stream = formula_name(key, NULL);
        double scale = info->value.ndim == 2 ? 1 / sqrt((double)info->value.dim[1]) : 0.25;
        double shift = info->value.ndim == 1 && strstr(info->name, "norm") && strstr(info->name, "weight") ? 1 : 0;
        for (int64_t k = 0; !wf_registry_is_buffer(registry, i) && k < wf_array_count(&info->value); k++)
            value[k] = (wf_real)(float)(shift + formula_real(stream, k, scale));
    }
}

/* The number FIRST/SECOND of a file. */
static inline double golden_number(const wf_safetensors *file, const char *first, const char *second)
{
    char key[512];
    snprintf(key, sizeof key, "%s/%s", first, second);
    double *x = golden_read(file, key, 1), value = *x;
    free(x);
    return value;
}

/* No element of x differs from FIRST/SECOND of the file by more than the tolerance. */
static inline void golden_close(const wf_safetensors *file, const char *first, const char *second, const wf_tensor *x, double tolerance)
{
    char key[512];
    snprintf(key, sizeof key, "%s/%s", first, second);
    const wf_array view = view_of(x);
    int64_t n = wf_array_count(&view);
    double *want = golden_read(file, key, n), *have = golden_elements(&view), apart = 0;
    for (int64_t i = 0; i < n; i++)
        apart = fmax(apart, fabs(have[i] - want[i]));
    ck_assert_msg(n > 0 && apart <= tolerance, "%s differs by %g", key, apart);
    free(want);
    free(have);
}

/* Estimates |array - reference| from the 32 projections PREFIX/WHAT/projections on the random signs of stream NAME/WHAT. */
static inline double golden_apart(const wf_safetensors *file, const char *prefix, const char *name, const char *what, const wf_array *array)
{
    enum { SIGNS = 32 };
    char key[512];
    int64_t n = wf_array_count(array);
    double *have = golden_elements(array), projection[SIGNS] = {0}, sum = 0;
    snprintf(key, sizeof key, "%s/%s/projections", prefix, what);
    double *want = golden_read(file, key, SIGNS);
    snprintf(key, sizeof key, "%s/%s", name, what);
    uint64_t stream = formula_name(key, NULL);
    for (int64_t i = 0; i < n; i++) {
        uint64_t hash = formula_hash(stream, i);
        for (int j = 0; j < SIGNS; j++)
            projection[j] += formula_sign(hash, j) * have[i];
    }
    for (int j = 0; j < SIGNS; j++)
        sum += (projection[j] - want[j]) * (projection[j] - want[j]);
    free(want);
    free(have);
    return sqrt(sum / SIGNS);
}

/* |gradient - reference| <= tolerance x the larger of the reference's norm and a thousandth of the largest, for the gradients
 * NAME/d.PARAMETER of all parameters. Returns how many. */
static inline int golden_gradients(const wf_safetensors *file, const char *name, const wf_registry *registry, double tolerance)
{
    int count = 0;
    double largest = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < wf_registry_count(registry); i++) {
            char key[256];
            wf_array view;
            if (wf_registry_is_buffer(registry, i))
                continue;
            snprintf(key, sizeof key, "%s/d.%s", name, wf_parameter_info(wf_registry_at(registry, i))->name);
            ck_assert_int_eq(wf_grad(wf_registry_at(registry, i), &view), WF_OK);
            int64_t n = wf_array_count(&view);
            double *want = golden_read(file, key, n), *have = golden_elements(&view), norm = golden_norm(want, NULL, n);
            largest = fmax(largest, norm);
            double apart = golden_norm(have, want, n), allowed = tolerance * fmax(norm, 1e-3 * largest);
            ck_assert_msg(pass == 0 || apart <= allowed, "%s differs by %g, allowed %g", key, apart, allowed);
            count += pass;
            free(want);
            free(have);
        }
    return count;
}

/* Sets the model of the configuration, its registry and a tape. */
static inline void golden_model(const struct wf_config *config, const char *name, wf_model **model, wf_registry **registry, wf_tape **tape)
{
    wf_error e = {0};
    *model = wf_model_new(config, &e);
    ck_assert_msg(*model != NULL, "%s", e.message);
    *registry = wf_model_registry(*model);
    ck_ok(wf_registry_build(*registry, 1, error));
    golden_fill(*registry, name);
    *tape = new_tape();
}

#endif
