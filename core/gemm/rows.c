/* SPDX-License-Identifier: MIT */
/* Few rows times a matrix whose k is contiguous (a linear layer on a token or some). Squares of the matrix are turned in registers
 * on their way from memory, so that the additions go in the order of the tiles (isa.h) and a row alone has the bits that it
 * has in a batch. Each output is one chain of dependent multiply-adds: where rows are few, two groups of outputs have their turn. */
#include "../transpose.h"
#include "few.h"
#include "isa.h"

enum { GROUPS = 2, PAIRED = 3, SHORT_ROW = 4096 / sizeof(wf_real), AHEAD = 1024 / sizeof(wf_real) };

/* A k-block of some rows of A and of some outputs, GROUPS vectors of them at most. `left`: of the rows of B, with this block. */
struct strip {
    int64_t k, left;
    const wf_real *a;
    int64_t a_rs, a_cs;
    const wf_real *b;
    int64_t b_cs;
    wf_real *c;
    int64_t c_rs, c_cs;
    int64_t outputs;
    const wf_real *bias_n, *bias_m;
    wf_real alpha, beta;
};

V_INLINE vr load_outputs(const wf_real *c, int64_t c_cs, int64_t count)
{
    if (c_cs == 1)
        return v_load_mask(c, V_FIRST((int)count));
    vr x = v_set(0);
    for (int i = 0; i < V_LANES && i < count; i++)
        x[i] = c[i * c_cs];
    return x;
}

V_INLINE void store_outputs(wf_real *c, int64_t c_cs, int64_t count, vr x)
{
    if (c_cs == 1)
        v_store_mask(c, V_FIRST((int)count), x);
    else
        for (int i = 0; i < V_LANES && i < count; i++)
            c[i * c_cs] = x[i];
}

/* A square of B, turned: its outputs at one step of k each. `steps` and `outputs` may be fewer than a vector's. */
V_INLINE void load_square(const wf_real *b, int64_t b_cs, int64_t steps, int64_t outputs, vr x[V_LANES])
{
    const v_mask m = V_FIRST((int)steps);
#pragma GCC unroll 16
    for (int i = 0; i < V_LANES; i++)
        x[i] = i < outputs ? v_load_mask(b + i * b_cs, m) : v_set(0);
    v_transpose(x);
}

/* Rows of A that are read by broadcasts: row_distance. */
struct row_of {
    const char *a, *a7;
    int64_t r1, r3, r5;
};

V_INLINE struct row_of rows_from(const wf_real *a, int64_t a_rs)
{
    const int64_t r1 = a_rs * (int64_t)sizeof(wf_real);
    struct row_of rows = {(const char *)a, (const char *)a + 7 * r1, r1, 3 * r1, 5 * r1};
    __asm__("" : "+r"(rows.r3), "+r"(rows.r5), "+r"(rows.a7)); /* or they are computed again in the loop */
    return rows;
}

/* The element `at` of row r, in all lanes. */
V_INLINE vr row_of(const struct row_of *b, const int r, int64_t at)
{
    return v_set(((const wf_real *)((r < 7 ? b->a : b->a7) + row_distance(r, b->r1, b->r3, b->r5)))[at]);
}

/* `unit`: a_cs is 1, known to the compiler. */
V_INLINE void multiply(const int rows, const int groups, const bool unit, const struct strip *s)
{
    vr sum[FEW_ROWS][GROUPS];
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int g = 0; g < groups; g++)
            sum[r][g] = v_set(0);
    const int64_t k = s->k, a_cs = unit ? 1 : s->a_cs, b_cs = s->b_cs;
    const struct row_of a = rows_from(s->a, s->a_rs);
    int64_t p = 0;
    if (s->outputs == groups * V_LANES) {
        /* Rows of B are more than the processor follows by itself: a line of each is fetched for later, of the next outputs where rows
         * are short, past the last step too. */
        const int64_t then = b_cs <= SHORT_ROW ? groups * V_LANES * b_cs : AHEAD;
        for (; p + V_LANES <= k; p += V_LANES) {
            const int64_t ahead = then - (then < b_cs && p + then >= s->left ? s->left - groups * V_LANES * b_cs : 0);
#pragma GCC unroll 2
            for (int g = 0; g < groups; g++) {
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
                    for (int r = 0; r < rows; r++)
                        sum[r][g] = v_fma(row_of(&a, r, (p + i) * a_cs), x[i], sum[r][g]);
            }
        }
    }
    for (; p < k; p += V_LANES) {
        const int64_t steps = k - p < V_LANES ? k - p : V_LANES;
        for (int g = 0; g < groups && g * V_LANES < s->outputs; g++) {
            vr x[V_LANES];
            load_square(s->b + p + g * V_LANES * b_cs, b_cs, steps, s->outputs - g * V_LANES, x);
#pragma GCC unroll 16
            for (int i = 0; i < V_LANES; i++)
                if (i < steps)
#pragma GCC unroll 12
                    for (int r = 0; r < rows; r++)
                        sum[r][g] = v_fma(row_of(&a, r, (p + i) * a_cs), x[i], sum[r][g]);
        }
    }
    for (int g = 0; g < groups && g * V_LANES < s->outputs; g++) {
        const int64_t from = g * V_LANES, left = s->outputs - from, count = left < V_LANES ? left : V_LANES;
        const vr bias = s->bias_n ? load_outputs(s->bias_n + from, 1, count) : v_set(0);
#pragma GCC unroll 12
        for (int r = 0; r < rows; r++) {
            wf_real *c = s->c + r * s->c_rs + from * s->c_cs;
            vr rest = s->bias_m ? v_set(s->bias_m[r]) : bias;
            if (s->beta != 0)
                rest = v_fma(v_set(s->beta), load_outputs(c, s->c_cs, count), rest);
            store_outputs(c, s->c_cs, count, v_fma(v_set(s->alpha), sum[r][g], rest));
        }
    }
}

#define ROWS(count)                                                                                                                        \
    static void rows_##count(const struct strip *s)                                                                                        \
    {                                                                                                                                      \
        multiply(count, count <= PAIRED ? GROUPS : 1, count > 1, s);                                                                       \
    }
EACH_FEW_ROWS(ROWS)
#define NAME(count) rows_##count,
static void (*const rows_of[FEW_ROWS])(const struct strip *s) = {EACH_FEW_ROWS(NAME)};

void WF_GEMM(rows)(const struct wf_gemm *g, const struct gemm_end *end)
{
    const int64_t block = gemm_k_block(g->k), together = (g->m <= PAIRED ? GROUPS : 1) * V_LANES;
    for (int64_t j = 0; j < g->n; j += together)
        for (int64_t p = 0; p < g->k; p += block) {
            const bool last = g->k - p <= block;
            rows_of[g->m - 1](&(struct strip){
                .k = last ? g->k - p : block,
                .left = g->k - p,
                .a = g->a + p * g->a_cs,
                .a_rs = g->a_rs,
                .a_cs = g->a_cs,
                .b = g->b + j * g->b_cs + p,
                .b_cs = g->b_cs,
                .c = g->c + j * g->c_cs,
                .c_rs = g->c_rs,
                .c_cs = g->c_cs,
                .outputs = g->n - j < together ? g->n - j : together,
                .bias_n = last && end->bias_n ? end->bias_n + j : NULL,
                .bias_m = last ? end->bias_m : NULL,
                .alpha = end->alpha,
                .beta = p == 0 ? end->beta : 1,
            });
        }
}
