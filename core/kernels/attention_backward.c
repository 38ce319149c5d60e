/* SPDX-License-Identifier: MIT */
/* Gradients of attention, tile by tile, from the greatest scores m and the sums l of the forward kernel, which saved m as `top` and 1 / l
 * as `inverse`. With scores S = scale Q K^T, weights P = e^(S - m) / l, dropout multipliers M, P' = P M, O = P' V and g = dO:
 *
 *   dV = P'^T g      dP = (g V^T) M      dS = P (dP - D), D = rowsum(P dP) = rowsum(g O)
 *   dQ = scale dS K  dK = scale dS^T Q
 *
 * The gradient of a bias is dS, summed over the dimensions along which the bias is broadcast. If scores are capped, S' = c tanh(S / c),
 * then the formula above gives dS', and dS = dS' (1 - (S' / c)^2).
 *
 * In bf16's arithmetic the operands Q, K, V, g, P' and dS are rounded. D, the softmax and the gradient of a bias have unrounded g, P and
 * dS.
 *
 * dK and dV are sums over heads and queries, in a fixed order: for each head, the queries are taken in pieces of WF_ATTENTION_PIECE. The
 * sum of a piece begins at 0; it is then added to the total of the pieces before it. One call of the kernel computes either all pieces or a
 * single piece. In the second case the caller adds the results in the same order (attention_add_keys), which gives the same bits.
 *
 * Tiles of S, P and dS are transposed, with the queries in the lanes. */
#include "attention_pack.h"

struct work {
    const struct wf_attention *a;
    int64_t pe;        /* elements from one row of q or dk to the next: key_columns of e */
    int64_t pf;        /* elements from one row of dout or dv to the next: key_columns of f */
    int64_t keys;      /* queries of this call attend only to keys below this one */
    int64_t packed;    /* keys below this one are packed */
    int64_t cleared;   /* keys below this one: dk and dv are set to 0 for this piece */
    int64_t written;   /* keys below this one: the gradients of this piece are already in a->dk and a->dv */
    int64_t high;      /* keys below this one: a->dk and a->dv hold gradients, to which later pieces add */
    wf_real *k;        /* packed keys [keys][e] */
    wf_real *v;        /* packed values [keys][f] */
    bool *k_nonfinite; /* for each tile of keys: whether its keys hold a NaN or an infinity */
    bool *v_nonfinite; /* for each tile of keys: whether its values hold a NaN or an infinity */
    wf_real *dk;       /* gradients of the keys from this piece [keys][pe] */
    wf_real *dv;       /* gradients of the values from this piece [keys][pf] */
    wf_real *q;        /* the tile's queries [QUERIES][pe] */
    wf_real *dout;     /* gradients of the tile's results [QUERIES][pf] */
    wf_real *qt;       /* the tile's queries, times scale log2 e or rounded to bf16, transposed: [e][QUERIES] */
    wf_real *dqt;      /* gradients of the tile's queries, transposed: [e][QUERIES] */
    wf_real *doutt;    /* dout transposed: [f][QUERIES] */
    wf_real *s;        /* S times log2 e, then P': [KEYS][QUERIES] */
    wf_real *ds;       /* g V^T, then dS: [KEYS][QUERIES] */
    wf_real *drop;     /* dropout multipliers, or the packed bias: [KEYS][QUERIES] */
    wf_real *slope;    /* derivatives of the capped scores: [KEYS][QUERIES] */
    v_lane *allow;     /* from attention_allowed: [KEYS][QUERIES] */
};

/* For keys begin .. end - 1 and registers first .. last - 1: replaces S in w->s by P', rounded with `bf16`, and g V^T in w->ds
 * by dS. */
V_INLINE void weights_part(const bool bf16, const struct work *w, bool some, bool dropped, bool guarded, int64_t begin, int64_t end,
                           const vr top[QV], const vr inverse[QV], const vr d[QV], const int first, const int last)
{
    for (int64_t i = begin; i < end; i++)
#pragma GCC unroll 16
        for (int j = first; j < last; j++) {
            vr *s = (vr *)(w->s + i * QUERIES) + j, *ds = (vr *)(w->ds + i * QUERIES) + j;
            vr p = v_exp2_low(*s - top[j]) * inverse[j], dp = *ds;
            if (some)
                p = v_select(((const vi *)(w->allow + i * QUERIES))[j], p, v_set(0));
            if (dropped) {
                vr drop = ((const vr *)(w->drop + i * QUERIES))[j];
                *s = operand(bf16, p * drop);
                dp *= drop;
            } else {
                *s = operand(bf16, p);
            }
            vr x = p * (dp - d[j]);
            *ds = guarded ? v_select((vi)(p == 0), v_set(0), x) : x; /* a masked key has p = 0, and its dp may be a NaN */
        }
}

