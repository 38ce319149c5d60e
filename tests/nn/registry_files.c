/* SPDX-License-Identifier: MIT */
/* Registries in files: saved, loaded strictly, from other precisions, without memory. */
#include "registry_test.h"

static wf_safetensors *saved(const wf_registry *registry, const char *prefix)
{
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    wf_registry_save(registry, w, prefix);
    return written(w);
}

static void free_both(wf_registry *a, wf_registry *b)
{
    wf_registry_free(a);
    wf_registry_free(b);
}

START_TEST(saved_and_loaded)
{
    wf_registry *a = new_registry(), *b = new_registry();
    struct model m, n;
    declare(wf_root(a), &m);
    declare(wf_root(b), &n);
    ck_ok(wf_registry_build(a, 1, error));
    for (int prefixed = 0; prefixed < 2; prefixed++) {
        const char *prefix = prefixed ? "model." : NULL;
        wf_safetensors *file = saved(a, prefix);
        ck_assert_int_eq(wf_safetensors_count(file), NAMES - 1); /* no table, the tied weight once */
        ck_assert_ptr_nonnull(wf_safetensors_find(file, prefixed ? "model.embed.weight" : "embed.weight"));
        ck_ok(wf_registry_load(b, file, prefix, error));
        wf_safetensors_close(file);
        ck_assert_ptr_null(wf_registry_grads(b)); /* to use, not to train */
        ck_assert_mem_eq(wf_registry_values(a), wf_registry_values(b), (size_t)wf_registry_slab(a) * sizeof(wf_real));
        if (!prefixed)
            memset((void *)value_of(b, "norm.weight"), 0, 8 * sizeof(wf_real)); /* so that the second load shows */
    }
    ck_ok(wf_registry_gradients(b, error));
    ck_assert_ptr_nonnull(wf_registry_grads(b));
    free_both(a, b);
}
END_TEST

START_TEST(loading_is_strict)
{
    wf_registry *a = new_registry(), *b = new_registry();
    wf_parameter(wf_root(a), "same", WF_SHAPE(3), .init = {WF_INIT_CONSTANT, 1});
    wf_parameter(wf_root(a), "extra", WF_SHAPE(3), .init = {0});
    wf_parameter(wf_root(a), "extra.more", WF_SHAPE(3), .init = {0});
    wf_parameter(wf_root(a), "turned", WF_SHAPE(3, 2), .init = {0});
    ck_ok(wf_registry_build(a, 1, error));
    wf_parameter(wf_root(b), "same", WF_SHAPE(3), .init = {WF_INIT_CONSTANT, 7});
    wf_parameter(wf_root(b), "turned", WF_SHAPE(2, 3), .init = {0});
    wf_parameter(wf_root(b), "absent.weight", WF_SHAPE(3), .init = {0});
    ck_ok(wf_registry_build(b, 1, error));
    wf_safetensors *file = saved(a, "");
    wf_error e = {0};
    ck_assert_int_eq(wf_registry_load(b, file, NULL, &e), WF_ERR_FORMAT);
    ck_assert_msg(strstr(e.message, "1 missing: absent.weight") && strstr(e.message, "2 unexpected: extra, extra.more") &&
                      strstr(e.message, "1 with another shape: turned") && strstr(e.message, "[3,2]") && strstr(e.message, "[2,3]"),
                  "%s", e.message);
    ck_assert(value_of(b, "same")[0] == 7); /* nothing was touched */
    e = (wf_error){0};
    ck_assert_int_eq(wf_registry_load(b, file, "model.", &e), WF_ERR_FORMAT);
    ck_assert_msg(strstr(e.message, "3 missing: model.same, model.turned, model.absent.weight") && !strstr(e.message, "unexpected"), "%s",
                  e.message);
    wf_safetensors_close(file);
    free_both(a, b);
}
END_TEST

/* A long list is cut, and its count is not. */
START_TEST(long_lists_are_counted)
{
    wf_registry *a = new_registry(), *b = new_registry();
    wf_parameter(wf_root(a), "other", WF_SHAPE(1), .init = {0});
    ck_ok(wf_registry_build(a, 1, error));
    for (int i = 0; i < 500; i++)
        wf_parameter(wf_sub_at(wf_root(b), "a_long_name_for_a_layer", i), "weight", WF_SHAPE(1), .init = {0});
    wf_safetensors *file = saved(a, "");
    wf_error e = {0};
    ck_assert_int_eq(wf_registry_load(b, file, NULL, &e), WF_ERR_FORMAT);
    ck_assert_msg(strstr(e.message, "500 missing: a_long_name_for_a_layer.0.weight, ") && strstr(e.message, "1 unexpected: other"), "%s",
                  e.message);
    wf_safetensors_close(file);
    free_both(a, b);
}
END_TEST

/* Files in another precision are converted. */
START_TEST(other_dtypes)
{
    wf_registry *r = new_registry();
    wf_parameter(wf_root(r), "w", WF_SHAPE(2, 2), .init = {0});
    float single[] = {1, -2.5f, 0.125f, 3};
    double wide[] = {1, -2.5, 0.125, 3};
    uint16_t half[] = {0x3c00, 0xc100, 0x3000, 0x4200}, brain[] = {0x3f80, 0xc020, 0x3e00, 0x4040};
    wf_shape shape = {2, {2, 2}};
    const wf_array in[] = {wf_array_contiguous(single, WF_F32, &shape), wf_array_contiguous(wide, WF_F64, &shape),
                           wf_array_contiguous(half, WF_F16, &shape), wf_array_contiguous(brain, WF_BF16, &shape)};
    for (int i = 0; i < 4; i++) {
        wf_safetensors_writer *w = wf_safetensors_writer_new();
        wf_safetensors_put(w, "w", &in[i]);
        wf_safetensors *file = written(w);
        ck_ok(wf_registry_load(r, file, NULL, error));
        for (int k = 0; k < 4; k++)
            ck_assert(value_of(r, "w")[k] == (wf_real)wide[k]);
        memset(wf_registry_values(r), 0, 4 * sizeof(wf_real));
        wf_safetensors_close(file);
    }
    wf_registry_free(r);
}
END_TEST

START_TEST(loading_without_memory)
{
    wf_registry *a = new_registry();
    struct model m;
    declare(wf_root(a), &m);
    ck_ok(wf_registry_build(a, 1, error));
    wf_safetensors *file = saved(a, "");
    wf_registry *b = new_registry();
    declare(wf_root(b), &m);
    for (int n = 0;; n++) {
        wf_error e = {0};
        wf_alloc_fail_after(n);
        wf_status status = wf_registry_load(b, file, NULL, &e);
        if (status == WF_OK)
            status = wf_registry_gradients(b, &e);
        wf_alloc_fail_after(-1);
        if (status == WF_OK)
            break;
        ck_assert_int_eq(status, WF_ERR_MEMORY);
        ck_assert_int_lt(n, 100);
    }
    ck_assert_mem_eq(wf_registry_values(a), wf_registry_values(b), (size_t)wf_registry_slab(a) * sizeof(wf_real));
    wf_safetensors_close(file);
    free_both(a, b);
}
END_TEST

WF_TEST_MAIN("registry files", saved_and_loaded, loading_is_strict, long_lists_are_counted, other_dtypes, loading_without_memory)
