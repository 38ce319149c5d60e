/* SPDX-License-Identifier: MIT */
/* Attention for a few queries (generation with a cache). Nothing is packed: the lanes hold keys while scores are computed, then columns of
 * the values.
 *
 * A cached step and a full recompute must give the same bits. So each sum adds the same terms in the same order as in attention_forward.c:
 * a score is one chain of multiply-adds over e; sums of weights and products with V are chains over the keys, in tiles whose boundaries are
 * multiples of KEYS. Terms of weight 0 change no sum, so this file skips them. */
#include "attention_pack.h"

/* Computes the scores s[KEYS] of one tile, which has `keys` keys. Masked keys, keys before `first`, and the elements behind the last key
 * get -inf. Returns false if the mask allows no key of the tile. */
static bool tile_scores(const struct wf_attention *a, const wf_real *q, const wf_real *k, const bool *mask, const wf_real *bias,
                        int64_t first, int64_t keys, wf_real *s)
{
    const vr scale = v_set(a->scale * V_LOG2_E);
    for (int64_t i = 0; i < keys; i += V_LANES) {
        vr sum = v_set(0);
        const wf_real *row[V_LANES];
#pragma GCC unroll 16
        for (int l = 0; l < V_LANES; l++)
            row[l] = k + (i + l < keys ? i + l : keys - 1) * a->k_step;
        for (int64_t j = 0; j < a->e; j += V_LANES) {
            _Alignas(64) wf_real query[V_LANES];
            v_store(query, v_load_at_most(q + j, a->e - j) * scale);
            vr r[V_LANES];
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
#pragma GCC unroll 16
            for (int l = 0; l < V_LANES; l++)
                sum = v_fma(r[l], v_set(query[l]), sum);
        }
        v_store(s + i, sum);
    }
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

static void add_tile(const struct wf_attention *a, bool first, int64_t keys, const wf_real *p, vr factor, const wf_real *v, wf_real *out)
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
        add_tile(a, first, keys, s, factor, a->v + k0 * a->v_step, out);
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