V_INLINE void weights_tile(const bool bf16, const struct work *w, bool some, bool dropped, bool guarded, struct cut cut, int64_t keys,
                           const vr top[QV], const vr inverse[QV], const vr d[QV], const int qv)
{
    if (!some) {
        weights_part(bf16, w, false, dropped, guarded, 0, keys, top, inverse, d, 0, qv);
        return;
    }
    weights_part(bf16, w, true, dropped, guarded, 0, cut.low, top, inverse, d, 0, qv / 2);
    weights_part(bf16, w, true, dropped, guarded, cut.low, cut.high, top, inverse, d, 0, qv);
    weights_part(bf16, w, true, dropped, guarded, cut.high, keys, top, inverse, d, qv / 2, qv);
}

/* Sets `slope` to the derivative dS' / dS, computed from n capped scores s. */
static void cap_slopes(int64_t n, wf_real cap, const wf_real *s, wf_real *slope)
{
    const vr inverse = 1 / v_set(cap * V_LOG2_E);
    for (int64_t i = 0; i < n; i += V_LANES) {
        vr t = v_load(s + i) * inverse;
        v_store(slope + i, (1 - t) * (1 + t));
    }
}

/* ds *= slope. Elements of ds that are 0 stay 0, even if the slope of a masked score is a NaN. */
static void multiply_slopes(int64_t n, const wf_real *slope, wf_real *ds)
{
    for (int64_t i = 0; i < n; i += V_LANES) {
        vr x = v_load(ds + i);
        v_store(ds + i, v_select((vi)(x == 0), x, x * v_load(slope + i)));
    }
}

/* Rounds the gradients of the scores of `keys` keys to bf16. */
V_INLINE void round_rows(int64_t keys, wf_real *ds, const int qv)
{
    for (int64_t i = 0; i < keys * QUERIES; i += QUERIES)
#pragma GCC unroll 16
        for (int j = 0; j < qv; j++)
            ((vr *)(ds + i))[j] = operand(true, ((const vr *)(ds + i))[j]);
}

/* The number of rows that one call of fetch_some prefetches. It is chosen for a window of 128 keys: a tile of queries then meets 3 tiles of
 * keys, with 5 calls of fetch_some for each, and these 15 calls prefetch all rows that the function next_rows lists. */
enum { FETCHED = 20 };

V_INLINE void key_tile(const bool bf16, const struct work *w, struct fetch *fetch, int64_t head, int64_t q0, int64_t rows, int64_t k0,
                       int64_t keys, bool q_nonfinite, bool dout_nonfinite, const vr top[QV], const vr inverse[QV], const vr d[QV],
                       const int qv)
{
    const struct wf_attention *a = w->a;
    enum allowed which = attention_allowed(a, head, q0, rows, k0, keys, w->allow);
    if (which == ALLOWED_NONE)
        return;
    bool k_nonfinite = w->k_nonfinite[k0 / KEYS], nonfinite = q_nonfinite || dout_nonfinite || k_nonfinite || w->v_nonfinite[k0 / KEYS];
    const struct cut cut = cut_of(a, q0, rows, k0, keys, qv);
    cut_scores(bf16, a->scale * V_LOG2_E, cut, keys, qv, a->e, w->k + k0 * a->e, w->qt, w->s);
    if (a->cap != 0) {
        cap_scores(keys * QUERIES, a->cap, w->s);
        cap_slopes(keys * QUERIES, a->cap, w->s, w->slope);
    }
    if (a->bias)
        attention_bias(a, head, q0, rows, k0, keys, w->drop, w->s);
    fetch_some(fetch, FETCHED);
    if (a->dq || a->dk || a->dbias)
        cut_scores(bf16, 1, cut, keys, qv, a->f, w->v + k0 * a->f, w->doutt, w->ds);
    fetch_some(fetch, FETCHED);
    bool some = which == ALLOWED_SOME;
    if (a->threshold) {
        attention_dropout(a, head, q0, rows, k0, keys, w->drop);
        if (some || nonfinite)
            weights_tile(bf16, w, some, true, true, cut, keys, top, inverse, d, qv);
        else
            weights_tile(bf16, w, false, true, false, cut, keys, top, inverse, d, qv);
    } else if (some || nonfinite) {
        weights_tile(bf16, w, some, false, true, cut, keys, top, inverse, d, qv);
    } else {
        weights_tile(bf16, w, false, false, false, cut, keys, top, inverse, d, qv);
    }
    if (a->dbias)
        attention_bias_grad(a, head, q0, rows, k0, keys, w->ds);
    if (a->cap != 0)
        multiply_slopes(keys * QUERIES, w->slope, w->ds);
    if (bf16)
        round_rows(keys, w->ds, qv);
    fetch_some(fetch, FETCHED);
    if (a->dv)
        cut_rows(bf16,
                 dout_nonfinite        ? CHOOSE(bf16, masked_rows_add)
                 : w->pf == HALF_LANES ? half_rows_add
                                       : CHOOSE(bf16, product_rows_add),
                 a, q0, rows, k0, keys, w->pf, w->s, w->dout, w->dv + k0 * w->pf);
    fetch_some(fetch, FETCHED);
    if (a->dk)
        cut_rows(bf16,
                 q_nonfinite           ? CHOOSE(bf16, masked_rows_add)
                 : w->pe == HALF_LANES ? half_rows_add
                                       : CHOOSE(bf16, product_rows_add),
                 a, q0, rows, k0, keys, w->pe, w->ds, w->q, w->dk + k0 * w->pe);
    fetch_some(fetch, FETCHED);
    if (a->dq)
        cut_columns(bf16, k_nonfinite ? CHOOSE(bf16, masked_columns_add) : CHOOSE(bf16, product_columns_add), cut, keys, qv, a->e,
                    w->k + k0 * a->e, w->ds, w->dqt);
}

