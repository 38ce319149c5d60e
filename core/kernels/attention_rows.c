/* SPDX-License-Identifier: MIT */
/* Attention for a few queries (generation with a cache). Nothing is packed: the lanes hold keys while scores are computed, then columns of
 * the values.
 *
 * A cached step and a full recompute must give the same bits. So each sum adds the same terms in the same order as in attention_forward.c:
 * a score is one chain of multiply-adds over e; sums of weights and products with V are chains over the keys, in tiles whose boundaries are
 * multiples of KEYS. Terms of weight 0 change no sum, so this file skips them. In bf16's arithmetic a sum has the steps and chains of
 * attention_bf16.h. */
#include "attention_pack.h"

/* Rows of V_LANES keys from key i on; the last key stands for keys behind it. */
V_INLINE void find_keys(const struct wf_attention *a, const wf_real *k, int64_t i, int64_t keys, const wf_real *row[V_LANES])
{
#pragma GCC unroll 16
    for (int l = 0; l < V_LANES; l++)
        row[l] = k + (i + l < keys ? i + l : keys - 1) * a->k_step;
}

/* Loads V_LANES columns of these keys from column j on, transposed: register l has column j + l. Columns behind the last one are 0. */
V_INLINE void load_keys(const struct wf_attention *a, const wf_real *const row[V_LANES], int64_t j, vr r[V_LANES])
{
    if (j + V_LANES <= a->e) {
#pragma GCC unroll 16
        for (int l = 0; l < V_LANES; l++)
            r[l] = v_load(row[l] + j);
    } else {
#pragma GCC unroll 16
        for (int l = 0; l < V_LANES; l++)
            r[l] = v_load_n(row[l] + j, a->e - j, 0);
    }
    v_transpose(r);
}

#ifndef WF_DOUBLE
/* Scores of `keys` keys in bf16's arithmetic, times scale log2 e. */
V_NOINLINE void row_scores_bf16(const struct wf_attention *a, const wf_real *q, const wf_real *k, int64_t keys, wf_real *s)
{
    const vr zero = v_set(0);
    for (int64_t i = 0; i < keys; i += V_LANES) {
        vr d = zero, even = zero, odd = zero;
        const wf_real *row[V_LANES];
        find_keys(a, k, i, keys, row);
        for (int64_t j = 0; j < a->e; j += V_LANES) {
            _Alignas(64) wf_real query[V_LANES];
            v_store(query, bf16_floats(v_load_at_most(q + j, a->e - j)));
            vr r[V_LANES];
            load_keys(a, row, j, r);
#pragma GCC unroll 8
            for (int l = 0; l < V_LANES; l += 2) {
                even = bf16_v_fma(v_set(query[l]), bf16_floats(r[l]), even);
                odd = bf16_v_fma(v_set(query[l + 1]), bf16_floats(r[l + 1]), odd);
            }
            const int64_t end = j + V_LANES;
            if (end % WF_BF16_K == 0 || end >= a->e) {
                d = bf16_v_add(d, bf16_v_add(even, odd));
                even = odd = zero;
            }
        }
        v_store(s + i, d * v_set(a->scale * V_LOG2_E));
    }
}
#endif

static void row_scores(const struct wf_attention *a, const wf_real *q, const wf_real *k, int64_t keys, wf_real *s)
{
    const vr scale = v_set(a->scale * V_LOG2_E);
    for (int64_t i = 0; i < keys; i += V_LANES) {
        vr sum = v_set(0);
        const wf_real *row[V_LANES];
        find_keys(a, k, i, keys, row);
        for (int64_t j = 0; j < a->e; j += V_LANES) {
            _Alignas(64) wf_real query[V_LANES];
            v_store(query, v_load_at_most(q + j, a->e - j) * scale);
            vr r[V_LANES];
            load_keys(a, row, j, r);
#pragma GCC unroll 16
            for (int l = 0; l < V_LANES; l++)
                sum = v_fma(r[l], v_set(query[l]), sum);
        }
        v_store(s + i, sum);
    }
}

/* Computes the scores s[KEYS] of one tile, which has `keys` keys. Masked keys, keys before `first`, and the elements behind the last key
 * get -inf. Returns false if the mask allows no key of the tile. */
