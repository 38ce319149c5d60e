/* SPDX-License-Identifier: MIT */
/* Measures the rate of float multiply-adds that the processor reaches in registers, which ./bench/compare takes as 100 %, and the rate of
 * reading memory.
 *
 *   peak [-t threads] [-i avx512|avx2|base] [-m]
 *
 * Prints GFLOP/s, and with -m also GB/s of reading 576 MB. Each is the best of seven samples, because changes of the clock rate and other
 * programs only slow a sample down. */
#include <omp.h>
#include <string.h>

#include <weft/internal/testing.h>
#include <weft/runtime.h>

#include "measure.h"

enum { SAMPLES = 7, CHAINS = 12, LANES = 16 };
static const size_t far = (size_t)576 << 20; /* more than the caches hold */

/* Twelve independent chains hide a latency of four cycles at up to three instructions per cycle. */
#define TWELVE(F) F(x0) F(x1) F(x2) F(x3) F(x4) F(x5) F(x6) F(x7) F(x8) F(x9) F(xa) F(xb)
#define LOOP(type, F)                                                                                                                      \
    type b, c;                                                                                                                             \
    for (int i = 0; i < (int)(sizeof(type) / sizeof(float)); i++)                                                                          \
        b[i] = 0.999999f, c[i] = 1e-7f;                                                                                                    \
    type x0 = c, x1 = c, x2 = c, x3 = c, x4 = c, x5 = c, x6 = c, x7 = c, x8 = c, x9 = c, xa = c, xb = c;                                   \
    for (long k = 0; k < n; k++) {                                                                                                         \
        TWELVE(F)                                                                                                                          \
    }                                                                                                                                      \
    x0 += x1 + x2 + x3 + x4 + x5 + x6 + x7 + x8 + x9 + xa + xb;                                                                            \
    return x0[0];

typedef float v4 __attribute__((vector_size(16)));
#if defined(__x86_64__)
typedef float v16 __attribute__((vector_size(64)));
typedef float v8 __attribute__((vector_size(32)));
#define FMA512(x) __asm__ volatile("vfmadd213ps %2, %1, %0" : "+v"(x) : "v"(b), "v"(c));
#define FMA256(x) __asm__ volatile("vfmadd213ps %2, %1, %0" : "+x"(x) : "x"(b), "x"(c));
#define FMA128(x) __asm__ volatile("mulps %1, %0\n\taddps %2, %0" : "+x"(x) : "x"(b), "x"(c));
__attribute__((target("avx512f"), noinline)) static float loop_avx512(long n)
{
    LOOP(v16, FMA512)
}
__attribute__((target("avx2,fma"), noinline)) static float loop_avx2(long n)
{
    LOOP(v8, FMA256)
}
#else
#define FMA128(x) x = x * b + c;
#endif
__attribute__((noinline)) static float loop_base(long n)
{
    LOOP(v4, FMA128)
}

typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));
/* Reads elements begin .. end - 1 of x by adding them up. Their number is a multiple of 4 LANES. */
__attribute__((noinline)) static float sum_of(const float *x, size_t begin, size_t end)
{
    lanes sum[4] = {{0}};
    for (size_t i = begin; i < end; i += 4 * LANES)
        for (int j = 0; j < 4; j++)
            sum[j] += *(const lanes *)(x + i + j * LANES);
    sum[0] += sum[1] + sum[2] + sum[3];
    return sum[0][0];
}

/* Returns the rate of reading memory in GB/s, or 0 if there is no memory. Each thread reads its own range. The same thread has written it
 * first, so that the range lies in memory near the thread. */
static double reading(int threads)
{
    float *x = aligned_alloc(1 << 21, far);
    const size_t part = far / sizeof *x / (size_t)threads / (4 * LANES) * (4 * LANES);
    double best = 0;
    for (int s = -1; x && s < SAMPLES; s++) {
        float sum = 0;
        double start = omp_get_wtime();
#pragma omp parallel num_threads(threads) reduction(+ : sum)
        {
            const size_t begin = part * (size_t)omp_get_thread_num();
            if (s < 0)
                memset(x + begin, 0, part * sizeof *x);
            else
                sum += sum_of(x, begin, begin + part);
        }
        double rate = 1e-9 * (double)(part * sizeof *x) * threads / (omp_get_wtime() - start);
        if (s >= 0 && sum == 0)
            best = rate > best ? rate : best;
    }
    free(x);
    return best;
}

int main(int argc, char **argv)
{
    wf_error error = {0};
    const char *given[128] = {NULL};
    int width = 4;
    if (!read_options(argc, argv, "t:i:m", given))
        return 2;
    if (wf_init(&error, .threads = (int)number_or(given['t'], 0)) != WF_OK || (given['i'] && wf_isa_use(given['i'], &error) != WF_OK))
        return fail(error.message);
    const char *isa = wf_isa();
    const int threads = wf_threads();
    float (*loop)(long) = loop_base;
#if defined(__x86_64__)
    if (strcmp(isa, "avx512") == 0)
        loop = loop_avx512, width = 16;
    else if (strcmp(isa, "avx2") == 0)
        loop = loop_avx2, width = 8;
#endif
    const long n = 4000000;
    double best = 0;
    float sum = 0;
    for (int s = 0; s < SAMPLES; s++) {
        double start = omp_get_wtime();
#pragma omp parallel num_threads(threads) reduction(+ : sum)
        sum += loop(n);
        double rate = 1e-9 * threads * (double)n * CHAINS * width * 2 / (omp_get_wtime() - start);
        best = rate > best ? rate : best;
    }
    if (sum != sum)
        return 1;
    const double rate = given['m'] ? reading(threads) : 0;
    if (given['m'] && rate == 0)
        return fail("576 MB of memory could not be read");
    printf("{\"isa\":\"%s\",\"threads\":%d,\"gflops\":%.1f", isa, threads, best);
    if (rate > 0)
        printf(",\"read_gb_s\":%.1f", rate);
    printf("}\n");
    return 0;
}
