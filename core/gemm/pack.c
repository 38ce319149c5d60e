/* SPDX-License-Identifier: MIT */
/* Packing: panels in the order in which the micro-kernels read them. */
#include "simd.h"

/* A square of the source with contiguous k, at most LANES rows of it and LANES steps of k, is turned in registers. */
INLINE void turn(int64_t w, int64_t k, const wf_real *s, int64_t is, const int width, int64_t room, wf_real *out)
{
    vec r[LANES];
    if (w >= LANES && k >= LANES) {
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++)
            r[i] = load(s + i * is);
    } else {
        const mask m = first((int)(k < LANES ? k : LANES));
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++)
            r[i] = i < w ? load_first(s + i * is, m) : zero();
    }
    transpose(r);
    if (k >= LANES && room >= LANES) {
#pragma GCC unroll 16
        for (int p = 0; p < LANES; p++)
            store(out + p * width, r[p]);
        return;
    }
    const mask m = first((int)(room < LANES ? room : LANES));
#pragma GCC unroll 16
    for (int p = 0; p < LANES; p++)
        if (p < k)
            store_first(out + p * width, m, r[p]);
}

INLINE void pack(const int width, int64_t w, int64_t k, const wf_real *s, int64_t is, int64_t ps, wf_real *out)
{
    enum { MOST = TILE_N > 16 ? TILE_N / LANES : (16 + LANES - 1) / LANES };
    const int vectors = (width + LANES - 1) / LANES;
    if (is == 1) {
        if (w == width && width % LANES == 0) {
            for (int64_t p = 0; p < k; p++, s += ps, out += width)
#pragma GCC unroll 8
                for (int v = 0; v < vectors; v++)
                    store(out + v * LANES, load(s + v * LANES));
            return;
        }
        mask from[MOST], to[MOST];
        for (int v = 0; v < vectors; v++) {
            const int64_t have = w - v * LANES, room = width - v * LANES;
            from[v] = first((int)(have < 0 ? 0 : have < LANES ? have : LANES));
            to[v] = first((int)(room < LANES ? room : LANES));
        }
        for (int64_t p = 0; p < k; p++, s += ps, out += width)
#pragma GCC unroll 8
            for (int v = 0; v < vectors; v++)
                store_first(out + v * LANES, to[v], load_first(s + v * LANES, from[v]));
    } else if (ps == 1) {
        for (int64_t p = 0; p < k; p += LANES)
            for (int v = 0; v < vectors; v++)
                turn(w - v * LANES, k - p, s + v * LANES * is + p, is, width, width - v * LANES, out + p * width + v * LANES);
    } else {
        for (int64_t p = 0; p < k; p++, out += width)
            for (int64_t i = 0; i < width; i++)
                out[i] = i < w ? s[i * is + p * ps] : 0;
    }
}

void WF_GEMM(pack_n)(int64_t w, int64_t k, const wf_real *s, int64_t is, int64_t ps, wf_real *out)
{
    pack(TILE_N, w, k, s, is, ps, out);
}

void WF_GEMM(pack_m)(int64_t w, int64_t k, const wf_real *s, int64_t is, int64_t ps, wf_real *out)
{
    pack(TILE_M, w, k, s, is, ps, out);
}
