/* SPDX-License-Identifier: MIT */
/* Tensors, and the tape that records the ops on them.
 *
 * An op runs when it is called, and a record of the call goes onto the tape of its operands. wf_backward visits the records in reverse
 * order. The result of an op is called an inner tensor. All records, values and gradients that are made in a pass live in the tape's memory
 * until the next wf_tape_reset; only the gradients of parameters live longer. So tensors need not be freed, nested expressions cannot leak,
 * and nothing is allocated from the second pass on. wf_release gives the memory of a value back earlier.
 *
 * Errors: the tape keeps the first error, which names the op, its operands and their shapes. The op that fails returns the tape's poison
 * tensor, and so does each op on poison. Poison is never NULL, and each of its dimensions reads 1. So the code of a model need not check
 * for errors: wf_backward and every read by the host return a status, and wf_tape_error has the message.
 *
 * If a tensor is NULL, the error goes to the tape that the thread used last. If a tape is NULL, or if an op has only parameters as operands
 * and the thread has no tape, the result is poison and wf_tape_error(NULL) has the message.
 *
 * One thread at a time may use a tape. Several threads, each with its own tape, may share parameters: see weft/registry.h. */
#ifndef WEFT_TAPE_H
#define WEFT_TAPE_H

#include <weft/array.h>
#include <weft/error.h>

WF_BEGIN_DECLS

typedef struct wf_tape wf_tape;
typedef struct wf_tensor wf_tensor;
typedef struct wf_grads wf_grads;

typedef enum wf_mode {
    WF_INFER,    /* no gradients and no dropout; the bits of a row never depend on the other rows of the batch */
    WF_TRAIN,    /* gradients and dropout */
    WF_GRADIENTS /* gradients, but no dropout */
} wf_mode;

/* --- lifetime of a tape ------------------------------------------------------------------------------------------------ */

/* A new tape, which the caller frees with wf_tape_free. NULL with *error if the program was compiled for another version or precision of
 * Weft, or without memory. */
WF_API wf_tape *wf_tape_new_abi(uint32_t abi, wf_error *error);
#define wf_tape_new(error) wf_tape_new_abi(WF_ABI, error)
WF_API void wf_tape_free(wf_tape *tape);

struct wf_tape_options {
    uint64_t seed; /* the seed of dropout; give the same seed for the whole training */
    uint64_t step; /* the number of the training step; dropout masks differ from step to step */
    /* If the batch of an update, the global batch, is divided (accumulation, several processes): the index in the global batch of this
     * part's first row. */
    uint64_t first_row;
    /* The gradients of parameters are added up here; all parameters that need one must belong to the same registry as `grads`. NULL means
     * each registry's own gradients, for any number of registries. */
    wf_grads *grads;
    bool exact; /* dropout masks do not depend on how many passes the tape has run before */
    /* The arithmetic of matrix products in this pass, forward and backward: those of wf_matmul, wf_linear,
     * wf_linear_cross_entropy and wf_attention, and of the modules that call these ops. Everything else, gradients included, is wf_real.
     * bf16 is for the library of floats alone. */
    enum wf_precision precision;
};
/* A dropout mask depends on the seed, the step, the rows' indices, and the number of the pass. This number is 0 in the tape's first pass in
 * WF_TRAIN with a new `step`, and grows by 1 with each further pass in WF_TRAIN until `step` changes. So the masks differ in each pass of a
 * loop that sets no step, and in each part of a batch that is divided.
 *
 * With `exact` the number of the pass is always 0. Set `exact` if a pass must be repeatable (gradient checks, a resumed training), or if
 * the masks must not depend on how a batch is divided. In these cases also set `step`, and set `first_row` for each part of the batch. */
/* Clears the records and the error, and starts a pass. All tensors of the tape become stale: an op, a read or a backward fails if it gets
 * one, and the error names the op that made the tensor. A stale tensor is recognised for 15 resets; after that another tensor may have the
 * same struct. The contents of this thread's wf_scratch memory are lost. */
