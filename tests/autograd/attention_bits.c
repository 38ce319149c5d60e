/* SPDX-License-Identifier: MIT */
/* Fused attention: what its bits may depend on (not on the rows beside, the cache, packing, threads), dropout's masks,
 * memory, and refusals. */
#include <weft/internal/kernels.h>
#include <weft/internal/minmax.h>

#include "attention_reference.h"

static wf_tensor *part(const wf_real *x, int64_t items, int64_t rows, int64_t first, int64_t count, int64_t d)
{
    return wf_slice(wf_input(tape, x, WF_SHAPE(items, rows, d), false), 1, first, count);
}

/* The last `count` queries of a prefix of n, with a cache of n keys, have the bits of the same rows in a full recompute
 * of N positions, whichever other items are in the batch. */
static void check_prefixes(int heads, int kv_heads, int64_t e, int64_t f, double softcap)
{
    enum { B = 2, N = 130 };
    const int64_t d = heads * e, kd = kv_heads * e, vd = kv_heads * f, od = heads * f;
    wf_real *q = normals(B * N * d, 1), *k = normals(B * N * kd, 2), *v = normals(B * N * vd, 3);
    begin(WF_INFER);
    struct wf_attention_options o = {.heads = heads, .kv_heads = kv_heads, .causal = true, .softcap = softcap};
    wf_real *full = value_of(wf_attention_with(part(q, B, N, 0, N, d), part(k, B, N, 0, N, kd), part(v, B, N, 0, N, vd), &o));
    static const int64_t counts[] = {1, 3, 8, 9, 40};
    for (int64_t n = 1; n <= N; n++)
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            int64_t count = WF_MIN(counts[i], n);
            for (int64_t items = 1; items <= B; items++) {
                begin(WF_INFER);
                wf_real *y = value_of(wf_attention_with(part(q, items, N, n - count, count, d), part(k, items, N, 0, n, kd),
                                                        part(v, items, N, 0, n, vd), &o));
                for (int64_t b = 0; b < items; b++)
                    ck_assert_msg(memcmp(y + b * count * od, full + (b * N + n - count) * od, (size_t)(count * od) * sizeof *y) == 0,
                                  "%s E%d F%d: %d rows at %d of item %d of %d", wf_isa(), (int)e, (int)f, (int)count, (int)n, (int)b,
                                  (int)items);
                free(y);
            }
        }
    free(q);
    free(k);
    free(v);
    free(full);
}

START_TEST(cache_equals_recompute)
{
    for (int i = 0; i < ISAS; i++) {
        if (!isa_used(i))
            continue;
        check_prefixes(4, 4, 32, 32, 0);
        check_prefixes(2, 1, 8, 8, 0.5);
        check_prefixes(2, 2, 21, 37, 2);
        check_prefixes(1, 1, 64, 80, 0);
    }
}
END_TEST

/* A row's bits with key lengths and masks do not depend on how many queries or how much padding stand beside it. */
START_TEST(rows_alone_with_masks)
{
    enum { S = 100, T = 20, D = 24 };
    wf_real *q = normals(T * D, 1), *k = normals(S * D, 2), *v = normals(S * D, 3);
    bool mask[T * S];
    wf_rng rng = wf_rng_new(8, 8);
    for (int i = 0; i < T * S; i++)
        mask[i] = i % S < 66 && wf_rng_uniform(&rng) < 0.5;
    begin(WF_INFER);
    struct wf_attention_options o = {.heads = 2, .mask = wf_bools(tape, mask, WF_SHAPE(T, S))};
    wf_real *all = value_of(wf_attention_with(part(q, 1, T, 0, T, D), part(k, 1, S, 0, S, D), part(v, 1, S, 0, S, D), &o));
    for (int t = 0; t < T; t++)
        for (int keys = 66; keys <= S; keys += 34) {
            begin(WF_INFER);
            o.mask = wf_bools(tape, mask + t * S, WF_SHAPE(1, keys));
            wf_real *y = value_of(wf_attention_with(part(q, 1, T, t, 1, D), part(k, 1, S, 0, keys, D), part(v, 1, S, 0, keys, D), &o));
            ck_assert_mem_eq(y, all + t * D, D * sizeof *y);
            free(y);
        }
    free(all);
    free(q);
    free(k);
    free(v);
}
END_TEST

