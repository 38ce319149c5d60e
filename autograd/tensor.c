/* SPDX-License-Identifier: MIT */
/* Makes tensors from the caller's data, and lets the caller read values, names, shapes and gradients. */
#include <math.h>
#include <string.h>

#include <weft/compute.h>
#include <weft/internal/shape.h>

#include "engine.h"

/* A contiguous tensor with its own memory and without a record. */
static wf_tensor *make(wf_tape *tape, wf_dtype dtype, const wf_shape *shape, const char *made_by)
{
    if (!tape)
        return wf_tape_fail(NULL, WF_ERR_ARGUMENT, "%s: the tape is NULL: look at what wf_tape_new returned", made_by);
    if (tape->error.code != WF_OK)
        return &tape->poison;
    if (!shape)
        return wf_tape_fail(tape, WF_ERR_ARGUMENT, "%s: the shape is NULL", made_by);
    if (shape->ndim < 0 || shape->ndim > WF_MAX_DIMS)
        return wf_tape_fail(tape, WF_ERR_SHAPE, "%s: a tensor has 0 to %d dimensions, not %d", made_by, WF_MAX_DIMS, shape->ndim);
    size_t bytes;
    if (!wf_shape_bytes(dtype, shape, &bytes)) {
        char text[96];
        return wf_tape_fail(tape, WF_ERR_SHAPE, "%s: the shape %s is invalid: a size is negative, or there are too many elements", made_by,
                            wf_shape_text(shape, text, sizeof text));
    }
    /* Inside a checkpoint the data lie in a buffer, which returns to the pool at the checkpoint's end. */
    struct buffer *buffer = tape->checkpoints > 0 ? pool_take(tape, bytes) : NULL;
    void *data = buffer ? buffer->data : tape->checkpoints > 0 ? NULL : wf_tape_memory(tape, bytes);
    wf_tensor *x = data ? tape_new_tensor(tape) : NULL;
    if (!x)
        return &tape->poison;
    x->kind = TENSOR_INPUT;
    x->buffer = buffer;
    x->a = wf_array_contiguous(data, dtype, shape);
    x->made_by = made_by;
    return x;
}

static wf_tensor *copy_in(wf_tape *tape, wf_dtype dtype, const void *data, const wf_shape *shape, const char *made_by)
{
    wf_tensor *x = make(tape, dtype, shape, made_by);
    if (x->kind != TENSOR_POISON && !data && wf_array_count(&x->a) > 0)
        return wf_tape_fail(tape, WF_ERR_ARGUMENT, "%s: the data are NULL", made_by);
    if (x->kind != TENSOR_POISON && wf_array_count(&x->a) > 0)
        memcpy(x->a.data, data, (size_t)wf_array_count(&x->a) * wf_dtype_size(dtype));
    return x;
}

wf_tensor *wf_ids_of(wf_tape *tape, const int32_t *ids, const wf_shape *shape)
{
    return copy_in(tape, WF_I32, ids, shape, "ids");
}

wf_tensor *wf_ids(wf_tape *tape, const int32_t *ids, int64_t rows, int64_t columns)
{
    return wf_ids_of(tape, ids, &(wf_shape){2, {rows, columns}});
}

wf_tensor *wf_input(wf_tape *tape, const wf_real *data, const wf_shape *shape, bool needs_grad)
{
    wf_tensor *x = copy_in(tape, WF_REAL, data, shape, "input");
    if (x->kind != TENSOR_POISON)
        x->needs_grad = needs_grad && tape->mode != WF_INFER;
    return x;
}

wf_tensor *wf_bools(wf_tape *tape, const bool *data, const wf_shape *shape)
{
    return copy_in(tape, WF_BOOL, data, shape, "bools");
}

wf_tensor *wf_zeros(wf_tape *tape, const wf_shape *shape)
{
    wf_tensor *x = make(tape, WF_REAL, shape, "zeros");
    if (x->kind != TENSOR_POISON)
        memset(x->a.data, 0, (size_t)wf_array_count(&x->a) * sizeof(wf_real));
    return x;
}

wf_tensor *wf_full(wf_tape *tape, const wf_shape *shape, double value)
{
    wf_tensor *x = make(tape, WF_REAL, shape, "full");
    if (x->kind != TENSOR_POISON)
        wf_kernel->fill(wf_array_count(&x->a), (wf_real)value, x->a.data);
    return x;
}

