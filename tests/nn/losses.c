/* SPDX-License-Identifier: MIT */
/* The losses against torch.nn.functional.cross_entropy: ignored targets, smoothing, another normalizer; and the fused map to
 * logits. Losses, means without smoothing, all gradients. */
#include "../golden/golden.h"
#include "nn_test.h"

static void scalar(struct rig *r, const char *key, const wf_tensor *x)
{
    double value;
    char name[128];
    ck_assert_msg(wf_item(x, &value) == WF_OK, "%s: %s", r->name, wf_tape_error(r->tape)->message);
    snprintf(name, sizeof name, "%s/%s", r->name, key);
    double *want = golden_read(r->file, name, 1);
    ck_assert_msg(fabs(value - *want) <= golden_tolerance() * fabs(*want), "%s: %.17g, not %.17g", name, value, *want);
    free(want);
}

static void check(const char *name, int32_t types, int64_t rows, int64_t columns, int64_t d, bool bias,
                  struct wf_cross_entropy_options options)
{
    struct rig r = rig_open("losses", name);
    wf_tensor *loss, *plain = NULL;
    options.plain = &plain;
    rig_start(&r, WF_GRADIENTS, 1);
    wf_tensor *targets = rig_ids(&r, "targets", rows, columns, types);
    if (d == 0) {
        loss = wf_cross_entropy_with(rig_input(&r, "logits", WF_SHAPE(rows, columns, types), 3), targets, &options);
    } else {
        wf_tensor *x = rig_input(&r, "x", WF_SHAPE(rows, columns, d), 1), *w = rig_input(&r, "weight", WF_SHAPE(types, d), 1);
        loss = wf_linear_cross_entropy_with(x, w, bias ? rig_input(&r, "bias", WF_SHAPE(types), 1) : NULL, targets, &options);
    }
    scalar(&r, "loss", loss);
    scalar(&r, "plain", plain);
    ck_backward(loss);
    rig_gradients(&r);
    rig_close(&r);
}

START_TEST(cross_entropy)
{
    check("ce", 11, 4, 6, 0, false, (struct wf_cross_entropy_options){0});
    check("ce_ignore", 5, 4, 6, 0, false, (struct wf_cross_entropy_options){.has_ignore = true, .ignore = 3});
    check("ce_smooth", 11, 4, 6, 0, false, (struct wf_cross_entropy_options){.label_smoothing = 0.1});
    check("ce_both", 5, 4, 6, 0, false,
          (struct wf_cross_entropy_options){.has_ignore = true, .ignore = 0, .label_smoothing = 0.1, .normalizer = 37});
}
END_TEST

START_TEST(linear_cross_entropy)
{
    check("linear_ce", 11, 4, 6, 9, true, (struct wf_cross_entropy_options){0});
    check("linear_ce_both", 5, 4, 6, 9, false, (struct wf_cross_entropy_options){.has_ignore = true, .ignore = 2, .label_smoothing = 0.2});
    check("linear_ce_wide", 700, 3, 11, 8, true,
          (struct wf_cross_entropy_options){.has_ignore = true, .ignore = 7, .label_smoothing = 0.1, .normalizer = 50});
}
END_TEST

/* PyTorch gives NaN here. */
START_TEST(of_no_targets_is_zero)
{
    for (int fused = 0; fused < 2; fused++) {
        struct rig r = rig_open("losses", "ce");
        struct wf_cross_entropy_options options = {.has_ignore = true, .ignore = 2, .label_smoothing = 0.1};
        double value;
        rig_start(&r, WF_GRADIENTS, 1);
        wf_tensor *targets = wf_ids(r.tape, (int32_t[]){2, 2, 2, 2}, 2, 2), *loss;
        wf_tensor *a = rig_input(&r, "a", WF_SHAPE(2, 2, 8), 1);
        if (fused)
            loss = wf_linear_cross_entropy_with(a, rig_input(&r, "weight", WF_SHAPE(5, 8), 1), NULL, targets, &options);
        else
            loss = wf_cross_entropy_with(a, targets, &options);
        ck_assert_int_eq(wf_item(loss, &value), WF_OK);
        ck_assert_double_eq(value, 0);
        ck_backward(loss);
        for (int i = 0; i < r.inputs; i++) {
            wf_array g;
            ck_assert_int_eq(wf_grad(r.input[i], &g), WF_OK);
            double *x = golden_elements(&g);
            ck_assert_double_eq(golden_norm(x, NULL, wf_array_count(&g)), 0);
            free(x);
        }
        rig_close(&r);
    }
}
END_TEST

WF_TEST_MAIN("losses", cross_entropy, linear_cross_entropy, of_no_targets_is_zero)
