/* SPDX-License-Identifier: MIT */
/* Tiles of attention scores with their matrix products and masks, for all attention kernels.
 *
 * A tile of scores is stored transposed, as S^T [keys][WF_ATTENTION_QUERIES], with the queries in the lanes. So maxima, sums and
 * exponentials run down the tile without a reduction across lanes, and the registers are full whatever the width of a head. All products
 * with tiles have the form C[i][lanes] += A(i, p) B[p][lanes]. Each element of C is one chain of multiply-adds in the order of p, whatever
 * the blocking; its bits depend only on its row of A and its column of B. */
#ifndef WEFT_KERNELS_ATTENTION_TILE_H
#define WEFT_KERNELS_ATTENTION_TILE_H

#include <string.h>

#include <weft/internal/attention.h>

#include "../simd.h"
#include "vmath.h"

enum {
    QUERIES = WF_ATTENTION_QUERIES,
    KEYS = WF_ATTENTION_KEYS,
    QV = QUERIES / V_LANES /* registers that hold a row of a tile */
};

/* Rows of C that the micro-kernel `block` keeps in registers. Each row is at most two registers wide. */
#if defined(WF_ISA_AVX512)
#define BLOCK_ROWS 8
#elif defined(WF_ISA_AVX2)
#define BLOCK_ROWS 6
#else
#define BLOCK_ROWS 4
#endif

/* C = A B, or C += A B if `add`, where C has `rows` rows of `registers` registers and the sums run over p < depth. A(i, p) is a[i *
 * a_step + p] if `by_rows`, else a[p * a_step + i]. */
V_INLINE void block(int rows, int registers, bool by_rows, bool add, int64_t depth, const wf_real *restrict a, int64_t a_step,
                    const wf_real *restrict b, int64_t b_step, wf_real *restrict c, int64_t c_step)
{
    vr sum[BLOCK_ROWS][2];
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int j = 0; j < registers; j++)
            sum[i][j] = add ? v_load(c + i * c_step + j * V_LANES) : v_set(0);
    for (int64_t p = 0; p < depth; p++) {
        vr right[2];
#pragma GCC unroll 2
        for (int j = 0; j < registers; j++)
            right[j] = v_load(b + p * b_step + j * V_LANES);
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++) {
            vr left = v_set(by_rows ? a[i * a_step + p] : a[p * a_step + i]);
#pragma GCC unroll 2
            for (int j = 0; j < registers; j++)
                sum[i][j] = v_fma(left, right[j], sum[i][j]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int j = 0; j < registers; j++)
            v_store(c + i * c_step + j * V_LANES, sum[i][j]);
}

V_INLINE void blocks(int64_t rows, int registers, bool by_rows, bool add, int64_t depth, const wf_real *a, int64_t a_step, const wf_real *b,
                     int64_t b_step, wf_real *c, int64_t c_step)
{
    int64_t down = by_rows ? a_step : 1;
    while (rows >= BLOCK_ROWS) {
        block(BLOCK_ROWS, registers, by_rows, add, depth, a, a_step, b, b_step, c, c_step);
        a += BLOCK_ROWS * down;
        c += BLOCK_ROWS * c_step;
        rows -= BLOCK_ROWS;
    }
    switch (rows) {
#define REST(n)                                                                                                                            \
    case n:                                                                                                                                \
        block(n, registers, by_rows, add, depth, a, a_step, b, b_step, c, c_step);                                                         \
        break;
        REST(1)
        REST(2)
        REST(3)
#if BLOCK_ROWS > 4
        REST(4)
        REST(5)
#endif
#if BLOCK_ROWS > 6
        REST(6)
        REST(7)
#endif
#undef REST
    default:
        break;
    }
}

/* C = A B, or C += A B with `add`, for any number of rows and for `width` registers of columns. */
V_INLINE void product(int64_t rows, int64_t width, bool by_rows, bool add, int64_t depth, const wf_real *a, int64_t a_step,
                      const wf_real *b, int64_t b_step, wf_real *c, int64_t c_step)
{
    for (; width >= 2; width -= 2, b += 2 * V_LANES, c += 2 * V_LANES)
        blocks(rows, 2, by_rows, add, depth, a, a_step, b, b_step, c, c_step);
    if (width)
        blocks(rows, 1, by_rows, add, depth, a, a_step, b, b_step, c, c_step);
}