WF_API void wf_tape_reset_with(wf_tape *tape, wf_mode mode, const struct wf_tape_options *options);
#ifndef __cplusplus
#define wf_tape_reset(tape, mode, ...) wf_tape_reset_with(tape, mode, &(struct wf_tape_options){__VA_ARGS__})
#endif
/* Changes first_row for the ops that follow in this pass. This is for passes with rows of several kinds (source and target tokens), which
 * have different indices in the global batch. */
WF_API void wf_tape_first_row(wf_tape *tape, uint64_t row);
WF_API wf_mode wf_tape_mode(const wf_tape *tape);
/* Sets a function that can stop a pass which takes minutes. The tape's thread calls it before each op and, during wf_backward, before each
 * record. If it returns true, the tape fails with WF_ERR_CANCELLED. The function stays set over resets; NULL removes it. */
WF_API void wf_tape_cancel(wf_tape *tape, bool (*cancelled)(void *ctx), void *ctx);

/* The first error since the reset, with code WF_OK if there is none; never NULL. With a NULL tape: the last error of this thread that could
 * not be stored on a tape. */
WF_API const wf_error *wf_tape_error(const wf_tape *tape);
/* For use after a read or a backward has failed: copies the tape's error into *error and returns its code, which is never WF_OK. */
WF_API wf_status wf_tape_status(const wf_tape *tape, wf_error *error);
/* Puts an error that is not an op's (such as an invalid option of a module) on the tape, and returns the poison tensor. */
WF_API wf_tensor *wf_tape_fail(wf_tape *tape, wf_status code, const char *format, ...) WF_PRINTF(3, 4);

/* Promises that neither the host nor a later op will read the value of x. The gradient of x is not affected. The memory returns to the tape
 * when no recorded backward will read the value any more: at once in WF_INFER or if no backward needs it, otherwise during wf_backward. A
 * later use of x, or of a view of x, is an error on the tape. If x is a view, only the view ends; the memory stays with the tensor that x
 * shows. Nothing happens if x is NULL, poison, a parameter or an input, or if it was given to wf_keep, released before, or dropped by
 * wf_tape_rewind.
 *
 * A module releases the tensors that it makes and does not return, each after its last use. It never releases an operand of its caller:
 *
 *   wf_tensor *h = wf_linear_forward(&m->up, x), *a = wf_relu(h);
 *   wf_release(h);
 *   wf_tensor *y = wf_linear_forward(&m->down, a);
 *   wf_release(a);
 *   return y;
 *
 * In a pass with products in bf16, the value is kept in bf16 if each backward that will read it takes bf16 (wf_op.rounds): in half the
 * memory, and with the same bits of all gradients. Those are x of wf_linear and wf_linear_cross_entropy, q, k and v, and results of ReLU;
 * not values of a few KiB.
 *
 * Some ops return their operand h itself (wf_dropout in WF_INFER, wf_contiguous) or a view of h (wf_reshape). Then release h only after the
 * last use of both h and the result. */
WF_API void wf_release(wf_tensor *x);

/* For loops without gradients, such as generation. wf_tape_here marks the present state of the tape, and wf_tape_rewind drops all tensors
 * that were made since then. `keep` may be NULL or a contiguous tensor. The value of this tensor survives: wf_tape_rewind moves it to the
 * place in the tape's memory where the mark was taken, and returns it in a new tensor, which is a constant. If `keep` is NULL,
 * wf_tape_rewind returns NULL.
 *
 * If an op gets a dropped tensor, even one that was given to wf_keep, the error names the op that made the tensor. This is reliable until
 * rewinds have dropped more than 128 tensors (768 without NDEBUG), whose structs are then used again.
 *
 * If since the mark an op was recorded, a backward ran, or in bf16 a value that a backward will read was released, wf_tape_rewind is an
 * error on the tape and returns poison. So use it in WF_INFER, or under wf_tape_no_grad. */
