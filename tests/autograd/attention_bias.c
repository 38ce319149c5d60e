/* SPDX-License-Identifier: MIT */
/* A bias of attention's scores: the bits of a mask where it is 0 or -inf, of the layout for few queries, of any threads; what it may be.
 * Against PyTorch: tests/nn/attention.c. */
#include "attention_runs.h"

enum { B = 3, T = 70, S = 100, H = 4, G = 2, E = 8, F = 5 };

static struct result run(struct wf_attention_options o, const wf_real *bias, const wf_shape *shape, const bool *mask, bool dirty)
{
    return run_with(&(struct sizes){B, T, S, H, G, E, F}, o, bias, mask, shape, dirty, true);
}

/* Rows that may attend to nothing give zeros; a key that is masked contributes nothing, NaN or not. */
START_TEST(masks)
{
    static wf_real bias[H * T * S];
    static bool mask[H * T * S];
    for (int i = 0; i < H * T * S; i++) {
        int s = i % S, t = i / S % T;
        mask[i] = (s * 7 + t * 3 + i / S / T) % 5 && t != 13 && t != 66 && s != 40;
        bias[i] = mask[i] ? 0 : -INFINITY;
    }
    for (int isa = 0; isa < ISAS; isa++) {
        if (!isa_used(isa))
            continue;
        begin(WF_TRAIN);
        const struct wf_attention_options o[] = {
            {.causal = true}, {.window = 30}, {.softcap = 0.5, .dropout = 0.2}, {.key_lengths = I32(100, 0, 64)}};
        for (int i = 0; i < 4; i++)
            for (int dirty = 0; dirty < 2; dirty++) {
                struct result got = run(o[i], bias, WF_SHAPE(H, T, S), NULL, dirty);
                for (int64_t j = 0; j < got.count[5]; j++)
                    ck_assert_msg(mask[j] ? isfinite(got.part[5][j]) : got.part[5][j] == 0, "gradient %g of a bias of %g",
                                  (double)got.part[5][j], (double)bias[j]);
                same_and_free(got, run(o[i], NULL, WF_SHAPE(H, T, S), mask, dirty), wf_isa());
            }
    }
}
END_TEST

/* A cached step: the last queries alone have the bits that they have among all, for any strides of the bias. */
START_TEST(few_queries)
{
    static wf_real x[T * H * S];
    wf_fill_normal(x, T * H * S, 0, 2, 7, 8);
    for (int i = 0; i < T * H * S; i += 11)
        x[i] = -INFINITY;
    for (int isa = 0; isa < ISAS; isa++) {
        if (!isa_used(isa))
            continue;
        begin(WF_INFER);
        for (int strides = 0; strides < 4; strides++)
            for (int few = 1; few <= 9; few += 4) {
                wf_tensor *q = normal(1, WF_SHAPE(B, T, H * E)), *k = normal(2, WF_SHAPE(B, S, G * E));
                wf_tensor *v = normal(3, WF_SHAPE(B, S, G * F)), *bias;
                if (strides == 0)
                    bias = given(x, WF_SHAPE(H, T, S));
                else if (strides == 1) /* keys outside */
                    bias = wf_transpose(given(x, WF_SHAPE(H, S, T)), 1, 2);
                else
                    bias = given(x, strides == 2 ? WF_SHAPE(H, 1, S) : WF_SHAPE(T, 1));
                wf_tensor *last = wf_dim(bias, -2) == T ? wf_slice(bias, -2, T - few, few) : bias;
                wf_real *all = value_of(wf_attention(q, k, v, .heads = H, .kv_heads = G, .causal = true, .bias = bias, .softcap = few));
                wf_real *some = value_of(wf_attention(wf_slice(q, 1, T - few, few), k, v, .heads = H, .kv_heads = G, .causal = true,
                                                      .bias = last, .softcap = few));
                for (int b = 0; b < B; b++)
                    ck_assert_msg(memcmp(some + b * few * H * F, all + (b * T + T - few) * H * F, sizeof *all * (size_t)few * H * F) == 0,
                                  "%s, strides %d, %d queries", wf_isa(), strides, few);
                free(all);
                free(some);
                begin(WF_INFER);
            }
    }
}
END_TEST

