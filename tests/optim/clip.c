/* SPDX-License-Identifier: MIT */
/* Norms and clipping: reading gradients between the clipping and the update changes nothing. */
#include "optim_test.h"

static wf_real *copy_of(const wf_registry *registry)
{
    size_t bytes = (size_t)wf_registry_slab(registry) * sizeof(wf_real);
    return memcpy(malloc(bytes), wf_registry_values(registry), bytes);
}

static double norm_here(wf_grads *grads, const struct rig *r, unsigned which)
{
    double sum = 0;
    for (int i = 0; i < PARAMETERS; i++) {
        const wf_real *g = wf_grads_at(grads, wf_registry_at(r->registry, i));
        ck_assert_int_eq(g != NULL, which >> i & 1);
        for (int64_t k = 0; g && k < wf_shape_count(&declared[i].shape); k++)
            sum += (double)g[k] * (double)g[k];
    }
    return sqrt(sum);
}

START_TEST(readers_see_clipped_gradients)
{
    const double loose = 2e-6; /* the formula adds 1e-6 to the norm */
    struct rig r = start("adam");
    wf_grads *grads = wf_registry_grads(r.registry);
    double norm = 0, again = 0;
    wf_array view;
    ck_assert_double_eq(wf_grad_norm(grads), 0);
    gradients(&r, 0, 5); /* w and c; b has none, and what its place holds counts for nothing */
    double whole = norm_here(grads, &r, 5);
    ck_assert_double_eq_tol(wf_grad_norm(grads), whole, 1e-12 * whole);
    wf_real first = wf_grads_at(grads, wf_registry_at(r.registry, 0))[0];
    ck_ok(wf_clip_norm(grads, whole / 4, &norm, error));
    ck_assert_double_eq_tol(norm, whole, 1e-12 * whole);
    ck_assert_int_eq(wf_grad(wf_registry_at(r.registry, 0), &view), WF_OK);
    ck_assert_double_eq_tol(((const wf_real *)view.data)[0], (double)first / 4, loose * fabs((double)first));
    ck_assert_double_eq_tol(norm_here(grads, &r, 5), whole / 4, loose * whole);
    ck_assert_double_eq_tol(wf_grad_norm(grads), whole / 4, loose * whole);
    /* once more, without a look between, and twice in a row */
    ck_ok(wf_clip_norm(grads, whole / 8, &norm, error));
    ck_assert_double_eq_tol(norm, whole / 4, loose * whole);
    ck_ok(wf_clip_norm(grads, whole / 16, &again, error));
    ck_assert_double_eq_tol(again, whole / 8, loose * whole);
    ck_assert_double_eq_tol(wf_grad_norm(grads), whole / 16, loose * whole);
    /* a larger maximum changes nothing, and neither does none */
    ck_ok(wf_clip_norm(grads, whole, NULL, error));
    ck_ok(wf_clip_norm(grads, INFINITY, NULL, error));
    ck_ok(wf_clip_norm(grads, 0, &norm, error));
    ck_assert_double_eq_tol(norm, whole / 16, loose * whole);
    ck_assert_double_eq_tol(norm_here(grads, &r, 5), whole / 16, loose * whole);
    wf_grads_zero(grads);
    /* a backward adds to the clipped gradients */
    gradients(&r, 0, 5);
    ck_ok(wf_clip_norm(grads, whole / 4, NULL, error));
    gradients(&r, 0, 7);
    ck_assert_double_eq_tol(wf_grads_at(grads, wf_registry_at(r.registry, 0))[0], 1.25 * (double)first, loose * fabs((double)first));
    wf_grads_zero(grads);
    /* a zero forgets the clipping */
    gradients(&r, 0, 5);
    ck_ok(wf_clip_norm(grads, whole / 4, NULL, error));
    wf_grads_zero(grads);
    gradients(&r, 0, 5);
    ck_assert_double_eq_tol(wf_grad_norm(grads), whole, 1e-12 * whole);
    /* the smallest maximum, which as a factor would be 0 */
    ck_ok(wf_clip_norm(grads, 1e-323, NULL, error));
    ck_assert(norm_here(grads, &r, 5) < 1e-30);
    rig_close(&r);
}
END_TEST