wf_tensor *wf_borrow(wf_tape *tape, const wf_array *array)
{
    if (!tape)
        return wf_tape_fail(NULL, WF_ERR_ARGUMENT, "wf_borrow: the tape is NULL: look at what wf_tape_new returned");
    wf_shape shape = array ? wf_array_shape(array) : (wf_shape){.ndim = -1};
    size_t bytes;
    if (!array || !wf_shape_bytes(array->dtype, &shape, &bytes) || (bytes > 0 && !array->data))
        return wf_tape_fail(tape, WF_ERR_ARGUMENT,
                            "wf_borrow: the array's dtype, shape or data are invalid: make it with wf_array_contiguous");
    wf_tensor *x = tape->error.code == WF_OK ? tape_new_tensor(tape) : NULL;
    if (!x)
        return &tape->poison;
    x->kind = TENSOR_INPUT;
    x->a = *array;
    x->made_by = "borrowed";
    return x;
}

wf_tensor *wf_detach(wf_tensor *x)
{
    wf_tape *tape = wf_tape_of(x);
    if (x && x->kind == TENSOR_POISON)
        return x;
    if (!tape)
        return fail_without_tape(x ? WF_ERR_STATE : WF_ERR_ARGUMENT, "wf_detach", x);
    if (!tape_accepts(tape, "wf_detach", x))
        return &tape->poison;
    if (x->kind == TENSOR_PARAMETER)
        return wf_borrow(tape, &x->a); /* no copy, because no pass releases the value of a parameter */
    /* A copy, because a backward may release the value of x while the caller still uses the result. */
    wf_shape shape = wf_array_shape(&x->a);
    wf_tensor *y = make(tape, x->a.dtype, &shape, "detach");
    if (y->kind != TENSOR_POISON)
        wf_array_copy(&y->a, &x->a);
    return y;
}

int wf_ndim(const wf_tensor *x)
{
    return x ? x->a.ndim : 0;
}

int64_t wf_dim(const wf_tensor *x, int dim)
{
    if (dim < 0)
        dim += wf_ndim(x);
    return wf_is_poison(x) || dim < 0 || dim >= x->a.ndim ? 1 : x->a.dim[dim];
}

wf_shape wf_shape_of(const wf_tensor *x)
{
    return x ? wf_array_shape(&x->a) : (wf_shape){0};
}

wf_dtype wf_dtype_of(const wf_tensor *x)
{
    return x ? x->a.dtype : WF_REAL;
}

wf_tape *wf_tape_of(const wf_tensor *x)
{
    return !x || x->kind == TENSOR_PARAMETER ? tape_latest() : x->tape;
}

bool wf_is_poison(const wf_tensor *x)
{
    return !x || x->kind == TENSOR_POISON;
}

wf_tensor *wf_name(wf_tensor *x, const char *name)
{
    if (!x)
        return wf_tape_fail(wf_tape_of(x), WF_ERR_ARGUMENT, "wf_name: the tensor is NULL");
    if (x->kind == TENSOR_POISON || !x->tape || !name)
        return x;
    size_t bytes = strlen(name) + 1;
    char *copy = wf_arena_get(x->tape->arena, bytes);
    if (copy)
        x->name = memcpy(copy, name, bytes);
    return x;
}

const char *wf_name_of(const wf_tensor *x)
{
    if (!x)
        return "NULL";
    /* If x is of an earlier pass, its name must not be read: the memory of the name was freed at the end of that pass. */
    const bool stale = x->tape && x->generation != x->tape->generation;
    return x->name && !stale ? x->name : x->made_by ? x->made_by : "tensor";
}

/* WF_OK if the value of x may be read now. Otherwise the tape has the error. */
static wf_status readable(const wf_tensor *x, const char *call)
{
    if (!x) {
        wf_tape_fail(wf_tape_of(x), WF_ERR_ARGUMENT, "%s: the tensor is NULL", call);
        return WF_ERR_ARGUMENT;
    }
    if (x == &tapeless_poison)
        return WF_ERR_STATE;
    if (!x->tape) { /* x is a parameter, so an error goes to the tape that this thread used last */
        return parameter_has_value(wf_tape_of(x), call, x) ? WF_OK : WF_ERR_STATE;
    }
    if (x->tape->error.code != WF_OK)
        return x->tape->error.code;
    return tape_accepts(x->tape, call, x) ? WF_OK : x->tape->error.code;
}

