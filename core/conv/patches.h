/* SPDX-License-Identifier: MIT */
/* The matrix of patches of a convolution, which is never in memory as a whole. */
#ifndef WEFT_CONV_PATCHES_H
#define WEFT_CONV_PATCHES_H

#include <weft/internal/conv.h>

#include "../gemm/private.h"

/* The place at which a tap of the kernel reads, counted from the position of a patch. */
struct conv_tap {
    int64_t row, col;
};

/* Row c * taps + t of the matrix belongs to channel c and tap t, and column (b * rows + i) * cols + j to the patch (i, j) of picture b. The
 * element is x[b][c][i * row_step + tap[t].row][j * col_step + tap[t].col], or 0 outside of the picture. */
struct conv_patches {
    const wf_real *x;
    int64_t batch_step, channel_step; /* elements from one picture, or channel, to the next; rows lie end to end */
    int64_t channels, height, width;
    const struct conv_tap *tap;
    int64_t taps;
    int64_t batch, rows, cols;
    int64_t row_step, col_step;
};

/* A run of columns of one picture and one row of patches, as a tap sees it. */
struct conv_run {
    int64_t at;     /* the element of x of its first column, counted from the channel's first in picture 0; it may lie outside */
    int64_t length; /* number of columns */
    int64_t lo, hi; /* the columns lo .. hi - 1 read inside of the picture */
};

/* The run that begins at column n, and ends at column `end` at the latest. */
static inline struct conv_run conv_run_at(const struct conv_patches *p, const struct conv_tap *tap, int64_t n, int64_t end)
{
    const int64_t line = n / p->cols, j = n % p->cols, b = line / p->rows, i = line % p->rows;
    const int64_t row = i * p->row_step + tap->row, col = j * p->col_step + tap->col, step = p->col_step;
    struct conv_run r = {.at = b * p->batch_step + row * p->width + col, .length = WF_MIN(p->cols - j, end - n)};
    if (row < 0 || row >= p->height)
        return r;
    r.lo = col < 0 ? WF_MIN((-col + step - 1) / step, r.length) : 0;
    r.hi = col < p->width ? WF_MIN((p->width - 1 - col) / step + 1, r.length) : 0;
    r.hi = WF_MAX(r.hi, r.lo);
    return r;
}

/* A padded copy of a band of x: a block of rows and columns of some channels of one picture. If the step of columns is above 1, each row
 * lies as one part for each remainder by the step, so that the elements that successive outputs read lie side by side. The kernels store
 * whole vectors: a copy needs a vector more of memory at its end. */
struct conv_band {
    const wf_real *x; /* the first channel of the picture */
    int64_t channel_step, height, width;
    int64_t row, col; /* the element of the picture at the band's first row and column; either may be negative */
    int64_t channels, rows;
    int64_t step, part; /* of columns; elements of a part */
    int64_t plane;      /* elements from one channel of the copy to the next */
};

/* The outputs (i, j) of a filter that reads one channel, whose tap t reads x[at[t] + i * x_step + j]. */
struct conv_outputs {
    int64_t rows, cols, taps;
    const wf_real *x;
    int64_t x_step;
    const int64_t *at;
};

/* The same for a vector of channels, whose elements of one position lie side by side: tap t of output (i, j) reads the vector that begins
 * at x[at[t] + i * row_step + j * col_step]. */
struct conv_lanes {
    int64_t rows, cols, taps;
    const wf_real *x;
    int64_t row_step, col_step;
    const int64_t *at;
};

/* Two vectors of outputs, side by side or not, for m filters: c[v][i * c_step] = bias[i] + the sum over p < k of a(i, p) times
 * b[v][offset[p]], in ascending p from 0. */
struct conv_tiles {
    int64_t m, k;
    int64_t from, to; /* the panels of a that are multiplied; the others' filters are left alone */
    const wf_real *a; /* packed in panels of up to MR rows, as gemm_cut divides m, which are k * MR elements apart */
    const int64_t *offset;
    const wf_real *b[2];
    wf_real *c[2];
    int64_t tail[2]; /* lanes of the vector that are outputs; only they are stored */
    int64_t c_step;
    const wf_real *bias; /* NULL: 0 */
    bool add;            /* to c */
};

/* Sums for the gradient of the weight, from a copy of x whose channels lie side by side. A pair is two vectors of sums for each filter, of
 * the same tap or of two: with v = 0 or 1, c[(p * filters + f) * NR + v * V_LANES + i] is the sum over the outputs (l, j) of
 * dy[f * dy_step + dy_line[l] + j] times x[offset[2 p + v] + x_line[l] + j * x_step + i], in this order. */
struct conv_sums {
    int64_t filters, pairs, lines, cols;
    const wf_real *dy, *x;
    int64_t dy_step, x_step;
    const int64_t *dy_line, *x_line, *offset;
    wf_real *c;
    bool add; /* to c */
};

#endif
