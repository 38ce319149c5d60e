/* SPDX-License-Identifier: MIT */
/* wf_apply_view: makes views that share the memory and the gradient of their base. Such a view needs no record. */
#include <weft/internal/kernels.h>
#include <weft/internal/shape.h>

#include "engine.h"

bool view_inside(wf_tensor *x, const wf_array *view)
{
    const wf_array *whole = &value_root(x)->a;
    wf_shape shape = array_shape(view);
    uintptr_t first, end, view_first, view_end;
    size_t bytes;
    if (view->dtype != whole->dtype || !wf_shape_bytes(view->dtype, &shape, &bytes))
        return false;
    return bytes == 0 || (wf_array_count(whole) > 0 && wf_array_span(whole, &first, &end) && wf_array_span(view, &view_first, &view_end) &&
                          view_first >= first && view_end <= end);
}

/* Whether two different indices of `a` may lead to the same element. They cannot if each stride is greater than the largest offset that all
 * dimensions with smaller strides reach together. */
static bool may_repeat(const wf_array *a)
{
    int64_t dim[WF_MAX_DIMS], stride[WF_MAX_DIMS], reach = 0;
    int n = 0;
    for (int d = 0; d < a->ndim; d++) {
        int64_t step = a->stride[d] < 0 ? -a->stride[d] : a->stride[d];
        if (a->dim[d] == 0)
            return false;
        if (a->dim[d] == 1)
            continue;
        int at = n++;
        for (; at > 0 && stride[at - 1] > step; at--) {
            dim[at] = dim[at - 1];
            stride[at] = stride[at - 1];
        }
        dim[at] = a->dim[d];
        stride[at] = step;
    }
    for (int i = 0; i < n; i++) {
        if (stride[i] <= reach)
            return true;
        reach += (dim[i] - 1) * stride[i];
    }
    return false;
}

wf_tensor *wf_apply_view(const char *name, wf_tensor *x, const wf_array *view)
{
    wf_tape *tape = wf_tape_of(x);
    if (!tape)
        return x && x->kind == TENSOR_POISON ? &tapeless_poison : fail_without_tape(WF_ERR_STATE, name, x);
    if (tape->error.code != WF_OK || (x && x->kind == TENSOR_POISON))
        return &tape->poison;
    if (!tape_accepts(tape, name, x))
        return &tape->poison;
    if (x->kind == TENSOR_PARAMETER)
        x = tape->no_grad ? wf_borrow(tape, &x->a) : tape_leaf(tape, x);
    if (wf_is_poison(x))
        return &tape->poison;
    if (!view_inside(x, view))
        return wf_tape_fail(tape, WF_ERR_SHAPE, "%s: the view of '%s' is not inside its storage, or has another dtype", name,
                            wf_name_of(x));
    if (x->place == APART)
        return wf_tape_fail(tape, WF_ERR_STATE,
                            "%s: '%s' is a view with repeated elements that needs a gradient: call wf_contiguous on it first", name,
                            wf_name_of(x));
    const bool needs_grad = x->needs_grad && !tape->no_grad;
    if (needs_grad && may_repeat(view))
        return wf_tape_fail(tape, WF_ERR_STATE,
                            "%s: the view repeats elements of '%s', which needs a gradient: use wf_expand or an op with .view, or, where "
                            "no gradient is wanted, wf_detach first",
                            name, wf_name_of(x));
    wf_tensor *y = tape_new_tensor(tape);
    if (!y)
        return &tape->poison;
    x->recorded = true; /* ops on y also use x, so wf_retain_grad(x) would now be too late */
    y->kind = TENSOR_INNER;
    y->a = *view;
    y->made_by = name;
    y->base = x;
    y->needs_grad = needs_grad;
    return y;
}
