/* SPDX-License-Identifier: MIT */
/* Attention in tiles with a running maximum, as in Dao et al., "FlashAttention", 2022, but without its use of GPU memory:
 *
 *   for each tile of keys:  S = Q K^T, times log2 e;  m' = max(m, max S);  P = 2^(S - m')
 *                           l = l 2^(m - m') + sum P;  O = O 2^(m - m') + P V
 *   out = O / l
 *
 * In bf16's arithmetic Q and K are rounded and the scale multiplies S; the sum l takes P as it is, and the product with V takes it rounded.
 *
 * Every query has the same tile boundaries, multiples of KEYS, and masked keys change no bit of a sum. So the bits of a query's result
 * depend only on the keys to which it attends. attention_rows.c computes the same bits in another layout. */
#include "attention_pack.h"

struct tile {
    const struct wf_attention *a;
    int64_t first;   /* the first key that is packed: a multiple of KEYS */
    wf_real *k;      /* packed keys from key `first` on: [keys][e] */
    wf_real *v;      /* packed values from key `first` on: [keys][f] */
    bool *nonfinite; /* for each tile of keys: whether its values hold a NaN or an infinity */
    int64_t packed;  /* keys first .. packed - 1 are packed so far */
    int64_t end;     /* end of the keys to pack */
    wf_real *qt;     /* the queries of the tile, scaled or rounded to bf16, transposed: [e][QUERIES] */
    wf_real *ot;     /* the results of the tile, transposed: [f][QUERIES] */
    wf_real *s;      /* scores, then weights: [KEYS][QUERIES] */
    wf_real *drop;   /* dropout multipliers, or the packed bias: [KEYS][QUERIES] */
    v_lane *allow;   /* from attention_allowed: [KEYS][QUERIES] */
};

/* For keys begin .. end - 1 and registers first .. last - 1: updates the maxima `top`. With `some`, masked scores are first set to -inf. */
V_INLINE void top_part(wf_real *s, const v_lane *allow, bool some, int64_t begin, int64_t end, vr top[QV], const int first, const int last)
{
    for (int64_t i = begin; i < end; i++)
#pragma GCC unroll 16
        for (int j = first; j < last; j++) {
            vr x = ((const vr *)(s + i * QUERIES))[j];
            if (some) {
                x = v_select(((const vi *)(allow + i * QUERIES))[j], x, v_set(-V_INF));
                ((vr *)(s + i * QUERIES))[j] = x;
            }
            top[j] = v_max(x, top[j]);
        }
}

/* For keys begin .. end - 1 and registers first .. last - 1: replaces the scores s by P = 2^(s - base), and adds P to `sum`. With `bf16`, P
 * is rounded after the addition. */
V_INLINE void weights_part(const bool bf16, wf_real *s, int64_t begin, int64_t end, const vr base[QV], vr sum[QV], const int first,
                           const int last)
{
    for (int64_t i = begin; i < end; i++)
#pragma GCC unroll 16
        for (int j = first; j < last; j++) {
            vr p = v_exp2_low(((const vr *)(s + i * QUERIES))[j] - base[j]);
            ((vr *)(s + i * QUERIES))[j] = operand(bf16, p);
            sum[j] += p;
        }
}

/* Replaces the scores s of a tile by P, except where `cut` skips them, and updates m and l by the formulas at the top of this file. Returns
 * true if O must be multiplied by `factor`, because a maximum has changed. */
V_INLINE bool softmax_tile(const bool bf16, wf_real *s, const v_lane *allow, bool some, struct cut cut, int64_t keys, vr m[QV], vr l[QV],
                           vr factor[QV], const int qv)
{
    vr top[QV], base[QV], sum[QV];
    vi change = v_seti(0);
#pragma GCC unroll 16
    for (int j = 0; j < qv; j++) {
        top[j] = m[j];
        sum[j] = v_set(0);
    }
    if (some) {
        top_part(s, allow, true, 0, cut.low, top, 0, qv / 2);
        top_part(s, allow, true, cut.low, cut.high, top, 0, qv);
        top_part(s, allow, true, cut.high, keys, top, qv / 2, qv);
    } else {
        top_part(s, allow, false, 0, keys, top, 0, qv);
    }
#pragma GCC unroll 16
    for (int j = 0; j < qv; j++) {
        /* If a query may not attend to any key so far, base -inf would give NaN, while any finite base gives exponentials of 0. */
        base[j] = v_select((vi)(top[j] == -V_INF), v_set(0), top[j]);
        factor[j] = v_exp2_low(m[j] - base[j]);
        change |= (vi)(factor[j] != 1);
        m[j] = top[j];
    }
    if (some) {
        weights_part(bf16, s, 0, cut.low, base, sum, 0, qv / 2);
        weights_part(bf16, s, cut.low, cut.high, base, sum, 0, qv);
        weights_part(bf16, s, cut.high, keys, base, sum, qv / 2, qv);
    } else {
        weights_part(bf16, s, 0, keys, base, sum, 0, qv);
    }
#pragma GCC unroll 16
    for (int j = 0; j < qv; j++)
        l[j] = v_fma(l[j], factor[j], sum[j]);
    return v_any(change);
}

