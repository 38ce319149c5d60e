/* SPDX-License-Identifier: MIT */
/* The kernels of bf16's arithmetic (bf16.h) without AMX, and the epilogue, which AMX's kernel uses too.
 *
 * A block expands its operands to floats: of each step first the even k, then the odd ones, so that a chain reads contiguous memory. It
 * does so for a cache block of BF16_EMULATED_STEPS at a time. The sums d of all elements wait in memory between the cache blocks. */
#ifndef WF_DOUBLE
#include "../bf16_lanes.h"
#include "bf16.h"

enum {
    EK = BF16_EMULATED_K,
    CHAIN = BF16_K / 2,
    TILE_M = MR / 2, /* speed: rows of a register tile, since each element has two chains */
};

/* A register tile: d [m, NR] += its cache block. Rows of a are EK apart, rows of b and d NR. */
struct tile {
    int64_t steps;
    const float *a, *b;
    float *d;
};

#if defined V_HAS_FMA
V_INLINE void multiply(const int m, const struct tile *t)
{
    for (int64_t s = 0; s < t->steps; s++) {
        vr sum[2][TILE_M][NR_VECTORS]; /* of even k, of odd k */
        const float *a = t->a + s * BF16_K, *b = t->b + s * BF16_K * NR;
#pragma GCC unroll 2
        for (int odd = 0; odd < 2; odd++)
#pragma GCC unroll 7
            for (int i = 0; i < m; i++)
#pragma GCC unroll 2
                for (int v = 0; v < NR_VECTORS; v++)
                    sum[odd][i][v] = v_set(0);
#pragma GCC unroll 4
        for (int p = 0; p < CHAIN; p++, a++, b += NR) {
#pragma GCC unroll 2
            for (int odd = 0; odd < 2; odd++) {
                vr x[NR_VECTORS];
#pragma GCC unroll 2
                for (int v = 0; v < NR_VECTORS; v++)
                    x[v] = v_load(b + odd * CHAIN * NR + v * V_LANES);
#pragma GCC unroll 7
                for (int i = 0; i < m; i++) {
                    const vr y = v_set(a[i * EK + odd * CHAIN]);
#pragma GCC unroll 2
                    for (int v = 0; v < NR_VECTORS; v++)
                        sum[odd][i][v] = v_fma(y, x[v], sum[odd][i][v]);
                }
            }
        }
#pragma GCC unroll 7
        for (int i = 0; i < m; i++)
#pragma GCC unroll 2
            for (int v = 0; v < NR_VECTORS; v++) {
                float *d = t->d + i * NR + v * V_LANES;
                v_store(d, v_load(d) + (sum[0][i][v] + sum[1][i][v]));
            }
    }
}

/* Not inlined: no arithmetic may move to the other side of the change of MXCSR. */
#define MULTIPLY(m)                                                                                                                        \
    V_NOINLINE void multiply_##m(const struct tile *t)                                                                                     \
    {                                                                                                                                      \
        multiply(m, t);                                                                                                                    \
    }
#define NAME(m) multiply_##m,
#if defined WF_ISA_AVX512
#define EACH_M(what) what(1) what(2) what(3) what(4) what(5) what(6) what(7)
#else
#define EACH_M(what) what(1) what(2) what(3)
#endif
EACH_M(MULTIPLY)
static void (*const multiplies[TILE_M])(const struct tile *) = {EACH_M(NAME)};

static void multiply_tile(int64_t m, const struct tile *t)
{
    multiplies[m - 1](t);
}

#else
static void multiply_tile(int64_t m, const struct tile *t)
{
    for (int64_t s = 0; s < t->steps; s++)
        for (int64_t i = 0; i < m; i++) {
            float sum[2][NR] = {{0}}, *d = t->d + i * NR;
            for (int odd = 0; odd < 2; odd++)
                for (int64_t p = 0; p < CHAIN; p++) {
                    const int64_t k = s * BF16_K + odd * CHAIN + p;
                    for (int64_t j = 0; j < NR; j++)
                        sum[odd][j] = bf16_fma(t->a[i * EK + k], t->b[k * NR + j], sum[odd][j]);
                }
            for (int64_t j = 0; j < NR; j++)
                d[j] = bf16_flushed(d[j] + bf16_flushed(sum[0][j] + sum[1][j]));
        }
}
#endif

/* The even and the odd elements of pairs. */
V_INLINE void expand(const wf_bf16 *pairs, float *even, float *odd)
{
    const vr x = v_load((const wf_real *)pairs);
    v_store(even, bf16_even(x));
    v_store(odd, bf16_odd(x));
}

/* The first n elements from p on, rounded; the other lanes are 0. */
V_INLINE vr rounded(const float *p, int64_t n)
{
    return bf16_floats(n >= V_LANES ? v_load(p) : n > 0 ? v_load_n(p, n, 0) : v_set(0));
}

