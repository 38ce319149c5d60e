/* SPDX-License-Identifier: MIT */
/* Products in bf16's arithmetic (core/gemm/bf16.h): the bits of every way to compute them, AMX where this machine has it, against the
 * definition element by element; any strides, sizes, scales and numbers; any number of threads; no trace in the processor's modes. */
#include "any_products.h"

#if defined __SSE__
#include <xmmintrin.h>
#endif

#include <weft/internal/runtime.h>
#include <weft/internal/testing.h>

/* Runs the statement that follows once for each way: the vector kernels of each instruction set, the same with the processor's rounding,
 * and AMX with the packing of each. */
enum way { VECTORS, ROUNDING, AMX, WAYS };
#define EACH_WAY EACH_ISA for (int way = 0; way < WAYS; way++) if (use_way(way))

static bool use_way(int way)
{
    wf_bf16_rounding_use(way >= ROUNDING);
    wf_amx_use(way == AMX);
    if (way == ROUNDING && (!wf_bf16_rounding() || strcmp(wf_isa(), "avx512") != 0))
        return false;
    return wf_amx() == (way == AMX);
}

/* ---- The definition. */
static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float rounded(float x)
{
    uint32_t bits = bits_of(x);
    if (isnan(x))
        return x;
    if (fabsf(x) < FLT_MIN)
        return copysignf(0, x);
    bits += 0x7fff + (bits >> 16 & 1);
    bits &= 0xffff0000;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static float flushed(float x)
{
    return fabsf(x) < FLT_MIN ? copysignf(0, x) : x;
}

/* a b + c rounded once, and zero if it is below FLT_MIN after rounding to 24 bits. fmaf may round such a sum to FLT_MIN, because denormals
 * have fewer bits; the same sum times 2^64 is rounded to 24 bits. */
static float flushed_fma(float a, float b, float c)
{
    const float sum = fmaf(a, b, c);
    if (fabsf(sum) == FLT_MIN && fabsf(fmaf(0x1p32f * a, 0x1p32f * b, 0x1p64f * c)) < 0x1p64f * FLT_MIN)
        return copysignf(0, sum);
    return flushed(sum);
}

/* One element of a sum. `a` and `b` are rounded. */
static float sum_of(int64_t k, const float *a, const float *b)
{
    float d = 0;
    for (int64_t s = 0; s < k; s += 32) {
        float chain[2] = {0, 0};
        for (int odd = 0; odd < 2; odd++)
            for (int64_t p = s + odd; p < s + 32; p += 2)
                chain[odd] = p < k ? flushed_fma(a[p], b[p], chain[odd]) : chain[odd] + 0;
        d = flushed(d + flushed(chain[0] + chain[1]));
    }
    return d;
}

static float expected(const struct wf_gemm *g, int64_t i, int64_t j)
{
    static float a[1 << 17], b[1 << 17];
    for (int64_t p = 0; p < g->k; p++) {
        a[p] = rounded(g->a[i * g->a_rs + p * g->a_cs]);
        b[p] = rounded(g->b[p * g->b_rs + j * g->b_cs]);
    }
    volatile float d = sum_of(g->k, a, b);
    volatile float sum = g->alpha == 1 ? d : g->alpha * d, before = 0;
    if (g->beta != 0)
        before = g->beta * g->c[i * g->c_rs + j * g->c_cs];
    if (g->bias)
        before = g->beta != 0 ? before + g->bias[j] : g->bias[j];
    return g->beta != 0 || g->bias ? sum + before : sum;
}

static bool same(float x, float y)
{
    return bits_of(x) == bits_of(y) || (isnan(x) && isnan(y));
}

/* All elements, or `count` random ones, of the product against the definition; the rest of C's memory is left alone. */
static void check(struct wf_gemm g, float *memory, int64_t room, int64_t count)
{
    const bool each = count == 0;
    const int64_t elements = each ? g.m * g.n : count;
    float *want = room_of(elements), *before = copy_of(memory, room);
    int64_t *at = malloc((size_t)elements * 2 * sizeof *at);
    ck_assert_ptr_nonnull(at);
    g.precision = WF_PRECISION_BF16;
    for (int64_t e = 0; e < elements; e++) {
        at[2 * e] = each ? e / g.n : below(g.m);
        at[2 * e + 1] = each ? e % g.n : below(g.n);
        want[e] = expected(&g, at[2 * e], at[2 * e + 1]);
    }
    EACH_WAY
    {
        memcpy(memory, before, (size_t)room * sizeof *memory);
        expect(wf_gemm(&g) == WF_OK, "no memory");
        for (int64_t e = 0; e < elements; e++) {
            const float *c = g.c + at[2 * e] * g.c_rs + at[2 * e + 1] * g.c_cs;
            expect(same(*c, want[e]), "element %lld, %lld is %a, not %a: way %d, %s", (long long)at[2 * e], (long long)at[2 * e + 1],
                   (double)*c, (double)want[e], way, describe(&g));
        }
        if (each) {
            for (int64_t e = 0; e < elements; e++)
                g.c[e / g.n * g.c_rs + e % g.n * g.c_cs] = before[g.c + e / g.n * g.c_rs + e % g.n * g.c_cs - memory];
            expect(memcmp(memory, before, (size_t)room * sizeof *memory) == 0, "memory beside C has changed: way %d, %s", way,
                   describe(&g));
        }
    }
    free(at);
}

static void start(void)
{
    ck_ok(wf_init(error, .threads = 2));
}

START_TEST(sizes)
{
    start();
    for (int count = sanitized() ? 60 : thorough() ? 1500 : 200; count > 0; count--) {
        float *memory;
        int64_t room;
        const int64_t m = 1 + below(70), n = 1 + below(70), k = 1 + below(100);
        const struct wf_gemm g = random_product(m, n, k, (enum kind)below(KINDS), &memory, &room);
        check(g, memory, room, 0);
        free_case();
    }
}
END_TEST

/* Several chunks of B and of A, tasks, and cache blocks; random elements of each product. A sample has one form of each shape. */
START_TEST(large)
{
    static const int64_t shapes[][3] = {{300, 500, 700}, {3, 3072, 3072}, {5, 4200, 3072}, {4200, 5, 3072},  {520, 33, 2100},
                                        {33, 700, 1030}, {1, 1500, 768},  {1500, 1, 768},  {13, 130, 66001}, {141, 13, 62007}};
    start();
    for (int i = 0; i < (sanitized() ? 1 : (int)(sizeof shapes / sizeof *shapes)); i++)
        for (int form = thorough() ? NN : i % (TT + 1); form <= TT; form += thorough() ? 1 : TT + 1) {
            struct wf_gemm g = product(shapes[i][0], shapes[i][1], shapes[i][2], (enum form)form, 1);
            g.beta = (wf_real)(form & 1);
            check(g, g.c, g.m * g.n, g.k > 10000 ? 30 : 300);
            free_case();
        }
}
END_TEST

/* A large C of whole tiles, at the beginning of a cache line and beside it. With a long k, whose sums wait in memory, the vector kernels
 * give the bits to compare with: the definition would take too long. */
START_TEST(stores_past_caches)
{
    enum { M = 1056, N = 1024, K = 40, LONG_K = 8400, ROOM = M * N + 16 };
    start();
    float *room = wf_alloc(ROOM * sizeof *room), *want = wf_alloc(ROOM * sizeof *want);
    ck_assert(room && want);
    for (int beside = 0; beside < 2; beside++) {
        struct wf_gemm g = product(M, N, K, TN, 1);
        g.beta = 0;
        g.c = room + beside;
        for (int64_t i = 0; i < ROOM; i++)
            room[i] = NAN;
        check(g, room, ROOM, 3000);
        free_case();
    }
    if (!sanitized() && wf_isa_supported("avx512")) {
        struct wf_gemm g = product(M, N, LONG_K, TN, 1);
        g.beta = 0;
        g.precision = WF_PRECISION_BF16;
        ck_ok(wf_isa_use("avx512", error));
        for (int way = VECTORS; way < WAYS; way++) {
            if (!use_way(way))
                continue;
            g.c = way == VECTORS ? want : room;
            ck_assert_int_eq(wf_gemm(&g), WF_OK);
            ck_assert_mem_eq(g.c, want, M * N * sizeof *want);
        }
        free_case();
    }
    wf_free(room);
    wf_free(want);
}
END_TEST

/* A result just below the smallest normal number: it is flushed or not by its value after rounding to 24 bits. */
START_TEST(flush)
{
    start();
    for (int i = 0; i < 400; i++) {
        float *a = room_of(64), *b = room_of(64), *c = room_of(1);
        for (int p = 0; p < 64; p++)
            a[p] = b[p] = 0;
        const int64_t p = 2 * below(14) + below(2); /* the small term follows in the same chain */
        a[p] = 0x1p-63f, b[p] = 0x1p-63f;
        a[p + 2] = -ldexpf(1 + (float)below(128) / 128, -80), b[p + 2] = ldexpf(1 + (float)below(128) / 128, -70 - (int)below(4));
        if (below(2))
            a[p] = -a[p], a[p + 2] = -a[p + 2];
        c[0] = 0;
        check((struct wf_gemm){.m = 1,
                               .n = 1,
                               .k = 33,
                               .alpha = 1,
                               .a = a,
                               .a_rs = 33,
                               .a_cs = 1,
                               .b = b,
                               .b_rs = 1,
                               .b_cs = 33,
                               .c = c,
                               .c_rs = 1,
                               .c_cs = 1},
              c, 1, 0);
        free_case();
    }
}
END_TEST

/* Batches, and products of several threads or inside a body, have the bits of one product on one thread. */
START_TEST(threads_do_not_matter)
{
    start();
    EACH_WAY
    {
        struct wf_gemm g = product(150, 190, 260, NT, 6);
        g.precision = WF_PRECISION_BF16;
        const struct wf_gemm_batch batch = {1, {6}, {150 * 260}, {260 * 190}, {150 * 190}};
        const size_t bytes = 6 * 150 * 190 * sizeof(float);
        ck_ok(wf_set_threads(1, error));
        for (int i = 0; i < 6; i++) {
            struct wf_gemm one = g;
            one.a += i * 150 * 260, one.b += i * 260 * 190, one.c += i * 150 * 190;
            ck_assert_int_eq(wf_gemm(&one), WF_OK);
        }
        float *want = copy_of(g.c, 6 * 150 * 190);
        for (int threads = 1; threads <= 4; threads++) {
            ck_ok(wf_set_threads(threads, error));
            memset(g.c, 0, bytes);
            ck_assert_int_eq(wf_gemm_batched(&g, &batch), WF_OK);
            ck_assert_mem_eq(g.c, want, bytes);
            memset(g.c, 0, bytes);
            ck_assert_int_eq(wf_gemm(&g), WF_OK); /* one product, divided among the threads */
            ck_assert_mem_eq(g.c, want, bytes / 6);
        }
        free_case();
    }
}
END_TEST

#if defined __SSE__
static unsigned modes[16];

static void read_mode(void *ctx, int64_t block)
{
    (void)ctx;
    modes[block] = _mm_getcsr();
}

/* The mode of the caller and of the workers stays as it was. A caller in another mode gets the same bits. */
START_TEST(modes_stay)
{
    start();
    struct wf_gemm g = product(100, 100, 100, NT, 1);
    float *want = room_of(10000);
    g.precision = WF_PRECISION_BF16;
    float *bias = some_numbers(100, PLAIN);
    for (int i = 0; i < 100; i++)
        bias[i] = ldexpf(bias[i], -130); /* denormal */
    for (int64_t p = 0; p < 100; p++)
        ((float *)(uintptr_t)g.a)[p] = 0; /* row 0 of C is the bias */
    g.bias = bias;
    EACH_WAY
    {
        const unsigned mode = _mm_getcsr();
        ck_assert_int_eq(wf_gemm(&g), WF_OK);
        ck_assert_uint_eq(_mm_getcsr() & 0xffc0, mode & 0xffc0);
        wf_parallel(16, 1e6, read_mode, NULL);
        for (int i = 0; i < 16; i++)
            ck_assert_uint_eq(modes[i] & 0xffc0, mode & 0xffc0);
        memcpy(want, g.c, 10000 * sizeof *want);
        for (int other = 0; other < 2; other++) {
            _mm_setcsr(other ? mode | _MM_ROUND_UP : mode | 0x8040);
            const wf_status status = wf_gemm(&g);
            _mm_setcsr(mode);
            ck_assert_int_eq(status, WF_OK);
            if (strcmp(*isa ? wf_isa() : "", "base") != 0) /* which has no code for the modes of a processor */
                ck_assert_mem_eq(want, g.c, 10000 * sizeof *want);
        }
    }
    free_case();
}
END_TEST
#endif

/* Every allocation fails once: the product says so, and the next one is right. */
START_TEST(memory)
{
    start();
    EACH_WAY
    {
        struct wf_gemm g = product(200, 200, 200, NT, 1);
        g.precision = WF_PRECISION_BF16;
        ck_assert_int_eq(wf_gemm(&g), WF_OK);
        float *want = copy_of(g.c, g.m * g.n);
        int without = 0;
        for (int n = 0;; n++) {
            wf_scratch_drop();
            wf_alloc_fail_after(n);
            const wf_status status = wf_gemm(&g);
            wf_alloc_fail_after(-1);
            expect(status == WF_OK || status == WF_ERR_MEMORY, "status %d", status);
            if (status == WF_OK)
                ck_assert_mem_eq(g.c, want, (size_t)(g.m * g.n) * sizeof *want);
            without += status == WF_ERR_MEMORY;
            if (status == WF_OK && n > 8)
                break;
        }
        ck_assert_int_gt(without, 0);
        ck_assert_int_eq(wf_gemm(&g), WF_OK);
        ck_assert_mem_eq(g.c, want, (size_t)(g.m * g.n) * sizeof *want);
        free_case();
    }
}
END_TEST

#if defined __SSE__
#define MODES modes_stay,
#else
#define MODES
#endif
WF_TEST_MAIN("bf16", sizes, large, stores_past_caches, flush, threads_do_not_matter, MODES memory)
