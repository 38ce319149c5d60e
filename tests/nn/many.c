/* SPDX-License-Identifier: MIT */
/* Registries with many parameters: the time per name must not grow with the number of names. */
#include <time.h>

#include "nn_test.h"

enum { MANY = 20000 };
static char name[MANY][40], other[MANY][40];

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static wf_registry *declare(void)
{
    wf_registry *r = new_registry();
    for (int i = 0; i < MANY; i++) {
        snprintf(name[i], sizeof name[i], "layers.%d.attention.weight", i);
        wf_parameter(wf_root(r), name[i], WF_SHAPE(1));
    }
    return r;
}

START_TEST(declared_found_frozen)
{
    double begin = seconds();
    wf_registry *r = declare();
    for (int i = 0; i < MANY; i++)
        ck_assert_ptr_eq(wf_registry_find(r, name[i]), wf_registry_at(r, i));
    ck_assert_ptr_null(wf_registry_find(r, "layers.20000.attention.weight"));
    ck_ok(wf_registry_build(r, 1, error));
    for (int i = 0; i < MANY; i++)
        wf_registry_freeze(r, wf_registry_at(r, i), i % 3 != 0);
    for (int i = 0; i < MANY; i++)
        ck_assert_int_eq(wf_parameter_info(wf_registry_at(r, i))->frozen, i % 3 != 0);
    double took = seconds() - begin;
    ck_assert_msg(sanitized() || took < 0.5, "%g seconds", took);
    wf_registry_free(r);
    /* a name that is declared twice is still found, near the first parameter and the last */
    for (int i = 0; i < MANY; i += MANY - 1) {
        r = declare();
        wf_parameter(wf_root(r), name[i], WF_SHAPE(1));
        ck_assert_ptr_nonnull(strstr(wf_registry_error(r)->message, "declared twice"));
        ck_assert_ptr_nonnull(strstr(wf_registry_error(r)->message, name[i]));
        wf_registry_free(r);
    }
}
END_TEST

/* A rule for each parameter, from a file in which all names differ. */
START_TEST(loaded_by_rules)
{
    wf_registry *r = declare();
    struct wf_load_rule *rule = calloc(MANY, sizeof *rule);
    float *data = calloc(MANY, sizeof *data);
    ck_assert(rule && data);
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    for (int i = 0; i < MANY; i++) {
        snprintf(other[i], sizeof other[i], "h.%d.w", MANY - i);
        data[i] = (float)i;
        wf_array a = wf_array_contiguous(&data[i], WF_F32, WF_SHAPE(1));
        wf_safetensors_put(w, other[i], &a);
        rule[MANY - 1 - i] = (struct wf_load_rule){name[i], {other[i]}};
    }
    wf_safetensors *file = written(w);
    double begin = seconds();
    ck_ok(wf_registry_load_with(r, file, &(struct wf_load_options){.rule = rule, .rules = MANY}, error));
    double took = seconds() - begin;
    ck_assert_msg(sanitized() || took < 1, "%g seconds", took);
    for (int i = 0; i < MANY; i++)
        ck_assert(wf_registry_values(r)[wf_parameter_info(wf_registry_at(r, i))->offset] == (wf_real)i);
    wf_safetensors_close(file);
    wf_registry_free(r);
    free(rule);
    free(data);
}
END_TEST

WF_TEST_MAIN("many", declared_found_frozen, loaded_by_rules)
