/* SPDX-License-Identifier: MIT */
/* What the two files of the gradient check share. */
#ifndef WEFT_AUTOGRAD_GRADCHECK_H
#define WEFT_AUTOGRAD_GRADCHECK_H

#include <weft/gradcheck.h>

/* How an operand lies in memory. */
enum layout { LAYOUT_DENSE, LAYOUT_TRANSPOSED, LAYOUT_SLICED, LAYOUT_BROADCAST, LAYOUTS };

struct check_input {
    wf_shape shape;
    enum wf_fill fill;
    int32_t limit;
    wf_real *value; /* reals */
    void *other;    /* ids or bools */
    wf_real *grad;  /* analytic, dense */
    int64_t count;
};

struct check {
    wf_function fn;
    void *ctx;
    const char *what;
    int inputs;
    struct check_input in[WF_MAX_INPUTS];
    wf_mode mode;
    double tolerance, step;
    uint64_t seed;
    wf_tape *tape;
    wf_real *weight; /* R, one for each element of the result */
    int64_t results;
    wf_error *error;
};

bool check_is_real(const struct check_input *in);
wf_status check_begin(struct check *k);
void check_end(struct check *k);
/* Makes the operands on the tape: leaf[i] are the dense tensors behind them. */
wf_status check_operands(struct check *k, wf_mode mode, unsigned need, enum layout layout, wf_tensor *leaf[], wf_tensor *operand[]);
/* The gradient of leaf, seen in the operand's shape. */
wf_status check_leaf_grad(struct check *k, int input, enum layout layout, wf_tensor *leaf, wf_array *out);
wf_tensor *check_weighted_sum(struct check *k, wf_tensor *y);
wf_status check_numeric(struct check *k);

#endif
