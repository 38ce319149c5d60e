/* SPDX-License-Identifier: MIT */
/* The selective state-space recurrence (weft/internal/selective_scan.h). A tile is TILE states of V_N channels: their h stay in registers
 * over the steps of a chunk. Nearly all of the time goes to one exponential for each state, channel and step; it is computed as a power of
 * 2, for which the op has multiplied A by log2 e. */
#include <string.h>

#include <weft/internal/selective_scan.h>

#include "vmath.h"

enum { TILE = 4, CHANNELS = WF_SCAN_CHANNELS, STEPS = WF_SCAN_STEPS };

/* 2^x for every x: infinite for large x, 0 below the normal numbers; a NaN stays. For x = 128 (in double 1024) v_exp2_low gives infinity.
 */
V_INLINE vr power_of(vr x)
{
    return v_exp2_low(v_min(v_set(V_BIAS + 1), x));
}

typedef wf_real steps_of[STEPS][CHANNELS] __attribute__((aligned(64)));

/* What all states read: D and D x, and in the forward the sums y, in the backward dy and two sums. */
struct shared {
    steps_of step, input;
    steps_of y, sum, slope;
};

V_INLINE void load_part(int64_t j, int64_t count, const struct wf_scan_chunk *c, int64_t t, struct shared *s)
{
    const vr raw = v_get(c->dt + t * c->dt_row + j, count), x = v_get(c->x + t * c->x_row + j, count);
    const vr step = c->softplus ? v_softplus(raw) : raw;
    v_store(s->step[t] + j, step);
    v_store(s->input[t] + j, step * x);
}

V_INLINE void load_forward(int64_t j, int64_t count, const struct wf_scan_chunk *c, int64_t t, struct shared *s)
{
    load_part(j, count, c, t, s);
    v_store(s->y[t] + j, c->skip ? v_get(c->skip + j, count) * v_get(c->x + t * c->x_row + j, count) : v_set(0));
}

V_INLINE void store_forward(int64_t j, int64_t count, const struct wf_scan_chunk *c, int64_t t, const struct shared *s)
{
    v_put(c->y + t * c->y_row + j, v_load(s->y[t] + j), count);
}

/* `count` states from n on. */
V_INLINE void tile_forward(int count, int64_t n, const struct wf_scan_chunk *c, struct shared *s)
{
    for (int64_t j = 0; j < c->channels; j += V_N) {
        vr h[TILE], a[TILE];
#pragma GCC unroll 4
        for (int i = 0; i < count; i++) {
            h[i] = v_load(c->h + (n + i) * c->pitch + j);
            a[i] = v_load(c->a + (n + i) * c->pitch + j);
        }
        for (int64_t t = 0; t < c->steps; t++) {
            const vr step = v_load(s->step[t] + j), input = v_load(s->input[t] + j);
            const wf_real *enter = c->b + t * c->b_row + n, *leave = c->c + t * c->c_row + n;
            vr y = v_load(s->y[t] + j);
#pragma GCC unroll 4
            for (int i = 0; i < count; i++) {
                h[i] = v_fma(power_of(step * a[i]), h[i], input * enter[i]);
                y = v_fma(h[i], v_set(leave[i]), y);
            }
            v_store(s->y[t] + j, y);
        }
#pragma GCC unroll 4
        for (int i = 0; i < count; i++)
            v_store(c->h + (n + i) * c->pitch + j, h[i]);
    }
}

void WF_KERNEL(selective_scan)(const struct wf_scan_chunk *c)
{
    struct shared s;
    int64_t n = 0;
    for (int64_t t = 0; t < c->steps; t++)
        V_LOOP(c->channels, load_forward, c, t, &s);
    for (; n + TILE <= c->states; n += TILE)
        tile_forward(TILE, n, c, &s);
    for (; n < c->states; n++)
        tile_forward(1, n, c, &s);
    for (int64_t t = 0; t < c->steps; t++)
        V_LOOP(c->channels, store_forward, c, t, &s);
}

/* --- backward --------------------------------------------------------------------------------------------------------
 *
 * Let e_t = exp(D_t A), u_t = D_t x_t, and g_t = C_t dy_t + e_(t+1) g_(t+1), the gradient of h_t. Then, with k_t = g_t e_t h_(t-1):
 *
 *   dA = sum over t of k_t D_t,   dB_t = sum over channels of g_t u_t,   dC_t = sum over channels of dy_t h_t,
 *   du_t = sum over n of g_t B_t,   dD_t = sum over n of k_t A, plus du_t x_t,   dx_t = du_t D_t + skip dy_t.
 *
 * For each tile the chunk is computed again, which gives e_t and h_(t-1), and then its steps run backwards. */

struct again {
    wf_real power[STEPS][TILE][V_LANES], before[STEPS][TILE][V_LANES]; /* e_t and h_(t-1) */
    wf_real db[STEPS][TILE][V_LANES], dc[STEPS][TILE][V_LANES];        /* sums of all groups of V_N channels, lane by lane */
} __attribute__((aligned(64)));

V_INLINE void load_backward(int64_t j, int64_t count, const struct wf_scan_chunk *c, int64_t t, struct shared *s)
{
    load_part(j, count, c, t, s);
    v_store(s->y[t] + j, c->dy ? v_get(c->dy + t * c->y_row + j, count) : v_set(0));
    v_store(s->sum[t] + j, v_set(0));
    v_store(s->slope[t] + j, v_set(0));
}