/* Declares a function that computes a product of tiles. Its parameters are those of `product`. */
#define TILE_PRODUCT(name)                                                                                                                 \
    V_NOINLINE void name(int64_t rows, int64_t width, int64_t depth, const wf_real *a, int64_t a_step, const wf_real *b, int64_t b_step,   \
                         wf_real *c, int64_t c_step)

TILE_PRODUCT(product_rows)
{
    product(rows, width, true, false, depth, a, a_step, b, b_step, c, c_step);
}

TILE_PRODUCT(product_rows_add)
{
    product(rows, width, true, true, depth, a, a_step, b, b_step, c, c_step);
}

TILE_PRODUCT(product_columns_add)
{
    product(rows, width, false, true, depth, a, a_step, b, b_step, c, c_step);
}

/* product_columns_add for tiles that hold a NaN or an infinity. B holds the weights. Terms whose weight is 0 are left out, because a masked
 * key must contribute nothing, and 0 times a NaN would be a NaN. The other terms are added in the same order, so that a sum of finite terms
 * has the same bits. */
TILE_PRODUCT(masked_columns_add)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < width * V_LANES; j += V_LANES) {
            vr sum = v_load(c + i * c_step + j);
            for (int64_t p = 0; p < depth; p++) {
                vr w = v_load(b + p * b_step + j);
                sum = v_select((vi)(w == 0), sum, v_fma(v_set(a[p * a_step + i]), w, sum));
            }
            v_store(c + i * c_step + j, sum);
        }
}

/* product_rows_add for tiles that hold a NaN or an infinity. A holds the weights, and terms whose weight is 0 are left out, as in
 * masked_columns_add. */
TILE_PRODUCT(masked_rows_add)
{
    (void)width; /* it counts whole registers, but c may be half a register wide: c_step is the width of c in elements */
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < c_step; j += V_LANES) {
            vr sum = v_load_at_most(c + i * c_step + j, c_step - j);
            for (int64_t p = 0; p < depth; p++)
                if (a[i * a_step + p] != 0)
                    sum = v_fma(v_set(a[i * a_step + p]), v_load_at_most(b + p * b_step + j, c_step - j), sum);
            v_store_at_most(c + i * c_step + j, sum, c_step - j);
        }
}

/* In the gradients of keys and values, the lanes hold columns of a head. A head of at most HALF_LANES columns fills only half a register of
 * AVX-512. Half registers are faster for such heads, because some processors take one cycle for a multiply-add of half a register and two
 * for a whole one. */
#if defined(WF_ISA_AVX512)
typedef wf_real v_half __attribute__((vector_size(V_BYTES / 2)));
typedef wf_real v_half_memory __attribute__((vector_size(V_BYTES / 2), aligned(sizeof(wf_real)), may_alias));
enum { HALF_LANES = V_LANES / 2 };

/* c[rows][HALF_LANES] += a[rows][depth] b[depth][HALF_LANES], where the rows of `a` lie QUERIES apart. The sums have the same bits as in
 * product_rows_add. */
