/* SPDX-License-Identifier: MIT */
/* One step of an LSTM or GRU layer for some rows of a batch and some of the H units: the product with the recurrent weights W [G H, H] and
 * the arithmetic of the gates, in one pass. The kernels are in core/kernels/recurrent.c, the ops in autograd/ops/recurrent.c. G is 4 for
 * the LSTM, whose gates are i, f, g, o, and 3 for the GRU, with r, z, n.
 *
 *   LSTM: i, f, o = sigmoid(x_i + W_i h), ..., g = tanh(x_g + W_g h);  c' = f c + i g;  h' = o tanh(c')
 *   GRU: r, z = sigmoid(x_r + W_r h), sigmoid(x_z + W_z h);  s = W_n h + b;  n = tanh(x_n + r s);  h' = n + z (h - n)
 *
 * x_i, x_f, ... are the products of the input, biases included. The products with W are sums in the order of W's columns (in the backward
 * of W's rows), each term added by v_fma, so the bits of a unit depend on its own row alone. */
#ifndef WEFT_INTERNAL_RECURRENT_H
#define WEFT_INTERNAL_RECURRENT_H

#include <weft/compute.h>

enum {
    WF_CELL_UNITS = 16,     /* begin of a kernel's range of units is a multiple of this in the forward ... */
    WF_CELL_UNITS_BACK = 64 /* ... and of this in the backward */
};

/* A row of the batch at this step. All arrays are [H], except where [G H] is stated. */
struct wf_cell_row {
    /* Forward: the state h before the step. Backward: the gradients that the following step wrote to `grads`. NULL: no product. */
    const wf_real *from;
    wf_real *gates;        /* [G H]. Forward: the input products, which the gates replace. Backward: the gates */
    wf_real *kept;         /* LSTM: c'. GRU: s */
    const wf_real *before; /* LSTM: c. GRU: h. NULL: zeros */
    wf_real *h;            /* forward: h' */
    /* Backward: */
    const wf_real *dy;   /* the gradient of h' from the result y; NULL: zeros */
    const wf_real *last; /* another gradient of h'; NULL: zeros */
    wf_real *carry;      /* LSTM: the gradient of c', which that of c replaces. GRU: the part of the gradient of h' that came through z,
                            which that of h replaces */
    wf_real *grads;      /* the gradients before the activations. LSTM: [4 H], of i, f, g, o. GRU: [4 H], of r, z, n and s */
    wf_real *start;      /* if not NULL, the row is before its first step: only the gradient of the initial h is computed, here */
};

struct wf_cell {
    bool gru;
    int64_t hidden;         /* H */
    const wf_real *weights; /* W, packed by cell_pack or cell_pack_back */
    const wf_real *bias;    /* GRU: b [H]; NULL: zeros */
    int64_t rows;
    int64_t products; /* this many rows, which come first, have `from` */
    const struct wf_cell_row *row;
};

/* Elements of packed weights. */
static inline int64_t wf_cell_packed(bool gru, int64_t hidden, bool back)
{
    const int64_t units = back ? WF_CELL_UNITS_BACK : WF_CELL_UNITS;
    return (hidden + units - 1) / units * units * (gru ? 3 : 4) * hidden;
}

#endif
