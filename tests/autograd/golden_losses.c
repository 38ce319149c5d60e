/* SPDX-License-Identifier: MIT */
/* Losses of elements, class weights and losses of rows against PyTorch: tests/golden/make_losses.py. */
#include "../golden/golden.h"

static struct rig begin(const char *family, const char *how)
{
    static char name[64];
    snprintf(name, sizeof name, "%s_%s", family, how);
    struct rig r = rig_open("losses_by_row", name);
    rig_start(&r, WF_GRADIENTS, 1);
    return r;
}

static const struct {
    const char *name;
    enum wf_reduction reduction;
} how[] = {{"mean", WF_REDUCE_MEAN}, {"sum", WF_REDUCE_SUM}, {"none", WF_REDUCE_NONE}, {"batchmean", WF_REDUCE_BATCH_MEAN}};

static wf_tensor *x_of(struct rig *r, double scale)
{
    return wf_scale(rig_input(r, "x", WF_SHAPE(4, 5), 1), scale);
}

static wf_tensor *t_of(struct rig *r)
{
    return rig_input(r, "t", WF_SHAPE(4, 5), 1);
}

START_TEST(squared_error)
{
    for (int k = 0; k < 3; k++) {
        struct rig r = begin("mse", how[k].name);
        wf_tensor *x = x_of(&r, 1);
        rig_check(&r, wf_mse(x, t_of(&r), how[k].reduction));
    }
}
END_TEST

START_TEST(binary_cross_entropy)
{
    for (int k = 0; k < 3; k++)
        for (int weighted = 0; weighted < 2; weighted++) {
            struct rig r = begin(weighted ? "bce_weighted" : "bce", how[k].name);
            wf_tensor *x = x_of(&r, 4), *t = wf_affine(t_of(&r), 0.5, 0.5), *w = NULL;
            if (weighted)
                w = wf_affine(rig_tensor(&r, "w", WF_SHAPE(5), 1, false), 1, 1.5);
            rig_check(&r, wf_bce_with_logits(x, t, .positive_weight = w, .reduction = how[k].reduction));
        }
}
END_TEST

START_TEST(binary_cross_entropy_of_large_logits)
{
    enum { N = 33 };
    struct rig r = begin("bce", "edges");
    double *x = golden_read(r.file, "bce_edges/x", N), *t = golden_read(r.file, "bce_edges/t", N);
    double *want = golden_read(r.file, "bce_edges/out", N), *slope = golden_read(r.file, "bce_edges/d.x", N);
    wf_real logits[N], targets[N], loss[N];
    wf_array g;
    for (int i = 0; i < N; i++)
        logits[i] = (wf_real)x[i], targets[i] = (wf_real)t[i];
    wf_tensor *in = wf_input(r.tape, logits, WF_SHAPE(N), true);
    wf_tensor *y = wf_keep(wf_bce_with_logits(in, wf_input(r.tape, targets, WF_SHAPE(N), false), .reduction = WF_REDUCE_NONE));
    ck_assert(wf_read(y, loss, N) == WF_OK && wf_backward(y) == WF_OK && wf_grad(in, &g) == WF_OK);
    for (int i = 0; i < N; i++) {
        /* PyTorch's terms cancel here: the true value is log(1 + e^-|x|). */
        double exact = (t[i] == 0 && x[i] < -1) || (t[i] == 1 && x[i] > 1) ? log1p(exp(-fabs(x[i]))) : want[i];
        ck_assert_msg(fabs((double)loss[i] - exact) <= 4 * golden_tolerance() * exact + 1e-44, "loss of %g, %g: %.9g, not %.9g", x[i], t[i],
                      (double)loss[i], exact);
        double d = ((const wf_real *)g.data)[i];
        ck_assert_msg(fabs(d - slope[i]) <= 4 * golden_tolerance() * fabs(slope[i]) + 1e-16, "slope at %g, %g: %.9g, not %.9g", x[i], t[i],
                      d, slope[i]);
    }
    free(x);
    free(t);
    free(want);
    free(slope);
    rig_close(&r);
}
END_TEST

START_TEST(divergences)
{
    for (int k = 0; k < 4; k++)
        for (int log_target = 0; log_target < 2; log_target++) {
            struct rig r = begin(log_target ? "kl_log" : "kl", how[k].name);
            wf_tensor *x = wf_log_softmax(x_of(&r, 3), -1), *t = wf_scale(t_of(&r), 3);
            rig_check(&r, wf_kl_div(x, log_target ? wf_log_softmax(t, -1) : wf_softmax(t), .log_target = log_target,
                                    .reduction = how[k].reduction));
        }
    for (int k = 2; k < 4; k++) {
        struct rig r = begin("kl_normal", how[k].name);
        wf_tensor *mean = x_of(&r, 1);
        rig_check(&r, wf_kl_normal(mean, wf_scale(t_of(&r), 2), how[k].reduction));
    }
}
END_TEST

START_TEST(class_weights_and_rows)
{
    static const struct {
        const char *name;
        bool weighted;
        struct wf_cross_entropy_options o;
    } list[] = {{"weighted", true, {0}},
                {"weighted_smooth", true, {.label_smoothing = 0.2, .has_ignore = true, .ignore = 3}},
                {"weighted_sum", true, {.label_smoothing = 0.2, .has_ignore = true, .ignore = 3, .reduction = WF_REDUCE_SUM}},
                {"sum", false, {.label_smoothing = 0.1, .reduction = WF_REDUCE_SUM}},
                {"each", false, {.reduction = WF_REDUCE_NONE}},
                {"each_smooth", false, {.label_smoothing = 0.1, .has_ignore = true, .ignore = 2, .reduction = WF_REDUCE_NONE}},
                {"each_weighted", true, {.label_smoothing = 0.2, .has_ignore = true, .ignore = 3, .reduction = WF_REDUCE_NONE}}};
    enum { V = 7 };
    for (int k = 0; k < 7; k++)
        for (int linear = 0; linear < 2; linear++) {
            struct rig r = begin(linear ? "linear_ce" : "ce", list[k].name);
            struct wf_cross_entropy_options o = list[k].o;
            wf_tensor *targets = rig_ids(&r, "targets", 4, 6, V), *x = rig_input(&r, "x", WF_SHAPE(4, 6, linear ? 5 : V), 1);
            if (list[k].weighted)
                o.class_weights = wf_affine(rig_tensor(&r, "w", WF_SHAPE(V), 1, false), 1, 1.5);
            if (linear) {
                wf_tensor *w = rig_input(&r, "weight", WF_SHAPE(V, 5), 1), *b = rig_input(&r, "bias", WF_SHAPE(V), 1);
                rig_check(&r, wf_linear_cross_entropy_with(x, w, b, targets, &o));
            } else {
                rig_check(&r, wf_cross_entropy_with(wf_scale(x, 3), targets, &o));
            }
        }
}
END_TEST

WF_TEST_MAIN("golden_losses", squared_error, binary_cross_entropy, binary_cross_entropy_of_large_logits, divergences,
             class_weights_and_rows)
