/* SPDX-License-Identifier: MIT */
/* Results of ops, against numbers computed by other means. Gradients: gradients.c. */
#include "ops_tools.h"

START_TEST(arithmetic_broadcasts)
{
    begin(WF_GRADIENTS);
    wf_tensor *a = given(NUMBERS(1, 2, 3, 4, 5, 6), WF_SHAPE(2, 3)), *row = given(NUMBERS(10, 20, 30), WF_SHAPE(3)),
              *column = given(NUMBERS(2, 4), WF_SHAPE(2, 1));
    expect("add", wf_add(a, row), NUMBERS(11, 22, 33, 14, 25, 36), WF_SHAPE(2, 3));
    expect("sub", wf_subtract(row, a), NUMBERS(9, 18, 27, 6, 15, 24), WF_SHAPE(2, 3));
    expect("mul", wf_mul(a, column), NUMBERS(2, 4, 6, 16, 20, 24), WF_SHAPE(2, 3));
    expect("div", wf_div(column, a), NUMBERS(2, 1, 2 / (wf_real)3, 1, 0.8, 4 / (wf_real)6), WF_SHAPE(2, 3));
    expect("outer", wf_mul(column, row), NUMBERS(20, 40, 60, 40, 80, 120), WF_SHAPE(2, 3));
    expect("transposed", wf_add(wf_transpose(a, 0, 1), wf_transpose(column, 0, 1)), NUMBERS(3, 8, 4, 9, 5, 10), WF_SHAPE(3, 2));
    expect("affine", wf_affine(row, 0.5, -1), NUMBERS(4, 9, 14), WF_SHAPE(3));
    expect("neg", wf_neg(column), NUMBERS(-2, -4), WF_SHAPE(2, 1));
    expect("x + x", wf_add(row, row), NUMBERS(20, 40, 60), WF_SHAPE(3));
}
END_TEST

static double phi(double x)
{
    return 0.5 * (1 + erf(x / sqrt(2)));
}
static double f_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}
static double f_relu(double x)
{
    return x > 0 ? x : 0;
}
static double f_gelu(double x)
{
    return x * phi(x);
}
static double f_gelu_tanh(double x)
{
    return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
}
static double f_silu(double x)
{
    return x / (1 + exp(-x));
}

START_TEST(functions_of_an_element)
{
    static const struct {
        const char *name;
        wf_tensor *(*op)(wf_tensor *);
        double (*f)(double);
        bool positive;
    } list[] = {{"exp", wf_exp, exp, false},
                {"log", wf_log, log, true},
                {"sqrt", wf_sqrt, sqrt, true},
                {"tanh", wf_tanh, tanh, false},
                {"sigmoid", wf_sigmoid, f_sigmoid, false},
                {"relu", wf_relu, f_relu, false},
                {"gelu", wf_gelu, f_gelu, false},
                {"gelu_tanh", wf_gelu_tanh, f_gelu_tanh, false},
                {"silu", wf_silu, f_silu, false}};
    begin(WF_GRADIENTS);
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        wf_real x[7 * 11], y[7 * 11], yt[7 * 11];
        wf_fill_normal(x, 77, 0, 3, 1, k);
        x[0] = 0;
        for (int i = 0; i < 77; i++) {
            x[i] = list[k].positive ? (wf_real)fabs((double)x[i]) + (wf_real)0.1 : x[i];
            y[i] = (wf_real)list[k].f((double)x[i]);
            yt[i % 11 * 7 + i / 11] = y[i];
        }
        wf_tensor *contiguous = given(x, WF_SHAPE(7, 11));
        expect(list[k].name, list[k].op(contiguous), y, WF_SHAPE(7, 11));
        expect(list[k].name, list[k].op(wf_transpose(contiguous, 0, 1)), yt, WF_SHAPE(11, 7));
    }
}
END_TEST

