/* SPDX-License-Identifier: MIT */
/* Structs and functions shared by the files of the gradient check. */
#ifndef WEFT_AUTOGRAD_GRADCHECK_H
#define WEFT_AUTOGRAD_GRADCHECK_H

#include <weft/gradcheck.h>

/* How an operand lies in memory. */
enum layout { LAYOUT_CONTIGUOUS, LAYOUT_TRANSPOSED, LAYOUT_SLICED, LAYOUT_BROADCAST, LAYOUTS };

/* The context of a check of an op. */
struct applied {
    const wf_op *op;
    const void *attr;
    int inputs;
};

struct check_input {
    wf_shape shape;
    enum wf_fill fill;
    int32_t limit;
    union {
        wf_real *value;
        int32_t *ids;
        bool *bools;
    };
    wf_real *grad; /* analytic, contiguous */
    bool constant; /* real, without a gradient */
    int64_t count;
};

struct check {
    wf_function fn;
    void *ctx;
    const char *what;
    int inputs;
    struct check_input in[WF_MAX_INPUTS];
    wf_mode mode;
    bool constant; /* the op is .constant: values only */
    bool routed;   /* operands are results of an op, not leaves: the engine releases their values in backward */
    double tolerance, step;
    uint64_t seed;
    wf_tape *tape;
    struct wf_arena *arena; /* of everything below and of the inputs */
    wf_real *weight;        /* R, one for each element of the result */
    wf_real *result;        /* of the plain run */
    wf_real *moved;         /* the result at other inputs */
    int64_t results;
    wf_error *error;
};

bool check_is_real(const struct check_input *in);
bool check_has_gradient(const struct check_input *in);
/* The inputs stand in k; check_end follows in any case. */
wf_status check_begin(struct check *k, const struct wf_gradcheck_options *options);
void check_end(struct check *k);
/* Reals that live until check_end; NULL, with the error set, without memory. */
wf_real *check_memory(struct check *k, int64_t count);
/* The tape's error, with the situation before it. */
wf_status check_status(struct check *k, const char *situation);
/* Makes the operands on the tape: leaf[i] are the contiguous tensors behind them. */
wf_status check_operands(struct check *k, wf_mode mode, unsigned need, enum layout layout, wf_tensor *leaf[], wf_tensor *operand[]);
/* The gradient of leaf, seen in the operand's shape. */
wf_status check_leaf_grad(struct check *k, int input, enum layout layout, wf_tensor *leaf, wf_array *out);
wf_tensor *check_weighted_sum(struct check *k, wf_tensor *y);
/* The backward of the weighted sum of the function's result. */
wf_status check_backward(struct check *k, const char *situation, wf_tensor *const operand[]);
/* Result and gradients of all inputs as they are. */
wf_status check_plain_run(struct check *k);
wf_status check_numeric(struct check *k);
/* After the plain run, which all others have to equal; of an op (struct applied). */
wf_status check_all_situations(struct check *k);

#endif