V_INLINE void multiply_rows(int64_t rows, wf_real *x, const wf_real *by, int64_t by_step, const int qv)
{
    for (int64_t i = 0; i < rows; i++)
#pragma GCC unroll 16
        for (int j = 0; j < qv; j++)
            ((vr *)(x + i * QUERIES))[j] *= ((const vr *)(by + i * by_step))[j];
}

/* multiply_rows for weights, which are rounded to bf16 afterwards. */
V_INLINE void drop_rows(const bool bf16, int64_t rows, wf_real *s, const wf_real *drop, const int qv)
{
    for (int64_t i = 0; i < rows * QUERIES; i += QUERIES)
#pragma GCC unroll 16
        for (int j = 0; j < qv; j++)
            ((vr *)(s + i))[j] = operand(bf16, ((const vr *)(s + i))[j] * ((const vr *)(drop + i))[j]);
}

V_INLINE void clear_rows(int64_t rows, wf_real *x, const int qv)
{
    for (int64_t i = 0; i < rows; i++)
#pragma GCC unroll 16
        for (int j = 0; j < qv; j++)
            ((vr *)(x + i * QUERIES))[j] = v_set(0);
}

/* Writes the attention weights of a tile of queries. This is a second pass over the keys, because weights need the final m and l. */
static void write_weights(const struct tile *t, int64_t head, int64_t q0, int64_t rows, int64_t limit, const vr m[QV], const vr inverse[QV],
                          int qv)
{
    const struct wf_attention *a = t->a;
    wf_real *weights = a->weights + head * a->weights_head + q0 * a->all_keys;
    memset(weights, 0, (size_t)(rows * a->all_keys) * sizeof *weights);
    for (int64_t k0 = wf_attention_begin(a, q0), keys; k0 < limit; k0 += keys) {
        keys = tile_keys(k0, limit);
        enum allowed which = attention_allowed(a, head, q0, rows, k0, keys, t->allow);
        if (which == ALLOWED_NONE)
            continue;
        const struct cut nothing = {0, keys};
        const wf_real *k = t->k + (k0 - t->first) * a->e;
        if (in_bf16(a))
            cut_scores(true, a->scale * V_LOG2_E, nothing, keys, qv, a->e, k, t->qt, t->s);
        else
            cut_scores(false, 1, nothing, keys, qv, a->e, k, t->qt, t->s);
        if (a->cap != 0)
            cap_scores(keys * QUERIES, a->cap, t->s);
        if (a->bias)
            attention_bias(a, head, q0, rows, k0, keys, t->drop, t->s);
        for (int64_t i = 0; i < keys; i++)
            for (int j = 0; j < qv; j++) {
                vr *s = (vr *)(t->s + i * QUERIES) + j;
                vr p = v_exp2_low(*s - m[j]) * inverse[j];
                *s = which == ALLOWED_SOME ? v_select(((const vi *)(t->allow + i * QUERIES))[j], p, v_set(0)) : p;
            }
        unpack_queries(rows, keys, t->s, weights + k0, a->all_keys, false);
    }
}

/* Rows that one call of fetch_some prefetches. With a window of 128 keys, a tile of queries meets 3 tiles of keys, with 3 calls each. These
 * 9 calls cover all rows of next_rows. */
enum { FETCHED = 16 };

/* Returns the rows to prefetch during this tile: the rows of its result, and the rows of the queries and keys that are new in the next
 * tile. */
V_INLINE struct fetch next_rows(const struct tile *t, int64_t head, int64_t q0, int64_t rows)
{
    const struct wf_attention *a = t->a;
    const int64_t queries = a->queries - q0 - rows;
    struct fetch f = {.parts = 0};
    fetch_later(&f, a->out + head * a->f + q0 * a->out_step, rows, a->f, a->out_step);
    fetch_keys(&f, a, t->packed, t->end);
    fetch_later(&f, a->q + head * a->e + (q0 + rows) * a->q_step, WF_MIN(queries, QUERIES), a->e, a->q_step);
    return f;
}

