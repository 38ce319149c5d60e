/* SPDX-License-Identifier: MIT */
/* Comparing with the files that tests/golden/make_torch.py wrote. For tests in both precisions. */
#ifndef TESTS_GOLDEN_GOLDEN_H
#define TESTS_GOLDEN_GOLDEN_H

#include <math.h>

#include <weft/nn.h>

#include "../check_weft.h"
#include "formula.h"

/* The tolerance of a result, relative to the norm of the double reference. */
static inline double golden_tolerance(void)
{
    return sizeof(wf_real) == 8 ? 1e-13 : 2e-6;
}

static inline wf_safetensors *golden_open(const char *name)
{
    char path[4096];
    const char *root = getenv("WEFT_SOURCE_ROOT");
    wf_error error = {0};
    snprintf(path, sizeof path, "%s/tests/golden/torch/%s.safetensors", root ? root : ".", name);
    wf_safetensors *file = wf_safetensors_open(path, &error);
    ck_assert_msg(file != NULL, "%s", error.message);
    return file;
}

/* A tensor of the file as doubles, freed with free. */
static inline double *golden_read(const wf_safetensors *file, const char *key, int64_t count)
{
    double *x = malloc((size_t)(count > 0 ? count : 1) * sizeof *x);
    ck_ok(wf_safetensors_read(file, key, WF_F64, x, count, error));
    return x;
}

/* The elements of a strided array in row-major order, freed with free. */
static inline double *golden_elements(const wf_array *a)
{
    int64_t count = wf_array_count(a), at[WF_MAX_DIMS] = {0};
    double *x = malloc((size_t)(count > 0 ? count : 1) * sizeof *x);
    for (int64_t i = 0; i < count; i++) {
        int64_t place = 0;
        for (int d = 0; d < a->ndim; d++)
            place += at[d] * a->stride[d];
        x[i] = (double)((const wf_real *)a->data)[place];
        for (int d = a->ndim - 1; d >= 0 && ++at[d] == a->dim[d]; d--)
            at[d] = 0;
    }
    return x;
}

static inline double golden_norm(const double *x, const double *minus, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double v = minus ? x[i] - minus[i] : x[i];
        sum += v * v;
    }
    return sqrt(sum);
}

/* |a - reference| <= tolerance * |reference|, over all elements. A reference of zeros must be met exactly. */
static inline void golden_near(const wf_safetensors *file, const char *key, const wf_array *a, double tolerance)
{
    int64_t n = wf_array_count(a);
    double *want = golden_read(file, key, n), *have = golden_elements(a);
    double norm = golden_norm(want, NULL, n), difference = golden_norm(have, want, n);
    ck_assert_msg(difference <= tolerance * norm, "%s: differs by %g of %g, relative %.3g > %.3g", key, difference, norm, difference / norm,
                  tolerance);
    free(want);
    free(have);
}

/* --- one module or op on its own ----------------------------------------------------------------------------------- */

struct rig {
    const char *name; /* of the case: keys and streams begin with it */
    wf_safetensors *file;
    wf_registry *registry; /* declare in wf_root(rig.registry), then rig_start */
    wf_tape *tape;
    wf_tensor *input[4];
    const char *input_name[4];
    int inputs;
};

static inline struct rig rig_open(const char *file, const char *name)
{
    wf_error error = {0};
    struct rig r = {.name = name, .file = golden_open(file)};
    r.registry = wf_registry_new(&error);
    r.tape = wf_tape_new(&error);
    ck_assert_msg(r.registry && r.tape, "%s", error.message);
    return r;
}

static inline void rig_close(struct rig *r)
{
    wf_safetensors_close(r->file);
    wf_tape_free(r->tape);
    wf_registry_free(r->registry);
}

/* Of numbers by the formula. */
static inline uint64_t rig_stream(const struct rig *r, const char *name)
{
    char key[256];
    snprintf(key, sizeof key, "%s/%s", r->name, name);
    return formula_name(key, NULL);
}

/* Weights by the formula, in +-scale. */
static inline void rig_start(struct rig *r, wf_mode mode, double scale)
{
    ck_ok(wf_registry_build(r->registry, 1, error));
    for (int i = 0; i < wf_registry_count(r->registry); i++) {
        const struct wf_parameter_info *info = wf_parameter_info(wf_registry_at(r->registry, i));
        uint64_t stream = rig_stream(r, info->name);
        for (int64_t k = 0; !wf_registry_is_buffer(r->registry, i) && k < wf_array_count(&info->value); k++)
            wf_registry_values(r->registry)[info->offset + k] = (wf_real)formula_real(stream, k, scale);
    }
    wf_tape_reset(r->tape, mode);
}

static inline wf_tensor *rig_tensor(struct rig *r, const char *name, const wf_shape *shape, double scale, bool needs_grad)
{
    uint64_t stream = rig_stream(r, name);
    int64_t n = wf_shape_count(shape);
    wf_real *x = malloc((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = (wf_real)formula_real(stream, i, scale);
    wf_tensor *t = wf_input(r->tape, x, shape, needs_grad);
    free(x);
    return t;
}

static inline wf_tensor *rig_input(struct rig *r, const char *name, const wf_shape *shape, double scale)
{
    r->input_name[r->inputs] = name;
    return r->input[r->inputs++] = rig_tensor(r, name, shape, scale, true);
}

static inline wf_tensor *rig_ids_of(struct rig *r, const char *name, const wf_shape *shape, int32_t n)
{
    int32_t ids[4096];
    ck_assert_int_le(wf_shape_count(shape), 4096);
    for (int64_t i = 0; i < wf_shape_count(shape); i++)
        ids[i] = formula_id(rig_stream(r, name), i, n);
    return wf_ids_of(r->tape, ids, shape);
}

static inline wf_tensor *rig_ids(struct rig *r, const char *name, int64_t rows, int64_t columns, int32_t n)
{
    return rig_ids_of(r, name, WF_SHAPE(rows, columns), n);
}

static inline void rig_compare(struct rig *r, const char *key, const wf_tensor *x, bool gradient)
{
    char name[256];
    wf_array view;
    snprintf(name, sizeof name, "%s/%s%s", r->name, gradient ? "d." : "", key);
    ck_assert_msg((gradient ? wf_grad(x, &view) : wf_view(x, &view)) == WF_OK, "%s: %s", name, wf_tape_error(r->tape)->message);
    golden_near(r->file, name, &view, golden_tolerance());
}

/* The gradients of everything after a backward. */
static inline void rig_gradients(struct rig *r)
{
    for (int i = 0; i < wf_registry_count(r->registry); i++)
        if (!wf_registry_is_buffer(r->registry, i))
            rig_compare(r, wf_parameter_info(wf_registry_at(r->registry, i))->name, wf_registry_at(r->registry, i), true);
    for (int i = 0; i < r->inputs; i++)
        rig_compare(r, r->input_name[i], r->input[i], true);
}

/* y, and the gradients of sum(y * r), against the file. */
static inline void rig_check(struct rig *r, wf_tensor *y)
{
    rig_compare(r, "out", y, false);
    wf_shape shape = wf_shape_of(y);
    ck_assert_msg(wf_backward(wf_sum(wf_mul(y, rig_tensor(r, "r", &shape, 1, false)))) == WF_OK, "%s: %s", r->name,
                  wf_tape_error(r->tape)->message);
    rig_gradients(r);
    rig_close(r);
}

#endif