/* A read of gradients between clipping and update changes no bit of the update. */
START_TEST(reading_changes_no_bit)
{
    wf_real *first = NULL;
    for (int reader = 0; reader < 3; reader++) {
        struct rig r = start("adamw");
        struct wf_optimizer opt;
        wf_array view;
        ck_ok(wf_adamw_init(&opt, r.registry, error, .lr = 0.1, .weight_decay = 0.1));
        for (int t = 0; t < STEPS; t++) {
            gradients(&r, t, 7);
            ck_ok(wf_clip_norm(wf_registry_grads(r.registry), 0.3, NULL, error));
            if (reader == 1)
                ck_assert_int_eq(wf_grad(wf_registry_at(r.registry, 1), &view), WF_OK);
            if (reader == 2)
                ck_assert_ptr_nonnull(wf_grads_at(wf_registry_grads(r.registry), wf_registry_at(r.registry, 2)));
            ck_ok(wf_adamw_step(&opt, error));
        }
        if (!first)
            first = copy_of(r.registry);
        ck_assert_mem_eq(first, wf_registry_values(r.registry), (size_t)wf_registry_slab(r.registry) * sizeof *first);
        wf_optimizer_free(&opt);
        rig_close(&r);
    }
    free(first);
}
END_TEST

/* A norm over two registries: each gets the factor, and the norm is that of one registry with all parameters, to the bit. */
START_TEST(several_registries)
{
    struct rig one = start("adam"), a = start("adam"), b = start("adam");
    wf_grads *pair[2] = {wf_registry_grads(a.registry), wf_registry_grads(b.registry)}, *all = wf_registry_grads(one.registry);
    double norm = 0, want = 0;
    gradients(&one, 0, 7);
    gradients(&a, 0, 1);
    gradients(&b, 0, 6);
    ck_assert(wf_grad_norm_of(pair, 2) == wf_grad_norm(all));
    ck_assert(wf_grad_norm_of(pair, 1) < wf_grad_norm(all));
    ck_ok(wf_clip_norm(all, 1, &want, error));
    ck_ok(wf_clip_norm_of(pair, 2, 1, &norm, error));
    ck_assert(norm == want);
    for (int i = 0; i < PARAMETERS; i++) {
        const struct rig *r = i ? &b : &a;
        ck_assert_mem_eq(wf_grads_at(wf_registry_grads(r->registry), wf_registry_at(r->registry, i)),
                         wf_grads_at(all, wf_registry_at(one.registry, i)), bytes_of(i));
    }
    rig_close(&one);
    rig_close(&a);
    rig_close(&b);
}
END_TEST

