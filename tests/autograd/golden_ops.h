/* SPDX-License-Identifier: MIT */
/* Single ops against PyTorch at edge values: the files that tests/golden/make_ops.py wrote. */
#ifndef TESTS_GOLDEN_OPS_H
#define TESTS_GOLDEN_OPS_H

#include "ops_tools.h"

#include "../golden/golden.h"

struct golden_case {
    const char *name;
    wf_tensor *(*function)(wf_tensor *const operand[]);
    double size; /* of terms that cancel in values or gradients: errors are relative to it where a number is smaller */
};

/* A function of a case. */
#define CALL(name, ...)                                                                                                                    \
    static wf_tensor *name(wf_tensor *const x[])                                                                                           \
    {                                                                                                                                      \
        return __VA_ARGS__;                                                                                                                \
    }

/* Sets key to that of a part of the case, and returns its entry in the file, or NULL. */
static inline const struct wf_safetensors_entry *golden_find(const wf_safetensors *file, const char *name, const char *part, char key[96])
{
    snprintf(key, 96, "%s/%s", name, part);
    return wf_safetensors_find(file, key);
}

/* An entry of the file, of any dtype that ops take, as doubles. */
static inline double *golden_numbers(const wf_safetensors *file, const struct wf_safetensors_entry *e)
{
    if (e->dtype == WF_F64)
        return golden_read(file, e->name, e->count);
    double *x = malloc((size_t)(e->count + 1) * sizeof *x);
    int32_t *raw = malloc((size_t)(e->count + 1) * sizeof *raw);
    ck_ok(wf_safetensors_read(file, e->name, e->dtype, raw, e->count, error));
    for (int64_t i = 0; i < e->count; i++)
        x[i] = e->dtype == WF_BOOL ? ((const bool *)raw)[i] : raw[i];
    free(raw);
    return x;
}

static inline wf_tensor *golden_operand(const wf_safetensors *file, const struct wf_safetensors_entry *e)
{
    double *x = golden_numbers(file, e);
    void *data = malloc((size_t)(e->count + 1) * sizeof(double));
    for (int64_t i = 0; i < e->count; i++)
        if (e->dtype == WF_BOOL)
            ((bool *)data)[i] = x[i] != 0;
        else if (e->dtype == WF_I32)
            ((int32_t *)data)[i] = (int32_t)x[i];
        else
            ((wf_real *)data)[i] = (wf_real)x[i];
    wf_tensor *t = e->dtype == WF_BOOL  ? wf_bools(tape, data, &e->shape)
                   : e->dtype == WF_I32 ? wf_ids_of(tape, data, &e->shape)
                                        : wf_input(tape, data, &e->shape, true);
    free(x);
    free(data);
    return t;
}

/* NaN and infinities have to be those of the reference. Other elements may differ by a relative error, and denormal numbers may be 0. */
static inline void golden_same(const wf_safetensors *file, const char *key, const wf_array *a, double size)
{
    const double bound = sizeof(wf_real) == 8 ? 1e-13 : 2e-6, least = sizeof(wf_real) == 8 ? 1e-307 : 1e-37;
    const struct wf_safetensors_entry *entry = wf_safetensors_find(file, key);
    int64_t n = wf_array_count(a);
    double *want = golden_numbers(file, entry), *have = golden_elements(a);
    ck_assert_int_eq(n, entry->count);
    for (int64_t i = 0; i < n; i++) {
        bool same =
            isnan(want[i]) ? isnan(have[i]) : want[i] == have[i] || fabs(have[i] - want[i]) <= bound * fmax(fabs(want[i]), size) + least;
        ck_assert_msg(same, "%s[%lld] is %.17g, not %.17g", key, (long long)i, have[i], want[i]);
    }
    free(want);
    free(have);
}

/* The operands as they are, or each as a transposed view of a transposed copy. */
static inline void golden_run(const wf_safetensors *file, const struct golden_case *g, bool views)
{
    begin(WF_GRADIENTS);
    wf_tensor *leaf[4], *operand[4];
    const struct wf_safetensors_entry *entry;
    char key[96], part[16];
    int n = 0;
    for (; snprintf(part, sizeof part, "%d", n), (entry = golden_find(file, g->name, part, key)) != NULL; n++) {
        leaf[n] = operand[n] = golden_operand(file, entry);
        if (views && entry->shape.ndim > 0) /* another order in memory */
            operand[n] = wf_transpose(wf_contiguous(wf_transpose(leaf[n], 0, -1)), 0, -1);
    }
    ck_assert_msg(n > 0, "%s is not in the file", g->name);
    wf_tensor *y = wf_keep(g->function(operand));
    wf_array view;
    ck_assert_msg((entry = golden_find(file, g->name, "out", key)) != NULL, "%s", key);
    wf_shape shape = wf_shape_of(y);
    static const wf_dtype plain[] = {WF_BOOL, WF_I32};
    for (int i = 0; i < 2; i++)
        ck_assert_msg((wf_dtype_of(y) == plain[i]) == (entry->dtype == plain[i]), "%s has another dtype", g->name);
    y = wf_to_real(y);
    ck_assert_msg(wf_view(y, &view) == WF_OK, "%s: %s", g->name, trouble(y));
    ck_assert_msg(wf_shape_equal(&shape, &entry->shape), "%s has another shape", g->name);
    golden_same(file, key, &view, g->size);
    if (golden_find(file, g->name, "dy", key)) {
        double *x = golden_read(file, key, wf_shape_count(&shape));
        wf_tensor *dy = wf_zeros(tape, &shape);
        ran(wf_view(dy, &view));
        for (int64_t i = 0; i < wf_shape_count(&shape); i++)
            ((wf_real *)view.data)[i] = (wf_real)x[i];
        free(x);
        ck_assert_msg(wf_backward(y, .gradient = dy) == WF_OK, "%s: %s", g->name, trouble(y));
        for (int i = 0; i < n; i++) {
            snprintf(part, sizeof part, "d.%d", i);
            if (!golden_find(file, g->name, part, key))
                continue;
            ck_assert_msg(wf_grad(leaf[i], &view) == WF_OK, "%s: no gradient", key);
            golden_same(file, key, &view, g->size);
        }
    }
}

static inline void golden_run_all(const char *name, const struct golden_case *cases, size_t count)
{
    wf_safetensors *file = golden_open(name);
    for (int s = 0; s < ISAS; s++) {
        if (!isa_used(s))
            continue;
        for (size_t i = 0; i < count; i++)
            for (int views = 0; views < 2; views++)
                golden_run(file, &cases[i], views);
    }
    wf_safetensors_close(file);
}

#endif
