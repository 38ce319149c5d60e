/* SPDX-License-Identifier: MIT */
/* Tensors, and the tape that records the ops on them.
 *
 * An op runs when it is called and records itself on the tape of its operands; wf_backward traverses the record in reverse.
 * Everything of a step (values, records, gradients of inner tensors) lives in the tape's memory until wf_tape_reset:
 * tensors need not be freed, nested expressions cannot leak, and nothing is allocated from the second step on. wf_release
 * gives a value's memory back earlier.
 *
 * Errors: the tape keeps the first failure with the op, its operands' names and shapes; the op returns the tape's poison
 * tensor (never NULL; every dimension reads 1), and ops on poison return poison. A model's code need not check: wf_backward
 * and every read by the host return a status, and wf_tape_error has the message. A NULL tensor is an error of
 * the tape that the thread used last. A NULL tape, and an op on parameters in a thread that has no tape, give poison too, and
 * wf_tape_error(NULL) has the message.
 *
 * A tape is used by one thread at a time. Several threads, each with its tape, may share parameters: see registry.h. */
#ifndef WEFT_TAPE_H
#define WEFT_TAPE_H

#include <weft/array.h>
#include <weft/error.h>

WF_BEGIN_DECLS

typedef struct wf_tape wf_tape;
typedef struct wf_tensor wf_tensor;
typedef struct wf_grads wf_grads;

typedef enum wf_mode {
    WF_INFER,    /* no gradients, no dropout; the bits of a row never depend on the other rows of the batch */
    WF_TRAIN,    /* gradients and dropout */
    WF_GRADIENTS /* gradients, no dropout */
} wf_mode;

/* --- lifetime of a tape ------------------------------------------------------------------------------------------------ */

/* A new tape, or NULL with *error (wrong ABI word, no memory). Freed with wf_tape_free. */
WF_API wf_tape *wf_tape_new_abi(uint32_t abi, wf_error *error);
#define wf_tape_new(error) wf_tape_new_abi(WF_ABI, error)
WF_API void wf_tape_free(wf_tape *tape);

struct wf_tape_options {
    uint64_t seed;      /* of dropout; the same for the whole training */
    uint64_t step;      /* dropout differs from step to step */
    uint64_t first_row; /* index of this batch's first row in the global batch (accumulation, several processes) */
    wf_grads *grads;    /* receives the gradients of parameters, all of its registry: others have to be frozen. NULL: each
                           registry's slab, for any number of registries */
    bool exact;         /* dropout masks depend on the three numbers only, not on the passes before */
};
/* Dropout masks are a function of seed, step, the rows' indices and the number of the pass: the resets of this tape in WF_TRAIN since
 * `step` last changed. So they differ in each pass of a loop that gives no step, and in each part of a batch. With `exact` that number is
 * 0, as it is in the first pass of a step: for a pass that is to be repeated (gradient checks, a resumed training) or a batch whose masks
 * shall not depend on how it is cut; then step, and first_row of the parts, must be given. */
/* Clears the record and the error, and starts a pass; wf_scratch of this thread holds nothing then. All tensors of the tape become stale:
 * an op, a read or a backward refuses them by name. That holds for
 * 15 resets; then another tensor may have the struct. */
WF_API void wf_tape_reset_with(wf_tape *tape, wf_mode mode, const struct wf_tape_options *options);
#ifndef __cplusplus
#define wf_tape_reset(tape, mode, ...) wf_tape_reset_with(tape, mode, &(struct wf_tape_options){__VA_ARGS__})
#endif
/* Changes first_row for the following ops of this pass: for rows of several kinds (source and target tokens) with different indices in
 * the global batch. */
WF_API void wf_tape_first_row(wf_tape *tape, uint64_t row);
WF_API wf_mode wf_tape_mode(const wf_tape *tape);
/* Asked before each op and, in wf_backward, before each gradient: true fails the tape with WF_ERR_CANCELLED, so that a pass which takes
 * minutes can be stopped. Called by the tape's thread. Stays over resets; NULL: never. */
WF_API void wf_tape_cancel(wf_tape *tape, bool (*cancelled)(void *ctx), void *ctx);

/* The first error since the reset, or code WF_OK. Never NULL. Of a NULL tape: this thread's last failure that no tape could note. */
WF_API const wf_error *wf_tape_error(const wf_tape *tape);
/* After a read or a backward that failed: copies the tape's error into *error and returns its code, never WF_OK. */
WF_API wf_status wf_tape_status(const wf_tape *tape, wf_error *error);
/* Records an error outside an op (an invalid option of a module) and returns the poison tensor. */
WF_API wf_tensor *wf_tape_fail(wf_tape *tape, wf_status code, const char *format, ...) WF_PRINTF(3, 4);