/* The gradient of a broadcast bias is the sum of that of a full one, and has the same bits with any number of threads. */
START_TEST(gradients)
{
    static const int64_t shapes[][4] = {{B, H, T, S}, {1, H, T, S}, {1, 1, T, S}, {B, 1, 1, S}, {1, H, 1, S},
                                        {1, H, T, 1}, {1, 1, 1, 1}, {B, 1, T, S}, {B, 1, 1, 1}};
    static wf_real x[B * H * T * S], full[B * H * T * S], sum[B * H * T * S];
    wf_fill_normal(x, B * H * T * S, 0, 1, 7, 8);
    const struct wf_attention_options o = {.causal = true, .window = 60, .dropout = 0.1, .softcap = 4};
    begin(WF_TRAIN);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const int64_t *d = shapes[i];
        char what[64];
        snprintf(what, sizeof what, "bias %d", (int)i);
        ck_ok(wf_set_threads(1, error));
        struct result one = run(o, x, WF_SHAPE(d[0], d[1], d[2], d[3]), NULL, false);
        for (int64_t j = 0; j < B * H * T * S; j++) {
            int64_t at[4] = {j / (H * T * S), j / (T * S) % H, j / S % T, j % S}, from = 0;
            for (int k = 0; k < 4; k++)
                from = from * d[k] + (d[k] > 1 ? at[k] : 0);
            full[j] = x[from];
        }
        struct result wide = run(o, full, WF_SHAPE(B, H, T, S), NULL, false);
        memset(sum, 0, sizeof sum);
        for (int64_t j = 0; j < B * H * T * S; j++) {
            int64_t at[4] = {j / (H * T * S), j / (T * S) % H, j / S % T, j % S}, to = 0;
            for (int k = 0; k < 4; k++)
                to = to * d[k] + (d[k] > 1 ? at[k] : 0);
            sum[to] += wide.part[5][j];
        }
        for (int64_t j = 0; j < one.count[5]; j++) /* weights do not change if all keys get the same: 0, but for rounding */
            ck_assert_msg(fabs((double)one.part[5][j] - (double)sum[j]) <=
                              (sizeof(wf_real) == 8 ? 1e-12 : 1e-4) * (1 + fabs((double)sum[j])),
                          "%s: element %lld is %g, not %g", what, (long long)j, (double)one.part[5][j], (double)sum[j]);
        free(wide.part[5]);
        wide.part[5] = NULL;
        for (int threads = 2; threads <= 5; threads += 3) {
            ck_ok(wf_set_threads(threads, error));
            struct result more = run(o, x, WF_SHAPE(d[0], d[1], d[2], d[3]), NULL, false);
            for (int k = 0; k < 6; k++) {
                ck_assert_mem_eq(more.part[k], one.part[k], sizeof(wf_real) * (size_t)one.count[k]);
                free(more.part[k]);
            }
        }
        same_and_free(one, wide, what);
    }
}
END_TEST

/* Packed rows: a sequence has the bits that it has alone with its corner of the bias, whose gradient is the sum over the sequences in
 * order, with any number of threads. */
