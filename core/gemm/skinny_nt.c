/* SPDX-License-Identifier: MIT */
/* The kernel skinny_nt: few rows of A times a B whose k is contiguous, such as a linear layer for a few tokens. It transposes squares of
 * B in registers, so that a lane holds one column and adds in ascending k. So the order of additions is that of private.h, and a row has
 * the same bits alone as among other rows. Each element of C is a chain of multiply-adds that wait for each other. With few rows there are
 * few chains, so two vectors of columns are computed together: one chain works while another waits. */
#include "skinny_nt.h"
#include "../transpose.h"

/* One cache block of k for m rows of A and n columns of B; n is at most NT_VECTORS vectors. */
struct strip {
    int64_t k;
    int64_t k0, k_end; /* the first step of this block in k, and the end of k */
    const wf_real *a;
    int64_t a_rs, a_cs;
    const wf_real *b;
    int64_t b_cs;
    wf_real *c;
    int64_t c_rs, c_cs;
    int64_t n;
    const wf_real *bias_n, *bias_m;
    wf_real alpha, beta;
};

/* Loads a square of B and transposes it: lane j of x[i] is column j at step i of k. `steps` and `n` may be fewer than V_LANES. */
V_INLINE void load_square(const wf_real *b, int64_t b_cs, int64_t steps, int64_t n, vr x[V_LANES])
{
    const v_mask m = V_FIRST((int)steps);
#pragma GCC unroll 16
    for (int i = 0; i < V_LANES; i++)
        x[i] = i < n ? v_load_mask(b + i * b_cs, m) : v_set(0);
    v_transpose(x);
}

/* Pointers and offsets to read rows of A by broadcasts, as in a_row_offset. */
struct a_rows {
    const char *a, *a7;
    int64_t r1, r3, r5;
};

V_INLINE struct a_rows a_rows_at(const wf_real *a, int64_t a_rs)
{
    const int64_t r1 = a_rs * (int64_t)sizeof(wf_real);
    struct a_rows at = {(const char *)a, (const char *)a + A7 * r1, r1, 3 * r1, 5 * r1};
    __asm__("" : "+r"(at.r3), "+r"(at.r5), "+r"(at.a7)); /* keeps these in registers; otherwise GCC would compute them again in the loop */
    return at;
}

/* Element p of row r, in all lanes. */
V_INLINE vr broadcast_a(const struct a_rows *a, const int r, int64_t p)
{
    return v_set(((const wf_real *)((r < A7 ? a->a : a->a7) + a_row_offset(r, a->r1, a->r3, a->r5)))[p]);
}

/* Computes a strip of m rows and up to `vectors` vectors of columns; both are constants of each call, so the compiler unrolls the loops.
 * `unit` tells the compiler that a_cs is 1. */
