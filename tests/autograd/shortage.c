/* SPDX-License-Identifier: MIT */
/* Memory shortage through the tape: whichever allocation of a pass fails, the pass fails or has the bits that it has otherwise. */
#include <weft/ops.h>

#include "check_weft.h"

enum { MOST = 3 }; /* inputs */

struct pass {
    const char *what;
    wf_tensor *(*op)(wf_tensor *const in[]);
    int64_t in[MOST][4]; /* dims, ended by 0 */
};

static wf_tensor *matmul(wf_tensor *const in[])
{
    return wf_matmul(in[0], in[1]);
}

static wf_tensor *linear(wf_tensor *const in[])
{
    return wf_linear(in[0], in[1], in[2]);
}

static wf_tensor *add(wf_tensor *const in[])
{
    return wf_add(in[0], in[1]);
}

/* A gradient with gaps between its elements. */
static wf_tensor *add_turned(wf_tensor *const in[])
{
    return wf_transpose(wf_add(wf_transpose(in[0], 0, 1), in[1]), 0, 1);
}

static wf_tensor *attend(wf_tensor *const in[])
{
    return wf_attention(in[0], in[1], in[2], .heads = 2, .causal = true);
}

static wf_tensor *norm(wf_tensor *const in[])
{
    return wf_layer_norm(in[0], in[1], in[2], 1e-5);
}

static wf_tensor *loss(wf_tensor *const in[])
{
    int32_t target[700];
    for (int i = 0; i < 700; i++)
        target[i] = i * 7 % 130;
    return wf_linear_cross_entropy(in[0], in[1], in[2], wf_ids_of(wf_tape_of(in[0]), target, &(wf_shape){1, {700}}));
}

static wf_tensor *rows_of_loss(wf_tensor *const in[])
{
    int32_t target[700];
    for (int i = 0; i < 700; i++)
        target[i] = i * 7 % 130;
    wf_tensor *ids = wf_ids_of(wf_tape_of(in[0]), target, &(wf_shape){1, {700}});
    return wf_linear_cross_entropy(in[0], in[1], in[2], ids, .reduction = WF_REDUCE_NONE);
}

static wf_tensor *rows_by_id(wf_tensor *const in[])
{
    int32_t id[90];
    for (int i = 0; i < 90; i++)
        id[i] = i * 7 % 40;
    wf_tensor *ids = wf_ids_of(wf_tape_of(in[0]), id, &(wf_shape){1, {90}});
    return wf_index_add(in[0], 1, ids, wf_index_select(in[1], 1, ids));
}

static wf_tensor *recurrence(wf_tensor *const in[])
{
    return wf_scan(wf_tanh(in[0]), wf_log_softmax(wf_transpose(in[1], 0, 1), 0), NULL, 0);
}

static wf_tensor *elements(wf_tensor *const in[])
{
    return wf_add(wf_bce_with_logits(wf_transpose(in[0], 0, 1), wf_sigmoid(in[1]), .positive_weight = in[2]),
                  wf_logsumexp(in[0], 0, false));
}

/* In the terms of tests/core/gemm_memory.c: chunks of k in the forward (A packed too) and in the gradient of a weight, split-K, independent
 * tasks; sums of gradients over rows in parts and in any pattern. */
static const struct pass passes[] = {
    {"matmul, k of 3072", matmul, {{120, 3072}, {3072, 264}}},
    {"matmul, few results", matmul, {{40, 5000}, {5000, 40}}},
    {"matmul, a batch", matmul, {{6, 40, 200}, {6, 200, 45}}},
    {"matmul, one matrix for a batch", matmul, {{3, 1, 90, 96}, {5, 96, 70}}},
    {"linear, k of 3072", linear, {{120, 3072}, {130, 3072}, {130}}},
    {"linear, 4400 rows", linear, {{2, 2200, 64}, {270, 64}, {270}}},
    {"linear, a row", linear, {{1, 600}, {700, 600}, {700}}},
    {"a bias", add, {{1000, 64}, {64}}},
    {"a bias of a batch", add, {{5, 130, 64}, {130, 64}}},
    {"a sum over the last", add, {{64, 130}, {64, 1}}},
    {"a bias, turned", add_turned, {{64, 1000}, {64}}},
    {"attention", attend, {{2, 100, 32}, {2, 100, 32}, {2, 100, 32}}},
    {"layer norm", norm, {{3000, 40}, {40}, {40}}},
    {"cross-entropy of a linear layer", loss, {{700, 40}, {130, 40}, {130}}},
    {"its rows", rows_of_loss, {{700, 40}, {130, 40}, {130}}},
    {"rows by ids", rows_by_id, {{60, 40}, {60, 40}}},
    {"a recurrence", recurrence, {{90, 40}, {40, 90}}},
    {"losses of elements", elements, {{40, 300}, {300, 40}, {40}}},
};