/* Lane l of the result is the sum of x[l][j] y[l][j] over the columns j, for rows l < min(rows, V_LANES). The other lanes are 0. */
static vr row_products(int64_t rows, int64_t columns, const wf_real *x, int64_t x_step, const wf_real *y, int64_t y_step)
{
    vr r[V_LANES], sum = v_set(0);
    for (int l = 0; l < V_LANES; l++) {
        r[l] = v_set(0);
        for (int64_t j = 0; l < rows && j < columns; j += V_LANES)
            r[l] = v_fma(v_load_at_most(x + l * x_step + j, columns - j), v_load_at_most(y + l * y_step + j, columns - j), r[l]);
    }
    v_transpose(r);
#pragma GCC unroll 16
    for (int l = 0; l < V_LANES; l++)
        sum += r[l];
    return sum;
}

/* Packs the keys below `end` that are not packed yet, and sets the gradients of this piece to 0 for keys from w->cleared to end - 1. Both
 * happen just before the first use, so that the caches still hold the data at that time. */
static void prepare_keys(struct work *w, int64_t end)
{
    const struct wf_attention *a = w->a;
    for (int64_t k0 = w->packed, n; k0 < end; k0 += n, w->packed = k0) {
        n = WF_MIN(w->keys - k0, QUERIES);
        pack_keys(a, k0, n, k0 + n < end, w->keys, w->k + k0 * a->e, w->v + k0 * a->f, &w->k_nonfinite[k0 / KEYS],
                  &w->v_nonfinite[k0 / KEYS]);
    }
    if (end > w->cleared) {
        memset(w->dk + w->cleared * w->pe, 0, (size_t)((end - w->cleared) * w->pe) * sizeof *w->dk);
        memset(w->dv + w->cleared * w->pf, 0, (size_t)((end - w->cleared) * w->pf) * sizeof *w->dv);
        w->cleared = end;
    }
}

/* Returns the first key to which queries after the tile at q0 may attend. The gradients from this piece are complete after that tile for
 * all keys before the returned one. */
V_INLINE int64_t keys_done(const struct wf_attention *a, int64_t q0)
{
    const int64_t begin = wf_attention_begin(a, q0 + QUERIES);
    return WF_MIN(begin, a->all_keys);
}

/* Returns the rows to prefetch during this tile: its rows of dq, the rows of dk and dv that it completes, and the rows of the inputs that
 * the next tile reads. */