wf_status wf_view(const wf_tensor *x, wf_array *view)
{
    wf_status status = readable(x, "wf_view");
    if (status == WF_OK && !view) {
        wf_tape_fail(wf_tape_of(x), WF_ERR_ARGUMENT, "wf_view: the place for the view of '%s' is NULL", wf_name_of(x));
        return WF_ERR_ARGUMENT;
    }
    if (status == WF_OK)
        *view = x->a;
    return status;
}

wf_status wf_print_text(struct wf_string *text, const wf_tensor *x)
{
    const wf_status status = readable(x, "wf_print_text");
    return status == WF_OK ? wf_array_print_text(text, wf_name_of(x), &x->a) : status;
}

wf_status wf_print(FILE *to, const wf_tensor *x)
{
    const wf_status status = readable(x, "wf_print");
    if (status == WF_OK)
        return wf_array_print(to, wf_name_of(x), &x->a);
    if (to)
        fprintf(to, "%s: %s\n", wf_name_of(x), wf_tape_error(x == &tapeless_poison ? NULL : wf_tape_of(x))->message);
    return status;
}

wf_status wf_item(const wf_tensor *x, double *value)
{
    if (!value) {
        wf_tape_fail(wf_tape_of(x), WF_ERR_ARGUMENT, "wf_item: the place for '%s' is NULL", wf_name_of(x));
        return WF_ERR_ARGUMENT;
    }
    *value = NAN;
    wf_status status = readable(x, "wf_item");
    if (status != WF_OK)
        return status;
    if (wf_array_count(&x->a) != 1 || x->a.dtype != WF_REAL) {
        char text[96];
        wf_shape shape = wf_array_shape(&x->a);
        wf_tape_fail(wf_tape_of(x), WF_ERR_SHAPE, "wf_item: '%s' has shape %s and dtype %s, but one real element is required",
                     wf_name_of(x), wf_shape_text(&shape, text, sizeof text), wf_dtype_name(x->a.dtype));
        return WF_ERR_SHAPE;
    }
    *value = *(const wf_real *)x->a.data;
    return WF_OK;
}

/* WF_OK if `count` elements of x can be copied to `out`. `right_dtype` says whether the call can read the dtype of x, and
 * `wanted` names the dtypes that it can read, for the message. */
static wf_status copyable(const wf_tensor *x, const char *call, bool right_dtype, const char *wanted, const void *out, int64_t count)
{
    wf_status status = readable(x, call);
    if (status != WF_OK)
        return status;
    if (wf_array_count(&x->a) != count || !right_dtype) {
        wf_tape_fail(wf_tape_of(x), WF_ERR_SHAPE, "%s: '%s' has %lld elements of dtype %s, but count is %lld %s elements", call,
                     wf_name_of(x), (long long)wf_array_count(&x->a), wf_dtype_name(x->a.dtype), (long long)count, wanted);
        return WF_ERR_SHAPE;
    }
    if (!out && count > 0) {
        wf_tape_fail(wf_tape_of(x), WF_ERR_ARGUMENT, "%s: the place for '%s' is NULL", call, wf_name_of(x));
        return WF_ERR_ARGUMENT;
    }
    return WF_OK;
}

static void copy_out(const wf_tensor *x, void *out)
{
    wf_shape shape = wf_array_shape(&x->a);
    wf_array to = wf_array_contiguous(out, x->a.dtype, &shape);
    wf_array_copy(&to, &x->a);
}

wf_status wf_read(const wf_tensor *x, wf_real *out, int64_t count)
{
    wf_status status = copyable(x, "wf_read", wf_dtype_of(x) == WF_REAL || wf_dtype_of(x) == WF_BF16, "real", out, count);
    if (status != WF_OK || count == 0)
        return status;
    if (wf_dtype_of(x) == WF_REAL) {
        copy_out(x, out);
        return WF_OK;
    }
    /* The numbers are first copied to the end of `out`. The loop then writes each number only over numbers that it has read already. */
    unsigned char *numbers = (unsigned char *)(out + count) - 2 * count;
    copy_out(x, numbers);
    for (int64_t i = 0; i < count; i++) {
        uint16_t number;
        wf_real value;
        memcpy(&number, numbers + 2 * i, sizeof number);
        (void)wf_convert(WF_REAL, &value, WF_BF16, &number, 1);
        memcpy(out + i, &value, sizeof value);
    }
    return WF_OK;
}

