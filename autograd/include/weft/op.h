/* SPDX-License-Identifier: MIT */
/* The descriptor of an op. Any program can define one. A descriptor holds the functions `shape` (the shape rule), `forward` and `backward`,
 * and the cases of the gradient check. A function such as my_double below applies it with wf_apply. docs/ops.md explains each part with
 * examples.
 *
 *   static wf_status double_shape(wf_call *c) { c->out[0] = wf_call_like(c, &c->in[0]); return WF_OK; }
 *   static wf_status double_forward(wf_call *c) { ... c->in[0].data -> c->out[0].data ...; return WF_OK; }
 *   static wf_status double_backward(wf_call *c) { ... c->dout[0] -> wf_grad_new(c, 0) ...; return WF_OK; }
 *   const wf_op op_double = { .name = "double", .shape = double_shape, .forward = double_forward,
 *                             .backward = double_backward, .cases = WF_CASES({ .in = {{2, 3}} }) };
 *   wf_tensor *my_double(wf_tensor *x) { return wf_apply(&op_double, NULL, 1, &x); } */
#ifndef WEFT_OP_H
#define WEFT_OP_H

#include <weft/tape.h>

WF_BEGIN_DECLS

enum { WF_MAX_INPUTS = 8, WF_MAX_OUTPUTS = 4, WF_MAX_SAVED = 6 };

typedef struct wf_op wf_op;

/* One call of an op. in[i], called input i, is operand number i, and out[j], called output j, is result number j. Both are strided arrays.
 * If an operand is absent (the caller gave NULL), its data are NULL, and wf_has returns false. */
typedef struct wf_call {
    const wf_op *op;
    wf_tape *tape;
    const void *attr; /* a copy of the op's attributes, which lives as long as the record */
    int inputs, outputs;
    wf_array in[WF_MAX_INPUTS];
    /* The outputs. `shape` sets their dtype and dims. In `forward` they are contiguous, and their elements are not initialised. */
    wf_array out[WF_MAX_OUTPUTS];
    wf_array saved[WF_MAX_SAVED]; /* `shape` sets the dims of arrays that `forward` fills for `backward`. They have memory only if `grad` is
                                     true */
    bool grad;                    /* in `forward`: whether a backward may follow */
    bool rows_alone;              /* set in WF_INFER: the bits of a row must not depend on the other rows */
    enum wf_precision precision;  /* of the op's matrix products: for wf_matmul_options and wf_gemm */
    bool need[WF_MAX_INPUTS];     /* whether input i needs a gradient */
    /* In `backward`: the gradients of the outputs, read-only, with any strides. If an output has no gradient, its data are NULL. */
    wf_array dout[WF_MAX_OUTPUTS];
    uint64_t seed;         /* in the first pass of a step the tape's seed, later a seed drawn from it (struct wf_tape_options) */
    uint64_t step;         /* the number of the training step (struct wf_tape_options) */
    uint64_t first_row;    /* where this part of the batch begins: the index of its first row in the global batch */
    uint32_t dropout_call; /* the number of this call among the calls of ops with .random in this pass, from 0 */
    void *internal;        /* used by the engine only */
} wf_call;

/* One call of an op for `gradient`, which builds the gradient from ops on tensors. The arrays have c->inputs and c->outputs elements. */
typedef struct wf_gradient_call {
    wf_tape *tape;
    const void *attr; /* as in wf_call */
    int inputs, outputs;
    wf_tensor *const *x;  /* the operands; NULL if absent */
    wf_tensor *const *y;  /* the results */
    wf_tensor *const *dy; /* the gradients of the results; NULL if a result has none. dy[0] is never NULL if there is one result */
    const bool *need;     /* whether operand i needs a gradient */
    wf_tensor **dx;       /* to be set where `need` is set; NULL, as at the start, means zeros */
} wf_gradient_call;