V_INLINE struct fetch next_rows(const struct work *w, int64_t head, int64_t q0, int64_t rows)
{
    const struct wf_attention *a = w->a;
    const int64_t next = q0 + rows, queries = WF_MIN(a->queries - next, QUERIES);
    const int64_t done = keys_done(a, q0) - w->written;
    struct fetch f = {.parts = 0};
    fetch_later(&f, a->dq ? a->dq + head * a->e + q0 * a->dq_step : NULL, rows, a->e, a->dq_step);
    if (done <= 2 * KEYS) {
        fetch_later(&f, a->dk ? a->dk + w->written * a->dk_step : NULL, done, a->e, a->dk_step);
        fetch_later(&f, a->dv ? a->dv + w->written * a->dv_step : NULL, done, a->f, a->dv_step);
    }
    fetch_keys(&f, a, w->packed, w->keys);
    fetch_later(&f, a->q + head * a->e + next * a->q_step, queries, a->e, a->q_step);
    fetch_later(&f, a->dout + head * a->f + next * a->dout_step, queries, a->f, a->dout_step);
    fetch_later(&f, a->out + head * a->f + next * a->out_step, queries, a->f, a->out_step);
    return f;
}

V_INLINE void query_tile(const bool bf16, const struct work *w, int64_t head, int64_t q0, int64_t rows, const int qv)
{
    const struct wf_attention *a = w->a;
    const wf_real *q = a->q + head * a->e + q0 * a->q_step, *dout = a->dout + head * a->f + q0 * a->dout_step;
    const wf_real *out = a->out + head * a->f + q0 * a->out_step;
    wf_real *dq = a->dq ? a->dq + head * a->e + q0 * a->dq_step : NULL;
    struct fetch fetch = next_rows(w, head, q0, rows);
    bool q_nonfinite = !CHOOSE(bf16, pack_rows)(rows, a->e, q, a->q_step, w->q, w->pe);
    bool dout_nonfinite = !CHOOSE(bf16, pack_rows)(rows, a->f, dout, a->dout_step, w->dout, w->pf);
    (void)pack_queries(rows, a->e, w->q, w->pe, bf16 ? 1 : a->scale * V_LOG2_E, w->qt);
    (void)pack_queries(rows, a->f, w->dout, w->pf, 1, w->doutt);
    vr top[QV], inverse[QV], d[QV];
    for (int j = 0; j < qv; j++) {
        top[j] = v_set(V_INF); /* lanes that hold no query get weights of 0 */
        inverse[j] = d[j] = v_set(0);
    }
    memcpy(top, a->top + head * a->per_head + q0, (size_t)rows * sizeof(wf_real));
    memcpy(inverse, a->inverse + head * a->per_head + q0, (size_t)rows * sizeof(wf_real));
    const wf_real *g = bf16 ? dout : w->dout; /* not rounded */
    const int64_t g_step = bf16 ? a->dout_step : w->pf;
    for (int j = 0; j * V_LANES < rows; j++)
        d[j] = row_products(rows - j * V_LANES, a->f, g + j * V_LANES * g_step, g_step, out + j * V_LANES * a->out_step, a->out_step);
    for (int64_t i = 0; a->dq && i < a->e; i++)
#pragma GCC unroll 16
        for (int j = 0; j < qv; j++)
            ((vr *)(w->dqt + i * QUERIES))[j] = v_set(0);
    int64_t limit = wf_attention_end(a, q0, rows);
    for (int64_t k0 = wf_attention_begin(a, q0), keys; k0 < limit; k0 += keys) {
        keys = tile_keys(k0, limit);
        key_tile(bf16, w, &fetch, head, q0, rows, k0, keys, q_nonfinite, dout_nonfinite, top, inverse, d, qv);
    }
    if (a->dq) {
        for (int64_t i = 0; i < a->e; i++)
#pragma GCC unroll 16
            for (int j = 0; j < qv; j++)
                ((vr *)(w->dqt + i * QUERIES))[j] *= a->scale;
        unpack_queries(rows, a->e, w->dqt, dq, a->dq_step, a->dq_add);
    }
}

void WF_KERNEL(attention_add_keys)(int64_t rows, int64_t columns, wf_real scale, const wf_real *from, int64_t from_step, wf_real *to,
                                   int64_t to_step, bool add)
{
    for (int64_t i = 0; i < rows; i++, from += from_step, to += to_step)
        for (int64_t j = 0; j < columns; j += V_LANES) {
            /* v_fma, because this function is also inlined in finish_keys, and both copies must round in the same way. */
            const vr x = v_load_at_most(from + j, columns - j), times = v_set(scale);
            v_store_at_most(to + j, add ? v_fma(x, times, v_load_at_most(to + j, columns - j)) : x * times, columns - j);
        }
}

static void zero_rows(int64_t rows, int64_t columns, wf_real *to, int64_t to_step)
{
    for (int64_t i = 0; i < rows; i++)
        memset(to + i * to_step, 0, (size_t)columns * sizeof *to);
}

