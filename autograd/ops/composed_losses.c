/* SPDX-License-Identifier: MIT */
/* Losses that are composed of ops: cross-entropy against a distribution, triplet margin and InfoNCE. */
#include <math.h>

#include "common.h"

/* The losses of rows, reduced. */
static wf_tensor *reduced(wf_tensor *losses, enum wf_reduction reduction)
{
    switch (reduction) {
    case WF_REDUCE_MEAN:
        return wf_mean(losses);
    case WF_REDUCE_SUM:
        return wf_sum(losses);
    case WF_REDUCE_BATCH_MEAN:
        return wf_div_constant(wf_sum(losses), (double)WF_MAX(wf_dim(losses, 0), 1));
    case WF_REDUCE_NONE:
        break;
    }
    return losses;
}

static bool is_given(int count, wf_tensor *const x[])
{
    for (int i = 0; i < count; i++)
        if (!x[i])
            return false;
    return true;
}

static bool is_known(enum wf_reduction reduction)
{
    return (unsigned)reduction <= WF_REDUCE_BATCH_MEAN;
}

/* --- cross-entropy against a distribution ----------------------------------------------------------------------------- */

wf_tensor *wf_cross_entropy_soft_with(wf_tensor *logits, wf_tensor *targets, const struct wf_cross_entropy_soft_options *options)
{
    static const struct wf_cross_entropy_soft_options none;
    const struct wf_cross_entropy_soft_options *o = options ? options : &none;
    wf_tensor *const in[] = {logits, targets};
    if (!is_given(2, in))
        return wf_composed_fail("cross_entropy_soft", 2, in, WF_ERR_ARGUMENT, "the %s are NULL", logits ? "targets" : "logits");
    const wf_shape shape = wf_shape_of(logits), same = wf_shape_of(targets);
    const double e = o->label_smoothing;
    if (wf_first_poison(2, in))
        return wf_first_poison(2, in);
    if (!is_known(o->reduction))
        return wf_composed_fail("cross_entropy_soft", 2, in, WF_ERR_ARGUMENT, "the reduction %d is unknown", (int)o->reduction);
    if (!wf_shape_equal(&shape, &same) || shape.ndim < 1 || shape.dim[shape.ndim - 1] < 1)
        return wf_composed_fail("cross_entropy_soft", 2, in, WF_ERR_SHAPE, "logits and targets must both be [..., V], with V at least 1");
    if (!(e >= 0 && e <= 1))
        return wf_composed_fail("cross_entropy_soft", 2, in, WF_ERR_ARGUMENT, "label_smoothing = %g is not in 0 .. 1", e);
    wf_tensor *log_p = wf_log_softmax(logits, -1);
    if (e > 0)
        targets = wf_affine(targets, 1 - e, e / (double)shape.dim[shape.ndim - 1]);
    if (o->class_weights)
        log_p = wf_mul(log_p, o->class_weights);
    return reduced(wf_neg(wf_sum_dim(wf_mul(log_p, targets), -1, false)), o->reduction);
}

/* --- triplet margin ---------------------------------------------------------------------------------------------------- */

static double or_default(double value, double preset)
{
    return value == 0 ? preset : value;
}

wf_tensor *wf_triplet_margin_with(wf_tensor *anchor, wf_tensor *positive, wf_tensor *negative, const struct wf_triplet_options *options)
{
    static const struct wf_triplet_options none;
    const struct wf_triplet_options *o = options ? options : &none;
    wf_tensor *const in[] = {anchor, positive, negative};
    if (!is_given(3, in))
        return wf_composed_fail("triplet_margin", 3, in, WF_ERR_ARGUMENT, "an operand is NULL");
    const double margin = or_default(o->margin, 1), p = or_default(o->p, 2), eps = or_default(o->eps, 1e-6);
    if (!is_known(o->reduction))
        return wf_composed_fail("triplet_margin", 3, in, WF_ERR_ARGUMENT, "the reduction %d is unknown", (int)o->reduction);
    if (!(margin > 0 && isfinite(margin)) || !(eps >= 0 && isfinite(eps)))
        return wf_composed_fail("triplet_margin", 3, in, WF_ERR_ARGUMENT, "margin = %g must be above 0, and eps = %g at least 0", margin,
                                eps);
    wf_tensor *near = wf_norm_dim(wf_add_constant(wf_subtract(anchor, positive), eps), p, -1, false);
    wf_tensor *far = wf_norm_dim(wf_add_constant(wf_subtract(anchor, negative), eps), p, -1, false);
    if (o->swap)
        far = wf_minimum(far, wf_norm_dim(wf_add_constant(wf_subtract(positive, negative), eps), p, -1, false));
    return reduced(wf_clamp(wf_add_constant(wf_subtract(near, far), margin), 0, INFINITY), o->reduction);
}

/* --- InfoNCE ------------------------------------------------------------------------------------------------------------ */

/* The loss of each row of a [N, D] whose positive is the row of b [M, D] with the same index, M >= N. */
static wf_tensor *info_nce(wf_tensor *a, wf_tensor *b, double temperature, wf_tensor *ids, enum wf_reduction reduction)
{
    wf_tensor *logits = wf_div_constant(wf_matmul(a, wf_transpose(b, 0, 1)), temperature);
    return wf_cross_entropy(logits, ids, .reduction = reduction == WF_REDUCE_BATCH_MEAN ? WF_REDUCE_MEAN : reduction);
}

wf_tensor *wf_info_nce_with(wf_tensor *queries, wf_tensor *keys, const struct wf_info_nce_options *options)
{
    static const struct wf_info_nce_options none;
    const struct wf_info_nce_options *o = options ? options : &none;
    wf_tensor *const in[] = {queries, keys};
    if (!is_given(2, in))
        return wf_composed_fail("info_nce", 2, in, WF_ERR_ARGUMENT, "the %s are NULL", queries ? "keys" : "queries");
    if (wf_first_poison(2, in))
        return wf_first_poison(2, in);
    const wf_shape q = wf_shape_of(queries), k = wf_shape_of(keys);
    const double temperature = or_default(o->temperature, 0.1);
    if (!is_known(o->reduction))
        return wf_composed_fail("info_nce", 2, in, WF_ERR_ARGUMENT, "the reduction %d is unknown", (int)o->reduction);
    if (q.ndim != 2 || !wf_shape_equal(&q, &k))
        return wf_composed_fail("info_nce", 2, in, WF_ERR_SHAPE, "queries and keys must both be [N,D]");
    if (!(temperature > 0 && isfinite(temperature)))
        return wf_composed_fail("info_nce", 2, in, WF_ERR_ARGUMENT, "the temperature %g must be above 0, and finite", temperature);
    if (o->symmetric && o->negatives)
        return wf_composed_fail("info_nce", 2, in, WF_ERR_ARGUMENT, "the symmetric loss takes no further negatives: they are keys only");
    wf_tensor *a = wf_l2_normalize(queries, 1e-12), *b = wf_l2_normalize(keys, 1e-12);
    wf_tensor *ids = wf_arange_ids(wf_tape_of_operands(2, in), 0, (int32_t)q.dim[0], 1);
    if (o->symmetric)
        return wf_scale(wf_add(info_nce(a, b, temperature, ids, o->reduction), info_nce(b, a, temperature, ids, o->reduction)), 0.5);
    if (o->negatives)
        b = wf_concat((wf_tensor *[]){b, wf_l2_normalize(o->negatives, 1e-12)}, 2, 0);
    return info_nce(a, b, temperature, ids, o->reduction);
}