V_INLINE void store_backward(int64_t j, int64_t count, const struct wf_scan_chunk *c, int64_t t, const struct shared *s)
{
    const vr x = v_get(c->x + t * c->x_row + j, count), dy = v_load(s->y[t] + j), du = v_load(s->sum[t] + j);
    const vr dx = du * v_load(s->step[t] + j), dstep = v_fma(v_load(s->slope[t] + j), v_set((wf_real)0.693147180559945309417), du * x);
    v_put(c->dx + t * c->y_row + j, c->skip ? v_fma(v_get(c->skip + j, count), dy, dx) : dx, count);
    v_put(c->ddt + t * c->y_row + j, c->softplus ? dstep * v_sigmoid(v_get(c->dt + t * c->dt_row + j, count)) : dstep, count);
    v_store(c->dskip + j, v_fma(dy, x, v_load(c->dskip + j)));
}

V_INLINE void tile_again(int count, int64_t n, int64_t j, const struct wf_scan_chunk *c, const struct shared *s, struct again *k)
{
    vr h[TILE], a[TILE];
#pragma GCC unroll 4
    for (int i = 0; i < count; i++) {
        h[i] = v_load(c->h + (n + i) * c->pitch + j);
        a[i] = v_load(c->a + (n + i) * c->pitch + j);
    }
    for (int64_t t = 0; t < c->steps; t++) {
        const vr step = v_load(s->step[t] + j), input = v_load(s->input[t] + j), dy = v_load(s->y[t] + j);
        const wf_real *enter = c->b + t * c->b_row + n;
#pragma GCC unroll 4
        for (int i = 0; i < count; i++) {
            const vr power = power_of(step * a[i]);
            v_store(k->power[t][i], power);
            v_store(k->before[t][i], h[i]);
            h[i] = v_fma(power, h[i], input * enter[i]);
            v_store(k->dc[t][i], v_fma(dy, h[i], v_load(k->dc[t][i])));
        }
    }
}

V_INLINE void tile_back(int count, int64_t n, int64_t j, const struct wf_scan_chunk *c, struct shared *s, struct again *k)
{
    vr g[TILE], a[TILE], da[TILE];
#pragma GCC unroll 4
    for (int i = 0; i < count; i++) {
        g[i] = v_load(c->carry + (n + i) * c->pitch + j);
        a[i] = v_load(c->a + (n + i) * c->pitch + j);
        da[i] = v_set(0);
    }
    for (int64_t t = c->steps - 1; t >= 0; t--) {
        const vr step = v_load(s->step[t] + j), input = v_load(s->input[t] + j), dy = v_load(s->y[t] + j);
        const wf_real *enter = c->b + t * c->b_row + n, *leave = c->c + t * c->c_row + n;
        vr sum = v_load(s->sum[t] + j), slope = v_load(s->slope[t] + j);
#pragma GCC unroll 4
        for (int i = 0; i < count; i++) {
            g[i] = v_fma(dy, v_set(leave[i]), g[i]);
            sum = v_fma(g[i], v_set(enter[i]), sum);
            v_store(k->db[t][i], v_fma(g[i], input, v_load(k->db[t][i])));
            g[i] *= v_load(k->power[t][i]);
            const vr through = g[i] * v_load(k->before[t][i]);
            da[i] = v_fma(through, step, da[i]);
            slope = v_fma(through, a[i], slope);
        }
        v_store(s->sum[t] + j, sum);
        v_store(s->slope[t] + j, slope);
    }
#pragma GCC unroll 4
    for (int i = 0; i < count; i++) {
        wf_real *total = c->da + (n + i) * c->pitch + j;
        v_store(c->carry + (n + i) * c->pitch + j, g[i]);
        v_store(total, v_load(total) + da[i]);
    }
}

V_INLINE void tile_backward(int count, int64_t n, const struct wf_scan_chunk *c, struct shared *s, struct again *k)
{
    memset(k->db, 0, sizeof k->db);
    memset(k->dc, 0, sizeof k->dc);
    for (int64_t j = 0; j < c->channels; j += V_N) {
        tile_again(count, n, j, c, s, k);
        tile_back(count, n, j, c, s, k);
    }
    for (int64_t t = 0; t < c->steps; t++)
        for (int i = 0; i < count; i++) {
            c->db[t * c->states + n + i] = v_sum(v_load(k->db[t][i]))[0];
            c->dc[t * c->states + n + i] = v_sum(v_load(k->dc[t][i]))[0];
        }
}

void WF_KERNEL(selective_scan_back)(const struct wf_scan_chunk *c)
{
    struct shared s;
    struct again k;
    int64_t n = 0;
    for (int64_t t = 0; t < c->steps; t++)
        V_LOOP(c->channels, load_backward, c, t, &s);
    for (; n + TILE <= c->states; n += TILE)
        tile_backward(TILE, n, c, &s, &k);
    for (; n < c->states; n++)
        tile_backward(1, n, c, &s, &k);
    for (int64_t t = 0; t < c->steps; t++)
        V_LOOP(c->channels, store_backward, c, t, &s);
}