typedef struct wf_tape_mark {
    uint64_t word[8];
} wf_tape_mark;
WF_API wf_tape_mark wf_tape_here(const wf_tape *tape);
WF_API wf_tensor *wf_tape_rewind(wf_tape *tape, wf_tape_mark mark, wf_tensor *keep);
/* For models that run in all modes: declares that of all tensors made since the mark only x is used later. If no op was recorded since the
 * mark, this is wf_tape_rewind(tape, mark, x). Otherwise a backward needs the other tensors, and the function only returns x.
 *
 * If a model calls wf_tape_compact after each sublayer, with a mark that was taken before the first sublayer, a pass in WF_INFER needs the
 * memory of one sublayer instead of all blocks. A pass that gives inner tensors to its caller passes a zeroed mark, with which nothing is
 * dropped. */
WF_API wf_tensor *wf_tape_compact(wf_tape_mark mark, wf_tensor *x);

struct wf_tape_stats {
    size_t used;     /* bytes of the tape's memory that are in use now */
    size_t peak;     /* the most bytes that were in use at any time since wf_tape_new */
    size_t reserved; /* bytes that the tape has allocated */
    int64_t nodes;   /* number of ops recorded since the reset */
};
WF_API struct wf_tape_stats wf_tape_stats(const wf_tape *tape);

/* --- creating tensors ------------------------------------------------------------------------------------------------ */

/* A tensor with a copy of the ids, in the shape [rows, columns], or in `shape`. The op that uses the ids checks their range. */
WF_API wf_tensor *wf_ids(wf_tape *tape, const int32_t *ids, int64_t rows, int64_t columns);
WF_API wf_tensor *wf_ids_of(wf_tape *tape, const int32_t *ids, const wf_shape *shape);
/* A real tensor with a copy of the data. With `needs_grad` wf_backward computes the gradient of the tensor, and wf_grad reads it. */
WF_API wf_tensor *wf_input(wf_tape *tape, const wf_real *data, const wf_shape *shape, bool needs_grad);
/* A WF_BOOL tensor with a copy of the data, for example a mask in which true means "may attend". */
WF_API wf_tensor *wf_bools(wf_tape *tape, const bool *data, const wf_shape *shape);
/* A real tensor of zeros, without a gradient. */
WF_API wf_tensor *wf_zeros(wf_tape *tape, const wf_shape *shape);
/* A real tensor whose elements are all `value`. With the shape &(wf_shape){0} it is a scalar []. */
WF_API wf_tensor *wf_full(wf_tape *tape, const wf_shape *shape, double value);
/* A tensor that shows the caller's memory without a copy, with any dtype and strides, for tables and caches. It has no gradient. The memory
 * must stay valid and unchanged until the next reset. */
WF_API wf_tensor *wf_borrow(wf_tape *tape, const wf_array *array);
/* Makes `tape` the tape that counts as the last one this thread used. An op whose operands are all parameters runs on that tape.
 *
 * Parameters are operands like all other tensors, but belong to no tape. An op runs on the tape of its first operand that is no parameter.
 * If all operands are parameters, as in wf_mul(a, b), the op runs on the tape that the thread last reset, made a tensor on, or gave to
 * wf_tape_use. So a thread that works on two tapes in turn calls wf_tape_use first. Operands from two tapes are an error. If the thread has
 * no tape, the op returns poison, and wf_tape_error(NULL) has the message. */
WF_API void wf_tape_use(wf_tape *tape);

/* --- inspecting tensors -------------------------------------------------------------------------------------------- */