/* How the gradient check chooses the values of an input. */
enum wf_fill {
    WF_FILL_NORMAL,   /* reals from N(0,1) */
    WF_FILL_POSITIVE, /* reals, uniform in [0.5, 2] */
    WF_FILL_APART,    /* reals apart from 0 and from each other, so that no value is at a kink or a tie */
    WF_FILL_IDS,      /* WF_I32, uniform in 0 .. limit-1; ids have no gradient */
    WF_FILL_BOOLS,    /* WF_BOOL; bools have no gradient */
    WF_FILL_ABSENT,   /* the operand is NULL */
    WF_FILL_UNIT      /* reals, uniform in [0.1, 0.9], for probabilities */
};
struct wf_case {
    const char *what;                       /* a name for messages; may be NULL */
    int64_t in[WF_MAX_INPUTS][WF_MAX_DIMS]; /* the dims of each input, ended by 0; -1 stands for a dimension of size 0, {-2} for a scalar */
    enum wf_fill fill[WF_MAX_INPUTS];
    int32_t limit[WF_MAX_INPUTS]; /* for WF_FILL_IDS: every id is below this number */
    int inputs;                   /* number of inputs; 0 means all inputs before the first one without dims */
    const void *attr;
    double bound; /* by how much results in float and in double may differ, relative to the norm of the result; 0 means 1e-5 */
    bool train;   /* run in WF_TRAIN, so that dropout is on; each evaluation has the same masks */
    /* Marks a real input for which the op computes no gradient, such as frequencies or class weights; the check then expects none. If such
     * an input needs a gradient nevertheless, .shape of the op, which sees this in c->need[i], must fail. */
    bool constant[WF_MAX_INPUTS];
};
struct wf_cases {
    const struct wf_case *list;
    int count;
};
#define WF_CASES(...)                                                                                                                      \
    {                                                                                                                                      \
        (const struct wf_case[]){__VA_ARGS__}, (int)(sizeof((const struct wf_case[]){__VA_ARGS__}) / sizeof(struct wf_case))               \
    }

#define WF_READS_INPUT(i) (1u << (i))
#define WF_READS_OUTPUT(j) (1u << (WF_MAX_INPUTS + (j)))
#define WF_READS_NOTHING (1u << 31)

struct wf_op {
    const char *name;
    size_t attr_size;
    int outputs; /* the largest number of outputs; 0 means 1. A call may ask for the first c->outputs of them */
    bool random; /* `forward` uses dropout_call, which differs from call to call */
    /* The values that `backward` reads: WF_READS_INPUT(i) | WF_READS_OUTPUT(j) | ..., or WF_READS_NOTHING. 0 means all values. The memory
     * of values that are left out may be reused before `backward` runs. */
    unsigned reads;
    /* The outputs are views of in[0]. There is no `forward`, and `shape` also sets the data and strides of the outputs. A view may repeat
     * elements (stride 0, windows). In `backward`, dout is contiguous, and `backward` must add up the gradients of all places at which the
     * view shows an element. */
    bool view;
    wf_status (*shape)(wf_call *c);
    wf_status (*forward)(wf_call *c);  /* not called if all results and saved arrays are empty, unless an operand holds ids or bools */
    wf_status (*backward)(wf_call *c); /* not called if all gradients are empty. NULL, with .constant, if no output has a gradient */
    struct wf_cases cases;
    bool constant; /* the result has no gradient, as in comparisons and argmax: `backward` is NULL, and wf_check_op checks only values */
    /* If several functions share a descriptor: returns the name of the function that was called, a literal. NULL means that `name` is the
     * name. */
    const char *(*name_of)(const void *attr);
    /* The names of the operands, such as "x weight bias", with which Weft's ops say which operand is missing; may be NULL. */
    const char *operands;
    bool many; /* the op takes any number of operands (wf_call_in), and `backward` reads none of their values */
    /* Builds the same gradient as `backward` from ops on tensors, for wf_gradients(..., .create_graph = true): sets c->dx[i] where
     * c->need[i] is set. NULL: such a call is refused where it meets this op. dx[i] has the shape of operand i, or a shape to which that
     * operand broadcasts (it is then summed over the dimensions along which it is repeated), or one that broadcasts to the operand's.
     * Values that `backward` does not read may be released by then, which is an error; a parameter among the operands that was changed is
     * one too. For y = exp(x): c->dx[0] = wf_mul(c->dy[0], c->y[0]). */
    void (*gradient)(const wf_gradient_call *c);
    /* A mask like .reads: those of the values for which `backward` also takes arrays of dtype WF_BF16. In a pass with products in bf16 it
     * gets one if the caller released the value (wf_release) and all its other readers take it too; the array has the same dims and
     * strides, and its elements are rounded as products round them, except that a denormal becomes a denormal of its sign instead of 0. So
     * `backward` may use such a value as the second operand of products, which gives the same bits, or look at its sign; name no other
     * value here. */
    unsigned rounds;
};

/* Applies an op: replaces parameters by their leaves (the tape's tensors for them), checks the operands, runs `shape` and `forward`, and
 * makes a record. `attr` points to op->attr_size bytes, which are copied. in[i] may be NULL for an absent operand. Returns output 0, or
 * poison with the error on the tape. wf_apply_multi sets out[0 .. outputs-1] in the same way. */
