/* SPDX-License-Identifier: MIT */
/* Few rows times a matrix whose rows are contiguous (what a linear layer on some tokens hands back). The matrix is read in the order in
 * which it lies, some steps of k at a time over many columns: a tile, which goes down a few columns, would have a page of memory at each
 * step. Sums wait for their next steps in the first-level cache; they are added in the order of the tiles (isa.h). */
#include "../simd.h"
#include "few.h"
#include "isa.h"

enum { STEPS = 8, SUMS = 16384 / sizeof(wf_real) };

/* Some steps of k for a strip of columns. `more`: steps that come after these. */
struct strip {
    int64_t columns, more;
    const wf_real *a; /* [steps, rows] */
    const wf_real *b;
    int64_t b_rs;
    wf_real *sum; /* [rows, width] */
    int64_t width;
    bool first;
};

V_INLINE void add_columns(const int rows, const int vectors, const int steps, const bool masked, const struct strip *s, int64_t j)
{
    const v_mask last = V_FIRST((int)(masked ? s->columns - j - (vectors - 1) * V_LANES : V_LANES));
    const wf_real *b = s->b + j, *fetch = b + (s->more > STEPS ? STEPS : 0) * s->b_rs;
    vr sum[FEW_ROWS][TILE_V];
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            sum[r][v] = s->first ? v_set(0) : v_load(s->sum + r * s->width + j + v * V_LANES);
#pragma GCC unroll 8
    for (int i = 0; i < steps; i++, b += s->b_rs, fetch += s->b_rs) {
        vr x[TILE_V];
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) {
            x[v] = masked && v == vectors - 1 ? v_load_mask(b + v * V_LANES, last) : v_load(b + v * V_LANES);
            __builtin_prefetch(fetch + v * V_LANES);
        }
#pragma GCC unroll 12
        for (int r = 0; r < rows; r++) {
            const vr a = v_set(s->a[i * rows + r]);
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++)
                sum[r][v] = v_fma(a, x[v], sum[r][v]);
        }
    }
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            v_store(s->sum + r * s->width + j + v * V_LANES, sum[r][v]);
}

V_INLINE void add_steps(const int rows, const int steps, const struct strip *given)
{
    const struct strip copy = *given, *const s = &copy; /* stores change nothing of it */
    enum { REGISTERS = V_LANES * sizeof(wf_real) == 64 ? 32 : 16 };
    const int vectors = rows * TILE_V + TILE_V + 1 <= REGISTERS ? TILE_V : 1;
    int64_t j = 0;
    for (; j + vectors * V_LANES <= s->columns; j += vectors * V_LANES)
        add_columns(rows, vectors, steps, false, s, j);
    for (; j + V_LANES <= s->columns; j += V_LANES)
        add_columns(rows, 1, steps, false, s, j);
    if (j < s->columns)
        add_columns(rows, 1, steps, true, s, j);
}

#define ROWS(count)                                                                                                                        \
    static void add_##count(const struct strip *s, bool whole)                                                                             \
    {                                                                                                                                      \
        if (whole)                                                                                                                         \
            add_steps(count, STEPS, s);                                                                                                    \
        else                                                                                                                               \
            add_steps(count, 1, s);                                                                                                        \
    }
EACH_FEW_ROWS(ROWS)
#define NAME(count) add_##count,
static void (*const add_of[FEW_ROWS])(const struct strip *s, bool whole) = {EACH_FEW_ROWS(NAME)};

static void finish(const struct wf_gemm *g, const struct gemm_end *end, int64_t from, int64_t p, int64_t k, const struct strip *s)
{
    const vr alpha = v_set(end->alpha), beta = v_set(p == 0 ? end->beta : 1);
    const bool last = p + k == g->k;
    for (int64_t r = 0; r < g->m; r++)
        for (int64_t j = 0; j < s->columns; j += V_LANES) {
            const v_mask m = V_FIRST((int)(s->columns - j < V_LANES ? s->columns - j : V_LANES));
            wf_real *c = g->c + r * g->c_rs + from + j;
            vr rest = !last         ? v_set(0)
                      : end->bias_m ? v_set(end->bias_m[r])
                      : end->bias_n ? v_load_mask(end->bias_n + from + j, m)
                                    : v_set(0);
            if (p > 0 || end->beta != 0)
                rest = v_fma(beta, v_load_mask(c, m), rest);
            v_store_mask(c, m, v_fma(alpha, v_load(s->sum + r * s->width + j), rest));
        }
}

static void copy_rows(const struct wf_gemm *g, int64_t p, int64_t k, wf_real *out)
{
    for (int64_t i = p; i < p + k; i++)
        for (int64_t r = 0; r < g->m; r++)
            *out++ = g->a[r * g->a_rs + i * g->a_cs];
}

void WF_GEMM(lines)(const struct wf_gemm *g, const struct gemm_end *end)
{
    wf_real sum[SUMS + TILE_N] __attribute__((aligned(64))), a[GEMM_K * FEW_ROWS];
    const int64_t block = gemm_k_block(g->k), width = SUMS / g->m / TILE_N * TILE_N;
    for (int64_t j = 0; j < g->n; j += width) {
        struct strip s = {.columns = g->n - j < width ? g->n - j : width, .b_rs = g->b_rs, .sum = sum, .width = width};
        for (int64_t p = 0; p < g->k; p += block) {
            const int64_t k = g->k - p < block ? g->k - p : block;
            copy_rows(g, p, k, a);
            for (int64_t i = 0, steps; i < k; i += steps) {
                steps = k - i < STEPS ? 1 : STEPS;
                s.first = i == 0;
                s.more = g->k - p - i - steps;
                s.a = a + i * g->m;
                s.b = g->b + (p + i) * g->b_rs + j;
                add_of[g->m - 1](&s, steps == STEPS);
            }
            finish(g, end, j, p, k, &s);
        }
    }
}
