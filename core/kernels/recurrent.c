/* SPDX-License-Identifier: MIT */
/* Steps of LSTM and GRU (weft/internal/recurrent.h). A tile is TILE rows and WIDE registers of columns, whose sums stay in registers: in
 * the forward the G gates of V_N units, in the backward up to WIDE * V_N units. Weights are packed into panels, one for the columns of a
 * tile, so that a product reads them from beginning to end. */
#include <weft/internal/recurrent.h>

#include "../transpose.h"
#include "vmath.h"

enum {
    WIDE = 4,
#ifdef WF_ISA_AVX512
    TILE = 6
#else
    TILE = 3
#endif
};

struct tile {
    wf_real sum[TILE][WIDE][V_LANES];
};

/* --- packing --------------------------------------------------------------------------------------------------------- */

/* to[l * stride + j] = w[j * ld + l] for l < k and j < V_N, where rows from `rows` on count as zeros. */
static void pack_rows(int64_t rows, int64_t k, int64_t ld, const wf_real *w, int64_t stride, wf_real *to)
{
    int64_t l = 0;
    for (; rows >= V_N && l + V_N <= k; l += V_N) {
        vr r[V_LANES];
        for (int j = 0; j < V_LANES; j++)
            r[j] = v_load(w + j * ld + l);
        v_transpose(r);
        for (int j = 0; j < V_LANES; j++)
            v_store(to + (l + j) * stride, r[j]);
    }
    for (; l < k; l++)
        for (int64_t j = 0; j < V_N; j++)
            to[l * stride + j] = j < rows ? w[j * ld + l] : 0;
}

/* Panel of the units u ...: for each column of W the G gates, V_N units each. */
void WF_KERNEL(cell_pack)(bool gru, int64_t hidden, const wf_real *w, int64_t begin, int64_t end, wf_real *to)
{
    const int64_t G = gru ? 3 : 4;
    for (int64_t u = begin; u < end; u += V_N)
        for (int64_t g = 0; g < G; g++)
            pack_rows(WF_MIN(hidden - u, V_N), hidden, hidden, w + (g * hidden + u) * hidden, G * V_N, to + u * G * hidden + g * V_N);
}

/* Panel of the units u ...: for each row of W the WIDE * V_N units, or as many registers as cover the last units. */
void WF_KERNEL(cell_pack_back)(bool gru, int64_t hidden, const wf_real *w, int64_t begin, int64_t end, wf_real *to)
{
    const int64_t k = (gru ? 3 : 4) * hidden;
    for (int64_t u = begin; u < end; u += WIDE * V_N) {
        const int64_t units = WF_MIN(hidden - u, WIDE * V_N), width = (units + V_N - 1) / V_N * V_N;
        wf_real *panel = to + u * k;
        for (int64_t l = 0; l < k; l++, panel += width)
            for (int64_t j = 0; j < width; j++)
                panel[j] = j < units ? w[l * hidden + u + j] : 0;
    }
}

/* --- products -------------------------------------------------------------------------------------------------------- */

/* sum[i][j] += the product of k elements of a[i] and column j of the panel b. Besides the sums, one register for each row and one for a
 * column are in use, which fills the 16 registers of AVX2. */
V_INLINE void multiply(int rows, int wide, int64_t k, const wf_real *const a[TILE], const wf_real *b, vr sum[TILE][WIDE])
{
#pragma GCC unroll 1 /* GCC runs out of registers if it unrolls */
    for (int64_t l = 0; l < k; l++, b += wide * V_N) {
        vr x[TILE];
#pragma GCC unroll 6
        for (int i = 0; i < rows; i++)
            x[i] = v_set(a[i][l]);
#pragma GCC unroll 4
        for (int j = 0; j < wide; j++) {
            const vr column = v_load(b + j * V_N);
#pragma GCC unroll 6
            for (int i = 0; i < rows; i++)
                sum[i][j] = v_fma(x[i], column, sum[i][j]);
        }
    }
}

/* The sums of a tile. The rows are a[i][0 .. k-1], followed by k2 elements that begin at a[i][skip]. */
V_INLINE void product(int rows, int wide, const struct wf_cell_row *row, int64_t k, int64_t skip, int64_t k2, const wf_real *b,
                      struct tile *t)
{
    const wf_real *a[TILE];
    vr sum[TILE][WIDE];
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++) {
        a[i] = row[i].from;
#pragma GCC unroll 4
        for (int j = 0; j < wide; j++)
            sum[i][j] = v_set(0);
    }
    multiply(rows, wide, k, a, b, sum);
    if (k2 > 0) {
        for (int i = 0; i < rows; i++)
            a[i] += skip;
        multiply(rows, wide, k2, a, b + k * wide * V_N, sum);
    }
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int j = 0; j < wide; j++)
            v_store(t->sum[i][j], sum[i][j]);
}