/* The same bits, also of views, and less memory. */
static void gated_is_two_ops(wf_tensor *(*gated)(wf_tensor *, wf_tensor *), wf_tensor *(*activation)(wf_tensor *))
{
    enum { ROWS = 37, D = 53, N = ROWS * D };
    begin(WF_GRADIENTS);
    wf_real *found[2][3];
    size_t used[2];
    for (int fused = 0; fused < 2; fused++) {
        begin(WF_GRADIENTS);
        wf_tensor *both = normal(1, WF_SHAPE(ROWS, 2 * D)), *turned = normal(2, WF_SHAPE(D, ROWS)), *up = wf_transpose(turned, 0, 1);
        wf_tensor *gate = wf_slice(both, 1, D, D), *weights = normal(3, WF_SHAPE(ROWS, D));
        wf_tensor *y = fused ? gated(gate, up) : wf_mul(activation(gate), up);
        used[fused] = wf_tape_stats(tape).used;
        found[fused][0] = value_of(y);
        ran(wf_backward(wf_sum(wf_mul(y, weights))));
        found[fused][1] = gradient_of(both);
        found[fused][2] = gradient_of(turned);
    }
    const size_t count[3] = {N, 2 * N, N};
    for (int i = 0; i < 3; i++) {
        ck_assert_msg(memcmp(found[0][i], found[1][i], count[i] * sizeof(wf_real)) == 0, "%d has other bits", i);
        free(found[0][i]);
        free(found[1][i]);
    }
    ck_assert_uint_ge(used[0], used[1] + N * sizeof(wf_real));
}

START_TEST(gated_activations)
{
    gated_is_two_ops(wf_swiglu, wf_silu);
    gated_is_two_ops(wf_geglu_tanh, wf_gelu_tanh);
    begin(WF_GRADIENTS);
    wf_tensor *x = normal(1, WF_SHAPE(3)), *same = wf_swiglu(x, x); /* x^2 sigmoid(x) */
    ran(wf_backward(wf_sum(same)));
    wf_real *v = value_of(x), *g = gradient_of(x);
    for (int i = 0; i < 3; i++) {
        double p = (double)v[i], s = 1 / (1 + exp(-p));
        ck_assert_double_le(fabs((double)g[i] - (2 * p * s + p * p * s * (1 - s))), 1e-6);
    }
    free(v);
    free(g);
    expect_error(wf_swiglu(x, normal(2, WF_SHAPE(4))), WF_ERR_SHAPE, "gate and up must have one shape");
    begin(WF_GRADIENTS);
    expect_error(wf_geglu_tanh(normal(1, WF_SHAPE(3)), normal(2, WF_SHAPE(4))), WF_ERR_SHAPE, "geglu_tanh(");
}
END_TEST

/* softcap: near x far below the bound, the bound itself far above it; bounds that are refused. */
START_TEST(soft_bounds)
{
    begin(WF_GRADIENTS);
    const wf_real from[5] = {(wf_real)-1e4, (wf_real)-1e-3, 0, 30, (wf_real)1e30}, expected[5] = {-30, (wf_real)-1e-3, 0, 0, 30};
    wf_tensor *x = wf_input(tape, from, WF_SHAPE(5), true), *y = wf_softcap(x, 30);
    wf_real *v = value_of(y);
    ran(wf_backward(wf_sum(y)));
    wf_real *g = gradient_of(x);
    for (int i = 0; i < 5; i++)
        ck_assert_double_le(fabs((double)v[i] - (i == 3 ? 30 * tanh(1.0) : (double)expected[i])), 1e-5);
    ck_assert(g[0] == 0 && g[2] == 1 && g[4] == 0);
    ck_assert_double_le(fabs((double)g[3] - (1 - tanh(1.0) * tanh(1.0))), 1e-6);
    free(v);
    free(g);
    static const double bad[] = {0, -1, NAN, INFINITY, 1e31};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        begin(WF_INFER);
        expect_error(wf_softcap(normal(1, WF_SHAPE(3)), bad[i]), WF_ERR_ARGUMENT, "is not in 1e-30 .. 1e30");
        begin(WF_INFER);
        if (bad[i] != 0)
            expect_error(
                wf_cross_entropy(normal(1, WF_SHAPE(2, 3)), wf_ids_of(tape, (const int32_t[]){0, 2}, WF_SHAPE(2)), .softcap = bad[i]),
                WF_ERR_ARGUMENT, "is not in 1e-30 .. 1e30; 0 stands for none");
    }
}
END_TEST

