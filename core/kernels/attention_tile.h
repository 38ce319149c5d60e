/* SPDX-License-Identifier: MIT */
/* Tiles of attention scores with their matrix products and masks, for all attention kernels.
 *
 * A tile of scores is stored transposed, as S^T [keys][WF_ATTENTION_QUERIES], with the queries in the lanes. So maxima, sums and
 * exponentials run down the tile without a reduction across lanes, and the registers are full whatever the width of a head.
 *
 * `bf16`, a constant for the compiler, says that products are computed in bf16's arithmetic (attention_bf16.h). */
#ifndef WEFT_KERNELS_ATTENTION_TILE_H
#define WEFT_KERNELS_ATTENTION_TILE_H

#include <string.h>

#include "attention_bf16.h"
#include "vmath.h"

/* The elements from one row to the next in the gradients of keys or values, for a head of width n: half a register, or whole registers. */
V_INLINE int64_t key_columns(const struct wf_attention *a, int64_t n)
{
    return n <= HALF_LANES && !in_bf16(a) ? HALF_LANES : (n + V_LANES - 1) / V_LANES * V_LANES;
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
    const int64_t grain = in_bf16(a) ? WF_BF16_K : 8; /* k0 and `low` begin a step of bf16's arithmetic */
    c.low = low <= 0 ? 0 : WF_MIN(low, keys) / grain * grain;
    c.high = high >= keys ? keys : high <= c.low ? c.low : (high + 7) / 8 * 8;
    c.high = WF_MIN(c.high, keys);
    return c;
}

/* c[keys][QUERIES] = a[keys][depth] b[depth][QUERIES] for all keys of `width` registers. In bf16's arithmetic, `scale` multiplies the sums;
 * otherwise b is scaled already. */
V_INLINE void score_rows(const bool bf16, wf_real scale, int64_t keys, int width, int64_t depth, const wf_real *a, const wf_real *b,
                         wf_real *c)
{
#ifndef WF_DOUBLE
    if (bf16) {
        scores_bf16(scale, keys, width, depth, a, b, c);
        return;
    }
#endif
    (void)bf16, (void)scale;
    product_rows(keys, width, depth, a, depth, b, QUERIES, c, QUERIES);
}

/* score_rows, except for the elements that `cut` skips: they are not written. */
V_INLINE void cut_scores(const bool bf16, wf_real scale, struct cut cut, int64_t keys, int qv, int64_t depth, const wf_real *a,
                         const wf_real *b, wf_real *c)
{
    const unsigned mode = begin_products(bf16);
    if (cut.low > 0)
        score_rows(bf16, scale, cut.low, qv / 2, depth, a, b, c);
    if (cut.high > cut.low)
        score_rows(bf16, scale, cut.high - cut.low, qv, depth, a + cut.low * depth, b, c + cut.low * QUERIES);
    if (keys > cut.high)
        score_rows(bf16, scale, keys - cut.high, qv / 2, depth, a + cut.high * depth, b + HALF_QUERIES,
                   c + cut.high * QUERIES + HALF_QUERIES);
    end_products(bf16, mode);
}

typedef __typeof__(product_rows_add) add_product;

/* c[columns][QUERIES] += a[keys][columns]^T b[keys][QUERIES], without the terms that `cut` skips. */
V_INLINE void cut_columns(const bool bf16, add_product *add, struct cut cut, int64_t keys, int qv, int64_t columns, const wf_real *a,
                          const wf_real *b, wf_real *c)
{
    const unsigned mode = begin_products(bf16);
    if (bf16 && (cut.low > 0 || cut.high < keys)) { /* no step of keys may be divided: one product for each half of the queries */
        add(columns, qv / 2, cut.high, a, columns, b, QUERIES, c, QUERIES);
        add(columns, qv / 2, keys - cut.low, a + cut.low * columns, columns, b + cut.low * QUERIES + HALF_QUERIES, QUERIES,
            c + HALF_QUERIES, QUERIES);
        end_products(bf16, mode);
        return;
    }
    if (cut.low > 0)
        add(columns, qv / 2, cut.low, a, columns, b, QUERIES, c, QUERIES);
    if (cut.high > cut.low)
        add(columns, qv, cut.high - cut.low, a + cut.low * columns, columns, b + cut.low * QUERIES, QUERIES, c, QUERIES);
    if (keys > cut.high)
        add(columns, qv / 2, keys - cut.high, a + cut.high * columns, columns, b + cut.high * QUERIES + HALF_QUERIES, QUERIES,
            c + HALF_QUERIES, QUERIES);
    end_products(bf16, mode);
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
 * Neighbouring groups to which all queries may attend are joined into one product. In bf16's arithmetic the queries of a tile are one step,
 * and an odd number of absent terms before the first one makes the two chains change places, which changes no bit of their sum. */
V_INLINE void cut_rows(const bool bf16, add_product *add, const struct wf_attention *a, int64_t q0, int64_t rows, int64_t k0, int64_t keys,
                       int64_t step, const wf_real *s, const wf_real *b, wf_real *c)
{
    enum { FEW = 8 };
    const unsigned mode = begin_products(bf16);
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
    end_products(bf16, mode);
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