V_INLINE void multiply(const int m, const int vectors, const bool unit, const struct strip *s)
{
    vr sum[SKINNY_M][NT_VECTORS];
#pragma GCC unroll 12
    for (int r = 0; r < m; r++)
#pragma GCC unroll 2
        for (int g = 0; g < vectors; g++)
            sum[r][g] = v_set(0);
    const int64_t k = s->k, a_cs = unit ? 1 : s->a_cs, b_cs = s->b_cs;
    const struct a_rows a = a_rows_at(s->a, s->a_rs);
    int64_t p = 0;
    if (s->n == vectors * V_LANES) {
        /* A cache line of each column of B is prefetched, because the hardware prefetcher does not follow so many columns. If the
         * columns begin close together (NT_SHORT_K), the lines are those of the next columns. Otherwise they are those of later steps of
         * the same columns, and near the last step those of the next columns. */
        const int64_t then = b_cs <= NT_SHORT_K ? vectors * V_LANES * b_cs : NT_K_AHEAD;
        for (; p + V_LANES <= k; p += V_LANES) {
            const int64_t ahead = then - (then < b_cs && s->k0 + p + then >= s->k_end ? s->k_end - vectors * V_LANES * b_cs : 0);
#pragma GCC unroll 2
            for (int g = 0; g < vectors; g++) {
                vr x[V_LANES];
                const wf_real *b = s->b + p + g * V_LANES * b_cs, *fetch = b + ahead;
#pragma GCC unroll 16
                for (int i = 0; i < V_LANES; i++)
                    __builtin_prefetch(fetch + (i & ~3) * b_cs + (i & 3) * b_cs, 0, 2);
                __asm__("" : "+r"(b));
#pragma GCC unroll 16
                for (int i = 0; i < V_LANES; i++)
                    x[i] = v_load(b + i * b_cs);
                v_transpose(x);
#pragma GCC unroll 16
                for (int i = 0; i < V_LANES; i++)
#pragma GCC unroll 12
                    for (int r = 0; r < m; r++)
                        sum[r][g] = v_fma(broadcast_a(&a, r, (p + i) * a_cs), x[i], sum[r][g]);
            }
        }
    }
    for (; p < k; p += V_LANES) {
        const int64_t steps = WF_MIN(k - p, V_LANES);
        for (int g = 0; g < vectors && g * V_LANES < s->n; g++) {
            vr x[V_LANES];
            load_square(s->b + p + g * V_LANES * b_cs, b_cs, steps, s->n - g * V_LANES, x);
#pragma GCC unroll 16
            for (int i = 0; i < V_LANES; i++)
                if (i < steps)
#pragma GCC unroll 12
                    for (int r = 0; r < m; r++)
                        sum[r][g] = v_fma(broadcast_a(&a, r, (p + i) * a_cs), x[i], sum[r][g]);
        }
    }
    for (int g = 0; g < vectors && g * V_LANES < s->n; g++) {
        const int64_t from = g * V_LANES, count = WF_MIN(s->n - from, V_LANES);
        const vr bias = s->bias_n ? load_c(s->bias_n + from, 1, count) : v_set(0);
#pragma GCC unroll 12
        for (int r = 0; r < m; r++) {
            store_sums(s->c + r * s->c_rs + from * s->c_cs, s->c_cs, count, s->alpha, sum[r][g], s->beta,
                       s->bias_m ? v_set(s->bias_m[r]) : bias);
        }
    }
}

#define KERNEL(count)                                                                                                                      \
    static void skinny_nt_##count(const struct strip *s)                                                                                   \
    {                                                                                                                                      \
        multiply(count, count <= NT_PAIRED_M ? NT_VECTORS : 1, count > 1, s);                                                              \
    }
EACH_SKINNY_M(KERNEL)
#define NAME(count) skinny_nt_##count,
static void (*const kernels[SKINNY_M])(const struct strip *s) = {EACH_SKINNY_M(NAME)};

void WF_GEMM(skinny_nt)(const struct wf_gemm *g, const struct gemm_epilogue *epilogue)
{
    const int64_t block = gemm_kc(g->k), width = (g->m <= NT_PAIRED_M ? NT_VECTORS : 1) * V_LANES;
    for (int64_t j = 0; j < g->n; j += width)
        for (int64_t p = 0; p < g->k; p += block) {
            const bool last = g->k - p <= block;
            kernels[g->m - 1](&(struct strip){
                .k = WF_MIN(g->k - p, block),
                .k0 = p,
                .k_end = g->k,
                .a = g->a + p * g->a_cs,
                .a_rs = g->a_rs,
                .a_cs = g->a_cs,
                .b = g->b + j * g->b_cs + p,
                .b_cs = g->b_cs,
                .c = g->c + j * g->c_cs,
                .c_rs = g->c_rs,
                .c_cs = g->c_cs,
                .n = WF_MIN(g->n - j, width),
                .bias_n = last && epilogue->bias_n ? epilogue->bias_n + j : NULL,
                .bias_m = last ? epilogue->bias_m : NULL,
                .alpha = epilogue->alpha,
                .beta = p == 0 ? epilogue->beta : 1,
            });
        }
}
