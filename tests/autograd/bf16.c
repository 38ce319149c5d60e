/* SPDX-License-Identifier: MIT */
/* A pass in bf16: wf_tape_reset(tape, ..., .precision = WF_PRECISION_BF16). */
#include <weft/compute.h>
#include <weft/internal/runtime.h>

#include "ops_tools.h"

#ifdef WF_DOUBLE
START_TEST(refused_in_double)
{
    begin(WF_TRAIN);
    wf_tape_reset(tape, WF_TRAIN, .precision = WF_PRECISION_BF16);
    wf_tensor *x = normal(1, WF_SHAPE(2, 2));
    ck_assert(wf_is_poison(wf_matmul(x, x)));
    ck_assert_int_eq(wf_tape_error(tape)->code, WF_ERR_ARGUMENT);
    ck_assert_str_eq(wf_tape_error(tape)->message,
                     "wf_tape_reset: bf16 is a precision of libweft, the library of floats; this is libweft-f64");
    begin(WF_TRAIN); /* the next pass is right again */
    x = normal(1, WF_SHAPE(2, 2));
    ck_assert(!wf_is_poison(wf_matmul(x, x)));
}
END_TEST

#define TESTS refused_in_double
#else
enum { ROWS = 70, IN = 40, OUT = 48, CLASSES = 33 };

/* a b in bf16, by the function for arrays. */
static void product_of(const wf_real *a, bool turn_a, const wf_real *b, bool turn_b, int64_t m, int64_t n, int64_t k, const wf_real *bias,
                       wf_real *out)
{
    wf_array x = wf_array_contiguous((void *)(uintptr_t)a, WF_REAL, turn_a ? WF_SHAPE(k, m) : WF_SHAPE(m, k));
    wf_array y = wf_array_contiguous((void *)(uintptr_t)b, WF_REAL, turn_b ? WF_SHAPE(n, k) : WF_SHAPE(k, n));
    wf_array z = wf_array_contiguous(out, WF_REAL, WF_SHAPE(m, n));
    x = turn_a ? wf_array_transpose(x, 0, 1) : x;
    y = turn_b ? wf_array_transpose(y, 0, 1) : y;
    ck_ok(wf_array_matmul(&x, &y, &z, error, .bias = bias, .precision = WF_PRECISION_BF16));
}

static void same_bits(const char *what, wf_real *got, const wf_real *expected, int64_t n)
{
    ck_assert_msg(memcmp(got, expected, (size_t)n * sizeof *got) == 0, "%s has other bits", what);
    free(got);
}

/* Both products of linear's backward, and those of matmul, forward and backward. */
START_TEST(all_products)
{
    static wf_real y[ROWS * OUT], dx[ROWS * IN], dw[OUT * IN];
    begin_bf16(WF_GRADIENTS);
    wf_tensor *x = normal(1, WF_SHAPE(7, 10, IN)), *w = normal(2, WF_SHAPE(OUT, IN)), *b = normal(3, WF_SHAPE(OUT)),
              *dy = normal(4, WF_SHAPE(7, 10, OUT));
    wf_real *xs = value_of(x), *ws = value_of(w), *bs = value_of(b), *dys = value_of(dy);
    for (int with_matmul = 0; with_matmul < 2; with_matmul++) {
        begin_bf16(WF_GRADIENTS);
        x = given(xs, WF_SHAPE(7, 10, IN)), w = given(ws, WF_SHAPE(OUT, IN)), b = given(bs, WF_SHAPE(OUT)),
        dy = given(dys, WF_SHAPE(7, 10, OUT));
        wf_tensor *z = wf_keep(with_matmul ? wf_matmul(x, wf_transpose(w, 0, 1)) : wf_linear(x, w, b));
        ran(wf_backward(z, .gradient = dy));
        product_of(xs, false, ws, true, ROWS, OUT, IN, with_matmul ? NULL : bs, y);
        same_bits("y", value_of(z), y, ROWS * OUT);
        product_of(dys, false, ws, false, ROWS, IN, OUT, NULL, dx);
        same_bits("dx", gradient_of(x), dx, ROWS * IN);
        product_of(dys, true, xs, false, OUT, IN, ROWS, NULL, dw);
        same_bits("dw", gradient_of(w), dw, OUT * IN);
    }
    free(xs), free(ws), free(bs), free(dys);
}
END_TEST

static wf_tensor *network(wf_tensor *x[5])
{
    static int32_t target[ROWS];
    for (int i = 0; i < ROWS; i++)
        target[i] = (i * 7) % CLASSES;
    x[0] = normal(1, WF_SHAPE(ROWS, IN)), x[1] = wf_scale(normal(2, WF_SHAPE(OUT, IN)), 0.2), x[2] = normal(3, WF_SHAPE(OUT));
    x[3] = wf_scale(normal(4, WF_SHAPE(OUT, IN)), 0.2), x[4] = wf_scale(normal(5, WF_SHAPE(CLASSES, IN)), 0.2);
    for (int i = 0; i < 5; i++)
        x[i] = wf_retain_grad(wf_keep(x[i]));
    wf_tensor *h = wf_matmul(wf_gelu(wf_linear(x[0], x[1], x[2])), x[3]);
    return wf_keep(wf_linear_cross_entropy(h, x[4], NULL, wf_ids_of(tape, target, WF_SHAPE(ROWS))));
}