WF_API int wf_ndim(const wf_tensor *x);
/* The size of a dimension; a negative dim counts from the end. 1 if x is poison or dim is out of range. */
WF_API int64_t wf_dim(const wf_tensor *x, int dim);
WF_API wf_shape wf_shape_of(const wf_tensor *x);
WF_API wf_dtype wf_dtype_of(const wf_tensor *x);
WF_API wf_tape *wf_tape_of(const wf_tensor *x); /* if x is a parameter: the tape that this thread used last, or NULL */
WF_API bool wf_is_poison(const wf_tensor *x);
/* Gives x a name for messages, which is copied. Returns x. */
WF_API wf_tensor *wf_name(wf_tensor *x, const char *name);
WF_API const char *wf_name_of(const wf_tensor *x); /* the name from wf_name, or else the name of the op that made x */

/* The host reads values with these functions. They return the tape's status. On an error *value is NaN and out[] is unchanged. wf_read
 * copies all elements in row-major order. */
WF_API wf_status wf_item(const wf_tensor *x, double *value) WF_CHECKED;               /* x must have one element */
WF_API wf_status wf_read(const wf_tensor *x, wf_real *out, int64_t count) WF_CHECKED; /* count must be the number of elements of x */
/* Like wf_read, but x holds ids (WF_I32), or bools (WF_BOOL), which are copied as 0 and 1. */
WF_API wf_status wf_read_ids(const wf_tensor *x, int32_t *out, int64_t count) WF_CHECKED;
/* Prints the name and the value of x for people, for example wf_print(stderr, h). wf_array_print (weft/array.h) describes the format. If x
 * cannot be read, wf_print writes a line with the reason, and the result is the tape's status. wf_print_text writes to a string. */
WF_API wf_status wf_print(FILE *to, const wf_tensor *x);
WF_API wf_status wf_print_text(struct wf_string *text, const wf_tensor *x);
/* Sets *view to a strided view of the value of x. The view is valid until the next reset, rewind or backward, or until x is released. */
WF_API wf_status wf_view(const wf_tensor *x, wf_array *view) WF_CHECKED;

/* --- backward ------------------------------------------------------------------------------------------------------ */

struct wf_backward_options {
    /* The gradient of some loss with respect to x, in x's shape. NULL means ones, so that the sum of x's elements is differentiated. */
    wf_tensor *gradient;
    bool retain; /* keeps records and values, because another backward over them will follow */
    /* Only for wf_gradients: the results depend on x and on what else the gradients depend on, so that they can be differentiated again.
     * Records and values are kept, as with .retain. */
    bool create_graph;
    bool allow_unused; /* only for wf_gradients: the gradient of an x[i] on which y does not depend is zeros instead of an error */
};
/* Computes the gradients of x with respect to all inputs and parameters on which x depends. Examples are wf_backward(loss) and
 * wf_backward(y, .gradient = dy).
 *
 * The gradients of all calls in a pass are added up. The gradients of parameters, in struct wf_grads, are added up over all passes since
 * wf_grads_zero. The gradients of inner tensors are released after their last use. A backward uses up all records that were made before it,
 * and reuses the memory of values. To read the result of an op afterwards, give the result to wf_keep before the backward; otherwise every
 * op or read that gets the result fails, with an error that names it. Parameters, tensors that no op made, x and .gradient stay readable.
 *
 * To differentiate several losses one after the other, give all calls but the last .retain, which keeps records and values. Ops may follow
 * a backward, and another backward may follow those ops. The second backward visits the records that the first one retained and those made
 * after it. A backward is refused if it leads to a record that is used up, if it would read parameters that an optimiser changed since the
 * record was made, or if the tape is in WF_INFER.
 *
 * On an error the gradients are marked invalid, and optimisers refuse them. */