START_TEST(views_reach_the_right_elements)
{
    begin(WF_GRADIENTS);
    wf_real x[24];
    for (int i = 0; i < 24; i++)
        x[i] = (wf_real)i;
    wf_tensor *a = given(x, WF_SHAPE(2, 3, 4));
    expect("reshape", wf_reshape(a, 6, -1), x, WF_SHAPE(6, 4));
    expect("to a line", wf_reshape(a, -1), x, WF_SHAPE(24));
    expect("slice", wf_slice(a, 2, -3, 2), NUMBERS(1, 2, 5, 6, 9, 10, 13, 14, 17, 18, 21, 22), WF_SHAPE(2, 3, 2));
    expect("slice of nothing", wf_slice(a, 1, 3, 0), x, WF_SHAPE(2, 0, 4));
    wf_tensor *turned = wf_transpose(a, -1, 0); /* [4,3,2] */
    expect("transpose", wf_slice(turned, 0, 1, 1), NUMBERS(1, 13, 5, 17, 9, 21), WF_SHAPE(1, 3, 2));
    expect("a reshape that copies", wf_slice(wf_reshape(turned, 4, 6), 0, 1, 1), NUMBERS(1, 13, 5, 17, 9, 21), WF_SHAPE(1, 6));
    wf_array before, after;
    ran(wf_view(a, &before));
    ran(wf_view(wf_reshape(wf_slice(a, 0, 1, 1), 4, 3), &after));
    ck_assert_ptr_eq(after.data, (wf_real *)before.data + 12); /* not copied */
    ck_assert_ptr_eq(wf_contiguous(a), a);
    wf_tensor *part[2];
    wf_split(a, 2, 2, part);
    expect("split", part[1], NUMBERS(2, 3, 6, 7, 10, 11, 14, 15, 18, 19, 22, 23), WF_SHAPE(2, 3, 2));
    expect("concat undoes it", wf_concat(part, 2, -1), x, WF_SHAPE(2, 3, 4));
    expect("scalar", wf_reshape_to(wf_slice(wf_reshape(a, -1), 0, 7, 1), &(wf_shape){0}), NUMBERS(7), &(wf_shape){0});
    /* Gradients of views meet in the base: each element is reached once by the split and three times by the slice. */
    wf_tensor *loss = wf_add(wf_sum(wf_mul(part[0], part[1])), wf_scale(wf_sum(wf_slice(a, 0, 0, 1)), 3));
    ran(wf_backward(loss));
    wf_real expected[24];
    for (int i = 0; i < 24; i++)
        expected[i] = (i % 4 < 2 ? x[i + 2] : x[i - 2]) + (i < 12 ? 3 : 0);
    expect_gradient("gradient", a, expected);
}
END_TEST

START_TEST(many_parts_are_joined)
{
    begin(WF_GRADIENTS);
    wf_tensor *part[37];
    wf_real all[37 * 2], weight[37 * 2];
    for (int i = 0; i < 37; i++) {
        all[2 * i] = (wf_real)i;
        all[2 * i + 1] = (wf_real)-i;
        part[i] = given(all + 2 * i, WF_SHAPE(1, 2));
    }
    wf_fill_normal(weight, 74, 0, 1, 3, 3);
    wf_tensor *joined = wf_concat(part, 37, 0);
    expect("concat", joined, all, WF_SHAPE(37, 2));
    ran(wf_backward(wf_sum(wf_mul(joined, wf_input(tape, weight, WF_SHAPE(37, 2), false)))));
    for (int i = 0; i < 37; i++)
        expect_gradient("gradient", part[i], weight + 2 * i);
}
END_TEST

