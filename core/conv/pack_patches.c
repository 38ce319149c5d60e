/* SPDX-License-Identifier: MIT */
/* Packs pieces of the matrix of patches. For each tap the runs of columns are found once, and then copied for all channels. */
#include "../simd.h"
#include "patches.h"

/* Copies `count` elements that are `step` apart. */
V_INLINE void copy(const wf_real *x, int64_t step, int64_t count, wf_real *out)
{
    if (step != 1) {
        for (int64_t i = 0; i < count; i++)
            out[i] = x[i * step];
        return;
    }
    int64_t i = 0;
    for (; i + V_LANES <= count; i += V_LANES)
        v_store(out + i, v_load(x + i));
    if (i < count) {
        const v_mask m = V_FIRST((int)(count - i));
        v_store_mask(out + i, m, v_load_mask(x + i, m));
    }
}

V_INLINE void clear(wf_real *out, int64_t count)
{
    int64_t i = 0;
    for (; i + V_LANES <= count; i += V_LANES)
        v_store(out + i, v_set(0));
    if (i < count)
        v_store_mask(out + i, V_FIRST((int)(count - i)), v_set(0));
}

/* Calls the body for each channel of rows k0 .. k0 + k - 1 that belong to tap t: `p` is the row, counted from k0. */
#define EACH_CHANNEL(t) for (int64_t channel = (k0 - (t) + taps - 1) / taps, p = channel * taps + (t)-k0; p < k; channel++, p += taps)

void WF_KERNEL(conv_pack_panel)(const struct conv_patches *m, int64_t n0, int64_t w, int64_t k0, int64_t k, wf_real *out)
{
    const int64_t taps = m->taps, step = m->col_step;
    for (int64_t t = 0; t < taps; t++) {
        struct conv_run run[NR];
        int runs = 0;
        for (int64_t n = n0; n < n0 + w; n += run[runs - 1].length)
            run[runs++] = conv_run_at(m, &m->tap[t], n, n0 + w);
        if (runs == 1 && w == NR && step == 1 && run[0].lo == 0 && run[0].hi == NR) {
            EACH_CHANNEL(t)
            {
                const wf_real *x = m->x + channel * m->channel_step + run[0].at;
#pragma GCC unroll 2
                for (int v = 0; v < NR_VECTORS; v++)
                    v_store(out + p * NR + v * V_LANES, v_load(x + v * V_LANES));
            }
            continue;
        }
        EACH_CHANNEL(t)
        {
            const wf_real *x = m->x + channel * m->channel_step;
            wf_real *row = out + p * NR;
#pragma GCC unroll 2
            for (int v = 0; v < NR_VECTORS; v++)
                v_store(row + v * V_LANES, v_set(0));
            for (int i = 0; i < runs; row += run[i++].length)
                copy(x + run[i].at + run[i].lo * step, step, run[i].hi - run[i].lo, row + run[i].lo);
        }
    }
}

void WF_KERNEL(conv_pack_rows)(const struct conv_patches *m, int64_t n0, int64_t n, int64_t k0, int64_t k, int64_t to, wf_real *out)
{
    const int64_t taps = m->taps, step = m->col_step;
    for (int64_t t = 0; t < taps; t++)
        for (int64_t at = 0; at < n;) {
            const struct conv_run run = conv_run_at(m, &m->tap[t], n0 + at, n0 + n);
            EACH_CHANNEL(t)
            {
                wf_real *row = out + p * to + at;
                clear(row, run.lo);
                copy(m->x + channel * m->channel_step + run.at + run.lo * step, step, run.hi - run.lo, row + run.lo);
                clear(row + run.hi, run.length - run.hi);
            }
            at += run.length;
        }
}
