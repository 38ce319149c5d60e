/* SPDX-License-Identifier: MIT */
/* Computes which keys of a tile each query may attend to, and the dropout multipliers of the tile's attention weights. */
#include "../philox.h"
#include "attention_tile.h"

/* Returns register j of a row of QUERIES lanes: -1 in the lanes of the row from lane `first` on, 0 in lower lanes. */
V_INLINE vi from_lane(int64_t first, int j)
{
    vi index;
    V_EACH(l) index[l] = l;
    return index >= v_seti((v_lane)(first - j * V_LANES));
}

/* The causal mask: query t may attend to key s if s < first_limit + t. In the row of key s these are the lanes from s - first_limit - q0 +
 * 1 on. With `combine`, the mask is ANDed with the content of `allow`. */
static void causal_rows(const struct wf_attention *a, int64_t q0, int64_t k0, int64_t keys, bool combine, v_lane *allow)
{
    for (int64_t i = 0; i < keys; i++) {
        int64_t first = k0 + i - a->first_limit - q0 + 1;
        first = first < 0 ? 0 : WF_MIN(QUERIES, first);
        for (int j = 0; j < QV; j++) {
            vi *row = (vi *)(allow + i * QUERIES) + j, may = from_lane(first, j);
            *row = combine ? *row & may : may;
        }
    }
}

/* The causal mask with a window: in addition, query t may attend to key s only if s >= first_key + t. So the last allowed lane in the row
 * of key s is s - first_key - q0. */
static void window_rows(const struct wf_attention *a, int64_t q0, int64_t k0, int64_t keys, bool combine, v_lane *allow)
{
    for (int64_t i = 0; i < keys; i++) {
        int64_t first = k0 + i - a->first_limit - q0 + 1, end = k0 + i - a->first_key - q0 + 1;
        first = first < 0 ? 0 : WF_MIN(QUERIES, first);
        end = end < 0 ? 0 : WF_MIN(QUERIES, end);
        for (int j = 0; j < QV; j++) {
            vi *row = (vi *)(allow + i * QUERIES) + j, may = from_lane(first, j) & ~from_lane(end, j);
            *row = combine ? *row & may : may;
        }
    }
}

/* Writes a->mask to `allow`, as 0 or -1. Returns how many pairs of a key and one of the first `rows` queries are allowed. */
static int64_t mask_rows(const struct wf_attention *a, int64_t head, int64_t q0, int64_t rows, int64_t k0, int64_t keys, v_lane *allow)
{
    const bool *mask = a->mask + head * a->mask_step.head + q0 * a->mask_step.query + k0 * a->mask_step.key;
    int64_t count = 0;
    if (a->mask_step.query == 0) {
        for (int64_t i = 0; i < keys; i++) {
            bool may = mask[i * a->mask_step.key];
            count += may ? rows : 0;
            for (int j = 0; j < QV; j++)
                ((vi *)(allow + i * QUERIES))[j] = v_seti(-(v_lane)may);
        }
        return count;
    }
    memset(allow, 0, (size_t)(keys * QUERIES) * sizeof *allow);
    for (int64_t t = 0; t < rows; t++)
        for (int64_t i = 0; i < keys; i++) {
            bool may = mask[t * a->mask_step.query + i * a->mask_step.key];
            allow[i * QUERIES + t] = -(v_lane)may;
            count += may;
        }
    return count;
}

enum allowed attention_allowed(const struct wf_attention *a, int64_t head, int64_t q0, int64_t rows, int64_t k0, int64_t keys,
                               v_lane *allow)
{
    const bool behind = k0 < a->first_key + q0 + rows - 1; /* key k0 lies before the window of the last query */
    const bool causal = a->first_limit < WF_ATTENTION_ALL && k0 + keys > a->first_limit + q0;
    if (!a->mask) {
        if (behind)
            window_rows(a, q0, k0, keys, false, allow);
        else if (causal)
            causal_rows(a, q0, k0, keys, false, allow);
        return behind || causal ? ALLOWED_SOME : ALLOWED_ALL;
    }
    int64_t count = mask_rows(a, head, q0, rows, k0, keys, allow);
    if (count == 0)
        return ALLOWED_NONE;
    if (behind)
        window_rows(a, q0, k0, keys, true, allow);
    else if (causal)
        causal_rows(a, q0, k0, keys, true, allow);
    return behind || causal || count < rows * keys ? ALLOWED_SOME : ALLOWED_ALL;
}

/* --- dropout ------------------------------------------------------------------------------------------------------- */

void attention_dropout(const struct wf_attention *a, int64_t head, int64_t q0, int64_t rows, int64_t k0, int64_t keys, wf_real *drop)
{
    const uint64_t key = philox_key(a->seed, a->step);
    const uint64_t row = a->first_row + (uint64_t)head * a->row_head + (uint64_t)q0 * a->row_query;
    const vi least = v_seti((v_lane)a->threshold), keep = (vi)v_set(a->keep_scale);
    enum { PER_LANE = sizeof(uint64_t) / sizeof(wf_real) };
    for (int j = 0; j * V_LANES < rows; j++) {
        /* For each key, register j of `drop` holds V_LANES queries. The random words are drawn in lanes of 64 bits: lane i of lanes[p] is
         * for query PER_LANE i + p of these. In float there are two such registers, lanes[0] and lanes[1]; their random words are
         * interleaved below, which puts the queries into ascending order. */
        vu64 lanes[PER_LANE];
        for (int p = 0; p < PER_LANE; p++) {
            uint64_t lane[V_BYTES / 8];
            for (int i = 0; i < V_BYTES / 8; i++)
                lane[i] = row + (uint64_t)(j * V_LANES + PER_LANE * i + p) * a->row_query;
            memcpy(&lanes[p], lane, sizeof lane);
        }
        for (int64_t i = 0; i < keys; i += 8) {
            vu64 word[PER_LANE][4];
#pragma GCC unroll 2
            for (int p = 0; p < PER_LANE; p++) {
                word[p][0] = philox_wide((uint64_t)(k0 + i) / 8); /* the counter of the kernel `dropout`: (block, row, call) */
                word[p][1] = lanes[p];
                word[p][2] = lanes[p] >> 32;
                word[p][3] = philox_wide(a->call);
                philox_wide_rounds(key, word[p]);
            }
            for (int w = 0; w < 4; w++) {
#ifdef WF_DOUBLE
                vu bits = (vu)word[0][w] & 0xffffffffu;
#else
                vu bits = (vu)((word[0][w] & 0xffffffffu) | (word[1][w] << 32));
#endif
                vr *to = (vr *)(drop + (i + 2 * w) * QUERIES) + j;
                to[0] = (vr)(keep & ((vi)(bits & 0xffffu) >= least));
                to[QV] = (vr)(keep & ((vi)(bits >> 16) >= least));
            }
        }
    }
}
