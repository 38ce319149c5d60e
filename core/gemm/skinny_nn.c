/* SPDX-License-Identifier: MIT */
/* The kernel skinny_nn: few rows of A times a B whose rows are contiguous, such as the input gradient of a linear layer for a few
 * tokens. It reads B in memory order, NN_K rows at a time over many columns, because a register tile would read another page of B at
 * each step of k. The partial sums stay in the first-level cache. The order of additions is that of private.h. */
#include "../simd.h"
#include "private.h"

/* The next few steps of k for a strip of n columns. */
struct strip {
    int64_t n;
    int64_t k_after;  /* number of steps of k after these */
    const wf_real *a; /* packed [steps, m] */
    const wf_real *b;
    int64_t b_rs;
    wf_real *sum; /* partial sums [m, width] */
    int64_t width;
    bool first; /* these are the first steps of a cache block: the sums begin at 0 */
};

/* Adds `steps` steps of k to the sums of m rows and `vectors` vectors of columns, from column j of the strip on. `masked`: the last vector
 * is incomplete. m, vectors, steps and masked are constants of each call, so the compiler unrolls the loops. */
V_INLINE void add_vectors(const int m, const int vectors, const int steps, const bool masked, const struct strip *s, int64_t j)
{
    const v_mask last = V_FIRST((int)(masked ? s->n - j - (vectors - 1) * V_LANES : V_LANES));
    const wf_real *b = s->b + j, *fetch = b + (s->k_after > NN_K ? NN_K : 0) * s->b_rs;
    vr sum[SKINNY_M][NR_VECTORS];
#pragma GCC unroll 12
    for (int r = 0; r < m; r++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            sum[r][v] = s->first ? v_set(0) : v_load(s->sum + r * s->width + j + v * V_LANES);
#pragma GCC unroll 8
    for (int i = 0; i < steps; i++, b += s->b_rs, fetch += s->b_rs) {
        vr x[NR_VECTORS];
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) {
            x[v] = masked && v == vectors - 1 ? v_load_mask(b + v * V_LANES, last) : v_load(b + v * V_LANES);
            __builtin_prefetch(fetch + v * V_LANES);
        }
#pragma GCC unroll 12
        for (int r = 0; r < m; r++) {
            const vr a = v_set(s->a[i * m + r]);
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++)
                sum[r][v] = v_fma(a, x[v], sum[r][v]);
        }
    }
#pragma GCC unroll 12
    for (int r = 0; r < m; r++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            v_store(s->sum + r * s->width + j + v * V_LANES, sum[r][v]);
}

V_INLINE void add_steps(const int m, const int steps, const struct strip *given)
{
    const struct strip copy = *given, *const s = &copy; /* a local copy, so that the compiler knows that no store changes it */
    const int vectors = m * NR_VECTORS + NR_VECTORS + 1 <= REGISTERS ? NR_VECTORS : 1;
    int64_t j = 0;
    for (; j + vectors * V_LANES <= s->n; j += vectors * V_LANES)
        add_vectors(m, vectors, steps, false, s, j);
    for (; j + V_LANES <= s->n; j += V_LANES)
        add_vectors(m, 1, steps, false, s, j);
    if (j < s->n)
        add_vectors(m, 1, steps, true, s, j);
}

#define KERNEL(count)                                                                                                                      \
    static void add_##count(const struct strip *s, bool whole)                                                                             \
    {                                                                                                                                      \
        if (whole)                                                                                                                         \
            add_steps(count, NN_K, s);                                                                                                     \
        else                                                                                                                               \
            add_steps(count, 1, s);                                                                                                        \
    }
EACH_SKINNY_M(KERNEL)
#define NAME(count) add_##count,
static void (*const kernels[SKINNY_M])(const struct strip *s, bool whole) = {EACH_SKINNY_M(NAME)};

/* Adds the sums of one cache block, which has steps p .. p + k - 1 of k, to C, at the columns from `from` on. C is multiplied by the
 * epilogue's beta before the first block, and the bias is added with the last one. */
static void store(const struct wf_gemm *g, const struct gemm_epilogue *epilogue, int64_t from, int64_t p, int64_t k, const struct strip *s)
{
    const vr alpha = v_set(epilogue->alpha), beta = v_set(p == 0 ? epilogue->beta : 1);
    const bool last = p + k == g->k;
    for (int64_t r = 0; r < g->m; r++)
        for (int64_t j = 0; j < s->n; j += V_LANES) {
            const v_mask m = V_FIRST((int)WF_MIN(s->n - j, V_LANES));
            wf_real *c = g->c + r * g->c_rs + from + j;
            vr addend = !last              ? v_set(0)
                        : epilogue->bias_m ? v_set(epilogue->bias_m[r])
                        : epilogue->bias_n ? v_load_mask(epilogue->bias_n + from + j, m)
                                           : v_set(0);
            if (p > 0 || epilogue->beta != 0)
                addend = v_fma(beta, v_load_mask(c, m), addend);
            v_store_mask(c, m, v_fma(alpha, v_load(s->sum + r * s->width + j), addend));
        }
}

static void pack_a(const struct wf_gemm *g, int64_t p, int64_t k, wf_real *out)
{
    for (int64_t i = p; i < p + k; i++)
        for (int64_t r = 0; r < g->m; r++)
            *out++ = g->a[r * g->a_rs + i * g->a_cs];
}

void WF_GEMM(skinny_nn)(const struct wf_gemm *g, const struct gemm_epilogue *epilogue)
{
    wf_real sum[NN_SUMS] __attribute__((aligned(64))), a[KC * SKINNY_M];
    const int64_t block = gemm_kc(g->k), width = NN_SUMS / g->m / NR * NR;
    for (int64_t j = 0; j < g->n; j += width) {
        struct strip s = {.n = WF_MIN(g->n - j, width), .b_rs = g->b_rs, .sum = sum, .width = width};
        for (int64_t p = 0; p < g->k; p += block) {
            const int64_t k = WF_MIN(g->k - p, block);
            pack_a(g, p, k, a);
            for (int64_t i = 0, steps; i < k; i += steps) {
                steps = k - i < NN_K ? 1 : NN_K;
                s.first = i == 0;
                s.k_after = g->k - p - i - steps;
                s.a = a + i * g->m;
                s.b = g->b + (p + i) * g->b_rs + j;
                kernels[g->m - 1](&s, steps == NN_K);
            }
            store(g, epilogue, j, p, k, &s);
        }
    }
}