START_TEST(packed)
{
    enum { N = 120, M = 161, SEQUENCES = 4, L = 90, K = 101, WIDE = L * K };
    static const int32_t q[] = {0, 33, 33, 34, N}, k[] = {0, 70, 75, 75, M};
    begin(WF_INFER);
    for (int each = 0; each < 2; each++) { /* one bias of heads for all, or one for each sequence */
        const wf_shape shape = {4, {each ? SEQUENCES : 1, H, L, K}};
        wf_real *first[5] = {0}, *sum = calloc((size_t)wf_shape_count(&shape), sizeof *sum);
        for (int threads = 1; threads <= 5; threads += 2) {
            ck_ok(wf_set_threads(threads, error));
            begin(WF_TRAIN);
            wf_tensor *in[] = {normal(1, WF_SHAPE(N, H * E)), normal(2, WF_SHAPE(M, G * E)), normal(3, WF_SHAPE(M, G * F)),
                               normal(4, &shape)};
            wf_tensor *y = wf_keep(wf_attention(in[0], in[1], in[2], .heads = H, .kv_heads = G, .causal = true, .packed = {q, SEQUENCES},
                                                .k_packed = {k, SEQUENCES}, .bias = in[3]));
            ran(wf_backward(y, .gradient = normal(5, WF_SHAPE(N, H * F))));
            for (int i = 0; i < 5; i++) {
                wf_real *x = i < 4 ? gradient_of(in[i]) : value_of(y);
                if (first[i]) {
                    ck_assert_mem_eq(x, first[i], sizeof *x * (size_t)count_of(i < 4 ? in[i] : y));
                    free(x);
                } else {
                    first[i] = x;
                }
            }
        }
        for (int i = 0; i < SEQUENCES; i++) {
            const int64_t t = q[i + 1] - q[i], s = k[i + 1] - k[i], width[] = {H * E, G * E, G * F};
            begin(WF_TRAIN);
            wf_tensor *in[4], *all[] = {normal(1, WF_SHAPE(N, H * E)), normal(2, WF_SHAPE(M, G * E)), normal(3, WF_SHAPE(M, G * F)),
                                        normal(4, &shape), normal(5, WF_SHAPE(N, H * F))};
            for (int j = 0; j < 3; j++)
                in[j] = wf_reshape(wf_slice(all[j], 0, j ? k[i] : q[i], j ? s : t), 1, j ? s : t, width[j]);
            in[3] = wf_slice(wf_slice(wf_slice(all[3], 0, each ? i : 0, 1), 2, 0, t), 3, 0, s);
            wf_tensor *y = wf_keep(wf_attention(in[0], in[1], in[2], .heads = H, .kv_heads = G, .causal = true, .bias = in[3]));
            wf_tensor *dy = wf_reshape(wf_slice(all[4], 0, q[i], t), 1, t, H * F);
            ran(wf_backward(y, .gradient = wf_contiguous(dy)));
            wf_real *own = value_of(y), *d = gradient_of(all[3]), *dq = gradient_of(all[0]);
            ck_assert_mem_eq(own, first[4] + q[i] * H * F, sizeof *own * (size_t)(t * H * F));
            ck_assert_mem_eq(dq + q[i] * H * E, first[0] + q[i] * H * E, sizeof *dq * (size_t)(t * H * E));
            for (int64_t j = 0; j < wf_shape_count(&shape); j++)
                sum[j] += d[j];
            free(own), free(d), free(dq);
        }
        for (int64_t j = 0; j < wf_shape_count(&shape); j++)
            ck_assert_msg(fabs((double)(sum[j] - first[3][j])) <= 1e-5 * (1 + fabs((double)sum[j])),
                          "element %lld of the bias' gradient is %g, not %g", (long long)j, (double)first[3][j], (double)sum[j]);
        for (int i = 0; i < 5; i++)
            free(first[i]);
        free(sum);
    }
    /* a mask is a bias of 0 and -inf */
    static wf_real hide[H * WIDE];
    static bool mask[H * WIDE];
    wf_real *y[2];
    for (int i = 0; i < H * WIDE; i++) {
        mask[i] = (i % K * 7 + i / K * 3) % 5 != 0;
        hide[i] = mask[i] ? 0 : -INFINITY;
    }
    for (int i = 0; i < 2; i++) {
        begin(WF_INFER);
        wf_tensor *in[] = {normal(1, WF_SHAPE(N, H * E)), normal(2, WF_SHAPE(M, G * E)), normal(3, WF_SHAPE(M, G * F))};
        y[i] = value_of(wf_attention(in[0], in[1], in[2], .heads = H, .kv_heads = G, .packed = {q, SEQUENCES}, .k_packed = {k, SEQUENCES},
                                     .mask = i ? wf_bools(tape, mask, WF_SHAPE(H, L, K)) : NULL,
                                     .bias = i ? NULL : given(hide, WF_SHAPE(H, L, K))));
    }
    ck_assert_mem_eq(y[0], y[1], sizeof *y[0] * N * H * F);
    free(y[0]), free(y[1]);
}
END_TEST

