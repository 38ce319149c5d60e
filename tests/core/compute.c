/* SPDX-License-Identifier: MIT */
/* weft/compute.h, as programs see it: the table of kernels, maps, products of arrays, workers, scratch. */
#include "arrays.h"

#include <math.h>
#include <stdatomic.h>

#include <weft/internal/scratch.h>

static const int team[] = {1, 2, 5};
enum { TEAMS = 3, ROOM = 40000 };

static wf_real numbers[ROOM];

static void start(int threads)
{
    ck_ok(wf_init(error, .threads = threads));
    if (numbers[0] == 0)
        wf_fill_normal(numbers, ROOM, 0, 1, 3, 4);
}

START_TEST(every_kernel_is_there)
{
    static const char *const isas[] = {"avx512", "avx2", "base"};
    start(1);
    for (int i = 0; i < 3; i++) {
        if (!wf_isa_supported(isas[i]))
            continue;
        ck_ok(wf_isa_use(isas[i], error));
        ck_assert_str_eq(wf_kernel->isa, isas[i]);
        const void *const *member = (const void *const *)wf_kernel;
        for (size_t k = 0; k < sizeof *wf_kernel / sizeof *member; k++)
            ck_assert_msg(member[k] != NULL, "%s: member %zu of struct wf_kernels is not in kernels.def", isas[i], k);
    }
}
END_TEST

/* --- maps ---------------------------------------------------------------------------------------------------------- */

/* y = ctx a b + c, element by element: the bits of one do not depend on n. */
static void product_sum(const void *ctx, int64_t n, const wf_real *const in[], wf_real *y)
{
    const wf_real scale = *(const wf_real *)ctx;
    for (int64_t i = 0; i < n; i++)
        y[i] = scale * in[0][i] * in[1][i] + in[2][i];
}

START_TEST(map_of_three)
{
    enum { A = 3, B = 130, C = 70 };
    const wf_real scale = (wf_real)1.5;
    static wf_real out[A * B * C];
    /* a transposed, b a row, c a column */
    wf_array a = wf_array_transpose(REALS(numbers, A, C, B), 1, 2);
    wf_array b = REALS(numbers + 100, C);
    wf_array c = REALS(numbers + 300, B, 1);
    wf_array y = REALS(out, A, B, C);
    const wf_array *const in[] = {&a, &b, &c};
    for (int t = 0; t < TEAMS; t++) {
        start(team[t]);
        memset(out, 0, sizeof out);
        ck_assert_int_eq(wf_map(product_sum, &scale, 3, in, &y, 100), WF_OK); /* a cost far over the cutoff */
        for (int64_t i = 0; i < A * B * C; i++) {
            const int64_t k = i % C, j = i / C % B, p = i / C / B;
            wf_real want, x[3] = {numbers[(p * C + k) * B + j], numbers[100 + k], numbers[300 + j]};
            product_sum(&scale, 1, (const wf_real *const[]){x, x + 1, x + 2}, &want);
            ck_assert_msg(fabs((double)(out[i] - want)) <= 1e-6, "%lld: %g instead of %g", (long long)i, (double)out[i], (double)want);
        }
    }
    /* flat, in place, and longer than a piece */
    wf_array flat = REALS(out, 20000), other = REALS(numbers, 20000);
    memcpy(out, numbers + 5000, 20000 * sizeof *out);
    ck_assert_int_eq(wf_map(product_sum, &scale, 3, (const wf_array *const[]){&flat, &other, &flat}, &flat, 1), WF_OK);
    for (int i = 0; i < 20000; i++)
        ck_assert(fabs((double)(out[i] - (scale * numbers[5000 + i] * numbers[i] + numbers[5000 + i]))) <= 1e-5);
}
END_TEST