/* Promises that the value of x is read no more, neither by the host nor by a later op; its gradient is not touched. The memory goes back
 * to the tape as soon as no recorded backward reads it: at once in WF_INFER and where no op needs it, else in wf_backward. A later use of
 * x or of a view of it is an error on the tape. Releasing a view ends the view alone; the memory stays with the tensor that it shows.
 * wf_keep wins; NULL, poison, parameters, inputs, and what was released before are left alone.
 *
 * A module releases the tensors that it made and does not return, each after its last use, and never an operand of its caller:
 *
 *   wf_tensor *h = wf_linear_forward(&m->up, x), *a = wf_relu(h);
 *   wf_release(h);
 *   wf_tensor *y = wf_linear_forward(&m->down, a);
 *   wf_release(a);
 *   return y;
 *
 * An op may return its operand itself (wf_dropout in WF_INFER, wf_contiguous) or a view of it (wf_reshape): release h after the last use of
 * both. */
WF_API void wf_release(wf_tensor *x);

/* For loops without gradients (generation): drops everything made since the mark. A tensor in `keep` survives, as a constant: its value is
 * moved to the mark and the new tensor is returned, otherwise NULL; it has to be contiguous. Tensors that were dropped, with wf_keep too,
 * are refused by name, while rewinds have dropped at most 128 tensors (768 without NDEBUG) since structs were used again. Where ops were
 * recorded since the mark, for a backward, it is an error on the tape, and poison is returned: it serves in WF_INFER and under
 * wf_tape_no_grad. */
typedef struct wf_tape_mark {
    uint64_t word[8];
} wf_tape_mark;
WF_API wf_tape_mark wf_tape_here(const wf_tape *tape);
WF_API wf_tensor *wf_tape_rewind(wf_tape *tape, wf_tape_mark mark, wf_tensor *keep);
/* For models that run in all modes: of what was made since the mark only x is used later. Where no op was recorded since, it is
 * wf_tape_rewind(tape, mark, x); otherwise x itself, for a backward needs the rest. A model that ends each sublayer with it, all with one
 * mark, needs the memory of a sublayer in WF_INFER, not that of all blocks. A zeroed mark drops nothing, for a pass that gives inner
 * tensors to its caller. */
WF_API wf_tensor *wf_tape_compact(wf_tape_mark mark, wf_tensor *x);

struct wf_tape_stats {
    size_t used, peak, reserved; /* bytes of the tape's memory */
    int64_t nodes;               /* ops recorded since the reset */
};
WF_API struct wf_tape_stats wf_tape_stats(const wf_tape *tape);

/* --- creating tensors ------------------------------------------------------------------------------------------------ */

/* The data are copied. Ids [rows, columns]; the op that uses them reports ids out of range. */
WF_API wf_tensor *wf_ids(wf_tape *tape, const int32_t *ids, int64_t rows, int64_t columns);
WF_API wf_tensor *wf_ids_of(wf_tape *tape, const int32_t *ids, const wf_shape *shape);
/* A real tensor; with `needs_grad` it receives a gradient (wf_grad after wf_backward). */
WF_API wf_tensor *wf_input(wf_tape *tape, const wf_real *data, const wf_shape *shape, bool needs_grad);
/* WF_BOOL, for masks: true = may attend. */
WF_API wf_tensor *wf_bools(wf_tape *tape, const bool *data, const wf_shape *shape);
/* A real tensor of zeros, without a gradient. */
WF_API wf_tensor *wf_zeros(wf_tape *tape, const wf_shape *shape);
WF_API wf_tensor *wf_full(wf_tape *tape, const wf_shape *shape, double value); /* the same of one value; &(wf_shape){0}: a scalar [] */
/* A tensor over the caller's memory, any dtype and strides, without a copy and without a gradient, for tables and caches. The memory must
 * stay valid and unchanged until the next reset. */
WF_API wf_tensor *wf_borrow(wf_tape *tape, const wf_array *array);
/* Parameters are operands like all tensors. An op runs on the tape of its first operand that is no parameter; an op on parameters alone,
 * wf_mul(a, b), on the tape that this thread used last: the last one that it reset, created a tensor on, or gave to wf_tape_use. With two
 * tapes in turn wf_tape_use says which; operands of two tapes are an error. Where the thread has no tape, poison comes back, and
 * wf_tape_error(wf_tape_of(x)) says so. */
