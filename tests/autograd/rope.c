/* SPDX-License-Identifier: MIT */
/* Rotary positions: accuracy of the angles, dependence of a row's bits, refusals. Gradients: the op's cases; values against PyTorch:
 * tests/nn/attention.c. */
#include <weft/internal/testing.h>

#include "ops_tools.h"

/* Against angles and sines of 64 bits of mantissa: float's own rounding, and in double that of position times frequency. */
START_TEST(far_positions)
{
    enum { E = 64, T = 200 };
    static const int64_t starts[] = {0, 1000, 100000 - T / 2, 10000000, -100100};
    const double most = sizeof(wf_real) == 4 ? 1.3e-7 : 4e-11;
    begin(WF_INFER);
    wf_real x[T * E];
    for (int i = 0; i < T * E; i++)
        x[i] = i % E < E / 2; /* (1, 0) turned is cosine and sine */
    for (size_t s = 0; s < sizeof starts / sizeof *starts; s++) {
        const double allowed = s == 3 && sizeof(wf_real) == 8 ? 4e-9 : most;
        wf_real *y = value_of(wf_rope(wf_input(tape, x, WF_SHAPE(1, T, E), false), .start = starts[s]));
        for (int64_t t = 0; t < T; t++)
            for (int i = 0; i < E / 2; i++) {
                long double angle = (long double)(starts[s] + t) * powl(10000, -2.0L * i / E);
                double c = (double)(cosl(angle) - y[t * E + i]), d = (double)(sinl(angle) - y[t * E + E / 2 + i]);
                ck_assert_msg(fabs(c) <= allowed && fabs(d) <= allowed, "position %lld, frequency %d: off by %.3g and %.3g",
                              (long long)(starts[s] + t), i, c, d);
            }
        free(y);
    }
}
END_TEST

/* A row's bits depend on its position alone: in long and short calls, from a start, a list of starts, ids, packed, as a view, with other
 * threads and heads. */
START_TEST(rows_alone)
{
    enum { B = 2, T = 150, H = 3, E = 22, W = H * E };
    for (int form = 0; form < 4; form++) {
        begin(form % 2 ? WF_GRADIENTS : WF_INFER);
        const struct wf_rotary how = {.interleaved = form > 1, .width = form % 2 ? 18 : 0};
        int32_t ids[B * T], starts[] = {40, 40};
        for (int i = 0; i < B * T; i++)
            ids[i] = 40 + i % T;
        wf_tensor *x = normal(3, WF_SHAPE(B, T, W));
        wf_real *want = value_of(wf_rope(x, .heads = H, .rotary = how, .start = 40));
        wf_tensor *wide = wf_concat((wf_tensor *[]){x, x}, 2, 2), *turned = wf_contiguous(wf_transpose(x, 1, 2));
        wf_tensor *const same[] = {
            wf_rope(x, .heads = H, .rotary = how, .starts = starts),
            wf_rope(x, .heads = H, .rotary = how, .positions = wf_ids(tape, ids, B, T)),
            wf_rope(x, .heads = H, .rotary = how, .positions = wf_ids_of(tape, ids, WF_SHAPE(T))),
            wf_rope(wf_reshape(x, B * T, W), .heads = H, .rotary = how, .start = 40, .packed = {I32(0, T, B * T), 2}),
            wf_rope(wf_slice(wide, 2, W, W), .heads = H, .rotary = how, .start = 40),
            wf_rope(wf_transpose(turned, 1, 2), .heads = H, .rotary = how, .start = 40),
        };
        for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
            wf_real *have = value_of(same[i]);
            ck_assert_msg(memcmp(have, want, B * T * W * sizeof *want) == 0, "form %d, call %d: other bits", form, (int)i);
            free(have);
        }
        for (int64_t t = 0; t < T; t += 7) /* a row and a head alone */
            for (int h = 0; h < H; h++) {
                wf_real *have = value_of(wf_rope(wf_slice(wf_slice(x, 1, t, 1), 2, h * E, E), .rotary = how, .start = 40 + t));
                for (int b = 0; b < B; b++)
                    ck_assert_mem_eq(have + b * E, want + (b * T + t) * W + h * E, E * sizeof *want);
                free(have);
            }
        for (int threads = 1; threads <= 5; threads += 2) {
            ck_ok(wf_set_threads(threads, error));
            wf_real *have = value_of(wf_rope(x, .heads = H, .rotary = how, .start = 40));
            ck_assert_mem_eq(have, want, B * T * W * sizeof *want);
            free(have);
        }
        free(want);
    }
}
END_TEST