/* Packed sequences have the bits that each has alone, in forward and backward. */
START_TEST(packed_equals_apart)
{
    static const int32_t q_offsets[] = {0, 33, 33, 34, 120}, k_offsets[] = {0, 70, 75, 75, 161};
    enum { N = 120, M = 161, D = 24 };
    for (int causal = 0; causal < 2; causal++) {
        wf_real *q = normals(N * D, 1), *k = normals(M * D, 2), *v = normals(M * D, 3), *dout = normals(N * D, 4);
        begin(WF_GRADIENTS);
        wf_tensor *x[3] = {wf_input(tape, q, WF_SHAPE(N, D), true), wf_input(tape, k, WF_SHAPE(M, D), true),
                           wf_input(tape, v, WF_SHAPE(M, D), true)};
        wf_tensor *y =
            wf_keep(wf_attention(x[0], x[1], x[2], .heads = 3, .causal = causal, .packed = {q_offsets, 4}, .k_packed = {k_offsets, 4}));
        ran(wf_backward(wf_sum(wf_mul(y, wf_input(tape, dout, WF_SHAPE(N, D), false)))));
        wf_array got[4], want[4];
        ran(wf_view(y, &got[3]));
        for (int j = 0; j < 3; j++)
            ran(wf_grad(x[j], &got[j]));
        for (int i = 0; i < 4; i++) {
            int64_t t0 = q_offsets[i], s0 = k_offsets[i], t = q_offsets[i + 1] - t0, s = k_offsets[i + 1] - s0;
            wf_tensor *z[3] = {wf_input(tape, q + t0 * D, WF_SHAPE(1, t, D), true), wf_input(tape, k + s0 * D, WF_SHAPE(1, s, D), true),
                               wf_input(tape, v + s0 * D, WF_SHAPE(1, s, D), true)};
            wf_tensor *w = wf_keep(wf_attention(z[0], z[1], z[2], .heads = 3, .causal = causal));
            ran(wf_backward(wf_sum(wf_mul(w, wf_input(tape, dout + t0 * D, WF_SHAPE(1, t, D), false)))));
            ran(wf_view(w, &want[3]));
            for (int j = 0; j < 3; j++)
                ran(wf_grad(z[j], &want[j]));
            for (int j = 0; j < 4; j++)
                ck_assert_mem_eq((wf_real *)got[j].data + (j == 1 || j == 2 ? s0 : t0) * D, want[j].data,
                                 (size_t)wf_array_count(&want[j]) * sizeof(wf_real));
        }
        free(q);
        free(k);
        free(v);
        free(dout);
    }
}
END_TEST

START_TEST(same_bits_on_any_threads)
{
    enum { B = 2, T = 300, H = 3, D = 48 };
    wf_real *all = normals(B * T * 3 * D, 1), *dout = normals(B * T * D, 2), *first[2] = {NULL, NULL};
    for (int threads = 1; threads <= 4; threads++) {
        ck_ok(wf_set_threads(threads, error));
        begin(WF_TRAIN);
        wf_tensor *x = wf_input(tape, all, WF_SHAPE(B, T, 3 * D), true), *p[3];
        wf_split(x, 2, 3, p);
        wf_tensor *y = wf_keep(wf_attention(p[0], p[1], p[2], .heads = H, .causal = true, .dropout = 0.2));
        ran(wf_backward(wf_sum(wf_mul(y, wf_input(tape, dout, WF_SHAPE(B, T, D), false)))));
        wf_array g;
        ran(wf_grad(x, &g));
        wf_real *out = value_of(y);
        if (threads == 1) {
            first[0] = out;
            first[1] = malloc(sizeof(wf_real) * B * T * 3 * D);
            memcpy(first[1], g.data, sizeof(wf_real) * B * T * 3 * D);
            continue;
        }
        ck_assert_mem_eq(first[0], out, sizeof(wf_real) * B * T * D);
        ck_assert_mem_eq(first[1], g.data, sizeof(wf_real) * B * T * 3 * D);
        free(out);
    }
    free(first[0]);
    free(first[1]);
    free(all);
    free(dout);
}
END_TEST