static bool tile_scores(const struct wf_attention *a, const wf_real *q, const wf_real *k, const bool *mask, const wf_real *bias,
                        int64_t first, int64_t keys, wf_real *s)
{
    const unsigned mode = begin_products(in_bf16(a));
    CHOOSE(in_bf16(a), row_scores)(a, q, k, keys, s);
    end_products(in_bf16(a), mode);
    if (a->cap != 0)
        cap_scores((keys + V_LANES - 1) / V_LANES * V_LANES, a->cap, s);
    if (bias) {
        _Alignas(64) wf_real side[KEYS] = {0}; /* the biases of the tile, side by side */
        for (int64_t i = 0; i < keys; i++)
            side[i] = bias[i * a->bias_step.key];
        for (int64_t i = 0; i < keys; i += V_LANES)
            v_store(s + i, biased(v_load(s + i), v_load(side + i)));
    }
    for (int64_t i = keys; i < KEYS; i++)
        s[i] = -V_INF;
    for (int64_t i = 0; i < first; i++)
        s[i] = -V_INF;
    if (!mask)
        return true;
    bool any = false;
    for (int64_t i = first < 0 ? 0 : first; i < keys; i++) {
        if (mask[i * a->mask_step.key])
            any = true;
        else
            s[i] = -V_INF;
    }
    return any;
}

/* out = factor * out + the sum of p[i] * v[i] over `keys` rows v[i], for `registers` registers of columns, the last of which has `tail`
 * lanes. With `first`, `out` is not read and counts as 0. */
V_INLINE void add_values(int registers, int64_t tail, bool first, int64_t keys, const wf_real *p, vr factor, const wf_real *v,
                         int64_t v_step, wf_real *out)
{
    vr sum[4];
#pragma GCC unroll 4
    for (int j = 0; j < registers; j++)
        sum[j] = first ? v_set(0) : v_load_at_most(out + j * V_LANES, j == registers - 1 ? tail : V_LANES);
    if (v_any((vi)(factor != 1)))
#pragma GCC unroll 4
        for (int j = 0; j < registers; j++)
            sum[j] *= factor;
    for (int64_t i = 0; i < keys; i++, v += v_step) {
        if (p[i] == 0)
            continue;
        vr weight = v_set(p[i]);
#pragma GCC unroll 4
        for (int j = 0; j < registers; j++)
            sum[j] = v_fma(j == registers - 1 ? v_load_at_most(v + j * V_LANES, tail) : v_load(v + j * V_LANES), weight, sum[j]);
    }
#pragma GCC unroll 4
    for (int j = 0; j < registers; j++)
        v_store_at_most(out + j * V_LANES, sum[j], j == registers - 1 ? tail : V_LANES);
}

#ifndef WF_DOUBLE
/* out = out + the sum of p[i] * v[i] in bf16's arithmetic, where the keys begin a step. The other parameters are those of add_values. */
V_INLINE void add_columns_bf16(const int registers, int64_t tail, int64_t keys, const wf_real *p, const wf_real *v, int64_t v_step,
                               wf_real *out)
{
    vr d[4];
#pragma GCC unroll 4
    for (int j = 0; j < registers; j++)
        d[j] = v_load_at_most(out + j * V_LANES, j == registers - 1 ? tail : V_LANES);
    for (int64_t i = 0; i < keys;) {
        vr sum[2][4]; /* of even keys, of odd keys */
#pragma GCC unroll 4
        for (int j = 0; j < registers; j++)
            sum[0][j] = sum[1][j] = v_set(0);
        for (const int64_t end = WF_MIN(keys, i + WF_BF16_K); i < end; i += 2)
#pragma GCC unroll 2
            for (int odd = 0; odd < 2; odd++, v += v_step) {
                if (p[i + odd] == 0) /* so is the weight behind an odd number of keys */
                    continue;
                const vr weight = v_set(p[i + odd]);
#pragma GCC unroll 4
                for (int j = 0; j < registers; j++) {
                    const vr x = j == registers - 1 ? v_load_at_most(v + j * V_LANES, tail) : v_load(v + j * V_LANES);
                    sum[odd][j] = bf16_v_fma(bf16_floats(x), weight, sum[odd][j]);
                }
            }
#pragma GCC unroll 4
        for (int j = 0; j < registers; j++)
            d[j] = bf16_v_add(d[j], bf16_v_add(sum[0][j], sum[1][j]));
    }
#pragma GCC unroll 4
    for (int j = 0; j < registers; j++)
        v_store_at_most(out + j * V_LANES, bf16_v_add(d[j], v_set(0)), j == registers - 1 ? tail : V_LANES);
}

V_NOINLINE void add_values_bf16(const struct wf_attention *a, int64_t keys, const wf_real *p, const wf_real *v, wf_real *out)
{
    for (int64_t left = a->f; left > 0; left -= 4 * V_LANES, v += 4 * V_LANES, out += 4 * V_LANES)
        if (left >= 4 * V_LANES)
            add_columns_bf16(4, V_LANES, keys, p, v, a->v_step, out);
        else if (left > 3 * V_LANES)
            add_columns_bf16(4, left - 3 * V_LANES, keys, p, v, a->v_step, out);
        else if (left > 2 * V_LANES)
            add_columns_bf16(3, left - 2 * V_LANES, keys, p, v, a->v_step, out);
        else if (left > V_LANES)
            add_columns_bf16(2, left - V_LANES, keys, p, v, a->v_step, out);
        else
            add_columns_bf16(1, left, keys, p, v, a->v_step, out);
}