START_TEST(sums_and_means)
{
    begin(WF_GRADIENTS);
    wf_tensor *a = given(NUMBERS(1, 2, 3, 4, 5, 6), WF_SHAPE(2, 3));
    expect("sum", wf_sum(a), NUMBERS(21), &(wf_shape){0});
    expect("mean", wf_mean(a), NUMBERS(3.5), &(wf_shape){0});
    expect("rows", wf_sum_dim(a, -1, false), NUMBERS(6, 15), WF_SHAPE(2));
    expect("columns", wf_mean_dim(a, 0, true), NUMBERS(2.5, 3.5, 4.5), WF_SHAPE(1, 3));
    expect("of a transpose", wf_sum_dim(wf_transpose(a, 0, 1), 0, false), NUMBERS(6, 15), WF_SHAPE(2));
    expect("mean of nothing", wf_mean(wf_slice(a, 0, 0, 0)), NUMBERS(0), &(wf_shape){0});
    expect("sum of nothing", wf_sum_dim(wf_slice(a, 0, 0, 0), 0, false), NUMBERS(0, 0, 0), WF_SHAPE(3));
    for (int64_t rows = 1; rows <= 70001; rows = rows * 7 + 1) { /* all ways that blocks are cut */
        int64_t n = rows * 3;
        wf_real *x = malloc((size_t)n * sizeof *x), by_column[3];
        wf_fill_uniform(x, n, -1, 2, 9, (uint64_t)rows);
        double total = 0, column[3] = {0};
        for (int64_t i = 0; i < n; i++)
            total += (double)x[i], column[i % 3] += (double)x[i];
        wf_tensor *b = given(x, WF_SHAPE(rows, 3));
        ck_assert_double_le(fabs(number(wf_sum(b)) - total), loose * (1 + total));
        for (int j = 0; j < 3; j++)
            by_column[j] = (wf_real)column[j];
        expect("long columns", wf_sum_dim(b, 0, false), by_column, WF_SHAPE(3));
        free(x);
    }
    wf_tensor *planes = normal(1, WF_SHAPE(50, 300, 2));
    wf_real *x = value_of(planes), expected[100] = {0};
    for (int i = 0; i < 50 * 300 * 2; i++)
        expected[i / 600 * 2 + i % 2] += x[i];
    wf_real *sums = value_of(wf_sum_dim(planes, 1, false));
    same_numbers("many planes", sums, expected, 100, 10 * loose);
    free(sums);
    free(x);
}
END_TEST

/* c[m,n] = a[m,k] b[k,n] of contiguous matrices. */
static void plain_product(int64_t m, int64_t n, int64_t k, const wf_real *a, const wf_real *b, wf_real *c)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t l = 0; l < k; l++)
                sum += (double)a[i * k + l] * (double)b[l * n + j];
            c[i * n + j] = (wf_real)sum;
        }
}

START_TEST(matmul_broadcasts_and_takes_views)
{
    begin(WF_GRADIENTS);
    wf_tensor *a = normal(1, WF_SHAPE(2, 1, 5, 7)), *b = normal(2, WF_SHAPE(3, 7, 4)), *w = normal(3, WF_SHAPE(4, 7));
    wf_real *x = value_of(a), *y = value_of(b), *z = value_of(w), expected[2 * 3 * 5 * 4], zt[28];
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            plain_product(5, 4, 7, x + i * 35, y + j * 28, expected + (i * 3 + j) * 20);
    expect("both broadcast", wf_matmul(a, b), expected, WF_SHAPE(2, 3, 5, 4));
    for (int i = 0; i < 28; i++)
        zt[i % 7 * 4 + i / 7] = z[i];
    plain_product(10, 4, 7, x, zt, expected);
    expect("one matrix, transposed", wf_matmul(a, wf_transpose(w, 0, 1)), expected, WF_SHAPE(2, 1, 5, 4));
    /* The matrices of a transposed batch do not fold into one. */
    wf_tensor *turned = wf_transpose(wf_reshape(a, 2, 5, 7), 0, 1);
    wf_real mixed[40];
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 2; j++)
            memcpy(mixed + 4 * (i * 2 + j), expected + 4 * (j * 5 + i), 4 * sizeof *mixed);
    expect("a batch that does not fold", wf_matmul(turned, wf_transpose(w, 0, 1)), mixed, WF_SHAPE(5, 2, 4));
    expect("linear of it", wf_linear(turned, w, NULL), mixed, WF_SHAPE(5, 2, 4));
    expect("nothing to add up", wf_matmul(wf_slice(w, 1, 0, 0), wf_slice(wf_reshape(w, 7, 4), 0, 0, 0)), (wf_real[16]){0}, WF_SHAPE(4, 4));
    free(x);
    free(y);
    free(z);
}
END_TEST

