/* SPDX-License-Identifier: MIT */
/* The op descriptor, for ops in any file. A descriptor holds the shape rule, forward, backward and the cases of the gradient
 * check; a constructor calls wf_apply. See docs/ops.md.
 *
 *   static wf_status double_shape(wf_call *c) { c->out[0] = wf_call_like(c, &c->in[0]); return WF_OK; }
 *   static wf_status double_forward(wf_call *c) { ... c->in[0].data -> c->out[0].data ...; return WF_OK; }
 *   static wf_status double_backward(wf_call *c) { ... c->dout[0] -> wf_grad_new(c, 0) ...; return WF_OK; }
 *   const wf_op op_double = { .name = "double", .shape = double_shape, .forward = double_forward,
 *                             .backward = double_backward, .cases = WF_CASES({ .in = {{2, 3}} }) };
 *   wf_tensor *my_double(wf_tensor *x) { return wf_apply(&op_double, NULL, 1, &x); }                                     */
#ifndef WEFT_OP_H
#define WEFT_OP_H

#include <weft/tape.h>

WF_BEGIN_DECLS

enum { WF_MAX_INPUTS = 8, WF_MAX_OUTPUTS = 4, WF_MAX_SAVED = 6 };

typedef struct wf_op wf_op;

/* One application of an op. `in` and `out` are strided arrays; an absent input (NULL) has data NULL (wf_has). */
typedef struct wf_call {
    const wf_op *op;
    wf_tape *tape;
    const void *attr; /* the op's attributes, a copy that lives as long as the record */
    int inputs, outputs;
    wf_array in[WF_MAX_INPUTS];
    wf_array out[WF_MAX_OUTPUTS];  /* `shape` sets dtype and dims; in forward contiguous, not cleared */
    wf_array saved[WF_MAX_SAVED];  /* `shape` sets dims of buffers that forward fills for backward; allocated if `grad` */
    bool grad;                     /* forward: a backward may follow */
    bool rows_alone;               /* WF_INFER: a row's bits may not depend on the rows beside it */
    bool need[WF_MAX_INPUTS];      /* whether this input needs a gradient */
    wf_array dout[WF_MAX_OUTPUTS]; /* backward: gradients of the outputs, any strides, read-only; data NULL where there is none */
    /* The tape's; the seed also stands for the number of the pass. */
    uint64_t seed, step, first_row;
    uint32_t dropout_call; /* number of this call among the ops with .random in this pass */
    void *internal;        /* of the engine */
} wf_call;

/* Values of an input in the gradient check */
enum wf_fill {
    WF_FILL_NORMAL,   /* N(0,1) */
    WF_FILL_POSITIVE, /* uniform in [0.5, 2] */
    WF_FILL_APART,    /* away from 0 and from each other, to avoid kinks and ties */
    WF_FILL_IDS,      /* WF_I32 uniform in 0 .. limit-1; no gradient */
    WF_FILL_BOOLS,    /* WF_BOOL; no gradient */
    WF_FILL_ABSENT,   /* NULL */
    WF_FILL_UNIT      /* uniform in [0.1, 0.9], for probabilities */
};
struct wf_case {
    const char *what;                       /* for messages; may be NULL */
    int64_t in[WF_MAX_INPUTS][WF_MAX_DIMS]; /* dims, ended by 0; -1 stands for a size of 0; {-2} for a scalar */
    enum wf_fill fill[WF_MAX_INPUTS];
    int32_t limit[WF_MAX_INPUTS]; /* of WF_FILL_IDS */
    int inputs;                   /* 0: up to the first without dims */
    const void *attr;
    double bound;                 /* float against double: maximum error relative to the norm of the result; 0 means 1e-5 */
    bool train;                   /* run in WF_TRAIN (dropout on; the same masks at each evaluation) */
    bool constant[WF_MAX_INPUTS]; /* a real input without a gradient, such as frequencies or weights of classes: none is asked for, nor
                                     checked. The op must refuse one that needs a gradient (c->need[i] in .shape). */
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
    int outputs;    /* at most; 0: 1. A call may ask for fewer, the first c->outputs of them */
    bool random;    /* uses dropout_call, so that each call has its own */
    unsigned reads; /* values that backward reads: WF_READS_INPUT(i) | WF_READS_OUTPUT(j) | ..., or WF_READS_NOTHING; 0: all of
                       them. The memory of the others is reused before. */
    bool view;      /* the outputs are views of in[0], without a copy and without a forward: `shape` sets also their data and
                       strides. Elements may be repeated (stride 0, windows): dout is contiguous, and backward adds it up */
    wf_status (*shape)(wf_call *c);
    wf_status (*forward)(wf_call *c);  /* not called if the results and what is saved have no elements and no operand is of ids or bools */
    wf_status (*backward)(wf_call *c); /* not called if no gradient has elements. NULL, with .constant: no gradients (all outputs are
                                          constants) */
    struct wf_cases cases;
    bool constant; /* its result has no gradient: comparisons, argmax; it has no backward, and wf_check_op checks its values only */
    const char *(*name_of)(const void *attr); /* if several functions share the op: the name of the called one, a literal; NULL: `name` */
    const char *operands;                     /* their names for messages, "x weight bias"; may be NULL */
    bool many; /* takes any number of operands, of which backward reads none (WF_READS_NOTHING): see wf_call_in */
};

