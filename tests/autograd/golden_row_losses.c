/* SPDX-License-Identifier: MIT */
/* l1, Huber, cross-entropy against distributions, triplet margin and InfoNCE against PyTorch: values and gradients. */
#include "golden_ops.h"

CALL(l1_mean, wf_l1(x[0], x[1], WF_REDUCE_MEAN))
CALL(l1_sum, wf_l1(x[0], x[1], WF_REDUCE_SUM))
CALL(l1_none, wf_l1(x[0], x[1], WF_REDUCE_NONE))
CALL(huber_mean, wf_huber(x[0], x[1], 1.5, WF_REDUCE_MEAN))
CALL(huber_sum, wf_huber(x[0], x[1], 1.5, WF_REDUCE_SUM))
CALL(huber_none, wf_huber(x[0], x[1], 1.5, WF_REDUCE_NONE))
CALL(huber_narrow_mean, wf_huber(x[0], x[1], 0.25, WF_REDUCE_MEAN))
CALL(huber_narrow_sum, wf_huber(x[0], x[1], 0.25, WF_REDUCE_SUM))
CALL(huber_narrow_none, wf_huber(x[0], x[1], 0.25, WF_REDUCE_NONE))
CALL(smooth_l1, wf_div_constant(wf_huber(x[0], x[1], 0.5, WF_REDUCE_MEAN), 0.5))
CALL(soft_mean, wf_cross_entropy_soft(x[0], x[1], .reduction = WF_REDUCE_MEAN))
CALL(soft_smooth_mean, wf_cross_entropy_soft(x[0], x[1], .reduction = WF_REDUCE_MEAN, .label_smoothing = 0.2))
CALL(soft_weighted_mean, wf_add(wf_cross_entropy_soft(x[0], x[1], WF_REDUCE_MEAN, 0.1, wf_detach(x[2])), wf_scale(wf_sum(x[2]), 0)))
CALL(soft_sum, wf_cross_entropy_soft(x[0], x[1], .reduction = WF_REDUCE_SUM))
CALL(soft_smooth_sum, wf_cross_entropy_soft(x[0], x[1], .reduction = WF_REDUCE_SUM, .label_smoothing = 0.2))
CALL(soft_weighted_sum, wf_add(wf_cross_entropy_soft(x[0], x[1], WF_REDUCE_SUM, 0.1, wf_detach(x[2])), wf_scale(wf_sum(x[2]), 0)))
CALL(soft_none, wf_cross_entropy_soft(x[0], x[1], .reduction = WF_REDUCE_NONE))
CALL(soft_smooth_none, wf_cross_entropy_soft(x[0], x[1], .reduction = WF_REDUCE_NONE, .label_smoothing = 0.2))
CALL(soft_weighted_none, wf_add(wf_cross_entropy_soft(x[0], x[1], WF_REDUCE_NONE, 0.1, wf_detach(x[2])), wf_scale(wf_sum(x[2]), 0)))
CALL(triplet_mean, wf_triplet_margin(x[0], x[1], x[2], .reduction = WF_REDUCE_MEAN))
CALL(triplet_sum, wf_triplet_margin(x[0], x[1], x[2], .reduction = WF_REDUCE_SUM))
CALL(triplet_none, wf_triplet_margin(x[0], x[1], x[2], .reduction = WF_REDUCE_NONE))
CALL(triplet_swap, wf_triplet_margin(x[0], x[1], x[2], .reduction = WF_REDUCE_NONE, .swap = true))
CALL(triplet_p, wf_triplet_margin(x[0], x[1], x[2], .reduction = WF_REDUCE_NONE, .margin = 0.5, .p = 1))
CALL(info_nce_mean, wf_info_nce(x[0], x[1], .reduction = WF_REDUCE_MEAN))
CALL(info_nce_sum, wf_info_nce(x[0], x[1], .reduction = WF_REDUCE_SUM))
CALL(info_nce_none, wf_info_nce(x[0], x[1], .reduction = WF_REDUCE_NONE))
CALL(info_nce_negatives, wf_info_nce(x[0], x[1], .temperature = 0.5, .negatives = x[2]))
CALL(info_nce_symmetric, wf_info_nce(x[0], x[1], .temperature = 0.07, .symmetric = true))