WF_API void wf_tape_use(wf_tape *tape);

/* --- inspecting tensors -------------------------------------------------------------------------------------------- */

WF_API int wf_ndim(const wf_tensor *x);
/* Size of a dimension; negative dims count from the end. 1 for poison and for a dim out of range. */
WF_API int64_t wf_dim(const wf_tensor *x, int dim);
WF_API wf_shape wf_shape_of(const wf_tensor *x);
WF_API wf_dtype wf_dtype_of(const wf_tensor *x);
WF_API wf_tape *wf_tape_of(const wf_tensor *x); /* of a parameter: the tape that this thread used last, or NULL */
WF_API bool wf_is_poison(const wf_tensor *x);
/* A name for messages; copied. Returns x. */
WF_API wf_tensor *wf_name(wf_tensor *x, const char *name);
WF_API const char *wf_name_of(const wf_tensor *x); /* the given name, or that of the op that made it */

/* Reads by the host. They return the tape's status; on an error *value is NaN and out[] is unchanged. wf_read copies all elements,
 * row-major. */
WF_API wf_status wf_item(const wf_tensor *x, double *value) WF_CHECKED;               /* a tensor of one element */
WF_API wf_status wf_read(const wf_tensor *x, wf_real *out, int64_t count) WF_CHECKED; /* count must be its size */
/* The same for WF_I32, and for WF_BOOL as 0 and 1. */
WF_API wf_status wf_read_ids(const wf_tensor *x, int32_t *out, int64_t count) WF_CHECKED;
/* The value for people, as wf_array_print (weft/array.h) does, with x's name: wf_print(stderr, h). Of what cannot be read wf_print writes a
 * line with the reason, and the status is the tape's. */
WF_API wf_status wf_print(FILE *to, const wf_tensor *x);
WF_API wf_status wf_print_text(struct wf_string *text, const wf_tensor *x);
/* A strided view of the value, valid until the next reset, rewind or backward, or until x is released. */
WF_API wf_status wf_view(const wf_tensor *x, wf_array *view) WF_CHECKED;

/* --- backward ------------------------------------------------------------------------------------------------------ */

struct wf_backward_options {
    wf_tensor *gradient; /* of a loss with respect to x, in x's shape; NULL: ones, for the gradients of the sum of x's elements */
    bool retain;         /* another backward over what is recorded now will follow */
};
/* Gradients with respect to all inputs and parameters that x depends on: wf_backward(loss), wf_backward(y, .gradient = dy).
 *
 * They are added up over all calls of a pass, in parameters' wf_grads since wf_grads_zero. Inner gradients are released after their last
 * use. A backward uses up all that was recorded before it, and memory of values that are no longer needed is reused: afterwards only
 * parameters, inputs, x, .gradient, constants, and tensors given to wf_keep or wf_retain_grad can be read. Other results of recorded ops,
 * small ones too, are refused by name.
 *
 * Several losses, one after the other: all calls but the last with .retain, which keeps records and values. Ops may follow a backward, and
 * a backward those: over what was recorded since, or was retained. A backward that leads to a record which is used up is refused, and so is
 * one in WF_INFER, and one that would read parameters which an optimiser changed since they were recorded.
 *
 * There are no gradients of gradients, so that a penalty on a gradient has none: see wf_gradients for the way around.
 *
 * On an error the gradients are marked invalid and optimisers refuse them. */
WF_API wf_status wf_backward_with(wf_tensor *x, const struct wf_backward_options *options) WF_CHECKED;
#ifndef __cplusplus
#define wf_backward(x, ...) wf_backward_with(x, &(struct wf_backward_options){__VA_ARGS__})
#endif
/* Gradients with respect to chosen tensors only: gradient[i] is that of x[i], in its shape. x[i] may be an inner tensor or a view, without
 * wf_retain_grad, an input, or a parameter.
 *
 *   wf_tensor *g[2];
 *   if (wf_gradients(loss, 2, ((wf_tensor *[]){h, m.weight}), g) != WF_OK) ...
 *
 * Only records on a path from x to y are differentiated. Nothing else changes: no wf_grads, and no gradient that wf_grad gives.
 *
 * The results are tensors of the tape and keep their memory until the reset. Ops may read them. A result depends on x, but there are no
 * gradients of gradients: wf_backward refuses a path through it. A penalty on a gradient (WGAN-GP, R1) can be made of differences, which
 * have gradients: the derivative of f along v at x is about (f(x + h v) - f(x - h v)) / 2h, and with v = g / |g|, g the gradient, that is
 * |g|; docs/pytorch.md has the function. Where a result is meant as a constant, such as v, pass it through wf_detach; a loss of wf_detach
 * of a gradient trains nothing.
 *
 * WF_ERR_STATE if y does not depend on x[i]. Options, and which records are used up: as in wf_backward. On an error every gradient[i] is
 * poison. */