START_TEST(linear_adds_its_bias)
{
    begin(WF_GRADIENTS);
    wf_tensor *x = given(NUMBERS(1, 2, 3, 4), WF_SHAPE(2, 2)), *w = given(NUMBERS(1, 0, 0, 1, 1, 1), WF_SHAPE(3, 2)),
              *b = given(NUMBERS(10, 20, 30), WF_SHAPE(3));
    expect("linear", wf_linear(x, w, b), NUMBERS(11, 22, 33, 13, 24, 37), WF_SHAPE(2, 3));
    expect("of a vector", wf_linear(wf_reshape(wf_slice(x, 0, 1, 1), 2), w, b), NUMBERS(13, 24, 37), WF_SHAPE(3));
    wf_tensor *wide = given(NUMBERS(9, 1, 2, 9, 3, 4), WF_SHAPE(1, 2, 3)); /* rows at a distance */
    expect("of a slice", wf_linear(wf_slice(wide, 2, 1, 2), w, b), NUMBERS(11, 22, 33, 13, 24, 37), WF_SHAPE(1, 2, 3));
}
END_TEST

/* x and the weight are views of one tensor, which overlap or not, or x is a view whose rows lie at several distances. The gradient is that
 * of the product. With 112 rows parts of both products share a region; with 320 B is packed for all threads. */
static wf_tensor *view_of_it(wf_tensor *w, int which, int64_t n)
{
    wf_tensor *upper = wf_slice(w, 0, 0, n), *left = wf_slice(wf_slice(w, 0, n, n), 1, 2, n);
    return which == 0   ? wf_slice(upper, 1, 0, n)                     /* the weight itself */
           : which == 1 ? wf_transpose(wf_slice(upper, 1, 0, n), 0, 1) /* over it */
           : which == 2 ? wf_slice(wf_slice(w, 0, 1, n), 1, 0, n)      /* but for a row */
           : which == 3 ? left                                         /* beside it */
                        : wf_transpose(wf_reshape(wf_transpose(left, 0, 1), 4, n / 4, n), 0, 1);
}

START_TEST(linear_of_views_of_its_weight)
{
    ck_ok(wf_set_threads(2, error));
    for (int64_t n = 112; n <= 320; n += 208)
        for (int which = 0; which < 5; which++) {
            wf_real *g[2];
            for (int i = 0; i < 2; i++) {
                begin(WF_GRADIENTS);
                wf_tensor *w = normal(1, WF_SHAPE(2 * n, n + 3)), *weight = wf_slice(wf_slice(w, 0, 0, n), 1, 0, n);
                wf_tensor *x = view_of_it(w, which, n), *y = i ? wf_matmul(x, wf_transpose(weight, 0, 1)) : wf_linear(x, weight, NULL);
                ran(wf_backward(wf_sum(wf_square(y))));
                g[i] = gradient_of(w);
            }
            same_numbers("a view of the weight", g[0], g[1], 2 * n * (n + 3), loose * 10);
            free(g[0]);
            free(g[1]);
        }
}
END_TEST

START_TEST(embedding_gathers_and_scatters)
{
    begin(WF_GRADIENTS);
    enum { V = 9, D = 70, N = 40 };
    wf_tensor *w = normal(1, WF_SHAPE(V, D)), *dy = normal(2, WF_SHAPE(4, 10, D));
    int32_t id[N];
    for (int i = 0; i < N; i++)
        id[i] = (i * i + 3) % (V - 1); /* the last is never used */
    wf_real *x = value_of(w), *g = value_of(dy), expected[N * D], grad[V * D] = {0};
    for (int i = 0; i < N; i++)
        for (int j = 0; j < D; j++) {
            expected[i * D + j] = x[id[i] * D + j];
            grad[id[i] * D + j] += g[i * D + j];
        }
    wf_tensor *y = wf_embedding(w, wf_ids(tape, id, 4, 10));
    expect("embedding", y, expected, WF_SHAPE(4, 10, D));
    ran(wf_backward(wf_sum(wf_mul(y, dy))));
    expect_gradient("gradient", w, grad);
    free(x);
    free(g);
}
END_TEST