WF_API wf_tensor *wf_apply(const wf_op *op, const void *attr, int inputs, wf_tensor *const in[]);
WF_API void wf_apply_multi(const wf_op *op, const void *attr, int inputs, wf_tensor *const in[], int outputs, wf_tensor *out[]);
/* The tape on which an op with these operands runs (see wf_tape_use), or NULL if there is none. NULL operands are skipped. */
WF_API wf_tape *wf_tape_of_operands(int count, wf_tensor *const x[]);
/* Makes a view of x, without a record and without a copy. `name` stands for the op in messages. `view` must lie inside the storage of x.
 * The gradient of the view is not a separate array, but a view of x's gradient with the same offset and strides. So if x needs a gradient,
 * the view must show each element at most once; for other views define an op with .view. On an error returns poison, with the error on the
 * tape. */
WF_API wf_tensor *wf_apply_view(const char *name, wf_tensor *x, const wf_array *view);

/* --- for shape, forward and backward ------------------------------------------------------------------------------- */
/* Makes the call fail with the status `code`, and returns `code`. The tape's error then reads "op(a [2,3], b [4]): message". */
WF_API wf_status wf_call_fail(wf_call *c, wf_status code, const char *format, ...) WF_PRINTF(3, 4);
/* For an op with .many: operand number `input` of c->inputs, or NULL if it is absent, and whether this operand needs a gradient. c->in,
 * c->need and wf_has cover only the first WF_MAX_INPUTS operands. */
WF_API const wf_array *wf_call_in(const wf_call *c, int input);
WF_API bool wf_call_needs(const wf_call *c, int input);
static inline bool wf_has(const wf_call *c, int input)
{
    return input < c->inputs && input < WF_MAX_INPUTS && c->in[input].data != NULL;
}
/* For `shape`: an output of this dtype and shape. wf_call_like gives a WF_REAL output with the shape of `a`. */
WF_API wf_array wf_call_shape(wf_dtype dtype, const wf_shape *shape);
WF_API wf_array wf_call_like(const wf_call *c, const wf_array *a);
/* For `forward` and `backward`: a contiguous temporary array. It is released when the function returns, unless wf_grad_give has passed it
 * on. Without memory its data are NULL, and the tape has the error. */
WF_API wf_array wf_call_temp(wf_call *c, wf_dtype dtype, const wf_shape *shape);
/* Memory of the tape that stays valid until the next reset (or a rewind to an earlier mark), for data that attributes point to. NULL
 * without memory, with the error on the tape. */
WF_API void *wf_tape_memory(wf_tape *tape, size_t bytes);
/* `a` itself if it is contiguous, else a copy in a temporary array (wf_call_temp). */
WF_API wf_array wf_call_contiguous(wf_call *c, const wf_array *a);

/* --- passing gradients (backward) ----------------------------------------------------------------------------------- */
/* The array to which `backward` writes the gradient of input number `input`. It has the input's shape, and it is strided if the input is a
 * view. If *accumulate is true, add to the values there; otherwise overwrite all of them. Call this function once for each input that needs
 * a gradient. If two inputs may be the same tensor, fill the array of the first before you call the function for the second. wf_grad_into
 * suits ops that can add to an array at no extra cost, such as products with beta = 1. Without memory the data of the array are NULL. */
WF_API wf_array wf_grad_into(wf_call *c, int input, bool *accumulate);
/* For an op whose first `count` operands may be slices of one tensor, as q, k and v are slices of one product. Call it before wf_grad_into.
 * It returns true if the operands need gradients and together show each element of that tensor once, and if the tensor has no gradient yet.
 * The tensor's gradient then gets memory that is not cleared: overwrite all elements of these operands' gradients, even if *accumulate is
 * true. */
WF_API bool wf_grad_fills(wf_call *c, int count);
/* An alternative to wf_grad_into: a contiguous temporary array of the input's shape. Fill it and pass it to wf_grad_give. */
WF_API wf_array wf_grad_new(wf_call *c, int input);
/* Adds g to the gradient of input number `input`. g may be c->dout[j], a view of c->dout[j], a temporary, or any array that is valid during
 * the call. If g is the first contribution, the engine shares the memory of a dout or a temporary instead of copying it. The shape of g is
 * that of the input, or one to which the input broadcasts; then the engine sums g over the broadcast dimensions. */
WF_API void wf_grad_give(wf_call *c, int input, const wf_array *g);

/* --- parameters ---------------------------------------------------------------------------------------------------- */
/* A parameter is a tensor that belongs to no tape. It has a value, which outlives passes, and an index, by which struct wf_grads finds its
 * gradient. A tape never changes a parameter, so several tapes in several threads may use it. */