START_TEST(map_refuses)
{
    const wf_real scale = 1;
    wf_real out[12];
    start(1);
    wf_array x = REALS(numbers, 3, 4), y = REALS(out, 3, 4);
    wf_array wide = REALS(numbers, 3, 5), ids = wf_array_contiguous(numbers, WF_I32, WF_SHAPE(4));
    wf_array none = REALS(NULL, 3, 4), gaps = wf_array_transpose(y, 0, 1);
    const wf_array *in[5] = {&x, &x, &x, &x, &x};
    ck_assert_int_eq(wf_map(product_sum, &scale, 3, in, &y, 1), WF_OK);
    ck_assert_int_eq(wf_map(product_sum, &scale, 0, in, &y, 1), WF_ERR_ARGUMENT);
    ck_assert_int_eq(wf_map(product_sum, &scale, 5, in, &y, 1), WF_ERR_ARGUMENT);
    ck_assert_int_eq(wf_map(product_sum, &scale, 3, in, &gaps, 1), WF_ERR_ARGUMENT);
    ck_assert_int_eq(wf_map(product_sum, &scale, 3, in, &none, 1), WF_ERR_MEMORY);
    in[2] = &wide;
    ck_assert_int_eq(wf_map(product_sum, &scale, 3, in, &y, 1), WF_ERR_SHAPE);
    in[2] = &ids;
    ck_assert_int_eq(wf_map(product_sum, &scale, 3, in, &y, 1), WF_ERR_ARGUMENT);
}
END_TEST

/* --- products ------------------------------------------------------------------------------------------------------- */

START_TEST(matmul_of_arrays)
{
    enum { P = 2, Q = 3, M = 17, N = 19, K = 33 };
    static wf_real c[P * Q * M * N], first[P * Q * M * N];
    /* a [P,1,M,K], b [Q,K,N] stored [Q,N,K] */
    wf_array a = REALS(numbers, P, 1, M, K);
    wf_array b = wf_array_transpose(REALS(numbers + 5000, Q, N, K), 1, 2);
    wf_array out = REALS(c, P, Q, M, N);
    const wf_real *bias = numbers + 9000;
    for (int t = 0; t < TEAMS; t++) {
        start(team[t]);
        for (int i = 0; i < P * Q * M * N; i++)
            c[i] = 1;
        ck_ok(wf_array_matmul(&a, &b, &out, error, .scale = 0.5, .add = true, .bias = bias));
        for (int64_t i = 0; i < P * Q * M * N; i++) {
            const int64_t col = i % N, row = i / N % M, q = i / N / M % Q, p = i / N / M / Q;
            double want = 1 + (double)bias[col];
            for (int64_t k = 0; k < K; k++)
                want += 0.5 * (double)numbers[(p * M + row) * K + k] * (double)numbers[5000 + (q * N + col) * K + k];
            ck_assert_msg(fabs((double)c[i] - want) <= (sizeof(wf_real) == 4 ? 2e-5 : 1e-13), "%lld: %g instead of %g", (long long)i,
                          (double)c[i], want);
        }
        if (t == 0)
            memcpy(first, c, sizeof c);
        ck_assert_msg(memcmp(first, c, sizeof c) == 0, "other bits with %d threads", team[t]);
    }
}
END_TEST

START_TEST(matmul_refuses)
{
    wf_real c[64];
    start(1);
    wf_array a = REALS(numbers, 3, 4), b = REALS(numbers, 4, 5);
    wf_array out = REALS(c, 3, 5), vector = REALS(numbers, 4);
    wf_array batch = REALS(numbers, 2, 3, 4), ids = wf_array_contiguous(numbers, WF_I32, WF_SHAPE(4, 5));
    ck_ok(wf_array_matmul(&a, &b, &out, error, 0));
    ck_fails(wf_array_matmul(&b, &a, &out, error, 0), WF_ERR_SHAPE, "the product of [4,5] and [3,4] does not fit into [3,5]");
    ck_fails(wf_array_matmul(&vector, &b, &out, error, 0), WF_ERR_SHAPE, "does not fit");
    ck_fails(wf_array_matmul(&batch, &b, &out, error, 0), WF_ERR_SHAPE, "does not fit");
    ck_fails(wf_array_matmul(&a, &ids, &out, error, 0), WF_ERR_ARGUMENT, "all three must be");
    wf_array absent = out;
    absent.data = NULL; /* a temporary without memory */
    ck_fails(wf_array_matmul(&a, &b, &absent, error, 0), WF_ERR_MEMORY, "is NULL");
    ck_ok(wf_array_matmul_with(&a, &b, &out, NULL, error));
}
END_TEST