START_TEST(softmax_of_rows)
{
    begin(WF_GRADIENTS);
    wf_real inf = (wf_real)INFINITY, e = (wf_real)exp(1);
    wf_tensor *x = given(NUMBERS(0, 1, -inf, 1000, 1000, -inf, -inf, -inf, -inf), WF_SHAPE(3, 3));
    expect("softmax", wf_softmax(x), NUMBERS(1 / (1 + e), e / (1 + e), 0, 0.5, 0.5, 0, 0, 0, 0), WF_SHAPE(3, 3));
}
END_TEST

START_TEST(norms_of_rows)
{
    begin(WF_GRADIENTS);
    enum { ROWS = 130, D = 33 };
    wf_tensor *x = normal(1, WF_SHAPE(ROWS, D)), *gain = normal(2, WF_SHAPE(D)), *bias = normal(3, WF_SHAPE(D));
    wf_real *a = value_of(x), *g = value_of(gain), *b = value_of(bias), *layer = malloc(ROWS * D * sizeof *layer),
            *plain = malloc(ROWS * D * sizeof *layer), *rms = malloc(ROWS * D * sizeof *rms);
    for (int i = 0; i < ROWS; i++) {
        double mean = 0, square = 0, variance = 0;
        for (int j = 0; j < D; j++)
            mean += (double)a[i * D + j] / D, square += (double)a[i * D + j] * (double)a[i * D + j] / D;
        for (int j = 0; j < D; j++)
            variance += pow((double)a[i * D + j] - mean, 2) / D;
        for (int j = 0; j < D; j++) {
            double hat = ((double)a[i * D + j] - mean) / sqrt(variance + 1e-5);
            layer[i * D + j] = (wf_real)(hat * (double)g[j] + (double)b[j]);
            plain[i * D + j] = (wf_real)hat;
            rms[i * D + j] = (wf_real)((double)a[i * D + j] / sqrt(square + 1e-3) * (double)g[j]);
        }
    }
    expect("layer_norm", wf_layer_norm(x, gain, bias, 1e-5), layer, WF_SHAPE(ROWS, D));
    expect("layer_norm alone", wf_layer_norm(x, NULL, NULL, 1e-5), plain, WF_SHAPE(ROWS, D));
    expect("rms_norm", wf_rms_norm(x, gain, 1e-3), rms, WF_SHAPE(ROWS, D));
    free(a);
    free(g);
    free(b);
    free(layer);
    free(plain);
    free(rms);
}
END_TEST

START_TEST(dropout_keeps_its_word)
{
    begin(WF_TRAIN);
    wf_real *one = value_of(wf_affine(wf_zeros(tape, WF_SHAPE(64, 10, 100)), 1, 1));
    wf_tensor *x = given(one, WF_SHAPE(64, 10, 100));
    free(one);
    wf_tensor *y = wf_dropout(x, 0.25), *again = wf_dropout(x, 0.25);
    wf_real *v = value_of(y), *w = value_of(again);
    int zeros = 0, equal = 0;
    for (int i = 0; i < 64000; i++) {
        zeros += v[i] == 0;
        equal += v[i] == w[i];
        ck_assert(v[i] == 0 || fabs((double)v[i] - 1 / 0.75) < 1e-6);
    }
    ck_assert_int_ge(zeros, 16000 - 500); /* 4.5 standard deviations */
    ck_assert_int_le(zeros, 16000 + 500);
    ck_assert_int_lt(equal, 42000); /* another call, another mask: 0.625 agree */
    ran(wf_backward(wf_sum(y)));
    wf_real *g = gradient_of(x);
    ck_assert_msg(memcmp(g, v, 64000 * sizeof *g) == 0, "the backward has another mask");
    /* The second half of the batch alone, as a batch that begins at row 32, has the same mask. */
    wf_tape_reset(tape, WF_TRAIN, .seed = 11, .step = 5, .first_row = 32, .exact = true);
    wf_tensor *half = wf_dropout(wf_affine(wf_zeros(tape, WF_SHAPE(32, 10, 100)), 1, 1), 0.25);
    wf_real *h = value_of(half);
    ck_assert_msg(memcmp(h, v + 32000, 32000 * sizeof *h) == 0, "the mask depends on how the batch is cut");
    free(h);
    wf_tape_reset(tape, WF_TRAIN, .seed = 11, .step = 6);
    h = value_of(wf_dropout(wf_affine(wf_zeros(tape, WF_SHAPE(64, 10, 100)), 1, 1), 0.25));
    ck_assert_msg(memcmp(h, v, 64000 * sizeof *h) != 0, "the mask does not depend on the step");
    free(h);
    free(g);
    free(v);
    free(w);
    begin(WF_TRAIN);
    x = normal(1, WF_SHAPE(3));
    ck_assert_ptr_eq(wf_dropout(x, 0), x);
    begin(WF_GRADIENTS);
    x = normal(1, WF_SHAPE(3));
    ck_assert_ptr_eq(wf_dropout(x, 0.5), x);
    expect_error(wf_dropout(x, 1.25), WF_ERR_ARGUMENT, "p = 1.25");
    begin(WF_INFER);
    expect_error(wf_dropout(normal(1, WF_SHAPE(3)), NAN), WF_ERR_ARGUMENT, "p = nan is not in 0 <= p <= 1");
}
END_TEST