WF_API wf_status wf_backward_with(wf_tensor *x, const struct wf_backward_options *options) WF_CHECKED;
#ifndef __cplusplus
#define wf_backward(x, ...) wf_backward_with(x, &(struct wf_backward_options){__VA_ARGS__})
#endif
/* Computes the gradients of y with respect to chosen tensors only: gradient[i] is the gradient of y with respect to x[i], in the shape of
 * x[i]. x[i] may be an input, a parameter, an inner tensor or a view, and needs no wf_retain_grad.
 *
 *   wf_tensor *g[2];
 *   if (wf_gradients(loss, 2, ((wf_tensor *[]){h, m.weight}), g) != WF_OK) ...
 *
 * Only records on a path from x to y are differentiated. The call changes no wf_grads, and no gradient that wf_grad reads.
 *
 * The results are tensors of the tape, and ops may read them. They keep their memory until the reset. With .create_graph the gradients are
 * made by ops that are recorded, so that they can be differentiated again, any number of times: a penalty on a gradient (WGAN-GP, R1), the
 * derivatives in a differential equation, or a step of an inner training (MAML) is a loss as any other:
 *
 *   wf_gradients(wf_sum(f), 1, &x, &g, .create_graph = true);
 *   wf_backward(wf_mean(wf_square(g)));
 *
 * An op without a `gradient` in its descriptor refuses .create_graph by name: attention, LSTM, GRU, the selective scan, dropout, and
 * wf_checkpoint. In a pass with products in bf16 a value that was released (wf_release), as modules of nn release theirs, refuses it too.
 * Without .create_graph a result still depends on x, and wf_backward fails if it would have to differentiate the result: a result
 * that is meant as a constant goes through wf_detach.
 *
 * WF_ERR_STATE if y does not depend on x[i] (see .allow_unused). The other options are those of wf_backward, and without .create_graph the
 * call uses up the same records as wf_backward(y). On an error every gradient[i] is poison. */
WF_API wf_status wf_gradients_with(wf_tensor *y, int count, wf_tensor *const x[], wf_tensor *gradient[],
                                   const struct wf_backward_options *options) WF_CHECKED;
#ifndef __cplusplus
#define wf_gradients(y, count, x, gradient, ...) wf_gradients_with(y, count, x, gradient, &(struct wf_backward_options){__VA_ARGS__})
#endif
/* Products with the matrices of derivatives, which are not computed themselves. They use wf_gradients with .create_graph, and like it need
 * `gradient` in the ops on the way. Of the options only .create_graph is read: the products can then be differentiated again. The records
 * are kept in any case. On an error all results are poison.
 *
 * wf_hvp: the product of the Hessian of y, a scalar (of another y, the Hessian of the sum of its elements), with a vector: hv[i], in the
 * shape of x[i], is the sum over j of the second derivatives by x[i] and x[j], times v[j]. v[j] has the shape of x[j], and counts as a
 * constant (Pearlmutter 1994). For an x[i] on which y does not depend hv[i] is zeros, as with .allow_unused. */
WF_API wf_status wf_hvp_with(wf_tensor *y, int count, wf_tensor *const x[], wf_tensor *const v[], wf_tensor *hv[],
                             const struct wf_backward_options *options) WF_CHECKED;
/* wf_jvp: the derivative of y along v: *jv, in the shape of y, is the sum over i of the Jacobian of y by x[i], times v[i]. */
WF_API wf_status wf_jvp_with(wf_tensor *y, int count, wf_tensor *const x[], wf_tensor *const v[], wf_tensor **jv,
                             const struct wf_backward_options *options) WF_CHECKED;
#ifndef __cplusplus
#define wf_hvp(y, count, x, v, hv, ...) wf_hvp_with(y, count, x, v, hv, &(struct wf_backward_options){__VA_ARGS__})
#define wf_jvp(y, count, x, v, jv, ...) wf_jvp_with(y, count, x, v, jv, &(struct wf_backward_options){__VA_ARGS__})
#endif
/* If `on`, the ops that follow are not recorded. Use the function for a teacher's logits, statistics or targets. The results of these ops
 * are constants, no gradient flows through them, and nothing is saved for a backward. Values are computed as the tape's mode says, with
 * dropout in WF_TRAIN. Returns the former state, so that regions can be nested. A reset switches recording on.
 *
 *   bool before = wf_tape_no_grad(tape, true);
 *   wf_tensor *target = wf_model_logits(teacher, ids, NULL);
 *   wf_tape_no_grad(tape, before); */