V_INLINE void forward_tile(const bool bf16, const struct tile *t, int64_t head, int64_t q0, int64_t rows, const int qv)
{
    const struct wf_attention *a = t->a;
    int64_t limit = wf_attention_end(a, q0, rows);
    vr m[QV], l[QV], factor[QV];
    for (int j = 0; j < qv; j++) {
        m[j] = v_set(-V_INF);
        l[j] = v_set(0);
    }
    struct fetch fetch = next_rows(t, head, q0, rows);
    const wf_real scale = a->scale * V_LOG2_E;
    bool query_nonfinite = !CHOOSE(bf16, pack_queries)(rows, a->e, a->q + head * a->e + q0 * a->q_step, a->q_step, bf16 ? 1 : scale, t->qt);
    (void)query_nonfinite; /* ignored, because a NaN in a query stays in the lane of the query */
    clear_rows(a->f, t->ot, qv);
    for (int64_t k0 = wf_attention_begin(a, q0), keys; k0 < limit; k0 += keys) {
        keys = tile_keys(k0, limit);
        enum allowed which = attention_allowed(a, head, q0, rows, k0, keys, t->allow);
        if (which == ALLOWED_NONE)
            continue;
        const struct cut cut = cut_of(a, q0, rows, k0, keys, qv);
        cut_scores(bf16, scale, cut, keys, qv, a->e, t->k + (k0 - t->first) * a->e, t->qt, t->s);
        if (a->cap != 0)
            cap_scores(keys * QUERIES, a->cap, t->s);
        if (a->bias)
            attention_bias(a, head, q0, rows, k0, keys, t->drop, t->s);
        fetch_some(&fetch, FETCHED);
        const bool some = which == ALLOWED_SOME;
        bool rescale = bf16 && !a->threshold ? (some ? softmax_tile(true, t->s, t->allow, true, cut, keys, m, l, factor, qv)
                                                     : softmax_tile(true, t->s, NULL, false, cut, keys, m, l, factor, qv))
                       : some                ? softmax_tile(false, t->s, t->allow, true, cut, keys, m, l, factor, qv)
                                             : softmax_tile(false, t->s, NULL, false, cut, keys, m, l, factor, qv);
        fetch_some(&fetch, FETCHED);
        if (rescale)
            multiply_rows(a->f, t->ot, (const wf_real *)factor, 0, qv);
        if (a->threshold) {
            attention_dropout(a, head, q0, rows, k0, keys, t->drop);
            drop_rows(bf16, keys, t->s, t->drop, qv);
        }
        cut_columns(bf16, t->nonfinite[(k0 - t->first) / KEYS] ? CHOOSE(bf16, masked_columns_add) : CHOOSE(bf16, product_columns_add), cut,
                    keys, qv, a->f, t->v + (k0 - t->first) * a->f, t->s, t->ot);
        fetch_some(&fetch, FETCHED);
    }
    vr inverse[QV], top[QV];
    for (int j = 0; j < qv; j++) {
        vi none = (vi)(l[j] == 0);
        inverse[j] = v_select(none, v_set(0), 1 / l[j]);
        top[j] = v_select(none, v_set(V_INF), m[j]);
        m[j] = v_select(none, v_set(0), m[j]);
    }
    multiply_rows(a->f, t->ot, (const wf_real *)inverse, 0, qv);
    unpack_queries(rows, a->f, t->ot, a->out + head * a->f + q0 * a->out_step, a->out_step, false);
    if (a->top) {
        memcpy(a->top + head * a->per_head + q0, top, (size_t)rows * sizeof(wf_real));
        memcpy(a->inverse + head * a->per_head + q0, inverse, (size_t)rows * sizeof(wf_real));
    }
    if (a->weights)
        write_weights(t, head, q0, rows, limit, m, inverse, qv);
}

/* Packs the keys below `end` just before their first use, QUERIES keys at a time, because with a causal mask each tile of queries needs
 * that many more keys. */
static void prepare_keys(struct tile *t, int64_t end)
{
    const struct wf_attention *a = t->a;
    for (int64_t k0 = t->packed, n; k0 < end; k0 += n, t->packed = k0) {
        const int64_t at = k0 - t->first;
        bool unused = false;
        n = WF_MIN(t->end - k0, QUERIES);
        pack_keys(a, k0, n, k0 + n < end, t->end, t->k + at * a->e, t->v + at * a->f, &unused, &t->nonfinite[at / KEYS]);
    }
}

static void one_tile(struct tile *t, int64_t head, int64_t q0, int64_t rows)
{
    prepare_keys(t, wf_attention_end(t->a, q0, rows));
    if (in_bf16(t->a))
        WITH_REGISTERS(rows, forward_tile, true, t, head, q0, rows);
    else
        WITH_REGISTERS(rows, forward_tile, false, t, head, q0, rows);
}

void WF_KERNEL(attention_forward)(const struct wf_attention *a, int64_t begin, int64_t end, wf_real *scratch)
{
    struct tile t = {.a = a};
    const int64_t keys = wf_attention_span(a, begin, end);
    t.first = wf_attention_begin(a, begin) / KEYS * KEYS;
    t.packed = t.first;
    t.end = t.first + keys;
    t.nonfinite = (bool *)take(&scratch, keys / KEYS + 1);
    t.k = take(&scratch, keys * a->e);
    t.v = take(&scratch, keys * a->f);
    t.qt = take(&scratch, a->e * QUERIES);
    t.ot = take(&scratch, a->f * QUERIES);
    t.s = take(&scratch, KEYS * QUERIES);
    t.drop = take(&scratch, KEYS * QUERIES);
    t.allow = (v_lane *)take(&scratch, KEYS * QUERIES);
    const bool amx = enter_amx(a);
    for (int64_t head = 0; head < a->heads; head++)
        for (int64_t q0 = begin; q0 < end; q0 += QUERIES)
            one_tile(&t, head, q0, WF_MIN(end - q0, QUERIES));
    leave_amx(amx);
}