/* The fused ops have the bits of two ops, forward and backward, of views too, in every mode. */
static wf_tensor *fused_or_not(wf_tensor *x, wf_tensor *r, bool relu, bool fused)
{
    if (fused)
        return relu ? wf_relu_dropout(x, 0.3) : wf_dropout_add(x, r, 0.3);
    return relu ? wf_dropout(wf_relu(x), 0.3) : wf_add(r, wf_dropout(x, 0.3));
}

START_TEST(dropout_fused_is_two_ops)
{
    enum { N = 6 * 9 * 40 };
    static const wf_mode modes[] = {WF_TRAIN, WF_GRADIENTS, WF_INFER};
    static wf_real y[2][N], dx[2][N], dr[2][N];
    for (int i = 0; i < 3; i++)
        for (int relu = 0; relu < 2; relu++)
            for (int view = 0; view < 2; view++) {
                for (int fused = 0; fused < 2; fused++) {
                    begin(modes[i]);
                    wf_tensor *x = normal(3, view ? WF_SHAPE(9, 6, 40) : WF_SHAPE(6, 9, 40)), *r = normal(4, WF_SHAPE(6, 9, 40));
                    wf_tensor *z = fused_or_not(view ? wf_transpose(x, 0, 1) : x, r, relu, fused);
                    ran(wf_read(z, y[fused], N));
                    if (modes[i] != WF_INFER) {
                        ran(wf_backward(wf_sum(wf_square(z))));
                        wf_real *g = gradient_of(x), *h = relu ? NULL : gradient_of(r);
                        memcpy(dx[fused], g, sizeof dx[0]);
                        if (h)
                            memcpy(dr[fused], h, sizeof dr[0]);
                        free(g);
                        free(h);
                    }
                }
                ck_assert_mem_eq(y[0], y[1], sizeof y[0]);
                ck_assert_mem_eq(dx[0], dx[1], sizeof dx[0]);
                ck_assert_mem_eq(dr[0], dr[1], sizeof dr[0]);
            }
    begin(WF_TRAIN);
    wf_tensor *x = normal(1, WF_SHAPE(4, 5)), *row = normal(1, WF_SHAPE(5)), *sum = wf_dropout_add(x, row, 0.5);
    ck_assert(!wf_is_poison(sum) && wf_dim(sum, 0) == 4 && wf_dim(sum, 1) == 5);
    expect_error(wf_dropout_add(x, normal(1, WF_SHAPE(3)), 0.5), WF_ERR_SHAPE, "add");
    begin(WF_TRAIN);
    expect_error(wf_relu_dropout(normal(1, WF_SHAPE(3)), 1.25), WF_ERR_ARGUMENT, "p = 1.25");
    begin(WF_TRAIN);
    x = normal(1, WF_SHAPE(3));
    expect_error(wf_dropout_add(x, x, -1), WF_ERR_ARGUMENT, "p = -1");
}
END_TEST

WF_TEST_MAIN("ops", arithmetic_broadcasts, functions_of_an_element, gated_activations, soft_bounds, views_reach_the_right_elements,
             many_parts_are_joined, sums_and_means, matmul_broadcasts_and_takes_views, linear_adds_its_bias, linear_of_views_of_its_weight,
             embedding_gathers_and_scatters, softmax_of_rows, norms_of_rows, dropout_keeps_its_word, dropout_fused_is_two_ops)