/* Backward undoes forward; views take their gradient too. */
START_TEST(back_again)
{
    begin(WF_GRADIENTS);
    wf_tensor *x = normal(1, WF_SHAPE(2, 6, 40)), *part = wf_slice(x, 2, 8, 24);
    wf_tensor *y = wf_rope(part, .heads = 2, .start = 1000, .rotary = {.width = 10});
    wf_real *dy = value_of(y), *dx;
    ran(wf_backward(y, .gradient = wf_detach(y))); /* y^T dy: dx = R^T R x = x */
    wf_real *was = value_of(x);
    dx = gradient_of(x);
    for (int i = 0; i < 2 * 6 * 40; i++) {
        double want = i % 40 >= 8 && i % 40 < 32 ? (double)was[i] : 0;
        ck_assert_msg(fabs((double)dx[i] - want) <= loose * 4, "element %d: %g, not %g", i, (double)dx[i], want);
    }
    free(dx);
    free(dy);
    free(was);
}
END_TEST

/* From the third step on nothing is allocated. */
START_TEST(no_allocations)
{
    begin(WF_TRAIN);
    int64_t count = 0;
    for (int step = 0; step < 5; step++) {
        if (step == 3)
            count = wf_alloc_count();
        wf_tape_reset(tape, WF_TRAIN, .step = (uint64_t)step);
        wf_real x[2 * 100 * 8] = {1};
        wf_tensor *in = wf_input(tape, x, WF_SHAPE(2, 100, 8), true);
        wf_tensor *y = wf_add(wf_rope(in, .heads = 2), wf_rope(in, .starts = I32(7, 900)));
        ran(wf_backward(y));
    }
    ck_assert_int_eq(wf_alloc_count(), count);
}
END_TEST

/* Memory of a table of T positions, without that of x. */
START_TEST(memory)
{
    enum { T = 3000, E = 8, H = 16 };
    begin(WF_INFER);
    wf_tensor *x = wf_zeros(tape, WF_SHAPE(1, T, H * E));
    size_t before = wf_tape_stats(tape).peak;
    wf_rope(x, .heads = H);
    ck_assert_uint_lt(wf_tape_stats(tape).peak - before, (size_t)T * H * E * sizeof(wf_real) * 5 / 4 + 65536);
}
END_TEST