START_TEST(refused)
{
    struct rig r = start("adam");
    wf_grads *grads = wf_registry_grads(r.registry), *twice[2] = {grads, grads};
    double norm = -1;
    const double bad[] = {-1, NAN, -INFINITY};
    gradients(&r, 0, 7);
    double whole = wf_grad_norm(grads);
    for (int i = 0; i < 3; i++) {
        ck_fails(wf_clip_norm(grads, bad[i], &norm, error), WF_ERR_ARGUMENT, "is not a maximum norm: give 0 to disable clipping");
    }
    ck_assert(isnan(wf_grad_norm(NULL)));
    ck_fails(wf_clip_norm(NULL, 1, &norm, error), WF_ERR_STATE, "call wf_registry_build or wf_registry_gradients first");
    ck_fails(wf_clip_norm_of(twice, 2, 1, &norm, error), WF_ERR_ARGUMENT, "wf_clip_norm_of: gradients 0 and 1 are the same");
    grads->broken = true;
    ck_fails(wf_clip_norm(grads, 1, &norm, error), WF_ERR_STATE, "the last backward failed");
    grads->broken = false;
    ck_assert(norm == -1 && wf_grad_norm(grads) == whole);
    wf_grads_at(grads, wf_registry_at(r.registry, 1))[2] = (wf_real)NAN;
    ck_assert_int_eq(wf_clip_norm(grads, 1, &norm, NULL), WF_ERR_NUMERIC);
    ck_assert(isnan(norm));
    ck_fails(wf_clip_norm(grads, 1, &norm, error), WF_ERR_NUMERIC, "the gradient of wf_registry_at(registry, 1) has the value nan");
    /* a step names the gradient that is not finite, also if it was written after the clipping */
    struct wf_optimizer opt;
    ck_ok(wf_sgd_init(&opt, r.registry, error, 0));
    for (int clipped = 0; clipped < 2; clipped++) {
        wf_grads_zero(grads);
        gradients(&r, 1, 7);
        if (clipped)
            ck_ok(wf_clip_norm(grads, 1, NULL, error));
        wf_grads_at(grads, wf_registry_at(r.registry, 1))[2] = (wf_real)INFINITY;
        ck_fails(wf_sgd_step(&opt, error), WF_ERR_NUMERIC, "the gradient of 'b' has the value inf in update 1");
    }
    wf_optimizer_free(&opt);
    rig_close(&r);
}
END_TEST

/* By value and then by norm, against PyTorch; what is stored as a factor is applied first. */
START_TEST(by_value)
{
    struct rig r = start_in("optim_more", "clip_value");
    struct wf_optimizer opt;
    wf_grads *grads = wf_registry_grads(r.registry);
    double *norms = golden_read(r.file, "clip_value/norms", STEPS), norm;
    ck_ok(wf_sgd_init(&opt, r.registry, error, .lr = 1e-2));
    for (int t = 0; t < STEPS; t++) {
        gradients(&r, t, 7);
        ck_ok(wf_clip_value(grads, 0.7, error));
        ck_ok(wf_clip_norm(grads, 2.5, &norm, error));
        ck_assert(fabs(norm - norms[t]) <= golden_tolerance() * norms[t]);
        ck_ok(wf_sgd_step(&opt, error));
        compare_values(&r, t);
    }
    free(norms);
    gradients(&r, 0, 5);
    const wf_real *w = wf_grads_at(grads, wf_registry_at(r.registry, 0));
    const wf_real first = w[0];
    ck_ok(wf_clip_value(grads, 0, error));
    ck_assert(w[0] == first);
    ck_ok(wf_clip_norm(grads, 1e-3, NULL, error));
    ck_ok(wf_clip_value(grads, 1, error));
    ck_assert(w[0] != first && fabs((double)w[0]) <= 1e-3);
    grads->slab[grads->place[0].offset] = INFINITY;
    grads->slab[grads->place[0].offset + 1] = NAN;
    ck_ok(wf_clip_value(grads, 0.5, error));
    ck_assert(w[0] == (wf_real)0.5 && isnan(w[1]));
    ck_fails(wf_sgd_step(&opt, error), WF_ERR_NUMERIC, "the gradient of 'w' has the value nan");
    ck_fails(wf_clip_value(grads, -1, error), WF_ERR_ARGUMENT, "max_value = -1 is not a maximum value: give 0 to disable clipping");
    ck_fails(wf_clip_value(grads, NAN, error), WF_ERR_ARGUMENT, "max_value = nan");
    ck_fails(wf_clip_value(NULL, 1, error), WF_ERR_STATE, "wf_clip_value: the gradients are NULL");
    wf_optimizer_free(&opt);
    rig_close(&r);
}
END_TEST

WF_TEST_MAIN("clip", readers_see_clipped_gradients, reading_changes_no_bit, several_registries, refused, by_value)