START_TEST(matmul_in_bf16)
{
    enum { M = 5, N = 7, K = 70 };
    wf_real c[M * N], exact[M * N];
    wf_array a = REALS(numbers, M, K), b = REALS(numbers + 5000, K, N), out = REALS(c, M, N), reals = REALS(exact, M, N);
    start(2);
    ck_fails(wf_array_matmul(&a, &b, &out, error, .precision = 2), WF_ERR_ARGUMENT, "the precision is unknown: give WF_PRECISION_REAL or");
#ifdef WF_DOUBLE
    (void)reals;
    ck_fails(wf_array_matmul(&a, &b, &out, error, .precision = WF_PRECISION_BF16), WF_ERR_ARGUMENT,
             "bf16 is a precision of libweft, the library of floats; this is libweft-f64");
#else
    ck_ok(wf_array_matmul(&a, &b, &out, error, .precision = WF_PRECISION_BF16));
    ck_ok(wf_array_matmul(&a, &b, &reals, error, 0));
    int differ = 0;
    for (int i = 0; i < M * N; i++) {
        double size = 0;
        for (int k = 0; k < K; k++)
            size += fabs((double)numbers[i / N * K + k] * (double)numbers[5000 + k * N + i % N]);
        differ += c[i] != exact[i];
        ck_assert_double_le(fabs((double)c[i] - (double)exact[i]), 0x1p-7 * size); /* each operand is rounded by at most 2^-9 */
    }
    ck_assert_int_gt(differ, M * N / 2);
#endif
}
END_TEST

/* --- workers and scratch -------------------------------------------------------------------------------------------- */

static atomic_int busy[8], clashes, beyond, nested;
static int threads_now;

static void inner(void *ctx, int64_t block)
{
    (void)block;
    nested += wf_worker() != *(const int *)ctx; /* nested blocks run on the worker that asks for them */
}

static void occupy(void *ctx, int64_t begin, int64_t end)
{
    (void)ctx;
    int me = wf_worker();
    beyond += me < 0 || me >= threads_now || begin >= end;
    if (me < 0 || me >= threads_now)
        return;
    clashes += atomic_fetch_add(&busy[me], 1) != 0;
    char *one = wf_scratch(WF_SCRATCH_OP, 1000), *two = wf_scratch(WF_SCRATCH_OP_2, 1000);
    memset(one, me, 1000);
    memset(two, me + 100, 1000);
    wf_parallel(3, 1e9, inner, &me);
    for (volatile int i = 0; i < 2000; i++)
        ;
    for (int i = 0; i < 1000; i++)
        clashes += one[i] != me || two[i] != me + 100;
    clashes += (one - two < 1000 && two - one < 1000);
    atomic_fetch_sub(&busy[me], 1);
}

START_TEST(workers_and_scratch)
{
    for (int t = 0; t < TEAMS; t++) {
        start(threads_now = team[t]);
        for (int round = 0; round < 20; round++)
            wf_parallel_ranges(200, 3, 1e9, occupy, NULL);
        ck_assert_int_eq(wf_worker(), 0);
    }
    ck_assert_int_eq(clashes, 0);
    ck_assert_int_eq(beyond, 0);
    ck_assert_int_eq(nested, 0);
    ck_assert_ptr_null(wf_scratch(-1, 10));
    ck_assert_ptr_null(wf_scratch(WF_SCRATCH_SLOTS, 10));
}
END_TEST

WF_TEST_MAIN("compute", every_kernel_is_there, map_of_three, map_refuses, matmul_of_arrays, matmul_refuses, matmul_in_bf16,
             workers_and_scratch)