/* The gradient of slices of one tensor equals that of separate inputs, with zeros outside the slices, whatever else adds to it. */
START_TEST(gradients_of_slices)
{
    enum { B = 2, T = 70, D = 24, MOST = 4 };
    static const struct {
        int width, first[3]; /* in units of D */
        bool before, after;  /* the tensor has another use before attention, and after it */
    } cases[] = {{3, {0, 1, 2}, false, false}, {3, {2, 0, 1}, false, false}, {3, {0, 1, 2}, true, false},  {3, {0, 1, 2}, false, true},
                 {4, {0, 1, 2}, false, false}, {4, {3, 1, 0}, false, false}, {3, {0, 0, 2}, false, false}, {2, {1, 1, 0}, true, false}};
    wf_real *all = normals(B * T * MOST * D, 1), *dout = normals(B * T * D, 2);
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) { /* twice: the second time over what the first left in memory */
        const int n = i % (sizeof cases / sizeof *cases), width = cases[n].width * D;
        begin(WF_GRADIENTS);
        wf_tensor *x = wf_input(tape, all, WF_SHAPE(B, T, width), true), *p[3], *alone[3];
        wf_tensor *g = wf_input(tape, dout, WF_SHAPE(B, T, D), false);
        for (int j = 0; j < 3; j++) {
            p[j] = wf_slice(x, 2, cases[n].first[j] * D, D);
            wf_real *copy = value_of(p[j]);
            alone[j] = wf_input(tape, copy, WF_SHAPE(B, T, D), true);
            free(copy);
        }
        wf_tensor *loss = cases[n].after ? wf_sum(x) : NULL; /* backward goes from the last use to the first */
        wf_tensor *y = wf_sum(wf_mul(wf_attention(p[0], p[1], p[2], .heads = 3, .causal = true), g));
        loss = loss ? wf_add(loss, y) : cases[n].before ? wf_add(y, wf_sum(x)) : y;
        loss = wf_add(loss, wf_sum(wf_mul(wf_attention(alone[0], alone[1], alone[2], .heads = 3, .causal = true), g)));
        ran(wf_backward(loss));
        wf_array got, part_of[3];
        ran(wf_grad(x, &got));
        for (int j = 0; j < 3; j++)
            ran(wf_grad(alone[j], &part_of[j]));
        for (int64_t r = 0; r < B * T; r++)
            for (int64_t c = 0; c < width; c++) {
                double want = cases[n].before || cases[n].after;
                for (int j = 0; j < 3; j++)
                    if (c / D == cases[n].first[j])
                        want += ((wf_real *)part_of[j].data)[r * D + c % D];
                ck_assert_double_eq_tol(((wf_real *)got.data)[r * width + c], want, 1e-5);
            }
    }
    free(all);
    free(dout);
}
END_TEST

/* --- dropout ------------------------------------------------------------------------------------------------------- */

/* If the values are an identity matrix, the result is the weights after dropout: the weights without it times the multipliers that the
 * kernel `dropout` draws for (seed, step, call, row). */
static void check_dropout(bool packed, uint64_t first_row)
{
    enum { B = 2, H = 2, T = 40, S = 72, E = 8 };
    const double p = 0.3;
    wf_real *q = normals(B * T * H * E, 1), *k = normals(B * S * H * E, 2), *v = calloc(B * S * H * S, sizeof *v);
    for (int row = 0; row < B * S; row++)
        for (int h = 0; h < H; h++)
            v[(row * H + h) * S + row % S] = 1;
    begin(WF_TRAIN);
    wf_tape_first_row(tape, first_row);
    wf_tensor *weights, *x[3], *y;
    /* an op with random numbers before: this one is call number 1 */
    x[0] = wf_input(tape, q, WF_SHAPE(B, T, H * E), true);
    wf_attention(x[0], x[0], x[0], .heads = H, .dropout = p);
    x[1] = wf_input(tape, k, WF_SHAPE(B, S, H * E), true);
    x[2] = wf_input(tape, v, WF_SHAPE(B, S, H * S), true);
    y = wf_attention(x[0], x[1], x[2], .heads = H, .dropout = p, .weights = &weights);
    if (packed)
        y = wf_attention(wf_reshape(x[0], B * T, H * E), wf_reshape(x[1], B * S, H * E), wf_reshape(x[2], B * S, H * S), .heads = H,
                         .dropout = p, .packed = {I32(0, T, 2 * T), 2}, .k_packed = {I32(0, S, 2 * S), 2});
    wf_real *out = value_of(y), *w = value_of(weights), ones[S], draw[S];
    uint32_t threshold = (uint32_t)(p * 65536 + 0.5), call = packed ? 2 : 1;
    int64_t dropped = 0;
    for (int b = 0; b < B; b++)
        for (int h = 0; h < H; h++)
            for (int t = 0; t < T; t++) {
                uint64_t row = packed ? (first_row + (uint64_t)(b * T + t)) * H + (uint64_t)h
                                      : ((first_row + (uint64_t)b) * H + (uint64_t)h) * T + (uint64_t)t;
                for (int s = 0; s < S; s++)
                    ones[s] = 1;
                wf_kernel->dropout(S, 11, 5, call, row, threshold, (wf_real)(65536.0 / (65536.0 - threshold)), ones, draw);
                for (int s = 0; s < S; s++) {
                    double want = (double)w[((b * H + h) * T + t) * S + s] * draw[s];
                    ck_assert_double_eq_tol(out[((b * T + t) * H + h) * S + s], want, 1e-6);
                    ck_assert_int_eq(out[((b * T + t) * H + h) * S + s] == 0, want == 0);
                    dropped += draw[s] == 0;
                }
            }
    double share = (double)dropped / (B * H * T * S);
    ck_assert_double_eq_tol(share, p, 0.02);
    free(out);
    free(w);
    free(q);
    free(k);
    free(v);
}