/* The keys from w->high to end - 1 get no gradient, because no query attends to them. Sets their rows of dk and dv to 0, unless the caller
 * wants gradients added to the contents of dk and dv. */
static void skip_keys(struct work *w, int64_t end)
{
    const struct wf_attention *a = w->a;
    if (end <= w->high)
        return;
    if (a->dk && !a->dk_add)
        zero_rows(end - w->high, a->e, a->dk + w->high * a->dk_step, a->dk_step);
    if (a->dv && !a->dv_add)
        zero_rows(end - w->high, a->f, a->dv + w->high * a->dv_step, a->dv_step);
    w->high = end;
}

/* Writes dk and dv of the keys below `end`, because no later query of this piece attends to these keys. Where an earlier piece has written,
 * or if the caller wants it, the gradients are added. */
static void finish_keys(struct work *w, int64_t end)
{
    const struct wf_attention *a = w->a;
    for (int64_t from = w->written, to; from < end; from = to) {
        const bool again = from < w->high;
        to = again && w->high < end ? w->high : end;
        if (a->dk)
            WF_KERNEL(attention_add_keys)
        (to - from, a->e, a->key_scale, w->dk + from * w->pe, w->pe, a->dk + from * a->dk_step, a->dk_step, again || a->dk_add);
        if (a->dv)
            WF_KERNEL(attention_add_keys)
        (to - from, a->f, 1, w->dv + from * w->pf, w->pf, a->dv + from * a->dv_step, a->dv_step, again || a->dv_add);
        w->written = to;
    }
    w->high = w->high > w->written ? w->high : w->written;
}

/* Computes the gradients from one piece: queries begin .. end - 1 of a head. */
static void piece(struct work *w, int64_t head, int64_t begin, int64_t end)
{
    const struct wf_attention *a = w->a;
    const int64_t first = wf_attention_first(a, begin), last = wf_attention_end(a, begin, end - begin);
    skip_keys(w, first);
    w->packed = w->packed > first ? w->packed : first;
    w->cleared = w->written = first;
    for (int64_t q0 = begin; q0 < end; q0 += QUERIES) {
        const int64_t rows = WF_MIN(end - q0, QUERIES), done = keys_done(a, q0);
        prepare_keys(w, wf_attention_end(a, q0, rows));
        if (in_bf16(a))
            WITH_REGISTERS(rows, query_tile, true, w, head, q0, rows);
        else
            WITH_REGISTERS(rows, query_tile, false, w, head, q0, rows);
        finish_keys(w, WF_MIN(done, w->cleared));
    }
    finish_keys(w, last);
}

void WF_KERNEL(attention_backward)(const struct wf_attention *a, const struct wf_attention_part *part, wf_real *scratch)
{
    struct work w = {.a = a};
    int64_t keys = wf_attention_end(a, part->begin, part->end - part->begin), tiles = (keys + KEYS - 1) / KEYS;
    w.pe = key_columns(a, a->e);
    w.pf = key_columns(a, a->f);
    w.k_nonfinite = (bool *)take(&scratch, tiles + 1);
    w.v_nonfinite = w.k_nonfinite + tiles;
    w.k = take(&scratch, keys * a->e);
    w.v = take(&scratch, keys * a->f);
    w.dk = take(&scratch, keys * w.pe);
    w.dv = take(&scratch, keys * w.pf);
    w.q = take(&scratch, QUERIES * w.pe);
    w.dout = take(&scratch, QUERIES * w.pf);
    w.qt = take(&scratch, a->e * QUERIES);
    w.dqt = take(&scratch, a->e * QUERIES);
    w.doutt = take(&scratch, a->f * QUERIES);
    w.s = take(&scratch, KEYS * QUERIES);
    w.ds = take(&scratch, KEYS * QUERIES);
    w.drop = take(&scratch, KEYS * QUERIES);
    w.slope = take(&scratch, KEYS * QUERIES);
    w.allow = (v_lane *)take(&scratch, KEYS * QUERIES);
    w.keys = keys;
    if (part->alone)
        w.high = wf_attention_first(a, part->begin);
    const bool amx = enter_amx(a);
    for (int64_t head = part->head; head < part->head_end; head++)
        for (int64_t q0 = part->begin; q0 < part->end; q0 += WF_ATTENTION_PIECE)
            piece(&w, head, q0, part->end - q0 < WF_ATTENTION_PIECE ? part->end : q0 + WF_ATTENTION_PIECE);
    leave_amx(amx);
    if (!part->alone)
        skip_keys(&w, a->all_keys);
}