WF_API bool wf_tape_no_grad(wf_tape *tape, bool on);
/* Calls function(ctx, x) and does not keep the inner values of this call for the backward; instead, the backward calls the function a
 * second time. So a pass holds the inner values of only one checkpoint at a time, and takes about a third longer. Results, gradients and
 * dropout masks have the same bits as without the checkpoint (Chen et al. 2016, "Training deep nets with sublinear memory cost").
 *
 *   static wf_tensor *forward(void *ctx, wf_tensor *x) { return block_forward(ctx, x); }
 *   ...
 *   for (int i = 0; i < LAYERS; i++)
 *       x = wf_checkpoint(forward, &m->block[i], x);
 *
 * Besides x the function may use parameters and, through ctx, other tensors of the tape. Each wf_backward and wf_gradients that reaches the
 * checkpoint calls the function again, and in each call the function must do the same. So everything that the function reads through ctx
 * must stay valid and unchanged until the last call, and a tensor whose value it reads on the host needs wf_keep. It is an error if the
 * second call has other ops, shapes or operands. A change of other attributes (such as the factor of wf_scale) is not noticed; the
 * gradients are then those of the second call.
 *
 * Outside the function only its result may be used. The other tensors that the function makes end with the call unless they were given to
 * wf_keep, and no gradient flows through them. Checkpoints may be nested. Inside the function, wf_backward, wf_gradients, wf_tape_reset and
 * wf_tape_rewind are errors. In WF_INFER and under wf_tape_no_grad, wf_checkpoint just calls the function. */
WF_API wf_tensor *wf_checkpoint(wf_tensor *(*function)(void *ctx, wf_tensor *x), void *ctx, wf_tensor *x);
/* Keeps the value of x readable after wf_backward and wf_release. Returns x. */
WF_API wf_tensor *wf_keep(wf_tensor *x);
/* Keeps the gradient of x, so that wf_grad can read it. Call it before other ops use x. Returns x. */
WF_API wf_tensor *wf_retain_grad(wf_tensor *x);
/* Sets *view to the gradient of an input, of a tensor given to wf_retain_grad, or of a parameter. The view is valid until the next
 * backward. The gradient of a parameter is read from the wf_grads to which the pass on this thread's tape (the one that it used last)
 * writes, or from the registry's own if that pass did not use the parameter. WF_ERR_STATE if there is no gradient (no wf_backward yet, or
 * an inner tensor without wf_retain_grad). In that case the message of wf_tape_error says why and what to do, and wf_tape_status returns
 * WF_ERR_STATE. But the pass can go on: the code of wf_tape_error stays WF_OK. */
WF_API wf_status wf_grad(const wf_tensor *x, wf_array *view) WF_CHECKED;

/* The value of x in a tensor without a gradient: a copy, or for a parameter its own memory, which an optimiser changes. */
WF_API wf_tensor *wf_detach(wf_tensor *x);

/* --- finding NaNs -------------------------------------------------------------------------------------------------- */

/* Makes the tape check the result of each op. The first NaN or infinity becomes the tape's error (WF_ERR_NUMERIC) with the op, the operands
 * and the index. If an input or a parameter that the op reads already holds a NaN or +inf, the error names it: "the input x [8,4] has nan
 * at [3,0], and linear(x [8,4], w [2,4]) reads it".
 *
 * Masks contain -inf, so -inf is no error in the result of an op that reads -inf or bools. A NaN that reaches no result, such as one that
 * wf_where leaves out, is no error either.
 *
 * With this setting wf_backward and wf_gradients also check each gradient that the backward of an op gives. The message then reads: "the
 * backward of sqrt(x [4]) gave a gradient that is not finite for its operand x [4]: inf at [2]". The setting stays over resets. */
WF_API void wf_tape_check_finite(wf_tape *tape, bool on);

WF_END_DECLS

#endif