START_TEST(against_pytorch)
{
    static const struct golden_case cases[] = {{"l1_mean", l1_mean},
                                               {"l1_sum", l1_sum},
                                               {"l1_none", l1_none},
                                               {"l1_edges", l1_none},
                                               {"huber_mean", huber_mean},
                                               {"huber_sum", huber_sum},
                                               {"huber_none", huber_none},
                                               {"huber_edges", huber_none},
                                               {"huber_narrow_mean", huber_narrow_mean},
                                               {"huber_narrow_sum", huber_narrow_sum},
                                               {"huber_narrow_none", huber_narrow_none},
                                               {"huber_narrow_edges", huber_narrow_none},
                                               {"smooth_l1", smooth_l1},
                                               {"soft_mean", soft_mean, 0.01},
                                               {"soft_smooth_mean", soft_smooth_mean, 0.01},
                                               {"soft_weighted_mean", soft_weighted_mean, 0.01},
                                               {"soft_sum", soft_sum, 0.01},
                                               {"soft_smooth_sum", soft_smooth_sum, 0.01},
                                               {"soft_weighted_sum", soft_weighted_sum, 0.01},
                                               {"soft_none", soft_none, 0.01},
                                               {"soft_smooth_none", soft_smooth_none, 0.01},
                                               {"soft_weighted_none", soft_weighted_none, 0.01},
                                               {"soft_edges", soft_none},
                                               {"soft_one_class", soft_mean},
                                               {"triplet_mean", triplet_mean, 0.01},
                                               {"triplet_sum", triplet_sum, 0.01},
                                               {"triplet_none", triplet_none, 0.01},
                                               {"triplet_swap", triplet_swap, 0.01},
                                               {"triplet_p", triplet_p, 0.01},
                                               {"triplet_same", triplet_none, 0.01},
                                               {"info_nce_mean", info_nce_mean, 1},
                                               {"info_nce_sum", info_nce_sum, 1},
                                               {"info_nce_none", info_nce_none, 1},
                                               {"info_nce_negatives", info_nce_negatives, 1},
                                               {"info_nce_symmetric", info_nce_symmetric, 1}};
    golden_run_all("ops_losses", cases, sizeof cases / sizeof *cases);
}
END_TEST

START_TEST(batch_means_and_nothing)
{
    begin(WF_GRADIENTS);
    wf_tensor *x = normal(1, WF_SHAPE(4, 3, 5)), *t = wf_softmax(normal(2, WF_SHAPE(4, 3, 5)));
    const double sum = number(wf_cross_entropy_soft(x, t, .reduction = WF_REDUCE_SUM));
    ck_assert_double_le(fabs(number(wf_cross_entropy_soft(x, t, .reduction = WF_REDUCE_BATCH_MEAN)) - sum / 4), 1e-5);
    wf_tensor *none = wf_zeros(tape, WF_SHAPE(0, 5));
    ck_assert(number(wf_cross_entropy_soft(none, none)) == 0);
    ck_assert(number(wf_l1(none, none, WF_REDUCE_MEAN)) == 0);
    ck_assert(number(wf_triplet_margin(none, none, none)) == 0);
    /* ids as one-hot distributions give the plain loss */
    wf_tensor *ids = wf_ids(tape, I32(4, 0, 1, 2), 1, 4), *y = normal(3, WF_SHAPE(1, 4, 5));
    ck_assert_double_le(fabs(number(wf_cross_entropy_soft(y, wf_one_hot(ids, 5), .label_smoothing = 0.1)) -
                             number(wf_cross_entropy(y, ids, .label_smoothing = 0.1))),
                        1e-6);
}
END_TEST

START_TEST(errors)
{
#define REFUSED(call, code, words)                                                                                                         \
    do {                                                                                                                                   \
        begin(WF_GRADIENTS);                                                                                                               \
        wf_tensor *a = wf_name(normal(1, WF_SHAPE(2, 3)), "left"), *b = normal(2, WF_SHAPE(3, 3));                                         \
        (void)a, (void)b;                                                                                                                  \
        expect_error(call, code, words);                                                                                                   \
    } while (0)
    REFUSED(wf_l1(a, b, WF_REDUCE_MEAN), WF_ERR_SHAPE, "l1(left [2,3], input [3,3]): the first two operands must have the same shape");
    REFUSED(wf_huber(a, a, 0, WF_REDUCE_MEAN), WF_ERR_ARGUMENT, "delta = 0 must be above 0, and finite");
    REFUSED(wf_huber(a, a, NAN, WF_REDUCE_MEAN), WF_ERR_ARGUMENT, "delta = nan must be above 0");
    REFUSED(wf_cross_entropy_soft(a, b), WF_ERR_SHAPE,
            "cross_entropy_soft(left [2,3], input [3,3]): logits and targets must both be [..., V]");
    REFUSED(wf_cross_entropy_soft(a, NULL), WF_ERR_ARGUMENT, "cross_entropy_soft(left [2,3], none): the targets are NULL");
    REFUSED(wf_cross_entropy_soft(a, a, .label_smoothing = 2), WF_ERR_ARGUMENT, "label_smoothing = 2 is not in 0 .. 1");
    REFUSED(wf_cross_entropy_soft(a, a, (enum wf_reduction)9), WF_ERR_ARGUMENT, "the reduction 9 is unknown");
    REFUSED(wf_triplet_margin(a, a, NULL), WF_ERR_ARGUMENT, "triplet_margin(left [2,3], left [2,3], none): an operand is NULL");
    REFUSED(wf_triplet_margin(a, a, a, .margin = -1), WF_ERR_ARGUMENT, "margin = -1 must be above 0");
    REFUSED(wf_info_nce(a, b), WF_ERR_SHAPE, "info_nce(left [2,3], input [3,3]): queries and keys must both be [N,D]");
    REFUSED(wf_info_nce(a, a, .temperature = -1), WF_ERR_ARGUMENT, "the temperature -1 must be above 0");
    REFUSED(wf_info_nce(a, a, .symmetric = true, .negatives = b), WF_ERR_ARGUMENT, "the symmetric loss takes no further negatives");
}
END_TEST

WF_TEST_MAIN("losses of rows", against_pytorch, batch_means_and_nothing, errors)
