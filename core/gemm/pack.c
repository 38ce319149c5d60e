/* SPDX-License-Identifier: MIT */
/* Packs panels of A and B in the order in which the micro-kernels read them: a panel has MR rows of A or NR columns of B, whose elements
 * of one step of k lie side by side. */
#include "../bf16_lanes.h"
#include "../transpose.h"
#include "private.h"

/* Packs a square of a source whose k is contiguous: V_LANES rows with V_LANES steps of k, transposed in registers. Rows from w on count
 * as 0, and steps from k on are not stored. `space` is the distance from `out` to the end of the panel's width. */
V_INLINE void transpose(int64_t w, int64_t k, const wf_real *s, int64_t is, const int width, int64_t space, wf_real *out)
{
    vr r[V_LANES];
    if (w >= V_LANES && k >= V_LANES) {
#pragma GCC unroll 16
        for (int i = 0; i < V_LANES; i++)
            r[i] = v_load(s + i * is);
    } else {
        const v_mask m = V_FIRST((int)WF_MIN(k, V_LANES));
#pragma GCC unroll 16
        for (int i = 0; i < V_LANES; i++)
            r[i] = i < w ? v_load_mask(s + i * is, m) : v_set(0);
    }
    v_transpose(r);
    if (k >= V_LANES && space >= V_LANES) {
#pragma GCC unroll 16
        for (int p = 0; p < V_LANES; p++)
            v_store(out + p * width, r[p]);
        return;
    }
    const v_mask m = V_FIRST((int)WF_MIN(space, V_LANES));
#pragma GCC unroll 16
    for (int p = 0; p < V_LANES; p++)
        if (p < k)
            v_store_mask(out + p * width, m, r[p]);
}

/* Prefetches a cache line of each row, because the hardware prefetcher does not follow rows that are pages apart. Near the end of a
 * panel the lines are those of the next panel. A prefetch past the last panel has no effect. */
V_INLINE void prefetch_rows(const wf_real *s, int64_t is, const int width)
{
    for (int i = 0; i < width; i++)
        __builtin_prefetch(s + i * is);
}

V_INLINE void pack(const int width, int64_t w, int64_t k, const wf_real *s, int64_t is, int64_t ps, wf_real *out)
{
    /* vectors in a row of the wider of the two panels; NR and MR are their widths, and MR is at most 16 */
    enum { MAX_VECTORS = NR > 16 ? NR / V_LANES : (16 + V_LANES - 1) / V_LANES };
    const int vectors = (width + V_LANES - 1) / V_LANES;
    if (is == 1) {
        if (w == width && width % V_LANES == 0) {
            for (int64_t p = 0; p < k; p++, s += ps, out += width)
#pragma GCC unroll 8
                for (int v = 0; v < vectors; v++)
                    v_store(out + v * V_LANES, v_load(s + v * V_LANES));
            return;
        }
        v_mask from[MAX_VECTORS], to[MAX_VECTORS];
        for (int v = 0; v < vectors; v++) {
            const int64_t present = w - v * V_LANES, space = width - v * V_LANES;
            from[v] = V_FIRST((int)WF_MAX(0, WF_MIN(present, V_LANES)));
            to[v] = V_FIRST((int)WF_MIN(space, V_LANES));
        }
        for (int64_t p = 0; p < k; p++, s += ps, out += width) {
            /* A is packed PACK_K steps at a time, so these are the steps that the next call packs for this panel. */
            __builtin_prefetch(s + PACK_K_AHEAD * ps);
#pragma GCC unroll 8
            for (int v = 0; v < vectors; v++)
                v_store_mask(out + v * V_LANES, to[v], v_load_mask(s + v * V_LANES, from[v]));
        }
    } else if (ps == 1) {
        for (int64_t p = 0; p < k; p += V_LANES) {
            if (p % LINE == 0) {
                const int64_t then = p + PACK_LINES_AHEAD * LINE;
                prefetch_rows(then < k ? s + then : s + width * is + (then - k), is, width);
            }
            for (int v = 0; v < vectors; v++)
                transpose(w - v * V_LANES, k - p, s + v * V_LANES * is + p, is, width, width - v * V_LANES, out + p * width + v * V_LANES);
        }
    } else {
        for (int64_t p = 0; p < k; p++, out += width)
            for (int64_t i = 0; i < width; i++)
                out[i] = i < w ? s[i * is + p * ps] : 0;
    }
}

void WF_GEMM(pack_b_panel)(int64_t w, int64_t k, const wf_real *s, int64_t is, int64_t ps, wf_real *out)
{
    pack(NR, w, k, s, is, ps, out);
}

void WF_GEMM(pack_b_vector)(int64_t w, int64_t k, const wf_real *s, int64_t is, int64_t ps, wf_real *out)
{
    pack(V_LANES, w, k, s, is, ps, out);
}

void WF_GEMM(pack_a_panel)(int64_t w, int64_t k, const wf_real *s, int64_t is, int64_t ps, wf_real *out)
{
    pack(MR, w, k, s, is, ps, out);
}

#ifndef WF_DOUBLE
/* Widens a piece of B to floats in the first-level cache, and packs that. */
void WF_GEMM(pack_b_panel_bf16)(int64_t w, int64_t k, const uint16_t *s, int64_t is, int64_t ps, float *out)
{
    enum { STEPS = 64 };
    _Alignas(64) float piece[NR * STEPS];
    for (int64_t p = 0; p < k; p += STEPS) {
        const int64_t steps = WF_MIN(k - p, STEPS);
        const bool by_line = is != 1; /* lines of k, or steps of lines */
        const int64_t runs = by_line ? w : steps, length = by_line ? steps : w, run = by_line ? STEPS : NR;
        const uint16_t *from = s + p * ps;
        for (int64_t i = 0; i < runs; i++)
            bf16_widen(length, from + i * (by_line ? is : ps), by_line ? ps : is, piece + i * run);
        pack(NR, w, steps, piece, by_line ? run : 1, by_line ? 1 : run, out + p * NR);
    }
}
#endif