/* Applies an op: resolves parameters, checks tapes and staleness, runs shape and forward, records. attr: op->attr_size bytes, which are
 * copied. in[i] may be NULL (an absent operand). Returns output 0, or poison on any error. wf_apply_multi sets out[0 .. outputs-1]. */
WF_API wf_tensor *wf_apply(const wf_op *op, const void *attr, int inputs, wf_tensor *const in[]);
WF_API void wf_apply_multi(const wf_op *op, const void *attr, int inputs, wf_tensor *const in[], int outputs, wf_tensor *out[]);
/* The tape on which an op of these operands runs (see wf_tape_use); NULL: there is none. NULL operands are skipped. */
WF_API wf_tape *wf_tape_of_operands(int count, wf_tensor *const x[]);
/* A view: no record, no copy. `view` must lie inside the storage of x. Its gradient is accumulated in that of x; so, where x needs a
 * gradient, a view that shows an element more than once is refused: it takes an op with .view. */
WF_API wf_tensor *wf_apply_view(const char *name, wf_tensor *x, const wf_array *view);

/* --- for shape, forward and backward ------------------------------------------------------------------------------- */
/* Fails the call: the tape's error reads "op(a [2,3], b [4]): message". Returns code. */
WF_API wf_status wf_call_fail(wf_call *c, wf_status code, const char *format, ...) WF_PRINTF(3, 4);
/* An op with .many: operand i of c->inputs, NULL if it is absent, and whether it needs a gradient. c->in, c->need and wf_has know the
 * first WF_MAX_INPUTS only. */
WF_API const wf_array *wf_call_in(const wf_call *c, int input);
WF_API bool wf_call_needs(const wf_call *c, int input);
static inline bool wf_has(const wf_call *c, int input)
{
    return input < c->inputs && input < WF_MAX_INPUTS && c->in[input].data != NULL;
}
/* In `shape`: an output of this dtype and shape; wf_call_like: WF_REAL with the shape of a. */
WF_API wf_array wf_call_shape(wf_dtype dtype, const wf_shape *shape);
WF_API wf_array wf_call_like(const wf_call *c, const wf_array *a);
/* In forward and backward: a contiguous temporary, released when the function returns (or passed on by wf_grad_give).
 * data NULL without memory, with the tape's error set. */
WF_API wf_array wf_call_temp(wf_call *c, wf_dtype dtype, const wf_shape *shape);
/* Memory of the tape until the reset (or the rewind), for data that attributes point to. NULL without memory. */
WF_API void *wf_tape_memory(wf_tape *tape, size_t bytes);
/* a itself if it is contiguous, else a contiguous temporary copy. */
WF_API wf_array wf_call_contiguous(wf_call *c, const wf_array *a);