static wf_real *values;

/* Forward, and in training backward; the result and the gradients end to end in out, where that is not NULL. */
static wf_status run(const struct pass *p, wf_mode mode, wf_real *out, int64_t *count)
{
    wf_error error = {0};
    wf_tape *tape = wf_tape_new(&error);
    if (!tape)
        return error.code;
    wf_tape_reset(tape, mode);
    wf_tensor *in[MOST] = {NULL};
    for (int i = 0; i < MOST && p->in[i][0]; i++) {
        wf_shape shape = {0};
        while (shape.ndim < 4 && p->in[i][shape.ndim])
            shape.dim[shape.ndim] = p->in[i][shape.ndim], shape.ndim++;
        in[i] = wf_input(tape, values + 1000 * i, &shape, mode != WF_INFER);
    }
    wf_tensor *y = wf_keep(p->op(in));
    wf_status status = mode == WF_INFER ? wf_tape_error(tape)->code : wf_backward(wf_sum(wf_mul(y, y)));
    int64_t at = 0;
    for (int i = -1; i < MOST && status == WF_OK; i++) {
        wf_array from, to;
        if (i >= 0 && (!in[i] || mode == WF_INFER))
            break;
        ck_assert_int_eq(i < 0 ? wf_view(y, &from) : wf_grad(in[i], &from), WF_OK);
        wf_shape shape = wf_array_shape(&from);
        if (out) {
            to = wf_array_contiguous(out + at, WF_REAL, &shape);
            wf_array_copy(&to, &from);
        }
        at += wf_shape_count(&shape);
    }
    if (count)
        *count = at;
    if (status != WF_OK)
        /* the message names the op, or without one how much was asked for */
        ck_assert_msg(wf_tape_error(tape)->code == status &&
                          (strstr(wf_tape_error(tape)->message, ": no memory") || strstr(wf_tape_error(tape)->message, "iB beside the ")),
                      "%s", wf_tape_error(tape)->message);
    wf_tape_free(tape);
    return status;
}

static void fail_each_allocation(const struct pass *p, wf_mode mode, const char *how)
{
    int64_t count = 0, failed = 0;
    ck_assert_int_eq(run(p, mode, NULL, &count), WF_OK);
    const size_t bytes = (size_t)count * sizeof(wf_real);
    wf_real *want = malloc(bytes), *got = malloc(bytes);
    wf_scratch_drop();
    const int64_t before = wf_alloc_count();
    ck_assert_int_eq(run(p, mode, want, NULL), WF_OK);
    const int64_t allocations = wf_alloc_count() - before;
    for (int64_t n = 0; n < allocations + 1; n++) {
        wf_scratch_drop();
        wf_alloc_fail_after(n);
        const wf_status status = run(p, mode, got, NULL);
        wf_alloc_fail_after(-1);
        failed += status != WF_OK;
        if (status != WF_OK ? status != WF_ERR_MEMORY : memcmp(got, want, bytes) != 0)
            ck_abort_msg("%s (%s, %s): allocation %d of %d failed: status %d%s", p->what, how, mode == WF_INFER ? "inference" : "training",
                         (int)n, (int)allocations, status, status == WF_OK ? " with other bits" : "");
    }
    ck_assert_int_gt(failed, 0);
    free(want), free(got);
}

static void fail_all(int threads, const char *mode)
{
    enum { VALUES = 3072 * 264 + 3000 };
    char how[64];
    snprintf(how, sizeof how, "%s, %d threads", mode, threads);
    ck_ok(wf_init(error, .threads = threads));
    ck_ok(wf_gemm_use(mode, error));
    values = malloc(VALUES * sizeof *values);
    uint64_t state = 1;
    for (int i = 0; i < VALUES; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        values[i] = (wf_real)((double)(state >> 40) / (1 << 23) - 1);
    }
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
        fail_each_allocation(&passes[i], WF_TRAIN, how);
        fail_each_allocation(&passes[i], WF_INFER, how);
    }
    free(values);
}

START_TEST(own_one_thread)
{
    fail_all(1, "own");
}
END_TEST

START_TEST(own_two_threads)
{
    fail_all(2, "own");
}
END_TEST

START_TEST(blis_one_thread)
{
    fail_all(1, "blis");
}
END_TEST

START_TEST(blis_two_threads)
{
    fail_all(2, "blis");
}
END_TEST

WF_TEST_MAIN("shortage", own_one_thread, own_two_threads, blis_one_thread, blis_two_threads)