V_INLINE void half_block(const int rows, int64_t depth, const wf_real *restrict a, const wf_real *restrict b, wf_real *restrict c)
{
    v_half sum[BLOCK_ROWS];
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
        sum[i] = *(const v_half_memory *)(c + i * HALF_LANES);
    for (int64_t p = 0; p < depth; p++, b += HALF_LANES) {
        const v_half right = *(const v_half_memory *)b;
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++)
            sum[i] = V_PASTE(_mm256, fmadd, V_SUFFIX)(a[i * QUERIES + p] - (v_half){0}, right, sum[i]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
        *(v_half_memory *)(c + i * HALF_LANES) = sum[i];
}

TILE_PRODUCT(half_rows_add)
{
    (void)width, (void)a_step, (void)b_step, (void)c_step;
    for (; rows >= BLOCK_ROWS; rows -= BLOCK_ROWS, a += BLOCK_ROWS * QUERIES, c += BLOCK_ROWS * HALF_LANES)
        half_block(BLOCK_ROWS, depth, a, b, c);
    for (; rows > 0; rows--, a += QUERIES, c += HALF_LANES)
        half_block(1, depth, a, b, c);
}
#else
enum { HALF_LANES = 0 };
#define half_rows_add product_rows_add
#endif

/* The elements from one row to the next in the gradients of keys or values, for a head of width n: half a register, or whole registers. */
V_INLINE int64_t key_columns(int64_t n)
{
    return n <= HALF_LANES ? HALF_LANES : (n + V_LANES - 1) / V_LANES * V_LANES;
}

/* The products that need not be computed in a tile, because of a causal mask or a window. Only the first HALF_QUERIES queries of the tile
 * may attend to its keys [0, low), and only the other queries to its keys [high, keys). Each half of the queries skips the products with
 * the other half's keys. The skipped weights would be 0, which changes no sum. */
enum { HALF_QUERIES = QUERIES / 2 };
struct cut {
    int64_t low, high;
};
V_INLINE struct cut cut_of(const struct wf_attention *a, int64_t q0, int64_t rows, int64_t k0, int64_t keys, int qv)
{
    const int64_t low = a->first_key + q0 + HALF_QUERIES - k0, high = a->first_limit + q0 + HALF_QUERIES - 1 - k0;
    struct cut c = {0, keys};
    if (qv < QV || rows <= HALF_QUERIES || a->dbias) /* a->dbias: attention_bias_grad reads the whole tile */
        return c;
    c.low = low <= 0 ? 0 : WF_MIN(low, keys) / 8 * 8;
    c.high = high >= keys ? keys : high <= c.low ? c.low : (high + 7) / 8 * 8;
    c.high = WF_MIN(c.high, keys);
    return c;
}

/* c[keys][QUERIES] = a[keys][depth] b[depth][QUERIES]. The elements that `cut` skips are not written. */
V_INLINE void cut_scores(struct cut cut, int64_t keys, int qv, int64_t depth, const wf_real *a, const wf_real *b, wf_real *c)
{
    if (cut.low > 0)
        product_rows(cut.low, qv / 2, depth, a, depth, b, QUERIES, c, QUERIES);
    if (cut.high > cut.low)
        product_rows(cut.high - cut.low, qv, depth, a + cut.low * depth, depth, b, QUERIES, c + cut.low * QUERIES, QUERIES);
    if (keys > cut.high)
        product_rows(keys - cut.high, qv / 2, depth, a + cut.high * depth, depth, b + HALF_QUERIES, QUERIES,
                     c + cut.high * QUERIES + HALF_QUERIES, QUERIES);
}

typedef __typeof__(product_rows_add) add_product;

/* c[columns][QUERIES] += a[keys][columns]^T b[keys][QUERIES], without the terms that `cut` skips. */
V_INLINE void cut_columns(add_product *add, struct cut cut, int64_t keys, int qv, int64_t columns, const wf_real *a, const wf_real *b,
                          wf_real *c)
{
    if (cut.low > 0)
        add(columns, qv / 2, cut.low, a, columns, b, QUERIES, c, QUERIES);
    if (cut.high > cut.low)
        add(columns, qv, cut.high - cut.low, a + cut.low * columns, columns, b + cut.low * QUERIES, QUERIES, c, QUERIES);
    if (keys > cut.high)
        add(columns, qv / 2, keys - cut.high, a + cut.high * columns, columns, b + cut.high * QUERIES + HALF_QUERIES, QUERIES,
            c + HALF_QUERIES, QUERIES);
}

/* Queries begin .. end - 1 of a tile: those that may attend to at least one of `keys` keys from k0 on. a->mask is not considered. */
struct seen {
    int64_t begin, end;
};
V_INLINE struct seen seen_by(const struct wf_attention *a, int64_t q0, int64_t rows, int64_t k0, int64_t keys)
{
    const int64_t begin = k0 - a->first_limit - q0 + 1, end = k0 + keys - a->first_key - q0;
    return (struct seen){begin < 0 ? 0 : WF_MIN(begin, rows), end < 0 ? 0 : WF_MIN(end, rows)};
}

/* c[keys][step] += s[keys][QUERIES] b[rows][step]. Each group of FEW keys is multiplied with only the queries that may attend to it.
 * Neighbouring groups to which all queries may attend are joined into one product. */
V_INLINE void cut_rows(add_product *add, const struct wf_attention *a, int64_t q0, int64_t rows, int64_t k0, int64_t keys, int64_t step,
                       const wf_real *s, const wf_real *b, wf_real *c)
{
    enum { FEW = 8 };
    for (int64_t i = 0, end; i < keys; i = end) {
        const struct seen few = seen_by(a, q0, rows, k0 + i, FEW);
        end = i + FEW;
        for (struct seen more = few; end < keys && more.begin == 0 && more.end == rows;) {
            more = seen_by(a, q0, rows, k0 + end, FEW);
            if (more.begin == 0 && more.end == rows)
                end += FEW;
        }
        end = WF_MIN(end, keys);
        if (few.end > few.begin)
            add(end - i, step / V_LANES, few.end - few.begin, s + i * QUERIES + few.begin, QUERIES, b + few.begin * step, step,
                c + i * step, step);
    }
}

/* Replaces n scores by cap tanh(score / cap), where n is a multiple of V_LANES. Scores are stored times log2 e. Never inlined, because the
 * compiler may fuse other multiply-adds in each inlined copy, and attention_forward.c and attention_rows.c must give the same bits. */
V_NOINLINE void cap_scores(int64_t n, wf_real cap, wf_real *s)
{
    const vr most = v_set(cap * V_LOG2_E), inverse = 1 / most;
    for (int64_t i = 0; i < n; i += V_LANES)
        v_store(s + i, most * v_tanh(v_load(s + i) * inverse));
}

/* Returns score + bias log2 e, because scores are stored times log2 e. A bias of -inf masks even a score that is a NaN or infinite. */
V_INLINE vr biased(vr score, vr bias)
{
    return v_select((vi)(bias == -V_INF), bias, v_fma(bias, v_set(V_LOG2_E), score));
}

/* Defined in attention_mask.c and attention_bias.c: */
#define attention_allowed WF_KERNEL(attention_allowed)
#define attention_dropout WF_KERNEL(attention_dropout)
/* attention_allowed says to which keys of a tile the queries may attend. If the result is ALLOWED_SOME, allow[key][query] is set to -1
 * where the query may attend to the key, else to 0. */
enum allowed { ALLOWED_NONE, ALLOWED_SOME, ALLOWED_ALL };
enum allowed attention_allowed(const struct wf_attention *a, int64_t head, int64_t q0, int64_t rows, int64_t k0, int64_t keys,
                               v_lane *allow);
/* Adds the bias, times log2 e, to the scores s[key][QUERIES]. `room` is scratch of the size of s. */
#define attention_bias WF_KERNEL(attention_bias)
void attention_bias(const struct wf_attention *a, int64_t head, int64_t q0, int64_t rows, int64_t k0, int64_t keys, wf_real *room,
                    wf_real *s);
/* Adds the gradients of the scores, ds[key][QUERIES], to the gradient of the bias. */
#define attention_bias_grad WF_KERNEL(attention_bias_grad)
void attention_bias_grad(const struct wf_attention *a, int64_t head, int64_t q0, int64_t rows, int64_t k0, int64_t keys, const wf_real *ds);
/* Sets drop[key][query] to 0 or keep_scale, in the registers that hold `rows` queries. */
void attention_dropout(const struct wf_attention *a, int64_t head, int64_t q0, int64_t rows, int64_t k0, int64_t keys, wf_real *drop);

/* Calls f(..., n), where n registers hold at least `rows` queries and n is a constant for the compiler. Short sequences fill only one
 * register; the other registers of a tile are then neither computed nor read. */
#define WITH_REGISTERS(rows, f, ...)                                                                                                       \
    do {                                                                                                                                   \
        if ((rows) <= V_LANES)                                                                                                             \
            f(__VA_ARGS__, 1);                                                                                                             \
        else if (QV > 2 && (rows) <= 2 * V_LANES)                                                                                          \
            f(__VA_ARGS__, 2);                                                                                                             \
        else if (QV > 4 && (rows) <= 4 * V_LANES)                                                                                          \
            f(__VA_ARGS__, 4);                                                                                                             \
        else                                                                                                                               \
            f(__VA_ARGS__, QV);                                                                                                            \
    } while (0)

/* Returns the number of keys from k0 to the end of its tile or to `limit`, whichever comes first. */
V_INLINE int64_t tile_keys(int64_t k0, int64_t limit)
{
    int64_t end = k0 / KEYS * KEYS + KEYS;
    return WF_MIN(end, limit) - k0;
}

/* Takes `count` elements, rounded up to whole cache lines, from the scratch. */
V_INLINE wf_real *take(wf_real **scratch, int64_t count)
{
    wf_real *p = *scratch;
    *scratch += (count + 15) / 16 * 16;
    return p;
}

#endif