START_TEST(refusals)
{
    begin(WF_INFER);
    wf_tensor *x = normal(1, WF_SHAPE(1, 4, 8));
    expect_error(wf_attention(x, x, x, .heads = 2, .bias = normal(2, WF_SHAPE(3, 4, 4))), WF_ERR_SHAPE,
                 "the bias must broadcast to [B,H,T,S] = [1,2,4,4]");
    begin(WF_INFER);
    x = normal(1, WF_SHAPE(1, 4, 8));
    expect_error(wf_attention(x, x, x, .bias = wf_bools(tape, (const bool[16]){true}, WF_SHAPE(4, 4))), WF_ERR_ARGUMENT, "attention(");
    begin(WF_INFER);
    x = normal(1, WF_SHAPE(4, 8));
    expect_error(wf_attention(x, x, x, .packed = {I32(0, 4), 1}, .bias = normal(2, WF_SHAPE(3, 4))), WF_ERR_SHAPE,
                 "the bias must broadcast to [sequences,H,L,K], L and K of the longest sequences or more, = [1,1,4,4]");
    begin(WF_INFER);
    x = normal(1, WF_SHAPE(4, 8));
    expect_error(wf_attention(x, x, x, .packed = {I32(0, 4), 1}, .bias = normal(2, WF_SHAPE(3, 1, 1, 4))), WF_ERR_SHAPE, "= [1,1,4,4]");
}
END_TEST

/* The weights of a query add up to 1, so the gradients of all values add up to those of the results, even if all scores are huge, as in a
 * row that is masked by adding -1e9. */
START_TEST(huge_scores)
{
    static const double huge[] = {-1e9, 1e9, -3e30};
    wf_real *bias = malloc(sizeof *bias * T * S);
    begin(WF_INFER);
    for (int i = 0; i < 3 * (int)(sizeof huge / sizeof *huge); i++) {
        if (!isa_used(i % 3))
            continue;
        for (int64_t j = 0; j < T * S; j++)
            bias[j] = (wf_real)huge[i / 3];
        struct result r = run((struct wf_attention_options){0}, bias, WF_SHAPE(T, S), NULL, false);
        wf_real *dy = value_of(normal(4, WF_SHAPE(B, T, H * F)));
        for (int64_t b = 0; b < B; b++)
            for (int64_t column = 0; column < G * F; column++) {
                double given_back = 0, wanted = 0, size = 0;
                for (int64_t k = 0; k < S; k++)
                    given_back += (double)r.part[4][(b * S + k) * G * F + column];
                for (int64_t q = 0; q < T; q++)
                    for (int64_t h = column / F * (H / G); h < (column / F + 1) * (H / G); h++) {
                        const double g = (double)dy[(b * T + q) * H * F + h * F + column % F];
                        wanted += g;
                        size += fabs(g);
                    }
                ck_assert_msg(fabs(given_back - wanted) < 1e-4 * size, "%s, scores %g: %g, not %g", wf_isa(), huge[i / 3], given_back,
                              wanted);
            }
        free(dy);
        same_and_free(r, (struct result){0}, "");
    }
    free(bias);
}
END_TEST

WF_TEST_MAIN("attention_bias", huge_scores, masks, few_queries, gradients, packed, refusals)