#define EVERY_OTHER(lane, first) (2 * (lane) + (first))

/* A step of a row of A in place, of which n elements are left. */
V_INLINE void expand_row(int64_t n, const float *row, float *out)
{
    for (int v = 0; v < CHAIN; v += V_LANES) {
        const vr x = rounded(row + 2 * v, n - 2 * v), y = rounded(row + 2 * v + V_LANES, n - 2 * v - V_LANES);
        v_store(out + v, __builtin_shufflevector(x, y, V_LIST(EVERY_OTHER, 0)));
        v_store(out + CHAIN + v, __builtin_shufflevector(x, y, V_LIST(EVERY_OTHER, 1)));
    }
}

/* `steps` steps of m rows of A: rows of EK floats. */
static void expand_a(const struct bf16_block *b, int64_t first, int64_t steps, float *out)
{
    for (int64_t i = 0; b->rows && i < b->m; i++)
        for (int64_t s = first; s < first + steps; s++) {
            const float *row = b->rows + i * b->rows_rs + s * BF16_K;
            float *to = out + i * EK + (s - first) * BF16_K;
            if (b->k - s * BF16_K >= BF16_K)
                expand_row(BF16_K, row, to);
            else
                expand_row(b->k - s * BF16_K, row, to);
        }
    if (b->rows)
        return;
    for (int64_t i = 0; i < b->m; i++, out += EK) {
        const wf_bf16 *row = b->a + (i / BF16_LINES * b->steps + first) * BF16_TILE + i % BF16_LINES * BF16_K;
        for (int64_t s = 0; s < steps; s++, row += BF16_TILE)
            for (int v = 0; v < CHAIN; v += V_LANES)
                expand(row + 2 * v, out + s * BF16_K + v, out + s * BF16_K + CHAIN + v);
    }
}

/* `steps` steps of NR columns of B from `column` on: rows of NR floats, one for each k. Columns in panels past n are zeros. */
static void expand_b(const struct bf16_block *b, int64_t column, int64_t first, int64_t steps, float *out)
{
    for (int j = 0; j < NR; j += V_LANES) {
        const int64_t at = column + j, panel = at / BF16_LINES;
        if (panel * BF16_LINES >= b->n) {
            for (int64_t k = 0; k < steps * BF16_K; k++)
                v_store(out + k * NR + j, v_set(0));
            continue;
        }
        const wf_bf16 *tile = b->b + (panel * b->steps + first) * BF16_TILE + at % BF16_LINES * 2;
        for (int64_t s = 0; s < steps; s++, tile += BF16_TILE)
            for (int p = 0; p < CHAIN; p++) {
                float *even = out + (s * BF16_K + p) * NR + j;
                expand(tile + 2 * p * BF16_LINES, even, even + CHAIN * NR);
            }
    }
}

/* Products and sums apart: memory between them keeps the compiler from fusing them. */
static void store_row(const struct gemm_epilogue *e, int64_t row, int64_t column, int64_t n, const float *sum, float *c, int64_t c_cs)
{
    float addend[BF16_MR], scaled[BF16_MR];
    for (int64_t j = 0; j < n; j++) {
        addend[j] = e->beta == 0 ? 0 : e->beta * c[j * c_cs];
        scaled[j] = e->alpha * sum[j];
    }
    __asm__ volatile("" : : "r"(addend), "r"(scaled) : "memory");
    const bool bias = e->bias_n || e->bias_m;
    for (int64_t j = 0; j < n; j++) {
        float x = addend[j];
        if (bias) {
            const float y = e->bias_n ? e->bias_n[column + j] : e->bias_m[row];
            x = e->beta == 0 ? y : x + y;
        }
        c[j * c_cs] = e->beta == 0 && !bias ? scaled[j] : scaled[j] + x;
    }
}

/* c = sum, plus what there is of c and of the bias. */
V_INLINE vr stored(bool add, bool bias, vr sum, vr c, vr bias_value)
{
    return add && bias ? sum + (c + bias_value) : add ? sum + c : bias ? sum + bias_value : sum;
}