wf_status wf_read_ids(const wf_tensor *x, int32_t *out, int64_t count)
{
    const wf_dtype dtype = wf_dtype_of(x);
    wf_status status = copyable(x, "wf_read_ids", dtype == WF_I32 || dtype == WF_BOOL, "i32 or bool", out, count);
    if (status != WF_OK || count == 0)
        return status;
    if (dtype == WF_I32) {
        copy_out(x, out);
        return WF_OK;
    }
    /* The bools are first copied to the last quarter of `out`. The loop then writes each number only over bools that it has read
     * already. */
    unsigned char *bools = (unsigned char *)out + 3 * count;
    copy_out(x, bools);
    for (int64_t i = 0; i < count; i++) {
        const int32_t value = bools[i] != 0;
        memcpy((unsigned char *)out + 4 * i, &value, sizeof value);
    }
    return WF_OK;
}

wf_tensor *wf_keep(wf_tensor *x)
{
    for (wf_tensor *r = x; r; r = r->base)
        if (user_released(r) && r->generation == r->tape->generation && !tape_accepts(r->tape, "wf_keep", x))
            return &r->tape->poison;
    for (wf_tensor *r = x; r; r = r->base)
        if (r->kind != TENSOR_POISON && r->tape && r->value == VALUE_LIVE)
            r->value = VALUE_KEPT;
    return x ? x : wf_tape_fail(wf_tape_of(x), WF_ERR_ARGUMENT, "wf_keep: the tensor is NULL");
}

/* Sets *view to the gradient of a parameter or leaf in its slab. False if the slab holds no gradient. */
static bool slab_view(const wf_tensor *x, wf_array *view)
{
    wf_shape shape = wf_array_shape(&x->a);
    wf_real *gradient = slab_gradient(x->info);
    if (!gradient)
        return false;
    *view = wf_array_contiguous(gradient, WF_REAL, &shape);
    return true;
}

/* Reports, without failing the pass, that x has no gradient: the message is stored for wf_tape_status, but the tape's error code stays
 * WF_OK. */
static wf_status no_gradient(wf_tape *tape, const wf_tensor *x, const char *why)
{
    if (!tape)
        wf_tape_fail(NULL, WF_ERR_STATE, "wf_grad: '%s' %s", wf_name_of(x), why);
    else if (tape->error.code == WF_OK) {
        wf_tape_fail(tape, WF_ERR_STATE, "wf_grad: '%s' %s", wf_name_of(x), why);
        tape->error.code = WF_OK;
    }
    return WF_ERR_STATE;
}

static wf_status grad_of_parameter(const wf_tensor *x, wf_array *view)
{
    wf_tape *mine = tape_latest();
    const wf_tensor *leaf = mine ? tape_find_leaf(mine, x) : NULL;
    const wf_tensor *of = leaf && leaf->info->grads ? leaf : x;
    if (!of->info->grads)
        return no_gradient(mine, x, "has no gradient: it is frozen, or its registry was loaded, and not built, for training");
    if (of->info->grads->broken)
        return no_gradient(mine, x, "has no valid gradient: a wf_backward failed; call wf_grads_zero before the next");
    return slab_view(of, view)
               ? WF_OK
               : no_gradient(mine, x, "has no gradient: no wf_backward since wf_grads_zero was called on what depends on it");
}

/* The reason why x, a tensor of a pass, has no gradient. */
static const char *reason(const wf_tensor *x)
{
    const wf_tape *tape = x->tape;
    if (x->generation != tape->generation)
        return "is of an earlier pass: ask before wf_tape_reset";
    if (!x->needs_grad)
        return x->kind == TENSOR_INPUT ? "needs no gradient: give needs_grad where wf_input makes it"
                                       : "needs no gradient: it depends on no parameter that is trained, and on no input with needs_grad";
    if (!tape->differentiated)
        return "has no gradient yet: call wf_backward first";
    if (x->kind == TENSOR_INNER && !x->retain)
        return "is an inner tensor, whose gradient is not kept: call wf_retain_grad on it before other ops use it, or take wf_gradients";
    return "has no gradient: no wf_backward was called on what depends on it";
}

wf_status wf_grad(const wf_tensor *x, wf_array *view)
{
    if (!x || !view)
        return WF_ERR_ARGUMENT;
    wf_tape *tape = x->tape;
    if (x->kind == TENSOR_PARAMETER)
        return grad_of_parameter(x, view);
    if (!tape)
        return WF_ERR_STATE;
    if (tape->error.code != WF_OK)
        return tape->error.code;
    if (x->kind == TENSOR_LEAF && slab_view(x, view))
        return WF_OK;
    if (x->generation != tape->generation || !tape->differentiated || !x->grad_buffer)
        return no_gradient(tape, x, reason(x));
    *view = gradient_of(x);
    return WF_OK;
}
