/* SPDX-License-Identifier: MIT */
/* Structs and functions shared by the files of the gradient check. */
#ifndef WEFT_AUTOGRAD_GRADCHECK_H
#define WEFT_AUTOGRAD_GRADCHECK_H

#include <weft/gradcheck.h>

/* The layout of an operand in memory. */
enum layout { LAYOUT_CONTIGUOUS, LAYOUT_TRANSPOSED, LAYOUT_SLICED, LAYOUT_BROADCAST, LAYOUTS };

/* The `ctx` of apply_op (gradcheck_op.c). In a check of an op, `fn` of struct check is apply_op. */
struct applied {
    const wf_op *op;
    const void *attr;
    int inputs;
    unsigned constant; /* for the check of .gradient: bit i is set if real input i has no gradient */
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
    wf_real *grad; /* the gradient from backward, contiguous */
    bool constant; /* the case says that this real input has no gradient */
    int64_t count;
};

/* A check of one function: of a caller's function, or of the call of an op in one case. All other runs of the function are compared with
 * its plain run (check_plain_run). */
struct check {
    wf_function fn;
    void *ctx;
    const char *what;
    int inputs;
    struct check_input in[WF_MAX_INPUTS];
    wf_mode mode;
    bool constant;       /* the op is .constant, so only values are checked */
    bool differentiates; /* fn takes gradients, so its operands need gradients in every run */
    bool routed;         /* the operands are results of wf_scale instead of leaves, so that a backward releases their values */
    enum wf_precision precision;
    double tolerance, step;
    uint64_t seed;
    wf_tape *tape;
    struct wf_arena *arena; /* holds the arrays of `in`, and `weight`, `result` and `moved` */
    wf_real *weight;        /* R: a random factor for each element of the result */
    wf_real *result;        /* the result of the plain run */
    wf_real *moved;         /* the result for changed inputs */
    wf_shape result_shape;
    int64_t results; /* number of elements of the result */
    wf_error *error;
};

bool check_is_real(const struct check_input *in);
bool check_has_gradient(const struct check_input *in);
/* Before this call the caller sets in *k the members fn, `inputs`, and `shape` and `fill` of each input. Later the caller must call
 * check_end, also after an error. */
wf_status check_begin(struct check *k, const struct wf_gradcheck_options *options);
void check_end(struct check *k);
/* An array of `count` reals that lives until check_end. If there is no memory, returns NULL and sets k->error. */
wf_real *check_memory(struct check *k, int64_t count);
/* Copies the tape's error to k->error, and puts the names of the check and of the situation in front of the message. Returns the error's
 * code. */
wf_status check_status(struct check *k, const char *situation);
/* Makes the operands on the tape. leaf[i] is the contiguous tensor of input i, and operand[i] is a view of it (if k->routed, of its
 * wf_scale by 1) in the layout. Bit i of `need` says that leaf[i] needs a gradient. */
wf_status check_operands(struct check *k, wf_mode mode, unsigned need, enum layout layout, wf_tensor *leaf[], wf_tensor *operand[]);
/* Sets *out to the gradient of `leaf`, as a view in the shape of the operand. */
wf_status check_leaf_grad(struct check *k, int input, enum layout layout, wf_tensor *leaf, wf_array *out);
wf_tensor *check_weighted_sum(struct check *k, wf_tensor *y);
/* Runs the function, and wf_backward from the weighted sum of its result. */
wf_status check_backward(struct check *k, const char *situation, wf_tensor *const operand[]);
/* Runs the function on contiguous operands, and stores its result and the gradients of all inputs. Other runs are compared with these. */
wf_status check_plain_run(struct check *k);
wf_status check_numeric(struct check *k);
/* Checks an op (k->ctx is a struct applied) in all situations. Must be called after check_plain_run, because each situation must give the
 * values of the plain run. */
wf_status check_all_situations(struct check *k);
/* Compares values with those of the plain run; `what` and `input` name them in the message. */
wf_status check_same(struct check *k, const char *situation, const char *what, int input, const wf_array *got, const wf_real *expected);
/* Checks the op's .gradient in the case (gradcheck_gradient.c). Must be called after check_plain_run. */
wf_status check_gradient(struct check *k, const struct wf_gradcheck_options *options);

#endif