#define TILE_OF(n, w)                                                                                                                      \
    case n:                                                                                                                                \
        product(n, w, row, k, skip, k2, b, t);                                                                                             \
        break;
#if defined(WF_ISA_AVX512)
#define TILES(w) TILE_OF(1, w) TILE_OF(2, w) TILE_OF(3, w) TILE_OF(4, w) TILE_OF(5, w) TILE_OF(6, w)
#else
#define TILES(w) TILE_OF(1, w) TILE_OF(2, w) TILE_OF(3, w)
#endif
#define PRODUCT(w)                                                                                                                         \
    static void product_##w(int rows, const struct wf_cell_row *row, int64_t k, int64_t skip, int64_t k2, const wf_real *b,                \
                            struct tile *t)                                                                                                \
    {                                                                                                                                      \
        switch (rows) {                                                                                                                    \
            TILES(w)                                                                                                                       \
        }                                                                                                                                  \
    }
PRODUCT(1)
PRODUCT(2)
PRODUCT(3)
PRODUCT(4)
typedef void product_function(int rows, const struct wf_cell_row *row, int64_t k, int64_t skip, int64_t k2, const wf_real *b,
                              struct tile *t);
static product_function *const product_of[] = {NULL, product_1, product_2, product_3, product_4};

/* Rows of the tile that begins with row i. Tiles have nearly equal sizes, and no tile has both rows with a product and rows without. */
static int tile_rows(const struct wf_cell *c, int64_t i)
{
    const int64_t left = (i < c->products ? c->products : c->rows) - i, tiles = (left + TILE - 1) / TILE;
    return (int)((left + tiles - 1) / tiles);
}

/* --- forward --------------------------------------------------------------------------------------------------------- */

V_INLINE vr at(const wf_real *p, int64_t u, int64_t n)
{
    return p ? v_get(p + u, n) : v_set(0);
}

V_INLINE void lstm_units(const struct wf_cell *c, const struct wf_cell_row *row, const wf_real sum[WIDE][V_LANES], int64_t u, int64_t n)
{
    const int64_t H = c->hidden;
    const vr i = v_sigmoid(v_load(sum[0]) + v_get(row->gates + u, n)), f = v_sigmoid(v_load(sum[1]) + v_get(row->gates + H + u, n));
    const vr g = v_tanh(v_load(sum[2]) + v_get(row->gates + 2 * H + u, n)),
             o = v_sigmoid(v_load(sum[3]) + v_get(row->gates + 3 * H + u, n));
    const vr cell = v_fma(f, at(row->before, u, n), i * g);
    v_put(row->gates + u, i, n);
    v_put(row->gates + H + u, f, n);
    v_put(row->gates + 2 * H + u, g, n);
    v_put(row->gates + 3 * H + u, o, n);
    v_put(row->kept + u, cell, n);
    v_put(row->h + u, o * v_tanh(cell), n);
}

V_INLINE void gru_units(const struct wf_cell *c, const struct wf_cell_row *row, const wf_real sum[WIDE][V_LANES], int64_t u, int64_t n)
{
    const int64_t H = c->hidden;
    const vr r = v_sigmoid(v_load(sum[0]) + v_get(row->gates + u, n)), z = v_sigmoid(v_load(sum[1]) + v_get(row->gates + H + u, n));
    const vr s = v_load(sum[2]) + at(c->bias, u, n);
    const vr candidate = v_tanh(v_fma(r, s, v_get(row->gates + 2 * H + u, n)));
    v_put(row->gates + u, r, n);
    v_put(row->gates + H + u, z, n);
    v_put(row->gates + 2 * H + u, candidate, n);
    v_put(row->kept + u, s, n);
    v_put(row->h + u, v_fma(z, at(row->before, u, n) - candidate, candidate), n);
}

V_INLINE void forward_part(const struct wf_cell *c, const struct wf_cell_row *row, const wf_real sum[WIDE][V_LANES], int64_t u, int64_t n)
{
    if (c->gru)
        gru_units(c, row, sum, u, n);
    else
        lstm_units(c, row, sum, u, n);
}

/* The gates lie in memory that was last used long ago. */
static void prefetch(const struct wf_cell *c, const struct wf_cell_row *row, int rows, int64_t u)
{
    for (int i = 0; i < rows; i++)
        for (int g = 0; g < (c->gru ? 3 : 4); g++)
            __builtin_prefetch(row[i].gates + g * c->hidden + u);
}