struct wf_grads_place {
    int64_t offset; /* where the gradient begins in the slab, in elements; a multiple of 16 */
    int64_t count;  /* number of elements; 0 if the slab has no room, because the parameter was frozen when the slab was made */
};
/* The gradients of all parameters of a registry that are not frozen. Read them with wf_grad or wf_grads_at. */
struct wf_grads {
    wf_real *slab; /* all gradients end to end, not yet multiplied by `factor` */
    int64_t count; /* number of elements of the slab */
    int parameters;
    struct wf_grads_place *place; /* [parameters] */
    /* [parameters]: whether a gradient was written since the last wf_grads_zero; if not, the gradient counts as 0. */
    bool *valid;
    double factor; /* wf_clip_norm left this factor, by which the gradients have yet to be multiplied; 0 means none */
    bool finite;   /* all gradients are known to be finite */
    bool broken;   /* a backward failed, so the gradients are invalid */
    /* Called in a backward without .retain when the gradient of a parameter is complete, that is, when no further record adds to it; may be
     * NULL. */
    void (*ready)(void *ctx, int parameter);
    void *ready_ctx;
    uint64_t registry;            /* the number of the parameters' registry (wf_parameter_info.registry) */
    struct wf_grads_block *block; /* [blocks]: each a range of one parameter's gradient */
    int64_t blocks;
    double *partial; /* [blocks]: the sum of the squares of the gradients in each block, from which norms are computed */
    /* Only in a registry's own gradients: how often the registry's values were changed. Code that changes values increments this number, so
     * that a backward that would read the new values is refused. */
    uint64_t updates;
    const struct wf_shard *shard; /* if several processes train together: the shard that this process updates; NULL: it updates all */
    struct wf_averages *averages; /* how persistent buffers will change at the next update; NULL if the registry has none */
};
struct wf_parameter_info {
    const char *name;          /* a string that outlives the parameter */
    wf_array value;            /* contiguous; WF_REAL, or WF_BF16 if the parameter is stored so */
    int index;                 /* the parameter's number in its registry, an index of wf_grads.place and .valid */
    int64_t offset;            /* where a value of dtype WF_REAL begins in wf_registry_values, in elements; a multiple of 16. -1: the value
                                  is not there but mapped from a file */
    bool frozen;               /* the parameter needs no gradient */
    wf_grads *grads;           /* the gradients to which backward writes by default; NULL if there are none */
    uint64_t registry;         /* number of the registry; no other registry of this process ever has the same number */
    struct wf_values_use *use; /* for the engine: which passes read the values, and how often the values were replaced; may be NULL */
    bool table;                /* its rows are vectors of single ids or classes: struct wf_parameter_options */
    bool persistent;           /* a persistent buffer: struct wf_parameter_options */
};
WF_API const struct wf_parameter_info *wf_parameter_info(const wf_tensor *parameter); /* NULL if the tensor is no parameter */
/* A parameter's gradient, contiguous in its shape, for reading or changing. The pointer is valid until the next backward or
 * wf_registry_gradients. NULL if `grads` holds no gradient of the parameter: none was written since wf_grads_zero, the parameter is frozen
 * or belongs to another registry, or a backward failed. */
WF_API wf_real *wf_grads_at(wf_grads *grads, const wf_tensor *parameter);
/* Marks all gradients as 0 without writing to the slab, clears `broken`, and discards the changes of buffers (wf_running_average). */
WF_API void wf_grads_zero(wf_grads *grads);

/* --- running averages ---------------------------------------------------------------------------------------------- */
/* For modules with state that is not learned, such as the statistics of batch normalisation: asks for the change
 *
 *   buffer = (1 - rate) buffer + rate x,
 *
 * where `buffer` is a persistent buffer (struct wf_parameter_options), x has its shape, and 0 <= rate <= 1. A rate of 1 replaces the value.
 * x is read at the call, and no gradient flows.
 *
 * A tape changes no buffer, so the call only notes the change. The first wf_backward of the pass that succeeds after the call adds the
 * change to those in struct wf_grads, in the order of the calls and passes, and the update makes it: wf_optimizer_step of the first
 * optimiser that has the registry, or wf_registry_update_buffers. So all passes of an update, and other threads until then, read the old
 * values, and each micro-batch counts once. wf_grads_zero discards the changes with the gradients. Nothing changes
 * - in WF_INFER and WF_GRADIENTS, or in a pass without wf_backward (wf_gradients does not count);
 * - when wf_checkpoint calls a function a second time;
 * - in a registry without gradients, or of which no optimiser steps;
 * - with .grads of wf_tape_reset, in other registries than that of .grads. The changes of .grads itself are made only after
 *   wf_grads_take_buffers.
 *
 * An error goes to the tape of x: WF_ERR_ARGUMENT: `buffer` is no persistent buffer, or the rate is out of range; WF_ERR_SHAPE. */
WF_API void wf_running_average(wf_tensor *buffer, wf_tensor *x, double rate);
/* Moves the changes of buffers from `from`, the gradients of another thread's tape (wf_grads_new), behind those of `to`, such as the
 * registry's own. Does nothing if the two belong to different registries. */
WF_API void wf_grads_take_buffers(wf_grads *to, wf_grads *from);

WF_END_DECLS

#endif