/* add_tile in bf16's arithmetic, which rounds the weights p. */
static void add_tile_bf16(const struct wf_attention *a, bool first, int64_t keys, wf_real *p, vr factor, const wf_real *v, wf_real *out)
{
    for (int64_t j = 0; j < a->f; j += V_LANES)
        v_store_at_most(out + j, first ? v_set(0) : v_load_at_most(out + j, a->f - j) * factor, a->f - j);
    for (int64_t i = 0; i < KEYS; i += V_LANES)
        v_store(p + i, bf16_floats(v_load(p + i)));
    const unsigned mode = begin_products(true);
    add_values_bf16(a, keys, p, v, out);
    end_products(true, mode);
}
#endif

static void add_tile(const struct wf_attention *a, bool first, int64_t keys, wf_real *p, vr factor, const wf_real *v, wf_real *out)
{
    for (int64_t j = 0; j < a->f; j += 4 * V_LANES, v += 4 * V_LANES, out += 4 * V_LANES) {
        int64_t left = a->f - j;
        if (left >= 4 * V_LANES)
            add_values(4, V_LANES, first, keys, p, factor, v, a->v_step, out);
        else if (left > 3 * V_LANES)
            add_values(4, left - 3 * V_LANES, first, keys, p, factor, v, a->v_step, out);
        else if (left > 2 * V_LANES)
            add_values(3, left - 2 * V_LANES, first, keys, p, factor, v, a->v_step, out);
        else if (left == 2 * V_LANES)
            add_values(2, V_LANES, first, keys, p, factor, v, a->v_step, out);
        else if (left > V_LANES)
            add_values(2, left - V_LANES, first, keys, p, factor, v, a->v_step, out);
        else if (left == V_LANES)
            add_values(1, V_LANES, first, keys, p, factor, v, a->v_step, out);
        else
            add_values(1, left, first, keys, p, factor, v, a->v_step, out);
    }
}

static void one_row(const struct wf_attention *a, int64_t head, int64_t t)
{
    const wf_real *q = a->q + head * a->e + t * a->q_step;
    wf_real *out = a->out + head * a->f + t * a->out_step;
    const bool *mask = a->mask ? a->mask + head * a->mask_step.head + t * a->mask_step.query : NULL;
    const wf_real *bias = a->bias ? a->bias + head * a->bias_step.head + t * a->bias_step.query : NULL;
    const int64_t limit = wf_attention_end(a, t, 1), begin = a->first_key + t;
    vr m = v_set(-V_INF), l = v_set(0);
    bool first = true;
    _Alignas(64) wf_real s[KEYS];
    for (int64_t k0 = begin > 0 ? begin / KEYS * KEYS : 0; k0 < limit; k0 += KEYS) {
        int64_t keys = WF_MIN(limit - k0, KEYS);
        if (!tile_scores(a, q, a->k + k0 * a->k_step, mask ? mask + k0 * a->mask_step.key : NULL,
                         bias ? bias + k0 * a->bias_step.key : NULL, begin - k0, keys, s))
            continue;
        vr top = m;
        for (int i = 0; i < KEYS; i += V_LANES)
            top = v_max(v_load(s + i), top);
        top = v_greatest(top);
        vr base = v_select((vi)(top == -V_INF), v_set(0), top);
        vr factor = v_exp2_low(m - base);
        m = top;
        wf_real sum = 0;
        for (int64_t i = 0; i < keys; i += V_LANES)
            v_store(s + i, v_exp2_low(v_load(s + i) - base));
        for (int64_t i = 0; i < keys; i++)
            sum += s[i];
        l = v_fma(l, factor, v_set(sum));
        CHOOSE(in_bf16(a), add_tile)(a, first, keys, s, factor, a->v + k0 * a->v_step, out);
        first = false;
    }
    vr inverse = v_select((vi)(l == 0), v_set(0), 1 / l);
    for (int64_t j = 0; j < a->f; j += V_LANES)
        v_store_at_most(out + j, first ? v_set(0) : v_load_at_most(out + j, a->f - j) * inverse, a->f - j);
}

void WF_KERNEL(attention_rows)(const struct wf_attention *a, int64_t begin, int64_t end)
{
    for (int64_t head = 0; head < a->heads; head++)
        for (int64_t t = begin; t < end; t++)
            one_row(a, head, t);
}