/* --- passing gradients (backward) ----------------------------------------------------------------------------------- */
/* The destination of input i's gradient: an array of the input's shape, strided if the input is a view. With *accumulate add to
 * the values there, otherwise overwrite all of them. Call it once for each needed input, and fill the array before the next call if both
 * inputs may be the same tensor. It saves a pass where the op can add (products with beta = 1). data NULL without memory. */
WF_API wf_array wf_grad_into(wf_call *c, int input, bool *accumulate);
/* Before wf_grad_into, in an op whose first `count` operands may be slices of one tensor, as q, k and v of one product are: true if they
 * need gradients, fill a tensor that has no gradient yet, and show each of its elements once. Its gradient is then made without being
 * cleared first: whatever *accumulate says, overwrite all elements of these operands' gradients. */
WF_API bool wf_grad_fills(wf_call *c, int count);
/* Alternatively: a contiguous temporary of the input's shape to fill and pass to wf_grad_give. */
WF_API wf_array wf_grad_new(wf_call *c, int input);
/* Adds g to the gradient of input i. g may be c->dout[j] or a view of it (shared, not copied, if it is the first
 * contribution), a temporary, or any array that is valid during the call. Its shape is the input's, or one that the input broadcasts to:
 * then the engine sums over the broadcast dimensions. */
WF_API void wf_grad_give(wf_call *c, int input, const wf_array *g);

/* --- parameters (for the room nn) ---------------------------------------------------------------------------------- */
/* A parameter is a tensor without a tape: a value that outlives steps and an index into gradient slabs. Immutable to
 * tapes, so several tapes in several threads may use it. */
struct wf_grads_place {
    int64_t offset; /* in the slab, elements; a multiple of 16 */
    int64_t count;  /* elements; 0: no room, since the parameter was frozen when the slab was made */
};
/* The gradients of a registry's trained parameters. They are read with wf_grad or wf_grads_at. */
struct wf_grads {
    wf_real *slab; /* all gradients end to end, `factor` not included */
    int64_t count; /* elements of the slab */
    int parameters;
    struct wf_grads_place *place;            /* [parameters] */
    bool *valid;                             /* [parameters]: a gradient was written since the last zero; otherwise it counts as 0 */
    double factor;                           /* the factor that wf_clip_norm left to be multiplied with; 0: none */
    bool finite;                             /* all gradients are known to be finite */
    bool broken;                             /* a backward failed: the gradients are invalid */
    void (*ready)(void *ctx, int parameter); /* called in a backward without .retain, when no record that adds to the parameter's gradient
                                                is left; may be NULL */
    void *ready_ctx;
    uint64_t registry; /* wf_parameter_info.registry of the parameters */
    struct wf_grads_block *block;
    int64_t blocks;
    double *partial;  /* [blocks] */
    uint64_t updates; /* of a registry's own gradients: the number of changes of its values. Code that changes values increments it, so that
                         a backward which would read the new ones is refused */
    const struct wf_shard *shard; /* the shard that this process holds, if several train together; NULL: all */
};
struct wf_parameter_info {
    const char *name;          /* outlives the parameter */
    wf_array value;            /* contiguous */
    int index;                 /* in its registry, and in wf_grads.place and .valid */
    int64_t offset;            /* in wf_registry_values, elements; a multiple of 16 */
    bool frozen;               /* needs no gradient */
    wf_grads *grads;           /* the default slab; NULL: no gradients */
    uint64_t registry;         /* number of the registry: no other of this process has it, before or after */
    struct wf_values_use *use; /* of the engine: the readers of the values, and the number of their replacements; may be NULL */
};
WF_API const struct wf_parameter_info *wf_parameter_info(const wf_tensor *parameter); /* NULL if it is none */
/* A parameter's gradient, contiguous in its shape, to read or to change: valid until the next backward or wf_registry_gradients. NULL where
 * these gradients hold none: none since the last zero, the parameter of another registry or frozen, or the backward failed. */
WF_API wf_real *wf_grads_at(wf_grads *grads, const wf_tensor *parameter);
WF_API void wf_grads_zero(wf_grads *grads); /* marks all as 0 without writing the slab; clears `broken` */

WF_END_DECLS

#endif