START_TEST(refusals)
{
    begin(WF_GRADIENTS);
    const wf_shape *s3 = WF_SHAPE(2, 4, 12), *s2 = WF_SHAPE(8, 12);
#define REFUSED(shape, code, words, ...)                                                                                                   \
    do {                                                                                                                                   \
        begin(WF_GRADIENTS);                                                                                                               \
        wf_tensor *x = normal(1, shape);                                                                                                   \
        (void)x;                                                                                                                           \
        expect_error(wf_rope(x, __VA_ARGS__), code, words);                                                                                \
    } while (0)
    REFUSED(WF_SHAPE(12), WF_ERR_SHAPE, "rope(input [12]): x must be [B,T,H*E] or [N,H*E]", .heads = 1);
    REFUSED(s3, WF_ERR_SHAPE, "the width 12 of x is not divisible by 5 heads", .heads = 5);
    REFUSED(s3, WF_ERR_SHAPE, "the width 12 of x is not divisible by -1 heads", .heads = -1);
    REFUSED(s3, WF_ERR_ARGUMENT, "rotary.width = 3 must be even and in 2 .. 3, the width of a head", .heads = 4);
    REFUSED(s3, WF_ERR_ARGUMENT, "rotary.width = 6 must be even and in 2 .. 4", .heads = 3, .rotary = {.width = 6});
    REFUSED(s3, WF_ERR_ARGUMENT, "rotary.width = 1000000000000", .rotary = {.width = 1000000000000, .frequencies = (const double[]){1}});
    REFUSED(s3, WF_ERR_ARGUMENT, "base = -1 must be positive", .rotary = {.base = -1});
    REFUSED(s3, WF_ERR_ARGUMENT, "base = nan must be positive", .rotary = {.base = NAN});
    REFUSED(s3, WF_ERR_ARGUMENT, "needs a positive, finite factor, not 0", .rotary = {.scaling = WF_ROPE_LINEAR});
    REFUSED(s3, WF_ERR_ARGUMENT, "factor = 2 without a scaling", .rotary = {.factor = 2});
    REFUSED(s3, WF_ERR_ARGUMENT, "scaling = 9 is none of", .rotary = {.scaling = (enum wf_rope_scaling)9, .factor = 2});
    REFUSED(s3, WF_ERR_ARGUMENT,
            "WF_ROPE_LLAMA3 needs 0 < low_frequency < high_frequency and an original_context > 0; they are 4, 1 and 10",
            .rotary = {.scaling = WF_ROPE_LLAMA3, .factor = 2, .low_frequency = 4, .high_frequency = 1, .original_context = 10});
    REFUSED(s3, WF_ERR_ARGUMENT, "need WF_ROPE_LLAMA3", .rotary = {.scaling = WF_ROPE_NTK, .factor = 2, .low_frequency = 4});
    REFUSED(s3, WF_ERR_ARGUMENT, "frequencies[1] = inf is not finite", .heads = 3,
            .rotary = {.frequencies = (const double[]){1, INFINITY}});
    REFUSED(s3, WF_ERR_ARGUMENT, "cannot be combined with base or scaling", .heads = 3,
            .rotary = {.base = 10, .frequencies = (const double[]){1, 2}});
    REFUSED(s3, WF_ERR_ARGUMENT, "give either frequencies or frequency_tensor", .heads = 3,
            .rotary = {.frequency_tensor = wf_zeros(tape, WF_SHAPE(2)), .frequencies = (const double[]){1, 2}});
    REFUSED(s3, WF_ERR_SHAPE, "the frequency_tensor must be [2]", .heads = 3, .rotary = {.frequency_tensor = wf_zeros(tape, WF_SHAPE(3))});
    REFUSED(s3, WF_ERR_ARGUMENT, "there is no gradient for frequency_tensor: freeze it", .heads = 3,
            .rotary = {.frequency_tensor = normal(2, WF_SHAPE(2))});
    REFUSED(s3, WF_ERR_ARGUMENT, "start = 4294967296 is not in -2^31 .. 2^31", .start = (int64_t)1 << 32);
    REFUSED(s3, WF_ERR_ARGUMENT, "cannot be combined with start or packed", .start = 1, .starts = I32(1, 2));
    REFUSED(s2, WF_ERR_ARGUMENT, "starts need x [B,T,H*E]", .starts = I32(1, 2));
    REFUSED(s3, WF_ERR_SHAPE, "packed x must be [N,H*E]", .packed = {I32(0, 8), 1});
    REFUSED(s2, WF_ERR_ARGUMENT,
            "packed: offsets[1] = 7 after 0, but offsets of 1 sequences must begin with 0, never fall, and end with the number "
            "of rows, 8",
            .packed = {I32(0, 7), 1});
    REFUSED(s2, WF_ERR_ARGUMENT, "packed: offsets[2] = 3 after 9, but offsets of 3 sequences must", .packed = {I32(0, 9, 3, 8), 3});
    REFUSED(s2, WF_ERR_ARGUMENT, "packed: count = -1 sequences", .packed = {I32(0, 8), -1});
    REFUSED(s2, WF_ERR_ARGUMENT, "packed: the offsets of 2 sequences are NULL", .packed = {.count = 2});
    REFUSED(s3, WF_ERR_SHAPE, "positions must be [B,T] or [T]", .positions = wf_ids(tape, I32(1, 2, 3, 4, 5, 6), 2, 3));
    REFUSED(s2, WF_ERR_SHAPE, "positions must be [N]", .positions = wf_ids(tape, I32(1, 2), 1, 2));
    REFUSED(s3, WF_ERR_ARGUMENT, "operand 2 has dtype", .positions = wf_zeros(tape, WF_SHAPE(4)));
    REFUSED(s3, WF_ERR_ARGUMENT, "positions cannot be combined with start, starts or packed", .start = 3,
            .positions = wf_ids_of(tape, I32(1, 2, 3, 4), WF_SHAPE(4)));
    begin(WF_GRADIENTS);
    expect_error(wf_rope(wf_ids(tape, I32(1, 2), 1, 2), .heads = 1), WF_ERR_ARGUMENT, "operand 1 has dtype I32");
    begin(WF_GRADIENTS);
    expect_error(wf_rope(NULL, .heads = 1), WF_ERR_ARGUMENT, "");
}
END_TEST

WF_TEST_MAIN("rope", far_positions, rows_alone, back_again, no_allocations, memory, refusals)