void WF_KERNEL(cell)(const struct wf_cell *c, int64_t begin, int64_t end)
{
    const int64_t H = c->hidden, G = c->gru ? 3 : 4;
    struct tile t;
    for (int64_t u = begin; u < end; u += V_N) {
        const int64_t n = WF_MIN(H - u, V_N);
        for (int64_t i = 0; i < c->rows;) {
            const int rows = tile_rows(c, i);
            prefetch(c, c->row + i, rows, u);
            if (i < c->products)
                product_of[G](rows, c->row + i, H, 0, 0, c->weights + u * G * H, &t);
            else
                t = (struct tile){0};
            for (int r = 0; r < rows; r++, i++)
                if (n == V_N)
                    forward_part(c, c->row + i, t.sum[r], u, V_N);
                else
                    forward_part(c, c->row + i, t.sum[r], u, n);
        }
    }
}

/* --- backward -------------------------------------------------------------------------------------------------------- */

/* With dh = the gradient of h' and dc = carry + dh o (1 - tanh(c')^2), the gradient of c' (in the comment c):
 *   do = dh tanh(c),  di = dc g,  dg = dc i,  df = dc c_before,  and the gradient of c_before is dc f.
 * The derivatives of sigmoid and tanh are s (1 - s) and 1 - g^2. */
V_INLINE void lstm_grads(const struct wf_cell *c, const struct wf_cell_row *row, vr dh, int64_t u, int64_t n)
{
    const int64_t H = c->hidden;
    const vr i = v_get(row->gates + u, n), f = v_get(row->gates + H + u, n), g = v_get(row->gates + 2 * H + u, n),
             o = v_get(row->gates + 3 * H + u, n), tanh_c = v_tanh(v_get(row->kept + u, n)), one = v_set(1);
    const vr dc = v_fma(dh * o, v_fnma(tanh_c, tanh_c, one), v_get(row->carry + u, n));
    v_put(row->grads + u, dc * g * (i * (one - i)), n);
    v_put(row->grads + H + u, dc * at(row->before, u, n) * (f * (one - f)), n);
    v_put(row->grads + 2 * H + u, dc * i * v_fnma(g, g, one), n);
    v_put(row->grads + 3 * H + u, dh * tanh_c * (o * (one - o)), n);
    v_put(row->carry + u, dc * f, n);
}

/* With dh = the gradient of h' = n + z (h - n): dn = dh (1 - z), dz = dh (h - n), and h gets dh z besides what comes through W. With d =
 * dn (1 - n^2), the gradient before tanh: ds = d r and dr = d s. */
V_INLINE void gru_grads(const struct wf_cell *c, const struct wf_cell_row *row, vr dh, int64_t u, int64_t n)
{
    const int64_t H = c->hidden;
    const vr r = v_get(row->gates + u, n), z = v_get(row->gates + H + u, n), candidate = v_get(row->gates + 2 * H + u, n), one = v_set(1);
    const vr d = dh * (one - z) * v_fnma(candidate, candidate, one);
    v_put(row->grads + u, d * v_get(row->kept + u, n) * (r * (one - r)), n);
    v_put(row->grads + H + u, dh * (at(row->before, u, n) - candidate) * (z * (one - z)), n);
    v_put(row->grads + 2 * H + u, d, n);
    v_put(row->grads + 3 * H + u, d * r, n);
    v_put(row->carry + u, dh * z, n);
}

V_INLINE void backward_part(const struct wf_cell *c, const struct wf_cell_row *row, const wf_real *sum, int64_t u, int64_t n)
{
    vr dh = v_load(sum) + at(row->dy, u, n) + at(row->last, u, n);
    if (c->gru)
        dh += v_get(row->carry + u, n);
    if (row->start)
        v_put(row->start + u, dh, n);
    else if (c->gru)
        gru_grads(c, row, dh, u, n);
    else
        lstm_grads(c, row, dh, u, n);
}

void WF_KERNEL(cell_back)(const struct wf_cell *c, int64_t begin, int64_t end)
{
    const int64_t H = c->hidden, k = (c->gru ? 3 : 4) * H;
    struct tile t;
    for (int64_t u = begin; u < end; u += WIDE * V_N) {
        const int64_t units = WF_MIN(H - u, WIDE * V_N);
        const int wide = (int)((units + V_N - 1) / V_N);
        for (int64_t i = 0; i < c->rows;) {
            const int rows = tile_rows(c, i);
            if (i >= c->products)
                t = (struct tile){0};
            else if (c->gru) /* the gradients of r, z and s; that of n stands between them */
                product_of[wide](rows, c->row + i, 2 * H, 3 * H, H, c->weights + u * k, &t);
            else
                product_of[wide](rows, c->row + i, 4 * H, 0, 0, c->weights + u * k, &t);
            for (int r = 0; r < rows; r++, i++)
                for (int j = 0; j < wide; j++) {
                    const int64_t n = WF_MIN(units - j * V_N, V_N);
                    if (n == V_N)
                        backward_part(c, c->row + i, t.sum[r][j], u + j * V_N, V_N);
                    else
                        backward_part(c, c->row + i, t.sum[r][j], u + j * V_N, n);
                }
        }
    }
}