static double norm_of(const wf_real *x, const wf_real *y, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += pow((double)x[i] - (y ? (double)y[i] : 0), 2);
    return sqrt(sum);
}

START_TEST(gradients_are_near_those_of_float)
{
    wf_tensor *x[5];
    wf_real *of_float[5];
    begin(WF_GRADIENTS);
    wf_tensor *loss = network(x);
    ran(wf_backward(loss));
    const double exact = number(loss);
    for (int i = 0; i < 5; i++)
        of_float[i] = gradient_of(x[i]);
    begin_bf16(WF_GRADIENTS);
    loss = network(x);
    ran(wf_backward(loss));
    ck_assert_double_le(fabs(number(loss) - exact), 1e-3 * exact);
    for (int i = 0; i < 5; i++) {
        wf_real *g = gradient_of(x[i]);
        const int64_t n = count_of(x[i]);
        const double off = norm_of(g, of_float[i], n) / norm_of(of_float[i], NULL, n);
        ck_assert_msg(off > 0 && off < 0x1p-7, "gradient %d is off by %g of its norm", i, off);
        free(g), free(of_float[i]);
    }
}
END_TEST

/* The loss of an output layer computes its three products in bf16 too: its gradients are those of the two ops that it replaces. */
START_TEST(fused_loss)
{
    static int32_t target[ROWS];
    wf_real *g[3][2];
    for (int i = 0; i < ROWS; i++)
        target[i] = (i * 7) % CLASSES;
    for (int way = 0; way < 3; way++) { /* fused, two ops, two ops in float */
        begin(WF_GRADIENTS);
        if (way < 2)
            begin_bf16(WF_GRADIENTS);
        wf_tensor *x = normal(1, WF_SHAPE(ROWS, IN)), *w = normal(2, WF_SHAPE(CLASSES, IN)), *ids = wf_ids_of(tape, target, WF_SHAPE(ROWS));
        ran(wf_backward(way == 0 ? wf_linear_cross_entropy(x, w, NULL, ids) : wf_cross_entropy(wf_linear(x, w, NULL), ids)));
        g[way][0] = gradient_of(x), g[way][1] = gradient_of(w);
    }
    for (int i = 0; i < 2; i++) {
        const int64_t n = i == 0 ? ROWS * IN : CLASSES * IN;
        const double size = norm_of(g[2][i], NULL, n), off = norm_of(g[0][i], g[1][i], n) / size,
                     rounding = norm_of(g[0][i], g[2][i], n) / size;
        ck_assert_msg(off < 1e-4 && rounding > 5e-4, "gradient %d: %g from the two ops, %g from float", i, off, rounding);
        free(g[0][i]), free(g[1][i]), free(g[2][i]);
    }
}
END_TEST

/* The bits are those of every instruction set, on any number of threads, for a row alone, and in every mode. */
START_TEST(bits_depend_on_nothing_else)
{
    uint64_t hash = 0;
    wf_real *rows = NULL;
    for (int s = 0; s < ISAS; s++)
        for (int threads = 1; threads <= 3 && isa_used(s); threads++) {
            ck_ok(wf_set_threads(threads, error));
            begin_bf16(WF_GRADIENTS);
            wf_tensor *x = normal(1, WF_SHAPE(ROWS, IN)), *w = normal(2, WF_SHAPE(OUT, IN)), *y = wf_keep(wf_linear(x, w, NULL));
            ran(wf_backward(y, .gradient = normal(3, WF_SHAPE(ROWS, OUT))));
            const uint64_t h = hash_of_gradient(hash_of_gradient(hash_of_value(HASH, y), x), w);
            ck_assert_msg(hash == 0 || hash == h, "%s on %d threads: other bits", wf_isa(), threads);
            hash = h;
            rows = rows ? rows : value_of(y);
            begin_bf16(WF_INFER);
            x = normal(1, WF_SHAPE(ROWS, IN)), w = normal(2, WF_SHAPE(OUT, IN));
            same_bits("a row alone", value_of(wf_linear(wf_slice(x, 0, 5, 1), w, NULL)), rows + 5 * OUT, OUT);
        }
    free(rows);
}
END_TEST

START_TEST(unknown)
{
    begin(WF_TRAIN);
    wf_tape_reset(tape, WF_TRAIN, .precision = (enum wf_precision)7);
    ck_assert_int_eq(wf_tape_error(tape)->code, WF_ERR_ARGUMENT);
    ck_assert_str_eq(wf_tape_error(tape)->message, "wf_tape_reset: the precision is unknown: give WF_PRECISION_REAL or WF_PRECISION_BF16");
}
END_TEST

#define TESTS all_products, fused_loss, gradients_are_near_those_of_float, bits_depend_on_nothing_else, unknown
#endif

WF_TEST_MAIN("bf16", TESTS)