START_TEST(dropout_draws_as_the_kernel)
{
    for (int i = 0; i < ISAS; i++) {
        if (!isa_used(i))
            continue;
        check_dropout(false, 0);
        check_dropout(false, 5000000000u);
        check_dropout(true, 3);
    }
}
END_TEST

START_TEST(dropout_only_in_training)
{
    wf_real *x = normals(2 * 20 * 8, 1);
    static const wf_mode modes[] = {WF_INFER, WF_GRADIENTS};
    for (int i = 0; i < 2; i++) {
        begin(modes[i]);
        wf_tensor *t = wf_input(tape, x, WF_SHAPE(2, 20, 8), true);
        wf_real *a = value_of(wf_attention(t, t, t, .dropout = 0.9)), *b = value_of(wf_attention(t, t, t));
        ck_assert_mem_eq(a, b, 2 * 20 * 8 * sizeof *a);
        free(a);
        free(b);
    }
    free(x);
}
END_TEST

/* --- memory and refusals ------------------------------------------------------------------------------------------- */

START_TEST(no_square_is_stored)
{
    enum { T = 1024, H = 8, D = 64 };
    ck_ok(wf_init(error)); /* more threads take more memory */
    wf_real *x = normals(T * 3 * D, 1);
    begin(WF_TRAIN);
    wf_tensor *all = wf_input(tape, x, WF_SHAPE(1, T, 3 * D), true), *p[3];
    wf_split(all, 2, 3, p);
    ran(wf_backward(wf_sum(wf_attention(p[0], p[1], p[2], .heads = H, .causal = true, .dropout = 0.1))));
    /* the input and its gradient, the result, its gradient (contiguous once), a log sum a row and head */
    size_t needed = (size_t)T * (2 * 3 * D + 3 * D + H) * sizeof(wf_real), peak = wf_tape_stats(tape).peak;
    ck_assert_msg(peak < needed * 3 / 2 && peak < (size_t)H * T * T * sizeof(wf_real) / 8, "%zu bytes, %zu are needed", peak, needed);
    free(x);
}
END_TEST

static void check_refusal(wf_status code, const char *words, struct wf_attention_options o, int dims, int64_t q_width, int64_t k_width)
{
    begin(WF_INFER);
    bool bools[60] = {false};
    if (o.mask)
        o.mask = o.heads == 1 ? wf_bools(tape, bools, WF_SHAPE(3, 4)) : wf_zeros(tape, WF_SHAPE(5));
    wf_tensor *q = wf_zeros(tape, dims == 3 ? WF_SHAPE(2, 3, q_width) : WF_SHAPE(6, q_width));
    wf_tensor *k = wf_zeros(tape, dims == 3 ? WF_SHAPE(2, 5, k_width) : WF_SHAPE(10, k_width));
    expect_error(wf_attention_with(q, k, k, &o), code, words);
    ck_says(wf_tape_error(tape)->message, "attention");
}