WF_API wf_status wf_gradients_with(wf_tensor *y, int count, wf_tensor *const x[], wf_tensor *gradient[],
                                   const struct wf_backward_options *options) WF_CHECKED;
#ifndef __cplusplus
#define wf_gradients(y, count, x, gradient, ...) wf_gradients_with(y, count, x, gradient, &(struct wf_backward_options){__VA_ARGS__})
#endif
/* Ops that follow are not recorded: their results are constants, no gradient goes through them, and what they would save for a backward
 * takes no memory. Values are those of the mode, dropout included. For a teacher's logits, statistics, targets. Returns the former state,
 * so that regions nest; a reset turns it off.
 *
 *   bool before = wf_tape_no_grad(tape, true);
 *   wf_tensor *target = wf_model_logits(teacher, ids, NULL);
 *   wf_tape_no_grad(tape, before); */
WF_API bool wf_tape_no_grad(wf_tape *tape, bool on);
/* function(ctx, x), whose inner values are not kept for backward but computed there a second time: a pass holds the values of one such part
 * at a time, and takes about a third longer. Results, gradients and dropout masks have the bits that they have without it (Chen et al.
 * 2016, "Training deep nets with sublinear memory cost").
 *
 *   static wf_tensor *forward(void *ctx, wf_tensor *x) { return block_forward(ctx, x); }
 *   ...
 *   for (int i = 0; i < LAYERS; i++)
 *       x = wf_checkpoint(forward, &m->block[i], x);
 *
 * Besides x the function may use parameters and, through ctx, other tensors of the tape. It is called again in each wf_backward and
 * wf_gradients that reaches it, and must do the same then: ctx, and what it reads there, stay valid and unchanged until the last of them;
 * what it reads on the host needs wf_keep. Other ops, shapes or operands are an error; other attributes (a factor of wf_scale) are not
 * noticed, and give the gradients of the second call. Only its result may be used outside: the other tensors that it makes end with it,
 * unless given to wf_keep, and no gradient flows through them. Checkpoints may be nested; wf_backward, wf_gradients, wf_tape_reset and
 * wf_tape_rewind inside are errors. In WF_INFER and under wf_tape_no_grad it is a call of the function and nothing more. */
WF_API wf_tensor *wf_checkpoint(wf_tensor *(*function)(void *ctx, wf_tensor *x), void *ctx, wf_tensor *x);
/* Keeps x's value readable after wf_backward and wf_release. Returns x. */
WF_API wf_tensor *wf_keep(wf_tensor *x);
/* Keeps the gradient of x; call it before other ops use x. Returns x. */
WF_API wf_tensor *wf_retain_grad(wf_tensor *x);
/* The gradient of an input, a retained tensor or a parameter, as a view that is valid until the next backward. A parameter's is that of the
 * wf_grads which the pass on this thread's tape writes to, and the registry's where the pass did not use the parameter. WF_ERR_STATE where
 * there is none (no wf_backward yet, or an inner tensor without wf_retain_grad): wf_tape_status and the message of wf_tape_error then say
 * why and what to do, while the tape goes on, with the code WF_OK. */
WF_API wf_status wf_grad(const wf_tensor *x, wf_array *view) WF_CHECKED;

/* The same value as a leaf without a gradient: a copy; of a parameter its memory, which an optimiser changes. */
WF_API wf_tensor *wf_detach(wf_tensor *x);

/* --- finding NaNs -------------------------------------------------------------------------------------------------- */

/* Checks the result of each op: the first NaN or infinity is the tape's error (WF_ERR_NUMERIC) with op, operands and index. Where an
 * operand that no op made, an input or a parameter, holds a NaN or +inf already, the error names that: "the input x [8,4] has nan at
 * [3,0], and linear(x [8,4], w [2,4]) reads it". -inf of a mask is no error: in the result of an op that reads -inf, or bools. A NaN that
 * no result shows, such as one that wf_where leaves out, is no error either. Then wf_backward and wf_gradients check each gradient that an
 * op gives: "the backward of sqrt(x [4]) gave a gradient that is not finite for its operand x [4]: inf at [2]". The setting persists over
 * resets. */
WF_API void wf_tape_check_finite(wf_tape *tape, bool on);

WF_END_DECLS

#endif