V_NOINLINE void store_rows(const struct bf16_block *b, int64_t m, int64_t n, int64_t row, int64_t column, const float *sum, int64_t sum_rs)
{
    const struct gemm_epilogue *e = &b->epilogue;
    const bool plain = e->alpha == 1 && (e->beta == 0 || e->beta == 1), add = e->beta == 1;
    for (int64_t i = 0; i < m; i++, sum += sum_rs) {
        float *c = b->c + (row + i) * b->c_rs + column * b->c_cs;
        if (!plain || b->c_cs != 1) {
            for (int64_t j = 0; j < n; j += BF16_MR)
                store_row(e, row + i, column + j, WF_MIN(n - j, BF16_MR), sum + j, c + j * b->c_cs, b->c_cs);
            continue;
        }
        const float *bias_n = e->bias_n ? e->bias_n + column : NULL;
        const bool bias = bias_n || e->bias_m;
        const vr bias_m = v_set(e->bias_m ? e->bias_m[row + i] : 0);
        int64_t j = 0;
        for (; j + V_LANES <= n; j += V_LANES) /* masked stores are slow */
            v_store(c + j, stored(add, bias, v_load(sum + j), add ? v_load(c + j) : v_set(0), bias_n ? v_load(bias_n + j) : bias_m));
        if (j < n) {
            const v_mask mask = V_FIRST((int)(n - j));
            const vr old = add ? v_load_mask(c + j, mask) : v_set(0), bias_j = bias_n ? v_load_mask(bias_n + j, mask) : bias_m;
            v_store_mask(c + j, mask, stored(add, bias, v_load_mask(sum + j, mask), old, bias_j));
        }
    }
}

static void store(const struct bf16_block *b, int64_t m, int64_t n, int64_t row, int64_t column, const float *sum, int64_t sum_rs)
{
    const unsigned mode = bf16_mode(BF16_EXACT);
    store_rows(b, m, n, row, column, sum, sum_rs);
    bf16_mode(mode);
}

#if defined WF_ISA_AVX512
static void store_far(int64_t m, const float *sum, float *c, int64_t c_rs)
{
    for (; m > 0; m--, sum += BF16_MR, c += c_rs)
        for (int j = 0; j < BF16_MR; j += V_LANES)
            _mm512_stream_ps(c + j, v_load(sum + j));
    _mm_sfence(); /* other threads read C after this task */
}
#else
#define store_far NULL
#endif

/* Elements of d: those of a panel of NR columns if one cache block has all k, else those of all panels. */
static int64_t sums_of(const struct bf16_block *b)
{
    return b->m * NR * (b->steps > BF16_EMULATED_STEPS ? gemm_ceil_div(b->n, NR) : 1);
}

static int64_t scratch(const struct bf16_block *b)
{
    return b->m * EK + sums_of(b) + EK * NR;
}

static void begin_sums(const struct bf16_block *b, int64_t column, float *d)
{
    for (int64_t i = 0; i < b->m; i++)
        for (int v = 0; v < NR; v += V_LANES)
            v_store(d + i * NR + v, b->before ? v_load(b->before + i * b->before_rs + column + v) : v_set(0));
}

/* Fetches the lines of C that the sums of a register tile go to. */
V_INLINE void fetch(const struct bf16_block *b, struct gemm_range rows, int64_t column)
{
#if defined V_HAS_FMA
    for (int64_t i = rows.begin; i < rows.end; i++)
        __asm__ volatile("prefetchw %0" : : "m"(b->c[i * b->c_rs + column * b->c_cs]));
#else
    (void)b, (void)rows, (void)column;
#endif
}

/* The sums of a panel begin and end in the first-level cache. */
static void block(const struct bf16_block *b, float *room)
{
    const int64_t tiles = gemm_ceil_div(b->m, TILE_M);
    float *const panel = room, *const rows = panel + EK * NR, *const sums = rows + b->m * EK;
    for (int64_t first = 0; first < b->steps; first += BF16_EMULATED_STEPS) {
        const int64_t steps = WF_MIN(b->steps - first, BF16_EMULATED_STEPS);
        const bool last = first + steps == b->steps;
        expand_a(b, first, steps, rows);
        for (int64_t j = 0; j < b->n; j += NR) {
            float *const d = b->steps > BF16_EMULATED_STEPS ? sums + j * b->m : sums;
            if (first == 0)
                begin_sums(b, j, d);
            expand_b(b, j, first, steps, panel);
            const unsigned mode = bf16_mode(BF16_FLUSH);
            for (int64_t i = 0; i < tiles; i++) {
                const struct gemm_range at = gemm_share(b->m, 1, tiles, i);
                if (last)
                    fetch(b, at, j);
                multiply_tile(at.end - at.begin, &(struct tile){steps, rows + at.begin * EK, panel, d + at.begin * NR});
            }
            bf16_mode(mode);
            if (last)
                store(b, b->m, WF_MIN(b->n - j, NR), 0, j, d, NR);
        }
    }
}

const struct bf16_isa WF_GEMM(bf16) = {WF_GEMM(bf16_pack_a),
                                       WF_GEMM(bf16_pack_b),
                                       WF_GEMM(bf16_pack_b_stored),
                                       WF_GEMM(bf16_keep),
                                       WF_GEMM(bf16_widen),
                                       store,
                                       store_far,
                                       scratch,
                                       block};
#endif