START_TEST(refusals)
{
    wf_tensor *some = (wf_tensor *)&check_refusal; /* replaced by a mask of a wrong shape or type */
    typedef struct wf_attention_options O;
    check_refusal(WF_ERR_SHAPE, "3 heads", (O){.heads = 3}, 3, 8, 8);
    check_refusal(WF_ERR_ARGUMENT, "heads = 4 is not a multiple of kv_heads = 3", (O){.heads = 4, .kv_heads = 3}, 3, 8, 8);
    check_refusal(WF_ERR_SHAPE, "the width of k must be 8", (O){.heads = 2}, 3, 8, 6);
    check_refusal(WF_ERR_SHAPE, "[B,T,H*E]", (O){.heads = 2}, 2, 8, 8);
    check_refusal(WF_ERR_ARGUMENT, "key_lengths[1] = 6", (O){.heads = 2, .key_lengths = I32(5, 6)}, 3, 8, 8);
    check_refusal(WF_ERR_ARGUMENT, "starts[1] = 6", (O){.heads = 2, .causal = true, .starts = I32(5, 6)}, 3, 8, 8);
    check_refusal(WF_ERR_ARGUMENT, "starts[0] = -1", (O){.heads = 2, .causal = true, .starts = I32(-1, 5)}, 3, 8, 8);
    check_refusal(WF_ERR_ARGUMENT, "set causal", (O){.heads = 2, .starts = I32(1, 5)}, 3, 8, 8);
    check_refusal(WF_ERR_ARGUMENT, "key_lengths[0] = -1", (O){.heads = 2, .key_lengths = I32(-1, 5)}, 3, 8, 8);
    check_refusal(WF_ERR_ARGUMENT, "dropout = 1.5", (O){.heads = 2, .dropout = 1.5}, 3, 8, 8);
    check_refusal(WF_ERR_ARGUMENT, "dropout = 1", (O){.heads = 2, .dropout = 1}, 3, 8, 8);
    check_refusal(WF_ERR_ARGUMENT, "softcap = -2 is not in", (O){.heads = 2, .softcap = -2}, 3, 8, 8);
    check_refusal(WF_ERR_ARGUMENT, "softcap = inf is not in", (O){.heads = 2, .softcap = INFINITY}, 3, 8, 8);
    check_refusal(WF_ERR_ARGUMENT, "scale = nan", (O){.heads = 2, .scale = NAN}, 3, 8, 8);
    check_refusal(WF_ERR_SHAPE, "[2,1,3,5]", (O){.heads = 1, .mask = some}, 3, 8, 8);
    check_refusal(WF_ERR_ARGUMENT, "BOOL is required", (O){.heads = 2, .mask = some}, 3, 8, 8);
    check_refusal(
        WF_ERR_ARGUMENT,
        "packed: offsets[1] = 5 after 0, but offsets of 1 sequences must begin with 0, never fall, and end with the number of rows, 6",
        (O){.heads = 2, .packed = {I32(0, 5), 1}, .k_packed = {I32(0, 10), 1}}, 2, 8, 8);
    check_refusal(WF_ERR_ARGUMENT, "k_packed: offsets[2] = 10 after 11, but offsets of 2 sequences must begin",
                  (O){.heads = 2, .packed = {I32(0, 2, 6), 2}, .k_packed = {I32(0, 11, 10), 2}}, 2, 8, 8);
    check_refusal(WF_ERR_ARGUMENT, "without packed", (O){.heads = 2, .k_packed = {I32(0, 10), 1}}, 2, 8, 8);
    check_refusal(WF_ERR_ARGUMENT, "k_packed has 2 sequences, but packed has 1",
                  (O){.heads = 2, .packed = {I32(0, 6), 1}, .k_packed = {I32(0, 5, 10), 2}}, 2, 8, 8);
    check_refusal(WF_ERR_ARGUMENT, "packed: count = -1 sequences is negative", (O){.heads = 2, .packed = {I32(0, 6), -1}}, 2, 8, 8);
    check_refusal(WF_ERR_ARGUMENT, "packed: the offsets of 2 sequences are NULL", (O){.heads = 2, .packed = {.count = 2}}, 2, 8, 8);
    check_refusal(WF_ERR_ARGUMENT, "cannot be combined with key_lengths",
                  (O){.heads = 2, .key_lengths = I32(1, 1, 1, 1, 1, 1), .packed = {I32(0, 6), 1}, .k_packed = {I32(0, 10), 1}}, 2, 8, 8);
}
END_TEST

WF_TEST_MAIN("attention_bits", cache_equals_recompute, rows_alone_with_masks, packed_equals_apart, same_bits_on_any_threads,
             gradients_of_slices, dropout_draws_as_the_kernel, dropout_only_in_training, no_square_is_stored, refusals)
